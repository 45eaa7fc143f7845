"""What a function says about itself by its parameters: the schema of a kernel, and what a rule reads."""

from __future__ import annotations

import inspect
import keyword
import linecache
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from .graph import Source

if TYPE_CHECKING:
    from .declarations import Declaration

REQUIRED = inspect.Parameter.empty


class RegistrationError(TypeError):
    """An op or a rule cannot be registered as it is written; the text names the op, the rule and the next step."""


@dataclass(frozen=True)
class Schema:
    """What an op takes: names of inputs, names and defaults of attributes, and their types where they are declared."""

    name: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]  # name: default, or REQUIRED
    is_variadic: bool = False
    declared: Declaration | None = None
    doc: str = ""
    module: str = ""
    definition: Callable[..., Any] | Source | None = None
    part: str = ""  # of an op of a family: what its rules are hung on, as in divide_whole.quotient

    def __post_init__(self) -> None:
        """Refuse names that rules or the generated code use for something else, and defaults that could change."""
        if not self.inputs:
            raise RegistrationError(f"op {self.name}: it has no inputs; arrays come after xp, attributes after '*'")
        for name in (*self.inputs, *self.attributes):
            if name.startswith("_") or name in ("g", "out") or keyword.iskeyword(name):
                raise RegistrationError(f"op {self.name}: the name {name!r} is reserved; choose another")
        for name, default in self.attributes.items():
            if type(default).__hash__ is None:
                raise RegistrationError(
                    f"op {self.name}: attribute {name} has the default {default!r}, a {type(default).__name__}, which every "
                    "call would share and could change; use a tuple or None"
                )

    @property
    def decorator(self) -> str:
        """How a rule is hung on the op: ``@mul``, followed by ``.vjp("x")``."""
        return f"@{self.part or self.name}"

    @property
    def source(self) -> Source | None:
        """Where the op is defined."""
        return self.definition if isinstance(self.definition, Source) else source_of(self.definition)

    def input_texts(self) -> tuple[str, ...]:
        """The inputs as they are declared: ``x: float32``, or ``*arrays``."""
        if self.declared is not None:
            return tuple(map(str, self.declared.inputs))
        return tuple(f"*{name}" if self.is_variadic else name for name in self.inputs)

    def output_texts(self) -> tuple[str, ...]:
        """The outputs as they are declared."""
        return ("out",) if self.declared is None else tuple(map(str, self.declared.outputs))

    def attribute_texts(self) -> tuple[str, ...]:
        """The attributes with their types and defaults: ``alpha: float = 1.0``."""
        types = {} if self.declared is None else {one.name: f": {one.type}" for one in self.declared.attributes}
        return tuple(
            f"{name}{types.get(name, '')}" + ("" if default is REQUIRED else f" = {default!r}")
            for name, default in self.attributes.items()
        )


def schema_of(kernel: Callable[..., Any], declared: Declaration | None = None) -> Schema:
    """Inputs and attributes (with defaults) from a kernel's parameters ``(xp, x, y, *, axis=None)``."""
    positional, attributes = parameters_of(kernel)
    name = kernel.__name__
    if name == "<lambda>":
        raise RegistrationError(f"an op is named after its function, and {name} is no name; write it with def")
    check_name(name)
    where = f"op {name}"
    starred = _starred(kernel) if "*" in positional else ""
    if positional[:1] != ("xp",):
        raise RegistrationError(
            f"{where}: the kernel's first parameter must be 'xp', the array library it computes with"
        )
    if starred and len(positional) > 2:
        raise RegistrationError(f"{where}: a variable number of inputs (*{starred}) stands alone after xp")
    optional = () if declared is None else declared.optional_inputs
    check_defaults(kernel, positional, optional)
    inputs = (starred,) if starred else positional[1:]
    defaults = getattr(kernel, "__kwdefaults__", None) or {}
    if declared is not None:
        declared.check_names(name, inputs, bool(starred), attributes, defaults)
    ordered = sorted(attributes, key=lambda attribute: attribute in defaults)
    return Schema(
        name, inputs, {attribute: defaults.get(attribute, REQUIRED) for attribute in ordered}, bool(starred),
        declared, inspect.getdoc(kernel) or "", kernel.__module__, kernel,
    )  # fmt: skip


def check_name(name: Any) -> None:
    """Refuse a name under which ``ops`` could not offer the op."""
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
        raise RegistrationError(
            f"op {name!r}: the name of an op is a name of Python without '_' before it, as in 'MyCustomOp'"
        )


def check_defaults(kernel: Callable[..., Any], positional: Sequence[str], optional: Collection[str]) -> None:
    """Refuse a default of an input, except None for an optional one."""
    defaults = getattr(kernel, "__defaults__", None) or ()
    for name, default in zip(reversed(positional), reversed(defaults), strict=False):
        if name not in optional or default is not None:
            raise RegistrationError(
                f"op {kernel.__name__}: input {name!r} has a default; put '*' before attributes"
                f"{', and write None for an optional input' if name in optional else ''}"
            )


def parameters_of(rule: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a rule's positional parameters (``*`` for a variable number) and of its keyword-only ones.

    Read from the code object: ``inspect.signature`` would take a third of the library's import. What is built around a
    function, such as a kernel creator, has ``parameters`` of its own.
    """
    if hasattr(rule, "parameters"):
        found: tuple[tuple[str, ...], tuple[str, ...]] = rule.parameters
        return found
    if not hasattr(rule, "__code__"):
        raise RegistrationError(
            f"{rule!r} is not a plain function; write it with def, so that its parameters have names"
        )
    code: CodeType = rule.__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        raise RegistrationError(
            f"{rule.__name__}: **options have no names that rules could use; write every attribute out"
        )
    split, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    starred = ("*",) if code.co_flags & inspect.CO_VARARGS else ()
    return (*code.co_varnames[:split], *starred), code.co_varnames[split:end]


def _starred(function: Callable[..., Any]) -> str:
    """The name of a function's ``*arrays``."""
    code: CodeType = function.__code__
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def source_of(function: Any) -> Source | None:
    """The line where a function, or what is built around one, was written; None for generated text."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    if code is None or code.co_filename.startswith(("<binding>", "<native kernel")):
        return None
    line = code.co_firstlineno
    return Source(code.co_filename, line, "<module>", linecache.getline(code.co_filename, line).strip())


def place_of(source: Source | None) -> str:
    """Where something was defined, for a sentence: ``line 3`` of a cell, or ``ops.py:3``."""
    return "code that is not known" if source is None else str(source).partition(": ")[0]
