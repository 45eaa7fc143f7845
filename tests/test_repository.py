"""What the repository says about itself: paths, commands and requirements in documents, the wheel, imports, file heads."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import lab

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "notebooks/TEACHERS.md"]
PACKAGES = {
    "autodiff_lab": "autodiff_lab",
    "autodiff_widgets": "widgets/autodiff_widgets",
    "autodiff_exercises": "notebooks/autodiff_exercises",
}
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that the repository keeps or is about to keep, and that is there."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return tuple(REPOSITORY / name for name in listed if (REPOSITORY / name).is_file())


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------------------------------- documents


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_a_document_names_exists(name: str) -> None:
    text = text_of(name)
    links = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    spans = re.findall(r"(?<!`)`([\w.-]+/[\w./-]*|[\w-]+\.(?:py|md|toml|yml|json))`", text)
    named = {path for path in [*links, *spans] if "NN" not in path and not path.startswith((".venv", "build/"))}
    files = {path.name for path in tracked()}
    missing = [path for path in sorted(named) if not (REPOSITORY / path).exists() and path not in files]
    assert not missing


def commands_in(name: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", text_of(name), re.DOTALL)
    spans = re.findall(r"`((?:python3?|py) lab\.py[^`]*|make [\w-]+)`", text_of(name))
    return [*(line for block in blocks for line in block.splitlines() if line.strip()), *spans]


@pytest.mark.parametrize("name", [*DOCUMENTS, "Makefile", "environment.yml", ".ci/run"])
def test_every_lab_command_that_a_file_names_is_understood(name: str) -> None:
    for arguments in re.findall(r"(?:python3?|py) lab\.py([^`|\n#;']*)", text_of(name)):
        lab.parse(shlex.split(arguments))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_command_that_a_document_names_is_a_target(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    asked = {command.split()[1] for command in commands_in(name) if command.startswith("make ")}
    assert asked <= targets


def test_readme_begins_with_the_two_commands() -> None:
    commands = [shlex.split(command, comments=True) for command in commands_in("README.md")]
    assert commands[:2] == [["python3", "lab.py"], ["python3", "lab.py", "test"]]


@pytest.mark.parametrize("block", range(text_of("CONTRIBUTING.md").count("```python")))
def test_every_example_for_contributors_runs(block: int, tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(
        re.findall(r"```python\n(.*?)```", text_of("CONTRIBUTING.md"), re.DOTALL)[block], encoding="utf-8"
    )
    rooms = os.pathsep.join(str(REPOSITORY / room) for room in ("", "widgets", "notebooks"))
    command = [sys.executable, str(example)]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": rooms}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# -------------------------------------------------------------------------------------------------------- requirements


def test_the_library_needs_numpy_and_nothing_else() -> None:
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["numpy"]


distributions = cache(packages_distributions)


def imports_of(path: Path) -> set[str]:
    """The top-level names that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - set(PACKAGES) - {"benchmarks", "lab", "tests"}


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("autodiff_lab", ["cluster"]),
        ("widgets/autodiff_widgets", ["lab"]),
        ("widgets", ["lab", "dev"]),
        ("notebooks/autodiff_exercises", ["lab"]),
        ("notebooks", ["lab", "dev"]),
        ("tests", ["lab", "dev"]),
    ],
)
def test_every_package_that_a_folder_imports_is_asked_for(folder: str, extras: list[str]) -> None:
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    asked = {canonicalize_name(Requirement(line).name) for line in lines}
    files = [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(REPOSITORY / folder)]
    imported = set().union(*map(imports_of, files)) - {path.stem for path in files}
    missing = {name for name in imported if not asked & set(map(canonicalize_name, distributions().get(name, [name])))}
    assert files
    assert not missing


def test_the_conda_environment_asks_for_what_pyproject_asks_for() -> None:
    *from_conda, pip = yaml.safe_load(text_of("environment.yml"))["dependencies"]
    (python,) = [line for line in from_conda if re.match(r"python\b", line)]
    one = re.fullmatch(
        r"python=(3\.\d+)", python
    )  # what repo2docker recognises; a range it takes for no version at all
    assert one and one[1] in SpecifierSet(PROJECT["requires-python"])
    editable, *others = pip["pip"]
    extras = re.fullmatch(
        r"-e \.\[([\w,]+)\]", editable
    )  # as repo2docker recognises that it needs the whole repository
    assert (
        extras and "lab" in extras[1].split(",") and set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    )
    gpu = {Requirement(line) for line in PROJECT["optional-dependencies"]["gpu"]}
    assert {Requirement(line) for line in others} == gpu
    assert all(requirement.marker for requirement in gpu)


# --------------------------------------------------------------------------------------------------------- the packages


def test_the_library_loads_numpy_and_no_other_package() -> None:
    program = (
        "import sys; before = set(sys.modules); import autodiff_lab; "
        "loaded = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(loaded - sys.stdlib_module_names))"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["autodiff_lab", "numpy"]


@pytest.mark.slow
def test_the_wheel_holds_the_three_packages_whole_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = {
        f"{package}/{path.relative_to(REPOSITORY / folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in tracked()
        if path.is_relative_to(REPOSITORY / folder)
    }
    assert names == kept
    assert any(name.endswith(".js") for name in names)


# ------------------------------------------------------------------------------------------------------------ the files

PYTHON = sorted(path for path in tracked() if path.suffix in (".py", ".pyi"))


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_a_file_begins_with_what_belongs_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""'), "the first line is not a docstring"
    assert ast.get_docstring(ast.parse(text))


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    own_places = r"(?<![\w.~])/(?:root|work|opt)/\w"
    registries = r"(?:registry|files|pypi|conda)\.[\w-]*(?:npmjs|pythonhosted|anaconda|org/simple)"
    found = [
        f"{path.relative_to(REPOSITORY)}: {match[0]}"
        for path in tracked()
        for match in re.finditer(f"{own_places}|{registries}", path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert not found
