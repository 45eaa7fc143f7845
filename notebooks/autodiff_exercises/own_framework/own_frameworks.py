"""The exercise "your framework" of lesson 130: all parts together, held to the lab's own laws and trained on digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from ..exercise import (
    ANOTHER_ERROR,
    EVERY_PATH,
    RECURSION,
    REMEMBERS,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    refused,
)  # fmt: skip
from ..explaining import begins_with, is_number
from ..vjp_laws import numbers
from . import own_frameworks_answers as answers
from . import probes
from .judging import NOT_PLAIN, PROTOCOL, is_swept, plan_fault
from .scalar_engines import LESSON

ENOUGH = 0.9  # of the test digits: what is right reads 0.94 to 0.98 after these epochs, guessing 0.1
STRETCHED, TAKEN, UNKNOWN, LATER = (
    "arrays that are stretched",
    "a name that is taken",
    "an unknown name",
    "an op that comes later",
)
SHAPES, INPUTS, PLAN, TRAINED, AGAIN = (
    "shape rules",
    "inputs stay as they are",
    "its own schedule",
    "trained on digits",
    "a second sweep",
)

# For each op a program, and the shapes of its inputs; {c} stands for numbers that make every upstream gradient another one.
RULES: tuple[tuple[str, str, tuple[tuple[int, ...], ...]], ...] = (
    ("add", "(x + y) * {c}", ((2, 3), (2, 3))),
    ("sub", "(x - y) * {c}", ((2, 3), (2, 3))),
    ("mul", "(x * y) * {c}", ((2, 3), (2, 3))),
    ("div", "(x / y) * {c}", ((2, 3), (2, 3))),
    ("exp", "x.exp() * {c}", ((2, 3),)),
    ("log", "(x * x).log() * {c}", ((2, 3),)),
    ("relu", "x.relu() * {c}", ((2, 3),)),
    ("sum", "(x * {c}).sum() * 2.5", ((2, 3),)),
    ("matmul", "(x @ y) * {c}", ((2, 4), (4, 3))),
)
EXPRESSIONS = (
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / ({1} * {1} + 1)",
    "({0} * 0.25).exp()",
    "({0} * {0} + 2).log()",
    "{0}.relu()",
)
COLUMNS = "lambda *xs: [hs := [(x * 2 - xs[0]).exp() for x in xs[1:]], t := hs[0] * hs[1], (t + hs[2]).sum()][-1]"


def cases(random: Random, marking: bool) -> Iterator[Case]:
    """Each op by itself, then all together: expressions, sweeps, refusals, shapes, a schedule, and digits."""
    for op, body, shapes in RULES:
        yield _swept(
            f"the rule of {op}",
            f"lambda {_names(shapes)}: ({body.format(c=numbers(random, 2, 3))}).sum()",
            shapes,
            random,
        )
    for shapes in (((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), ())):
        body = f"x / (y * y + 1) - y * {numbers(random, 2, 3)}"
        yield _swept(STRETCHED, f"lambda x, y: ({body}).sum()", shapes, random)
    for _ in range(6 if marking else 3):
        yield _swept("random expressions", _drawn(random, 5), ((2, 1), (1, 3), (3,)), random)
    yield _swept(AGAIN, "lambda x, y: (x * y * x).sum()", ((2, 3), (3,)), random, ", 2")
    for op, shapes in (("sum", ((2, 3),)), ("matmul", ((2, 4), (4, 3))), ("add", ((2, 1), (4,))), ("relu", ((2, 3),))):
        yield _asked(SHAPES, f'probes.shape_of, "{op}", {_arrays(shapes, random)}')
    for op in ("exp", "relu"):
        yield _asked(INPUTS, f'probes.changed_by, "{op}", {_arrays(((2, 3),), random)}')
    for _ in range(2):  # the second time it is new again, in a new framework
        arrays = _arrays(((2, 3),), random)
        yield _asked(LATER, f'probes.with_another_op, "tanh", probes.TANH, lambda x: (x.tanh() * x).sum(), ({arrays},)')
    taken, one = random.sample(["add", "mul", "exp", "sum"], 2)
    yield refused(_asked(TAKEN, f'probes.twice, "{taken}"'), "ValueError")
    yield refused(_asked(UNKNOWN, f'probes.unknown, "{one}{one}"'), "KeyError")
    yield _asked(PLAN, f"probes.plan_of, {COLUMNS}, ({_arrays(((2,),) * 4, random)}), {random.randint(2, 3)}")
    depth = random.randint(6000, 7000) if marking else 5000
    yield _swept(
        f"{depth:,} operations deep", f"lambda x: [x := x + 0.5 for _ in range({depth})][-1].sum()", ((2,),), random
    )
    yield _asked(TRAINED, f"probes.trained, {random.randint(0, 99)}")


def _names(shapes: Sequence[Any]) -> str:
    return ", ".join("xyz"[: len(shapes)])


def _arrays(shapes: Sequence[tuple[int, ...]], random: Random) -> str:
    return ", ".join(numbers(random, *shape) for shape in shapes)


def _drawn(random: Random, size: int) -> str:
    """A program of so many operations on x, y and z, each of which uses what came before."""
    known = ["x", "y", "z"]
    lines = []
    for number in range(size):
        lines.append(
            f"h{number} := {random.choice(EXPRESSIONS).format(random.choice(known[-3:]), random.choice(known))}"
        )
        known.append(f"h{number}")
    return f"lambda x, y, z: [{', '.join(lines)}, (h{size - 1} * x + y * z).sum()][-1]"


def _swept(check: str, program: str, shapes: Sequence[tuple[int, ...]], random: Random, rest: str = "") -> Case:
    return _asked(check, f"probes.gradients, {program}, ({_arrays(shapes, random)},){rest}")


def _asked(check: str, expression: str) -> Case:
    return case(check, expression, probes=probes)


# --------------------------------------------------------------------------------------------------- what tells right


def is_accepted(answer: Any, question: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a question has the answer that a framework gives which is right."""
    return JUDGES[question.__name__](answer, *arguments)


