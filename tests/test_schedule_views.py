"""Views of schedules: the picture is the timeline, the steps are the events, and the sentences say what happened."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any, get_args

import autodiff_widgets as aw
import pytest
from autodiff_widgets.captions import Names, caption
from autodiff_widgets.captions.scheduling import choice_caption
from autodiff_widgets.captions.timelines import CAUSES, figures_caption
from autodiff_widgets.questions import MOST
from autodiff_widgets.races import Race
from autodiff_widgets.scene import Question
from autodiff_widgets.tasks_shown import graph_of_tasks, task_keys
from autodiff_widgets.timeline_chart import BINS, LANE, MOST_BARS
from autodiff_widgets.timeline_view import MOST_STEPS
from autodiff_widgets.values import bytes_text, time_text
from autodiff_widgets.view import View

from autodiff_lab import events, schedule
from autodiff_lab.schedule import Task, Timeline
from autodiff_lab.schedule.idleness import Cause
from tests.drawn_schedules import GRAPH, STEP, TIMELINES
from tests.test_every_view import SVG, elements

NAMES = Names("`t{}`".format)


@pytest.fixture(scope="module", params=TIMELINES, ids=str)
def timeline(request: pytest.FixtureRequest) -> Timeline:
    return TIMELINES[request.param]()


def bars(view: View) -> dict[str, ET.Element]:
    return {key: found[0] for key, found in elements(view).items() if found[0].attrib["class"].startswith("bar")}


def edges_of(bar: ET.Element) -> tuple[float, float]:
    """Where a bar begins and ends, in px."""
    rect, path = bar.find("{*}rect"), bar.find("{*}path")
    if rect is not None:
        return float(rect.attrib["x"]), float(rect.attrib["x"]) + float(rect.attrib["width"])
    assert path is not None
    xs = [float(x) for x in re.findall(r"[ML]([\d.]+) ", path.attrib["d"])]
    return min(xs), max(xs)


def axis_of(view: View) -> tuple[float, float]:
    """Where the time axis begins and ends, in px."""
    lines = [e.attrib["d"] for e in ET.fromstring(view.scene.panes[0].svg).iter() if e.attrib.get("class") == "axis"]
    ends = [[float(x) for x in re.findall(r"[ML]([\d.]+) ", line)] for line in lines]
    left, right = max(ends, key=lambda pair: pair[1] - pair[0])
    return left, right


def test_every_task_that_ran_has_one_bar_as_long_as_it_took(timeline: Timeline) -> None:
    view = aw.TimelineView(timeline)
    keys, drawn = task_keys(timeline.tasks), bars(view)
    assert set(drawn) == {keys[task] for task in timeline.order}
    by_px = [edges_of(drawn[keys[task]]) for task in timeline.order]
    left, right = axis_of(view)
    scale = (right - left) / (timeline.makespan or 1.0)
    for task, (start, end) in zip(timeline.order, by_px, strict=True):
        assert start - left == pytest.approx(scale * timeline.starts[task], abs=0.2)
        assert end - start == pytest.approx(max(scale * timeline.duration(task), 1.0), abs=0.2)


def test_bars_of_one_lane_do_not_overlap_and_lanes_stand_below_each_other() -> None:
    timeline = TIMELINES["a pipeline"]()
    keys, drawn = task_keys(timeline.tasks), bars(aw.TimelineView(timeline))
    for lane in range(len(timeline.machine.lanes)):
        mine = [edges_of(drawn[keys[task]]) for task in timeline.order if timeline.lanes[task] == lane]
        assert all(end <= start + 0.2 for (_, end), (start, _) in pairwise(mine))


def test_the_active_bars_of_a_step_are_the_tasks_that_run_then(timeline: Timeline) -> None:
    view = aw.TimelineView(timeline)
    keys = task_keys(timeline.tasks)
    moments = sorted({t for task in timeline.order for t in (timeline.starts[task], timeline.ends[task])})
    moments = sorted({*moments, *(idle.start for idle in timeline.idle)})
    assert len(view.frames) == 1 + len(moments)
    for number, time in enumerate(moments, start=1):
        active = {key for key, state in view.scene.states_at(number).items() if state == "active"} & set(keys)
        runs = {keys[t] for t in timeline.order if timeline.starts[t] <= time < timeline.ends[t]}
        assert active == runs, view.frames[number].caption


def test_idle_time_is_drawn_with_its_cause_in_words() -> None:
    timeline = schedule.simulate(STEP, 2, "loop")
    view = aw.TimelineView(timeline)
    told = [dict(rows) for key, rows in view.scene.facts.items() if key.startswith("idle.")]
    assert [rows["because"] for rows in told] == [CAUSES[idle.cause][1] for idle in timeline.idle]
    assert all(key in elements(view) for key in view.scene.facts)
    for idle in timeline.idle:
        lane = timeline.machine.lane_name(idle.lane)
        begins = next(f.caption for f in view.frames[1:] if f.caption.startswith(f"At {time_text(idle.start)} "))
        assert f"`{lane}` idles until {time_text(idle.end)}: {CAUSES[idle.cause][1]}." in begins


def test_every_cause_of_idle_time_has_words() -> None:
    assert set(CAUSES) == set(get_args(Cause))


def test_arrows_of_a_bar_are_its_dependencies() -> None:
    timeline = TIMELINES["a pipeline"]()
    keys, found = task_keys(timeline.tasks), elements(aw.TimelineView(timeline))
    for task in range(len(timeline.tasks)):
        count = len(timeline.tasks.predecessors[task]) + len(timeline.tasks.successors[task])
        assert len(found.get(f"{keys[task]}~arrows", [])) == count


def test_two_timelines_share_an_axis_and_the_quicker_one_is_named() -> None:
    quick, slow = schedule.simulate(STEP, 2, "critical_path"), schedule.simulate(STEP, 2, "serial")
    view = aw.TimelineView(slow, quick)
    drawn, keys = bars(view), task_keys(STEP)
    assert set(drawn) == {*keys, *(f"{key}~2" for key in keys)}
    ends = [max(edges_of(drawn[key + suffix])[1] for key in keys) for suffix in ("", "~2")]
    left = axis_of(view)[0]
    assert (ends[1] - left) / (ends[0] - left) == pytest.approx(quick.makespan / slow.makespan, abs=0.01)
    ratio = slow.makespan / quick.makespan
    assert f"`critical_path` ends after {time_text(quick.makespan)}" in view.frames[-1].caption
    assert f"{ratio:.2f} times as long" in view.frames[-1].caption


def test_a_timeline_of_very_many_tasks_is_binned_and_says_so() -> None:
    tasks = schedule.training_step(60, micro_batches=60)
    timeline = schedule.simulate(tasks, 2, "loop")
    assert len(timeline.order) > MOST_BARS
    view = aw.TimelineView(timeline)
    assert f"1/{BINS} of the time" in view.frames[0].caption and len(view.frames) == 1
    area = 0.0
    for element in ET.fromstring(view.scene.panes[0].svg).iter(f"{SVG}g"):
        rect = element.find("{*}rect")
        if element.attrib.get("class", "").startswith("bar bin") and rect is not None:
            area += float(rect.attrib["width"]) * float(rect.attrib["height"])
    left, right = axis_of(view)
    assert area == pytest.approx(timeline.utilisation * 2 * LANE * (right - left), rel=0.01)


def test_in_a_long_timeline_several_moments_share_a_step_and_no_task_is_forgotten() -> None:
    tasks = schedule.Tasks({f"t{i}": Task(cost=1.0 + i % 7 / 16) for i in range(3000)})
    timeline = schedule.simulate(tasks, 3, "fifo")
    moments = {*timeline.starts, *timeline.ends}
    view = aw.TimelineView(timeline)
    assert len(moments) > MOST_STEPS >= len(view.frames) - 1
    assert view.frames[7].caption.startswith("From ")
    ran = {change.element for frame in view.frames for change in frame.changes if change.state in ("active", "used")}
    assert set(bars(view)) <= ran
    last = view.scene.states_at(len(view.frames) - 1)
    assert {last[key] for key in bars(view)} <= {"idle", "used"}


def test_a_task_that_failed_is_called_so() -> None:
    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError) as caught:
        schedule.run({"bad": Task(fails), "after": Task(lambda x: x, after=["bad"])}, workers=1)
    timeline: Any = caught.value.timeline  # type: ignore[attr-defined]
    view = aw.TimelineView(timeline)
    assert "`bad` failed." in view.text() and "status failed" in view.text()
    assert set(bars(view)) == {"task:bad"}


@pytest.mark.parametrize("wrong", [None, 3, GRAPH, STEP], ids=lambda it: type(it).__name__)
def test_what_is_no_timeline_is_refused_with_what_to_pass(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"(?s)TimelineView: expected a Timeline, got .*schedule\.simulate"):
        aw.TimelineView(wrong)


# --------------------------------------------------------------------------------------------------------- ready queue


def test_a_frame_shows_the_queue_and_the_devices_as_they_are_after_its_event(timeline: Timeline) -> None:
    view = aw.ReadyQueueView(timeline.tasks, timeline.machine, "fifo")
    ready: set[int] = set()
    runs: set[int] = set()
    for number, event in enumerate(view.events, start=1):
        match event:
            case events.TaskEnqueued(task):
                ready.add(task)
            case events.TaskTaken(task):
                ready.remove(task)
            case events.ResourceAcquired(task):
                runs.add(task)
            case events.ResourceReleased(task):
                runs.remove(task)
        texts = {key: text for (key, _), text in view.scene.texts_at(number).items()}
        rows = [texts.get(f"ready.{place}", "") for place in range(8)]
        assert len([row for row in rows if row]) == min(len(ready), 8)
        lanes = [texts[f"lane.{lane}"] for lane in range(len(timeline.machine.lanes))]
        assert len([row for row in lanes if not row.endswith(": free")]) == len(runs)


def test_what_is_taken_has_the_highest_priority_of_the_rows_where_devices_are_alike() -> None:
    for policy in ("fifo", "lifo", "critical_path", "backward_first"):
        view = aw.ReadyQueueView(STEP, 2, policy)
        for number, event in enumerate(view.events):
            if isinstance(event, events.TaskTaken):
                texts = view.scene.texts_at(number)
                rows = [texts.get((f"ready.{place}", "text"), "").rpartition(": ") for place in range(8)]
                queue = {name: float(priority) for name, _, priority in rows if name}
                assert queue[STEP.name(event.task)] == max(queue.values())


def test_the_queue_is_drawn_beside_the_dependencies_of_the_tasks(timeline: Timeline) -> None:
    view, keys = aw.ReadyQueueView(timeline.tasks, timeline.machine, "fifo"), task_keys(timeline.tasks)
    edges = [key.rpartition(".")[0] for key, found in elements(view).items() if "edge" in found[0].attrib["class"]]
    waits = [
        f"{keys[other]}>{keys[task]}" for task, before in enumerate(timeline.tasks.predecessors) for other in before
    ]
    assert sorted(edges) == sorted(waits)


def test_captions_number_the_seven_steps() -> None:
    view = aw.ReadyQueueView(STEP, 2, "critical_path")
    frames = view.frames[1:-1]
    steps = [int(frame.caption[5]) for frame in frames]
    assert all(frame.caption.startswith(f"Step {step}: ") for frame, step in zip(frames, steps, strict=True))
    assert steps == [event.step for event in view.events] and set(steps) == {1, 2, 3, 4, 5, 6, 7}  # type: ignore[union-attr]


def test_the_view_ends_with_the_figures_of_its_timeline() -> None:
    view = aw.ReadyQueueView(STEP, 2, "critical_path")
    assert view.frames[-1].caption.endswith(figures_caption(view.timeline))


def test_a_question_is_asked_before_each_choice_and_its_answer_is_what_the_policy_takes() -> None:
    view = aw.ReadyQueueView(STEP, 2, "critical_path", predict=True)
    keys, ready, choices = task_keys(STEP), set[str](), 0
    for event, frame in zip(view.events, view.frames[1:], strict=False):
        if isinstance(event, events.TaskTaken):
            choices += len(ready) > 1
            if frame.question is not None:
                assert frame.question.right == keys[event.task]
                assert {key for key, _ in frame.question.choices} <= ready
            ready.remove(keys[event.task])
        else:
            assert frame.question is None
        if isinstance(event, events.TaskEnqueued):
            ready.add(keys[event.task])
    assert sum(frame.question is not None for frame in view.frames) == min(choices, MOST)


def test_an_order_asks_which_node_is_next() -> None:
    view = aw.TopologicalOrderView(GRAPH, "kahn", predict=True)
    asked = [
        (frame.question, event) for event, frame in zip(view.events, view.frames[1:], strict=False) if frame.question
    ]
    assert len(asked) == MOST < len(GRAPH)
    for question, event in asked:
        assert question.right == f"n{GRAPH.nodes[event.node].serial}"  # type: ignore[union-attr]
        assert 2 <= len(question.choices) <= 5 and len(set(question.choices)) == len(question.choices)


def test_a_question_without_its_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="the right answer 'b' must be one of its choices"):
        Question("Which?", (("a", "A"),), "b")


def test_two_timelines_of_one_policy_are_told_apart_by_their_place() -> None:
    timelines = [schedule.simulate(STEP, workers, "fifo") for workers in (1, 2)]
    for view in (aw.TimelineView(*timelines), aw.MemoryView(*timelines)):
        captions = [frame.caption for frame in view.frames[1:]]
        assert view.scene.title.endswith("of fifo (above) and fifo (below)")
        assert any(text.startswith("`fifo` (above)") for text in captions)
        assert any("`fifo` (below)" in text for text in captions)
        assert not any("`fifo`:" in text for text in captions)


# ---------------------------------------------------------------------------------------------------------------- race

GRAHAM = {"long": Task(cost=4), "a": Task(cost=2), "b": Task(cost=2), "c": Task(cost=2, after=["a"])}


def test_a_race_asks_for_each_start_and_the_choices_are_the_schedule() -> None:
    view = aw.ReadyQueueView(GRAHAM, 2, "fifo", race=True)
    assert view.frames[view.frame].caption.startswith("Your turn")
    assert aw.ReadyQueueView(GRAHAM, 2, "fifo", race=True, frame=1).frame == 1
    keys = task_keys(view.tasks)
    for name in ("a", "long", "c", "b"):
        last = len(view.frames) - 1
        offered = {key for key, state in view.scene.states_at(last).items() if state == "target" and ">" not in key}
        assert f"task:{name}" in offered and f"`{name}`" in view.frames[last].caption
        view.selected = f"task:{name}"
        assert view.selected is None and view.choices[-1] == name and view.frame == len(view.frames) - 1
    yours = view.yours
    assert yours is not None and yours.faults() == [] and yours.makespan == 6
    assert [view.tasks.name(task) for task in yours.order] == ["a", "long", "c", "b"] and len(keys) == 4
    assert "Your makespan is 6 s, that of `fifo` is 6 s. You are as quick." in view.frames[-1].caption
    assert "shorter than 5 s" in view.frames[-1].caption


def test_who_chooses_as_a_policy_does_gets_its_schedule() -> None:
    for policy in ("fifo", "lifo", "critical_path", "backward_first"):
        view = aw.ReadyQueueView(STEP, 2, policy, race=True)
        taken = [task for event in view.events if isinstance(event, events.TaskTaken) for task in [event.task]]
        view.choices = tuple(map(STEP.name, taken))
        assert view.yours is not None
        assert (view.yours.starts, view.yours.ends) == (view.timeline.starts, view.timeline.ends)


def test_what_cannot_start_is_not_chosen_by_a_click_and_a_choice_is_taken_back() -> None:
    view = aw.ReadyQueueView(GRAHAM, 1, "fifo", race=True)
    view.selected = "task:c"
    assert view.choices == () and view.selected == "task:c"
    view.selected = "task:a"
    view.choices = ()
    assert view.yours is None and view.frames[-1].caption.startswith("Your turn, at 0 s: which task starts now?")


def test_a_race_that_runs_out_of_memory_says_so() -> None:
    tasks = {"a": Task(nbytes=6), "b": Task(nbytes=5), "c": Task(after=["a"]), "d": Task(after=["b", "a"], nbytes=6)}
    machine = schedule.Machine((schedule.Resource("core", memory=12),))
    race = Race(schedule.Tasks(tasks), machine, [0, 1, 2, 3])
    assert race.timeline is None and "out of memory" in race.error


def test_a_task_has_the_key_of_its_node_in_every_view() -> None:
    tasks = schedule.from_graph(GRAPH)
    timeline = schedule.simulate(tasks, 2)
    keys = {f"n{node.serial}" for node in GRAPH if node.op is not None}
    assert set(task_keys(tasks)) == keys
    for view in (aw.TimelineView(timeline), aw.ReadyQueueView(GRAPH, 2), aw.GraphView(GRAPH)):
        assert keys <= set(elements(view)) and keys <= set(view.scene.facts)


def test_micro_batches_of_a_node_have_its_key_and_a_name_of_their_own() -> None:
    keys = task_keys(schedule.from_graph(GRAPH, micro_batches=3))
    assert len(set(keys)) == len(keys)
    first = f"n{next(node.serial for node in GRAPH if node.op is not None)}"
    assert [key.split("~")[0] for key in keys].count(first) == 3


def test_the_graph_of_tasks_has_their_dependencies() -> None:
    for make in TIMELINES.values():
        tasks = make().tasks
        graph = graph_of_tasks(tasks)
        waits = [{tasks.order[i] for i in node.inputs} for node in graph]
        assert waits == [set(tasks.predecessors[task]) for task in tasks.order]


def test_names_of_a_user_are_shown_and_never_run() -> None:
    name = "<script>alert(1)</script>~\x00"
    tasks = {name: Task(), "b": Task(after=[name])}
    for view in (aw.ReadyQueueView(tasks, 1), aw.TimelineView(schedule.simulate(tasks, 1))):
        assert "<script" not in view.scene.panes[0].svg and "<script>alert(1)</script>~" in view.text()


@pytest.mark.parametrize("wrong", [None, 3.0, "abc", lambda: 1], ids=["nothing", "number", "text", "function"])
def test_what_is_no_task_is_refused_with_what_to_pass(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"ReadyQueueView: expected Tasks or a Graph, got .*from_graph"):
        aw.ReadyQueueView(wrong)


# -------------------------------------------------------------------------------------------------------------- memory


def test_the_bytes_that_a_step_shows_are_those_of_the_timeline_and_of_what_lives(timeline: Timeline) -> None:
    view = aw.MemoryView(timeline)
    if not timeline.simulated:
        assert len(view.frames) == 2 + len({record.time for record in timeline.live_bytes})
        return
    moments = sorted({record.time for record in timeline.live_bytes})
    assert len(view.frames) == 2 + len(moments)
    for number, time in enumerate(moments, start=1):
        live = [record.nbytes for record in timeline.live_bytes if record.time <= time][-1]
        assert view.scene.texts_at(number)["now.0", "now"] == bytes_text(live)
        assert sum(timeline.tasks.nbytes[task] for task in timeline.living(time)) == live


def all_records(timeline: Timeline) -> list[Any]:
    return [timeline.live_bytes, *(timeline.live_bytes_on(one.name) for one in timeline.machine.resources)]


def test_the_resources_of_a_timeline_share_its_bytes() -> None:
    timeline = TIMELINES["a pipeline"]()
    for time in {record.time for record in timeline.live_bytes}:
        total, *each = ([one.nbytes for one in records if one.time <= time][-1] for records in all_records(timeline))
        assert sum(each) == total


def test_the_peak_is_named_with_what_lives_then() -> None:
    timeline = schedule.simulate({"a": Task(nbytes=8), "b": Task(after=["a"], nbytes=4), "c": Task(after=["b"])}, 1)
    view = aw.MemoryView(timeline)
    assert view.frames[0].caption == "`lifo`: at most 12 B live at once, at 1 s: the results of `a` and `b`."
    assert ("alive at the peak", "a 8 B, b 4 B") in view.scene.facts["live.0"]
    assert view.frames[3].caption == "At 2 s `a` frees 8 B: 4 B live."


def test_a_limit_of_memory_is_drawn_where_it_is_near() -> None:
    tasks = {"a": Task(nbytes=8), "b": Task(after=["a"], nbytes=4)}
    for memory, is_drawn in ((16.0, True), (1000.0, False)):
        view = aw.MemoryView(schedule.simulate(tasks, schedule.cores(1, memory=memory)))
        assert (f"memory {bytes_text(memory)}" in view.scene.panes[0].svg) == is_drawn
        assert ("memory", bytes_text(memory)) in view.scene.facts["live.0"]


def test_two_memories_stand_on_the_same_axes() -> None:
    one, other = schedule.simulate(STEP, 2, "loop"), schedule.simulate(STEP, 2, "fifo")
    view = aw.MemoryView(one, other)
    heights = [re.findall(r"[ML][\d.]+ ([\d.]+)", area) for area in areas(view)]
    tallest = [max(map(float, ys)) - min(map(float, ys)) for ys in heights]
    assert tallest[0] / tallest[1] == pytest.approx(one.peak / other.peak, abs=0.01)


def areas(view: View) -> list[str]:
    found = [elements(view)[key][0].find("{*}path") for key in ("live.0", "live.1")]
    return [area.attrib["d"] for area in found if area is not None]


# ----------------------------------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (events.TasksCollected(3, "fifo"), "Step 1: 3 tasks are collected. The policy is `fifo`."),
        (events.TaskDependenciesCounted(1, 0), "Step 2: `t1` waits for no task."),
        (events.TaskDependenciesCounted(1, 2), "Step 2: `t1` waits for 2 tasks."),
        (
            events.TaskEnqueued(1, 2.5, 0.0, 3),
            "Step 3: `t1` waits for nothing: it joins the ready queue, with the priority 2.5.",
        ),
        (
            events.TaskEnqueued(1, 2, 0.004, 6),
            "Step 6: at 4 ms `t1` waits for nothing more: it joins the ready queue, with the priority 2.",
        ),
        (
            events.ResourceAwaited(1, "core0", "busy", 2, 1.0),
            "Step 4: at 1 s `t1` stays in the ready queue: `core0` is busy with `t2`.",
        ),
        (
            events.ResourceAwaited(1, None, "busy", 2, 1.0),
            "Step 4: at 1 s `t1` stays in the ready queue: every device that could run it is busy; `t2` ends first.",
        ),
        (
            events.ResourceAwaited(1, "gpu", "memory", None, 1.0),
            "Step 4: at 1 s `t1` stays in the ready queue: there is not enough memory on `gpu`.",
        ),
        (
            events.ResourceAwaited(1, "gpu", "transfer", 0, 1.0),
            "Step 4: at 1 s `t1` stays in the ready queue: the value of `t0` is still on its way to `gpu`.",
        ),
        (
            events.ResourceAwaited(1, None, "policy", None, 1.0),
            "Step 4: at 1 s `t1` stays in the ready queue: the policy lets it wait.",
        ),
        (events.ResourceAcquired(1, "gpu", 1, 1.0), "Step 4: `t1` is given lane 1 of `gpu`, and runs."),
        (events.TaskDependencyDone(1, 2, 0), "Step 5: `t1` is done, so `t2` waits for nothing more."),
        (
            events.AllTasksDone(2.0),
            "Step 7: steps 4 to 6 were repeated until nothing was left. All tasks are done at 2 s.",
        ),
    ],
)
def test_a_sentence_has_the_step_and_the_facts_of_its_event(event: events.Event, sentence: str) -> None:
    assert caption(event, NAMES) == sentence


@pytest.mark.parametrize(
    ("ready", "sentence"),
    [
        ({1: 5.0}, "It is the only one there, with the priority 5."),
        ({1: 5.0, 0: 2.0}, "Its priority 5 is the highest of 2."),
        ({1: 5.0, 2: 5.0}, "Its priority 5 is the highest of 2, and it comes first."),
        ({1: 5.0, 0: 7.0}, "Its priority is 5; `t0` has to wait: what it needs is not free."),
    ],
)
def test_the_choice_of_a_task_is_explained_by_its_priority(ready: dict[int, float], sentence: str) -> None:
    assert choice_caption(1, ready, NAMES) == sentence


def test_times_are_written_in_a_unit_that_suits_them() -> None:
    assert [time_text(t) for t in (0.0, 1.5, 0.25, 0.05, 3e-5, 2e-9)] == [
        "0 s",
        "1.5 s",
        "0.25 s",
        "50 ms",
        "30 µs",
        "2 ns",
    ]
