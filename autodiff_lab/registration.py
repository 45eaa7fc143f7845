"""The second spelling of registering: a chain that declares an op piece by piece, with contexts, as large frameworks do."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import events
from .backend import device_of
from .declarations import Argument, Attribute, Declaration, argument, attribute
from .families import Family
from .graph import Source
from .operand_rules import Shape
from .operators import Op, define, registry
from .signatures import REQUIRED, RegistrationError, Schema, check_name

KEPT_KERNELS = 256  # for each creator; an attribute that changes with every call must not fill the memory


@dataclass(frozen=True)
class Context:
    """What is known of a call before it runs. Inputs are asked for by name or by number."""

    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def _of_input(self, which: str | int, facts: Sequence[Any]) -> Any:
        if which in self.inputs:
            return facts[self.inputs.index(str(which))]
        if isinstance(which, int) and 0 <= which < len(facts):
            return facts[which]
        raise ValueError(f"op {self.op} has no input {which!r}; it has {', '.join(self.inputs)}, numbered from 0")


@dataclass(frozen=True)
class ShapeContext(Context):
    """What a shape function is given: the shape of each input, and the attributes. It never sees data."""

    shapes: tuple[Shape, ...]

    def input_shape(self, which: str | int) -> Shape:
        """The shape of an input; None for an optional one that was left out."""
        shape: Shape = self._of_input(which, self.shapes)
        return shape


@dataclass(frozen=True)
class KernelContext(Context):
    """What a kernel creator is given: device, dtypes and attributes that its kernel will run with, and the array library."""

    device: str
    dtypes: tuple[Any, ...]
    xp: Any

    def input_dtype(self, which: str | int) -> Any:
        """The dtype of an input; None for a Python number, or for an optional input that was left out."""
        return self._of_input(which, self.dtypes)


class _ContextFunction:
    """A function of a context, in the place of a rule or kernel with parameters."""

    def __init__(self, function: Callable[[Any], Any], schema: Schema, first: tuple[str, ...] = ()) -> None:
        if not callable(function):
            raise RegistrationError(f"op {schema.name}: expected a function of a context, got {function!r}")
        self.__name__: str = getattr(function, "__name__", type(function).__name__)  # a partial has none
        self.__wrapped__ = function
        self._schema = schema
        self.parameters = (*first, *(("*",) if schema.is_variadic else schema.inputs)), tuple(schema.attributes)

    def _inputs(self, count: int) -> tuple[str, ...]:
        schema = self._schema
        return tuple(f"{schema.inputs[0]}[{i}]" for i in range(count)) if schema.is_variadic else schema.inputs


class ShapeFunction(_ContextFunction):
    """A shape function of a ``ShapeContext``, as a shape rule."""

    def __call__(self, *shapes: Shape, **attributes: Any) -> Any:
        """The result's shape."""
        return self.__wrapped__(ShapeContext(self._schema.name, self._inputs(len(shapes)), attributes, shapes))


class KernelCreator(_ContextFunction):
    """A function from a ``KernelContext`` to a kernel over arrays, as a kernel: what it made is kept for device, dtypes and
    attributes.
    """

    def __init__(self, function: Callable[[KernelContext], Callable[..., Any]], schema: Schema) -> None:
        super().__init__(function, schema, ("xp",))
        self.kept: dict[Any, Callable[..., Any]] = {}

    def __call__(self, xp: Any, *arrays: Any, **attributes: Any) -> Any:
        """Run the kernel that belongs to the arrays and attributes."""
        return self.kernel_for(xp, arrays, attributes)(*arrays)

    def kernel_for(
        self, xp: Any, arrays: Sequence[Any], attributes: Mapping[str, Any], tell: events.Receiver | None = None
    ) -> Callable[..., Any]:
        """The kernel for arrays and attributes, made now or before."""
        device = next((device_of(array) for array in arrays if hasattr(array, "dtype")), "cpu")
        dtypes = tuple(getattr(array, "dtype", None) for array in arrays)
        key = (device, dtypes, tuple((name, _key(value)) for name, value in attributes.items()))
        kernel = self.kept.get(key)
        if tell is not None:
            tell(self._event(device, dtypes, attributes, kernel is not None))
        if kernel is None:
            context = KernelContext(self._schema.name, self._inputs(len(arrays)), dict(attributes), device, dtypes, xp)
            kernel = self._created(context)
            if len(self.kept) >= KEPT_KERNELS:
                self.kept.pop(next(iter(self.kept)), None)
            self.kept[key] = kernel
        return kernel

    def _created(self, context: KernelContext) -> Callable[..., Any]:
        kernel: Callable[..., Any] = self.__wrapped__(context)
        if not callable(kernel):
            raise TypeError(
                f"kernel creator {self.__name__} gave {kernel!r}; return a function of {', '.join(context.inputs)}"
            )
        return kernel

    def _event(
        self, device: str, dtypes: Sequence[Any], attributes: Mapping[str, Any], kept: bool
    ) -> events.KernelCreated:
        texts = tuple("number" if dtype is None else str(dtype) for dtype in dtypes)
        return events.KernelCreated(self._schema.name, self.__name__, device, texts, dict(attributes), kept)


