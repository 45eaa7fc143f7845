"""What opcheck and find_faulty_op found: frozen records with a text and a rich form, for people, lessons and CI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .graph import Graph, Source
from .reports import HEADINGS, card, row

# ------------------------------------------------------------------------------------------------------------ opcheck

TestVerdict = Literal["passed", "failed", "not applicable"]
MARKS: dict[TestVerdict, str] = {"passed": "✓", "failed": "✗", "not applicable": "–"}


@dataclass(frozen=True, slots=True)
class OpTest:
    """One test of ``opcheck``: its name, the verdict, and what it caught."""

    name: str
    verdict: TestVerdict
    reason: str  # what it caught, why it does not apply, or how many calls it passed on
    example: str = ""  # the smallest call that fails, as it can be typed: ops.mul(np.array([1.0]), 2.0)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The test as a row of a table: name, verdict, what it caught, smallest failing call."""
        return self.name, f"{MARKS[self.verdict]} {self.verdict}", self.reason, self.example


@dataclass(frozen=True, slots=True)
class OpcheckReport:
    """What ``opcheck`` found. As a truth value the report says whether the op passed."""

    name: str  # the op
    tests: tuple[OpTest, ...]

    @property
    def ok(self) -> bool:
        """Whether no test failed, and at least one could be made."""
        verdicts = [test.verdict for test in self.tests]
        return "failed" not in verdicts and "passed" in verdicts

    @property
    def failed(self) -> tuple[OpTest, ...]:
        """The tests that failed."""
        return tuple(test for test in self.tests if test.verdict == "failed")

    @property
    def shown(self) -> tuple[OpTest, ...]:
        """The tests as a reader wants them: those that failed first, and those that do not apply last, one for each reason."""
        reasons: dict[str, list[str]] = {}
        for test in self.tests:
            if test.verdict == "not applicable":
                reasons.setdefault(test.reason, []).append(test.name)
        passed = [test for test in self.tests if test.verdict == "passed"]
        rest = [OpTest(", ".join(names), "not applicable", reason) for reason, names in reasons.items()]
        return (*self.failed, *passed, *rest)

    def test(self, name: str) -> OpTest:
        """The test with this name.

        Raises:
            KeyError: there is none; says which there are.
        """
        for test in self.tests:
            if test.name == name:
                return test
        raise KeyError(f"opcheck has no test {name!r}; its tests are: {', '.join(test.name for test in self.tests)}")

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [self._heading()]
        for test in self.shown:
            lines.append(f"  {MARKS[test.verdict]} {test.name}: {test.reason}")
            lines += [f"      smallest failing call: {test.example}"] if test.example else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(row("td", test.cells) for test in self.shown)
        table = f"<table>{row('th', ('test', 'verdict', 'what it found', 'smallest failing call'))}{rows}</table>"
        colour = HEADINGS["right" if self.ok else "wrong" if self.failed else "imprecise"][1]
        return card(colour, self._heading(), table, [])

    def _heading(self) -> str:
        counts = {verdict: sum(test.verdict == verdict for test in self.tests) for verdict in MARKS}
        rest = f"; {counts['not applicable']} not applicable" if counts["not applicable"] else ""
        if self.failed:
            return f"✗ {self.name}: {counts['failed']} of {len(self.tests)} tests failed{rest}"
        if not self.ok:
            return f"? {self.name}: nothing could be tested"
        return f"✓ {self.name}: {counts['passed']} of {len(self.tests)} tests passed{rest}"


# ----------------------------------------------------------------------------------------------------- find_faulty_op

Blame = Literal["", "rule", "sum", "order", "outside"]


@dataclass(frozen=True, slots=True)
class FaultFound:
    """One thing that makes a gradient wrong, and where it is."""

    blame: (
        Blame  # a gradient rule, a sum of contributions, the order of the sweep, or what passes outside of recorded ops
    )
    op: str | None
    node: int | None  # its id in the report's graph
    rule: str | None  # the name of the rule function
    source: Source | None  # of the call
    reason: str

    def __str__(self) -> str:
        where = f"{self.op} (node {self.node}): " if self.op is not None else ""
        return f"{where}{self.reason}" + (f"\n    called in {self.source}" if self.source is not None else "")


@dataclass(frozen=True, slots=True)
class FaultyOpReport:
    """What ``find_faulty_op`` found: the faults, nearest to the result first. As a truth value: whether there is none."""

    name: str  # the function
    graph: Graph | None  # the Graph of the run, whose node ids the faults name
    faults: tuple[FaultFound, ...]
    notes: tuple[str, ...]  # what was compared, and what could not be judged

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    @property
    def first(self) -> FaultFound:
        """The first fault; an empty one where there is none."""
        return self.faults[0] if self.faults else FaultFound("", None, None, None, None, "")

    @property
    def blame(self) -> Blame:
        """What kind of thing is wrong: ``rule``, ``sum``, ``order``, ``outside``, or nothing."""
        return self.first.blame

    @property
    def op(self) -> str | None:
        """The name of the op at fault; of the node that receives, where a sum or the order is wrong."""
        return self.first.op

    @property
    def node(self) -> int | None:
        """The id of its node in ``graph``."""
        return self.first.node

    @property
    def source(self) -> str | None:
        """The line that called it, as ``file:line in function: text``; None where it is not known."""
        return None if self.first.source is None else str(self.first.source)

    @property
    def reason(self) -> str:
        """What is wrong, with the rule's name."""
        return self.first.reason

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join(
            [self._heading(), *(f"  {fault}" for fault in self.faults), *(f"  {note}" for note in self.notes)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(fault.op or "", fault.rule or "", fault.reason, str(fault.source or "")) for fault in self.faults]
        rows = "".join(row("td", one) for one in cells)
        table = f"<table>{row('th', ('op', 'rule', 'what is wrong', 'called in'))}{rows}</table>" if rows else ""
        return card(HEADINGS["right" if self.ok else "wrong"][1], self._heading(), table, self.notes)

    def _heading(self) -> str:
        if self.ok:
            return f"✓ {self.name}: every op's rule is right at these values"
        return f"✗ {self.name}: {len(self.faults)} fault{'s' if len(self.faults) > 1 else ''} found"
