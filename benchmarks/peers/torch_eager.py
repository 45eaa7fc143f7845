"""The workloads in torch, eager; its threads are as many as ``OMP_NUM_THREADS`` says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import formulas
import torch
import torch.nn.functional as F
from case import Case
from workloads import train_result


def version() -> str:
    """Which torch this is."""
    return f"torch {torch.__version__}"


def runs_on(device: str) -> bool:
    """Whether this torch has the device."""
    return device == "cpu" or torch.cuda.is_available()


def leaf(value: Any, device: str = "cpu") -> torch.Tensor:
    """A tensor that wants a gradient."""
    return torch.tensor(value, device=device, requires_grad=True)


def w1(data: SimpleNamespace) -> Case:
    """A chain of mul, add and tanh on one element."""

    def step() -> dict[str, Any]:
        x, w, b = leaf(data.x), leaf(data.w), leaf(data.b)
        return _chain_result(formulas.chain(x, w, b, data.n, torch.tanh), x, w, b)

    return Case(step, step)


def w6(data: SimpleNamespace) -> Case:
    """A deep chain of mul and add."""

    def step() -> dict[str, Any]:
        x, w, b = leaf(data.x), leaf(data.w), leaf(data.b)
        return _chain_result(formulas.deep_chain(x, w, b, data.n), x, w, b)

    return Case(step, step)


w6a = w6b = w6


def _chain_result(h: Any, x: Any, w: Any, b: Any) -> dict[str, Any]:
    h.backward()
    return {"y": h.detach().numpy(), "gx": x.grad.numpy(), "gw": w.grad.numpy(), "gb": b.grad.numpy()}


def _training(data: SimpleNamespace, loss_of: Any) -> Case:
    params = [leaf(p, data.device) for p in data.params]

    def step() -> float:
        loss = loss_of(params)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= data.lr * p.grad
                p.grad = None
        return loss.item()

    return Case(step, lambda: train_result([step() for _ in range(3)], [p.detach().cpu().numpy() for p in params]))


def _gradients(leaves: dict[str, torch.Tensor], loss_of: Any) -> Case:
    """Forward and backward; the result is the loss, and the gradients by the names of the leaves."""

    def step() -> float:
        for one in leaves.values():
            one.grad = None
        loss = loss_of()
        loss.backward()
        return loss.item()  # last, since on a device this waits for the gradients too

    return Case(step, lambda: {"loss": step(), **{name: one.grad.cpu().numpy() for name, one in leaves.items()}})


def small_loss(params: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a small perceptron with tanh."""
    return formulas.squared_error(params, x, y, torch.tanh, torch.mean)


def w2(data: SimpleNamespace) -> Case:
    """An SGD step of a small perceptron."""
    x, y = torch.tensor(data.X), torch.tensor(data.Y)
    return _training(data, lambda params: small_loss(params, x, y))


def w3(data: SimpleNamespace) -> Case:
    """An SGD step of a perceptron for ten classes."""
    x, y = torch.tensor(data.X, device=data.device), torch.tensor(data.y, device=data.device)

    def loss(params: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = params
        return F.cross_entropy(torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3, y)

    return _training(data, loss)


def w4(data: SimpleNamespace) -> Case:
    """A pre-norm Transformer block."""
    batch, time, width, heads = data.B, data.T, data.D, data.H
    size = width // heads
    p = {name: leaf(value, data.device) for name, value in data.p.items()}
    x, weight = leaf(data.x, data.device), torch.tensor(data.G, device=data.device)

    def loss() -> Any:
        a = F.layer_norm(x, (width,), p["g1"], p["c1"], data.eps)
        qkv = (a @ p["wqkv"] + p["bqkv"]).reshape(batch, time, 3, heads, size).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mixed = torch.softmax((q @ k.transpose(-1, -2)) * size**-0.5, -1) @ v
        h = x + mixed.permute(0, 2, 1, 3).reshape(batch, time, width) @ p["wo"] + p["bo"]
        u = F.layer_norm(h, (width,), p["g2"], p["c2"], data.eps) @ p["w1"] + p["b1"]
        return torch.sum((h + F.gelu(u, approximate="tanh") @ p["w2"] + p["b2"]) * weight)

    return _gradients({"gx": x, **{f"g_{name}": one for name, one in p.items()}}, loss)


def w5(data: SimpleNamespace) -> Case:
    """An elementwise expression on four million numbers."""
    x = leaf(data.x, data.device)
    return _gradients({"gx": x}, lambda: torch.sum(torch.tanh(data.a * x + data.b) * torch.sigmoid(x) - 0.5 * x * x))


def _jacobian(function: Any) -> Any:
    def workload(data: SimpleNamespace) -> Case:
        a, b, x = torch.tensor(data.A), torch.tensor(data.B), torch.tensor(data.x)

        def f(x: Any) -> Any:
            v = b @ x
            return torch.sin(a @ x) * torch.exp(-v * v)

        jacobian = function(f)
        return Case(lambda: jacobian(x), lambda: {"J": jacobian(x).detach().numpy()})

    return workload


w7a_fwd = w7b_fwd = _jacobian(torch.func.jacfwd)
w7a_rev = w7b_rev = _jacobian(torch.func.jacrev)


def w8(data: SimpleNamespace) -> Case:
    """A Hessian-vector product of the small perceptron's loss, by two sweeps: a quarter of the time of ``torch.func``."""
    x, y = torch.tensor(data.X), torch.tensor(data.Y)
    params, directions = [leaf(p) for p in data.params], [torch.tensor(v) for v in data.v]

    def step() -> Any:
        gradients = torch.autograd.grad(small_loss(params, x, y), params, create_graph=True)
        return torch.autograd.grad(gradients, params, grad_outputs=directions)

    return Case(step, lambda: {f"h{i}": h.numpy() for i, h in enumerate(step())})


def w9(data: SimpleNamespace) -> Case:
    """A convolution."""
    x, w, b = (leaf(value, data.device) for value in (data.x, data.w, data.b))
    weight = torch.tensor(data.G, device=data.device)
    return _gradients({"gx": x, "gw": w, "gb": b}, lambda: torch.sum(F.conv2d(x, w, b, padding=1) * weight))
