"""Saved pages, read back: the players that a page holds."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def players_of(page: str) -> list[dict[str, Any]]:
    """What a page tells each of its players."""
    data = re.search(r'id="autodiff-scenes">([A-Za-z0-9+/=]*)</script>', page)
    assert data is not None
    players: list[dict[str, Any]] = json.loads(gzip.decompress(base64.b64decode(data[1])))
    return players
