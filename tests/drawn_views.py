"""One view of every exported class on a real graph, as the code of a notebook's cell: a notebook and a page of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import autodiff_widgets as aw
from autodiff_widgets.view import View

import autodiff_lab as ad
from tests.notebook_file import notebook_of

IMPORTS = """import autodiff_lab as ad
import autodiff_widgets as aw
from autodiff_lab import shape_claims
from autodiff_lab.events import StepTrained
from tests.drawn_graphs import diamond, expression, mlp_arguments, mlp_loss
from tests.drawn_ops import with_kernels
from tests.drawn_schedules import GRAPH, TIMELINES
from tests.drawn_views import watched
from tests.hand_written import scene"""

ALL_SHOWN = (
    "() => [...document.querySelectorAll('[data-scene]')].every((place) => place.querySelector('.counter')?.value)"
)

# By class; the first five show one graph, so that they select together.
CODE = {
    "GraphView": "aw.GraphView(GRAPH)",
    "TopologicalOrderView": "aw.TopologicalOrderView(GRAPH, 'kahn')",
    "ShapeInferenceView": "aw.ShapeInferenceView(GRAPH)",
    "FusionView": "aw.FusionView(GRAPH)",
    "PlanView": "aw.PlanView(ad.plan(GRAPH))",
    "GradientFlowView": "aw.GradientFlowView(mlp_loss, *mlp_arguments())",
    "ForwardModeView": "aw.ForwardModeView(expression, 0.5, 3.0, 1.0, seed='all')",
    "ReadyQueueView": "aw.ReadyQueueView(GRAPH, 2, 'fifo')",
    "TimelineView": "aw.TimelineView(TIMELINES['a pipeline']())",
    "MemoryView": "aw.MemoryView(TIMELINES['micro-batches']())",
    "TrainingView": "aw.TrainingView([StepTrained(run, i, 2 / i, 1.0) for run in ('good', 'bad') for i in (1, 2, 3)])",
    "RegistrationView": "aw.RegistrationView('mul')",
    "OpCard": "aw.OpCard('mul')",
    "OpView": "aw.OpView('matmul', [[0.5, 1.0]], [[2.0], [0.25]])",
    "DispatchView": "aw.DispatchView(with_kernels(), dtypes='float32')",
    "ShapeCostView": "aw.ShapeCostView(shape_claims.region((32,), (1 << 12,), estimates=True, loops='blocked'))",
    "LiveView": "watched(expression, 0.5, 3.0, 1.0)",
    "Workbench": "aw.Workbench('x * w + b', {'x': 2.0})",
    "Explanation": "aw.explain(diamond, 0.3)",
    "View": "aw.View(scene())",
}


def watched(f: Callable[..., Any], *numbers: float) -> aw.LiveView:
    """What a forward and a backward pass looked like."""
    view = aw.LiveView()  # which a `with` block would show too
    view.begin({})
    f(*(ad.tensor(number, requires_grad=True) for number in numbers)).backward()
    view.end()
    return view


def exported() -> set[str]:
    """The names of the classes of views that there are."""
    return {name for name in aw.__all__ if isinstance(getattr(aw, name), type)}


def players(shown: Any) -> tuple[View, ...]:
    """The views that one cell shows: some have several."""
    return (shown,) if isinstance(shown, View) else tuple(shown.views)


def names_of_code() -> dict[str, Any]:
    """The names that the code uses."""
    names: dict[str, Any] = {}
    exec(IMPORTS, names)
    return names


def every_view() -> Iterator[View]:
    """All of them, in this order."""
    names = names_of_code()
    with ad.registry.restored():
        for code in CODE.values():
            yield from players(eval(code, names))


def page_of_every_view(folder: Path) -> Path:
    """A page that shows them all."""
    first, *others = every_view()
    return first.save_html(folder / "every_view.html", *others)


def notebook_of_every_view(folder: Path) -> Path:
    """A notebook with a cell for each; ``VIEWS`` are all, and ``SHOWN[name]`` are those of a class."""
    show = [f"shown = {code}\nSHOWN[{name!r}] = players(shown)\nshown" for name, code in CODE.items()]
    last = "VIEWS = [view for views in SHOWN.values() for view in views]"
    sources = [f"{IMPORTS}\nfrom tests.drawn_views import players\nSHOWN = {{}}", *show, last]
    return notebook_of(folder / "every_view.ipynb", sources)
