"""Exercises of lesson 60, registering an op, on its face: the schema that a kernel shows, and the binding that users call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from . import op_interfaces_answers as answers
from .attempts import NotPlain
from .exercise import CHANGED_ARGUMENTS, RETURNS_NOTHING, STOPS_WITH_ERROR, Case, Exercise, Misconception, Wrong, case
from .explaining import begins_with, every

LESSON = "60_registering_an_op"

# ------------------------------------------------------------------------------------------------------------- schema

ONE, MORE, LOCAL, DEFAULTS, FALSY, REQUIRED = (
    "one input", "several inputs", "a variable in the body", "attributes", "defaults that count as false",
    "an attribute without a default",
)  # fmt: skip


def _schema_cases(random: Random, marking: bool) -> Iterator[Case]:
    x, y, z = random.sample(["x", "y", "w", "image", "table", "index"], 3)
    alpha, beta = random.sample(["alpha", "slope", "limit", "scale"], 2)
    number = random.randint(1, 9) / 2
    yield case(ONE, f"lambda xp, {x}: -{x}")
    yield case(MORE, f"lambda xp, {x}, {y}: {x} * {y}")
    yield case(MORE, f"lambda xp, {z}, {y}, {x}: {x} * {y} + {z}")
    yield case(LOCAL, f"lambda xp, {x}: ({y} := xp.exp({x})) / (1 + {y})")
    yield case(DEFAULTS, f"lambda xp, {x}, *, {alpha}={number}: {alpha} * {x}")
    yield case(DEFAULTS, f"lambda xp, {x}, {y}, *, {beta}={number}, {alpha}='same': {x} @ {y}")
    yield case(FALSY, f"lambda xp, {x}, *, axis=None, {alpha}=0: xp.sum({x}, axis) + {alpha}")
    yield case(REQUIRED, f"lambda xp, {x}, {y}, *, {alpha}: {alpha} * {x} + {y}")
    yield case(REQUIRED, f"lambda xp, {x}, *, {beta}, axis=({random.randint(0, 2)}, 1): {beta} + xp.sum({x}, axis)")


def _is_schema(answer: Any, kernel: Callable[..., Any]) -> bool:
    """The names and defaults with which Python itself would bind a call."""
    if not _is_pair(answer):
        return False
    inputs, attributes = answer
    parameters = list(inspect.signature(kernel).parameters.values())[1:]
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    named = {one.name: ... if one.default is one.empty else one.default for one in parameters[len(positional) :]}
    return list(inputs) == positional and repr(sorted(attributes.items())) == repr(sorted(named.items()))


def _names(schema: Any) -> tuple[list[str], set[str]]:
    return list(schema[0]), set(schema[1])


def _is_pair(answer: Any) -> bool:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return False
    return isinstance(answer[0], tuple | list) and isinstance(answer[1], dict)


SCHEMA = Exercise(
    lesson=LESSON,
    statement="""\
Write `read_schema(kernel)`. A kernel is a function `(xp, x, y, *, alpha=1.0)`: first the array library, then the inputs, and
after the star the attributes. Return two things:

* the **inputs**: a list of their names, in order, without `xp`,
* the **attributes**: a dictionary from each name to its default, and to `...` (three dots, a value of Python) where there
  is none, which means that every call has to give it.

