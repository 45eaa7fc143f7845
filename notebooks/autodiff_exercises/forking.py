"""Forks for checks: a template imports the lab once, which takes half a second, and a fork of it takes 10 ms.

The template runs nothing of a student's, so that each fork is as fresh as a process that was started. It has one fork at a
time. Forks inherit its mark: after a check all that bears it is ended, the template aside. Linux only: libraries of macOS
do not survive a fork, and Windows has none.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import struct
import subprocess
import tempfile
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from .processes import CheckProcess, Ended, end_marked
from .worker import serve

SERVE = "from autodiff_exercises.forking import serve_forks; serve_forks()"
CODE = struct.Struct("i")  # a fork's exit code, or the negative of the signal that ended it
# Threads do not survive a fork, and those of a BLAS that start later would count as memory that the function took.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Template(CheckProcess):
    """The process that forks, seen from the notebook: each job is done by a fork of its own."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            super().__init__(SERVE, ONE_THREAD, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def work(self, job: bytes, seconds: float) -> Ended:
        """Let a fork read the job, and wait for its end; its streams are files, which are never full and never block."""
        with contextlib.ExitStack() as files:
            streams = [files.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write(job)
            streams[0].seek(0)
            ended = self._fork([stream.fileno() for stream in streams], seconds)
            written, complaint = map(_content, streams[1:])
            return replace(ended, written=written, complaint=complaint or ended.complaint)

    def _fork(self, streams: list[int], seconds: float) -> Ended:
        """How a fork with these streams ended. A fork that is late, or whose template is gone, is ended with its template."""
        self.line.settimeout(seconds)
        late = False
        try:
            socket.send_fds(self.line, [b"!"], streams)
            if code := self.line.recv(CODE.size):
                end_marked(self.mark, spared=self.pid)
                return Ended(b"", b"", *CODE.unpack(code))
        except OSError as error:
            late = isinstance(error, TimeoutError)
        return Ended(*self.close(), self.returncode, late)

    def end(self) -> None:
        """End the fork first, then the template by itself: who else waits for a dead fork, where a container has no init?"""
        end_marked(self.mark, spared=self.pid)
        with contextlib.suppress(OSError, subprocess.TimeoutExpired), self.line:
            self.line.shutdown(socket.SHUT_WR)
            self.wait(1)
        super().end()


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


# --------------------------------------------------------------------------------------------------- inside the template


def serve_forks() -> None:
    """Fork for every three streams that the notebook sends, tell how the fork ended, and end with the notebook."""
    line = socket.socket(fileno=0)
    gc.freeze()  # a collection in a fork need not copy what is here already
    while streams := socket.recv_fds(line, 1, 3)[1]:
        fork = os.fork()
        if not fork:
            line.detach()
            _work_with(streams)
        for stream in streams:
            os.close(stream)
        line.sendall(CODE.pack(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])))


def _work_with(streams: list[int]) -> None:
    """Be a process that was just started with these streams, until its end."""
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        np.random.seed()  # NumPy, unlike `random`, would repeat in every fork
        serve()
    finally:
        os._exit(1)  # after an error; the template's loop is not for forks
