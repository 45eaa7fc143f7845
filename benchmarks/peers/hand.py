"""The limit line: forward and backward written by hand in straightforward NumPy.

No graph, no tape, no dispatch: what a framework on NumPy would cost if it cost nothing,
allocating its temporaries as NumPy code normally does.  (handnumpy_opt.py also
preallocates, works in place and blocks for cache.)
"""

import numpy as np

from case import Case
from workloads import train_result


def version():
    return f"numpy {np.__version__}"


# ---------------------------------------------------------------- w1, w6: scalar chains
def w1(d):
    w, b = d.w, d.b

    def forward():
        hs = [d.x]
        h = d.x
        for i in range(d.n):
            k = i % 3
            h = h * w if k == 0 else h + b if k == 1 else np.tanh(h)
            hs.append(h)
        return hs

    def backward(hs):
        g, gw, gb = np.ones(1), np.zeros(1), np.zeros(1)
        for i in range(d.n - 1, -1, -1):
            k = i % 3
            if k == 0:
                gw = gw + g * hs[i]
                g = g * w
            elif k == 1:
                gb = gb + g
            else:
                h = hs[i + 1]
                g = g * (1.0 - h * h)
        return {"y": hs[-1], "gx": g, "gw": gw, "gb": gb}

    return Case(lambda: backward(forward()), lambda: backward(forward()), forward, backward)


def w6a(d):
    w, b = d.w, d.b

    def forward():
        hs = [d.x]
        h = d.x
        for i in range(d.n):
            h = h + b if i & 1 else h * w
            hs.append(h)
        return hs

    def backward(hs):
        g, gw, gb = np.ones(1), np.zeros(1), np.zeros(1)
        for i in range(d.n - 1, -1, -1):
            if i & 1:
                gb = gb + g
            else:
                gw = gw + g * hs[i]
                g = g * w
        return {"y": hs[-1], "gx": g, "gw": gw, "gb": gb}

    return Case(lambda: backward(forward()), lambda: backward(forward()), forward, backward)


w6b = w6a


# ---------------------------------------------------------------- w2, w8: small MLP
def mlp2_grads(X, Y, params):
    W1, b1, W2, b2, W3, b3 = params
    h1 = np.tanh(X @ W1 + b1)
    h2 = np.tanh(h1 @ W2 + b2)
    e = h2 @ W3 + b3 - Y
    loss = np.mean(e * e)
    ge = e * (2.0 / e.size)
    gW3, gb3 = h2.T @ ge, ge.sum(0)
    g2 = (ge @ W3.T) * (1 - h2 * h2)
    gW2, gb2 = h1.T @ g2, g2.sum(0)
    g1 = (g2 @ W2.T) * (1 - h1 * h1)
    gW1, gb1 = X.T @ g1, g1.sum(0)
    return loss, (gW1, gb1, gW2, gb2, gW3, gb3)


def w2(d):
    params = [p.copy() for p in d.params]

    def step():
        loss, grads = mlp2_grads(d.X, d.Y, params)
        for p, g in zip(params, grads):
            p -= d.lr * g
        return loss

    return Case(step, lambda: train_result([step() for _ in range(3)], params))


def w8(d):
    """Pearlmutter's R-operator, by hand."""
    W1, b1, W2, b2, W3, b3 = d.params
    V1, c1, V2, c2, V3, c3 = d.v
    X, Y = d.X, d.Y

    def step():
        h1 = np.tanh(X @ W1 + b1)
        s1 = 1 - h1 * h1
        Rh1 = s1 * (X @ V1 + c1)
        h2 = np.tanh(h1 @ W2 + b2)
        s2 = 1 - h2 * h2
        Rh2 = s2 * (Rh1 @ W2 + h1 @ V2 + c2)
        e = h2 @ W3 + b3 - Y
        k = 2.0 / e.size
        ge, Rge = k * e, k * (Rh2 @ W3 + h2 @ V3 + c3)
        H3, H3b = Rh2.T @ ge + h2.T @ Rge, Rge.sum(0)
        t, Rt = ge @ W3.T, Rge @ W3.T + ge @ V3.T
        g2, Rg2 = t * s2, Rt * s2 - t * (2 * h2 * Rh2)
        H2, H2b = Rh1.T @ g2 + h1.T @ Rg2, Rg2.sum(0)
        t, Rt = g2 @ W2.T, Rg2 @ W2.T + g2 @ V2.T
        Rg1 = Rt * s1 - t * (2 * h1 * Rh1)
        H1, H1b = X.T @ Rg1, Rg1.sum(0)
        return H1, H1b, H2, H2b, H3, H3b

    return Case(step, lambda: {f"h{i}": h for i, h in enumerate(step())})


