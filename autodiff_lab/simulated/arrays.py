"""What the host holds of an array on a simulated device, and how an op call on such arrays is queued.

An op call is one piece of work. Its shape rule and its dtype rule say at once what will come of it, so the host can go on and
queue the next call, as with a GPU; the kernel runs when the host synchronises. The limit of this: a kernel that gives another
shape or dtype than the rules say is found out only then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import events, ops
from ..bindings import OpError, shape_of
from ..sources import call_site
from .device import Block, Device, NotSynchronisedError, Stream, StreamOrderError, device, host
from .library import DeviceArray, Library, numpy_refused, refused

if TYPE_CHECKING:
    from ..graph import Node
    from ..operators import Kernel, Op


class SimulatedArray:
    """An array on a simulated device, as the host knows it: shape, dtype and place, and no numbers.

    Operators and methods are ops, which queue work. It is never changed in place. ``get()`` waits and brings the numbers.

    >>> import autodiff_lab as ad
    >>> (ad.tensor([1.0, 2.0], device="sim:0") * 2.0).data
    <array on sim:0 (simulated), (2,) float64>
    """

    __slots__ = ("__weakref__", "_content", "_on", "_ready", "_stream", "dtype", "shape")
    __hash__ = object.__hash__
    is_simulated = True

    def __init__(self, on: Device, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self._on = on
        self._content: Block | DeviceArray | Exception | None = Block(on, self.nbytes)  # room for what will be computed
        self._stream: Stream = on.stream
        self._ready = 0.0  # the virtual time from which on the stream has written it

    @property
    def device(self) -> str:
        """The device's name."""
        return self._on.name

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return self.size * self.dtype.itemsize

    def get(self, blocking: bool = True, asked_by: str = "get()") -> np.ndarray[Any, Any]:
        """The numbers, as a NumPy array: the host waits until what was queued before is done, and copies them.

        Raises:
            NotSynchronisedError: ``blocking`` is False, and the host has not waited for the work that makes them.
        """
        if not blocking and not host.seen.get(self._stream, -1.0) >= self._ready:
            raise NotSynchronisedError(
                f"the numbers of {self!r} were read before the host has waited for them: they may not be computed yet. "
                "Use .get() or .numpy(), or synchronise first"
            )
        if blocking:  # a copy waits its turn behind all that this thread's stream has to do, as CUDA's does
            before = self._on.stream.before_next()
            host.wait_for(
                self.device, before | {self._stream: max(self._ready, before.get(self._stream, 0.0))}, asked_by
            )
        host.carry_out()
        if isinstance(self._content, Exception):
            raise self._content
        if not isinstance(self._content, DeviceArray):
            raise RuntimeError(
                f"a kernel asked for the numbers of {self!r}, and cannot wait for other work: give the op another input"
            )
        start, host.now = host.now, host.now + self._on.costs.link(self.nbytes)
        events.tell(events.Transferred(self.device, "cpu", self.nbytes, start, host.now))
        return np.array(self._content._value)

    def item(self) -> Any:
        """The one number, on the host, which waits for it."""
        return self.get(asked_by="item()").item()

    def meets_number(self, function: Any, *operands: Any) -> Any:
        """A NumPy scalar and this array in an operator: the op that it stands for."""
        if function not in _OPERATORS:
            raise TypeError(f"no op stands for np.{function.__name__}, so it does not take {self!r}")
        return _OPERATORS[function](*operands)

    def launch(self, op: Op, kernel: Kernel, operands: Sequence[Any], attributes: dict[str, Any]) -> SimulatedArray:
        """Queue an op call, of which this array is an operand, on the current stream of its device."""
        stream, arrays = self._on.stream, [operand for operand in operands if isinstance(operand, SimulatedArray)]
        for array in arrays:
            array._check_order(op.name, stream)
        for held in _host_arrays(tuple(attributes.values())):  # such as an index, which travels with the call
            stream.queue_transfer("cpu", lambda: None, held.nbytes)
        dtypes = [o.dtype if hasattr(o, "dtype") else type(o)(0) for o in operands]
        shape = op.infer_shape([shape_of(operand) for operand in operands], attributes, dtypes)
        dtype = op.infer_dtype(dtypes, attributes)
        result = SimulatedArray(self._on, shape, dtype)
        source = call_site()[1]
        stopped: list[BaseException] = []

        def work() -> None:
            try:
                result._compute(operands, kernel, attributes)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and not stopped:  # it stays queued, and is done the next time
                    stopped.append(error)
                    raise
                where = f"queued in {source}" if source else "queued earlier"
                result._content = _told_later(
                    op, error, operands, attributes, f"on {result.device} (simulated), {where}"
                )
                raise result._content from error

        nbytes = result.nbytes + sum(array.nbytes for array in arrays)
        result._ready = stream.queue(op.name, work, nbytes)
        return result

    def _check_order(self, op: str, stream: Stream) -> None:
        if not stream.may_read(self._stream, self._ready):
            raise StreamOrderError(
                f"{op} on {stream!r} reads what {self._stream!r} may not have written yet; let it wait: "
                "reader.wait_event(writer.record())"
            )

    def _compute(self, operands: Sequence[Any], kernel: Kernel, attributes: Mapping[str, Any]) -> None:
        """Run the kernel and keep what it gives. What is computed from something that failed, fails for the same reason."""
        failed = [o._content for o in operands if isinstance(o, SimulatedArray) and isinstance(o._content, Exception)]
        if failed:
            self._content = failed[0]
            return
        values = [o._content if isinstance(o, SimulatedArray) else o for o in operands]
        self._content = None  # gives back the room that the kernel's result takes
        with np.errstate(all="ignore"):  # a GPU warns of nothing
            self._content = self._checked(kernel(Library(self._on), *values, **attributes))

    def _checked(self, result: Any) -> DeviceArray:
        if not isinstance(result, DeviceArray):
            raise TypeError(
                f"its kernel gave a {type(result).__name__}, which lies on the host; a kernel returns an array made with xp"
            )
        if (result.shape, result.dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"its kernel gave {result.shape} {result.dtype}, but the shape and dtype rules said {self.shape} {self.dtype}; "
                "correct the rules"
            )
        return result

    def keep(self, value: Any) -> None:
        """Take the numbers that a kernel of several ops has left in registers."""
        self._content = None
        self._content = DeviceArray(self._checked(value)._value, self._on)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))  # type: ignore[index]

    def __repr__(self) -> str:
        return f"<array on {self.device} (simulated), {self.shape} {self.dtype}>"

    def __reduce__(self) -> Any:
        return upload, (self.get(asked_by="pickle"), self.device)

    __copy__ = __deepcopy__ = lambda self, *_: self  # it is never changed


