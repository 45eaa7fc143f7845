"""Machines: what tasks compete for. Devices, links and copy engines, and the small machines that lessons use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .mistakes import ScheduleError, meant

MOVERS = ("link", "copy")  # the kinds that move data; only tasks that ask for them run there


@dataclass(frozen=True, slots=True)
class Resource:
    """What a task takes while it runs.

    Args:
        name: unique in its machine.
        kind: ``cpu``, ``cuda``, ``sim``, or what moves data: ``link``, ``copy``.
        capacity: units to share. A task takes ``demand`` of them, so a capacity above 1 is several ops on one device.
        streams: how many tasks may run at once; as many as there are units by default.
        speed: a task of cost c takes c / speed.
        memory: bytes for what tasks produce here.
    """

    name: str
    kind: str = "cpu"
    capacity: int = 1
    streams: int = 0
    speed: float = 1.0
    memory: float = math.inf

    def __post_init__(self) -> None:
        if self.capacity < 1 or self.streams < 0 or not self.speed > 0 or not self.memory >= 0:
            raise ScheduleError(
                f"resource {self.name!r}: capacity must be at least 1, speed above 0, streams and memory not negative; got "
                f"capacity={self.capacity}, speed={self.speed}, streams={self.streams}, memory={self.memory}"
            )

    @property
    def lanes(self) -> int:
        """How many tasks may run here at once."""
        return self.streams or self.capacity

    @property
    def computes(self) -> bool:
        """Whether it runs ops, other than moving data."""
        return self.kind not in MOVERS


@dataclass(frozen=True, slots=True)
class Transfer:
    """The time that a value needs from one device to another: alpha + beta · bytes. Transfers of this kind do not contend.

    Where they should, give each a task of its own on a ``link`` (``with_transfers``).

    >>> Transfer(alpha=5.0, beta=0.5).time(10)
    10.0
    """

    alpha: float = 0.0
    beta: float = 0.0

    def time(self, nbytes: float) -> float:
        """Seconds for so many bytes; nothing moves in no time."""
        return self.alpha + self.beta * nbytes if nbytes else 0.0


@dataclass(frozen=True, eq=False)
class Machine:
    """Resources, and how long values travel between them.

    Args:
        resources: in the order in which equals are preferred.
        transfers: for a pair of names (from, to); pairs that are not named cost nothing.

    >>> Machine((Resource("cpu"), Resource("gpu", "cuda"))).index("gpu")
    1
    """

    resources: tuple[Resource, ...]
    transfers: Mapping[tuple[str, str], Transfer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [resource.name for resource in self.resources]
        if not names:
            raise ScheduleError("Machine: it has no resources; give at least one Resource")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ScheduleError(f"Machine: two resources are named {twice[0]!r}; give each its own name")
        for pair in self.transfers:
            for name in pair:
                self.index(name)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each resource in ``resources``, by name."""
        return {resource.name: place for place, resource in enumerate(self.resources)}

    def index(self, name: str) -> int:
        """The place of a resource in ``resources``.

        Raises:
            ScheduleError: no resource has this name; says which is near.
        """
        if name not in self.places:
            raise ScheduleError(f"Machine: no resource {name!r}; {meant(name, self.places)}")
        return self.places[name]

    @cached_property
    def lanes(self) -> tuple[tuple[int, int], ...]:
        """Every lane as (resource, number): what a task occupies. A timeline says for each task which one it was."""
        return tuple((place, lane) for place, r in enumerate(self.resources) for lane in range(r.lanes))

    def lane_name(self, lane: int) -> str:
        """What a lane is called: its resource's name, with a number where there are several.

        >>> [cpu_and_gpu(streams=2).lane_name(lane) for lane in range(3)]
        ['cpu', 'gpu.0', 'gpu.1']
        """
        place, number = self.lanes[lane]
        resource = self.resources[place]
        return resource.name if resource.lanes == 1 else f"{resource.name}.{number}"

    @cached_property
    def computing(self) -> tuple[int, ...]:
        """The places of the resources that run ops."""
        return tuple(place for place, resource in enumerate(self.resources) if resource.computes)

    @property
    def workers(self) -> int:
        """How many ops can run at once."""
        return sum(self.resources[place].lanes for place in self.computing)

    @cached_property
    def _travel(self) -> dict[tuple[int, int], Transfer]:
        return {(self.index(a), self.index(b)): transfer for (a, b), transfer in self.transfers.items()}

    def travel_time(self, source: int, target: int, nbytes: float) -> float:
        """Seconds that a value needs from one resource to another; none within one."""
        transfer = self._travel.get((source, target)) if source != target else None
        return transfer.time(nbytes) if transfer else 0.0

    def mean_travel_time(self, nbytes: float) -> float:
        """The mean over all pairs of different computing resources, which HEFT's ranks use."""
        pairs = [(p, q) for p in self.computing for q in self.computing if p != q]
        return sum(self.travel_time(p, q, nbytes) for p, q in pairs) / len(pairs) if pairs and self._travel else 0.0


def cores(count: int, memory: float = math.inf) -> Machine:
    """So many equal processors, each with its own memory.

    >>> [resource.name for resource in cores(2).resources]
    ['core0', 'core1']
    """
    if type(count) is not int or count < 1:
        raise ScheduleError(f"a machine is a Machine or a number of cores of at least 1; got {count!r}")
    return Machine(tuple(Resource(f"core{i}", memory=memory) for i in range(count)))


def cpu_and_gpu(gpu_speed: float = 10.0, alpha: float = 1e-5, beta: float = 1 / 12e9, streams: int = 1) -> Machine:
    """A processor and a faster GPU: 10 µs and 12 GB/s between them by default, about a PCIe 3 slot."""
    way = Transfer(alpha, beta)
    resources = (Resource("cpu"), Resource("gpu", "cuda", capacity=streams, speed=gpu_speed))
    return Machine(resources, {("cpu", "gpu"): way, ("gpu", "cpu"): way})


def gpus(count: int, memory: float = math.inf, links: int = 1) -> Machine:
    """So many equal GPUs and the links that they share; tasks of the phase ``comm`` run on a link."""
    devices = tuple(Resource(f"gpu{i}", "cuda", memory=memory) for i in range(count))
    return Machine(devices + tuple(Resource(f"link{i}", "link") for i in range(links)))


def pipeline(stages: int) -> Machine:
    """One device a stage, and between neighbours a link each way, named ``gpu0->gpu1``."""
    pairs = [pair for i in range(stages - 1) for pair in ((i, i + 1), (i + 1, i))]
    devices = tuple(Resource(f"gpu{i}", "cuda") for i in range(stages))
    return Machine(devices + tuple(Resource(f"gpu{a}->gpu{b}", "link") for a, b in pairs))
