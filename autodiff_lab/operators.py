"""Op and its rules: what a framework knows about an operation, and how it is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, overload

import numpy as np

from . import bindings, events
from .bindings import OpError
from .dispatch import Kernel as Kernel
from .dispatch import Key, choose, kernel_key, key_texts
from .families import Family, is_family, member_schemas
from .graph import Source
from .operand_rules import (
    PartialShape,
    Shape,
    broadcast_shape,
    is_known,
    is_known_to_keep_floating,
    result_dtype,
    shape_said,
    zeros_without_memory,
)
from .registries import registry as registry
from .signatures import REQUIRED, RegistrationError, Schema, parameters_of, schema_of, source_of
from .tensors import Record

Rule = Callable[..., Any]
Parameters = tuple[tuple[str, ...], tuple[str, ...]]  # names of values, names of attributes

_FACTS = tuple(bindings.FACTS)


class Binding(Protocol):
    """The generated function of an op: call it, or hang rules on it. The methods are those of ``Op``."""

    op: Op

    def __call__(self, *arguments: Any, **attributes: Any) -> Any: ...
    def shape_rule(self, rule: Rule) -> Rule: ...
    def dtype_rule(self, rule: Rule) -> Rule: ...
    def batch_rule(self, rule: Rule) -> Rule: ...
    @overload
    def vjp(self, which: Rule) -> Rule: ...
    @overload
    def vjp(self, which: str) -> Callable[[Rule], Rule]: ...
    @overload
    def jvp(self, which: Rule) -> Rule: ...
    @overload
    def jvp(self, which: str) -> Callable[[Rule], Rule]: ...
    def kernel(self, device: str, dtype: Any = None) -> Callable[[Kernel], Kernel]: ...
    def samples(self, function: Callable[[], Any]) -> Callable[[], Any]: ...


class Op:
    """An operation: its schema (inputs and attributes), kernels, shape and dtype rule, and gradient rules.

    A rule is a plain function whose parameter names say what it needs, and exactly that is saved for it:

    * ``vjp``: ``g`` first, then any of the inputs, ``out``, and ``<input>_shape``, ``<input>_dtype`` or ``<input>_device``
      where that is enough; attributes keyword-only. Returns the input's cotangent; where an elementwise op broadcast, the
      sum over the broadcast axes is taken afterwards.
    * ``jvp``: ``d<input>`` first, then as above. Returns its part of the result's tangent.
    * ``shape_rule``, ``dtype_rule``: one shape or dtype per input, attributes keyword-only. They never see data. A Python
      number has shape ``()``; a dtype rule is given the 0 of its type.
    """

    optional_inputs = ()  # a family's alone

    def __init__(
        self,
        schema: Schema,
        elementwise: bool = False,
        constant_inputs: Sequence[str] = (),
        differentiable: bool = True,
        views: str | Sequence[str] = (),
    ) -> None:
        if facts := {f"{name}_{fact}" for name in schema.inputs for fact in _FACTS}.intersection(schema.inputs):
            of, _, fact = min(facts).rpartition("_")
            raise RegistrationError(
                f"op {schema.name}: {min(facts)} is what rules call the {fact} of {of}; give that input another name"
            )
        self.schema = schema
        self.name, self.module, self.doc = schema.name, schema.module, schema.doc
        self.inputs, self.attributes, self.is_variadic = schema.inputs, schema.attributes, schema.is_variadic
        self.declared = schema.declared
        self.elementwise = elementwise
        self.constant_inputs = frozenset((*constant_inputs, *(self.declared.constant_inputs if self.declared else ())))
        self.is_differentiable = differentiable and not self.constant_inputs.issuperset(self.inputs)
        self.views = frozenset([views] if isinstance(views, str) else views)
        self.kernels: dict[Key, Kernel] = {}
        self._cpu_kernel: Kernel | None = None  # the one for NumPy arrays of every dtype, once that is known
        self.vjp_rules: dict[str, Rule] = {}
        self.jvp_rules: dict[str, Rule] = {}
        self._reads: dict[tuple[str, str], Parameters] = {}  # what a rule names, kept until a rule changes
        self._shape_rule: Rule | None = broadcast_shape if elementwise else None
        self._dtype_rule: Rule = self.declared.result_dtype if self.declared else result_dtype
        self._batch_rule: Rule | None = None
        self._batch_attributes: tuple[str, ...] = ()  # those that the batch rule names
        self._samples: Callable[[], Any] | None = None
        self._wanted: dict[tuple[tuple[str, ...], int], frozenset[str]] = {}
        self.saved_names: tuple[str, ...] = ()  # what the rules read, in the order in which it is saved
        self.pull: Callable[..., tuple[Any, ...]] = self._no_pull
        self.record: Callable[..., Any] = self._no_pull
        self.push: Callable[..., Any] = self._no_pull
        self.binding = bindings.attach_rules(self, bindings.new_binding(self))
        self._unfinished_code = self.binding.__code__
        if events.receiver() is not None:
            self._tell_schema()

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join((*self.inputs, *self.attributes))})>"

    def operand_names(self, count: int) -> tuple[str, ...]:
        """A name for each of ``count`` operands: the inputs, or ``arrays[0]``, ``arrays[1]``, … of a variadic op."""
        return tuple(f"{self.inputs[0]}[{place}]" for place in range(count)) if self.is_variadic else self.inputs

    def per_operand(self, names: Sequence[str], count: int) -> tuple[str, ...]:
        """Names that a rule reads, where a variadic op's ``arrays`` and ``arrays_shape`` stand for those of each operand."""
        if not self.is_variadic:
            return tuple(names)
        listed: list[str] = []
        for name in names:
            if self.is_of_each(name):
                fact = name[len(self.inputs[0]) :]
                listed += [f"{operand}{fact}" for operand in self.operand_names(count)]
            elif name != "place":
                listed.append(name)
        return tuple(listed)

    def is_of_each(self, name: str) -> bool:
        """Whether a name that a rule reads stands for a value of each operand, as ``arrays`` and ``arrays_shape`` do."""
        return self.is_variadic and name in (self.inputs[0], *(f"{self.inputs[0]}_{fact}" for fact in _FACTS))

    @property
    def flowing_inputs(self) -> tuple[str, ...]:
        """The inputs that gradients flow to."""
        return tuple(name for name in self.inputs if name not in self.constant_inputs)

    def is_required(self, attribute: str) -> bool:
        """Whether an attribute has no default."""
        return self.attributes[attribute] is REQUIRED

    @property
    def source(self) -> Source | None:
        """Where the op is defined."""
        return self.schema.source

    @property
    def is_current(self) -> bool:
        """Whether the op's name still means this op; not so when the cell that defines it was run again."""
        return registry.is_current(self)

    @property
    def members(self) -> tuple[Op, ...]:
        """The op itself; a family has several."""
        return (self,)

    # ------------------------------------------------------------------------------------------------- registering rules

    def shape_rule(self, rule: Rule) -> Rule:
        """Register how the result's shape follows from the inputs' shapes.

        A rule is asked about whole numbers only. It may answer None for a size, or for the shape, that it cannot tell; a graph
        is recorded all the same, but fusion and planning stop there.
        """
        self._check_operand_rule(rule, "shape rule")
        self._shape_rule = rule
        registry.note_change()
        self._tell_rule("shape rule", rule)
        return rule

    def dtype_rule(self, rule: Rule) -> Rule:
        """Register how the result's dtype follows from the inputs' dtypes; NumPy's result type by default."""
        self._check_operand_rule(rule, "dtype rule")
        self._dtype_rule = rule
        self._changed()
        self._tell_rule("dtype rule", rule)
        return rule

    def batch_rule(self, rule: Rule) -> Rule:
        """Register how the op runs on stacks: every operand has a leading axis of the batch's size or 1, as has the result.

        Optional: without it, or where it answers NotImplemented, a loop over the batch gives the same numbers.
        """
        self._check_operand_rule(rule, "batch rule")
        self._batch_rule, self._batch_attributes = rule, parameters_of(rule)[1]
        self._tell_rule("batch rule", rule)
        return rule

    def vjp(self, which: Rule | str) -> Any:
        """Register the rule that turns the result's cotangent into one input's: ``@op.vjp`` or ``@op.vjp("x")``."""
        return self._gradient_rule(which, "vjp", self.vjp_rules)

    def jvp(self, which: Rule | str) -> Any:
        """Register the rule that turns one input's tangent into the result's: ``@op.jvp`` or ``@op.jvp("x")``."""
        return self._gradient_rule(which, "jvp", self.jvp_rules)

    def kernel(self, device: str, dtype: Any = None) -> Callable[[Kernel], Kernel]:
        """Register a better kernel for one kind of device and, if given, one dtype of the first array.

        Args:
            device: ``cpu``, ``cuda``, ``sim``, or ``any`` for every array library.
            dtype: of the first operand that has one; None for any.
        """
        key = kernel_key(self.name, device, dtype)

        def register(kernel: Kernel) -> Kernel:
            self._check_kernel(kernel)
            self.kernels = {**self.kernels, key: kernel}  # replaced, as another thread may be looking through it
            self._cpu_kernel = None
            self._changed()
            if (tell := events.receiver()) is not None:
                name, (kind, number) = kernel.__name__, key_texts(key)
                tell(events.KernelRegistered(self.name, name, kind, number, source_of(kernel)))
            return kernel

        return register

    def samples(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """Register inputs for the generic checks: a function that gives a list of ``(operands, attributes)``."""
        self._samples = function
        return function

    def _gradient_rule(self, which: Rule | str, kind: str, rules: dict[str, Rule]) -> Any:
        if callable(which):
            flowing = self.flowing_inputs
            if len(flowing) != 1:
                raise RegistrationError(
                    f"op {self.name}: it has the inputs {', '.join(flowing)}, so say which one the {kind} rule is for: "
                    f'@{self.name}.{kind}("{flowing[0]}")'
                )
            return self._gradient_rule(flowing[0], kind, rules)(which)
        name = which
        if name not in self.inputs or name in self.constant_inputs:
            raise RegistrationError(
                f"op {self.name}: no differentiable input {name!r}; it has {', '.join(self.inputs)}"
            )

        def register(rule: Rule) -> Rule:
            self._check_gradient_rule(rule, kind, "g" if kind == "vjp" else f"d{name}")
            rules[name] = rule
            self._changed()
            self._tell_rule(f"{kind} rule", rule, name)
            return rule

        return register

    def _check_kernel(self, kernel: Kernel) -> None:
        positional, attributes = parameters_of(kernel)
        defaults = getattr(kernel, "__kwdefaults__", None) or {}
        others = [name for name, default in defaults.items() if self.attributes.get(name, default) != default]
        inputs = ("*",) if self.is_variadic else self.inputs
        if positional != ("xp", *inputs) or set(attributes) != set(self.attributes) or others:
            raise RegistrationError(
                f"op {self.name}: kernel {kernel.__name__} takes {_listed(positional, attributes)} and must take "
                f"{_listed(('xp', *inputs), self.attributes)} as the op does"
                f"{f', with the same default of {others[0]}' if others else ''}"
            )

    def _check_gradient_rule(self, rule: Rule, kind: str, first: str) -> None:
        needs, attributes = parameters_of(rule)
        where = f"op {self.name}: {kind} rule {rule.__name__}"
        if not needs or needs[0] != first:
            raise RegistrationError(
                f"{where}: its first parameter must be {first!r}, got {needs[0] if needs else 'none'!r}"
            )
        known = [*self.inputs, "out", *(f"{name}_{fact}" for name in (*self.inputs, "out") for fact in _FACTS)]
        known += ["place"] if self.is_variadic else []
        for need in needs[1:]:
            if need not in known:
                raise RegistrationError(f"{where}: no value {need!r} to save; a rule may name {', '.join(known)}")
        self._check_attributes(where, attributes)

    def _check_operand_rule(self, rule: Rule, kind: str) -> None:
        operands, attributes = parameters_of(rule)
        where = f"op {self.name}: {kind} {rule.__name__}"
        if operands not in (self.inputs, ("*",)):
            raise RegistrationError(
                f"{where}: its positional parameters must be the inputs ({', '.join(self.inputs)}), got ({', '.join(operands)})"
            )
        self._check_attributes(where, attributes)

    def _check_attributes(self, where: str, attributes: Sequence[str]) -> None:
        for attribute in attributes:
            if attribute not in self.attributes:
                known = ", ".join(self.attributes) or "none"
                raise RegistrationError(f"{where}: no attribute {attribute!r}; the op's attributes are: {known}")

    # ------------------------------------------------------------------------------------------------------ asking rules

    def vjp_rule(self, name: str) -> Rule:
        """The VJP rule of an input; where there is none, a function that says so when backward meets the op."""
        return self.vjp_rules.get(_input_of(name)) or self._missing_rule(name, "vjp", "backward")

    def jvp_rule(self, name: str) -> Rule:
        """The JVP rule of an input; where there is none, a function that says so when forward mode meets the op."""
        return self.jvp_rules.get(_input_of(name)) or self._missing_rule(name, "jvp", "forward mode")

    def jvp_needs(self, name: str) -> tuple[str, ...]:
        """The values that an input's JVP rule names, in the order of its parameters."""
        return self._read_by("jvp", name)[0]

    def vjp_needs(self, name: str) -> tuple[str, ...]:
        """The saved values that an input's VJP rule names, in the order of its parameters."""
        return self._read_by("vjp", name)[0]

    def jvp_attributes(self, name: str) -> tuple[str, ...]:
        """The attributes that an input's JVP rule names."""
        return self._read_by("jvp", name)[1]

    def vjp_attributes(self, name: str) -> tuple[str, ...]:
        """The attributes that an input's VJP rule names."""
        return self._read_by("vjp", name)[1]

    def _read_by(self, kind: Literal["vjp", "jvp"], name: str) -> Parameters:
        """The values and the attributes that an input's rule names; none where there is no rule."""
        known = self._reads  # a change in another thread puts another dict in its place
        if (kind, name) not in known:
            rule = (self.vjp_rules if kind == "vjp" else self.jvp_rules).get(_input_of(name))
            values, attributes = parameters_of(rule) if rule else ((), ())
            known[kind, name] = values[1:], attributes
        return known[kind, name]

    def names_saved(self, count: int) -> tuple[str, ...]:
        """The names of what a call with ``count`` operands saves, in order."""
        return self.per_operand(self.saved_names, count)

    def wanted_for(self, flowing: tuple[str, ...], count: int) -> frozenset[str]:
        """What the rules of these operands, among ``count``, read; asked at each recorded call, so it is remembered."""
        known = self._wanted
        if (flowing, count) not in known:
            known[flowing, count] = frozenset(
                need for name in flowing for need in self.per_operand(self.vjp_needs(name), count)
            )
        return known[flowing, count]

    def apply_jvp(self, place: int, tangent: Any, named: dict[str, Any], attributes: Mapping[str, Any]) -> Any:
        """One operand's part of the result's tangent."""
        name = self.inputs[0 if self.is_variadic else place]
        rule = self.jvp_rules.get(name)
        if rule is None:
            return self.jvp_rule(name)()
        needs, wanted = self._read_by("jvp", name)
        values = bindings.rule_values(self, needs, named, place, len(named) - 1)  # all operands, and out
        part = rule(tangent, *values, **{attribute: attributes[attribute] for attribute in wanted})
        if not hasattr(part, "shape"):
            bindings.refuse_part(rule, part)
        return part

    def apply_vjp(self, place: int, g: Any, named: dict[str, Any], attributes: Mapping[str, Any]) -> Any:
        """One operand's contribution from the result's cotangent; ``named`` has every operand and ``out``."""
        name = self.inputs[0 if self.is_variadic else place]
        values = bindings.rule_values(self, self.vjp_needs(name), named, place, len(named) - 1)
        wanted = {attribute: attributes[attribute] for attribute in self.vjp_attributes(name)}
        return self.vjp_rule(name)(g, *values, **wanted)

    def fit_tangent(self, tangent: Any, result: Any) -> Any:
        """A tangent in the result's shape and dtype: an operand that was broadcast has a smaller one."""
        if tangent.shape != result.shape:
            if not self.elementwise:
                raise ValueError(
                    f"its jvp rules give a tangent of shape {tangent.shape} for a result of shape {result.shape}"
                )
            tangent = registry["broadcast_to"].binding(tangent, shape=result.shape)
        return tangent if tangent.dtype == result.dtype else registry["astype"].binding(tangent, dtype=result.dtype)

    @property
    def has_shape_rule(self) -> bool:
        """Whether the op knows the shape of its result."""
        return self._shape_rule is not None

    @property
    def has_batch_rule(self) -> bool:
        """Whether the op knows how to run on stacks."""
        return self._batch_rule is not None

    def apply_batch_rule(self, stacks: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Run the op on stacks, by its batch rule."""
        assert self._batch_rule is not None
        wanted = {name: attributes[name] for name in self._batch_attributes} if attributes else {}
        return self._batch_rule(*stacks, **wanted)

    def operand_rule_name(self, kind: Literal["shape", "dtype"]) -> str:
        """The name of the function that is the shape or dtype rule."""
        rule = self._shape_rule if kind == "shape" else self._dtype_rule
        return getattr(rule, "__name__", "none")

    def operand_rule_source(self, kind: Literal["shape", "dtype"]) -> Source | None:
        """Where the shape or dtype rule is written."""
        return source_of(self._shape_rule if kind == "shape" else self._dtype_rule)

    def ask_shape_rule(self, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> PartialShape:
        """What the shape rule says. A size that it loses is None; where it loses the number of axes too, all is None."""
        if self._shape_rule is None:
            raise RegistrationError(
                f"op {self.name} has no shape rule; add one with {self.schema.decorator}.shape_rule"
            )
        answer = self._apply_operand_rule(self._shape_rule, shapes, attributes)
        return shape_said(self._shape_rule.__name__, answer)

    def infer_shape(self, shapes: Sequence[Shape], attributes: Mapping[str, Any], dtypes: Sequence[Any] = ()) -> Shape:
        """The result's shape from the operands' shapes, by the shape rule.

        Where the rule loses a dimension, the kernel runs once on zeros of the operands' ``dtypes``, or of float64.
        """
        said: Any = self.ask_shape_rule(shapes, attributes)
        if is_known(said):
            return said  # type: ignore[no-any-return]
        zeros = zeros_without_memory(shapes, dtypes or [np.dtype(np.float64)] * len(shapes))
        try:
            with events.silence(), np.errstate(all="ignore"):
                return np.shape(self.kernel_for("cpu", zeros)(np, *zeros, **attributes))
        except Exception as error:
            raise ValueError(
                f"shape rule {self.operand_rule_name('shape')} loses a dimension (it says {said}), and the kernel, which was "
                f"run on zeros to find it, stops with {type(error).__name__}: {error}; correct the shape rule"
            ) from error

    def infer_dtype(self, dtypes: Sequence[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
        """The result's dtype from the operands' dtypes (for a Python number the 0 of its type), by the dtype rule."""
        if self.declared is not None:
            self.declared.check_call(dtypes, attributes)
        dtype: np.dtype[Any] = np.dtype(self._apply_operand_rule(self._dtype_rule, dtypes, attributes))
        return dtype

    def _apply_operand_rule(self, rule: Rule, facts: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        wanted = parameters_of(rule)[1]
        return rule(*facts, **{attribute: attributes[attribute] for attribute in wanted})

    def sample_calls(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The registered samples: operands and attributes of calls that the generic checks run."""
        return [] if self._samples is None else [(tuple(operands), dict(rest)) for operands, rest in self._samples()]

    # ----------------------------------------------------------------------------------------------------------- dispatch

    @property
    def keeps_floating(self) -> bool:
        """Whether a floating input is known always to give a floating result."""
        return is_known_to_keep_floating(self._dtype_rule)

    def kernel_for(self, device: str, operands: Sequence[Any], tell: events.Receiver | None = None) -> Kernel:
        """The kernel for a device and the dtype of the first operand that has one, by ``dispatch.fallback_order``.

        Raises:
            OpError: there is none; the text lists the kernels that there are.
        """
        if tell is None and device == "cpu" and self._cpu_kernel is not None:
            return self._cpu_kernel
        dtype = next((operand.dtype for operand in operands if hasattr(operand, "dtype")), None)
        return choose(self.name, self.kernels, device, dtype, tell)

    def cpu_kernels(self) -> dict[Any, Kernel]:
        """The kernels for NumPy arrays by dtype, as dispatch chooses them; under None the one for all other dtypes."""
        dtypes = {dtype for device, dtype in self.kernels if device in ("cpu", "any")} | {None}
        found = {}
        for dtype in dtypes:
            try:
                found[dtype] = choose(self.name, self.kernels, "cpu", dtype)
            except OpError:  # a dtype without a kernel: the call itself says so
                continue
        return found

    def first_call(self, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
        """Complete the binding's code, then run the call that came first."""
        with events.silence():  # who listens to a computation hears the same at the first call as at the second
            self._finish_once()
        return self.binding(*operands, *attributes)

    def apply(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Call the binding with a list of operands, which is how a variadic op takes them and others do not."""
        return self.binding(operands, **attributes) if self.is_variadic else self.binding(*operands, **attributes)

    def finish(self) -> None:
        """Fix what the rules save, and generate the binding's code."""
        if self._shape_rule is None:
            raise RegistrationError(
                f"op {self.name} has no shape rule; add one with {self.schema.decorator}.shape_rule before using it"
            )
        wanted = {need for name in self.inputs for need in self.vjp_needs(name)}
        facts = [f"{name}_{fact}" for name in (*self.inputs, "out") for fact in _FACTS]
        # names keep their places, since calls that were recorded before a rule was replaced hold their values in that order
        known = self.saved_names
        self.saved_names += tuple(n for n in (*self.inputs, "out", *facts) if n in wanted and n not in known)
        kernels = self.cpu_kernels()
        self._cpu_kernel = kernels[None] if kernels.keys() == {None} else None
        had = None if self.pull == self._no_pull else known
        source = bindings.complete(self)
        if had is not None and had != self.saved_names:
            self.pull = partial(self._pull_of_kept, self.pull)
        if (tell := events.receiver()) is not None:
            tell(events.BindingGenerated(self.name, bindings.signature(self), self.saved_names, source))

    def _changed(self) -> None:
        """A rule or kernel is new: the next call or sweep generates the code again."""
        with registry.lock:
            registry.note_change()
            self._wanted = {}
            self._reads = {}
            if self.pull != self._no_pull:
                self.pull = self._first_pull
            self.binding.__code__ = self._unfinished_code

    def _finish_once(self) -> None:
        """``finish``, unless another thread has done so while this one came here."""
        with registry.lock:
            if self.binding.__code__ is self._unfinished_code:
                self.finish()

    # ------------------------------------------------------------------------------------------------------------ telling

    def _tell_schema(self) -> None:
        """Tell what the op takes, and the rules that nobody has to write."""
        tell, schema = events.receiver(), self.schema
        assert tell is not None
        texts = schema.input_texts(), schema.output_texts(), schema.attribute_texts()
        tell(events.SchemaRegistered(self.name, *texts, schema.source))
        if self._shape_rule is not None:
            self._tell_rule("shape rule", self._shape_rule, is_default=True)
        self._tell_rule("dtype rule", self._dtype_rule, is_default=True)

    def _tell_rule(self, kind: str, rule: Rule, argument: str = "", is_default: bool = False) -> None:
        if (tell := events.receiver()) is not None:
            reads, attributes = parameters_of(rule)
            if is_default or reads == ("*",):
                reads = self.inputs
            told = (self.name, kind, argument, rule.__name__, reads, attributes, is_default)
            tell(events.RuleRegistered(*told, source_of(rule)))

    def registered_again(self) -> Op:
        """A second op that is registered as this one is now, step by step and told, outside of the registry."""
        again = Op(self.schema, self.elementwise, sorted(self.constant_inputs), self.is_differentiable)
        if self._shape_rule not in (None, again._shape_rule):
            again.shape_rule(self._shape_rule)
        if self._dtype_rule != again._dtype_rule:
            again.dtype_rule(self._dtype_rule)
        for (device, dtype), kernel in self.kernels.items():
            again.kernel(device, dtype)(kernel)
        for kind, rules in (("vjp", self.vjp_rules), ("jvp", self.jvp_rules)):
            for name, rule in rules.items():
                getattr(again, kind)(name)(rule)
        if self._batch_rule is not None:
            again.batch_rule(self._batch_rule)
        again.finish()
        return again

    # ------------------------------------------------------------------------------------------------------------- errors

    def explained(self, error: Exception, operands: Sequence[Any], attributes: Mapping[str, Any]) -> OpError:
        """An error that names the op, its operands and what is wrong with them."""
        reason = str(error) or type(error).__name__
        try:
            shapes = [np.shape(o) if isinstance(o, (list, tuple)) else bindings.shape_of(o) for o in operands]
            self.ask_shape_rule(shapes, attributes)
            if all(hasattr(o, "dtype") or isinstance(o, (int, float)) for o in operands):
                self.infer_dtype([getattr(o, "dtype", o) for o in operands], attributes)
        except (TypeError, ValueError, IndexError) as from_rule:
            reason = str(from_rule)
        names = self.operand_names(len(operands))
        seen = [f"{name}: {_describe(operand)}" for name, operand in zip(names, operands, strict=False)]
        seen += [f"{key}={value!r}" for key, value in attributes.items()]
        return OpError(f"{self.name}({', '.join(seen)}): {reason}")

    def _missing_rule(self, name: str, kind: str, mode: str) -> Rule:
        def raise_missing(*values: Any, **_attributes: Any) -> Any:
            raise NotImplementedError(
                f"op {self.name} has no {kind} rule for its input {name!r}, so {mode} cannot pass through "
                f"{_which_call(self.name, values)}; add "
                f'{self.schema.decorator}.{kind}("{name}"), or use .detach() where no gradient is meant to flow'
            )

        return raise_missing

    def _first_pull(self, *arguments: Any) -> tuple[Any, ...]:
        """A sweep meets a call that was recorded before a rule was replaced."""
        with events.silence():
            self._finish_once()
        return self.pull(*arguments)

    def _pull_of_kept(self, pull: Any, g: Any, record: Record) -> Any:
        """``pull`` with a rule that reads more than calls kept that were recorded before it."""
        _, _, parents, _, _, *saved = record
        if unkept := self.names_saved(len(parents))[len(saved) :]:
            raise ValueError(
                f"op {self.name}: this call was recorded before a gradient rule was replaced, and kept no "
                f"{', '.join(unkept)}, which the new rule reads; compute it again"
            )
        return pull(g, record)

    def _no_pull(self, *_arguments: Any) -> tuple[Any, ...]:
        raise AssertionError(f"op {self.name} was recorded before its binding was complete")


def _which_call(name: str, values: Sequence[Any]) -> str:
    """Which call of an op a sweep has come to, as far as is known: the shape of its result, and its line if that was noted."""
    if not values:
        return "it"
    now = events.context.get()
    source = None
    if now is not None and now.guard is not None:
        source = now.guard.sources.get(now.guard.inside_rules_of)
    elif now is not None and now.recorder is not None and now.origin is not None:
        source = now.recorder.nodes[now.origin].source
    shape = bindings.shape_of(values[0])
    return f"the call of {name} that gave shape {shape} " + (
        f"in {source}" if source else "(ad.anomaly_mode tells its line)"
    )


def _listed(positional: Sequence[str], attributes: Collection[str]) -> str:
    """Parameters as they are written: ``(xp, x, *, alpha)``."""
    return f"({', '.join([*positional, *(['*', *attributes] if attributes else [])])})"


def _input_of(operand: str) -> str:
    """The input that an operand's name belongs to: ``arrays`` of ``arrays[1]``."""
    return operand.partition("[")[0]


def _describe(operand: Any) -> str:
    if hasattr(operand, "shape"):
        device = bindings.device_of(operand)
        return f"{operand.shape} {operand.dtype}" + ("" if device == "cpu" else f" on {device}")
    return repr(operand) if isinstance(operand, (int, float)) else type(operand).__name__


# ------------------------------------------------------------------------------------------------------- registering


@overload
def op(kernel: Kernel) -> Binding: ...
@overload
def op(
    *,
    types: str | None = None,
    elementwise: bool = False,
    constant_inputs: Sequence[str] = (),
    differentiable: bool = True,
    views: str | Sequence[str] = (),
) -> Callable[[Kernel], Binding]: ...


def op(
    kernel: Kernel | None = None,
    *,
    types: str | None = None,
    elementwise: bool = False,
    constant_inputs: Sequence[str] = (),
    differentiable: bool = True,
    views: str | Sequence[str] = (),
) -> Any:
    """Register a function as an op and return its binding, the function that users call.

    Args:
        kernel: ``kernel(xp, x, …, *, attribute=default)``: the computation for every array library ``xp``, arrays positional,
            attributes keyword-only. ``kernel(xp, *arrays, …)`` takes any number of inputs: users pass a list, a rule named
            for ``arrays`` serves each operand, and may name ``place``, the operand's number.
        types: of inputs and outputs, as in ``"x: T, y: T, b: T? -> low: T, high: T"``: a dtype (``float32``); ``float``,
            ``int`` or ``bool`` for every dtype of that kind; a capital letter for one dtype that several share; ``list(T)``
            for ``*arrays``; ``?`` for an input that may be None. They give the op its dtype rule, and a call with other
            dtypes is refused. With several outputs the kernel returns a tuple, and ``@<op>.<output>.vjp("x")`` hangs a rule
            on one of them.
        elementwise: the op works number by number with broadcasting; this gives it its shape rule.
        constant_inputs: inputs that no gradient flows to, such as a condition or indices.
        differentiable: False for an op whose result carries no gradient, such as a comparison.
        views: inputs whose memory the result may share, as a slice does; ``opcheck`` reports sharing that is not declared.

    Raises:
        RegistrationError: the schema or a rule is not usable; says why.

    >>> import autodiff_lab as ad
    >>> @ad.op
    ... def scaled_tanh(xp, x, *, alpha=1.0):
    ...     return alpha * xp.tanh(x)
    >>> @scaled_tanh.shape_rule
    ... def scaled_tanh_shape(x):
    ...     return x
    >>> @scaled_tanh.vjp
    ... def scaled_tanh_vjp(g, out, *, alpha):
    ...     return g * (alpha - out * out / alpha)
    >>> float(ad.grad(lambda x: scaled_tanh(x, alpha=2.0))(0.0))
    2.0
    """
    if isinstance(kernel, str):
        raise RegistrationError(f"op: types are named, as in @op(types={kernel!r})")
    if kernel is None:
        return lambda later: _register(later, types, elementwise, constant_inputs, differentiable, views)
    return _register(kernel, types, elementwise, constant_inputs, differentiable, views)


def _register(kernel: Kernel, types: str | None, *flags: Any) -> Binding:
    declared = None
    if types is not None:
        from .declarations import (
            declaration,
        )  # here, because importing it costs 3 ms and the library's own ops have none

        declared = declaration(kernel.__name__, types)
    new = define(schema_of(kernel, declared), *flags)
    new.kernel("any")(kernel)
    registry.add(new)
    binding: Binding = new.binding
    return binding


def define(
    schema: Schema,
    elementwise: bool = False,
    constant_inputs: Sequence[str] = (),
    differentiable: bool = True,
    views: str | Sequence[str] = (),
) -> Op | Family:
    """A new op, or the ops of a family, without kernels and not yet in the registry."""
    registry.admit(schema)
    if unknown := set(constant_inputs) - set(schema.inputs):
        raise RegistrationError(f"op {schema.name}: constant inputs {sorted(unknown)} are not among {schema.inputs}")
    seen = [views] if isinstance(views, str) else views
    if unknown := set(seen) - set(schema.inputs):
        raise RegistrationError(f"op {schema.name}: views of {sorted(unknown)}, which are not among {schema.inputs}")
    if not is_family(schema):
        return Op(schema, elementwise, constant_inputs, differentiable, seen)
    members = {
        member: Op(
            one,
            elementwise,
            [name for name in constant_inputs if name in one.inputs],
            differentiable,
            [name for name in seen if name in one.inputs],
        )
        for member, one in member_schemas(schema).items()
    }
    outputs = tuple(dict.fromkeys(output for output, _ in members))
    return Family(schema, members, outputs, len(outputs))
