"""Lesson 120, the bug clinic: three stories run again, and the first six patients, whose gradients are wrong.

After: 50_gradient_check.
"""

# %% [markdown]
# # It trains. Is it right?
#
# **The question:** a network trains, no error is raised, the loss falls. How do you find the bug that nobody has seen?
#
# By the end you can
#
# * tell three famous stories by *running* them: a lost sign, a wrong order, a missing factor,
# * say why a falling loss (损失) proves nothing, and which check tells,
# * let a check name the op, the rule and the line,
# * write the *smallest failing test* of a bug before you repair it.
#
# The stories and two patients take 60 to 90 minutes. The other four patients are for home, or for the other groups of a
# class. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Story A: the lost sign | 16 |
# | 2 Story B: the wrong order | 10 |
# | 3 Story C: the missing factor | 14 |
# | 4 First the test, then the repair | 45 |
#
# **What must come across:** Do not ask the loss: ask each rule, each sum, the order. First the smallest failing test, then
# the repair.
#
# **If time is short, leave for home:** four of the six patients: give each group two of them, and let the groups tell each
# other.

# %%
import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_exercises.clinic import healthy, sick
from autodiff_lab import faults, ops, training
from autodiff_lab.replicas import check_replicas, data_parallel

# %% [markdown]
# ## 1 Story A: the lost sign
#
# Somebody derives a gradient by hand and loses a minus sign. Three days of training do not converge.
#
# We do not have three days. `faults` has the bugs that people tell of; each of them is switched on for a `with` block, and is
# gone after it. Nothing else is changed:

# %%
with faults.lost_sign("tanh"):
    wrong = ad.grad(ops.tanh)(0.5)
print(wrong, ad.grad(ops.tanh)(0.5))

# %% [markdown]
# Now training. `training.compare` trains a small network on handwritten digits twice, from the same numbers: once healthy,
# and once inside the `with` block.
#
# **Predict:** the sign is lost in one op. Once it is the loss itself, `cross_entropy`, once it is `tanh`, in the middle of
# the network. Will training diverge, learn nothing, learn less, or learn as well? And in a residual network, where a skip
# connection goes around each `tanh`?

# %%
for setting, op in (("mlp", "cross_entropy"), ("mlp", "tanh"), ("residual", "tanh")):
    compared = training.compare(training.SETTINGS[setting](), faults.lost_sign(op))
    print(compared)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** One lost sign, three places. Who diverges, who learns nothing, who learns less?
#
# **Expected:** in the loss it diverges. In the middle of the perceptron the last layer goes downhill and the first uphill,
# and they work against each other. In the residual network the skip connection carries a right gradient around the bug: it
# learns, and this is the dangerous one.

# %% [markdown]
# The same bug, three diseases. In the loss, everybody runs uphill at once, and somebody will notice. In the middle, the last
# layer still goes downhill and the first one does not, and they work against each other. And in the residual network, much
# of the gradient takes the skip connection, around the bug: it *learns*. This is the one to look at.
#
# **Predict:** which of the two gradient norms is larger at the end?

# %%
aw.TrainingView(compared)

# %% [markdown]
# Without the healthy curve beside it, would you have looked for a bug? Most people make the learning rate smaller, or the
# network larger. You have no healthy curve in real life: it is the curve that you are trying to get.
#
# So do not ask the loss. Ask each op. Here is a net small enough to see, with a skip connection around its second layer.


# %%
def small_loss(x, w1, w2):
    h = ops.tanh(x @ w1)
    s = h + ops.sin(h @ w2)
    return ops.mean(s * s)


rng = np.random.default_rng(120)
point = [rng.normal(size=shape) for shape in ((2, 3), (3, 2), (2, 2))]

# %% [markdown]
# `ad.find_faulty_op` runs it once, and compares every rule with differences, at the values that it had.
#
# **Predict:** a sign is lost in `sin`. How much does the check need to know about signs to find it?

# %%
with faults.lost_sign("sin"):
    report = ad.find_faulty_op(small_loss, point)
report

