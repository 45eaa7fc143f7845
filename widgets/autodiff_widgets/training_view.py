"""Training runs side by side: their losses and gradient norms grow step by step, each run with a line and a mark of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from autodiff_lab.events import StepTrained, TrainingStopped

from . import plots, shapes
from .captions import Names, caption, listed, training
from .plots import Axis, Plot, axis_of, run_css
from .questions import in_words
from .routes import Box, Point
from .scene import Change, Pane, Question, Scene
from .steps import Steps
from .subjects import described
from .values import number_text
from .view import View

WIDTH, HEIGHT, LEFT, RIGHT = 380.0, 190.0, 64.0, 22.0  # px: of the area between the axes, and beside it
MARKED = 10  # every so many steps a curve bears its mark
NAMES = Names(str)


class Quantity(NamedTuple):
    """What one pane shows of each step."""

    name: str
    slot: str
    of: Callable[[StepTrained], float]


QUANTITIES = (
    Quantity("loss", "loss", lambda step: step.loss),
    Quantity("gradient norm", "norm", lambda step: step.gradient_norm),
)


class Curve(NamedTuple):
    """One run as it is drawn: its steps, the error that ended it, and which line it has."""

    name: str
    number: int
    steps: tuple[StepTrained, ...]
    stopped: TrainingStopped | None

    @property
    def key(self) -> str:
        """The key of its line in the panes."""
        return f"run.{self.number}"

    @property
    def told(self) -> tuple[StepTrained | TrainingStopped, ...]:
        """Its steps, and the error last."""
        return self.steps if self.stopped is None else (*self.steps, self.stopped)


class TrainingView(View):
    """Loss and gradient norm of up to four training runs, growing step by step.

    Takes what ``training.compare`` or ``training.train`` gives, or the events of training that were heard. An axis is
    logarithmic where its numbers are far apart; what is not finite stands at the top, with its name.

    >>> from autodiff_lab import faults, training
    >>> view = TrainingView(training.compare(training.mlp_on_digits(steps=2), faults.lost_sign("tanh")))
    >>> print(view.frames[0].caption)
    Training of `healthy` and `lost_sign(tanh)`, 2 steps. Step to see loss and gradient norm grow.
    """

    def __init__(self, training: Any, **traits: Any) -> None:
        told = _events_of(training)
        curves = _curves(told)
        panes = [_pane(curves, quantity) for quantity in QUANTITIES]
        title = "Training: " + listed([curve.name for curve in curves])
        facts = {**{curve.key: _run_facts(curve) for curve in curves}, **_step_facts(curves)}
        outcome = getattr(training, "outcome", None)
        super().__init__(Scene(title, tuple(panes), tuple(_steps(curves, outcome).frames), facts), told, **traits)


# -------------------------------------------------------------------------------------------------------------- events


def _events_of(training: Any) -> tuple[StepTrained | TrainingStopped, ...]:
    """The events of training among what was handed over."""
    source = getattr(training, "events", training)
    if isinstance(source, Iterable) and not isinstance(source, str):
        told = tuple(event for event in source if isinstance(event, StepTrained | TrainingStopped))
        if told:
            return told
    raise TypeError(
        f"TrainingView: expected a training.Comparison, a training.Run, or events of training that were heard, got "
        f"{described(training)}; call training.compare(training.mlp_on_digits(), fault)"
    )


def _curves(told: Iterable[StepTrained | TrainingStopped]) -> list[Curve]:
    """The runs in the order in which they began; a name that begins again is another run."""
    runs: list[list[StepTrained | TrainingStopped]] = []
    for event in told:
        mine = next((run for run in reversed(runs) if run[0].run == event.run), None)
        if mine is None or event.step <= mine[-1].step:
            runs.append(mine := [])
        mine.append(event)
    if len(runs) > len(plots.DASHES):
        raise ValueError(f"TrainingView: at most {len(plots.DASHES)} runs can be told apart, got {len(runs)}")
    return [_curve(number, run) for number, run in enumerate(runs)]


def _curve(number: int, told: Sequence[StepTrained | TrainingStopped]) -> Curve:
    steps = tuple(event for event in told if isinstance(event, StepTrained))
    stopped = next((event for event in told if isinstance(event, TrainingStopped)), None)
    return Curve(told[0].run, number, steps, stopped)


def _by_step(curves: Sequence[Curve]) -> dict[int, list[tuple[Curve, StepTrained | TrainingStopped]]]:
    """What each run told in each step, the first step first."""
    pairs = [(curve, event) for curve in curves for event in curve.told]
    steps = sorted({event.step for _, event in pairs})
    told: dict[int, list[tuple[Curve, StepTrained | TrainingStopped]]] = {step: [] for step in steps}
    for curve, event in pairs:
        told[event.step].append((curve, event))
    return told


# --------------------------------------------------------------------------------------------------------------- panes


def _pane(curves: Sequence[Curve], quantity: Quantity) -> Pane:
    """One plot: the names of the runs with their numbers just now, axes, and the curves cut into steps."""
    head = 24.0 + 24.0 * len(curves)
    steps = list(_by_step(curves))
    up = axis_of((quantity.of(step) for curve in curves for step in curve.steps), HEIGHT)
    plot = Plot(Axis(0.0, float(max(steps[-1], 2)), WIDTH), up, (LEFT, head + 24 + HEIGHT))
    scale = ", logarithmic" if up.is_log else ""
    parts = [_line_of(curve, quantity, 22.0 + 24.0 * place) for place, curve in enumerate(curves)]
    parts += plot.frame("step", f"{quantity.name}{scale}")
    drawn: dict[int, str] = dict.fromkeys(steps, "")
    for curve in curves:
        for step, piece in _pieces(curve, quantity, plot):
            drawn[step] += piece
    parts += [_column(step, plot, piece) for step, piece in drawn.items()]
    return Pane(shapes.page(LEFT + WIDTH + RIGHT, head + HEIGHT + 68, parts, "plot"), quantity.name)


def _line_of(curve: Curve, quantity: Quantity, y: float) -> str:
    """A run's line, mark and name, and its number just now."""
    css = run_css(curve.number)
    sample = shapes.line([(16, y - 5), (54, y - 5)], f"edge {css}") + shapes.mark((35, y - 5), curve.number, css)
    name = shapes.heading(shapes.shortened(curve.name, 40), 64, y, "label")
    number = shapes.heading("", LEFT + WIDTH, y, "value", "end", quantity.slot)
    return shapes.group(curve.key, "run", curve.name, sample + name + number)


