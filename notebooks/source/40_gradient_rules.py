"""Lesson 40, gradient rules: what each operation on arrays owes the gradient that arrives, and how to test it.

After: 30_reverse_mode.
"""

# %% [markdown]
# # Gradient rules for arrays
#
# **The question:** the reverse sweep arrives at one operation, with a gradient in its hands. What does it have to hand
# on to the operation's inputs, when these are not numbers but arrays?
#
# By the end you can
#
# * say what a *vector-Jacobian product* (向量-雅可比积), a **VJP**, is, and why no framework builds the Jacobian,
# * write the rules of the elementwise operations, of broadcasting, sums, matrix products and transposes,
# * test any rule with one law, without knowing the right answer,
# * name the usual mistakes, most of which raise no error.
#
# The lesson takes 60 to 90 minutes. As always: **predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Upstream times local | 6 |
# | 2 What happened to the Jacobian? | 6 |
# | 3 One law tests every rule | 16 |
# | 4 Broadcasting copies, so its gradient sums | 18 |
# | 5 Sums copy | 10 |
# | 6 Matrix products | 12 |
# | 7 Moving numbers: transpose is not reshape | 10 |
# | 8 A whole layer | 8 |
#
# **What must come across:** Upstream times local; what was copied forward is summed backward, and the other way round. Test
# with random numbers and with sizes that differ.
#
# **If time is short, leave for home:** `transpose_vjp`, and section 8.

# %%
import inspect

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import ops

# %% [markdown]
# ## 1 Upstream times local
#
# Here is a small program on arrays: a product, then a sum with weights, so that the gradients are not all ones.
#
# **Predict:** which gradient arrives at the product `x * y`? Which one does it send to `x`? Then step.

# %%
weights = np.array([1.0, 10.0, 100.0])


def program(x, y):
    product = x * y
    return ops.sum(product * weights)


aw.GradientFlowView(program, np.array([2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0]))

# %% [markdown]
# What arrives at `x * y` is called the **upstream gradient** (上游梯度), or the *cotangent* of the product: here the
# weights. What the product sends to `x` has two factors, the upstream gradient and the **local derivative**. One says how
# much the loss cares about the product, the other how much the product cares about `x`. People forget the first one
# surprisingly often.
#
# A rule in the lab is a function of few lines. It may ask for `g`, the upstream gradient, and for the inputs that it
# needs.

# %%
print(inspect.getsource(ad.registry["add"].vjp_rules["x"]))
print(inspect.getsource(ad.registry["tanh"].vjp_rules["x"]))

# %% [markdown]
# `tanh` asks for `out`, its own result: it is there already, since the forward pass made it. Exactly what the rules ask
# for is kept in memory between forward and backward.

# %% [markdown]
# ## 2 What happened to the Jacobian?
#
# `exp` of three numbers is a function from three numbers to three numbers. So its derivative is a matrix of nine numbers,
# the *Jacobian* (雅可比矩阵): row i, column j says how the result i moves when the input j moves.
#
# **Predict:** which of the nine are zero? How many numbers would it have for an image of 1000 × 1000 pixels?

# %%
x = np.array([0.5, -1.0, 2.0])
columns = [ad.jvp(ops.exp, (x,), (direction,))[1] for direction in np.eye(3)]
jacobian = np.stack(columns, axis=1)
print(jacobian.round(3))
print(f"for the image: {(1000 * 1000) ** 2:,} numbers, almost all zero")

# %% [markdown]
# Nobody builds that. The chain rule only ever needs the *product* of the upstream gradient with the Jacobian,
# $J^\mathsf{T} g$. For an elementwise operation this product takes one multiplication for each entry. A rule that gives
# $J^\mathsf{T} g$ without $J$ is a VJP.

# %%
g = np.array([1.0, 10.0, 100.0])
_value, pull = ad.vjp(ops.exp, x)
print("with the matrix:   ", jacobian.T @ g)
print("without the matrix:", pull(g)[0])

