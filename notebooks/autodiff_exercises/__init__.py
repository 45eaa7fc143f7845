"""The exercises of the lessons: public names only."""

from .checking import check
from .course_map import course
from .guidance import hint, progress, solution, yours
from .limits import limited

__all__ = ["check", "course", "hint", "limited", "progress", "solution", "yours"]
