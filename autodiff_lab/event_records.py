"""The event records: one for each kind of thing that an algorithm can tell. They are loaded when the first is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# --------------------------------------------------------------------------------------------- topological order


class NodeEntered(NamedTuple):
    """Depth-first search arrives at a node for the first time and pushes it on the stack."""

    node: int
    via: int | None  # the consumer that led here; None at a root


class NodeSeenAgain(NamedTuple):
    """Depth-first search meets a node that it has entered before, and does not enter it twice."""

    node: int
    via: int


class NodeFinished(NamedTuple):
    """All inputs of the node are in the order, so the node leaves the stack and takes the next position."""

    node: int
    position: int


class DependenciesCounted(NamedTuple):
    """Kahn's algorithm has counted on how many inputs a node waits (an input used twice counts twice)."""

    node: int
    waiting_for: int


class NodeEnqueued(NamedTuple):
    """A node waits for nothing any more and joins the queue."""

    node: int


class NodeDequeued(NamedTuple):
    """The node at the head of the queue leaves it and takes the next position."""

    node: int
    position: int


class DependencyDone(NamedTuple):
    """A consumer waits for one input fewer."""

    node: int  # the input that is done
    consumer: int
    waiting_for: int  # what the consumer still waits for


# ------------------------------------------------------------------------------------------------ forward and reverse


class OpCalled(NamedTuple):
    """An op ran on Tensors that carry a derivative: it recorded how its result was computed, or pushes tangents next."""

    serial: int  # the number of the result in this run: Node.serial of the drawn graph
    op: str
    inputs: tuple[int | None, ...]  # serial of each operand; None for a constant
    name: str  # the user's variable, where the call shows it
    scope: str
    source: Any  # graph.Source of the call, or None
    value: Any  # the result
    operands: tuple[Any, ...]  # the values that went in
    attributes: Mapping[str, Any]
    saved: Mapping[str, Any]  # arrays kept for backward, by name; none in forward mode
    names: tuple[str, ...] = ()  # what each operand was called when it was made; "" where it has no name


class OpFailed(NamedTuple):
    """An op call ended with an error, or was interrupted: it has no result."""

    serial: int  # a number of its own, as if it had a result
    op: str
    inputs: tuple[int | None, ...]  # serial of each operand; None for a constant
    name: str
    scope: str
    source: Any  # graph.Source of the call, or None
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]
    names: tuple[str, ...]
    reason: str  # the text of the error; an OpError's names op, operands and what is wrong


class TangentSeeded(NamedTuple):
    """Forward mode begins at an input: the directions in which it moves, one for each tangent that travels."""

    serial: int
    level: int  # the derivative that runs: another one inside it, or after it, has another number
    value: Any
    tangents: tuple[Any, ...]


class TangentPushed(NamedTuple):
    """Forward mode: one JVP rule turned the tangent of one operand into its part of the result's tangent."""

    serial: int  # the result that receives the part
    sender: int  # the operand that the tangent comes from
    op: str
    argument: str  # the operand's name in the op: "x"
    rule: str  # the rule function: "mul_jvp_x"
    direction: int  # which of the tangents that travel together, counted from 0
    primal: Any  # the operand's value
    tangent: Any  # the operand's tangent
    local: Any  # the local derivative where the op is elementwise and the tangent an array, else None
    part: Any
    total: Any  # the result's tangent so far, in the result's shape
    arrived: int  # how many parts have been added, this one included
    parts: int  # how many there will be
    used: tuple[str, ...]  # the values that the rule read: ("y", "out"); it reads them now and keeps none


class TangentReached(NamedTuple):
    """Forward mode is over at an output: its value and its tangents, the derivatives along the directions of the seeds."""

    serial: int | None  # None where the output does not depend on an input that moves
    value: Any
    tangents: tuple[Any, ...]


class SweepStarted(NamedTuple):
    """The reverse sweep begins at the output with its seed cotangent."""

    serial: int
    seed: Any


class CotangentComplete(NamedTuple):
    """Every contribution to a node has arrived; its rules run next. Each node is visited once."""

    serial: int
    op: str
    cotangent: Any


class ContributionAdded(NamedTuple):
    """One rule sent one contribution along one edge, and it was added to what had arrived before."""

    serial: int  # the node whose rule ran
    into: int  # the input that receives
    argument: str  # the input's name in the op: "x"
    rule: str  # the rule function: "mul_vjp_x"
    upstream: Any  # the node's complete cotangent
    local: Any  # the local derivative where the op is elementwise, else None
    contribution: Any
    total: Any  # the sum so far at the receiving node
    arrived: int  # how many contributions have arrived there, this one included
    used: tuple[str, ...]  # the saved values that the rule read: ("x", "out")


class SavedValueReleased(NamedTuple):
    """No later rule of this sweep reads this value that the forward pass saved."""

    serial: int  # the node whose rule read it last
    name: str  # its name in that rule
    nbytes: int


class LeafReached(NamedTuple):
    """The sweep is over; this leaf's gradient is complete."""

    serial: int
    gradient: Any


