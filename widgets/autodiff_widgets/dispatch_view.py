"""DispatchView: which kernel a call runs, in which order kernels are looked for, and why the others were not taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import events
from autodiff_lab.events import Event

from .captions import Names, caption, registration
from .facts import Rows
from .questions import CHOICES, in_words
from .registrations import Part, key_words, part_of
from .scene import Change, Question, Scene
from .shapes import Text
from .steps import Steps
from .subjects import plain_op
from .tables import Entry, table
from .view import View

if TYPE_CHECKING:
    from autodiff_lab.operators import Op

LEGEND = (
    ("active", "looked at now"), ("done", "taken"), ("freed", "not taken"), ("idle", "not looked at"),
)  # fmt: skip
NONE, NOT_REACHED, CAME_FIRST = "no kernel", "not looked at", "a more special one came first"

NOTHING = "nothing there"  # the answer that no kernel stands for

Key = tuple[str, str]  # kind of device, or "any"; dtype, or "any"


class DispatchView(View):
    """How the kernel of a call is found: by device, then by dtype. Nothing is run.

    Args:
        op: an op, its name or the function that users call.
        operands: arrays, in the place of the call's operands.
        dtypes: without operands, a dtype for each input, or one for all; what the op declares, else float64, by default.
        device: where the operands are thought to lie, such as ``"sim:0"``; where they do by default.
        attributes: as in the call; those with a default may be left out. A kernel creator reads them.

    Raises:
        TypeError, ValueError: there is no such op, or it takes another number of operands; says what to pass.

    >>> print(DispatchView("exp", dtypes="float32").frames[-1].caption)
    Done: `exp` on cpu with float32 runs the kernel `exp`.
    """

    def __init__(
        self,
        op: Any,
        *operands: Any,
        dtypes: Any = None,
        device: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        **traits: Any,
    ) -> None:
        found = plain_op(op, "DispatchView")
        given = list(operands) if operands else _stand_ins(found, dtypes)
        if not found.is_variadic and len(given) != len(found.inputs):
            raise ValueError(
                f"DispatchView: {found.name} takes {', '.join(found.inputs)}, got {len(given)} operands or dtypes; give one "
                "for each, or none"
            )
        heard = ad.dispatch_told(found, given, attributes, device)
        super().__init__(dispatch_scene(heard, kernels_of(found)), heard, **traits)


def kernels_of(op: Op) -> dict[Key, Part]:
    """The kernels of an op by their keys, from the events of its registration."""
    told = (event for event in ad.registration_told(op) if isinstance(event, events.KernelRegistered))
    return {(event.device, event.dtype): part for event in told if (part := part_of(event)) is not None}


def _stand_ins(op: Op, dtypes: Any) -> list[np.ndarray[Any, Any]]:
    """An empty array for each input, of the dtypes asked for."""
    if dtypes is None:
        dtypes = [_usual_dtype(text) for text in op.schema.input_texts()]
    elif isinstance(dtypes, (str, type, np.dtype)):
        dtypes = [dtypes] * len(op.inputs)
    return [np.empty(0, dtype) for dtype in dtypes]


def _usual_dtype(declared: str) -> np.dtype[Any]:
    """The dtype that an input is declared with; float64 where its type allows several."""
    try:
        return np.dtype(declared.partition(": ")[2].rstrip("?") or "float64")
    except TypeError:
        return np.dtype("float64")


def dispatch_scene(heard: Sequence[Event], kernels: Mapping[Key, Part]) -> Scene:
    """The scene of a search for a kernel: a frame for each key that was looked at."""
    first = heard[0]
    assert isinstance(first, events.KernelConsidered)
    dtype = None if first.dtype == "any" else np.dtype(first.dtype)
    order = [(kind, "any" if one is None else str(one)) for kind, one in ad.fallback_order(first.device, dtype)]
    what = registration.call_words(first.op, first.device, first.dtype)
    search = _Search(what, order, kernels)
    for event in heard:
        search.show(event)
    search.end()
    return Scene(
        f"Dispatch of {what}".replace("`", ""),
        search.panes(),
        tuple(search.steps.frames),
        search.facts(),
        LEGEND,
        runs=False,
    )


class _Search:
    """The frames of a search: the order of keys on the left, the op's kernels on the right."""

    def __init__(self, what: str, order: list[Key], kernels: Mapping[Key, Part]) -> None:
        self.what, self.order, self.kernels = what, order, kernels
        self.taken: Key | None = None
        rows = [f"place {place}" for place in range(len(order))]
        untouched = [Change(row, "idle") for row in rows]
        untouched += [Change(part.key, "idle", {"why": NOT_REACHED}) for part in kernels.values()]
        self.steps = Steps(registration.dispatch_opening(what), untouched)

    def panes(self) -> tuple[Any, ...]:
        """The keys in the order in which they are looked at, and the kernels that the op has."""
        widest = max([NONE, *(part.function for part in self.kernels.values())], key=len)
        keys = [
            Entry(
                f"place {place}", (Text(f"{place + 1}. {key_words(*key)}", "label"), Text("", "value", "found", widest))
            )
            for place, key in enumerate(self.order)
        ]
        longest = max((self.why_not(key) for key in self.kernels), key=len, default=NOT_REACHED)
        kernels = [
            Entry(part.key, (Text(part.function, "label"), Text(part.detail), Text("", "detail", "why", longest)))
            for part in self.kernels.values()
        ]
        return table("Order", ["Looked for, in this order", *keys]), table("Kernels", ["Kernels of the op", *kernels])

    def show(self, event: Event) -> None:
        """Add the frame of an event."""
        match event:
            case events.KernelConsidered(_, device, dtype, kernel, chosen):
                self._consider(event, (device, dtype), kernel, chosen)
            case events.KernelCreated() if self.taken is not None:
                key = self.kernels[self.taken].key
                self.steps.add(caption(event, Names(str)), (), [Change(key, "active")], key)

    def _consider(self, event: Event, key: Key, kernel: str | None, chosen: bool) -> None:
        row = f"place {self.order.index(key)}"
        lasting = [Change(row, "done" if chosen else "freed", {"found": kernel or NONE})]
        passing = [Change(row, "active")]
        if chosen:
            self.taken = key
            part = self.kernels[key]
            lasting.append(Change(part.key, "done", {"why": "taken"}))
        self.steps.add(caption(event, Names(str)), lasting, passing, row, question=self._what_is_found(key))

    def end(self) -> None:
        """Add the frame that says why each other kernel was not taken."""
        others = [key for key in self.kernels if key != self.taken]
        changes = [Change(self.kernels[key].key, "freed", {"why": self.why_not(key)}) for key in others]
        kernel = None if self.taken is None else self.kernels[self.taken].function
        asks = self._why(others[0]) if others else None
        self.steps.add(registration.dispatch_closing(self.what, kernel), changes, question=asks)

    def _what_is_found(self, key: Key) -> Question:
        """Before a key is looked at: which kernel is there?"""
        there = key if key in self.kernels else None
        others = [other for other in self.kernels if other != there][: CHOICES - 2]
        shown = [part for other, part in self.kernels.items() if other in (there, *others)]
        choices = [(part.key, f"{part.function}, {part.detail}") for part in shown]
        right = NOTHING if there is None else self.kernels[there].key
        return Question(registration.kernel_question(*key), (*choices, (NOTHING, registration.NONE_THERE)), right)

    def _why(self, key: Key) -> Question | None:
        """Before the search ends: why was a kernel not taken?"""
        (device, dtype), (kind, wanted), part = key, self.order[0], self.kernels[key]
        likely = [
            CAME_FIRST,
            f"for {device}, not for {kind}",
            f"for {dtype}, not for {wanted}",
            "it was registered last",
        ]
        text = registration.why_question(part.function, part.detail)
        return in_words(text, self.why_not(key), [one for one in likely if "any" not in one])

    def why_not(self, key: Key) -> str:
        """Why a kernel that was not taken was not."""
        (device, dtype), (kind, wanted) = key, self.order[0]
        if key in self.order:
            return CAME_FIRST
        if device not in (kind, "any"):
            return f"for {device}, not for {kind}"
        return f"for {dtype}, not for {'numbers alone' if wanted == 'any' else wanted}"

    def facts(self) -> dict[str, Rows]:
        """What is known of each place of the order and of each kernel."""
        rows: dict[str, Rows] = {}
        for place, key in enumerate(self.order):
            found = self.kernels.get(key)
            rows[f"place {place}"] = (
                ("device", key[0]), ("dtype", key[1]), ("kernel", NONE if found is None else found.function),
            )  # fmt: skip
        for key, part in self.kernels.items():
            rows[part.key] = (*part.facts(), ("here", "taken" if key == self.taken else self.why_not(key)))
        return rows
