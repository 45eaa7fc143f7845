"""A simulated accelerator: its memory, its streams and events, and the virtual time at which everything happens.

Numbers are computed by NumPy, when the host synchronises. Times are not measured: they follow from ``Costs``, at the moment
when work is queued, and are those of a device that runs beside the host. What the host computes itself takes no virtual time,
unless somebody lets it pass: ``host.now += seconds``.
"""

from __future__ import annotations

import gc
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import count
from threading import RLock
from weakref import WeakSet

from .. import events


class OutOfMemoryError(MemoryError):
    """A device has no room for an array; says which device, what was wanted, what is in use, and what to do."""


class NotSynchronisedError(RuntimeError):
    """The host asked for numbers without having waited for the work that makes them."""


class StreamOrderError(RuntimeError):
    """Work on one stream reads what another stream may not have written yet."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What things take on a simulated device: seconds, and bytes per second.

    A kernel takes ``launch`` + bytes read and written / ``bandwidth``: the roofline's slope, without its roof. A transfer takes
    ``link_latency`` + bytes / ``link_bandwidth``. Queuing anything takes the host ``enqueue``. At most ``kernels_at_once``
    kernels run side by side, each at full speed, and one transfer beside them.
    """

    enqueue: float = 2e-6
    launch: float = 5e-6
    bandwidth: float = 500e9
    link_latency: float = 10e-6
    link_bandwidth: float = 16e9
    kernels_at_once: int = 2

    def kernel(self, nbytes: int) -> float:
        """Seconds of a kernel that reads and writes so many bytes."""
        return self.launch + nbytes / self.bandwidth

    def link(self, nbytes: int) -> float:
        """Seconds of a transfer of so many bytes."""
        return self.link_latency + nbytes / self.link_bandwidth


