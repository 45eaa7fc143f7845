"""Devices: mixed ones refuse, moving is an op and counted, and the simulated one is as strict as CuPy."""

from __future__ import annotations

import copy
import gc
import importlib.util
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import autodiff_widgets as aw
import numpy as np
import pytest
from autodiff_widgets.drawing import shape_text

import autodiff_lab as ad
from autodiff_lab import backend, events, ops, simulated
from autodiff_lab.bindings import OpError
from autodiff_lab.layers import CNN, MLP, TransformerLM
from autodiff_lab.layers.single import not_later, places
from autodiff_lab.optimizers import SGD, Adam, Optimizer
from autodiff_lab.simulated.cupy_names import cupy_names, written_names


@pytest.fixture
def device() -> Iterator[simulated.Device]:
    """A simulated device of the test's own, sim:7, with little memory and round times."""
    own = simulated.device(7)
    own.memory_limit, own.memory_peak = 2**20, 0
    own.costs = simulated.Costs(enqueue=1.0, launch=10.0, bandwidth=1e30, link_latency=100.0, link_bandwidth=1e30)
    own.synchronize()
    yield own
    if own.memory_used:
        gc.collect()
    assert own.memory_used == 0, "an array outlived its test"


def on(values: Any = (1.0, 2.0, 3.0), number: int = 7) -> ad.Tensor:
    return ad.tensor(values, device=f"sim:{number}")


def of_kind(told: list[Any], kind: type) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]


# ------------------------------------------------------------------------------------------------------- which there are


def test_devices_says_in_one_line_each_what_there_is_and_why_cuda_is_not() -> None:
    lines = ad.devices()
    assert lines[0].startswith("cpu: NumPy")
    assert lines[1].startswith("cuda") and (": CuPy" in lines[1] or "not available" in lines[1])
    assert lines[-1].startswith("sim:0: simulated") and all("\n" not in line for line in lines)


def test_the_accelerator_is_a_gpu_where_there_is_one_and_the_stand_in_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend, "_cuda_devices", lambda: ["cuda:0: CuPy 14.0.0", "cuda:1: CuPy 14.0.0"])
    assert ad.accelerator() == "cuda:0"
    monkeypatch.setattr(backend, "_cuda_devices", lambda: ["cuda: not available, CuPy is not installed"])
    assert ad.accelerator() == "sim:0"


