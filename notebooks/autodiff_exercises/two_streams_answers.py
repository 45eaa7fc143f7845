"""Answers to the exercise "two streams" of lesson 110, right and wrong: what its check is tested on."""

from __future__ import annotations

from itertools import pairwise

from autodiff_lab import schedule

from .schedule_properties import Costs, Graph, tasks_of

Answer = tuple[list[list[str]], list[tuple[str, str]]]

# -------------------------------------------------------------------------------------- what a solution can look like


def two_streams(graph, costs):
    """Two streams, each a list of tasks in order, and the pairs (task, later one) of which the later waits for an event."""
    streams, waits = [[], []], []
    free = [0, 0]
    ends = {}
    while len(ends) < len(graph):
        ready = [task for task in graph if task not in ends and all(before in ends for before in graph[task])]
        arrived = {task: max((ends[before] for before in graph[task]), default=0) for task in ready}
        start, number, task = min((max(free[n], arrived[task]), n, task) for n in (0, 1) for task in ready)
        waits += [(before, task) for before in graph[task] if before not in streams[number]]
        streams[number].append(task)
        free[number] = ends[task] = start + costs[task]
    return streams, waits


def by_simulation(graph: Graph, costs: Costs) -> Answer:
    """The lanes of a simulated schedule, the critical path first."""
    timeline = schedule.simulate(tasks_of(graph, costs), 2, "critical_path")
    streams: list[list[str]] = [[], []]
    for span in timeline.spans:
        streams[timeline.lanes[span.task]].append(span.name)
    return streams, _crossings(graph, streams)


def _crossings(graph: Graph, streams: list[list[str]]) -> list[tuple[str, str]]:
    """A wait for each dependency between the streams."""
    second = set(streams[1])
    return [(before, task) for task in graph for before in graph[task] if (before in second) != (task in second)]


# ---------------------------------------------------------------------------------------------------- wrong solutions


def one_stream(graph: Graph, costs: Costs) -> Answer:
    """Everything on the first stream."""
    return [_sorted(graph), []], []


def _sorted(graph: Graph) -> list[str]:
    tasks = tasks_of(graph, dict.fromkeys(graph, 1))
    return [tasks.name(task) for task in tasks.order]


def forward_and_backward(graph: Graph, costs: Costs) -> Answer:
    """Forward on one stream, backward on the other."""
    order = _sorted(graph)
    streams = [[task for task in order if task.startswith("d") == backward] for backward in (False, True)]
    return streams, _crossings(graph, streams)


def no_waits(graph: Graph, costs: Costs) -> Answer:
    """Trusts the streams."""
    return two_streams(graph, costs)[0], []


def only_where_late(graph: Graph, costs: Costs) -> Answer:
    """Waits where the costs say that it would be too early."""
    streams, waits = two_streams(graph, costs)
    ends = _ends(graph, costs, streams, waits)
    before = {later: task for stream in streams for task, later in pairwise(stream)}
    return streams, [(one, task) for one, task in waits if task not in before or ends[one] > ends[before[task]]]


def _ends(graph: Graph, costs: Costs, streams: list[list[str]], waits: list[tuple[str, str]]) -> Costs:
    """When each task ends."""
    after: dict[str, list[str]] = {task: [] for task in graph}
    for stream in streams:
        for task, later in pairwise(stream):
            after[later].append(task)
    for task, later in waits:
        after[later].append(task)
    timeline = schedule.simulate(tasks_of(after, costs), len(graph), "fifo")
    return dict(zip(graph, timeline.ends, strict=True))


def one_event_each(graph: Graph, costs: Costs) -> Answer:
    """A task waits for one event, the first that it needs."""
    streams, waits = two_streams(graph, costs)
    return streams, list({task: (before, task) for before, task in reversed(waits)}.values())


def wrong_way_round(graph: Graph, costs: Costs) -> Answer:
    """The later task first."""
    streams, waits = two_streams(graph, costs)
    return streams, [(task, before) for before, task in waits]


def any_order(graph: Graph, costs: Costs) -> Answer:
    """Sorts each stream by name."""
    streams, waits = two_streams(graph, costs)
    return [sorted(stream) for stream in streams], waits


def a_barrier_each(graph: Graph, costs: Costs) -> Answer:
    """Every task waits for all that were handed over before it on the other stream."""
    order = _sorted(graph)
    streams = [order[::2], order[1::2]]
    return streams, [(order[n - 1], order[n]) for n in range(1, len(order))]


def one_lost(graph: Graph, costs: Costs) -> Answer:
    """Forgets the last task."""
    streams, waits = two_streams(graph, costs)
    return [streams[0][:-1], streams[1]], waits


def in_turn(graph: Graph, costs: Costs) -> Answer:
    """Every other task, in a topological order."""
    order = _sorted(graph)
    streams = [order[::2], order[1::2]]
    return streams, _crossings(graph, streams)


def by_load(graph: Graph, costs: Costs) -> Answer:
    """In a topological order, each task on the stream that has less work; who has to wait does not matter."""
    streams: list[list[str]] = [[], []]
    load = [0.0, 0.0]
    for task in _sorted(graph):
        number = load.index(min(load))
        streams[number].append(task)
        load[number] += costs[task]
    return streams, _crossings(graph, streams)


def the_smallest_alone(graph: Graph, costs: Costs) -> Answer:
    """The cheapest weight gradient on the second stream."""
    alone = min((task for task in graph if task.startswith("dW")), key=lambda task: (costs[task], task))
    streams = [[task for task in _sorted(graph) if task != alone], [alone]]
    return streams, _crossings(graph, streams)
