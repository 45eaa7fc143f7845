"""Pages that play scenes in any browser: one file that needs no kernel, no network and no program beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .export import PICTURE_CSS, PLAYER_CSS
from .player import PLAYER_JS

if TYPE_CHECKING:
    from .view import View

INSIDES = 1_000_000  # bytes of JSON for what is inside elements; packed, a page grows by about 150 kB
TRAITS = ("frame", "selected", "link", "predict", "projector")  # what a player is told beside its scene

Player = dict[str, Any]  # "scene" as JSON, the TRAITS, and "inner": the scenes inside elements
Inside = Callable[[int, str], Mapping[str, Any] | None]  # (number of a player, element) -> the scene inside as JSON

# Plays the i-th of the page's scenes in the element with data-scene="i", with a model that has nobody to tell.
_PAGE_JS = """
const states = await unpack(document.getElementById("autodiff-scenes").textContent);
for (const el of document.querySelectorAll("[data-scene]")) {
  const state = states[el.dataset.scene];
  const nothing = () => {};
  const model = {
    get: (name) => state[name],
    set: (name, value) => (state[name] = value),
    save_changes: nothing,
    on: nothing,
    off: nothing,
  };
  buildPlayer(el, model, new AbortController().signal);
}
"""


def save_page(path: str | Path, views: Sequence[View], intro: str = "", insides: int = INSIDES) -> Path:
    """Write views below each other, after an introduction, as one HTML file that steps and links offline; returns its path.

    What is inside their elements is written too, level by level, until ``insides`` bytes are spent.
    """
    players = [{"scene": view.scene.as_json(), **{name: getattr(view, name) for name in TRAITS}} for view in views]
    embed(players, lambda number, key: views[number].inside_as_json(key), insides)
    body = "".join(f"<p>{escape(line)}</p>\n" for line in intro.splitlines())
    body += "\n".join(map(place, range(len(players)), (view.text() for view in views)))
    title = views[0].scene.title if views else intro
    return write(path, page(title, f'<body class="autodiff-page">\n<main>\n{body}\n</main>\n', players))


def embed(players: Sequence[Player], inside: Inside, budget: int) -> None:
    """Give players the scenes inside their elements as ``inner``, level by level, the players in turn.

    The first that does not fit into ``budget`` bytes ends it. Of what is left out the player says that it was not saved.
    """
    openable = [list(player["scene"].get("opens", ())) for player in players]
    waiting = deque(
        (number, keys[place])
        for place in range(max(map(len, openable), default=0))
        for number, keys in enumerate(openable)
        if place < len(keys)
    )
    found: list[dict[str, Any]] = [{} for _ in players]
    while waiting:
        number, key = waiting.popleft()
        scene = None if key in found[number] else inside(number, key)
        if scene is None:
            continue
        budget -= len(_json(scene))
        if budget < 0:
            break
        found[number][key] = scene
        waiting.extend((number, other) for other in scene.get("opens", ()))
    for player, inner in zip(players, found, strict=True):
        player["inner"] = inner


def place(number: int, text: str) -> str:
    """Where a page shows its player of that number, with its text, if any, below it."""
    twin = f"\n<details><summary>As text</summary><pre>{escape(text)}</pre></details>" if text else ""
    return f'<div data-scene="{number}"></div>{twin}'


def page(title: str, body: str, players: Sequence[Player], css: str = "") -> str:
    """A whole page: what a browser may run in it is our player alone, and it may ask for nothing."""
    script = f"\n{PLAYER_JS}{_PAGE_JS}"
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{PICTURE_CSS}{PLAYER_CSS}{css}</style>
{body}<script type="application/gzip;base64" id="autodiff-scenes">{packed(players)}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _policy(script: str) -> str:
    """What the page may do: be styled, show pictures that it holds itself, and run this one script.

    Source: Content Security Policy Level 3, https://www.w3.org/TR/CSP3/, hashes of inline scripts.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; font-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


def packed(data: Any, level: int = 9) -> str:
    """Data as JSON, compressed, in letters that cannot end the element that holds them: a tenth of the size of the JSON.

    Browsers unpack it since 2023 (``DecompressionStream``).
    """
    return base64.b64encode(gzip.compress(_json(data), level, mtime=0)).decode()


def unpacked(text: str) -> Any:
    """What was packed.

    >>> unpacked(packed({"title": "one"}))
    {'title': 'one'}
    """
    return json.loads(gzip.decompress(base64.b64decode(text)))


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def write(path: str | Path, text: str) -> Path:
    """Write a file in UTF-8, with a question mark for half a surrogate pair; returns its path."""
    target = Path(path)
    target.write_bytes(text.encode("utf-8", errors="replace"))
    return target
