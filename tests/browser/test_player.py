"""The player in a real browser: in JupyterLab with a living and a dead kernel, and in a page of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from autodiff_widgets.training_view import TrainingView
from autodiff_widgets.view import View

from autodiff_lab.events import StepTrained
from tests.browser.jupyter import Lab, Record
from tests.browser.reader import Player, kernel_says
from tests.browser.walks import kill_kernel
from tests.hand_written import NestedView, scene
from tests.notebook_file import notebook_of

CELLS = (
    "from autodiff_widgets.view import View\nfrom tests.hand_written import scene",
    "one = View(scene('first'))\none",
    "two = View(scene('second'))\ntwo",
)

TWENTY = """import autodiff_widgets as aw
from IPython.display import display
from tests.drawn_graphs import joint, mlp_arguments, mlp_loss
graph = joint(mlp_loss, *mlp_arguments(3))
assert len(graph) > 47
for _ in range(20): display(aw.GraphView(graph))"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    return notebook_of(tmp_path / "player.ipynb", CELLS)


def steps_and_scrubs(player: Player) -> None:
    """Step by buttons, keys and scrubber, there and back; the picture is always the scene's at that frame."""
    truth = scene()
    last = len(truth.frames) - 1
    assert player.counter() == f"0 / {last}"
    player.root.get_by_role("button", name="Step forward").click()
    player.root.get_by_role("button", name="Step forward").click()
    assert (player.counter(), player.caption()) == (f"2 / {last}", truth.frames[2].caption)
    assert player.states() == truth.states_at(2)
    player.root.get_by_role("button", name="Step back").click()
    assert player.states() == truth.states_at(1)
    player.root.focus()
    player.press("ArrowRight", "ArrowRight", "End", "ArrowLeft")
    assert player.states() == truth.states_at(last - 1)
    player.press("Home")
    assert player.states() == truth.states_at(0)
    player.root.get_by_label("Step", exact=True).fill("3")
    assert (player.counter(), player.states()) == (f"3 / {last}", truth.states_at(3))


def test_a_view_in_jupyterlab_steps_and_tells_the_kernel(open_notebook: Callable[[Path], Any], notebook: Path) -> None:
    page = open_notebook(notebook)
    steps_and_scrubs(Player(page))
    page.wait_for_timeout(400)  # four times the player's pause between two reports
    assert kernel_says(page, "one.frame") == "3"
    assert kernel_says(page, "two.frame") == "0"


def test_selecting_in_one_view_selects_in_the_other_and_in_the_kernel(
    open_notebook: Callable[[Path], Any], notebook: Path
) -> None:
    page = open_notebook(notebook)
    one, two = Player(page, 0), Player(page, 1)
    one.root.locator('.node[data-op="n3"]').click()
    assert one.selected() == two.selected() == {"n3"}
    assert "float64" in two.root.locator(".details").inner_text()
    page.wait_for_timeout(400)
    assert kernel_says(page, "two.selected") == "'n3'"
    one.press("Escape")
    assert one.selected() == two.selected() == set()


def test_a_picture_is_one_tab_stop_and_its_elements_are_reached_by_keys(
    open_notebook: Callable[[Path], Any], notebook: Path
) -> None:
    page = open_notebook(notebook)
    player = Player(page)
    player.root.get_by_label("Speed").focus()
    player.press("Tab", "ArrowDown", "Enter")
    assert player.selected() == {"n2"}
    player.press("ArrowRight")
    assert player.counter() == "1 / 5"
    assert kernel_says(page, "len(In)") == "4", "JupyterLab's own keys ran or added a cell"


def test_a_trait_set_in_the_kernel_moves_the_player(open_notebook: Callable[[Path], Any], notebook: Path) -> None:
    page = open_notebook(notebook)
    player = Player(page)
    kernel_says(page, "setattr(one, 'frame', -1)")
    page.wait_for_function("() => document.querySelector('.counter').value === '5 / 5'")
    assert player.states() == scene().states_at(5)


def test_a_player_steps_when_the_kernel_is_dead(
    open_notebook: Callable[[Path], Any], notebook: Path, record: Record
) -> None:
    page = open_notebook(notebook)
    kill_kernel(page)
    record.errors.clear()  # JupyterLab's own about the kernel; the player must add none
    steps_and_scrubs(Player(page))
    Player(page).root.locator('.node[data-op="n1"]').click()
    assert Player(page, 1).selected() == {"n1"}
    page.wait_for_timeout(400)


