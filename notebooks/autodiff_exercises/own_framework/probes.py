"""What the checks of the capstone do with the parts of a student's framework. What comes back is plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autodiff_lab import datasets

from .protocol import FIRST_OPS, Framework, OpRules, ProtocolError, Recorded, Registry, check_value, record_of, recorded

Program = Callable[..., Any]
Record = list[tuple[str, tuple[int, ...]]]
Swept = tuple[Any, tuple[Any, ...], Record]  # the value, the gradients of the inputs, and what was recorded
Places = list[tuple[int, int, float]]  # number of a node, worker, begin

TANH = OpRules(
    lambda x: np.tanh(x), (lambda g, out, x: g * (1 - out * out),), lambda x: x
)  # an op that no framework here has yet


def swept(engine: Callable[[], Any], program: Program, numbers: Sequence[float], times: int = 1) -> Swept:
    """Run a program on numbers of the engine, and sweep ``times`` times."""
    return gradients_by(engine(), program, numbers, times)


def swept_arrays(
    engine: Callable[[Mapping[str, OpRules]], Any],
    program: Program,
    arrays: Sequence[Any],
    times: int = 1,
    more: Mapping[str, OpRules] | None = None,
) -> Swept:
    """Run a program on arrays of the engine, which is given add, mul, sum and ``more``, and sweep ``times`` times."""
    return gradients_by(engine({**FIRST_OPS, **(more or {})}), program, arrays, times)


def gradients_by(kind: Callable[[Any], Any], program: Program, leaves: Sequence[Any], times: int = 1) -> Swept:
    """Run a program on values of a class, and sweep ``times`` times."""
    inputs = [kind(one) for one in leaves]
    output = program(*inputs)
    check_value(output)
    for _ in range(times):
        output.backward()
    return output.data, tuple(one.grad for one in inputs), record_of(output)


# ------------------------------------------------------------------------------------------------------------- registry


def registered(new: Callable[[], Registry], script: Callable[[Registry], Any]) -> Any:
    """What a script makes of a new registry."""
    return script(new())


def scaled(factor: float) -> tuple[Callable[..., Any], tuple[Callable[..., Any], ...], Callable[..., Any]]:
    """The three parts of an op that multiplies two arrays and a factor: forward, gradients, shape."""
    return (
        lambda x, y: factor * x * y,
        (lambda g, out, x, y: factor * g * y, lambda g, out, x, y: factor * g * x),
        lambda x, y: np.broadcast_shapes(x, y),
    )


def said(call: Callable[[], Any]) -> str:
    """The text of the error that a call raises; empty where it raises none."""
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def kept(rules: Any) -> tuple[Any, ...]:
    """What an entry of a registry computes for 3 and 4: the result, the gradients of an upstream 5, the shape."""
    if not isinstance(rules, OpRules):
        raise ProtocolError(f"the registry gave a {type(rules).__name__}; expected an OpRules")
    out = rules.forward(3.0, 4.0)
    return out, *(rule(5.0, out, 3.0, 4.0) for rule in rules.gradients), rules.shape((2, 1), (3,))


# ------------------------------------------------------------------------------------------------------------ scheduler


class Node:
    """A node of nothing but a record, for schedulers."""

    def __init__(self, number: int, inputs: Sequence[Recorded]) -> None:
        self.number, self.inputs = number, tuple(inputs)
        self.op = "step" if inputs else ""
        self.data: Any = 0.0
        self.grad: Any = 0.0

    def backward(self) -> None:
        """Nothing to add."""


def nodes_of(graph: Sequence[Sequence[int]]) -> list[Node]:
    """A node for each list of numbers of earlier nodes; an empty one stands for what is not computed."""
    nodes: list[Node] = []
    for number, inputs in enumerate(graph):
        nodes.append(Node(number, [nodes[one] for one in inputs]))
    return nodes


def planned(
    planner: Callable[..., Any], graph: Sequence[Sequence[int]], costs: Sequence[float], workers: int
) -> Places:
    """Schedule the last node of a graph: who runs when, by number."""
    nodes = nodes_of(graph)
    return placed(planner(nodes[-1], lambda node: costs[node.number], workers), nodes)


def placed(slots: Any, nodes: Iterable[Recorded]) -> Places:
    """Slots with the number of each node in place of the node."""
    number = {id(node): place for place, node in enumerate(nodes)}
    found = []
    for slot in slots if isinstance(slots, list | tuple) else [slots]:
        if not isinstance(slot, list | tuple) or len(slot) != 3 or id(slot[0]) not in number:
            raise ProtocolError(
                f"a plan is a list of (node, worker, begin), with nodes of the record; it has {slot!r:.80}"
            )
        found.append((number[id(slot[0])], *slot[1:]))
    return found


# ------------------------------------------------------------------------------------------------------- whole frameworks


def ask(framework: Callable[[], Framework], question: Callable[..., Any], *arguments: Any) -> Any:
    """What a question finds out about a framework that is handed in."""
    mine = framework()
    for part in ("tensor", "ops", "plan"):
        if not hasattr(mine, part):
            raise ProtocolError(f"a {type(mine).__name__} has no `{part}`; return Framework(tensor, ops, plan)")
    return question(mine, *arguments)


def gradients(mine: Framework, program: Program, arrays: Sequence[Any], times: int = 1) -> Swept:
    """Run a program on the framework's arrays, and sweep."""
    return gradients_by(mine.tensor, program, arrays, times)


