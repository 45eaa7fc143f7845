"""Lesson 130, build a framework: from numbers to arrays, a registry and a scheduler; then the lab's views look at it.

After: 30_reverse_mode, 40_gradient_rules, 60_registering_an_op, 80_scheduling.
"""

# %% [markdown]
# # Your own framework
#
# **The question:** how little is needed for a framework of your own that learns, and that can be drawn and scheduled?
#
# The lecture ends with an advice: build a micro framework (微型框架) of your own; addition, subtraction, multiplication,
# division and a few functions are enough. Here you build it, in five parts. Then it learns to read real digits, and the
# pictures of this lab show *your* graph and *your* schedule.
#
# By the end you can
#
# * say what an engine has to record (记录), and sweep it backward,
# * let arrays be stretched (广播) in one place, instead of in every rule,
# * keep ops in a registry (注册表) that refuses mistakes when they are made,
# * schedule what was recorded, with a ready queue (就绪队列),
# * say what a framework for production has beyond these 150 lines.
#
# It takes 90 minutes; you need lessons 30, 40, 60 and 80. Whatever you wrote there you may use here. A later part
# uses **your** earlier part, never one of ours: so do them in order. **Predict**, build, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Numbers | 20 |
# | 2 Arrays | 18 |
# | 3 A registry | 10 |
# | 4 A scheduler | 14 |
# | 5 All together | 12 |
# | 6 It learns to read | 6 |
# | 7 The lab looks at it | 10 |
#
# **What must come across:** a framework is a record, rules and an order. Each part asks little of the others, so one can be
# changed without touching the rest. Whoever wrote `backward`, `unbroadcast` and `seven_steps` in lessons 30, 40 and 80 brings
# them along.
#
# **If time is short, leave for home:** sections 3 and 4 as homework *before* this lesson; they need nothing of the first two.
# Pairs may also share the parts, one engine and one registry with scheduler, and put them together in section 5.

# %%
import difflib
import inspect
import math
import os
from functools import partial

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution, yours
from autodiff_exercises.own_framework import FIRST_OPS, Framework, OpRules, lab_graph, lab_timeline, probes
from autodiff_lab import datasets, schedule
from IPython.display import display

SMALL = "AUTODIFF_LAB_SMALL" in os.environ  # fewer rounds, for testing this lesson

# %% [markdown]
# ## 1 Numbers
#
# A value has to know how it was computed. Four names are all that the lab will ever ask of yours: `data`, `grad`, `op`,
# `inputs`. This is the *protocol* (协议) of this lesson.
#
# **Predict:** `y = (x * w + 1).log() * x`. How many values will be recorded? How many of them have no inputs? And which value
# gets two contributions in backward?
#
# **Exercise: an engine for numbers.** It may be 50 lines long. `autodiff_lab/micro.py` is a cousin of it, which you can read,
# but it does not keep the names of its operations.

# %% exercise="scalar_engine"

# %% [markdown]
# Now your engine runs the program of the prediction.

# %%
Value = yours(scalar_engine)
if Value:
    x, w = Value(3.0), Value(2.0)
    y = (x * w + 1).log() * x
    y.backward()
    print("value", y.data, " gradients", x.grad, w.grad)

# %% [markdown]
# And this is the lab's picture of *your* record. Nothing in it was computed by the lab: it read `op` and `inputs`.

# %%
if Value:
    display(aw.GraphView(lab_graph(y, x=x, w=w)))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which value gets two contributions, and what would go wrong if its rule ran after the first?
#
# **Expected:** `x`, from `mul` at the end and from `mul` at the beginning. It is not computed, so it has no rule; but a value
# in between that is used twice would send on only a part. So the order is that of the longest ways.

# %% [markdown]
# Compare with your prediction: six or seven values? The plain number 1 is one of them.
#
# ## 2 Arrays
#
# Your rules only multiply and add. NumPy arrays can do that, too. **Predict:** what happens if we give arrays to the engine
# for numbers as it is? `a` has shape (2, 3), `b` has shape (3,).

