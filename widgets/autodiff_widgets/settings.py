"""What a workbench is set to, as plain data that can be written as code again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any

from autodiff_lab import schedule
from autodiff_lab.faults import FAULTS, Fault
from autodiff_lab.graph import Graph

# Those that show in one function: the others are about an optimizer's steps and about replicas.
SHOWN_FAULTS = {name: one for name, one in FAULTS.items() if one.check in ("find_faulty_op", "gradcheck", "opcheck")}


@dataclass(frozen=True)
class Settings:
    """The code, the text of each input's value, and how it runs.

    ``fault`` is empty, or a fault's name and, for one about an op, the op and the input: ``("lost_sign", "mul", "x")``.

    >>> Settings("x * x", {"x": "3.0"}, policy="fifo").as_code()
    "aw.Workbench('x * x', {'x': '3.0'}, policy='fifo')"
    """

    code: str = "x * w + b"
    values: Mapping[str, str] = field(default_factory=dict)
    policy: str = schedule.DEFAULT
    workers: int = 2
    device: str = "cpu"
    seed: int = 0
    fault: Sequence[str] = ()
    views: Sequence[str] = ("Graph", "Gradient flow")

    def as_code(self) -> str:
        """The call that makes a workbench like this; what is as by default is left out."""
        plain = Settings()
        texts = [repr(self.code), *([repr(dict(self.values))] if self.values else [])]
        for one in fields(self)[2:]:
            value, default = getattr(self, one.name), getattr(plain, one.name)
            if value != default:
                texts.append(f"{one.name}={tuple(value) if isinstance(value, list) else value!r}")
        return f"aw.Workbench({', '.join(texts)})"

    def switched_on(self) -> AbstractContextManager[Any]:
        """The fault, for a ``with`` block."""
        return SHOWN_FAULTS[self.fault[0]].on(*self.fault[1:]) if self.fault else nullcontext()


def places_of(fault: Fault, graph: Graph) -> list[tuple[str, ...]]:
    """Where a fault can be in a graph: an op and an input whose gradient rule it alters, an op, or nothing to choose.

    >>> import autodiff_lab as ad
    >>> places_of(SHOWN_FAULTS["lost_sign"], ad.record(lambda x, w: ad.ops.tanh(x * w), 1.0, 2.0))
    [('mul', 'x'), ('mul', 'y'), ('tanh', 'x')]
    """
    ops = dict.fromkeys(node.op for node in graph if node.op is not None and node.phase == "forward")
    if fault.replaces == "gradient rule":
        return [(op.name, argument) for op in ops for argument in op.vjp_rules]
    return [()] if fault.replaces == "function" else [(op.name,) for op in ops]
