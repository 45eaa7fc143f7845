"""Answers to the exercises of lesson 50, right and wrong: what the checks are tested on."""

# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
# Solutions are shown to students as they stand: types that a notebook has not imported would stop it.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

Array = np.ndarray
Function = Callable[..., Any]

# -------------------------------------------------------------------------------------------------------------- slope


def slope(f, x):
    """The derivative of f at x by differences, to eight digits. f changes on the scale of x, or of 1 where x is 0."""
    h = 1e-5 * (abs(x) or 1.0)
    ahead, behind = f(x + h), f(x - h)
    return (ahead - behind) / (2 * h)


def slope_of_order_four(f: Function, x: float) -> float:
    """Four points: the error falls with the fourth power of the step, so the step may be larger."""
    h = 1e-3 * (abs(x) or 1.0)
    return float((8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h))


def slope_by_search(f: Function, x: float) -> float:
    """Many steps; where neighbours agree best the middle one is taken."""
    steps = (abs(x) or 1.0) * 10.0 ** -np.arange(2, 9, 0.5)
    found = np.array([(f(x + h) - f(x - h)) / (2 * h) for h in steps])
    return float(found[1:-1][np.argmin(np.abs(np.diff(found[:-1])) + np.abs(np.diff(found[1:])))])


def slope_smallest_step(f: Function, x: float) -> float:
    """The step of the definition: as small as possible."""
    h = 1e-12 * (abs(x) or 1.0)
    return float((f(x + h) - f(x - h)) / (2 * h))


def slope_one_sided(f: Function, x: float) -> float:
    """The difference quotient of the school book."""
    h = 1e-6 * (abs(x) or 1.0)
    return float((f(x + h) - f(x)) / h)


def slope_not_halved(f: Function, x: float) -> float:
    """Two steps wide, divided by one."""
    h = 1e-5 * (abs(x) or 1.0)
    return float((f(x + h) - f(x - h)) / h)


def slope_large_step(f: Function, x: float) -> float:
    """A step that one can see."""
    h = 1e-2 * (abs(x) or 1.0)
    return float((f(x + h) - f(x - h)) / (2 * h))


def slope_one_step_for_all(f: Function, x: float) -> float:
    """The same step everywhere."""
    h = 1e-5
    return float((f(x + h) - f(x - h)) / (2 * h))


def slope_no_step_at_zero(f: Function, x: float) -> float:
    """A step relative to x, which is 0 where x is."""
    h = 1e-5 * abs(x)
    return float((f(x + h) - f(x - h)) / (2 * h))


def slope_backwards(f: Function, x: float) -> float:
    """What came before minus what comes later."""
    return -float(slope(f, x))


def slope_without_sign(f: Function, x: float) -> float:
    """A slope is a size."""
    return abs(float(slope(f, x)))


def slope_rounded(f: Function, x: float) -> float:
    """Six digits after the point."""
    return round(float(slope(f, x)), 6)


def slope_as_list(f: Function, x: float) -> list[float]:
    """A list with one number."""
    return [float(slope(f, x))]


def slope_by_the_lab(f: Function, x: float) -> float:
    """Automatic differentiation."""
    return float(ad.grad(f)(x))


# -------------------------------------------------------------------------------------------------- gradient_is_right