class Host:
    """The host's side: its virtual time, the work that it has queued on any device, and what it has waited for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seen: dict[Stream, float] = {}  # up to which virtual time the host knows a stream's work to be done
        self.lock = RLock()
        self._queue: deque[Callable[[], None]] = deque()
        self._running = False

    def queue(self, work: Callable[[], None]) -> None:
        """Remember work for later. A launch queue is not endless: a thousand pieces are carried out."""
        self._queue.append(work)
        if len(self._queue) >= 1000:
            self.carry_out()

    def carry_out(self) -> None:
        """Do what was queued, in the order of queuing, which the order of every stream allows. Raises the first error."""
        with self.lock:
            if self._running:  # a kernel needs memory
                return
            first: Exception | None = None
            self._running = True
            try:
                while self._queue:
                    try:
                        self._queue[0]()
                    except Exception as error:
                        first = first or error
                    self._queue.popleft()  # not where the user has stopped it: then it is done the next time
            finally:
                self._running = False
        if first is not None:
            raise first

    def wait_for(self, device: str, mark: Mark, asked_by: str) -> None:
        """Wait for some streams, each until its time in ``mark``."""
        start, self.now = self.now, max(self.now, *mark.values())
        events.tell(events.Synchronised(device, asked_by, start, self.now))
        advance(self.seen, mark)
        self.carry_out()


Mark = dict["Stream", float]  # for some streams, the virtual time up to which their work is done


def advance(seen: Mark, mark: Mark) -> None:
    """Let what one side knows include a mark."""
    for stream, time in mark.items():
        seen[stream] = max(time, seen.get(stream, 0.0))


host = Host()


class Engine:
    """A part of a device that does one thing at a time."""

    def __init__(self) -> None:
        self._busy: list[tuple[float, float]] = []  # from, to; in order

    def first_gap(self, ready: float, seconds: float) -> float:
        """The earliest start, not before ``ready``, of something that takes so many seconds."""
        for start, end in self._busy[bisect_right(self._busy, ready, key=_end) :]:
            if ready + seconds <= start:
                break
            ready = max(ready, end)
        return ready

    def take(self, start: float, end: float) -> None:
        """Be busy. What is over is forgotten, because nothing new starts in the past."""
        del self._busy[: bisect_right(self._busy, host.now, key=_end)]
        insort(self._busy, (start, end))


def _end(span: tuple[float, float]) -> float:
    return span[1]


class Device:
    """One simulated accelerator; ``simulated.device(0)`` is that of ``sim:0``.

    ``memory_limit`` (bytes) and ``costs`` may be set.

    >>> from autodiff_lab import simulated
    >>> simulated.device(3)
    <simulated device sim:3, 0 of 268435456 bytes in use>
    """

    def __init__(self, number: int) -> None:
        self.name = f"sim:{number}"
        self.memory_limit = 256 * 2**20
        self.memory_peak = 0
        self.costs = Costs()
        self.streams: WeakSet[Stream] = WeakSet()
        self.stream_numbers = count()
        self.link = Engine()
        self._engines: list[Engine] = []
        self._used = 0
        self.default_stream = Stream(self)

    def __repr__(self) -> str:
        return f"<simulated device {self.name}, {self.memory_used} of {self.memory_limit} bytes in use>"

    def __reduce__(self) -> tuple[Callable[..., Device], tuple[int]]:
        return device, (int(self.name.partition(":")[2]),)  # there is one with this number, here and in another process

    @property
    def memory_used(self) -> int:
        """Bytes of the arrays that live on the device once everything queued has been done."""
        host.carry_out()
        return self._used

    @property
    def stream(self) -> Stream:
        """The stream on which this thread queues work: that of the innermost ``with stream:``, or the default one."""
        return next((one for one in reversed(_entered.get()) if one.device is self), self.default_stream)

    @property
    def engines(self) -> list[Engine]:
        """As many engines as kernels run side by side."""
        self._engines += [Engine() for _ in range(self.costs.kernels_at_once - len(self._engines))]
        return self._engines[: self.costs.kernels_at_once]

    def synchronize(self) -> None:
        """Wait, as the host, for everything that was queued on this device."""
        host.wait_for(self.name, {stream: stream.free_at for stream in self.streams}, "synchronize()")

    def reserve(self, nbytes: int) -> None:
        """Count bytes as used.

        Raises:
            OutOfMemoryError: they are not there, also after all queued work was done and unreachable arrays were freed.
        """
        if self._used + nbytes > self.memory_limit:
            host.carry_out()
        if self._used + nbytes > self.memory_limit:
            gc.collect()
        if self._used + nbytes > self.memory_limit:
            raise OutOfMemoryError(
                f"{self.name} (simulated) is out of memory: {nbytes} bytes wanted, {self._used} of {self.memory_limit} in use; "
                "drop arrays that are not needed, use smaller ones, or raise simulated.device"
                f"({self.name.partition(':')[2]}).memory_limit"
            )
        self._used += nbytes
        self.memory_peak = max(self.memory_peak, self._used)

    def release(self, nbytes: int) -> None:
        """Count bytes as free."""
        self._used -= nbytes


def device(number: int = 0) -> Device:
    """The simulated device with a number; there are as many as are asked for.

    >>> device() is device(0)
    True
    """
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"simulated.device: a device is asked for by its number, as in device(0); got {number!r}")
    return _device_numbered(number)


@cache
def _device_numbered(number: int) -> Device:
    return Device(number)


class Block:
    """Bytes of a device's memory, which are free again when nobody holds this object."""

    __slots__ = ("device", "nbytes")

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device, self.nbytes = device, 0
        device.reserve(nbytes)
        self.nbytes = nbytes

    def __del__(self) -> None:
        self.device.release(self.nbytes)


# ------------------------------------------------------------------------------------------------- streams and events


