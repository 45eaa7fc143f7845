"""Two exercises of lesson 100 on shapes: a shape rule that carries unknown sizes, and the op that lost one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np

from . import shapes_without_data_answers as answers
from .exercise import (
    ACCEPTS_ANYTHING,
    ANOTHER_ERROR,
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    refused,
)
from .shapes_without_data_answers import Nodes, PartialShape

# ------------------------------------------------------------------------------------------------- a rule for broadcasting


def follows(answer: Any, x: PartialShape, y: PartialShape) -> bool:
    """Whether a shape says exactly what is so for every size that the unknown ones can have."""
    if not _is_shape(answer):
        return False
    size = max(len(x), len(y))
    full_x, full_y = (1,) * (size - len(x)) + x, (1,) * (size - len(y)) + y
    return list(answer) == [_what_is_certain(a, b) for a, b in zip(full_x, full_y, strict=True)]


def _is_shape(answer: Any) -> bool:
    return isinstance(answer, tuple | list) and all(
        size is None or isinstance(size, int | np.integer) for size in answer
    )


def _what_is_certain(a: int | None, b: int | None) -> int | None:
    sizes = {1, 2, 3, 5, *(one for one in (a, b) if one is not None)}
    pairs = product(sizes if a is None else {a}, sizes if b is None else {b})
    results = {max(pair) for pair in pairs if pair[0] == pair[1] or 1 in pair}
    return results.pop() if len(results) == 1 else None


def _like(formula: Callable[..., Any]) -> Callable[[Sequence[Wrong]], bool]:
    """Whether all wrong answers are what a wrong formula gives, also where it refuses."""

    def same(one: Wrong) -> bool:
        try:
            expected = formula(*one.case.arguments)
        except ValueError:
            return one.failure == "ValueError"
        return not one.failure and _is_shape(one.answer) and list(one.answer) == list(expected)

    return lambda wrong: all(map(same, wrong))


SHAPE_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "axes are counted from the left",
        "You compare the first axes with each other. NumPy compares the *last* ones, then those before them; what the shorter "
        "shape lacks counts as 1.",
        _like(answers.from_the_left),
    ),
    Misconception(
        "unknown is what the other is",
        "You take an unknown size for that of the other operand. Beside a 1 it can still be anything, and the result too.",
        _like(answers.unknown_is_like_the_other),
    ),
    Misconception(
        "an unknown size is 1",
        "You take a size that is not known for 1. It may be any: whatever you then say is wrong for all the others.",
        _like(answers.unknown_is_one),
    ),
    Misconception(
        "unknown makes unknown",
        "You give up where one of two sizes is not known. Look at what the other one says: there may be one size only that "
        "fits, and then the result is known. That is how an inference *gains* knowledge.",
        _like(answers.unknown_makes_unknown),
    ),
    Misconception(
        "the result is shaped like the first",
        "You return the first operand's shape. The second one can make the result larger, and give it more axes.",
        _like(answers.like_the_first),
    ),
    Misconception(
        "axes get lost",
        "Where one shape is longer, its first axes are missing in your result.",
        _like(answers.the_shorter_one),
    ),
    Misconception(
        "only equal shapes fit",
        "You refuse shapes that are not equal. A size of 1 is repeated, and an axis that is not there counts as 1.",
        _like(answers.only_equal_ones),
    ),
    Misconception(
        "the wrong way round",
        "You go from the last axis to the first, which is right; but the shape has to be read from the first one again.",
        _like(answers.wrong_way_round),
    ),
    ACCEPTS_ANYTHING,
    ANOTHER_ERROR,
    STOPS_WITH_ERROR,
    Misconception(
        "not what is certain",
        "For some pair of sizes you say something that need not be so, or nothing where only one size is possible. Write "
        "down all nine pairs of *1*, *a known size* and *unknown*.",
        lambda wrong: True,
    ),
)


def shape_cases(random: Random, large: bool) -> Iterator[Case]:
    """Known sizes, a 1, more axes, each pair with an unknown one, what cannot be, and drawn ones."""
    n, m, k = random.sample(range(2, 10), k=3)
    yield case("equal shapes", f"({n}, {m}), ({n}, {m})")
    yield case("a size of 1", f"({n}, 1), ({n}, {m})")
    yield case("more axes", f"({m},), ({n}, {m})")
    yield case("more axes", f"({k}, {n}, 1), ({n}, {m})")
    yield case("unknown beside a known size", f"(None, {m}), ({n}, {m})")
    yield case("unknown beside 1", f"(None, 1), (1, {m})")
    yield case("unknown beside 1", f"(1, {m}), (None, {m})")
    yield case("unknown beside an axis that is not there", f"({m},), (None, {m})")
    yield case("two that are unknown", f"(None, {n}), (None, 1)")
    yield case("no axes", f"(), (None, {m})")
    yield refused(case("sizes that do not fit", f"({n}, {m}), ({n}, {k})"), "ValueError")
    yield refused(case("sizes that do not fit", f"(None, {m}), ({k},)"), "ValueError")
    for _ in range(12 if large else 6):
        yield _drawn_pair(random)


def _drawn_pair(random: Random) -> Case:
    axes = random.randint(1, 4)
    real = [random.randint(2, 9) for _ in range(axes)]
    shapes = []
    for count in (axes, random.randint(0, axes)):
        shown = [random.choice((size, size, 1, None)) for size in real]
        shapes.append(tuple(shown[axes - count :]))
    random.shuffle(shapes)
    return case("drawn shapes", f"{shapes[0]}, {shapes[1]}")


# ----------------------------------------------------------------------------------------------------- who lost a size


def are_to_blame(answer: Any, nodes: Nodes) -> bool:
    """Whether it has each op once whose result has a hole that none of its inputs has."""
    if not _are_names(answer):
        return False

    def whole(name: str) -> bool:
        shape = nodes[name][1]
        return shape is not None and None not in shape

    return set(answer) == {n for n, (inputs, _) in nodes.items() if inputs and not whole(n) and all(map(whole, inputs))}


def _are_names(answer: Any) -> bool:
    """Whether it is a collection of texts, each once."""
    is_collection = isinstance(answer, list | tuple | set | frozenset) and all(isinstance(name, str) for name in answer)
    return is_collection and len(set(answer)) == len(answer)


def _blames_like(formula: Callable[..., list[str]]) -> Callable[[Sequence[Wrong]], bool]:
    def same(one: Wrong) -> bool:
        return not one.failure and _are_names(one.answer) and set(one.answer) == set(formula(*one.case.arguments))

    return lambda wrong: all(map(same, wrong))


BLAME_MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RETURNS_NOTHING,
    Misconception(
        "not names of ops",
        "Return the names of the ops that lost something: a set or a list, each name once, and an empty one where nobody did.",
        lambda wrong: any(
            not one.failure
            and not (_are_names(one.answer) and all(name in one.case.arguments[0] for name in one.answer))
            for one in wrong
        ),
    ),
    STOPS_WITH_ERROR,
    Misconception(
        "the first input decides",
        "You look at the first input only. The hole may come from any of them.",
        _blames_like(answers.the_first_input_decides),
    ),
    Misconception(
        "one known input is enough",
        "You name an op that has an unknown input beside a known one. What it got was unknown already; its rule may be right.",
        _blames_like(answers.one_known_input_is_enough),
    ),
    Misconception(
        "a shape with a hole is known",
        "You look only for shapes of which nothing is known. `(None, 4)` has lost something too: one size.",
        _blames_like(answers.a_hole_is_no_loss),
    ),
    Misconception(
        "whatever is unknown is to blame",
        "You name every op whose shape is unknown. Most of them only pass on what they got: their rules are right.",
        _blames_like(answers.everything_unknown),
    ),
    Misconception(
        "the last one is to blame",
        "You name the op where the damage shows last. Go back along its inputs to where it began.",
        _blames_like(answers.the_last_unknown),
    ),
    Misconception(
        "who suffers is to blame",
        "You name the ops that *get* something unknown. Whoever made it so is before them.",
        _blames_like(answers.who_suffers),
    ),
    Misconception(
        "one op at most",
        "You stop at the first. Several rules may be wrong, and each of them has to be mended.",
        _blames_like(answers.the_first_unknown),
    ),
    Misconception(
        "an input has a rule",
        "You name inputs of the graph. Their shapes come from outside, and may be unknown: a batch, for instance. Nobody has "
        "computed them, so no rule has lost anything.",
        _blames_like(answers.inputs_too),
    ),
    Misconception(
        "not the ones to blame",
        "For each op ask two things: is its own shape whole? And are those of *all* its inputs?",
        lambda wrong: True,
    ),
)


def blame_cases(random: Random, large: bool) -> Iterator[Case]:
    """Chains and branches with no, one or several losses, an unknown batch, and what is found again."""
    n, m = random.sample(range(2, 10), k=2)
    whole, hole = (n, m), random.choice(((None, m), (n, None)))
    yield _blame_case("nothing is lost", {"x": ([], whole), "square": (["x"], whole)})
    yield _blame_case("one loss", {"x": ([], whole), "square": (["x"], hole), "tanh": (["square"], hole)})
    yield _blame_case("an unknown batch", {"x": ([], hole), "tanh": (["x"], hole), "exp": (["tanh"], hole)})
    branches: Nodes = {"x": ([], whole), "exp": (["x"], whole), "sin": (["x"], None), "mul": (["exp", "sin"], None)}
    yield _blame_case("beside a known input", branches)
    branches = {"x": ([], whole), "sin": (["x"], None), "exp": (["x"], whole), "mul": (["sin", "exp"], None)}
    yield _blame_case("beside a known input", branches)
    again: Nodes = {
        "x": ([], whole),
        "sin": (["x"], hole),
        "sum": (["sin"], ()),
        "exp": (["x"], whole),
        "mul": (["exp", "sum"], None),
    }
    yield _blame_case("lost, found, and lost again", {**again, "tanh": (["mul"], None)})
    for size in range(6, 14 if large else 10):
        yield _blame_case("drawn graphs", _drawn_nodes(random, size))


def _drawn_nodes(random: Random, size: int) -> Nodes:
    sizes = random.sample(range(2, 10), k=2)
    holes: list[PartialShape | None] = [None, (None, sizes[1]), (sizes[0], None)]
    nodes: Nodes = {}
    for number in range(size):
        name = f"{random.choice(('add', 'mul', 'exp', 'tanh'))}{number}" if number > 1 else f"x{number}"
        inputs = random.sample(list(nodes), k=min(len(nodes), random.randint(1, 2))) if number > 1 else []
        unknown = any(_has_hole(nodes[one][1]) for one in inputs)
        is_lost = random.random() < (0.25 if inputs else 0.2)
        is_found = bool(inputs) and random.random() < 0.2
        nodes[name] = (inputs, random.choice(holes) if (unknown or is_lost) and not is_found else (sizes[0], sizes[1]))
    return nodes


def _has_hole(shape: PartialShape | None) -> bool:
    return shape is None or None in shape


def _blame_case(check: str, nodes: Nodes) -> Case:
    return case(check, f"{nodes}")


EXERCISES = (
    Exercise(
        lesson="100_shape_inference_and_fusion",
        statement="""\
