"""The exercise "write a tracer" of lesson 10: a program is run once, on stand-ins that write down what is done to them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from random import Random
from string import ascii_lowercase
from typing import Any

import autodiff_lab as ad

from . import tracing_answers as answers
from .exercise import (
    CHANGED_ARGUMENTS,
    EVERY_PATH,
    RECURSION,
    RETURNS_NOTHING,
    STOPS_WITH_ERROR,
    Case,
    Exercise,
    Misconception,
    Wrong,
    case,
    soon,
)

OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}

# --------------------------------------------------------------------------------------------------- what tells right


def is_the_graph(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    """Whether the answer is the graph of f, whatever its nodes are called.

    Each node that the output needs corresponds to exactly one node of the lab's recording, with the same op and with
    corresponding inputs in the same order.
    """
    if not has_the_form(answer):
        return False
    (graph, output), recorded = answer, ad.record(f, *(1.0 for _ in names))
    inputs = {name for name, (op, _) in graph.items() if op == "input"}
    if inputs != set(names) or len(graph) > len(recorded):
        return False
    partner = dict(zip(recorded.inputs, names, strict=True))
    stack = [(recorded.outputs[0], output)]
    compared: set[tuple[int, str]] = set()
    while stack:
        number, name = stack.pop()
        if (number, name) in compared:
            continue
        compared.add((number, name))
        op, sources = graph[name]
        node = recorded.nodes[number]
        if partner.setdefault(number, name) != name or op != node.label or len(sources) != len(node.inputs):
            return False
        stack.extend(zip(node.inputs, sources, strict=True))
    return len(set(partner.values())) == len(partner)


def has_the_form(answer: Any) -> bool:
    """Whether the answer is a pair of {node: (op, inputs)} and a node, and every input is a node, too."""
    if not (isinstance(answer, list | tuple) and len(answer) == 2 and isinstance(answer[0], dict)):
        return False
    graph, output = answer
    nodes = list(graph.values())
    if not all(isinstance(node, list | tuple) and len(node) == 2 for node in nodes):
        return False
    if not all(isinstance(op, str) and isinstance(inputs, list | tuple) for op, inputs in nodes):
        return False
    mentioned = [output, *(source for _op, inputs in nodes for source in inputs)]
    return all(isinstance(name, str | int) and name in graph for name in mentioned)


# ------------------------------------------------------------------------------------------------ what explains wrong


def _some(has: Callable[..., bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: any(has(one.answer, *one.case.arguments) for one in wrong if not one.failure)


def _every(has: Callable[..., bool]) -> Callable[[Sequence[Wrong]], bool]:
    return lambda wrong: all(has(one.answer, *one.case.arguments) for one in wrong if not one.failure)


def _value(graph: dict[str, Any], output: str, given: dict[str, float]) -> float | None:
    """What the graph computes for these inputs; None where it computes nothing."""
    known: dict[str, float] = dict(given)
    for _ in graph:
        for name, (op, inputs) in graph.items():
            if name not in known and op in OPERATIONS and len(inputs) == 2 and all(i in known for i in inputs):
                known[name] = OPERATIONS[op](*(known[i] for i in inputs))
        if output in known:
            return known[output]
    return None


def _computes_f(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    numbers = [number + 2 for number in range(len(names))]
    if not has_the_form(answer):
        return False
    graph, output = answer
    return bool(_value(graph, output, dict(zip(names, numbers, strict=True))) == f(*numbers))


def _more_nodes(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    return _computes_f(answer, f, names) and len(answer[0]) > len(ad.record(f, *(1.0 for _ in names)))


def _fewer_nodes(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    return _computes_f(answer, f, names) and len(answer[0]) < len(ad.record(f, *(1.0 for _ in names)))


def _lacks_an_input(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    return has_the_form(answer) and not set(names) <= set(answer[0])


def _lacks_an_edge(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    return has_the_form(answer) and any(op != "input" and len(inputs) < 2 for op, inputs in answer[0].values())


def _swapped(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    if not has_the_form(answer):
        return False
    turned = {name: (op, list(inputs)[::-1]) for name, (op, inputs) in answer[0].items()}
    return is_the_graph((turned, answer[1]), f, names)


def _another_output(answer: Any, f: Callable[..., Any], names: list[str]) -> bool:
    return has_the_form(answer) and any(is_the_graph((answer[0], name), f, names) for name in answer[0])


MISCONCEPTIONS = (
    CHANGED_ARGUMENTS,
    RECURSION,
    RETURNS_NOTHING,
    EVERY_PATH,
    STOPS_WITH_ERROR,
    Misconception(
        "not a graph",
        "What you return has not the form that is asked for: a pair of a dictionary and the name of the output, where "
        "the dictionary has a pair (op, list of inputs) for each node, and every name that is used is one of its keys. "
        "If numbers come back, the program ran on numbers: call it on objects of a class of your own.",
        _some(lambda answer, f, names: not has_the_form(answer)),
    ),
    Misconception(
        "another word for the op",
        'An op is called something else than asked for. The words are `"input"`, `"add"`, `"sub"` and `"mul"`.',
        _some(lambda answer, f, names: not {op for op, _ in answer[0].values()} <= {"input", *OPERATIONS}),
    ),
    Misconception(
        "a graph is a tree",
        "Your graph computes the right thing, with too many nodes. A value that is used several times is one node with "
        "several edges: give a node its name when the operation happens, not once for every use.",
        _some(_more_nodes),
    ),
    Misconception(
        "x * x is one edge",
        "An operation on one value twice has two edges: its list of inputs holds the name twice.",
        _some(_lacks_an_edge),
    ),
    Misconception(
        "an unused input is no input",
        "An input of the program is missing. It belongs to the graph even if nobody uses it: whoever runs the graph "
        "still has to give it.",
        _some(_lacks_an_input),
    ),
    Misconception(
        "equal is the same",
        "Your graph computes the right thing, with too few nodes. A tracer writes down what happened, and the "
        "program computed this twice. (Finding out that once is enough is the work of another part, the optimizer.)",
        _every(_fewer_nodes),
    ),
    Misconception(
        "x − y is y − x",
        "The inputs of an operation stand in the wrong order: first the left operand, then the right one.",
        _every(_swapped),
    ),
    Misconception(
        "what comes last is the output",
        "The graph is right, but not its output. A program may return something that it computed earlier, or one of "
        "its inputs: look at what `f` gives back.",
        _every(_another_output),
    ),
    Misconception(
        "one name for two nodes",
        "Nodes have got lost, or edges lead to the wrong node. Each operation makes a new node, and each node needs a "
        "name that no other one has. (What `id` gives is no such name: when an object is gone, a new one may get its number.)",
        lambda wrong: True,
    ),
)

# -------------------------------------------------------------------------------------------------- what is called on

PROGRAMS: tuple[tuple[str, int, str], ...] = (  # what is looked at, the number of inputs, and the program
    ("one operation", 2, "{0} * {1}"),
    ("a value used twice by one operation", 1, "{0} * {0}"),
    ("order of the operands", 2, "{1} - {0}"),
    ("a diamond", 1, "({0} + {0}) - ({0} * {0})"),
    ("a value used twice", 2, "[h := {0} * {1}, h + {0} - h][-1]"),
    ("values that the program forgets", 2, "{0} * {1} * {1} * {0} * {1}"),
    ("the same sum computed twice", 2, "({0} + {1}) * ({0} + {1})"),
    ("an input that nobody uses", 2, "{1} + {1}"),
    ("a result that is not the last operation", 1, "[h := {0} * {0}, h + {0}, h][-1]"),
    ("a result that is an input", 2, "{1}"),
)


def cases(random: Random, large: bool) -> Iterator[Case]:
    """Programs from one operation to many, the names of their inputs drawn at random."""
    for check, count, body in PROGRAMS:
        names = random.sample([letter for letter in ascii_lowercase if letter != "h"], count)
        yield _program(check, names, body.format(*names))
    for size in range(3, 14 if large else 9):
        names = random.sample(ascii_lowercase, random.randint(1, 3))
        known = list(names)
        lines = []
        for number in range(size):
            known.append(f"t{number}")
            left, right = random.choice(known[-3:-1]), random.choice(known[:-1])
            lines.append(f"{known[-1]} := {left} {random.choice('+-*')} {right}")
        yield _program("random programs", names, f"[{', '.join(lines)}][-1]")
    times = random.randint(40, 60)
    yield soon(_program("a value doubled again and again", ["y"], f"[y := y + y for _ in range({times})][-1]"))


def _program(check: str, names: list[str], body: str) -> Case:
    return case(check, f"lambda {', '.join(names)}: {body}, {names}")


EXERCISES = (
    Exercise(
        lesson="10_computation_graph",
        statement="""\
