"""Lesson 50, gradient checks: how to know that a gradient is right, what a check cannot see, and second derivatives.

After: 40_gradient_rules.
"""

# %% [markdown]
# # How do you know that a gradient is right?
#
# **The question:** the program runs, the loss falls, nothing is raised. Is the gradient right? How would you know?
#
# By the end you can
#
# * check any gradient by *finite differences* (有限差分), and choose the step,
# * say why the smallest step is not the best one,
# * write a *gradient checker* (梯度检查) of your own, and know how good it is: it will be marked on 25 ops,
# * say what a passed check does **not** prove,
# * differentiate twice, and multiply by the Hessian (海森矩阵) without building it.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 The lost minus sign | 8 |
# | 2 Differences, and how good they are | 18 |
# | 3 All ones is no test | 36 |
# | 4 Reading a report | 5 |
# | 5 "Passed" does not mean "right" | 8 |
# | 6 Differentiating twice | 14 |
#
# **What must come across:** A falling loss proves nothing. Differences have a best step. A check speaks about the points,
# the upstream gradients and the order that it looked at.
#
# **If time is short, leave for home:** section 6, or the exercise `gradient_is_right`, which is long.

# %%
import time

import autodiff_lab as ad
import numpy as np
from autodiff_exercises import check, hint, limited, progress, solution
from autodiff_exercises.error_plot import error_plot
from autodiff_exercises.planted_ops import planted_op
from autodiff_lab import ops

# %% [markdown]
# ## 1 The lost minus sign
#
# A story that happened in many teams: somebody derives the gradient of a complicated loss by hand and loses a sign.
# Training runs for three days and does not converge.
#
# Here is such a loss: it sorts 40 points into two classes, and a second term, the *weight decay*, keeps the weights
# small.

# %%
rng = np.random.default_rng(50)
points = rng.normal(size=(40, 3))
labels = np.sign(points @ np.array([2.0, -1.0, 0.5]) + 0.5 * rng.normal(size=40))


def loss(w, decay):
    margin = labels * (points @ w)
    return ops.mean(ops.log(1.0 + ops.exp(-margin))) + decay / 2 * ops.sum(w * w)


# %% [markdown]
# And here is the colleague's gradient. The sign in its last line should be a plus. Would you have seen it?


# %%
def by_hand(w, decay):
    pull = labels / (1.0 + np.exp(labels * (points @ w)))
    data = -np.mean(points * pull[:, None], axis=0)
    return data - decay * w


# %% [markdown]
# We train with the right gradient and with this one, in two settings: a weight decay of 0.2 and one of 0.002.
#
# **Predict:** in which setting will the team notice?