def test_the_simulation_is_not_loaded_before_somebody_asks_for_it() -> None:
    program = (
        "import sys, autodiff_lab as ad; ad.tensor(1.0, requires_grad=True).backward(); "
        "assert 'autodiff_lab.simulated' not in sys.modules; ad.tensor(1.0, device='sim:0'); "
        "assert 'autodiff_lab.simulated' in sys.modules and 'cupy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_everything_that_a_simulated_device_says_is_labelled(device: simulated.Device) -> None:
    x = on()
    graph = ad.record(lambda a: a * 2.0, x)
    for text in (repr(x), repr(x.data), repr(device), repr(device.default_stream), str(graph)):
        assert "simulated" in text and "sim:7" in text


@pytest.mark.parametrize("name", ["gpu", "sim:x", "cpu:0", "sim:-1", ""])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown device"):
        ad.tensor(1.0).to(name)


def test_a_device_without_a_number_is_the_first() -> None:
    assert ad.tensor(1.0, device="sim").device == "sim:0" == ad.tensor(1.0).to("sim").device


# -------------------------------------------------------------------------------------------- mixing and moving, all devices


def test_an_op_refuses_operands_on_two_devices_and_names_both(device: simulated.Device) -> None:
    with pytest.raises(
        OpError, match=r"mul\(x: \(3,\) float64 on sim:7, y: \(3,\) float64\).*on sim:7 and on cpu.*\.to\("
    ):
        ops.mul(on(), ad.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(OpError, match="on sim:7 and on sim:6"):
        on() + on(number=6)
    with pytest.raises(OpError, match="on sim:7 and on cpu"):
        on().data * np.ones(3)
    with pytest.raises(TypeError, match=r"np\.multiply got an array on sim:7"):
        np.ones(3) * on().data


def test_a_recording_refuses_operands_on_two_devices_as_an_eager_call_does(device: simulated.Device) -> None:
    with pytest.raises(OpError, match=r"mul\(x: \(3,\) float64 on sim:7, y: \(3,\) float64\).*on sim:7 and on cpu"):
        ad.record(lambda a, b: a * b, on(), np.ones(3))
    with pytest.raises(OpError, match="on sim:7 and on cpu"):
        ad.record(lambda a: a + np.ones(3), on())


def test_numbers_lie_nowhere_and_meet_any_array(device: simulated.Device) -> None:
    x = on()
    for number in (2, 2.0, True, np.float64(2.0), np.int8(2)):
        for result in (x * number, number * x, x.data * number, number * x.data):
            assert result.device == "sim:7"
    graph = ad.record(lambda a: np.float32(2) * a, x.data)
    assert graph(x.data).get().tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("give", ["data", "cotangent", "tangent"])
def test_what_is_handed_over_for_a_value_must_lie_where_it_lies(device: simulated.Device, give: str) -> None:
    x = ad.tensor([1.0, 2.0, 3.0], requires_grad=True, device="sim:7")
    with pytest.raises(ValueError, match=r"on cpu|on sim:7 and on cpu"):
        if give == "data":
            x.data = np.ones(3)
        elif give == "cotangent":
            (x * 2.0).backward(np.ones(3))
        else:
            ad.jvp(lambda a: a * 2.0, (x.data,), (np.ones(3),))
    (x * 2.0).backward([1.0, 1.0, 1.0])
    assert x.grad is not None and x.grad.device == "sim:7"


def test_moving_is_an_op_whose_gradient_moves_back(device: simulated.Device) -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True, name="x")
    there = x.to("sim:7")
    assert (there.device, there.name) == ("sim:7", "x")
    (there * there).to("cpu").sum().backward()
    assert x.grad is not None and x.grad.device == "cpu" and x.grad.numpy().tolist() == [2.0, 4.0]
    _, tangent = ad.jvp(lambda a: ops.to_device(a, "sim:7") * 3.0, (np.ones(2),), (np.ones(2),))
    assert tangent.device == "sim:7" and tangent.get().tolist() == [3.0, 3.0]
    hessian = ad.hessian(lambda a: (a.to("sim:7") ** 3).sum().to("cpu"))(np.array([1.0, 2.0]))
    assert hessian.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_moving_to_where_it_lies_is_the_same_value_and_no_node() -> None:
    x = ad.tensor([1.0], requires_grad=True)
    assert x.to("cpu") is x
    assert [node.label for node in ad.record(lambda a: a.to("cpu") * 2.0, 1.0)] == ["input", "constant", "mul"]


def test_a_recorded_graph_knows_where_every_value_lies(device: simulated.Device) -> None:
    graph = ad.record(ad.value_and_grad(lambda a, w: (a.to("sim:7") * w).sum().to("cpu"), (0, 1)), np.ones(3), on())
    lies = {(node.phase, node.label): node.device for node in graph}
    assert lies["forward", "mul"] == lies["forward", "sum"] == lies["backward", "broadcast_to"] == "sim:7"
    assert [graph.nodes[i].device for i in graph.outputs] == ["cpu", "cpu", "sim:7"]
    assert ad.Graph.from_json(graph.to_json()) == graph
    value, (by_a, by_w) = graph(np.ones(3), on().data)
    assert (value.item(), by_a.tolist(), by_w.get().tolist()) == (6.0, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])


def test_the_graph_of_executed_tensors_knows_it_too(device: simulated.Device) -> None:
    x = ad.tensor([1.0, 2.0], requires_grad=True)
    y = ops.exp(x.to("sim:7") * np.float64(2.0)).to("cpu").sum()
    assert [(n.label, n.device) for n in ad.graph_of(y) if n.kind != "constant"] == [
        ("input", "cpu"), ("to_device", "sim:7"), ("mul", "sim:7"), ("exp", "sim:7"), ("to_device", "cpu"), ("sum", "cpu"),
    ]  # fmt: skip


