"""Faults: each is caught by the check that its record names, trains as its record says, and is gone after its block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import faults, ops, replicas, reverse_mode, training
from autodiff_lab.faults import FAULTS, Fault, Measured
from autodiff_lab.layers import MLP, ResidualBlock
from autodiff_lab.optimizers import SGD, Optimizer
from autodiff_lab.replicas import check_replicas, data_parallel

EACH = pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
RUNS = [(fault, run) for fault in FAULTS.values() for run in fault.measured]
IDS = [f"{fault.name}{run.arguments} {run.setting}" for fault, run in RUNS]


def switched_on(fault: Fault) -> Any:
    return fault.on(*fault.measured[0].arguments)


def gradient_of_tanh() -> float:
    return float(ad.grad(ops.tanh)(0.5))


HEALTHY = gradient_of_tanh()

# ------------------------------------------------------------------------------------------------ what their records say


@EACH
def test_a_fault_is_told_in_sentences(fault: Fault) -> None:
    assert faults.__dict__[fault.name] is fault.on
    assert fault.measured and all(text.endswith(".") for text in (fault.story, fault.seen))
    assert fault.check in CHECKS and hasattr(aw, fault.view)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("fault", "run"), RUNS, ids=IDS)
def test_training_ends_as_the_record_says(fault: Fault, run: Measured, seed: int) -> None:
    compared = training.compare(training.SETTINGS[run.setting](seed=seed), fault.on(*run.arguments))
    assert compared.outcome == run.outcome
    assert (compared.faulty.stopped is None) == fault.is_silent
    assert compared.healthy.final_loss < 0.3 * compared.healthy.losses[0]


def test_a_fault_that_no_training_shows_changes_no_number_of_it() -> None:
    for fault in (faults.wrong_shape_rule("tanh"), faults.wrong_dtype_rule("tanh"), faults.breadth_first_order()):
        compared = training.compare(training.mlp_on_digits(steps=10), fault)
        assert compared.healthy.losses == compared.faulty.losses


def test_wrong_shapes_and_dtypes_are_recorded_and_a_broadcast_hides_them() -> None:
    def tanh_in_a_block() -> Any:
        graph = ad.record(residual_loss, points())
        assert graph.nodes[-1].shape == ()
        return next(node for node in graph if node.label == "tanh")

    right = tanh_in_a_block()
    with faults.wrong_shape_rule("tanh"), faults.wrong_dtype_rule("tanh"):
        wrong = tanh_in_a_block()
    assert (right.shape, right.dtype) == ((4, 3), np.float64)
    assert (wrong.shape, wrong.dtype) == ((1, 3), np.float32)


def test_a_cotangent_of_ones_does_not_show_that_it_is_ignored() -> None:
    x = np.array([0.5, 1.0])
    with faults.cotangent_ignored("tanh"):
        pull = ad.vjp(ops.tanh, x).pull
        ones, others = pull(np.ones(2))[0], pull(np.array([2.0, 3.0]))[0]
    np.testing.assert_allclose(ones, 1.0 - np.tanh(x) ** 2)
    np.testing.assert_allclose(others, ones)


def test_the_kernel_of_another_device_leaves_three_right_digits() -> None:
    x, w = np.random.default_rng(0).normal(size=(2, 30, 30)).astype(np.float32)
    right = ops.matmul(x, w)
    with faults.wrong_device_kernel("matmul"):
        wrong = ops.matmul(x, w)
    error = np.linalg.norm(wrong - right) / np.linalg.norm(right)
    assert wrong.dtype == np.float32 and 1e-5 < error < 1e-3


def test_the_kernel_for_one_device_alone_may_be_the_wrong_one_and_opcheck_names_it() -> None:
    x = np.random.default_rng(0).normal(size=30).astype(np.float32)
    right = ops.tanh(x)
    with faults.wrong_device_kernel("tanh", "sim"):
        there = ops.tanh(ad.tensor(x, device="sim:0")).numpy()
        assert 1e-5 < np.abs(there - right).max() < 1e-3 and np.array_equal(ops.tanh(x), right)
        (found,) = ad.opcheck(ops.tanh).failed
        assert found.name == "kernels agree" and "the kernel tanh for sim gives" in found.reason
    assert np.array_equal(ops.tanh(ad.tensor(x, device="sim:0")).numpy(), right) and ad.opcheck(ops.tanh).ok


def test_stale_gradients_grow_from_step_to_step() -> None:
    compared = training.compare(training.mlp_on_digits(), faults.stale_gradients())
    assert min(compared.faulty.gradient_norms[-10:]) > 3 * max(compared.healthy.gradient_norms[-10:])


# ------------------------------------------------------------------------------------------------------- what catches them


def residual_loss(x: Any) -> Any:
    block = ResidualBlock(3, seed=0)
    return ops.sum(block.with_parameters(block.values())(x) ** 2)


def points() -> Any:
    return np.random.default_rng(0).normal(size=(4, 3))


def mlp_loss(x: Any) -> Any:
    model = MLP(3, 4, 2, activation=ops.tanh, seed=0)
    return ops.cross_entropy(model.with_parameters(model.values())(x), np.array([0, 1, 1, 0]))


def a_faulty_op_is_found(fault: Fault) -> bool:
    """On two nets: a perceptron, and one whose input has three consumers."""
    return not (ad.find_faulty_op(mlp_loss, points()).ok and ad.find_faulty_op(residual_loss, points()).ok)


def gradcheck_fails(fault: Fault) -> bool:
    return not ad.gradcheck(lambda b: ((points() + b) ** 2).sum(), np.ones(3))


def opcheck_fails(fault: Fault) -> bool:
    return not ad.opcheck(ad.registry[fault.measured[0].arguments[0]]).ok


def replicas_are_wrong(fault: Fault) -> bool:
    return not check_replicas(lambda w, x: ((w * x) ** 2).mean(), np.array(2.0), two_parts()).ok


def the_same_step_gives_another_gradient(fault: Fault) -> bool:
    w = ad.tensor([1.0, 2.0], requires_grad=True)
    optimizer = Optimizer([w], SGD(learning_rate=1e-9))
    gradients = []
    for _ in range(2):
        optimizer.zero_grad()
        (w * w).sum().backward()
        gradients.append(w.grad.numpy() if w.grad is not None else None)
    return not np.allclose(gradients[0], gradients[1])


CHECKS: dict[str, Callable[[Fault], bool]] = {
    "find_faulty_op": a_faulty_op_is_found,
    "gradcheck": gradcheck_fails,
    "opcheck": opcheck_fails,
    "check_replicas": replicas_are_wrong,
    "the same step twice": the_same_step_gives_another_gradient,
}


@EACH
def test_the_check_that_a_record_names_catches_the_fault_and_finds_nothing_without_it(fault: Fault) -> None:
    fails = CHECKS[fault.check]
    with switched_on(fault):
        assert fails(fault)
    assert not fails(fault)


@pytest.mark.parametrize(
    ("fault", "run"),
    [(f, r) for f, r in RUNS if f.replaces == "gradient rule" and r.arguments[0] == "tanh"],
    ids=lambda each: each.name if isinstance(each, Fault) else f"{each.setting}, {each.arguments}",
)
def test_the_faulty_op_is_named_with_its_rule(fault: Fault, run: Measured) -> None:
    with fault.on(*run.arguments):
        for loss in (mlp_loss, residual_loss):
            report = ad.find_faulty_op(loss, points())
            assert (report.op, report.blame) == ("tanh", "rule")
            assert {found.op for found in report.faults} == {"tanh"}


FLAT = ("ceil", "floor", "round", "sign")  # whose gradient is 0, with either sign


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ops.__all__ if name in ad.registry])
def test_in_every_op_a_lost_sign_is_found_by_opcheck(name: str) -> None:
    op = ad.registry[name]
    for argument in op.vjp_rules:
        with faults.lost_sign(name, argument):
            assert ("VJP rule" in [test.name for test in ad.opcheck(op).failed]) == (name not in FLAT)


@pytest.mark.parametrize(
    ("fault", "blame", "reason"),
    [
        (faults.breadth_first_order(), "order", "which is lost"),
        (faults.last_path_wins(), "sum", "what had arrived before is lost"),
        (faults.shared_buffer(), "sum", "which is the same array"),
    ],
    ids=repr,
)
def test_the_order_the_sum_and_the_shared_array_are_told_apart(fault: Any, blame: str, reason: str) -> None:
    with fault:
        report = ad.find_faulty_op(residual_loss, points())
        assert (report.blame, reason in str(report.reason)) == (blame, True)
        assert ad.find_faulty_op(mlp_loss, points()).ok  # a chain


def test_forward_mode_disagrees_with_a_lost_sign() -> None:
    with faults.lost_sign("tanh"):
        assert float(ad.jvp(ops.tanh, (0.5,), (1.0,))[1]) == pytest.approx(-gradient_of_tanh())


# ------------------------------------------------------------------------------------------------------------- replicas


def two_parts() -> list[tuple[np.ndarray]]:
    return [(np.array([1.0, 2.0]),), (np.array([3.0, 4.0]),)]


def loss_of(w: Any, x: Any) -> Any:
    return ops.square(w * x).mean()


def test_replicas_give_the_gradient_of_the_whole_batch() -> None:
    whole = ad.grad(loss_of)(np.array(2.0), np.concatenate([part for (part,) in two_parts()]))
    assert float(data_parallel(loss_of, np.array(2.0), two_parts()).reduced) == pytest.approx(float(whole))


def test_a_lost_factor_and_a_sum_in_place_of_a_mean_look_the_same_and_comparing_replicas_tells_them_apart() -> None:
    found = {}
    for fault in (faults.missing_factor("square", factor=0.5), faults.all_reduce_sums()):
        with fault:
            found[fault.name] = (
                float(data_parallel(loss_of, np.array(2.0), two_parts()).reduced),
                check_replicas(loss_of, np.array(2.0), two_parts()).culprits,
            )
    (first, rule), (second, reduction) = found.values()
    assert first == pytest.approx(second)
    assert (rule, reduction) == (("gradient rule",), ("all-reduce",))
    with faults.missing_factor("square"), faults.all_reduce_sums():
        report = check_replicas(loss_of, np.array(2.0), two_parts())
        assert report.culprits == ("gradient rule", "all-reduce") and "gave 2 times the mean" in repr(report)


def test_an_all_reduce_that_mixes_gradients_up_is_no_multiple() -> None:
    tree = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 5.0])}

    def loss(p: Any, x: Any) -> Any:
        return ops.mean(x) * ops.sum(p["a"] * p["a"] * p["b"])

    swapped = faults.Replacement(
        "swapped",
        faults.function_seam(replicas, "all_reduce"),
        lambda right: lambda g: {"a": right(g)["b"], "b": right(g)["a"]},
    )
    with swapped:
        report = check_replicas(loss, tree, two_parts())
    assert report.culprits == ("all-reduce",) and np.isnan(report.ratio) and "no multiple" in repr(report)


def test_parts_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="equally many rows"):
        data_parallel(loss_of, np.array(2.0), [(np.ones(2),), (np.ones(3),)])


# ------------------------------------------------------------------------------------------------- switching on and off


def everything_replaceable() -> dict[Any, Any]:
    held: dict[Any, Any] = {
        (owner, name): getattr(owner, name)
        for owner, name in (
            (reverse_mode, "backward_order"), (reverse_mode, "accumulate"), (reverse_mode, "fit_cotangents"),
            (replicas, "all_reduce"), (Optimizer, "zero_grad"),
        )
    }  # fmt: skip
    for op in ad.registry.values():
        held |= {(op.name, "vjp", name): rule for name, rule in op.vjp_rules.items()}
        held |= {(op.name, "kernel", key): kernel for key, kernel in op.kernels.items()}
        held |= {(op.name, "shape"): op._shape_rule, (op.name, "dtype"): op._dtype_rule}
    return held


@EACH
def test_one_thing_is_replaced_inside_the_block_and_the_same_object_is_back_after_it(fault: Fault) -> None:
    before = everything_replaceable()
    with switched_on(fault):
        inside = everything_replaceable()
        assert len([key for key in inside if inside[key] is not before.get(key)]) == 1
    after = everything_replaceable()
    assert before.keys() == after.keys() and all(before[key] is after[key] for key in before)
    assert gradient_of_tanh() == HEALTHY


@EACH
def test_other_threads_keep_what_is_right(fault: Fault) -> None:
    def outcome_here() -> list[Any]:
        compared = training.train(training.residual_on_digits(steps=2))
        replicated = training.train(training.replicas_on_digits(steps=2))
        return [compared.losses, compared.gradient_norms, replicated.gradient_norms]

    right = outcome_here()
    elsewhere: list[Any] = []
    with switched_on(fault):
        thread = threading.Thread(target=lambda: elsewhere.extend(outcome_here()))
        thread.start()
        thread.join()
    assert elsewhere == right


def test_two_threads_with_two_faults_in_one_place_each_have_their_own() -> None:
    both_are_in, first_is_out = threading.Barrier(2), threading.Event()
    seen: dict[str, list[float]] = {"sign": [], "factor": []}

    def lose_sign() -> None:
        with faults.lost_sign("tanh"):
            both_are_in.wait(10)
            seen["sign"].append(gradient_of_tanh())
        seen["sign"].append(gradient_of_tanh())
        first_is_out.set()

    def miss_factor() -> None:
        with faults.missing_factor("tanh"):
            both_are_in.wait(10)
            first_is_out.wait(10)
            seen["factor"].append(gradient_of_tanh())
        seen["factor"].append(gradient_of_tanh())

    threads = [threading.Thread(target=run) for run in (lose_sign, miss_factor)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == {"sign": [-HEALTHY, HEALTHY], "factor": [2 * HEALTHY, HEALTHY]}


def test_an_error_inside_the_block_ends_the_fault() -> None:
    with pytest.raises(KeyError), faults.lost_sign("tanh"):
        raise KeyError
    assert gradient_of_tanh() == HEALTHY


def test_blocks_nest_and_the_innermost_decides() -> None:
    sign, factor = faults.lost_sign("tanh"), faults.missing_factor("tanh")
    with sign:
        with factor:
            assert gradient_of_tanh() == 2 * HEALTHY
            with sign:
                assert gradient_of_tanh() == -HEALTHY
            assert gradient_of_tanh() == 2 * HEALTHY
        assert gradient_of_tanh() == -HEALTHY
    with sign:
        assert gradient_of_tanh() == -HEALTHY
    assert gradient_of_tanh() == HEALTHY


@contextmanager
def held_open(fault: Any) -> Iterator[None]:
    with fault:
        yield


def test_blocks_that_are_left_in_another_order_leave_nothing_behind() -> None:
    first, second = held_open(faults.lost_sign("tanh")), held_open(faults.missing_factor("tanh"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gradient_of_tanh() == 2 * HEALTHY
    second.__exit__(None, None, None)
    assert gradient_of_tanh() == HEALTHY and not hasattr(ad.registry["tanh"].vjp_rules["x"], "entries")


def test_all_faults_together_end_together() -> None:
    before = everything_replaceable()
    with ExitStack() as stack:
        for fault in FAULTS.values():
            stack.enter_context(switched_on(fault))
    after = everything_replaceable()
    assert all(before[key] is after[key] for key in before.keys() | after.keys())


def test_what_was_recorded_before_the_block_is_swept_with_the_fault_and_what_was_recorded_inside_is_right_after_it() -> (
    None
):
    x = ad.tensor([0.5, 1.0], requires_grad=True)
    early = (ops.tanh(x) * x).sum()
    with faults.lost_sign("mul", "x"):
        late = (ops.tanh(x) * x).sum()
        wrong = next(iter(ad.sweep(early).values()))
    right = next(iter(ad.sweep(late).values()))
    np.testing.assert_allclose(right - wrong, 2 * (1 - np.tanh([0.5, 1.0]) ** 2) * [0.5, 1.0])


def test_a_graph_that_is_recorded_inside_the_block_has_the_fault_in_it() -> None:
    with faults.lost_sign("tanh"):
        faulty = ad.record(ad.grad(ops.tanh), 0.5)
    healthy = ad.record(ad.grad(ops.tanh), 0.5)
    assert [node.label for node in faulty].count("neg") == [node.label for node in healthy].count("neg") + 1


def test_a_fault_works_on_an_op_of_ones_own_and_on_a_variadic_one() -> None:
    @ad.op(elementwise=True)
    def tripled(xp: Any, x: Any) -> Any:
        """3 x."""
        return 3.0 * x

    @tripled.vjp
    def tripled_vjp(g: Any) -> Any:
        return 3.0 * g

    with faults.missing_factor("tripled", factor=3.0):
        assert float(ad.grad(tripled)(1.0)) == pytest.approx(1.0)
    x = np.ones(2)
    with faults.lost_sign("concatenate"):
        assert ad.grad(lambda x: ops.sum(ops.concatenate([x, 2.0 * x])))(x).tolist() == [-3.0, -3.0]


def test_a_rule_that_was_registered_inside_the_block_stays() -> None:
    rules = ad.registry["tanh"].vjp_rules
    right = rules["x"]

    def tanh_again_vjp(g: Any, out: Any) -> Any:
        return g * (1.0 - out * out) * 7.0

    with faults.lost_sign("tanh"):
        ad.registry["tanh"].vjp("x")(tanh_again_vjp)
    assert rules["x"] is tanh_again_vjp
    ad.registry["tanh"].vjp("x")(right)
    assert gradient_of_tanh() == HEALTHY


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: faults.lost_sign("mul"), "one of 'x', 'y'; got None"),
        (lambda: faults.lost_sign("tanh", "y"), "one of 'x'; got 'y'"),
        (lambda: faults.lost_sign("tanhh"), "did you mean tanh"),
        (lambda: faults.lost_sign("greater"), "one of none"),
    ],
)
def test_what_cannot_be_replaced_is_refused_with_what_can(make: Callable[[], Any], says: str) -> None:
    with pytest.raises((ValueError, KeyError), match=says):
        make()


# ------------------------------------------------------------------------------------------------------------ training


def test_steps_are_told_while_they_happen_and_the_ops_inside_are_not() -> None:
    with ad.listen() as told:
        run = training.train(training.mlp_on_digits(steps=3))
    assert tuple(told) == run.events and [event.step for event in told] == [1, 2, 3]
    assert run.steps == training.train(training.mlp_on_digits(steps=3)).steps


def test_an_error_ends_a_run_and_is_told() -> None:
    with ad.listen() as told, faults.broadcast_not_summed():
        run = training.train(training.mlp_on_digits(steps=3), "faulty")
    assert run.stopped == told[-1] and run.steps == () and "layer2.bias has shape (64, 10)" in run.stopped.reason
    assert np.isnan(run.final_loss)


def test_a_comparison_says_what_became_of_the_run() -> None:
    compared = training.compare(training.mlp_on_digits(), faults.lost_sign("cross_entropy"))
    assert repr(compared).startswith("MLP on digits, lost_sign(cross_entropy): diverges\n  loss from 2.3")
    stopped = training.compare(training.mlp_on_digits(steps=1), faults.broadcast_not_summed())
    assert "in step 1: ValueError: the gradient that reached leaf" in repr(stopped)


def test_a_fault_acts_on_what_was_recorded_before_without_another_call_and_no_longer_after_the_block() -> None:
    early = ops.tanh(ad.tensor(0.5, requires_grad=True))
    pull = ad.vjp(ops.tanh, 0.5)[1]
    with faults.lost_sign("tanh"):
        (swept,) = ad.sweep(early).values()
        assert float(pull(1.0)[0]) == float(swept) == -HEALTHY_AT_A_HALF
    assert float(pull(1.0)[0]) == HEALTHY_AT_A_HALF


HEALTHY_AT_A_HALF = float(ad.grad(ops.tanh)(0.5))
