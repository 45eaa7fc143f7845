"""Lesson 100, shape inference and fusion: shapes without data, groups that run as one loop, and what one wrong rule costs.

After: 60_registering_an_op.
"""

# %% [markdown]
# # What does one wrong shape rule cost?
#
# **The question:** a team's shape function (形状函数) lost a dimension while the graph was built. Every result stayed right,
# every test passed, and performance halved. How can a rule that no number depends on cost half the speed? And is it true?
#
# By the end you can
#
# * follow shapes through a graph without any data (形状推导), also where a size is not known yet,
# * write a shape rule that says what is certain, and no more,
# * find the op whose rule lost a size, among all those that suffer from it,
# * say which neighbours become one kernel by operator fusion (算子融合), and for each border the reason,
# * measure what a wrong rule costs on your machine, and say where it costs nothing,
# * give results buffers, and use each buffer again as early as possible.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Shapes without data | 16 |
# | 2 Who lost it? | 12 |
# | 3 Neighbours become one kernel | 18 |
# | 4 What the wrong rule costs | 14 |
# | 5 Where it costs nothing | 8 |
# | 6 A plan, and its memory | 16 |
#
# **What must come across:** A shape rule never decides a number. It decides what may be decided before the numbers come:
# groups, buffers, plans. What is not known then cannot be planned, and so a rule can be wrong for years without anybody
# noticing.
#
# **If time is short, leave for home:** section 5, and `form_groups` as homework.

# %%
import os

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import faults, ops, shape_claims

SMALL = "AUTODIFF_LAB_SMALL" in os.environ  # smaller sizes and less patience, for testing this lesson

# %% [markdown]
# ## 1 Shapes without data
#
# While a graph is recorded nothing is computed. Each op's *shape rule* is asked: "your operands have these shapes; what shape
# has your result?" So all shapes are known before the first number is there.
#
# **Predict:** `x` has shape (64, 784), `w` (784, 10), `b` (10,). What are the shapes of the product, of the sum, and of the
# total of each row?


# %%
def scores(x, w, b):
    return ops.tanh(x @ w + b).sum(axis=1)


graph = ad.record(scores, np.zeros((64, 784)), np.zeros((784, 10)), np.zeros(10))
aw.ShapeInferenceView(graph, predict=True)

# %% [markdown]
# The batch is 64 today, and another number tomorrow. Give the size a *name* instead. **Predict:** how far does the name
# travel? Which op ends its way?

# %%
print(ad.infer_shapes(graph, {"x": ("batch", 784)}))

# %% [markdown]
# The name arrives at the result, though no rule was ever written for names. The lab asks each rule several times, with
# different sizes in the unknown's place: what is the same every time is known, and what always equals the size put in bears
# its name.
#
# **Predict:** and if the *second* size of `x` is 700 instead of 784? Where does it stop, and what will the error say?

# %%
aw.ShapeInferenceView(graph, shapes={"x": ("batch", 700)})

# %% [markdown]
# It stops at the first op that no size can make right, and names the line of *your* code. Without shape rules the error would
# come when it runs, from inside of a kernel, perhaps after an hour of loading data.
#
# "Shapes are only for error messages" is a common belief. Sections 3 to 6 are about everything else they are for. First write
# a rule yourself, for sizes that may be unknown.
#
# **Exercise: a shape rule for broadcasting.**

# %% exercise="broadcast_unknown"

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** An unknown size meets a 5. What is the result? And if it meets a 1?
#
# **Expected:** 5, since the unknown one can only be 5 or 1; beside a 1 the result is unknown. Many say "unknown" both times.
#
# **If nobody comes to it:** let them name three sizes that the unknown one could have, and try each.

# %% [markdown]
# ## 2 Who lost it?
#
# A rule may also give up. Here `square`'s rule forgets how many axes there are: it says "of unknown rank". Everything is
# recorded as before, and computes the same numbers: an op on arrays never asks the rule.
#
# **Predict:** four ops follow `square`. The rules of all four are right. How many of them have a known shape?


# %%
def curve(x):
    return ops.exp(ops.tanh(ops.square(x) * 0.5 + 1.0))


x = np.linspace(-1, 1, 12).reshape(3, 4)
with faults.lost_dimension("square", axis=None):
    broken = ad.record(curve, x)
    view = aw.ShapeInferenceView(broken)
view

# %% [markdown]
# None. A right rule that is asked about an unknown shape can only answer "unknown". So the damage shows everywhere, and the
# fault is in one place: where an op's result is unknown although its operands are known.
#
# **Predict:** are the numbers of the two graphs equal?

