"""How an algorithm tells what it does, and to whom.

An algorithm that can be watched calls a receiver with one frozen record for each thing that happens. Widgets, text twins,
static pages and exercise checks all read these records; none of them contains the algorithm again. Telling costs one
``is None`` test when nobody listens. The records are ``events.OpCalled`` and so on; they stand in ``event_records``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .event_records import *  # noqa: F403
    from .event_records import Event

Receiver = Callable[["Event"], None]


def __getattr__(name: str) -> Any:
    """A record's class. Making these classes would take half of the time of importing the lab, and only listeners need them."""
    if name[0].isupper():  # importing asks for ``__path__`` too
        from . import event_records

        globals().update((known, value) for known, value in vars(event_records).items() if known[0].isupper())
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


# --------------------------------------------------------------------------------------------------------- listening


@dataclass(frozen=True, slots=True)
class Context:
    """What the calling thread has switched on. The usual state is no context at all, so the hot path tests for None."""

    receiver: Receiver | None = None
    brief: bool = False  # the receiver wants only what happens anyway: no local derivatives computed for it
    records: bool = True  # False inside no_grad
    recorder: Any = None  # the recording.Recorder that builds a Graph, if one does
    guard: Any = None  # the anomalies.Guard that looks for NaN and infinity, if one does
    observes: bool = False  # what is computed now is only looked at: it takes no virtual time
    scope: str = ""
    phase: str = "forward"
    origin: int | None = None  # the forward node whose rule is running, while a joint graph is recorded


context: ContextVar[Context | None] = ContextVar("autodiff_lab.context", default=None)


def tell(event: Event) -> None:
    """Tell an event to whoever listens in this thread."""
    if (hear := receiver()) is not None:
        hear(event)


@contextmanager
def switched(**changes: Any) -> Iterator[Context]:
    """Change this thread's context for a ``with`` block; other threads do not see it."""
    token = context.set(replace(context.get() or Context(), **changes))
    try:
        yield context.get()  # type: ignore[misc]
    finally:
        context.reset(token)


def receiver() -> Receiver | None:
    """Who listens in this thread, if anybody does."""
    now = context.get()
    return None if now is None else now.receiver


def silence() -> AbstractContextManager[Any]:
    """Nobody hears what is told inside the block."""
    return nullcontext() if receiver() is None else switched(receiver=None)


def backward_phase() -> AbstractContextManager[Any]:
    """What is recorded inside the block belongs to the backward pass."""
    return nullcontext() if context.get() is None else switched(phase="backward")


def update_phase() -> AbstractContextManager[Any]:
    """What is recorded inside the block belongs to the optimizer's update."""
    return nullcontext() if context.get() is None else switched(phase="update")


def with_gradients() -> AbstractContextManager[Any]:
    """A derivative is taken inside the block: a ``no_grad`` around it does not count there, one inside it does."""
    now = context.get()
    return nullcontext() if now is None or now.records else switched(records=True)


@contextmanager
def listen(receiver: Receiver | None = None, brief: bool = False) -> Iterator[list[Event]]:
    """Hear every event that this thread tells inside the block.

    Without a receiver the events are gathered in the list that the block is given. With ``brief`` no local derivatives are
    computed for the listener, which takes half of the time of a backward sweep.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True, name="x")
    >>> with ad.listen() as events:
    ...     y = x * x
    >>> events[0].op, float(events[0].value)
    ('mul', 9.0)
    """
    heard: list[Event] = []
    with switched(receiver=receiver or heard.append, brief=brief):
        yield heard


@contextmanager
def name_scope(name: str) -> Iterator[None]:
    """Put the nodes that are recorded inside the block under ``name``; scopes nest as ``block1.attn``.

    Outside of recording and listening this does nothing and costs nothing; nor does an empty name.

    >>> import autodiff_lab as ad
    >>> def f(x):
    ...     with ad.name_scope("layer1"):
    ...         return ad.ops.tanh(x)
    >>> ad.record(f, 0.5).nodes[-1].scope
    'layer1'
    """
    now = context.get()
    if now is None or not name:
        yield
        return
    with switched(scope=f"{now.scope}.{name}" if now.scope else name):
        yield


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute on Tensors without recording, in this thread, inside the block.

    >>> import autodiff_lab as ad
    >>> x = ad.tensor(3.0, requires_grad=True)
    >>> with ad.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    with switched(records=False):
        yield
