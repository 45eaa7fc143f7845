"""Real runs: results as of one worker, legal timelines, errors and the stop button, and what runs leave behind: nothing."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

import autodiff_lab as ad
from autodiff_lab import events, ops, schedule
from autodiff_lab.layers import TransformerBlock
from autodiff_lab.schedule import POLICIES, DeadlockError, PolicyError, ScheduleError, Task, Tasks, Timeline, blas, run

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())  # threads of other libraries may end meanwhile
    yield
    assert before.issuperset(threading.enumerate()), threading.enumerate()


def adding(number: int) -> Callable[..., int]:
    return lambda *others: number + sum(others)


def random_tasks(random: random.Random, most: int = 25) -> dict[str, Task]:
    return {
        f"t{number}": Task(
            adding(number),
            after=[f"t{other}" for other in sorted(random.sample(range(number), min(number, random.randint(0, 3))))],
            cost=random.randint(0, 9),
            priority=random.randint(0, 2),
        )
        for number in range(random.randint(1, most))
    }


def one_after_the_other(tasks: dict[str, Task]) -> dict[str, int]:
    """What nobody uses, computed in the order of submission."""
    values: dict[str, int] = {}
    for name, task in tasks.items():
        values[name] = task.call(*(values[other] for other in task.after))  # type: ignore[misc]
    used = {other for task in tasks.values() for other in task.after}
    return {name: value for name, value in values.items() if name not in used}


def failing(message: str = "no") -> Callable[..., Any]:
    def boom(*_: Any) -> Any:
        raise ZeroDivisionError(message)

    return boom


def timeline_of(error: BaseException) -> Timeline:
    timeline: Timeline = error.timeline  # type: ignore[attr-defined]
    return timeline


# ------------------------------------------------------------------------------------------------------------ plain tasks


def test_tasks_are_given_their_arguments_then_what_they_read_then_what_they_wait_for() -> None:
    tasks = [Task(lambda x: x + 1, name="a", reads=["x"])]
    tasks += [Task(lambda *got: got, name="b", args=(5,), reads=["x"], after=["a"])]
    outputs, timeline = run(Tasks(tasks, inputs=["x"]), {"x": 10})
    assert outputs == {"b": (5, 10, 11)} and timeline.faults() == [] and not timeline.simulated


def test_a_task_may_write_several_values_and_replace_one() -> None:
    tasks = Tasks(
        [
            Task(lambda: (1, 2), name="pair", writes=["one", "two"]),
            Task(lambda one: one + 10, name="again", reads=["one"], writes=["one"]),
            Task(lambda one, two: (one, two), name="both", reads=["one", "two"]),
        ]
    )
    assert run(tasks)[0] == {"both": (11, 2)}
    with pytest.raises(ScheduleError, match=r"tuple of 2; got 3"):
        run({"a": Task(lambda: 3, writes=["x", "y"])})


def test_ten_ready_tasks_of_equal_priority_run_in_order_of_submission() -> None:
    ran: list[str] = []
    tasks = {
        f"t{i}": Task(lambda k, _, i=i: ran.append(f"t{i}"), args=({"k": i}, ad.tensor([1.0, 2.0])), priority=1)
        for i in range(10)
    }
    first = run(tasks, workers=1, policy="priority")[1].order
    second = run(tasks, workers=1, policy="priority")[1].order
    assert first == second == list(range(10)) and ran == [f"t{i}" for i in range(10)] * 2


def test_a_task_that_waits_for_something_absent_is_refused_before_anything_runs() -> None:
    ran: list[str] = []
    with pytest.raises(ScheduleError, match=r"'b'.*'aa'.*did you mean 'a'"):
        run({"a": Task(lambda: ran.append("a")), "b": Task(lambda *_: ran.append("b"), after=["aa"])})
    with pytest.raises(ScheduleError, match=r"read 'weight'.*did you mean 'weights'"):
        run(Tasks([Task(lambda w: ran.append("c"), name="c", reads=["weight"])], inputs=["weight"]), {"weights": 1})
    assert ran == []


def test_the_default_order_frees_each_load_after_its_summary_and_breadth_first_does_not() -> None:
    tasks = {f"L{i}": Task(nbytes=10) for i in range(4)}
    tasks |= {f"S{i}": Task(nbytes=1, after=[f"L{i}"]) for i in range(4)}
    tasks |= {"T": Task(nbytes=1, after=["S0", "S1", "S2", "S3"])}
    assert run(tasks, workers=1)[1].peak == 14
    assert run(tasks, workers=1, policy="fifo")[1].peak == 41


@pytest.mark.parametrize("workers", [0, -1, 1.5, None])
def test_a_number_of_workers_that_is_none_is_refused(workers: Any) -> None:
    with pytest.raises(ScheduleError, match="workers must be a whole number"):
        run({"a": Task()}, workers=workers)


def test_nothing_to_do_is_done_at_once() -> None:
    outputs, timeline = run({})
    assert outputs == {} and timeline.makespan == 0


# ------------------------------------------------------------------------------------------------------------------- laws


def check_random_run(seed: int, policy: str, workers: int, listens: bool) -> None:
    chance = random.Random(seed)
    tasks = random_tasks(chance)
    heard: list[events.Event] = []
    tell = heard.append if listens else None
    if seed % 10:
        outputs, timeline = run(tasks, workers=workers, policy=policy, tell=tell)
        assert outputs == one_after_the_other(tasks) and timeline.statuses == {}
    else:
        victim = chance.choice(list(tasks))
        tasks[victim] = Task(failing(), after=tasks[victim].after)
        with pytest.raises(ZeroDivisionError) as caught:
            run(tasks, workers=workers, policy=policy, tell=tell)
        timeline = timeline_of(caught.value)
        assert timeline.statuses[timeline.tasks[victim].id] == "failed"
        assert any(f"'{victim}'" in note for note in caught.value.__notes__)
    assert timeline.faults() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_random_tasks_give_what_one_worker_gives_and_legal_timelines_also_when_one_fails(policy: str) -> None:
    for seed in range(20):
        check_random_run(seed, policy, workers=1 + seed % 3, listens=seed % 2 == 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_with_one_worker_tells_the_steps_that_the_simulator_tells(policy: str) -> None:
    for seed in range(15):
        tasks = Tasks(random_tasks(random.Random(seed)))
        simulated: list[Any] = []
        real: list[Any] = []
        schedule.simulate(tasks, 1, policy, tell=simulated.append)
        run(tasks, workers=1, policy=policy, tell=real.append)
        assert [without_time(event) for event in real] == [without_time(event) for event in simulated]


def without_time(event: Any) -> Any:
    return event._replace(time=0.0) if "time" in event._fields else event


@pytest.mark.slow
def test_one_worker_keeps_the_same_order_under_every_hash_seed() -> None:
    program = (
        "import random\n"
        "from autodiff_lab import schedule\n"
        "chance = random.Random(3)\n"
        "tasks = {f't{i}': schedule.Task(lambda *_: 0, cost=chance.randint(1, 3), after=[f't{j}' for j in sorted("
        "chance.sample(range(i), min(i, 2)))]) for i in range(60)}\n"
        "print([schedule.run(tasks, workers=1, policy=name)[1].order for name in schedule.POLICIES])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1


def test_a_policy_of_ones_own_sees_the_same_state_as_in_the_simulator() -> None:
    def shortest(task: Task, state: schedule.State) -> float:
        assert len(state.machine.resources) == 2 and not state.has_started(task.id)
        return -float(task.cost)  # type: ignore[arg-type]

    def on_the_second(task: Task, state: schedule.State) -> str | None:
        return next((name for name in state.free_for(task) if name == "core1"), None)

    tasks = {f"t{i}": Task(adding(i), cost=9 - i) for i in range(9)}
    _, timeline = run(tasks, policy=(shortest, on_the_second))
    assert timeline.order == list(reversed(range(9))) and {span.resource for span in timeline.spans} == {"core1"}


# ----------------------------------------------------------------------------------------------------------------- graphs


def block_gradient() -> tuple[ad.Graph, list[Any]]:
    block = TransformerBlock(16, heads=2, seed=0)
    x = np.random.default_rng(0).standard_normal((2, 8, 16)).astype(np.float32)

    def loss(parameters: Any, x: Any) -> Any:
        return ops.square(block.with_parameters(parameters)(x)).mean()

    parameters = ad.map_leaves(lambda leaf: leaf.data, block.parameters())
    graph = ad.record(ad.value_and_grad(loss), parameters, x)
    leaves: list[Any] = []
    ad.map_leaves(leaves.append, (parameters, x))
    return graph, leaves


@pytest.mark.parametrize("policy", ["lifo", "critical_path", "heft", "level_barrier"])
def test_a_joint_graph_gives_the_same_gradients_as_one_worker_bit_by_bit(policy: str) -> None:
    graph, arguments = block_gradient()
    with threadpool_limits(1):
        expected = graph(*arguments)
    outputs, timeline = run(graph, arguments, workers=3, policy=policy)
    same: list[bool] = []
    ad.map_leaves(lambda one, other: same.append(np.array_equal(one, other)), outputs, expected)
    assert all(same) and len(same) > 10 and timeline.faults() == []
    assert len(timeline.order) == sum(node.op is not None for node in graph)


def test_outputs_may_be_inputs_and_constants_and_nested() -> None:
    graph = ad.record(lambda x: {"x": x, "c": 2.0, "y": [x * 2.0]}, np.ones(3))
    outputs, _ = run(graph, [np.arange(3.0)])
    np.testing.assert_equal(outputs, graph(np.arange(3.0)))


def test_tensors_among_the_inputs_are_read_as_their_values() -> None:
    outputs, _ = run(ad.record(lambda x: x * x, 3.0), [ad.tensor(4.0, requires_grad=True)])
    assert type(outputs) is np.ndarray and outputs == 16


def test_a_failing_op_is_named_with_the_line_that_called_it() -> None:
    def f(x: Any) -> Any:
        return ops.tanh(x) + ops.fails(x)  # type: ignore[attr-defined]

    @ad.op(elementwise=True)
    def fails(xp: Any, x: Any) -> Any:
        """Never comes to a result."""
        raise FloatingPointError("lost its digits")

    graph = ad.record(f, np.ones(3))
    with pytest.raises(FloatingPointError, match="lost its digits") as caught:
        run(graph, [np.ones(3)])
    note = "\n".join(caught.value.__notes__)
    assert "'fails_2'" in note and "test_schedule_executor.py" in note and "ops.fails(x)" in note
    assert "fails" in [frame.name for frame in _frames(caught.value)]


def _frames(error: BaseException) -> list[Any]:
    import traceback

    return list(traceback.extract_tb(error.__traceback__))


def test_a_value_is_freed_as_soon_as_its_last_reader_is_done() -> None:
    alive: list[weakref.ref[Any]] = []
    seen: list[int] = []

    def step(*_: Any) -> Any:
        gc.collect()
        seen.append(sum(ref() is not None for ref in alive))
        result = np.zeros(1000)
        alive.append(weakref.ref(result))
        return result

    tasks = {f"t{i}": Task(step, after=[f"t{i - 1}"] if i else []) for i in range(6)}
    _, timeline = run(tasks, workers=1)
    assert max(seen) == 1 and timeline.peak == 2 * 8000


def test_live_memory_counts_a_buffer_once_and_while_any_view_of_it_lives() -> None:
    graph = ad.record(lambda x: ops.exp(ops.transpose(x + 1.0)).sum(), np.ones((30, 20)))
    _, timeline = run(graph, [np.ones((30, 20))], workers=1)
    assert [record.nbytes for record in timeline.live_bytes] == [0, 4800, 9600, 4800, 4808, 8]
    assert timeline.peak == 9600


# ----------------------------------------------------------------------------------------------------- what tasks see, BLAS


def test_tasks_see_the_callers_context_and_change_only_their_own() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    variable.set("the caller's")
    seen = []

    def look() -> None:
        seen.append(variable.get())
        variable.set("a task's")

    with ad.no_grad():
        records = run({"a": Task(lambda: (ad.tensor(1.0, requires_grad=True) * 2.0).requires_grad)}, workers=1)[0]
    run({f"t{i}": Task(look) for i in range(8)})
    assert records == {"a": False} and variable.get() == "the caller's" and seen[0] == "the caller's"


def test_a_listener_hears_ops_and_steps_of_all_workers_one_at_a_time() -> None:
    inside = threading.Lock()
    heard: list[str] = []

    def receive(event: events.Event) -> None:
        assert inside.acquire(blocking=False), "two events at once"
        heard.append(type(event).__name__)
        time.sleep(0.0005)
        inside.release()

    def compute() -> None:
        x = ad.tensor(1.0, requires_grad=True)
        for _ in range(5):
            x = x * 2.0

    with ad.listen(receive):
        run({f"t{i}": Task(compute) for i in range(4)}, workers=3)
    assert heard.count("OpCalled") == 20 and heard.count("TaskTaken") == 4 and heard[-1] == "AllTasksDone"


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_while_tasks_run_and_as_many_as_before_afterwards() -> None:
    with threadpool_limits(2, user_api="blas"):
        inside = run({"a": Task(blas_threads), "b": Task(blas_threads)})[0]
        assert set.union(*inside.values()) == {1} and blas_threads() == {2}
        with pytest.raises(ZeroDivisionError):
            run({"a": Task(failing())})
        assert blas_threads() == {2}


def test_libraries_are_looked_for_again_only_where_a_module_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = threadpoolctl.ThreadpoolController
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: made.append(real()) or made[-1])
    monkeypatch.setattr(blas, "_found", (0, None))
    for _ in range(3):
        run({"a": Task(lambda: 1)})
    assert len(made) == 1
    monkeypatch.setitem(sys.modules, "loaded_just_now", ModuleType("loaded_just_now"))
    run({"a": Task(lambda: 1)})
    assert len(made) == 2


def test_blas_gets_its_threads_back_in_whatever_order_two_runs_end() -> None:
    before, short_is_in, long_may_end = blas_threads(), threading.Event(), threading.Event()
    with threadpool_limits(2, user_api="blas"):
        first = threading.Thread(target=run, args=({"a": Task(short_is_in.wait, args=(10,))},))
        second = threading.Thread(target=run, args=({"a": Task(lambda: (short_is_in.set(), long_may_end.wait(10)))},))
        first.start()
        second.start()
        first.join()
        assert blas_threads() == {1}
        long_may_end.set()
        second.join()
        assert blas_threads() == {2}
    assert blas_threads() == before


def test_a_task_may_run_tasks_itself() -> None:
    outer = {f"t{i}": Task(lambda i=i: run({"in": Task(lambda: i)})[0]["in"]) for i in range(4)}
    assert run(outer, workers=2)[0] == {f"t{i}": i for i in range(4)}


# ------------------------------------------------------------------------------------------------- errors and the stop button


def test_after_a_failing_task_those_that_wait_for_it_are_skipped_and_the_next_run_works() -> None:
    ran: list[str] = []
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="no") as caught:
        run(
            {
                "a": Task(lambda: ran.append("a")),
                "b": Task(failing(), after=["a"]),
                "c": Task(lambda _: ran.append("c"), after=["b"]),
            }
        )
    assert time.monotonic() - began < 1
    assert ran == ["a"] and "'b'" in caught.value.__notes__[0] and _frames(caught.value)[-1].name == "boom"
    assert timeline_of(caught.value).statuses == {1: "failed", 2: "skipped"}
    assert timeline_of(caught.value).faults() == []
    assert run({"p": Task(lambda: 1), "q": Task(lambda p: p + 1, after=["p"])})[0]["q"] == 2


def test_what_has_nothing_to_do_with_the_failure_is_cancelled_unless_it_ran() -> None:
    tasks = {"a": Task(failing()), **{f"t{i}": Task(lambda: None) for i in range(3)}}
    with pytest.raises(ZeroDivisionError) as caught:
        run(tasks, workers=1, policy="fifo")
    assert timeline_of(caught.value).statuses == {0: "failed", 1: "cancelled", 2: "cancelled", 3: "cancelled"}


def for_ever() -> None:
    while True:
        pass


def test_a_failure_is_told_within_a_second_while_another_task_never_ends() -> None:
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError) as caught:
        run(
            {"a": Task(lambda: (time.sleep(0.1), 1 / 0)), "b": Task(for_ever)},
            policy=place_by_name(a="core0", b="core1"),
        )
    assert time.monotonic() - began < 1
    assert timeline_of(caught.value).statuses == {0: "failed", 1: "cancelled"}


def place_by_name(**places: str) -> tuple[Any, Any]:
    return (
        lambda task, state: 0,
        lambda task, state: places[task.name] if state.free_lanes[int(places[task.name][-1])] else None,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C on Windows")
@pytest.mark.parametrize("caller_does", ["compute", "sleep", "nothing"])
def test_the_stop_button_works_at_once_whatever_the_workers_do(caller_does: str) -> None:
    callers = {"compute": for_ever, "sleep": lambda: time.sleep(30), "nothing": lambda: None}

    def press() -> None:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        for_ever()

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(
            {"mine": Task(callers[caller_does]), "other": Task(press)},
            policy=place_by_name(mine="core0", other="core1"),
        )
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda task, state: task.nonsense, r"priority\('a'\) raised AttributeError"),
        (lambda task, state: "soon", r"priority\('a'\) must be a number.*'soon'"),
        ((lambda task, state: 0, lambda task, state: "core7"), r"place\('a'\).*'core7'"),
        ((lambda task, state: 0, lambda task, state: 1 / 0), r"place\('a'\) raised ZeroDivisionError"),
    ],
)
def test_a_policy_that_raises_or_answers_nonsense_stops_the_run_and_names_the_task(policy: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        run({"a": Task(lambda: 1), "b": Task(lambda a: a, after=["a"])}, policy=policy)


def test_a_policy_that_goes_wrong_in_the_middle_stops_the_run_as_well() -> None:
    with pytest.raises(PolicyError, match=r"priority\('c'\) raised"):
        run({n: Task(lambda *_: 1, after=a) for n, a in (("a", []), ("b", []), ("c", ["a", "b"]))},
            policy=lambda task, state: 1 / (task.name != "c"))  # fmt: skip


def test_a_policy_that_lets_everything_wait_is_a_deadlock_and_not_a_hang() -> None:
    with pytest.raises(DeadlockError, match="lets every ready task wait: 'a'"):
        run({"a": Task(lambda: 1)}, policy=(lambda task, state: 0, lambda task, state: None))


def test_a_listener_that_raises_stops_the_run() -> None:
    def refuse(event: events.Event) -> None:
        if isinstance(event, events.ResourceReleased):
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run({f"t{i}": Task(adding(i)) for i in range(5)}, tell=refuse)


def test_without_threadpoolctl_a_run_works_and_says_what_its_figures_are_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autodiff_lab.schedule.blas.find_spec", lambda name: None)
    with pytest.warns(RuntimeWarning, match="pip install threadpoolctl"):
        outputs, _ = run({"a": Task(lambda: 1)})
    assert outputs == {"a": 1}