Write `broadcast_unknown(x, y)`: the shape rule of every elementwise op with two inputs, for shapes that may not be known in
full.

* `x` and `y` are tuples of sizes; a size that is not known is `None`.
* Return the shape that they broadcast to. Say a size wherever only one is possible, and `None` where there are several.
* Where the shapes cannot fit, whatever the unknown sizes are, raise a `ValueError`.""",
        hints=(
            "Count axes from the right. What the shorter shape lacks counts as 1. Two sizes fit if they are equal, or if one "
            "of them is 1.",
            "For one axis there are nine pairs: 1, a known size, or unknown, on either side. For each, ask which sizes the "
            "unknown ones may have, and what the result is then.",
            "Beside a known size that is not 1, an unknown one must be the same or 1: the result is the known size. Beside "
            "1 or another unknown one it can be anything.",
        ),
        solution=answers.broadcast_unknown,
        alternatives=(answers.by_all_possibilities,),
        wrong=(
            (answers.unknown_is_one, "an unknown size is 1"),
            (answers.unknown_makes_unknown, "unknown makes unknown"),
            (answers.unknown_is_like_the_other, "unknown is what the other is"),
            (answers.from_the_left, "axes are counted from the left"),
            (answers.like_the_first, "the result is shaped like the first"),
            (answers.the_shorter_one, "axes get lost"),
            (answers.only_equal_ones, "only equal shapes fit"),
            (answers.the_larger_one, "accepts what does not fit"),
            (answers.wrong_way_round, "the wrong way round"),
        ),
        misconceptions=SHAPE_MISCONCEPTIONS,
        cases=shape_cases,
        accepts=follows,
    ),
    Exercise(
        lesson="100_shape_inference_and_fusion",
        statement="""\