# %%
def train(gradient, decay, steps=50):
    w, losses = np.zeros(3), []
    for _ in range(steps):
        losses.append(float(loss(w, decay)))
        w = w - 0.5 * gradient(w, decay)
    return [round(value, 3) for value in losses[:: steps // 5]]


for decay in (0.2, 0.002):
    print(f"decay {decay}:  right {train(ad.grad(loss), decay)}")
    print(f"{'':13} wrong {train(by_hand, decay)}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The sign of the weight decay is lost. In which of the two settings will the team notice?
#
# **Expected:** with 0.2 the loss explodes. With 0.002 it falls as it should, even a little faster, since the weights grow.
# Nobody will look.

# %% [markdown]
# With 0.2 the loss explodes, and somebody will look for the reason. With 0.002 training *works*: the loss falls as
# it should, even a little faster, because the weights grow instead of shrinking. Nobody will look for anything.
#
# "It trains, so it is right" is the most expensive belief of this course. One line tells:


# %%
def weak_decay(w):
    return loss(w, 0.002)


began = time.perf_counter()
report = ad.gradcheck(weak_decay, np.array([0.5, -0.3, 0.2]), grad=lambda w: by_hand(w, 0.002))
print(f"{1000 * (time.perf_counter() - began):.0f} milliseconds")
print(report)

# %% [markdown]
# Milliseconds instead of three days. The rest of this lesson is about how this line works, and how far you may
# trust it.

# %% [markdown]
# ## 2 Differences, and how good they are
#
# A derivative says how much the output moves when the input moves a little. So move the input a little, and see:
#
# $$\text{one-sided:}\quad \frac{f(x+h)-f(x)}{h} \qquad\qquad \text{central:}\quad \frac{f(x+h)-f(x-h)}{2h}$$
#
# In the limit of h → 0 both are the derivative. So the smaller the step h, the better?
#
# **Predict:** the function is `exp`, at x = 1. Which step gives the smallest error: 1e-1, 1e-5, 1e-10 or 1e-15?
# Sketch the error against the step before you run.


# %%
def one_sided(f, x, h):
    return (f(x + h) - f(x)) / h


def central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


steps = 10.0 ** -np.arange(1, 16)
errors = {rule.__name__: [abs(rule(np.exp, 1.0, h) - np.e) / np.e for h in steps] for rule in (one_sided, central)}
plot = error_plot(steps, errors)
print(plot)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** exp at x = 1: which step gives the smallest error, 1e-1, 1e-5, 1e-10 or 1e-15?
#
# **Expected:** 1e-5 for central differences (about ten digits). To the right the function bends; to the left the rounding
# errors, about 1e-16, are divided by the step. "The smaller the better" is the usual belief.

# %% [markdown]
# The same numbers as a plot. Both axes count powers of ten.

# %%
plot

# %% [markdown]
# Two slopes meet in a valley.
#
# * From the right to the valley, smaller is better. The function bends on the way, and the error of that falls with
#   h for the one-sided difference, with h² for the central one.
# * To the left of the valley, smaller is **worse**. `f(x + h)` and `f(x - h)` agree in almost all of their 16 digits. The
#   difference has only the few that are left, and dividing by h makes their rounding errors large: about 1e-16 / h.
#
# The best step balances both: about 1e-8 for one side, 1e-5 for central differences, which reach ten digits there.
# At 1e-15 there is hardly one right digit left.
#
# **Predict:** float32 has 7 digits. Where is the valley now, and how many digits are right at its bottom?

# %%
x = np.float32(1.0)
for h in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
    error = abs(float(central(np.exp, x, np.float32(h))) - np.e) / np.e
    print(f"{h:.0e}   {error:.0e}")

# %% [markdown]
# Five digits at best, at a step around 1e-2. So a check converts its inputs to float64, whatever the network computes in.
#
# **Exercise: a slope with eight right digits**, wherever x lies. Think about what "a small step" means for x = 1,000,000.

# %% exercise="slope"

# %% [markdown]
# ## 3 All ones is no test
#
# An op on arrays has a gradient for every upstream `g`. Most people check the one that comes from `y.sum()`, a `g`
# of ones. Here are three wrong rules:

# %%
wrong_rules = {
    "exp, upstream forgotten": (np.exp, lambda g, x: np.exp(x)),
    "transpose by reshape": (np.transpose, lambda g, x: g.reshape(x.shape)),
    "centred, sign lost": (lambda x: x - x.mean(), lambda g, x: g.mean() - g),
}

# %% [markdown]
# The checker below moves `x` along one random direction `u`, and compares the two sides of
# $\langle g, f(x+hu)-f(x-hu)\rangle / 2h = \langle \text{gradient}, u\rangle$.
#
# **Predict:** which of the three does a `g` of ones find? Which does a random `g` find?

# %%
x, u = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
for name, (f, rule) in wrong_rules.items():
    for kind, g in (("ones", np.ones(f(x).shape)), ("random", rng.normal(size=f(x).shape))):
        measured = np.sum(g * (f(x + 1e-5 * u) - f(x - 1e-5 * u))) / 2e-5
        claimed = np.sum(rule(g, x) * u)
        verdict = "passes" if abs(measured - claimed) < 1e-6 else "FOUND"
        print(f"{name:24} g {kind:7} {verdict}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Three wrong rules. Which of them does a g of ones find?
#
# **Expected:** none. Times g looks like not times g, all orders look alike, and centred numbers add up to zero, which hides
# every factor.

# %% [markdown]
# Ones find none of them. A `g` of ones cannot tell "times g" from "not times g"; it looks the same in every order; and
# where the results of an op always add up to a constant, like centred numbers or a softmax, its gradient is 0 and hides
# every factor.
#
# The direction `u` has to be random for the same reason. And even so: this checker looked at one point, one input
# and never at shapes, dtypes, or at what the rule does to its arguments.
#
# Below you write a checker that looks at all of that. What it will meet are ops like this one. **Predict:** which shapes
# must its gradients have?

# %%
op = planted_op(2)
out = op.forward(*op.inputs())
print("inputs", [(one.shape, one.dtype.name) for one in op.inputs()], " result", out.shape)
print("gradients", [(one.shape, one.dtype.name) for one in op.vjp(np.ones_like(out), *op.inputs())])

# %% [markdown]
# **Exercise: write a checker.** The check tells your *detection rate* (how many of the wrong ops you find) and your
# *false alarms* (how many of the right ones you refuse). Do not expect 20 and 0 at the first try: start simple, and let
# the check tell what to look at next. This is the longest exercise of the lesson: take 30 minutes.

# %% exercise="gradient_is_right"

# %% [markdown]
# ## 4 Reading a report
#
# `ad.gradcheck` is a checker of this kind. Without `grad=` it checks the rules that the lab itself uses, in whatever
# function you give it. With `grad=` it checks a gradient of yours.
#
# **Predict:** what does the report say about a rule that is off by a factor, here of a mean over four numbers?

# %%
x = np.array([1.0, -2.0, 0.5, 3.0])
ad.gradcheck(lambda x: ops.mean(x * x), x, grad=lambda x: 2.0 * x)

# %% [markdown]
# A good report does not only refuse. Factors that have a reason, such as −1, 2, or the number of entries, are named.
#
# Sometimes there is nothing to compare with. **Predict:** `relu` has a corner at 0. What is its slope there?

# %%
ad.gradcheck(ops.relu, np.array([-1.0, 0.0, 2.0]))

# %% [markdown]
# To the left of the corner the slope is 0. To the right it is 1 times the upstream gradient, which is a random number here.
# Every number between the two is accepted, and the report says that it met a corner.

# %% [markdown]
# ## 5 "Passed" does not mean "right"
#
# **Predict:** the rule below is right for positive numbers. Will the check at these inputs find what is wrong? At
# which inputs would it?


# %%
def absolute(x):
    return np.abs(x)


def absolute_gradient(x):
    return np.eye(len(x))


for point in (np.array([0.5, 2.0]), np.array([0.5, -2.0])):
    print(point, ad.gradcheck(absolute, point, grad=absolute_gradient).ok)

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** The gradient of |x| is given as 1 everywhere. At which inputs does a check find that?
#
# **Expected:** only where some x is negative. A check speaks about the points that it looked at.

# %% [markdown]
# A check speaks about the points that it looked at. Choose inputs of both signs, large and small, equal and
# different ones, and the shapes that you really use.
#
# There is a subtler gap. Here we register an op in a hurry. Somebody calls `detach()` in the rule, perhaps to save
# memory, so the value is taken out of the graph there.


# %%
@ad.op(elementwise=True)
def hasty_cube(xp, x):
    """x³."""
    return x * x * x


@hasty_cube.vjp
def hasty_cube_vjp(g, x):
    if isinstance(x, ad.Tensor):
        x = x.detach()
    return g * (3.0 * x * x)


# %% [markdown]
# **Predict:** does it pass? Is there a derivative that it gets wrong all the same?

# %%
x = np.array([0.5, 2.0])
print(ad.gradcheck(hasty_cube, x))
print(ad.gradcheck(hasty_cube, x, order=2))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The rule calls `detach()`. Does it pass? Which derivative does it get wrong all the same?
#
# **Expected:** the first derivative passes in every digit; the second comes out as 0, since the graph does not know how the
# numbers depend on x.

# %% [markdown]
# The first derivative is right in every digit, and the second is zero. The rule gives the right *numbers*; it does
# not tell the graph how they depend on `x`. Who needs second derivatives? Newton's method, penalties on gradients,
# meta-learning, physics. Each of them would fail without an error, months later. `order=2` costs one word.

# %% [markdown]
# ## 6 Differentiating twice
#
# The second derivatives of a function from n numbers to one form a matrix, the **Hessian**: row i, column j says how
# the slope along i changes when x moves along j.
#
# **Predict:** where are the zeros of the Hessian of $x_0^2\, x_1 + x_2^3$? Is it symmetric?


# %%
def f(x):
    return x[0] * x[0] * x[1] + x[2] * x[2] * x[2]


x = np.array([1.0, 2.0, 3.0])
print(ad.hessian(f)(x))

# %% [markdown]
# For a network of a million weights the Hessian has a million million entries. But, as with the Jacobian, nobody
# needs the matrix. What is needed is its product with a vector, $Hv$: *how does the gradient change when the weights
# move along v?* This is one directional derivative of the gradient.

# %%
v = np.array([1.0, 0.0, -1.0])
(product,) = ad.hvp(f, (x,), (v,))
print(product, ad.hessian(f)(x) @ v)

# %% [markdown]
# The product comes from differentiating twice: reverse mode gives the gradient, and forward mode goes once through
# that whole computation, with the tangent v. **Predict:** how much more work is that than one gradient: a few
# times as much, or n times? Count what happens on the way.

# %%
for n in (10, 1000):
    x = np.linspace(0.1, 1.0, n)
    gradient = ad.grad(lambda x: ops.sum(ops.exp(x) * x))
    with ad.listen() as once:
        gradient(x)
    with ad.listen() as twice:
        ad.jvp(gradient, (x,), (np.ones(n),))
    print(f"n = {n:4}: {len(once)} events for a gradient, {len(twice)} for a Hessian times a vector")

# %% [markdown]
# Less than twice as many, and the number does not depend on n.
#
# **Exercise: the Hessian times a vector**, from the parts that you know.

# %% exercise="hessian_times"

# %% [markdown]
# How would you check *this*? By a law again, one that needs no right answer: the Hessian is symmetric, so
# $\langle u, Hv \rangle = \langle v, Hu \rangle$.

# %%
x, u, v = (rng.normal(size=3) for _ in range(3))
(along_v,), (along_u,) = ad.hvp(f, (x,), (v,)), ad.hvp(f, (x,), (u,))
print(np.sum(u * along_v), np.sum(v * along_u))

# %% [markdown]
# ## Summary
#
# * "It trains" proves nothing: a lost sign can hide behind a falling loss. `gradcheck` takes milliseconds.
# * Differences have a **best step**. Larger: the function bends. Smaller: rounding errors are divided by the step.
#   Central differences reach ten digits in float64, at a step of about 1e-5 times the size of x.
# * Check with **random upstream gradients of both signs**, every entry, every input, several points, sizes that differ;
#   compare shapes and dtypes, and see that no argument was changed.
# * A passed check speaks about the points and the order that it looked at. Ask for `order=2` if anybody may
#   differentiate twice.
# * A Hessian times a vector costs a few gradients, whatever the size.
#
# ## Exercises
#
# 1. *slope*: section 2, checked.
# 2. *gradient_is_right*: section 3, checked. When it is right: which of the twenty would the checks that you used so
#    far have missed?
# 3. *hessian_times*: section 6, checked.
# 4. On paper: the error of the central difference is about h²/6 + 1e-16/h. For which h is it smallest?
# 5. Repair `by_hand`, and show that it is right. Then lose another sign. Does training notice?
# 6. Find a wrong rule that passes a check at one random point and one random `g`. How likely is it that a student
#    writes it?
# 7. Take three ops of the lab from `ad.registry` and check them with your own checker. What do you have to adapt?
#
# Where do you stand?

# %%
progress()
