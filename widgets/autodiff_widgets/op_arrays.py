"""The arrays of one op call: inputs, result, cotangent and gradients, and what each of their numbers was computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import autodiff_lab as ad

from .cell_arrays import CellArray
from .formulas import cell_name, formula

GRADIENT = "grad "  # what stands before an input's name in the name of its gradient


class OpArrays:
    """The arrays by name: each input's, ``out``, ``g`` and ``grad x``.

    ``key`` is the op's; ``called`` says how the graph calls each operand, and ``keys`` are those of the operands' nodes, where
    the op is a node of a graph.
    """

    def __init__(self, trace: ad.CellTrace, key: str, called: Sequence[str] = (), keys: Sequence[str] = ()) -> None:
        self.trace, self.key = trace, key
        self.called = dict(zip(trace.operands, called, strict=False))
        nodes = dict(zip(trace.operands, keys, strict=False))
        self.all: dict[str, CellArray] = {}
        for name, value in trace.operands.items():
            label = f"{name}: {self.called[name].replace('`', '')}" if name in self.called else name
            self._add(name, f"{nodes[name]}~{key}.{name}" if nodes else f"{key}:{name}", name, label, value)
        self._add("out", f"{key}~out" if nodes else f"{key}:out", "out", "out: the result", trace.result, True)
        if trace.cotangent is not None:
            self._add("g", f"{key}:g", "g", "g: the cotangent of out", trace.cotangent, True)
        for name, value in trace.gradients.items():
            short = gradient_name(name)
            label = short if short.startswith(GRADIENT) else f"{short}: gradient of {name}"
            self._add(GRADIENT + name, f"{key}:{GRADIENT}{name}", short, label, value, True)

    def _add(self, name: str, key: str, short: str, label: str, value: Any, is_known_later: bool = False) -> None:
        kept = " · kept" if name in self.trace.saved else ""
        self.all[name] = CellArray(key, f"{self.key}:{name}", short, label + kept, np.asarray(value), is_known_later)

    def __getitem__(self, name: str) -> CellArray:
        return self.all[name]

    @property
    def inputs(self) -> list[CellArray]:
        """The operands."""
        return [self.all[name] for name in self.trace.operands]

    @property
    def gradients(self) -> list[CellArray]:
        """The gradients of operands."""
        return [self.all[GRADIENT + name] for name in self.trace.gradients]

    def read_by_rule(self, name: str) -> list[str]:
        """What the gradient rule of an input reads: ``g``, and what was kept for it."""
        if self.trace.op is None:
            return ["g", *self.trace.operands]
        needs = self.trace.op.per_operand(self.trace.op.vjp_needs(name), len(self.trace.operands))
        return ["g", *(need for need in needs if need in self.all)]

    def sources_and_notes(self) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """For each drawn number the drawn ones that it was computed from, and its formula; for each array the arrays."""
        sources = {self["out"].key: tuple(array.key for array in self.inputs)}
        sources |= {
            self[GRADIENT + name].key: tuple(self[one].key for one in self.read_by_rule(name))
            for name in self.trace.gradients
        }
        notes: dict[str, str] = {}
        drawn = {name: set(array.drawn) for name, array in self.all.items()}
        for way in self.trace.ways:
            array = self["out" if way == "out" else GRADIENT + way]
            for index in array.drawn:
                cell, key, name = self.trace.way(way, index), array.cell_key(index), cell_name(array.name, index)
                if not _is_same(cell, array.values[index]):
                    notes[key] = f"{name}: the op gave another number when it ran again, so it cannot be followed"
                    continue
                leaves = cell.leaves if isinstance(cell, ad.Cell) else []
                found = [self[leaf.array].cell_key(leaf.index) for leaf in leaves if leaf.index in drawn[leaf.array]]
                sources |= {key: tuple(found)} if found else {}
                notes[key] = formula(cell, array.values[index]).said(name)
        return sources, notes

    def example(self, name: str, notes: Mapping[str, str], longest: int) -> str:
        """The formula of an array's first number, where it is short and says more than a number."""
        keys = [self[name].cell_key(index) for index in self[name].drawn]
        texts = [notes[key] for key in keys if key in notes and self_explaining(notes[key])]
        return next((f"For example `{text}`." for text in texts[:1] if len(text) <= longest), "")


def _is_same(cell: Any, number: Any) -> bool:
    """Whether a way leads to the number that the run gave: not so for an op that draws at random."""
    value = cell.value if isinstance(cell, ad.Cell) else cell
    tolerance = 1e-2 if getattr(number, "dtype", None) == np.float16 else 1e-4
    return bool(np.isclose(float(value), float(number), rtol=tolerance, atol=1e-6, equal_nan=True))


def self_explaining(note: str) -> bool:
    """Whether a formula has a part between the number's name and the number."""
    return note.count(" = ") > 1


def gradient_name(name: str) -> str:
    """What an input's gradient is called.

    >>> gradient_name("x"), gradient_name("weight")
    ('x̄', 'grad weight')
    """
    return f"{name}\u0304" if len(name) == 1 else GRADIENT + name
