"""The twelve functions as they came to the bug clinic, each with one planted bug: what students are shown and repair."""

from __future__ import annotations

import numpy as np

import autodiff_lab as ad
from autodiff_lab import ops

# ------------------------------------------------------------------------------------------------- rules and sweeps


def div_vjp(g, x, y):
    """The gradients of x / y, entry by entry, for x and for y, where g is the gradient that arrives."""
    for_x = g / y
    for_y = g * x / y**2
    return for_x, for_y


def mse_vjp(g, x, target):
    """The gradient of mean((x - target)²) for x, where the number g is the gradient that arrives."""
    return g * 2 * (x - target)


def sigmoid_vjp(g, out):
    """The gradient of out = 1 / (1 + exp(-x)) for x, from the result, where g is the gradient that arrives."""
    return out * (1 - out)


def scale_rows_vjp(g, x, s):
    """The gradients of x * s[:, None] for the matrix x and for s, which has one number for each row."""
    for_x = g * s[:, None]
    for_s = (g * x).sum(axis=0)
    return for_x, for_s


def sweep(edges):
    """The gradient of every node, from edges (consumer, input, slope) in the order in which rules run."""
    gradients = {edges[0][0]: 1.0}
    for consumer, source, slope in edges:
        gradients[source] = gradients[consumer] * slope
    return gradients


def backward_order(graph):
    """All nodes from the outputs to the inputs, each after everything that uses it."""
    used = {source for inputs in graph.values() for source in inputs}
    order = [node for node in graph if node not in used]
    for node in order:
        for source in graph[node]:
            if source not in order:
                order.append(source)
    return order


# ------------------------------------------------------------------------------------- what a falling loss cannot show


def descend(gradient, w, rate, steps):
    """The weight after some steps of gradient descent."""
    total = 0.0
    for _ in range(steps):
        total = total + gradient(w)
        w = w - rate * total
    return w


def sums(contributions):
    """For each name the sum of its arrays, from a list of pairs (name, array)."""
    totals = {}
    for name, array in contributions:
        if name in totals:
            totals[name] += array
        else:
            totals[name] = array
    return totals


def penalty_gradient(f, x):
    """The gradient of sum(∇f(x)²) for the array x, where f gives one number."""
    slope = ad.grad(f)(x)

    def penalty(z):
        return ops.sum(slope * ad.grad(f)(z))

    return ad.grad(penalty)(x)


def broadcast_shape(x, y):
    """The shape of a + b, where x and y are the shapes of a and b and fit together."""
    rank = max(len(x), len(y))
    x, y = x + (1,) * (rank - len(x)), y + (1,) * (rank - len(y))
    return tuple(n if m == 1 else m for m, n in zip(x, y, strict=True))


def div_dtype(x, y):
    """The dtype of a / b, where x and y are the dtypes of a and b."""
    return np.result_type(x, y)


def choose_kernel(kernels, device, dtype):
    """The kernel to run, from a table with keys (device, dtype): the most special one that fits."""
    for (_where, what), kernel in kernels.items():
        if what in (dtype, None):
            return kernel
