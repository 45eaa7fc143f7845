"""Answers that nobody foresaw: whatever a function returns, every exercise refuses it with a message and never fails itself."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from autodiff_exercises.checking import judged
from autodiff_exercises.registry import EXERCISES
from autodiff_exercises.sandbox import Run
from autodiff_exercises.worker import Attempt, NotPlain

ODD: dict[str, Any] = {
    "none": None,
    "a truth value": True,
    "a number": -7.25,
    "not a number": float("nan"),
    "a string": "abc",
    "an empty list": [],
    "an empty dictionary": {},
    "a list in a list": [[]],
    "a list of none": [None, None],
    "a tuple of three": (1, 2, 3),
    "a pair of dictionaries": ({}, {}),
    "a dictionary of lists": {"x": [1.0]},
    "a dictionary with numbers for keys": {1: 2.0},
    "an array without axes": np.array(-7.25),
    "an empty array": np.zeros(0),
    "an array of some shape": np.full((2, 7), -7.25),
    "an array of objects": np.array([None, "x"], dtype=object),
    "a pair of arrays": (np.zeros(2), np.zeros(3)),
    "an object of some class": NotPlain("Dual"),
}


@pytest.mark.slow
@pytest.mark.parametrize("answer", ODD)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_odd_answer_is_refused_with_a_message(exercise: str, answer: str) -> None:
    asked = EXERCISES[exercise]
    cases = list(asked.cases(Random(0), False))
    found = judged(asked, cases, Run(tuple(Attempt(number, ODD[answer]) for number in range(len(cases)))))
    assert found.verdict == "wrong" and found.message
    assert repr(found) and found._repr_html_()
