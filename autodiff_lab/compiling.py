"""compile: a function that is recorded once for each kind of arguments, and from then on runs as a plan."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from threading import RLock
from typing import Any

import numpy as np

from . import backend, events
from .argument_readers import Reader, reader_of
from .bindings import readings, real_array
from .fused_loops import Loops
from .graph import Graph
from .operators import registry
from .planning import Plan, plan
from .recording import Recorder, leaf_names, parameter_names
from .schedule import run as run_schedule
from .schedule.plan_tasks import pays
from .simplification import bitwise_key
from .sources import is_library_file
from .tensors import BASE, Tensor
from .trees import flatten

_MOST_PLANS = 64  # of one function; then the one that was used longest ago is forgotten
_POLICY = (
    "critical_path"  # a plan's memory is laid out: what a policy does for memory, such as newest first, gains nothing
)
_MANY_NUMBERS = 8  # plans that differ in a Python number only, after which a notice says so


def compile(f: Callable[..., Any], *, fuse: bool = True, loops: Loops = "auto", workers: int = 1) -> Compiled:
    """``f`` as a plan: recorded and planned at the first call with arguments of some shapes, then run without ``f``.

    The main uses are ``compile(ad.value_and_grad(loss))`` and a whole training step with its optimizer's update.

    Arrays, and Tensors that no derivative watches, may change from call to call; new shapes, dtypes, devices or nesting make a
    new plan, and so does an op that was defined anew. Everything else is part of the plan: Python numbers, which in eager code
    decide dtypes and shapes too (hand over what changes as an array, as in ``np.float32(rate)``), texts, functions, and
    whatever ``f`` uses without getting it as an argument, as it is when the plan is made. What ``f`` does besides
    computing, such as printing, happens once for each plan; so does what a kernel of yours does besides calling NumPy.

    Where a derivative watches, because an argument is a Tensor that requires a gradient, or inside ``grad``, ``jvp`` or
    ``record``, ``f`` itself runs, so that derivatives are right; so it does in ``anomaly_mode``, which looks at every op. To
    speed up a derivative, compile the derivative.

    Args:
        f: made of ops; what it returns may nest. An if or a loop may depend on shapes and Python numbers, not on values.
        fuse, loops: as for ``plan``.
        workers: run large plans on so many threads, as ``schedule.run`` does; small ones stay on one.

    >>> import autodiff_lab as ad
    >>> slope = compile(ad.grad(lambda x: (x * x).sum()))
    >>> slope(np.array([1.0, 2.0])), slope(np.array([3.0, 4.0]))
    (array([2., 4.]), array([6., 8.]))
    >>> len(slope.plans)
    1
    """
    return Compiled(f, fuse, loops, workers)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A plan that is ready for arguments of one kind."""

    plan: Plan
    run: Callable[[Sequence[Any]], Any]
    tensors: tuple[bool, ...] | None  # which outputs are Tensors; None where none are


