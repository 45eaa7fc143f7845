"""The launcher: ``python3 lab.py`` opens JupyterLab, ``lab.py test`` runs every check, ``lab.py wheels`` packs for offline.

Standard library only, because it runs before anything is installed. It keeps a virtual environment in ``.venv`` and
writes into it what was installed, so that a second run starts at once and an interrupted one is never trusted.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST_PYTHON = (3, 11)
INDEX = "00_index.ipynb"
# Measured on Linux: installed size and the download next to it.
MEGABYTES_NEEDED = {"lab": 450, "dev": 450, "gpu": 650, "jit": 270, "cluster": 60}


class Problem(Exception):
    """Something the reader of the terminal can put right; the message says how."""


def say(text: str) -> None:
    """Print at once, also where the output goes to a file."""
    print(text, flush=True)


# ------------------------------------------------------------------------------------------------- the environment


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the record, inside it, of what was installed there."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter inside."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def record(self) -> Path:
        """The file that says what is installed; its absence or an unfinished one means: do not trust."""
        return self.folder / "autodiff-lab.json"

    def read(self) -> dict[str, object]:
        """Return what the record says; empty where there is none or it cannot be read."""
        try:
            found = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, **entries: object) -> None:
        """Replace the record in one step, so that it is never half written."""
        self.folder.mkdir(exist_ok=True)
        draft = self.record.with_suffix(".draft")
        draft.write_text(json.dumps(entries), encoding="utf-8")
        draft.replace(self.record)

    def extras(self) -> set[str]:
        """Return the extras that earlier runs asked for."""
        listed = self.read().get("extras", [])
        return {str(name) for name in listed} if isinstance(listed, list) else set()

    def is_ready(self, extras: Iterable[str], stamp: str) -> bool:
        """Tell whether a finished set-up holds these extras of this very pyproject.toml, in this folder."""
        finished = self.read().get("state") == "ready" and self.read().get("stamp") == stamp
        return finished and set(extras) <= self.extras() and self.python.exists()


def stamp_of(root: Path) -> str:
    """Return the hash of pyproject.toml and of the place: a moved folder breaks the links of an environment."""
    return hashlib.sha256((root / "pyproject.toml").read_bytes() + str(root).encode()).hexdigest()


def set_up(
    environment: Environment, extras: Sequence[str], run: Callable[..., None], wheels: Path | None = None
) -> None:
    """Make or complete the environment, from a folder of wheels where one is given; return at once where it is ready."""
    stamp = stamp_of(ROOT)
    if environment.is_ready(extras, stamp):
        return
    if environment.folder.exists() and not environment.record.exists() and any(environment.folder.iterdir()):
        raise Problem(
            f"{environment.folder} exists, but this script did not make it.\n"
            "Rename or delete it and run the same command again; or activate it and add --here to use it as it is."
        )
    started = time.monotonic()
    wanted = sorted({*extras, *environment.extras()})
    check_disk(environment.folder.parent, wanted)
    if environment.read().get("state") != "ready" or not environment.python.exists():
        if environment.folder.exists():
            shutil.rmtree(environment.folder)  # an interrupted set-up leaves half-written packages
        environment.write(state="setting up", extras=wanted)
        say(f"Making a Python environment in {environment.folder} …")
        run([sys.executable, "-m", "venv", str(environment.folder)])
    environment.write(state="setting up", extras=wanted)
    say(f"Installing autodiff-lab[{','.join(wanted)}]. This happens once and takes one to five minutes …")
    target = f"{ROOT}[{','.join(wanted)}]"
    source = ["--no-index", "--find-links", str(wheels)] if wheels else []
    pip = [str(environment.python), "-m", "pip", "install", "--disable-pip-version-check"]
    run([*pip, *source, "--editable", target])
    environment.write(state="ready", stamp=stamp, extras=wanted)
    say(f"Installed in {time.monotonic() - started:.0f} s.")


def gpu_extra() -> list[str]:
    """The extra with CuPy, where this machine has an NVIDIA driver: 600 MB are for nothing elsewhere."""
    windows = Path(os.environ.get("SYSTEMROOT", "C:/Windows")) / "System32" / "nvcuda.dll"
    found = shutil.which("nvidia-smi") or any(path.exists() for path in (Path("/proc/driver/nvidia/version"), windows))
    return ["gpu"] if found else []


def extras_for(test: bool) -> list[str]:
    """The extras that opening or checking needs. Where nobody looks, CUDA, Numba and Dask are checked too."""
    if not test:
        return ["lab", *gpu_extra()]
    return ["lab", "dev", *(["gpu", "jit", "cluster"] if os.environ.get("CI") == "true" else gpu_extra())]


# ------------------------------------------------------------------------------------------------ without a network


@dataclass(frozen=True)
class System:
    """A kind of laptop: the tags of its wheels, and the packages that only such a system needs."""

    tags: tuple[str, ...]
    needs: tuple[str, ...]


# pip decides which packages a system needs by looking at its own system and Python, also when it downloads for another one.
SYSTEMS = {
    "windows": System(("win_amd64",), ("colorama", "pywinpty", "overrides")),
    "macos-arm": System(("macosx_14_0_arm64",), ("appnope", "pexpect", "overrides")),
    "macos-intel": System(("macosx_14_0_x86_64",), ("appnope", "pexpect", "overrides")),
    "linux": System(
        ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"), ("pexpect", "overrides")
    ),
}
FOR_AN_EDITABLE_INSTALL = "editables~=0.3"  # what hatchling asks for when it is run


def requirements(root: Path, extras: Sequence[str]) -> list[str]:
    """What pip has to find to install these extras, and to build the project itself."""
    import tomllib  # here, since an older Python has to come to the line that refuses it

    told = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project, optional = told["project"], told["project"]["optional-dependencies"]
    building = [*told["build-system"]["requires"], FOR_AN_EDITABLE_INSTALL]
    return [*building, *project["dependencies"], *(one for name in extras for one in optional[name])]


def download_command(
    python: Path, folder: Path, extras: Sequence[str], system: str | None, version: str | None
) -> list[str]:
    """Return the command that fills a folder with wheels: for this machine, or for a kind of laptop and its Python."""
    pip = [
        str(python),
        *["-m", "pip", "download", "--disable-pip-version-check", "--only-binary=:all:", "--dest"],
        str(folder),
    ]
    if system is None:
        return [*pip, *requirements(ROOT, extras)]
    chosen = SYSTEMS[system]
    target = [part for tag in chosen.tags for part in ("--platform", tag)]
    target += ["--implementation", "cp", "--python-version", version or "{}.{}".format(*sys.version_info)]
    return [*pip, *target, *requirements(ROOT, ["lab"]), *chosen.needs]


def filled(folder: Path) -> Path:
    """Return the folder if it has wheels, by its full name."""
    if not any(folder.glob("*.whl")):
        raise Problem(
            f"There are no wheels in {folder}. On a machine with a network, fill a folder with `python3 lab.py wheels`,\n"
            "and give its name here: --wheels DIR"
        )
    return folder.resolve()


def extras_in(folder: Path, extras: Sequence[str]) -> list[str]:
    """Leave out the GPU's packages where the folder has none: the lab is complete without them."""
    return [name for name in extras if name != "gpu" or any(folder.glob("cupy*.whl"))]


