"""The C and C++ compilers of this machine: which there are, and shared libraries made with them once and kept."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["c", "c++"]

_COMPILERS: dict[Language, tuple[str, tuple[str, ...]]] = {  # the variable that names one, and where to look else
    "c": ("CC", ("cc", "gcc", "clang")),
    "c++": ("CXX", ("c++", "g++", "clang++")),
}
_SUFFIXES: dict[Language, str] = {"c": ".c", "c++": ".cpp"}
# No contraction of a · b + c into one rounding, so that a kernel rounds as NumPy does.
_FLAGS = ("-O2", "-shared", "-fPIC", "-ffp-contract=off", "-include", "stdint.h", "-include", "stdbool.h")
_SECONDS = 120


class NoCompilerError(RuntimeError):
    """No compiler was found; the text says what to install."""


class CompileError(ValueError):
    """The source is no kernel, or the compiler refused it; the text holds the compiler's message."""


def find_compiler(language: Language = "c++") -> str | None:
    """The compiler that ``native_kernel`` would use, or None: ``$CXX``, ``c++``, ``g++`` or ``clang++``; for C ``$CC``, ….

    Microsoft's ``cl`` is not used, since it takes other options; on Windows install MinGW-w64 or LLVM.

    >>> find_compiler() is None or "c" in find_compiler()
    True
    """
    command = _command(language)
    return command[0] if command else None


def _command(language: Language) -> list[str]:
    """The compiler and the words that its variable adds, as in ``CXX="ccache g++"``; empty where there is none."""
    if language not in _COMPILERS:
        raise ValueError(f"language is 'c' or 'c++', got {language!r}")
    variable, names = _COMPILERS[language]
    asked = os.environ.get(variable) or ""
    for words in ([asked], shlex.split(asked, posix=os.name != "nt"), *([name] for name in names)):
        found = shutil.which(words[0]) if words and words[0] else None
        if found and Path(found).stem.lower() not in ("cl", "clang-cl"):
            return [found, *words[1:]]
    return []


def shared_library(source: str, language: Language) -> Path:
    """The compiled library of a source, from the cache or made now."""
    command = _command(language)
    if not command:
        variable, names = _COMPILERS[language]
        raise NoCompilerError(
            f"no compiler for {'C++' if language == 'c++' else 'C'} was found: ${variable} is "
            f"{os.environ.get(variable) or 'not set'}, and {', '.join(names)} are not there. {_how_to_install()} "
            "Without one, use the NumPy kernel."
        )
    extra = ("-static-libgcc", "-static-libstdc++") if sys.platform == "win32" else ()
    told = (*command, _version(tuple(command)), *_FLAGS, *extra, platform.machine(), language, source)
    name = hashlib.sha256("\0".join(told).encode()).hexdigest()[:32]
    library = _cache_folder() / f"{name}{'.dll' if sys.platform == 'win32' else '.so'}"
    if not library.exists():
        _compile([*command, *_FLAGS], extra, source, language, library)
    return library


def _compile(command: Sequence[str], extra: Sequence[str], source: str, language: Language, library: Path) -> None:
    """Compile in a folder of its own, then move: another process sees the whole library or none."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="making-") as folder:
        written, made = Path(folder, f"kernel{_SUFFIXES[language]}"), Path(folder, library.name)
        written.write_text(source, encoding="utf-8")
        full = [*command, str(written), "-o", str(made), *extra]
        run = subprocess.run(full, capture_output=True, text=True, errors="replace", timeout=_SECONDS, cwd=folder)
        if run.returncode != 0 or not made.exists():
            message = (run.stderr or run.stdout).replace(f"{folder}{os.sep}", "").strip()
            raise CompileError(f"native_kernel: {Path(command[0]).name} refused the source:\n{message}")
        try:
            made.replace(library)
        except PermissionError:  # Windows, where another process has loaded the same library since
            if not library.exists():
                raise


@cache
def _version(command: tuple[str, ...]) -> str:
    """What the compiler says it is: after an update the cached libraries are made again."""
    run = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS)
    return run.stdout


def _how_to_install() -> str:
    return {
        "darwin": "Install Apple's with: xcode-select --install.",
        "win32": "Install MinGW-w64 or LLVM and put its bin folder in PATH; Microsoft's cl is not used.",
    }.get(
        sys.platform,
        "Install one with your system's packages (g++ or clang), or with: conda install -c conda-forge cxx-compiler.",
    )


def _cache_folder() -> Path:
    """A folder that belongs to this user alone, since what lies in it is loaded; where there is none, one for this process.

    ``$AUTODIFF_LAB_KERNELS`` names another.
    """
    home = {"win32": "LOCALAPPDATA"}.get(sys.platform, "XDG_CACHE_HOME")
    try:
        usual = Path(os.environ.get(home) or Path.home() / ".cache") / "autodiff-lab" / "kernels"
        folder = Path(os.environ.get("AUTODIFF_LAB_KERNELS") or usual)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):
        return Path(_folder_of_this_process().name)


@cache
def _folder_of_this_process() -> tempfile.TemporaryDirectory[str]:
    """Gone when the process ends, except on Windows, where a loaded library cannot be removed."""
    return tempfile.TemporaryDirectory(prefix="autodiff-lab-", ignore_cleanup_errors=True)
