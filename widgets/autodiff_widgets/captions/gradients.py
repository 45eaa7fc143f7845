"""What is said of gradients: the values of a forward pass, tangents in forward mode, contributions in a reverse sweep."""

from __future__ import annotations

import numpy as np

from autodiff_lab import FaultFound, events

from ..values import bytes_text, is_short, numbers_of, value_text
from .sentences import Names, counted, listed, says

BEFORE_FORWARD = "Before the forward pass."
AFTER_FORWARD = "The forward pass is over. Shown are the values that it kept."
FORWARD_MODE = "Forward mode sends a tangent along with each value. Each pass gives one column of the Jacobian."
TURN_ROUND = "Now forward mode on the same graph: tangents go from the inputs to the output."


@says(events.OpCalled)
def _op_called(event: events.OpCalled, name: Names) -> str:
    return f"Forward: {name(event.serial)} = {name.call(event.op, event.inputs)} = {value_text(event.value)}."


@says(events.TangentSeeded)
def _tangent_seeded(event: events.TangentSeeded, name: Names) -> str:
    if len(event.tangents) > 1:
        return f"The input {name(event.serial)} starts with {len(event.tangents)} tangents that travel together."
    if not np.any(event.tangents[0]):
        return f"The input {name(event.serial)} stands still: its tangent is 0."
    return f"The input {name(event.serial)} moves: it starts with the tangent {value_text(event.tangents[0])}."


@says(events.TangentPushed)
def _tangent_pushed(event: events.TangentPushed, name: Names) -> str:
    part, sender = value_text(event.part), name(event.sender)
    how = f"{part} from {sender}, made from its tangent {value_text(event.tangent)}"
    if event.local is not None:
        product = "tangent × the local derivative"
        if is_short(event.tangent, 30) and is_short(event.local, 30):
            product = f"{value_text(event.tangent)} × {value_text(event.local)}"
        how = f"{product} = {part} from {sender}"
    which = f"direction {event.direction + 1}, " if event.direction else ""
    progress = f"part {event.arrived} of {event.parts}; the sum is now {value_text(event.total)}"
    return (
        f"{name(event.serial)} gets {how} (rule `{event.rule}`): {which}"
        f"{progress if event.parts > 1 else 'this is its whole tangent'}."
    )


@says(events.TangentReached)
def _tangent_reached(event: events.TangentReached, name: Names) -> str:
    tangents = listed([value_text(tangent) for tangent in event.tangents])
    if event.serial is None:
        return (
            f"The result {value_text(event.value)} does not depend on an input that moves: its tangent is {tangents}."
        )
    return f"The result {name(event.serial)} has the value {value_text(event.value)} and the tangent {tangents}."


def pass_opening(number: int, count: int, moving: str, still: list[str]) -> str:
    """How a pass of forward mode begins.

    >>> pass_opening(2, 3, "`w` moves with the tangent 1", ["`x`", "`b`"])
    'Pass 2 of 3: `w` moves with the tangent 1, and `x` and `b` stand still.'
    """
    rest = f", and {listed(still)} {'stands' if len(still) == 1 else 'stand'} still" if still else ""
    return f"Pass {number} of {count}: {moving}{rest}."


def adjoint_caption(at_output: float, at_inputs: float) -> str:
    """What both ends of a graph say about each other.

    >>> adjoint_caption(5.0, 5.0)
    'Gradient · tangent is 5 at the output and 5 at the inputs: the same number, because backward is the adjoint of forward.'
    """
    numbers = f"Gradient · tangent is {value_text(at_output)} at the output and {value_text(at_inputs)} at the inputs"
    if np.isclose(at_output, at_inputs, rtol=1e-4, atol=1e-9):
        return f"{numbers}: the same number, because backward is the adjoint of forward."
    return f"{numbers}: they should be equal, so a gradient rule is wrong. Check the rules with `ad.gradcheck`."


@says(events.SweepStarted)
def _sweep_started(event: events.SweepStarted, name: Names) -> str:
    return f"Backward starts at the output {name(event.serial)} with the gradient {value_text(event.seed)}."


@says(events.CotangentComplete)
def _cotangent_complete(event: events.CotangentComplete, name: Names) -> str:
    value = value_text(event.cotangent)
    return f"The gradient of {name(event.serial)} is complete: {value}. Now the gradient rules of `{event.op}` run."


