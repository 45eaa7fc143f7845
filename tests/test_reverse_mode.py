"""Reverse mode: what backward adds, what it refuses, and what it leaves behind."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops, reverse_mode
from autodiff_lab.reverse_mode import backward_order


def leaf(value: Any, **options: Any) -> ad.Tensor:
    return ad.tensor(value, requires_grad=True, **options)


def test_a_value_used_more_than_once_gets_the_sum_of_all_its_uses() -> None:
    a = leaf(1.5)
    b = a * a
    c = b + b
    (c * b).backward()
    assert a.grad is not None and a.grad.item() == 27.0


def test_each_node_is_visited_once_so_sixty_doublings_are_instant_and_exact() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    with ad.listen() as told:
        y.backward()
    assert x.grad is not None and x.grad.item() == 2.0**60
    visited = [event.serial for event in told if isinstance(event, ad.events.CotangentComplete)]
    assert len(visited) == len(set(visited)) == 60


def test_the_backward_order_is_a_topological_order() -> None:
    x, w = leaf(np.ones(3)), leaf(np.ones(3))
    h = x * w
    loss = ops.sum(ops.tanh(h) * h + x)
    order = [record[0] for record in backward_order(loss._history)]
    place = {serial: position for position, serial in enumerate(order)}
    for serial, _, parents, *_ in backward_order(loss._history):
        assert all(place[parent[0]] < place[serial] for parent in parents if parent is not None)


@pytest.mark.parametrize("few", [1, 2, 5, 10_000])
def test_the_backward_order_has_each_record_once_whatever_is_forgotten_on_the_way(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverse_mode, "_FEW", few)
    random = np.random.default_rng(7)
    for _ in range(30):
        values = [leaf(1.0) for _ in range(3)]
        for _ in range(40):
            reach = len(values) if random.random() < 0.3 else 3  # most read what is new, as in a chain
            one, other = random.integers(len(values) - reach, len(values), 2)
            values.append(values[one] + values[other])
        roots = [values[-1]._history, values[random.integers(len(values))]._history]
        reached, waiting = {}, list(roots)
        while waiting:
            record = waiting.pop()
            reached[record[0]] = record
            waiting += [parent for parent in record[2] if parent[0] not in reached]
        assert backward_order(*roots) == [reached[serial] for serial in sorted(reached)]


def test_the_order_of_a_chain_takes_the_memory_of_its_list_and_not_of_marks() -> None:
    y, count = leaf(1.0), 100_000
    for _ in range(count):
        y = y + 0.001
    tracemalloc.start()
    try:
        order = backward_order(y._history)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(order) == count + 1
    assert peak < 32 * count, "a set of all serial numbers takes 42 bytes a node, beside the list"


def test_leaves_accumulate_over_backward_calls_and_intermediates_do_not() -> None:
    x = leaf(3.0)
    h = x * x
    y = h * 2.0
    for times in (1, 2, 3):
        y.backward()
        assert x.grad is not None and x.grad.item() == 12.0 * times
    assert h.grad is None


def test_a_second_backward_after_more_computing_adds_only_its_own_gradient() -> None:
    x = leaf(2.0)
    h = x * x
    h.backward()
    (h * 3.0).backward()
    assert x.grad is not None and x.grad.item() == 4.0 + 12.0


def test_a_non_scalar_output_without_a_cotangent_says_what_to_pass() -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"shape \(3,\), not one number. Pass the cotangent"):
        (x * x).backward()
    with pytest.raises(ValueError, match=r"cotangent has shape \(2,\), but the output has \(3,\)"):
        (x * x).backward(np.array([1.0, 2.0]))
    assert x.grad is None
    (x * x).backward(np.array([1.0, 0.0, 2.0]))
    assert x.grad is not None and x.grad.numpy().tolist() == [2.0, 0.0, 12.0]


def test_backward_of_something_not_recorded_says_so() -> None:
    with pytest.raises(ValueError, match="requires_grad=True"):
        ad.tensor(2.0).backward()
    x = leaf(2.0)
    with ad.no_grad():
        y = x * x
    with pytest.raises(ValueError, match="no_grad"):
        y.backward()


def test_changing_the_source_array_or_a_result_cannot_change_a_recorded_gradient() -> None:
    source = np.array([3.0])
    x = leaf(source)
    other = np.array([5.0])
    y = ops.sum(x * x * other)
    source[0] = other[0] = 100.0
    x.numpy()[0] = 7.0
    for tensor in (x, y):
        with pytest.raises(ValueError, match="read-only"):
            tensor.data[...] = 0.0
    with pytest.raises(TypeError, match="never changed in place"):
        x[0] = 1.0
    y.backward()
    assert x.grad is not None and x.grad.item() == 30.0


def test_new_data_for_a_leaf_does_not_change_what_was_recorded_before() -> None:
    x = leaf([3.0])
    y = ops.sum(x * x)
    x.data = np.array([5.0])
    y.backward()
    assert x.grad is not None and x.grad.item() == 6.0
    assert ops.sum(x * x).item() == 25.0
    with pytest.raises(ValueError, match=r"expected shape \(1,\), got \(2,\)"):
        x.data = np.zeros(2)
    with pytest.raises(ValueError, match="only a leaf"):
        y.data = 1.0


def test_the_value_and_arguments_of_vjp_may_be_changed_before_pulling_back() -> None:
    x = np.array([1.0, 2.0])
    value, pull = ad.vjp(ops.exp, x)
    expected = np.exp(x)
    value[:] = 0.0
    x[:] = 0.0
    assert np.array_equal(pull(np.ones(2))[0], expected)


def test_gradients_share_no_memory_with_each_other_or_the_seed() -> None:
    a, b = leaf([1.0, 1.0]), leaf([1.0, 1.0])
    seed = np.ones(2)
    ((a + b) + a).backward(seed)
    assert a.grad is not None and b.grad is not None
    assert a.grad.numpy().tolist() == [2.0, 2.0] and b.grad.numpy().tolist() == [1.0, 1.0]
    arrays = [a.grad._data, b.grad._data, seed]
    assert not any(np.shares_memory(p, q) for i, p in enumerate(arrays) for q in arrays[:i])
    gradients = ad.grad(lambda p, q: ops.sum(p + q), (0, 1))(np.ones(3), np.ones(3))
    gradients[0][:] = 5.0
    assert gradients[1].tolist() == [1.0, 1.0, 1.0]


def test_a_chain_of_twenty_thousand_is_built_swept_printed_and_freed_without_recursion() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 0.001
    y.backward()
    assert x.grad is not None and x.grad.item() == 1.0
    assert len(repr(y)) < 200
    del y


@pytest.mark.slow
def test_a_chain_of_a_million_nodes_goes_forward_and_backward() -> None:
    x, w, b = leaf([0.5]), leaf([0.9999]), leaf([1e-4])
    h = x
    for i in range(1_000_000):
        h = h + b if i & 1 else h * w
    h.backward()
    assert x.grad is not None and x.grad.item() == pytest.approx(0.9999**500_000, rel=1e-9)
    del h


def test_an_intermediate_dies_with_its_last_variable_while_the_collector_is_off() -> None:
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0, 2.0])
        h = x * 2.0
        y = ops.sum(h * h)
        y.backward()
        alive = weakref.ref(h)
        del h, y
        assert alive() is None
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_functional_gradient_frees_each_saved_value_during_the_sweep() -> None:
    live: list[int] = []
    alive: list[weakref.ref[Any]] = []

    @ad.op
    def watched(xp: Any, x: Any) -> Any:
        """x + 0, with a result that can be watched."""
        result = x + 0.0
        alive.append(weakref.ref(result))
        return result

    @watched.shape_rule
    def watched_shape(x: Any) -> Any:
        return x

    @watched.vjp
    def watched_vjp(g: Any, out: Any) -> Any:
        live.append(sum(ref() is not None for ref in alive))
        return g * 1.0

    def chain(x: Any) -> Any:
        for _ in range(5):
            x = watched(x)
        return ops.sum(x)

    ad.grad(chain)(np.ones(4))
    assert live == sorted(live, reverse=True) and live[-1] < live[0], live


def test_two_threads_that_record_at_once_do_not_see_each_other() -> None:
    barrier = threading.Barrier(2)
    results: dict[str, Any] = {}

    def recording(name: str, factor: float) -> None:
        def f(x: Any) -> Any:
            barrier.wait(timeout=10)
            y = x * factor
            barrier.wait(timeout=10)
            return y * factor

        results[name] = ad.record(f, 1.0)

    def eager(name: str) -> None:
        barrier.wait(timeout=10)
        with ad.no_grad():
            barrier.wait(timeout=10)
            results[name] = (leaf(1.0) * 2.0).requires_grad

    threads = [threading.Thread(target=recording, args=(n, f)) for n, f in (("a", 2.0), ("b", 3.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert [float(results[n](1.0)) for n in "ab"] == [4.0, 9.0]
    assert len(results["a"]) == len(results["b"]) == 5
    other = threading.Thread(target=eager, args=("no_grad",))
    other.start()
    barrier.wait(timeout=10)
    assert (leaf(1.0) * 2.0).requires_grad
    barrier.wait(timeout=10)
    other.join(timeout=20)
    assert results["no_grad"] is False


def test_the_sweep_tells_every_contribution_with_edge_rule_local_value_and_sum() -> None:
    x, w = leaf(3.0, name="x"), leaf(2.0, name="w")
    h = x * w
    y = h + x
    with ad.listen() as told:
        gradients = ad.sweep(y)
    assert x.grad is None and w.grad is None
    sent = [event for event in told if isinstance(event, ad.events.ContributionAdded)]
    seen = [
        (e.argument, e.rule, float(e.upstream), float(e.local), float(e.contribution), float(e.total)) for e in sent
    ]
    assert seen == [
        ("x", "add_vjp_x", 1.0, 1.0, 1.0, 1.0),
        ("y", "add_vjp_y", 1.0, 1.0, 1.0, 1.0),
        ("x", "mul_vjp_x", 1.0, 2.0, 2.0, 3.0),
        ("y", "mul_vjp_y", 1.0, 3.0, 3.0, 3.0),
    ]
    assert [e.used for e in sent] == [(), (), ("y",), ("x",)]
    assert [e.arrived for e in sent if e.into == x._history[0]] == [1, 2]
    released = [(e.name, e.nbytes) for e in told if isinstance(e, ad.events.SavedValueReleased)]
    assert released == [("x", 8), ("y", 8)]
    leaves = {e.serial: float(e.gradient) for e in told if isinstance(e, ad.events.LeafReached)}
    assert leaves == {x._history[0]: 3.0, w._history[0]: 3.0}
    assert {serial: float(g) for serial, g in gradients.items()} == leaves


def test_an_op_saves_only_what_the_rules_of_its_recorded_operands_name() -> None:
    x, constant = leaf(np.ones((2, 3))), ad.tensor(np.ones((3, 4)))
    product = x @ constant
    named = dict(zip(ad.registry["matmul"].saved_names, product._history[5:], strict=True))
    assert named["x"] is None and named["y"] is constant._data
    assert (x + 1.0)._history[5:] == ()
    assert (ops.tanh(x))._history[5] is not None


def test_an_op_without_a_gradient_says_so_when_backward_meets_it() -> None:
    @ad.op(elementwise=True)
    def half(xp: Any, x: Any) -> Any:
        """x / 2, without a gradient rule."""
        return x * 0.5

    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match="op half has no vjp rule for its input 'x'") as raised:
        (half(x) * 2.0).backward()
    assert "gradient rules of half" in raised.value.__notes__[0]
    with pytest.raises(NotImplementedError, match="op half has no jvp rule"):
        ad.jvp(half, (1.0,), (1.0,))


@pytest.mark.parametrize("wrong", [lambda g: None, lambda g: np.zeros(7)])
def test_a_rule_that_gives_nothing_or_the_wrong_shape_is_an_error_and_not_a_cut_graph(wrong: Any) -> None:
    @ad.op(elementwise=True)
    def same(xp: Any, x: Any) -> Any:
        """x + 0."""
        return x + 0.0

    @same.vjp
    def same_vjp(g: Any) -> Any:
        return wrong(g)

    with pytest.raises((TypeError, ValueError), match="rule"):
        same(leaf(np.ones(3))).backward(np.ones(3))


def test_grad_takes_nested_arguments_and_gives_them_back_nested() -> None:
    def loss(params: Any, x: Any) -> Any:
        return ops.sum((x @ params["w"] + params["b"][0]) * 2.0)

    params = {"w": np.ones((3, 2)), "b": [np.zeros(2), np.zeros(1)]}
    value, gradient = ad.value_and_grad(loss)(params, np.ones((4, 3)))
    assert float(value) == 48.0
    assert gradient["w"].tolist() == np.full((3, 2), 8.0).tolist()
    assert gradient["b"][0].tolist() == [8.0, 8.0] and gradient["b"][1].tolist() == [0.0]


def test_grad_refuses_what_has_no_gradient_and_names_it() -> None:
    with pytest.raises(TypeError, match="argument 0 of <lambda>: gradients need a floating dtype, got int64"):
        ad.grad(lambda x: x * x)(np.array(2))
    with pytest.raises(ValueError, match=r"must give one number, got shape \(2,\)"):
        ad.grad(lambda x: x * x)(np.ones(2))
    with pytest.raises(TypeError, match="the result of <lambda>: expected numbers"):
        ad.grad(lambda x: None)(1.0)
    with pytest.raises(ValueError, match="argnums=3, but <lambda> was called with 1 arguments"):
        ad.grad(lambda x: x, 3)(1.0)


def test_backward_inside_record_says_how_to_record_a_gradient() -> None:
    w = leaf(2.0)

    def f(x: Any) -> Any:
        loss = x * w
        loss.backward()
        return loss

    with pytest.raises(ValueError, match=r"ad\.record\(ad\.value_and_grad"):
        ad.record(f, 1.0)


def test_what_a_pullback_gives_can_be_differentiated_by_its_cotangent() -> None:
    x, c, v = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.array([7.0, 11.0])

    def pulled(cotangent: Any) -> Any:
        (gradient,) = ad.vjp(lambda x: x**3, x).pull(cotangent)
        return gradient

    np.testing.assert_allclose(ad.jvp(pulled, (c,), (v,))[1], 3 * x**2 * v)
    np.testing.assert_allclose(ad.vjp(pulled, c).pull(v)[0], 3 * x**2 * v)
    tensor = ad.tensor(c, requires_grad=True)
    pulled(tensor).sum().backward()
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), 3 * x**2)
    assert type(pulled(ad.tensor(c))) is np.ndarray


def test_no_grad_counts_inside_a_differentiated_function_and_not_around_it_in_both_modes() -> None:
    def cube(v: Any) -> Any:
        with ad.no_grad():
            square = v * v
        return v * square

    with ad.no_grad():
        assert float(ad.grad(lambda v: v * v)(3.0)) == float(ad.jvp(lambda v: v * v, (3.0,), (1.0,))[1]) == 6.0
        assert float(ad.vjp(lambda v: v * v, 3.0).pull(1.0)[0]) == 6.0
    assert float(ad.grad(cube)(3.0)) == float(ad.jvp(cube, (3.0,), (1.0,))[1]) == 9.0


def test_keyword_arguments_are_passed_on_and_get_no_gradient() -> None:
    def f(x: Any, *, power: int = 2) -> Any:
        return x**power

    assert float(ad.grad(f)(2.0, power=3)) == 12.0
    assert float(ad.value_and_grad(f)(2.0, power=3)[0]) == 8.0
    assert float(ad.record(f, 2.0, power=3)(3.0)) == 27.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ad.grad(lambda a, b: a * b, (0, 0)), r"argnums=\(0, 0\) names an argument twice"),
        (lambda: ad.grad(lambda a: a, 3.0), r"the gradient at a point is ad.grad\(<lambda>\)\(point\)"),
        (lambda: ad.grad(ad.tensor(1.0)), r"grad takes a function, got Tensor; for a recorded Tensor call its backward"),
        (lambda: ad.jvp(lambda a: a, 3.0, 1.0), r"primals is a tuple with one entry per argument, got float; write \(x,\)"),  # type: ignore[arg-type]
        (lambda: ad.vjp(lambda a: (a, a), 3.0).pull([1.0, 1.0]), r"nests as \[\*, \*\], but the result as \(\*, \*\)"),
        (lambda: ad.record(lambda a: None, 1.0), r"got None; does the function return its result\?"),
        (lambda: ops.sum(np.ones(2), axis="a"), r"axis must be a whole number, a tuple of them, or None"),
        (lambda: ad.record(lambda a: a * 2.0, np.ones(3))(np.ones(4)), r"input a was recorded with shape \(3,\), got \(4,\)"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused_in_plain_words(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
