"""The Python that a plan runs as: straight lines, one NumPy call each, with results written into the plan's buffers.

A run has a workspace: the text's functions with one set of buffers. Runs in two threads have two.
"""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import numpy as np

from .backend import is_elsewhere
from .graph import Graph, Node
from .lifetimes import Memory
from .numpy_calls import Fact, Value, cast, select
from .plan_lines import Line, Lines, check_result
from .recycling import WORTH_IT, Recycled
from .simplification import bitwise_key
from .trees import Structure

_ALIGNMENT = 64  # bytes: a cache line
_METHODS = (np.transpose, np.reshape, np.swapaxes, np.ravel)  # as methods they take 0.1 to 0.6 µs instead of 1 to 9
_WORTH_DROPPING = 4096  # bytes: smaller arrays live until the function returns


@dataclass(frozen=True, eq=False)
class PlanCode:
    """The text of a plan, compiled, and what its names mean."""

    text: str
    names: Mapping[str, Any]  # functions and constants
    views: Mapping[str, tuple[int, Fact]]  # buffers: number, shape and dtype
    recycled: Mapping[str, Fact]  # large results
    buffer_sizes: Sequence[int]
    compiled: CodeType
    step_at: Mapping[int, int]  # line of the text -> step
    parts: Mapping[int, int]  # steps that run in parts, which may run at once: how many
    inputs: tuple[str, ...]
    own: tuple[str, ...]  # names of values that are handed from step to step

    def workspace(self) -> dict[str, Any]:
        """New buffers, and the functions that use them: ``run``, or one for each step."""
        memory = [_aligned(nbytes) for nbytes in self.buffer_sizes]
        names = dict(self.names)
        for name, (buffer, fact) in self.views.items():
            names[name] = np.ndarray(fact.shape, fact.dtype, memory[buffer])
        names.update((name, Recycled(fact)) for name, fact in self.recycled.items())
        exec(self.compiled, names)
        return names


