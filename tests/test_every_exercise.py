"""Every exercise of the registry: right answers pass, each wrong one is refused for its own reason, no answer leaks."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from autodiff_exercises import check, hint, progress, progress_file, sandbox, solution
from autodiff_exercises.checking import examine
from autodiff_exercises.exercise import Exercise
from autodiff_exercises.outcomes import Outcome
from autodiff_exercises.registry import EXERCISES, LESSONS

SEEDS = (0, 1, 2026)
every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
every_seed = pytest.mark.parametrize("seed", SEEDS)


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "progress.json"
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(file))
    return file


def verdict(exercise: Exercise, function: Callable[..., Any], seed: int) -> Outcome:
    return examine(exercise, function, seed, marking=seed != 0)


# ---------------------------------------------------------------------------------------------- right, wrong, untouched


def test_exercise_names_are_unique() -> None:
    assert len(EXERCISES) == sum(len(lesson.EXERCISES) for lesson in LESSONS)


@every_exercise
def test_an_exercise_ships_hints_wrong_solutions_and_alternatives(exercise: Exercise) -> None:
    assert len(set(exercise.hints)) == 3
    assert len({name for _function, name in exercise.wrong}) >= 4
    assert exercise.alternatives


@every_exercise
@every_seed
def test_the_solution_and_every_alternative_are_right(exercise: Exercise, seed: int) -> None:
    for function in (exercise.solution, *exercise.alternatives):
        assert verdict(exercise, function, seed).verdict == "right", function.__name__


@every_exercise
@every_seed
def test_every_wrong_solution_is_refused_with_its_own_message(exercise: Exercise, seed: int) -> None:
    messages = {one.name: one.message for one in exercise.misconceptions}
    for function, name in exercise.wrong:
        found = verdict(exercise, function, seed)
        assert (found.verdict, found.misconception) == ("wrong", name), function.__name__
        assert found.message == messages[name]


@every_exercise
def test_misconceptions_have_messages_of_their_own(exercise: Exercise) -> None:
    messages = [one.message for one in exercise.misconceptions]
    assert len(set(messages)) == len(messages)


@every_exercise
def test_wrong_solutions_differ_pairwise_on_some_input(exercise: Exercise) -> None:
    cases = list(exercise.cases(Random(0), False))
    results = {
        function.__name__: sandbox.run(function, [one.arguments for one in cases]).attempts
        for function, _name in exercise.wrong
    }
    for (one, here), (other, there) in itertools.combinations(results.items(), 2):
        assert here != there, f"{one} and {other} do the same"


@every_exercise
def test_no_message_contains_an_input_of_a_test_or_an_answer(exercise: Exercise) -> None:
    said = [one.message for one in exercise.misconceptions]
    cases = list(exercise.cases(Random(0), False))
    attempts = sandbox.run(exercise.solution, [case.arguments for case in cases]).attempts
    for case, attempt in zip(cases, attempts, strict=True):
        assert not any(case.expression in text or repr(attempt.answer) in text for text in said)


@every_exercise
def test_a_refusal_shows_an_input_that_fails_and_no_right_answer(exercise: Exercise) -> None:
    function, _name = exercise.wrong[0]
    found = examine(exercise, function, 0)
    arguments = eval(f"({found.example[len(exercise.name) + 1 : -1]},)")
    returned = function(*arguments)
    assert not exercise.accepts(returned, *arguments)
    assert repr(exercise.solution(*arguments)) not in f"{found!r} {found._repr_html_()}"


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


@pytest.mark.slow
@every_exercise
@every_seed
def test_every_verdict_takes_less_than_two_seconds(exercise: Exercise, seed: int) -> None:
    functions = [exercise.solution, *exercise.alternatives, *(function for function, _name in exercise.wrong)]
    verdict(exercise, exercise.solution, seed)  # the process is warm after this
    for function in functions:
        began = time.perf_counter()
        verdict(exercise, function, seed)
        assert time.perf_counter() - began < 2, function.__name__


@every_exercise
def test_a_seed_makes_the_same_cases_again_and_another_seed_others(exercise: Exercise) -> None:
    def expressions(seed: int) -> list[str]:
        return [one.expression for one in exercise.cases(Random(seed), False)]

    assert expressions(0) == expressions(0) != expressions(1)


# ----------------------------------------------------------------------------- wrong solutions that are not shipped

UNSHIPPED = {
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


def defined(source: str, name: str) -> Callable[..., Any]:
    """A function as a notebook cell defines it: known to no module."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(source, names)
    function: Callable[..., Any] = names[name]
    return function