# ---------------------------------------------------------------- w3: mid MLP
def mlp3_grads(X, y, params, rows):
    W1, b1, W2, b2, W3, b3 = params
    h1 = np.maximum(X @ W1 + b1, 0)
    h2 = np.maximum(h1 @ W2 + b2, 0)
    z = h2 @ W3 + b3
    z = z - z.max(1, keepdims=True)
    ez = np.exp(z)
    s = ez.sum(1, keepdims=True)
    loss = np.mean(np.log(s[:, 0]) - z[rows, y])
    gz = ez / s
    gz[rows, y] -= 1
    gz *= 1 / len(y)
    gW3, gb3 = h2.T @ gz, gz.sum(0)
    g2 = (gz @ W3.T) * (h2 > 0)
    gW2, gb2 = h1.T @ g2, g2.sum(0)
    g1 = (g2 @ W2.T) * (h1 > 0)
    gW1, gb1 = X.T @ g1, g1.sum(0)
    return loss, (gW1, gb1, gW2, gb2, gW3, gb3)


def w3(d):
    params, rows = [p.copy() for p in d.params], np.arange(len(d.y))

    def step():
        loss, grads = mlp3_grads(d.X, d.y, params, rows)
        for p, g in zip(params, grads):
            p -= d.lr * g
        return loss

    return Case(step, lambda: train_result([step() for _ in range(3)], params))


# ---------------------------------------------------------------- w4: transformer block
def layernorm(x, g, c, eps):
    xc = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((xc * xc).mean(-1, keepdims=True) + eps)
    xh = xc * r
    return xh * g + c, xh, r


def layernorm_bwd(gy, xh, r, g):
    gg, gc = (gy * xh).sum((0, 1)), gy.sum((0, 1))
    gh = gy * g
    return (gh - gh.mean(-1, keepdims=True) - xh * (gh * xh).mean(-1, keepdims=True)) * r, gg, gc


GK, GA = np.float32(np.sqrt(2 / np.pi)), np.float32(0.044715)


