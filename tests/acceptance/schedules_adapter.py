"""Maps scheduling instances (costs per processor, data on edges, links) onto the public names. No algorithm of its own."""

from __future__ import annotations

from typing import Any

from autodiff_lab import schedule


def policies() -> list[str]:
    return list(schedule.POLICIES)


def machine_of(instance: dict[str, Any]) -> schedule.Machine:
    names = [f"p{p}" for p in range(instance["m"])]
    link = instance["link"] or [[1] * len(names)] * len(names)
    pairs = [(p, q) for p in range(len(names)) for q in range(len(names)) if p != q and instance["comm"]]
    transfers = {(names[p], names[q]): schedule.Transfer(beta=link[p][q]) for p, q in pairs}
    return schedule.Machine(tuple(map(schedule.Resource, names)), transfers)


def tasks_of(instance: dict[str, Any]) -> schedule.Tasks:
    carried = {(i, j): c for i, j, c in instance["comm"] or []}
    return schedule.Tasks(
        schedule.Task(
            name=f"t{task}",
            cost={f"p{p}": cost for p, cost in enumerate(costs)},
            after={f"t{before}": carried.get((before, task), 0) for before in instance["pred"][task]},
        )
        for task, costs in enumerate(instance["w"])
    )


def solve(instance: dict[str, Any], policy: str, budget: float) -> list[tuple[int, int, float, float]]:
    chosen = schedule.searched(budget=budget) if policy == "search" else policy
    timeline = schedule.simulate(tasks_of(instance), machine_of(instance), chosen)
    return [(task, timeline.resource(task), timeline.starts[task], timeline.ends[task]) for task in timeline.order]
