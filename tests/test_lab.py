"""What the launcher decides: what to install and when to trust it, what to open, which checks count, and what it says."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import lab

pytestmark = pytest.mark.alone

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository that the launcher takes for its own."""
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    return tmp_path


class Machine:
    """Stands in for the commands of a set-up: it remembers them, makes a Python where one is asked for, and can break."""

    def __init__(self, environment: lab.Environment, breaks_at: str = "nowhere") -> None:
        self.environment, self.breaks_at = environment, breaks_at
        self.commands: list[str] = []

    def __call__(self, command: Sequence[str]) -> None:
        self.commands.append(command[2])
        if command[2] == self.breaks_at:
            (self.environment.folder / "half_written.py").touch()
            raise KeyboardInterrupt
        self.environment.python.parent.mkdir(parents=True, exist_ok=True)
        self.environment.python.touch()


def set_up(repository: Path, extras: Sequence[str] = ("lab",), breaks_at: str = "nowhere") -> list[str]:
    """The modules that a set-up ran: "venv", "pip"."""
    environment = lab.Environment(repository / ".venv")
    machine = Machine(environment, breaks_at)
    lab.set_up(environment, extras, machine)
    return machine.commands


# ------------------------------------------------------------------------------------------------------- the set-up


def test_the_first_run_installs_and_the_second_does_nothing(repository: Path) -> None:
    assert set_up(repository) == ["venv", "pip"]
    assert set_up(repository) == []


