"""Search: many schedules are laid out from changed orders, within a budget, and the shortest becomes the plan."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from time import thread_time

from .. import events
from . import plans
from .machines import Machine
from .mistakes import ScheduleError
from .plans import Plan
from .tasks import Tasks

STEPS, TASKS = 100, 20_000  # where neither steps nor a budget are given: so many steps, fewer for more than 200 tasks
AT_ONCE = 3  # at most so many tasks change in one step
ROUNDS = (
    6  # of annealing: the hardest instances end at 1.010 of their optimum after 12,000 steps, with one round at 1.013
)
WARM = 0.015  # when a round begins, a schedule that is longer by this part is taken with a chance of 1/e
TOLD = 20  # times that a search says how far it is, beside each time that it finds a shorter schedule
PINNED = 0.35  # of the changes on unlike lanes say where a task runs, instead of when


@dataclass(frozen=True, slots=True)
class Search:
    """The plan of the policy ``search``: the shortest of the schedules that were laid out.

    Each order of the tasks is laid out one task after the other, each where it ends first, also in a gap; then backwards from
    the end, and forwards again (justification). A new order moves a few tasks of the last one, between those that they wait
    for and those that wait for them, and pins some to a lane. It begins, and begins anew, with the orders by upward rank and by
    optimistic costs, and ends early at a schedule that no other can beat. What demand and memory forbid is not looked at, as in
    HEFT. Who listens with ``ad.listen`` hears how far it is (``SearchAdvanced``).

    Sources: Valls, Ballestin and Quintanilla, Justification and RCPSP: a technique that pays, 2005; Kirkpatrick, Gelatt and
    Vecchi, Optimization by simulated annealing, 1983.

    Args:
        budget: seconds of this thread's processor time; what is found depends on the machine then.
        steps: how many orders are tried, whatever time they take: the same plan on every run.
        seed: of the random changes.

    Raises:
        ScheduleError: a budget or a number of steps that is none.
    """

    budget: float | None = None
    steps: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise ScheduleError(f"search: budget must be seconds above 0, got {self.budget!r}")
        if self.steps is not None and (type(self.steps) is not int or self.steps < 1):
            raise ScheduleError(f"search: steps must be a whole number of at least 1, got {self.steps!r}")

    def __call__(self, tasks: Tasks, machine: Machine) -> Plan:
        """The plan for these tasks on this machine."""
        began = thread_time()
        steps = self.steps if self.steps or self.budget else max(1, min(STEPS, TASKS // max(len(tasks), 1)))

        def spent(step: int) -> float:
            """How much of the budget is gone, from 0 to 1."""
            by_steps = step / steps if steps is not None else 0.0
            return max(by_steps, (thread_time() - began) / self.budget if self.budget is not None else 0.0)

        if not len(tasks):
            return Plan([])
        problem = _Problem(tasks, machine)
        return problem.plan(_shortest(problem, _first_orders(tasks, machine), spent, Random(self.seed)))


def _first_orders(tasks: Tasks, machine: Machine) -> list[list[int]]:
    """The orders to begin with: by upward rank, and in which PEFT's tasks start."""
    position = {task: place for place, task in enumerate(tasks.order)}
    orders = []
    for ranks in (plans.upward_ranks(tasks, machine), plans.peft(tasks, machine).priorities):
        first = [0.0] * len(tasks)  # a task never comes before one that it waits for, also where ranks are equal
        for task in tasks.order:
            first[task] = max([-ranks[task], *(first[before] for before in tasks.predecessors[task])])
        orders.append(sorted(range(len(tasks)), key=lambda task: (first[task], position[task])))
    return orders


# ------------------------------------------------------------------------------------------------------------- the search


@dataclass(slots=True)
class _Schedule:
    """A schedule as it was laid out."""

    order: list[int]  # in which the tasks were put, each after those that it waits for
    length: float
    starts: list[float]
    ends: list[float]
    lanes: list[int]


def _shortest(
    problem: _Problem, orders: Sequence[list[int]], spent: Callable[[int], float], random: Random
) -> _Schedule:
    """Simulated annealing over orders and pinned lanes. Each round begins at the next of the first orders."""
    first = sorted(((problem.justified(order, {}), order) for order in orders), key=lambda one: one[0].length)
    best, step, begun, said, hear = first[0][0], len(orders), -1, -1, events.receiver()
    while best.length > problem.bound and (gone := spent(step)) < 1:
        step += 1
        cooled, number = math.modf(ROUNDS * gone)
        if begun != number:
            begun = int(number)
            (current, order), pins = first[begun % len(first)], dict[int, int]()
        changed, pinned = problem.changed(order, pins, random)
        tried = problem.justified(changed, pinned)
        longer = tried.length - current.length
        if longer <= 0 or random.random() < math.exp(-longer / (WARM * best.length * (1 - cooled) ** 2 + 1e-12)):
            current, order, pins = tried, changed, pinned
        if tried.length < best.length:
            best = tried
        if hear is not None and (tried is best or int(TOLD * gone) > said):
            said = int(TOLD * gone)
            hear(events.SearchAdvanced(step, gone, best.length))
    return best