def w4(d):
    p, x, G, B, T, D, H = d.p, d.x, d.G, d.B, d.T, d.D, d.H
    N, K, scale = B * T, D // H, np.float32((D // H) ** -0.5)
    half, one = np.float32(0.5), np.float32(1)
    flat = lambda a: a.reshape(N, -1)

    def step():
        a1, xh1, r1 = layernorm(x, p["g1"], p["c1"], d.eps)
        qkv = (flat(a1) @ p["wqkv"] + p["bqkv"]).reshape(B, T, 3, H, K).transpose(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        s = (q @ k.swapaxes(-1, -2)) * scale
        e = np.exp(s - s.max(-1, keepdims=True))
        P = e / e.sum(-1, keepdims=True)
        o = (P @ v).transpose(0, 2, 1, 3).reshape(N, D)
        h = x + (o @ p["wo"] + p["bo"]).reshape(B, T, D)
        a2, xh2, r2 = layernorm(h, p["g2"], p["c2"], d.eps)
        u = flat(a2) @ p["w1"] + p["b1"]
        t = np.tanh(GK * (u + GA * u * u * u))
        m = half * u * (one + t)
        out = h + (m @ p["w2"] + p["b2"]).reshape(B, T, D)
        loss = np.sum(out * G)

        g = {}
        Gf = flat(G)
        g["w2"], g["b2"] = m.T @ Gf, Gf.sum(0)
        gm = Gf @ p["w2"].T
        gu = gm * (half * (one + t) + half * u * (one - t * t) * (GK * (one + 3 * GA * u * u)))
        g["w1"], g["b1"] = flat(a2).T @ gu, gu.sum(0)
        ga2 = (gu @ p["w1"].T).reshape(B, T, D)
        gh, g["g2"], g["c2"] = layernorm_bwd(ga2, xh2, r2, p["g2"])
        gh = gh + G
        ghf = flat(gh)
        g["wo"], g["bo"] = o.T @ ghf, ghf.sum(0)
        go = (ghf @ p["wo"].T).reshape(B, T, H, K).transpose(0, 2, 1, 3)
        gqkv = np.empty((B, T, 3, H, K), np.float32)
        gv = gqkv.transpose(2, 0, 3, 1, 4)
        gv[2] = P.swapaxes(-1, -2) @ go
        gP = go @ v.swapaxes(-1, -2)
        gs = P * (gP - (gP * P).sum(-1, keepdims=True)) * scale
        gv[0] = gs @ k
        gv[1] = gs.swapaxes(-1, -2) @ q
        gq = gqkv.reshape(N, 3 * D)
        g["wqkv"], g["bqkv"] = flat(a1).T @ gq, gq.sum(0)
        ga1 = (gq @ p["wqkv"].T).reshape(B, T, D)
        gx, g["g1"], g["c1"] = layernorm_bwd(ga1, xh1, r1, p["g1"])
        return {"loss": loss, "gx": gx + gh, **{f"g_{n}": a for n, a in g.items()}}

    return Case(step, step)


# ---------------------------------------------------------------- w5: elementwise
def w5(d):
    x, a, b = d.x, np.float32(d.a), np.float32(d.b)
    half, one = np.float32(0.5), np.float32(1)

    def step():
        t = np.tanh(a * x + b)
        s = one / (one + np.exp(-x))
        y = t * s - half * x * x
        loss = y.sum()
        gx = (one - t * t) * a * s + t * s * (one - s) - x
        return {"loss": loss, "gx": gx}

    return Case(step, step)


# ---------------------------------------------------------------- w7: Jacobians
def _w7_parts(d):
    u, v = d.A @ d.x, d.B @ d.x
    e = np.exp(-v * v)
    return np.cos(u) * e, np.sin(u) * e * -2 * v  # dy/du, dy/dv


def w7_fwd(d):
    """Batched tangents: the n basis vectors pushed through each op at once."""

    def step():
        du, dv = _w7_parts(d)
        S = np.eye(d.n)
        return du[:, None] * (d.A @ S) + dv[:, None] * (d.B @ S)

    return Case(step, lambda: {"J": step()})


def w7_rev(d):
    """Batched cotangents: the m basis vectors pulled back through each op at once."""

    def step():
        du, dv = _w7_parts(d)
        S = np.eye(d.m)
        return (S * du) @ d.A + (S * dv) @ d.B

    return Case(step, lambda: {"J": step()})


w7a_fwd = w7b_fwd = w7_fwd
w7a_rev = w7b_rev = w7_rev


# ---------------------------------------------------------------- w9: conv
def im2col(xp, H, W):
    n, c = xp.shape[:2]
    win = np.lib.stride_tricks.sliding_window_view(xp, (H, W), (2, 3))  # n c 3 3 H W
    return np.ascontiguousarray(win).reshape(n, c * 9, H * W)


def w9(d):
    x, w, b, G = d.x, d.w, d.b, d.G
    n, c, H, W = x.shape
    o = w.shape[0]
    w2 = w.reshape(o, c * 9)

    def step():
        xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        cols = im2col(xp, H, W)
        y = (w2 @ cols).reshape(n, o, H, W) + b[:, None, None]
        loss = np.sum(y * G)
        G2 = G.reshape(n, o, H * W)
        gw = (G2 @ cols.swapaxes(1, 2)).sum(0).reshape(w.shape)
        gb = G2.sum((0, 2))
        gc = (w2.T @ G2).reshape(n, c, 3, 3, H, W)
        gxp = np.zeros_like(xp)
        for i in range(3):
            for j in range(3):
                gxp[:, :, i : i + H, j : j + W] += gc[:, :, i, j]
        return {"loss": loss, "gx": gxp[:, :, 1:-1, 1:-1], "gw": gw, "gb": gb}

    return Case(step, step)
