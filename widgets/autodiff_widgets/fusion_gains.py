"""What a fusion wins: fewer kernels, and less memory that is read and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from autodiff_lab.graph import Node

from .tables import Entry, Share
from .values import bytes_text

if TYPE_CHECKING:
    from autodiff_lab.fusion import Fusion


def gains(fusion: Fusion) -> list[str | Entry | Share]:
    """Bars for kernels and bytes before and after; those after come into sight in the state ``done``."""
    kernels = _shares("kernels", fusion.kernels_before, fusion.kernels_after, str)
    return ["Kernels", *kernels, "Memory read and written", *_shares("bytes", *moved(fusion), bytes_text)]


def moved(fusion: Fusion) -> tuple[int, int]:
    """The bytes that kernels read and write, one by one and in groups, counted from shapes. A view moves nothing.

    >>> import autodiff_lab as ad
    >>> moved(ad.fuse(ad.record(lambda x: ad.ops.tanh(x + 1.0), 1.0)))
    (40, 24)
    """
    nodes, before, after = fusion.graph.nodes, 0, 0
    for group in fusion.groups:
        alone = [_moved_alone(nodes, node) for node in group.nodes]
        before += sum(alone)
        after += alone[0] if len(alone) == 1 else sum(nodes[value].nbytes for value in (*group.inputs, *group.outputs))
    return before, after


def _moved_alone(nodes: Sequence[Node], number: int) -> int:
    node = nodes[number]
    assert node.op is not None
    return 0 if node.op.views else sum(nodes[value].nbytes for value in {*node.inputs, number})


def _shares(name: str, before: int, after: int, text: Callable[[int], str]) -> list[Share]:
    return [
        Share(f"{name}:before", f"one by one: {text(before)}", 1.0),
        Share(f"{name}:after", f"in groups: {text(after)}", after / max(before, 1)),
    ]