def launch_together(
    name: str, nodes: Sequence[Node], inputs: Mapping[int, Any], outputs: Sequence[Node]
) -> tuple[Any, ...]:
    """Queue several ops as one kernel, on the device of their operands; ``inputs`` has arrays and numbers by node.

    It reads each input and writes each output once. What passes from op to op stays in registers and takes no memory.
    """
    arrays = [value for value in inputs.values() if isinstance(value, SimulatedArray)]
    on, stream = arrays[0]._on, arrays[0]._on.stream
    for array in arrays:
        array._check_order(name, stream)
    results = {node.id: SimulatedArray(on, node.shape, node.dtype) for node in outputs}

    def work() -> None:
        failed = [array._content for array in arrays if isinstance(array._content, Exception)]
        try:
            if not failed:
                _compute_together(on, nodes, inputs, results)
        except Exception as error:
            failed.append(error)
            raise
        finally:
            for result in results.values() if failed else ():
                result._content = failed[0]

    nbytes = sum(array.nbytes for array in (*arrays, *results.values()))
    ready = stream.queue(name, work, nbytes)
    for result in results.values():
        result._ready = ready
    return tuple(results.values())


def _compute_together(
    on: Device, nodes: Sequence[Node], inputs: Mapping[int, Any], results: Mapping[int, SimulatedArray]
) -> None:
    inside = _registers(on)
    xp = Library(inside)
    values = {n: _in_registers(value, inside) for n, value in inputs.items()}
    for node in nodes:
        assert node.op is not None
        operands = [values[n] for n in node.inputs]
        try:
            with np.errstate(all="ignore"):  # a GPU warns of nothing
                values[node.id] = node.op.kernel_for(on.name, operands)(xp, *operands, **node.attributes)
        except Exception as error:
            where = f"on {on.name} (simulated), in a fused kernel" + (f", {node.source}" if node.source else "")
            raise _told_later(node.op, error, operands, dict(node.attributes), where) from error
    for n, result in results.items():
        result.keep(values[n])


