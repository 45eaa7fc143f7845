"""A lock that processes take in turn; the system frees it when its holder ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 5.0  # seconds; what is done under the lock takes milliseconds, on a busy machine some tenths of a second
TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK, errno.EINTR)  # what systems say where somebody else has it


@contextmanager
def held(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock that this file stands for; the file itself stays, since taking it away would let two in at once.

    Where the file system knows no locks, the block runs without one: that is better than never to write.

    Raises:
        TimeoutError: where another process has kept the lock for ``patience`` seconds, as one that was suspended does.

    >>> from tempfile import gettempdir
    >>> with held(Path(gettempdir()) / "autodiff-lab-example.lock"):
    ...     print("nobody else is here")
    nobody else is here
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        locked = _locked(handle, path, time.monotonic() + patience)
        try:
            yield
        finally:
            if locked:
                _free(handle)
    finally:
        os.close(handle)


def _locked(handle: int, path: Path, end: float) -> bool:
    """Whether there is a lock to have, after waiting until it is ours."""
    while True:
        try:
            _take(handle)
        except OSError as error:
            if error.errno not in TAKEN:
                return False
            if time.monotonic() > end:
                raise TimeoutError(f"another program keeps {path.name}") from None
            time.sleep(0.01)
        else:
            return True


def _take(handle: int) -> None:
    """Lock at once or raise; the first byte is locked on Windows, which needs not exist."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _free(handle: int) -> None:
    """Unlock by name: a process that was forked meanwhile has the handle too, and closing ours would not free it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)
