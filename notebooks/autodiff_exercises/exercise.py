"""What an exercise is: a function to write, cases to call it on, a property that tells right, and misconceptions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

import autodiff_lab as ad

from .attempts import BEYOND_EVERY_CELL, Attempt, Failure, NotPlain

# What a lesson's notebook has imported; functions that an expression defines belong to the notebook.
LESSON_NAMES: dict[str, Any] = {"__name__": "__main__", "np": np, "ad": ad, "ops": ad.ops}

BEGIN, END = "    ### BEGIN SOLUTION", "    ### END SOLUTION"


@dataclass(frozen=True, slots=True)
class Case:
    """One call of the student's function: its arguments, how to type them, and the check that it belongs to."""

    check: str  # what is looked at: "a value used twice"
    arguments: tuple[Any, ...]
    expression: str  # the arguments as a student can type them
    names: Mapping[str, Any] = field(default_factory=dict)  # what the expression uses beside what a lesson imports
    seconds: float | None = None  # a call that takes longer is wrong; None where only all calls together have a limit
    refusal: str = ""  # the class of the error that the call must raise; empty where it must return something

    def evaluated_with(self, **names: Any) -> tuple[Any, ...]:
        """The arguments where names of the expression mean something else."""
        return _evaluated(self.expression, {**self.names, **names})


def case(check: str, expression: str, **names: Any) -> Case:
    """The case whose arguments are what the expression says.

    The expression may use what every lesson imports, ``np``, ``ad`` and ``ops``, and the ``names`` given here. Where one of
    them is the exercise's own name, the student's function takes its place in the call: so it is called inside itself.

    >>> case("two numbers", "1, [2]").arguments
    (1, [2])
    >>> case("a function and an array", "lambda x: x * x, np.ones(2)").arguments[1]
    array([1., 1.])
    """
    return Case(check, _evaluated(expression, names), expression, names)


def soon(one: Case, seconds: float = 2.0) -> Case:
    """The same case, where an answer that takes longer is wrong: for work that grows without bound if done the wrong way.

    >>> soon(case("a number", "1")).seconds
    2.0
    """
    return replace(one, seconds=seconds)


def refused(one: Case, error: str) -> Case:
    """The same case, where the right thing to do is to raise an error of this class.

    >>> refused(case("shapes that do not fit", "(2, 3), (4,)"), "ValueError").refusal
    'ValueError'
    """
    return replace(one, refusal=error)


def _evaluated(expression: str, names: Mapping[str, Any]) -> tuple[Any, ...]:
    tree = ast.increment_lineno(ast.parse(f"({expression},)", mode="eval"), BEYOND_EVERY_CELL)
    arguments: tuple[Any, ...] = eval(compile(tree, "<string>", "eval"), {**LESSON_NAMES, **names})
    return arguments


@dataclass(frozen=True, slots=True)
class Wrong:
    """An attempt that is not right, beside its case."""

    case: Case
    attempt: Attempt

    @property
    def answer(self) -> Any:
        """What the function returned; None where it failed."""
        return self.attempt.answer

    @property
    def failure(self) -> str:
        """The class of the exception that ended the call; empty where it returned."""
        return self.attempt.failure.kind if self.attempt.failure else ""


TOO_LATE = "no answer in time"  # stands for the exception of a call that was ended at its own limit


def too_late(number: int, seconds: float) -> Attempt:
    """The attempt at a case whose own limit was reached."""
    return Attempt(number, failure=Failure(TOO_LATE, f"still running after {seconds:g} seconds"))


def stopped_by(*failures: str) -> Callable[[Sequence[Wrong]], bool]:
    """Whether some attempt was ended by an exception of one of these classes."""
    return lambda wrong: any(one.failure in failures for one in wrong)


@dataclass(frozen=True, slots=True)
class Misconception:
    """A belief that explains wrong answers. Its message says what is so instead, without a test or an answer.

    ``explains`` is given every wrong attempt, the smallest case first. It looks for a property of the answers, so that
    it knows the misconception also in a solution that nobody has thought of.
    """

    name: str
    message: str
    explains: Callable[[Sequence[Wrong]], bool]


