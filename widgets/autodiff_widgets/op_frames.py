"""The picture and the frames of one op call: inputs, result, what is kept, the cotangent, and each input's gradient."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import autodiff_lab as ad

from . import shapes
from .captions import listed
from .cell_arrays import CellArray
from .formulas import cell_name, formula
from .routes import Box
from .scene import Change, Pane, Scene
from .shapes import Text
from .steps import Steps
from .values import bytes_text, number_text, value_text

LEGEND = (
    ("active", "runs now"), ("used", "is read"), ("target", "arrives"), ("done", "known"),
    ("above", "bar: above 0, by size"), ("below", "hatched: below 0"),
)  # fmt: skip
MARGIN, GAP, BETWEEN = 16.0, 12.0, 230.0  # px; between the columns stands the op
EXAMPLE = 110  # characters of a formula that a caption shows

Rows = tuple[tuple[str, str], ...]


class OpFrames:
    """What is drawn of an op call, and step by step."""

    def __init__(
        self, trace: ad.CellTrace, key: str, names: Sequence[str] = (), keys: Sequence[str] = (), note: str = ""
    ) -> None:
        self.trace, self.key, self.note = trace, key, note
        inputs = list(trace.operands)
        self.names = dict(zip(inputs, names or [""] * len(inputs), strict=True))
        places = dict(zip(inputs, keys, strict=True)) if keys else {}
        self.arrays: dict[str, CellArray] = {}
        for name, value in trace.operands.items():
            self._add(name, f"{places[name]}~{key}.{name}" if keys else f"{key}:{name}", name, value)
        self._add("out", f"{key}~out" if keys else f"{key}:out", "out", trace.result, later=True)
        if trace.cotangent is not None:
            self._add("g", f"{key}:g", "g", trace.cotangent, later=True)
        for name, value in trace.gradients.items():
            self._add(f"grad {name}", f"{key}:grad {name}", gradient_name(name), value, later=True)
        self._places = {name: _Drawn(array) for name, array in self.arrays.items()}

    def _add(self, name: str, key: str, called: str, value: Any, later: bool = False) -> None:
        self.arrays[name] = CellArray(key, f"{self.key}:{name}", called, self._label(name, called), np.asarray(value), later)

    def _label(self, name: str, called: str) -> str:
        if name in self.names:
            return f"{called}: {self.names[name]}" if self.names[name] else called
        return {"out": "out: the result", "g": "g: the cotangent of out"}.get(
            name, f"{called}: gradient of {name.removeprefix('grad ')}"
        )

    def scene(self) -> Scene:
        """Everything together."""
        sources, notes = self._sources_and_notes()
        pane = self._pane()
        frames = self._frames(notes)
        title = f"Op {self.trace.name}: {self._call()}"
        return Scene(title, (pane,), tuple(frames), self._facts(notes), LEGEND, sources, notes)

    def _call(self) -> str:
        """``matmul(x, y)``, with the attributes that were given."""
        given = [*self.trace.operands, *(f"{name}={value!r:.40}" for name, value in self._attributes())]
        return f"{self.trace.name}({', '.join(given)})"

    def _attributes(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in self.trace.attributes.items() if value is not None]

    # ---------------------------------------------------------------------------------------------- what came from what

    def _ways(self) -> Iterator[tuple[str, str]]:
        """The arrays that were computed, and what the trace calls them."""
        for way in self.trace.ways:
            yield ("out" if way == "out" else f"grad {way}"), way

    def _sources_and_notes(self) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """For each drawn number those that it was computed from, and its formula."""
        sources: dict[str, tuple[str, ...]] = self._array_sources()
        notes: dict[str, str] = {}
        for name, way in self._ways():
            array = self.arrays[name]
            for index in array.drawn:
                cell = self.trace.way(way, index)
                leaves = cell.leaves if isinstance(cell, ad.Cell) else []
                found = [self._places[leaf.array].key(leaf.index) for leaf in leaves]
                key = array.cell_key(index)
                sources[key] = tuple(one for one in found if one is not None)
                notes[key] = formula(cell_name(array.name, index), cell, array.values[index])
        return {key: found for key, found in sources.items() if found}, notes

    def _array_sources(self) -> dict[str, tuple[str, ...]]:
        found = {self.arrays["out"].key: tuple(self.arrays[name].key for name in self.trace.operands)}
        for name in self.trace.gradients:
            reads = [self.arrays[one].key for one in ("g", *self._reads(name))]
            found[self.arrays[f"grad {name}"].key] = tuple(reads)
        return found

    def _reads(self, name: str) -> list[str]:
        """The saved values that an input's rule reads."""
        if self.trace.op is None:
            return list(self.trace.operands)
        needs = self.trace.op.vjp_needs(name)
        return [one for one in self.trace.op.per_operand(needs, len(self.trace.operands)) if one in self.arrays]

    # ------------------------------------------------------------------------------------------------------- the picture

    def _pane(self) -> Pane:
        """Inputs left, result right; below them the gradients and the cotangent, so that backward runs from right to left."""
        head = self._heading()
        inputs = [self.arrays[name] for name in self.trace.operands]
        gradients = [self.arrays[f"grad {name}"] for name in self.trace.gradients]
        left = max(array.width for array in (*inputs, *gradients))
        parts, top = [], MARGIN
        for css, line in head:
            parts.append(shapes.heading(line, MARGIN, top + 12, css))
            top += 22.0
        out = self.arrays["out"]
        right = MARGIN + left + BETWEEN
        forward = self._row(inputs, [out], left, top, self.trace.name, self._attributes_lines(), self.key, "forward")
        parts += forward.parts
        top = forward.bottom + 2 * GAP
        if gradients:
            rules = [self._rule(name) for name in self.trace.gradients]
            lines = [Text(shapes.shortened(rule, 24)) for rule in rules[:4]]
            backward = self._row(
                gradients, [self.arrays["g"]], left, top, "gradient rules", lines, f"{self.key}~rules", "backward"
            )
            parts += backward.parts
            top = backward.bottom + GAP
        width = max(
            right + max(array.width for array in (out, *(self.arrays[n] for n in ("g",) if n in self.arrays))),
            *(MARGIN + shapes.text_width(line, shapes.LABEL) for _, line in head),
        )
        return Pane(shapes.page(width + MARGIN, top, parts), f"Arrays of {self.trace.name}")

    def _row(
        self, left: Sequence[CellArray], right: Sequence[CellArray], width: float, top: float, name: str,
        lines: Sequence[Text], key: str, phase: str,
    ) -> _Row:  # fmt: skip
        """Arrays on both sides of a box: forward they are joined from left to right, backward from right to left."""
        parts: list[str] = []
        heights = [sum(array.height for array in side) + GAP * (len(side) - 1) for side in (left, right)]
        high = max(*heights, 100.0)
        middles: list[tuple[CellArray, float]] = []
        for side, tall, x in zip((left, right), heights, (MARGIN, MARGIN + width + BETWEEN), strict=True):
            y = top + (high - tall) / 2
            for array in side:
                middles.append((array, y + array.height / 2))
                parts.append(array.svg(x, y))
                y += array.height + GAP
        box = Box(0, MARGIN + width + 35, top + high / 2 - 32, BETWEEN - 70, shapes.lines_height(1 + len(lines)) + 8)
        for array, middle in middles:
            ends = [(MARGIN + array.width, middle), (box.x, box.middle)] if array in left else [(box.right, box.middle), (MARGIN + width + BETWEEN, middle)]
            if phase == "backward":
                ends.reverse()
            turn = (ends[0][0] + ends[1][0]) / 2
            points = [ends[0], (turn, ends[0][1]), (turn, ends[1][1]), ends[1]]
            parts.append(shapes.edge(f"{array.key}>{key}", points, f"edge {phase}"))
        css = f"{phase} op"
        parts.append(shapes.node(key, box, css, [Text(name, "label"), *lines], name))
        return _Row(parts, top + high)

    def _heading(self) -> list[tuple[str, str]]:
        """The call, and what the op is for."""
        lines = [("label", self._call())]
        lines += [("detail", self._doc())] if self._doc() else []
        return lines + ([("detail", self.note)] if self.note else [])

    def _attributes_lines(self) -> list[Text]:
        return [Text(shapes.shortened(f"{name} = {value!r:.40}", 20)) for name, value in self._attributes()[:4]]

    def _doc(self) -> str:
        doc = getattr(self.trace.op, "doc", "") if self.trace.op is not None else ""
        return " ".join(doc.split("\n\n")[0].split())

    def _rule(self, name: str) -> str:
        return self.trace.rules[name].__name__ if name in self.trace.rules else "the rules of its ops"

    # -------------------------------------------------------------------------------------------------------- the frames

    def _frames(self, notes: Mapping[str, str]) -> list[Any]:
        trace = self.trace
        known = [self._change(name, "done") for name in trace.operands]
        what = [f"`{name}`{self._called(name)}, {self._shape(name)}" for name in trace.operands]
        steps = Steps(f"`{trace.name}` is given {listed(what)}.", known)
        inputs = [self._change(name, "used") for name in trace.operands]
        steps.add(
            f"`{trace.name}` runs: {self._shape('out')} come out. {self._example('out', notes)}".strip(),
            [self._change("out", "done")],
            [*inputs, Change(self.key, "active"), *self._edges("forward", "active")],
            self.arrays["out"].key,
        )
        if trace.gradients:
            self._backward(steps, notes)
        else:
            steps.add(self._why_no_gradient())
        steps.add("Point at a number to see what it was computed from." if trace.ways else self._too_many())
        return steps.frames

    def _backward(self, steps: Steps, notes: Mapping[str, str]) -> None:
        trace = self.trace
        steps.add(self._kept(), passing=[self._change(name, "used") for name in trace.saved])
        steps.add(
            f"Backward: the cotangent `g` arrives. It says by how much the end result changes with each number of `out`.",
            [self._change("g", "done")],
            [self._change("g", "target")],
            self.arrays["g"].key,
        )
        for name in trace.gradients:
            array = self.arrays[f"grad {name}"]
            reads = [one for one in ("g", *self._reads(name)) if one in self.arrays]
            passing = [self._change(one, "used") for one in reads]
            passing += [Change(f"{self.key}~rules", "active"), Change(f"{array.key}>{self.key}~rules", "active")]
            steps.add(
                f"{self._rule_said(name)} {self._example(f'grad {name}', notes)}".strip(),
                [self._change(f"grad {name}", "done")],
                [*passing, self._change(f"grad {name}", "target")],
                array.key,
                self._rule_line(name),
            )

    def _change(self, name: str, state: Any) -> Change:
        return Change(self.arrays[name].key, state)

    def _edges(self, phase: str, state: Any) -> list[Change]:
        return [Change(f"{self.arrays[name].key}>{self.key}", state) for name in (*self.trace.operands, "out")]

    def _called(self, name: str) -> str:
        return f" ({self.names[name]})" if self.names.get(name) else ""

    def _shape(self, name: str) -> str:
        """``a 2 × 3 array`` in few words."""
        shape = self.arrays[name].values.shape
        return f"{' × '.join(map(str, shape))} numbers" if shape else "one number"

    def _example(self, name: str, notes: Mapping[str, str]) -> str:
        """The formula of the first number, where it is short."""
        array = self.arrays[name]
        first = next((notes[key] for index in array.drawn if (key := array.cell_key(index)) in notes), "")
        return f"For example `{first}`." if first and len(first) <= EXAMPLE else ""

    def _kept(self) -> str:
        saved = [f"`{name}`" for name in self.trace.saved]
        if self.trace.op is None:
            return "Between the ops of this function more arrays are kept for backward than are shown here."
        if not saved:
            return "No array is kept for backward: the gradient rules read none."
        size = sum(self.arrays[name].values.nbytes for name in self.trace.saved)
        return f"Kept for backward: {listed(saved)}, {bytes_text(size)}, because the gradient rules read {'them' if len(saved) > 1 else 'it'}."

    def _rule_said(self, name: str) -> str:
        if self.trace.op is None:
            return f"Backward through all its ops gives the gradient of `{name}`."
        reads = listed([f"`{one}`" for one in ("g", *self._reads(name))])
        return f"The rule `{self._rule(name)}` makes the gradient of `{name}` from {reads}."

    def _rule_line(self, name: str) -> str | None:
        """The rule's own line: what it returns."""
        return _returned(self.trace.rules[name]) if name in self.trace.rules else None

    def _why_no_gradient(self) -> str:
        op = self.trace.op
        if op is not None and not op.is_differentiable:
            return f"No gradient flows through `{op.name}`: its result does not change little by little."
        return "No gradient flows here: no input is an array of floating numbers with a gradient rule."

    def _too_many(self) -> str:
        return "These are too many numbers to follow each of them."

    # --------------------------------------------------------------------------------------------------------- the facts

    def _facts(self, notes: Mapping[str, str]) -> dict[str, Rows]:
        facts: dict[str, Rows] = {self.key: self._op_facts()}
        for name, array in self.arrays.items():
            facts[array.key] = tuple((label, text) for label, text in self._array_facts(name, array) if text)
            for index in array.drawn:
                key = array.cell_key(index)
                rows = [("number", cell_name(array.name, index)), ("value", number_text(array.values[index], 8))]
                facts[key] = tuple(rows + ([("computed", notes[key])] if key in notes else []))
        return facts

    def _op_facts(self) -> Rows:
        op = self.trace.op
        rows = [("op", self.trace.name), ("what", self._doc())]
        rows += [(name, repr(value)) for name, value in self.trace.attributes.items()]
        rows += [("keeps for backward", ", ".join(self.trace.saved))]
        rows += [(f"rule for {name}", rule.__name__) for name, rule in self.trace.rules.items()]
        rows += [("written in", str(op.source) if op is not None and op.source is not None else "")]
        return tuple((label, value) for label, value in rows if value)

    def _array_facts(self, name: str, array: CellArray) -> list[tuple[str, str]]:
        of = name.removeprefix("grad ")
        rule = self.trace.rules.get(of) if name.startswith("grad ") else None
        return [
            ("array", array.label),
            ("shown", array.size_text),
            ("size", bytes_text(array.values.nbytes)),
            ("value", value_text(array.values)),
            ("kept for backward", "yes" if name in self.trace.saved else ""),
            ("made by the rule", rule.__name__ if rule else ""),
            ("which returns", _returned(rule) or "" if rule else ""),
        ]


class _Row:
    """What was drawn, and where it ends."""

    def __init__(self, parts: list[str], bottom: float) -> None:
        self.parts, self.bottom = parts, bottom


class _Drawn:
    """Which cells of an array are drawn."""

    def __init__(self, array: CellArray) -> None:
        self.array, self.indices = array, set(array.drawn)

    def key(self, index: tuple[int, ...]) -> str | None:
        """The key of a cell; None for one that is not drawn."""
        return self.array.cell_key(index) if tuple(index) in self.indices else None


def gradient_name(name: str) -> str:
    """What an input's gradient is called.

    >>> gradient_name("x"), gradient_name("weight")
    ('x̄', 'grad weight')
    """
    return f"{name}\u0304" if len(name) == 1 else f"grad {name}"


def _returned(rule: Any) -> str | None:
    """The line in which a rule says what it gives back."""
    try:
        lines = [line.strip() for line in inspect.getsource(rule).splitlines()]
    except (OSError, TypeError):
        return None
    return next((line for line in reversed(lines) if line.startswith("return ")), None)
