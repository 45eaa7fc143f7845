"""How long a student waits for a verdict: ``python -m benchmarks.exercises``. The aim is under two seconds for each."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "widgets"), str(ROOT / "notebooks")]
os.environ["AUTODIFF_LAB_PROGRESS"] = str(Path(tempfile.mkdtemp()) / "progress.json")

from autodiff_exercises.checking import examine
from autodiff_exercises.registry import EXERCISES


def main() -> None:
    """Print, for each exercise, the longest and the median wait over its right and wrong solutions."""
    for exercise in EXERCISES.values():
        functions = [exercise.solution, *exercise.alternatives, *(function for function, _ in exercise.wrong)]
        examine(exercise, exercise.solution, 0)  # the process is warm after this
        waits = []
        for function in functions:
            started = time.perf_counter()
            examine(exercise, function, 0)
            waits.append((time.perf_counter() - started, function.__name__))
        longest, name = max(waits)
        median = sorted(waits)[len(waits) // 2][0]
        print(f"{exercise.name:22} median {median:5.2f} s, longest {longest:5.2f} s ({name})", flush=True)


if __name__ == "__main__":
    main()
