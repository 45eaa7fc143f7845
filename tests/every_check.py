"""Every check of the repository, one after the other, with a summary: what ``python3 lab.py test`` runs.

It runs all of them, also after a failure. Where nobody looks (CI=true), a check that cannot run has failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIDE_BY_SIDE = ("-n", str(os.cpu_count() or 1), "--dist", "worksteal")  # exercises take seconds, ops milliseconds

TESTS_FAILED = 1  # pytest's exit code where tests ran and some failed; others are for what it could not run


@dataclass(frozen=True)
class Step:
    """One check: its name, its command, and what it needs that is not here (empty: nothing)."""

    name: str
    command: Sequence[str]
    missing: str = ""
    again: Sequence[str] = ()  # the command for those tests only that failed, once the machine does nothing else


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    name: str
    verdict: str  # "passed", "failed" or "skipped"
    seconds: float = 0.0
    reason: str = ""


def steps(fast: bool) -> list[Step]:
    """Return every check in the order in which a mistake shows soonest."""
    module = (sys.executable, "-m")
    scripts = str(Path(sys.executable).parent)
    node, npm = shutil.which("node"), shutil.which("npm")
    no_node = "" if node and npm else "Node.js is not installed"
    chosen = "not slow and not browser and not gpu" if fast else "not alone"
    tests = [str(path) for path in sorted((ROOT / "tests" / "js").glob("*.test.js"))]
    found = [
        Step("format", (*module, "ruff", "format", "--check", ".")),
        Step("lint", (*module, "ruff", "check", ".")),
        Step("who imports whom", (shutil.which("lint-imports", path=scripts) or "lint-imports",)),
        Step("types", (*module, "mypy")),
    ]
    if not is_current(ROOT / "node_modules" / ".package-lock.json", ROOT / "package-lock.json"):
        found.append(Step("node packages", (npm or "npm", "ci", "--no-audit", "--no-fund"), no_node))
    pytest = (*module, "pytest", "-m")
    failed = ("--last-failed", "--last-failed-no-failures", "none")  # with none on record pytest itself has failed
    found += [
        Step("player", (node or "node", "--test", *tests), no_node or ("" if tests else "tests/js is empty")),
        Step("player's types", (node or "node", str(ROOT / "node_modules/typescript/bin/tsc"), "-p", "."), no_node),
        Step("tests side by side", (*pytest, chosen, *SIDE_BY_SIDE), again=(*pytest, chosen, *failed)),
    ]
    if not fast:
        found.append(Step("tests alone", (*pytest, "alone"), again=(*pytest, "alone", *failed)))
    return found


def is_current(made: Path, source: Path) -> bool:
    """Tell whether a file was made, and after the last change of what it is made from."""
    return made.exists() and made.stat().st_mtime >= source.stat().st_mtime


def run(step: Step, variables: Mapping[str, str]) -> Outcome:
    """Run one check with its output on the terminal.

    Tests that failed run once more by themselves: one that passes then has failed because the machine stood still, and the
    summary says so. What a test found in random input fails again, since that is kept.
    """
    if step.missing:
        strict = (
            variables.get("CI") == "true"
        )  # where nobody looks, a check that did not run must not look like one that passed
        return Outcome(step.name, "failed" if strict else "skipped", reason=step.missing)
    print(f"\n── {step.name} {'─' * (70 - len(step.name))}", flush=True)
    started = time.monotonic()
    try:
        code, reason = subprocess.run(step.command, cwd=ROOT, env=dict(variables), check=False).returncode, ""
        if code == TESTS_FAILED and step.again:
            print(f"\n── {step.name}: what failed, once more {'─' * 40}", flush=True)
            code = subprocess.run(step.again, cwd=ROOT, env=dict(variables), check=False).returncode
            reason = "" if code else "UNSTEADY: tests named above failed first and passed by themselves"
    except OSError as error:
        return Outcome(step.name, "failed", time.monotonic() - started, f"{step.command[0]}: {error.strerror}")
    return Outcome(step.name, "failed" if code else "passed", time.monotonic() - started, reason)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each check, and the verdict."""
    lines = [f"{each.verdict:<8} {each.seconds:6.1f} s  {each.name:<18} {each.reason}".rstrip() for each in outcomes]
    failed = [each.name for each in outcomes if each.verdict == "failed"]
    total = sum(each.seconds for each in outcomes)
    verdict = f"FAILED: {', '.join(failed)}" if failed else "All checks that ran passed"
    return "\n".join([*lines, f"{verdict} ({total:.0f} s)"])


def run_all(chosen: Sequence[Step]) -> int:
    """Run all checks, also after a failure, and return the exit code."""
    packages = os.pathsep.join(str(ROOT / room) for room in ("", "widgets", "notebooks"))
    # Lessons, and processes for checks, start in 0.5 s of processor time from compiled files, in 0.9 s from source.
    settings = {**os.environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": ""}
    outcomes = [run(step, settings) for step in chosen]
    print(f"\n── summary {'─' * 63}\n{summary(outcomes)}", flush=True)
    return int(any(outcome.verdict == "failed" for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(run_all(steps(fast="--fast" in sys.argv)))