def _in_registers(value: Any, inside: Device) -> Any:
    if not isinstance(value, SimulatedArray):
        return value
    assert isinstance(value._content, DeviceArray)
    return DeviceArray(value._content._value, inside)


@cache
def _registers(on: Device) -> Device:
    """A device of the same name whose memory is not counted: what a kernel keeps in registers."""
    inside = Device(int(on.name.partition(":")[2]))
    inside.memory_limit = 2**62
    return inside


ops.attach_operators(SimulatedArray)

_HOST = "it would wait and copy without a word; say .item() for one number, .get() or .numpy() for all"
for _name, _what in {
    "bool": "bool()",
    "float": "float()",
    "int": "int()",
    "index": "an index",
    "array": "a NumPy array",
}.items():
    setattr(SimulatedArray, f"__{_name}__", refused(_what, _HOST))
setattr(SimulatedArray, "__array_ufunc__", numpy_refused)  # noqa: B010
setattr(SimulatedArray, "__array_function__", numpy_refused)  # noqa: B010


_OPERATORS = {
    np.add: ops.add, np.subtract: ops.sub, np.multiply: ops.mul, np.true_divide: ops.div, np.power: ops.power,
    np.less: ops.less, np.less_equal: ops.less_equal, np.greater: ops.greater, np.greater_equal: ops.greater_equal,
    np.equal: ops.equal, np.not_equal: ops.not_equal,
}  # fmt: skip


def _host_arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The NumPy arrays in nested lists and tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _host_arrays(part)


def _told_later(op: Op, error: BaseException, operands: Any, attributes: dict[str, Any], where: str) -> Exception:
    """The error of a kernel, which names the call that queued it."""
    if not isinstance(error, Exception):  # a kernel without end, or one that calls exit()
        is_stop = isinstance(error, KeyboardInterrupt)
        error = RuntimeError(
            "its kernel was stopped twice and is given up" if is_stop else f"its kernel raised {error!r}"
        )
    if isinstance(error, MemoryError):
        return type(error)(f"{op.name} {where}: {error}")
    return OpError(f"{op.explained(error, operands, attributes)}; {where}, and found when the host synchronised")


def upload(data: np.ndarray[Any, Any], name: str) -> SimulatedArray:
    """Queue the copy of an array to a device. What is copied is what the array holds now."""
    on = numbered(name)
    result = SimulatedArray(on, data.shape, data.dtype)
    kept = np.array(data)

    def work() -> None:
        assert isinstance(result._content, Block)
        result._content = DeviceArray(kept, on, result._content)

    result._ready = result._stream.queue_transfer("cpu", work, data.nbytes)
    return result


def library(name: str) -> Library:
    """What a kernel computes with on the device of this name."""
    return Library(numbered(name))


def numbered(name: str) -> Device:
    """The device of a name such as ``sim:1``."""
    return device(int(name.partition(":")[2]))
