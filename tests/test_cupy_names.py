"""What kernels ask of their array library ``xp`` and of its arrays, held against the installed CuPy. That needs no GPU."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("np", "math")  # whose functions have names of array methods too, as np.argsort
FILES = sorted((ROOT / "autodiff_lab").rglob("*.py"))


@dataclass(frozen=True)
class Use:
    """A dotted name that code reads from ``xp`` or from an array, and how it calls it, if it does."""

    where: str
    path: str
    positional: int | None = None  # None: not called, or called with starred arguments
    keywords: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.path}@{self.where}"


def uses(tree: ast.AST, file: str) -> Iterator[Use]:
    """Every longest attribute path of a file whose root is ``xp``, and every attribute of other values, as ``.name``."""
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        root, path = root_and_path(node)
        if root in MODULES or (root == "xp" and id(node) in inner):
            continue  # not CuPy's, or a part of a longer path
        call = calls.get(id(node))
        starred = call is None or any(isinstance(argument, ast.Starred) for argument in call.args)
        yield Use(
            f"{file}:{node.lineno}",
            path if root == "xp" else f".{node.attr}",
            None if call is None or starred else len(call.args),
            () if call is None else tuple(keyword.arg for keyword in call.keywords if keyword.arg),
        )


def root_and_path(node: ast.expr) -> tuple[str, str]:
    """The name that a chain of attributes starts from, empty where it is no name, and the rest with dots."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return node.id if isinstance(node, ast.Name) else "", ".".join(reversed(parts))


ALL = [use for file in FILES for use in uses(ast.parse(file.read_text(encoding="utf-8")), str(file.relative_to(ROOT)))]
OF_LIBRARY = {(use.path, use.positional, use.keywords): use for use in ALL if not use.path.startswith(".")}
OF_ARRAYS = {
    (use.path, use.positional, use.keywords): use
    for use in ALL
    if use.path.startswith(".") and hasattr(np.ndarray, use.path[1:]) and "/ops/" in use.where
}


def cupy() -> Any:
    return pytest.importorskip("cupy", reason="CuPy is not installed")


def problem(use: Use, root: Any) -> str:
    """Why CuPy does not take such a use; empty where it does, or where its function does not tell its parameters."""
    found = root
    for name in use.path.strip(".").split("."):
        if not hasattr(found, name):
            return f"CuPy has no {use.path}"
        found = getattr(found, name)
    parameters = parameters_of(found)
    if parameters is None or use.positional is None:
        return ""
    itself = 1 if use.path.startswith(".") else 0
    try:
        parameters.bind(*[None] * (use.positional + itself), **dict.fromkeys(use.keywords))
    except TypeError as error:
        return f"CuPy's {use.path}{parameters} is not called like this: {error}"
    return ""


def parameters_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """A function's parameters; compiled ones tell them in the first line of their docstring."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        found = re.match(r"[\w.]+(\(.*?\))(?: ->.*)?$", (function.__doc__ or "").split("\n")[0].replace("\\*", "*"))
    if found is None:
        return None
    namespace: dict[str, Any] = {}
    try:
        exec(f"def told{found.group(1)}: ...", namespace)
    except SyntaxError:
        return None
    return inspect.signature(namespace["told"])


@pytest.mark.parametrize("use", [pytest.param(use, id=use.id) for use in OF_LIBRARY.values()])
def test_cupy_has_every_function_that_a_kernel_asks_xp_for_and_takes_its_arguments(use: Use) -> None:
    assert not problem(use, cupy()), use.where


@pytest.mark.parametrize("use", [pytest.param(use, id=use.id) for use in OF_ARRAYS.values()])
def test_cupys_arrays_have_every_method_of_numpys_that_ops_call(use: Use) -> None:
    assert not problem(use, cupy().ndarray), use.where


def test_names_and_arguments_that_cupy_lacks_are_found() -> None:
    calls = ["xp.turn(x)", "xp.linalg.turn(x)", "xp.argsort(x, order=1)", "x.sum(axes=1)", "xp.max(x, axis=0)"]
    text = "\n".join(calls)
    found = [problem(use, cupy() if use.path[0] != "." else cupy().ndarray) for use in uses(ast.parse(text), "k.py")]
    assert sorted(re.sub(r"\(.*\)", "", each) for each in found) == [
        "",
        "CuPy has no linalg.turn",
        "CuPy has no turn",
        "CuPy's .sum is not called like this: got an unexpected keyword argument 'axes'",
        "CuPy's argsort is not called like this: got an unexpected keyword argument 'order'",
    ]


def test_the_kernels_are_read() -> None:
    paths = {use.path for use in ALL}
    assert {"exp", "add.at", "lib.stride_tricks.as_strided", ".sum", ".reshape"} <= paths
