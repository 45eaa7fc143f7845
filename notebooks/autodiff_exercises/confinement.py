"""What the code of a submission may not do: use the network, start or end processes, change files, read the answers.

Python tells every such act to audit hooks, and a hook cannot be taken out again. This stops accidents and mischief on every
system. It does not stop native code, which is why marking also asks the system for a namespace where there is one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

REACHES_OUT = (
    "_winapi.Create", "_winapi.Open", "_winapi.Terminate", "ctypes.", "ftplib.", "mmap.", "os.exec", "os.fork", "os.kill",
    "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.", "resource.", "socket.", "subprocess.", "winreg.",
)  # fmt: skip
CHANGES_FILES = (
    "os.chflags", "os.chmod", "os.chown", "os.link", "os.lockf", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
    "os.setxattr", "os.symlink", "os.truncate", "os.utime", "shutil.", "sqlite3.connect", "tempfile.",
)  # fmt: skip
LOOKS_AROUND = ("gc.get_",)  # every object of the process, the answers among them
UNTOLD = (  # no hook is told of these
    ("_posixsubprocess", "fork_exec"),
    ("_signal", "pidfd_send_signal"),
    ("os", "mkfifo"),
    ("os", "mknod"),
    ("signal", "pidfd_send_signal"),
    ("subprocess", "_fork_exec"),
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HERE = str(Path(__file__).parent) + os.sep
# What stays of this package: what answers are sent back in, and what lessons import and holds no answer.
KEPT = ("abstract_arrays", "attempts", "error_plot", "limits", "planted_ops")
_done: list[bool] = []


class OutOfBounds(PermissionError):
    """Code that is being marked did something that it may not do."""


def confine() -> None:
    """From here on this process computes and reads, and knows no answers; calling it again changes nothing."""
    if not _done:
        _done.append(True)
        _hide_answers()
        for module, name in UNTOLD:
            _replace(module, name)
        sys.dont_write_bytecode = True
        sys.addaudithook(_refuse)


def _hide_answers() -> None:
    """Take the exercises out of the loaded modules, and put a front door in their place that checks nothing."""
    package = __name__.partition(".")[0]
    front = ModuleType(package, "What a notebook imports of the exercises, where its answers are marked.")
    for name in ("check", "hint", "progress", "solution"):
        setattr(front, name, _silent)
    front.__dict__["limited"] = import_module(f"{package}.limits").limited
    kept = {f"{package}.{name}" for name in KEPT}
    for name in [name for name in sys.modules if name.partition(".")[0] == package and name not in kept]:
        del sys.modules[name]
    sys.modules[package] = front


def _silent(*_arguments: object, **_options: object) -> None:
    """Stands for check, hint, solution and progress."""


def _replace(module: str, name: str) -> None:
    owner = sys.modules.get(module)
    if owner is not None and hasattr(owner, name):
        setattr(owner, name, _refusal(f"{module}.{name}"))


def _refusal(name: str) -> Callable[..., Any]:
    def refused(*_arguments: Any, **_options: Any) -> Any:
        raise OutOfBounds(_said(name))

    return refused


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """The hook: is told of everything that Python finds worth an audit, and raises where it is out of bounds."""
    if event == "open":
        _refuse_file(*arguments[:3])
    elif event.startswith(REACHES_OUT + CHANGES_FILES + LOOKS_AROUND) and not _is_its_own_end(event, arguments):
        raise OutOfBounds(_said(event))


def _is_its_own_end(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a process for checks ends itself and what it started, as it does after its last answer."""
    return event == "os.killpg" and arguments[0] == 0 and arguments[1] == getattr(signal, "SIGKILL", None)


def _refuse_file(path: Any, mode: Any, flags: Any) -> None:
    if isinstance(path, int) or os.fsdecode(path) == os.devnull:
        return
    name = os.path.abspath(os.fsdecode(path))
    if set(mode or "") & set("wax+") or (flags or 0) & WRITES:
        raise OutOfBounds(_said(f"open({name!r}) for writing"))
    if os.path.realpath(name).startswith(HERE):
        raise OutOfBounds(_said("reading the exercises"))


def _said(what: str) -> str:
    return f"{what} is out of bounds while an answer is marked: it computes, and nothing else"
