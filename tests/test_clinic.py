"""The bug clinic: each patient is sick where its record says so, and a small test tells it from every healthy one."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest
from autodiff_exercises.checking import examine
from autodiff_exercises.clinic import PATIENTS, WARDS, healthy, sick
from autodiff_exercises.clinic.exercises import differs, trials_of
from autodiff_exercises.clinic.patients import CALLS, Patient, TooLarge, alike, outcome, size_of
from autodiff_exercises.registry import EXERCISES

from tests.notebook_cell import defined

every_patient = pytest.mark.parametrize("patient", PATIENTS.values(), ids=PATIENTS)


def test_there_are_twelve_patients_and_each_has_a_test_and_a_repair() -> None:
    assert len(PATIENTS) == sum(map(len, WARDS.values())) == 12
    assert {f"catches_{name}" for name in PATIENTS} | set(PATIENTS) <= set(EXERCISES)


@every_patient
def test_the_bug_shows_where_the_record_says_and_hides_where_it_says(patient: Patient) -> None:
    assert differs(patient.sick, patient, patient.arguments(patient.shows))
    assert not differs(patient.sick, patient, patient.arguments(patient.hides))
    assert patient.size(*patient.arguments(patient.hides)) <= patient.smallest


@every_patient
def test_sick_and_repaired_begin_with_the_same_lines_and_differ_in_a_few(patient: Patient) -> None:
    assert patient.sick.__name__ == patient.repaired.__name__ == patient.name
    assert patient.sick.__doc__ == patient.repaired.__doc__
    starter = EXERCISES[patient.name].starter
    assert starter.count("raise NotImplementedError") == 1 and "take this line out" in starter


@every_patient
def test_a_starter_without_its_raise_is_the_sick_function(patient: Patient) -> None:
    lines = EXERCISES[patient.name].starter.splitlines()
    source = "\n".join(line for line in lines if "raise NotImplementedError" not in line)
    function = defined(source, patient.name)
    for one in patient.cases(Random(0), False):
        assert alike(outcome(function, one.arguments), outcome(patient.sick, one.arguments))


@every_patient
def test_the_smallest_test_tells_the_sick_one_from_every_healthy_one(patient: Patient) -> None:
    for test in (patient.catches, trials_of(patient)[0]):
        assert test(sick(patient.name)) and test(sick(patient.name, seed=3))
        assert not any(test(healthy(patient.name, seed)) for seed in range(6))


@every_patient
def test_a_specimen_takes_a_few_small_calls_only(patient: Patient) -> None:
    one, small = healthy(patient.name), patient.arguments(patient.shows)
    for _ in range(CALLS):
        one(*small)
    with pytest.raises(TooLarge, match="calls"):
        one(*small)
    larger = [case for case in patient.cases(Random(0), True) if patient.size(*case.arguments) > patient.smallest]
    assert bool(larger) == patient.can_grow
    for case in larger:
        with pytest.raises(TooLarge, match=patient.unit):
            healthy(patient.name)(*case.arguments)


@every_patient
def test_healthy_ones_agree_up_to_rounding_and_not_in_every_digit(patient: Patient) -> None:
    small = patient.arguments(patient.shows)
    for seed in range(1, 6):
        assert alike(outcome(healthy(patient.name, seed), small), outcome(healthy(patient.name), small))
    exact = trials_of(patient)[1].get("there is one right answer")
    assert exact is None or all(exact(healthy(patient.name, seed)) for seed in range(1, 6))


# -------------------------------------------------------------------------------------- nothing smaller shows the bug


def graphs_of(size: int) -> Any:
    """Every graph of so many nodes whose operations have up to two inputs."""
    names = "abc"[:size]
    choices = []
    for place in range(size):
        before = list(names[:place])
        choices.append([list(c) for count in range(3) for c in itertools.product(before, repeat=count)])
    for inputs in itertools.product(*choices):
        yield dict(zip(names, inputs, strict=True))


def fitting_shapes(axes: int) -> Any:
    shapes = [shape for rank in range(axes + 1) for shape in itertools.product((0, 1, 2), repeat=rank)]
    for x, y in itertools.product(shapes, repeat=2):
        pairs = zip(x[::-1], y[::-1], strict=False)
        if len(x) + len(y) <= axes and all(a == b or 1 in (a, b) for a, b in pairs):
            yield x, y


SMALLER: dict[str, Any] = {
    "sweep": [([("y", "x", 2.0)],)],
    "backward_order": [(graph,) for size in (1, 2) for graph in graphs_of(size)],
    "descend": [(lambda w: 2.0 * w, 1.0, 0.25, steps) for steps in (0, 1)],
    "sums": [([],), ([("x", np.ones(2))],)],
    "broadcast_shape": list(fitting_shapes(2)),
    "choose_kernel": [({("any", None): np.sin}, "cpu", "float32")],
    "mse_vjp": [(1.0, np.array([3.0]), np.array([1.0])), (2.0, np.array(3.0), np.array(1.0))],
}


@pytest.mark.parametrize("name", SMALLER)
def test_no_smaller_input_shows_the_bug(name: str) -> None:
    patient = PATIENTS[name]
    for arguments in SMALLER[name]:
        assert patient.size(*arguments) < patient.smallest
        assert not differs(patient.sick, patient, arguments)


# --------------------------------------------------------------------------------------------- answers that are not shipped


@pytest.mark.slow
@pytest.mark.usefixtures("own_progress")
@pytest.mark.parametrize(
    ("name", "source", "belief"),
    [
        ("catches_div_vjp", "return f(1.0, 1.0, 2.0)[1] != -0.25", "there is one right answer"),
        ("catches_div_vjp", "return f", "anything is a verdict"),
        ("catches_div_vjp", "f(1.0, 1.0, 2.0)", "returns nothing"),
        ("catches_div_vjp", "return all(f(1.0, 1.0, 2.0)[1] > 0 for _ in range(9))", "any input that fails will do"),
        (
            "catches_sweep",
            "return not np.isclose(f([('y', 'x', 2.0)])['x'], 2.0)",
            "a chain is a network like any other",
        ),
        ("catches_sums", "return not np.allclose(f([('x', np.ones(1))])['x'], 1.0)", "only what is returned counts"),
        ("catches_descend", "return True", "a test that fails is a good test"),
        ("catches_descend", "return False", "one step shows everything"),
        ("catches_choose_kernel", "return f({('any', None): 1}, 'cpu', 'x') == 1", "a test that fails is a good test"),
        ("backward_order", "return sorted(f)", "somebody who uses it is enough"),
        (
            "sweep",
            "from autodiff_exercises.clinic import healthy\n    return healthy('sweep')(f)",
            "stops with an error",
        ),
    ],
)
def test_a_wrong_answer_that_nobody_foresaw_is_refused_with_its_misconception(
    name: str, source: str, belief: str
) -> None:
    found = examine(EXERCISES[name], defined(f"def {name}(f):\n    {source}", name), 0)
    assert (found.verdict, found.misconception) == ("wrong", belief)


@pytest.mark.slow
@pytest.mark.usefixtures("own_progress")
def test_a_repair_is_not_left_to_the_lab() -> None:
    source = "import autodiff_lab as ad\ndef div_vjp(g, x, y):\n    return ad.vjp(lambda x, y: x / y, x, y).pull(g)"
    assert examine(EXERCISES["div_vjp"], defined(source, "div_vjp"), 0).misconception == "the lab does it"


def test_sizes_count_numbers_and_names() -> None:
    assert size_of({"y": ["x", "x"], "x": []}) == 4
    assert size_of(np.zeros((2, 3)), (1.0, None), len) == 7


def test_an_unknown_patient_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no patient is called 'mul'; there are: div_vjp"):
        sick("mul")