@says(events.ContributionAdded)
def _contribution_added(event: events.ContributionAdded, name: Names) -> str:
    sent, sender, receiver = value_text(event.contribution), name(event.serial), name(event.into)
    if event.local is None:
        how = f"makes {sent} from its gradient {value_text(event.upstream)} and sends it"
    else:
        product = "its gradient × the local derivative"
        if is_short(event.upstream, 30) and is_short(event.local, 30):
            product = f"{value_text(event.upstream)} × {value_text(event.local)}"
        shape = numbers_of(event.contribution).shape
        fits = shape == numbers_of(event.upstream).shape
        how = f"sends {product} = {sent}" if fits else f"sends {product}, summed to shape {shape}, = {sent}"
    count, total = name.contributions.get(event.into, event.arrived), value_text(event.total)
    progress = (
        f"contribution {event.arrived} of {count}; the sum is now {total}" if count > 1 else "nothing else comes there"
    )
    return f"{sender} {how} to {receiver} (rule `{event.rule}`): {progress}."


@says(events.SavedValueReleased)
def _saved_value_released(event: events.SavedValueReleased, name: Names) -> str:
    what, size = name.saved(event.serial, event.name), bytes_text(event.nbytes)
    return f"{name(event.serial)} saved {what}, and no later rule of this sweep reads it: {size} can be freed."


def fault_caption(fault: FaultFound) -> str:
    """What a picture says at a node that find_faulty_op blames.

    >>> fault_caption(FaultFound("rule", "mul", 2, "mul_vjp_x", None, "mul_vjp_x is wrong: a sign is lost."))
    '✗ Wrong rule: mul_vjp_x is wrong: a sign is lost.'
    """
    return f"✗ Wrong {fault.blame}: {fault.reason.rstrip('.')}."


@says(events.LeafReached)
def _leaf_reached(event: events.LeafReached, name: Names) -> str:
    return f"The gradient of the input {name(event.serial)} is complete: {value_text(event.gradient)}."


def closing(gradients: list[str]) -> str:
    """How a reverse sweep ends: each input with its gradient.

    >>> closing(["`x` 6", "`w` 2"])
    'Done. The gradients are: `x` 6 and `w` 2.'
    """
    return f"Done. The {'gradient is' if len(gradients) == 1 else 'gradients are'}: {listed(gradients)}."


def passes_closing(passes: int, rules: int) -> str:
    """How forward mode ends: what its passes took.

    >>> passes_closing(1, 2)
    'Done: 1 column of the Jacobian by 1 pass and 2 calls of JVP rules.'
    """
    columns, by = counted(passes, "column"), "1 pass" if passes == 1 else f"{passes} passes"
    return f"Done: {columns} of the Jacobian by {by} and {counted(rules, 'call')} of JVP rules."


# ----------------------------------------------------------------------------------------------------------- questions

COMPLETE = "Whose gradient is complete now, so that its rules run next?"


def sent_question(event: events.ContributionAdded, name: Names) -> str:
    """Before a contribution: what does the rule send?"""
    op, gradient = name(event.serial), value_text(event.upstream)
    return f"{op} has the gradient {gradient}. What does it send to {name(event.into)}?"


def sum_question(event: events.ContributionAdded, before: str, name: Names) -> str:
    """Before a further contribution: what becomes of the gradient that is there already?"""
    into, sent = name(event.into), value_text(event.contribution)
    return (
        f"{into} has received {before}, and {name(event.serial)} sends {sent} now. What is the gradient of {into} then?"
    )


def part_question(event: events.TangentPushed, name: Names) -> str:
    """Before a part of a tangent: what does the rule make of the operand's tangent?"""
    sender, tangent = name(event.sender), value_text(event.tangent)
    return f"{sender} has the tangent {tangent}. What does {name(event.serial)} get from it?"


STILL, MOVES = "only zeros: it stands still", "numbers that are not all 0"


def moving_question(event: events.TangentPushed, name: Names) -> str:
    """Before a part of a tangent with many numbers: does its operand move at all?"""
    return f"{name(event.serial)} gets a part of its tangent from {name(event.sender)}. What is in it?"
