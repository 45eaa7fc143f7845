"""The widget that holds the player for all views of a notebook, which would else be saved with a copy of it for each."""

from __future__ import annotations

from typing import ClassVar

import traitlets
from anywidget import AnyWidget

from .export import PICTURE_CSS, PLAYER_CSS
from .player import NOTEBOOK_JS, PLAYER_JS


class SharedPlayer(AnyWidget):
    """The player's text and its rules, as a widget that is never shown itself."""

    _esm = NOTEBOOK_JS
    _css = PICTURE_CSS + PLAYER_CSS
    player = traitlets.Unicode(PLAYER_JS).tag(sync=True)

    _made: ClassVar[SharedPlayer | None] = None

    @classmethod
    def of_this_kernel(cls) -> SharedPlayer:
        """The one that there is, or a new one where it was closed with all other widgets.

        >>> SharedPlayer.of_this_kernel() is SharedPlayer.of_this_kernel()
        True
        """
        if cls._made is None or cls._made.comm is None:
            cls._made = cls()
        return cls._made
