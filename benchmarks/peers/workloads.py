"""The workloads: data (seeded), constants, tolerance, and what result() must return.

Every number a peer needs comes from here, as NumPy arrays, so all peers start from
bit-identical inputs.  ``dtype`` is the dtype every output and gradient must have.
"""

from types import SimpleNamespace as NS

import numpy as np


def _rng(seed):
    return np.random.default_rng(seed)


def _dense(rng, i, o, dtype):
    return (rng.standard_normal((i, o)) / np.sqrt(i)).astype(dtype), (0.1 * rng.standard_normal(o)).astype(dtype)


def _chain(n):
    def make():
        # h -> h*w -> h+b -> tanh(h) -> ...   n nodes; w and b are shared leaves that need grads
        return NS(n=n, x=np.array([0.5]), w=np.array([1.1]), b=np.array([0.05]))

    return make


def _deep(n):
    def make():
        # h -> h*w -> h+b -> ...   n nodes, no transcendental: node overhead only
        return NS(n=n, x=np.array([0.5]), w=np.array([0.9999]), b=np.array([1e-4]))

    return make


def _mlp_small():
    r, d = _rng(2), np.float64
    params = [a for i, o in ((16, 32), (32, 32), (32, 1)) for a in _dense(r, i, o, d)]
    return NS(X=r.standard_normal((64, 16)), Y=r.standard_normal((64, 1)), params=params, lr=0.05)


def _mlp_mid():
    r, d = _rng(33), np.float32
    params = [a for i, o in ((784, 256), (256, 256), (256, 10)) for a in _dense(r, i, o, d)]
    return NS(X=r.standard_normal((128, 784)).astype(d), y=r.integers(0, 10, 128), params=params, lr=0.1)


def _transformer():
    r, d, D, H, T, B, F = _rng(4), np.float32, 128, 4, 64, 8, 512
    wqkv, bqkv = _dense(r, D, 3 * D, d)
    wo, bo = _dense(r, D, D, d)
    w1, b1 = _dense(r, D, F, d)
    w2, b2 = _dense(r, F, D, d)
    ln = lambda: ((1 + 0.1 * r.standard_normal(D)).astype(d), (0.1 * r.standard_normal(D)).astype(d))
    g1, c1 = ln()
    g2, c2 = ln()
    p = dict(g1=g1, c1=c1, wqkv=wqkv, bqkv=bqkv, wo=wo, bo=bo, g2=g2, c2=c2, w1=w1, b1=b1, w2=w2, b2=b2)
    x = r.standard_normal((B, T, D)).astype(d)
    G = (r.standard_normal((B, T, D)) / (B * T)).astype(d)  # cotangent: loss = sum(out * G)
    return NS(x=x, G=G, p=p, D=D, H=H, T=T, B=B, F=F, eps=1e-5)


def _elementwise():
    return NS(x=_rng(5).standard_normal(4_000_000).astype(np.float32), a=1.3, b=0.1)


def _jac(n, m):
    def make():
        r = _rng(7)
        return NS(
            n=n,
            m=m,
            x=r.standard_normal(n),
            A=r.standard_normal((m, n)) / np.sqrt(n),
            B=r.standard_normal((m, n)) / np.sqrt(n),
        )

    return make


def _hvp():
    d, r = _mlp_small(), _rng(8)
    d.v = [r.standard_normal(p.shape) for p in d.params]
    return d


def _conv():
    r, d = _rng(9), np.float32
    f = lambda *s, k=1.0: (k * r.standard_normal(s)).astype(d)
    return NS(
        x=f(16, 32, 32, 32), w=f(32, 32, 3, 3, k=(32 * 9) ** -0.5), b=f(32, k=0.1), G=f(16, 32, 32, 32, k=1e-2)
    )  # loss = sum(conv(x) * G)


# id -> (title, data factory, dtype, tolerance, mode)
#   tolerance: max|a - ref| / max|ref| per array.   mode: "steady" = many repeats in one worker;
#   "fresh" = one run in a fresh process, with peak RSS (deep graphs).
WORKLOADS = {
    "w1": NS(
        title="chain of 1,000 ops on shape (1,), f64: mul/add/tanh",
        make=_chain(1000),
        dtype="float64",
        tol=1e-9,
        mode="steady",
        ops=1000,
    ),
    "w2": NS(
        title="MLP 16-32-32-1 tanh, batch 64, MSE, SGD step, f64",
        make=_mlp_small,
        dtype="float64",
        tol=1e-8,
        mode="steady",
    ),
    "w3": NS(
        title="MLP 784-256-256-10 relu, batch 128, softmax CE, SGD step, f32",
        make=_mlp_mid,
        dtype="float32",
        tol=1e-4,
        mode="steady",
    ),
    "w4": NS(
        title="pre-LN transformer block d128 h4 t64 b8, fwd+bwd, f32",
        make=_transformer,
        dtype="float32",
        tol=2e-4,
        mode="steady",
    ),
    "w5": NS(
        title="y=tanh(ax+b)*sigmoid(x)-0.5x^2, 4M f32, sum, fwd+bwd",
        make=_elementwise,
        dtype="float32",
        tol=1e-4,
        mode="steady",
    ),
    "w6a": NS(
        title="deep chain of 100,000 mul/add nodes, f64",
        make=_deep(100_000),
        dtype="float64",
        tol=1e-8,
        mode="fresh",
        ops=100_000,
    ),
    "w6b": NS(
        title="deep chain of 1,000,000 mul/add nodes, f64",
        make=_deep(1_000_000),
        dtype="float64",
        tol=1e-8,
        mode="fresh",
        ops=1_000_000,
    ),
    "w7a_fwd": NS(
        title="Jacobian of sin(Ax)exp(-(Bx)^2), n=2 m=1000, forward mode, f64",
        make=_jac(2, 1000),
        dtype="float64",
        tol=1e-9,
        mode="steady",
    ),
    "w7a_rev": NS(
        title="Jacobian n=2 m=1000, reverse mode, f64", make=_jac(2, 1000), dtype="float64", tol=1e-9, mode="steady"
    ),
    "w7b_fwd": NS(
        title="Jacobian n=1000 m=2, forward mode, f64", make=_jac(1000, 2), dtype="float64", tol=1e-9, mode="steady"
    ),
    "w7b_rev": NS(
        title="Jacobian n=1000 m=2, reverse mode, f64", make=_jac(1000, 2), dtype="float64", tol=1e-9, mode="steady"
    ),
    "w8": NS(title="Hessian-vector product of W2's loss, f64", make=_hvp, dtype="float64", tol=1e-8, mode="steady"),
    "w9": NS(
        title="conv2d 3x3 32->32 on 16x32x32x32, fwd+bwd (x, w, b), f32",
        make=_conv,
        dtype="float32",
        tol=2e-4,
        mode="steady",
    ),
}

#: what each result() returns
RESULT_KEYS = {
    "w1": "y gx gw gb",
    "w2": "losses p0..p5 (after 3 SGD steps)",
    "w3": "losses p0..p5 (after 3 SGD steps)",
    "w4": "loss gx and g_<param>",
    "w5": "loss gx",
    "w6a": "y gx gw gb",
    "w6b": "y gx gw gb",
    "w7*": "J",
    "w8": "h0..h5",
    "w9": "loss gx gw gb",
}


def train_result(step3, params):
    """Shared by adapters of w2 and w3: {losses, p0, p1, ...}."""
    return {"losses": np.asarray(step3), **{f"p{i}": np.asarray(p) for i, p in enumerate(params)}}
