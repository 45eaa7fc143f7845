"""Lesson 121, silent bugs: what is wrong where every gradient is right, and the other six patients of the clinic.

After: 60_registering_an_op, 120_bug_clinic.
"""

# %% [markdown]
# # Every gradient is right. What can still be wrong?
#
# **The question:** all rules have passed `gradcheck`. Which bugs are left, and who sees them?
#
# By the end you can
#
# * name what a gradient check does not look at: the training loop, who owns an array, second derivatives, what is
#   promised when an op is registered, which kernel runs,
# * say which of these a falling loss shows, and which it never shows,
# * write the smallest failing test for each, and repair it.
#
# The first part and two patients take 60 to 90 minutes. The other patients are for home, or for the other groups of a class.
# **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 What does the loss show? | 10 |
# | 2 Right by luck: a shared array | 8 |
# | 3 A derivative that nobody took yet | 8 |
# | 4 Promises that training never reads | 12 |
# | 5 The other six patients | 45 |
#
# **What must come across:** Right gradients are not right training. Shapes, dtypes and kernels are promises that training
# never reads.
#
# **If time is short, leave for home:** four of the six patients, as in lesson 120.

# %%
import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_exercises.clinic import healthy, sick
from autodiff_lab import faults, ops, training

# %% [markdown]
# ## 1 What does the loss show?
#
# Five bugs that people tell of. Each of them can be switched on for a `with` block:

# %%
suspects = {
    "stale_gradients": "mlp",
    "shared_buffer": "residual",
    "wrong_shape_rule": "mlp",
    "wrong_dtype_rule": "mlp",
    "wrong_device_kernel": "mlp",
}
for name in suspects:
    print(f"{name}: {faults.FAULTS[name].story}")

# %% [markdown]
# **Predict:** for each, will a small network learn as well as without the bug, less, or nothing? Write your five guesses
# down.

# %%
runs = {}
for name, setting in suspects.items():
    fault = faults.FAULTS[name]
    run = runs[name] = training.compare(training.SETTINGS[setting](), fault.on(*fault.measured[0].arguments))
    print(f"{name:20} {run.outcome:16} loss {run.faulty.final_loss:.6f}, healthy {run.healthy.final_loss:.6f}")

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** Five bugs. Which of them does the loss show?
#
# **Expected:** one, the stale gradients. Let everybody write five guesses down first; hardly anybody has five right.

# %% [markdown]
# One of five shows. Look at it: each step goes along the sum of *all* gradients so far.
#
# **Predict:** what becomes of the gradient norm?

# %%
aw.TrainingView(runs["stale_gradients"])

# %% [markdown]
# And yet `gradcheck` finds nothing, since every gradient is right when it is computed. The bug is between two steps. The
# check for it is as short as can be: take the same step twice.

# %%
w = ad.tensor([1.0, 2.0], requires_grad=True)
for _ in range(2):
    (w * w).sum().backward()
    print(w.grad)

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** gradcheck finds nothing wrong with stale gradients. Why?
#
# **Expected:** each gradient is right when it is computed; the bug lies between two steps. Take the same step twice, and
# compare.

# %% [markdown]
# `.grad` adds up, on purpose: so gradients of two losses can be joined. Whoever trains has to call `zero_grad` first.

# %% [markdown]
# ## 2 Right by luck: a shared array
#
# The second suspect adds in place, to save memory. The rule of `x + y` sends the *same* array to both. In our run the loss
# fell as well as ever. Is that a proof of anything?
#
# **Predict:** how wrong is the gradient?


# %%
def residual(x, w):
    h = x * w
    return ops.sum((h + (ops.tanh(h) + ops.sin(h))) * w)


point = (np.array([0.5, 1.0]), np.array([2.0, -1.0]))
right = ad.grad(residual)(*point)
with faults.shared_buffer():
    print(ad.grad(residual)(*point), "in place of", right)
    report = ad.find_faulty_op(residual, point)
report

# %% [markdown]
# Not "almost right": simply wrong, and learning goes on. The report watches every sum, and says which array was changed by
# adding to another.

# %% [markdown]
# ## 3 A derivative that nobody took yet
#
# The gradient of this op is right in every digit. `detach()` in its rule saves memory, somebody thought.


# %%
@ad.op(elementwise=True)
def hasty_square(xp, x):
    """x²."""
    return x * x


@hasty_square.vjp
def hasty_square_vjp(g, x):
    if isinstance(x, ad.Tensor):
        x = x.detach()
    return g * (2.0 * x)


# %% [markdown]
# **Predict:** what is the second derivative of x² at 3, and what comes out here?