@dataclass(slots=True)
class _Problem:
    """Tasks and a machine as plain numbers, and how an order is laid out."""

    tasks: Tasks
    machine: Machine
    durations: list[list[float]] = field(init=False)
    able: list[list[int]] = field(init=False)  # the lanes that can run each task
    before: list[list[tuple[int, float]]] = field(init=False)  # what a task waits for, and the bytes that travel
    after: list[list[tuple[int, float]]] = field(init=False)
    travel: dict[float, list[list[float]]] = field(init=False)  # by bytes: from lane to lane
    lanes: int = field(init=False)
    alike: bool = field(init=False)
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        layout = plans.Layout(self.tasks, self.machine)
        tasks, self.durations, self.lanes = self.tasks, layout.duration, len(layout.lanes)
        self.able = [[lane for lane, cost in enumerate(row) if cost < math.inf] for row in self.durations]
        self.before = [[(p, tasks.edge_bytes(p, t)) for p in before] for t, before in enumerate(tasks.predecessors)]
        self.after = [[(s, tasks.edge_bytes(t, s)) for s in after] for t, after in enumerate(tasks.successors)]
        every = range(self.lanes)
        sizes = {size for row in self.before for _, size in row} if self.machine.transfers else set()
        self.travel = {size: [[layout.travel(p, q, size) for q in every] for p in every] for size in sizes}
        self.alike = not self.travel and all(len(set(row)) == 1 for row in self.durations)
        self.bound = self._bound()

    def _bound(self) -> float:
        """What no schedule can beat: the longest way through the tasks, and all work over all lanes."""
        least = [min(row) for row in self.durations]
        ends = [0.0] * len(least)
        for task in self.tasks.order:
            ends[task] = least[task] + max((ends[p] for p, _ in self.before[task]), default=0.0)
        return max(max(ends), sum(least) / self.lanes) * (1 + 1e-12)

    def changed(self, order: list[int], pins: dict[int, int], random: Random) -> tuple[list[int], dict[int, int]]:
        """A few tasks somewhere else: earlier or later in the order, or on a lane of their own."""
        order, pins = list(order), dict(pins)
        for _ in range(1 + int(random.random() * AT_ONCE)):
            task = int(random.random() * len(order))
            if not self.alike and random.random() < PINNED:
                if task in pins and random.random() < 0.5:
                    del pins[task]
                else:
                    pins[task] = random.choice(self.able[task])
                continue
            self._move(order, task, random)
        return order, pins

    def _move(self, order: list[int], task: int, random: Random) -> None:
        """Put one task anywhere after those that it waits for and before those that wait for it."""
        here = order.index(task)
        waits, waited = {p for p, _ in self.before[task]}, {s for s, _ in self.after[task]}
        first = here
        while first and order[first - 1] not in waits:
            first -= 1
        last = here
        while last + 1 < len(order) and order[last + 1] not in waited:
            last += 1
        if last > first:
            order.insert(first + int(random.random() * (last - first + 1)), order.pop(here))

    def justified(self, order: list[int], pins: dict[int, int]) -> _Schedule:
        """The best of three: the order laid out, that schedule pushed to the right, and that one pushed to the left."""
        first = self.laid_out(order, pins, self.before, True)
        right = self.laid_out(_last_end_first(first), pins, self.after, False)
        left = self.laid_out(_last_end_first(right), pins, self.before, True)
        return left if left.length < first.length else first

    def laid_out(
        self, order: list[int], pins: dict[int, int], before: list[list[tuple[int, float]]], forwards: bool
    ) -> _Schedule:
        """Each task of the order where it ends first, in a gap or at the end. Backwards, time runs from the end."""
        durations, able, travel = self.durations, self.able, self.travel
        starts, ends, lane_of = [0.0] * len(order), [0.0] * len(order), [0] * len(order)
        begins: list[list[float]] = [[] for _ in range(self.lanes)]
        finishes: list[list[float]] = [[] for _ in range(self.lanes)]
        for task in order:
            row, best, began, chosen, place = durations[task], math.inf, 0.0, -1, 0
            came = [(ends[p], lane_of[p], travel[size]) for p, size in before[task]] if travel else ()
            earliest = 0.0 if travel else max([ends[p] for p, _ in before[task]], default=0.0)
            for lane in (pins[task],) if task in pins else able[task]:
                if travel:
                    earliest = 0.0
                    for end, source, way in came:
                        arrival = end + (way[source][lane] if forwards else way[lane][source])
                        if arrival > earliest:
                            earliest = arrival
                duration, lane_ends = row[lane], finishes[lane]
                if earliest + duration >= best:
                    continue
                at = bisect_right(lane_ends, earliest)
                start = earliest
                lane_begins = begins[lane]
                while at < len(lane_begins) and start + duration > lane_begins[at]:
                    if lane_ends[at] > start:
                        start = lane_ends[at]
                    at += 1
                if start + duration < best:
                    best, began, chosen, place = start + duration, start, lane, at
            begins[chosen].insert(place, began)
            finishes[chosen].insert(place, best)
            starts[task], ends[task], lane_of[task] = began, best, chosen
        return _Schedule(order, max(ends), starts, ends, lane_of)

    def plan(self, schedule: _Schedule) -> Plan:
        """The schedule's order on each lane, as a plan that an engine can follow."""
        names = [self.machine.resources[self.machine.lanes[lane][0]].name for lane in schedule.lanes]
        previous = [-1] * len(names)
        last: dict[int, int] = {}
        for task in sorted(schedule.order, key=lambda task: (schedule.starts[task], schedule.ends[task])):
            previous[task] = last.get(schedule.lanes[task], -1)
            last[schedule.lanes[task]] = task
        return Plan([-start for start in schedule.starts], names, previous)


def _last_end_first(schedule: _Schedule) -> list[int]:
    """The order to lay a schedule out from its other end; of tasks that end together first the one that was put last."""
    return sorted(reversed(schedule.order), key=lambda task: -schedule.ends[task])
