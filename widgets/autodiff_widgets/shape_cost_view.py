"""ShapeCostView: what a wrong shape rule costs, a curve for each width over the number of activations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from . import plots, shapes
from .captions import training
from .plots import Axis, Plot, run_css
from .questions import in_words
from .scene import Change, Pane, Question, Scene
from .steps import Steps
from .subjects import described
from .view import View

if TYPE_CHECKING:
    from autodiff_lab.shape_claims import Cost

WIDTH, HEIGHT, LEFT, RIGHT = 440.0, 220.0, 64.0, 22.0  # px: of the area between the axes, and beside it
MOST_WIDTHS = len(plots.DASHES)


class ShapeCostView(View):
    """Time with a wrong shape rule over time with the right one, against activations: one curve for each width of the layer.

    At 1 the wrong rule costs nothing, at 2 it costs half of the speed.

    Args:
        costs: what ``shape_claims.region(…)`` gives, with at most four widths.

    Raises:
        TypeError, ValueError: something else, nothing, or more widths.

    >>> from autodiff_lab import shape_claims
    >>> view = ShapeCostView(shape_claims.region((32, 64), (4096, 16384), estimates=True, loops="blocked"))
    >>> print(view.frames[0].caption)
    What a wrong shape rule of `square` costs for widths 32 and 64. Step through the widths.
    """

    def __init__(self, costs: Iterable[Cost], **traits: Any) -> None:
        found = list(costs)
        if not found or not all(hasattr(cost, "elementwise_ratio") for cost in found):
            raise TypeError(
                f"ShapeCostView: expected costs, got {described(costs)}; pass shape_claims.region((128,), (1 << 14, 1 << 20))"
            )
        by_width = [list(some) for _, some in groupby(sorted(found, key=_place), key=lambda cost: cost.setting.width)]
        if len(by_width) > MOST_WIDTHS:
            raise ValueError(
                f"ShapeCostView: at most {MOST_WIDTHS} widths can be told apart, got {len(by_width)}; take fewer"
            )
        title = f"What a wrong shape rule of {found[0].setting.op} costs"
        facts = {_key(costs): _facts(costs) for costs in by_width}
        super().__init__(Scene(title, (_pane(by_width),), tuple(_steps(by_width).frames), facts), **traits)


def _place(cost: Cost) -> tuple[int, int]:
    return cost.setting.width, cost.setting.activations


def _key(costs: Sequence[Cost]) -> str:
    return f"width.{costs[0].setting.width}"


def _pane(by_width: Sequence[Sequence[Cost]]) -> Pane:
    """The names of the curves, axes with lines at 1 and 2, and the curves."""
    head = 24.0 + 24.0 * len(by_width)
    sizes = [cost.setting.activations for costs in by_width for cost in costs]
    low, high = min(sizes), max(max(sizes), 2 * min(sizes))
    highest = max(2.5, *(1.1 * cost.ratio for costs in by_width for cost in costs))
    across = Axis(float(low), float(high), WIDTH, is_log=True)
    plot = Plot(across, Axis(0.0, highest, HEIGHT), (LEFT, head + 24 + HEIGHT))
    parts = plot.frame("activations, logarithmic", "time with the wrong rule / time with the right one")
    for ratio, text, below in ((1.0, "costs nothing", 16.0), (2.0, "half the speed", -5.0)):
        (x, y), right = plot.point(low, ratio), plot.point(high, ratio)
        parts += [shapes.line([(x, y), right], "axis"), shapes.heading(text, x + 8, y + below, "detail")]
    parts += [_curve(costs, number, plot, 22.0 + 24.0 * number) for number, costs in enumerate(by_width)]
    return Pane(shapes.page(LEFT + WIDTH + RIGHT, head + HEIGHT + 68, parts), "cost of a wrong shape rule")


def _curve(costs: Sequence[Cost], number: int, plot: Plot, y: float) -> str:
    css, name = run_css(number), f"width {costs[0].setting.width}"
    points = [plot.point(cost.setting.activations, cost.ratio) for cost in costs]
    sample = shapes.line([(16, y - 5), (54, y - 5)], f"edge {css}") + shapes.mark((35, y - 5), number, css)
    drawn = "".join(plots.pieces(points, number)) + "".join(shapes.mark(point, number, css) for point in points)
    return shapes.group(_key(costs), "run", name, sample + shapes.heading(name, 64, y, "label") + drawn)


def _steps(by_width: Sequence[Sequence[Cost]]) -> Steps:
    widths = [costs[0].setting.width for costs in by_width]
    steps = Steps(training.cost_opening(by_width[0][0].setting.op, widths))
    for costs in by_width:
        key = _key(costs)
        text = training.cost_caption(costs[0].setting.width, [cost.ratio for cost in costs])
        steps.add(text, [Change(key, "done")], [Change(key, "active")], question=_question(costs, by_width))
    every = [cost for costs in by_width for cost in costs]
    quiet = sum(cost.is_measured for cost in every)
    steps.add(training.cost_closing(len(every), quiet))
    return steps


def _question(costs: Sequence[Cost], by_width: Sequence[Sequence[Cost]]) -> Question | None:
    """Before a width: what does the wrong rule cost? It may be nothing, or what it costs at another width."""
    words = [training.cost_words([cost.ratio for cost in some]) for some in (costs, *by_width)]
    return in_words(training.cost_question(costs[0].setting.width), words[0], [*words[1:], "1", "2", "0.5"])


def _facts(costs: Sequence[Cost]) -> tuple[tuple[str, str], ...]:
    rows = [("width", str(costs[0].setting.width))]
    for cost in costs:
        said = f"{cost.ratio:.2f} ×, elementwise ops alone {cost.elementwise_ratio:.1f} ×; {cost.source}"
        rows.append((f"{cost.setting.activations:,} activations", said))
    return tuple(rows)
