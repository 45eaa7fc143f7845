"""What is said of training runs, step by step, and of what a wrong shape rule costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autodiff_lab import events

from ..values import number_text
from .sentences import Names, counted, listed, says


@says(events.StepTrained)
def _step_trained(event: events.StepTrained, name: Names) -> str:
    loss, norm = number_text(event.loss, 4), number_text(event.gradient_norm, 4)
    return f"`{event.run}`, step {event.step}: loss {loss}, gradient norm {norm}."


@says(events.TrainingStopped)
def _training_stopped(event: events.TrainingStopped, name: Names) -> str:
    return f"`{event.run}` stops in step {event.step}: {event.reason.rstrip('.')}."


def opening(runs: list[str], steps: int) -> str:
    """How the steps through training runs begin."""
    names = listed([f"`{run}`" for run in runs])
    return f"Training of {names}, {counted(steps, 'step')}. Step to see loss and gradient norm grow."


def run_closing(run: str, losses: Sequence[float]) -> str:
    """How one run ends.

    >>> run_closing("healthy", [2.0, 1.0])
    '`healthy`: loss from 2 to 1 in 2 steps.'
    """
    if not losses:
        return f"`{run}` took no step."
    first, last = number_text(losses[0], 4), number_text(losses[-1], 4)
    return f"`{run}`: loss from {first} to {last} in {counted(len(losses), 'step')}."


def closing(outcome: str, runs: list[str]) -> str:
    """How all runs end; ``outcome`` is what was found of them, if anything was."""
    return " ".join(filter(None, ["Done.", outcome, *runs]))


# ----------------------------------------------------------------------------------------------------------- questions

LOSSES = ("It falls.", "It rises.", "It stays the same.", "It is no longer a finite number.")


def loss_question(run: str, step: int) -> str:
    """Before a step of training: what becomes of the loss?"""
    return f"Step {step} of `{run}` comes next. What becomes of its loss?"


def loss_answer(before: float, after: float) -> str:
    """Which of ``LOSSES`` is true.

    >>> loss_answer(2.0, 1.5), loss_answer(2.0, float("nan"))
    ('It falls.', 'It is no longer a finite number.')
    """
    if not math.isfinite(after):
        return LOSSES[3]
    return LOSSES[0] if after < before else LOSSES[1] if after > before else LOSSES[2]


# ---------------------------------------------------------------------------------------------------- a wrong shape rule


def cost_opening(op: str, widths: list[int]) -> str:
    """How the steps through the costs of a wrong shape rule begin."""
    many = "width" if len(widths) == 1 else "widths"
    return (
        f"What a wrong shape rule of `{op}` costs for {many} {listed(list(map(str, widths)))}. Step through the widths."
    )


def cost_caption(width: int, ratios: Sequence[float]) -> str:
    """What the wrong rule costs at one width."""
    words = cost_words(ratios)
    much = "as long as the right one: 1 times" if words == "1" else f"{words} times as long as the right one"
    return f"At width {width} the wrong rule takes {much}."


def cost_words(ratios: Sequence[float]) -> str:
    """From which ratio to which: ``1.5 to 2``."""
    return " to ".join(dict.fromkeys(number_text(ratio, 3) for ratio in (min(ratios), max(ratios))))


def cost_closing(count: int, quiet: int) -> str:
    """How the steps through the costs end."""
    how = "measured while the machine was quiet. Select a curve to see how each was found."
    return f"{quiet or 'None'} of {counted(count, 'ratio')} {'was' if quiet < 2 else 'were'} {how}"


def cost_question(width: int) -> str:
    """Before a width: what does the wrong rule cost?"""
    return f"Width {width} comes next. How many times as long does the wrong rule take?"
