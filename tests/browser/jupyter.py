"""JupyterLab, Notebook and Chromium for tests: settings of their own, no network, nothing left running.

``open_notebook`` of conftest.py is what a test uses; this file is how it is done.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from lab import SERVER_SETTINGS

REPOSITORY = Path(__file__).resolve().parents[2]
LOCAL_SCHEMES = {"data", "blob", "file", "about"}
LOCAL_HOSTS = {"127.0.0.1", "localhost", "::1"}

SERVER_OPTIONS = (
    "--no-browser",
    "--ip=127.0.0.1",
    "--port-retries=0",
    "--allow-root",
    *SERVER_SETTINGS,
    "--AsyncIOLoopKernelRestarter.restart_limit=0",  # a kernel that dies stays dead, and is seen
)
# A server, and a thread that ends it when the tests are gone: a killed pytest cannot end its server.
START_SERVER = """
import os, runpy, signal, sys, threading, time

def end_with(parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)  # shuts the kernels down
    time.sleep(10)
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=end_with, args=(int(sys.argv.pop(1)),), daemon=True).start()
runpy.run_module(sys.argv.pop(1), run_name="__main__")
"""
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# What leaves this machine goes to a proxy that is not there. Stopping it in Playwright instead, where each of JupyterLab's
# requests passes through this process, costs a second of the five in which a notebook opens.
NO_NETWORK = {"server": "http://127.0.0.1:9", "bypass": "127.0.0.1,localhost,[::1]"}


@dataclass(frozen=True)
class Application:
    """What a server shows notebooks with: the module that starts it, where a notebook opens, and its own options."""

    module: str
    place: str
    options: tuple[str, ...]


JUPYTERLAB = Application("jupyterlab", "doc/tree", ("--LabApp.expose_app_in_browser=True",))
NOTEBOOK = Application(
    "notebook",
    "notebooks",
    (
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--JupyterNotebookApp.app_settings_dir={REPOSITORY / 'notebooks' / 'settings'}",  # pictures are saved, as in the lab
    ),
)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab, or Notebook: notebooks in ``root`` open under ``url``."""

    url: str
    root: Path
    token: str
    application: Application = JUPYTERLAB

    def address(self, name: str) -> str:
        """Where the notebook opens, alone in its window and with a fresh layout."""
        return f"{self.url}/{self.application.place}/{quote(name)}?token={self.token}&reset"

    def ask(self, path: str, method: str = "GET") -> bytes:
        """What the server's own interface answers."""
        request = Request(f"{self.url}/api/{path}", method=method, headers={"Authorization": f"token {self.token}"})
        with urlopen(request, timeout=10) as reply:
            return bytes(reply.read())

    def end_kernels(self) -> None:
        """End the kernel of every open notebook."""
        for session in json.loads(self.ask("sessions")):
            self.ask(f"sessions/{session['id']}", "DELETE")


@dataclass
class Record:
    """What a page did that it should not: requests that leave this machine, and errors that it logged."""

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def chromium() -> str | None:
    """Path of the Chromium to use: ``CHROMIUM``, else the first of the usual names."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


@contextmanager
def jupyter_lab(folder: Path, application: Application = JUPYTERLAB, seconds: float = 60) -> Iterator[Lab]:
    """Run JupyterLab or Notebook on ``folder/notebooks`` for a ``with`` block; it is killed with its kernels in any case."""
    root = folder / "notebooks"
    root.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lab = Lab(f"http://127.0.0.1:{port}", root, "t", application)
    command = [sys.executable, "-c", START_SERVER, str(os.getpid()), application.module, *SERVER_OPTIONS]
    command += [*application.options, f"--port={port}", f"--ServerApp.root_dir={root}"]
    log = folder / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, f"--IdentityProvider.token={lab.token}"],
            env=isolated(folder),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, to be ended as one
        )
    try:
        wait_for_server(lab, server, log, seconds)
        yield lab
    finally:
        end(server)


def isolated(folder: Path) -> dict[str, str]:
    """The environment with Jupyter's settings and a student's progress in ``folder``, and our packages on the path."""
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    places = {f"JUPYTER_{name}": str(folder / name.lower()) for name in names}
    places |= {f"JUPYTERLAB_{name}": str(folder / name.lower()) for name in ("SETTINGS_DIR", "WORKSPACES_DIR")}
    places["IPYTHONDIR"] = str(folder / "ipython")
    packages = [str(REPOSITORY), str(REPOSITORY / "widgets"), str(REPOSITORY / "notebooks")]
    places |= {"AUTODIFF_LAB_PROGRESS": str(folder / "progress.json"), "AUTODIFF_LAB_SMALL": "1"}
    return {**os.environ, **places, "PYTHONPATH": os.pathsep.join(packages), "JUPYTER_PREFER_ENV_PATH": "1"}


def wait_for_server(lab: Lab, server: subprocess.Popen[bytes], log: Path, seconds: float) -> None:
    """Wait until the server answers; a server that ended or stays silent raises with the end of its log."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            lab.ask("status")
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(
        f"{lab.application.module} did not answer at {lab.url}; its log ends with:\n{log.read_text()[-3000:]}"
    )