def _is_plan(answer: Any, program: Any, arrays: Any, workers: int) -> bool:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[0], list) or not answer[0]:
        return False
    record, places = answer
    graph = [inputs for _op, inputs in record]
    return not plan_fault(places, graph, [float(len(inputs)) for inputs in graph], workers)


def _are_shapes(answer: Any) -> bool:
    return isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(one, tuple) for one in answer)


JUDGES: dict[str, Callable[..., bool]] = {
    "gradients": is_swept,
    "shape_of": lambda answer, *_: _are_shapes(answer) and answer[0] == answer[1],
    "changed_by": lambda answer, *_: answer is False,
    "with_another_op": lambda answer, name, rules, *rest: is_swept(answer, *rest),
    "twice": lambda answer, *_: False,
    "unknown": lambda answer, *_: False,
    "plan_of": _is_plan,
    "trained": lambda answer, *_: is_number(answer) and bool(ENOUGH <= answer <= 1),
}


# ------------------------------------------------------------------------------------------------ what explains wrong


def _plan_has(*faults: str) -> Callable[[Sequence[Wrong]], bool]:
    def explains(wrong: Sequence[Wrong]) -> bool:
        one = next((one for one in wrong if one.case.check == PLAN and not one.failure), None)
        if one is None or not isinstance(one.answer, tuple) or len(one.answer) != 2:
            return False
        graph = [inputs for _op, inputs in one.answer[0]]
        return (
            plan_fault(one.answer[1], graph, [float(len(inputs)) for inputs in graph], one.case.arguments[3]) in faults
        )

    return lambda wrong: begins_with(PLAN)(wrong) and explains(wrong)


def _rule(op: str, name: str, message: str) -> Misconception:
    return Misconception(name, message, begins_with(f"the rule of {op}"))


MISCONCEPTIONS = (
    RECURSION,
    EVERY_PATH,
    PROTOCOL,
    NOT_PLAIN,
    REMEMBERS,
    Misconception(
        "the class has a table of its own",
        "An op that is registered when the class exists does not work. The class should ask the registry at each call; then "
        "a framework can be extended by whoever uses it.",
        begins_with(LATER),
    ),
    Misconception(
        "an op is missing",
        "An op that the statement lists is not there: look which name the last line below has.",
        lambda wrong: wrong[0].failure in ("AttributeError", "KeyError", "TypeError") and not wrong[0].case.refusal,
    ),
    Misconception(
        "the last one wins",
        "Your registry takes a name twice. In a framework that many people extend, one of them loses an op and is not told.",
        lambda wrong: begins_with(TAKEN, UNKNOWN)(wrong) and not wrong[0].failure,
    ),
    ANOTHER_ERROR,
    STOPS_WITH_ERROR,
    _rule("sub", "minus is plus", "The rule of `sub` is wrong: if what is taken away grows, the result shrinks."),
    _rule(
        "div",
        "the divisor is not squared",
        "The rule of `div` is wrong: of x / y the derivative by y is −x / y², which is −out / y.",
    ),
    _rule(
        "mul",
        "one rule for both operands",
        "The rule of `mul` is wrong. Each operand has its own rule: it gets g times the *other* one.",
    ),
    _rule(
        "exp",
        "an op may write into its input",
        "It goes wrong at `exp`. Either its rule is not g · out, or `forward` changed its input: that array still belongs "
        "to the value it came from, and to all others that use it.",
    ),
    _rule(
        "log",
        "the gradient is the local derivative",
        "The rule of `log` is wrong. It is given `g`, what arrives from above: the chain rule multiplies the two.",
    ),
    _rule(
        "relu",
        "relu lets everything pass",
        "The rule of `relu` is wrong: where its input was negative, the result does not move, and nothing goes back.",
    ),
    _rule(
        "matmul",
        "reshaped for transposed",
        "The rule of `matmul` is wrong. The shapes show how the three arrays go together, and there is one way: g with the "
        "transpose of the other one. `.reshape` has the right shape and the numbers in wrong places.",
    ),
    Misconception(
        "copies share the gradient",
        "Each op is right by itself, and arrays that are stretched are not. If one number moves, all of its copies move: "
        "their gradients are added up.",
        begins_with(STRETCHED),
    ),
    Misconception(
        "a shape rule is a formality",
        "A shape rule of yours says another shape than `forward` gives. No number is wrong, and everything that is planned "
        "with it is.",
        begins_with(SHAPES),
    ),
    Misconception(
        "a worker runs two at a time",
        "Your scheduler's plan is not legal: some node begins before an input is done, or while its worker is busy.",
        _plan_has("illegal", "form", "nodes"),
    ),
    Misconception(
        "one worker is enough",
        "Your scheduler's plan is legal, and loses time: a worker is idle while a node is ready.",
        _plan_has("idle"),
    ),
    Misconception(
        "it runs, so it learns",
        "Each part seems right by itself, and the digits are not learnt well enough. Compare one step with a framework that "
        "you trust: which gradient differs first?",
        begins_with(TRAINED),
    ),
    Misconception(
        "not accepted",
        "The framework does not do what the statement says. Run the smallest example below, and compare with the lab.",
        lambda wrong: True,
    ),
)

