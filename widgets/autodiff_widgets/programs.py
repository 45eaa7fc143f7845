"""A learner's code as a function: which names are its inputs, a time limit, and errors that say the line and the next step."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from itertools import count
from threading import Event as Flag
from time import monotonic
from types import FrameType
from typing import Any

import numpy as np

import autodiff_lab as ad

_next_file = count(1).__next__


class CodeError(Exception):
    """Code that cannot be shown; the text says where, what and the next step."""


class Stopped(BaseException):
    """The learner's code took too long, or was stopped. No ``except Exception`` of it holds this up."""


@dataclass(frozen=True)
class Program:
    """A function, and the text of each input's default value, or "" where it has none."""

    f: Callable[..., Any]
    inputs: Mapping[str, str]
    file: str  # the name that its lines go by


def program_of(code: str, names: Mapping[str, Any] | None = None) -> Program:
    """Read an expression, lines that end with one, or a function definition.

    In an expression its inputs are the names that mean nothing else, as ops, ``ops``, ``ad``, ``np`` and ``names`` do.

    Raises:
        CodeError: it cannot be read.

    >>> program = program_of("h = x * w\\ntanh(h) + b")
    >>> list(program.inputs), float(program.f(0.0, 3.0, 1.0))
    (['x', 'w', 'b'], 1.0)
    >>> program_of("def f(x, w=0.5):\\n    return x * w").inputs
    {'x': '', 'w': '0.5'}
    """
    file = f"<workbench {_next_file()}>"
    linecache.cache[file] = (
        len(code),
        None,
        code.splitlines(keepends=True),
        file,
    )  # for the lines in captions and errors
    known = {**{name: getattr(ad.ops, name) for name in ad.registry.names()}, **(names or {})}
    known |= {"ad": ad, "np": np, "ops": ad.ops, "__name__": file}
    tree = _parsed(code, file)
    last = tree.body[-1]
    if isinstance(last, ast.FunctionDef):
        inputs, name = _parameters(last), last.name
    elif isinstance(last, ast.Expr):
        inputs, name = dict.fromkeys(_free_names(tree, known), ""), "f"
        tree = _wrapped(tree, list(inputs))
    else:
        raise CodeError(
            f"Line {last.lineno}: the last line gives no result. End with an expression, or define a function."
        )
    if not inputs:
        raise CodeError("There is no input: use a name that has no value yet, such as x in x * x.")
    try:
        exec(compile(tree, file, "exec", dont_inherit=True), known)
    except Exception as error:
        raise CodeError(explained(error, file)) from error
    return Program(known[name], inputs, file)


def _parsed(code: str, file: str) -> ast.Module:
    try:
        tree = ast.parse(code, file)
    except SyntaxError as error:
        where = f"Line {error.lineno}" + (f", at {error.text.strip()!r}" if error.text and error.text.strip() else "")
        raise CodeError(f"{where}: {error.msg}. Correct the line; the picture follows.") from None
    except ValueError as error:  # a null character
        raise CodeError(f"This is not Python: {error}.") from None
    if not tree.body:
        raise CodeError("There is no code yet. Write an expression, such as x * w + b.")
    return tree


def _parameters(function: ast.FunctionDef) -> dict[str, str]:
    """The parameters that are given by position, with the text of their defaults."""
    given = [*function.args.posonlyargs, *function.args.args]
    defaults = [""] * (len(given) - len(function.args.defaults)) + [ast.unparse(one) for one in function.args.defaults]
    return {argument.arg: default for argument, default in zip(given, defaults, strict=True)}


def _free_names(tree: ast.Module, known: Mapping[str, Any]) -> list[str]:
    """The names that are read and never made, in the order of the text. A function's name counts where it is called."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    made |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    made |= {(node.asname or node.name).partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.alias)}
    used_whole = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    used_whole |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    means = {node.id for node in names if id(node) in used_whole and (node.id in known or hasattr(builtins, node.id))}
    means |= {node.id for node in names if hasattr(builtins, node.id) and node.id not in known}
    read = sorted((node.lineno, node.col_offset, node.id) for node in names if isinstance(node.ctx, ast.Load))
    return list(dict.fromkeys(name for _, _, name in read if name not in made | means))


def _wrapped(tree: ast.Module, inputs: list[str]) -> ast.Module:
    """Lines that end with an expression, as a function that returns it; the lines keep their numbers."""
    whole = ast.parse(f"def f({', '.join(inputs)}): pass")
    *before, last = tree.body
    assert isinstance(last, ast.Expr)
    function = whole.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [*before, ast.copy_location(ast.Return(last.value), last)]
    return whole


# -------------------------------------------------------------------------------------------------------------- running


def within(program: Program, seconds: float, stopped: Flag) -> Callable[..., Any]:
    """The program's function, which raises ``Stopped`` in its own lines when a call takes too long or the flag is set.

    Each of its lines is looked at before it runs; code that is not the program's is not looked at, and cannot be stopped.
    """

    @wraps(program.f)
    def limited(*arguments: Any) -> Any:
        end, before = monotonic() + seconds, sys.gettrace()

        def look(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename != program.file:
                return None
            if stopped.is_set():
                raise Stopped(f"Stopped at line {frame.f_lineno}.")
            if monotonic() > end:
                raise Stopped(
                    f"Line {frame.f_lineno} still ran after {seconds:g} s and was stopped. Does a loop never end?"
                )
            return look

        sys.settrace(look)
        try:
            return program.f(*arguments)
        finally:
            sys.settrace(before)

    return limited


def explained(error: BaseException, file: str) -> str:
    """An error with the line of the program that it came through."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    what = text if isinstance(error, ad.OpError) or not text else f"{type(error).__name__}: {text}"
    return f"{f'Line {line}: ' if line else ''}{(what or type(error).__name__).rstrip('.')}."


def value_of(text: str, name: str, seed: int) -> Any:
    """An input's value from its text: a number or a list is floating, ``np`` and ``rng`` make arrays.

    Raises:
        CodeError: it is not a number, a list of numbers or an array.

    >>> value_of("2", "x", 0), value_of("[1, 2]", "x", 0), value_of("np.arange(3)", "i", 0)
    (2.0, array([1., 2.]), array([0, 1, 2]))
    """
    advice = "Write a number (2.0), a list ([1.0, 2.0]), or an array (rng.normal(size=(2, 3)))."
    try:
        value = eval(
            compile(text.strip() or "None", f"<value of {name}>", "eval"),
            {"np": np, "rng": np.random.default_rng(seed)},
        )
        array = np.asarray(value)
    except Exception as error:
        raise CodeError(f"{name}: {text!r} has no value ({type(error).__name__}: {error}). {advice}") from None
    if array.dtype.kind not in "biuf":
        raise CodeError(f"{name}: {text!r} is no number and no array of numbers. {advice}")
    if isinstance(value, np.ndarray):
        return value
    floating = array.astype(float) if array.dtype.kind in "iu" else array
    return floating.item() if floating.ndim == 0 else floating
