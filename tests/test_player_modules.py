"""The player's modules become one text that a notebook can afford to keep and a browser understands."""

from __future__ import annotations

import re
from pathlib import Path

import autodiff_widgets.player
from autodiff_widgets.player import MODULES, PLAYER_JS, joined

FOLDER = Path(autodiff_widgets.player.__file__).parent
TEXTS = {name: (FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in MODULES}


def test_the_player_stays_small_because_every_widget_saves_a_copy() -> None:
    assert len(PLAYER_JS.encode()) <= 40 * 1024


def test_every_module_is_joined_after_those_that_it_imports() -> None:
    assert {path.stem for path in FOLDER.glob("*.js")} == set(MODULES)
    for place, name in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+)\.js"', TEXTS[name])
        assert set(imported) <= set(MODULES[:place]), name


def test_no_two_modules_declare_the_same_name_and_nothing_is_renamed() -> None:
    declared = re.findall(r"^(?:function|const|let|class) (\w+)", PLAYER_JS, re.MULTILINE)
    assert len(declared) == len(set(declared)) > len(MODULES)
    assert not re.search(r"^import .* as ", "\n".join(TEXTS.values()), re.MULTILINE)


def test_what_is_joined_has_one_export_no_import_and_all_of_the_code() -> None:
    assert re.findall(r"^(?:import|export) \w+", PLAYER_JS, re.MULTILINE) == ["export default"]
    comment = r" */\*\*(.*\*/)?$| *\* | *\*/$|import |$"
    code = [line for text in TEXTS.values() for line in text.splitlines() if not re.match(comment, line)]
    kept = [line for line in PLAYER_JS.splitlines() if line]
    assert kept == [line if line.startswith("export default") else line.removeprefix("export ") for line in code]


def test_a_cast_at_the_start_of_a_line_keeps_its_code() -> None:
    assert joined("/** @type {any} */ (x).y();\n/** What z is. */\nz();\n") == "/** @type {any} */ (x).y();\nz();\n"
