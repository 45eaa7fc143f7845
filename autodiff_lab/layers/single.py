"""The layers that models are made of: linear, convolution, normalisation, embedding, attention."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .. import ops
from ..backend import asarray
from ..bindings import device_of
from .layer import Layer, Seed


def _normal(seed: Seed, shape: tuple[int, ...], deviation: float) -> Any:
    """Random float32 numbers around 0."""
    return (deviation * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


# What a layer computes with beside x and its parameters is made once for each device, not copied there at every call.


@lru_cache(maxsize=16)
def not_later(tokens: int, device: str) -> Any:
    """For each token, which tokens are not later."""
    return asarray(np.tri(tokens, dtype=np.bool_), device=device)


@lru_cache(maxsize=16)
def places(tokens: int, device: str) -> Any:
    """The number of each token's place."""
    return asarray(np.arange(tokens), device=device)


class Linear(Layer):
    """x @ weight + bias.

    The weights start as normal random numbers with variance 1 / inputs, so that results are about as large as x
    (LeCun et al., Efficient BackProp, 1998), or with the standard deviation ``deviation``; the bias starts at 0. PyTorch keeps
    the transpose of this weight.

    Shapes: x (…, inputs), weight (inputs, outputs), bias (outputs,), the result (…, outputs).

    >>> Linear(3, 2, seed=0)(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    weight: Any
    bias: Any

    def __init__(self, inputs: int, outputs: int, *, deviation: float | None = None, seed: Seed) -> None:
        weight = _normal(seed, (inputs, outputs), inputs**-0.5 if deviation is None else deviation)
        super().__init__(weight=weight, bias=np.zeros(outputs, np.float32))

    def forward(self, x: Any) -> Any:
        """One matrix product, shifted."""
        return x @ self.weight + self.bias


class Conv2d(Layer):
    """Each window of an image times each kernel, summed, plus a bias; see ``ops.conv2d``. Starts as ``Linear`` does.

    Shapes: x (images, inputs, H, W), weight (outputs, inputs, kernel, kernel), bias (outputs,).

    >>> Conv2d(1, 4, 3, padding=1, seed=0)(np.ones((2, 1, 8, 8), np.float32)).shape
    (2, 4, 8, 8)
    """

    weight: Any
    bias: Any

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, padding: int = 0, seed: Seed
    ) -> None:
        weight = _normal(seed, (outputs, inputs, kernel, kernel), (inputs * kernel * kernel) ** -0.5)
        super().__init__(weight=weight, bias=np.zeros(outputs, np.float32))
        self.stride, self.padding = stride, padding

    def forward(self, x: Any) -> Any:
        """One convolution."""
        return ops.conv2d(x, self.weight, self.bias, stride=self.stride, padding=self.padding)


class LayerNorm(Layer):
    """(x − mean) / √(var + eps) over the last axis, scaled and shifted (Ba et al., 2016). Starts with weight 1 and bias 0.

    Shapes: x (…, width), weight and bias (width,), the result as x.

    >>> LayerNorm(2, eps=0.0)(np.array([[1.0, 3.0]], np.float32)).numpy()
    array([[-1.,  1.]], dtype=float32)
    """

    weight: Any
    bias: Any

    def __init__(self, width: int, *, eps: float = 1e-5) -> None:
        super().__init__(weight=np.ones(width, np.float32), bias=np.zeros(width, np.float32))
        self.eps = eps

    def forward(self, x: Any) -> Any:
        """Each row on its own."""
        return ops.layer_norm(x, self.weight, self.bias, eps=self.eps)


class Embedding(Layer):
    """A vector for each of ``count`` things, such as the words of a vocabulary: row number i of a table.

    The table starts as normal random numbers with the standard deviation 0.02 (GPT-2: Radford et al., 2019).

    Shapes: indices (…), whole numbers from 0; table (count, width); the result (…, width).

    >>> Embedding(10, 4, seed=0)(np.array([[1, 2, 1]])).shape
    (1, 3, 4)
    """

    table: Any

    def __init__(self, count: int, width: int, *, seed: Seed) -> None:
        super().__init__(table=_normal(seed, (count, width), 0.02))

    def forward(self, x: Any) -> Any:
        """The rows that x names."""
        return ops.embedding(self.table, x)


class Attention(Layer):
    """Multi-head self-attention: each token looks at all tokens, or with ``causal`` only at itself and earlier ones.

    A head makes a query, a key and a value of every token; softmax(query · keyᵀ / √(width / heads)) says how much of each
    token's value goes into the result (Vaswani et al., 2017).

    Shapes: x (batch, tokens, width), the result as x; width must be a multiple of heads.

    >>> Attention(8, heads=2, seed=0)(np.ones((1, 5, 8), np.float32)).shape
    (1, 5, 8)
    """

    query: Linear
    key: Linear
    value: Linear
    project: Linear

    def __init__(self, width: int, heads: int, *, causal: bool = True, seed: Seed) -> None:
        if width % heads:
            raise ValueError(f"Attention: width must be a multiple of heads, got width {width} and heads {heads}")
        random = np.random.default_rng(seed)
        super().__init__(**{n: Linear(width, width, seed=random) for n in ("query", "key", "value", "project")})
        self.heads, self.causal = heads, causal

    def forward(self, x: Any) -> Any:
        """Compare every query with every key, mix the values accordingly, and put the heads together."""
        query, key, value = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        scores = (query @ key.transpose(0, 1, 3, 2)) * (x.shape[-1] // self.heads) ** -0.5
        if self.causal:
            scores = ops.where(
                not_later(x.shape[1], device_of(x)), scores, -1e9
            )  # exp gives 0 just as for −∞, but nothing becomes infinite
        weights = ops.softmax(scores)
        mixed = (weights @ value).transpose(0, 2, 1, 3)
        return self.project(mixed.reshape((-1, *x.shape[1:])))

    def _split(self, x: Any) -> Any:
        """(batch, tokens, width) as (batch, heads, tokens, width / heads)."""
        return x.reshape((-1, x.shape[1], self.heads, x.shape[2] // self.heads)).transpose(0, 2, 1, 3)
