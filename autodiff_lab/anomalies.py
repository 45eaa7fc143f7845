"""Anomaly mode: the first NaN or infinity raises an error that says which op made it, where, and from what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import backend, events
from .graph import Source
from .sources import call_site
from .tensors import Record, Tensor

if TYPE_CHECKING:
    from .operators import Op


class AnomalyError(ArithmeticError):
    """An op or a gradient rule gave NaN or infinity while ``anomaly_mode`` was on."""


@contextmanager
def anomaly_mode() -> Iterator[None]:
    """Inside the block the first NaN or infinity raises ``AnomalyError``, in the forward pass, in tangents and in gradients.

    The error names the op or the gradient rule, the line of your code that called the op, and the range of what went in.
    A NaN always raises. An infinity raises where no input was infinite: a mask of −inf may pass. Calls on plain arrays
    alone are not watched, because nothing is differentiated there; wrap the array with ``ad.tensor``. To learn the line of
    an op whose gradient fails, run its forward pass in the block too.

    Watching costs a look at every result; outside the block it costs nothing.

    >>> import autodiff_lab as ad
    >>> with ad.anomaly_mode():
    ...     y = ad.ops.log(ad.tensor([1.0, -1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    autodiff_lab.anomalies.AnomalyError: log gave 1 NaN...
    """
    with events.switched(guard=Guard()):
        yield


@dataclass(frozen=True, slots=True)
class Guard:
    """Looks at every result, tangent and contribution. ``sources`` remembers the line of each record, by serial number."""

    sources: dict[int, Source | None] = field(default_factory=dict)
    inside_rules_of: int | None = (
        None  # the record whose gradient rules are running: their ops are not looked at one by one
    )

    def inside(self, serial: int) -> Guard:
        """The guard while a record's gradient rules run."""
        return replace(self, inside_rules_of=serial)

    def note(self, record: Record) -> None:
        """Remember which line a record came from; what a gradient rule computes comes from the line of its op."""
        within = self.inside_rules_of
        self.sources[record[0]] = call_site()[1] if within is None else self.sources.get(within)

    def check_result(self, op: Op, values: Mapping[str, Any], result: Any) -> None:
        """Look at what an op gave for named operands."""
        array = _numbers(result)
        if array is None or self.inside_rules_of is not None:
            return
        spoiled = [name for name, value in values.items() if not _is_finite(value)]
        if np.isnan(array).any() or (not spoiled and not np.isfinite(array).all()):
            already = f"\nIt was not finite before: look at where {spoiled[0]} comes from." if spoiled else ""
            raise AnomalyError(f"{op.name} gave {_bad(array)}{_at(call_site()[1])}{_ranges(values)}{already}")

    def check_tangent(self, rule: str, op: Op, values: Mapping[str, Any], part: Any) -> None:
        """Look at what a JVP rule gave."""
        array = _numbers(part)
        if array is not None and self.inside_rules_of is None and not np.isfinite(array).all():
            what = f"the gradient rule {rule} of {op.name} gave {_bad(array)}"
            raise AnomalyError(f"{what}{_at(call_site()[1])}{_ranges(values)}")

    def check_contribution(self, record: Record, place: int, rule: str, g: Any, contribution: Any, total: Any) -> None:
        """Look at what a VJP rule sent to one operand, and at the sum of what has arrived there."""
        _, op, parents, _, _, *saved = record
        assert op is not None
        count = len(parents)
        values = {"g": g} | {n: v for n, v in zip(op.names_saved(count), saved, strict=False) if hasattr(v, "shape")}
        where = f"{_at(self.sources.get(record[0]))}{_ranges(values)}"
        into = op.operand_names(count)[place]
        array, added = _numbers(contribution), _numbers(total)
        if array is not None and not np.isfinite(array).all():
            advice = _advice(op.name, array, _numbers(g))
            raise AnomalyError(f"the gradient rule {rule} of {op.name} gave {_bad(array)} for {into}{where}{advice}")
        for tangent in map(_numbers, _tangents_of(contribution)):
            if tangent is not None and not np.isfinite(tangent).all():
                what = f"the tangent of what the gradient rule {rule} of {op.name} gave for {into} has {_bad(tangent)}"
                raise AnomalyError(f"{what}{where}")
        if added is not None and not np.isfinite(added).all():
            raise AnomalyError(f"adding up the gradient of {into} of {op.name} gave {_bad(added)}{where}")


def _advice(op: str, contribution: np.ndarray, g: np.ndarray | None) -> str:
    """What to do where a cotangent of 0 was multiplied by infinity."""
    if g is None or g.shape != contribution.shape or np.any(g[~np.isfinite(contribution)]):
        return ""
    return (
        "\nThe cotangent g is 0 there: a later op, such as where, does not use this result, but 0 times infinity is NaN. "
        f"Give {op} a harmless input in those places: {op}(where(condition, x, 1.0))."
    )


def _numbers(value: Any) -> np.ndarray | None:
    """The floating numbers of a value; None for a symbol, whole numbers or what is no array."""
    inner = value.innermost() if type(value) is Tensor else value
    if isinstance(inner, float):
        return np.asarray(inner)
    if not hasattr(inner, "dtype") or hasattr(inner, "is_symbol") or inner.dtype.kind != "f":
        return None
    return backend.to_numpy(inner)


def _tangents_of(value: Any) -> tuple[Any, ...]:
    """What forward mode carries along a value, as when it is pushed through a reverse sweep."""
    moves = type(value) is Tensor and not value._level.is_reverse and not value._level.is_batch
    return tuple(value._history or ()) if moves else ()


def _is_finite(value: Any) -> bool:
    array = _numbers(value)
    return array is None or bool(np.isfinite(array).all())


def _bad(array: np.ndarray) -> str:
    """How many NaN and infinities there are: ``1 NaN and 2 inf``."""
    counts = {"NaN": np.isnan(array).sum(), "inf": np.isposinf(array).sum(), "−inf": np.isneginf(array).sum()}
    return " and ".join(f"{count} {what}" for what, count in counts.items() if count) + f" among {array.size} numbers"


def _at(source: Source | None) -> str:
    return f", called in {source}" if source else ", called in a line that is not known"


def _ranges(values: Mapping[str, Any]) -> str:
    return "".join(f"\n  {name}: {_range(value)}" for name, value in values.items())


def _range(value: Any) -> str:
    """Shape and range of an array: ``shape (3,), from -1 to 2``."""
    array = _numbers(value)
    if array is None:
        return f"shape {value.shape}" if hasattr(value, "shape") else repr(value)
    finite = array[np.isfinite(array)]
    span = f"from {finite.min():.6g} to {finite.max():.6g}" if finite.size else "no finite number"
    return f"shape {array.shape}, {span}" + ("" if finite.size == array.size else f", {_bad(array)}")
