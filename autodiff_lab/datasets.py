"""Small data to train on: digits and a text that ship with the library, points that are made from a seed, splits and batches.

Where the digits and the text come from, and their licences, stands in ``data/ATTRIBUTION.md``.

A perceptron that learns to read handwritten digits:

>>> import autodiff_lab as ad
>>> from autodiff_lab import ops
>>> from autodiff_lab.layers import MLP
>>> from autodiff_lab.optimizers import Adam, Optimizer
>>> images, labels = digits()
>>> (x, y), (x_test, y_test) = split(images.reshape(-1, 64), labels, seed=0)
>>> model = MLP(64, 32, 10, seed=0)
>>> optimizer = Optimizer(model.parameters(), Adam(learning_rate=0.01))
>>> for epoch in range(5):
...     for images, wanted in batches(x, y, size=32, seed=epoch):
...         optimizer.zero_grad()
...         ops.cross_entropy(model(images), wanted).backward()
...         optimizer.step()
>>> with ad.no_grad():
...     guesses = model(x_test).numpy().argmax(axis=1)
>>> bool((guesses == y_test).mean() > 0.9)
True
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
_DATA = files("autodiff_lab") / "data"


# ----------------------------------------------------------------------------------------------------------- that ship


def digits() -> tuple[Array, Array]:
    """1797 handwritten digits of 13 people (Alpaydin and Kaynak, 1998; CC BY 4.0).

    Gives images (1797, 8, 8), float32 from 0 (paper) to 1 (ink), and the digits (1797,) from 0 to 9.

    >>> images, labels = digits()
    >>> images.shape, images.dtype, labels[:10].tolist()
    ((1797, 8, 8), dtype('float32'), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    with (_DATA / "digits.csv.gz").open("rb") as packed, gzip.open(packed, "rt", encoding="ascii") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    images = table[:, :-1].reshape(-1, 8, 8).astype(np.float32) / 16
    return images, table[:, -1]


def text() -> str:
    """About 142,000 characters of English about Python: help topics of its language reference (PSF licence).

    >>> text()[:22]
    'The "assert" statement'
    """
    return (_DATA / "python_topics.txt").read_text(encoding="ascii")


class Vocabulary(NamedTuple):
    """The characters of a text; a character's number is its place among them.

    >>> vocabulary = Vocabulary.of("banana")
    >>> vocabulary.encode("nab").tolist(), vocabulary.decode([1, 0, 2])
    ([2, 0, 1], 'ban')
    """

    characters: str

    @classmethod
    def of(cls, text: str) -> Vocabulary:
        """Every character of a text, sorted."""
        return cls("".join(sorted(set(text))))

    @property
    def size(self) -> int:
        """How many characters there are."""
        return len(self.characters)

    def encode(self, text: str) -> Array:
        """The number of each character."""
        numbers = {character: number for number, character in enumerate(self.characters)}
        if unknown := sorted(set(text) - numbers.keys()):
            raise ValueError(f"encode: the vocabulary has no {unknown}; make it of a text that holds these characters")
        return np.array([numbers[character] for character in text], np.int64)

    def decode(self, numbers: Any) -> str:
        """The text that the numbers stand for."""
        return "".join(self.characters[int(number)] for number in numbers)


# ------------------------------------------------------------------------------------------------------- that are made


def spirals(count: int = 300, arms: int = 3, noise: float = 0.1, *, seed: int) -> tuple[Array, Array]:
    """Points on ``arms`` spirals that wind round each other, one class an arm: no line separates them.

    Gives points (count, 2), float32 within about −1 to 1, and classes (count,). ``noise`` is the standard deviation of the
    angle, in radians.

    >>> points, classes = spirals(6, arms=3, seed=0)
    >>> points.shape, classes.tolist()
    ((6, 2), [0, 1, 2, 0, 1, 2])
    """
    random = np.random.default_rng(seed)
    classes = np.arange(count) % arms
    radius = random.uniform(0.1, 1.0, count)
    angle = 6.0 * radius + 2.0 * math.pi * classes / arms + noise * random.standard_normal(count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype(np.float32), classes


def two_moons(count: int = 200, noise: float = 0.1, *, seed: int) -> tuple[Array, Array]:
    """Points on two half circles that reach into each other, one class each.

    Gives points (count, 2), float32, and classes (count,). ``noise`` is a standard deviation, where the radius is 1.

    >>> points, classes = two_moons(4, noise=0.0, seed=0)
    >>> classes.tolist(), np.hypot(*points[0]).round(5).item()  # the upper moon lies on the unit circle
    ([0, 1, 0, 1], 1.0)
    """
    random = np.random.default_rng(seed)
    classes = np.arange(count) % 2
    angle = random.uniform(0.0, math.pi, count)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.where(classes[:, None] == 0, upper, np.array([1.0, 0.5]) - upper)
    return (points + noise * random.standard_normal(points.shape)).astype(np.float32), classes


# ------------------------------------------------------------------------------------------------- splits and batches


class Split(NamedTuple):
    """One part of some arrays to train on and the rest to test on, each a tuple of arrays."""

    train: tuple[Array, ...]
    test: tuple[Array, ...]


def split(*arrays: Array, test: float = 0.2, seed: int) -> Split:
    """Shuffle rows and set a fraction ``test`` of them apart; rows of all arrays that belong together stay together.

    >>> (x, y), (x_test, y_test) = split(np.arange(10), np.arange(10) * 2, test=0.3, seed=0)
    >>> len(x), len(x_test), bool((y == 2 * x).all())
    (7, 3, True)
    """
    if not 0 < test < 1:
        raise ValueError(f"split: test must be a fraction between 0 and 1, got {test}")
    order = np.random.default_rng(seed).permutation(_rows("split", arrays))
    cut = round(len(order) * test)
    chosen, left = order[cut:], order[:cut]
    return Split(tuple(array[chosen] for array in arrays), tuple(array[left] for array in arrays))


def batches(*arrays: Array, size: int, seed: int) -> Iterator[tuple[Array, ...]]:
    """Every row once, in random order, ``size`` rows at a time; the last batch may be smaller. Another seed, another order.

    >>> [len(x) for (x,) in batches(np.arange(10), size=4, seed=0)]
    [4, 4, 2]
    """
    if size < 1:
        raise ValueError(f"batches: size must be at least 1, got {size}")
    order = np.random.default_rng(seed).permutation(_rows("batches", arrays))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield tuple(array[rows] for array in arrays)


def text_batches(tokens: Array, *, length: int, size: int, count: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """``count`` batches of random pieces of a text, and the same pieces one token later, which a language model shall guess.

    Shapes: tokens (n,), both parts of a batch (size, length).

    >>> x, y = next(text_batches(np.arange(100), length=5, size=2, count=1, seed=0))
    >>> x.shape, bool((y == x + 1).all())
    ((2, 5), True)
    """
    if len(tokens) <= length:
        raise ValueError(f"text_batches: a piece takes {length + 1} tokens, but there are only {len(tokens)}")
    random = np.random.default_rng(seed)
    for _ in range(count):
        places = random.integers(0, len(tokens) - length, size)[:, None] + np.arange(length)
        yield tokens[places], tokens[places + 1]


def _rows(where: str, arrays: tuple[Array, ...]) -> int:
    counts = [len(array) for array in arrays]
    if len(set(counts)) != 1:
        raise ValueError(f"{where}: expected arrays with equally many rows, at least one array; got rows {counts}")
    return counts[0]
