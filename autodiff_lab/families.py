"""Ops with optional inputs or several outputs: a family of plain ops with one output each, called as one function.

Everything downstream of a call (records, nodes, sweeps) knows one kind of op: a fixed number of inputs, one output. A
definition with more registers one op for each output and for each choice of optional inputs, such as ``divide_whole.quotient``
or ``affine.without_b``. The family's binding picks among them.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from . import bindings
from .bindings import OpError
from .graph import Source
from .signatures import REQUIRED, RegistrationError, Schema, parameters_of

if TYPE_CHECKING:
    from .operators import Op

Member = tuple[str, tuple[str, ...]]  # an output, and the inputs that are there


def is_family(schema: Schema) -> bool:
    """Whether a schema needs more than one plain op."""
    declared = schema.declared
    return declared is not None and (len(declared.outputs) > 1 or bool(declared.optional_inputs))


def member_schemas(schema: Schema) -> dict[Member, Schema]:
    """The schema of every op of a family, with its name."""
    declared = schema.declared
    assert declared is not None
    optional = declared.optional_inputs
    for output in declared.outputs if len(declared.outputs) > 1 else ():
        if output.name in ("op", *bindings.RULES) or keyword.iskeyword(output.name):
            raise RegistrationError(f"op {schema.name}: the output name {output.name!r} is reserved; choose another")
    if optional and REQUIRED in schema.attributes.values():
        raise RegistrationError(f"op {schema.name}: beside optional inputs every attribute needs a default")
    choices = [chosen for count in range(len(optional), -1, -1) for chosen in combinations(optional, count)]
    found = {}
    for output in declared.outputs:
        for chosen in choices:
            inputs = tuple(name for name in schema.inputs if name not in optional or name in chosen)
            name = _member_name(schema, output.name, chosen)
            only = declared.with_only(inputs, output.name)
            part = f"{schema.name}.{output.name}" if len(declared.outputs) > 1 else schema.name
            found[output.name, inputs] = replace(schema, name=name, inputs=inputs, declared=only, part=part)
    return found


def _member_name(schema: Schema, output: str, chosen: Sequence[str]) -> str:
    declared = schema.declared
    assert declared is not None
    name = f"{schema.name}.{output}" if len(declared.outputs) > 1 else schema.name
    if not declared.optional_inputs:
        return name
    return f"{name}.with_{'_'.join(chosen)}" if chosen else f"{name}.without_{'_'.join(declared.optional_inputs)}"


class Family:
    """Several ops under one name. Its methods are those of ``Op``: a rule hangs on every op that it fits.

    What a rule or kernel reads of an input that was left out is None.
    """

    def __init__(self, schema: Schema, members: Mapping[Member, Op], outputs: Sequence[str], count: int) -> None:
        self.schema, self.name, self.module, self.doc = schema, schema.name, schema.module, schema.doc
        self.inputs, self.attributes, self.is_variadic = schema.inputs, schema.attributes, schema.is_variadic
        self.ops = {member: op for member, op in members.items() if member[0] in outputs}
        self.outputs = tuple(outputs)
        self.places = {output: place for place, output in enumerate(dict.fromkeys(output for output, _ in members))}
        self.binding = bindings.attach_rules(self, bindings.new_binding(self))
        if len(outputs) == 1 < count:
            return
        for output in outputs if count > 1 else ():
            alone = [op for (name, _), op in self.ops.items() if name == output]
            part = Family(replace(schema, name=f"{self.name}.{output}"), members, (output,), count)
            setattr(self.binding, output, alone[0].binding if len(alone) == 1 else part.binding)

    def __repr__(self) -> str:
        return f"<ops {', '.join(op.name for op in self.members)}>"

    @property
    def members(self) -> tuple[Op, ...]:
        """The ops of the family."""
        return tuple(self.ops.values())

    @property
    def source(self) -> Source | None:
        """Where the family is defined."""
        return self.schema.source

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """The inputs that a call may leave out."""
        return () if self.schema.declared is None else self.schema.declared.optional_inputs

    def is_required(self, attribute: str) -> bool:
        """Whether an attribute has no default."""
        return self.attributes[attribute] is REQUIRED

    # -------------------------------------------------------------------------------------------------- a call

    def first_call(self, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
        """Call the op of each output that belongs to the inputs that are there; a kernel that they share runs once."""
        present = tuple(name for name, o in zip(self.inputs, operands, strict=True) if o is not None)
        if missing := [name for name in self.inputs if name not in (*present, *self.optional_inputs)]:
            raise OpError(f"{self.name}: {missing[0]} is None, and is not optional; give an array or a number")
        given = [o if self.is_variadic else self._as_array(o) for o in operands if o is not None]
        named = dict(zip(self.attributes, attributes, strict=True))
        ops = [self.ops[output, present] for output in self.outputs]
        if len(ops) == 1:
            return ops[0].binding(*given, **named)
        with _one_run():
            return tuple(op.binding(*given, **named) for op in ops)

    def _as_array(self, operand: Any) -> Any:
        """A list as an array, once for all outputs, so that they can see that they are given the same."""
        try:
            return bindings.real_array(operand) if isinstance(operand, (list, tuple)) else operand
        except (TypeError, ValueError) as error:
            raise OpError(f"{self.name}: {error}") from error

    # ------------------------------------------------------------------------------------------------- rules

    def kernel(self, device: str, dtype: Any = None) -> Callable[[Any], Any]:
        """Register a kernel: it takes every input and returns a tuple of the outputs where there are several."""

        def register(kernel: Any) -> Any:
            count = len(self.places)
            for (output, present), op in self.ops.items():
                one = _Output(kernel, self.places[output], tuple(self.places)) if count > 1 else kernel
                op.kernel(device, dtype)(self._as_member(one, present))
            return kernel

        return register

    def shape_rule(self, rule: Any) -> Any:
        """Register the shape rule of every output; of one alone with ``@family.output.shape_rule``."""
        return self._register("shape_rule", rule)

    def dtype_rule(self, rule: Any) -> Any:
        """Register the dtype rule of every output."""
        return self._register("dtype_rule", rule)

    def batch_rule(self, rule: Any) -> Any:
        """Register the batch rule of every output."""
        return self._register("batch_rule", rule)

    def vjp(self, which: Any) -> Any:
        """Register a VJP rule for every output; of one alone with ``@family.output.vjp("x")``."""
        return self._gradient("vjp", which)

    def jvp(self, which: Any) -> Any:
        """Register a JVP rule for every output; of one alone with ``@family.output.jvp("x")``."""
        return self._gradient("jvp", which)

    def samples(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Register inputs for the generic checks: operands with None for an optional input that is left out."""
        for (_, present), op in self.ops.items():
            op.samples(lambda present=present: list(self._samples_with(function, present)))  # type: ignore[misc]
        return function

    def _samples_with(self, function: Callable[[], Any], present: tuple[str, ...]) -> Iterator[Any]:
        for operands, attributes in function():
            if self.present(operands) == present:
                yield tuple(operand for operand in operands if operand is not None), attributes

    def present(self, operands: Sequence[Any]) -> tuple[str, ...]:
        """The inputs that a sample has: not those for which it says None, nor optional ones that it leaves out at its end.

        Raises:
            TypeError: the sample has more operands than there are inputs, or leaves out one that is not optional.
        """
        if self.is_variadic:
            return self.inputs
        named = dict(zip(self.inputs, operands, strict=False))
        found = tuple(name for name, operand in named.items() if operand is not None)
        if len(operands) > len(self.inputs) or set(self.inputs) - set(self.optional_inputs) - set(found):
            raise TypeError(
                f"a sample of {self.name} has {len(operands)} operands, but it takes {', '.join(self.inputs)}; write None "
                f"for an optional input ({', '.join(self.optional_inputs) or 'none is'})"
            )
        return found

    def _register(self, method: str, rule: Any) -> Any:
        for (_, present), op in self.ops.items():
            getattr(op, method)(self._as_member(rule, present))
        return rule

    def _gradient(self, kind: str, which: Any) -> Any:
        if callable(which):
            (first, *others) = self.inputs
            if others:
                raise RegistrationError(
                    f"op {self.name}: it has the inputs {', '.join(self.inputs)}, so say which one the {kind} rule is for: "
                    f'@{self.name}.{kind}("{first}")'
                )
            return self._gradient(kind, first)(which)
        if which not in self.inputs:
            raise RegistrationError(f"op {self.name}: no input {which!r}; it has {', '.join(self.inputs)}")

        def register(rule: Any) -> Any:
            for (_, present), op in self.ops.items():
                if which in present:
                    getattr(op, kind)(which)(self._as_member(rule, present))
            return rule

        return register

    def _as_member(self, function: Any, present: tuple[str, ...]) -> Any:
        absent = [name for name in self.inputs if name not in present]
        return _Absent(function, absent) if absent else function


