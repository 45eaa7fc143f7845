"""Checks of gradients against differences: gradcheck."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .checked_functions import CheckedFunction, WrongShapeError, second_order
from .differences import Slope, central, slope
from .mistakes import explained
from .reports import Finding, GradcheckReport, Verdict

COTANGENTS = 2  # two, so that a rule that ignores its cotangent is told apart from one that is off by a factor
# How far a right gradient may be from differences, by the coarsest dtype of the result.
TOLERANCES = {"float64": 1e-5, "float32": 2e-3, "float16": 5e-2}
TRUSTED = 1e-3  # differences less certain than this part of the gradient cannot accept an entry


def gradcheck(
    f: Callable[..., Any],
    inputs: Any,
    grad: Callable[..., Any] | None = None,
    order: int = 1,
    *,
    entries: int = 100,
    seed: int = 0,
) -> GradcheckReport:
    """Compare gradients with central differences, and say what is wrong.

    For random cotangents c, never all ones, each entry of the gradient of ⟨c, f(x)⟩ is compared with
    (⟨c, f(x + h e)⟩ − ⟨c, f(x − h e)⟩) / 2h. Narrow inputs are checked in float64, so that rounding does not look like a
    mistake, and the gradient in their own dtype is compared with that. Where ``f`` itself computes in a narrow dtype, step and
    tolerance follow it. Where no step is good enough the verdict is "not enough precision to tell".

    Args:
        f: a function of arrays; arguments and results may nest.
        inputs: its arguments, a list or tuple; a single argument may stand alone. Only floating ones are checked.
        grad: a gradient derived by hand, to be checked instead of the rules of f's ops: ``grad(*inputs)`` gives one array
            where there is one floating input, else a tuple of them. Where ``f`` gives one number each is shaped like its
            input, otherwise ``result.shape + input.shape``.
        order: 2 also checks the gradient of the gradient, which finds rules that hide a value from differentiation.
        entries: how many entries of an input are checked one by one. Of a larger input a sample is taken, and the derivative
            along one random direction through all its entries is checked too.
        seed: of the cotangents and the sample.

    Returns:
        A report: ``.ok``, ``.verdict``, the ``findings`` by input name and index, as text and in a notebook as a table.

    Raises:
        ValueError: nothing floating to check, or ``f`` gives another result on each call.

    >>> def f(x, w):
    ...     return (x * w).sum()
    >>> bool(gradcheck(f, (np.array([1.0, 2.0]), np.array([3.0, 4.0]))))
    True
    >>> print(gradcheck(f, (np.array([1.0, 2.0]), np.array([3.0, 4.0])), grad=lambda x, w: (w, -x)))
    ✗ f: wrong gradient
      w[0]: got -1, expected 1 (relative error 2.0e+00)
      w[1]: got -2, expected 2 (relative error 2.0e+00)
      Every entry of w is −1 times what it should be: a sign is lost.
      Checked by central differences with random cotangents: 2 of 2 entries of x, 2 of 2 of w.
    """
    if order not in (1, 2):
        raise ValueError(f"gradcheck: order must be 1 or 2, got {order!r}")
    if grad is not None and order == 2:
        raise ValueError("gradcheck: order=2 checks the rules of f's ops; leave grad out")
    arguments = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    with np.errstate(all="ignore"):
        return judged(CheckedFunction(f, arguments, grad), order, entries, seed)


def judged(
    checked: CheckedFunction, order: int = 1, entries: int = 100, seed: int = 0, cotangent: np.ndarray | None = None
) -> GradcheckReport:
    """What ``gradcheck`` says of a checked function; ``cotangent``, a row of numbers, is tried beside the random ones."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):  # what is not finite is told by the report
        cotangents = _cotangents(checked, rng)
        given = cotangents if cotangent is None else np.vstack([cotangents, cotangent])
        first = _judged(checked, given, entries, rng)
        if order == 1 or not first.ok:
            return first
        gradient = second_order(checked, cotangents)
        return _judged(gradient, _cotangents(gradient, rng), entries, rng, order=2)


def _cotangents(checked: CheckedFunction, rng: np.random.Generator) -> np.ndarray:
    """Random numbers of either sign between 0.5 and 1.5; multiples of 1/64, so that float16 holds them exactly."""
    size = sum(part.size for part in checked.parts)
    sizes, signs = rng.integers(32, 97, (COTANGENTS, size)), rng.choice([-1.0, 1.0], (COTANGENTS, size))
    return np.asarray(sizes / 64 * signs)


