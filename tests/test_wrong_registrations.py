"""Wrong registrations, written down: each is refused where it can first be seen, with the message that a learner needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest

import autodiff_lab as ad
from autodiff_lab import ops


@dataclass(frozen=True)
class Wrong:
    """One mistake: the code that registers, where it is refused, and what the message must say."""

    mistake: str
    register: Callable[[], Any]
    refused: Literal["when registered", "at the first call", "by opcheck"]
    message: str


def doubled() -> Any:
    """A right op, to which something wrong is added."""

    @ad.op
    def doubled(xp: Any, x: Any, *, times: int = 1) -> Any:
        return x * 2.0**times

    doubled.shape_rule(lambda x: x)
    return doubled


def a_rule_that_names_something_the_op_does_not_have() -> None:
    @doubled().vjp
    def doubled_vjp(g: Any, y: Any) -> Any:
        return 2.0 * g


def a_rule_without_its_cotangent() -> None:
    @doubled().vjp
    def doubled_vjp(x: Any) -> Any:
        return 2.0


def a_shape_rule_of_other_inputs() -> None:
    @doubled().shape_rule
    def doubled_shape(x: Any, y: Any) -> Any:
        return x


def a_rule_for_an_input_that_is_not_there() -> None:
    @doubled().vjp("y")
    def doubled_vjp(g: Any) -> Any:
        return 2.0 * g


def a_dtype_that_does_not_exist() -> None:
    ad.register_op("Doubled").input("x: flaot32").output("y: float32")


def a_kernel_for_a_dtype_that_does_not_exist() -> None:
    doubled().kernel("cpu", dtype="float33")


def a_kernel_for_a_device_that_does_not_exist() -> None:
    doubled().kernel("gpu")


def a_kernel_with_other_parameters() -> None:
    @doubled().kernel("cpu")
    def doubled_on_cpu(xp: Any, x: Any) -> Any:
        return x + x


def a_kernel_with_another_default() -> None:
    @doubled().kernel("cpu")
    def doubled_on_cpu(xp: Any, x: Any, *, times: int = 2) -> Any:
        return x * 2.0**times


def a_name_that_the_library_has_taken() -> None:
    @ad.op(elementwise=True)
    def tanh(xp: Any, x: Any) -> Any:
        return xp.tanh(x)


def a_default_that_every_call_shares() -> None:
    @ad.op
    def moved(xp: Any, x: Any, *, by: Any = [1, 2]) -> Any:  # noqa: B006 (the mistake)
        return x + by[0]


def an_attribute_with_a_default_of_another_type() -> None:
    ad.register_op("Doubled").input("x: T").output("y: T").attr("times: int = 1.5")


def a_type_of_the_output_that_no_input_has() -> None:
    ad.register_op("Doubled").input("x: T").output("y: S").elementwise().kernel(lambda xp, x: x)


def an_input_after_the_first_rule() -> None:
    chain = ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: context.input_shape(0))
    chain.input("z: T")


def types_of_other_inputs_than_the_kernels() -> None:
    @ad.op(types="x: T, y: T -> z: T")
    def plus(xp: Any, x: Any, w: Any) -> Any:
        return x + w


def no_shape_rule() -> Any:
    @ad.op
    def doubled(xp: Any, x: Any) -> Any:
        return x * 2.0

    return doubled(1.0)


def a_shape_function_without_a_result() -> Any:
    op = ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: None)
    return op.kernel(lambda xp, x: x * 2)


def a_shape_function_that_asks_for_an_input_that_is_not_there() -> Any:
    op = ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: context.input_shape(1))
    return ad.record(op.kernel(lambda xp, x: x * 2), np.ones(2))


def a_kernel_creator_that_runs_instead_of_creating() -> Any:
    op = ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: context.input_shape(0))
    return op.kernel_creator(lambda context: context.xp.ones(2))(np.ones(2))


def an_op_whose_chain_was_never_finished() -> Any:
    ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: context.input_shape(0))
    return ops.Doubled(1.0)  # type: ignore[attr-defined]


def a_kernel_for_another_dtype_only() -> Any:
    op = ad.register_op("Doubled").input("x: T").output("y: T").shape_fn(lambda context: context.input_shape(0))
    return op.kernel(lambda xp, x: x + x, device="cpu", dtype="float32")(np.ones(2))


def a_shape_rule_that_loses_an_axis() -> Any:
    op = doubled()
    op.shape_rule(lambda x: x[1:])
    return op


def a_dtype_rule_that_forgets_an_operand() -> Any:
    @ad.op(elementwise=True)
    def plus(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    plus.dtype_rule(lambda x, y: x)
    plus.samples(lambda: [((np.ones(2), np.ones(2)), {})])
    return plus


def a_kernel_that_writes_into_its_argument() -> Any:
    @ad.op(elementwise=True)
    def doubled_in_place(xp: Any, x: Any) -> Any:
        x *= 2.0
        return x.copy()

    return doubled_in_place


def a_result_that_is_the_argument() -> Any:
    @ad.op(elementwise=True)
    def same(xp: Any, x: Any) -> Any:
        return x

    return same


def a_gradient_with_a_lost_sign() -> Any:
    op = doubled()
    op.vjp(lambda g: -2.0 * g)
    return op


def a_rule_for_one_of_two_inputs() -> Any:
    @ad.op(elementwise=True)
    def plus(xp: Any, x: Any, y: Any) -> Any:
        return x + y

    plus.vjp("x")(lambda g: g)
    return plus


def a_kernel_with_hidden_randomness() -> Any:
    @ad.op(elementwise=True)
    def noisy(xp: Any, x: Any) -> Any:
        return x + np.random.default_rng().standard_normal(np.shape(x))

    return noisy


def a_rule_that_is_no_function() -> None:
    doubled().vjp(partial(lambda g, k: g * k, k=2.0))


def a_kernel_that_is_no_function() -> None:
    ad.op(partial(lambda xp, x, k: x * k, k=2.0))


def types_without_their_name() -> None:
    ad.op("x: T -> y: T")  # type: ignore[call-overload]


def a_name_that_is_hidden() -> None:
    @ad.op
    def __init__(xp: Any, x: Any) -> Any:
        return x


def an_input_named_as_a_fact_about_another() -> None:
    @ad.op
    def shaped(xp: Any, x: Any, x_shape: Any) -> Any:
        return x


def an_output_named_as_a_method() -> None:
    @ad.op(types="x: T -> low: T, vjp: T")
    def halves(xp: Any, x: Any) -> Any:
        return x, x


def a_dtype_with_a_capital_letter() -> None:
    @ad.op(types="x: Float32 -> y: Float32")
    def single(xp: Any, x: Any) -> Any:
        return x


def a_kernel_for_complex_numbers() -> None:
    doubled().kernel("cpu", "complex64")(lambda xp, x, *, times=1: x)


def a_context_function_that_is_none() -> None:
    ad.register_op("Doubled").input("x: T").output("y: T").shape_fn((3,))  # type: ignore[arg-type]


def a_kernel_without_return() -> None:
    @ad.op(elementwise=True)
    def nothing(xp: Any, x: Any) -> Any:
        x * 2.0

    nothing(ad.tensor([1.0, 2.0], requires_grad=True))


def a_jvp_rule_without_return() -> None:
    op = doubled()

    @op.jvp
    def doubled_jvp(dx: Any) -> Any:
        2.0 * dx

    ad.jvp(op, (1.0,), (1.0,))


def a_shape_rule_with_a_size_below_zero() -> None:
    op = doubled()
    op.shape_rule(lambda x: (-1,))
    ad.record(op, np.ones(2))


def a_kernel_with_complex_results() -> Any:
    @ad.op(elementwise=True)
    def turned(xp: Any, x: Any) -> Any:
        return x * 1j

    return turned


WRONG = [
    Wrong("a rule reads a value that the op does not have", a_rule_that_names_something_the_op_does_not_have,
          "when registered", r"vjp rule doubled_vjp: no value 'y' to save; a rule may name x, out"),
    Wrong("a vjp rule does not take the cotangent", a_rule_without_its_cotangent,
          "when registered", "its first parameter must be 'g', got 'x'"),
    Wrong("a shape rule takes other inputs", a_shape_rule_of_other_inputs,
          "when registered", r"positional parameters must be the inputs \(x\), got \(x, y\)"),
    Wrong("a rule for an input that the op does not have", a_rule_for_an_input_that_is_not_there,
          "when registered", "no differentiable input 'y'; it has x"),
    Wrong("a type is misspelled", a_dtype_that_does_not_exist,
          "when registered", "op Doubled: x has the unknown type 'flaot32'; write a dtype such as float32"),
    Wrong("a kernel for an unknown dtype", a_kernel_for_a_dtype_that_does_not_exist,
          "when registered", "op doubled: no dtype 'float33'; write one of NumPy's"),
    Wrong("a kernel for an unknown device", a_kernel_for_a_device_that_does_not_exist,
          "when registered", "no device kind 'gpu'; a kernel is for 'cpu', 'cuda', 'sim'"),
    Wrong("a second kernel takes other parameters", a_kernel_with_other_parameters,
          "when registered", r"kernel doubled_on_cpu takes \(xp, x\) and must take \(xp, x, \*, times\) as the op does"),
    Wrong("a second kernel has another default", a_kernel_with_another_default,
          "when registered", "as the op does, with the same default of times"),
    Wrong("the name of another module's op", a_name_that_the_library_has_taken,
          "when registered", r"taken by module autodiff_lab.ops.hyperbolic \(hyperbolic.py:\d+\); choose another .*\(test_wr"),
    Wrong("a default that calls would share", a_default_that_every_call_shares,
          "when registered", r"attribute by has the default \[1, 2\], a list, which every call would share"),
    Wrong("a default of another type", an_attribute_with_a_default_of_another_type,
          "when registered", "the default of attribute times is declared int and is 1.5, a float"),
    Wrong("an output's type variable stands for nothing", a_type_of_the_output_that_no_input_has,
          "when registered", "output y has the type S, which no input that is always there has"),
    Wrong("an input is declared too late", an_input_after_the_first_rule,
          "when registered", "every input stands before the first rule or kernel"),
    Wrong("types name other inputs than the kernel", types_of_other_inputs_than_the_kernels,
          "when registered", r"the declared inputs are \(x, y\), but the kernel takes \(x, w\)"),
    Wrong("a rule is no plain function", a_rule_that_is_no_function,
          "when registered", "functools.partial.* is not a plain function; write it with def"),
    Wrong("a kernel is no plain function", a_kernel_that_is_no_function,
          "when registered", "functools.partial.* is not a plain function; write it with def"),
    Wrong("types are given where the kernel belongs", types_without_their_name,
          "when registered", r"types are named, as in @op\(types='x: T -> y: T'\)"),
    Wrong("a name that ops cannot offer", a_name_that_is_hidden,
          "when registered", "op '__init__': the name of an op is a name of Python without '_' before it"),
    Wrong("an input is named as a fact", an_input_named_as_a_fact_about_another,
          "when registered", "op shaped: x_shape is what rules call the shape of x; give that input another name"),
    Wrong("an output is named as a method", an_output_named_as_a_method,
          "when registered", "op halves: the output name 'vjp' is reserved"),
    Wrong("a dtype is written as a type variable", a_dtype_with_a_capital_letter,
          "when registered", "x has the unknown type 'Float32'"),
    Wrong("a kernel for a dtype that ops do not have", a_kernel_for_complex_numbers,
          "when registered", "op doubled: a kernel for complex64 would never run"),
    Wrong("a shape instead of a shape function", a_context_function_that_is_none,
          "when registered", r"op Doubled: expected a function of a context, got \(3,\)"),
    Wrong("a kernel returns nothing", a_kernel_without_return,
          "at the first call", r"nothing\(x: \(2,\) float64\): kernel nothing gave None: is its return missing\?"),
    Wrong("a jvp rule returns nothing", a_jvp_rule_without_return,
          "at the first call", r"doubled\(.*jvp rule doubled_jvp gave None"),
    Wrong("a shape rule gives a size below 0", a_shape_rule_with_a_size_below_zero,
          "at the first call", r"shape rule <lambda> gave \(-1,\)"),
    Wrong("a kernel gives complex numbers", a_kernel_with_complex_results,
          "by opcheck", "the kernel turned gives dtype complex128; ops compute with real numbers"),
    Wrong("there is no shape rule", no_shape_rule,
          "at the first call", "op doubled has no shape rule; add one with @doubled.shape_rule before using it"),
    Wrong("a shape function returns nothing", a_shape_function_without_a_result,
          "by opcheck", r"<lambda> says None for .* it loses a dimension .* \(is its return missing\?\)"),
    Wrong("a shape function asks for another input", a_shape_function_that_asks_for_an_input_that_is_not_there,
          "at the first call", "op Doubled has no input 1; it has x, numbered from 0"),
    Wrong("a kernel creator computes", a_kernel_creator_that_runs_instead_of_creating,
          "at the first call", r"kernel creator <lambda> gave array\(\[1., 1.\]\); return a function of x"),
    Wrong("a chain is not finished", an_op_whose_chain_was_never_finished,
          "at the first call", r"op Doubled is not registered yet, it has no kernel \(.kernel_creator or .kernel\)"),
    Wrong("no kernel for the dtype", a_kernel_for_another_dtype_only,
          "at the first call", r"no kernel for cpu and float64; it has, by device and dtype: <lambda> for cpu and float32"),
    Wrong("a shape rule loses an axis", a_shape_rule_that_loses_an_axis,
          "by opcheck", r"<lambda> says \(\) for \(2,\), the kernel gives shape \(2,\)"),
    Wrong("a dtype rule forgets an operand", a_dtype_rule_that_forgets_an_operand,
          "by opcheck", "<lambda> says float32 for float32 and float64, the kernel gives float64"),
    Wrong("a kernel writes into its argument", a_kernel_that_writes_into_its_argument,
          "by opcheck", "the kernel doubled_in_place changes its argument x in place"),
    Wrong("the result is the argument", a_result_that_is_the_argument,
          "by opcheck", "output 0 shares memory with argument x: give a copy"),
    Wrong("a gradient has lost its sign", a_gradient_with_a_lost_sign,
          "by opcheck", "the VJP rule for x is wrong: at x it gives .* −1 times what it should be"),
    Wrong("one of two inputs has no gradient", a_rule_for_one_of_two_inputs,
          "by opcheck", r'no VJP rule for y: add @plus.vjp\("y"\), or name it in constant_inputs'),
    Wrong("a kernel is random", a_kernel_with_hidden_randomness,
          "by opcheck", "two calls with the same arguments give two results"),
]  # fmt: skip
ERRORS = {
    "when registered": ad.RegistrationError,
    "at the first call": (ad.RegistrationError, ad.OpError, AttributeError),
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.mistake)
def test_a_wrong_registration_is_refused_with_its_reason(wrong: Wrong) -> None:
    if wrong.refused == "by opcheck":
        report = ad.opcheck(wrong.register())
        assert not report.ok and re.search(wrong.message, report.failed[0].reason), str(report)
        return
    with pytest.raises(ERRORS[wrong.refused], match=wrong.message):
        wrong.register()


def test_the_right_op_is_not_refused() -> None:
    assert doubled()(3.0, times=2) == 12.0 and len(WRONG) >= 10