def test_constants_of_a_graph_stay_on_their_device_also_through_json(device: simulated.Device) -> None:
    w = on()
    graph = ad.record(lambda a: a * w, on())
    again = ad.Graph.from_json(graph.to_json())
    assert again == graph and again.nodes[1].value.device == "sim:7"
    assert again(on([1.0, 1.0, 2.0])).numpy().tolist() == [1.0, 2.0, 6.0]


def test_every_copy_between_devices_is_told_also_the_hidden_ones(device: simulated.Device) -> None:
    with ad.listen() as told:
        x = on()  # there
        y = (x * 2.0).numpy()  # and back
        z = ad.tensor(y + 1.0).to("sim:7")  # there
        z[0].item()  # one number back
        z[np.array([0, 2])]  # an index travels too
        z[on([2])]  # one that lies there does not
    copies = [(event.source, event.target, event.nbytes) for event in of_kind(told, events.Transferred)]
    assert copies[:-1] == [
        ("cpu", "sim:7", 24), ("sim:7", "cpu", 24), ("cpu", "sim:7", 24), ("sim:7", "cpu", 8), ("cpu", "sim:7", 16),
    ]  # fmt: skip
    assert copies[-1] == ("cpu", "sim:7", 8)  # the making of the last index


def test_a_training_step_on_a_device_copies_nothing(device: simulated.Device) -> None:
    device.memory_limit = 2**28
    model = TransformerLM(5, context=4, width=4, heads=2, blocks=1, seed=0).to("sim:7")
    optimizer, tokens = Optimizer(model.parameters(), Adam(0.01)), on(np.array([[0, 1, 2]]))
    model(tokens)  # the mask and the places are copied once
    with ad.listen() as told:
        ops.cross_entropy(model(tokens), tokens).backward()
        optimizer.step()
    assert of_kind(told, events.WorkQueued)
    assert not of_kind(told, events.Transferred) and not of_kind(told, events.Synchronised)
    not_later.cache_clear()
    places.cache_clear()


# ----------------------------------------------------------------------------------------------------- as strict as CuPy


@pytest.mark.parametrize(
    "use",
    [
        float, int, bool, np.asarray, np.exp, np.sum, lambda x: np.add(x, x), lambda x: np.concatenate([x, x]),
        list(range(3)).__getitem__,
    ],
)  # fmt: skip
def test_nothing_turns_into_numpy_or_a_python_number_by_itself(device: simulated.Device, use: Any) -> None:
    x = on(2.0).data
    with pytest.raises(TypeError, match=r"simulated\).*(\.get\(\)|\.numpy\(\))"):
        use(x)


def in_a_kernel(body: Any, *operands: Any) -> Any:
    """Run a kernel that gives what ``body(xp, x)`` gives, on the device and to its end."""

    @ad.op(elementwise=True)
    def tried(xp: Any, x: Any) -> Any:
        return body(xp, x)

    return tried(on().data).get()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda xp, x: np.exp(x), r"np\.exp got an array on sim:7.*use xp\.exp"),
        (lambda xp, x: np.asarray(x) * 2, "computes with xp"),
        (lambda xp, x: x * np.ones(3), "Unsupported type <class 'numpy.ndarray'>"),
        (lambda xp, x: xp.add(x, np.ones(3)), "Unsupported type <class 'numpy.ndarray'>"),
        (lambda xp, x: x if x.sum() > 0 else -x, r"bool\(\) of an array on sim:7"),
        (lambda xp, x: x * float(x.sum()), r"float\(\) of an array on sim:7"),
        (lambda xp, x: x.get() * 2, "a kernel computes on the device"),
        (lambda xp, x: xp.emath.sqrt(x), "CuPy has no 'emath'"),
        (lambda xp, x: xp.trapz_and_more(x), "CuPy has no 'trapz_and_more'"),
        (lambda xp, x: xp.argsort(x, order="a"), "CuPy's argsort takes no 'order'"),
        (lambda xp, x: xp.hypot.at(x, 0, x), r"CuPy has no 'hypot\.at'"),
        (lambda xp, x: x.newbyteorder(), "CuPy's arrays have no 'newbyteorder'"),
        (lambda xp, x: x.searchsorted_by(x), "CuPy's arrays have no"),
        (lambda xp, x: xp.RawKernel("", ""), "runs on a GPU only"),
        (lambda xp, x: np.zeros(3), "gave a ndarray, which lies on the host"),
        (lambda xp, x: x[:2], r"gave \(2,\) float64, but the shape and dtype rules said \(3,\) float64"),
    ],
)  # fmt: skip
def test_a_kernel_that_leaves_the_device_is_refused_by_name(device: simulated.Device, body: Any, message: str) -> None:
    with pytest.raises(OpError, match=rf"tried\(x: .*{message}.*queued in test_devices.py") as caught:
        in_a_kernel(body)
    assert "found when the host synchronised" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda xp, x: xp.exp(x).clip(0, 5), np.exp([1.0, 2.0, 3.0]).clip(0, 5)),
        (lambda xp, x: x - x.mean() + np.float64(1.0) * xp.ones_like(x), [0.0, 1.0, 2.0]),
        (lambda xp, x: x * xp.linalg.norm(x, ord=1), [6.0, 12.0, 18.0]),
        (lambda xp, x: x[xp.asarray([2, 1, 0])], [3.0, 2.0, 1.0]),
        (lambda xp, x: 2 ** x + abs(-x) @ x + x // 2, [16.0, 19.0, 23.0]),
        (lambda xp, x: xp.ElementwiseKernel("T x, T y", "T z", "z = pow(x, 2 * y)")(x, x), [1.0, 16.0, 729.0]),
    ],
)  # fmt: skip
def test_a_kernel_computes_with_what_cupy_has(device: simulated.Device, body: Any, expected: Any) -> None:
    np.testing.assert_array_equal(in_a_kernel(body), expected)


