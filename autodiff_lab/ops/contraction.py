"""Products that sum over axes, made of matmul: dot, inner, outer, tensordot, kron and einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .composed import composed
from .diagonals import diagonal
from .linalg import matmul
from .rearrange import named_axes
from .reduce import sum
from .sampling import Call, normal
from .structure import broadcast_to, reshape, transpose

# ------------------------------------------------------------------------------------------------------ products of NumPy


@composed(arrays=2)
def outer(x: Any, y: Any) -> Any:
    """Each number of x times each number of y: out[i, j] = x[i] · y[j]. Both are taken as one row of numbers.

    >>> ops.outer([1.0, 2.0], [3.0, 4.0])
    array([[3., 4.],
           [6., 8.]])
    """
    return reshape(x, shape=(-1, 1)) * reshape(y, shape=(1, -1))


@outer.samples
def outer_samples() -> list[Call]:
    single = normal(2).astype(np.float32)
    return [((normal(3), normal(4, seed=1)), {}), ((normal(2, 3).T, normal()), {}), ((single, single + 1), {})]


@composed(arrays=2)
def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    """The product of x and y, summed over pairs of axes: the last ``axes`` of x with the first of y, or (axes of x, axes of y).

    >>> ops.tensordot(np.ones((2, 3)), np.ones((3, 4)), 1).shape
    (2, 4)
    """
    of_x, of_y = _summed_axes(axes, x.ndim, y.ndim)
    if tuple(x.shape[place] for place in of_x) != tuple(y.shape[place] for place in of_y):
        raise ValueError(f"axes {axes} pair axes of unequal size in the shapes {x.shape} and {y.shape}")
    left = [place for place in range(x.ndim) if place not in of_x]
    right = [place for place in range(y.ndim) if place not in of_y]
    inner_size = math.prod(x.shape[place] for place in of_x)
    shape = (*(x.shape[place] for place in left), *(y.shape[place] for place in right))
    rows = reshape(transpose(x, axes=(*left, *of_x)), shape=(math.prod(shape[: len(left)]), inner_size))
    columns = reshape(transpose(y, axes=(*of_y, *right)), shape=(inner_size, math.prod(shape[len(left) :])))
    return reshape(matmul(rows, columns), shape=shape)


def _summed_axes(axes: Any, x_ndim: int, y_ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(x_ndim, y_ndim):
            raise ValueError(f"axes={axes}, but x has {x_ndim} axes and y {y_ndim}")
        return tuple(range(x_ndim - axes, x_ndim)), tuple(range(axes))
    of_x, of_y = axes
    found = named_axes(of_x, x_ndim), named_axes(of_y, y_ndim)
    if len(found[0]) != len(found[1]):
        raise ValueError(f"axes must name as many axes of x as of y, got {axes}")
    return found


@tensordot.samples
def tensordot_samples() -> list[Call]:
    x, y = normal(2, 3, 4), normal(3, 4, 5, seed=1)
    return [((x, y), {}), ((x, y), {"axes": ((1,), (0,))}), ((x, y), {"axes": ([2, 1], [1, 0])}), ((x.T, x), {"axes": 1}),
            ((normal(2), normal(3)), {"axes": 0}), ((normal(2, 0), normal(0, 3)), {"axes": 1})]  # fmt: skip


@composed(arrays=2)
def dot(x: Any, y: Any) -> Any:
    """NumPy's dot: the product of numbers, the scalar product of vectors, the matrix product of matrices.

    With more axes the sum runs over the last axis of x and the last but one of y.

    >>> float(ops.dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if y.ndim == 1 or x.ndim <= 2 >= y.ndim:
        return matmul(x, y)
    return tensordot(x, y, (-1, -2))


@composed(arrays=2)
def inner(x: Any, y: Any) -> Any:
    """The product of x and y, summed over the last axis of both.

    >>> float(ops.inner([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    return x * y if x.ndim == 0 or y.ndim == 0 else tensordot(x, y, (-1, -1))


@composed(arrays=2)
def vdot(x: Any, y: Any) -> Any:
    """The scalar product of x and y, each taken as one row of numbers.

    >>> float(ops.vdot([[1.0], [2.0]], [3.0, 4.0]))
    11.0
    """
    return matmul(reshape(x, shape=-1), reshape(y, shape=-1))


@dot.samples
def dot_samples() -> list[Call]:
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 2, 3), (2, 3, 4)), ((), (3,))]
    return [((normal(*one), normal(*other, seed=1)), {}) for one, other in shapes]


@inner.samples
def inner_samples() -> list[Call]:
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((3,), ())]
    return [((normal(*one), normal(*other, seed=1)), {}) for one, other in shapes]


@vdot.samples
def vdot_samples() -> list[Call]:
    return [((normal(6), normal(2, 3, seed=1)), {}), ((normal(2, 3).T, normal(3, 2, seed=1)), {})]


@composed(arrays=2)
def kron(x: Any, y: Any) -> Any:
    """The Kronecker product: each number of x replaced by that number times y.

    >>> ops.kron([1.0, 10.0], [1.0, 2.0])
    array([ 1.,  2., 10., 20.])
    """
    ndim = max(x.ndim, y.ndim)
    of_x, of_y = ((1,) * (ndim - one.ndim) + tuple(one.shape) for one in (x, y))
    apart = reshape(x, shape=tuple(part for size in of_x for part in (size, 1)))
    product = apart * reshape(y, shape=tuple(part for size in of_y for part in (1, size)))
    return reshape(product, shape=tuple(a * b for a, b in zip(of_x, of_y, strict=True)))


@kron.samples
def kron_samples() -> list[Call]:
    return [
        ((normal(2), normal(3, seed=1)), {}),
        ((normal(2, 3), normal(2, 2, seed=1)), {}),
        ((normal(2), normal(2, 2)), {}),
    ]


# --------------------------------------------------------------------------------------------------------------- einsum


@composed(arrays=0, apply=lambda einsum, operands, options: einsum(options["subscripts"], *operands))
def einsum(subscripts: str, *operands: Any) -> Any:
    """Einstein's sum: every axis gets a letter, and letters that the result lacks are summed over.

    "ij,jk->ik" is the matrix product, "ii->" the trace, "ij->ji" the transpose; "...i,i->..." works on any leading axes.
    Without "->" the result has the letters that occur once, in alphabetical order. Operands are multiplied from left to
    right, each pair by one matmul.

    >>> ops.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    array([21., 43.])
    """
    values = [value if hasattr(value, "shape") else np.asarray(value) for value in operands]
    terms, output = _letters(subscripts, [value.ndim for value in values])
    sizes = _sizes(subscripts, terms, values)
    pairs = [_without_repeats(value, term) for value, term in zip(values, terms, strict=True)]
    full = [(broadcast_to(v, shape=tuple(sizes[one] for one in t)), t) for v, t in pairs]
    product, letters = full[0]
    for place, (value, term) in enumerate(full[1:], start=2):
        needed = set(output).union(*terms[place:])
        product, letters = _product(product, letters, value, term, needed)
    product, letters = _summed(product, letters, set(output))
    return transpose(product, axes=tuple(letters.index(one) for one in output))


def _letters(subscripts: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand's axes and of the result's, with letters in place of the dots."""
    where = f"subscripts {subscripts!r}"
    given, arrow, wanted = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(ndims):
        raise ValueError(f"{where} name {len(terms)} operands, got {len(ndims)}")
    free = [chr(code) for code in range(0x3B1, 0x3CA)]  # Greek letters stand for the axes under the dots
    widest = 0
    for place, (term, ndim) in enumerate(zip(terms, ndims, strict=True)):
        hidden = ndim - len(term.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in term):
            raise ValueError(f"{where}: {term!r} does not name the {ndim} axes of operand {place}")
        widest = max(widest, hidden)
        terms[place] = term.replace("...", "".join(free[:hidden][::-1]))
    dots = "".join(free[:widest][::-1])
    if arrow:
        output = wanted.replace("...", dots)
    else:
        once = sorted(one for one in set(given) if one.isalpha() and given.count(one) == 1)
        output = dots + "".join(once)
    if len(set(output)) != len(output) or not set(output) <= set("".join(terms)):
        raise ValueError(f"{where}: each letter of the result must occur in an operand, and once in the result")
    return terms, output


def _sizes(subscripts: str, terms: Sequence[str], values: Sequence[Any]) -> dict[str, int]:
    """The size of each letter's axes; an axis of size 1 is repeated to fit."""
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        for letter in term:
            own = {size for other, size in zip(term, value.shape, strict=True) if other == letter}
            if len(own) > 1:
                raise ValueError(
                    f"subscripts {subscripts!r}: letter {letter!r} names axes of sizes {sorted(own)} in one operand"
                )
        for letter, size in zip(term, value.shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known != size and 1 not in (known, size):
                raise ValueError(f"subscripts {subscripts!r}: letter {letter!r} has size {known} and size {size}")
            sizes[letter] = size if known == 1 else known
    return sizes


def _without_repeats(x: Any, term: str) -> tuple[Any, str]:
    """x and its letters, where a letter that occurs twice has been replaced by the diagonal of its axes."""
    for letter in term:
        while term.count(letter) > 1:
            first, second = term.index(letter), term.rindex(letter)
            x = diagonal(x, axis1=first, axis2=second)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return x, term


def _summed(x: Any, letters: str, needed: set[str]) -> tuple[Any, str]:
    """x summed over the letters that nobody needs."""
    unused = tuple(place for place, letter in enumerate(letters) if letter not in needed)
    if not unused:
        return x, letters
    return sum(x, axis=unused), "".join(letter for letter in letters if letter in needed)


def _product(x: Any, x_letters: str, y: Any, y_letters: str, needed: set[str]) -> tuple[Any, str]:
    """The product of two operands, summed over the letters that nobody else needs, as one (batched) matmul."""
    x, x_letters = _summed(x, x_letters, needed | set(y_letters))
    y, y_letters = _summed(y, y_letters, needed | set(x_letters))
    shared = [one for one in x_letters if one in y_letters]
    batch = [one for one in shared if one in needed]
    summed = [one for one in shared if one not in needed]
    left = [one for one in x_letters if one not in shared]
    right = [one for one in y_letters if one not in shared]
    size = dict(zip(x_letters, x.shape, strict=True)) | dict(zip(y_letters, y.shape, strict=True))
    counts = [math.prod(size[one] for one in group) for group in (left, summed, right)]
    stack = tuple(size[one] for one in batch)
    rows = transpose(x, axes=tuple(x_letters.index(one) for one in (*batch, *left, *summed)))
    columns = transpose(y, axes=tuple(y_letters.index(one) for one in (*batch, *summed, *right)))
    product = matmul(
        reshape(rows, shape=(*stack, counts[0], counts[1])), reshape(columns, shape=(*stack, counts[1], counts[2]))
    )
    letters = "".join((*batch, *left, *right))
    return reshape(product, shape=tuple(size[one] for one in letters)), letters


@einsum.samples
def einsum_samples() -> list[Call]:
    calls: dict[str, list[tuple[int, ...]]] = {
        "ij,jk->ik": [(2, 3), (3, 4)], "ii->": [(3, 3)], "nd,nn->d": [(4, 2), (4, 4)], "ijk->ki": [(2, 3, 4)],
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "i,j": [(2,), (3,)], "...ij,...j->...i": [(2, 3, 4), (1, 4)], "ii->i": [(3, 3)],
        "ij,ij,ij->i": [(2, 3)] * 3, "ij,jk,kl->il": [(2, 3), (3, 4), (4, 2)], "ij,k->": [(2, 3), (2,)],
        "iij,j": [(2, 2, 3), (3,)], ",i->i": [(), (3,)], "b...->...": [(2, 3, 4)], "ij,kj->": [(0, 3), (2, 3)],
    }  # fmt: skip
    return [
        (tuple(normal(*shape, seed=place) for place, shape in enumerate(shapes)), {"subscripts": subscripts})
        for subscripts, shapes in calls.items()
    ]