def _column(step: int, plot: Plot, drawn: str) -> str:
    """A step with the pieces of all curves that come into sight there."""
    width, top = plot.across.length / plot.across.high, plot.corner[1] - plot.up.length - 4
    left = plot.corner[0] + plot.across.place(step) - width / 2
    return shapes.column(f"step.{step}", Box(step, left, top, width, plot.corner[1] - top), f"step {step}", drawn)


def _pieces(curve: Curve, quantity: Quantity, plot: Plot) -> Iterator[tuple[int, str]]:
    """What of one curve comes into sight in which step."""
    numbers = [quantity.of(step) for step in curve.steps]
    steps = [step.step for step in curve.steps]
    points = [plot.point(x, y) if math.isfinite(y) else None for x, y in zip(steps, numbers, strict=True)]
    yield from zip(steps, plots.pieces(points, curve.number), strict=True)
    for place, (step, point) in enumerate(zip(steps, points, strict=True)):
        if point is None:
            yield step, _not_finite(numbers, place, plot.point(step, plot.up.high), curve.number)
        elif place == 0 or step % MARKED == 0:
            yield step, shapes.mark(point, curve.number, run_css(curve.number))
    if curve.stopped is not None:
        middle = plot.point(curve.stopped.step, plot.up.low)[1] - HEIGHT / 2 + 22 * curve.number
        yield curve.stopped.step, _stopped((plot.point(curve.stopped.step, plot.up.low)[0], middle), curve)


