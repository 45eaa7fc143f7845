"""The scene of one op call: its picture, its steps from the inputs to the gradients, and the facts of every number."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import autodiff_lab as ad

from .captions import ops
from .cell_arrays import CellArray
from .formulas import cell_name
from .op_arrays import GRADIENT, OpArrays
from .op_picture import edge_key, op_pane
from .questions import which
from .scene import Change, Frame, Question, Scene, State
from .steps import Steps
from .values import bytes_text, number_text, value_text

LEGEND = (
    ("active", "runs now"), ("used", "is read"), ("target", "arrives"), ("done", "known"),
    ("above", "bar: above 0, by size"), ("below", "hatched bar: below 0"),
)  # fmt: skip
EXAMPLE = 90  # characters of a formula that a caption shows

Rows = tuple[tuple[str, str], ...]


def op_scene(
    trace: ad.CellTrace, key: str, called: Sequence[str] = (), keys: Sequence[str] = (), note: str = ""
) -> Scene:
    """The scene of one op call.

    Args:
        trace: the call.
        key: the op's key.
        called, keys: how a graph calls the operands, and the keys of their nodes.
        note: what a reader must know about the numbers.
    """
    arrays = OpArrays(trace, key, called, keys)
    sources, notes = arrays.sources_and_notes()
    headings = [("label", _call(trace)), ("detail", _doc(trace)), ("detail", note)]
    pane = op_pane(arrays, [(css, line) for css, line in headings if line])
    frames = _Film(arrays, notes).frames()
    return Scene(f"Op {_call(trace)}", (pane,), tuple(frames), _facts(arrays, notes), LEGEND, sources, notes)


def _call(trace: ad.CellTrace) -> str:
    """``sum(x, axis=0)``: with the attributes that are not the default."""
    defaults = {} if trace.op is None else trace.op.attributes
    given = [
        f"{name}={value!r:.40}" for name, value in trace.attributes.items() if repr(value) != repr(defaults.get(name))
    ]
    return f"{trace.name}({', '.join([*trace.operands, *given])})"


def _doc(trace: ad.CellTrace) -> str:
    """What the op is for: the first paragraph of what is written about it."""
    return " ".join(trace.doc.split("\n\n")[0].replace("``", "").split())


class _Film:
    """The steps of an op call."""

    def __init__(self, arrays: OpArrays, notes: Mapping[str, str]) -> None:
        self.arrays, self.trace, self.notes = arrays, arrays.trace, notes

    def frames(self) -> tuple[Frame, ...]:
        """Inputs, result, what is kept, the cotangent, and each gradient."""
        steps = Steps(self._given(), [self._change(name, "done") for name in self.trace.operands])
        self._forward(steps)
        if self.trace.gradients:
            self._backward(steps)
        else:
            steps.add(ops.no_gradient_caption(self.trace.op))
        steps.add(ops.ASK if self.trace.ways else ops.TOO_MANY)
        return steps.frames

    def _given(self) -> str:
        called = self.arrays.called
        what = {name: (called.get(name, ""), self.arrays[name].values.shape) for name in self.trace.operands}
        return ops.given_caption(self.trace.name, what)

    def _forward(self, steps: Steps) -> None:
        arrays = (*self.arrays.inputs, self.arrays["out"])
        edges = [Change(edge_key(array, self.arrays.key), "active") for array in arrays]
        said = ops.result_caption(self.trace.name, self.arrays["out"].values.shape)
        steps.add(
            f"{said} {self.arrays.example('out', self.notes, EXAMPLE)}".strip(),
            [self._change("out", "done")],
            [*self._read(self.trace.operands), Change(self.arrays.key, "active"), *edges],
            self.arrays["out"].key,
        )

    def _backward(self, steps: Steps) -> None:
        steps.add(self._kept(), passing=self._read(self.trace.saved), question=self._question())
        steps.add(ops.ARRIVES, [self._change("g", "done")], [self._change("g", "target")], self.arrays["g"].key)
        box = f"{self.arrays.key}:backward"
        for name in self.trace.gradients:
            gradient = GRADIENT + name
            edges = [Change(edge_key(self.arrays[one], box), "active") for one in ("g", gradient)]
            passing = [*self._read(self.arrays.read_by_rule(name)), Change(box, "active"), *edges]
            steps.add(
                f"{self._rule(name)} {self.arrays.example(gradient, self.notes, EXAMPLE)}".strip(),
                [self._change(gradient, "done")],
                [*passing, self._change(gradient, "target")],
                self.arrays[gradient].key,
                returned(self.trace.rules.get(name)) or None,
            )

    def _change(self, name: str, state: State) -> Change:
        return Change(self.arrays[name].key, state)

    def _read(self, names: Sequence[str] | Mapping[str, Any]) -> list[Change]:
        return [self._change(name, "used") for name in names]

    def _kept(self) -> str:
        saved = self.trace.saved
        if self.trace.op is None:
            return ops.KEPT_INSIDE
        return ops.kept_caption(list(saved), sum(self.arrays[name].values.nbytes for name in saved))

    def _question(self) -> Question | None:
        """Which array will be kept? A reader may take one that no gradient rule reads for it."""
        saved, names = list(self.trace.saved), [*self.trace.operands, "out"]
        if not saved or saved[0] not in names:
            return None
        others = [place for place, name in enumerate(names) if name not in saved]
        return which(
            ops.KEPT_QUESTION,
            names.index(saved[0]),
            others,
            lambda place: self.arrays[names[place]].key,
            names.__getitem__,
        )

    def _rule(self, name: str) -> str:
        rule = self.trace.rules.get(name)
        if rule is None:
            return ops.rule_caption(name, "", [])
        return ops.rule_caption(name, rule.__name__, list(self.arrays.read_by_rule(name)))


def returned(rule: Any) -> str:
    """The line in which a rule says what it gives back; nothing where its code is not at hand.

    >>> returned(ad.registry["exp"].vjp_rule("x"))
    'return g * out'
    """
    try:
        lines = [line.strip() for line in inspect.getsource(rule).splitlines()]
    except (OSError, TypeError):
        return ""
    return next((line for line in reversed(lines) if line.startswith("return ")), "")


# ------------------------------------------------------------------------------------------------------------- the facts


def _facts(arrays: OpArrays, notes: Mapping[str, str]) -> dict[str, Rows]:
    facts = {arrays.key: _op_facts(arrays.trace)}
    for name, array in arrays.all.items():
        facts[array.key] = _array_facts(name, array, arrays.trace)
        for index in array.drawn:
            key = array.cell_key(index)
            computed = (("computed", notes[key]),) if key in notes else ()
            number = cell_name(array.name, index), number_text(array.values[index], 8)
            facts[key] = (("number", number[0]), ("value", number[1]), *computed)
    return facts


def _op_facts(trace: ad.CellTrace) -> Rows:
    rows = [("op", trace.name), ("what", _doc(trace))]
    rows += [(name, repr(value)) for name, value in trace.attributes.items()]
    rows += [("kept for backward", ", ".join(trace.saved))]
    rows += [(f"gradient rule for {name}", rule.__name__) for name, rule in trace.rules.items()]
    rows += [("written in", str(trace.op.source) if trace.op is not None and trace.op.source is not None else "")]
    return tuple((label, value) for label, value in rows if value)


def _array_facts(name: str, array: CellArray, trace: ad.CellTrace) -> Rows:
    rule = trace.rules.get(name.removeprefix(GRADIENT)) if name.startswith(GRADIENT) else None
    rows = [
        ("array", array.label),
        ("shown", array.size_text),
        ("size", bytes_text(array.values.nbytes)),
        ("value", value_text(array.values)),
        ("kept for backward", "yes" if name in trace.saved else ""),
        ("made by the rule", rule.__name__ if rule is not None else ""),
        ("which says", returned(rule) if rule is not None else ""),
    ]
    return tuple((label, value) for label, value in rows if value)
