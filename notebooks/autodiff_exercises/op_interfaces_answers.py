"""Answers to the exercises of lesson 60 on schema and binding, right and wrong: what the checks are tested on."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Kernel = Callable[..., Any]
Read = tuple[list[str], dict[str, Any]]

# ------------------------------------------------------------------------------------------------------------- schema


def read_schema(kernel):
    """The inputs of a kernel by name, and its attributes with their defaults; ... where an attribute has none."""
    _xp, *others = inspect.signature(kernel).parameters.values()
    inputs = [one.name for one in others if one.kind is not one.KEYWORD_ONLY]
    attributes = {
        one.name: ... if one.default is one.empty else one.default for one in others if one.kind is one.KEYWORD_ONLY
    }
    return inputs, attributes


def schema_from_the_code(kernel: Kernel) -> Read:
    """From the code object, as the lab does it: half as much to import."""
    code = kernel.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = kernel.__kwdefaults__ or {}
    return list(names[1 : code.co_argcount]), {name: defaults.get(name, ...) for name in names[code.co_argcount :]}


def schema_with_xp(kernel: Kernel) -> Read:
    """Takes the library for an input."""
    inputs, attributes = read_schema(kernel)
    return ["xp", *inputs], attributes


def schema_of_one_kind(kernel: Kernel) -> Read:
    """Every parameter is an input."""
    return list(inspect.signature(kernel).parameters)[1:], {}


def schema_with_locals(kernel: Kernel) -> Read:
    """Every name in the function's body is an input, unless it is an attribute."""
    defaults = read_schema(kernel)[1]
    return [name for name in kernel.__code__.co_varnames[1:] if name not in defaults], defaults


def schema_of_truthy_defaults(kernel: Kernel) -> Read:
    """A default of 0 or None counts as none."""
    inputs, attributes = read_schema(kernel)
    return inputs, {name: default or ... for name, default in attributes.items()}


def schema_without_required(kernel: Kernel) -> Read:
    """Only what has a default is an attribute."""
    return read_schema(kernel)[0], dict(kernel.__kwdefaults__ or {})


def schema_of_texts(kernel: Kernel) -> Read:
    """Keeps what a default looks like."""
    inputs, attributes = read_schema(kernel)
    return inputs, {name: default if default is ... else str(default) for name, default in attributes.items()}


def schema_of_names(kernel: Kernel) -> Any:
    """Attributes without their defaults."""
    inputs, attributes = read_schema(kernel)
    return inputs, list(attributes)


# ------------------------------------------------------------------------------------------------------------ binding


def binding_text(name, inputs, attributes):
    """The Python text of the function `name` that users call; it hands operands and attributes to `call`."""
    parameters = [*inputs, *(f"{key}={default!r}" for key, default in attributes.items())]
    operands = "".join(f"{one}, " for one in inputs)
    named = ", ".join(f"{key!r}: {key}" for key in attributes)
    return f"def {name}({', '.join(parameters)}):\n    return call(({operands}), {{{named}}})\n"


def binding_from_a_tree(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """By way of Python's own syntax tree; lists and dict(…) do as well."""
    given = ", ".join([*inputs, *(f"{key}={value!a}" for key, value in attributes.items())])
    passed = ", ".join(f"{key}={key}" for key in attributes)
    return ast.unparse(ast.parse(f"def {name}({given}): return call([{', '.join(inputs)}], dict({passed}))"))


def binding_with_plain_text(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Writes defaults as print would show them."""
    text = binding_text(name, inputs, attributes)
    for default in attributes.values():
        text = text.replace(f"={default!r}", f"={default}")
    return text


def binding_without_defaults(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Every attribute has to be given."""
    text = binding_text(name, inputs, attributes)
    for default in attributes.values():
        text = text.replace(f"={default!r}", "")
    return text


def binding_that_takes_anything(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Passes on whatever comes."""
    return f"def {name}(*operands, **attributes):\n    return call(operands, {dict(attributes)!r} | attributes)\n"


def binding_of_defaults(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Always calls with the defaults."""
    head = binding_text(name, inputs, attributes).split("\n")[0]
    return f"{head}\n    return call(({''.join(f'{one}, ' for one in inputs)}), {dict(attributes)!r})\n"


def binding_without_return(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Calls, and drops the result."""
    return binding_text(name, inputs, attributes).replace("return call", "call")


def binding_named_binding(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """The same name for every op."""
    return binding_text("binding", inputs, attributes)


def binding_by_name_only(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """With a star before the attributes, as a kernel has."""
    given = ", ".join(
        [*inputs, *(["*"] if attributes else ["/"]), *(f"{key}={value!r}" for key, value in attributes.items())]
    )
    passed = ", ".join(f"{key!r}: {key}" for key in attributes)
    return f"def {name}({given}):\n    return call([{', '.join(inputs)}], {{{passed}}})\n"


def binding_of_one_input(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Made for ops of one input."""
    return binding_text(name, ["x"], attributes)


def binding_without_comma(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """One operand in brackets is no tuple."""
    return binding_text(name, inputs, attributes).replace(", ), {", "), {")


def binding_that_knows_too_much(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
    """Names a variable that does not exist where the text runs."""
    text = binding_text(name, inputs, attributes)
    for key, default in attributes.items():
        text = text.replace(f"={default!r}", f"=attributes[{key!r}]")
    return text if attributes else f"default = attributes\n{text}"


def binding_as_a_function(name: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> Any:
    """Makes the function itself."""
    names: dict[str, Any] = {}
    exec(binding_text(name, inputs, attributes), names)
    return names[name]
