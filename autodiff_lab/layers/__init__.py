"""Layers of neural networks, and the small models that lessons train. Public names only.

A layer computes on arrays, Tensors and symbols alike, and is trained in either of two styles:

>>> import numpy as np
>>> import autodiff_lab as ad
>>> x, y = np.ones((4, 2), np.float32), np.array([0, 1, 2, 0])
>>> model = MLP(2, 8, 3, seed=0)

Tensors that remember, and ``backward``:

>>> loss = ad.ops.cross_entropy(model(x), y)
>>> loss.backward()
>>> model.layer1.weight.grad.shape
(2, 8)

Functions of parameters, and ``value_and_grad``, which also records as a graph:

>>> def loss_of(parameters, x, y):
...     return ad.ops.cross_entropy(model.with_parameters(parameters)(x), y)
>>> value, gradients = ad.value_and_grad(loss_of)(model.values(), x, y)
>>> gradients["layer1"]["weight"].shape
(2, 8)
>>> graph = ad.record(ad.value_and_grad(loss_of), model.values(), x, y)
>>> sorted({node.scope for node in graph if node.scope})
['layer1', 'layer2']
"""

from .layer import Layer, Parameters, Seed
from .models import CNN, MLP, ResidualBlock, ResidualMLP, TransformerBlock, TransformerLM
from .single import Attention, Conv2d, Embedding, LayerNorm, Linear

__all__ = [
    "CNN", "MLP", "Attention", "Conv2d", "Embedding", "Layer", "LayerNorm", "Linear", "Parameters", "ResidualBlock",
    "ResidualMLP", "Seed", "TransformerBlock", "TransformerLM",
]  # fmt: skip