# %% [markdown]
# ## 3 One law tests every rule
#
# How do we know that a rule is right, if we never see the Jacobian? Forward mode gives $J u$ for any direction $u$:
# how the result moves when the input moves along $u$. Reverse mode gives $J^\mathsf{T} g$. Whatever $J$ is,
#
# $$\langle g,\; J u \rangle \;=\; \langle J^\mathsf{T} g,\; u \rangle .$$
#
# Both sides are one number, the same one: how much the loss moves when the input moves along $u$.

# %%
rng = np.random.default_rng(40)
u, g = rng.normal(size=3), rng.normal(size=3)
_value, pushed = ad.jvp(ops.tanh, (x,), (u,))
_value, pull = ad.vjp(ops.tanh, x)
print(np.sum(g * pushed), np.sum(pull(g)[0] * u))

# %% [markdown]
# Now a rule with a mistake: it gives the local derivative and forgets what arrived from above.
#
# **Predict:** the test below is run with a random `g`, and then with a `g` of ones. Which of them finds the mistake?


# %%
def forgetful_tanh_vjp(g, x):
    return 1.0 - np.tanh(x) ** 2


for name, g in (("random", rng.normal(size=3)), ("all ones", np.ones(3))):
    left = np.sum(g * ad.jvp(ops.tanh, (x,), (u,))[1])
    right = np.sum(forgetful_tanh_vjp(g, x) * u)
    print(f"{name:9} {left:9.5f} {right:9.5f}", "agree" if np.isclose(left, right) else "DIFFER")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The rule forgets the upstream gradient. Does a g of ones find it? Does a random one?
#
# **Expected:** only the random one. Times one is the same as not multiplied, and `loss = y.sum()` is exactly that test.

# %% [markdown]
# A `g` of ones cannot tell "multiplied by g" from "not multiplied by g". Yet `loss = y.sum()` is exactly that test, and
# it is the one that most people write. Every check in this lesson uses random numbers, arrays of different sizes, and
# float32 as well as float64.
#
# **Exercises: two elementwise rules.**

# %% exercise="mul_vjp"

# %% exercise="exp_vjp"

# %% [markdown]
# ## 4 Broadcasting copies, so its gradient sums
#
# A layer adds one bias to every row: shapes (2, 3) and (3,). NumPy *broadcasts* (广播) the bias: it behaves as if it
# had been copied, once for each row.
#
# **Predict:** the upstream gradient has shape (2, 3). The bias has three numbers, so its gradient must have three. Which
# three?

# %%
rows, bias = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([0.5, 0.5, 0.5])
upstream = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])


def with_bias(rows, bias):
    return rows + bias


aw.GradientFlowView(with_bias, rows, bias, cotangent=upstream)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** The upstream gradient has six numbers and the bias three. Which three does its gradient
# have?
#
# **Expected:** 11, 22, 33: each bias was used in both rows, and contributions are added. Usual wrong answers: the six
# numbers as they are, or the mean of the rows.

# %% [markdown]
# Each number of the bias was used twice. You know what happens to a value that is used twice: its contributions are
# **added**. Broadcasting is nothing but using a value many times.
#
# "Broadcasting needs nothing" is one of the most expensive beliefs of home-made frameworks. See what it does to one step
# of training. **Predict** the shape of the bias after the step.

# %%
unsummed = upstream
print("before:", bias.shape, " after one step:", (bias - 0.1 * unsummed).shape)

# %% [markdown]
# No error. The parameter has *grown*: from now on every row has a bias of its own. Does training notice? Below a model of
# one number `b` is fitted to four targets. The best that one number can reach is their variance.
#
# **Predict:** will the loss of the wrong gradient be above that, or below?

# %%
targets = rng.normal(size=4)
b = np.zeros(1)
for _ in range(200):
    error = b - targets
    b = b - 0.1 * error  # should be the sum of error: b has one number
print(f"loss {np.mean(error**2):.6f}, possible {np.var(targets):.6f}, shape of b {b.shape}")
try:
    b - rng.normal(size=5)
except ValueError as problem:
    print("five other targets:", problem)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The gradient of b is not summed. Is the loss above the best that one number can reach, or
# below?
#
# **Expected:** below: b has quietly become four numbers and has learned the four targets by heart. A bug can *lower* the
# loss.