def _aligned(nbytes: int) -> Any:
    whole = np.empty(nbytes + _ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % _ALIGNMENT
    return whole[start : start + nbytes]


def write_plan(
    lines: Lines,
    memory: Memory,
    graph: Graph,
    steps: Sequence[Sequence[int]],
    titles: Sequence[str],
    outputs: Sequence[Any],
    workers: int = 0,
) -> PlanCode:
    """Write a plan's Python.

    Args:
        lines: all calls.
        memory: where their results lie.
        graph: for the names of inputs, and how the outputs nest.
        steps: the numbers of each step's calls.
        titles: what each step is, for a comment above it.
        outputs: a ``Value`` or a constant each.
        workers: with at least one, a function for each step, ``step_0`` and so on, and ``results``, instead of ``run`` for
            all. A large loop runs in at most so many parts: ``step_0_open`` makes ``run_0``, which has ``parts``, and
            ``step_0`` ends it.
    """
    return _Writer(lines, memory, graph, workers).write(steps, titles, outputs)


class _Writer:
    def __init__(self, lines: Lines, memory: Memory, graph: Graph, workers: int) -> None:
        self.lines, self.memory, self.graph, self.workers = lines, memory, graph, workers
        self.names: dict[str, Any] = {"asarray": np.asarray, "empty": np.empty, "copied": copied, "owned": owned}
        self.views: dict[str, tuple[int, Fact]] = {}
        self.known: dict[tuple[int, Fact], str] = {}
        self.meant: dict[int, str] = {}  # the name of each value
        self.named: dict[Any, str] = {}  # the name of each function and constant
        self.recycled: dict[str, Fact] = {}
        self.parts: dict[int, int] = {}
        self.constants: list[str] = []
        self.once: list[str] = []
        self.inputs = self._name_inputs()

    def _name_inputs(self) -> list[str]:
        found = []
        for i in self.graph.inputs:
            name = re.sub(r"\W+", "_", self.graph.nodes[i].name, flags=re.ASCII).strip("_")
            is_ours = re.fullmatch(r"|[bcv_]?\d.*|(step|new|parts|run)_.*", name)  # as the text names its own
            found.append(self._free(f"x{i}" if is_ours else name))
            self.names[found[-1]] = None
            self.meant[self.lines.value_of[i].number] = found[-1]
        return found

    def _free(self, name: str) -> str:
        """A name that means nothing yet."""
        taken = self.names.keys() | self.views.keys() | self.recycled.keys() | {"run", "results", "slice"}
        while name in taken or keyword.iskeyword(name):
            name += "_"
        return name

    def write(self, steps: Sequence[Sequence[int]], titles: Sequence[str], outputs: Sequence[Any]) -> PlanCode:
        body: list[str] = []
        step_at: dict[int, int] = {}
        for number, (calls, title) in enumerate(zip(steps, titles, strict=True)):
            block = [f"    # {title}", *(f"    {text}" for place in calls for text in self._line(place))]
            if self.workers:
                block = self._step_functions(number, calls, block)
            step_at.update(dict.fromkeys(range(len(body), len(body) + len(block)), number))
            body += block
        ending = f"    return {self._outputs(outputs)}"
        if self.workers:
            head, body = [], [*body, "def results():", ending]
        else:
            head, body = [f"def run({', '.join(self.inputs)}):"], [*body, ending]
        above = [*self._legend(), *self.once, "", *head]
        text = "\n".join([*above, *body]) + "\n"
        code = compile(text, f"<plan {self.graph.name}>", "exec")
        for name in self.inputs:
            del self.names[name]
        at = {place + len(above) + 1: step for place, step in step_at.items()}
        there = self.memory.buffer_of.keys() | self.memory.fixed
        own = tuple(name for n, name in self.meant.items() if n not in there and name not in self.inputs)
        sizes = [buffer.nbytes for buffer in self.memory.buffers]
        return PlanCode(
            text, self.names, self.views, self.recycled, sizes, code, at, self.parts, tuple(self.inputs), own
        )

    def _step_functions(self, number: int, calls: Sequence[int], block: Sequence[str]) -> list[str]:
        """A step as a function of its own; a loop in parts as two."""
        line = self.lines.calls[calls[0]]
        loop: Any = line.function
        parts = loop.parts(self.workers) if line.is_group and line.writes else None
        if parts is None or parts.count == 1:
            return [f"def step_{number}():", *self._globals(calls), *block, "    pass", ""]
        self.parts[number] = parts.count
        self.names[f"parts_{number}"] = parts
        targets, given, made = self._group_targets(line)
        call = self._call(replace(line, function=parts.start), given).partition("(")[2]
        opening = [f"def step_{number}_open():", f"    global run_{number}", block[0]]
        opening.append(f"    run_{number} = parts_{number}.start({call}")
        closing = [f"def step_{number}():", *self._globals(calls)]
        ending = f"run_{number}.finish()"
        closing.append(f"    {ending}" if all(targets) else f"    {', '.join(made)}, = {ending}")
        return [*opening, "", *closing, ""]

    def _group_targets(self, line: Line) -> tuple[list[str], str, list[str]]:
        """Of a group: the buffers that it writes to, what is given as ``out``, and the names of what it gives."""
        targets = [self.meant[n] if n in self.memory.buffer_of else "" for n in line.results]
        given = [target or self._recycled(n) for target, n in zip(targets, line.results, strict=True)]
        out = f"({', '.join(target or 'None' for target in given)},)" if line.writes and any(given) else ""
        return targets, out, ["_" if target else self.meant[n] for target, n in zip(targets, line.results, strict=True)]

    def _legend(self) -> list[str]:
        """Comments: what the buffers and constants are."""
        found = [f"# {name}: buffer {buffer}, {fact.shape} {fact.dtype}" for name, (buffer, fact) in self.views.items()]
        return found + [f"# {name}: {_constant_text(self.names[name])}" for name in self.constants]

    def _globals(self, calls: Sequence[int]) -> list[str]:
        """In functions of their own, steps hand values on by names of the workspace."""
        made = [n for place in calls for n in self.lines.calls[place].results if n not in self.memory.buffer_of]
        own = dict.fromkeys(self.meant[n] for n in made if n not in self.memory.fixed)
        return [f"    global {', '.join(own)}"] if own else []

    def _outputs(self, outputs: Sequence[Any]) -> str:
        texts = [self._output(place, output) for place, output in enumerate(outputs)]
        return texts[0] if self.graph.structure is None else self._nested(self.graph.structure, iter(texts))

    def _output(self, place: int, output: Any) -> str:
        text = self._expression(output)
        if place in self.memory.looked_at:
            return f"owned({', '.join([text, *self.inputs])})"
        is_copied = place in self.memory.copied or (type(output) is not Value and not isinstance(output, (int, float)))
        return f"copied({text})" if is_copied else text

    def _nested(self, structure: Structure, leaves: Iterator[str]) -> str:
        if structure.kind is None:
            return next(leaves)
        parts = [self._nested(part, leaves) for part in structure.parts]
        if structure.kind is dict:
            pairs = zip(structure.keys, parts, strict=True)
            return "{" + ", ".join(f"{self._expression(key)}: {part}" for key, part in pairs) + "}"
        if structure.kind is list:
            return f"[{', '.join(parts)}]"
        inside = ", ".join(parts)
        if structure.kind is tuple:
            return f"({inside}{',' if len(parts) == 1 else ''})"
        kind = self._name(structure.kind, structure.kind.__name__)
        return f"{kind}({inside})" if hasattr(structure.kind, "_fields") else f"{kind}(({inside},))"

    # ---------------------------------------------------------------------------------------------------------- one call

    def _line(self, place: int) -> Iterator[str]:
        line = self.lines.calls[place]
        for number in line.results:
            self.meant[number] = self._place_name(number)
        first = line.results[0]
        targets = [self.meant[number] if number in self.memory.buffer_of else "" for number in line.results]
        if first in self.memory.fixed:
            self.once.append(f"{self.meant[first]} = {self._call(line, '')}")
        elif line.is_group:
            targets, out, made = self._group_targets(line)
            yield self._call(line, out) if all(targets) else f"{', '.join(made)}, = {self._call(line, out)}"
        elif targets[0]:
            yield self._call(line, targets[0])
        else:
            yield f"{self.meant[first]} = {self._made(line)}"
        ended = self.memory.dropped_after[place]
        gone = [self.meant[n] for n in ended if n not in self.memory.fixed and self._is_large(n)]
        if gone and not self.workers:
            yield f"del {', '.join(gone)}"

    def _is_large(self, number: int, least: int = _WORTH_DROPPING) -> bool:
        fact = self.lines.facts[number]
        return math.prod(fact.shape) * fact.dtype.itemsize >= least

    def _place_name(self, number: int) -> str:
        buffer = self.memory.buffer_of.get(number)
        if buffer is None:
            return f"v{number}"
        key = (buffer, self.lines.facts[number])
        if key not in self.known:
            count = sum(1 for other, _ in self.known if other == buffer)
            self.known[key] = self._free(f"b{buffer}" + (f"_{count}" if count else ""))
            self.views[self.known[key]] = key
        return self.known[key]

    def _made(self, line: Line) -> str:
        """A call whose result is an array of its own: 0-d ones are asked for, since NumPy would give a number."""
        fact = self.lines.facts[line.results[0]]
        if line.is_checked:
            node = self.graph.nodes[line.node]
            return f"{self._name(_Check(node), f'checked_{line.node}')}({self._call(line, '')})"
        if fact.shape == () and self.lines.devices[line.results[0]] == "cpu":
            if line.writes:
                return self._call(line, f"empty((), {self._expression(fact.dtype)})")
            return f"asarray({self._call(line, '')})"
        return self._call(line, self._recycled(line.results[0]) if line.writes else "")

    def _recycled(self, number: int) -> str:
        """A call that gives an array for a large result that leaves the plan; nothing where it is none."""
        fact = self.lines.facts[number]
        if number not in self.memory.given_away or not self._is_large(number, WORTH_IT):
            return ""
        name = f"new_{number}"
        self.recycled[name] = fact
        return f"{name}()"

    def _call(self, line: Line, out: str) -> str:
        operands = [self._expression(operand) for operand in line.operands]
        options = {name: self._expression(value) for name, value in line.options.items()}
        if line.function is operator.getitem:
            return f"{operands[0]}[{operands[1]}]"
        if line.function in _METHODS and not options and type(line.operands[0]) is Value:
            method = line.function.__name__
            is_reversed = method == "transpose" and operands[1:] in ([], ["None"])
            return f"{operands[0]}.T" if is_reversed else f"{operands[0]}.{method}({', '.join(operands[1:])})"
        function = self._name(line.function, _function_name(line))
        if options.keys() == {"axis", "dtype", "keepdims"} and isinstance(
            getattr(line.function, "__self__", None), np.ufunc
        ):
            operands += [options["axis"], options["dtype"], out or "None", options["keepdims"]]
            options = {}  # 0.9 µs less than by name
        elif out and not options and _takes_out_last(line.function):
            operands.append(out)  # 0.1 µs less than by name
        elif out:
            options["out"] = out
        return f"{function}({', '.join([*operands, *(f'{name}={value}' for name, value in options.items())])})"

    def _expression(self, operand: Any) -> str:
        if type(operand) is Value:
            return self.meant[operand.number]
        if operand is None or operand is ... or type(operand) in (bool, str) or _is_plain_number(operand):
            return repr(operand)
        if type(operand) is tuple:
            return f"({', '.join(map(self._expression, operand))}{',' if len(operand) == 1 else ''})"
        if type(operand) is list:
            return f"[{', '.join(map(self._expression, operand))}]"
        if type(operand) is slice:
            return f"slice({', '.join(map(self._expression, (operand.start, operand.stop, operand.step)))})"
        return self._name(operand, "")

    def _name(self, value: Any, wanted: str) -> str:
        """The name of a function or constant in the text; equal ones have one."""
        key = _identity(value)
        if key not in self.named:
            self.named[key] = name = self._free(wanted or f"c{len(self.constants)}")
            self.names[name] = value
            if not wanted:
                self.constants.append(name)
        return self.named[key]


def _identity(value: Any) -> Any:
    """What two functions or constants share that are the same. Those of a plan live as long as it does."""
    if isinstance(getattr(value, "__self__", None), np.ufunc):  # np.add.reduce is a new object each time
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return bitwise_key(value)
    return value if isinstance(value, np.dtype) else id(value)


def _takes_out_last(function: Any) -> bool:
    """Whether ``out`` may be the last argument, without its name; NumPy asks for the name in two ufuncs."""
    is_ufunc = isinstance(function, np.ufunc) and function not in (np.maximum, np.minimum)
    return is_ufunc or function in (np.dot, cast, select)


def _function_name(line: Line) -> str:
    owner = getattr(line.function, "__self__", None)
    name = getattr(line.function, "__name__", type(line.function).__name__).replace(".", "_")
    if isinstance(owner, np.ufunc):
        return f"{owner.__name__}_{name}"
    if line.is_group:
        return f"loop_{line.node}"
    return name if line.kind != "kernel" or not line.is_checked else f"{name}_{line.node}"


def _is_plain_number(value: Any) -> bool:
    """Whether a number is written as Python reads it."""
    return type(value) is int or (type(value) is float and abs(value) < float("inf"))


def _constant_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.item()!r}, {value.dtype}" if value.ndim == 0 else f"constant {value.shape} {value.dtype}"
    return repr(value)


class _Check:
    """Looks at what a kernel gave that could not be followed in advance."""

    def __init__(self, node: Node) -> None:
        self.node, self.shape, self.dtype = node, node.shape, node.dtype

    def __call__(self, result: Any) -> Any:
        if result.shape != self.shape or result.dtype != self.dtype:
            check_result(self.node, result.shape, result.dtype)
        return result


def copied(value: Any) -> Any:
    """A copy that nobody else holds; an array on a simulated device never changes, so it serves itself."""
    if is_elsewhere(value):
        return value.copy() if hasattr(value, "copy") else value
    return np.array(value)


def owned(value: Any, *inputs: Any) -> Any:
    """The result of a kernel that may have returned what it was given: copied where that is so."""
    is_new = value.base is None if isinstance(value, np.ndarray) else True
    return value if is_new and not any(value is one for one in inputs) else copied(value)