class Probed:
    """A student's function in the hands of a probe, which uses what the function returns and gives back plain data."""

    def __init__(self, probe: Callable[..., Any], function: Callable[..., Any]) -> None:
        self.probe, self.__wrapped__ = probe, function  # by this name it is found whose line an error points at

    def __call__(self, *arguments: Any) -> Any:
        """Let the probe use the function."""
        return self.probe(self.__wrapped__, *arguments)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A function to write, and all that is needed to teach and check it. The exercise is named after the function.

    ``cases`` are made from a seeded random source, the smallest first; the flag asks for the larger ones that mark a
    submission. ``accepts`` is a property of arguments and answer, never one stored answer. The first misconception that
    explains the wrong attempts is told, so the last one explains everything. Where the function returns a class or an object
    that cannot be judged by itself, a ``probe`` is called with the function in front of the arguments.
    """

    lesson: str
    statement: str  # Markdown
    hints: tuple[str, str, str]
    solution: Callable[..., Any]
    alternatives: tuple[Callable[..., Any], ...]
    wrong: tuple[tuple[Callable[..., Any], str], ...]  # each with the name of its misconception
    misconceptions: tuple[Misconception, ...]
    cases: Callable[[Random, bool], Iterable[Case]]
    accepts: Callable[..., bool]  # (answer, *arguments)
    seconds: float = 5.0
    withheld: tuple[str, ...] = ()  # names of the lab that an answer may not use
    tally: Callable[[Sequence[tuple[Case, bool]]], str] = lambda results: ""  # a note on which cases were right
    probe: Callable[..., Any] | None = (
        None  # called with the function and a case's arguments, where an answer is a class
    )
    broken: Callable[..., Any] | None = None  # what the student is given to repair, with the solution's first lines

    @property
    def name(self) -> str:
        """The name of the function that the student writes."""
        return self.solution.__name__

    def called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is called with the arguments of each case: the function, or the probe that has it in its hands."""
        return function if self.probe is None else Probed(self.probe, function)

    def shown(self, case: Case) -> str:
        """The call of a case as a student can type it."""
        if self.probe is None:
            return f"{self.name}({case.expression})"
        module = self.probe.__module__.rpartition(".")[2]
        return f"{module}.{self.probe.__name__}({self.name}, {case.expression})"

    def arguments(self, case: Case, function: Callable[..., Any]) -> tuple[Any, ...]:
        """Fresh arguments to call this function with: where they use the exercise's name, they use the function."""
        return case.evaluated_with(**({self.name: function} if self.name in case.names else {}))

    def is_right(self, case: Case, attempt: Attempt) -> bool:
        """Whether this attempt left its arguments as they were, and answered with the property, or refused as it should."""
        failed = attempt.failure.kind if attempt.failure else ""
        if failed != case.refusal or attempt.changed_arguments or isinstance(attempt.answer, NotPlain):
            return False
        if case.refusal:
            return True
        return self.accepts(attempt.answer, *case.arguments)

    def misconception(self, wrong: Sequence[Wrong]) -> Misconception:
        """The first misconception that explains these attempts.

        Where the smallest of them gave an answer, later ones without any are left out: who errs on three tasks and fails on
        three thousand is told about the three.
        """
        if not wrong[0].failure:
            wrong = [one for one in wrong if not one.failure]
        return next(one for one in self.explanations if one.explains(wrong))

    @property
    def explanations(self) -> tuple[Misconception, ...]:
        """What may be told: what any function can show, then the exercise's own."""
        return (TOO_LARGE, THE_LAB_ANSWERS, ASKS_FOR_INPUT, ENDS_PYTHON, REACHES_OUT, *self.misconceptions)

    @property
    def starter(self) -> str:
        """The solution's first lines with its body taken out, or with what is to be repaired: what the student begins with."""
        head, _body = _source(self.solution)
        if self.broken is None:
            return f'{head}\n    raise NotImplementedError("write {self.name} here")'
        stop = f'    raise NotImplementedError("take this line out, and repair {self.name}")'
        return "\n".join((head, stop, _source(self.broken)[1]))

    @property
    def solved(self) -> str:
        """The solution's source."""
        return "\n".join(_source(self.solution))

    @property
    def solved_between_marks(self) -> str:
        """The solution's source with the marks that nbgrader takes it out by, and behind it what is to be repaired."""
        head, body = _source(self.solution)
        given = ["    # what is to be repaired:", _source(self.broken)[1]] if self.broken else []
        return "\n".join((head, BEGIN, body, END, *given))


