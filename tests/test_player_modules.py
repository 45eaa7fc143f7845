"""The player's modules become one text that a notebook can afford to keep and a browser understands."""

from __future__ import annotations

import re
from pathlib import Path

import autodiff_widgets.player
from autodiff_widgets.player import LOADER_JS, MODULES, PLAYER_JS, joined

FOLDER = Path(autodiff_widgets.player.__file__).parent
TEXTS = {name: (FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in MODULES}


def test_the_player_stays_small_and_what_every_view_saves_a_copy_of_smaller() -> None:
    assert len(PLAYER_JS.encode()) <= 40_000
    assert len(LOADER_JS.encode()) <= 1024


def test_every_module_is_joined_after_those_that_it_imports() -> None:
    assert {path.stem for path in FOLDER.glob("*.js")} == {*MODULES, "loader", "notebook"}
    for place, name in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+)\.js"', TEXTS[name])
        assert set(imported) <= set(MODULES[:place]), name


def test_no_two_modules_declare_the_same_name_and_nothing_is_renamed() -> None:
    modules = "\n".join(TEXTS.values())
    declared = re.findall(r"^(?:export )?(?:function|const|let|class) (\w+)", modules, re.MULTILINE)
    assert len(declared) == len(set(declared)) > len(MODULES)
    assert not re.search(r"^import .* as ", modules, re.MULTILINE)


def test_what_is_joined_has_one_export_no_import_and_all_of_the_code() -> None:
    assert re.findall(r"\b(?:import|export) \w+", PLAYER_JS) == ["export default"]
    own = re.compile(r" */?\*| *//|import |export default|$")  # comments, and what is between modules
    code = [
        line.removeprefix("export ") for text in TEXTS.values() for line in text.splitlines() if not own.match(line)
    ]
    kept = {line.split(" // ")[0].strip().replace(" => ", "=>") for line in code if "/**" not in line}
    assert all(line.removesuffix(" =>") in PLAYER_JS for line in kept)
    assert all(line.replace('"`"', "").count("`") % 2 == 0 for line in code), (
        "a text of several lines has indents of its own"
    )


def test_only_comments_are_left_out_wherever_they_stand() -> None:
    text = (
        '/** @type {any} */ (x).y("http://a"); // why\n/** What\n * z is. */\n// Because.\nz(/** @type {A} */ (1));\n'
    )
    assert joined(text) == '(x).y("http://a");z((1));\n'
    before = [line.split(" // ")[0].replace("[\"']", "") for text in TEXTS.values() for line in text.splitlines()]
    assert all(line.count('"') % 2 == 0 for line in before), "a comment begins inside of a string"
