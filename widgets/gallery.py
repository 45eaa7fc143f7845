"""The gallery: a page with every view on real graphs, and pictures of some for the README: ``python widgets/gallery.py``.

``--pictures`` also photographs the page in Chromium, light and dark, into ``widgets/pictures``.
"""

from __future__ import annotations

import argparse
import linecache
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "widgets")]

import autodiff_widgets as aw  # noqa: E402
from autodiff_widgets.export import rules  # noqa: E402
from autodiff_widgets.notebook_page import code_colours  # noqa: E402
from autodiff_widgets.pages import INSIDES, TRAITS, embed, page, place, write  # noqa: E402
from autodiff_widgets.view import View  # noqa: E402
from pygments import highlight  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402
from pygments.lexers import PythonLexer  # noqa: E402

PAGE, PICTURES = ROOT / "build" / "gallery" / "index.html", ROOT / "widgets" / "pictures"

# What every entry may use. It stands on the page above them.
BEFORE = """\
import numpy as np
import autodiff_lab as ad
import autodiff_widgets as aw
from autodiff_lab import faults, ops, schedule, shape_claims, training


def block(x, w):
    h = x * w
    t = ops.tanh(h)
    return t * t + h


def network(w, b, x, target):
    with ad.name_scope("layer"):
        h = ops.tanh(x @ w + b)
    with ad.name_scope("loss"):
        e = h - target
        return (e * e).mean()


def watched(f, *numbers):
    with aw.live() as view:
        f(*(ad.tensor(number, requires_grad=True) for number in numbers)).backward()
    return view


random = np.random.default_rng(0)
w, b, x, target = random.normal(size=(3, 3)), np.zeros(3), np.ones((4, 3)), np.zeros((4, 3))
joint = ad.record(ad.value_and_grad(network, argnums=(0, 1)), w, b, x, target)
tasks = schedule.from_graph(joint)
"""


@dataclass(frozen=True)
class Entry:
    """One view: its name, the code that makes it, a sentence about it, and the step that its picture shows, if it has one."""

    name: str
    code: str
    about: str
    step: int | None = None


ENTRIES = (
    Entry("GraphView", "aw.GraphView(joint, inputs=[w, b, x, target])",
          "A graph as it was recorded: forward on the left, backward on the right, and between them what backward reuses. "
          "A click on a scope's name folds it into one box; a double click on an op opens it."),
    Entry("TopologicalOrderView", 'aw.TopologicalOrderView(joint, "kahn")',
          "An order is made: which node is ready, which is taken next, and why it may not be taken earlier."),
    Entry("GradientFlowView", "aw.GradientFlowView(block, 2.0, 0.5, memory=True)",
          "The forward pass, then the sweep back: each gradient grows contribution by contribution, with its number.", 13),
    Entry("OpView", 'aw.OpView("matmul", [[0.5, 1.0]], [[2.0], [0.25]])',
          "One op with its arrays number by number: point at a number to see what it was computed from, and the formula with "
          "its numbers."),
    Entry("ForwardModeView", 'aw.ForwardModeView(block, 2.0, 0.5, seed="all")',
          "Forward mode: a tangent travels along with each value, one pass for each input."),
    Entry("ShapeInferenceView", 'aw.ShapeInferenceView(joint)',
          "Shapes travel through the graph before any number is there; a size may stay unknown."),
    Entry("FusionView", "aw.FusionView(joint)",
          "Which ops become one kernel, in which order that is decided, and the reason for each pair that stays apart.", 20),
    Entry("PlanView", "aw.PlanView(ad.plan(joint))",
          "The graph as a list of kernel calls, and which buffer holds which value when."),
    Entry("RegistrationView", 'aw.RegistrationView("mul")',
          "What registering an op tells the framework, and who reads each part of it."),
    Entry("OpCard", 'aw.OpCard("tanh")', "All that is known of one op, on a card."),
    Entry("DispatchView", 'aw.DispatchView("matmul", dtypes="float32", device="sim:0")',
          "Which kernel is found for a device and a dtype, and where it was looked for."),
    Entry("ReadyQueueView", 'aw.ReadyQueueView(tasks, 2, "critical_path")',
          "A scheduler at work: what waits, what is ready, and which task the policy takes next."),
    Entry("TimelineView",
          'aw.TimelineView(schedule.simulate(tasks, 2, "in_order"), schedule.simulate(tasks, 2, "critical_path"))',
          "The same tasks by two policies on one axis: who ran when, and why a worker was idle.", 9),
    Entry("MemoryView", 'aw.MemoryView(schedule.simulate(tasks, 2, "critical_path"))',
          "How many bytes live over time, what the peak is made of, and what could be freed."),
    Entry("TrainingView", 'aw.TrainingView(training.compare(training.mlp_on_digits(), faults.lost_sign("cross_entropy")))',
          "Two trainings from the same numbers, one of them with a bug."),
    Entry("ShapeCostView",
          'aw.ShapeCostView(shape_claims.region((32, 64), (1 << 14, 1 << 17, 1 << 20), estimates=True, loops="blocked"))',
          "What a wrong shape rule costs: where fusing by it is worth it, and where it is not."),
    Entry("LiveView", "watched(block, 2.0, 0.5)",
          "What code does with Tensors, drawn while it runs: each op call as it is made, each gradient as it arrives."),
    Entry("Workbench", 'aw.Workbench("x * w + b", {"x": 2.0})',
          "An editor beside two linked views: change the code, a value, the policy or a fault, and both follow. "
          "The controls need a notebook; the views step here too."),
    Entry("Explanation", "aw.explain(block, 2.0, 0.5)",
          "All that one line, `loss.backward()`, sets off, from the graph to the timeline, in linked views."),
)  # fmt: skip


