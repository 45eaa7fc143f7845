"""What is said of ops: how they are registered part by part, who reads each part later, and which kernel a call runs."""

from __future__ import annotations

from collections.abc import Mapping

from autodiff_lab import events

from .sentences import Names, capitalised, counted, listed, says

OPENING = (
    "Registering tells a framework what an operation is, part by part. Nobody reads the parts yet; on the right stands who "
    "will."
)
PURPOSES: Mapping[str, str] = {
    "schema": "It says what a call takes, and every later part is checked against it.",
    "shape rule": "It gives the result's shape from shapes alone.",
    "dtype rule": "It gives the result's dtype from dtypes alone.",
    "kernel": "It computes the result.",
    "vjp rule": "It turns the gradient of the result into that of an input.",
    "jvp rule": "It turns the tangent of an input into that of the result.",
    "batch rule": "It runs many calls as one.",
    "binding": "It is what users call.",
}


@says(events.SchemaRegistered)
def _schema_registered(event: events.SchemaRegistered, name: Names) -> str:
    many = "attribute" if len(event.attributes) == 1 else "attributes"
    rest = f" and the {many} {_code(event.attributes)}" if event.attributes else ""
    return (
        f"The schema of `{event.op}`: {counted(len(event.inputs), 'input')} ({_code(event.inputs)}), "
        f"the {'output' if len(event.outputs) == 1 else 'outputs'} {_code(event.outputs)}{rest}."
    )


@says(events.OpReplaced)
def _op_replaced(event: events.OpReplaced, name: Names) -> str:
    return (
        f"`{event.op}` was defined before. From now on the name means the new op; graphs from before keep the old one."
    )


@says(events.RuleRegistered)
def _rule_registered(event: events.RuleRegistered, name: Names) -> str:
    reads = [f"`{name}`" for name in event.reads] + [f"the attribute `{name}`" for name in event.attributes]
    which = f" for `{event.argument}`" if event.argument else ""
    by = "comes by itself" if event.is_default else "is registered"
    return f"The {event.kind}{which} of `{event.op}`, `{event.rule}`, {by}: it reads {listed(reads) or 'nothing'}."


@says(events.KernelRegistered)
def _kernel_registered(event: events.KernelRegistered, name: Names) -> str:
    return f"The kernel `{event.kernel}` of `{event.op}` is registered for {_key(event.device, event.dtype)}."


@says(events.BindingGenerated)
def _binding_generated(event: events.BindingGenerated, name: Names) -> str:
    saved = _code(event.saved) if event.saved else "nothing"
    return f"The function `{event.signature}` is written: a call saves {saved} for backward."


@says(events.KernelConsidered)
def _kernel_considered(event: events.KernelConsidered, name: Names) -> str:
    key = _key(event.device, event.dtype)
    if not event.chosen:
        return f"Dispatch of `{event.op}` looks for a kernel for {key}: there is none."
    return f"Dispatch of `{event.op}` looks for a kernel for {key} and takes `{event.kernel}`."


@says(events.KernelCreated)
def _kernel_created(event: events.KernelCreated, name: Names) -> str:
    key = f"{event.device}, {listed(list(event.dtypes))}"
    values = "".join(f", {attribute}={value!r}" for attribute, value in event.attributes.items())
    done = "has made the kernel before, and it is used again," if event.cached else "makes the kernel"
    return f"The kernel creator `{event.creator}` of `{event.op}` {done} for {key}{values}."


def _code(names: tuple[str, ...]) -> str:
    """Names as code, in a list."""
    return listed([f"`{name}`" for name in names])


def _key(device: str, dtype: str) -> str:
    """What a kernel is for, in words."""
    where = "any array library" if device == "any" else device
    return f"{where} and {'any dtype' if dtype == 'any' else dtype}"


def part_caption(said: str, kind: str, readers: list[str]) -> str:
    """A part's sentence, with what the part is for and who reads it later."""
    return f"{said} {PURPOSES[kind]} Read later by {listed(readers)}."


def closing(lacking: Mapping[str, list[str]]) -> str:
    """How a registration ends: which reader still has no part of a kind that it reads.

    >>> closing({"backward": ["vjp rule"], "fusion": []})
    'Done. Backward has no vjp rule.'
    """
    missing = [f"{reader} has no {' and no '.join(kinds)}" for reader, kinds in lacking.items() if kinds]
    return f"Done. {capitalised(listed(missing))}." if missing else "Done. Every reader has what it reads."


def card_caption(name: str) -> str:
    """What is said of an op whose parts are all there."""
    return f"All that is registered of `{name}`. Select a row to see what it is for."


def reader_question(what: str, op: str) -> str:
    """Before a part is registered: who will read it?"""
    return f"The {what} of `{op}` comes next. Who will read it?"


# ------------------------------------------------------------------------------------------------------------ dispatch


def call_words(op: str, device: str, dtype: str) -> str:
    """The call whose kernel is looked for; ``any`` is the dtype of numbers alone."""
    return f"`{op}` on {device} with {'numbers alone' if dtype == 'any' else dtype}"


def dispatch_opening(call: str) -> str:
    """How the search for a kernel begins."""
    return (
        f"{call}: dispatch looks for a kernel from the most special key to the most general one, and takes the first."
    )


def dispatch_closing(call: str, kernel: str | None) -> str:
    """How the search for a kernel ends."""
    if kernel is None:
        return f"No key is left: {call} has no kernel, so the call raises an error that lists those there are."
    return f"Done: {call} runs the kernel `{kernel}`."


def kernel_question(device: str, dtype: str) -> str:
    """Before dispatch looks at a key: what is there?"""
    return f"Dispatch looks for a kernel for {_key(device, dtype)}. What does it find?"


NONE_THERE = "there is none"


def why_question(kernel: str, detail: str) -> str:
    """Before dispatch ends: why was a kernel not taken?"""
    return f"The kernel `{kernel}`, {detail}, is not taken. Why not?"