def test_an_element_opens_by_mouse_and_by_keys_until_the_kernel_is_gone(
    open_notebook: Callable[[Path], Any], tmp_path: Path, record: Record
) -> None:
    page = open_notebook(
        notebook_of(tmp_path / "player.ipynb", ["from tests.hand_written import NestedView\nNestedView()"])
    )
    player = Player(page)
    title, note = player.root.locator(".title"), player.root.locator(".note")
    player.root.get_by_role("button", name="Step forward").click()
    player.root.locator('.node[data-op="n4"]').dblclick()
    title.filter(has_text="inside tanh").wait_for()
    player.root.locator('.node[data-op="n4"]').focus()
    player.press("Enter")  # it is selected, as it was outside
    title.locator("li").nth(2).wait_for()
    assert title.locator("li").all_inner_texts() == ["outermost", "inside tanh", "inside tanh"]
    player.press("Backspace", "Escape")
    assert (title.inner_text(), player.counter(), player.selected()) == ("outermost", "1 / 5", {"n4"})
    kill_kernel(page)
    record.errors.clear()  # JupyterLab's own about the kernel; the player must add none
    player.root.locator('.node[data-op="n3"]').dblclick()
    assert "mul" in player.root.locator(".details").inner_text(), "the facts need no kernel"
    note.filter(has_text="The kernel is busy or gone").wait_for()


def test_the_projector_fills_the_window_in_jupyterlab_and_escape_leaves_it(
    open_notebook: Callable[[Path], Any], notebook: Path
) -> None:
    page = open_notebook(notebook)
    player = Player(page)
    edges = "e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right - innerWidth, r.bottom - innerHeight] }"
    on_top = "e => e.contains(document.elementFromPoint(3, 3))"
    page.evaluate("""() => {
      window.whole = Element.prototype.requestFullscreen;  // refused, as to a trait that is set without a click
      Element.prototype.requestFullscreen = () => Promise.reject(new TypeError("no user gesture"));
    }""")
    kernel_says(page, "setattr(one, 'projector', True)")
    page.wait_for_function("() => document.querySelector('[data-projector]:popover-open')")
    assert player.root.evaluate(edges) == [0, 0, 0, 0]
    assert player.root.evaluate(on_top)
    player.root.focus()
    player.press("ArrowRight", "Escape")
    assert not player.root.evaluate(on_top)
    assert player.counter() == "1 / 5"
    page.evaluate("() => void (Element.prototype.requestFullscreen = whole)")
    player.root.get_by_role("button", name="Projector").click()
    page.wait_for_function("() => document.fullscreenElement?.matches('[data-projector]')")
    assert player.root.evaluate(edges) == [0, 0, 0, 0]
    page.evaluate("() => document.exitFullscreen()")  # as Escape does for a reader
    page.wait_for_function("() => !document.querySelector('[data-projector]')")
    page.wait_for_timeout(400)
    assert kernel_says(page, "one.projector") == "False"


def test_a_saved_notebook_is_small_and_shows_its_players_on_every_later_day_without_running_a_cell(
    open_notebook: Callable[[Path], Any], tmp_path: Path, lab: Lab
) -> None:
    notebook = notebook_of(tmp_path / "player.ipynb", [*CELLS, TWENTY])
    page = open_notebook(notebook)
    Player(page, 1)
    restarted = "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    page.evaluate(restarted)
    for _ in range(2):
        page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        assert (lab.root / notebook.name).stat().st_size < 2_000_000
        lab.end_kernels()
        page.goto("about:blank")
        page.goto(lab.address(notebook.name))
        steps_and_scrubs(Player(page))
        Player(page).root.locator('.node[data-op="n1"]').click()
        assert Player(page, 1).selected() == {"n1"}
        page.wait_for_timeout(400)
        assert kernel_says(page, "len(In)") == "1", "a cell ran"
        Player(page).press("Escape", "Home")
    last = Player(page, 21).root
    last.get_by_role("button", name="Last step").click()
    assert last.locator("[data-s=done]").count() > 40


def test_a_cell_that_ran_again_is_saved_with_one_picture(
    open_notebook: Callable[[Path], Any], notebook: Path, lab: Lab
) -> None:
    page = open_notebook(notebook)
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
    assert kernel_says(page, "len(In)") == "7"  # asked after the cells, so answered after them
    Player(page, 1)
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    saved = nbformat.read(lab.root / notebook.name, 4).metadata.widgets["application/vnd.jupyter.widget-state+json"]
    models = [model["model_name"] for model in saved["state"].values()]
    assert sorted(models) == ["AnyModel"] * 3 + ["LayoutModel"] * 3, "two views, and the player that they share"