Write `trace(f, names)`, which records a program as `ad.record` does, and without it.

* `f` is a function of as many arguments as there are `names`. It uses `+`, `-` and `*`, between its arguments and what it
  computed from them. Call it on stand-ins: objects of a small class of yours.
* Return a pair: **the graph** and **the name of the output**.
* The graph is a dictionary with a pair `(op, inputs)` for each node. `op` is `"input"`, `"add"`, `"sub"` or `"mul"`;
  `inputs` is the list of the operands' names, the left one first.
* Every input is a node, under the name given in `names`: a letter. All other names are yours to choose.

So `trace(lambda x: x * x, ["x"])` may return `({"x": ("input", []), "n1": ("mul", ["x", "x"])}, "n1")`.""",
        hints=(
            "Python turns `a + b` into a call of a method of `a`, and hands it `b`. What would that method have to "
            "know to write a line of the graph? What has to come back, so that the program can go on with it?",
            "Define a class inside of your function whose objects know one thing: the name of their node. Its methods "
            "`__add__`, `__sub__` and `__mul__` put a line into the dictionary and return a new object.",
            "A good name for a new node is one with the number of nodes so far in it: it cannot be taken. Write one "
            "function that takes op and operands, adds the line and returns the new object; the three methods call it. "
            "At the end, the object that `f` returned knows the name of the output.",
        ),
        solution=answers.trace,
        alternatives=(answers.by_parents,),
        withheld=("record", "graph_of", "listen"),
        wrong=(
            (answers.as_a_tree, "a graph is a tree"),
            (answers.along_every_path, "once for every path"),
            (answers.inputs_as_a_set, "x * x is one edge"),
            (answers.named_by_formula, "equal is the same"),
            (answers.named_by_op, "one name for two nodes"),
            (answers.named_by_id, "one name for two nodes"),
            (answers.operands_swapped, "x − y is y − x"),
            (answers.last_is_output, "what comes last is the output"),
            (answers.only_what_is_used, "an unused input is no input"),
            (answers.computed, "not a graph"),
            (answers.by_the_lab, "the lab does it"),
        ),
        misconceptions=MISCONCEPTIONS,
        cases=cases,
        accepts=is_the_graph,
    ),
)
