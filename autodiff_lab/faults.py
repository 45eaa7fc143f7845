"""Faults: the bugs that people tell of, each switched on for a ``with`` block in this thread. The engine knows none of them.

>>> from autodiff_lab import faults
>>> with faults.lost_sign("tanh"):
...     wrong = ad.grad(ops.tanh)(0.0)
>>> float(wrong), float(ad.grad(ops.tanh)(0.0))
(-1.0, 1.0)

Each is one function that gives a context manager, and one record in ``FAULTS`` that says what happened, what a learner sees,
which check catches it, and what became of training with it. A fault about a rule takes any op, also one of your own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from . import ops, replicas, reverse_mode
from .optimizers import Optimizer
from .seams import (
    Function,
    Replacement,
    dtype_rule_seam,
    function_seam,
    gradient_rule_seam,
    kernel_seam,
    shape_rule_seam,
)
from .tensors import Record
from .trees import map_leaves

Place = Literal["gradient rule", "shape rule", "dtype rule", "kernel", "function"]
Outcome = Literal["stops with an error", "diverges", "does not learn", "learns less", "learns as well"]


@dataclass(frozen=True)
class Measured:
    """What became of a training run with a fault: see ``training.compare``, which a test runs to see that it still holds."""

    setting: str  # a key of training.SETTINGS
    outcome: Outcome
    arguments: tuple[Any, ...] = ()  # of the fault


@dataclass(frozen=True)
class Fault:
    """One bug as people meet it. ``on(…)`` switches it on: ``with FAULTS["lost_sign"].on("tanh"): …``."""

    name: str
    replaces: Place  # what is wrong while it is on
    story: str  # what happened
    seen: str  # what a learner sees
    check: str  # the check that catches it
    view: str  # the view in which it shows
    measured: tuple[Measured, ...]
    on: Callable[..., Replacement]

    @property
    def is_silent(self) -> bool:
        """Whether training goes on without an error."""
        return all(run.outcome != "stops with an error" for run in self.measured)


FAULTS: dict[str, Fault] = {}


On = TypeVar("On", bound=Callable[..., Replacement])


def fault(
    replaces: Place, *, story: str, seen: str, check: str, view: str = "TrainingView", measured: Sequence[Measured]
) -> Callable[[On], On]:
    """Register a function that gives a fault's context manager, with what belongs to it."""

    def register(on: On) -> On:
        FAULTS[on.__name__] = Fault(on.__name__, replaces, story, seen, check, view, tuple(measured), on)
        return on

    return register


# ------------------------------------------------------------------------------------------------------ gradient rules


@fault(
    "gradient rule",
    story="A gradient was derived by hand, and a minus sign got lost on the way. Three days of training did not converge.",
    seen="In the last op the loss climbs from the first step. In the middle only the layers before it are sent uphill.",
    check="find_faulty_op",
    measured=[
        Measured("mlp", "diverges", ("cross_entropy",)),
        Measured("mlp", "does not learn", ("tanh",)),
        Measured("residual", "learns less", ("tanh",)),
    ],
)
def lost_sign(op: str, argument: str | None = None) -> Replacement:
    """The gradient rule of one input gives the cotangent with the wrong sign.

    Args:
        op: the op's name.
        argument: the input; may be left out where only one has a rule.
    """
    return _rule_fault("lost_sign", op, argument, lambda right: lambda g, *saved, **rest: -right(g, *saved, **rest))


@fault(
    "gradient rule",
    story="The gradients of a distributed training did not match. After two days: a custom op's backward had lost a factor.",
    seen="Every layer before the op has a wrong learning rate. ½ may even help; 1/64, of a mean over a batch, does not.",
    check="find_faulty_op",
    measured=[
        Measured("mlp", "diverges", ("cross_entropy", "logits", 1 / 64)),
        Measured("mlp", "learns less", ("tanh", None, 10.0)),
        Measured("mlp", "learns as well", ("tanh",)),
    ],
)
def missing_factor(op: str, argument: str | None = None, factor: float = 0.5) -> Replacement:
    """The gradient rule of one input lacks a factor: its cotangent is the right one divided by ``factor``."""

    def alter(right: Function) -> Function:
        return lambda g, *saved, **rest: right(g, *saved, **rest) * (1.0 / factor)

    return _rule_fault("missing_factor", op, argument, alter)


