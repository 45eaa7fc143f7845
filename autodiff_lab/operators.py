"""Op, its rules, the registry: what a framework knows about an operation, and how it is told."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol, overload

import numpy as np

from . import bindings
from .backend import Array
from .bindings import OpError

Kernel = Callable[..., Array]
Rule = Callable[..., Any]
Shape = tuple[int, ...]

REQUIRED = inspect.Parameter.empty
_FACTS = ("shape", "dtype")


class RegistrationError(TypeError):
    """An op or a rule cannot be registered as it is written; the text names the op, the rule and the next step."""


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

    * ``vjp``: ``g`` first, then any of the inputs, ``out``, and ``<input>_shape`` or ``<input>_dtype`` where that is
      enough; attributes keyword-only. Returns the input's cotangent; where an elementwise op broadcast, the sum over the
      broadcast axes is taken afterwards.
    * ``jvp``: ``d<input>`` first, then as above. Returns its part of the result's tangent.
    * ``shape_rule``, ``dtype_rule``: one shape or dtype per input, attributes keyword-only. They never see data. A Python
      number has shape ``()``; a dtype rule is given the 0 of its type.
    """

    def __init__(self, kernel: Kernel, elementwise: bool, constant_inputs: Sequence[str], differentiable: bool) -> None:
        self.name = kernel.__name__
        self.module = kernel.__module__
        self.doc = inspect.getdoc(kernel) or ""
        self.inputs, self.attributes = _schema(kernel)
        self.is_variadic = "*" in _parameters_of(kernel)[0]
        self.elementwise = elementwise
        self.is_differentiable = differentiable
        self.constant_inputs = frozenset(constant_inputs)
        if unknown := self.constant_inputs - set(self.inputs):
            raise RegistrationError(f"op {self.name}: constant inputs {sorted(unknown)} are not among {self.inputs}")
        self.kernels: dict[tuple[str, Any], Kernel] = {("any", None): kernel}
        self.vjp_rules: dict[str, Rule] = {}
        self.jvp_rules: dict[str, Rule] = {}
        self._shape_rule: Rule | None = broadcast_shape if elementwise else None
        self._dtype_rule: Rule = result_dtype
        self._batch_rule: Rule | None = None
        self._samples: Callable[[], Any] | None = None
        self.saved_names: tuple[str, ...] = ()  # what the rules read, in the order in which it is saved
        self.pull: Callable[..., tuple[Any, ...]] = self._no_pull
        self.binding = bindings.new_binding(self)
        self._unfinished_code = self.binding.__code__

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join((*self.inputs, *self.attributes))})>"

    def operand_names(self, count: int) -> tuple[str, ...]:
        """A name for each of ``count`` operands: the inputs, or ``arrays[0]``, ``arrays[1]``, … of a variadic op."""
        return tuple(f"{self.inputs[0]}[{place}]" for place in range(count)) if self.is_variadic else self.inputs

    def per_operand(self, names: Sequence[str], count: int) -> tuple[str, ...]:
        """Names that a rule reads, where a variadic op's ``arrays`` and ``arrays_shape`` stand for those of each operand."""
        if not self.is_variadic:
            return tuple(names)
        operands = self.operand_names(count)
        return tuple(
            f"{operand}{name[len(self.inputs[0]) :]}"
            for name in names
            for operand in (operands if name.startswith(self.inputs[0]) else [""])
            if name != "place"
        )

    @property
    def flowing_inputs(self) -> tuple[str, ...]:
        """The inputs that gradients flow to."""
        return tuple(name for name in self.inputs if name not in self.constant_inputs)

    def is_required(self, attribute: str) -> bool:
        """Whether an attribute has no default."""
        return self.attributes[attribute] is REQUIRED

    # ------------------------------------------------------------------------------------------------- registering rules

    def shape_rule(self, rule: Rule) -> Rule:
        """Register how the result's shape follows from the inputs' shapes."""
        self._check_operand_rule(rule, "shape rule")
        self._shape_rule = rule
        return rule

    def dtype_rule(self, rule: Rule) -> Rule:
        """Register how the result's dtype follows from the inputs' dtypes; NumPy's result type by default."""
        self._check_operand_rule(rule, "dtype rule")
        self._dtype_rule = rule
        return rule

    def batch_rule(self, rule: Rule) -> Rule:
        """Register how the op runs on stacks: every operand has a leading axis of the batch's size or 1, as has the result.

        Optional: without it a loop over the batch gives the same numbers.
        """
        self._check_operand_rule(rule, "batch rule")
        self._batch_rule = rule
        return rule

    def vjp(self, which: Rule | str) -> Any:
        """Register the rule that turns the result's cotangent into one input's: ``@op.vjp`` or ``@op.vjp("x")``."""
        return self._gradient_rule(which, "vjp", self.vjp_rules)

    def jvp(self, which: Rule | str) -> Any:
        """Register the rule that turns one input's tangent into the result's: ``@op.jvp`` or ``@op.jvp("x")``."""
        return self._gradient_rule(which, "jvp", self.jvp_rules)

    def kernel(self, device: str, dtype: Any = None) -> Callable[[Kernel], Kernel]:
        """Register a better kernel for one kind of device (``cpu``, ``cuda``) and, if given, one dtype of the first input."""
        if device not in ("cpu", "cuda"):
            raise RegistrationError(f"op {self.name}: no device kind {device!r}; a kernel is for 'cpu' or 'cuda'")
        key = (device, None if dtype is None else np.dtype(dtype))

        def register(kernel: Kernel) -> Kernel:
            if _schema(kernel) != (self.inputs, self.attributes):
                raise RegistrationError(
                    f"op {self.name}: kernel {kernel.__name__} must take (xp, {', '.join(self.inputs)}"
                    f"{', *, ' if self.attributes else ''}{', '.join(self.attributes)}) as the first kernel does"
                )
            self.kernels[key] = kernel
            self._changed()
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
            return rule

        return register

    def _check_gradient_rule(self, rule: Rule, kind: str, first: str) -> None:
        needs, attributes = _parameters_of(rule)
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
        operands, attributes = _parameters_of(rule)
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
        rule = self.jvp_rules.get(_input_of(name))
        return _parameters_of(rule)[0][1:] if rule else ()

    def vjp_needs(self, name: str) -> tuple[str, ...]:
        """The saved values that an input's VJP rule names, in the order of its parameters."""
        rule = self.vjp_rules.get(_input_of(name))
        return _parameters_of(rule)[0][1:] if rule else ()

    def vjp_attributes(self, name: str) -> tuple[str, ...]:
        """The attributes that an input's VJP rule names."""
        rule = self.vjp_rules.get(name)
        return _parameters_of(rule)[1] if rule else ()

    def names_saved(self, count: int) -> tuple[str, ...]:
        """The names of what a call with ``count`` operands saves, in order."""
        return self.per_operand(self.saved_names, count)

    def apply_jvp(self, place: int, tangent: Any, named: dict[str, Any], attributes: Mapping[str, Any]) -> Any:
        """One operand's part of the result's tangent."""
        name = self.inputs[0 if self.is_variadic else place]
        rule = self.jvp_rule(name)
        if name not in self.jvp_rules:
            return rule()
        needs, wanted = _parameters_of(rule)
        values = bindings.rule_values(self, needs[1:], named, place, len(named) - 1)  # all operands, and out
        return rule(tangent, *values, **{attribute: attributes[attribute] for attribute in wanted})

    def fit_tangent(self, tangent: Any, result: Any) -> Any:
        """A tangent in the result's shape and dtype: an operand that was broadcast has a smaller one."""
        if self.elementwise and tangent.shape != result.shape:
            tangent = registry["broadcast_to"].binding(tangent, shape=result.shape)
        return tangent if tangent.dtype == result.dtype else registry["astype"].binding(tangent, dtype=result.dtype)

    @property
    def has_batch_rule(self) -> bool:
        """Whether the op knows how to run on stacks."""
        return self._batch_rule is not None

    def apply_batch_rule(self, stacks: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Run the op on stacks, by its batch rule."""
        assert self._batch_rule is not None
        return self._apply_operand_rule(self._batch_rule, stacks, attributes)

    def infer_shape(self, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        """The result's shape from the operands' shapes, by the shape rule."""
        if self._shape_rule is None:
            raise RegistrationError(f"op {self.name} has no shape rule; add one with @{self.name}.shape_rule")
        return tuple(self._apply_operand_rule(self._shape_rule, shapes, attributes))

    def infer_dtype(self, dtypes: Sequence[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
        """The result's dtype from the operands' dtypes (for a Python number the 0 of its type), by the dtype rule."""
        dtype: np.dtype[Any] = np.dtype(self._apply_operand_rule(self._dtype_rule, dtypes, attributes))
        return dtype

    def _apply_operand_rule(self, rule: Rule, facts: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        wanted = _parameters_of(rule)[1]
        return rule(*facts, **{attribute: attributes[attribute] for attribute in wanted})

    def sample_calls(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The registered samples: operands and attributes of calls that the generic checks run."""
        return [] if self._samples is None else [(tuple(operands), dict(rest)) for operands, rest in self._samples()]

    # ----------------------------------------------------------------------------------------------------------- dispatch

    @property
    def keeps_floating(self) -> bool:
        """Whether a floating input always gives a floating result."""
        return self._dtype_rule in (result_dtype, floating_dtype, function_dtype)

    @property
    def has_one_kernel_on_cpu(self) -> bool:
        """Whether NumPy arrays of every dtype go to the same kernel, the one for every library."""
        return not any(device == "cpu" for device, _ in self.kernels)

    def kernel_for(self, device: str, operands: Sequence[Any]) -> Kernel:
        """The kernel for a device and the first operand's dtype; else for the device; else the one for every library."""
        if len(self.kernels) == 1:
            return self.kernels["any", None]
        kind = device.partition(":")[0]
        dtype = operands[0].dtype if len(operands) and hasattr(operands[0], "dtype") else None
        for key in ((kind, dtype), (kind, None), ("any", None)):
            if key in self.kernels:
                return self.kernels[key]
        raise AssertionError("every op has a kernel for any library")

    def first_call(self, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
        """Complete the binding's code, then run the call that came first."""
        self.finish()
        return self.binding(*operands, *attributes)

    def apply(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Call the binding with a list of operands, which is how a variadic op takes them and others do not."""
        return self.binding(operands, **attributes) if self.is_variadic else self.binding(*operands, **attributes)

    def finish(self) -> None:
        """Fix what the rules save, and generate the binding's code."""
        if self._shape_rule is None:
            raise RegistrationError(
                f"op {self.name} has no shape rule; add one with @{self.name}.shape_rule before using it"
            )
        wanted = {need for name in self.inputs for need in self.vjp_needs(name)}
        facts = [f"{name}_{fact}" for name in (*self.inputs, "out") for fact in _FACTS]
        self.saved_names = tuple(name for name in (*self.inputs, "out", *facts) if name in wanted)
        bindings.complete(self)

    def _changed(self) -> None:
        """A rule or kernel is new: the next call generates the code again."""
        self.binding.__code__ = self._unfinished_code

    # ------------------------------------------------------------------------------------------------------------- errors

    def explained(self, error: Exception, operands: Sequence[Any], attributes: Mapping[str, Any]) -> OpError:
        """An error that names the op, its operands and what is wrong with them."""
        reason = str(error)
        try:
            shapes = [np.shape(o) if isinstance(o, (list, tuple)) else bindings.shape_of(o) for o in operands]
            self.infer_shape(shapes, attributes)
        except (TypeError, ValueError, IndexError) as from_rule:
            reason = str(from_rule)
        names = self.operand_names(len(operands))
        seen = [f"{name}: {_describe(operand)}" for name, operand in zip(names, operands, strict=False)]
        seen += [f"{key}={value!r}" for key, value in attributes.items()]
        return OpError(f"{self.name}({', '.join(seen)}): {reason}")

    def _missing_rule(self, name: str, kind: str, mode: str) -> Rule:
        def raise_missing(*_values: Any, **_attributes: Any) -> Any:
            raise NotImplementedError(
                f"op {self.name} has no {kind} rule for its input {name!r}, so {mode} cannot pass through it; add "
                f'@{self.name}.{kind}("{name}"), or use .detach() where no gradient is meant to flow'
            )

        return raise_missing

    def _no_pull(self, *_arguments: Any) -> tuple[Any, ...]:
        raise AssertionError(f"op {self.name} was recorded before its binding was complete")


def _schema(kernel: Kernel) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Inputs and attributes (with defaults) from a kernel's parameters ``(xp, x, y, *, axis=None)``."""
    if not kernel.__name__.isidentifier():
        raise RegistrationError(
            f"an op is named after its function, and {kernel.__name__} is no name; write it with def"
        )
    where = f"op {kernel.__name__}"
    code: CodeType = kernel.__code__
    positional, attributes = _parameters_of(kernel)
    starred = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if "*" in positional else ""
    if positional[:1] != ("xp",):
        raise RegistrationError(
            f"{where}: the kernel's first parameter must be 'xp', the array library it computes with"
        )
    if code.co_flags & inspect.CO_VARKEYWORDS:
        raise RegistrationError(f"{where}: **options have no names that rules could use; write every attribute out")
    if starred and len(positional) > 2:
        raise RegistrationError(f"{where}: a variable number of inputs (*{starred}) stands alone after xp")
    if len(positional) == 1:
        raise RegistrationError(f"{where}: it has no inputs; arrays come after xp, attributes after '*'")
    if kernel.__defaults__:
        raise RegistrationError(f"{where}: input {positional[-1]!r} has a default; put '*' before attributes")
    inputs = (starred,) if starred else positional[1:]
    for name in (*inputs, *attributes):
        if name.startswith("_") or name in ("g", "out") or keyword.iskeyword(name):
            raise RegistrationError(f"{where}: the name {name!r} is reserved; choose another")
    defaults = kernel.__kwdefaults__ or {}
    ordered = sorted(attributes, key=lambda name: name in defaults)
    return inputs, {name: defaults.get(name, REQUIRED) for name in ordered}


def _parameters_of(rule: Rule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a rule's positional parameters (``*`` for a variable number) and of its keyword-only ones.

    Read from the code object: ``inspect.signature`` would take a third of the library's import.
    """
    if not hasattr(rule, "__code__"):
        raise RegistrationError(
            f"{rule!r} is not a plain function; write it with def, so that its parameters have names"
        )
    code: CodeType = rule.__code__
    split, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    starred = ("*",) if code.co_flags & inspect.CO_VARARGS else ()
    return (*code.co_varnames[:split], *starred), code.co_varnames[split:end]


def _input_of(operand: str) -> str:
    """The input that an operand's name belongs to: ``arrays`` of ``arrays[1]``."""
    return operand.partition("[")[0]


def _describe(operand: Any) -> str:
    if hasattr(operand, "shape"):
        return f"{operand.shape} {operand.dtype}"
    return repr(operand) if isinstance(operand, (int, float)) else type(operand).__name__


# ------------------------------------------------------------------------------------------------------ shared rules


def broadcast_shape(*shapes: Shape) -> Shape:
    """The shape that the operands of an elementwise op broadcast to."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise ValueError(
            f"the shapes {text} do not broadcast: counted from the right, sizes must be equal or 1; reshape one of them"
        ) from None


def result_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type: the default dtype rule."""
    return np.dtype(np.result_type(*dtypes))


def floating_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type, where whole numbers and truth values become float64: for exp, division and the like."""
    found = np.result_type(*dtypes)
    return found if found.kind == "f" else np.dtype(np.float64)


def function_dtype(*dtypes: Any) -> np.dtype[Any]:
    """NumPy's result type for sin, sqrt and their like: whole numbers of 8 and 16 bits become half and single precision."""
    found = np.result_type(np.result_type(*dtypes))  # twice, so that a Python number counts with its own width
    return found if found.kind == "f" else np.result_type(found, np.float16)


def boolean_dtype(*_dtypes: Any) -> np.dtype[Any]:
    """Truth values, whatever the operands are: for comparisons."""
    return np.dtype(np.bool_)


# ---------------------------------------------------------------------------------------------------------- registry


class Registry(Mapping[str, Op]):
    """Every op by name.

    >>> import autodiff_lab as ad
    >>> ad.registry["mul"]
    <op mul(x, y)>
    """

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}

    def add(self, op: Op) -> None:
        """Register an op. The module that defined a name may define it again, as when a notebook cell is run twice."""
        old = self._ops.get(op.name)
        if old is not None and old.module != op.module:
            raise RegistrationError(
                f"op {op.name}: the name is taken by module {old.module}; choose another name in {op.module or 'this code'}"
            )
        self._ops[op.name] = op

    def __getitem__(self, name: str) -> Op:
        if name not in self._ops:
            raise KeyError(unknown_op(name, self._ops))
        return self._ops[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def __contains__(self, name: object) -> bool:
        return name in self._ops


registry = Registry()


def unknown_op(name: str, known: Collection[str]) -> str:
    """The text of the error that an unknown name deserves: what is near to it, and where all are listed."""
    from difflib import get_close_matches  # here, because importing it costs 1 ms

    near = get_close_matches(name, known, cutoff=0.5)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"no op named {name!r}; {meant}dir(ops) lists all {len(known)}"


@overload
def op(kernel: Kernel) -> Binding: ...
@overload
def op(
    *, elementwise: bool = False, constant_inputs: Sequence[str] = (), differentiable: bool = True
) -> Callable[[Kernel], Binding]: ...


def op(
    kernel: Kernel | None = None,
    *,
    elementwise: bool = False,
    constant_inputs: Sequence[str] = (),
    differentiable: bool = True,
) -> Any:
    """Register a function as an op and return its binding, the function that users call.

    Args:
        kernel: ``kernel(xp, x, …, *, attribute=default)``: the computation for every array library ``xp``, arrays positional,
            attributes keyword-only. ``kernel(xp, *arrays, …)`` takes any number of inputs: users pass a list, a rule named
            for ``arrays`` serves each operand, and may name ``place``, the operand's number.
        elementwise: the op works number by number with broadcasting; this gives it its shape rule.
        constant_inputs: inputs that no gradient flows to, such as a condition or indices.
        differentiable: False for an op whose result carries no gradient, such as a comparison.

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
    if kernel is None:
        return lambda later: _register(later, elementwise, constant_inputs, differentiable)
    return _register(kernel, elementwise, constant_inputs, differentiable)


def _register(kernel: Kernel, elementwise: bool, constant_inputs: Sequence[str], differentiable: bool) -> Binding:
    new = Op(kernel, elementwise, constant_inputs, differentiable)
    registry.add(new)
    binding: Any = new.binding
    binding.op = new
    for rule in ("shape_rule", "dtype_rule", "batch_rule", "vjp", "jvp", "kernel", "samples"):
        setattr(binding, rule, getattr(new, rule))
    return binding  # type: ignore[no-any-return]