class Stream:
    """A queue of work on a device: its work is done in order; that of two streams may overlap.

    Inside ``with stream:`` this thread's work is queued there. What one stream writes, another may read after
    ``other.wait_event(stream.record())``, or after the host has waited; anything else raises ``StreamOrderError``, where a GPU
    would sometimes compute with garbage. The default stream, as CUDA's, waits for all others, and they wait for it.

    >>> import autodiff_lab as ad
    >>> from autodiff_lab import simulated
    >>> x = ad.tensor([1.0, 2.0], device="sim:0")
    >>> first, second = simulated.Stream(), simulated.Stream()
    >>> with first:
    ...     y = x * 2.0
    >>> second.wait_event(first.record())
    >>> with second:
    ...     z = y + 1.0
    >>> z.numpy()
    array([3., 5.])
    """

    def __init__(self, device: Device | int = 0) -> None:
        self.device = device if isinstance(device, Device) else _device(device)
        self.number = next(self.device.stream_numbers)
        self.device.streams.add(self)
        self.free_at = 0.0  # the virtual time at which all its work is done
        self.seen: Mark = {}  # what of other streams is done before this stream's next work

    def __repr__(self) -> str:
        return f"<stream {self.number} of the simulated device {self.device.name}>"

    def __enter__(self) -> Stream:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_error: object) -> None:
        _entered.set(_entered.get()[:-1])

    def record(self) -> Event:
        """An event that happens when everything queued here so far is done."""
        return Event(self.device, {**self.seen, self: self.free_at})

    def wait_event(self, event: Event) -> None:
        """Let the work that is queued here from now on start after the event."""
        advance(self.seen, event.mark)
        self.free_at = max(self.free_at, event.time)

    def synchronize(self) -> None:
        """Wait, as the host, for everything that was queued here."""
        self.record().synchronize()

    def may_read(self, writer: Stream, written_at: float) -> bool:
        """Whether what ``writer`` has written at some time is there for this stream's next work."""
        if self.device.default_stream in (self, writer) or writer is self:
            return True
        return max(self.seen.get(writer, -1.0), host.seen.get(writer, -1.0)) >= written_at

    def before_next(self) -> Mark:
        """What has to be done before anything that is queued here now can start: for the default stream, the work of all."""
        default = self.device.default_stream
        streams = self.device.streams if self is default else (self, default)
        return {stream: stream.free_at for stream in streams}

    def queue(self, name: str, work: Callable[[], None], nbytes: int) -> float:
        """Queue a kernel that reads and writes so many bytes; gives the virtual time at which it is done."""
        start, end = self._take(self.device.engines, self.device.costs.kernel(nbytes))
        events.tell(events.WorkQueued(self.device.name, self.number, name, host.now, start, end))
        host.queue(work)
        return end

    def queue_transfer(self, source: str, work: Callable[[], None], nbytes: int) -> float:
        """Queue a copy of so many bytes to this stream's device, for which the host waits; gives the time when it is done."""
        start, end = self._take([self.device.link], self.device.costs.link(nbytes))
        events.tell(events.Transferred(source, self.device.name, nbytes, start, end))
        host.queue(work)
        host.now = max(host.now, end)
        advance(host.seen, {self: end})
        return end

    def _take(self, engines: list[Engine], seconds: float) -> tuple[float, float]:
        context = events.context.get()
        if context is not None and context.observes:  # who watches takes no time
            return self.free_at, self.free_at
        with host.lock:
            host.now += self.device.costs.enqueue
            ready = max(host.now, *self.before_next().values())
            start, engine = min(((one.first_gap(ready, seconds), one) for one in engines), key=lambda pair: pair[0])
            self.free_at = start + seconds
            engine.take(start, self.free_at)
            return start, self.free_at


class Event:
    """A moment on a device: what was queued on a stream, and what that waited for, is done. Made by ``Stream.record``."""

    def __init__(self, device: Device, mark: Mark) -> None:
        self.device, self.mark = device, mark

    @property
    def time(self) -> float:
        """The virtual time of the event, in seconds."""
        return max(self.mark.values())

    def synchronize(self) -> None:
        """Wait, as the host, for the event."""
        host.wait_for(self.device.name, self.mark, "event")


_entered: ContextVar[tuple[Stream, ...]] = ContextVar("autodiff_lab.simulated_streams", default=())
_device = device