def test_running_a_cell_again_leaves_one_player_that_works(
    open_notebook: Callable[[Path], Any], notebook: Path
) -> None:
    page = open_notebook(notebook)
    Player(page, 1)
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
    assert kernel_says(page, "len(In)") == "7"  # asked after the cells, so answered after them
    page.wait_for_timeout(500)
    assert page.locator(".autodiff-player").count() == 2
    steps_and_scrubs(Player(page))


def test_a_saved_page_steps_and_links_from_a_file(page: Any, tmp_path: Path) -> None:
    path = View(scene("one </script><b>")).save_html(tmp_path / "page.html", View(scene("two")))
    page.goto(path.as_uri())
    steps_and_scrubs(Player(page))
    one, two = Player(page, 0), Player(page, 1)
    assert one.root.locator(".title").inner_text() == "one </script><b>"
    one.root.locator('.row[data-op="n4"]').click()
    assert two.selected() == {"n4"}


def test_a_reader_searches_and_sees_where_a_value_comes_from(page: Any, tmp_path: Path) -> None:
    page.goto(NestedView().save_html(tmp_path / "page.html", insides=0).as_uri())
    player = Player(page)
    player.root.focus()
    player.press("/")
    page.keyboard.type("tanh")
    player.press("Enter")
    assert player.root.locator(".found").inner_text() == "1 of 1"
    assert player.selected() == {"n4"}
    near = "all => all.map(e => [e.dataset.op, e.dataset.near])"
    assert dict(player.root.locator(".body > .pane [data-near]").evaluate_all(near)) == {
        "n3": "source",
        "n3>n4.0": "source",
        "n1": "ancestor",
        "n2": "ancestor",
        "n1>n3.0": "ancestor",
        "n2>n3.1": "ancestor",
    }
    player.press("Escape", "Escape")
    player.root.locator('.node[data-op="n4"]').hover()
    assert player.root.locator(".note").inner_text() == "tanh of −1.0 is −0.7616"
    player.root.locator('.node[data-op="n3"]').dblclick()
    assert "not saved with this page" in player.root.locator(".note").inner_text()


@pytest.mark.parametrize("width", [120, 260, 420])
def test_in_a_narrow_window_no_control_is_cut_off_and_only_pictures_scroll(
    page: Any, tmp_path: Path, width: int
) -> None:
    page.goto(View(scene()).save_html(tmp_path / "page.html").as_uri())
    page.set_viewport_size({"width": width, "height": 450})
    Player(page).root.locator('.row[data-op="n3"]').dispatch_event("click")
    edges = "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
    ((left, right),) = page.locator(".autodiff-player").evaluate_all(edges)
    for start, end in page.locator(".toolbar > *, .title, .details").evaluate_all(edges):
        assert left <= start and end <= right
    scrolled = """all => all.filter(e => getComputedStyle(e).overflowY === "auto" && e.scrollHeight > e.clientHeight)
        .map(e => e.className)"""
    assert set(page.locator(".autodiff-player *").evaluate_all(scrolled)) <= {"pane"}


def test_a_static_picture_is_drawn_without_any_script(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    path.write_text(View(scene()).svg(2), encoding="utf-8")
    page.goto(path.as_uri())
    shown = page.locator("[data-s]").evaluate_all("all => all.map(e => [e.dataset.op, e.dataset.s])")
    assert dict(shown) == scene().states_at(2)
    fill = page.locator('.node[data-op="n2"] rect').evaluate("e => getComputedStyle(e).fill")
    assert fill == "rgb(245, 171, 31)", "the active colour"


def test_a_request_that_leaves_the_machine_is_stopped_and_seen(page: Any, record: Record, tmp_path: Path) -> None:
    (tmp_path / "leak.html").write_text('<img src="http://example.invalid/x.png">')
    page.goto((tmp_path / "leak.html").as_uri())
    assert record.outside == ["http://example.invalid/x.png"]
    record.outside.clear()
    record.errors.clear()


@pytest.mark.parametrize("width", [800, 1000, 1200, 1500])
def test_a_plot_is_whole_in_every_window(page: Any, tmp_path: Path, width: int) -> None:
    runs = [StepTrained(name, step, 2.0 / step, 1.0) for name in ("healthy", "faulty") for step in (1, 2, 3)]
    page.goto(TrainingView(runs).save_html(tmp_path / "page.html").as_uri())
    page.set_viewport_size({"width": width, "height": 800})
    hidden = "all => all.map(e => e.scrollWidth - e.clientWidth)"
    assert page.locator(".autodiff-player .pane").evaluate_all(hidden) == [0, 0]