# ------------------------------------------------------------------------------------------- registration and dispatch


class SchemaRegistered(NamedTuple):
    """An op exists: its name, and what goes in and comes out as it was declared."""

    op: str
    inputs: tuple[str, ...]  # "x", "x: float32", "b: T?"; "*arrays" for a variable number
    outputs: tuple[str, ...]  # "y: float32"; "out" where nothing was declared
    attributes: tuple[str, ...]  # "alpha = 1.0", "alpha: float = 1.0", "axis" where it must be given
    source: Any  # graph.Source of the definition, or None


class OpReplaced(NamedTuple):
    """A definition of a name that the same module had defined before. Graphs recorded before keep the old op."""

    op: str
    old: Any  # graph.Source of both definitions
    new: Any


class RuleRegistered(NamedTuple):
    """The op has a rule more."""

    op: str
    kind: str  # "shape rule", "dtype rule", "batch rule", "vjp rule", "jvp rule"
    argument: str  # the input that a gradient rule is for; "" for the others
    rule: str  # the function: "mul_vjp_x"
    reads: tuple[str, ...]  # its parameters: ("g", "y"), or one shape or dtype per input
    attributes: tuple[str, ...]  # the attributes that it reads
    is_default: bool  # nobody wrote it: it comes with elementwise=True, the declared types or NumPy's result type
    source: Any  # graph.Source of the function, or None


class KernelRegistered(NamedTuple):
    """The op has a kernel more."""

    op: str
    kernel: str  # the function
    device: str  # "cpu", "cuda", "sim", or "any"
    dtype: str  # "float32", or "any"
    source: Any


class BindingGenerated(NamedTuple):
    """All rules are known, so the function that users call was written: what it takes, what a call saves for backward."""

    op: str
    signature: str  # "scaled_tanh(x, alpha=1.0)"
    saved: tuple[str, ...]  # ("out",)
    code: str  # the Python text


class KernelConsidered(NamedTuple):
    """Dispatch looked at one key of its fallback order."""

    op: str
    device: str  # of the key: "cpu", "cuda", "sim", or "any"
    dtype: str  # of the key: "float32", or "any"
    kernel: str | None  # the function under that key; None where there is none
    chosen: bool


class KernelCreated(NamedTuple):
    """A kernel creator was asked for the kernel of a key: it made one, or the one made before was found again."""

    op: str
    creator: str
    device: str
    dtypes: tuple[str, ...]
    attributes: Mapping[str, Any]
    cached: bool  # True where the kernel had been made before


# ----------------------------------------------------------------------------------------------------- shapes and fusion
# A shape is a tuple of sizes: a number, the name of a size that is not known yet, or None; None alone where not even the
# number of axes is known. Nodes are ids.


class ShapeInferred(NamedTuple):
    """A shape rule said the result's shape from the operands' shapes; an input or constant has its own."""

    node: int
    op: str
    rule: str  # the shape rule; "" for an input or constant
    operands: tuple[Any, ...]
    shape: Any
    dtype: Any


class ShapeLost(NamedTuple):
    """A shape rule knew less about its result than its operands' shapes say: what comes after has to do without."""

    node: int
    op: str
    rule: str
    shape: Any
    source: Any  # graph.Source of the rule, or None


class NeighboursCompared(NamedTuple):
    """Fusion looked at one op and an op that reads its result: they share one kernel, or a reason says why not."""

    producer: int
    consumer: int
    reason: str  # "joined", or the reason: fusion.Reason
    text: str  # in words, with names and shapes


class GroupFormed(NamedTuple):
    """These ops are one kernel."""

    number: int  # groups are numbered in an order in which they can run
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]  # the values that the kernel reads
    outputs: tuple[int, ...]  # the values that it writes; those between stay in the loop
    shape: Any
    name: str


class LoopChosen(NamedTuple):
    """How a group of ops will run: as one kernel of some kind, and why of that kind."""

    number: int  # of the group
    name: str
    kind: str  # fused_loops.Kind: "blocked NumPy", "compiled loop", …
    why: str


# ----------------------------------------------------------------------------------------------------------- training


class StepTrained(NamedTuple):
    """A training run took one step: the loss before it, and the norm of the gradient that it followed."""

    run: str  # "healthy", or the fault
    step: int  # counted from 1
    loss: float
    gradient_norm: float  # √ of the sum of squares over all parameters


class TrainingStopped(NamedTuple):
    """A training run ended in a step, with an error."""

    run: str
    step: int
    reason: str


# ------------------------------------------------------------------------------------------------------------ devices
# Times are seconds: virtual ones on a simulated device, measured ones on a real one.


class WorkQueued(NamedTuple):
    """The host queued a kernel on a stream of a simulated device, and went on."""

    device: str
    stream: int
    name: str  # of the op
    queued: float  # when the host queued it
    start: float  # when it runs on the device
    end: float


class Transferred(NamedTuple):
    """Numbers are copied from one device to another: by ``to_device``, by ``.numpy()``, or by making an array there."""

    source: str
    target: str
    nbytes: int
    start: float
    end: float


