"""What the lab can do for an answer and must not: functions that refuse to be called while an answer is checked."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

import autodiff_lab as ad

DERIVATIVES = (
    "grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "hvp", "sweep", "Tensor.backward", "registry",
)  # fmt: skip


class AnsweredByTheLab(Exception):
    """A function of the lab was called that does what the exercise asks the student to write."""


class _Refusal:
    """Stands where something of the lab stood, and refuses to be used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_arguments: Any, **_options: Any) -> NoReturn:
        raise AnsweredByTheLab(f"ad.{self.name} does what you are asked to write")

    __getitem__ = __call__


@contextlib.contextmanager
def withheld(names: Sequence[str]) -> Iterator[None]:
    """Inside the block these names of the lab refuse to be used, also where they are imported by ``from``.

    >>> with withheld(["grad"]):
    ...     ad.grad(lambda x: x * x)
    Traceback (most recent call last):
    autodiff_exercises.withholding.AnsweredByTheLab: ad.grad does what you are asked to write
    >>> float(ad.grad(lambda x: x * x)(3.0))
    6.0
    """
    with contextlib.ExitStack() as undo:
        for name in names:
            for owner, attribute in _places(name):
                undo.callback(setattr, owner, attribute, getattr(owner, attribute))
                setattr(owner, attribute, _Refusal(name))
        yield


def _places(name: str) -> list[tuple[Any, str]]:
    """Where the name is looked up: in the lab, and in the module that defines it, which is where pickles look."""
    path, _, attribute = name.rpartition(".")
    owner: Any = getattr(ad, path, None) or import_module(f"{ad.__name__}.{path}") if path else ad
    wanted = getattr(owner, attribute)
    home = sys.modules.get(getattr(wanted, "__module__", None) or "")
    found = [(owner, attribute)]
    return [*found, (home, attribute)] if home is not owner and getattr(home, attribute, None) is wanted else found