def test_a_kernel_may_copy_a_numpy_array_to_the_device_which_is_told(device: simulated.Device) -> None:
    with ad.listen() as told:
        assert in_a_kernel(lambda xp, x: x * xp.asarray(np.array([1.0, 0.0, 2.0]))).tolist() == [1.0, 0.0, 6.0]
    assert [(event.source, event.target, event.nbytes) for event in of_kind(told, events.Transferred)] == [
        ("cpu", "sim:7", 24),  # the operand
        ("cpu", "sim:7", 24),  # the array inside the kernel
        ("sim:7", "cpu", 24),  # the result
    ]


def test_a_kernel_changes_its_own_arrays_through_views(device: simulated.Device) -> None:
    def body(xp: Any, x: Any) -> Any:
        result = xp.zeros((3, 3))
        xp.moveaxis(result, 0, 1)[0] += x
        xp.add.at(result, xp.asarray([0, 0]), 1.0)
        return result.sum(axis=1)

    assert in_a_kernel(body).tolist() == [7.0, 2.0, 3.0]


def test_what_a_kernel_is_given_can_be_copied_and_sent_to_another_process() -> None:
    xp = ad.library_of("sim:7")
    for again in (copy.deepcopy, lambda what: pickle.loads(pickle.dumps(what))):
        x = xp.asarray([1.0, 2.0])
        library, other = again((xp, x))
        other += 1.0
        assert library == xp and library.linalg.norm(other).device == "sim:7"
        assert simulated.numbers_in(x).tolist() == [1.0, 2.0] and simulated.numbers_in(other).tolist() == [2.0, 3.0]


def test_a_reduction_stays_on_the_device_as_an_array_without_axes(device: simulated.Device) -> None:
    total = on().data.sum()
    assert (type(total), total.shape, total.device) == (simulated.SimulatedArray, (), "sim:7")
    seen: list[Any] = []
    in_a_kernel(lambda xp, x: seen.append((type(x.sum()).__name__, x.sum().shape)) or x)
    assert seen == [("DeviceArray", ())]


def test_a_kernel_for_cuda_is_never_taken_for_a_simulated_device(device: simulated.Device) -> None:
    @ad.op(elementwise=True)
    def doubled(xp: Any, x: Any) -> Any:
        return x + x

    @doubled.kernel("cuda")
    def doubled_on_a_gpu(xp: Any, x: Any) -> Any:
        raise AssertionError

    assert doubled(on()).numpy().tolist() == [2.0, 4.0, 6.0]

    @doubled.kernel("sim")
    def doubled_there(xp: Any, x: Any) -> Any:
        return 2.0 * x + 0.0 * x

    assert doubled(on()).numpy().tolist() == [2.0, 4.0, 6.0]
    assert ad.registry["doubled"].kernel_for("sim:7", ()) is doubled_there


