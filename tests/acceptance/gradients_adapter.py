"""Maps a table of NumPy-named ops with their derivatives onto the public names. No arithmetic of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autodiff_lab as ad
from autodiff_lab import ops

OTHER_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "absolute": "abs",
}  # fmt: skip


def apply(op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = OTHER_NAMES.get(op, op)
    if name not in dir(ops):
        raise NotImplementedError(op)
    return getattr(ops, name)(*args, **kwargs)


def vjp(f: Callable[..., Any], xs: Sequence[Any], ct: Any) -> tuple[Any, list[Any]]:
    value, pull = ad.vjp(f, *xs)
    return value, list(pull(ct))


def jvp(f: Callable[..., Any], xs: Sequence[Any], ts: Sequence[Any]) -> tuple[Any, Any]:
    return ad.jvp(f, tuple(xs), tuple(ts))


def hvp(f: Callable[..., Any], xs: Sequence[Any], ct: Any, vs: Sequence[Any]) -> list[Any]:
    return list(ad.jvp(lambda *values: ad.vjp(f, *values).pull(ct), tuple(xs), tuple(vs))[1])
