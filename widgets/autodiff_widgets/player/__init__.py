"""The player: what plays a Scene in the browser, as modules that are joined into one text.

A notebook and a saved page each hold one module without imports. Indents, most line breaks and comments, which are for readers
and for the type checker, stay here. In a notebook anywidget runs two small modules beside it: for each view the loader, which
finds the player, and for the widget that holds the player what makes JupyterLab save all that is shown.
"""

from __future__ import annotations

import re
from pathlib import Path

# What imports stands after what it imports.
MODULES = (
    *("elements", "pictures", "film", "stage", "keyboard", "sources", "tags", "spotlight"),  # the scene
    *("model", "packed"),  # Python
    *("toolbar", "panels", "questions", "search", "table", "projector", "insides"),  # around the pictures
    *("player", "widget"),
)

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_DOCUMENTATION = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n|/\*\*(?:(?!\*/).)*\*/ ?", re.MULTILINE | re.DOTALL)
_REASON = re.compile(r"^ *// .*\n| // .*$", re.MULTILINE)
_INDENT = re.compile(r"^[ \n]+", re.MULTILINE)
_BREAK = re.compile(r"(?<=[{(,;])\n(?=.)|\n(?=[})?:.])")  # where no statement ends by its line's end alone
_SPACE = re.compile(r" (?==>)|(?<==>) ")  # around an arrow


def joined(*texts: str) -> str:
    """Modules as one: without the imports between them, and only the default export is left.

    >>> joined("/** One. */\\nexport const one = 1;\\n", 'import { one } from "./a.js";\\nexport default one;\\n')
    'const one = 1;\\nexport default one;\\n'
    >>> joined("let two = 1;\\n\\n  two += 1;\\n")
    'let two = 1;two += 1;\\n'
    """
    for left_out in (_IMPORT, _EXPORT, _DOCUMENTATION, _REASON, _INDENT, _BREAK, _SPACE):
        texts = tuple(left_out.sub("", text) for text in texts)
    return "\n".join(text.strip() for text in texts) + "\n"


def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.js").read_text(encoding="utf-8")


PLAYER_JS, LOADER_JS, NOTEBOOK_JS = joined(*map(_text, MODULES)), joined(_text("loader")), joined(_text("notebook"))