# %% [markdown]
# The op, its rule, what is wrong with it, and your line. No op is trusted, and no word about signs was needed: differences
# know only the forward computation, which is right.
#
# The sweep can be watched too, with what the report blames marked. **Predict:** which gradients are wrong on the way back,
# and which are still right?

# %%
with faults.lost_sign("sin"):
    picture = aw.GradientFlowView(small_loss, *point, faulty=report)
picture

# %% [markdown]
# Everything that the sweep reaches *after* the op is wrong, and all before it is right. The gradient of `w2`
# has the wrong sign. `h` is sent two contributions, a right one around the op and a wrong one through it, and passes
# their sum on to `w1`. This is why a residual network goes on learning.

# %% [markdown]
# ## 2 Story B: the wrong order
#
# A framework's topological sort was wrong: breadth-first (广度优先), level by level. The model ran, and converged very slowly.
#
# **Predict:** the fault is switched on for a perceptron, a chain of layers, and for the residual network. What will become
# of each?

# %%
for setting in ("mlp", "residual"):
    compared = training.compare(training.SETTINGS[setting](), faults.breadth_first_order())
    print(compared)

# %% [markdown]
# On the chain it is not a bug at all: the losses agree in every digit. Whoever tested this framework with a perceptron tested
# nothing. On the residual network a part of each gradient is lost, and training "converges slowly".

# %%
aw.TrainingView(compared)

# %% [markdown]
# **Predict:** what will `find_faulty_op` blame now? Every rule is right.

# %%
with faults.breadth_first_order():
    print(ad.find_faulty_op(small_loss, point))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Every rule is right, and the gradient is wrong. What can the report blame?
#
# **Expected:** the node that ran its rule before all contributions had come, and the contribution that came too late: the
# order, not an op.

# %% [markdown]
# The node that did not wait, and the contribution that came too late. Compare it with a second bug of the sweep, which gives
# wrong numbers in the same places: contributions are stored, not added.

# %%
with faults.last_path_wins():
    print(ad.find_faulty_op(small_loss, point))

# %% [markdown]
# From outside both look alike. A gradient check of the whole function would say "wrong" twice. Looking at each step
# separately (each rule, each sum, the order) tells *what* to repair.

# %% [markdown]
# ## 3 Story C: the missing factor
#
# In distributed training the gradients did not match. After two days: the backward pass of an op of their own had lost a
# factor.
#
# **Predict:** the rule of `tanh` loses a factor. Once its gradient is twice what it should be, once a tenth. In which case is
# training measurably worse? Could it be *better*?

# %%
for lost in (1 / 2, 10.0):
    print(training.compare(training.mlp_on_digits(), faults.missing_factor("tanh", factor=lost)))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A rule gives twice the gradient, or a tenth. When is training measurably worse? Could it be
# better?
#
# **Expected:** twice does no measurable harm; it may even help, since a factor is another learning rate for the layers
# below. So the loss cannot tell, and it is a bug all the same.

# %% [markdown]
# To say it honestly: twice the gradient does no measurable harm here. A factor is another learning rate (学习率) for the
# layers before the op. The learning rate was a guess anyway, and the wrong one may even be the better guess. So the loss
# *cannot* tell. It is a bug all the same: change the depth, the learning rate or the batch size, and it comes back.
# `ad.opcheck` needs no training:

# %%
with faults.missing_factor("tanh"):
    report = ad.opcheck(ad.registry["tanh"])
for test in report.failed:
    print(f"{test.name}: {test.reason}")

# %% [markdown]
# Now with two machines. Each takes half of a batch, and an *all-reduce* (全归约) gives both of them the mean of their
# gradients. There are two suspects: a rule that lost the factor ½, or an all-reduce that adds and forgets to divide.
#
# **Predict:** can you tell them apart by the gradient that comes out?


# %%
def replica_loss(w, x):
    return ops.mean(ops.square(w * x))


parts = [(np.array([1.0, 2.0]),), (np.array([3.0, 4.0]),)]
for fault in (faults.missing_factor("square", factor=0.5), faults.all_reduce_sums()):
    with fault:
        print(fault.name, data_parallel(replica_loss, np.array(2.0), parts).reduced)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A lost factor ½ and an all-reduce that forgets to divide: can the result tell them apart?
