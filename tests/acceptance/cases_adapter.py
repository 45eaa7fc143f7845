"""Maps the sketches of a log of cases onto the public names. No arithmetic of its own."""

from __future__ import annotations

import gc
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakSet
from xml.etree import ElementTree

import autodiff_widgets as aw
import numpy as np
from IPython.core.interactiveshell import InteractiveShell

import autodiff_lab as ad
from autodiff_lab import ops as n
from autodiff_lab.graph import Graph, Node
from tests.drawn_graphs import mlp_arguments, mlp_loss

__all__ = [
    "D", "T", "arr", "back", "chain", "chain_named", "clear", "control", "dot", "doublings", "fwd", "g", "layout",
    "live_panels", "n", "network", "panel", "set_value", "show", "texts_of_nodes", "timed",
]  # fmt: skip

SVG = "{http://www.w3.org/2000/svg}"


def T(a: Any, dtype: str = "float64") -> ad.Tensor:
    return ad.tensor(a, dtype=dtype if np.asarray(a).dtype.kind == "f" else None, requires_grad=True)


def back(y: ad.Tensor, seed: Any = None, keep: bool = False) -> None:
    y.backward(seed)  # a graph may always be used again


def g(x: ad.Tensor) -> Any:
    return None if x.grad is None else x.grad.numpy()


def clear(x: ad.Tensor) -> None:
    x.grad = None


def arr(y: ad.Tensor) -> Any:
    return y.numpy()


def D(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ad.grad(f)


def fwd(f: Callable[[Any], Any], x: Any, t: Any) -> Any:
    return ad.jvp(f, (x,), (t,))[1]


# ------------------------------------------------------------------------------------------------ drawing and widgets


def dot(graph: Graph) -> str:
    return graph.to_dot()


def layout(dot: str) -> str:
    """What Graphviz draws."""
    return subprocess.run(["dot", "-Tsvg"], input=dot.encode(), capture_output=True, check=True).stdout.decode()


def texts_of_nodes(svg: str) -> list[str]:
    """The names in the nodes of a picture by Graphviz: all lines of a label but the last, which tells op and shape."""
    groups = [group for group in ElementTree.fromstring(svg).iter(f"{SVG}g") if group.get("class") == "node"]
    lines = {group.findtext(f"{SVG}title"): [t.text or "" for t in group.iter(f"{SVG}text")] for group in groups}
    return ["\n".join(texts[:-1]) for key, texts in lines.items() if key != "out0"]


def chain_named(labels: Sequence[str]) -> Graph:
    """An input and then ops, one after the other, with these names."""
    nodes = [Node(0, "input", labels[0], (), np.dtype("float64"), serial=1)]
    for place, label in enumerate(labels[1:], 1):
        nodes.append(
            replace(
                nodes[0], id=place, kind="op", name=label, op=ad.registry["exp"], inputs=(place - 1,), serial=place + 1
            )
        )
    return Graph(tuple(nodes), (0,), (len(nodes) - 1,), name="chain")


def chain(length: int) -> Graph:
    return ad.record(_repeated(length, n.tanh), 0.5)


def doublings(times: int) -> Graph:
    return ad.record(_repeated(times, lambda x: x + x), 1.0)


def network(layers: int) -> Graph:
    return ad.record(ad.value_and_grad(mlp_loss), *mlp_arguments(layers))


def _repeated(times: int, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def repeated(x: Any) -> Any:
        for _ in range(times):
            x = f(x)
        return x

    return repeated


def show(graph: Graph) -> dict[str, Any]:
    """What a notebook is given, and the page that the view saves."""
    view = aw.GraphView(graph)
    bundle = view._repr_mimebundle_()
    assert bundle is not None
    with TemporaryDirectory() as folder:
        page = view.save_html(Path(folder) / "page.html").read_text(encoding="utf-8")
    return {**bundle[0], "text/html": page}


def timed(call: Callable[[], Any]) -> float:
    """Seconds."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# A cell in a real shell: it hangs a function on a control, which is a view whose selection the reader changes.
CELL = """
def act(change, on_change=on_change):
    on_change(change.new)


panels.add(act)
control.observe(act, "selected")
control.observe(lambda change: others.append(change.new), "selected")
"""


class Control:
    """A view in a shell, and the functions that cells have hung on it and that are still alive."""

    def __init__(self) -> None:
        self.view, self.panels, self.others = aw.GraphView(chain(1)), WeakSet[Any](), list[Any]()
        self.shell = InteractiveShell.instance()
        self.shell.user_ns |= {"control": self.view, "panels": self.panels, "others": self.others}


def control() -> Control:
    return Control()


def panel(control: Control, on_change: Callable[[Any], Any]) -> None:
    control.shell.user_ns["on_change"] = on_change
    control.shell.run_cell(CELL, store_history=True).raise_error()


def set_value(control: Control, value: Any) -> None:
    """A click of the reader."""
    control.view.selected = str(value)


def live_panels(control: Control) -> int:
    gc.collect()
    return len(control.panels)
