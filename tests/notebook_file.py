"""A notebook file made from the code of its cells, with the kernel named that it needs to run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import nbformat


def notebook_of(path: Path, cells: Iterable[str]) -> Path:
    """Write a notebook of these code cells; returns its path."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, path)
    return path
