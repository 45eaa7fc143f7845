"""What every view owes its reader without a browser: text, a true static picture, a safe page, readable colours."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import autodiff_widgets as aw
import pytest
from autodiff_widgets.export import PICTURE_CSS
from autodiff_widgets.pages import unpacked
from autodiff_widgets.scene import MOST_PLAYED, Change, Frame, Pane, Scene
from autodiff_widgets.shared_player import SharedPlayer
from autodiff_widgets.view import View

from tests.drawn_graphs import GRAPHS, joint, mlp_arguments, mlp_loss
from tests.drawn_schedules import TIMELINES
from tests.hand_written import NestedView, scene
from tests.saved_pages import players_of

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">{}</svg>'


def states_in(svg: str) -> dict[str, str]:
    elements = ElementTree.fromstring(svg).iter()
    return {e.attrib["data-op"]: e.attrib["data-s"] for e in elements if "data-op" in e.attrib and "data-s" in e.attrib}


def test_the_static_picture_of_a_frame_has_the_states_and_texts_of_that_frame() -> None:
    view = View(scene())
    for number in range(len(view.frames)):
        assert states_in(view.svg(number)) == view.scene.states_at(number)
    assert ">−1.0<" in view.svg(3)
    assert ">−1.0<" not in view.svg(2)
    assert view.svg() == view.svg(len(view.frames) - 1)


def test_a_static_picture_needs_no_script_no_variable_and_no_address() -> None:
    svg = View(scene("<script>run()</script>")).svg()
    assert "<script" not in svg
    assert "var(" not in svg
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", svg)
    assert not re.search(r"\son\w+=", svg)


def test_a_text_in_an_inner_element_is_written_by_the_inner_elements_key() -> None:
    nested = (
        '<g data-op="outer"><text data-slot="value">-</text><g data-op="inner"><text data-slot="value">-</text></g></g>'
    )
    changes = (Change("outer", texts={"value": "OUT"}), Change("inner", texts={"value": "IN"}))
    svg = View(Scene("nested", (Pane(PICTURE.format(nested), "p"),), (Frame("all", changes),))).svg()
    assert re.search(r'"outer"><text[^>]*>OUT<.*"inner"><text[^>]*>IN<', svg)


def test_the_mime_bundle_has_the_widget_a_picture_and_a_short_text() -> None:
    view = View(scene())
    bundle = view._repr_mimebundle_()
    assert bundle is not None
    data = bundle[0]
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    assert states_in(data["image/svg+xml"]) == view.scene.states_at(len(view.frames) - 1)
    assert data["text/plain"] == repr(view)
    assert repr(view).splitlines()[1] == "  0. Nothing has run yet. Each op waits for its inputs."


def test_the_short_text_stays_short_and_says_what_it_leaves_out() -> None:
    frames = tuple(Frame(f"step {number} says a sentence of some length") for number in range(500))
    view = View(Scene("long", (Pane(PICTURE.format(""), "p"),), frames))
    assert len(repr(view)) < 2000
    shown = len(repr(view).splitlines()) - 2
    assert repr(view).endswith(f"… {500 - shown} more; .text() shows all")
    assert "499. step 499" in view.text()


def test_a_page_keeps_every_title_out_of_its_script(tmp_path) -> None:
    title = "</script><script>run()</script><!--"
    page = View(scene(title)).save_html(tmp_path / "page.html", View(scene("second"))).read_text(encoding="utf-8")
    assert page.count("<script") == 2, "the data and the player"
    assert [player["scene"]["title"] for player in players_of(page)] == [title, "second"]


def test_views_of_graphs_give_dot_views_of_timelines_a_trace_and_others_say_that_they_do_not(tmp_path: Path) -> None:
    graph, timeline = aw.GraphView(GRAPHS["expression"]), aw.MemoryView(TIMELINES["a chain"]())
    assert graph.save_dot(tmp_path / "graph.dot").read_text() == graph.dot() == GRAPHS["expression"].to_dot()
    trace = json.loads(timeline.save_trace(tmp_path / "trace.json").read_text())
    assert {event["ph"] for event in trace["traceEvents"]} >= {"M", "X"}
    with pytest.raises(TypeError, match="MemoryView shows no graph"):
        timeline.dot()
    with pytest.raises(TypeError, match="GraphView shows no timeline"):
        graph.chrome_trace()
    with pytest.raises(IndexError, match="shows 1 timelines, so number is from 0 to 0, got 1"):
        timeline.chrome_trace(1)


def test_a_frame_that_does_not_exist_is_refused_with_those_that_do() -> None:
    view = View(scene())
    view.frame = -1
    assert view.frame == 5
    with pytest.raises(IndexError, match=r"frame must be from -6 to 5, .* got 6"):
        view.frame = 6


def test_a_scene_without_a_frame_or_a_pane_is_refused() -> None:
    with pytest.raises(ValueError, match="1 panes and 0 frames, and needs at least one of each"):
        Scene("empty", (Pane(PICTURE.format(""), "p"),), ())


def test_views_are_given_their_events_and_keep_them() -> None:
    assert View(scene(), events=iter("ab")).events == ("a", "b")


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``. Source: WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PALETTES = [
    dict(zip(("light", "dark"), shades, strict=True)) | {"name": name}
    for name, *shades in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", PICTURE_CSS)
]
FILLS = ("paper", "panel", "forward", "backward", "update", "ready", "done", "used", "target")


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_text_can_be_read_and_every_line_be_seen(mode: str) -> None:
    colours = {palette["name"]: palette[mode] for palette in PALETTES}
    for text, fill in product(("ink", "muted"), FILLS):
        assert contrast(colours[text], colours[fill]) >= 4.5, (text, fill)
    assert contrast("#17202a", colours["active"]) >= 4.5
    lines = [name for name in colours if name.endswith("-line")]
    for line in [*lines, "wire", "accent"]:
        assert contrast(colours[line], colours["paper"]) >= 3, line


def test_of_very_many_frames_the_first_and_the_last_are_played_and_the_text_twin_has_all() -> None:
    pane = Pane(PICTURE.format('<g data-op="a&gt;b"><text data-slot="count"/></g>'), "one")
    frames = [
        Frame(f"step {n}", (Change("a>b", "done" if n % 2 else "idle", {"count": str(n)}),)) for n in range(12_000)
    ]
    whole = Scene("long", (pane,), tuple(frames), {"a>b": (("op", "mul"),), "undrawn": (("op", "add"),)})
    played = whole.played()
    assert len(played.frames) == MOST_PLAYED < len(whole.frames)
    for part in ("states_at", "texts_at"):
        assert getattr(played, part)(MOST_PLAYED - 1) == getattr(whole, part)(len(frames) - 1)
        assert getattr(played, part)(500) == getattr(whole, part)(500)
    assert "Of 11999 steps the first 9998 are played" in played.frames[0].caption
    assert list(played.facts) == ["a>b"] and len(whole.as_json()["frames"]) == MOST_PLAYED
    assert "step 11000" in whole.text() and "undrawn" in whole.text()


def test_a_notebook_keeps_one_player_for_all_its_views_and_their_scenes_packed() -> None:
    one, two = NestedView(), aw.GraphView(joint(mlp_loss, *mlp_arguments(3)))
    one.opened = "n3"
    states = [one.get_state(), two.get_state()]
    assert [unpacked(state["scene"]) for state in states] == [one.scene.as_json(), two.scene.as_json()]
    assert unpacked(states[0]["inner"]) == {"n3": one.inside("n3").as_json()} and unpacked(states[1]["inner"]) == {}
    holder = SharedPlayer.of_this_kernel()
    assert {state["_player"] for state in states} == {f"IPY_MODEL_{holder.model_id}"}
    assert len(json.dumps(states[1])) < 20_000 < len(holder.get_state()["player"])


def test_a_view_made_after_the_player_was_closed_has_another() -> None:
    before = View(scene()).get_state()["_player"]
    SharedPlayer.of_this_kernel().close()
    after = View(scene()).get_state()["_player"]
    assert after == f"IPY_MODEL_{SharedPlayer.of_this_kernel().model_id}" != before
