"""Lesson 110, overlap: forward and backward planned together, on two workers, on streams and in a pipeline, and its price.

After: 30_reverse_mode, 90_resources.
Machine: section 4 measures for up to 40 seconds; where the machine is too busy it simulates and says so.
"""

# %% [markdown]
# # Forward and backward at the same time?
#
# **The question:** backward is more work than forward, and it comes last. Does it have to? A lecturer tuned a Transformer:
# overlapping (重叠) parts of forward and backward gained 30 %. Where can such a gain come from, what does it cost, and is it
# true?
#
# By the end you can
#
# * say when each task of the backward pass may begin at the earliest, and why not sooner,
# * put the tasks of a training step on two streams (流), with events (事件) for every order that matters,
# * find the hazard (冒险) that a list of dependencies leaves open,
# * say why overlap changes the time, the memory, and *not* the numbers,
# * compute the bubble (气泡) of a pipeline (流水线) of micro-batches (微批次).
#
# The lesson takes 60 to 90 minutes. You need lesson 80: ready queue, policy, critical path. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Three tasks for each layer | 8 |
# | 2 When may backward begin? | 12 |
# | 3 One plan for all micro-batches | 8 |
# | 4 Is it true of a real Transformer? | 10 |
# | 5 Who has to wait, and for what reason | 14 |
# | 6 Two streams | 14 |
# | 7 The price is memory | 6 |
# | 8 A pipeline | 14 |
#
# **What must come across:** dW fills gaps, since nobody waits for it. A gain is a gain over a baseline. Overlap changes
# when something runs, never what it waits for.
#
# **If time is short, leave for home:** section 8 after the table, and `two_streams` as homework.

# %%
import os

import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import claims, schedule

SMALL = "AUTODIFF_LAB_SMALL" in os.environ  # smaller sizes and less patience, for testing this lesson

# %% [markdown]
# ## 1 Three tasks for each layer
#
# A layer gives three tasks. **F** computes its output. **dX** is the gradient of its input, and hands it on to the layer below.
# **dW** is the gradient of its own weights. Here they are for two layers; `F1.0` is layer 1, micro-batch 0.
#
# **Predict:** whom does `dW1.0` wait for? And who waits for `dW1.0`?

# %%
small = schedule.training_step(2)
for task in small:
    print(f"{task.name:6} waits for", ", ".join(small.name(other) for other in small.predecessors[task.id]) or "nobody")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Who waits for a dW?
#
# **Expected:** nobody (but the update, in section 5). F and dX are chains, so of these only one runs at a time within a
# micro-batch; a dW can fill any gap.

# %% [markdown]
# Nobody here waits for a dW. F is a chain, and so is dX: of these only one can run at a time. Every dW can fill a gap, whenever
# there is one.
#
# Play it. There are two layers, two micro-batches and two workers, and every task takes one second. **Predict** at each step
# what starts next.

# %%
aw.ReadyQueueView(schedule.training_step(2, micro_batches=2), 2, "critical_path", predict=True)

# %% [markdown]
# ## 2 When may backward begin?
#
# Two beliefs are common. "Backward begins when forward is over" is too careful: *which* forward? "Backward may begin any time"
# is too bold: a slope is taken at a value, so dX and dW need what F has computed. What counts is the graph.
#
# **Exercise: earliest backward.**

# %% exercise="earliest_backward"

# %% [markdown]
# ## 3 One plan for all micro-batches
#
# A large batch is often cut into micro-batches, whose gradients are added up. The usual loop is: forward, backward, forward,
# backward, … The lab calls this policy `loop`: inside of each pass a ready queue keeps both workers as busy as it can, and a
# pass begins when the one before it is over.
#
# **Predict:** three layers, four micro-batches, every task takes 1, two workers. How long does the loop take? And what is the
# least that is possible at all? (Count the tasks.)

# %%
step = schedule.training_step(3, micro_batches=4)
looped, joint = (schedule.simulate(step, 2, policy) for policy in ("loop", "critical_path"))
aw.TimelineView(looped, joint)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** Three layers, four micro-batches, two workers: how long does the loop take, and what is the
# least at all?
#
# **Expected:** the loop 24: for each layer and micro-batch 1 for F alone, then 1 for dX with dW beside it. There are 36
# tasks, so two workers need at least 18: a third faster, at best.

