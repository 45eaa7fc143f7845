"""Answers to the exercise "a scheduler for your record", right and wrong: what its check is tested on."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

Slots = list[tuple[Any, int, float]]
Cost = Callable[[Any], float]

# ------------------------------------------------------------------------------------------ what a solution can look like


def plan_nodes(output, cost, workers):
    """Who computes what, and when: a list of (node, worker, begin) for all that was computed for the output."""
    users, nodes = {output: []}, [output]
    for node in nodes:
        for one in node.inputs:
            if one not in users:
                users[one] = []
                nodes.append(one)
            users[one].append(node)
    waits = {node: sum(one.op != "" for one in node.inputs) for node in nodes if node.op}
    ready = [node for node in waits if waits[node] == 0]
    free, running, slots, now = list(range(workers)), [], [], 0.0
    while ready or running:
        while ready and free:
            node, worker = ready.pop(), free.pop()
            slots.append((node, worker, now))
            running.append((now + cost(node), worker, node))
        now = min(end for end, _worker, _node in running)
        ended = [one for one in running if one[0] == now]
        running = [one for one in running if one[0] > now]
        for _end, worker, node in ended:
            free.append(worker)
            for user in users[node]:
                waits[user] -= 1
                if waits[user] == 0:
                    ready.append(user)
    return slots


def all_nodes(output: Any) -> list[Any]:
    """All that is computed for the output, each node after its inputs."""
    order: list[Any] = []
    entered = set()
    stack = [(output, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in entered:
            entered.add(node)
            stack += [(node, True), *((one, False) for one in node.inputs)]
    return [node for node in order if node.op]


def by_ends(output: Any, cost: Cost, workers: int) -> Slots:
    """Two heaps: what is ready, the longest first, and what ends next."""
    nodes = all_nodes(output)
    users: dict[Any, list[Any]] = {node: [] for node in nodes}
    missing: dict[Any, set[Any]] = {}
    for node in nodes:
        missing[node] = {one for one in node.inputs if one.op}
        for one in missing[node]:
            users[one].append(node)
    number = {node: place for place, node in enumerate(nodes)}
    ready = [(-cost(node), number[node]) for node in nodes if not missing[node]]
    heapify(ready)
    free, running, slots, now = list(range(workers)), [], [], 0.0
    while ready or running:
        while ready and free:
            place = heappop(ready)[1]
            slots.append((nodes[place], free.pop(0), now))
            heappush(running, (now + cost(nodes[place]), place, slots[-1][1]))
        now = running[0][0]
        while running and running[0][0] == now:
            _end, place, worker = heappop(running)
            free.append(worker)
            for user in users[nodes[place]]:
                missing[user].remove(nodes[place])
                if not missing[user]:
                    heappush(ready, (-cost(user), number[user]))
    return slots


# -------------------------------------------------------------------------------------------------------- wrong solutions


def one_after_the_other(output: Any, cost: Cost, workers: int) -> Slots:
    """A topological order, on one worker."""
    slots, now = [], 0.0
    for node in all_nodes(output):
        slots.append((node, 0, now))
        now += cost(node)
    return slots


def without_workers(output: Any, cost: Cost, workers: int) -> Slots:
    """As soon as the inputs are there, worker or not."""
    ends: dict[Any, float] = {}
    slots: Slots = []
    for node in all_nodes(output):
        begin = max((ends[one] for one in node.inputs if one.op), default=0.0)
        slots.append((node, len(slots) % workers, begin))
        ends[node] = begin + cost(node)
    return slots


def one_input_is_enough(output: Any, cost: Cost, workers: int) -> Slots:
    """Waits for the input that is there first."""
    ends: dict[Any, float] = {}
    free = [0.0] * workers
    slots: Slots = []
    for node in all_nodes(output):
        worker = min(range(workers), key=lambda one: free[one])
        arrived = min((ends[one] for one in node.inputs if one.op), default=0.0)
        begin = max(arrived, free[worker])
        slots.append((node, worker, begin))
        ends[node] = free[worker] = begin + cost(node)
    return slots


def level_by_level(output: Any, cost: Cost, workers: int) -> Slots:
    """A round begins when the whole round before it has ended."""
    level: dict[Any, int] = {}
    for node in all_nodes(output):
        level[node] = 1 + max((level[one] for one in node.inputs if one.op), default=0)
    rounds: dict[int, list[Any]] = {}
    for node, number in level.items():
        rounds.setdefault(number, []).append(node)
    slots: Slots = []
    now = 0.0
    for number in sorted(rounds):
        free = [now] * workers
        for node in rounds[number]:
            worker = min(range(workers), key=lambda one: free[one])
            slots.append((node, worker, free[worker]))
            free[worker] += cost(node)
        now = max(free)
    return slots


def in_turn(output: Any, cost: Cost, workers: int) -> Slots:
    """The nodes in a topological order; who has to wait keeps all others waiting."""
    ends: dict[Any, float] = {}
    free = [0.0] * workers
    slots: Slots = []
    last = 0.0
    for node in all_nodes(output):
        worker = min(range(workers), key=lambda one: free[one])
        arrived = max((ends[one] for one in node.inputs if one.op), default=0.0)
        last = max(arrived, free[worker], last)
        slots.append((node, worker, last))
        ends[node] = free[worker] = last + cost(node)
    return slots


def leaves_are_work(output: Any, cost: Cost, workers: int) -> Slots:
    """Gives the inputs a slot, too."""
    leaves: dict[Any, None] = {}
    for node in all_nodes(output):
        leaves.update({one: None for one in node.inputs if not one.op})
    return [(one, 0, 0.0) for one in leaves] + plan_nodes(output, cost, workers)


def double_edges_lost(output: Any, cost: Cost, workers: int) -> Slots:
    """Counts two edges before and one afterwards, so who uses a value twice waits for ever."""
    hangs: dict[Any, bool] = {}
    for node in all_nodes(output):
        computed = [one for one in node.inputs if one.op]
        hangs[node] = len(set(computed)) < len(computed) or any(hangs[one] for one in computed)
    return [slot for slot in plan_nodes(output, cost, workers) if not hangs[slot[0]]]


def recursive(output: Any, cost: Cost, workers: int) -> Slots:
    """Finds the nodes by calling itself."""
    found: dict[Any, None] = {}

    def visit(node: Any) -> None:
        for one in node.inputs:
            if one not in found:
                visit(one)
        found[node] = None

    visit(output)
    return plan_nodes(output, cost, workers)


def every_path(output: Any, cost: Cost, workers: int) -> Slots:
    """Finds the nodes along every path."""
    waiting, found = [output], {}
    while waiting:
        node = waiting.pop()
        found[node] = None
        waiting += node.inputs
    return plan_nodes(output, cost, workers)


def names_only(output: Any, cost: Cost, workers: int) -> Any:
    """Gives nodes without workers and times."""
    return [slot[0] for slot in plan_nodes(output, cost, workers)]


def ends_for_begins(output: Any, cost: Cost, workers: int) -> Slots:
    """Says when each node is done."""
    return [(node, worker, begin + cost(node)) for node, worker, begin in plan_nodes(output, cost, workers)]


def from_worker_one(output: Any, cost: Cost, workers: int) -> Slots:
    """Counts workers from 1."""
    return [(node, worker + 1, begin) for node, worker, begin in plan_nodes(output, cost, workers)]
