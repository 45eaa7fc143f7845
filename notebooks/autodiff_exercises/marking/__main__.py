"""Mark a class: ``python -m autodiff_exercises.marking FOLDER --out DIR``."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ..checking import VISIBLE_SEED
from ..registry import EXERCISES
from . import MARKING_SEED
from .classroom import Interrupted, mark_all
from .judges import Marker, protection
from .marks import best_of
from .reports import write_reports
from .submissions import submissions_in


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m autodiff_exercises.marking",
        description="Mark a folder of notebooks: NAME.ipynb, STUDENT/NAME.ipynb, or nbgrader's submitted/STUDENT/ASSIGNMENT.",
    )
    parser.add_argument("submissions", type=Path, metavar="FOLDER", help="the folder with the submissions")
    parser.add_argument("--out", type=Path, default=Path("marks"), metavar="DIR", help="where the reports go: marks")
    parser.add_argument(
        "--lesson",
        default="",
        choices=list(dict.fromkeys(one.lesson for one in EXERCISES.values())),
        metavar="LESSON",
        help="mark this lesson, as 30_reverse_mode; else each notebook's own",
    )
    parser.add_argument("--seed", type=_seed, default=MARKING_SEED, help=f"of the inputs that mark: {MARKING_SEED}")
    parser.add_argument(
        "--seconds",
        "--at",
        type=_positive,
        default=None,
        help="for all calls of an exercise; the default is the exercise's own limit, as in its check: 5 for most",
    )
    parser.add_argument(
        "--jobs", type=_positive_whole, default=os.cpu_count() or 1, help="submissions at once: the cores"
    )
    return parser.parse_args(arguments)


def _seed(text: str) -> int:
    number = int(text)
    if number == VISIBLE_SEED:
        raise argparse.ArgumentTypeError(f"{number} gives the inputs of the visible check; choose another one")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 3600:
        raise argparse.ArgumentTypeError(f"{text} seconds; give a number above 0 and below 3600")
    return number


def _positive_whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} at once; give 1 or more")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Mark, write the reports, and return the exit code: 0 where every submission was marked."""
    chosen = parse(arguments)
    try:
        submissions = submissions_in(chosen.submissions)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    notes = [f"Marked with seed {chosen.seed}.", protection()]
    print(notes[1], flush=True)
    code = 0
    try:
        marks = mark_all(submissions, Marker(chosen.seed, chosen.seconds, chosen.lesson), chosen.jobs, _say)
    except Interrupted as stopped:
        marks, code = stopped.marks, 130
        notes.append(
            f"The marking was stopped: {len(submissions)} submissions were there, and not all are in these tables."
        )
    write_reports(best_of(marks), chosen.out, notes)
    print(f"{'Stopped. ' if code else ''}The reports are in {chosen.out}: open index.html", flush=True)
    return code


def _say(line: str) -> None:
    print(line, flush=True)


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background process may have it ignored
    signal.signal(signal.SIGTERM, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console may lack letters of a name
    raise SystemExit(main())
