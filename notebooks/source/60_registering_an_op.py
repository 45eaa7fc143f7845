"""Lesson 60, registering an op: what a framework has to know about an operation, who reads it, and what a wrong part costs.

After: 40_gradient_rules.
Machine: one cell compiles C++ where there is a compiler, and says so where there is none.
"""

# %% [markdown]
# # Registering an op: the framework learns your computation
#
# **The question:** you have invented an operation. What does a framework have to know about it, and who will ask?
#
# By the end you can
#
# * *register* an operation (算子注册): schema, shape rule (形状推导), dtype rule, kernel, gradient, binding,
# * say who reads each part, and when: the call, the recording, the planning, backward,
# * read how a kernel is chosen by device and dtype,
# * test an op of your own before anybody trains with it.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Why not compose it? | 4 |
# | 2 A kernel is not enough | 12 |
# | 3 Who asks? | 10 |
# | 4 The shape rule never sees data | 12 |
# | 5 The dtype rule, and a second spelling | 12 |
# | 6 Kernels: which one runs? | 14 |
# | 7 The missing factor | 12 |
# | 8 The binding is written by the framework | 9 |
# | 9 All of it on one card | 3 |
#
# **What must come across:** An op is more than a kernel. Each part has readers, and a wrong part hurts whoever reads it,
# not whoever wrote it.
#
# **If time is short, leave for home:** `binding_text`, and the kernel in C++.

# %%
import inspect

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_exercises.abstract_arrays import abstract
from autodiff_lab import ops

other = ad.library_of("sim:0")

# %% [markdown]
# ## 1 Why not compose it?
#
# Our invention is a bump: exp(−width · x²), 1 in the middle and 0 far away. It can be written with the ops that exist.
#
# **Predict:** how many ops does the graph have? How many arrays are kept for backward?


# %%
def composed_bump(x, width=1.0):
    return ops.exp(-width * (x * x))


x = np.linspace(-2.0, 2.0, 5)
graph = ad.record(ad.value_and_grad(lambda x: ops.sum(composed_bump(x))), x)
print([node.op.name for node in graph if node.op is not None and node.phase == "forward"])
print([node.op.name for node in graph if node.op is not None and node.phase == "backward"])

# %% [markdown]
# It works, and every op is one more array to write, to read and perhaps to keep. A framework that knew the bump as *one* op
# would run one kernel, and keep what the bump's own rule needs. That is why production frameworks register thousands of
# ops. And some operations cannot be composed at all, since they are written in C++ or for a special device.

# %% [markdown]
# ## 2 A kernel is not enough
#
# The usual flow, in PyTorch as here, has four steps: write the forward function, write the backward function, register
# both, and let the framework generate the function that users call. We begin with the forward function, the **kernel**. Its
# first parameter is the array library `xp`; then come the inputs; after the star the **attributes**, which are settings.


# %%
@ad.op
def bump(xp, x, *, width=1.0):
    """exp(−width · x²)."""
    return xp.exp(-width * x * x)


ad.registry["bump"]

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** The kernel is there. Can the op be called?
#
# **Expected:** no. It lacks a shape rule, and the lab refuses an op that it knows by half: else the first one who records a
# graph would find out.

# %% [markdown]
# **Predict:** can it be called? Why, or why not: the kernel is there, after all.

# %%
try:
    bump(x)
except ad.RegistrationError as error:
    print(error)

# %% [markdown]
# The framework refuses an op that it knows by half. Without a shape rule the call could run, and the first one who *records* a
# graph would find out, perhaps in another team. So here is the rule: shapes in, shape out.


# %%
@bump.shape_rule
def bump_shape(x):
    return x


print(bump(x, width=0.5))
print(ad.record(bump, x).text())

# %% [markdown]
# How did it know that there is one input, and an attribute with a default? Nobody said so. It read the parameters of the
# kernel: that is the **schema**, and every later rule is checked against it.
#
# **Predict:** which of these three rules are refused, and with which words?