def _source(function: Callable[..., Any]) -> tuple[str, str]:
    """Signature with docstring, and body."""
    source = textwrap.dedent(inspect.getsource(function)).rstrip()
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    start = definition.body[1].lineno - 1  # the first statement after the docstring
    lines = source.splitlines()
    return "\n".join(lines[:start]), "\n".join(lines[start:])


# ------------------------------------------------------------------------- misconceptions that any function can show

RECURSION = Misconception(
    "recursion",
    "Your function calls itself for every operation of the longest path, if it comes to an end at all, and Python "
    "allows about 1,000 calls inside each other. Real graphs are deeper. Keep your own list of what waits, and "
    "loop. (The check keeps to Python's usual limit, also where another cell has raised it with "
    "`sys.setrecursionlimit`: from some depth on, that ends the whole of Python.)",
    lambda wrong: all(one.failure == "RecursionError" for one in wrong),
)
CHANGED_ARGUMENTS = Misconception(
    "changes its argument",
    "Your function changes what it was given. Whoever calls it still needs that: work on a copy.",
    lambda wrong: any(one.attempt.changed_arguments for one in wrong),
)
RETURNS_NOTHING = Misconception(
    "returns nothing",
    "Your function returns None. It may lack a `return` at its end, or return what a method such as `append` or "
    "`reverse` gives, which is None.",
    lambda wrong: not wrong[0].failure and wrong[0].answer is None,
)
EVERY_PATH = Misconception(
    "once for every path",
    "Your function does not come to an end where values are used twice, layer upon layer: it goes along every path, and with "
    "every layer there are twice as many. What was computed once need not be computed again: remember it.",
    lambda wrong: wrong[0].failure in (TOO_LATE, "MemoryError") and wrong[0].case.seconds is not None,
)
TOO_LARGE = Misconception(
    "far too much",
    "What your function returns is far larger than any right answer. Does something grow with every round of a loop?",
    lambda wrong: any(isinstance(one.answer, NotPlain) and one.answer.items is not None for one in wrong),
)
THE_LAB_ANSWERS = Misconception(
    "the lab does it",
    "Your function lets the lab do what you are asked to write. The lab is good for comparing: call it in a cell of its own, "
    "and look whether both give the same.",
    stopped_by("AnsweredByTheLab"),
)
ASKS_FOR_INPUT = Misconception(
    "asks for input",
    "Your function calls `input()` and waits for somebody to type. Nobody is there when it is checked, or called by another "
    "program: all that it needs comes as arguments.",
    stopped_by("EOFError"),
)
ENDS_PYTHON = Misconception(
    "ends the program",
    "Your function ends the program that calls it, with `exit()`, `quit()` or `sys.exit()`. A function ends with `return`.",
    stopped_by("SystemExit"),
)
REACHES_OUT = Misconception(
    "reaches out of the exercise",
    "Your function wanted to start or end a process, use the network, or change a file, and was kept from it. What it is asked "
    "for follows from its arguments alone.",
    stopped_by("OutOfBounds"),
)
REMEMBERS = Misconception(
    "remembers the last call",
    "Your function keeps something from one call to the next: the same call gives another answer when it is made again. "
    "A list or a set that was made outside of the function, or as the default of an argument, is made only once. Make a new "
    "one inside, at the beginning of each call. (A function that draws at random, without a fixed seed, does so too.)",
    lambda wrong: False,  # no wrong answer tells it: the check makes calls a second time, see checking.py
)
ACCEPTS_ANYTHING = Misconception(
    "accepts what does not fit",
    "Your function gives an answer where there is none. What does not fit has to be refused, with the error that the statement "
    "names: it is easiest to understand where it arises, and somebody else has to look for it later.",
    lambda wrong: bool(wrong[0].case.refusal) and not wrong[0].failure,
)
ANOTHER_ERROR = Misconception(
    "another error",
    "Your function stops where it should, with another error than the statement names. Test for what does not fit, and "
    "raise the error yourself, with a text that helps.",
    lambda wrong: bool(wrong[0].case.refusal) and wrong[0].failure not in ("", TOO_LATE),
)
STOPS_WITH_ERROR = Misconception(
    "stops with an error",
    "Your function stopped with an error before it gave an answer.",
    lambda wrong: wrong[0].failure not in ("", TOO_LATE),
)
