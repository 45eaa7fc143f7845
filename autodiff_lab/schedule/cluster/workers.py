"""What travels to a Dask worker and runs there: a task's function by name or by value, and reports of what ran when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from distributed import Worker, WorkerPlugin, get_worker

from ... import __version__, bindings, dispatch
from ...declarations import Declaration
from ...operators import Op, registry
from ..graph_tasks import OpCall
from ..mistakes import ScheduleError
from ..task import Task
from ..values import parts_of

LAB = __name__.partition(".")[0]


class Operand(NamedTuple):
    """Where an operand comes from: it is the part ``part`` of what arrived at ``place``, or a value that travels along."""

    place: int
    part: int | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class NamedOp:
    """An op that every worker has."""

    name: str
    attributes: Mapping[str, Any]

    def __call__(self, *operands: Any) -> Any:
        """The op's result."""
        return registry[self.name].apply(operands, self.attributes)


@dataclass(frozen=True, slots=True)
class SentOp:
    """An op that only the caller has: its kernels travel along, and dispatch chooses among them as it does at home."""

    name: str
    attributes: Mapping[str, Any]
    kernels: Mapping[dispatch.Key, dispatch.Kernel]
    declared: Declaration | None

    def kernel_for(self, device: str, operands: Sequence[Any]) -> dispatch.Kernel:
        """The kernel for the dtype of the first operand that has one."""
        dtype = next((operand.dtype for operand in operands if hasattr(operand, "dtype")), None)
        return dispatch.choose(self.name, self.kernels, device, dtype)

    def __call__(self, *operands: Any) -> Any:
        """The op's result."""
        op: Any = self
        return bindings.compute(op, operands, dict(self.attributes))


def packed(task: Task, operands: Sequence[Operand]) -> bytes:
    """A task's function and operands as bytes.

    Raises:
        ScheduleError: something in it cannot be sent; names the task, and the op if it is one of the caller's.
    """
    call: Any = task.call
    if isinstance(call, OpCall):
        call = _sent(call.op, call.attributes)
    try:
        return cloudpickle.dumps((call, tuple(operands)))  # type: ignore[no-any-return]
    except Exception as error:
        what = f"the kernel of op {call.name}" if isinstance(call, SentOp) else "its function, or an argument"
        raise ScheduleError(
            f"run_on_cluster: task {task.name!r} cannot be sent: {what} does not pickle ({type(error).__name__}: {error}). "
            "Let it make what it needs, such as an open file or a lock, when it is called"
        ) from error


def _sent(op: Op, attributes: Mapping[str, Any]) -> NamedOp | SentOp:
    kernels = {key: kernel for key, kernel in op.kernels.items() if key[0] in ("cpu", "any")}
    if all(kernel.__module__.partition(".")[0] == LAB for kernel in kernels.values()) and registry.get(op.name) is op:
        return NamedOp(op.name, attributes)
    return SentOp(op.name, attributes, kernels, op.declared)


class Told(NamedTuple):
    """Under which topic the caller hears of a run, and which run it is."""

    topic: str
    run: str


@dataclass(frozen=True, slots=True)
class Call:
    """One task as a worker calls it, with the results that arrived; it reports when it ran."""

    told: Told
    task: int
    function: bytes
    writes: tuple[str, ...]

    def __call__(self, *arrived: Any) -> Any:
        """The task's result; what the task raises."""
        function, operands = cloudpickle.loads(self.function)
        values = [o.value if o.place < 0 else _part(arrived[o.place], o.part) for o in operands]
        is_done, began, cpu = False, perf_counter(), thread_time()
        try:
            result = None if function is None else function(*values)
            parts = parts_of(result, self.writes)
            is_done = True
        finally:
            end, cpu = perf_counter(), thread_time() - cpu
            _report(get_worker(), self.told, task=self.task, start=began, end=end, cpu=cpu, is_done=is_done)
        sent = tuple(keeping_layout(part) for part in parts)
        return sent[0] if len(sent) == 1 else sent


def _part(arrived: Any, part: int | None) -> Any:
    value = arrived if part is None else arrived[part]
    return value.array if type(value) is Laid else value


def received(result: Any, parts: int) -> tuple[Any, ...]:
    """The parts of a task's result, as the task returned them."""
    return (_part(result, None),) if parts == 1 else tuple(_part(result, part) for part in range(parts))


def _report(worker: Worker, told: Told, **facts: Any) -> None:
    worker.log_event(told.topic, {"run": told.run, "worker": worker.address, **facts})


class Moves(WorkerPlugin):  # type: ignore[misc]
    """Reports each value that a worker gets from another: which, from whom, and when."""

    def __init__(self, told: Told, keys: Mapping[str, int | str]) -> None:
        self.name = f"{LAB} {told.run}"
        self._told, self._keys = told, keys
        self._coming: dict[str, tuple[Any, float]] = {}

    def setup(self, worker: Worker) -> None:
        """Called on each worker, also on one that comes later."""
        self._worker = worker

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A value's state on this worker changes."""
        if key not in self._keys:
            return
        if finish == "flight":
            self._coming[key] = self._worker.state.tasks[key].coming_from, perf_counter()
        elif start == "flight" and (came := self._coming.pop(key, None)) and finish == "memory":
            _report(self._worker, self._told, moved=self._keys[key], source=came[0], start=came[1], end=perf_counter())


def clock() -> tuple[float, str]:
    """A worker's clock, which never steps and which all processes of a machine share; and its version of the lab."""
    return perf_counter(), __version__


class Laid:
    """An array that lies in memory neither row by row nor column by column, which Dask would change on the way.

    How numbers lie decides in which order they are added up, and so the last bits of what is computed from them.

    >>> import pickle
    >>> array = np.zeros((2, 3, 4)).transpose(1, 0, 2)[:, ::-1]
    >>> pickle.loads(pickle.dumps(Laid(array))).array.strides == array.strides
    True
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __sizeof__(self) -> int:
        return self.array.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        strides = self.array.strides
        turned = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in strides)
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)  # an axis that repeats one row
        order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
        dense = np.ascontiguousarray(self.array[turned][once].transpose(order))
        return _laid, (dense, order, self.array.shape, turned)


def _laid(dense: np.ndarray[Any, Any], order: list[int], shape: tuple[int, ...], turned: tuple[slice, ...]) -> Laid:
    return Laid(np.broadcast_to(dense.transpose(np.argsort(order)), shape)[turned])


def keeping_layout(value: Any) -> Any:
    """The value in a form in which it arrives as it lies here."""
    is_plain = not isinstance(value, np.ndarray) or value.flags.c_contiguous or value.flags.f_contiguous
    return value if is_plain else Laid(value)