class _Wrapped:
    """A function around a function, with a name and parameters like a plain one."""

    def __init__(self, function: Any) -> None:
        self.__name__: str = function.__name__
        self.__wrapped__ = function
        self.parameters = parameters_of(function)

    @property
    def __kwdefaults__(self) -> Any:
        return getattr(self.__wrapped__, "__kwdefaults__", None)


class _Absent(_Wrapped):
    """A rule or kernel of a family where some inputs were left out: it is given None for them."""

    def __init__(self, function: Any, absent: Sequence[str]) -> None:
        super().__init__(function)
        unread = {f"{name}{fact}" for name in absent for fact in ("", "_shape", "_dtype", "_device")}
        positional, attributes = self.parameters
        self._is_given = [name not in unread for name in positional]
        self.parameters = tuple(name for name in positional if name not in unread), attributes

    def __call__(self, *values: Any, **attributes: Any) -> Any:
        given = iter(values)
        return self.__wrapped__(*(next(given) if there else None for there in self._is_given), **attributes)


class _Output(_Wrapped):
    """A kernel of several outputs as the kernel of one of them."""

    def __init__(self, kernel: Any, place: int, outputs: tuple[str, ...]) -> None:
        super().__init__(kernel)
        self._place, self._outputs = place, outputs

    def __call__(self, xp: Any, *operands: Any, **attributes: Any) -> Any:
        done = _runs.get()
        run = None if done is None else next((r for r in done if r.is_of(self.__wrapped__, operands, attributes)), None)
        if run is None:
            run = _Run(
                self.__wrapped__, operands, attributes, self._checked(self.__wrapped__(xp, *operands, **attributes))
            )
            if done is not None:
                done.append(run)
        return run.results[self._place]

    def _checked(self, results: Any) -> Any:
        if not isinstance(results, (tuple, list)) or len(results) != len(self._outputs):
            found = f"{len(results)} results" if isinstance(results, (tuple, list)) else f"a {type(results).__name__}"
            raise TypeError(f"kernel {self.__name__} must return a tuple ({', '.join(self._outputs)}), got {found}")
        return results


class _Run:
    """One run of a kernel of several outputs, kept while the family's call lasts."""

    def __init__(self, kernel: Any, operands: Sequence[Any], attributes: Mapping[str, Any], results: Any) -> None:
        self.kernel, self.operands, self.attributes, self.results = kernel, operands, attributes, results

    def is_of(self, kernel: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> bool:
        """Whether a call is this one: the same arrays, not only equal ones, which would take time to find out."""
        return (
            kernel is self.kernel
            and len(operands) == len(self.operands)
            and all(map(_is_same, operands, self.operands))
            and all(self.attributes[name] is value for name, value in attributes.items())
        )


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is np.ndarray and type(other) is np.ndarray:  # a number becomes an array anew for each output
        return one.ndim == other.ndim == 0 and one.dtype == other.dtype and bool(one == other)
    return type(one) is type(other) and isinstance(one, (int, float)) and one == other


_runs: ContextVar[list[_Run] | None] = ContextVar("autodiff_lab.runs", default=None)


@contextmanager
def _one_run() -> Iterator[None]:
    """Inside the block the outputs of one call share what a kernel gave."""
    token = _runs.set([])
    try:
        yield
    finally:
        _runs.reset(token)