class Synchronised(NamedTuple):
    """The host waited for a device."""

    device: str
    asked_by: str  # what made it wait: "item()", "numpy()", "synchronize()"
    start: float
    end: float


# -------------------------------------------------------------------------------------------------------- scheduling
#
# ``step`` is the number in the lecture's workflow: 1 collect the tasks, 2 count dependencies, 3 put those with none into the
# ready queue, 4 take one, allocate its resource, execute, 5 decrement its successors, 6 put those that reached 0 into the
# queue, 7 repeat 4 to 6. Tasks are numbers of a schedule.Tasks, times are seconds from the start.


class TasksCollected(NamedTuple):
    """All tasks are known, and the policy has made its plan."""

    total: int
    policy: str
    step: int = 1


class SearchAdvanced(NamedTuple):
    """The policy ``search`` has found a shorter schedule, or gone on with the one that it has, before anything runs."""

    tried: int  # how many orders of the tasks
    gone: float  # the part of its budget, or of its steps
    length: float  # of the shortest schedule so far
    step: int = 1


class TaskDependenciesCounted(NamedTuple):
    """A task waits for this many others."""

    task: int
    waiting_for: int
    step: int = 2


class TaskEnqueued(NamedTuple):
    """A task waits for nothing any more and joins the ready queue."""

    task: int
    priority: float
    time: float
    step: int  # 3 at the start, 6 later


class TaskTaken(NamedTuple):
    """The policy's choice: this task leaves the ready queue."""

    task: int
    time: float
    step: int = 4


class ResourceAwaited(NamedTuple):
    """A ready task stays in the queue, because what it needs is not there."""

    task: int
    resource: str | None  # the one that it wants; None where any would do
    cause: str  # "busy", "memory", "transfer", or "policy" where it chose to wait
    blocker: (
        int | None
    )  # a task that holds what is wanted, the first to finish; for a transfer the one whose value travels
    time: float
    step: int = 4


class ResourceAcquired(NamedTuple):
    """A task has its resource and begins."""

    task: int
    resource: str
    lane: int
    time: float
    step: int = 4


class ResourceReleased(NamedTuple):
    """A task is done and gives its resource back."""

    task: int
    resource: str
    lane: int
    time: float
    step: int = 4


class TaskDependencyDone(NamedTuple):
    """A task waits for one other task fewer."""

    task: int  # the task that is done
    successor: int
    waiting_for: int  # what the successor still waits for
    step: int = 5


class AllTasksDone(NamedTuple):
    """Nothing is left to do."""

    time: float
    step: int = 7


# ---------------------------------------------------------------------------------------------------------- planning


class NodeFolded(NamedTuple):
    """A node has a value that is known already: that of a constant, or of another node."""

    node: int
    into: int  # the node itself where it becomes a constant
    op: str


class NodeShared(NamedTuple):
    """A node computes what an earlier one has computed: the earlier one serves both."""

    node: int
    earlier: int
    op: str


class NodeDropped(NamedTuple):
    """No output needs the node, so it is not computed."""

    node: int
    op: str


class BufferTaken(NamedTuple):
    """A value gets its place in memory."""

    node: int
    step: int
    buffer: int
    nbytes: int
    in_place_of: int | None  # the node whose place it takes over, because nobody reads that one again


class BufferReleased(NamedTuple):
    """A value was read for the last time: its memory can serve another one."""

    node: int
    step: int
    buffer: int
    nbytes: int


class StepPlanned(NamedTuple):
    """One more call of the plan is decided."""

    step: int
    nodes: tuple[int, ...]
    kind: str  # "ufunc", "kernel", "view", "blocked NumPy", "compiled loop", "CUDA kernel", "one launch"
    calls: int  # how many NumPy calls it makes; 1 for a kernel that is called as it is


Event = (
    NodeEntered
    | NodeSeenAgain
    | NodeFinished
    | DependenciesCounted
    | NodeEnqueued
    | NodeDequeued
    | DependencyDone
    | OpCalled
    | OpFailed
    | TangentSeeded
    | TangentPushed
    | TangentReached
    | SweepStarted
    | CotangentComplete
    | ContributionAdded
    | SavedValueReleased
    | LeafReached
    | SchemaRegistered
    | OpReplaced
    | RuleRegistered
    | KernelRegistered
    | BindingGenerated
    | KernelConsidered
    | KernelCreated
    | ShapeInferred
    | ShapeLost
    | NeighboursCompared
    | GroupFormed
    | LoopChosen
    | StepTrained
    | TrainingStopped
    | WorkQueued
    | Transferred
    | Synchronised
    | SearchAdvanced
    | TasksCollected
    | TaskDependenciesCounted
    | TaskEnqueued
    | TaskTaken
    | ResourceAwaited
    | ResourceAcquired
    | ResourceReleased
    | TaskDependencyDone
    | AllTasksDone
    | NodeFolded
    | NodeShared
    | NodeDropped
    | BufferTaken
    | BufferReleased
    | StepPlanned
)
