"""Sizes that stand in for unknown ones, so that a shape rule written for whole numbers can be asked about shapes known in part.

A rule is asked several times. What it answers every time is known, what equals a named size's stand-in every time bears its
name, and nothing is known about the rest. So a rule needs to know nothing of unknown sizes, and what it says is not trusted
further than it was seen to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from .operand_rules import Dimension, PartialShape, Shape, is_known

Rule = Callable[[Sequence[Shape]], PartialShape]
Sizes = dict[Hashable, int]  # a stand-in for each unknown size: by its name, or by operand and axis where it has none
Pattern = tuple[Any, ...]  # a shape in which an unknown size is the key of its stand-in

PRIMES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179)
LARGE = 10_007  # a rule that indexes makes an array of so many truth values; larger than what slices usually take
MULTIPLE = 11  # times the recorded size: what had to be divisible still is
MOST_SIZES = 12  # that are tried because they stand in an operand's shape or an attribute
MIXED = 200  # tries where several sizes are unknown, which a rule may tie together
LAST_RESORT = range(257)  # before shapes are called wrong


@dataclass(frozen=True)
class Answer:
    """What is known about a result's shape, and whether that is less than what the operands' shapes would allow."""

    shape: PartialShape
    loses: bool  # the rule itself answered with None where it was asked with whole numbers


def ask(rule: Rule, operands: Sequence[PartialShape], recorded: Sequence[Shape], others: Iterable[int] = ()) -> Answer:
    """What a shape rule says about shapes of which some sizes are unknown.

    Args:
        rule: from the operands' shapes, all in whole numbers, to the result's.
        operands: the shapes, known in part.
        recorded: shapes of the same operands that the rule is known to take: those of the recorded graph.
        others: sizes to try because they may matter to this call.

    Raises:
        Exception: what the rule raised, if it refused every size that was tried.

    >>> transposed = lambda shapes: shapes[0][::-1]
    >>> ask(transposed, [("batch", 784)], [(64, 784)]).shape
    (784, 'batch')
    >>> ask(lambda shapes: (shapes[0][0] - 2,), [("batch",)], [(64,)]).shape
    (None,)
    """
    if all(_is_concrete(shape) for shape in operands):
        said = rule(operands)  # type: ignore[arg-type]
        return Answer(said, not is_known(said))
    sizes = _sizes_seen(operands, others)
    patterns = list(_patterns(operands, recorded))
    for tries in (_usual, _last_resort):
        answers, refusal = _asked(rule, ((p, seen, s) for p, seen in patterns for s in tries(seen, sizes)))
        if answers:
            return Answer(_common(answers), not all(is_known(said) for _, said in answers))
    assert refusal is not None
    raise refusal


def _asked(
    rule: Rule, tries: Iterable[tuple[Sequence[Pattern], Any, Sizes]]
) -> tuple[list[tuple[Sizes, PartialShape]], Exception | None]:
    """What the rule answered, and its first refusal."""
    answers, refusal = [], None
    for patterns, _, sizes in tries:
        try:
            answers.append((sizes, rule([_filled(pattern, sizes) for pattern in patterns])))
        except Exception as error:  # whatever a rule raises: it does not take these shapes
            refusal = refusal or error
    return answers, refusal


def _filled(pattern: Pattern, sizes: Sizes) -> Shape:
    return tuple(size if isinstance(size, int) else sizes[size] for size in pattern)


def _is_concrete(shape: PartialShape) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape)


# --------------------------------------------------------------------------------------------------- what is tried


def _patterns(operands: Sequence[PartialShape], recorded: Sequence[Shape]) -> Iterator[tuple[list[Pattern], Sizes]]:
    """The operands with a key for each unknown size, and the recorded size of each key.

    Where not even the number of axes is known, the recorded one comes first, then others up to one more than any operand has.
    """
    yield _pattern(operands, recorded)
    if None in operands:
        for rank in range(max(len(shape) for shape in (*recorded, *filter(None, operands))) + 2):
            shapes = [(2,) * rank if known is None else seen for known, seen in zip(operands, recorded, strict=True)]
            yield _pattern(operands, shapes)


def _pattern(operands: Sequence[PartialShape], recorded: Sequence[Shape]) -> tuple[list[Pattern], Sizes]:
    patterns, sizes = [], Sizes()
    for place, (known, seen) in enumerate(zip(operands, recorded, strict=True)):
        shape = (None,) * len(seen) if known is None else known
        pattern: Pattern = tuple((place, axis) if size is None else size for axis, size in enumerate(shape))
        patterns.append(pattern)
        for size, was in zip(pattern, seen, strict=False):
            if not isinstance(size, int):
                sizes.setdefault(size, was)
    return patterns, sizes


def _sizes_seen(operands: Sequence[PartialShape], others: Iterable[int]) -> list[int]:
    known = [size for shape in operands for size in shape or () if isinstance(size, int)]
    return list(dict.fromkeys((*known, *others)))[:MOST_SIZES]


def _usual(recorded: Sizes, sizes: Sequence[int]) -> Iterator[Sizes]:
    """Sizes that tell what depends on what: those recorded, primes, all the same, those of the other operands, 0 and 1."""
    keys = list(recorded)
    strange = [prime for prime in PRIMES if prime not in sizes and prime not in recorded.values()]
    primes = {key: strange[place % len(strange)] for place, key in enumerate(keys)}
    yield recorded
    yield {key: size * MULTIPLE for key, size in recorded.items()}
    yield primes
    yield from ({**primes, key: LARGE} for key in keys)
    special = (strange[-1], LARGE, *sizes, 0, 1)
    yield from (dict.fromkeys(keys, size) for size in special)
    if len(keys) > 1:
        yield from ({**rest, key: size} for rest in (primes, recorded) for key in keys for size in special)
        yield from _mixed(recorded, list(dict.fromkeys((*sizes, *recorded.values(), strange[-1], 1, 2, 3))))


def _mixed(recorded: Sizes, pool: Sequence[int]) -> Iterator[Sizes]:
    """Sizes drawn from few at a time, so that those which a rule wants equal often are; the same draws every time."""
    draw = Random(0)
    for _ in range(MIXED):
        few = [draw.choice(pool) for _ in range(3)]
        yield {key: draw.choice(few) for key in recorded}


def _last_resort(recorded: Sizes, sizes: Sequence[int]) -> Iterator[Sizes]:
    """Every small size, for all unknown ones together and for each alone."""
    for size in LAST_RESORT:
        yield dict.fromkeys(recorded, size)
        if len(recorded) > 1:
            yield from ({**recorded, key: size} for key in recorded)


def sizes_in(attributes: Any) -> Iterator[int]:
    """The whole numbers in an op's attributes, and those one above: a slice that ends at 200 tells itself by 201 only.

    >>> list(sizes_in({"shape": (64, -1), "axis": None}))
    [64, 65, 1, 2]
    """
    if isinstance(attributes, (int, np.integer)) and not isinstance(attributes, bool):
        yield from (abs(int(attributes)), abs(int(attributes)) + 1)
    elif isinstance(attributes, slice):
        yield from sizes_in((attributes.start, attributes.stop))
    elif isinstance(attributes, (list, tuple, Mapping)):
        for one in attributes.values() if isinstance(attributes, Mapping) else attributes:
            yield from sizes_in(one)


# ------------------------------------------------------------------------------------------------- what holds always


def _common(answers: Sequence[tuple[Sizes, PartialShape]]) -> PartialShape:
    """What all answers say together."""
    shapes = [shape for _, shape in answers if shape is not None]
    if len(shapes) < len(answers) or len({len(shape) for shape in shapes}) > 1:
        return None
    sizes = [given for given, _ in answers]
    frozen = _frozen(sizes)
    return tuple(_dimension(sizes, along, frozen) for along in zip(*shapes, strict=True))


def _frozen(sizes: Sequence[Sizes]) -> Sizes:
    """Where several sizes are unknown: those of which the rule took one value only.

    One alone is what the rule demands. Two or more may be tied to each other, in a way that no try has met.
    """
    taken: dict[Hashable, set[int]] = {}
    for given in sizes:
        for key, size in given.items():
            taken.setdefault(key, set()).add(size)
    return {key: values.pop() for key, values in taken.items() if len(values) == 1 and len(taken) > 1}


def _dimension(sizes: Sequence[Sizes], along: Sequence[Dimension], frozen: Sizes) -> Dimension:
    """One size of the result: the same in every answer, or that of a name in every answer, or unknown."""
    if len(set(along)) == 1:
        return along[0] if not frozen or (len(frozen) == 1 and along[0] not in frozen.values()) else None
    names = [key for key in sizes[0] if isinstance(key, str)]
    return next((name for name in names if all(s.get(name) == got for s, got in zip(sizes, along, strict=True))), None)
