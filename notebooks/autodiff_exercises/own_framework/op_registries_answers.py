"""Answers to the exercise "a registry", right and wrong: what its check is tested on."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any

from .protocol import OpRules

# ------------------------------------------------------------------------------------------ what a solution can look like


def new_registry():
    """A new, empty table of ops: register, look up by name, `in`, and a loop over its names."""

    class Registry:
        def __init__(self):
            self.entries = {}

        def register(self, name, forward, gradients, shape):
            if name in self.entries:
                raise ValueError(f"there is an op {name!r} already; choose another name")
            takes = len(inspect.signature(forward).parameters)
            if len(gradients) != takes:
                raise ValueError(f"op {name!r} takes {takes} operands, and there are {len(gradients)} gradient rules")
            if len(inspect.signature(shape).parameters) != takes:
                raise ValueError(f"op {name!r} takes {takes} operands, and its shape rule another number of shapes")
            self.entries[name] = OpRules(forward, tuple(gradients), shape)

        def __getitem__(self, name):
            if name not in self.entries:
                near = " or ".join(difflib.get_close_matches(name, self.entries)) or "one of its names"
                raise KeyError(f"there is no op {name!r}; did you mean {near}?")
            return self.entries[name]

        def __contains__(self, name):
            return name in self.entries

        def __iter__(self):
            return iter(self.entries)

    return Registry()


class Table(dict[str, Any]):
    """A dictionary that refuses what does not fit; subclasses forget something."""

    def checked(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Refuse what does not fit."""
        self.check_name(name)
        self.check_gradients(name, forward, gradients)
        self.check_shape(name, forward, shape)

    def check_name(self, name: str) -> None:
        """Refuse a name that is taken."""
        if name in self:
            raise ValueError(f"{name} is taken")

    def check_gradients(self, name: str, forward: Any, gradients: Any) -> None:
        """One gradient rule for each operand."""
        if len(gradients) != forward.__code__.co_argcount:
            raise ValueError(f"{name}: gradients")

    def check_shape(self, name: str, forward: Any, shape: Any) -> None:
        """A shape for each operand."""
        if shape.__code__.co_argcount != forward.__code__.co_argcount:
            raise ValueError(f"{name}: shape")

    def register(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Put an op into the table."""
        self.checked(name, forward, gradients, shape)
        self[name] = OpRules(forward, tuple(gradients), shape)

    def __missing__(self, name: str) -> Any:
        raise KeyError(f"no {name}; there are {', '.join(self)}")


def a_dictionary() -> Any:
    """A dictionary with one more method, which lists all names in its error."""
    return Table()


# -------------------------------------------------------------------------------------------------------- wrong solutions


class Overwriting(Table):
    """The last one wins."""

    def check_name(self, name: str) -> None:
        """Takes any name."""


class FirstWins(Table):
    """A second one is dropped in silence."""

    def register(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Registers what is new."""
        if name not in self:
            super().register(name, forward, gradients, shape)


class AnyGradients(Table):
    """Takes any number of gradient rules."""

    def check_gradients(self, name: str, forward: Any, gradients: Any) -> None:
        """Takes all."""


class AnyShape(Table):
    """Takes any shape rule."""

    def check_shape(self, name: str, forward: Any, shape: Any) -> None:
        """Takes all."""


class HalfRegistered(Table):
    """Puts it in, and then looks whether it fits."""

    def register(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Registers, then checks."""
        self.check_name(name)
        self[name] = OpRules(forward, tuple(gradients), shape)
        self.check_gradients(name, forward, gradients)
        self.check_shape(name, forward, shape)


class Silent(Table):
    """Gives None for what is not there."""

    def __missing__(self, name: str) -> Any:
        return None


class Curt(Table):
    """Names what was asked for, and no more."""

    def __missing__(self, name: str) -> Any:
        raise KeyError(name)


class Asserting(Table):
    """Refuses with an assertion."""

    def checked(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Asserts."""
        try:
            super().checked(name, forward, gradients, shape)
        except ValueError as error:
            raise AssertionError(str(error)) from None


class InTuples(Table):
    """Keeps a tuple for each op."""

    def register(self, name: str, forward: Any, gradients: Any, shape: Any) -> None:
        """Registers three functions."""
        self.checked(name, forward, gradients, shape)
        self[name] = (forward, tuple(gradients), shape)


class ListedByName(Table):
    """Its names come sorted."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.keys()))


def overwriting() -> Any:
    """The last one wins."""
    return Overwriting()


def first_wins() -> Any:
    """The first one stays, in silence."""
    return FirstWins()


def any_gradients() -> Any:
    """Gradient rules are not counted."""
    return AnyGradients()


def any_shape() -> Any:
    """The shape rule is not looked at."""
    return AnyShape()


def half_registered() -> Any:
    """Looks too late."""
    return HalfRegistered()


def silent() -> Any:
    """None for what is not there."""
    return Silent()


def curt() -> Any:
    """A bare KeyError."""
    return Curt()


def asserting() -> Any:
    """An assertion for an error."""
    return Asserting()


def in_tuples() -> Any:
    """Tuples for entries."""
    return InTuples()


def sorted_names() -> Any:
    """Names in the order of the alphabet."""
    return ListedByName()


ONE_FOR_ALL = Table()


def one_for_all() -> Any:
    """Always the same table."""
    return ONE_FOR_ALL


def names_only() -> Any:
    """A list."""
    return []
