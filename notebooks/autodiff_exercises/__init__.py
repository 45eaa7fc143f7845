"""The exercises of the lessons: public names only."""

from .checking import check
from .guidance import hint, progress, solution

__all__ = ["check", "hint", "progress", "solution"]