# ------------------------------------------------------------------------------------------ hostile or unlucky code


def loops(graph: Any) -> Any:
    while True:
        pass


def loops_and_catches_everything(graph: Any) -> Any:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(10)


def floods(graph: Any) -> Any:
    while True:
        print("flood" * 1000)
        os.write(1, b"flood" * 1000)
        os.write(2, b"flood" * 1000)


def exits(graph: Any) -> Any:
    os._exit(0)


def is_killed(graph: Any) -> Any:
    os.kill(os.getpid(), 9)


def aborts(graph: Any) -> Any:
    os.abort()


def crashes(graph: Any) -> Any:
    ctypes.string_at(0)


HOSTILE = {
    loops: "still running",
    loops_and_catches_everything: "still running",
    floods: "still running",
    exits: "ended the whole of Python",
    is_killed: "the system ended your function (signal 9)",
    aborts: "crashed",
    crashes: "crashed",
}


@pytest.mark.parametrize("function", HOSTILE)
def test_code_that_never_answers_is_an_outcome_and_the_next_check_works(function: Callable[..., Any]) -> None:
    began = time.perf_counter()
    run = sandbox.run(function, [({"x": []},)], seconds=1.0)
    assert HOSTILE[function] in run.stopped
    assert time.perf_counter() - began < 10
    assert check("topological_order", EXERCISES["topological_order"].solution).right


@pytest.mark.slow
def test_an_endless_loop_is_told_with_its_line_and_the_call() -> None:
    exercise = EXERCISES["topological_order"]
    loop = defined("def topological_order(graph):\n    while True:\n        graph = dict(graph)", "topological_order")
    found = check(exercise.name, loop)
    assert found.verdict == "could not be checked" and found.example.startswith("topological_order({")
    assert "still running after 5 seconds, in line" in found.why


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("import sys; sys.exit(3)", "SystemExit"),
        ("return input('order? ')", "EOFError"),
        ("return topological_order(graph)", "RecursionError"),
        ("return graph['nothing']", "KeyError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return [0] * 10**12", "MemoryError"),
    ],
)
def test_an_exception_is_an_outcome_that_names_it(body: str, kind: str) -> None:
    found = check(defined(f"def topological_order(graph):\n    {body}", "topological_order"))
    assert found.verdict == "wrong" and f"It raised {kind}" in found.returned


def test_a_function_that_cannot_be_sent_away_runs_here_and_the_limit_is_said() -> None:
    lock = threading.Lock()

    def topological_order(graph: Any) -> Any:
        with lock:
            return EXERCISES["topological_order"].solution(graph)

    found = check(topological_order)
    assert found.right and "without a time limit" in " ".join(found.notes)


def test_an_answer_that_cannot_be_sent_back_is_refused() -> None:
    source = "class Odd: pass\ndef topological_order(graph): return Odd()"
    assert check(defined(source, "topological_order")).returned == "Yours returned <Odd object>."


def test_changed_globals_and_builtins_do_not_outlive_a_check() -> None:
    source = "import builtins\ndef topological_order(graph):\n    builtins.sorted = None\n    return []"
    assert check(defined(source, "topological_order")).verdict == "wrong"
    assert check("topological_order", EXERCISES["topological_order"].alternatives[1]).right


@pytest.mark.skipif(sys.platform == "win32", reason="fork is not known there")
def test_a_process_that_the_code_left_behind_does_not_hold_up_the_check() -> None:
    source = "import os, time\ndef topological_order(graph):\n    os.fork() or time.sleep(60)\n    return list(graph)"
    began = time.perf_counter()
    assert check(defined(source, "topological_order")).verdict == "wrong"
    assert time.perf_counter() - began < 4


