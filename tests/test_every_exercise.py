"""Every exercise of the registry: right answers pass, each wrong one is refused for its own reason, no answer leaks."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from autodiff_exercises import check, sandbox
from autodiff_exercises.checking import examine
from autodiff_exercises.computation_graph_answers import seen_when_left
from autodiff_exercises.exercise import Exercise
from autodiff_exercises.outcomes import Outcome
from autodiff_exercises.registry import EXERCISES, LESSONS
from autodiff_exercises.sameness import same

from tests.notebook_cell import defined

SEEDS = (0, 1, 2)  # what a student sees, and two of those that mark
every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
every_seed = pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])]
)
pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow]  # each check starts a process


def verdict(exercise: Exercise, function: Callable[..., Any], seed: int) -> Outcome:
    return examine(exercise, function, seed, marking=seed != 0)


# ---------------------------------------------------------------------------------------------- right, wrong, untouched


def test_exercise_names_are_unique() -> None:
    assert len(EXERCISES) == sum(len(lesson.EXERCISES) for lesson in LESSONS)


def test_there_are_fifty_exercises_and_two_hundred_wrong_solutions_or_more(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = sum(len(one.wrong) for one in EXERCISES.values())
    right = sum(1 + len(one.alternatives) for one in EXERCISES.values())
    with capsys.disabled():
        print(f"{len(EXERCISES)} exercises, {wrong} wrong solutions, {right} right ones, seeds {SEEDS}")
    assert len(EXERCISES) >= 50 and wrong >= 200


@every_exercise
def test_an_exercise_ships_hints_wrong_solutions_and_alternatives(exercise: Exercise) -> None:
    assert len(set(exercise.hints)) == 3
    assert len({name for _function, name in exercise.wrong}) >= 4
    assert exercise.alternatives


@every_exercise
@every_seed
def test_the_solution_and_every_alternative_are_right(exercise: Exercise, seed: int) -> None:
    for function in (exercise.solution, *exercise.alternatives):
        found = verdict(exercise, function, seed)
        assert found.verdict == "right", f"{function.__name__}: {found.why}"


@every_exercise
@every_seed
def test_every_wrong_solution_is_refused_with_its_own_message(exercise: Exercise, seed: int) -> None:
    messages = {one.name: one.message for one in exercise.explanations}
    for function, name in exercise.wrong:
        found = verdict(exercise, function, seed)
        assert (found.verdict, found.misconception) == ("wrong", name), f"{function.__name__}: {found.why}"
        assert found.message == messages[name]


@every_exercise
def test_misconceptions_have_messages_of_their_own(exercise: Exercise) -> None:
    messages = [one.message for one in exercise.explanations]
    assert len(set(messages)) == len(messages)


@every_exercise
def test_wrong_solutions_differ_pairwise_on_some_input(exercise: Exercise) -> None:
    cases = list(exercise.cases(Random(0), False))
    limits = [one.seconds for one in cases]
    results = {
        function.__name__: sandbox.run(
            exercise.called(function), [exercise.arguments(one, function) for one in cases], each=limits
        ).attempts
        for function, _name in exercise.wrong
    }
    for (one, here), (other, there) in itertools.combinations(results.items(), 2):
        assert not same(here, there), f"{one} and {other} do the same"


@every_exercise
def test_no_message_contains_an_input_of_a_test_or_an_answer(exercise: Exercise) -> None:
    said = [one.message for one in exercise.explanations]
    cases = list(exercise.cases(Random(0), False))
    function = exercise.called(exercise.solution)
    attempts = sandbox.run(function, [exercise.arguments(case, exercise.solution) for case in cases]).attempts
    for case, attempt in zip(cases, attempts, strict=True):
        assert not any(case.expression in text for text in said)
        answer = repr(attempt.answer)  # an empty tuple is how a call is written, too, and gives nothing away
        assert attempt.failure or answer == "()" or not any(answer in text for text in said)


@every_exercise
def test_a_refusal_shows_an_input_that_fails_and_no_right_answer(exercise: Exercise) -> None:
    function, _name = exercise.wrong[0]
    found = examine(exercise, function, 0)
    case = next(one for one in exercise.cases(Random(0), False) if exercise.shown(one) == found.example)
    returned = exercise.called(function)(*exercise.arguments(case, function))
    assert not exercise.accepts(returned, *case.arguments)
    right = exercise.called(exercise.solution)(*exercise.arguments(case, exercise.solution))
    assert repr(right) not in f"{found!r} {found._repr_html_()}"


@every_exercise
def test_marking_shows_no_input_and_claims_no_visible_checks(exercise: Exercise) -> None:
    found = examine(exercise, exercise.wrong[0][0], 1, marking=True)
    assert (found.example, found.returned) == ("", "") and "visible" not in repr(found)


@every_exercise
@every_seed
def test_the_starter_is_not_attempted(exercise: Exercise, seed: int) -> None:
    assert verdict(exercise, defined(exercise.starter, exercise.name), seed).verdict == "not attempted"


@every_exercise
def test_the_starter_says_what_to_write_and_holds_nothing_of_the_solution(exercise: Exercise) -> None:
    body = exercise.solved.removeprefix(exercise.starter[: exercise.starter.rindex("    raise")])
    assert body != exercise.solved and body not in exercise.starter
    assert exercise.solution.__doc__ and exercise.solution.__doc__ in exercise.starter


@every_exercise
def test_a_seed_makes_the_same_cases_again_and_another_seed_others(exercise: Exercise) -> None:
    def expressions(seed: int) -> list[str]:
        return [one.expression for one in exercise.cases(Random(seed), False)]

    assert expressions(0) == expressions(0) != expressions(1)


# ----------------------------------------------------------------------------- wrong solutions that are not shipped

UNSHIPPED = {
    "one pass of numbers": "return [node + node for node in graph]",
    "numbers": "return [0 for node in graph]",
    "reversed iterator": "return reversed(list(graph))",
    "none at first": "return list(graph).sort()",
    "depth by shortest way": """
        depth = {}
        def look(node):
            if node not in depth:
                depth[node] = 1 + min((look(source) for source in graph[node]), default=0)
            return depth[node]
        return sorted(graph, key=look)
    """,
    "first input only": """
        order = {}
        for node in graph:
            path = [node]
            while graph[path[-1]] and path[-1] not in order:
                path.append(graph[path[-1]][0])
            order.update(dict.fromkeys(reversed(path)))
        return list(order)
    """,
    "by number of inputs": "return sorted(graph, key=lambda node: len(graph[node]))",
    "one node lost": "return list(__import__('graphlib').TopologicalSorter(graph).static_order())[:-1]",
    "right unless deep": """
        order = list(__import__('graphlib').TopologicalSorter(graph).static_order())
        return order if len(order) < 100 else order[::-1]
    """,
    "a number": "return 7",
    "a string": "return ''.join(graph)",
    "lists of lists": "return [[node] for node in graph]",
}


@pytest.mark.parametrize("name", UNSHIPPED)
def test_a_wrong_topological_order_that_nobody_foresaw_is_refused_with_a_message(name: str) -> None:
    body = textwrap.indent(textwrap.dedent(UNSHIPPED[name]).strip(), "    ")
    found = check("topological_order", defined(f"def wrong(graph):\n{body}", "wrong"))
    assert found.verdict == "wrong" and found.message


def test_names_as_numpys_text_are_names() -> None:
    source = "def topological_order(graph):\n    order = __import__('graphlib').TopologicalSorter(graph).static_order()"
    assert check(defined(f"{source}\n    return list(np.array(list(order), str))")).right


@pytest.mark.parametrize("rounds", [2, 3, 5, 6, 20])
def test_no_fixed_number_of_rounds_passes_and_it_is_told_from_three_rounds_on(rounds: int) -> None:
    source = f"""
def topological_order(graph):
    level = dict.fromkeys(graph, 0)
    for _ in range({rounds}):
        for node in graph:
            level[node] = max((level[source] + 1 for source in graph[node]), default=0)
    return sorted(graph, key=level.__getitem__)
"""
    found = check(defined(source))
    assert found.verdict == "wrong" and (rounds < 3 or found.misconception == "a few rounds are enough")


def test_a_walk_along_every_path_is_wrong_where_values_are_shared_and_not_merely_unchecked() -> None:
    found = check("topological_order", seen_when_left)
    assert (found.verdict, found.misconception) == ("wrong", "once for every path")
    assert found.returned == "It did not come back in time."


def test_a_slow_but_right_function_is_never_told_that_it_walks_every_path() -> None:
    source = """
import graphlib, time
def topological_order(graph):
    time.sleep(0.13)
    return list(graphlib.TopologicalSorter(graph).static_order())
"""
    found = check(defined(source))
    assert found.right or found.verdict == "could not be checked"