def exported() -> set[str]:
    """The classes of views that a notebook can make."""
    kinds = {name: getattr(aw, name) for name in aw.__all__}
    return {name for name, kind in kinds.items() if isinstance(kind, type)} - {"View"}


def gallery(entries: Sequence[Entry] = ENTRIES) -> str:
    """The page.

    Raises:
        LookupError: an exported class of views has no entry.
    """
    if forgotten := exported() - {entry.name for entry in entries}:
        raise LookupError(f"the gallery has no entry for {', '.join(sorted(forgotten))}: add one to ENTRIES")
    names: dict[str, Any] = {}
    linecache.cache["<gallery>"] = (
        len(BEFORE),
        None,
        BEFORE.splitlines(keepends=True),
        "<gallery>",
    )  # lines of code are shown
    exec(compile(BEFORE, "<gallery>", "exec"), names)
    views: list[View] = []
    sections = [_section(entry, eval(entry.code, names), views) for entry in entries]
    players = [{"scene": view.scene.as_json(), **{name: getattr(view, name) for name in TRAITS}} for view in views]
    embed(players, lambda number, key: views[number].inside_as_json(key), INSIDES)
    contents = "".join(f'<li><a href="#{entry.name}">{entry.name}</a></li>' for entry in entries)
    before = f"<details><summary>The code before it</summary>{_code(BEFORE)}</details>"
    head = f"<h1>Gallery</h1>\n<p>{INTRO}</p>\n<ul class=contents>{contents}</ul>\n{before}\n"
    body = f'<body class="autodiff-page"><main>\n{head}{"".join(sections)}</main>\n'
    return page("Autodiff Lab: gallery", body, players, rules("notebook_page.css") + code_colours())


INTRO = (
    "Every view of the lab, on small real graphs. Step with the buttons or the arrow keys; select a node, and it is selected "
    "in all views that show it. Nothing here was drawn by hand: each view shows the events of the run that its line of code "
    "started."
)


def _code(text: str) -> str:
    return str(highlight(text, PythonLexer(), HtmlFormatter()))


def _section(entry: Entry, made: Any, views: list[View]) -> str:
    """The part of the page for one entry; its views are added to ``views``."""
    shown = getattr(made, "views", (made,))
    places = "\n".join(place(len(views) + number, "") for number in range(len(shown)))
    views += shown
    about = re.sub("`(.+?)`", r"<code>\1</code>", escape(entry.about))
    return (
        f'<section id="{entry.name}"><h2>{entry.name}</h2>\n<p>{about}</p>\n{_code(entry.code)}\n{places}\n</section>\n'
    )


def photograph(path: Path, folder: Path, entries: Sequence[Entry] = ENTRIES) -> list[Path]:
    """Pictures of the entries that have a step, light and dark, at that step."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    taken = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            size = {"width": 1360, "height": 900}
            sheet = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            sheet.goto(path.resolve().as_uri())
            for entry in entries:
                if entry.step is None:
                    continue
                player = sheet.locator(f"#{entry.name} .autodiff-player")
                player.get_by_label("Step", exact=True).fill(str(entry.step))
                sheet.evaluate("document.activeElement.blur()")
                sheet.wait_for_timeout(200)  # scrolling to what is active
                name = re.sub(r"(?<=.)([A-Z])", r"_\1", entry.name.removesuffix("View")).lower()
                taken.append(folder / f"{name}_{scheme}.png")
                player.screenshot(path=taken[-1])
        browser.close()
    return taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page, and the pictures where they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (default: build/gallery/index.html)")
    parser.add_argument(
        "--pictures", action="store_true", help="also photograph it into widgets/pictures; needs Chromium"
    )
    chosen = parser.parse_args(arguments)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    print(write(chosen.out, gallery()))
    if chosen.pictures:
        print(*photograph(chosen.out, PICTURES), sep="\n")


if __name__ == "__main__":
    main()
