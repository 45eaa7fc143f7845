"""Registering ops: what a rule may name, what is refused and when, and the generated bindings."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops
from autodiff_lab.bindings import binding_source
from autodiff_lab.ops.__main__ import stub_file


def register_scaled_tanh() -> Any:
    @ad.op
    def scaled_tanh(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
        """alpha · tanh(x)."""
        return alpha * xp.tanh(x)

    @scaled_tanh.shape_rule
    def scaled_tanh_shape(x: Any, *, alpha: float) -> Any:
        return x

    @scaled_tanh.vjp
    def scaled_tanh_vjp(g: Any, out: Any, *, alpha: float) -> Any:
        return g * (alpha - out * out / alpha)

    @scaled_tanh.jvp
    def scaled_tanh_jvp(dx: Any, out: Any, *, alpha: float) -> Any:
        return dx * (alpha - out * out / alpha)

    return scaled_tanh


def test_one_block_makes_an_op_that_works_in_every_reading() -> None:
    scaled_tanh = register_scaled_tanh()
    x = np.array([0.1, 0.2])
    assert ops.scaled_tanh is scaled_tanh and "scaled_tanh" in dir(ops)
    assert np.allclose(scaled_tanh(x, alpha=2.0), 2 * np.tanh(x))
    slope = 2 * (1 - np.tanh(x) ** 2)
    assert np.allclose(ad.grad(lambda v: ops.sum(scaled_tanh(v, alpha=2.0)))(x), slope)
    assert np.allclose(ad.jvp(lambda v: scaled_tanh(v, 2.0), (x,), (np.ones(2),))[1], slope)
    assert np.allclose(
        ad.grad(ad.grad(lambda v: scaled_tanh(v, alpha=2.0)))(0.3), -4 * np.tanh(0.3) * (1 - np.tanh(0.3) ** 2)
    )
    assert ad.record(lambda v: scaled_tanh(v, alpha=2.0), x).nodes[-1].attributes == {"alpha": 2.0}
    t = ad.tensor(x, requires_grad=True)
    scaled_tanh(t, alpha=2.0).sum().backward()
    assert t.grad is not None and np.allclose(t.grad.numpy(), slope)


def test_the_binding_has_the_ops_signature_and_docstring() -> None:
    scaled_tanh = register_scaled_tanh()
    assert str(inspect.signature(scaled_tanh)) == "(x, alpha=1.0)"
    assert scaled_tanh.__doc__ == "alpha · tanh(x)." and scaled_tanh.__name__ == "scaled_tanh"
    assert scaled_tanh.__module__ == __name__


def test_defining_an_op_again_in_the_same_module_replaces_it() -> None:
    first = register_scaled_tanh()
    graph = ad.record(lambda v: first(v), 0.5)
    second = register_scaled_tanh()
    assert ad.registry["scaled_tanh"] is second.op and graph.nodes[-1].op is first.op


def test_a_rule_added_after_the_first_call_counts_from_then_on() -> None:
    @ad.op(elementwise=True)
    def triple(xp: Any, x: Any) -> Any:
        """3 x."""
        return 3.0 * x

    x = ad.tensor(1.0, requires_grad=True)
    with pytest.raises(NotImplementedError):
        triple(x).backward()

    @triple.vjp
    def triple_vjp(g: Any) -> Any:
        return 3.0 * g

    triple(x).backward()
    assert x.grad is not None and x.grad.item() == 3.0


def register_weighted_sum() -> Any:
    @ad.op
    def weighted_sum(xp: Any, *arrays: Any, step: float = 1.0) -> Any:
        """The sum of x₀ + x₁²·(1 + step) + x₂³·(1 + 2 step) and so on."""
        return xp.asarray(sum(x ** (i + 1) * (1 + i * step) for i, x in enumerate(arrays)))

    @weighted_sum.shape_rule
    def weighted_sum_shape(*arrays: Any) -> Any:
        return arrays[0]

    @weighted_sum.vjp("arrays")
    def weighted_sum_vjp(g: Any, arrays: Any, place: int, arrays_shape: Any, *, step: float) -> Any:
        assert len(arrays_shape) == len(arrays)
        return g * arrays[place] ** place * ((place + 1) * (1 + place * step))

    @weighted_sum.jvp("arrays")
    def weighted_sum_jvp(darrays: Any, arrays: Any, place: int, *, step: float) -> Any:
        return darrays * arrays[place] ** place * ((place + 1) * (1 + place * step))

    return weighted_sum


def test_an_op_with_any_number_of_inputs_works_in_every_reading() -> None:
    weighted_sum = register_weighted_sum()
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert str(inspect.signature(weighted_sum)) == "(arrays, step=1.0)"
    assert weighted_sum([x, y], step=2.0).tolist() == (x + 3 * y**2).tolist()
    assert weighted_sum([x, y, x, y]).shape == (2,)

    def loss(x: Any, y: Any) -> Any:
        return ops.sum(weighted_sum([x, y, x], step=2.0))

    gx, gy = ad.grad(loss, (0, 1))(x, y)
    assert gx.tolist() == (1 + 15 * x**2).tolist() and gy.tolist() == (6 * y).tolist()
    assert float(ad.jvp(loss, (x, y), (x, y))[1]) == np.sum(gx * x + gy * y)
    assert np.allclose(ad.jvp(ad.grad(loss), (x, y), (np.ones(2), np.zeros(2)))[1], 30 * x)
    graph = ad.record(ad.value_and_grad(loss, (0, 1)), x, y)
    assert [g.tolist() for g in graph(x, y)[1]] == [gx.tolist(), gy.tolist()]

    a, b = ad.tensor(x, requires_grad=True, name="a"), ad.tensor(y, requires_grad=True, name="b")
    result = weighted_sum([a, b, np.ones(2)], step=2.0)
    with ad.listen() as told:
        ad.sweep(result, np.ones(2))
    sent = [e for e in told if isinstance(e, ad.events.ContributionAdded)]
    assert [e.argument for e in sent] == ["arrays[0]", "arrays[1]"]
    assert [n.label for n in ad.graph_of(result)] == ["input", "input", "constant", "weighted_sum"]
    result.backward(np.ones(2), create_graph=True)
    assert b.grad is not None and b.grad.numpy().tolist() == (6 * y).tolist() and b.grad.requires_grad
    with pytest.raises(ad.OpError, match=r"weighted_sum\(arrays\[0\]: \(2,\) float64, arrays\[1\]: \(3,\)"):
        weighted_sum([x, np.ones(3)])


def test_a_kernel_for_one_dtype_is_chosen_for_it_and_the_fallback_order_holds() -> None:
    @ad.op(elementwise=True)
    def chosen(xp: Any, x: Any) -> Any:
        """x, and which kernel ran."""
        ran.append("any")
        return x

    ran: list[str] = []

    @chosen.kernel("cpu")
    def chosen_cpu(xp: Any, x: Any) -> Any:
        ran.append("cpu")
        return x

    @chosen.kernel("cpu", dtype="float32")
    def chosen_cpu_float32(xp: Any, x: Any) -> Any:
        ran.append("cpu float32")
        return x

    @chosen.kernel("cuda")
    def chosen_cuda(xp: Any, x: Any) -> Any:
        ran.append("cuda")
        return x

    chosen(np.ones(2))
    chosen(np.ones(2, np.float32))
    chosen(ad.tensor(np.ones(2, np.float32)))
    assert ran == ["cpu", "cpu float32", "cpu float32"]


def test_a_kernel_for_cuda_leaves_calls_on_the_cpu_as_fast_as_they_were() -> None:
    @ad.op(elementwise=True)
    def plain(xp: Any, x: Any) -> Any:
        """x."""
        return x

    before = binding_source(ad.registry["plain"])

    @plain.kernel("cuda")
    def plain_cuda(xp: Any, x: Any) -> Any:
        raise AssertionError("there is no CUDA array in this test")

    assert binding_source(ad.registry["plain"]) == before
    assert plain(np.ones(2)).tolist() == [1, 1]

    @plain.kernel("cpu")
    def plain_cpu(xp: Any, x: Any) -> Any:
        return 2 * x

    assert plain(np.ones(2)).tolist() == [2, 2]


def refused_registrations() -> dict[str, tuple[Any, str]]:
    def no_library(x: Any) -> Any: ...
    def no_inputs(xp: Any) -> Any: ...
    def starred(xp: Any, x: Any, *xs: Any) -> Any: ...
    def reserved(xp: Any, g: Any) -> Any: ...
    def underscore(xp: Any, _x: Any) -> Any: ...
    def default_input(xp: Any, x: Any, y: Any = 1.0) -> Any: ...
    def mul(xp: Any, x: Any) -> Any: ...

    def bad_vjp_first() -> None:
        @register_scaled_tanh().vjp
        def rule(out: Any) -> Any: ...

    def bad_vjp_name() -> None:
        @register_scaled_tanh().vjp
        def rule(g: Any, y: Any) -> Any: ...

    def bad_vjp_attribute() -> None:
        @register_scaled_tanh().vjp
        def rule(g: Any, *, beta: Any) -> Any: ...

    def bad_jvp_first() -> None:
        @register_scaled_tanh().jvp
        def rule(dy: Any) -> Any: ...

    def bad_shape_rule() -> None:
        @register_scaled_tanh().shape_rule
        def rule(y: Any) -> Any: ...

    def ambiguous_vjp() -> None:
        @ad.op(elementwise=True)
        def two(xp: Any, x: Any, y: Any) -> Any: ...

        @two.vjp
        def rule(g: Any) -> Any: ...

    def unknown_device() -> None:
        @register_scaled_tanh().kernel("tpu")
        def kernel(xp: Any, x: Any, *, alpha: float = 1.0) -> Any: ...

    def other_kernel_schema() -> None:
        @register_scaled_tanh().kernel("cpu")
        def kernel(xp: Any, x: Any) -> Any: ...

    def unknown_constant_input() -> None:
        @ad.op(constant_inputs=("z",))
        def identity(xp: Any, x: Any) -> Any: ...

    return {
        "no xp": (lambda: ad.op(no_library), "first parameter must be 'xp'"),
        "no inputs": (lambda: ad.op(no_inputs), "it has no inputs"),
        "starred inputs beside others": (lambda: ad.op(starred), r"\(\*xs\) stands alone after xp"),
        "reserved name": (lambda: ad.op(reserved), "the name 'g' is reserved"),
        "underscore": (lambda: ad.op(underscore), "the name '_x' is reserved"),
        "default of an input": (lambda: ad.op(default_input), "input 'y' has a default"),
        "name of another module": (lambda: ad.op(mul), "the name is taken by module autodiff_lab.ops.elementwise"),
        "vjp without g": (bad_vjp_first, "first parameter must be 'g', got 'out'"),
        "vjp names an unknown value": (bad_vjp_name, "no value 'y' to save; a rule may name x, out"),
        "vjp names an unknown attribute": (bad_vjp_attribute, "no attribute 'beta'; the op's attributes are: alpha"),
        "jvp without dx": (bad_jvp_first, "first parameter must be 'dx', got 'dy'"),
        "shape rule of other inputs": (bad_shape_rule, r"must be the inputs \(x\), got \(y\)"),
        "vjp of which input": (ambiguous_vjp, r'say which one the vjp rule is for: @two.vjp\("x"\)'),
        "unknown device": (unknown_device, "no device kind 'tpu'"),
        "kernel with another schema": (other_kernel_schema, r"must take \(xp, x, \*, alpha\) as the op does"),
        "unknown constant input": (unknown_constant_input, "constant inputs"),
        "a function without a name": (
            lambda: ad.op(lambda xp, x: x),
            "named after its function, and <lambda> is no name",
        ),
    }


@pytest.mark.parametrize("name", refused_registrations())
def test_a_wrong_registration_is_refused_at_once_with_the_reason(name: str) -> None:
    register, message = refused_registrations()[name]
    with pytest.raises(ad.RegistrationError, match=message):
        register()
    assert ad.registry["mul"].inputs == ("x", "y")


def test_an_op_without_a_shape_rule_is_refused_when_it_is_first_used() -> None:
    @ad.op
    def shapeless(xp: Any, x: Any) -> Any:
        """x."""
        return x

    with pytest.raises(
        ad.RegistrationError, match=r"no shape rule; add one with @shapeless.shape_rule before using it"
    ):
        shapeless(1.0)


def test_an_unknown_op_is_named_with_what_is_near_to_it() -> None:
    with pytest.raises(AttributeError, match=r"no op named 'muul'; did you mean mul.*\? dir\(ops\) lists all"):
        _ = ops.muul  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="no op named 'muul'"):
        _ = ad.registry["muul"]


def test_the_type_stub_of_ops_is_the_generated_one() -> None:
    stub = Path(ops.__file__).with_suffix(".pyi")
    command = [sys.executable, "-m", "autodiff_lab.ops"]
    generated = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert stub.read_text(encoding="utf-8") == generated, (
        "run: python -m autodiff_lab.ops > autodiff_lab/ops/__init__.pyi"
    )
    assert stub_file().startswith('"""Generated by')
