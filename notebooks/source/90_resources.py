"""Lesson 90, resources: devices that ops compete for, transfers, utilisation and its bound, and memory over time.

After: 80_scheduling.
"""

# %% [markdown]
# # What does an operation take?
#
# **The question:** the monitor says that the GPU is 100 % busy, and yet the training is slow. Or it is fast, and stops after
# an hour with *out of memory*. What do operations compete for, besides time?
#
# By the end you can
#
# * say what happens when several operations compete for one device,
# * decide where an operation should run, and count the way of its data in,
# * read a utilisation (利用率) with the bound beside it, and say why "100 % busy" proves little,
# * compute how much memory lives at each moment, and when a result may be freed,
# * find an order that fits where another one runs out of memory.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Several operations, one device | 8 |
# | 2 Which device? | 14 |
# | 3 How busy is busy? | 16 |
# | 4 Memory | 18 |
# | 5 The order decides | 20 |
# | 6 On your machine | 10 |
#
# **What must come across:** Ask what a percentage is a percentage of. A value lives until its last reader is done, and the
# order decides how many live at once.
#
# **If time is short, leave for home:** section 6, and `under_a_cap` as homework.

# %%
import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import ops, schedule
from autodiff_lab.schedule import Machine, Resource, Task

# %% [markdown]
# ## 1 Several operations, one device
#
# A *resource* (资源) is what a task takes while it runs. A small GPU here has four units. A kernel takes as many of them as it
# *demands*, so several kernels may share the device, as long as their demands fit.
#
# **Predict:** `big` demands 3 units, `mid` 2, the small ones 1 each. They stand in line in this order. Which of them run
# together at time 0? Who has to wait, and for whom?

# %%
gpu = Machine((Resource("gpu", "cuda", capacity=4),))
kernels = {
    "big": Task(cost=2, demand=3),
    "mid": Task(cost=3, demand=2),
    "small1": Task(cost=2),
    "small2": Task(cost=2),
}
aw.ReadyQueueView(kernels, gpu, "fifo", predict=True)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Four units; big demands 3, mid 2, the small ones 1. Who runs at time 0?
#
# **Expected:** big and small1. mid stands before small1 in the line and does not fit, so it waits; small1 fits and passes
# it.

# %% [markdown]
# `mid` stands before `small1` in the line, and does not fit; `small1` fits, and goes first. That is what the lab does when
# several compete: it asks the ready tasks in the order of the policy, and each starts if what it needs is free. Who waits is
# told, with the reason:

# %%
with ad.listen() as heard:
    timeline = schedule.simulate(kernels, gpu, "fifo")
names = list(kernels)
for event in heard:
    if type(event) is ad.events.ResourceAwaited:
        print(f"at {event.time}: {names[event.task]} waits, {event.cause}; {names[event.blocker]} has what it needs")

# %% [markdown]
# There are four causes: the device is `busy`; the `memory` is full; a value is still on its way (`transfer`); or the `policy`
# chose to wait.
#
# ## 2 Which device?
#
# Now a processor, and a GPU that computes ten times as fast. Values travel between them. **Predict:** the chain below has two
# heavy products and a light step between them. On which device should the light step run?