@fault(
    "gradient rule",
    story="A rule returned the local derivative and forgot to multiply it with what came from above. Its test used all ones.",
    seen="A test with a cotangent of ones passes, and at the loss it is right. In the middle it sends on far too much.",
    check="find_faulty_op",
    measured=[
        Measured("mlp", "does not learn", ("tanh",)),
        Measured("mlp", "learns as well", ("cross_entropy",)),
    ],
)
def cotangent_ignored(op: str, argument: str | None = None) -> Replacement:
    """The gradient rule of one input takes its cotangent for ones."""

    def alter(right: Function) -> Function:
        return lambda g, *saved, **rest: right(ops.ones_like(g), *saved, **rest)

    return _rule_fault("cotangent_ignored", op, argument, alter)


def _rule_fault(name: str, op: str, argument: str | None, alter: Callable[[Function], Function]) -> Replacement:
    where = op if argument is None else f"{op}, {argument}"
    return Replacement(f"{name}({where})", gradient_rule_seam(op, argument), alter)


# ----------------------------------------------------------------------------------------- shapes, dtypes and kernels


@fault(
    "shape rule",
    story="A team's shape rule lost a dimension while the graph was built. Fusion was off after it: half the speed.",
    seen="Every number is right, also in a recorded graph. But no op behind this one shares a kernel with its neighbours.",
    check="opcheck",
    view="GraphView",
    measured=[Measured("mlp", "learns as well", ("tanh",))],
)
def lost_dimension(op: str, axis: int | None = 0) -> Replacement:
    """The shape rule does not know the size of one axis.

    Args:
        op: the op's name.
        axis: the axis; None: the rule knows nothing, not even the number of axes. A result without it is told in full.
    """

    def alter(right: Function) -> Function:
        def rule(*shapes: Any, **attributes: Any) -> Any:
            shape = tuple(right(*shapes, **attributes))
            if axis is None:
                return None
            return tuple(None if place in (axis, axis + len(shape)) else size for place, size in enumerate(shape))

        return rule

    return Replacement(f"lost_dimension({op}, axis {axis})", shape_rule_seam(op), alter)


@fault(
    "shape rule",
    story="A shape rule was written while the data came one by one, and says 1 for the first axis of every batch.",
    seen="Training is right, since a call on arrays never asks the rule. A recorded graph has wrong shapes, or is refused.",
    check="opcheck",
    view="GraphView",
    measured=[Measured("mlp", "learns as well", ("tanh",))],
)
def wrong_shape_rule(op: str) -> Replacement:
    """The shape rule says 1 for the size of the first axis."""

    def alter(right: Function) -> Function:
        def rule(*shapes: Any, **attributes: Any) -> Any:
            shape = tuple(right(*shapes, **attributes))
            return (1, *shape[1:]) if shape else shape

        return rule

    return Replacement(f"wrong_shape_rule({op})", shape_rule_seam(op), alter)


@fault(
    "dtype rule",
    story="A dtype rule said float64 whatever came in, because its author had tested with NumPy's default.",
    seen="Values and gradients are right. A recorded graph says float64, and every buffer planned from it is twice as large.",
    check="opcheck",
    view="GraphView",
    measured=[Measured("mlp", "learns as well", ("tanh",))],
)
def wrong_dtype_rule(op: str) -> Replacement:
    """The dtype rule says float64 where the right one says another floating dtype, and float32 where it says float64."""

    def alter(right: Function) -> Function:
        def rule(*dtypes: Any, **attributes: Any) -> Any:
            found = np.dtype(right(*dtypes, **attributes))
            return np.dtype(np.float32 if found == np.float64 else np.float64)

        return rule

    return Replacement(f"wrong_dtype_rule({op})", dtype_rule_seam(op), alter)


@fault(
    "kernel",
    story="The kernel of an accelerator, which computes in half precision, was registered for the CPU.",
    seen="It trains. Results have three right digits instead of seven, and nobody looks at the fourth.",
    check="opcheck",
    measured=[Measured("mlp", "learns as well", ("matmul",))],
)
def wrong_device_kernel(op: str, device: str = "cpu") -> Replacement:
    """The kernel for ``device`` is one that rounds its operands and its result to half precision, as an accelerator does."""

    def alter(right: Function) -> Function:
        def half_precision_kernel(xp: Any, *arrays: Any, **attributes: Any) -> Any:
            return _rounded(right(xp, *map(_rounded, arrays), **attributes))

        return half_precision_kernel

    return Replacement(f"wrong_device_kernel({op}, {device})", kernel_seam(op, device), alter)