Do not call the kernel: there is nothing to call it with.""",
    hints=(
        "Python knows the parameters of a function. `inspect.signature` of the standard library tells them.",
        "`inspect.signature(kernel).parameters.values()` has a `name`, a `kind` and a `default` for each parameter.",
        "Leave out the first one. Those whose `kind` is `KEYWORD_ONLY` are attributes; a `default` that is `one.empty` "
        "means none.",
    ),
    solution=answers.read_schema,
    alternatives=(answers.schema_from_the_code,),
    wrong=(
        (answers.schema_with_xp, "the library is an input"),
        (answers.schema_of_one_kind, "attributes are inputs"),
        (answers.schema_with_locals, "variables are parameters"),
        (answers.schema_of_truthy_defaults, "a default of 0 or None is none"),
        (answers.schema_without_required, "only what has a default is an attribute"),
        (answers.schema_of_names, "not inputs and attributes"),
        (answers.schema_of_texts, "a default is its text"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "not inputs and attributes",
            "Return two things: a list of names, and a dictionary from names to defaults.",
            lambda wrong: any(not _is_pair(one.answer) for one in wrong),
        ),
        Misconception(
            "the library is an input",
            "`xp` stands for NumPy or for another array library. The framework passes it; no array of the user goes there, "
            "so it is not part of what a call has to give.",
            every(lambda answer, kernel: "xp" in answer[0]),
        ),
        Misconception(
            "variables are parameters",
            "Your function takes a variable of the kernel's body for something that a call gives. A list of all the names "
            "in a function holds both; how many of them are parameters?",
            begins_with(LOCAL),
        ),
        Misconception(
            "attributes are inputs",
            "Attributes came out among the inputs. Inputs are arrays, which gradients flow to; attributes are settings, and "
            "stand after the star.",
            every(lambda answer, kernel: any(name in answer[0] for name in answers.schema_from_the_code(kernel)[1])),
        ),
        Misconception(
            "a default of 0 or None is none",
            "A default of `0` or `None` is a default too: whoever leaves the attribute out gets it. Ask whether there is a "
            "default, not whether it counts as true.",
            every(lambda answer, kernel: any(answer[1].get(name, ...) is ... for name in kernel.__kwdefaults__ or {})),
        ),
        Misconception(
            "only what has a default is an attribute",
            "An attribute without a default is lost, or seems to have one. It is there, and every call has to give it.",
            begins_with(REQUIRED),
        ),
        Misconception(
            "a default is its text",
            "Names and places are right, and a default has become something else, its text or another kind of number. "
            "Whoever leaves the attribute out gets exactly what the kernel says: `2` is not `2.0`, and no text.",
            every(lambda answer, kernel: _names(answer) == _names(answers.schema_from_the_code(kernel))),
        ),
        Misconception(
            "not what a call gives",
            "Names, order or defaults are not those of the kernel. What would you have to write between the brackets of a "
            "call?",
            lambda wrong: True,
        ),
    ),
    cases=_schema_cases,
    accepts=_is_schema,
)

# ------------------------------------------------------------------------------------------------------------ binding

PLAIN, TWO, NAMED, TEXTS = "one input", "several inputs", "attributes", "defaults that are text"


def _binding_cases(random: Random, marking: bool) -> Iterator[Case]:
    name, other = random.sample(["scale", "blend", "window", "mix", "pick"], 2)
    x, y, z = random.sample(["x", "y", "left", "right", "mask"], 3)
    a, b = random.sample(["alpha", "size", "axis", "steps"], 2)
    number = random.randint(1, 9)
    word = random.choice(["same", "full", "mean"])
    yield case(PLAIN, f"{name!r}, ['x'], {{}}")
    yield case(TWO, f"{other!r}, [{x!r}, {y!r}], {{}}")
    yield case(TWO, f"{name!r}, [{z!r}, {y!r}, {x!r}], {{}}")
    yield case(NAMED, f"{name!r}, ['x'], {{{a!r}: {number / 2}}}")
    yield case(NAMED, f"{other!r}, [{x!r}, {y!r}], {{{a!r}: -{number}, {b!r}: None}}")
    yield case(NAMED, f"{name!r}, [{z!r}], {{{b!r}: ({number},), {a!r}: True}}")
    yield case(TEXTS, f"{other!r}, [{z!r}, {x!r}], {{'mode': {word!r}, {b!r}: {number}}}")
    yield case(TEXTS, f"{name!r}, [{x!r}], {{'quote': \"it's\"}}")


def _binding(text: str, name: str) -> tuple[Callable[..., Any] | None, list[Any]]:
    """The function that the text defines, and the list of what it hands to ``call``."""
    handed: list[Any] = []

    def call(operands: Any, attributes: Any) -> Any:
        handed.append((list(operands), dict(attributes)))
        return len(handed)

    names: dict[str, Any] = {"call": call}
    try:
        exec(text, names)
    except Exception:
        return None, handed
    found = names.get(name)
    return (found if inspect.isfunction(found) else None), handed


def _is_binding(answer: Any, name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> bool:
    """The function does what a call means, however it is written: by place, by name, with defaults; and refuses the rest."""
    if not isinstance(answer, str):
        return False
    function, handed = _binding(answer, name)
    if function is None:
        return False
    operands = [object() for _ in inputs]
    others: dict[str, Any] = {key: object() for key in attributes}
    by_name = dict(zip(inputs, operands, strict=True))
    good: list[tuple[list[Any], dict[str, Any], dict[str, Any]]] = [
        (operands, {}, dict(attributes)), ([], by_name, dict(attributes)), (operands, others, others),
        ([*operands, *others.values()], {}, others),
    ]  # fmt: skip
    bad: list[tuple[list[Any], dict[str, Any]]] = [
        (operands[1:], {}), (operands, {"unheard_of": 1}), ([*operands, *others.values(), 1], {}),
    ]  # fmt: skip
    return all(_hands_over(function, handed, *one, operands) for one in good) and all(
        _refuses(function, *one) for one in bad
    )


def _hands_over(
    function: Callable[..., Any], handed: list[Any], given: Any, named: Any, attributes: Any, operands: Any
) -> bool:
    """One call hands over these operands and attributes, once, and gives back what comes."""
    before = len(handed)
    try:
        result = function(*given, **named)
    except Exception:
        return False
    return result == before + 1 == len(handed) and repr(handed[-1]) == repr((operands, dict(attributes)))


def _refuses(function: Callable[..., Any], given: Any, named: Any) -> bool:
    try:
        function(*given, **named)
    except TypeError:
        return True
    except Exception:
        return False
    return False


def _defines(one: Wrong) -> bool:
    """Whether the text defines the function, whatever that does."""
    return isinstance(one.answer, str) and _binding(one.answer, one.case.arguments[0])[0] is not None


def _forbids_a_way(one: Wrong) -> bool:
    """Whether some parameter of the function takes what is given by place alone, or by name alone."""
    function = _binding(one.answer, one.case.arguments[0])[0] if isinstance(one.answer, str) else None
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()} if function else set()
    return bool(kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY})


def _is_program(text: str) -> bool:
    try:
        exec(text, {"call": lambda operands, attributes: None})
    except Exception:
        return False
    return True


def _texts(wrong: Sequence[Wrong]) -> list[str]:
    return [one.answer for one in wrong if isinstance(one.answer, str)]


BINDING = Exercise(
    lesson=LESSON,
    statement="""\