# %%
if Value:
    a, b = Value(np.ones((2, 3))), Value(np.ones(3))
    try:
        (a * b).backward()
        print("gradient of b:", np.shape(b.grad), "but b:", b.data.shape)
    except Exception as error:
        print("Yours stops at once:", error)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Who should add up: each rule, or the engine? What speaks for the rules?
#
# **Expected:** the engine, once for all ops, so that whoever adds an op cannot forget it. A rule could do it cheaper, without
# making the stretched array first; large frameworks have such rules for a few ops.

# %% [markdown]
# `b` was *stretched*: NumPy used each of its numbers twice. Its gradient must have the shape of `b`, and each number of it is
# the sum of what its two copies get.
#
# Who should do that? If every rule does, it is done wrong somewhere. So the rules of an op are plain formulas, and the
# *engine* brings what they give into shape. Such rules look like this.

# %%
mul = FIRST_OPS["mul"]
left, right = np.ones((2, 3)), np.array([1.0, 2.0, 3.0])
out = mul.forward(left, right)
print(out)
print("what the rule gives to the right one:", mul.gradients[1](np.ones_like(out), out, left, right).shape)
print("the shape rule says:", mul.shape(left.shape, right.shape))

# %% [markdown]
# **Predict:** which of the axes of a (4, 2, 3) gradient are added up for an array of shape (2, 1)?
#
# **Exercise: an engine for arrays.** It takes its ops from a table. So the class is written once, and knows no op by name.

# %% exercise="array_engine"

# %% [markdown]
# Axis 0, which the array lacks, and axis 2, where its size is 1. Look at your own engine doing that:

# %%
Tensor = yours(array_engine, FIRST_OPS)
if Tensor:
    column, row = Tensor([[1.0], [2.0]]), Tensor([1.0, 2.0, 3.0])
    (column * row).sum().backward()
    print(column.grad.tolist(), row.grad.tolist())

# %% [markdown]
# ## 3 A registry
#
# `FIRST_OPS` is a plain dictionary, and anybody may write into it. **Predict:** somebody registers a second `mul`, with one
# gradient rule instead of two. When will the mistake show? And whom will they ask?

# %%
careless = dict(FIRST_OPS)
careless["mul"] = OpRules(lambda x, y: x * y, (lambda g, out, x, y: g * y,), lambda x, y: x)
print("no error so far;", len(careless), "ops, as before")

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** Which mistakes can a registry see at once, and which not?
#
# **Expected:** counts, names and missing parts. Not whether a formula is right: that takes running it, with random numbers
# against differences, as `gradcheck` and the check of section 5 do.

# %% [markdown]
# No error here; it comes at the first backward, far away, or never. A registry is a dictionary that asks questions first.
#
# **Exercise: a registry.**

# %% exercise="new_registry"

# %% [markdown]
# Your class of arrays asks for `ops[name]` and `name in ops`, and your registry answers both. So they fit:

# %%
ops_of_mine = yours(new_registry)
if ops_of_mine is not None:
    for name, rules in FIRST_OPS.items():
        ops_of_mine.register(name, rules.forward, rules.gradients, rules.shape)
    print(list(ops_of_mine), "|", probes.said(lambda: ops_of_mine["mull"]))

# %% [markdown]
# ## 4 A scheduler
#
# What was recorded is also a list of work. Each node waits for its inputs; whoever is ready may run.
#
# **Predict:** four products of two arrays each, added up in pairs, `(ab + cd) + (ef + gh)`. Each operation takes 1 second.
# How long with one worker, with two, with four, with eight?
#
# **Exercise: a scheduler for your record.**

# %% exercise="plan_nodes"

# %% [markdown]
# Your scheduler, on the record of your engine. The lab's validator reads the plan, and says what is illegal in it.

# %%
if Tensor:
    a, b, c, d, e, f, g, h = (Tensor(float(number)) for number in range(1, 9))
    pairs = (a * b + c * d) + (e * f + g * h)
    for workers in (1, 2, 4, 8):
        plan = yours(plan_nodes, pairs, lambda node: 1.0, workers)
        if plan:
            timeline = lab_timeline(pairs, plan, lambda node: 1.0, workers)
            print(workers, "workers:", timeline.makespan, "seconds; faults:", timeline.faults())

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Some of you see 4 seconds with two workers, some 5. Who is wrong?
#
# **Expected:** nobody; both are legal, and no worker is idle while a node is ready. Taking the newest ready node starts a sum
# early and leaves a product for the end. The longest way first gives 4.

