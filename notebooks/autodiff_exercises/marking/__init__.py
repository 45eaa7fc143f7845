"""Marking a class: a folder of notebooks becomes one table, a report for each student and an overview.

``python -m autodiff_exercises.marking FOLDER`` does it; see ``__main__.py``.
"""

from __future__ import annotations

MARKING_SEED = 1  # of the inputs that mark; who gives another one marks on inputs that nobody can know
