"""The JupyterLab of the tests leaves nothing behind, also where the tests were killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.jupyter import REPOSITORY, Lab

PROGRAM = """
import sys, time
from pathlib import Path
from tests.browser.jupyter import jupyter_lab

with jupyter_lab(Path(sys.argv[1])) as lab:
    print(lab.url, lab.token, flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_server_ends_when_the_tests_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    rooms = os.pathsep.join(str(REPOSITORY / room) for room in ("", "widgets", "notebooks"))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": rooms}, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        url, token = tests.stdout.readline().split()
        server = Lab(url, tmp_path, token)
        assert server.ask("status")
        tests.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 15
    while listens(url) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not listens(url)


def listens(url: str) -> bool:
    """Whether somebody accepts connections at an address."""
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0