def _not_finite(numbers: Sequence[float], place: int, top: Point, number: int) -> str:
    """A number that has no place on the axis: a mark at the top, and its name where it first comes."""
    x, y = top[0], top[1] + 18 * number
    stroke = shapes.line([(x - 2, y - 2), (x + 2, y + 2)], f"edge {run_css(number)}")
    text = number_text(numbers[place])
    is_new = place == 0 or number_text(numbers[place - 1]) != text
    row = 15 if text == "inf" else 32  # infinity is soon followed by what is no number
    return stroke + (shapes.heading(text, x - 2, y + row, "label note") if is_new else "")


def _stopped(at: Point, curve: Curve) -> str:
    cross = shapes.mark(at, 3, run_css(curve.number))
    return cross + shapes.heading("stopped with an error", at[0] + 12, at[1] + 5, "label note")


# -------------------------------------------------------------------------------------------------------------- frames


def _steps(curves: Sequence[Curve], outcome: str | None) -> Steps:
    by_step = _by_step(curves)
    steps = Steps(training.opening([curve.name for curve in curves], len(by_step)))
    for step, told in by_step.items():
        numbers = [_numbers(curve, event) for curve, event in told]
        text = "\n".join(caption(event, NAMES) for _, event in told)
        key, asks = f"step.{step}", _question(told)
        steps.add(text, [Change(key, "done"), *numbers], [Change(key, "active")], question=asks)
    ending = f"`{curves[-1].name}` {outcome}." if outcome else ""
    runs = [training.run_closing(curve.name, [step.loss for step in curve.steps]) for curve in curves]
    steps.add(training.closing(ending, runs))
    return steps


def _question(told: Sequence[tuple[Curve, StepTrained | TrainingStopped]]) -> Question | None:
    """Before a step of the last run: what becomes of its loss?"""
    curve, event = told[-1]
    before = next((step for step in reversed(curve.steps) if step.step < event.step), None)
    if before is None or isinstance(event, TrainingStopped) or not math.isfinite(before.loss):
        return None
    text = training.loss_question(curve.name, event.step)
    return in_words(text, training.loss_answer(before.loss, event.loss), training.LOSSES)


def _numbers(curve: Curve, event: StepTrained | TrainingStopped) -> Change:
    if isinstance(event, TrainingStopped):
        return Change(curve.key, None, {quantity.slot: "stopped" for quantity in QUANTITIES})
    return Change(curve.key, None, {quantity.slot: number_text(quantity.of(event), 4) for quantity in QUANTITIES})


def _run_facts(curve: Curve) -> tuple[tuple[str, str], ...]:
    rows = [("run", curve.name), ("steps", str(len(curve.steps)))]
    if curve.steps:
        norms = [step.gradient_norm for step in curve.steps]
        rows += [(f"{which} loss", number_text(curve.steps[at].loss, 4)) for which, at in (("first", 0), ("last", -1))]
        rows += [(f"{which} gradient norm", number_text(norms[at], 4)) for which, at in (("first", 0), ("last", -1))]
    if curve.stopped is not None:
        rows.append((f"stopped in step {curve.stopped.step}", curve.stopped.reason))
    return tuple(rows)


def _step_facts(curves: Sequence[Curve]) -> dict[str, tuple[tuple[str, str], ...]]:
    return {
        f"step.{step}": tuple(row for curve, event in told for row in _rows(curve, event))
        for step, told in _by_step(curves).items()
    }


def _rows(curve: Curve, event: StepTrained | TrainingStopped) -> list[tuple[str, str]]:
    if isinstance(event, TrainingStopped):
        return [(curve.name, event.reason)]
    return [(f"{curve.name}, {quantity.name}", number_text(quantity.of(event), 4)) for quantity in QUANTITIES]
