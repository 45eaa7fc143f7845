"""Seams: the places where the library looks a function up by its name, and how one is replaced for a ``with`` block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from threading import Lock, get_ident
from types import MethodType, TracebackType
from typing import Any, Self

from .operators import registry

Function = Callable[..., Any]
Alteration = Callable[[Function], Function]  # from the function that is right to the one that takes its place

_lock = Lock()  # around who stands in where; a call takes no lock


@dataclass(frozen=True)
class Seam:
    """One place that holds a function: how to read what is there, and how to put another there."""

    read: Callable[[], Function]
    write: Callable[[Function], Any]


def function_seam(owner: Any, name: str) -> Seam:
    """A function of a module, or a method of a class, that is looked up by name at each call."""
    return Seam(lambda: getattr(owner, name), lambda function: setattr(owner, name, function))


def gradient_rule_seam(op: str, argument: str | None) -> Seam:
    """The VJP rule of an op for one input, which may be left out where there is one rule only.

    Raises:
        ValueError: there is no such rule, or there are several and no input is named.
    """
    found = registry[op]
    rules = found.vjp_rules
    chosen = next(iter(rules)) if argument is None and len(rules) == 1 else argument
    if chosen not in rules:
        known = ", ".join(map(repr, rules)) or "none"
        raise ValueError(f"op {op}: name the input whose gradient rule to replace, one of {known}; got {argument!r}")
    return Seam(lambda: rules[chosen], lambda rule: found.vjp(chosen)(rule))


def shape_rule_seam(op: str) -> Seam:
    """An op's shape rule."""
    found = registry[op]
    return Seam(lambda: _required(found._shape_rule, f"op {op} has no shape rule"), found.shape_rule)


def dtype_rule_seam(op: str) -> Seam:
    """An op's dtype rule."""
    found = registry[op]
    return Seam(lambda: found._dtype_rule, found.dtype_rule)


def kernel_seam(op: str, device: str) -> Seam:
    """An op's kernel for one kind of device; the one for every array library where it has none of its own there."""
    found = registry[op]
    key, general = (device, None), found.kernels.get(("any", None))

    def write(kernel: Function) -> None:
        if kernel is general:
            found.kernels = {known: one for known, one in found.kernels.items() if known != key}
            found._changed()
        else:
            found.kernel(device)(kernel)

    return Seam(lambda: _required(found.kernels.get(key, general), f"op {op} has no kernel for {device!r}"), write)


def _required(function: Function | None, missing: str) -> Function:
    if function is None:
        raise ValueError(f"{missing}, so there is none to replace; register one first")
    return function


class Replacement:
    """A function replaced by an altered one inside a ``with`` block, in the thread that entered it and nowhere else.

    Blocks may nest and may be entered again: the innermost decides, and each alters the function that is right. When the last
    block of all threads is left, the same object is in its place as before.

    >>> from autodiff_lab import reverse_mode
    >>> before = reverse_mode.accumulate
    >>> doubled = Replacement(
    ...     "doubled", function_seam(reverse_mode, "accumulate"), lambda right: lambda a, b: 2 * right(a, b)
    ... )
    >>> with doubled:
    ...     float(ad.grad(lambda x: x + x)(1.0))
    4.0
    >>> float(ad.grad(lambda x: x + x)(1.0)), reverse_mode.accumulate is before
    (2.0, True)
    """

    def __init__(self, name: str, seam: Seam, alter: Alteration) -> None:
        self.name = name
        self._seam, self._alter = seam, alter
        self._entered: list[tuple[_StandIn, _Entry]] = []

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __enter__(self) -> Self:
        with _lock:
            held = self._seam.read()
            stand_in = held if isinstance(held, _StandIn) else _StandIn(held)
            entry = _Entry(get_ident(), self._alter(stand_in.right))
            stand_in.entries = (entry, *stand_in.entries)
            if stand_in is not held:
                self._seam.write(stand_in)
            self._entered.append((stand_in, entry))
            registry.note_change()  # what was compiled has read what stood there before
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            mine = [place for place, (_, entry) in enumerate(self._entered) if entry.thread == get_ident()]
            stand_in, left = self._entered.pop(mine[-1] if mine else -1)
            stand_in.entries = tuple(entry for entry in stand_in.entries if entry is not left)
            registry.note_change()
            if (
                not stand_in.entries and self._seam.read() is stand_in
            ):  # else somebody registered another in the meantime
                self._seam.write(stand_in.right)


@dataclass(frozen=True, eq=False)
class _Entry:
    """One block that is open: whose it is, and what stands there for its thread."""

    thread: int
    function: Function


class _StandIn:
    """Stands in the place of a function, and calls the one that holds in the calling thread.

    It has the right one's name and code object, since the library reads from them what a rule needs.
    """

    def __init__(self, right: Function) -> None:
        update_wrapper(self, right)
        self.right = right
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            setattr(self, name, getattr(right, name))
        self.entries: tuple[_Entry, ...] = ()  # the innermost first; replaced, never changed

    def __call__(self, *values: Any, **attributes: Any) -> Any:
        thread = get_ident()
        for entry in self.entries:
            if entry.thread == thread:
                return entry.function(*values, **attributes)
        return self.right(*values, **attributes)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)
