"""The index in JupyterLab: the map of the course is drawn, and a click on a lesson opens it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.browser import jupyter

LESSONS = Path(__file__).parents[2] / "notebooks" / "lessons"


def test_a_click_on_a_card_of_the_map_and_one_in_the_table_open_the_lesson(lab: jupyter.Lab, page: Any) -> None:
    for name in ("00_index.ipynb", "10_computation_graph.ipynb", "20_forward_mode.ipynb"):
        shutil.copy(LESSONS / name, lab.root / name)
    page.goto(f"{lab.url}/lab/tree/00_index.ipynb?token={lab.token}&reset")
    jupyter.run_all_cells(page)
    cards = page.locator("[role=listitem]")
    assert cards.count() == len(list(LESSONS.glob("*.ipynb"))) - 1
    for place, name in ((cards, "10_computation_graph"), (page.locator("td"), "20_forward_mode")):
        page.get_by_role("tab", name="00_index.ipynb").click()
        place.locator(f"a[href*='{name}']").first.click()
        page.wait_for_url(f"**/lab/tree/{name}.ipynb*")
    lab.end_kernels()
