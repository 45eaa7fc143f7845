"""The gallery shows every view that there is, made by the code that stands beside it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.saved_pages import players_of


@pytest.fixture(scope="module")
def gallery() -> Any:
    """widgets/gallery.py, which is a program and no part of a package."""
    spec = importlib.util.spec_from_file_location("gallery", Path(__file__).parents[1] / "widgets" / "gallery.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["gallery"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_exported_view_is_in_the_gallery_with_its_code(gallery: Any, tmp_path: Path) -> None:
    gallery.main(["--out", str(tmp_path / "gallery" / "index.html")])
    page = (tmp_path / "gallery" / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'<section id="(\w+)">', page)) == gallery.exported()
    assert page.count("<div data-scene=") == len(players_of(page)) >= len(gallery.ENTRIES)
    assert len(page.encode()) < 600_000


def test_an_entry_makes_the_view_that_it_is_named_after(gallery: Any) -> None:
    names: dict[str, Any] = {}
    exec(gallery.BEFORE, names)
    for entry in gallery.ENTRIES:
        kinds = {kind.__name__ for kind in type(eval(entry.code, names)).mro()}
        assert entry.name in kinds, entry.code


def test_a_forgotten_view_is_named(gallery: Any) -> None:
    with pytest.raises(LookupError, match="no entry for TimelineView: add one"):
        gallery.gallery([entry for entry in gallery.ENTRIES if entry.name != "TimelineView"])
