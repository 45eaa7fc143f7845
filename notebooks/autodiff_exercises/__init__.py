"""The exercises of the lessons: public names only."""

from .checking import check
from .guidance import hint, progress, solution
from .limits import limited

__all__ = ["check", "hint", "limited", "progress", "solution"]
