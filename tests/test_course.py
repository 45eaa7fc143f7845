"""The map of the course: where its cards and arrows stand, what it says of a student's progress, and that it links."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from autodiff_exercises import course, progress_file, syllabus
from autodiff_exercises.course_map import HEIGHT, WIDTH, Standing, arrows_of, placed, standing
from autodiff_exercises.progress_file import Record
from autodiff_exercises.registry import EXERCISES
from autodiff_exercises.syllabus import Lesson
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("own_progress")


@st.composite
def courses(draw: st.DrawFn) -> list[Lesson]:
    count = draw(st.integers(0, 9))
    after = [draw(st.sets(st.integers(0, number - 1))) if number else set() for number in range(count)]
    return [
        Lesson(f"{number}_x", "t", "q?", after=tuple(f"{one}_x" for one in sorted(after[number])))
        for number in range(count)
    ]


def reached(arrows: list[tuple[str, str]], slugs: list[str]) -> dict[str, set[str]]:
    """All that comes before each lesson; lessons stand after what comes before them."""
    before: dict[str, set[str]] = {}
    for slug in slugs:
        direct = {one for one, other in arrows if other == slug}
        before[slug] = direct.union(*(before[one] for one in direct))
    return before


@given(courses())
def test_arrows_go_down_and_lead_to_a_lesson_from_all_that_helps_before_it_and_none_is_superfluous(
    course: list[Lesson],
) -> None:
    places, arrows, slugs = placed(course), arrows_of(course), [one.slug for one in course]
    assert all(places[start][1] + HEIGHT < places[end][1] for start, end in arrows)
    whole = reached([(one, lesson.slug) for lesson in course for one in lesson.after], slugs)
    assert reached(arrows, slugs) == whole
    for arrow in arrows:
        assert reached([one for one in arrows if one != arrow], slugs) != whole


@given(courses())
def test_no_card_covers_another(course: list[Lesson]) -> None:
    places = placed(course)
    assert set(places) == {one.slug for one in course}
    for (x1, y1), (x2, y2) in combinations(places.values(), 2):
        assert abs(x1 - x2) >= WIDTH or abs(y1 - y2) >= HEIGHT


def test_a_lesson_that_is_not_there_helps_nobody() -> None:
    course = [Lesson("10_a", "t", "q?", after=("05_gone",)), Lesson("20_b", "t", "q?", after=("10_a", "30_later"))]
    assert arrows_of(course) == [("10_a", "20_b")] and len(placed(course)) == 2


def test_every_exercise_of_the_course_is_counted_once() -> None:
    listed = [one.name for lesson in syllabus.lessons() for one in lesson.exercises]
    assert sorted(listed) == sorted(EXERCISES)
    for lesson in syllabus.lessons():
        names = [one.name for one in lesson.exercises]
        assert standing(lesson, {}) == Standing(open=len(names))
        for number, state in enumerate(("right", "wrong", "could not be checked", "not attempted")):
            if number < len(names):
                counted = standing(lesson, {names[number]: Record(state=state)})
                assert counted.passed + counted.attempted + counted.open == len(names)
                assert (counted.passed, counted.attempted) == (
                    state == "right",
                    state in ("wrong", "could not be checked"),
                )


def test_a_right_check_is_said_to_have_passed_the_visible_checks_and_no_more(own_progress: Path) -> None:
    lesson = syllabus.lessons()[1]
    own_progress.write_text(json.dumps({one.name: {"state": "right"} for one in lesson.exercises}), encoding="utf-8")
    for text in (repr(course()), course()._repr_html_()):
        assert f"{len(lesson.exercises)} passed the visible checks" in text
        assert not re.search(r"\ball passed\b|\bdone\b|\bcomplete", text)


def test_the_drawing_and_its_text_tell_the_same_of_every_lesson(own_progress: Path) -> None:
    first, second = list(EXERCISES)[:2]
    own_progress.write_text(json.dumps({first: {"state": "right"}, second: {"state": "wrong"}}), encoding="utf-8")
    said, drawn = repr(course()), course()._repr_html_()
    for lesson, stands in course().lessons:
        assert f"{lesson.number} {lesson.title} ({lesson.time}): {stands}" in said
        assert f"<a href='{lesson.file}'" in drawn and f">{stands}</div>" in drawn
    assert drawn.count("role='listitem'") == len(syllabus.lessons())


def test_a_damaged_progress_file_is_told_on_the_map(own_progress: Path) -> None:
    own_progress.write_text("{")
    shown = course()
    assert "was damaged" in repr(shown)
    assert progress_file.records() == ({}, "")


def test_what_a_lesson_is_called_is_escaped() -> None:
    from autodiff_exercises.course_map import Course

    shown = Course(((Lesson("10_x", "<b>", "'><script>?"), Standing()),))._repr_html_()
    assert "<b>" not in shown and "<script>" not in shown