Write `binding_text(name, inputs, attributes)`: the **text** of the Python function that users will call, as a string.
`inputs` is a list of names, `attributes` a dictionary from names to defaults. The function that the text defines

* is called `name`, takes the inputs, then the attributes with their defaults, each by place or by name,
* returns `call(operands, attributes)`: a tuple or list of the operands, and a dictionary of the attributes,
* refuses what it does not know, as Python functions do.

For `"scale", ["x"], {"alpha": 2.0}` it may be `def scale(x, alpha=2.0): return call((x,), {"alpha": alpha})`. Your function
only writes the text. `call` is the framework's way in, and somebody else has written it.""",
    hints=(
        "Write the text for two inputs and one attribute by hand first. Which pieces change when there are three inputs?",
        "Join the inputs, and `key=default` for every attribute, with commas: that is what stands between the brackets. "
        'How is the default `"same"` written in a program, and how does an f-string write it?',
        "In an f-string, `{default!r}` writes a value as a program would. Operands: each input with a comma behind it, in "
        'brackets. Attributes: `"key": key` for each.',
    ),
    solution=answers.binding_text,
    alternatives=(answers.binding_from_a_tree,),
    wrong=(
        (answers.binding_with_plain_text, "a default is written as it is printed"),
        (answers.binding_without_defaults, "every call gives every attribute"),
        (answers.binding_that_takes_anything, "takes anything"),
        (answers.binding_of_defaults, "attributes do not arrive"),
        (answers.binding_without_return, "the result is dropped"),
        (answers.binding_named_binding, "another name"),
        (answers.binding_without_comma, "brackets make a tuple"),
        (answers.binding_that_knows_too_much, "not a program"),
        (answers.binding_by_name_only, "an attribute has a name only"),
        (answers.binding_of_one_input, "one input is enough"),
        (answers.binding_as_a_function, "a function instead of its text"),
    ),
    misconceptions=(
        CHANGED_ARGUMENTS,
        RETURNS_NOTHING,
        STOPS_WITH_ERROR,
        Misconception(
            "a function instead of its text",
            "Return the text of the function, a string. Frameworks write text because it can be read, stored and compiled "
            "once.",
            lambda wrong: all(isinstance(one.answer, NotPlain) for one in wrong),
        ),
        Misconception(
            "not a text",
            "Return a string.",
            lambda wrong: any(not isinstance(one.answer, str) for one in wrong),
        ),
        Misconception(
            "a default is written as it is printed",
            "Your text works until a default is text itself. Without quotation marks it reads as the name of a variable.",
            begins_with(TEXTS),
        ),
        Misconception(
            "not a program",
            "Python cannot run your text as a program. Print it, and try it in a cell: `exec(text)` tells what is wrong. A "
            "name that only your function knows, such as a variable of its own, does not exist there.",
            lambda wrong: not any(map(_defines, wrong)) and not any(map(_is_program, _texts(wrong))),
        ),
        Misconception(
            "another name",
            "Your text is a program, and it does not define a function of the name that was asked for.",
            lambda wrong: not any(map(_defines, wrong)),
        ),
        Misconception(
            "takes anything",
            "Your function takes whatever it is given, also a misspelt attribute, or an input too many or too few. Nobody "
            "will be told, and no editor can show what to write. Name every parameter.",
            lambda wrong: all(re.search(r"\*\w", text) for text in _texts(wrong)),
        ),
        Misconception(
            "an attribute has a name only",
            "Some parameter can be given in one way only. A star between the brackets forbids to give what follows by its "
            "place, a slash forbids to give what precedes by its name. Here both are allowed.",
            lambda wrong: all(map(_forbids_a_way, wrong)),
        ),
        Misconception(
            "brackets make a tuple",
            "`(x)` is `x` in brackets. What makes a tuple is the comma: `(x,)`.",
            lambda wrong: any(re.search(r"call\(\(\w+\)", text) for text in _texts(wrong)),
        ),
        Misconception(
            "the result is dropped",
            "What `call` gives does not come back to the user.",
            lambda wrong: all("return" not in text and "lambda" not in text for text in _texts(wrong)),
        ),
        Misconception(
            "one input is enough",
            "Your text is right for one input. Ops have several, too, each under a name of its own and in its own place.",
            begins_with(TWO),
        ),
        Misconception(
            "every call gives every attribute",
            "Whoever leaves an attribute out should get its default.",
            lambda wrong: not any("=" in text.partition(")")[0] for text in _texts(wrong)),
        ),
        Misconception(
            "attributes do not arrive",
            "An attribute that a user gives has to reach `call`, by its name, with the user's value in place of the default.",
            begins_with(NAMED),
        ),
        Misconception(
            "not what a call means",
            "Try your text: run it with `exec`, with a `call` that prints what it is given. Call the function by place and "
            "by name, and with something missing.",
            lambda wrong: True,
        ),
    ),
    cases=_binding_cases,
    accepts=_is_binding,
)

EXERCISES = (SCHEMA, BINDING)
