"""Which line of the user's code an op call came from, and which variable took its result. Asked only while recording."""

from __future__ import annotations

import dis
import linecache
import os.path
import sys
from bisect import bisect_right
from functools import lru_cache
from types import CodeType, FrameType

from .graph import Source

_LIBRARY = os.path.dirname(__file__)
_INSIDE = _LIBRARY + os.sep
# Frames between an op call and whoever wrote it: the operators of Tensor, the generated bindings and their machinery.
_FILES = (
    "bindings.py",
    "families.py",
    "operators.py",
    "recording.py",
    "sources.py",
    "tangents.py",
    os.path.join("ops", "__init__.py"),
)
_PLUMBING = {os.path.join(_LIBRARY, name) for name in _FILES}
BINDING_FILE = "<binding>"
_COMPOSED = os.path.join(_LIBRARY, "ops", "composed.py")  # calls a function that is made of ops
_RETURNED = "<returned>"  # no variable can have this name
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")


def call_site() -> tuple[str, Source | None]:
    """The variable that takes the result of the op call that is running, or "", and the user's line that made it."""
    frame = _outside_plumbing(sys._getframe(1))
    name = _assigned_name(frame)
    while name == _RETURNED and frame is not None:  # the result of a composed function belongs to whoever called that
        caller = frame.f_back
        if caller is None or caller.f_code.co_filename != _COMPOSED:
            name = ""
            break
        frame = _outside_plumbing(caller.f_back)
        name = _assigned_name(frame)
    while frame is not None and frame.f_code.co_filename.startswith((_INSIDE, BINDING_FILE)):
        frame = frame.f_back
    return name, None if frame is None else _source(frame)


def _outside_plumbing(frame: FrameType | None) -> FrameType | None:
    """The nearest frame, from this one outwards, that belongs to whoever wrote an op call."""
    while frame is not None and _is_plumbing(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_plumbing(filename: str) -> bool:
    return filename.startswith(BINDING_FILE) or filename in _PLUMBING


def _source(frame: FrameType) -> Source:
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return Source(code.co_filename, frame.f_lineno, code.co_name, text)


def _assigned_name(frame: FrameType | None) -> str:
    """``h`` where the running call is the whole right-hand side of ``h = …``: the next instruction stores into a name."""
    if frame is None:
        return ""
    offsets, names = _stored_after(frame.f_code)
    return names[
        bisect_right(offsets, frame.f_lasti) - 1
    ]  # f_lasti may point into the inline caches of the instruction


@lru_cache(maxsize=512)
def _stored_after(code: CodeType) -> tuple[list[int], list[str]]:
    """The offset of each instruction, and the variable that the instruction after it stores into, ``_RETURNED``, or ""."""
    instructions = list(dis.get_instructions(code))
    names = []
    for following in [*instructions[1:], None]:
        opname = "" if following is None else following.opname
        target = _RETURNED if opname == "RETURN_VALUE" else ""
        if following is not None and opname.startswith(_STORES):
            target = following.argval
        names.append(target if isinstance(target, str) else target[0])  # Python 3.13 joins two instructions in one
    return [instruction.offset for instruction in instructions], names
