"""Declared types of inputs, outputs and attributes: ``x: float32``, ``b: T?``, ``arrays: list(T)``, ``alpha: float = 1.0``."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .signatures import RegistrationError

_DTYPES = {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
_KINDS = {"float": "f", "int": "iu", "bool": "b"}  # a type that stands for every dtype of some kinds
_NUMBERS: dict[type, str] = {bool: "fiub", int: "fiu", float: "f"}  # the kinds of dtype that a Python number may become
_ATTRIBUTES: dict[str, tuple[type, ...]] = {
    "float": (int, float, np.integer, np.floating), "int": (int, np.integer), "bool": (bool, np.bool_), "str": (str,),
    "tuple": (tuple,),
}  # fmt: skip
_ONE = re.compile(r"\s*(\w+)\s*(?::\s*(?:list\(\s*(\w+)\s*\)|(\w+))\s*(\?)?)?\s*")
_VARIABLE = re.compile(r"[A-Z]\d*")  # not Float32, which is a dtype mistyped
_ATTRIBUTE = re.compile(r"\s*(\w+)\s*:\s*(\w+)(\?)?\s*(?:=\s*(.+))?", re.DOTALL)


@dataclass(frozen=True)
class Argument:
    """One input or output. Its type is a dtype, ``float``, ``int`` or ``bool`` for any of that kind, a capital letter
    for one dtype that all arguments of that type share, or "" for anything.
    """

    name: str
    type: str = ""
    is_list: bool = False
    is_optional: bool = False

    def __str__(self) -> str:
        inner = f"list({self.type})" if self.is_list else self.type
        return (f"{self.name}: {inner}" if inner else self.name) + ("?" if self.is_optional else "")

    @property
    def is_variable(self) -> bool:
        """Whether the type is a type variable."""
        return self.type[:1].isupper()

    @property
    def has_gradient(self) -> bool:
        """Whether numbers of the type can be floating."""
        return self.type not in ("int", "bool") and not self.type.startswith(("int", "uint"))

    def accepts(self, dtype: np.dtype[Any]) -> bool:
        """Whether the type alone, without its relation to others, allows a dtype."""
        if self.type in _KINDS:
            return dtype.kind in _KINDS[self.type]
        return self.type not in _DTYPES or dtype == np.dtype(self.type)


@dataclass(frozen=True)
class Attribute:
    """One attribute: its type, and whether None is allowed too."""

    name: str
    kind: str
    is_optional: bool = False

    @property
    def type(self) -> str:
        """The type as it is written."""
        return self.kind + ("?" if self.is_optional else "")

    def check(self, value: Any) -> None:
        """Refuse a value of another type."""
        allowed = _ATTRIBUTES[self.kind]
        is_truth = isinstance(value, (bool, np.bool_)) and self.kind != "bool"
        if (value is None and self.is_optional) or (isinstance(value, allowed) and not is_truth):
            return
        raise TypeError(f"attribute {self.name} is declared {self.type} and is {value!r}, a {type(value).__name__}")

    def check_default(self, op: str, value: Any) -> None:
        """Refuse a default of another type."""
        try:
            self.check(value)
        except TypeError as error:
            raise RegistrationError(f"op {op}: the default of {error}") from None


def argument(op: str, text: str) -> Argument:
    """Read ``x: float32``, ``x: T``, ``x: T?``, ``arrays: list(T)`` or ``x``.

    >>> argument("scale", "x: float32?")
    Argument(name='x', type='float32', is_list=False, is_optional=True)
    """
    found = _ONE.fullmatch(text)
    if found is None:
        raise RegistrationError(
            f"op {op}: cannot read {text!r}; write a name and a type, as in 'x: float32', 'x: T?' or 'arrays: list(T)'"
        )
    name, of_list, plain, optional = found.groups()
    kind = of_list or plain or ""
    if kind and kind not in _DTYPES and kind not in _KINDS and not _VARIABLE.fullmatch(kind):
        raise RegistrationError(
            f"op {op}: {name} has the unknown type {kind!r}; write a dtype such as float32, one of float, int and bool for "
            "all dtypes of that kind, or a capital letter such as T for one dtype that several arguments share"
        )
    return Argument(name, kind, of_list is not None, optional is not None)


def attribute(op: str, text: str) -> tuple[Attribute, tuple[Any, ...]]:
    """Read ``alpha: float = 1.0``: the attribute, and its default in a tuple, which is empty where there is none."""
    found = _ATTRIBUTE.fullmatch(text)
    if found is None or found[2] not in _ATTRIBUTES:
        raise RegistrationError(
            f"op {op}: cannot read the attribute {text!r}; write a name, a type ({', '.join(_ATTRIBUTES)}, with ? where None "
            "is allowed) and, if there is one, a default, as in 'alpha: float = 1.0'"
        )
    declared = Attribute(found[1], found[2], found[3] is not None)
    if found[4] is None:
        return declared, ()
    try:
        default = ast.literal_eval(found[4].strip())
    except (ValueError, SyntaxError):
        raise RegistrationError(
            f"op {op}: cannot read the default of {text!r}; write a number, text or tuple"
        ) from None
    declared.check_default(op, default)
    return declared, (default,)


@dataclass(frozen=True)
class Declaration:
    """The declared inputs, outputs and attributes of one op."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    attributes: tuple[Attribute, ...] = ()

    @property
    def optional_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that may be left out."""
        return tuple(one.name for one in self.inputs if one.is_optional)

    @property
    def constant_inputs(self) -> tuple[str, ...]:
        """The inputs whose type can carry no gradient."""
        return tuple(one.name for one in self.inputs if not one.has_gradient)

    def check(self, op: str) -> None:
        """Refuse a declaration that contradicts itself."""
        if not self.inputs or not self.outputs:
            raise RegistrationError(f"op {op}: it needs an input and an output, as in 'x: float32 -> y: float32'")
        arrays = (*self.inputs, *self.outputs)
        names = [*(one.name for one in arrays), *(one.name for one in self.attributes)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise RegistrationError(f"op {op}: the name {min(twice)!r} is declared twice")
        optional = [one.is_optional for one in self.inputs]
        if optional != sorted(optional) or all(optional):
            raise RegistrationError(f"op {op}: optional inputs stand last, after at least one that is not optional")
        if any(one.is_list for one in self.inputs) and (len(self.inputs) > 1 or self.inputs[0].is_optional):
            raise RegistrationError(f"op {op}: a list of inputs stands alone")
        for output in self.outputs:
            if output.is_list or output.is_optional:
                raise RegistrationError(
                    f"op {op}: output {output.name} is always there, and one array; write each output"
                )
            if output.is_variable and output.type not in {one.type for one in self.inputs if not one.is_optional}:
                raise RegistrationError(
                    f"op {op}: output {output.name} has the type {output.type}, which no input that is always there has"
                )

    def check_names(
        self,
        op: str,
        inputs: Sequence[str],
        is_variadic: bool,
        attributes: Collection[str],
        defaults: Mapping[str, Any],
    ) -> None:
        """Refuse a kernel that takes other inputs than were declared, or other attributes."""
        for one in self.attributes:
            if one.name not in attributes:
                raise RegistrationError(
                    f"op {op}: the declared attribute {one.name} is none of the kernel's: {', '.join(attributes) or 'none'}"
                )
            if one.name in defaults:
                one.check_default(op, defaults[one.name])
        declared = tuple(one.name for one in self.inputs)
        if declared != tuple(inputs) or self.inputs[0].is_list != is_variadic:
            shown = ", ".join(
                f"*{name}" if one.is_list else name for one, name in zip(self.inputs, declared, strict=True)
            )
            raise RegistrationError(
                f"op {op}: the declared inputs are ({shown}), but the kernel takes ({', '.join(inputs)}) after xp"
            )

    def with_only(self, inputs: Sequence[str], output: str) -> Declaration:
        """The declaration of one op of a family: some of the inputs, all there, and one output."""
        kept = tuple(replace(one, is_optional=False) for one in self.inputs if one.name in inputs)
        return replace(self, inputs=kept, outputs=tuple(one for one in self.outputs if one.name == output))

    # ------------------------------------------------------------------------------------------------------- at a call

    def check_call(self, facts: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
        """Refuse a call that the types do not allow, and find the dtype that each type variable stands for.

        Args:
            facts: for each operand its dtype, or a Python number, which fits every dtype that can hold numbers of its type.
            attributes: by name.

        Raises:
            TypeError: names the argument, what was seen and what was declared.
        """
        for attribute in self.attributes:
            attribute.check(attributes[attribute.name])
        found: dict[str, tuple[str, np.dtype[Any]]] = {}
        arguments = self._arguments(len(facts))
        for one, fact in zip(arguments, facts, strict=True):
            if not isinstance(fact, (bool, int, float)):
                self._check_array(one, np.dtype(fact), found)
        bound = {name: dtype for name, (_, dtype) in found.items()}
        numbers = [(one, f) for one, f in zip(arguments, facts, strict=True) if isinstance(f, (bool, int, float))]
        for one, number in numbers:  # where all are numbers, the widest type counts
            if one.is_variable and one.type not in found:
                bound[one.type] = np.result_type(bound.get(one.type, np.bool_), type(number))
        for one, number in numbers:
            _dtype_for(one, number, bound)
        return bound

    def _arguments(self, count: int) -> tuple[Argument, ...]:
        """The declared argument of each operand; those of a list are numbered."""
        first = self.inputs[0]
        return tuple(replace(first, name=f"{first.name}[{i}]") for i in range(count)) if first.is_list else self.inputs

    def _check_array(self, one: Argument, dtype: np.dtype[Any], found: dict[str, tuple[str, np.dtype[Any]]]) -> None:
        if not one.accepts(dtype):
            example = {"float": "float64", "int": "int64"}.get(one.type, one.type)
            raise TypeError(
                f"{one.name} is declared {one.type} and has dtype {dtype}; convert it, as in {one.name}.astype({example!r})"
            )
        if one.is_variable:
            other, known = found.setdefault(one.type, (one.name, dtype))
            if known != dtype:
                raise TypeError(
                    f"{other} and {one.name} are declared {one.type}, one dtype for both, and have the dtypes {known} and "
                    f"{dtype}; convert one, as in {one.name}.astype({known.name!r})"
                )

    def converted(self, operands: Sequence[Any], attributes: Mapping[str, Any], library: Any) -> list[Any]:
        """The operands of a call, checked; Python numbers become arrays of the declared dtype."""
        facts = [o if isinstance(o, (bool, int, float)) else o.dtype for o in operands]
        bound = self.check_call(facts, attributes)
        return [
            _number_as(one, operand, bound, library) if operand is fact else operand
            for one, operand, fact in zip(self._arguments(len(facts)), operands, facts, strict=True)
        ]

    def fits(self, operands: Sequence[Any], attributes: Mapping[str, Any]) -> bool:
        """Whether a call on arrays is allowed; asked by the generated bindings, which leave the error to the general path."""
        try:
            self.check_call([operand.dtype for operand in operands], attributes)
        except TypeError:
            return False
        return True

    def result_dtype(self, *facts: Any) -> np.dtype[Any]:
        """The dtype of the one output, from the operands' dtypes: what a declaration is for a dtype rule."""
        output = self.outputs[0]
        if output.type in _DTYPES or output.type == "bool":
            return np.dtype(output.type)
        arguments = self._arguments(len(facts))
        alike = [fact for one, fact in zip(arguments, facts, strict=True) if one.type == output.type]
        common = np.dtype(np.result_type(*(alike or facts)))
        return common if output.accepts(common) else np.dtype(output.type)