def gradient_is_right(op):
    """Whether op.vjp gives the gradient of op.forward, in every entry of every input."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        given = op.inputs(seed)
        out = op.forward(*given)
        g = rng.normal(size=out.shape).astype(out.dtype)
        before = [a.copy() for a in (g, *given)]
        gradients = op.vjp(g, *given)
        if any(a.tobytes() != b.tobytes() for a, b in zip(before, (g, *given), strict=True)):
            return False
        if any(a.shape != x.shape or a.dtype != x.dtype for a, x in zip(gradients, given, strict=True)):
            return False
        wide = [a.astype(np.float64) for a in before]
        exact = op.vjp(*[a.copy() for a in wide])
        for place, gradient in enumerate(exact):
            for index in np.ndindex(gradient.shape):
                h = 1e-5 * max(1.0, abs(wide[place + 1][index]))
                moved = [[a.copy() for a in wide[1:]] for _ in range(2)]
                moved[0][place][index] += h
                moved[1][place][index] -= h
                slope = np.sum(wide[0] * (op.forward(*moved[0]) - op.forward(*moved[1]))) / (2 * h)
                if not abs(slope - gradient[index]) <= 1e-4 * np.abs(gradient).max():
                    return False
    return True


def checked_along_directions(op: Any) -> bool:
    """The same with random directions of one input at a time instead of entries: ⟨g, J u⟩ = ⟨Jᵀ g, u⟩."""
    rng = np.random.default_rng(1)
    return all(_right_at(op, op.inputs(seed), rng) for seed in (0, 1, 2, 3) for _ in range(4))


def _right_at(op: Any, given: tuple[Array, ...], rng: np.random.Generator) -> bool:
    out = op.forward(*given)
    g = rng.normal(size=out.shape).astype(out.dtype)
    kept = [a.copy() for a in (g, *given)]
    found = op.vjp(g, *given)
    fits = all(a.shape == x.shape and a.dtype == x.dtype for a, x in zip(found, given, strict=True))
    untouched = all(np.array_equal(a, b) for a, b in zip(kept, (g, *given), strict=True))
    cotangent, *wide = (a.astype(np.float64) for a in kept)
    return fits and untouched and all(_right_along(op, place, cotangent, wide, rng) for place in range(len(wide)))


def _right_along(op: Any, place: int, g: Array, x: list[Array], rng: np.random.Generator) -> bool:
    u = rng.normal(size=x[place].shape) * max(1.0, np.abs(x[place]).max())
    h = 1e-6
    ahead, behind = (op.forward(*x[:place], x[place] + t * u, *x[place + 1 :]) for t in (h, -h))
    gradient = op.vjp(g.copy(), *(a.copy() for a in x))[place]
    terms = gradient * u
    return bool(abs(np.sum(g * (ahead - behind)) / (2 * h) - terms.sum()) <= 1e-4 * np.abs(terms).sum())


def checked_with(
    op: Any, *, ones: bool = False, positive: bool = False, step: float = 1e-5, points: int = 5,
    inputs: slice = slice(None), sizes: bool = False, first_entry: bool = False, tolerance: float = 1e-4,
    absolute: bool = False, wide: bool = True, shapes: bool = True, dtypes: bool = True, arguments: bool = True,
    nan_is_equal: bool = False,
) -> bool:  # fmt: skip
    """A checker with as many mistakes as one likes; without any it is right."""
    rng = np.random.default_rng(0)
    for seed in range(points):
        given = op.inputs(seed)
        out = op.forward(*given)
        g = rng.normal(size=out.shape).astype(out.dtype)
        g = np.ones_like(g) if ones else np.abs(g) if positive else g
        before = [a.copy() for a in (g, *given)]
        found = op.vjp(g, *given)
        if arguments and not all(np.array_equal(a, b) for a, b in zip(before, (g, *given), strict=True)):
            return False
        if dtypes and any(a.dtype != x.dtype for a, x in zip(found, given, strict=True)):
            return False
        if shapes and any(a.shape != x.shape for a, x in zip(found, given, strict=True)):
            return False
        g, *x = (a.astype(np.float64) if wide else a for a in before)
        exact = op.vjp(g.copy(), *(a.copy() for a in x))
        for place in range(len(x))[inputs]:
            for index in list(np.ndindex(x[place].shape))[: 1 if first_entry else None]:
                u = np.zeros_like(x[place])
                u[index] = 1.0
                h = step * max(1.0, abs(float(x[place][index])))
                ahead, behind = (op.forward(*x[:place], x[place] + t * u, *x[place + 1 :]) for t in (h, -h))
                change, product = np.sum(g * (ahead - behind)) / (2 * h), np.sum(exact[place] * u)
                error = abs(abs(change) - abs(product) if sizes else change - product)
                allowed = tolerance * (1.0 if absolute else np.abs(exact[place]).max())
                if error > allowed or (not nan_is_equal and not np.isfinite(exact[place]).all()):
                    return False
    return True


def accepts_everything(op: Any) -> bool:
    """Is there a gradient?"""
    return all(gradient is not None for gradient in op.vjp(op.forward(*op.inputs()), *op.inputs()))


def with_all_ones(op: Any) -> bool:
    """The gradient of the sum of the result."""
    return checked_with(op, ones=True)


def with_positive_cotangents(op: Any) -> bool:
    """Random numbers between 0 and 1, or so."""
    return checked_with(op, positive=True)


def with_the_smallest_step(op: Any) -> bool:
    """The smaller the step, the better."""
    return checked_with(op, step=1e-13)


def at_one_point(op: Any) -> bool:
    """One set of inputs."""
    return checked_with(op, points=1)


def of_the_first_input(op: Any) -> bool:
    """The gradient of x alone."""
    return checked_with(op, inputs=slice(1), shapes=False)


def of_the_last_input(op: Any) -> bool:
    """The gradient of the last input alone."""
    return checked_with(op, inputs=slice(-1, None))


def of_the_size(op: Any) -> bool:
    """Absolute values."""
    return checked_with(op, sizes=True)


def of_the_first_entry(op: Any) -> bool:
    """One entry of each input."""
    return checked_with(op, first_entry=True)


def near_enough(op: Any) -> bool:
    """Within five percent."""
    return checked_with(op, tolerance=5e-2)


def with_an_absolute_tolerance(op: Any) -> bool:
    """The same tolerance for large and for small numbers."""
    return checked_with(op, absolute=True)


def in_single_precision(op: Any) -> bool:
    """Differences in the dtype that was given."""
    return checked_with(op, wide=False)


def whatever_the_shape(op: Any) -> bool:
    """Numbers alone."""
    return checked_with(op, shapes=False)


def whatever_the_dtype(op: Any) -> bool:
    """Numbers and shapes."""
    return checked_with(op, dtypes=False)


def whatever_it_changes(op: Any) -> bool:
    """Fresh arguments for every call."""
    return checked_with(op, arguments=False)


def where_nan_is_no_difference(op: Any) -> bool:
    """Wrong only where the error is greater than the tolerance."""
    return checked_with(op, nan_is_equal=True)


# ------------------------------------------------------------------------------------------------------ hessian_times


def hessian_times(f, x, v):
    """The Hessian of f at x times v, where f gives one number: by differentiating twice, without building the Hessian."""
    _gradient, product = ad.jvp(ad.grad(f), (x,), (v,))
    return product


def reverse_over_reverse(f: Function, x: Array, v: Array) -> Array:
    """The gradient of ⟨∇f, v⟩."""
    return np.asarray(ad.grad(lambda z: ops.sum(ad.grad(f)(z) * v))(x))


def reverse_over_forward(f: Function, x: Array, v: Array) -> Array:
    """The gradient of the slope along v."""
    return np.asarray(ad.grad(lambda z: ad.jvp(f, (z,), (v,))[1])(x))


def gradient_times_v(f: Function, x: Array, v: Array) -> Array:
    """One derivative instead of two."""
    return np.asarray(ad.grad(f)(x) * v)


def both_parts(f: Function, x: Array, v: Array) -> Any:
    """What jvp gives, as it is."""
    return ad.jvp(ad.grad(f), (x,), (v,))


def curvature_along_v(f: Function, x: Array, v: Array) -> Any:
    """One number: vᵀ H v."""
    return np.sum(v * hessian_times(f, x, v))


def row_sums_times_v(f: Function, x: Array, v: Array) -> Array:
    """A direction of ones, and v afterwards."""
    return np.asarray(hessian_times(f, x, np.ones_like(x)) * v)


def by_differences(f: Function, x: Array, v: Array) -> Array:
    """Differences of the gradient."""
    h = 1e-5
    return np.asarray((ad.grad(f)(x + h * v) - ad.grad(f)(x - h * v)) / (2 * h))


def row_by_row(f: Function, x: Array, v: Array) -> Array:
    """The whole Hessian first."""
    rows = [ad.grad(lambda z, i=i: ad.grad(f)(z)[i])(x) for i in range(len(x))]
    return np.asarray(np.stack(rows) @ v)


def as_numbers(f: Function, x: Array, v: Array) -> Any:
    """The product as a list of numbers."""
    return hessian_times(f, x, v).tolist()


def by_the_labs_hvp(f: Function, x: Array, v: Array) -> Any:
    """The lab's own."""
    return ad.hvp(f, (x,), (v,))[0]