# %% [markdown]
# In the upper timeline the second worker has nothing to do in a forward pass: forward is a chain. In the lower one another
# micro-batch goes backward just then. In round numbers, for each layer and micro-batch: the loop takes 1 for F, which is alone,
# and 1 for dX with dW beside it. That is 2. But they are three tasks for two workers, which is 1.5: a third faster, at best.
#
# **Predict:** how large is the gain with *one* micro-batch? And with two, or eight?

# %%
for micro_batches in (1, 2, 4, 8):
    some = schedule.training_step(3, micro_batches=micro_batches)
    gain = schedule.simulate(some, 2, "critical_path").speedup_over(schedule.simulate(some, 2, "loop")) - 1
    print(f"{micro_batches} micro-batches: {gain:4.0%}")

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** How large is the gain with one micro-batch?
#
# **Expected:** none: there is no other forward pass to overlap with. The graph has to have something to do; no policy can
# make it up.

# %% [markdown]
# One micro-batch gains nothing: there is no other forward pass to overlap with. It is not the policy that is clever, it is the
# graph that has something to do.
#
# ## 4 Is it true of a real Transformer?
#
# The same on your machine: forward and backward of a stack of Transformer blocks, every operation on a real thread, two
# workers. We compare one joint plan with the loop, and with operation after operation as an eager framework issues them. Where
# your machine is too busy to measure, the lab simulates with measured costs, and says so.
#
# **Predict:** more or less than a third?

# %%
layers, width, seconds = (1, 32, 2) if SMALL else (4, 256, 40)
four = claims.transformer(layers, width, 4)
claims.examine(claims.CLAIMS["H2"], four, 5, seconds)

# %% [markdown]
# And the result that nobody publishes, the same with one micro-batch:

# %%
claims.examine(claims.CLAIMS["H2"], claims.transformer(layers, width, 1), 5, seconds)

# %% [markdown]
# Put both beside each other. "The gain over the loop" is overlap of passes, and without a second micro-batch it is about
# nothing (measured figures scatter around that). "The gain over issuing op after op" also counts operations that pass each
# other inside of one pass. So the claim is true, *over that baseline, for that graph*. Whoever says 30 % has to say of what.
#
# **Predict:** after so much reordering, are the gradients the same?

# %%
results = [schedule.run(four.tasks, four.values, 2, policy)[0] for policy in ("in_order", "loop", "critical_path")]
print(all(np.array_equal(one[name], results[0][name]) for one in results for name in results[0]))

# %% [markdown]
# Bit by bit. That is no luck. Each operation gets the same inputs, whenever it runs. But what about the *sum* of gradients over
# micro-batches? In floating point the order of additions matters:

# %%
print((0.1 + 0.2) + 0.3 == 0.1 + (0.2 + 0.3))

# %% [markdown]
# The sums stay the same since the graph keeps their order: each dW adds to what the one before it has written, so it waits
# for it. Overlap changes *when* something runs, and never *what it waits for*.
#
# ## 5 Who has to wait, and for what reason
#
# With a list of names you can see every reason. Weights are updated in place here, for two micro-batches of one layer.
#
# **Predict:** `update0` writes the weights `w0`. Whom must it wait for, beside the gradients?

