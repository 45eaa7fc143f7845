"""Every sentence that a view says, keyed by the kind of event. The views choose the names; the numbers come from the event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autodiff_lab import FaultFound, events
from autodiff_lab.events import Event
from autodiff_lab.graph import Node

from .values import bytes_text, is_short, number_text, numbers_of, time_text, value_text


@dataclass(frozen=True)
class Names:
    """How sentences call things: nodes by id or by serial number, whichever the events have."""

    of: Callable[[int], str]
    saved: Callable[[int, str], str] = lambda node, name: (
        f"what it calls {name}"
    )  # a value that a node's rules know by a name
    contributions: Mapping[int, int] = field(default_factory=dict)  # how many each node receives, where that is known

    def __call__(self, node: int) -> str:
        """The name of a node."""
        return self.of(node)

    def call(self, op: str, inputs: Iterable[int | None]) -> str:
        """An op with its operands: ``mul(`x`, `w`)``."""
        return f"{op}({', '.join('a constant' if i is None else self(i) for i in inputs)})"


Sentence = Callable[[Any, Names], str]

SENTENCES: dict[type[Event], Sentence] = {}


def says(kind: type[Event]) -> Callable[[Sentence], Sentence]:
    """Register the sentence of an event kind."""

    def register(sentence: Sentence) -> Sentence:
        SENTENCES[kind] = sentence
        return sentence

    return register


def caption(event: Event, name: Names) -> str:
    """The sentence of an event.

    >>> caption(events.NodeEnqueued(3), Names(lambda node: f"`n{node}`"))
    '`n3` waits for nothing more: it joins the end of the queue.'
    """
    return SENTENCES[type(event)](event, name)


def node_caption(node: Node, name: Names) -> str:
    """What a node of a recorded graph is or computes."""
    what = f"shape {node.shape}, {node.dtype}"
    called = name(node.id)
    if node.kind == "constant" and not node.name:
        return f"{called[:1].upper()}{called[1:]} needs no input: {what}."
    if node.op is None:
        return f"{called} is {'an input' if node.kind == 'input' else 'a constant'}: {what}."
    done = f"{called} = {name.call(node.op.name, node.inputs)}: {what}."
    if node.phase == "backward" and node.origin is not None:
        return f"Backward of {name(node.origin)}: {done}"
    return done


def listed(words: list[str]) -> str:
    """Words as English writes a list.

    >>> listed(["`x`", "`w`", "`b`"])
    '`x`, `w` and `b`'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def counted(count: int, word: str) -> str:
    """``1 input``, ``2 inputs``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


# --------------------------------------------------------------------------------------------------- topological order


@says(events.NodeEntered)
def _node_entered(event: events.NodeEntered, name: Names) -> str:
    if event.via is None:
        return f"Start at the output {name(event.node)}: push it on the stack."
    return f"{name(event.via)} needs {name(event.node)} first: push it on the stack."


@says(events.NodeSeenAgain)
def _node_seen_again(event: events.NodeSeenAgain, name: Names) -> str:
    return f"{name(event.via)} needs {name(event.node)} too, but it has been entered before: it is not entered twice."


@says(events.NodeFinished)
def _node_finished(event: events.NodeFinished, name: Names) -> str:
    here = name(event.node)
    return f"All inputs of {here} are in the order: {here} leaves the stack and is number {event.position + 1} in the order."


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


# ------------------------------------------------------------------------------------------------- forward and reverse


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
    how = f"{part}, made from the tangent {value_text(event.tangent)} of {sender},"
    if event.local is not None:
        product = "tangent × the local derivative"
        if is_short(event.tangent, 30) and is_short(event.local, 30):
            product = f"{value_text(event.tangent)} × {value_text(event.local)}"
        how = f"{product} = {part} from {sender}"
    which = f"direction {event.direction + 1}, " if event.direction else ""
    progress = f"part {event.arrived} of {event.parts}; the sum is now {value_text(event.total)}"
    return (
        f"{name(event.serial)} gets {how} (rule {event.rule}): {which}"
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


def pass_caption(number: int, count: int, moving: str, still: list[str]) -> str:
    """How a pass of forward mode begins.

    >>> pass_caption(2, 3, "`w` moves with the tangent 1", ["`x`", "`b`"])
    'Pass 2 of 3: `w` moves with the tangent 1, and `x` and `b` stand still.'
    """
    rest = f", and {listed(still)} {'stands' if len(still) == 1 else 'stand'} still" if still else ""
    return f"Pass {number} of {count}: {moving}{rest}."


def adjoint_caption(at_output: float, at_inputs: float) -> str:
    """What both ends of a graph say about each other.

    >>> adjoint_caption(5.0, 5.0)
    'gradient · tangent is 5 at the output and 5 at the inputs: the same number, because backward is the adjoint of forward.'
    """
    numbers = f"gradient · tangent is {value_text(at_output)} at the output and {value_text(at_inputs)} at the inputs"
    if np.isclose(at_output, at_inputs, rtol=1e-4, atol=1e-9):
        return f"{numbers}: the same number, because backward is the adjoint of forward."
    return f"{numbers}: they should be equal, so a gradient rule is wrong. Check the rules with ad.gradcheck."


@says(events.SweepStarted)
def _sweep_started(event: events.SweepStarted, name: Names) -> str:
    return f"Backward starts at the output {name(event.serial)} with the gradient {value_text(event.seed)}."


@says(events.CotangentComplete)
def _cotangent_complete(event: events.CotangentComplete, name: Names) -> str:
    value = value_text(event.cotangent)
    return f"The gradient of {name(event.serial)} is complete: {value}. Now the gradient rules of {event.op} run."


@says(events.ContributionAdded)
def _contribution_added(event: events.ContributionAdded, name: Names) -> str:
    sent = value_text(event.contribution)
    if event.local is None:
        how = f"{sent}, made from {value_text(event.upstream)},"
    else:
        product = "its gradient × the local derivative"
        if is_short(event.upstream, 30) and is_short(event.local, 30):
            product = f"{value_text(event.upstream)} × {value_text(event.local)}"
        shape = numbers_of(event.contribution).shape
        fits = shape == numbers_of(event.upstream).shape
        how = f"{product} = {sent}" if fits else f"{product}, summed to shape {shape}, = {sent}"
    count, total = name.contributions.get(event.into, event.arrived), value_text(event.total)
    progress = (
        f"contribution {event.arrived} of {count}; the sum is now {total}" if count > 1 else "its only contribution"
    )
    return f"{name(event.serial)} sends {how} to {name(event.into)} (rule {event.rule}): {progress}."


@says(events.SavedValueReleased)
def _saved_value_released(event: events.SavedValueReleased, name: Names) -> str:
    what = name.saved(event.serial, event.name)
    size = bytes_text(event.nbytes)
    return f"No later rule of this sweep reads {what}, saved by {name(event.serial)}: its {size} can be freed."


def fault_caption(fault: FaultFound) -> str:
    """What a picture says at a node that find_faulty_op blames.

    >>> fault_caption(FaultFound("rule", "mul", 2, "mul_vjp_x", None, "mul_vjp_x is wrong: a sign is lost."))
    '✗ Wrong rule: mul_vjp_x is wrong: a sign is lost.'
    """
    return f"✗ Wrong {fault.blame}: {fault.reason.rstrip('.')}."


@says(events.LeafReached)
def _leaf_reached(event: events.LeafReached, name: Names) -> str:
    return f"The gradient of the input {name(event.serial)} is complete: {value_text(event.gradient)}."


# ------------------------------------------------------------------------------------------- registration and dispatch


@says(events.SchemaRegistered)
def _schema_registered(event: events.SchemaRegistered, name: Names) -> str:
    rest = f" and the attributes {listed(list(event.attributes))}" if event.attributes else ""
    return (
        f"The schema of {event.op}: {counted(len(event.inputs), 'input')} ({', '.join(event.inputs)}), "
        f"the output {', '.join(event.outputs)}{rest}."
    )


@says(events.OpReplaced)
def _op_replaced(event: events.OpReplaced, name: Names) -> str:
    return f"{event.op} was defined before: the name means the new op from now on, and graphs from before keep the old one."


@says(events.RuleRegistered)
def _rule_registered(event: events.RuleRegistered, name: Names) -> str:
    reads = listed([*event.reads, *(f"the attribute {attribute}" for attribute in event.attributes)])
    which = f" for {event.argument}" if event.argument else ""
    by = "comes by itself" if event.is_default else "is registered"
    return f"The {event.kind}{which} of {event.op}, {event.rule}, {by}: it reads {reads}."


@says(events.KernelRegistered)
def _kernel_registered(event: events.KernelRegistered, name: Names) -> str:
    return f"The kernel {event.kernel} of {event.op} is registered for {_key(event.device, event.dtype)}."


@says(events.BindingGenerated)
def _binding_generated(event: events.BindingGenerated, name: Names) -> str:
    saved = (
        f"a call saves {listed(list(event.saved))} for backward" if event.saved else "a call saves nothing for backward"
    )
    return f"The function {event.signature} is written: {saved}."


@says(events.KernelConsidered)
def _kernel_considered(event: events.KernelConsidered, name: Names) -> str:
    key = _key(event.device, event.dtype)
    if not event.chosen:
        return f"Dispatch of {event.op} looks for a kernel for {key}: there is none."
    return f"Dispatch of {event.op} looks for a kernel for {key} and takes {event.kernel}."


@says(events.KernelCreated)
def _kernel_created(event: events.KernelCreated, name: Names) -> str:
    key = f"{event.device}, {listed(list(event.dtypes))}"
    values = "".join(f", {attribute}={value!r}" for attribute, value in event.attributes.items())
    done = "has made the kernel before, and it is used again" if event.cached else "makes the kernel"
    return f"The kernel creator {event.creator} of {event.op} {done}, for {key}{values}."


def _key(device: str, dtype: str) -> str:
    """What a kernel is for, in words."""
    where = "every array library" if device == "any" else device
    return f"{where} and {'every dtype' if dtype == 'any' else dtype}"


# ------------------------------------------------------------------------------------------------------------- training


@says(events.StepTrained)
def _step_trained(event: events.StepTrained, name: Names) -> str:
    loss, norm = number_text(event.loss, 4), number_text(event.gradient_norm, 4)
    return f"{event.run}, step {event.step}: loss {loss}, gradient norm {norm}."


@says(events.TrainingStopped)
def _training_stopped(event: events.TrainingStopped, name: Names) -> str:
    return f"{event.run} stops in step {event.step}: {event.reason}"


@says(events.WorkQueued)
def _work_queued(event: events.WorkQueued, name: Names) -> str:
    when = f"from {time_text(event.start)} to {time_text(event.end)}"
    return f"At {time_text(event.queued)} the host queues {event.name} on {event.device}, where it runs {when}."


@says(events.Transferred)
def _transferred(event: events.Transferred, name: Names) -> str:
    took = time_text(event.end - event.start)
    return f"{bytes_text(event.nbytes)} are copied from {event.source} to {event.target}, in {took}."


@says(events.Synchronised)
def _synchronised(event: events.Synchronised, name: Names) -> str:
    waited = event.end - event.start
    took = f"waits {time_text(waited)}" if waited else "need not wait"
    return f"{event.asked_by} needs what {event.device} has computed: the host {took}."
