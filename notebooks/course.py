"""Makes a course folder for nbgrader from the lessons: ``python notebooks/course.py``.

It has what nbgrader expects: ``source`` (with solutions and hidden tests), ``release`` (what students get), a gradebook, and a
configuration. An assignment is a lesson with exercises. A folder that is there already keeps its gradebook, its
configuration and all that students have handed in.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from build import HERE, built, sources

CONFIGURATION = '''\
"""How nbgrader treats this course; it was written once, so change what you like."""

import os
import sys

c = get_config()
here = os.path.dirname(os.path.abspath(__file__))
c.CourseDirectory.course_id = "autodiff_lab"
c.CourseDirectory.root = here
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("take this line out, and write your answer here")'}
c.Execute.timeout = 120  # seconds for one cell; an endless loop in a function ends after 5
c.Execute.interrupt_on_timeout = True
os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))  # nbgrader calls alembic by name
os.environ.setdefault("AUTODIFF_LAB_PROGRESS", os.path.join(here, "progress.json"))  # marking is not the marker's own progress
os.environ.setdefault("AUTODIFF_LAB_SMALL", "1")  # what a lesson measures is small, since nobody reads it here
'''
MISSING = (
    f'nbgrader is not installed here. Install it with: "{sys.executable}" -m pip install --editable ".[lab,teach]"'
)


class NotMade(Exception):
    """nbgrader did not make an assignment; the message is its own."""


def write_sources(folder: Path, lessons: Sequence[str] = ()) -> list[str]:
    """Write configuration and ``source``; returns the names of the assignments, which are those of the lessons."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "nbgrader_config.py").exists():
        (folder / "nbgrader_config.py").write_text(CONFIGURATION, encoding="utf-8")
    chosen = [path for path in sources() if not lessons or path.stem in lessons]
    texts = {path.stem: built(path, "marked") for path in chosen}
    made = {name: text for name, text in texts.items() if '"grade_id"' in text}
    for name, text in made.items():
        target = folder / "source" / name / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
    return list(made)


def release(folder: Path, assignments: Sequence[str]) -> None:
    """Let nbgrader make ``release`` from ``source``, and enter the assignments into the gradebook.

    Raises:
        NotMade: where nbgrader refuses.
    """
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import PyFileConfigLoader

    api = NbGraderAPI(config=PyFileConfigLoader("nbgrader_config.py", path=str(folder.resolve())).load_config())
    for name in assignments:
        result = api.generate_assignment(name, force=True, create=True)
        if not result["success"]:
            raise NotMade(f"nbgrader did not make the assignment {name}:\n{result.get('log') or result.get('error')}")
        print(f"{folder / 'release' / name}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the course folder, and return the exit code."""
    parser = argparse.ArgumentParser(description="Make a course folder for nbgrader from the lessons.")
    default = HERE.parent / "build" / "course"
    parser.add_argument("--out", type=Path, default=default, metavar="DIR", help="the course folder: build/course")
    parser.add_argument(
        "lessons", nargs="*", metavar="LESSON", help="only these, as 30_reverse_mode; else all with exercises"
    )
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.lessons) - {path.stem for path in sources()}
    if unknown:
        parser.error(
            f"no lesson is called {', '.join(sorted(unknown))}; there are: {', '.join(path.stem for path in sources())}"
        )
    try:
        release(chosen.out, write_sources(chosen.out, chosen.lessons))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "nbgrader":
            raise
        print(MISSING, file=sys.stderr)
        return 1
    except NotMade as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The course folder is {chosen.out}: hand out release/, collect in submitted/STUDENT/ASSIGNMENT/.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