@pytest.mark.gpu  # CI may lack CuPy; where it is installed no GPU is needed
@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed")
def test_the_list_of_what_cupy_has_is_that_of_the_cupy_that_is_installed() -> None:
    cupy = backend.library_of("cuda")
    written = [line.split() for line in written_names(cupy).splitlines() if not line.startswith("#")]
    found = {name: tuple(parameters) for name, *parameters in written}
    assert len(found) > 900
    if cupy.__version__.startswith("14."):
        assert found == cupy_names()


# ----------------------------------------------------------------------------------------------- work that runs later


def test_work_runs_when_the_host_synchronises_and_reading_before_raises(device: simulated.Device) -> None:
    ran: list[str] = []

    @ad.op(elementwise=True)
    def noted(xp: Any, x: Any) -> Any:
        ran.append("kernel")
        return x + 1.0

    result = noted(on().data)
    assert (ran, result.shape, result.dtype) == ([], (3,), np.float64)
    with pytest.raises(simulated.NotSynchronisedError, match="read before the host has waited"):
        result.get(blocking=False)
    device.synchronize()
    assert ran == ["kernel"]
    assert result.get(blocking=False).tolist() == [2.0, 3.0, 4.0]


def test_the_memory_that_was_computed_early_is_still_closed_to_a_host_that_did_not_wait(
    device: simulated.Device,
) -> None:
    result = on().data * 2.0
    assert device.memory_used == 24  # has the queue carried out, and lets no time pass
    with pytest.raises(simulated.NotSynchronisedError):
        result.get(blocking=False)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda x: x.sum().item(), "item()"), (lambda x: x.numpy(), "numpy()"), (repr, "repr()"),
        (lambda x: x.to("cpu"), "to('cpu')"), (lambda x: x.data.get(), "get()"), (lambda x: bool(x.sum() > 0), "numpy()"),
    ],
)  # fmt: skip
def test_whatever_brings_numbers_to_the_host_is_told_as_synchronisation(
    device: simulated.Device, ask: Any, named: str
) -> None:
    x = on() * 2.0
    with ad.listen() as told:
        ask(x)
    (waited,) = of_kind(told, events.Synchronised)
    assert (waited.device, waited.asked_by) == ("sim:7", named) and waited.end > waited.start


def test_host_and_device_have_lanes_of_their_own(device: simulated.Device) -> None:
    x, start = on(), simulated.host.now
    with ad.listen() as told:
        y = x * 2.0
        z = y + 1.0
        z.numpy()
    work, (waited,), (copied,) = (
        of_kind(told, kind) for kind in (events.WorkQueued, events.Synchronised, events.Transferred)
    )

    def since_start(*times: float) -> list[int]:
        return [round(time - start) for time in times]

    assert [(e.name, *since_start(e.queued, e.start, e.end)) for e in work] == [("mul", 1, 1, 11), ("add", 2, 11, 21)]
    assert since_start(waited.start, waited.end) == [2, 21]
    assert since_start(copied.start, copied.end) == [21, 121]


def test_reading_waits_for_all_that_was_queued_before_it_also_where_the_numbers_are_long_there(
    device: simulated.Device,
) -> None:
    x, other = on(), simulated.Stream(device)
    y = x * 2.0
    y.numpy()
    z = y + 1.0
    start = simulated.host.now
    y.numpy()
    assert round(simulated.host.now - start) == 110  # the 10 seconds of add, and the copy
    with other:
        w = x.data * 3.0
    start = simulated.host.now
    z.numpy()  # on the default stream, which waits for all others
    assert round(simulated.host.now - start) == 110 and w.get(blocking=False).tolist() == [3.0, 6.0, 9.0]


