"""The smallest failing tests of the bug clinic, one for each patient: whether the function that is handed over is sick."""

from __future__ import annotations

import numpy as np

from autodiff_lab import ops

# ------------------------------------------------------------------------------------------------- rules and sweeps


def catches_div_vjp(div_vjp):
    """Whether this div_vjp is sick."""
    _for_x, for_y = div_vjp(1.0, 1.0, 2.0)
    return bool(for_y > 0)


def catches_mse_vjp(mse_vjp):
    """Whether this mse_vjp is sick."""
    gradient = mse_vjp(1.0, np.array([1.0, 2.0]), np.zeros(2))
    return not np.allclose(gradient, [1.0, 2.0])


def catches_sigmoid_vjp(sigmoid_vjp):
    """Whether this sigmoid_vjp is sick."""
    return bool(sigmoid_vjp(0.0, 0.5) != 0.0)


def catches_scale_rows_vjp(scale_rows_vjp):
    """Whether this scale_rows_vjp is sick."""
    one_row = np.ones((1, 2))
    _for_x, for_s = scale_rows_vjp(one_row, one_row, np.ones(1))
    return np.shape(for_s) != (1,)


def catches_sweep(sweep):
    """Whether this sweep is sick."""
    gradients = sweep([("y", "x", 1.0), ("y", "x", 1.0)])
    return not np.isclose(gradients["x"], 2.0)


def catches_backward_order(backward_order):
    """Whether this backward_order is sick."""
    order = backward_order({"y": ["x", "a"], "a": ["x"], "x": []})
    return list(order) != ["y", "a", "x"]


# ------------------------------------------------------------------------------------- what a falling loss cannot show


def catches_descend(descend):
    """Whether this descend is sick."""
    w = descend(lambda w: 1.0, 0.0, 1.0, 2)
    return not np.isclose(w, -2.0)


def catches_sums(sums):
    """Whether this sums is sick."""
    array = np.ones(1)
    sums([("x", array), ("x", np.ones(1))])
    return bool(array[0] != 1.0)


def catches_penalty_gradient(penalty_gradient):
    """Whether this penalty_gradient is sick."""
    found = penalty_gradient(lambda x: ops.sum(x * x), np.ones(1))
    return not np.allclose(found, 8.0)


def catches_broadcast_shape(broadcast_shape):
    """Whether this broadcast_shape is sick."""
    return tuple(broadcast_shape((1, 2), (2,))) != (1, 2)


def catches_div_dtype(div_dtype):
    """Whether this div_dtype is sick."""
    return np.dtype(div_dtype("int32", "int32")).kind != "f"


def catches_choose_kernel(choose_kernel):
    """Whether this choose_kernel is sick."""
    kernels = {("cuda", "float32"): "on the GPU", ("any", None): "anywhere"}
    return choose_kernel(kernels, "cpu", "float32") != "anywhere"
