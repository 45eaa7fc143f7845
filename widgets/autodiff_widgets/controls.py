"""The controls of a workbench: editor, values, how it runs, which views are shown, and what is said about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets

import autodiff_lab as ad
from autodiff_lab import schedule

from .runs import VIEWS
from .settings import SHOWN_FAULTS, Settings
from .turns import answer_meanwhile

NO_FAULT = "none"
Places = Mapping[str, Sequence[tuple[str, ...]]]
WIDE = {"description_width": "76px"}

CSS = """
.autodiff-workbench { gap: 8px; padding: 4px 0; }
.autodiff-workbench .autodiff-row {
  align-items: stretch; display: flex; flex-flow: row wrap; gap: 8px 14px; overflow: visible;
}
.autodiff-workbench .autodiff-row > .widget-vbox { flex: 1 1 440px; min-width: 0; overflow: visible; }
.autodiff-workbench .autodiff-row > .autodiff-narrow { flex: 0 1 250px; }
.autodiff-workbench .autodiff-row > .autodiff-editor { flex: 3 1 420px; }
.autodiff-workbench .widget-label { font-size: 14px; }
.autodiff-workbench input, .autodiff-workbench select { font-size: 14px; }
.autodiff-workbench .autodiff-code textarea, .autodiff-workbench .autodiff-code input {
  font: 15px/1.45 ui-monospace, "SF Mono", Consolas, "DejaVu Sans Mono", monospace;
}
.autodiff-workbench .autodiff-said { font-size: 16px; line-height: 1.4; margin: 0; white-space: pre-wrap; }
.autodiff-workbench .autodiff-said[data-state="wrong"] {
  border-left: 5px solid light-dark(#b3261e, #ff8a80); padding-left: 10px;
}
.autodiff-workbench .autodiff-said[data-state="done"] {
  border-left: 5px solid light-dark(#1a7f37, #6fdd8b); padding-left: 10px;
}
.autodiff-workbench .autodiff-said[data-state="busy"] {
  border-left: 5px dotted light-dark(#59636e, #9aa5b1); padding-left: 10px;
}
.autodiff-workbench .autodiff-said code { font-size: inherit; font-weight: 600; }
.autodiff-workbench .autodiff-player .title:not(:has(li + li)) { display: none; } /* the chooser above says it */
.autodiff-workbench .autodiff-player .caption, .autodiff-workbench .autodiff-player .caption-room::after { font-size: 16px; }
.autodiff-workbench code { font-size: 13px; overflow-wrap: anywhere; white-space: pre-wrap; }
.autodiff-workbench .autodiff-player .body > .pane, .autodiff-workbench .autodiff-player .panes > .pane { max-height: 330px; }
.autodiff-workbench .autodiff-player .details { max-height: 150px; overflow: auto; }
"""


class Controls:
    """The widgets of a workbench that a reader changes, and those that answer in words."""

    def __init__(self, asked: Settings) -> None:
        self._is_quiet = False
        self._ask: Callable[[], None] = lambda: None
        self._texts: dict[str, str] = {}  # what was typed for each input, also for one that is gone for now
        self._places: Places = {}
        self.code = ipywidgets.Textarea(description="Code", rows=5, continuous_update=True, style=WIDE, layout=_full())
        self.code.add_class("autodiff-code")
        self.values = ipywidgets.VBox()
        self.policy = _choice("Policy", list(schedule.POLICIES))
        self.workers = ipywidgets.BoundedIntText(description="Workers", min=1, max=16, style=WIDE, layout=_full())
        self.device = _choice("Device", _devices(asked.device))
        self.seed = ipywidgets.BoundedIntText(description="Seed", min=0, max=10**6, style=WIDE, layout=_full())
        self.fault = _choice("Fault", [NO_FAULT, *SHOWN_FAULTS])
        self.where = _choice("Fault in", [("nowhere", ())])
        self.left, self.right = _choice("Left", list(VIEWS)), _choice("Right", list(VIEWS))
        self.stop = ipywidgets.Button(description="Stop", icon="stop", tooltip="Stop the code at its next line")
        self.said, self.same = ipywidgets.HTML(layout=_full()), ipywidgets.HTML(layout=_full())
        self._changed = [
            self.code,
            self.policy,
            self.workers,
            self.device,
            self.seed,
            self.where,
            self.left,
            self.right,
        ]
        self.settings = asked
        for control in (*self._changed, self.fault, self.stop):
            answer_meanwhile(control)
        for control in self._changed:
            control.observe(self._tell, "value")
        self.fault.observe(self._fault_chosen, "value")

    @property
    def settings(self) -> Settings:
        """What all controls say."""
        fault = () if self.fault.value == NO_FAULT else (self.fault.value, *self.where.value)
        shown = {box.description.removesuffix(" ="): box.value for box in self.values.children}
        return Settings(
            self.code.value, shown or dict(self._texts), self.policy.value, self.workers.value, self.device.value,
            self.seed.value, fault, (self.left.value, self.right.value),
        )  # fmt: skip

    @settings.setter
    def settings(self, new: Settings) -> None:
        with self._quietly():
            self.code.value = new.code
            self.policy.value, self.workers.value, self.seed.value = new.policy, new.workers, new.seed
            self.device.options = _devices(new.device)
            self.device.value = new.device
            self.left.value, self.right.value = new.views
            self._texts |= dict(new.values)
            for box in self.values.children:
                box.value = self._texts.get(box.description.removesuffix(" ="), box.value)
            self.fault.value = new.fault[0] if new.fault else NO_FAULT
            self._offer_places(tuple(new.fault[1:]))
        self._tell()

    def on_change(self, ask: Callable[[], None], stop: Callable[[], None]) -> None:
        """Call ``ask`` whenever a control changes, and ``stop`` when the button is pressed."""
        self._ask = ask
        self.stop.on_click(lambda _: stop())

    def offer(self, texts: Mapping[str, str], places: Places) -> None:
        """Show a box for each input, with the text of its value, and the places that a fault can have."""
        self._places = places
        self._texts |= texts
        with self._quietly():
            known = {box.description.removesuffix(" ="): box for box in self.values.children}
            if list(known) != list(texts):
                self.values.children = tuple(
                    known.get(name) or self._value_box(name, text) for name, text in texts.items()
                )
                for name, box in known.items():
                    if name not in texts:
                        box.close()
            self._offer_places(self.where.value)

    def say(self, text: str, state: str, code: str) -> None:
        """Say how it went, and the line that makes the workbench again."""
        said = re.sub("`(.+?)`", r"<code>\1</code>", escape(text))
        self.said.value = f'<p class="autodiff-said" role="status" data-state="{state}">{said}</p>'
        self.same.value = f"The same in code: <code>{escape(code)}</code>"

    def arranged(self, views: Sequence[Any]) -> tuple[Any, ...]:
        """The controls above, the two views beside each other below."""
        editor = _column([self.code], "autodiff-editor")
        values = _column([ipywidgets.HTML("<b>Values</b>"), self.values, self.seed], "autodiff-narrow")
        how = [self.policy, self.workers, self.device, self.fault, self.where]
        shown = [_column([chooser, view]) for chooser, view in zip((self.left, self.right), views, strict=True)]
        answers = _row([_column([self.said]), self.stop])
        return (ipywidgets.HTML(f"<style>{CSS}</style>"), _row([editor, values, _column(how, "autodiff-narrow")]), answers,
                _row(shown), self.same)  # fmt: skip

    def _value_box(self, name: str, text: str) -> Any:
        box = ipywidgets.Text(text, description=f"{name} =", continuous_update=True, style=WIDE, layout=_full())
        box.add_class("autodiff-code")
        box.observe(self._tell, "value")
        answer_meanwhile(box)
        return box

    def _fault_chosen(self, change: dict[str, Any]) -> None:
        with self._quietly():
            self._offer_places(self.where.value)
        self._tell()

    def _offer_places(self, wanted: tuple[str, ...]) -> None:
        """Where the chosen fault can be: where it was, if it can still be there, or else the first place."""
        places = list(self._places.get(self.fault.value, ())) or [wanted if self.fault.value != NO_FAULT else ()]
        self.where.options = [(", ".join(place) or "nowhere to choose", place) for place in places]
        self.where.value = wanted if wanted in places else places[0]
        self.where.disabled = len(places) < 2

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Change controls without answering each of them."""
        before, self._is_quiet = self._is_quiet, True
        try:
            yield
        finally:
            self._is_quiet = before

    def _tell(self, change: dict[str, Any] | None = None) -> None:
        if not self._is_quiet:
            self._ask()


def _devices(chosen: str) -> list[str]:
    """The devices to choose from: those that are there, and simulated ones."""
    there = [line.partition(":")[0] for line in ad.devices() if line.startswith("cuda") and "not available" not in line]
    return list(dict.fromkeys(["cpu", *(f"{name}:0" for name in there), "sim:0", "sim:1", chosen]))


def _choice(description: str, options: Sequence[Any]) -> Any:
    return ipywidgets.Dropdown(options=options, description=description, style=WIDE, layout=_full())


def _full() -> Any:
    return ipywidgets.Layout(width="auto")


def _column(children: Sequence[Any], css: str = "") -> Any:
    column = ipywidgets.VBox(children)
    if css:
        column.add_class(css)
    return column


def _row(children: Sequence[Any]) -> Any:
    row = ipywidgets.HBox(children)
    row.add_class("autodiff-row")
    return row