class Compiled:
    """What ``compile`` returns: called as the function that it was made of."""

    def __init__(self, f: Callable[..., Any], fuse: bool, loops: Loops, workers: int) -> None:
        if not callable(f):
            raise TypeError(f"compile: expected a function, got {f!r}")
        if type(workers) is not int or workers < 1:
            raise ValueError(f"compile: workers must be a whole number of at least 1, got {workers!r}")
        update_wrapper(
            self, f, updated=()
        )  # not its __dict__: a layer's attributes are its own, and a compiled function's
        self._f, self._fuse, self._loops, self._workers = f, fuse, loops, workers
        self._known: dict[Any, _Ready] = {}
        self._last: tuple[Reader, _Ready] | None = None  # knows arguments like those of the last call
        self._lock = RLock()
        self._changes = registry.changes
        self._is_noticed = False

    def __repr__(self) -> str:
        return f"<compiled {_name(self._f)}: {len(self._known)} plans>"

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans that were made so far, one for each kind of arguments."""
        return tuple(ready.plan for ready in self._known.values())

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """The function's result."""
        now = events.context.get()
        if now is not None and (now.recorder is not None or now.guard is not None):
            return self._f(*arguments, **options)
        if (last := self._last) is not None and not options and self._changes == registry.changes:
            known = last[0](arguments)
            if known is not None:
                return last[1].run(known)
        leaves: list[Any] = []
        key: list[Any] = []
        if not _read(arguments, leaves, key) or (options and not _read(options, leaves, key)):
            return self._f(*arguments, **options)  # a derivative watches
        ready = self._ready_for(key, arguments, options)
        reader = None if options or ready.tensors is not None else reader_of(arguments)
        self._last = None if reader is None else (reader, ready)
        result = ready.run(leaves)
        return result if ready.tensors is None else _with_tensors(result, ready)

    def _ready_for(self, key: list[Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> _Ready:
        """The plan for arguments of this kind; made now if there is none."""
        with self._lock:
            if self._changes != registry.changes:
                self._known.clear()
                self._changes = registry.changes
            hashable = tuple(key)
            try:
                hash(hashable)
            except TypeError as error:
                raise TypeError(
                    f"compile: an argument of {_name(self._f)} is neither arrays nor something that Python can compare "
                    f"({error}), so nobody can say whether a plan still fits; hand over arrays, numbers, texts, or nested "
                    "lists of them"
                ) from None
            ready = self._known.pop(hashable, None)
            if ready is None:
                ready = self._make(arguments, options)
                self._notice_numbers(hashable)
            self._known[hashable] = ready  # the one that was used last is the last
            while len(self._known) > _MOST_PLANS:
                del self._known[next(iter(self._known))]
            return ready

    def _make(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> _Ready:
        graph, tensors = _recorded(self._f, arguments, options)
        workers = self._workers if pays(graph) else 1
        made = plan(graph, fuse=self._fuse, loops=self._loops, workers=workers)
        run = made.run_on if workers == 1 else lambda arrays: run_schedule(made, arrays, workers, _POLICY)[0]
        return _Ready(made, run, tensors if any(tensors) else None)

    def _notice_numbers(self, key: tuple[Any, ...]) -> None:
        shape = _without_numbers(key)
        alike = sum(_without_numbers(other) == shape for other in self._known)
        if alike >= _MANY_NUMBERS and not self._is_noticed:
            self._is_noticed = True
            print(
                f"compile: {_name(self._f)} was planned {alike + 1} times because a Python number changed; hand it over as an "
                "array, as in np.float32(rate), to make one plan for all",
                file=sys.stderr,
            )


def _read(value: Any, leaves: list[Any], key: list[Any]) -> bool:
    """Gather the arrays of nested arguments, and what a plan depends on. False where a derivative watches."""
    kind = type(value)
    if kind is np.ndarray:
        leaves.append(value)
        key += (value.shape, value.dtype)
        return True
    if kind is tuple or kind is list:
        key += (kind, len(value))
        return all(_read(part, leaves, key) for part in value)
    if kind is dict:
        key += (kind, tuple(value))
        return all(_read(part, leaves, key) for part in value.values())
    return _read_rarer(value, leaves, key)


def _read_rarer(value: Any, leaves: list[Any], key: list[Any]) -> bool:
    kind = type(value)
    if kind is Tensor:
        if value._level is not BASE or (value._history is not None and _records()):
            return False
        array = value.innermost()
        leaves.append(array)
        key += (Tensor, backend.device_of(array), array.shape, array.dtype)
        return True
    if kind in readings:
        return False
    if isinstance(value, (np.generic, np.ndarray)):  # a scalar, or a matrix or memory map: as an op would read it
        value = real_array(value)
    if backend.is_array(value):
        leaves.append(value)
        key += (backend.device_of(value), value.shape, value.dtype)
        return True
    if isinstance(value, (list, tuple, dict)):  # a named tuple, or a container of some other kind
        key += (kind, tuple(value) if isinstance(value, dict) else len(value))
        return all(_read(part, leaves, key) for part in (value.values() if isinstance(value, dict) else value))
    is_plain = kind in (bool, int, float, slice)
    key += (_NUMBER if is_plain else _STATIC, bitwise_key(value) if is_plain else (kind, value))
    return True


_NUMBER, _STATIC = "a Python number", "part of the plan"


def _records() -> bool:
    now = events.context.get()
    return now is None or now.records


def _without_numbers(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple("any" if place and key[place - 1] is _NUMBER else part for place, part in enumerate(key))


def _recorded(
    f: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Graph, tuple[bool, ...]]:
    """The graph of a call, with an input for every array, and which outputs are Tensors.

    A Tensor stays one, around a symbol: what meets it is read as it is elsewhere, a NumPy scalar as a plain number.
    """
    recorder = Recorder()
    inputs: list[Any] = []

    def symbols(name: str, argument: Any) -> Any:
        leaves, structure = flatten(argument)
        replaced = []
        for label, leaf in zip(leaf_names(name, structure), leaves, strict=True):
            if type(leaf) is Tensor or backend.is_array(leaf):
                inputs.append(recorder.input(leaf, label))
                leaf = Tensor(inputs[-1]) if type(leaf) is Tensor else inputs[-1]
            replaced.append(leaf)
        return structure.rebuild(replaced)

    given = [symbols(name, one) for name, one in zip(parameter_names(f, len(arguments)), arguments, strict=True)]
    named = {name: symbols(name, one) for name, one in options.items()}
    try:
        with events.switched(recorder=recorder, phase="forward", origin=None, scope=""):
            result = f(*given, **named)
    except Exception as error:
        _note_line(error, f)
        raise
    leaves = flatten(result)[0]
    if recorder.captured or any(type(leaf) is Tensor and leaf.requires_grad for leaf in leaves):
        raise ValueError(
            f"compile: {_name(f)} uses a Tensor that requires a gradient and is not among its arguments; a plan would keep "
            "its value of today. Hand parameters over as arguments, for a layer as model.with_parameters(p)(x), or call "
            ".detach() where a constant is meant"
        )
    return recorder.freeze(result, inputs, _name(f)), tuple(type(leaf) is Tensor for leaf in leaves)


def _note_line(error: Exception, f: Callable[..., Any]) -> None:
    """Say at which line of the user's code recording stopped."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if not is_library_file(file):
            place = traceback.FrameSummary(file, line, frame.f_code.co_name)
            error.add_note(f"compile: {_name(f)} could not be recorded, at {file}:{line}: {place.line}")
            return


def _with_tensors(result: Any, ready: _Ready) -> Any:
    leaves, structure = flatten(result)
    assert ready.tensors is not None
    wrapped = [Tensor(leaf) if is_tensor else leaf for leaf, is_tensor in zip(leaves, ready.tensors, strict=True)]
    return structure.rebuild(wrapped)


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)