@pytest.mark.skipif(sys.platform == "win32", reason="looks at a process as POSIX does")
def test_no_process_is_left_when_the_notebook_ends_even_when_it_is_killed() -> None:
    script = """
        from autodiff_exercises import check, sandbox
        def topological_order(graph):
            raise NotImplementedError
        check(topological_order)
        print(sandbox._waiting[0].pid, flush=True)
        import time
        time.sleep(60)
    """
    notebook = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert notebook.stdout is not None
    waiting = int(notebook.stdout.readline())
    assert is_running(waiting)
    notebook.kill()
    notebook.communicate()
    deadline = time.monotonic() + 10
    while is_running(waiting) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(waiting)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or ") Z " not in status.read_text()


# ---------------------------------------------------------------------------------------------- asking and keeping


def test_a_bare_function_and_a_name_with_a_function_find_the_same_exercise() -> None:
    right = EXERCISES["topological_order"].solution
    assert check(right).right and check("topological_order", right).right


@pytest.mark.parametrize("call", [lambda: check("topological_ordr", len), lambda: hint("topological_ordr")])
def test_a_misspelt_exercise_is_told_with_the_near_name(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="Did you mean 'topological_order'"):
        call()


def test_a_check_without_a_function_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write check\(topological_order\)"):
        check("topological_order")


def test_hints_come_one_by_one_and_the_last_one_stays() -> None:
    seen = [hint("topological_order") for _ in range(4)]
    assert [one.paragraphs[0] for one in seen] == [*EXERCISES["topological_order"].hints, seen[2].paragraphs[0]]


def test_the_solution_is_shown_only_when_asked_twice() -> None:
    exercise = EXERCISES["topological_order"]
    first, second = solution(exercise.name), solution(exercise.name, really=True)
    assert "stack" not in repr(first) + first._repr_html_()
    assert defined(second.code, exercise.name)({"y": ["x"], "x": []}) == ["x", "y"]
    assert progress_file.records()[0][exercise.name].solution_seen


def test_progress_remembers_and_right_stays_right(own_progress: Path) -> None:
    exercise = EXERCISES["topological_order"]
    assert "not attempted" in repr(progress())
    for function in (exercise.wrong[0][0], exercise.solution, exercise.wrong[1][0]):
        check(exercise.name, function)
    hint(exercise.name)
    assert "✓ right  topological_order  (10_computation_graph; 3 checks, 1 hint)" in repr(progress())
    assert "topological_order" in progress()._repr_html_()
    assert json.loads(own_progress.read_text())[exercise.name]["state"] == "right"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"topological_order": {"no_such_field": 1}}', "\0\0"])
def test_a_damaged_progress_file_is_kept_and_told(own_progress: Path, content: str) -> None:
    own_progress.write_text(content)
    found = check("topological_order", EXERCISES["topological_order"].solution)
    assert found.right and "damaged" in " ".join(found.notes)
    (aside,) = own_progress.parent.glob("*unreadable*")
    assert aside.read_text() == content
    assert "right" in repr(progress())


def test_progress_that_cannot_be_saved_is_told_and_the_check_still_counts(
    own_progress: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTODIFF_LAB_PROGRESS", str(own_progress / "beneath" / "a file"))
    own_progress.write_text("{}")
    found = check("topological_order", EXERCISES["topological_order"].solution)
    assert found.right and "could not be saved" in " ".join(found.notes)


def test_a_disk_that_fills_up_leaves_the_old_file(own_progress: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint("topological_order")
    before = own_progress.read_text()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in str(hint("topological_order"))
    assert own_progress.read_text() == before and list(own_progress.parent.iterdir()) == [own_progress]


def test_what_a_student_writes_is_escaped_in_html() -> None:
    source = "def topological_order(graph):\n    return ['<script>alert(1)</script>']"
    page = check(defined(source, "topological_order"))._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


@pytest.fixture(autouse=True, scope="module")
def no_process_outlives_these_tests() -> Iterator[None]:
    yield
    sandbox._close_all()
    assert not sandbox._waiting
