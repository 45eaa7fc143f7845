"""The run of all checks: none is left out, a failure is told, and what cannot run is said."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.every_check import Outcome, Step, is_current, run, run_all, steps, summary


def outcome(*program: str, variables: dict[str, str] | None = None, missing: str = "") -> Outcome:
    step = Step("a step", (sys.executable, "-c", *program), missing)
    return run(step, os.environ if variables is None else variables)


def test_a_step_passes_or_fails_with_its_command() -> None:
    assert outcome("pass").verdict == "passed"
    assert outcome("raise SystemExit(3)").verdict == "failed"


def test_a_command_that_is_not_there_is_a_failure_with_its_name() -> None:
    step = Step("a step", ("no-such-program",))
    result = run(step, os.environ)
    assert result.verdict == "failed"
    assert "no-such-program" in result.reason


FAILS_ONCE = """
import pathlib, sys

def test_it():
    seen = pathlib.Path(__file__).with_name("seen")
    first, _ = not seen.exists(), seen.touch()
    assert not first

def test_other():
    assert {other}
"""


@pytest.mark.parametrize(("other", "verdict"), [(True, "passed"), (False, "failed")])
def test_tests_that_failed_run_once_more_and_only_those_that_fail_again_count(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], other: bool, verdict: str
) -> None:
    (tmp_path / "test_once.py").write_text(FAILS_ONCE.format(other=other))
    pytest_there = (sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path))
    step = Step("a step", pytest_there, again=(*pytest_there, "--last-failed", "--last-failed-no-failures", "none"))
    result = run(step, os.environ)
    assert result.verdict == verdict and ("UNSTEADY" in result.reason) == other
    ends = re.findall(r"=+ (\d.*) in .*=", capfd.readouterr().out)  # of both runs: the first is told too
    assert ends == (["1 failed, 1 passed", "1 passed"] if other else ["2 failed", "1 failed, 1 passed"])


def test_a_run_of_tests_that_could_not_begin_is_not_made_again() -> None:
    step = Step("a step", (sys.executable, "-c", "raise SystemExit(2)"), again=(sys.executable, "-c", "pass"))
    assert run(step, os.environ).verdict == "failed"


def test_what_cannot_run_is_skipped_with_its_reason_and_fails_in_ci() -> None:
    reason = "Node.js is not installed"
    assert outcome("pass", variables={}, missing=reason) == Outcome("a step", "skipped", reason=reason)
    assert outcome("pass", variables={"CI": "true"}, missing=reason).verdict == "failed"


def test_every_step_runs_also_after_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    programs = {"first": "raise SystemExit(1)", "second": "print('second ran')"}
    chosen = [Step(name, (sys.executable, "-c", program)) for name, program in programs.items()]
    assert run_all(chosen) == 1
    output = capfd.readouterr().out
    assert "second ran" in output
    assert "FAILED: first" in output
    assert run_all(chosen[1:]) == 0


def test_the_summary_names_each_check_its_seconds_and_its_verdict() -> None:
    text = summary([Outcome("lint", "passed", 1.25), Outcome("types", "skipped", reason="no mypy")])
    assert re.search(r"passed +1\.[23] s +lint", text)
    assert re.search(r"skipped +0\.0 s +types +no mypy", text)
    assert "FAILED" not in text


def test_fast_leaves_out_the_tests_that_take_long_and_nothing_else() -> None:
    everything, fast = (steps(fast=flag) for flag in (False, True))
    names = [[step.name for step in chosen] for chosen in (everything, fast)]
    assert names[0] == [*names[1], "tests alone"]
    assert [a.name for a, b in zip(everything, fast, strict=False) if a.command != b.command] == ["tests side by side"]


def test_every_test_is_either_run_side_by_side_or_alone() -> None:
    tests = [step for step in steps(fast=False) if step.name.startswith("tests")]
    chosen = {step.name: step.command[step.command.index("-m", 2) + 1] for step in tests}
    assert all(step.again[: len(step.again) - 3] == step.command[: len(step.again) - 3] for step in tests)
    assert chosen == {"tests side by side": "not alone", "tests alone": "alone"}


def test_without_node_the_player_is_not_checked_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    reasons = {step.name: step.missing for step in steps(fast=False)}
    assert reasons["player"] == reasons["player's types"] == "Node.js is not installed"
    assert not reasons["tests side by side"]


def test_what_is_older_than_its_source_is_made_again(tmp_path: Path) -> None:
    made, source = tmp_path / "made", tmp_path / "source"
    source.touch()
    assert not is_current(made, source)
    made.touch()
    os.utime(source, (1000, 1000))
    assert is_current(made, source)
    os.utime(made, (999, 999))
    assert not is_current(made, source)