# %%
wrong_parts = {
    "a rule for an unknown input": lambda: bump.vjp(lambda g, y: g * y),
    "an unknown attribute": lambda: bump.shape_rule(lambda x, *, size: x),
    "an unknown kind of device": lambda: bump.kernel("gpu")(lambda xp, x, *, width=1.0: x),
}
for name, register in wrong_parts.items():
    try:
        register()
    except ad.RegistrationError as error:
        print(f"{name}:\n  {error}")

# %% [markdown]
# Each is refused **when it is registered**, not when a training of three days comes to it.
#
# **Exercise: read the schema** of a kernel.

# %% exercise="read_schema"

# %% [markdown]
# ## 3 Who asks?
#
# One part is still missing, the gradient. Backward will say so:

# %%
try:
    ad.grad(lambda x: ops.sum(bump(x)))(x)
except NotImplementedError as error:
    print(error)

# %% [markdown]
# It does not take the gradient for 0, and does not cut the graph in silence: it names the op, the input and the next step.
#
# The derivative of the bump is −2 · width · x · exp(…), and the last factor is the result `out`, which is there already. A
# rule names what it reads, and exactly that is kept.


# %%
@bump.vjp
def bump_vjp(g, x, out, *, width):
    return g * (-2.0 * width * x * out)


@bump.jvp
def bump_jvp(dx, x, out, *, width):
    return dx * (-2.0 * width * x * out)


print(ad.grad(lambda x: ops.sum(bump(x)))(x))

# %% [markdown]
# **Predict**, before you step: of the parts that we registered, which ones does `ad.record` read, and which ones does
# backward read? One part was written by nobody: which?

# %%
aw.RegistrationView(bump)

# %% [markdown]
# The picture claims that recording reads the shape rule and the dtype rule, and no kernel. Let us see whether that is so,
# with an op whose parts say when they are called. **Predict** the three lines.

# %%
seen = []


@ad.op
def noisy(xp, x):
    seen.append("kernel")
    return 2.0 * x


noisy.shape_rule(lambda x: seen.append("shape rule") or x)
noisy.dtype_rule(lambda x: seen.append("dtype rule") or x)
_ = noisy.vjp(lambda g: seen.append("vjp rule") or 2.0 * g)

# %%
for name, act in {
    "a call": lambda: noisy(x),
    "recording": lambda: ad.record(noisy, x),
    "value and gradient": lambda: ad.vjp(noisy, x)[1](x),
}.items():
    seen.clear()
    act()
    print(f"{name}: {', '.join(seen)}")

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** Which parts does a call read, which recording, which backward?
#
# **Expected:** a call reads the kernel; recording the shape rule and the dtype rule, and no kernel; value and gradient read
# the kernel, then the gradient rule. Usual wrong answer: recording runs the kernel once to see the shape.

# %% [markdown]
# ## 4 The shape rule never sees data
#
# A graph is recorded before it runs. There are no numbers yet, only shapes and dtypes, and all planning is done with these:
# how much memory, which ops can be joined, what must be moved. A rule that looks at data would have to wait for data.
#
# In this lesson you can make such arrays without numbers. **Predict** which of the lines work.

# %%
images = abstract((64, 3, 32, 32))
for text in ("images.shape", "images.shape[0] * 2", "np.sum(images).shape", "(images + images).shape"):
    try:
        print(f"{text:26} {eval(text)}")
    except Exception as error:
        print(f"{text:26} {type(error).__name__}: {error}")

# %% [markdown]
# What happens when a shape rule is *wrong*? The graph believes it. Here is one that loses a dimension, and the op itself
# computes correctly.


# %%
@ad.op
def row_sums(xp, x):
    """The sum of each row, as a column."""
    return xp.sum(x, axis=-1, keepdims=True)


@row_sums.shape_rule
def row_sums_shape(x):
    return x[:-1]


rows = np.ones((4, 3))
print("runs:    ", row_sums(rows).shape)
print("recorded:", ad.record(row_sums, rows).nodes[-1].shape)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A shape rule loses a dimension. Which number becomes wrong?
#
# **Expected:** none. Each *plan* becomes wrong: memory, fusion, what has to be moved. That is why such a bug costs speed
# and not correctness, and lives long.

# %% [markdown]
# No error, and from here on every plan is made for an array that never comes. The lecture tells of a team where exactly this
# spoiled the fusion of ops and halved the speed; nobody saw a wrong number. Section 7 shows how to find it in a second.
#
# **Exercise: a shape rule** for an op that is not elementwise.