def shape_of(mine: Framework, op: str, *operands: Any) -> tuple[Any, Any]:
    """The shape that an op's rule says, and that of the result."""
    rules = mine.ops[op]
    return tuple(rules.shape(*map(np.shape, operands))), np.shape(rules.forward(*operands))


def changed_by(mine: Framework, op: str, *operands: Any) -> bool:
    """Whether an op writes into its operands."""
    before = [one.copy() for one in operands]
    mine.ops[op].forward(*operands)
    return not all(map(np.array_equal, before, operands))


def with_another_op(mine: Framework, name: str, rules: OpRules, program: Program, arrays: Sequence[Any]) -> Swept:
    """Register one more op, and use it."""
    mine.ops.register(name, rules.forward, rules.gradients, rules.shape)
    return gradients_by(mine.tensor, program, arrays)


def twice(mine: Framework, name: str) -> None:
    """Register an op under a name that is taken."""
    mine.ops.register(name, lambda x: x, (lambda g, out, x: g,), lambda x: x)


def unknown(mine: Framework, name: str) -> Any:
    """Look up an op that nobody registered."""
    return mine.ops[name]


def plan_of(mine: Framework, program: Program, arrays: Sequence[Any], workers: int) -> tuple[Record, Places]:
    """The record of a program, and the framework's own schedule of it, where an op costs 1 for each operand."""
    output = program(*map(mine.tensor, arrays))
    slots = mine.plan(output, lambda node: float(len(node.inputs)), workers)
    return record_of(output), placed(slots, recorded(output))


def trained(mine: Framework, seed: int, epochs: int = 8) -> float:
    """The part of the test digits that a perceptron of 64, 32 and 10 reads right after so many epochs."""
    images, labels = datasets.digits()
    (x, y), (x_test, y_test) = datasets.split(images.reshape(-1, 64).astype(float), labels, seed=seed)
    parameters = perceptron(seed, 64, 32, 10)
    for epoch in range(epochs):
        for some, wanted in datasets.batches(x, np.eye(10)[y], size=64, seed=epoch):
            tensors = [mine.tensor(one) for one in parameters]
            loss_of(scores(some, *tensors), wanted).backward()
            parameters = [one - tensor.grad for one, tensor in zip(parameters, tensors, strict=True)]
    guesses = scores(x_test, *map(mine.tensor, parameters)).data.argmax(axis=1)
    return float((guesses == y_test).mean())


def perceptron(seed: int, *sizes: int) -> list[np.ndarray]:
    """Weights and biases of a perceptron with one hidden layer: (inputs, hidden), (hidden,), (hidden, outputs), (outputs,)."""
    random = np.random.default_rng(seed)
    inputs, hidden, outputs = sizes
    first, second = random.normal(size=(inputs, hidden)), random.normal(size=(hidden, outputs))
    return [first * (2 / inputs) ** 0.5, np.zeros(hidden), second * (2 / hidden) ** 0.5, np.zeros(outputs)]


def scores(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """One score for each class: (n, outputs)."""
    return (x @ w1 + b1).relu() @ w2 + b2


def loss_of(z: Any, wanted: np.ndarray) -> Any:
    """The mean cross-entropy of scores (n, classes), where ``wanted`` is one-hot: log Σ exp z − the score that is wanted."""
    ones = np.ones((z.data.shape[1], 1))
    z = z - z.data.max(axis=1, keepdims=True)
    return ((z.exp() @ ones).log() - (z * wanted) @ ones).sum() * (1 / len(wanted))