def test_a_changed_pyproject_installs_again_into_the_same_environment(repository: Path) -> None:
    set_up(repository)
    (repository / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert set_up(repository) == ["pip"]


def test_a_run_that_needs_more_installs_more_and_keeps_what_was_there(repository: Path) -> None:
    set_up(repository, ["lab"])
    assert set_up(repository, ["lab", "dev"]) == ["pip"]
    assert set_up(repository, ["lab"]) == []
    assert lab.Environment(repository / ".venv").extras() == {"lab", "dev"}


@pytest.mark.parametrize("breaks_at", ["venv", "pip"])
def test_an_interrupted_set_up_is_never_trusted_and_leaves_nothing_behind(repository: Path, breaks_at: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        set_up(repository, breaks_at=breaks_at)
    assert set_up(repository) == ["venv", "pip"]
    assert not (repository / ".venv" / "half_written.py").exists()
    assert set_up(repository) == []


def test_an_interrupted_update_is_never_trusted(repository: Path) -> None:
    set_up(repository)
    (repository / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        set_up(repository, breaks_at="pip")
    assert set_up(repository) == ["venv", "pip"]


def test_a_record_that_cannot_be_read_is_not_trusted(repository: Path) -> None:
    set_up(repository)
    lab.Environment(repository / ".venv").record.write_text('{"state": "rea', encoding="utf-8")
    assert set_up(repository) == ["venv", "pip"]


def test_an_environment_whose_python_is_gone_is_made_again(repository: Path) -> None:
    set_up(repository)
    lab.Environment(repository / ".venv").python.unlink()
    assert set_up(repository) == ["venv", "pip"]


def test_a_moved_folder_is_not_trusted(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert lab.stamp_of(tmp_path / "here") != lab.stamp_of(tmp_path / "there")


def test_an_environment_that_somebody_else_made_is_left_alone(repository: Path) -> None:
    precious = repository / ".venv" / "pyvenv.cfg"
    precious.parent.mkdir()
    precious.write_text("mine", encoding="utf-8")
    with pytest.raises(lab.Problem, match="did not make it"):
        set_up(repository)
    assert precious.read_text(encoding="utf-8") == "mine"


def test_a_full_disk_is_refused_before_anything_is_written(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = lab.shutil.disk_usage(repository)
    monkeypatch.setattr(lab.shutil, "disk_usage", lambda folder: usage._replace(free=50 * 2**20))
    with pytest.raises(lab.Problem, match="50 MB free"):
        set_up(repository)
    assert not (repository / ".venv").exists()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("Error: ensurepip is not\navailable. On Debian/Ubuntu systems, you need …", "python3-venv"),
        ("No module named venv", "python3-venv"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("NewConnectionError: Failed to establish a new connection: [Errno -3] name resolution", "HTTPS_PROXY"),
        ("ProxyError('Cannot connect to proxy.')", "HTTPS_PROXY"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "PIP_CERT"),
        ("OSError: [WinError 206] The filename or extension is too long", "near the root"),
        ("PermissionError: [WinError 5] Access is denied", "may not be written"),
        ("a line\nsomething nobody has seen", "something nobody has seen"),
    ],
)
def test_a_failed_set_up_says_why_and_what_to_do(output: str, words: str) -> None:
    program = f"print({output!r}); raise SystemExit(1)"
    with pytest.raises(lab.Problem, match=re.escape(words)):
        lab.install([sys.executable, "-c", program])


def test_packages_of_another_python_are_kept_out() -> None:
    assert lab.clean({"PATH": "p", "PYTHONPATH": "x", "PYTHONHOME": "y"}) == {"PATH": "p"}


# ------------------------------------------------------------------------------------------------------------ opening


def test_the_first_lesson_is_the_one_with_the_lowest_number(tmp_path: Path) -> None:
    for name in ("20_later.ipynb", "10_first.ipynb", "draft.ipynb", "05_notes.txt"):
        (tmp_path / name).touch()
    assert lab.first_lesson(tmp_path) == "10_first.ipynb"


def test_copies_of_lessons_keep_their_answers_and_new_lessons_join_them(tmp_path: Path) -> None:
    lessons, mine = tmp_path / "lessons", tmp_path / "deep" / "mine"
    lessons.mkdir()
    (lessons / "10_first.ipynb").write_text("a lesson", encoding="utf-8")
    assert lab.copied(lessons, mine) == mine
    (mine / "10_first.ipynb").write_text("a lesson with answers", encoding="utf-8")
    (lessons / "10_first.ipynb").write_text("a lesson, revised", encoding="utf-8")
    (lessons / "20_second.ipynb").write_text("another", encoding="utf-8")
    lab.copied(lessons, mine)
    assert [path.read_text(encoding="utf-8") for path in sorted(mine.iterdir())] == ["a lesson with answers", "another"]


def test_the_copy_of_the_index_is_always_the_newest(tmp_path: Path) -> None:
    (tmp_path / lab.INDEX).write_text("two lessons", encoding="utf-8")
    lab.copied(tmp_path, tmp_path / "mine")
    (tmp_path / lab.INDEX).write_text("three lessons", encoding="utf-8")
    lab.copied(tmp_path, tmp_path / "mine")
    assert (tmp_path / "mine" / lab.INDEX).read_text(encoding="utf-8") == "three lessons"
    assert (REPOSITORY / "notebooks" / "lessons" / lab.INDEX).exists()


def test_the_folder_that_readme_names_for_copies_is_not_tracked() -> None:
    (named,) = set(re.findall(r"lab\.py --copy (\w+)", (REPOSITORY / "README.md").read_text(encoding="utf-8")))
    command = ["git", "check-ignore", "--quiet", f"{named}/10_first.ipynb"]
    assert subprocess.run(command, cwd=REPOSITORY).returncode == 0


def test_no_lesson_is_said_with_the_folder(tmp_path: Path) -> None:
    with pytest.raises(lab.Problem, match=re.escape(str(tmp_path))):
        lab.first_lesson(tmp_path)


def test_a_port_in_use_is_refused_and_another_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(lab.Problem, match=f"--port {port + 1}"):
            lab.check_port(port)
    lab.check_port(port)


@pytest.mark.parametrize("version", [(3, 7), (3, 10)])
def test_an_old_python_is_refused_and_a_newer_one_is_named(version: tuple[int, int]) -> None:
    with pytest.raises(lab.Problem, match=r"python3\.12 lab\.py"):
        lab.check_python(version, which=lambda name: name if name == "python3.12" else None)
    with pytest.raises(lab.Problem, match="conda"):
        lab.check_python(version, which=lambda name: None)


def test_an_old_python_can_read_the_launcher_to_the_point_where_it_refuses() -> None:
    ast.parse((REPOSITORY / "lab.py").read_text(encoding="utf-8"), feature_version=(3, 7))


def get(address: str, data: bytes | None = None) -> str:
    """What a server answers, to data that are sent if given; the reason where it does not."""
    try:
        with urllib.request.urlopen(address, data, timeout=20) as answer:
            return str(answer.read().decode())
    except OSError as error:
        return repr(error)


def answers(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def within(seconds: float, wanted: Callable[[], object]) -> object:
    """The first true answer, asked for until the time is over."""
    end = time.monotonic() + seconds
    while not (found := wanted()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as a terminal sends them")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_lab_serves_its_first_lesson_starts_a_kernel_and_ends_when_told_without_a_word_that_alarms(
    tmp_path: Path, number: signal.Signals
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(REPOSITORY / "lab.py"), "--here", "--no-browser", "--port", str(port)]
    settings = {name: str(tmp_path) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")}
    output = tmp_path / "output.txt"
    with output.open("w") as file:
        server = subprocess.Popen(command, env={**os.environ, **settings}, stdout=file, stderr=subprocess.STDOUT)
    try:
        lesson = lab.first_lesson(REPOSITORY / "notebooks" / "lessons")
        address = rf"(http://127\.0\.0\.1:{port})/lab/tree/{lesson}\?(token=\w+)"
        found = within(60, lambda: re.search(address, output.read_text()))
        assert isinstance(found, re.Match), output.read_text()
        start, token = found.groups()
        assert '"cells"' in get(f"{start}/api/contents/{lesson}?{token}")
        kernel = json.loads(get(f"{start}/api/kernels?{token}", data=b"{}"))["id"]
        connection = json.loads((tmp_path / f"kernel-{kernel}.json").read_text())
        assert within(30, lambda: answers(connection["shell_port"]))  # by then it has said what it says at its start
    finally:
        server.send_signal(number)
        code = server.wait(20)
    assert code == 0, output.read_text()
    assert output.read_text().endswith("\nThe lab has stopped. Your saved work is kept.\n")
    assert not re.search("eavesdrop|received signal|Shutting down", output.read_text())
    assert "URLError" in get(f"{start}/api")


def test_the_command_line_says_what_is_wrong_without_a_traceback(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.main(["--no-browser"]) == 1
    assert "There is no lesson in" in capsys.readouterr().err


def test_cupy_is_installed_only_where_an_nvidia_driver_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    assert lab.gpu_extra() == []
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/nvidia-smi" if name == "nvidia-smi" else None)
    assert lab.gpu_extra() == ["gpu"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(Path, "exists", lambda path: path.name == "nvcuda.dll")
    assert lab.gpu_extra() == ["gpu"]


def test_cuda_sources_are_compiled_where_nobody_looks_and_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "gpu_extra", lambda: [])
    monkeypatch.delenv("CI", raising=False)
    assert lab.extras_for(test=False) == ["lab"]
    assert lab.extras_for(test=True) == ["lab", "dev"]
    monkeypatch.setenv("CI", "true")
    assert lab.extras_for(test=False) == ["lab"]
    assert lab.extras_for(test=True) == ["lab", "dev", "gpu", "jit", "cluster"]
    monkeypatch.setattr(lab, "gpu_extra", lambda: ["gpu"])
    monkeypatch.delenv("CI")
    assert lab.extras_for(test=True) == ["lab", "dev", "gpu"]