# %% exercise="distances_shape"

# %% [markdown]
# ## 5 The dtype rule, and a second spelling
#
# Large frameworks often register in a chain of calls, and hand each function a *context* to ask. The lecture's example
# is of this kind. It registers the same kind of op in the same registry.


# %%
def my_shape(context):
    return context.input_shape("x")


def my_kernel(context):
    return lambda x: context.attributes["alpha"] * context.xp.tanh(x)


registration = ad.register_op("MyCustomOp").input("x: float32").output("y: float32").attr("alpha: float = 1.0")
registration.shape_fn(my_shape).kernel_creator(my_kernel)
ops.MyCustomOp(np.float32([-1.0, 2.0]), alpha=3.0)

# %% [markdown]
# The lecture demands that a framework can infer dtypes; yet its example has no dtype function. **Predict:** how does the
# lab know the dtype of the result? And what will the op do with float64?

# %%
print(ad.record(ops.MyCustomOp, np.float32([1.0])).nodes[-1].dtype)
try:
    ops.MyCustomOp(np.array([1.0]))
except ad.OpError as error:
    print(error)

# %% [markdown]
# The *declared type* of the output is its dtype rule here. For an op that takes several dtypes the rule has to compute. The
# usual guess is "the dtype of the first input". **Predict** the dtypes of these averages:

# %%
for first, second in (("float32", "float64"), ("int32", "int32"), ("float32", "int64"), ("bool", "float16")):
    result = (np.ones(1, first) + np.ones(1, second)) / 2
    print(f"{first:8} and {second:8} give {result.dtype}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which dtypes have these four averages?
#
# **Expected:** float64 for the first three, and float16 for bool with float16: none has the dtype of its first input. int32
# with int32 surprises most: a quotient of whole numbers is no whole number.

# %% [markdown]
# Not one of them has the dtype of its first input.
#
# **Exercise: the dtype rule** of the average.

# %% exercise="average_dtype"

# %% [markdown]
# ## 6 Kernels: which one runs?
#
# An op may have many kernels: one for every array library, a better one for the CPU, one for a GPU, one for float32 only. The
# lecture's kernels are C++. Here is one for the bump, for float32 on the CPU, if this machine has a compiler.

# %%
cpp = r"""
#include <cmath>
extern "C" void bump_cpp(int64_t y_size, const float* x, float width, float* y) {
    for (int64_t i = 0; i < y_size; i++) y[i] = std::exp(-width * x[i] * x[i]);
}
"""
if ad.find_compiler():
    bump.kernel("cpu", dtype="float32")(ad.native_kernel(cpp))
else:
    print("No C++ compiler on this machine: the kernel in Python goes on serving every dtype.")
bump(x.astype("float32"), width=0.5)

# %% [markdown]
# **Predict:** in which order does *dispatch* look for a kernel of a float32 array on the CPU? Then step. (Without a
# compiler the first place stays empty, and the search goes on.)

# %%
aw.DispatchView(bump, dtypes="float32")

# %% [markdown]
# And for an array on a simulated accelerator? **Predict:** will it take the kernel in C++?

# %%
aw.DispatchView(bump, dtypes="float32", device="sim:0")

# %% [markdown]
# From the most special to the most general, and never a kernel for another device: the memory of an accelerator cannot be read
# by a program on the CPU. The general kernel works everywhere because it only uses `xp`, whatever library that is.
#
# The chain of section 5 has a *kernel creator* in place of a kernel. **Predict:** how often is it asked for a kernel, if
# the op is called three times, twice with the same attribute?

# %%
for alpha in (1.0, 7.0, 7.0):
    told = ad.dispatch_told(ops.MyCustomOp, [np.float32([1.0])], {"alpha": alpha})
    made = told[-1]
    print(f"alpha {alpha}: {made.creator} {'was asked before' if made.cached else 'is asked'}")

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** The op is called three times, twice with the same attribute. How often is the kernel
# creator asked?
#
# **Expected:** twice: a kernel is kept for each key of device, dtypes and attributes.

# %% [markdown]
# **Exercise: a kernel** that serves every library, every shape, both float dtypes and large numbers.

# %% exercise="soft_relu"

# %% [markdown]
# ## 7 The missing factor
#
# The lecture's third story: in a distributed training, gradients did not match. After two days the reason was found: the
# backward function of an op of their own had lost a factor. Here is the bump once more, by somebody in a hurry.


# %%
@ad.op(elementwise=True)
def hasty_bump(xp, x, *, width=1.0):
    return xp.exp(-width * x * x)


@hasty_bump.vjp
def hasty_bump_vjp(g, x, out, *, width):
    return g * (-width * x * out)


print(ad.grad(lambda x: ops.sum(hasty_bump(x)))(x).round(3))
print(ad.grad(lambda x: ops.sum(bump(x)))(x).round(3))

# %% [markdown]
# Right sign, right zeros, half the size: training still works, with half the learning rate for everything below this op.
# Nobody sees that. `ad.opcheck` holds the parts of an op against each other. **Predict** which of its tests fails.

# %%
ad.opcheck(hasty_bump, [x])

# %% [markdown]
# And the shape rule that lost a dimension? **Predict** what the report shows as the smallest failing call.

# %%
ad.opcheck(row_sums, [rows])

# %% [markdown]
# One line for an op of your own, before anybody trains with it. It looks at what no test of numbers sees: does the kernel
# change its argument, do rules need numbers, does every kernel agree with the first? Here is the bump, with a kernel in C++
# if there is one.

# %%
print(ad.opcheck(bump, [x, x.astype("float32")]).ok)

# %% [markdown]
# **Exercise: a gradient rule** with two factors, of an op that large language models use.

# %% exercise="soft_cap_vjp"

# %% [markdown]
# ## 8 The binding is written by the framework
#
# Step four: users call a Python function with a name, a signature and a docstring. Nobody wrote that of `bump`.

# %%
print(ad.registration_told(bump)[-1].signature, "-", bump.__doc__)
print("\n".join(ad.registration_told(bump)[-1].code.splitlines()[:9]))

# %% [markdown]
# The framework wrote it as *text*, from the schema and the rules, and compiled it. Look closely and you find the fast way
# for Tensors, the kernel's call, and what is kept for backward. Written once, it has no loop over inputs, and asks nobody
# what to save.
#
# **Exercise: write a binding**, or rather the text of one.

# %% exercise="binding_text"

# %% [markdown]
# ## 9 All of it on one card
#
# **Predict:** which rows of the card of `bump` will say that they come by themselves? Select a row to see who reads it.

# %%
aw.OpCard(bump)

# %% [markdown]
# Every op of the lab is registered like this one. Try `aw.OpCard("matmul")`, or an op that you use every day.

# %% [markdown]
# ## Summary
#
# * To register an op is to tell its **schema**, **shape rule**, **dtype rule**, **kernels** and **gradient**; the framework
#   writes the **binding**.
# * Each part has readers: a call reads the kernel; recording and all planning read shapes and dtypes, **never data**; backward
#   reads the gradient rules, and keeps what these name.
# * A wrong shape or dtype rule changes no number. It spoils every plan that is made with it.
# * **Dispatch** goes from the most special key, device and dtype, to the most general, and never to another device.
# * Mistakes that can be seen are refused at registration. `ad.opcheck` finds those that take running: a lost factor, a lost
#   dimension, a changed argument.
#
# ## Exercises
#
# 1. *read_schema*: section 2, checked. *distances_shape*: section 4, checked.
# 2. *average_dtype*: section 5, checked. *soft_relu*: section 6, checked.
# 3. *soft_cap_vjp*: section 7, checked. *binding_text*: section 8, checked.
# 4. Register `soft_relu` with your kernel, give it its two gradient rules, and let `ad.opcheck` judge.
# 5. Repair `row_sums_shape` and `hasty_bump_vjp`. Run their cells again: what does the lab say about graphs from before?
# 6. Measure `bump` on a million float32 numbers, with the kernel in C++ and without. Explain what you see.
# 7. Write an op whose result has a size that depends on the data, such as "all positive numbers". Which part can you not write?
#
# Where do you stand?

# %%
progress()