# %%
print("equal numbers:", np.array_equal(broken(x), ad.record(curve, x)(x)))
with faults.lost_dimension("square", axis=None):
    print(*[line for line in str(ad.opcheck(ops.square)).splitlines() if "✗" in line], sep="\n")

# %% [markdown]
# No test of numbers finds it. One check does: it asks the rule and the kernel the same question.
#
# **Exercise: who is to blame?**

# %% exercise="to_blame"

# %% [markdown]
# ## 3 Neighbours become one kernel
#
# Run one by one, every op reads its operands from memory and writes its result there. For `a * b + c` the product goes out to
# memory and comes straight back. *Fusion* makes one loop of both: the product stays in a register.
#
# Two neighbours may share a loop if both work number by number, over one shape that is *known*, and if nothing between them
# has to wait. Here is a layer: a product of matrices, then eleven elementwise ops.
#
# **Predict:** how many kernels will there be?

# %%
layer = ad.record(shape_claims.gelu_layer, *shape_claims.Setting(rows=8, width=4).arguments())
aw.FusionView(layer)

# %% [markdown]
# Two: the product, and everything else. Play it pair by pair, or select an edge to see why it is a border.
#
# **Predict:** now the rule of one op forgets the shape. How many kernels are there if it is `square`, the second of the
# eleven? And if it is `tanh`, the seventh?

# %%
for op in ("square", "tanh"):
    with faults.lost_dimension(op, axis=None):
        wrong = ad.fuse(ad.record(shape_claims.gelu_layer, *shape_claims.Setting(8, 4).arguments()))
    print(f"{op}: {wrong.kernels_before} kernels before, {wrong.kernels_after} after")
    print(*[f"   {pair.text}" for pair in wrong.neighbours if pair.reason == "unknown shape"][:2], sep="\n")

# %% [markdown]
# One wrong rule, and fusion is off from there to the end. What stands *before* it is joined as ever. Each border says why it
# is there, and points at the rule.
#
# An unknown shape is one reason of several. **Predict** for each function below whether all of its ops are joined, and if
# not, why not.

# %%
tried = {
    "two elementwise ops": lambda x: ops.exp(x) * 2.0,
    "a product of matrices": lambda x: ops.exp(x) @ x,
    "a larger result": lambda x: ops.exp(x[:, :1]) + x,
    "a sum, read later": lambda x: ops.exp(ops.exp(x).sum(axis=1)),
    "a sum in between": lambda x: (e := ops.exp(x)) - e.mean(),
}
for name, f in tried.items():
    pairs = ad.fuse(ad.record(f, np.ones((4, 4)))).neighbours
    print(name)
    print(*[f"    {pair.reason}: {pair.text}" for pair in pairs if not pair.joined] or ["    all joined"], sep="\n")

# %% [markdown]
# **Exercise: form the groups.** It is harder than it looks: a group must never wait for itself.

# %% exercise="form_groups"

# %% [markdown] tags=["instructor"]
# **Ask the class (4 minutes).** `e = exp(x)`, `s = sum(e)`, `d = e / s`. Why can `exp` and `div` not share a loop?
#
# **Expected:** `div` needs the whole sum, and the sum needs all of `exp`. In one loop the first round would need the result
# of the last one.
#
# **If nobody comes to it:** let them write the loop in Python, for three numbers.

# %% [markdown]
# ## 4 What the wrong rule costs
#
# Count first. **Predict:** each kernel reads its operands and writes its result. How many times as much memory do eleven
# kernels move as one?


# %%
def moved(fusion):
    nodes = fusion.graph.nodes
    groups = [group for group in fusion.groups if nodes[group.nodes[0]].op.elementwise]
    total = sum(nodes[i].nbytes for group in groups for i in (*group.inputs, *group.outputs))
    return f"eleven elementwise ops: {len(groups)} kernels read and write {total} bytes"


with faults.lost_dimension("square", axis=None):
    alone = ad.fuse(ad.record(shape_claims.gelu_layer, *shape_claims.Setting(8, 4).arguments()))
print(moved(ad.fuse(layer)), moved(alone), sep="\n")

# %% [markdown]
# Counted, so the same on every machine. Seconds are not: they depend on the caches, and on how a fused loop runs. The lab has
# two ways: NumPy's functions **in blocks** that stay in the cache, and one loop that Numba **compiles**, where it is
# installed.
#
# **Predict:** with four million activations and a width of 128, how many times as long does the layer take with the wrong
# rule of `square`? And with that of `tanh`?
#
# Both versions run in turn. Where your machine is too busy to measure, the lab takes the time of the processor, and says so.

# %%
rows, seconds = (512, 0.3) if SMALL else (32768, 4.0)
for op in ("square", "tanh"):
    cost = shape_claims.cost_of_wrong_rule(shape_claims.Setting(rows, 128, op), 5, seconds)
    print(cost, "\n")

