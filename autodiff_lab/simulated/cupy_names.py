"""What CuPy has: the names that a simulated device knows.

The list is ``cupy_names.txt`` beside this file, one name a line, as ``argsort a axis kind``: a function and its parameters. A
name without parameters takes what NumPy's takes. Where CuPy is installed, this writes it, without a GPU:
``python -m autodiff_lab.simulated.cupy_names > autodiff_lab/simulated/cupy_names.txt``
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any

from ..backend import library_of

_MODULES = ("", "fft", "linalg", "lib.stride_tricks", "random")
_UFUNC_METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")


@cache
def cupy_names() -> dict[str, tuple[str, ...]]:
    """Every name, and the names of its parameters where they are known.

    >>> cupy_names()["argsort"], "nanprod" in cupy_names(), "piecewise_linear" in cupy_names()
    (('a', 'axis', 'kind'), True, False)
    """
    lines = files(__package__).joinpath("cupy_names.txt").read_text().splitlines()
    parts = [line.split() for line in lines if not line.startswith("#")]
    return {name: tuple(parameters) for name, *parameters in parts}


def written_names(cupy: ModuleType) -> str:
    """The text of the list, from CuPy itself. It needs no GPU."""
    lines = [f"# The names of CuPy {cupy.__version__}, by python -m autodiff_lab.simulated.cupy_names"]
    for module in _MODULES:
        owner: Any = cupy
        for part in module.split(".") if module else ():
            owner = getattr(owner, part)
        lines += sorted(_lines(owner, f"{module}." if module else ""))
    lines += sorted(f"ndarray.{name}" for name in dir(cupy.ndarray) if not name.startswith("_"))
    return "\n".join(lines) + "\n"


def _lines(owner: Any, prefix: str) -> Iterator[str]:
    for name in dir(owner):
        value = getattr(owner, name)
        if name.startswith("_") or inspect.ismodule(value):
            continue
        yield " ".join([prefix + name, *_parameters(value)])
        if type(value).__name__ == "ufunc":
            adds_up = getattr(value, "_scatter_op", None) is not None
            yield from (f"{prefix}{name}.{method}" for method in _UFUNC_METHODS if method != "at" or adds_up)


def _parameters(value: Any) -> list[str]:
    """Parameters of a plain function, starred ones with their stars; none where they are not known."""
    if not inspect.isfunction(value):
        return []
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(one.kind, "") + one.name for one in inspect.signature(value).parameters.values()]


if __name__ == "__main__":
    print(written_names(library_of("cuda")), end="")
