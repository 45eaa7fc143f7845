"""What a check says of unusual functions is true: what they print, keep, decorate, raise and return, and how slow they are."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from autodiff_exercises import check, progress_file

import autodiff_lab as ad
from tests.notebook_cell import defined

pytestmark = [pytest.mark.usefixtures("own_progress"), pytest.mark.slow]  # each check starts a process

SORTED = "list(__import__('graphlib').TopologicalSorter(graph).static_order())"


# ------------------------------------------------------------------------------------------------------ what it prints


def test_the_beginning_of_what_a_wrong_function_printed_is_shown_beside_its_answer() -> None:
    source = (
        "def topological_order(graph):\n    for n in range(99): print('line', n)\n    display(graph)\n    return []"
    )
    found = check(defined(source))
    assert "    line 9\n    …" in str(found) and "line 10" not in str(found)
    assert "line 9\n…</pre>" in found._repr_html_()


def test_what_was_printed_before_a_crash_or_in_an_endless_loop_is_shown() -> None:
    source = "import os\ndef topological_order(graph):\n    print('before')\n    os._exit(1)"
    found = check(defined(source))
    assert found.verdict == "could not be checked" and "your function printed:\n    before" in str(found)


def test_what_a_right_function_printed_is_shown_and_display_exists() -> None:
    source = f"def topological_order(graph):\n    display('here', len(graph))\n    return {SORTED}"
    found = check(defined(source))
    assert found.right and "    'here'\n    2" in str(found)


def test_a_line_is_named_only_where_it_is_the_students_own() -> None:
    class_alone = "class One:\n    def __add__(self, other):\n        return NotImplemented\n\n"
    inside = check(
        defined(f"{class_alone}def push_tangents(f, primals, tangents):\n    return f(One(), One())", "push_tangents")
    )
    outside = check(
        defined(f"{class_alone}def push_tangents(f, primals, tangents):\n    return [f][1]", "push_tangents")
    )
    for found in (inside, outside):
        assert "(line 6 of the cell" in found.returned, found.returned


def test_an_endless_loop_is_found_in_the_students_line_also_while_a_function_of_the_check_runs() -> None:
    source = "def seven_steps(graph, costs, workers, choose):\n    while True:\n        choose(list(graph) * 99)"
    assert "in line 3 of the cell" in check(defined(source, "seven_steps")).why


def test_a_short_dictionary_is_shown_to_its_end() -> None:
    source = "def seven_steps(graph, costs, workers, choose):\n    return dict.fromkeys(graph, 0)"
    found = check(defined(source, "seven_steps"))
    assert "..." not in found.returned and found.returned.count(":") == found.example.split("}")[0].count("]")


def test_what_is_told_is_about_the_answer_that_is_shown_and_not_about_a_later_crash() -> None:
    source = """
def served(log, kind):
    queue, taken = [], []
    for entry in log:
        if entry == "take":
            taken.append(queue.pop(0 if kind == "fifo" else -1))
        else:
            queue.append(entry[0])
    return taken
"""
    found = check(defined(source, "served"))
    assert found.misconception == "two kinds are enough" and "Yours returned [" in found.returned


def test_a_function_that_cannot_be_sent_away_is_heard_too() -> None:
    lock = threading.Lock()

    def topological_order(graph: dict[str, list[str]]) -> list[str]:
        with lock:
            print("heard")
            return []

    assert "    heard" in str(check(topological_order))


def test_marking_shows_nothing_of_what_a_function_printed() -> None:
    assert "here" not in str(check(defined("def topological_order(graph):\n    print('here', graph)"), seed=1))


def test_an_array_on_a_device_is_shown_with_its_place_and_its_numbers() -> None:
    source = """
import numpy as np
def nearest_level(xp, x, levels):
    if xp is not np:
        return x + 0.5
    table = np.array(levels)
    return table[abs(x[..., None] - table).argmin(-1)]
"""
    found = check(defined(source, "nearest_level"))
    assert found.returned.startswith(
        "Yours returned an array on sim:0 (simulated) of shape (5,) and dtype float64:\n[-3.5 , -1.75,"
    )


# ------------------------------------------------------------------------------------------------- what it keeps or uses


@pytest.mark.parametrize(
    "source",
    [
        f"def topological_order(graph, order=[]):\n    order += {SORTED}\n    return order",
        f"order = ['x', 'y']\ndef topological_order(graph):\n    order.extend({SORTED})\n    return order",
        "seen = set()\ndef topological_order(graph):\n"
        f"    new = [node for node in {SORTED} if node not in seen]\n    seen.update(new)\n    return new",
    ],
    ids=["as a default", "used in the notebook before", "a set of what was seen"],
)
def test_a_function_that_keeps_something_between_calls_is_told_so(source: str) -> None:
    found = check(defined(source))
    assert (found.verdict, found.misconception) == ("wrong", "remembers the last call")


def test_an_answer_that_is_right_where_nothing_was_called_before_is_told_that_it_remembers() -> None:
    source = f"""