# %% [markdown]
# Seven operations: with one worker 7 seconds, with four or more 3, the length of the longest way. With two workers it is 4 or
# 5: that depends on which ready node yours takes first. Which one is better, and why?
#
# ## 5 All together
#
# Nine ops, a registry, a class, a scheduler. When they fit together, it is a framework.
#
# **Predict:** which of your five parts will the check find fault with first?
#
# **Exercise: your framework.** The lab accepts it if it keeps the laws that the lab's own ops have to keep.

# %% exercise="my_framework"

# %% [markdown]
# ## 6 It learns to read
#
# 1,797 real digits, written by 13 people, 8 × 8 pixels. A perceptron with one hidden layer: weights and biases, `@`, `+` and
# `relu`. The loss is the cross-entropy: log Σ exp of the ten scores, minus the score that is wanted.


# %%
def scores(images, w1, b1, w2, b2):
    return (images @ w1 + b1).relu() @ w2 + b2


def loss_of(z, wanted):
    z = z - z.data.max(axis=1, keepdims=True)  # a constant: it changes no gradient, and exp stays small
    ones = np.ones((10, 1))  # z @ ones adds up each row
    return ((z.exp() @ ones).log() - (z * wanted) @ ones).sum() * (1 / len(wanted))


# %% [markdown]
# Look at the loss: only your nine ops. **Predict:** how much of the digits that it has never seen will it read right, after
# eight rounds? Guessing gives 10 %.

# %%
mine = yours(my_framework)
images, labels = datasets.digits()
(train_x, train_y), (test_x, test_y) = datasets.split(images.reshape(-1, 64).astype(float), labels, seed=0)
weights = probes.perceptron(0, 64, 32, 10)  # random numbers: (64, 32), (32,), (32, 10), (10,)
for epoch in range(0 if not mine else 2 if SMALL else 8):
    for some, wanted in datasets.batches(train_x, np.eye(10)[train_y], size=64, seed=epoch):
        tensors = [mine.tensor(one) for one in weights]
        loss = loss_of(scores(some, *tensors), wanted)
        loss.backward()
        weights = [one - tensor.grad for one, tensor in zip(weights, tensors)]
    guesses = scores(test_x, *map(mine.tensor, weights)).data.argmax(axis=1)
    print(f"round {epoch}: loss {float(loss.data):.3f}, reads {np.mean(guesses == test_y):.1%} of the test digits")

# %% [markdown]
# That is real learning, by your code alone. The lab gave the digits.
#
# ## 7 The lab looks at it
#
# From here on your framework is an object like any other for the lab. First its graph, for a small network. `my_matmul` is
# *your* `matmul`: whoever runs the graph calls the functions of your registry. (These cells stay silent until your framework is
# written.)

# %%
if mine:
    random = np.random.default_rng(2)
    small = [random.normal(size=shape).round(1) for shape in ((4, 3), (3, 2), (2,), (2, 1))]
    x, w1, b1, w2 = map(mine.tensor, small)
    result = ((x @ w1 + b1).relu() @ w2).sum()
    graph = lab_graph(result, mine.ops, x=x, w1=w1, b1=b1, w2=w2)
    display(aw.GraphView(graph))

# %% [markdown]
# **Predict:** where does the gradient of `b1` come from, and what is its shape? Now the *lab's* backward runs over *your*
# rules. Step through it.

# %%
if mine:

    def network(x, w1, b1, w2):
        return graph(x, w1, b1, w2)

    display(aw.GradientFlowView(network, *small))

# %% [markdown]
# Two engines, one set of rules. **Predict:** do their gradients agree, and to how many digits?

# %%
if mine:
    result.backward()
    by_the_lab = ad.grad(network, argnums=(1, 2, 3))(*small)
    for name, tensor, gradient in zip(("w1", "b1", "w2"), (w1, b1, w2), by_the_lab):
        print(name, "largest difference", np.abs(tensor.grad - gradient).max())

