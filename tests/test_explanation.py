"""explain: what loss.backward() does, on one page whose views speak of the same nodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets import explanation

import autodiff_lab as ad
from autodiff_lab import schedule
from tests.drawn_graphs import FUNCTIONS, GRAPHS, chain, mlp_arguments, mlp_loss
from tests.test_every_view import elements


def tensors_of_mlp() -> tuple[Any, ...]:
    params, x, target = mlp_arguments()
    made = [
        (ad.tensor(w, requires_grad=True, name=f"w{i}"), ad.tensor(b, requires_grad=True, name=f"b{i}"))
        for i, (w, b) in enumerate(params)
    ]
    return made, x, target


def loss_of_mlp() -> ad.Tensor:
    loss = mlp_loss(*tensors_of_mlp())
    loss.backward()
    return loss


EXPLAINED = {
    "a loss": lambda: aw.explain(loss_of_mlp()),
    **{
        name: lambda f=f, args=args: aw.explain(f, *args)
        for name, (f, args) in FUNCTIONS.items()
        if "chain" not in name
    },
}


@pytest.fixture(scope="module", params=EXPLAINED, ids=str)
def explained(request: pytest.FixtureRequest) -> aw.Explanation:
    return EXPLAINED[request.param]()


def test_graph_and_order_bear_the_name_of_the_function() -> None:
    titles = [view.scene.title for view in aw.explain(mlp_loss, *mlp_arguments()).views[:2]]
    assert titles[0].startswith("1. The graph: Graph mlp_loss: ")
    assert titles[1].startswith("2. The order: Topological order of mlp_loss by ")


def view(explained: aw.Explanation, kind: type[aw.View]) -> Any:
    return next(view for view in explained.views if isinstance(view, kind))


def test_every_forward_op_has_one_key_in_graph_order_flow_tasks_and_timeline(explained: aw.Explanation) -> None:
    flow = view(explained, aw.GradientFlowView).graph
    ops = {f"n{node.serial}": node.op for node in flow if node.op is not None}
    for kind in (aw.GraphView, aw.TopologicalOrderView, aw.GradientFlowView, aw.ReadyQueueView, aw.TimelineView):
        assert set(ops) <= set(elements(view(explained, kind)))
        assert set(ops) <= set(view(explained, kind).scene.facts)
    joint = {f"n{node.serial}": node.op for node in view(explained, aw.GraphView).graph}
    assert all(joint[key] is op for key, op in ops.items())


def test_the_tasks_are_the_ops_of_forward_and_backward_and_both_timelines_are_legal(explained: aw.Explanation) -> None:
    joint = view(explained, aw.GraphView).graph
    assert len(explained.simulated.tasks) == sum(node.op is not None for node in joint)
    assert {task.phase for task in explained.simulated.tasks} >= {"F", "dW"}
    for timeline in (explained.simulated, explained.real):
        assert timeline.faults() == [] and len(timeline.order) == len(explained.simulated.tasks)
    assert explained.simulated.simulated and not explained.real.simulated
    assert min(explained.real.starts) == 0.0


def test_the_graph_of_both_passes_computes_the_loss_and_its_gradients() -> None:
    f, arguments = FUNCTIONS["expression"]
    joint = view(aw.explain(f, *arguments), aw.GraphView).graph
    value, gradients = ad.value_and_grad(f, argnums=(0, 1, 2))(*arguments)
    known = [joint.nodes[i] for i in joint.outputs]
    assert len(known) == 1 + len(gradients)
    shown = joint(*arguments)
    assert np.allclose(np.array([*map(float, _flat(shown))]), [float(value), *map(float, gradients)])


def _flat(value: Any) -> list[Any]:
    return [one for part in value for one in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def test_gradients_of_leaves_are_not_changed_by_explaining() -> None:
    x = ad.tensor(3.0, requires_grad=True, name="x")
    loss = ad.ops.tanh(x) * x
    loss.backward()
    assert x.grad is not None
    before = x.grad.numpy().copy()
    aw.explain(loss)
    assert np.array_equal(x.grad.numpy(), before)


def test_the_summary_has_the_numbers_of_the_timelines(explained: aw.Explanation) -> None:
    simulated = explained.simulated
    forward = sum(task.phase == "F" for task in simulated.tasks)
    assert f"Forward has {forward} op" in explained.summary
    assert f"backward adds {len(simulated.tasks) - forward}" in explained.summary
    assert f"{100 * simulated.utilisation:.0f} % of the workers' time" in explained.summary


def test_its_text_has_every_view_and_its_page_plays_them(explained: aw.Explanation, tmp_path: Path) -> None:
    text = explained.text()
    assert explained.summary in text and all(view.text() in text for view in explained.views)
    titles = [view.scene.title for view in explained.views]
    assert [title.split(".")[0] for title in titles] == [str(n + 1) for n in range(len(titles))]
    page = explained.save_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(re.findall("<div data-scene=", page)) == len(titles) and page.count("<script") == 2
    assert all(line.split("'")[0] in page for line in explained.summary.splitlines())


def test_views_of_an_explanation_ask_when_they_are_told_to() -> None:
    explained = aw.explain(lambda x: ad.ops.exp(x) * ad.ops.tanh(x), 0.5, predict=True)
    assert all(view.predict for view in explained.views)
    assert any(frame.question for frame in view(explained, aw.ReadyQueueView).frames)


def test_a_real_run_that_is_much_slower_than_the_simulated_one_has_an_axis_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slowed(factor: float) -> list[str]:
        run = schedule.run

        def slow(*arguments: Any, **options: Any) -> Any:
            outputs, _ = run(*arguments, **options)
            tasks, workers, policy = schedule.from_graph(arguments[0], options["costs"]), arguments[2], arguments[3]
            quick = schedule.simulate(tasks, workers, policy)
            times = ([factor * time for time in times] for times in (quick.starts, quick.ends))
            return outputs, schedule.Timeline(tasks, quick.machine, policy, *times, quick.lanes, simulated=False)

        with monkeypatch.context() as patched:
            patched.setattr(schedule, "run", slow)
            return [view.scene.title for view in aw.explain(lambda x: ad.ops.tanh(x) * x, 0.5).views]

    assert any("critical_path and critical_path (real)" in title for title in slowed(2.0))
    assert any(title.startswith("6. The real run: ") for title in slowed(40.0))


def test_a_queue_of_very_many_tasks_is_left_out_and_the_summary_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, "MOST_TASKS", 50)
    explained = aw.explain(chain(30), 0.5)
    assert not any(isinstance(view, aw.ReadyQueueView) for view in explained.views)
    assert "too many to show their ready queue" in explained.summary


@pytest.mark.parametrize("wrong", [None, 3.0, "loss", np.ones(2)], ids=lambda it: type(it).__name__)
def test_what_cannot_be_explained_is_refused_with_what_to_pass(wrong: Any) -> None:
    with pytest.raises(TypeError, match="explain: expected a loss, or a function and its arguments, got"):
        aw.explain(wrong)


def test_a_graph_or_a_function_alone_is_told_to_bring_its_arguments() -> None:
    for subject in (mlp_loss, GRAPHS["mlp"]):
        with pytest.raises(TypeError, match=r"explain\(f, 2.0, 3.0\)"):
            aw.explain(subject)