def check_disk(folder: Path, extras: Iterable[str]) -> None:
    """Refuse to begin what the disk cannot hold."""
    needed = sum(MEGABYTES_NEEDED.get(name, 0) for name in extras)
    free = shutil.disk_usage(folder).free // 2**20
    if free < needed:
        raise Problem(f"The set-up needs about {needed} MB, and the disk of {folder} has {free} MB free.")


def install(command: Sequence[str]) -> None:
    """Run one command of the set-up, show what it is busy with, and explain why it failed."""
    output: list[str] = []
    with subprocess.Popen(
        command, env=clean(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        try:
            for line in process.stdout or ():
                output.append(line)
                if line.startswith(("Collecting ", "Downloading ", "Installing collected")):
                    progress(" ".join(line.split()[:2]))
        except BaseException:
            process.terminate()  # else an interrupted set-up goes on writing behind the next one
            raise
    progress("")
    if process.returncode:
        raise Problem(explain("".join(output)))


def progress(text: str) -> None:
    """Rewrite one line of a terminal; keep silent in a file."""
    if sys.stdout.isatty():
        print(f"\r  {text:<60.60}", end="" if text else "\r", flush=True)


REASONS = (
    (
        r"ensurepip is not\s+available|No module named '?(venv|ensurepip)",
        "This Python cannot make virtual environments: its `venv` module is missing.\n"
        "Debian and Ubuntu: sudo apt install python3-venv. Without admin rights: use conda, see README.md.",
    ),
    (
        r"No space left on device|Errno 28|WinError 112",
        "The disk is full. Free some space and run the same command again.",
    ),
    (
        r"No matching distribution found",
        "A package is missing for this system and this Python. With --wheels, the folder must have been filled for both:\n"
        "python3 lab.py wheels --for SYSTEM --python VERSION on a machine with a network. See notebooks/TEACHERS.md.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "The package index answered with a certificate that this machine does not trust, as behind some company\n"
        "proxies. Ask for the proxy's certificate and set PIP_CERT to its file, then run the same command again.",
    ),
    (
        r"Failed to establish a new connection|name resolution|Name or service not known|getaddrinfo failed"
        r"|Network is unreachable|ProxyError|ReadTimeoutError|ConnectTimeoutError|Connection refused|ConnectionError",
        "The package index cannot be reached. Connect to the network and run the same command again.\n"
        "Behind a proxy, first set HTTPS_PROXY=http://user:password@proxy:port.",
    ),
    (
        r"WinError 206|path too long|filename or extension is too long",
        "A path became too long for Windows. Move this folder near the root of the disk, for example to C:\\lab.",
    ),
    (
        r"Permission denied|WinError 5\b|WinError 32\b|Access is denied",
        "A file may not be written. Close programs that use this folder, put it where you may write,\n"
        "and run the same command again.",
    ),
)


def explain(output: str) -> str:
    """Turn the output of a failed set-up command into a reason and the next step."""
    for pattern, reason in REASONS:
        if re.search(pattern, output, re.IGNORECASE):
            return reason
    return "The set-up failed. Its last lines were:\n\n" + "\n".join(output.splitlines()[-15:])


def clean(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables without those that would mix a foreign Python's packages into ours."""
    return {name: value for name, value in variables.items() if name not in ("PYTHONHOME", "PYTHONPATH")}


# -------------------------------------------------------------------------------------------------------- the lab


def first_lesson(folder: Path) -> str:
    """Return the file name of the lesson with the lowest number."""
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    if not lessons:
        raise Problem(f"There is no lesson in {folder}. Get the complete repository, or run: python notebooks/build.py")
    return lessons[0].name


def copied(lessons: Path, folder: Path) -> Path:
    """Copy the lessons that the folder does not have yet, and return it; what is there stays, as answers are in it.

    Only the index is always the newest: it has no answers, and lists lessons that are new.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for lesson in sorted(lessons.glob("*.ipynb")):
        if lesson.name == INDEX or not (folder / lesson.name).exists():
            shutil.copyfile(lesson, folder / lesson.name)
    return folder.resolve()


# JupyterLab, ended by SIGINT as by SIGTERM. Where there is no terminal, its own way is a KeyboardInterrupt in whatever runs,
# which got lost in one of four tries; and before it has started, that prints a traceback. What it says of its end sounds
# like a failure ("[C 10:12 ServerApp] received signal 15, stopping"), so that one sentence takes its place.
START_SERVER = """
import logging, signal
signal.signal(signal.SIGINT, lambda *_: signal.raise_signal(signal.SIGTERM))
endings = ("received signal", "Shutting down...")
logging.getLogger("ServerApp").addFilter(lambda record: not record.getMessage().startswith(endings))
from jupyterlab.labapp import main
main()
print("\\nThe lab has stopped. Your saved work is kept.", flush=True)
"""

SERVER_SETTINGS = (
    f"--LabApp.app_settings_dir={ROOT / 'notebooks' / 'settings'}",  # no news, and pictures are saved with their notebook
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--KernelManager.transport_encryption=auto",  # else each kernel warns of eavesdroppers, though all stays on this machine
)


def server_command(python: Path, lessons: Path, port: int | None, browser: bool, superuser: bool) -> list[str]:
    """Return the command that starts JupyterLab: on this machine only, nothing asked of the outside."""
    command = [
        *(str(python), "-c", START_SERVER, "--ip=127.0.0.1"),
        f"--ServerApp.root_dir={lessons}",
        f"--LabApp.default_url=/lab/tree/{first_lesson(lessons)}",
        *SERVER_SETTINGS,
        "--ServerApp.answer_yes=True",  # Ctrl-C ends at once instead of asking
        "--Application.log_level=ERROR",
    ]
    command += [f"--port={port}", "--ServerApp.port_retries=0"] if port is not None else []
    command += [] if browser else ["--no-browser"]
    command += ["--allow-root"] if superuser else []  # in a container everybody is root
    return command


def check_port(port: int | None) -> None:
    """Refuse a port that another program has."""
    if port is None:
        return
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise Problem(
                f"Port {port} is in use, perhaps by another lab. Close that one, or choose another: --port {port + 1}"
            )


def packed(command: Sequence[str], folder: Path) -> int:
    """Download the wheels, and say how to use them."""
    say(f"Downloading wheels to {folder} …")
    install(command)
    megabytes = sum(path.stat().st_size for path in folder.glob("*.whl")) / 2**20
    say(
        f"{len(list(folder.glob('*.whl')))} wheels, {megabytes:.0f} MB. Give them away with this folder. On each machine:"
    )
    say(f"python3 lab.py --wheels {os.path.relpath(folder, ROOT)}")
    return 0


def become(command: Sequence[str]) -> int:
    """Turn into this program where the system can, so that every signal reaches it; else wait for it."""
    if os.name == "posix":
        os.execve(command[0], list(command), clean(os.environ))
    with subprocess.Popen(command, env=clean(os.environ)) as program:
        while True:
            try:
                return program.wait()
            except KeyboardInterrupt:  # the program got it as well and is ending
                continue


# --------------------------------------------------------------------------------------------------- the command line


def check_python(version: tuple[int, ...], which: Callable[[str], str | None] = shutil.which) -> None:
    """Refuse a Python that is too old, and name a newer one where there is one."""
    if version >= OLDEST_PYTHON:
        return
    newer = next((name for name in ("python3.14", "python3.13", "python3.12", "python3.11") if which(name)), None)
    step = f"This machine has a newer one: {newer} lab.py" if newer else "Install a newer one, or use conda: README.md."
    raise Problem(f"This is Python {version[0]}.{version[1]}, and the lab needs 3.11 or newer.\n{step}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="lab.py", description="Open the lab, or check it.")
    jobs = ("open", "test", "wheels")
    parser.add_argument("what", nargs="?", choices=jobs, default="open", help="open (the default), test or wheels")
    parser.add_argument("--port", type=int, help="where JupyterLab listens; the default is the first free from 8888 on")
    parser.add_argument("--no-browser", action="store_true", help="start JupyterLab and print its address")
    parser.add_argument(
        "--copy", type=Path, metavar="DIR", help="work on copies of the lessons in DIR, kept from run to run"
    )
    parser.add_argument("--fast", action="store_true", help="test: only the checks that take seconds")
    parser.add_argument("--here", action="store_true", help="use the Python that runs this script, not .venv")
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="DIR",
        help="open: install from the wheels in DIR, without a network. wheels: put them there, not in build/wheels",
    )
    parser.add_argument("--for", dest="system", choices=SYSTEMS, help="wheels: for another kind of machine")
    parser.add_argument(
        "--python", metavar="VERSION", help="wheels --for: its Python, as 3.12; the default is this one's"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the lab or check it; return the exit code."""
    chosen = parse(arguments)
    environment = Environment(ROOT / ".venv")
    python = Path(sys.executable) if chosen.here else environment.python
    test, pack = chosen.what == "test", chosen.what == "wheels"
    extras = extras_for(test)
    try:
        check_python(sys.version_info[:2])
        if pack:
            folder = (chosen.wheels or ROOT / "build" / "wheels").resolve()
            command = download_command(python, folder, extras, chosen.system, chosen.python)
        elif test:
            command = [str(python), str(ROOT / "tests" / "every_check.py"), *(["--fast"] if chosen.fast else [])]
        else:
            check_port(chosen.port)
            superuser = hasattr(os, "geteuid") and os.geteuid() == 0
            lessons = ROOT / "notebooks" / "lessons"
            if chosen.copy:
                lessons = copied(lessons, chosen.copy)
            command = server_command(python, lessons, chosen.port, not chosen.no_browser, superuser)
        wheels = filled(chosen.wheels) if chosen.wheels and not pack else None
        if not chosen.here:
            set_up(environment, extras_in(wheels, extras) if wheels else extras, install, wheels)
        if pack:
            return packed(command, folder)
        if not test:
            say(f"Your answers are saved in {lessons}.")
            say("Starting JupyterLab. Stop it with Ctrl-C in this window.")
        return become(command)
    except Problem as problem:
        print(f"\nlab.py: {problem}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"\nlab.py: {explain(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        return 130


def stop(number: int, frame: object) -> None:
    """Treat a request to end like Ctrl-C, so that no half-finished set-up runs on."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background process may have it ignored
    signal.signal(signal.SIGTERM, stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a Windows console may lack "…"
    raise SystemExit(main())