def test_who_watches_takes_no_time_on_the_device(device: simulated.Device) -> None:
    def lanes(listens: bool) -> float:
        x = ad.tensor([1.0, 2.0], requires_grad=True, device="sim:7")
        start = simulated.host.now
        if listens:
            with ad.listen():
                (x * x).sum().backward()
        else:
            (x * x).sum().backward()
        return simulated.host.now - start

    assert round(lanes(True)) == round(lanes(False)) > 0


def test_an_error_that_depends_on_numbers_surfaces_later_and_names_the_call_that_queued_it(
    device: simulated.Device,
) -> None:
    x = on()
    taken = ops.take(x, ad.tensor([7], device="sim:7"))  # the call that is wrong
    doubled = taken * 2.0
    with pytest.raises(OpError, match=r"take\(x: \(3,\).*out of bounds.*ops\.take\(x, ad\.tensor\(\[7\]"):
        (x + 1.0).numpy()
    with pytest.raises(OpError, match="take"):
        doubled.numpy()
    assert (x + 1.0).numpy().tolist() == [2.0, 3.0, 4.0]


def test_a_shape_that_does_not_fit_is_refused_at_once(device: simulated.Device) -> None:
    with pytest.raises(OpError, match="do not broadcast"):
        on() + on([1.0, 2.0])


# --------------------------------------------------------------------------------------------------- streams and events


def test_another_stream_may_read_what_was_written_after_it_waited_for_the_event(device: simulated.Device) -> None:
    x, first, second = on(), simulated.Stream(device), simulated.Stream(device)
    with first:
        y = x.data * 2.0
    with second, pytest.raises(simulated.StreamOrderError, match=r"add on <stream .* reads what <stream .*wait_event"):
        y + 1.0
    second.wait_event(first.record())
    with second:
        z = y + 1.0
    assert z.get().tolist() == [3.0, 5.0, 7.0]


def test_waiting_on_the_host_or_the_default_stream_also_puts_work_in_order(device: simulated.Device) -> None:
    x, first, second = on(), simulated.Stream(device), simulated.Stream(device)
    with first:
        y = x.data * 2.0
    assert (y + 1.0).get().tolist() == [3.0, 5.0, 7.0]  # on the default stream
    with first:
        y = x.data * 3.0
    first.synchronize()
    with second:
        assert (y + 1.0).get().tolist() == [4.0, 7.0, 10.0]


def test_work_of_two_streams_overlaps_and_that_of_one_does_not(device: simulated.Device) -> None:
    def finished(streams: list[simulated.Stream]) -> int:
        device.synchronize()
        x, start = on(), simulated.host.now
        kept = []
        for stream in streams:
            with stream:
                kept.append(x.data * 2.0)
        return round(max(stream.free_at for stream in streams) - start)

    one, two, three = (simulated.Stream(device) for _ in range(3))
    assert finished([one, one]) == 21
    assert finished([one, two]) == 12
    assert finished([one, two, three]) == 21  # two kernels at once, the third starts when the first has ended


def test_an_event_knows_its_time_and_the_host_can_wait_for_it(device: simulated.Device) -> None:
    x = on()
    y = x.data * 2.0
    event = device.default_stream.record()
    z = y * 2.0
    event.synchronize()
    assert simulated.host.now == event.time
    assert y.get(blocking=False).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(simulated.NotSynchronisedError):
        z.get(blocking=False)


def test_streams_are_entered_by_each_thread_for_itself(device: simulated.Device) -> None:
    stream, seen = simulated.Stream(device), []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(device.stream))
        thread.start()
        thread.join()
        assert device.stream is stream and seen == [device.default_stream]
        with simulated.Stream(simulated.device(6)):
            assert device.stream is stream
    assert device.stream is device.default_stream


def test_work_that_the_user_has_stopped_is_done_the_next_time(device: simulated.Device) -> None:
    stops = [KeyboardInterrupt]

    @ad.op(elementwise=True)
    def slow(xp: Any, x: Any) -> Any:
        if stops:
            raise stops.pop()
        return x + 1.0

    result = slow(on().data)
    with pytest.raises(KeyboardInterrupt):
        result.get()
    assert result.get().tolist() == [2.0, 3.0, 4.0]