def _key(value: Any) -> Any:
    """An attribute as a part of a key: equal only where kernels made from it are the same.

    A number by its repr, because 0.0 and -0.0, or 1 and True, are equal and give different kernels; an array, whose repr is
    shortened, by its bytes.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.shape, value.dtype.str, value.tobytes()
    return tuple(map(_key, value)) if isinstance(value, tuple) else repr(value)


class Registration:
    """An op that is declared step by step; every method returns the registration, so that they form a chain.

    The op exists as soon as it has an input, an output, a shape function for every output and a kernel. Whoever asks for it
    before is told what is missing.
    """

    def __init__(self, name: str, module: str, source: Source) -> None:
        check_name(name)
        self.name = name
        self._inputs: list[Argument] = []
        self._outputs: list[Argument] = []
        self._attributes: list[tuple[Attribute, tuple[Any, ...]]] = []
        self._doc, self._differentiable, self._elementwise = "", True, False
        self._module, self._source = module, source
        self._definition: Op | Family | None = None
        registry.begin(Schema(name, ("x",), {}, module=module, definition=source), self._missing)

    def __repr__(self) -> str:
        return f"<registration of {self.name}: {self._missing() or 'complete'}>"

    def __call__(self, *arguments: Any, **attributes: Any) -> Any:
        """Call the op, as ``ops.<name>`` does."""
        if missing := self._missing():
            raise RegistrationError(
                f"op {self.name} is not registered yet, it has {missing}; go on with its register_op"
            )
        return self.definition.binding(*arguments, **attributes)

    # --------------------------------------------------------------------------------------------------- the schema

    def input(self, text: str) -> Registration:
        """An input and its type: ``x: float32``, ``x: T``, ``b: T?`` (optional), ``arrays: list(T)``."""
        self._still_open("input")
        self._inputs.append(argument(self.name, text))
        return self

    def output(self, text: str) -> Registration:
        """An output and its type, which gives its dtype."""
        self._still_open("output")
        self._outputs.append(argument(self.name, text))
        return self

    def attr(self, text: str) -> Registration:
        """An attribute with its type and, if it has one, its default: ``alpha: float = 1.0``."""
        self._still_open("attribute")
        self._attributes.append(attribute(self.name, text))
        return self

    def doc(self, text: str) -> Registration:
        """The docstring of the binding."""
        self._still_open("docstring")
        self._doc = inspect.cleandoc(text)
        return self

    def elementwise(self) -> Registration:
        """Say that the op works number by number with broadcasting, which gives it its shape rule."""
        self._still_open("mark")
        self._elementwise = True
        return self

    def not_differentiable(self) -> Registration:
        """Say that no gradient flows through the op: backward stops there without an error."""
        self._still_open("mark")
        self._differentiable = False
        return self

    # ----------------------------------------------------------------------------------------------------- the rules

    def shape_fn(self, function: Callable[[ShapeContext], Any], output: str | None = None) -> Registration:
        """How the result's shape follows: a function of a ``ShapeContext``. For every output, or for one of several."""
        self._part(output).shape_rule(ShapeFunction(function, self.definition.schema))
        return self._goes_on()

    def kernel_creator(
        self, function: Callable[[KernelContext], Callable[..., Any]], device: str = "any", dtype: Any = None
    ) -> Registration:
        """A function from a ``KernelContext`` to a kernel over arrays, for one kind of device, or ``any``.

        It is called once for each device, dtypes and attributes. A kernel of several outputs returns a tuple.
        """
        self.definition.kernel(device, dtype)(KernelCreator(function, self.definition.schema))
        return self._goes_on()

    def kernel(self, kernel: Callable[..., Any], device: str = "any", dtype: Any = None) -> Registration:
        """A kernel that needs no creator: ``kernel(xp, x, *, alpha)``."""
        self.definition.kernel(device, dtype)(kernel)
        return self._goes_on()

    def vjp(self, rule: Callable[..., Any], input: str | None = None, output: str | None = None) -> Registration:
        """The rule that turns the result's cotangent into one input's, as in ``@op.vjp("x")``."""
        part = self._part(output)
        _ = part.vjp(rule) if input is None else part.vjp(input)(rule)
        return self._goes_on()

    def jvp(self, rule: Callable[..., Any], input: str | None = None, output: str | None = None) -> Registration:
        """The rule that turns one input's tangent into the result's, as in ``@op.jvp("x")``."""
        part = self._part(output)
        _ = part.jvp(rule) if input is None else part.jvp(input)(rule)
        return self._goes_on()

    def samples(self, function: Callable[[], Any]) -> Registration:
        """Inputs for the generic checks: a function that gives a list of ``(operands, attributes)``."""
        self.definition.samples(function)
        return self._goes_on()

    # ----------------------------------------------------------------------------------------------------- the op

    @property
    def op(self) -> Op | Family:
        """The op, as a binding has it too."""
        return self.definition

    @property
    def definition(self) -> Op | Family:
        """The op, or the ops of a family, with the rules that they have so far. From now on the schema is fixed."""
        if self._definition is None:
            self._definition = define(self._schema(), self._elementwise, differentiable=self._differentiable)
        return self._definition

    def _schema(self) -> Schema:
        attributes = tuple(one for one, _ in self._attributes)
        declared = Declaration(tuple(self._inputs), tuple(self._outputs), attributes)
        declared.check(self.name)
        defaults = {one.name: default[0] if default else REQUIRED for one, default in self._attributes}
        ordered = dict(sorted(defaults.items(), key=lambda item: item[1] is not REQUIRED))
        inputs = tuple(one.name for one in self._inputs)
        is_variadic = self._inputs[0].is_list
        return Schema(self.name, inputs, ordered, is_variadic, declared, self._doc, self._module, self._source)

    def _part(self, output: str | None) -> Any:
        """What a rule hangs on: the op, or one output of several."""
        if output is None:
            return self.definition.binding
        part = getattr(self.definition.binding, output, None)
        if len(self._outputs) < 2 or output not in {one.name for one in self._outputs}:
            known = ", ".join(one.name for one in self._outputs)
            raise RegistrationError(f"op {self.name}: no output {output!r} among several; it has {known}")
        return part

    def _still_open(self, what: str) -> None:
        if self._definition is not None:
            raise RegistrationError(
                f"op {self.name}: every {what} stands before the first rule or kernel, which was checked against the schema"
            )

    def _missing(self) -> str:
        """What the op lacks before it can be used, in words; "" where it is complete."""
        members = () if self._definition is None else self._definition.members
        lacks = {
            "no input": not self._inputs,
            "no output": not self._outputs,
            "no shape function (.shape_fn, or .elementwise)": not members
            or not all(op.has_shape_rule for op in members),
            "no kernel (.kernel_creator or .kernel)": not members or not all(op.kernels for op in members),
        }
        return ", ".join(what for what, is_missing in lacks.items() if is_missing)

    def _goes_on(self) -> Registration:
        if not self._missing() and not registry.has(self.definition):
            registry.add(self.definition)
        return self


def register_op(name: str) -> Registration:
    """Register an op by a chain: ``register_op("MyCustomOp").input("x: float32").output("y: float32")…``.

    Raises:
        RegistrationError: the name is taken by another module, or a step does not fit those before; says why.

    >>> import autodiff_lab as ad
    >>> def double(context):
    ...     return lambda x: context.attributes["factor"] * x
    >>> _ = (
    ...     ad.register_op("Scaled")
    ...     .input("x: float32")
    ...     .output("y: float32")
    ...     .attr("factor: float = 2.0")
    ...     .shape_fn(lambda context: context.input_shape("x"))
    ...     .kernel_creator(double)
    ...     .vjp(lambda g, *, factor: factor * g)
    ... )
    >>> x = ad.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    >>> ad.ops.Scaled(x, factor=3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.], dtype=float32)
    """
    frame = sys._getframe(1)
    function = frame.f_code.co_name
    file, line = frame.f_code.co_filename, frame.f_lineno
    place = Source(file, line, function, linecache.getline(file, line).strip())
    return Registration(name, frame.f_globals.get("__name__", ""), place)
