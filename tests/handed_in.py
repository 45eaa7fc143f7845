"""Notebooks as students hand them in: a lesson with answers in its cells, right, wrong or hostile."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LESSONS = Path(__file__).resolve().parents[1] / "notebooks" / "lessons"


def lesson(name: str, answers: Mapping[str, str], above: str = "") -> dict[str, Any]:
    """A student's notebook with these answers, by exercise, and one more cell above all others."""
    notebook: dict[str, Any] = json.loads((LESSONS / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if grade_id in answers:
            cell["source"] = answers[grade_id]
    notebook["cells"].insert(0, code_cell(above))
    return notebook


def code_cell(source: str, grade_id: str = "") -> dict[str, Any]:
    """A code cell, with nbgrader's name for it where one is given."""
    metadata = {"nbgrader": {"grade_id": grade_id}} if grade_id else {}
    return {
        "cell_type": "code",
        "id": "added",
        "metadata": metadata,
        "outputs": [],
        "execution_count": None,
        "source": source,
    }


def module_of(function: Callable[..., Any], exercise: str) -> str:
    """The source of the module that defines it: what a cell above holds, so that the answer finds what it uses."""
    return _renamed(inspect.getsource(sys.modules[function.__module__]), exercise)


def answered_by(function: Callable[..., Any], exercise: str) -> str:
    """A cell that defines a function and hands it in as the answer."""
    return f"{_renamed(inspect.getsource(function), exercise)}\n\n{exercise} = {_renamed(function.__name__, exercise)}"


def _renamed(source: str, exercise: str) -> str:
    """The source with another name for the shipped solution, which other answers call: the exercise's own is the answer's."""
    return re.sub(rf"(?<![.\w]){exercise}\b", f"shipped_{exercise}", source)


def put(folder: Path, student: str, notebook: Mapping[str, Any] | bytes) -> Path:
    """Write a submission."""
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{student}.ipynb"
    file.write_bytes(data)
    return file