def test_an_array_that_the_host_has_copied_there_is_done_and_can_be_pickled(device: simulated.Device) -> None:
    assert on().data.get(blocking=False).tolist() == [1.0, 2.0, 3.0]  # for an upload the host has waited
    again = pickle.loads(pickle.dumps(on().data))
    assert again.device == "sim:7" and again.get().tolist() == [1.0, 2.0, 3.0]


# -------------------------------------------------------------------------------------------------------------- memory


def test_memory_is_counted_and_free_again_when_arrays_die(device: simulated.Device) -> None:
    x = on(np.zeros(1000))
    assert device.memory_used == 8000
    y = x * 2.0
    assert device.memory_used == 16000
    view = y.reshape(10, 100)
    assert device.memory_used == 16000  # a view has no memory of its own
    del y
    assert device.memory_used == 16000
    del view
    assert device.memory_used == 8000
    del x
    assert device.memory_used == 0 and device.memory_peak >= 16000


def test_a_device_without_room_says_what_was_wanted_what_is_used_and_what_to_do(device: simulated.Device) -> None:
    x = on(np.zeros(100_000))
    with pytest.raises(
        MemoryError, match=r"sim:7 \(simulated\).*800000 bytes wanted, 800000 of 1048576 in use.*memory_limit"
    ):
        x * 2.0
    with pytest.raises(simulated.OutOfMemoryError):
        on(np.zeros(100_000))
    device.memory_limit = 2**21
    assert (x * 2.0).shape == (100_000,)


def test_room_for_what_a_kernel_makes_on_the_way_counts_too(device: simulated.Device) -> None:
    @ad.op(elementwise=True)
    def wasteful(xp: Any, x: Any) -> Any:
        many = [x * 2.0 for _ in range(20)]
        return many[0]

    result = wasteful(on(np.zeros(10_000)).data)
    with pytest.raises(simulated.OutOfMemoryError, match=r"wasteful on sim:7.*queued in.*80000 bytes wanted"):
        result.get()


def test_a_long_run_needs_only_what_lives(device: simulated.Device) -> None:
    x = on(np.zeros(10_000))
    for _ in range(100):
        x = x + 1.0
    assert x.numpy()[0] == 100.0 and device.memory_peak <= device.memory_limit


# ------------------------------------------------------------------------------------------------------- models and checks


def trained(make: Any, x: Any, y: Any, rule: Any, device: str) -> list[float]:
    model = make().to(device)
    optimizer, losses = Optimizer(model.parameters(), rule), []
    x, y = ad.tensor(x, device=device), ad.tensor(y, device=device)
    for _ in range(3):
        optimizer.zero_grad()
        loss = ops.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(0, 11, (2, 9))
MODELS = [
    (lambda: MLP(4, 8, 3, seed=0), RANDOM.standard_normal((10, 4)), RANDOM.integers(0, 3, 10)),
    (lambda: CNN(8, 3, seed=0), RANDOM.standard_normal((4, 1, 8, 8)), RANDOM.integers(0, 3, 4)),
    (lambda: TransformerLM(11, context=8, width=8, heads=2, seed=0), TOKENS[:, :-1], TOKENS[:, 1:]),
]


@pytest.mark.parametrize("rule", [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.01)])
@pytest.mark.parametrize(("make", "x", "y"), MODELS)
def test_a_model_trains_on_a_simulated_device_as_on_the_cpu_bit_for_bit(make: Any, x: Any, y: Any, rule: Any) -> None:
    x = x.astype(np.float32) if x.dtype == np.float64 else x
    assert trained(make, x, y, rule, "sim:0") == trained(make, x, y, rule, "cpu")


def test_a_whole_training_step_on_a_device_is_one_graph_there() -> None:
    model, rule = MLP(4, 3, seed=0).to("sim:0"), Adam(0.01)
    x, y = ad.tensor(np.ones((2, 4), np.float32), device="sim:0").data, ad.tensor([0, 1], device="sim:0").data

    def step(parameters: Any, state: Any) -> Any:
        loss, gradients = ad.value_and_grad(lambda p: ops.cross_entropy(model.with_parameters(p)(x), y))(parameters)
        return loss, *rule.update(parameters, gradients, state)

    parameters = model.values()
    graph = ad.record(step, parameters, rule.initial_state(parameters))
    assert {n.device for n in graph if not (n.kind == "constant" and isinstance(n.value, (int, float)))} == {"sim:0"}