def _dtype_for(one: Argument, number: Any, bound: Mapping[str, np.dtype[Any]]) -> np.dtype[Any]:
    """The dtype that a Python number gets as an argument."""
    own = np.dtype(type(number))
    dtype = bound.get(one.type, own)
    if one.type in _DTYPES or (one.type in _KINDS and not one.accepts(own)):
        dtype = np.dtype(one.type)
    if dtype.kind not in _NUMBERS[type(number)]:
        raise TypeError(
            f"{one.name} is declared {one.type}, here {dtype}, and is {number!r}; give a number of that kind"
        )
    return dtype


def _number_as(one: Argument, number: Any, bound: Mapping[str, np.dtype[Any]], library: Any) -> Any:
    """A Python number as the kernel gets it: an array where the dtype is declared, else a number, which widens nothing."""
    dtype = _dtype_for(one, number, bound)
    if one.is_variable or one.type in _DTYPES:
        return library.asarray(number, dtype=dtype)
    return dtype.type(number).item()


def declaration(op: str, text: str) -> Declaration:
    """Read the types of an op: ``x: T, y: T, b: T?, *, alpha: float -> quotient: T, remainder: T``.

    What stands after ``*`` are attributes, whose defaults stand in the kernel. Those that are not named may be anything.

    >>> [str(one) for one in declaration("halve", "x: float -> low: float, high: float").outputs]
    ['low: float', 'high: float']
    """
    before, arrow, after = text.partition("->") if isinstance(text, str) else ("", "", "")
    if not arrow:
        raise RegistrationError(f"op {op}: types need an arrow between inputs and outputs, as in 'x: T, y: T -> z: T'")
    arrays, _, others = before.partition("*")
    inputs, outputs = ([argument(op, part) for part in side.split(",") if part.strip()] for side in (arrays, after))
    attributes = [attribute(op, part)[0] for part in others.split(",") if part.strip()]
    found = Declaration(tuple(inputs), tuple(outputs), tuple(attributes))
    found.check(op)
    return found
