"""Live views: the graph grows while the code runs, and can be stepped when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context
from dataclasses import replace
from threading import Event as Flag
from threading import Thread
from time import monotonic, thread_time
from types import TracebackType
from typing import Any, Self

import traitlets
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, display

from autodiff_lab import events
from autodiff_lab.events import Event
from autodiff_lab.playback import outlined

from .captions import live as said
from .live_scene import WINDOW, Heard, empty_scene, finished_scene, running_scene
from .scene import Scene
from .subjects import callers_globals, callers_tensors, tensors_in
from .view import View

MOST = 3000  # events that are kept; of a training run those are the first steps
FASTEST = 1 / 18  # s between two pictures: the eye sees no more, and each costs the browser a layout
SHARE = 1 / 30  # of the time at most goes into drawing; a large picture is drawn less often
FIRST_GUESS = 0.0005  # s to draw an event, before the first picture says it
PATIENCE = 1.0  # s to wait for a browser that has answered before, and does not say that it has painted
UNANSWERED = (
    0.25  # s between pictures where no answer comes: some notebooks hear the browser only when the cell is over
)


class LiveView(View):
    """What code does with Tensors, drawn while it runs: each op call as it is made, then each gradient as it arrives.

    ``aw.live()`` makes one. While the code runs a thread of its own draws what was heard so far, at most 18 times a second,
    and less often where drawing or the browser is slow. When the code is over the thread has ended, and the view steps through
    everything that was heard, up to the first 3,000 events. Larger arrays are shown by their shape, since keeping their numbers
    would keep the arrays. An error inside goes on to whoever runs the code; the picture shows how far it came.

    >>> with live() as view:
    ...     x = ad.tensor(3.0, requires_grad=True, name="x")
    ...     y = x * x
    ...     y.backward()
    >>> print(view.frames[1].caption)
    Forward: `y` = mul(`x`, `x`) = 9.
    >>> print(view.frames[-1].caption)
    The run is over: 1 op call and 1 backward sweep.
    """

    sent = traitlets.Int(0).tag(sync=True)  # counts the pictures that were sent
    painted = traitlets.Int(0).tag(sync=True)  # the browser's answer: the picture that it has painted

    def __init__(self, title: str = "Live", **traits: Any) -> None:
        self.title = title
        self._told: list[Event] = []
        self._earlier: Sequence[Event] = ()  # op calls of earlier runs
        self._left_out = 0
        self._namespace: dict[str, Any] = {}
        self._before: events.Context | None = None
        self._over = Flag()
        self._thread: Thread | None = None
        self._shown: DisplayHandle | None = None
        super().__init__(empty_scene(title, said.NOT_YET), **traits)

    def __enter__(self) -> Self:
        if InteractiveShell.initialized():
            self._shown = display(self, display_id=True)  # type: ignore[no-untyped-call]
        self.begin(callers_globals())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error, callers_tensors())
        if self._shown is not None:
            # Where there are no widgets, the picture would else stay the one from before the run.
            self._shown.update(self)  # type: ignore[no-untyped-call]

    def begin(self, namespace: dict[str, Any]) -> None:
        """Start to hear what this thread does, and to draw it; ``namespace`` names the Tensors."""
        if self._thread is not None:
            raise RuntimeError("live: this view hears a run already; make another one with aw.live()")
        self._told, self._left_out, self._namespace = [], 0, namespace
        self._over.clear()
        # In an empty context: what is drawn is not heard.
        self._thread = Thread(target=Context().run, args=(self._draw_along,), name="live view", daemon=True)
        self._before = events.context.get()
        events.context.set(replace(self._before or events.Context(), receiver=self._hear, brief=True))
        self._thread.start()

    def end(self, error: BaseException | None = None, names: dict[str, Any] | None = None) -> None:
        """Hear no more, end the thread, and show everything that was heard as steps."""
        if self._thread is None:
            return
        now = events.context.get()
        if now is not None and now.receiver == self._hear:  # else the code ran in a context of its own, as with await
            events.context.set(self._before)
        self._over.set()
        self._thread.join()
        self._thread = None
        names = tensors_in(self._namespace) if names is None else names
        self._namespace = {}
        if self._told:
            self._events = tuple(self._told)
            self._show(finished_scene(self._heard(self._told, names), error))
        else:
            self._nothing_ran()

    def _nothing_ran(self) -> None:
        """No op call was heard."""
        self._show(empty_scene(self.title, said.NOTHING))

    def _hear(self, event: Event) -> None:
        if len(self._told) < MOST:
            self._told.append(outlined(event))
        else:
            self._left_out += 1

    def _heard(self, told: Sequence[Event], names: dict[str, Any]) -> Heard:
        return Heard(self.title, told, self._earlier, names, self._left_out)

    def _show(self, scene: Scene) -> None:
        with self.hold_sync():
            self.frame = 0
            self.scene = scene
            self.frame = len(scene.frames) - 1
            self.sent += 1

    # ------------------------------------------------------------------------------------------- the thread that draws

    def _draw_along(self) -> None:
        """Draw what is new, until the run is over: never faster than ``FASTEST``, and for a small ``SHARE`` of the time."""
        began = sent = monotonic()
        drawn, spent, per_event = 0, 0.0, FIRST_GUESS
        while not self._over.wait(FASTEST):
            now, told = monotonic(), self._told[:]
            patience = PATIENCE if self.painted else UNANSWERED
            is_new = len(told) + self._left_out > drawn
            is_heard = self.painted >= self.sent or now - sent > patience
            if is_new and is_heard and spent + per_event * min(len(told), WINDOW) <= SHARE * (now - began):
                drawn, sent, before = len(told) + self._left_out, now, thread_time()
                self._show(running_scene(self._heard(told, tensors_in(self._namespace))))
                took = thread_time() - before
                spent, per_event = spent + took, took / min(len(told), WINDOW)


def live(title: str = "Live", **traits: Any) -> LiveView:
    """A view for a ``with`` block: it shows itself, and the graph grows in it while the block runs.

    Only what the block's own thread computes on Tensors that require a gradient is heard. To draw along costs about 20 µs an op
    call, and at most a thirtieth of the time.

    >>> with live("One line") as view:
    ...     y = ad.tensor([1.0, 2.0], requires_grad=True, name="x") * 2.0
    >>> [node for node in view.scene.facts.values()][0][0]
    ('name', 'x')
    """
    return LiveView(title, **traits)