# %% [markdown]
# Every number of the two results is the same, to one part in a million. Is the ratio near two? The eleven ops alone lose far
# more than that; the product of matrices, which is the same in both, dilutes it.
#
# And now the same with blocks instead of a compiled loop:

# %%
shape_claims.cost_of_wrong_rule(shape_claims.Setting(rows, 128, "square", "blocked"), 5, seconds)

# %% [markdown]
# Blocks save the way to memory, and nothing else: each function of NumPy still runs over its block, and `tanh` alone takes a
# good part of the time, fused or not. A compiled loop also keeps what is in between in registers, and computes a `tanh` for
# eight numbers at once. So "half the speed" is a statement about a rule, *and* about how good the fusion is that it switches
# off. The better a compiler, the more a wrong rule costs.

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** The team's tests all passed. Which test would have found the wrong rule?
#
# **Expected:** one that compares the rule with the kernel (`opcheck`), or one that counts kernels. Tests of numbers cannot.
#
# **If nobody comes to it:** ask who reads the rule when `ops.square(x)` is called on an array. Nobody.

# %% [markdown]
# ## 5 Where it costs nothing
#
# **Predict:** does the ratio grow or fall with the width? And with the number of activations?

# %%
widths, sizes = (
    ((32, 128), (1 << 12, 1 << 14)) if SMALL else ((64, 128, 256, 512), (1 << 14, 1 << 17, 1 << 20, 1 << 22))
)
costs = shape_claims.region(widths, sizes, 5, 0.1 if SMALL else 1.0)
aw.ShapeCostView(costs)

# %% [markdown]
# A product of matrices of width *d* does 2 *d* operations for each activation; the eleven ops do eleven, whatever *d* is. So
# the wider the layer, the less of the time is left to lose, and the ratio falls towards 1. Small arrays stay in the cache,
# where the way to memory is short; there it depends on what starting a kernel costs.
#
# "A wrong rule halves the speed" is true for a narrow layer with many activations. Whoever says it has to say of what.
#
# ## 6 A plan, and its memory
#
# A graph with groups is not yet a program. A *plan* also decides where each result lies. A value lives from the step that
# writes it to the last one that reads it. After that its buffer is free.
#
# **Predict:** a layer, twice. There are seven ops, and six results in between. How many buffers do these six need?


# %%
def twice(x, w):
    return ops.tanh(ops.tanh(x @ w * 0.5) @ w * 0.5) @ w


plan = ad.plan(ad.record(twice, np.ones((64, 32)), np.ones((32, 32))))
aw.PlanView(plan)

# %% [markdown]
# An elementwise op may even write over its own operand, if nobody reads that again: *in place*. A product of matrices may
# not: it would overwrite a row that it still needs. Here is the whole plan as text, and what it saves.

# %%
print(plan)

# %% [markdown]
# **Exercise: place results in buffers.** Here no op works in place.

# %% exercise="place_in_buffers"

# %% [markdown]
# All of this is one call: `ad.compile(f)` records, infers, fuses, plans, and keeps the plan for the next call with arguments
# of the same shapes. **Predict:** how many plans are there after the three calls below?

# %%
fast = ad.compile(ad.value_and_grad(lambda x, w: ops.square(twice(x, w)).mean()))
w = np.ones((8, 8)) / 8
for rows in (4, 4, 6):
    loss, slope = fast(np.ones((rows, 8)), w)
print(len(fast.plans), "plans")

# %% [markdown]
# ## Summary
#
# * A **shape rule** says a result's shape from its operands' shapes, without data. Names of unknown sizes travel through any
#   rule.
# * A rule that **loses** a size changes no number. All that follows is unknown too; to blame is the one op whose operands
#   were known.
# * **Fusion** joins neighbours that work number by number over one known shape, unless a group would wait for itself.
# * One wrong rule switches fusion off for everything behind it. What that costs depends on the fused loop, on the width of
#   the products beside it, and on the cache.
# * A **plan** gives each result a buffer, and uses it again after the last reader.
# * Tests of numbers do not see any of this. `opcheck` compares the rule with the kernel.
#
# ## Exercises
#
# 1. *broadcast_unknown*: section 1, checked.
# 2. *to_blame*: section 2, checked.
# 3. *form_groups*: section 3, checked. Find a graph for which there are two different answers, both right.
# 4. *place_in_buffers*: section 6, checked. What changes if elementwise ops may work in place?
# 5. Break the rule of `add` instead of `square` (section 3), which the layer uses several times. Predict the groups.
# 6. `ad.fuse(graph, write_shared=False)` does not join a value that two groups read. When is that better, when worse?
#
# Where do you stand?

# %%
progress()