# %%
print(ad.grad(hasty_square)(3.0), ad.grad(ad.grad(hasty_square))(3.0))
print("first order right:", ad.gradcheck(hasty_square, np.array([3.0])).ok)
print("second order right:", ad.gradcheck(hasty_square, np.array([3.0]), order=2).ok)

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** What is the second derivative of x² at 3, and what comes out here?
#
# **Expected:** 2, and here 0: `detach()` hides how the rule depends on x. Who takes first derivatives only never meets it.

# %% [markdown]
# The rule gives the right numbers, and hides how they depend on `x`. Who takes only first derivatives never meets the bug.

# %% [markdown]
# ## 4 Promises that training never reads
#
# An op promises more than its gradient: which shape and which dtype its result has, and which kernel runs where. A call on
# arrays does not ask the shape rule: it sees the array. A recorded graph *only* asks the rule.
#
# **Predict:** the shape rule of `tanh` loses the size of the first axis. Which of the two lines below is wrong?


# %%
def twice_tanh(x):
    return ops.tanh(x) * 2.0


x = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
with faults.wrong_shape_rule("tanh"):
    print("run:     ", ops.tanh(x).shape)
    graph = ad.record(twice_tanh, x)
    print("recorded:", graph.nodes[1].shape)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The shape rule loses the size of the first axis. Which of the two lines is wrong, and who
# reads it?
#
# **Expected:** the recorded one. Memory plans and fusion read it; a call on arrays does not. So training stays right, and
# nobody knows why it is slow.

# %% [markdown]
# The picture of the graph shows what was promised:

# %%
aw.GraphView(graph)

# %% [markdown]
# Buffers are planned and kernels are joined after these shapes. That is the lecture's story of the team whose shape function
# lost a dimension, and whose fusion was off: training stays right, and nobody knows why it is slow. `ad.opcheck` runs the
# rules *and* the kernels, and compares.
#
# **Predict:** the kernel of an accelerator, with half precision (半精度), was registered for the CPU. Which test finds it?

# %%
for fault in (faults.wrong_shape_rule("tanh"), faults.wrong_dtype_rule("tanh"), faults.wrong_device_kernel("tanh")):
    with fault:
        print(fault.name)
        for test in ad.opcheck(ad.registry["tanh"]).failed:
            print(f"    {test.name}: {test.reason}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which test finds the kernel that computes in half precision, and why did training not mind?
#
# **Expected:** the one that compares every kernel with a reference. Half precision is enough to find the way downhill here,
# so training did not mind.

# %% [markdown]
# Each promise has a test of its own: the rules are compared with what the kernel gives, the kernel of a device with a
# reference. Training did not mind any of the three. Half precision is enough to find the way downhill, here.

# %% [markdown]
# ## 5 The other six patients
#
# As in lesson 120: first the **smallest failing test**, a function that is handed a patient's function and returns whether
# it is sick; then the **repair**. `sick(name)` gives the function with its bug to try, `healthy(name)` one without it. Both
# refuse inputs that are larger than need be.

# %%
print(sick("div_dtype")("int32", "int32"), healthy("div_dtype")("int32", "int32"))

# %% exercise="catches_descend"

# %% exercise="descend"

# %% exercise="catches_sums"

# %% exercise="sums"

# %% exercise="catches_penalty_gradient"

# %% exercise="penalty_gradient"

# %% exercise="catches_broadcast_shape"

# %% exercise="broadcast_shape"

# %% exercise="catches_div_dtype"

# %% exercise="div_dtype"

# %% exercise="catches_choose_kernel"

# %% exercise="choose_kernel"

# %% [markdown]
# ## Summary
#
# * A right gradient is not a right training: what is left over from the **step before**, and who else holds an **array**, are
#   bugs between the gradients.
# * A rule may give right numbers and hide how they depend on the input: ask for `order=2`.
# * **Shape rule, dtype rule and kernel** are promises to whoever plans, fuses and dispatches. A call on arrays never reads
#   them, so no training shows that they are wrong. `ad.opcheck` holds them against each other.
# * Of five bugs, the loss showed one. The smallest failing test shows each of them.
#
# ## Exercises
#
# 1. The six patients: section 5, checked. For each, say who meets the bug first: who trains, plans, dispatches, or
#    differentiates again?
# 2. In section 1, find a seed or a learning rate with which `shared_buffer` learns clearly less. Is there one?
# 3. `faults.FAULTS` has more bugs. For each, read `.story`, guess `.check`, then look.
# 4. Write a test that finds `faults.wrong_device_kernel("matmul")` and passes on a healthy matmul in float32. How tight
#    may its tolerance be?
#
# Where do you stand?

# %%
progress()
