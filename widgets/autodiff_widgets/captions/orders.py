"""What is said of a topological order: depth-first search with its stack, Kahn's algorithm with its queue."""

from __future__ import annotations

from collections.abc import Mapping

from autodiff_lab import events

from .sentences import Names, counted, says

OPENINGS: Mapping[str, str] = {
    "depth_first": (
        "Depth-first search starts at the outputs and goes to the inputs. A node takes its number when all its inputs "
        "have theirs."
    ),
    "kahn": "Kahn's algorithm counts on how many inputs each node waits. A node that waits for none joins the queue.",
}
QUESTION = "Which node is next in the order?"


def closing(count: int) -> str:
    """How an algorithm ends."""
    return f"Done: {counted(count, 'node')} {'is' if count == 1 else 'are'} in order, each after all its inputs."


@says(events.NodeEntered)
def _node_entered(event: events.NodeEntered, name: Names) -> str:
    if event.via is None:
        return f"The search starts at the output {name(event.node)}, which goes on the stack."
    return f"{name(event.via)} needs {name(event.node)} first, which goes on the stack."


@says(events.NodeSeenAgain)
def _node_seen_again(event: events.NodeSeenAgain, name: Names) -> str:
    return f"{name(event.via)} needs {name(event.node)} too, but it has been entered before: it is not entered twice."


@says(events.NodeFinished)
def _node_finished(event: events.NodeFinished, name: Names) -> str:
    number = f"it leaves the stack and is number {event.position + 1} in the order"
    return f"Nothing that {name(event.node)} needs is missing: {number}."


@says(events.DependenciesCounted)
def _dependencies_counted(event: events.DependenciesCounted, name: Names) -> str:
    if event.waiting_for == 0:
        return f"{name(event.node)} waits for no input."
    return f"{name(event.node)} waits for {counted(event.waiting_for, 'input')}."


@says(events.NodeEnqueued)
def _node_enqueued(event: events.NodeEnqueued, name: Names) -> str:
    return f"{name(event.node)} waits for nothing more: it joins the end of the queue."


@says(events.NodeDequeued)
def _node_dequeued(event: events.NodeDequeued, name: Names) -> str:
    return f"{name(event.node)} leaves the head of the queue and is number {event.position + 1} in the order."


@says(events.DependencyDone)
def _dependency_done(event: events.DependencyDone, name: Names) -> str:
    left = f"still waits for {counted(event.waiting_for, 'input')}" if event.waiting_for else "waits for nothing more"
    return f"{name(event.node)} is done, so {name(event.consumer)} {left}."
