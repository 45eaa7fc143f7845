"""Without a network: which wheels the lab needs on which machine, and an installation from a folder alone."""

from __future__ import annotations

import sys
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from itertools import product
from pathlib import Path
from typing import Any

import hatchling.build
import pytest
from packaging.requirements import Requirement
from packaging.tags import mac_platforms
from packaging.utils import canonicalize_name

import lab

MARKERS = {
    "windows": ("win32", "nt", "Windows", "AMD64"),
    "macos-arm": ("darwin", "posix", "Darwin", "arm64"),
    "macos-intel": ("darwin", "posix", "Darwin", "x86_64"),
    "linux": ("linux", "posix", "Linux", "x86_64"),
}
NAMES = ("sys_platform", "os_name", "platform_system", "platform_machine", "python_version", "python_full_version")
PYTHONS = ("3.11", "3.12", "3.14")


@cache
def asked_by(package: str) -> tuple[Requirement, ...]:
    """What an installed package asks for; nothing where it is a package of another system."""
    try:
        return tuple(Requirement(line) for line in requires(package) or ())
    except PackageNotFoundError:
        return ()


@cache
def needed(lines: tuple[str, ...], system: str, python: str) -> frozenset[str]:
    """The packages that these requirements lead to on one system with one Python."""
    markers = dict(zip(NAMES, (*MARKERS[system], python, f"{python}.0"), strict=True))
    waiting, found = [(Requirement(line), frozenset[str]()) for line in lines], set()
    while waiting:
        asked, extras = waiting.pop()
        key = (canonicalize_name(asked.name), frozenset(asked.extras))
        if key not in found and (
            asked.marker is None or any(asked.marker.evaluate({**markers, "extra": extra}) for extra in (*extras, ""))
        ):
            found.add(key)
            waiting += [(one, key[1]) for one in asked_by(asked.name)]
    return frozenset(name for name, _ in found)


@pytest.mark.slow
@pytest.mark.parametrize("target", lab.SYSTEMS)
def test_what_another_system_needs_is_downloaded_wherever_the_wheels_are_fetched(target: str) -> None:
    lines, more = tuple(lab.requirements(lab.ROOT, ["lab"])), lab.SYSTEMS[target].needs
    fetched = [needed(lines, *here) | needed(more, *here) for here in product(MARKERS, PYTHONS)]
    for python in PYTHONS:
        assert needed(lines, target, python) <= frozenset.intersection(*fetched)


def test_building_the_project_offline_needs_nothing_that_is_not_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab.ROOT)
    asked = lab.requirements(lab.ROOT, [])
    assert set(hatchling.build.get_requires_for_build_editable()) <= set(asked)
    assert any(Requirement(line).name == "hatchling" for line in asked)


def test_wheels_for_this_machine_are_asked_for_without_a_platform_and_for_another_one_with_it(tmp_path: Path) -> None:
    here = lab.download_command(Path("python"), tmp_path, ["lab", "gpu"], None, None)
    assert "--platform" not in here and "--only-binary=:all:" in here
    assert any(line.startswith("cupy") for line in here) and any(line.startswith("jupyterlab") for line in here)
    there = lab.download_command(Path("python"), tmp_path, ["lab", "gpu"], "windows", "3.12")
    assert there[there.index("--platform") + 1] == "win_amd64" and there[there.index("--python-version") + 1] == "3.12"
    assert not any(line.startswith("cupy") for line in there) and "colorama" in there


def test_tags_of_macs_are_those_that_python_gives_itself() -> None:
    for system, machine in (("macos-arm", "arm64"), ("macos-intel", "x86_64")):
        (tag,) = lab.SYSTEMS[system].tags
        assert tag in set(mac_platforms((14, 0), machine))


def test_an_empty_folder_of_wheels_is_refused_with_what_fills_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.main(["--wheels", str(tmp_path), "--no-browser"]) == 1
    said = capsys.readouterr().err
    assert str(tmp_path) in said and "python3 lab.py wheels" in said


def test_a_package_that_the_folder_lacks_is_told_with_how_to_fetch_it() -> None:
    said = lab.explain("ERROR: No matching distribution found for numpy<3,>=2")
    assert "lab.py wheels --for SYSTEM --python VERSION" in said


def test_the_gpu_extra_is_left_out_where_the_folder_has_no_cupy(tmp_path: Path) -> None:
    assert lab.extras_in(tmp_path, ["lab", "gpu"]) == ["lab"]
    (tmp_path / "cupy_cuda12x-14.0.0-cp312-cp312-win_amd64.whl").touch()
    assert lab.extras_in(tmp_path, ["lab", "gpu"]) == ["lab", "gpu"]


def test_the_command_line_packs_for_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(lab, "install", asked.extend)
    assert lab.main(["wheels", "--here", "--for", "windows", "--python", "3.13", "--wheels", str(tmp_path)]) == 0
    assert asked == lab.download_command(Path(sys.executable), tmp_path.resolve(), ["lab"], "windows", "3.13")
    assert "win_amd64" in asked and str(tmp_path.resolve()) in asked


def test_packing_says_how_to_use_what_was_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tiny-1.0-py3-none-any.whl").write_bytes(b"0" * 2**20)
    assert lab.packed([sys.executable, "-c", ""], tmp_path) == 0
    said = capsys.readouterr().out
    assert "1 wheels, 1 MB" in said and "python3 lab.py --wheels" in said


# A package that asks for one other package, and builds itself without any.
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "lesson-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        about = "lesson-1.0.dist-info"
        told = "Metadata-Version: 2.1\\nName: lesson\\nVersion: 1.0\\nProvides-Extra: lab\\n"
        wheel.writestr(f"{about}/METADATA", told + "Requires-Dist: tiny>=1; extra == 'lab'\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return name
"""


def tiny_wheel(folder: Path) -> None:
    about = "tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


@pytest.mark.slow
def test_an_environment_is_made_from_the_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, wheels = tmp_path / "repository", tmp_path / "wheels"
    repository.mkdir()
    wheels.mkdir()
    (repository / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (repository / "backend.py").write_text(BACKEND, encoding="utf-8")
    tiny_wheel(wheels)
    dead: dict[str, Any] = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}
    for name, value in dead.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(lab, "ROOT", repository)
    environment = lab.Environment(repository / ".venv")
    lab.set_up(environment, ["lab"], lab.install, lab.filled(wheels))
    assert environment.is_ready(["lab"], lab.stamp_of(repository))
    lab.install([str(environment.python), "-c", "import tiny; assert tiny.ANSWER == 42"])