Write `to_blame(nodes)`: whose shape rule has to be mended?

* `nodes` has the values of a graph in order: `name: (inputs, shape)`. A size that is not known is `None`; where not even
  the number of axes is known, the whole shape is `None`. The graph's inputs have no inputs.
* A rule has *lost* something if its op's shape is not known in full although those of all its inputs are.
* Return the names of these ops, as a set or a list.""",
        hints=(
            "Draw the graph of an example and mark what is not known in full. Where does it begin?",
            "There are two questions for each op: about its own shape, and about those of its inputs. An input of the graph "
            "has nobody to blame.",
            "Make the set of all names whose shapes are known in full. To blame is who has inputs, is not in the set, and has "
            "all inputs in it.",
        ),
        solution=answers.to_blame,
        alternatives=(answers.from_the_unknown,),
        wrong=(
            (answers.everything_unknown, "whatever is unknown is to blame"),
            (answers.the_first_unknown, "one op at most"),
            (answers.inputs_too, "an input has a rule"),
            (answers.one_known_input_is_enough, "one known input is enough"),
            (answers.the_first_input_decides, "the first input decides"),
            (answers.a_hole_is_no_loss, "a shape with a hole is known"),
            (answers.who_suffers, "who suffers is to blame"),
            (answers.the_last_unknown, "the last one is to blame"),
        ),
        misconceptions=BLAME_MISCONCEPTIONS,
        cases=blame_cases,
        accepts=are_to_blame,
    ),
)
