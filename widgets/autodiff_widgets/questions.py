"""Questions before a step: which element, number or words come next; at most a dozen in a run, spread over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from .scene import Frame, Question
from .values import is_short, numbers_of, value_text

MOST = 12  # in a run: more of them would be clicked away
CHOICES = 5  # of a question, at most
LONGEST = 30  # characters of a value that a reader can compute with


def which(
    text: str, right: int, candidates: Iterable[int], element: Callable[[int], str | None], label: Callable[[int], str]
) -> Question | None:
    """Which of some things is it? The choices are the right one and the first others that are drawn; none without others.

    >>> which("Which is next?", 3, [1, 2, 3], "n{}".format, "node {}".format).choices
    (('n1', 'node 1'), ('n2', 'node 2'), ('n3', 'node 3'))
    """
    answer = element(right)
    if answer is None:
        return None
    others: dict[str, str] = {}  # by what is on the button
    for one in candidates:  # which may be very many
        key, name = element(one), label(one)
        if key not in (None, answer, *others.values()) and name != label(right):
            others.setdefault(name, str(key))
        if len(others) == CHOICES - 1:
            break
    return _asked(text, (answer, label(right)), others)


def in_words(text: str, right: str, wrong: Iterable[str]) -> Question | None:
    """Which words are true? An answer in words stands for no element.

    >>> in_words("1 × 3?", "3", ["4", "3", "1"]).choices
    (('answer: 1', '1'), ('answer: 3', '3'), ('answer: 4', '4'))
    """
    return _asked(text, (f"answer: {right}", right), {one: f"answer: {one}" for one in wrong if one != right})


def of_product(text: str, one: Any, other: Any, product: Any) -> Question | None:
    """What does a product give? A reader may take a factor for it, the sum, or the other sign.

    >>> [name for _, name in of_product("?", 2.0, 5.0, 10.0).choices]
    ['-10', '10', '2', '5', '7']
    """
    if other is None:
        return None
    return _in_numbers(text, product, one, other, lambda a, b: (a, b, a + b, 0 - numbers_of(product)))


def of_sum(text: str, before: Any, added: Any, total: Any) -> Question | None:
    """What is there after something was added? A reader may think that the last one counts, or the first, or the product.

    >>> [name for _, name in of_sum("?", 3.0, 4.0, 7.0).choices]
    ['-1', '12', '3', '4', '7']
    """
    return _in_numbers(text, total, before, added, lambda a, b: (b, a, a * b, a - b))


def spread(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames with at most a dozen questions: one in each of so many stretches, not always at the same place in it.

    So a run in which two kinds of questions take turns keeps both.
    """
    asking = [number for number, frame in enumerate(frames) if frame.question is not None]
    if len(asking) <= MOST:
        return tuple(frames)
    bounds = [len(asking) * place // MOST for place in range(MOST + 1)]
    kept = {asking[bounds[place] + place % (bounds[place + 1] - bounds[place])] for place in range(MOST)}
    return tuple(
        frame if frame.question is None or number in kept else replace(frame, question=None)
        for number, frame in enumerate(frames)
    )


def _in_numbers(
    text: str, right: Any, one: Any, other: Any, likely: Callable[[Any, Any], Iterable[Any]]
) -> Question | None:
    if not all(is_short(value, LONGEST) for value in (one, other, right)):
        return None
    a, b = numbers_of(one), numbers_of(other)
    if a.shape != b.shape:
        return None
    return in_words(text, value_text(right), map(value_text, likely(a, b)))


def _asked(text: str, right: tuple[str, str], wrong: dict[str, str]) -> Question | None:
    """The question, with choices in an order that gives nothing away; ``wrong`` has keys by what is on their buttons."""
    chosen = dict([one for one in wrong.items() if one[0].strip()][: CHOICES - 1])  # a name may be a blank
    if not chosen or not right[1].strip():
        return None
    choices = sorted([(right[1], right[0]), *chosen.items()])
    return Question(text, tuple((key, name) for name, key in choices), right[0])
