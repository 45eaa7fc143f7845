"""Answers to the exercise "place the ops" of lesson 90, right and wrong: what its check is tested on."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

Costs = list[dict[str, float]]  # for each op the seconds on each device that has a kernel for it
Plan = list[str]

# -------------------------------------------------------------------------------------- what a solution can look like


def place_ops(costs, travel):
    """A device for each op of a chain, so that the whole takes as short as possible."""
    best = {"cpu": (0.0, [])}  # where the value is -> seconds so far, and the devices on the way
    for kernels in costs:
        reached = {}
        for device, seconds in kernels.items():
            came_from = min(best, key=lambda place: best[place][0] + (travel if place != device else 0))
            spent, plan = best[came_from]
            spent += seconds + (travel if came_from != device else 0)
            reached[device] = (spent, [*plan, device])
        best = reached
    last = min(best, key=lambda place: best[place][0] + (travel if place != "cpu" else 0))
    return best[last][1]


def seconds_of(plan: Plan, costs: Costs, travel: float, leaves: bool = True, comes_back: bool = True) -> float:
    """How long a plan takes; without the first way to the GPU or the last way back, if so asked."""
    places = [*(["cpu"] if leaves else []), *plan, *(["cpu"] if comes_back else [])]
    moves = sum(one != other for one, other in pairwise(places))
    return sum(kernels[device] for kernels, device in zip(costs, plan, strict=True)) + travel * moves


def from_the_end(costs: Costs, travel: float) -> Plan:
    """For each place of the value: how long does the rest take, and where does it go next?"""
    rest = {"cpu": 0.0, "gpu": travel}
    choices: list[dict[str, str]] = []
    for kernels in reversed(costs):
        ways = {
            place: {device: seconds + rest[device] + travel * (place != device) for device, seconds in kernels.items()}
            for place in ("cpu", "gpu")
        }
        choices.append({place: min(way, key=way.__getitem__) for place, way in ways.items()})
        rest = {place: min(way.values()) for place, way in ways.items()}
    plan, place = [], "cpu"
    for choice in reversed(choices):
        place = choice[place]
        plan.append(place)
    return plan


# ---------------------------------------------------------------------------------------------------- wrong solutions


def fastest_each(costs: Costs, travel: float) -> Plan:
    """Each op where it is fastest."""
    return [min(kernels, key=kernels.__getitem__) for kernels in costs]


def all_on_the_gpu(costs: Costs, travel: float) -> Plan:
    """The GPU is there to be used."""
    return ["gpu" if "gpu" in kernels else "cpu" for kernels in costs]


def all_on_the_cpu(costs: Costs, travel: float) -> Plan:
    """Never moves anything."""
    return ["cpu"] * len(costs)


def short_sighted(costs: Costs, travel: float) -> Plan:
    """Goes where this op ends first."""
    plan, place = [], "cpu"
    for kernels in costs:
        ends = {device: seconds + travel * (device != place) for device, seconds in kernels.items()}
        place = min(ends, key=ends.__getitem__)
        plan.append(place)
    return plan


def three_at_a_time(costs: Costs, travel: float) -> Plan:
    """The best for three ops, and for the three after them."""
    plan: Plan = []
    for place in range(0, len(costs), 3):
        plan += place_ops(costs[place : place + 3], travel)
    return plan


def _best(costs: Costs, travel: float, **ways: bool) -> Plan:
    """The best plan for a few ops, where some way is forgotten."""
    return min(map(list, product(*costs)), key=lambda plan: seconds_of(plan, costs, travel, **ways))


def without_the_way_back(costs: Costs, travel: float) -> Plan:
    """The result stays where it is."""
    if len(costs) > 12:
        return place_ops(costs, travel)
    return _best(costs, travel, comes_back=False)


def without_the_way_there(costs: Costs, travel: float) -> Plan:
    """The data are on the GPU already."""
    if len(costs) > 12:
        return place_ops(costs, travel)
    return _best(costs, travel, leaves=False)


def every_placement(costs: Costs, travel: float) -> Plan:
    """Tries all."""
    return _best(costs, travel)


def one_stretch(costs: Costs, travel: float) -> Plan:
    """To the GPU once and back once."""
    plans = [all_on_the_cpu(costs, travel)]
    for start in range(len(costs)):
        for stop in range(start + 1, len(costs) + 1):
            if all("gpu" in kernels for kernels in costs[start:stop]):
                plans.append(["cpu"] * start + ["gpu"] * (stop - start) + ["cpu"] * (len(costs) - stop))
    return min(plans, key=lambda plan: seconds_of(plan, costs, travel))


def without_asking_for_kernels(costs: Costs, travel: float) -> Plan:
    """Every op runs on the GPU."""
    return ["gpu"] * len(costs)


def how_long(costs: Costs, travel: float) -> Any:
    """The seconds of the best plan."""
    return seconds_of(place_ops(costs, travel), costs, travel)
