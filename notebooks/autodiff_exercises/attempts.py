"""Calling a student's function: one attempt a case, however it ends, and what the call printed meanwhile."""

from __future__ import annotations

import builtins
import contextlib
import copy
import functools
import inspect
import io
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import autodiff_lab as ad

from .sameness import same

PRINTED = 1000  # characters of what one call prints that are kept
BEYOND_EVERY_CELL = (
    1_000_000  # where the lines of a case's own functions begin, so that a traceback tells them from a student's
)


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call ended that gave no answer."""

    kind: str  # the exception's class: "KeyError"
    message: str
    line: int | None = None  # in the cell or file that defines the function

    def __str__(self) -> str:
        place = f" (line {self.line} of the cell or file that defines it)" if self.line else ""
        return f"{self.kind}: {self.message}{place}" if self.message else f"{self.kind}{place}"


@dataclass(frozen=True, slots=True)
class NotPlain:
    """Stands for an answer that cannot be sent from one process to another, or that is too large for it."""

    type_name: str
    items: int | None = None  # where it is too large

    def __repr__(self) -> str:
        return f"<{self.type_name} object>" if self.items is None else f"<{self.type_name} of {self.items:,} items>"


@dataclass(frozen=True, slots=True)
class Followed:
    """Stands for a Tensor that was computed from the arguments: its numbers, and the gradient of their sum for each.

    A graph cannot be sent from one process to another, and what matters of it can. An argument that is no Tensor, or that the
    result does not depend on, has None.
    """

    value: np.ndarray
    gradients: tuple[np.ndarray | None, ...]

    def __repr__(self) -> str:
        return f"a Tensor that was computed from the arguments, with the numbers {self.value.tolist()}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of the student's function: what came back, or how it failed."""

    number: int  # of the case; -1 where the function itself could not be loaded
    answer: Any = None
    failure: Failure | None = None
    changed_arguments: bool = False
    seconds: float = field(default=0.0, compare=False)  # how long it took


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of what a call printed."""

    number: int  # of the case
    text: str


Tell = Callable[[Printed], None]


def attempt(function: Callable[..., Any], number: int, arguments: tuple[Any, ...], tell: Tell) -> Attempt:
    """Call the function once on its own copy of the arguments; however it ends, this returns.

    What it prints is told while it runs, since a call may never end.
    """
    modules = {id(one): one for one in arguments if isinstance(one, ModuleType)}  # np, say, which is not copied
    given = copy.deepcopy(arguments, modules)
    began = time.perf_counter()
    try:
        with _heard(_FirstWords(lambda text: tell(Printed(number, text)))):
            answer = followed(function(*given), given)
    except BaseException as error:
        return Attempt(number, failure=_failure(function, error), seconds=time.perf_counter() - began)
    return Attempt(number, answer, changed_arguments=_changed(given, arguments), seconds=time.perf_counter() - began)


def followed(answer: Any, given: tuple[Any, ...]) -> Any:
    """A Tensor with a graph as what can be sent; anything else, and a graph that cannot be swept, as it is.

    >>> x = ad.tensor([2.0, 3.0], requires_grad=True)
    >>> followed(x * x, (x, 1)).gradients
    (array([4., 6.]), None)
    """
    if not isinstance(answer, ad.Tensor) or answer.is_leaf:
        return answer
    before = [one.grad if isinstance(one, ad.Tensor) else None for one in given]
    try:
        answer.backward(np.ones(answer.shape, answer.dtype))
    except Exception:  # withheld, or no graph of arguments
        return answer
    return Followed(answer.numpy(), tuple(_taken(one, old) for one, old in zip(given, before, strict=True)))


def _taken(argument: Any, before: Any) -> np.ndarray | None:
    """What a sweep has added to an argument's gradient, which gets its old one back."""
    if not isinstance(argument, ad.Tensor) or argument.grad is before:
        return None
    added = argument.grad if before is None else argument.grad - before
    argument.grad = before
    return None if added is None else added.numpy()


def _changed(given: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    try:
        return not same(given, arguments)
    except Exception:  # something in it cannot be compared, and that is not ours
        return True


def not_loaded(error: Exception) -> Attempt:
    """Stands for all attempts where the function itself could not be loaded."""
    return Attempt(-1, failure=Failure(type(error).__name__, _said_by(error)))


def file_of(function: Callable[..., Any]) -> str:
    """The cell or file that defines a function, also one that is decorated; empty where that is not known."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code else ""


def _failure(function: Callable[..., Any], error: BaseException) -> Failure:
    file = file_of(function)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__, limit=-50)
        if frame.filename == file and (frame.lineno or 0) < BEYOND_EVERY_CELL
    ]
    return Failure(type(error).__name__, _said_by(error), lines[-1] if lines else None)


def _said_by(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except BaseException as inner:
        return f"(it cannot say more: its own `__str__` raised {type(inner).__name__})"


class _FirstWords(io.TextIOBase):
    """Takes any amount of output and passes on the beginning."""

    def __init__(self, pass_on: Callable[[str], None]) -> None:
        self.pass_on, self.left = pass_on, PRINTED

    def write(self, text: str) -> int:
        kept = text[: self.left]
        self.left -= len(kept)
        if kept:
            self.pass_on(kept)
        return len(text)


def _display(*objects: object, **_options: object) -> None:
    """What ``display`` does where there is no notebook: it prints each object."""
    for one in objects:
        print(repr(one))


def _no_input(prompt: object = "") -> str:
    raise EOFError("input() was called, and nobody answers during a check: use the function's arguments")


@contextlib.contextmanager
def _heard(output: io.TextIOBase) -> Iterator[None]:
    """Take what is printed or displayed, and refuse ``input()``, which would wait for ever."""
    missing = object()
    stand_ins = {"input": _no_input, "display": _display}
    before = {name: getattr(builtins, name, missing) for name in stand_ins}
    vars(builtins).update(stand_ins)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    finally:
        for name, value in before.items():
            if value is missing:
                vars(builtins).pop(name, None)
            else:
                setattr(builtins, name, value)