#
# **Expected:** no, it is the same number. Cut the way in two and look at the middle: a rule is wrong in each replica,
# before anything is exchanged.

# %% [markdown]
# The same number, so the number cannot tell. But a rule is wrong in *each* replica, before anything is exchanged; and what
# comes out of an all-reduce can be compared with what went in:

# %%
for fault in (faults.missing_factor("square", factor=0.5), faults.all_reduce_sums()):
    with fault:
        print(check_replicas(replica_loss, np.array(2.0), parts))

# %% [markdown]
# Cut the way in two, and look at the middle: that is the whole art of it.

# %% [markdown]
# ## 4 First the test, then the repair
#
# Now you are the doctor. Each patient is a function with one bug. For each, two steps:
#
# 1. **The smallest failing test.** A function that is handed the patient's function, calls it with as few numbers as
#    possible, and returns whether it is sick. It must say yes to the sick one, and no to *every* healthy one, also to one
#    that computes in another way.
# 2. **The repair**, which is checked by a law on inputs of all shapes.
#
# Why in this order? With three numbers you can do the arithmetic in your head, so the test shows which line is wrong. You
# have seen it fail, so you know that it can. And after the repair it stays, so the bug cannot come back.
#
# An example. This rule of `x²` is wrong. One number is enough: the slope at 3 is 6.


# %%
def square_vjp(g, x):
    return g * x


def catches_square_vjp(square_vjp):
    return not np.isclose(square_vjp(1.0, 3.0), 6.0)


print(catches_square_vjp(square_vjp), catches_square_vjp(lambda g, x: 2 * g * x))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Why the test before the repair, and why the smallest one?
#
# **Expected:** you have seen it fail, so you know that it can; with three numbers you do the arithmetic in your head, so it
# shows the line; and it stays, so the bug cannot come back. It must also *pass* on everything that is right.

# %% [markdown]
# `sick(name)` gives a patient's function to try, `healthy(name)` one without the bug. Both refuse inputs that are larger than
# need be.

# %%
print(sick("div_vjp")(1.0, 1.0, 2.0), healthy("div_vjp")(1.0, 1.0, 2.0))

# %% exercise="catches_div_vjp"

# %% exercise="div_vjp"

# %% exercise="catches_mse_vjp"

# %% exercise="mse_vjp"

# %% exercise="catches_sigmoid_vjp"

# %% exercise="sigmoid_vjp"

# %% exercise="catches_scale_rows_vjp"

# %% exercise="scale_rows_vjp"

# %% exercise="catches_sweep"

# %% exercise="sweep"

# %% exercise="catches_backward_order"

# %% exercise="backward_order"

# %% [markdown]
# ## Summary
#
# * **"It trains, so it is right" is wrong.** A lost sign may let a residual network learn, a wrong order does nothing on a
#   chain, a lost factor may even help.
# * Do not ask the loss: ask **each rule, each sum, the order**. `ad.find_faulty_op` does, for a whole function, and names
#   the line; `ad.opcheck` for one op; `check_replicas` for two machines.
# * **First the smallest failing test, then the repair.** A test must fail on the bug *and* pass on everything that is right.
# * Small inputs hide bugs too: a mean of one number, a square matrix, a `g` of ones, a chain. Small is not the same as
#   special.
#
# ## Exercises
#
# 1. The six patients: section 4, checked. For each, say in one sentence why training did not show the bug.
# 2. In section 1, lose the sign of `matmul` (it has two inputs: `faults.lost_sign("matmul", "y")`). Predict first what
#    becomes of it.
# 3. In section 3, find a factor for which training is clearly worse, and one for which it is clearly better. Then another
#    learning rate: `training.mlp_on_digits(learning_rate=0.1)`.
# 4. Plant a bug of your own in an op of your own, and let your neighbour find it: with `ad.find_faulty_op`, and without.
#
# Where do you stand?

# %%
progress()
