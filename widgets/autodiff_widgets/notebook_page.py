"""A whole executed notebook as one HTML file with living pictures: ``jupyter nbconvert --to autodiff_lab_html FILE``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any

from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import ExecutePreprocessor, Preprocessor
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter
from traitlets import Bool, Int, default
from traitlets.config import Config

from .export import rules
from .pages import INSIDES, TRAITS, Player, embed, page, place, unpacked

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
REFERENCE = "IPY_MODEL_"  # how the state of a box names its children
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/latex", "text/plain"]
_TO_NOTEBOOK = re.compile(r'(<a\b[^<>]*\bhref="[^":<>]*)\.ipynb\b')  # a link to a notebook beside this one

# Before its kernel ends, the notebook's views are asked what is inside their elements.
_ASK = """
import sys
if "autodiff_widgets.view" in sys.modules:
    sys.modules["autodiff_widgets.view"].send_insides({budget})
"""


class Execution(ExecutePreprocessor):
    """Runs the notebook where ``--execute`` asks for it, and lets the views send what is inside their elements."""

    insides = Int(INSIDES).tag(config=True)

    @contextmanager
    def setup_kernel(self, **kwargs: Any) -> Iterator[None]:
        """A kernel for a ``with`` block; after its last cell one more runs that does not stay in the notebook."""
        with super().setup_kernel(**kwargs):
            yield
            ask = NotebookNode(cell_type="code", metadata={}, outputs=[])  # type: ignore[no-untyped-call]
            ask.source = _ASK.format(budget=self.insides)
            self.nb.cells.append(ask)
            try:
                self.execute_cell(ask, len(self.nb.cells) - 1, store_history=False)
            finally:
                self.nb.cells.pop()


class LivingPictures(Preprocessor):
    """Puts a place for a player where a cell shows a widget whose state has a scene; the players go to ``resources``."""

    enabled = Bool(True).tag(config=True)
    insides = Int(INSIDES).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """The notebook with places for players, and the resources with the ``players``."""
        models = nb.metadata.pop("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
        players: list[Player] = []
        for cell in nb.cells:
            for output in cell.get("outputs", ()):
                _place_players(output.get("data", {}), models, players)
        embed(players, lambda number, key: players[number]["inner"].get(key), self.insides)
        resources["players"] = players
        return nb, resources


def _place_players(data: dict[str, Any], models: Mapping[str, Any], players: list[Player]) -> None:
    """Replace what an output shows by places for the players of its widget, if it has some."""
    parts = list(_parts(data.get(WIDGET_VIEW, {}).get("model_id"), models))
    if any(isinstance(part, dict) for part in parts):
        text = escape(str(data.get("text/plain", "")))
        shown = [f"<noscript><pre>{text}</pre></noscript>"]
        for part in parts:
            shown.append(part if isinstance(part, str) else place(len(players), ""))
            if isinstance(part, dict):
                players.append(part)
        data.clear()
        data["text/html"] = "\n".join(shown)


def _parts(model: str | None, models: Mapping[str, Any]) -> Iterator[Player | str]:
    """The players of a widget, or of the widgets in a box, with the HTML between them."""
    state = models.get(model or "", {}).get("state", {})
    if "scene" in state:
        packed = {name: unpacked(state[name]) for name in ("scene", "inner")}
        yield {**packed, **{name: state.get(name) for name in TRAITS}}
    elif models.get(model or "", {}).get("model_name") == "HTMLModel":
        yield str(state.get("value", ""))
    for child in state.get("children", ()):
        yield from _parts(child.removeprefix(REFERENCE), models)


class ProseWithMaths(IPythonRenderer):
    r"""Markdown whose formulas are MathML, which browsers draw themselves.

    >>> MarkdownWithMath(ProseWithMaths()).render("the slope $f'$")
    '<p>the slope <math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">...</math></p>\n'
    """

    def block_math(self, body: str) -> str:
        """A formula on a line of its own."""
        return mathml(body, "block")

    def inline_math(self, body: str) -> str:
        """A formula in a line."""
        return mathml(body, "inline")

    def latex_environment(self, name: str, body: str) -> str:
        r"""A formula between ``\begin{name}`` and ``\end{name}``."""
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


def mathml(formula: str, display: str) -> str:
    """A formula in LaTeX as MathML, or as typed where it cannot be read."""
    try:
        return str(convert(formula, display=display))
    except Exception:  # the converter has no one class of errors
        return f"<code>{escape(formula)}</code>"


class NotebookPage(HTMLExporter):
    """One file for a notebook: prose, maths, code, outputs, and players that step and link, without kernel and network.

    Pictures live where the notebook holds the state of its widgets: after ``--execute``, or saved by JupyterLab. Where it does
    not, their static pictures stay. Maths is MathML. Links to other notebooks lead to their pages.
    """

    export_from_notebook = "HTML with living pictures"

    @default("template_name")
    def _template_name_default(self) -> str:
        return "basic"

    @default("embed_images")
    def _embed_images_default(self) -> bool:
        return True

    @default("exclude_anchor_links")
    def _exclude_anchor_links_default(self) -> bool:
        return True

    @default("default_preprocessors")
    def _default_preprocessors_default(self) -> list[Any]:
        usual = list(HTMLExporter.default_preprocessors.default() or ())
        place = usual.index("nbconvert.preprocessors.ExecutePreprocessor")
        return [*usual[:place], Execution, LivingPictures, *usual[place + 1 :]]

    @property
    def default_config(self) -> Config:
        """What a page shows of an output: nothing that would ask for another program; and no prompts."""
        config: Config = super().default_config.copy()
        config.NbConvertBase.display_data_priority = SHOWN
        config.TemplateExporter.exclude_input_prompt = config.TemplateExporter.exclude_output_prompt = True
        config.CSSHTMLHeaderPreprocessor.enabled = False  # the page has colours of its own, light and dark
        return config

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """The template's filter for prose."""
        attachments = context.get("cell", {}).get("attachments", {})
        folder = context.get("resources", {}).get("metadata", {}).get("path", "")
        prose = ProseWithMaths(
            escape=False,
            attachments=attachments,
            embed_images=self.embed_images,
            path=folder,
            exclude_anchor_links=self.exclude_anchor_links,
        )
        return str(MarkdownWithMath(renderer=prose).render(source))

    def from_notebook_node(  # type: ignore[override]  # as HTMLExporter's own
        self, nb: NotebookNode, resources: Any = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page, and the resources."""
        cells, resources = super().from_notebook_node(nb, resources, **kw)
        cells = _TO_NOTEBOOK.sub(r"\1.html", cells)
        body = f'<body class="autodiff-page">\n<main>\n{cells}\n</main>\n'
        name = resources["metadata"].get("name", "Notebook")
        return page(
            _title(nb) or name, body, resources.pop("players"), rules("notebook_page.css") + code_colours()
        ), resources


def _title(nb: NotebookNode) -> str:
    """The first heading."""
    prose = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    found = re.search(r"^# (.+)", prose, re.MULTILINE)
    return found[1].replace("`", "").strip() if found else ""


def code_colours() -> str:
    """The colours of code, light and dark."""
    light, dark = (HtmlFormatter(style=style).get_style_defs(".highlight") for style in ("default", "github-dark"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