# %%
machine = schedule.cpu_and_gpu(gpu_speed=10, alpha=2.0, beta=0.0)
chain = {
    "load": Task(cost=1, on="cpu", nbytes=1),
    "product": Task(cost=30, after=["load"], nbytes=1),
    "light": Task(cost=1, after=["product"], nbytes=1),
    "another": Task(cost=30, after=["light"], nbytes=1),
    "save": Task(cost=1, on="cpu", after=["another"]),
}
aw.TimelineView(schedule.simulate(chain, machine, "heft"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** On which device should the light step run?
#
# **Expected:** on the GPU, where its data are. Alone it would be as fast on the CPU, but the two journeys cost 4 seconds.

# %% [markdown]
# It runs where its data are. Alone it would be as fast on the CPU, but two journeys of 2 seconds would be added. A transfer
# has a fixed part, `alpha`, for getting going, and a part per byte, `beta`:

# %%
for nbytes in (1_000, 1_000_000, 1_000_000_000):
    link = schedule.Transfer(alpha=1e-5, beta=1 / 12e9)
    print(f"{nbytes:>13,} bytes: {link.time(nbytes) * 1e3:8.3f} ms, of which alpha is {1e-5 / link.time(nbytes):4.0%}")

# %% [markdown]
# So a small value costs almost as much as one a hundred times as large. (The numbers are those of an ordinary slot, about 12
# GB a second.)
#
# **Exercise: place the ops.** A chain again, and all placements cannot be tried. **Predict:** is it enough to decide op by
# op?

# %% exercise="place_ops"

# %% [markdown]
# ## 3 How busy is busy?
#
# The *utilisation* is the part of the time in which devices did work. There are several ways to fool oneself with it.
#
# **Predict:** eight small kernels, one unit each. One policy runs them one after the other, one side by side. A monitor that
# asks "does any kernel run now?" shows for both … what?

# %%
small = {f"k{i}": Task(cost=1) for i in range(8)}
aw.TimelineView(schedule.simulate(small, gpu, "serial"), schedule.simulate(small, gpu, "fifo"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** What does a monitor show that asks "does any kernel run now?"
#
# **Expected:** 100 % for both, though the first uses a quarter of the units and takes four times as long.

# %% [markdown]
# 100 % for both: at every moment something runs. Many monitors of GPUs measure just that. Of the *units* the first one uses a
# quarter, and takes four times as long. Ask what a percentage is a percentage **of**.
#
# And even if all units are busy: busy with what? **Predict:** two programs with the same result. The second one computes `h`
# again for each of its two readers, so as not to keep it. Which one has the higher utilisation? Which one is faster?

# %%
once = {"h": Task(cost=4), "a": Task(cost=2, after=["h"]), "b": Task(cost=2, after=["h"])}
again = {
    "h": Task(cost=4),
    "h'": Task(cost=4),
    "a": Task(cost=2, after=["h"]),
    "b": Task(cost=2, after=["h'"]),
}
for program in (once, again):
    print(schedule.simulate(program, 2, "fifo"))

# %% [markdown]
# The second one uses 100 %, the first 67 %, and both take 6 seconds. A high utilisation says that the workers work; the
# makespan says when you are done.
#
# Then the other way round. **Predict:** the first program uses 67 %. Is its scheduler to blame?

# %%
timeline = schedule.simulate(once, 2, "critical_path")
print(f"used {timeline.utilisation:.0%}, and no schedule of it could use more than {timeline.bound:.0%}")

# %% [markdown]
# No: with W all work, m workers and CP the critical path, nobody uses more than W / (m · CP). Below the bound the *scheduler*
# can be better. At the bound only another *graph* helps: more that can run side by side.
#
# **Exercise: how busy.** Both numbers, from a schedule.

# %% exercise="how_busy"

# %% [markdown]
# ## 4 Memory
#
# A result takes memory from the start of the task that makes it until its **last** reader is done. Somebody must know when
# that is. Python counts references; a scheduler counts readers.
#
# **Predict:** four layers forward, then backward. Each layer's activation has 1 byte. The backward step of a layer reads the
# activation of the layer before. When is memory fullest: at the beginning, in the middle, or at the end?

# %%
step = schedule.training_step(4, gradient=0.0)
aw.MemoryView(schedule.simulate(step, 1, "in_order"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** When is memory fullest in a training step?
#
# **Expected:** at the turning point from forward to backward. From there on each backward step frees what it was the last
# to read. Usual wrong answer: at the end.

# %% [markdown]
# In the middle, where forward turns into backward. Memory is **not** freed at the end: from the turning point on, each
# backward step frees what it was the last to read. (`gradient=0.0` leaves the gradients of the weights out of the picture;
# they are kept for the update.)
#
# Freeing too late wastes memory. Freeing too early is worse. Below, memory has places `A`, `B`, `C`. The number in `A` has
# two readers. **Predict:** what comes out if its place is given away after the first one?


# %%
def run_with(place_of_z):
    memory = {}
    memory["A"] = 3.0  # x
    memory["B"] = memory["A"] * 2  # y: the first reader of x
    memory[place_of_z] = memory["B"] + 1  # z
    return memory["A"] * memory[place_of_z]  # x * z: the second reader of x


print("a place of its own:", run_with("C"), "   the place of x:", run_with("A"))

# %% [markdown]
# No error, a wrong number: a *use after free* (释放后使用). The second reader of `x` found something else in its place. Every
# framework that reuses memory has to know *all* readers before it frees, and that is once more the graph.
#
# **Exercise: peak memory.** How much lives at most, for a given order?

# %% exercise="peak_memory"

# %% [markdown]
# ## 5 The order decides
#
# Four micro-batches now: the same layers, four times. One worker, so every policy needs the same time.
#
# **Predict:** FIFO runs the forward steps of all micro-batches first. `backward_first` goes back as soon as it can. How many
# activations live at most, in each?

# %%
step = schedule.training_step(4, micro_batches=4, gradient=0.0)
aw.MemoryView(schedule.simulate(step, 1, "fifo"), schedule.simulate(step, 1, "backward_first"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** One worker, so both orders take the same time. How many activations live at most in each?
#
# **Expected:** under FIFO those of all four micro-batches, 16; with backward first those of one, 4. The same work, the same
# time, a quarter of the memory.
#
# **If nobody comes to it:** let them count the F boxes before the first backward box.

# %% [markdown]
# The same work in the same time, and a fraction of the memory. Nothing was computed differently; only the order changed.
#
# Two workers must share. **Predict:** which of these is fastest, and which takes least memory?

# %%
for policy in ("fifo", "critical_path", "backward_first", "loop"):
    timeline = schedule.simulate(step, 2, policy)
    print(
        f"{policy:14} makespan {timeline.makespan:3g}   peak {timeline.peak:3g} bytes   used {timeline.utilisation:.0%}"
    )

# %% [markdown]
# `loop` finishes one micro-batch before it begins the next: least memory, and the second worker is often idle. Time and
# memory can be traded against each other.
#
# What if memory *ends*? Now the device has room for 6 bytes.

# %%
tight = Machine((Resource("gpu", "cuda", capacity=2, memory=6),))
for policy in ("fifo", "critical_path", "backward_first"):
    try:
        print(policy, schedule.simulate(step, tight, policy).makespan)
    except schedule.OutOfMemoryError as error:
        print(f"{error}\n")

# %% [markdown]
# Read one of the messages. Nothing runs, and nothing that is ready fits: all memory is taken by activations that wait for a
# backward step, and that step cannot be reached any more. It is a *deadlock* (死锁), and the policy has walked into it by
# taking what was free.
#
# A policy may refuse. Ours lets a forward step wait until all earlier micro-batches are done. **Predict:** what does that
# cost in time?


# %%
def one_alive(task, state):
    earlier = [other.id for other in state.tasks if other.micro_batch < task.micro_batch]
    if task.phase == "F" and not all(state.has_finished(other) for other in earlier):
        return None
    return schedule.soonest(task, state)


modest = schedule.Policy("modest", lambda task, state: task.phase != "F", one_alive)
timeline = schedule.simulate(step, tight, modest)
print(f"{timeline.makespan:g} seconds, peak {timeline.peak:g}")
aw.MemoryView(timeline)

# %% [markdown]
# It comes to its end, and pays for that with time. **To let a ready task wait is sometimes the only way.**
#
# **Exercise: under a cap.** One worker, little memory: find an order.

# %% exercise="under_a_cap"

# %% [markdown]
# ## 6 On your machine
#
# Real arrays now: a deep network, forward and backward, recorded as one graph and run on threads. The lab drops each value
# after its last reader, and measures what lives.
#
# **Predict:** there are 24 layers, and each activation has half a megabyte. How much lives at most? Does the policy matter?


# %%
def loss(weights, x):
    for w in weights:
        x = ops.tanh(ops.matmul(x, w))
    return (x * x).mean()


rng = np.random.default_rng(0)
x = rng.normal(size=(512, 256)).astype("float32")
weights = [rng.normal(size=(256, 256)).astype("float32") / 16 for _ in range(24)]
graph = ad.record(ad.grad(loss), weights, x)

# %%
timelines = {policy: schedule.run(graph, [*weights, x], 2, policy)[1] for policy in ("in_order", "critical_path")}
for policy, timeline in timelines.items():
    expected = schedule.simulate(timeline.tasks, 2, policy).peak
    print(f"{policy:14} peak, measured {timeline.peak / 1e6:5.1f} MB, simulated {expected / 1e6:5.1f} MB")
print(f"all results together: {sum(task.nbytes for task in timeline.tasks) / 1e6:.1f} MB")
aw.MemoryView(*timelines.values())

# %% [markdown]
# It is the mountain of section 4, with the turning point at its top. In the recorded order about the 24 activations live, as
# you predicted. The ready queue needs nearly twice as much. Why? Look at who lives at the top:

# %%
from collections import Counter

tasks = schedule.from_graph(graph)
peak = schedule.simulate(tasks, 2, "critical_path").peak_tasks
print(Counter(f"{tasks[task].op} ({tasks[task].phase})" for task in peak))

# %% [markdown]
# Beside the activations there are `mul` and `sub` of the backward pass. The rule of tanh is g · (1 − out²). The part `1 −
# out²` belongs to backward, and waits for **no gradient**: it is ready as soon as the activation is there. A worker that has
# nothing better to do computes it early, and the result then waits, in memory, for the gradient to arrive. What a ready queue
# wins in time it may pay for in memory.
#
# (Measured is less than simulated: a transposed matrix is a view, and takes no memory of its own, while the simulation counts
# each result for itself.)
#
# ## Summary
#
# * Operations compete for units of a device, for memory, and for the ways between devices. Who waits, waits for one of these,
#   or because the policy wants it so.
# * Run an operation **where its data are**, unless it wins more than the way costs. Decide for a whole chain, not op by op.
# * A percentage is a percentage of something: time in which anything runs, units, workers. **100 % busy is not fast**; and a
#   low utilisation may be the best that the graph allows. Print the bound beside it.
# * A result lives from the start of its task to the end of its **last** reader. Freed later it wastes memory, freed earlier
#   it makes wrong numbers without an error.
# * In training, memory is fullest where forward turns into backward, and the **order** decides how full.
# * With too little memory a greedy policy can lock itself in. Waiting can be the way out.
#
# ## Exercises
#
# 1. *place_ops*: section 2, checked.
# 2. *how_busy*: section 3, checked.
# 3. *peak_memory*: section 4, checked.
# 4. *under_a_cap*: section 5, checked.
# 5. On paper: how many activations live at most with L layers and M micro-batches, one worker, under FIFO and under
#    `backward_first`? Let the simulator tell whether you are right.
# 6. Find the smallest memory with which `modest` still comes to its end. Let only one micro-batch be alive: what does it
#    cost?
# 7. Recomputing trades time for memory: a layer's activation can be thrown away and made again when backward needs it. Make
#    such tasks for `training_step(8)`, and draw both with `MemoryView`.
# 8. Does the monitor of your own machine measure units, or "anything runs"? Find out with one busy thread.
#
# Where do you stand?

# %%
progress()