# %% [markdown]
# Better than possible! The model has learned its four targets by heart. A mistake in a gradient can *lower* the
# loss; here it shows only when a batch of another size comes.
#
# Broadcasting has two forms. Axes are **added in front**: (3,) becomes (2, 3). And axes of size 1 are **stretched**:
# (2, 1) becomes (2, 3). In the table all three small arrays are broadcast to (2, 3).
#
# **Predict** each gradient before you run.

# %%
for small in (np.zeros(3), np.zeros((2, 1)), np.zeros((1, 1))):
    _value, pull = ad.vjp(lambda x: rows + x, small)
    print(f"{small.shape!s:7} gradient {pull(upstream)[0].tolist()}")

# %% [markdown]
# **Exercise: undo broadcasting.** Every framework has this function. With it, elementwise rules can be written as if all
# shapes were equal, as you did in section 3.

# %% exercise="unbroadcast"

# %% [markdown]
# ## 5 Sums copy
#
# Now the mirror image. A sum brings many numbers into one.
#
# **Predict:** two row sums have the upstream gradients 1 and 10. What is the gradient of the six numbers?


# %%
def row_sums(rows):
    return ops.sum(rows, axis=1)


aw.GradientFlowView(row_sums, rows, cotangent=np.array([1.0, 10.0]))

# %% [markdown]
# Each number moved one sum, with a local derivative of 1. So it receives the gradient of *its* sum: the gradient is
# copied along the axis that was summed. Broadcasting and summing are each other's transpose:
#
# | forward | backward |
# | --- | --- |
# | copy along an axis | sum along it |
# | sum along an axis | copy along it |
#
# The difficulty is only to find the axis again: it is gone from the shape. Look what happens when one leaves that to
# NumPy. **Predict** which of the two lines fails, and which one is wrong.

# %%
g = np.array([1.0, 10.0, 100.0])  # of the sums of three rows
for shape in ((3, 4), (3, 3)):
    try:
        print(shape, np.broadcast_to(g, shape).tolist())
    except ValueError as error:
        print(shape, error)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which of the two lines fails, and which one is wrong?
#
# **Expected:** the one of shape (3, 4) fails. The square one runs and is wrong: NumPy takes the missing axis for the first.
# So never choose two equal sizes for a test.

# %% [markdown]
# Row 0 should be all ones, since the first sum has the gradient 1. On the square matrix NumPy took the missing axis for
# the first one, and the numbers stand in columns instead of rows: the gradient is wrong, and nothing is raised. Remember
# this when you choose sizes for a test: **never two equal ones**.
#
# **Exercise: the rule of sum.**

# %% exercise="sum_vjp"

# %% [markdown]
# ## 6 Matrix products
#
# For `out = x @ y` with shapes (4, 3) and (3, 2), the Jacobian with respect to `x` has 8 × 12 entries. Let us see which
# of them are not zero, to learn how entries of `x` and `out` hang together.
#
# **Predict:** how many entries of `out` move when one entry of `x` moves?

# %%
x, y = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
direction = np.zeros((4, 3))
direction[1, 2] = 1.0
_value, moved = ad.jvp(lambda x: x @ y, (x,), (direction,))
print(moved.round(3))
print("row 2 of y:", y[2].round(3))

# %% [markdown]
# The entry in row 1, column 2 of `x` moves the whole row 1 of `out`, and by how much is written in row 2 of `y`. To go
# back, take row 1 of `g`, multiply it with row 2 of `y`, entry by entry, and add up. Do this for all entries, and you
# have written a matrix product.
#
# Which one? Shapes are a strong hint, if all sizes differ. On square matrices everything fits, right or wrong:

# %%
square_x, square_y, g = (rng.normal(size=(3, 3)) for _ in range(3))
u = rng.normal(size=(3, 3))
_value, pushed = ad.jvp(lambda x: x @ square_y, (square_x,), (u,))
for name, guess in {"g @ y": g @ square_y, "y.T @ g": square_y.T @ g, "x @ g": square_x @ g}.items():
    print(f"{name:8} has the right shape; law holds: {np.isclose(np.sum(g * pushed), np.sum(guess * u))}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Three guesses for the rule of a square matrix product have the right shape. Which is right?
#
# **Expected:** none of the three. A shape is a hint and never a proof; with three different sizes only one product fits.

# %% [markdown]
# Three guesses with the right shape, and none is right. A shape is a hint, never a proof.
#
# **Exercise: the rule of the matrix product.**

# %% exercise="matmul_vjp"

# %% [markdown]
# ## 7 Moving numbers: transpose is not reshape
#
# A transpose computes nothing. It only moves numbers to other places, so its rule moves gradients back.
#
# **Predict** the two printed matrices. Which of them is the transpose of [[0, 1, 2], [3, 4, 5]]?

# %%
counted = np.arange(6).reshape(2, 3)
print(counted.T.tolist())
print(counted.reshape(3, 2).tolist())

# %% [markdown]
# Both have shape (3, 2). `reshape` keeps the numbers in their order and draws new lines between them. Code that makes
# shapes fit by `reshape` where a transpose is meant runs, trains, and is wrong.
#
# With three axes there is a second trap. **Predict:** the axes of an array of shape (2, 3, 4) go round in a circle: the
# first becomes the last. Doing it again: is everything back?

# %%
x = np.zeros((2, 3, 4))
once = np.transpose(x, (1, 2, 0))
print(x.shape, once.shape, np.transpose(once, (1, 2, 0)).shape)

# %% [markdown]
# **Exercise: the rule of transpose.**

# %% exercise="transpose_vjp"

# %% [markdown]
# ## 8 A whole layer
#
# A layer uses all of it: a matrix product, a bias that is broadcast, an elementwise function, and a mean over the batch.
#
# **Predict**, before you step: the shape of the gradient on every edge. Every gradient has the shape of the value that it
# belongs to, so you only have to know the shapes of the forward pass.


# %%
def layer(x, w, b):
    h = ops.tanh(x @ w + b)
    return ops.mean(ops.sum(h * h, axis=1))


x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
aw.GradientFlowView(layer, x, w, b)

# %% [markdown]
# And the law holds for the whole layer as it holds for each operation. That is all that reverse mode is: the transpose
# of forward mode, one operation at a time.

# %%
inputs = (x, w, b)
directions = tuple(rng.normal(size=one.shape) for one in inputs)
_value, forward = ad.jvp(layer, inputs, directions)
gradients = ad.grad(layer, argnums=(0, 1, 2))(*inputs)
backward = sum(np.sum(gradient * u) for gradient, u in zip(gradients, directions, strict=True))
print(forward, backward)

# %% [markdown]
# ## Summary
#
# * A **VJP** takes the upstream gradient $g$ and gives $J^\mathsf{T} g$, one gradient for each input. The Jacobian itself
#   is never built.
# * The gradient is **upstream times local**, not the local derivative. A test with a `g` of ones cannot see the
#   difference.
# * A gradient has the **shape and the dtype of its input**.
# * Copies forward, **sums backward**; sums forward, **copies backward**.
# * A matrix product goes back through **transposes**. Making the shape fit with `reshape` gives wrong numbers
#   without an error.
# * One law tests every rule: $\langle g, J u\rangle = \langle J^\mathsf{T} g, u\rangle$, with random numbers, and
#   sizes that differ.
#
# ## Exercises
#
# 1. *mul_vjp*, *exp_vjp*: section 3, checked.
# 2. *unbroadcast*: section 4, checked. *sum_vjp*: section 5, checked.
# 3. *matmul_vjp*: section 6, checked. *transpose_vjp*: section 7, checked.
# 4. On paper: the rule of `x.mean(axis=1)`. How does it differ from that of the sum? Test it with the law.
# 5. On paper: `x[:, 0]` takes a column. What is its rule? Which shape has the gradient, and what stands in the
#    other columns?
# 6. Use your `mul_vjp` and your `unbroadcast` to write the rule of `rows * bias` for shapes (2, 3) and (3,). Test it.
# 7. `softmax` subtracts the largest number of each row first. Must the gradient go through that subtraction? Try both.
#
# Where do you stand?

# %%
progress()
