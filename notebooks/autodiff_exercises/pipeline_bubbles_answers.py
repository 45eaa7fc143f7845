"""Answers to the exercise "pipeline bubble" of lesson 110, right and wrong: what its check is tested on."""

from __future__ import annotations

from autodiff_lab import schedule

# -------------------------------------------------------------------------------------- what a solution can look like


def pipeline_bubble(stages, micro_batches, forward, backward):
    """The part of the stages' time in which they do nothing."""
    useful = micro_batches * (forward + backward)
    waiting = (stages - 1) * (forward + backward)
    return waiting / (useful + waiting)


def by_simulation(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Looks at a schedule."""
    devices = [f"gpu{stage}" for stage in range(stages)]
    step = schedule.training_step(
        stages, micro_batches, forward=forward, dx=backward, dw=0.0, splits=False, devices=devices
    )
    return 1 - schedule.simulate(step, schedule.pipeline(stages), "backward_first").utilisation


def by_steps(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Counts in the table of stages and steps, once for forward; backward has the same table."""
    steps = micro_batches + stages - 1
    idle = sum(not 0 <= step - stage < micro_batches for stage in range(stages) for step in range(steps))
    return idle / (stages * steps)


# ---------------------------------------------------------------------------------------------------- wrong solutions


def of_the_work(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Idle time as a part of the work."""
    return (stages - 1) / micro_batches


def a_step_too_many(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Filling takes as many steps as there are stages."""
    return stages / (micro_batches + stages)


def no_pipeline(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """One stage at a time."""
    return 1 - 1 / stages


def the_used_part(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """How much is used."""
    return micro_batches / (micro_batches + stages - 1)


def fills_twice(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Two passes, two bubbles, and the work counted once."""
    return 2 * (stages - 1) / (micro_batches + 2 * (stages - 1))


def only_backward_waits(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Nobody waits in the forward pass."""
    waiting = (stages - 1) * backward
    return waiting / (micro_batches * (forward + backward) + waiting)


def in_seconds(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """How long a stage does nothing."""
    return (stages - 1) * (forward + backward)


def in_per_cent(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """Of a hundred."""
    return 100 * pipeline_bubble(stages, micro_batches, forward, backward)


def many_micro_batches(stages: int, micro_batches: int, forward: float, backward: float) -> float:
    """The last stages' wait is forgotten."""
    return (stages - 1) / (micro_batches + stages)