def _judged(
    checked: CheckedFunction, cotangents: np.ndarray, entries: int, rng: np.random.Generator, order: int = 1
) -> GradcheckReport:
    """Check every input, and say what the findings amount to."""
    try:
        gradients = checked.pull(checked.point, cotangents)
        narrow = checked.pull(checked.given, cotangents) if _is_narrow(checked) else gradients
    except WrongShapeError as error:
        return GradcheckReport(checked.name, "wrong", order, explanations=(str(error),))
    findings: list[Finding] = []
    explanations: list[str] = []
    covered = []
    for place, name in enumerate(checked.names):
        one = _Input(checked, place, cotangents, np.stack([found[place] for found in gradients]))
        indices = _sample(one.size, entries, rng)
        covered.append((name, len(indices), one.size))
        found = list(one.findings(indices, rng))
        if _overall(found) == "right":
            found += one.narrow_findings(np.stack([g[place] for g in narrow]))
        findings += found
        if any(finding.verdict == "wrong" for finding in found):
            explanations += one.explanations(indices)
    verdict = _overall(findings)
    if verdict != "right" and cotangents.shape[1] > 1:
        explanations.append(
            f"The result has {cotangents.shape[1]} numbers: entries are of the gradient of ⟨c, result⟩, for random weights c."
        )
    if order == 2 and verdict == "wrong":
        explanations.append(
            "The first derivative is right and the second is not: a rule computes with a value that did not reach it through "
            "its parameters (.numpy(), detach(), an array that the kernel kept), so differentiation takes it for a constant."
        )
    return GradcheckReport(checked.name, verdict, order, tuple(findings), tuple(explanations), tuple(covered))


def _overall(findings: list[Finding]) -> Verdict:
    """The gravest verdict among the findings."""
    found = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("wrong", "imprecise", "kink")
    return next((verdict for verdict in order if verdict in found), "right")


def _is_narrow(checked: CheckedFunction) -> bool:
    return any(value.dtype != np.float64 for value in checked.given)