def test_gradcheck_checks_a_function_that_computes_on_a_device() -> None:
    report = ad.gradcheck(lambda x: ops.tanh(x * x).sum(), (ad.tensor([0.5, 2.0], device="sim:0"),), order=2)
    assert report.ok
    report = ad.gradcheck(lambda x: ops.exp(x.to("sim:0")).sum(), (np.array([0.5, 2.0]),))
    assert report.ok


@pytest.mark.parametrize("view", [aw.GradientFlowView, aw.ForwardModeView])
def test_a_view_of_a_run_on_a_device_shows_the_numbers_of_the_cpu(view: Any) -> None:
    def f(x: Any) -> Any:
        return ops.tanh(x * x).sum()

    def shown(x: Any) -> str:
        return re.sub(r"\bn\d+|device sim:0 \(simulated\); ", "", view(f, x).text())

    assert shown(ad.tensor([0.5, 2.0], device="sim:0").data) == shown(np.array([0.5, 2.0]))
    assert "sim:0 (simulated)" in aw.GraphView(ad.record(f, ad.tensor([0.5, 2.0], device="sim:0"))).text()


def test_a_drawn_graph_says_of_every_value_that_is_not_on_the_cpu_where_it_lies() -> None:
    graph = ad.record(lambda x: ops.tanh(x.to("sim:0")).to("cpu"), np.ones(3))
    assert [shape_text(node) for node in graph] == [
        "(3,) float64", "(3,) float64 · sim:0", "(3,) float64 · sim:0", "(3,) float64",
    ]  # fmt: skip
    assert aw.GraphView(graph).scene.panes[0].svg.count("float64 · sim:0") == 2


def test_anomaly_mode_looks_at_numbers_on_a_device() -> None:
    with ad.anomaly_mode(), pytest.raises(ad.AnomalyError, match="log gave 1 NaN"):
        ops.log(ad.tensor([1.0, -1.0], device="sim:0"))


def test_a_device_is_one_object_however_it_is_asked_for_and_only_by_its_number() -> None:
    assert simulated.device() is simulated.device(0) is simulated.device(number=0)
    for wrong in ("sim:0", -1):
        with pytest.raises(ValueError, match="a device is asked for by its number"):
            simulated.device(wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(
    "cuda: not available, CuPy is installed" not in str(ad.devices()), reason="needs CuPy without a GPU"
)
@pytest.mark.parametrize("ask", [lambda: ad.tensor([1.0], device="cuda"), lambda: ad.tensor([1.0]).to("cuda:0")])
def test_a_gpu_that_is_not_there_is_refused_with_what_is(ask: Any) -> None:
    with pytest.raises(ValueError, match="there is no device 'cuda:0' here; this machine has: cpu"):
        ask()


@pytest.mark.parametrize(
    ("error", "stops", "message"),
    [(KeyboardInterrupt, 1, "was stopped twice and is given up"), (SystemExit, 0, r"its kernel raised SystemExit\(\)")],
)
def test_a_kernel_that_never_ends_or_calls_exit_does_not_block_the_device_for_good(
    device: simulated.Device, error: type[BaseException], stops: int, message: str
) -> None:
    @ad.op(elementwise=True)
    def endless(xp: Any, x: Any) -> Any:
        raise error

    y, z = endless(on()), on() * 2.0
    for _ in range(stops):
        with pytest.raises(KeyboardInterrupt):
            z.numpy()
    for _ in range(2):  # whoever waits is told once, who asks for the result each time
        with pytest.raises(OpError, match=message):
            y.numpy()
    assert z.numpy().tolist() == (2.0 * on().numpy()).tolist()


def test_a_kernel_that_waits_for_the_device_is_refused_and_not_left_waiting(device: simulated.Device) -> None:
    @ad.op(elementwise=True)
    def waits(xp: Any, x: Any) -> Any:
        return x * float((on() * 3.0).numpy()[0])

    with pytest.raises(OpError, match=r"waits\(.*a kernel asked for the numbers of .* give the op another input"):
        waits(on()).numpy()
