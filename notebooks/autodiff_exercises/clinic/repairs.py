"""The twelve functions of the bug clinic, repaired: one solution of each, as it is shown to who asks."""

from __future__ import annotations

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

# ------------------------------------------------------------------------------------------------- rules and sweeps


def div_vjp(g, x, y):
    """The gradients of x / y, entry by entry, for x and for y, where g is the gradient that arrives."""
    for_x = g / y
    return for_x, -for_x * x / y


def mse_vjp(g, x, target):
    """The gradient of mean((x - target)²) for x, where the number g is the gradient that arrives."""
    return g * 2 * (x - target) / x.size


def sigmoid_vjp(g, out):
    """The gradient of out = 1 / (1 + exp(-x)) for x, from the result, where g is the gradient that arrives."""
    return g * out * (1 - out)


def scale_rows_vjp(g, x, s):
    """The gradients of x * s[:, None] for the matrix x and for s, which has one number for each row."""
    return g * s[:, None], (g * x).sum(axis=1)


def sweep(edges):
    """The gradient of every node, from edges (consumer, input, slope) in the order in which rules run."""
    gradients = {edges[0][0]: 1.0}
    for consumer, source, slope in edges:
        gradients[source] = gradients.get(source, 0.0) + gradients[consumer] * slope
    return gradients


def backward_order(graph):
    """All nodes from the outputs to the inputs, each after everything that uses it."""
    waits_for = dict.fromkeys(graph, 0)
    for inputs in graph.values():
        for source in inputs:
            waits_for[source] += 1
    order = [node for node in graph if waits_for[node] == 0]
    for node in order:
        for source in graph[node]:
            waits_for[source] -= 1
            if waits_for[source] == 0:
                order.append(source)
    return order


# ------------------------------------------------------------------------------------- what a falling loss cannot show


def descend(gradient, w, rate, steps):
    """The weight after some steps of gradient descent."""
    for _ in range(steps):
        w = w - rate * gradient(w)
    return w


def sums(contributions):
    """For each name the sum of its arrays, from a list of pairs (name, array)."""
    totals = {}
    for name, array in contributions:
        totals[name] = totals[name] + array if name in totals else array
    return totals


def penalty_gradient(f, x):
    """The gradient of sum(∇f(x)²) for the array x, where f gives one number."""

    def penalty(z):
        slope = ad.grad(f)(z)
        return ops.sum(slope * slope)

    return ad.grad(penalty)(x)


def broadcast_shape(x, y):
    """The shape of a + b, where x and y are the shapes of a and b and fit together."""
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    return tuple(n if m == 1 else m for m, n in zip(x, y, strict=True))


def div_dtype(x, y):
    """The dtype of a / b, where x and y are the dtypes of a and b."""
    found = np.result_type(x, y)
    return found if found.kind == "f" else np.dtype("float64")


def choose_kernel(kernels, device, dtype):
    """The kernel to run, from a table with keys (device, dtype): the most special one that fits."""
    for key in ((device, dtype), (device, None), ("any", None)):
        if key in kernels:
            return kernels[key]
