"""The bug clinic: its twelve patients by name, and the two exercises of each."""

from __future__ import annotations

from ..exercise import Exercise
from . import promises, rules, sweeps, training
from .exercises import catching_exercise, repair_exercise
from .patients import Patient, Specimen

WARDS: dict[str, tuple[Patient, ...]] = {
    "120_bug_clinic": rules.PATIENTS + sweeps.PATIENTS,
    "121_silent_bugs": training.PATIENTS + promises.PATIENTS,
}
PATIENTS: dict[str, Patient] = {one.name: one for ward in WARDS.values() for one in ward}


def sick(name: str, seed: int = 0) -> Specimen:
    """The function of a patient with its bug. It takes small arguments only, and a few calls.

    >>> [float(number) for number in sick("div_vjp")(1.0, 1.0, 2.0)]
    [0.5, 0.25]
    """
    return _patient(name).sick_one(seed)


def healthy(name: str, seed: int = 0) -> Specimen:
    """A function that does what the patient's should. It takes small arguments only, and a few calls.

    Another seed gives one that computes, rounds or returns its result in another way.

    >>> [float(number) for number in healthy("div_vjp")(1.0, 1.0, 2.0)]
    [0.5, -0.25]
    """
    return _patient(name).healthy_one(seed)


def _patient(name: str) -> Patient:
    if name not in PATIENTS:
        raise ValueError(f"no patient is called {name!r}; there are: {', '.join(PATIENTS)}")
    return PATIENTS[name]


def _exercises(lesson: str, patient: Patient) -> tuple[Exercise, Exercise]:
    names = {"sick": sick, "healthy": healthy}
    return catching_exercise(patient, lesson, names), repair_exercise(patient, lesson)


EXERCISES = tuple(
    exercise for lesson, ward in WARDS.items() for patient in ward for exercise in _exercises(lesson, patient)
)