# %%
updated = schedule.training_step(1, micro_batches=2, update=1.0)
for one in updated.dependencies():
    print(f"{updated.name(one.target):8} waits for {updated.name(one.source):6} {one.reason:17} of {one.value}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The update writes the weights. Whom must it wait for, beside the gradients?
#
# **Expected:** for everybody who still *reads* the weights: F and dX. Write after read is the kind that people forget, and
# the result is right on most days.

# %% [markdown]
# There are three kinds. *Read after write* is what everybody thinks of. *Write after read*: an update must not overwrite the
# weights while somebody still reads them. *Write after write*: the last one must come last. Forget one, and the result is
# right on most days.
#
# **Exercise: the missing edges.**

# %% exercise="missing_edges"

# %% [markdown]
# ## 6 Two streams
#
# A GPU does not ask a ready queue. The host hands work over to **streams**: inside a stream everything keeps its order,
# between streams nothing does. Order between them is kept by **events**: one stream leaves an event, the other waits for it.
# Too few events are a hazard; too many, and nothing overlaps.
#
# **Exercise: two streams.**

# %% exercise="two_streams"

# %% [markdown]
# ## 7 The price is memory
#
# What F computes is kept until dX and dW have used it. Who starts many micro-batches early keeps many of them.
#
# **Predict:** four layers, eight micro-batches, two workers. The policy `backward_first` prefers dX and dW to any F; the
# `critical_path` takes the longest way first. Which is faster? Which needs less memory?

# %%
large = schedule.training_step(4, micro_batches=8)
aw.MemoryView(*(schedule.simulate(large, 2, policy) for policy in ("critical_path", "backward_first")))

# %% [markdown]
# Here are the figures, with the loop beside them:

# %%
for policy in ("loop", "critical_path", "backward_first"):
    timeline = schedule.simulate(large, 2, policy)
    print(f"{policy:15} makespan {timeline.makespan:3.0f}   peak {timeline.peak:3.0f} bytes")

# %% [markdown]
# Both plans are equally fast, and one of them needs less than half of the memory. The loop needs least, and is slowest.
# Backward first is a good rule: it ends what was begun.
#
# ## 8 A pipeline
#
# A model that is too large for one device is cut into **stages**. Micro-batches flow through them like cars through a factory.
# A stage that waits for its first or after its last micro-batch does nothing: that is the **bubble**.
#
# **Predict:** four stages, four micro-batches. Before you look: where is the bubble of the last stage, and where that of the
# first?


# %%
def pipelined(stages, micro_batches, policy="backward_first", splits=False):
    devices = [f"gpu{stage}" for stage in range(stages)]
    step = schedule.training_step(stages, micro_batches, devices=devices, splits=splits)
    return schedule.simulate(step, schedule.pipeline(stages), policy)


aw.TimelineView(pipelined(4, 4))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Where is the bubble of the first stage, and where that of the last? What makes it smaller?
#
# **Expected:** the first waits in the middle, until the first gradient comes back; the last at the beginning and at the
# end. More micro-batches make the bubble smaller, more stages larger: (p − 1) / (m + p − 1).

# %% [markdown]
# Filling at the beginning, draining at the end. **Predict:** how does the bubble change with more micro-batches? With more
# stages?

# %%
for stages in (2, 4, 8):
    bubbles = [f"{1 - pipelined(stages, micro_batches).utilisation:4.0%}" for micro_batches in (1, 2, 4, 8, 16)]
    print(f"{stages} stages, 1 2 4 8 16 micro-batches:", " ".join(bubbles))

# %% [markdown]
# **Exercise: the bubble.** Find the law behind the table.

# %% exercise="pipeline_bubble"

# %% [markdown]
# Is that the end of it? Until now one task did dX and dW together. Split, dX can hurry on to the stage before, and dW fills
# the gaps. The policy `zero_bubble` prefers dX, then F, then dW. **Predict:** how much of the bubble is left?

# %%
for policy, splits in (("backward_first", False), ("zero_bubble", True)):
    timeline = pipelined(4, 4, policy, splits)
    print(f"{policy:15} makespan {timeline.makespan:3.0f}   bubble {1 - timeline.utilisation:.0%}")

# %% [markdown]
# The law of the exercise is right for the tasks that it speaks of. Other tasks, another law: look at the graph first.
#
# ## Summary
#
# * A layer gives F, dX and dW. F and dX are chains; nobody waits for dW but the update, so it fills gaps.
# * A backward task may begin when all that it needs is there: not at any time, and not only when all of forward is over.
# * Several micro-batches planned together overlap one's forward with another's backward. A third is the most that two workers
#   gain over the loop; with one micro-batch there is nothing to gain.
# * Dependencies come from reads and writes: read after write, write after read, write after write. Keep them all, and no plan
#   changes a number.
# * Streams keep their own order only. Events keep the order between them: each that is needed, and no more.
# * Overlap costs memory. Backward first keeps few micro-batches alive.
# * The bubble of a pipeline shrinks with more micro-batches and grows with more stages.
#
# ## Exercises
#
# 1. *earliest_backward*: section 2, checked.
# 2. *missing_edges*: section 5, checked. Which of the three kinds could be avoided by using more memory?
# 3. *two_streams*: section 6, checked. Find a wait that you can leave out, since another one makes it certain already.
# 4. *pipeline_bubble*: section 8, checked. How many micro-batches do 8 stages need for a bubble below 10 %?
# 5. Give dW a cost of 0, then of 3: `schedule.training_step(3, 4, dw=3.0)`. Predict the gain of section 3, then compute it.
# 6. Draw `pipelined(4, 8, policy)` for three policies with `splits=True`. Which is the fastest, which keeps the fewest
#    micro-batches alive? Is it the same one?
#
# Where do you stand?

# %%
progress()