EXERCISES = (
    Exercise(
        lesson=LESSON,
        statement=f"""\
Write `my_framework()`: hand in your framework. It returns `Framework(tensor, ops, plan)` with your class of arrays, your
registry and your scheduler, all new at each call.

The registry has nine ops: `add`, `sub`, `mul`, `div`, `exp`, `log`, `relu`, `sum` (of all numbers, to the shape `()`) and
`matmul` (of two matrices). Each has `forward`, a gradient rule for each operand, and a shape rule. At 0 the gradient of
`relu` is 0.

It is accepted if it keeps the laws that the lab's own ops keep: gradients on expressions drawn at random, stretched arrays,
a second sweep, 5,000 operations; shape rules that say what `forward` gives; inputs that stay as they are; names that are
refused; an op that is registered later; a plan that the lab's validator finds nothing in; and {ENOUGH:.0%} of the test
digits after 8 rounds.

Use your parts: `new_registry()`, `array_engine(ops)`, `plan_nodes`.""",
        hints=(
            "Three lines make the framework, and nine lines tell it what it can do. Which rules do you have already, in "
            "`FIRST_OPS`, and in `scalar_engine`?",
            "`ops = new_registry()`, then `ops.register(name, forward, gradients, shape)` nine times, then `return "
            "Framework(array_engine(ops), ops, plan_nodes)`. A rule need not know of stretching: your engine adds up. "
            "`np.broadcast_shapes` is the shape rule of all operations that stretch.",
            "Of `x @ y` the rules are `g @ y.T` and `x.T @ g`, the shape is `(x[0], y[1])`. Of relu: `np.maximum(x, 0)` and "
            "`g * (x > 0)`. Of sum: `g * np.ones_like(x)`, and the shape `()`. Of x / y: `g / y` and `-g * out / y`.",
        ),
        solution=answers.my_framework,
        alternatives=(answers.from_a_table,),
        wrong=(
            (answers.minus_is_plus, "minus is plus"),
            (answers.without_matmul, "an op is missing"),
            (answers.divisor_not_squared, "the divisor is not squared"),
            (answers.first_gradient_for_all, "one rule for both operands"),
            (answers.log_without_upstream, "the gradient is the local derivative"),
            (answers.relu_lets_all_pass, "relu lets everything pass"),
            (answers.matmul_not_transposed, "reshaped for transposed"),
            (answers.matmul_shape_of_the_first, "a shape rule is a formality"),
            (answers.sum_keeps_its_shape, "a shape rule is a formality"),
            (answers.exp_in_place, "an op may write into its input"),
            (answers.copies_share, "copies share the gradient"),
            (answers.table_copied, "the class has a table of its own"),
            (answers.overwriting, "the last one wins"),
            (answers.always_the_same, REMEMBERS.name),
            (answers.planned_in_turn, "one worker is enough"),
            (answers.planned_without_workers, "a worker runs two at a time"),
            (answers.a_tuple, "the lab cannot read it"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_accepted,
        seconds=20.0,
        withheld=("registry", "Tensor.backward", "sweep", "grad", "vjp", "schedule.simulate", "schedule.run"),
        probe=probes.ask,
    ),
)