def _rounded(value: Any) -> Any:
    """Floating arrays with the precision of float16, in their own dtype."""
    is_floating = getattr(getattr(value, "dtype", None), "kind", "") == "f"
    return value.astype(np.float16).astype(value.dtype) if is_floating else value


# ------------------------------------------------------------------------------------------------------------ the sweep


@fault(
    "function",
    story="A framework's topological sort was wrong. The model ran, gradients were wrong, and it converged very slowly.",
    seen="On a chain nothing is wrong. Where a value has two consumers at different depths, what comes late is lost.",
    check="find_faulty_op",
    measured=[Measured("residual", "learns less"), Measured("mlp", "learns as well")],
)
def breadth_first_order() -> Replacement:
    """The backward sweep visits records breadth first instead of in topological order."""

    def order(*roots: Record) -> list[Record]:
        found: dict[int, Record] = {}
        queue = deque(roots)
        while queue:
            record = queue.popleft()
            if record[0] not in found:
                found[record[0]] = record
                queue.extend(parent for parent in record[2] if parent is not None)
        return list(found.values())[::-1]  # the sweep reads it from its end

    return Replacement("breadth_first_order", function_seam(reverse_mode, "backward_order"), lambda right: order)


@fault(
    "function",
    story="Gradients were assigned where they should be added. The first tests used each value once.",
    seen="A chain is right. A value that is used twice gets the gradient of one use, the one that arrives last.",
    check="find_faulty_op",
    measured=[Measured("residual", "learns less"), Measured("mlp", "learns as well")],
)
def last_path_wins() -> Replacement:
    """A contribution that arrives replaces what arrived before, instead of being added to it."""
    return Replacement(
        "last_path_wins",
        function_seam(reverse_mode, "accumulate"),
        lambda right: lambda total, contribution: contribution,
    )


@fault(
    "function",
    story="To save memory a second contribution was added in place, into an array that two nodes were given.",
    seen="Where one cotangent is sent two ways, the sum of one changes the other. The loss falls as well as ever.",
    check="find_faulty_op",
    measured=[Measured("residual", "learns as well"), Measured("mlp", "learns as well")],
)
def shared_buffer() -> Replacement:
    """Contributions are added in place, although a rule may have sent the same array to two inputs."""

    def alter(right: Function) -> Function:
        def accumulate(total: Any, contribution: Any) -> Any:
            if not _can_hold(total, contribution):
                return right(total, contribution)
            total += contribution
            return total

        return accumulate

    return Replacement("shared_buffer", function_seam(reverse_mode, "accumulate"), alter)


def _can_hold(total: Any, contribution: Any) -> bool:
    both = type(total) is type(contribution) is np.ndarray
    return both and total.flags.writeable and (total.shape, total.dtype) == (contribution.shape, contribution.dtype)


@fault(
    "function",
    story="A bias is broadcast over the rows of a batch, and its gradient was left with the shape of the batch.",
    seen="Backward stops with an error that names the leaf and both shapes.",
    check="gradcheck",
    measured=[Measured("mlp", "stops with an error")],
)
def broadcast_not_summed() -> Replacement:
    """Contributions keep the shape that broadcasting gave them."""
    return Replacement(
        "broadcast_not_summed",
        function_seam(reverse_mode, "fit_cotangents"),
        lambda right: lambda contributions, operands, elementwise: tuple(contributions),
    )


# ------------------------------------------------------------------------------------------------ around the gradients


@fault(
    "function",
    story="The line that forgets the gradients was missing from the training loop, so each step went along the sum of all.",
    seen="The gradient norm grows from step to step: it is momentum without friction, and the loss swings.",
    check="the same step twice",
    measured=[Measured("mlp", "learns less")],
)
def stale_gradients() -> Replacement:
    """``Optimizer.zero_grad`` forgets nothing, so ``.grad`` adds up over the steps."""
    return Replacement("stale_gradients", function_seam(Optimizer, "zero_grad"), lambda right: lambda optimizer: None)


@fault(
    "function",
    story="Gradients of replicas were added and not averaged, so each new machine made the learning rate larger.",
    seen="With two replicas every gradient is twice what it should be, as if a gradient rule had lost the factor ½.",
    check="check_replicas",
    measured=[Measured("replicas", "diverges")],
)
def all_reduce_sums() -> Replacement:
    """The all-reduce of data-parallel replicas gives the sum of the gradients instead of their mean."""

    def alter(right: Function) -> Function:
        return lambda gradients: map_leaves(lambda mean: mean * len(gradients), right(gradients))

    return Replacement("all_reduce_sums", function_seam(replicas, "all_reduce"), alter)