# %% [markdown]
# Your rules are recorded as ops, too. So forward and backward are one graph, and all that lesson 110 did is possible with it.
# Next, a graph that is worth a schedule: the digits' network on four micro-batches, whose losses are added up. A product of
# matrices takes 5 here, everything else 1.


# %%
def cost(node):
    return 5.0 if node.op == "matmul" else 1.0


if mine:
    parameters = [mine.tensor(one) for one in weights]
    parts = [loss_of(scores(train_x[n::4], *parameters), np.eye(10)[train_y[n::4]]) for n in range(4)]
    total = (parts[0] + parts[1]) + (parts[2] + parts[3])
    by_me = lab_timeline(total, mine.plan(total, cost, 2), cost, 2)
    print(len(by_me), "tasks; what the validator finds:", by_me.faults())

# %% [markdown]
# **Predict:** your scheduler takes any ready node; the lab's `critical_path` takes the one with the longest way to the end.
# How far apart are they with two workers? Your plan is the upper one.

# %%
if mine:
    by_the_lab = schedule.simulate(by_me.tasks, 2, "critical_path")
    display(aw.TimelineView(by_me, by_the_lab))

# %% [markdown]
# Last, the whole training step, forward and backward, in *real* time: two threads of the lab's executor call your functions.

# %%
if mine:
    graph = lab_graph(total, mine.ops, **dict(zip(("w1", "b1", "w2", "b2"), parameters)))

    def training(w1, b1, w2, b2):
        return graph(w1, b1, w2, b2)

    joint = ad.record(ad.value_and_grad(training, argnums=(0, 1, 2, 3)), *weights)
    tasks = schedule.from_graph(joint)
    outputs, real = schedule.run(tasks, dict(zip(("w1", "b1", "w2", "b2"), weights)), workers=2)
    total.backward()
    apart = [np.abs(outputs[name] - one.grad).max() for name, one in zip(list(outputs)[1:], parameters)]
    print(f"{len(tasks)} tasks in {1000 * real.makespan:.1f} ms; largest difference {max(apart):.1e}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The lab never saw your class. What did it use?
#
# **Expected:** `data`, `op`, `inputs`, and the three functions of each op. From these it made a graph of its own, in which each
# op calls the student's functions, and everything else in the lab works on graphs.

# %% [markdown]
# The gradients agree but for rounding: the two sweeps add up in different orders.
#
# **Think about it:** what does your framework lack? It keeps every array until the result is forgotten, though most rules
# need few (lesson 30). It has one dtype and one device (lesson 70). Its rules are NumPy, so a gradient has no gradient
# (lesson 20). It makes an array for every step, and plans no memory (lesson 90). Each of these is a chapter of a large
# framework, and none of them changes the picture: record, rules, order.
#
# ## Summary
#
# * A framework is a record, rules and an order. `data`, `grad`, `op` and `inputs` are enough to draw, check, sweep and
#   schedule it.
# * A sweep needs nothing but inputs and rules: the same few lines served numbers and arrays.
# * Stretching is undone in one place: add up what a number's copies get.
# * A registry refuses a mistake where it is made. Who looks an op up when it is called can be extended by others.
# * A topological order says who waits; a ready queue uses everybody who does not.
# * What keeps to a small protocol can be looked at, checked and run by tools that never heard of it.
#
# ## Exercises
#
# 1. *scalar_engine*: section 1, checked.
# 2. *array_engine*: section 2, checked.
# 3. *new_registry*: section 3, checked.
# 4. *plan_nodes*: section 4, checked. Which ready node does yours take first? Try the longest way to the end.
# 5. *my_framework*: section 5, checked.
# 6. Register an op of your own, `mine.ops.register("swish", …)`, and put it in place of `relu`. Does it read better?
# 7. Let each value keep only what its rules need. What do you have to ask an op for that? (Lesson 60 has an answer.)
# 8. Write your rules with the operations of your class instead of NumPy's. What is now possible, and what does it cost?
#
# Where do you stand?

# %%
progress()
