"""Workbench: type code and values, and every view follows; what it is set to can be read back as code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event as Flag
from typing import Any

import numpy as np

from autodiff_lab import schedule
from autodiff_lab.graph import Graph

from .controls import Controls
from .latest import Latest
from .mirror_view import MirrorView
from .pages import save_page
from .programs import CodeError, Program, Stopped, explained, program_of
from .runs import VIEWS, Run
from .settings import SHOWN_FAULTS, Settings, places_of
from .view import View
from .view_box import ViewBox

START = "Type code, or change a value: both views follow."


class Workbench(ViewBox):
    """An editor beside two linked views of what the code does: change the code, a value, the policy, a fault, and all follow.

    A moment after the last key the code runs, on a thread of its own, and only its newest form. Code that cannot run leaves the
    last picture, and the line below the editor says what is wrong and where. A call that takes longer than 5 seconds is stopped
    at one of its lines; the button stops it at once. What runs inside NumPy, or sleeps, cannot be stopped: the next change
    then gets a new thread after 10 seconds.

    Args:
        code: an expression, lines that end with one, or a function definition. Its free names are the inputs.
        values: for each input the text of its value: ``"2.0"``, ``"[1.0, 2.0]"``, ``"rng.normal(size=(2, 3))"``, where ``rng``
            is made from ``seed``. A number stands for its text.
        policy, workers: as for ``schedule.simulate``.
        device: where the inputs lie, such as ``"sim:0"``.
        seed: of ``rng``.
        fault: the name of one of ``ad.faults``, and for one about an op the op, and the input whose gradient rule it alters.
        views: the two that are shown at first.

    Raises:
        CodeError, ValueError: the code cannot run, or a name is unknown.

    >>> bench = Workbench("x * w + b", {"x": 2.0})
    >>> bench.message
    'Result: 7. The gradients are: `x` 3, `w` 2 and `b` 1.'
    >>> bench.as_code()
    "aw.Workbench('x * w + b', {'x': '2.0', 'w': '3.0', 'b': '1.0'})"
    """

    def __init__(
        self,
        code: str = "x * w + b",
        values: Mapping[str, Any] | None = None,
        *,
        policy: str = schedule.DEFAULT,
        workers: int = 2,
        device: str = "cpu",
        seed: int = 0,
        fault: Sequence[str] = (),
        views: Sequence[str] = ("Graph", "Gradient flow"),
    ) -> None:
        texts = {name: value if isinstance(value, str) else repr(value) for name, value in (values or {}).items()}
        asked = Settings(code, texts, policy, workers, device, seed, tuple(fault), tuple(views))
        _check(asked)
        self._latest, self._stopped, self._number = Latest(), Flag(), 0
        self._program: Program | None = None
        self.message = ""
        self.controls = Controls(asked)
        run = self._run(asked, Flag())
        link = f"workbench {id(self)}"
        with asked.switched_on():
            self.views = tuple(MirrorView(VIEWS[name](run), link=link) for name in asked.views)
        self._graph: Graph = run.joint
        super().__init__(children=self.controls.arranged(self.views))
        self.add_class("autodiff-workbench")
        self._settle(run)
        self.controls.on_change(self._ask, self.stop)

    @property
    def settings(self) -> Settings:
        """What the controls are set to; give it another value to set them all."""
        return self.controls.settings

    @settings.setter
    def settings(self, new: Settings) -> None:
        _check(new)
        self.controls.settings = new

    def wait(self, seconds: float = 30.0) -> bool:
        """Wait until the views show what the controls say; False where that takes longer."""
        return self._latest.wait(seconds)

    def stop(self) -> None:
        """Stop the learner's code, at its next line."""
        self._stopped.set()

    def as_code(self) -> str:
        """The line that makes a workbench like this one."""
        return self.settings.as_code()

    def text(self) -> str:
        """Everything that the workbench shows, as text."""
        return "\n\n".join([self.as_code(), self.message, *(view.text() for view in self.views)])

    def save_html(self, path: str | Path) -> Path:
        """Write both views as one HTML file that steps and links offline; returns its path."""
        return save_page(path, self.views, f"{self.as_code()}\n{self.message}")

    def __repr__(self) -> str:
        return f"{self.as_code()}\n{self.message}"

    # ---------------------------------------------------------------------------------------------------------- following

    def _ask(self) -> None:
        """A control has changed: what runs is out of date."""
        self._stopped.set()
        self._stopped, self._number = stopped, number = Flag(), self._number + 1
        self._latest.ask(lambda: self._follow(number, stopped))

    def _follow(self, number: int, stopped: Flag) -> None:
        """Run the code as the controls say, and show it; what is wrong is said instead."""
        asked = self.controls.settings
        self._say("Running …", "busy")
        try:
            run = self._run(asked, stopped)
            with asked.switched_on(), np.errstate(all="ignore"):  # a warning would be written below some cell
                sources = [VIEWS[name](run) for name in asked.views]
                said = run.summary
        except Stopped as why:
            if number == self._number:
                self._say(f"{why} The picture is that of the last code that ran.", "wrong")
        except Exception as error:
            if number == self._number:
                text = str(error) if isinstance(error, CodeError) else explained(error, self._file)
                self._say(f"{text} The picture is that of the last code that ran.", "wrong")
        else:
            if number == self._number:
                self._show(run, sources, said)
            else:
                for source in sources:
                    source.close()

    @property
    def _file(self) -> str:
        return "" if self._program is None else self._program.file

    def _run(self, asked: Settings, stopped: Flag) -> Run:
        """The code, read and run once."""
        self._program = program_of(asked.code)
        with asked.switched_on(), np.errstate(all="ignore"):
            run = Run(asked, self._program, stopped)
            run.joint  # noqa: B018  (what all views share, while the fault is on)
        return run

    def _show(self, run: Run, sources: Sequence[View], said: str) -> None:
        kept = self._same_nodes(run.joint)
        for view, source in zip(self.views, sources, strict=True):
            selected = view.selected
            view.show(source)
            if selected is not None:
                view.selected = kept.get(selected)
        self._graph = run.joint
        self._settle(run, said)

    def _same_nodes(self, graph: Graph) -> dict[str, str]:
        """For the key of each node of the graph before, that of the node in the same place now."""
        pairs = zip(self._graph, graph, strict=False)
        return {f"n{old.serial}": f"n{new.serial}" for old, new in pairs if old.label == new.label}

    def _settle(self, run: Run, said: str | None = None) -> None:
        """What belongs to the code that ran: its inputs, where a fault can be, and the line that makes it again."""
        self.controls.offer(run.texts, {name: places_of(one, run.joint) for name, one in SHOWN_FAULTS.items()})
        self._say(run.summary if said is None else said, "done")

    def _say(self, text: str, state: str) -> None:
        self.message = text
        self.controls.say(text, state, self.as_code())


def _check(asked: Settings) -> None:
    """Refuse a name that means nothing, with those that do."""
    if len(asked.views) != 2 or not set(asked.views) <= set(VIEWS):
        raise ValueError(f"Workbench: views must be two of {', '.join(VIEWS)}; got {tuple(asked.views)}")
    if asked.policy not in schedule.POLICIES:
        raise ValueError(f"Workbench: policy must be one of {', '.join(schedule.POLICIES)}; got {asked.policy!r}")
    if asked.fault and asked.fault[0] not in SHOWN_FAULTS:
        raise ValueError(f"Workbench: fault must be one of {', '.join(SHOWN_FAULTS)}; got {asked.fault[0]!r}")