def end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server's group to end, which shuts its kernels down, then kill what is left.

    A kernel watches its parent, and ends too when the server was killed.
    """
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(server.pid, kind)
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def watch(page: Any, record: Record) -> None:
    """Record every request of a page that leaves this machine, and the errors that it logs."""
    page.on("request", lambda request: None if is_local(request.url) else record.outside.append(request.url))
    page.on("websocket", lambda socket: None if is_local(socket.url) else record.outside.append(socket.url))
    page.on("pageerror", lambda error: record.errors.append(str(error)))
    page.on("console", lambda message: record.errors.append(message.text) if is_ours(message) else None)


def is_ours(message: Any) -> bool:
    """Whether a line of the console is an error, or anywidget's warning about the player.

    JupyterLab's debugger may still be asking a kernel for its state when that is restarted, and says so; that is its own.
    On a crowded machine it also says of every plugin how long it took to start.
    """
    if message.text.startswith("Could not restore the debugger state") or message.text.endswith("ms to activate."):
        return False
    return message.type == "error" or (message.type == "warning" and "anywidget" in message.text)


def is_local(url: str) -> bool:
    """Whether an address stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme in LOCAL_SCHEMES or parts.hostname in LOCAL_HOSTS


KERNEL_READY = """() => {
  const panel = window.jupyterapp?.shell.currentWidget;
  return panel?.context?.isReady && panel.sessionContext?.session?.kernel?.status === "idle";
}"""
ALL_RAN_OR_ONE_FAILED = """() => {
  const panel = jupyterapp.shell.currentWidget;
  const cells = panel.content.model.toJSON().cells.filter((cell) => cell.cell_type === "code");
  const ran = cells.every((cell) => cell.execution_count !== null || !String(cell.source).trim());
  const failed = cells.flatMap((cell) => cell.outputs).some((output) => output.output_type === "error");
  return failed || (ran && panel.sessionContext.session?.kernel?.status === "idle");
}"""
OUTPUTS = "() => jupyterapp.shell.currentWidget.content.model.toJSON().cells.flatMap((cell) => cell.outputs ?? [])"


def run_all_cells(page: Any, seconds: float = 120) -> None:
    """Run every cell of the open notebook and wait until all have run; an error in a cell raises with its traceback."""
    wait(page, KERNEL_READY, seconds, "the notebook has no idle kernel (does its metadata name one?)")
    page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")
    wait(page, ALL_RAN_OR_ONE_FAILED, seconds, "not every cell has run")
    for output in page.evaluate(OUTPUTS):
        assert output["output_type"] != "error", "\n".join(output["traceback"])


def wait(page: Any, condition: str, seconds: float, otherwise: str) -> None:
    """Wait for a condition in the page; raises with what is wrong otherwise."""
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

    try:
        page.wait_for_function(condition, timeout=seconds * 1000)
    except PlaywrightTimeout:
        raise TimeoutError(f"after {seconds:g} s, {otherwise}") from None