def _sample(size: int, entries: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(size) if size <= entries else np.sort(rng.choice(size, entries, replace=False))


# ------------------------------------------------------------------------------------------------------- one input


@dataclass(frozen=True)
class _Entry:
    """One derivative that is checked: along one entry of an input or along a direction, for one cotangent."""

    index: tuple[int, ...] | None
    direction: np.ndarray
    scale: float  # how large the input is along the direction
    got: float
    row: int  # which cotangent


class _Input:
    """One input of a checked function, and its gradients for each cotangent."""

    def __init__(self, checked: CheckedFunction, place: int, cotangents: np.ndarray, gradients: np.ndarray) -> None:
        self.checked, self.place, self.cotangents, self.gradients = checked, place, cotangents, gradients
        self.name, self.value = checked.names[place], checked.point[place]
        self.size = self.value.size
        self.estimates: list[np.ndarray] = []  # one for each direction so far, a number per cotangent
        self.along: list[np.ndarray] = []  # the same by the gradients that are checked
        self.eps = float(np.finfo(checked.dtype).eps)
        self.tolerance = TOLERANCES.get(checked.dtype.name, TOLERANCES["float64"])
        magnitudes = np.abs(np.concatenate([np.zeros(0), *(p.astype(np.float64).ravel() for p in checked.parts)]))
        self.rounding = self.eps * (np.abs(cotangents) @ magnitudes)  # of ⟨c, f⟩, for each cotangent
        finite = np.where(np.isfinite(gradients), gradients, 0.0).reshape(len(gradients), -1)
        self.largest = np.abs(finite).max(axis=1, initial=0.0)
        # where f gives one number, entries are shown as those of its gradient, without the cotangent
        self.shown_by = cotangents[:, 0] if cotangents.shape[1] == 1 else np.ones(len(cotangents))

    def findings(self, indices: np.ndarray, rng: np.random.Generator) -> Iterator[Finding]:
        """What does not agree, each entry once."""
        scales = np.where(np.isfinite(self.value), np.maximum(1.0, np.abs(self.value)), 1.0)
        for flat in indices:
            index = tuple(map(int, np.unravel_index(flat, self.value.shape)))
            direction = np.zeros(self.value.shape)
            direction[index] = 1.0
            yield from self._along(index, direction, float(scales[index]))
        if len(indices) < self.size:
            # each entry moves in its own scale, so that a mask of -1e9 among small numbers does not make all steps too large
            direction = rng.choice([-1.0, 1.0], self.value.shape) * rng.uniform(0.5, 1.0, self.value.shape) * scales
            yield from self._along(None, direction, 1.0)

    def _along(self, index: tuple[int, ...] | None, direction: np.ndarray, scale: float) -> Iterator[Finding]:
        """The first finding among all cotangents along one direction."""
        step = scale * self.eps ** (1 / 3)  # where bending and rounding are about equally wrong
        estimates = central(self._curve(direction), step)
        self.estimates.append(estimates)
        moves = direction != 0.0  # an infinite slope along another entry does not touch this one
        self.along.append(np.array([np.sum(gradient[moves] * direction[moves]) for gradient in self.gradients]))
        for row, estimate in enumerate(estimates):
            got = float(self.along[-1][row])
            if not self._agrees_at_once(row, got, float(estimate), self.rounding[row] / step):
                finding = self._judge(_Entry(index, direction, scale, got, row))
                if finding is not None:
                    yield finding
                    return

    def _curve(self, direction: np.ndarray) -> Callable[[float], np.ndarray]:
        """⟨c, f⟩ for every cotangent c, along a line."""

        def curve(t: float) -> np.ndarray:
            moved = list(self.checked.point)
            moved[self.place] = self.value + t * direction
            found: np.ndarray = self.cotangents @ self.checked.numbers(moved)
            return found

        return curve

    def _agrees_at_once(self, row: int, got: float, estimate: float, rounding: float) -> bool:
        size = max(abs(got), abs(estimate))
        trusted = 10 * rounding <= TRUSTED * max(size, self.largest[row])
        return got == estimate or (trusted and abs(got - estimate) <= self.tolerance * size + 10 * rounding)

    def _judge(self, entry: _Entry) -> Finding | None:
        """The verdict on an entry that does not agree at the first step: now with the best of many steps."""
        here = abs(float(self.value[entry.index])) if entry.index is not None else 0.0
        smallest = min(1e-9, 1e-4 * here / entry.scale) or 1e-9  # a step below the number itself, where it is tiny
        curve = self._curve(entry.direction)
        found = slope(lambda t: float(curve(t)[entry.row]), entry.scale, float(self.rounding[entry.row]), smallest)
        got, value, uncertainty = entry.got, found.value, found.uncertainty
        size = max((abs(number) for number in (got, value) if np.isfinite(number)), default=0.0)
        error = abs(got - value) if np.isfinite(got) or not np.isfinite(value) else np.inf
        # a derivative of 0 has no relative error: small is what bending and rounding leave of it at the best step
        negligible = 1e-9 * found.steepest + 1e3 * self.rounding[entry.row] / entry.scale
        allowed = self.tolerance * size + negligible
        certain = uncertainty <= max(TRUSTED * max(size, self.largest[entry.row]), negligible)
        if certain and error <= allowed + uncertainty:
            return None
        if not np.isfinite(curve(0.0)[entry.row]):
            return self._finding("imprecise", entry, found, f"{self.checked.name} is not finite at this point")
        if found.has_kink:
            return self._on_kink(entry, found)
        if error > allowed + 3 * uncertainty:
            return self._finding("wrong", entry, found)
        if not uncertainty <= size:
            return self._finding(
                "imprecise", entry, found, "the differences do not settle: there is a jump or an edge here"
            )
        reason = f"differences are certain to ± {uncertainty:.1e} only; check in float64, or on smaller numbers"
        return self._finding("imprecise", entry, found, reason)

    def _on_kink(self, entry: _Entry, found: Slope) -> Finding:
        """On a kink every number between the slopes on both sides is a derivative; outside nothing can be said."""
        low, high = sorted((found.left, found.right))
        margin = self.tolerance * max(abs(low), abs(high))
        between = low - margin <= entry.got <= high + margin
        left, right = found.left / self.shown_by[entry.row], found.right / self.shown_by[entry.row]
        sides = f"on a kink, with slope {left:.4g} to the left and {right:.4g} to the right"
        reason = (
            f"{sides}; {'any number between is a derivative' if between else 'move the point a little and check again'}"
        )
        return self._finding("right" if between else "kink", entry, found, reason)

    def _finding(self, verdict: Verdict, entry: _Entry, found: Slope, reason: str = "") -> Finding:
        by = self.shown_by[entry.row]
        got, expected, uncertainty = float(entry.got / by), float(found.value / by), float(found.uncertainty / abs(by))
        return Finding(verdict, self.name, entry.index, got, expected, uncertainty, reason)

    def narrow_findings(self, narrow: np.ndarray) -> Iterator[Finding]:
        """Where the gradient in the input's own dtype is not the right one in float64: rounding, not a wrong rule."""
        dtype = self.checked.given[self.place].dtype.name
        tolerance = TOLERANCES.get(dtype, TOLERANCES["float64"])
        rounding = self.rounding / self.eps * float(np.finfo(dtype).eps)
        for row, (exact, got) in enumerate(zip(self.gradients, narrow, strict=True)):
            allowed = tolerance * (np.abs(exact) + 0.1 * self.largest[row]) + 100 * rounding[row]
            far = ~(np.abs(got - exact) <= allowed)
            if far.any():
                index = tuple(map(int, np.argwhere(far)[0]))
                by = self.shown_by[row]
                reason = f"right in float64, but rounding in {dtype} changes it; check in float64, or use a more stable formula"
                yield Finding(
                    "imprecise", self.name, index, float(got[index] / by), float(exact[index] / by), 0.0, reason
                )
                return

    def explanations(self, indices: np.ndarray) -> list[str]:
        """What the entries have in common, and the sum along a random direction with them."""
        sizes = {f"the number of entries of {self.name}": self.size}
        sizes |= {f"the size of axis {axis} of {self.name}": size for axis, size in enumerate(self.value.shape)}
        sizes["the number of entries of the result"] = self.cotangents.shape[1]
        shape = self.value.shape if len(indices) == self.size else ()
        return list(explained(self.name, np.stack(self.along, axis=1), np.stack(self.estimates, axis=1), sizes, shape))
