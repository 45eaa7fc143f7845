"""The shapes of a timeline: a bar in the colour and the outline of its phase, and hatched idle time."""

from __future__ import annotations

from autodiff_lab.schedule.task import Phase

from . import shapes
from .routes import Box
from .tasks_shown import SIDES

LETTER = 7.3  # px of a letter in a bar


def phase_bar(key: str, box: Box, phase: Phase, title: str, name: str = "", is_critical: bool = False) -> str:
    """A bar in the colour and the shape of its phase, its name where there is room, a stroke above if it is critical."""
    outline = _outline(phase, box)
    stroke = [(box.x, box.y - 3), (box.x + box.width, box.y - 3)]
    over = f"<g>{shapes.line(stroke, 'critical')}</g>" if is_critical else ""
    room = int((box.width - 8) / LETTER)
    text = (
        shapes.heading(shapes.shortened(name, room), box.centre, box.middle + 5, "", "middle")
        if room >= min(len(name), 3)
        else ""
    )
    return shapes.group(key, f"bar {phase_css(phase)}", title, f"{outline}{over}{text if name else ''}")


def phase_css(phase: Phase) -> str:
    """The class that gives a phase its colour."""
    return SIDES.get(phase, phase)


def _outline(phase: Phase, box: Box) -> str:
    """F is a box, dX points back, dW has a corner cut off, communication has round ends, an update two points."""
    x, y, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    cut = min(10.0, box.width / 3)
    ways = {
        "dX": [(x + cut, y), (right, y), (right, bottom), (x + cut, bottom), (x, box.middle)],
        "dW": [(x, y), (right - cut, y), (right, y + cut), (right, bottom), (x, bottom)],
        "update": [
            (x + cut, y), (right - cut, y), (right, box.middle), (right - cut, bottom), (x + cut, bottom), (x, box.middle),
        ],
    }  # fmt: skip
    if phase in ways:
        return shapes.outline(ways[phase])
    return shapes.rectangle(box, box.height / 2 if phase == "comm" else min(3.0, box.width / 4))


def idle_shape(key: str, box: Box, few: str = "", sentence: str = "idle") -> str:
    """A hatched box, with the cause in few words where there is room."""
    strokes = []
    for number in range(int((box.width + box.height) / 9) + 1):
        low = box.x - box.height + 9.0 * number
        start, end = max(low, box.x), min(low + box.height, box.x + box.width)
        bottom = box.y + box.height
        if end > start:
            strokes.append(shapes.line([(start, bottom - (start - low)), (end, bottom - (end - low))], "hatch"))
    fits = shapes.text_width(few, shapes.DETAIL) + 8 <= box.width
    text = shapes.heading(few, box.centre, box.middle + 5, "detail note", "middle") if fits and few else ""
    return shapes.group(key, "idle", sentence, f"{shapes.rectangle(box, 2)}<g>{''.join(strokes)}</g>{text}")
