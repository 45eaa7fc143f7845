"""Tangents as they travel with a value, and how their way is told. Nothing here runs while nobody listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import backend, events
from .sources import call_site
from .tensors import next_serial

if TYPE_CHECKING:
    from .operators import Op


class NumberedTangents(tuple[Any, ...]):
    """The tangents of a value while somebody listens: events call the value by this serial number.

    Otherwise a value's tangents are a plain tuple, and nothing numbers it.
    """

    serial: int


def numbered(tangents: Iterable[Any], serial: int | None = None) -> NumberedTangents:
    """Tangents with a serial number, by default the next one."""
    made = NumberedTangents(tangents)
    made.serial = next_serial() if serial is None else serial
    return made


class TangentWatcher:
    """Tells one op call of forward mode, and lets the guard look. Made only while somebody listens or guards.

    ``named`` are the operands' values and the result, as ``out``. ``moving`` holds the tangents of each operand that has some,
    by its place.
    """

    def __init__(
        self,
        context: events.Context,
        op: Op,
        named: Mapping[str, Any],
        moving: Mapping[int, tuple[Any, ...]],
        attributes: Mapping[str, Any],
    ) -> None:
        self.context, self.op, self.named, self.moving, self.attributes = context, op, named, moving, attributes
        self.serial = next_serial()
        self.operands = op.operand_names(len(named) - 1)
        self.senders = {place: _numbered(tangents).serial for place, tangents in moving.items()}

    def tell_call(self) -> None:
        """Tell what the op computed, before the rules run."""
        if self.context.receiver is None:
            return
        name, source = call_site()
        inputs = tuple(self.senders.get(place) for place in range(len(self.operands)))
        values = tuple(self.named[operand] for operand in self.operands)
        called = events.OpCalled(
            self.serial, self.op.name, inputs, name, self.context.scope, source, self.named["out"], values, self.attributes, {}
        )  # fmt: skip
        self.context.receiver(called)

    def tell_part(self, direction: int, place: int, part: Any, total: Any) -> None:
        """Tell one rule's part of the result's tangent, and the sum that it was added to."""
        argument, tangent = self.operands[place], self.moving[place][direction]
        rule = self.op.jvp_rule(argument).__name__
        if self.context.guard is not None:
            self.context.guard.check_tangent(rule, self.op, {f"d{argument}": tangent} | dict(self.named), part)
        if self.context.receiver is None:
            return
        used = self.op.per_operand(self.op.jvp_needs(argument), len(self.operands))
        so_far, local = total, None
        if backend.is_array(total) and backend.is_array(
            tangent
        ):  # on Tensors and symbols, looking would itself be recorded
            with events.switched(receiver=None, guard=None, observes=True):
                so_far, local = self.op.fit_tangent(total, self.named["out"]), self._local(place, tangent)
        pushed = events.TangentPushed(
            self.serial, self.senders[place], self.op.name, argument, rule, direction, self.named[argument], tangent, local,
            part, so_far, list(self.moving).index(place) + 1, len(self.moving), used,
        )  # fmt: skip
        self.context.receiver(pushed)

    def _local(self, place: int, tangent: Any) -> Any:
        """The local derivative of an elementwise op: what its rule makes of a tangent of ones."""
        if not self.op.elementwise or self.context.brief:
            return None
        ones = backend.asarray(np.ones(tangent.shape), tangent.dtype, backend.device_of(tangent))
        return self.op.apply_jvp(place, ones, dict(self.named), self.attributes)


def _numbered(tangents: tuple[Any, ...]) -> NumberedTangents:
    """Tangents that were made before anybody listened get a number now."""
    return tangents if isinstance(tangents, NumberedTangents) else numbered(tangents)