known = {{}}
def topological_order(graph):
    if len(graph) not in known:
        known[len(graph)] = {SORTED}
    return known[len(graph)]
"""
    found = check(defined(source))
    assert (found.verdict, found.misconception) == ("wrong", "remembers the last call")


@pytest.mark.parametrize(
    "source",
    [
        "def slope(f, x):\n    return ad.grad(f)(x)",
        "from autodiff_lab import jvp\ndef slope(f, x):\n    return jvp(f, (x,), (1.0,))[1]",
        "def slope(f, x):\n    from autodiff_lab.reverse_mode import vjp\n    return vjp(f, x).pull(1.0)[0]",
        "def slope(f, x):\n    t = ad.tensor(x, requires_grad=True)\n    f(t).backward()\n    return t.grad.item()",
        "import threading\nlock = threading.Lock()\ndef slope(f, x):\n    with lock:\n        return ad.grad(f)(x)",
    ],
    ids=["by its name", "imported in the notebook", "imported inside", "of a Tensor", "where it runs in the notebook"],
)
def test_what_the_exercise_asks_for_is_not_left_to_the_lab(source: str) -> None:
    found = check(defined(source, "slope"))
    assert (found.verdict, found.misconception) == ("wrong", "the lab does it")
    assert float(ad.grad(lambda x: x * x)(3.0)) == 6.0


@pytest.mark.parametrize("decorator", ["functools.cache", "functools.lru_cache(maxsize=2)"])
def test_a_function_may_use_a_cached_one_of_the_notebook(decorator: str) -> None:
    source = f"""
import functools
__name__ = "__main__"
@{decorator}
def down(n):
    return down(n - 1) if n else 0
def topological_order(graph):
    down(7)
    return {SORTED}
"""
    found = check(defined(source))
    assert found.right and not found.notes


def test_a_decorated_function_is_checked_by_its_name() -> None:
    source = f"""
import functools
def counted(function):
    @functools.wraps(function)
    def calls(*arguments):
        return function(*arguments)
    return calls
@counted
def topological_order(graph):
    return {SORTED}
"""
    assert check(defined(source)).right


def test_a_cached_function_that_cannot_work_is_told_the_true_reason() -> None:
    source = "import functools\n@functools.cache\ndef topological_order(graph):\n    return list(graph)"
    assert "unhashable type: 'dict'" in check(defined(source)).returned


def test_what_the_process_for_checks_cannot_make_is_named_with_the_way_out() -> None:
    source = """
class Only:
    def __reduce__(self):
        return no_such_function, ()
def no_such_function():
    raise LookupError("only in the notebook")
only = Only()
def topological_order(graph):
    return only
"""
    why = check(defined(source)).why
    assert "LookupError: only in the notebook" in why and "write it inside your function" in why


# -------------------------------------------------------------------------------------- how it ends, and how long it takes


def test_an_exception_that_cannot_say_what_it_is_is_an_outcome() -> None:
    source = """
class Silent(Exception):
    def __str__(self):
        raise ValueError
def topological_order(graph):
    raise Silent
"""
    found = check(defined(source))
    assert found.verdict == "wrong" and "It raised Silent: (it cannot say more" in found.returned


def test_a_recursion_that_another_cell_made_room_for_is_told_that_this_does_not_count() -> None:
    source = """
def topological_order(graph):
    order = {}
    def visit(node):
        if node not in order:
            for source in graph[node]:
                visit(source)
            order[node] = None
    for node in graph:
        visit(node)
    return list(order)
"""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        assert "sys.setrecursionlimit" in check(defined(source)).message
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.slow
def test_a_slow_function_is_told_that_all_calls_share_the_time() -> None:
    source = f"import time\ndef topological_order(graph):\n    time.sleep(0.4)\n    return {SORTED}"
    found = check(defined(source))
    assert found.verdict == "could not be checked"
    assert "calls of this check share 5 seconds" in found.why and "too slow" in found.why


@pytest.mark.slow
@pytest.mark.parametrize("items", ["[str(n) for n in range(10**6)]", "list(graph) * 10**6", "'x' * 10**8"])
def test_an_answer_of_millions_of_items_ends_within_the_limit(items: str) -> None:
    began = time.perf_counter()
    found = check(defined(f"def topological_order(graph):\n    return {items}"))
    assert (found.verdict, found.misconception) == ("wrong", "far too much")
    assert time.perf_counter() - began < 8


@pytest.mark.alone  # side by side, tests run beside the main thread, which is the one that signals reach
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a thread")
def test_an_interrupted_check_says_one_line_ends_its_process_and_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "number"
    source = f"""
import os, pathlib, time
def topological_order(graph):
    pathlib.Path({str(file)!r}).write_text(str(os.getpid()))
    while True:
        time.sleep(1)
"""

    def interrupt() -> None:
        while not (file.exists() and file.read_text()):
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    found = check(defined(source))
    assert str(found) == "? topological_order: could not be checked\nInterrupted; nothing was judged."
    assert progress_file.records()[0] == {}
    assert not psutil.pid_exists(int(file.read_text()))
