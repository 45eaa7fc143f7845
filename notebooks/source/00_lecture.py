"""Lesson 00, the lecture: what happens between one line, `loss.backward()`, and a machine that is busy; each claim is run."""

# %% [markdown]
# # What happens under `loss.backward()`
#
# **The question:** you write one line, `loss.backward()`. Thousands of operations run, in some order, on some device, and
# all gradients are there. Who decided all that, and what happens when one decision is wrong?
#
# This is the lecture of the course, in its own order. Three parts separate a toy framework from one that people train with:
#
# | part | | minutes | goes on in lesson |
# | --- | --- | --- | --- |
# | 1 automatic differentiation | 自动微分 | 40 | 10 to 50 |
# | 2 operator registration | 算子注册 | 16 | 60, 70, 100 |
# | 3 operator scheduling | 算子调度 | 20 | 80, 90 |
# | 4 differentiation and scheduling together | | 9 | 110 |
# | 5 summary and advice | | 5 | |
#
# Each section has a statement, **a question to the class**, one picture, and the place where it goes on. Let the class answer
# before you run the cell: hands up, or one minute in pairs. Pictures are stepped with the buttons or the arrow keys; some ask
# "what comes next?" themselves, and wait for an answer.
#
# A lecture is full of numbers and stories. Here each says where it comes from: **measured** on this machine, now;
# **counted**, so the same on every machine; **simulated**, in virtual time; or **re-enacted**: the lab switches the bug of the
# story on, and trains a small network with it.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Automatic differentiation (自动微分): the soul of a framework | 40 |
# | 2 Operator registration (算子注册): the framework learns your computation | 16 |
# | 3 Operator scheduling (算子调度): making the computation run | 20 |
# | 4 Differentiation and scheduling together (9 minutes) | 9 |
# | 5 Summary and advice (5 minutes) | 5 |
#
# **What must come across:** Three parts make a framework: gradients, registration, scheduling. In each of them a bug can
# leave the training running. Every claim is run, so wait for the guess before you run the cell.
#
# **If time is short, leave for home:** Story C with four replicas, and the tables with one micro-batch at the end of part 4.

# %%
import inspect
import os
import time

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import progress
from autodiff_lab import claims, faults, micro, ops, replicas, schedule, shape_claims, training

SMALL = "AUTODIFF_LAB_SMALL" in os.environ  # smaller sizes and less patience, for testing this lesson

# %% [markdown]
# ## 1 Automatic differentiation (自动微分): the soul of a framework
#
# You write the forward computation; the framework owes you the gradients. Why not derive them by hand?
#
# ### Story A: the lost minus sign (7 minutes)
#
# A colleague derived the gradient of a complicated loss by hand. On the way a minus sign was lost. Three days of training did
# not converge.
#
# **Ask the class:** a small network learns to read digits. The sign is lost in the gradient of the loss. What will the curve of
# the loss look like? And what if the sign is lost somewhere in the middle of a residual network?
#
# *Re-enacted:* the same network twice, from the same numbers, once with the bug.

# %%
aw.TrainingView(training.compare(training.mlp_on_digits(), faults.lost_sign("cross_entropy")))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The sign of the gradient is lost in the loss, then in the middle of a residual network.
# What do the two curves look like?
#
# **Expected:** in the loss everybody walks uphill, so the loss grows and somebody looks for the reason. In the middle of a
# residual network the skip connections carry a right gradient past the bug: the loss falls, only less.
#
# **If nobody comes to it:** ask which weights still get a right gradient in the second case.

# %% [markdown]
# That one is noticed. Now the second: the wrong sign sits in `tanh`, inside the blocks of a residual network, and the skip
# connections carry a right gradient past it.

# %%
print(training.compare(training.residual_on_digits(), faults.lost_sign("tanh")))

# %% [markdown]
# The loss falls. Nothing raises, nothing looks broken; the network is only worse than it could be, and nobody knows how good it
# could be. Here is a gradient derived by hand, with a sign that should be a plus. How long does it take to find that?


# %%
def loss(w):
    return ops.sum(ops.log(1.0 + ops.exp(-w)) + 0.5 * w * w)


def by_hand(w):
    return -1.0 / (1.0 + np.exp(w)) - w


began = time.perf_counter()
report = ad.gradcheck(loss, np.array([0.5, -1.0, 2.0]), grad=by_hand)
print(f"measured: {1e3 * (time.perf_counter() - began):.0f} ms instead of three days")
print(report)

# %% [markdown]
# Go on in lesson 50: how the check works, and what it cannot see.
#
# ### 1.1 Two modes (9 minutes)
#
# *Forward mode* (前向模式) goes from the inputs to the outputs, the values and their *tangents* together. One pass gives
# the derivatives of **all outputs** with respect to **one input**.
#
# **Ask the class:** the function below has two inputs. How many passes give both derivatives? How many would a network with a
# million weights take?


# %%
def block(x, w):
    h = x * w
    t = ops.tanh(h)
    return t * t + h


aw.ForwardModeView(block, 2.0, 0.5, seed="all")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** How many passes give both derivatives of this function? How many would a network with a
# million weights take?
#
# **Expected:** two, one for each input; a million. Reverse mode takes one sweep for each *output*, and a loss is one
# output.

# %% [markdown]
# *Reverse mode* (反向模式) takes one pass forward and one backward, and gives the derivatives of **one output** with
# respect to **all inputs**. So count, and measure, for a function of n inputs and 16 outputs.
#
# **Ask the class:** where do the two modes cross?


# %%
def mixing(n, m=16):
    table = np.random.default_rng(0).normal(size=(m, n))
    return lambda x: table @ ops.tanh(x), np.linspace(-1.0, 1.0, n)


def forward_passes(f, x):
    return [ad.jvp(f, (x,), (direction,))[1] for direction in np.eye(x.size)]


def reverse_passes(f, x):
    value, pull = ad.vjp(f, x)
    return [pull(row)[0] for row in np.eye(value.size)]


# %%
def milliseconds(function, f, x):
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        function(f, x)
        taken.append(1e3 * (time.perf_counter() - began))
    return f"{min(taken):.2f} ms"


print(f"{'':8}{'counted: rule calls':>22}{'measured':>22}")
for n in (1, 4, 16, 64, 256):
    f, x = mixing(n)
    cost = ad.jacobian_cost(f, x)
    times = milliseconds(forward_passes, f, x), milliseconds(reverse_passes, f, x)
    print(f"n = {n:<4}{cost.forward_rule_calls:>12} / {cost.reverse_rule_calls:<7}{times[0]:>12} / {times[1]}")

# %% [markdown]
# Forward mode is on the left of each slash. It grows with n; reverse mode does not grow, or hardly. By count they cross where n
# is the number of outputs; by the clock somewhere near it.
#
# In deep learning one loss depends on millions of weights: n is huge and m is 1. So PyTorch, TensorFlow and MindSpore train in
# reverse mode. That is no accident and no taste, it is arithmetic. Go on in lessons 20 and 30.
#
# ### The key point: a graph that remembers (8 minutes)
#
# Reverse mode is the chain rule on a *computation graph* (计算图). The forward pass **records intermediate results**, and
# the backward pass **uses them again**.
#
# **Ask the class:** `h` below is used twice, on a long way and on a short one. How many contributions does its gradient
# receive, and how many does the one of `t`? Which values must be kept until backward, and which may be forgotten at once? The
# bars beside the graph show the bytes: when is memory fullest?

# %%
aw.GradientFlowView(block, 2.0, 0.5, memory=True)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** How many contributions does `h` receive, how many `t`? What must be kept, and when is
# memory fullest?
#
# **Expected:** h two (from `tanh`, and from the sum on the short way), t two as well (both operands of `t * t`). Kept are
# the operands of the products and the result of `tanh`; a sum keeps nothing. Memory is fullest at the turning point between
# forward and backward.

# %% [markdown]
# A rule names what it reads, and exactly that is kept: a product keeps its operands, `tanh` its result, a sum nothing. Memory
# is fullest at the turning point, and what was saved last is freed first.
#
# ### 1.2 A minimal implementation (5 minutes)
#
# How much code is this? The lab has an engine on one screen, `autodiff_lab.micro`. It has two ideas. **Each value knows how it
# was computed**: an operation leaves its parents and a rule with its result. And **order first, then gradients**: a
# *topological order* (拓扑序), and the gradients go along it backwards.

# %%
print(inspect.getsource(micro.Value.__mul__))
print(inspect.getsource(micro.Value.backward))

# %% [markdown]
# The order comes from depth-first search. This picture asks by itself: let the class answer before you click. **Ask the class**
# as well: where does the search meet `h` for the second time, and what does it do there?

# %%
aw.TopologicalOrderView(ad.record(block, 2.0, 0.5), predict=True)

# %% [markdown]
# The version that most lectures print has the same two ideas, and three cracks: its search calls itself, so a deep network ends
# it; it cannot add a number to a tensor; its gradients from one call leak into the next. The first is easy to show.


# %%
def order_by_recursion(value, order, visited):
    if value not in visited:
        visited.add(value)
        for parent in value.parents:
            order_by_recursion(parent, order, visited)
        order.append(value)


y = x = micro.Value(1.0, requires_grad=True)
for _ in range(5000):
    y = y + x
try:
    order_by_recursion(y, [], set())
except RecursionError as error:
    print("by recursion:", error)

# %%
y.backward()
print("micro, with a stack of its own:", x.grad)

# %% [markdown]
# Go on in lesson 10: you write the order, and find the cracks yourself. `micro` is also where your own framework may begin.
#
# ### Story B: the wrong order (6 minutes)
#
# The topological sort of a framework was wrong. Models ran. Gradients were wrong, and training converged very slowly. It is
# the worst kind of bug, since nothing raises.
#
# **Ask the class:** suppose that backward goes through the graph *breadth first*, level by level. A perceptron is a chain, a
# residual network has skip connections. Which one suffers?
#
# *Re-enacted*, on the residual network:

# %%
aw.TrainingView(training.compare(training.residual_on_digits(), faults.breadth_first_order()))

# %% [markdown]
# And on the chain:

# %%
print(training.compare(training.mlp_on_digits(), faults.breadth_first_order()))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which network suffers from a breadth-first order, the perceptron or the residual one? What
# follows for your tests?
#
# **Expected:** only the residual one: on a chain there is one order, so the bug cannot show. A test needs a skip
# connection.

# %% [markdown]
# On a chain there is only one order, so the bug cannot show: whoever tests with a perceptron ships it. One look at one
# graph with a skip connection finds it, with the node and the reason:

# %%
with faults.breadth_first_order():
    print(ad.find_faulty_op(block, (2.0, 0.5)))

# %% [markdown]
# Go on in lesson 30.
#
# ### Story C: the missing factor (5 minutes)
#
# In distributed training the gradients did not match. After two days it was found: the backward of a custom op had lost a
# factor. But a factor is also what a wrong *all-reduce* gives, one that adds the gradients of the replicas where it should
# average them.
#
# **Ask the class:** two replicas, every gradient is twice what it should be. Which one is it, the op or the all-reduce? What
# would you measure to tell?


# %%
def replica_loss(w, x):
    return ops.mean(ops.tanh(x * w))


w = np.array([0.5, -0.3])
parts = [(np.array([[1.0, 2.0], [0.5, 1.0]]),), (np.array([[0.2, -1.0], [1.5, 0.3]]),)]
print("right:", replicas.data_parallel(replica_loss, w, parts).reduced)
for fault in (faults.missing_factor("tanh"), faults.all_reduce_sums()):
    with fault:
        print(f"\n{fault.name}:", replicas.data_parallel(replica_loss, w, parts).reduced)
        print(replicas.check_replicas(replica_loss, w, parts))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Every gradient is twice what it should be. Is it the op or the all-reduce, and what would
# you measure?
#
# **Expected:** the number alone cannot tell. Check each replica against differences *before* anything is exchanged, then
# compare what came out of the all-reduce with what went in.

# %% [markdown]
# The same wrong numbers, and two different culprits. What tells them apart: check each replica **before** anything is
# exchanged, against differences, and then compare what came out with what went in.
#
# **Ask the class:** would training have told? Here is the wrong all-reduce with four replicas. What do you expect with two?

# %%
aw.TrainingView(training.compare(training.replicas_on_digits(count=4), faults.all_reduce_sums()))

# %%
print(training.compare(training.replicas_on_digits(count=2), faults.all_reduce_sums()))

# %% [markdown]
# With two replicas the wrong code trains as well as the right one: it is only a larger learning rate. Then somebody
# orders more machines.
#
# **The rule of all three stories:** verify every op of your own by numerical gradients, before anybody trains with it. Go on in
# lesson 120, a clinic full of such bugs.
#
# ## 2 Operator registration (算子注册): the framework learns your computation
#
# ### 2.1 The usual flow (8 minutes)
#
# Registering tells the framework that an op exists, and how its forward and its backward work. In PyTorch, as here:
# 1 write the forward function, 2 write the backward function, 3 register both in the table of ops, 4 the framework
# generates the function that Python's users call.
#
# This is the registration of the lecture. It runs:


# %%
def same_shape(context):
    return context.input_shape(0)


def square_kernel(context):
    return lambda x: x * x


my_op = ad.register_op("MyCustomOp").input("x: float32").output("y: float32")
my_op.shape_fn(same_shape).kernel_creator(square_kernel)
x = np.array([1.0, 2.0, 3.0], np.float32)
print(ad.ops.MyCustomOp(x))

# %% [markdown]
# The lecture says that an op needs three things: *shape inference* (形状推导), dtype inference, and a kernel.
#
# **Ask the class:** where is the dtype rule? And where is the backward function? Who will need them, and what happens then?

# %%
aw.RegistrationView(ops.MyCustomOp)

# %% [markdown]
# The dtype rule comes by itself, from what `input` and `output` declare. A gradient rule does not. It is missed on the day when
# somebody calls `backward`:

# %%
w = ad.tensor(x, requires_grad=True)
try:
    ops.MyCustomOp(w).sum().backward()
except NotImplementedError as error:
    print(error)

my_op.vjp(lambda g, x: g * (2.0 * x))
ops.MyCustomOp(w).sum().backward()
print("\nwith a rule:", w.grad)

# %% [markdown]
# So registering is more than a name in a table: a **call** asks the kernel, **recording** a graph the shape rule and the dtype
# rule, **backward** the gradient rule, and **scheduling** reads the shapes again, to know bytes and costs.
#
# **Ask the class:** how many bytes does the result of the graph below have? Which op had to run for that?

# %%
graph = ad.record(lambda x: ops.MyCustomOp(x) + x, x)
tasks = schedule.from_graph(graph, schedule.Roofline())
print(graph)
print([(task.name, f"{task.cost:.2g} s", f"{task.nbytes} bytes") for task in tasks])

# %% [markdown]
# No kernel ran. Bytes follow from shape and dtype; the seconds are an estimate from the arithmetic of the op. Both rest on the
# rules, so they are as right as the rules are.
#
# Go on in lesson 60, where you register an op with all its parts, and in lesson 70: one op, several devices.
#
# ### Story D: the wrong shape function (8 minutes)
#
# A team's shape function lost a dimension while the graph was built. Results stayed right. Every later fusion of operators
# was off, and performance halved.
#
# **Ask the class:** how can results be right when shapes are wrong? Who reads the shape rule, and who does not?
#
# *Re-enacted:* a product of matrices, then eleven elementwise ops. The shape rule of `tanh`, the seventh of them, loses its
# dimensions.
#
# **Ask the class:** ops that work number by number over one known shape can be *fused* (算子融合) into one kernel. How many
# kernels will there be with the right rule? And with this one?

# %%
setting = shape_claims.Setting(rows=512 if SMALL else 32768, width=128, op="tanh")
data = setting.arguments()
with faults.lost_dimension("tanh", axis=None):
    wrong = ad.record(shape_claims.gelu_layer, *data)
aw.FusionView(wrong)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** How can all results be right when the shape rule is wrong? Who reads the rule, and who does
# not?
#
# **Expected:** a call on arrays sees the array and never asks the rule. Recording, memory plans and fusion only ask the rule.
# So every test of numbers passes.
#
# **If nobody comes to the number of kernels:** right, two. Wrong, seven: the product, the six ops before `tanh` as one, and
# each of the five from `tanh` on alone.

# %%
right = ad.record(shape_claims.gelu_layer, *data)
print("equal numbers:", np.array_equal(wrong(*data), right(*data)))
for name, graph in (("right", right), ("wrong", wrong)):
    print(f"{name} rule: {ad.fuse(graph).kernels_after} kernels")
with faults.lost_dimension("tanh", axis=None):
    print(*[line for line in str(ad.opcheck(ops.tanh)).splitlines() if "✗" in line], sep="\n")

# %% [markdown]
# The numbers are right, every test of numbers passes, and everything behind `tanh` runs alone: each op reads all of its
# operands from memory and writes all of its result back. One check asks the rule and the kernel the same question, and finds
# it.
#
# **Ask the class:** does it cost half the speed? And would it cost more, or less, if the rule of `square` were wrong, the
# second op of the eleven?

# %%
for op in ("tanh", "square"):
    setting = shape_claims.Setting(setting.rows, 128, op)
    print(shape_claims.cost_of_wrong_rule(setting, 5, 0.3 if SMALL else 4.0), "\n")

# %% [markdown]
# *Measured* here, or counted in time of the processor where the machine is busy; the last line says which. Near two means
# half the speed: the story is true for a layer as narrow as this one, with a compiled loop. A wider layer spends its time in
# the product of matrices, and loses less. Lesson 100 shows where the claim holds and where it does not.

# %% [markdown]
# ## 3 Operator scheduling (算子调度): making the computation run
#
# Which op runs first, which later, and on which device?
#
# ### 3.1 Strategies (6 minutes)
#
# * **Topological:** in a topological order. The simplest, and reliable.
# * **Ready queue** (就绪队列): an op enters the queue when all that it depends on is done. So ops run side by side.
# * **Priority** (优先级调度): among the ready ones, those on the *critical path* (关键路径) first, the longest chain of
#   ops that wait for each other.
#
# Here is a head of attention with round numbers, and two devices.
#
# **Ask the class:** what is the shortest possible time? Who finds it? Work it out on paper, two minutes.

# %%
attention = {
    "mask": schedule.Task(cost=1),
    "v": schedule.Task(cost=2),
    "q": schedule.Task(cost=2),
    "k": schedule.Task(cost=2),
    "scores": schedule.Task(cost=2, after=["q", "k"]),
    "softmax": schedule.Task(cost=1, after=["scores", "mask"]),
    "out": schedule.Task(cost=2, after=["softmax", "v"]),
}
for policy in ("serial", "in_order", "fifo", "critical_path"):
    print(schedule.simulate(attention, 2, policy), "\n")

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** What is the shortest possible time for this head of attention on two devices? Who finds it?
#
# **Expected:** all work is 12, so two devices need at least 6; the critical path q, scores, softmax, out is 7, and that is
# the bound. Only a policy that begins with q and k reaches it.
#
# **If nobody comes to it:** ask which tasks nobody waits for yet at time 0.

# %% [markdown]
# *Simulated.* A ready queue alone did not help here: first come, first served begins with `mask` and `v`, which nobody waits
# for yet. Priority begins with `q` and `k`, since the longest way to the end starts there.
#
# ### 3.2 Seven steps (7 minutes)
#
# 1 Take all ops from the graph. 2 Count for each how many it waits for. 3 Put those that wait for none into the ready queue.
# 4 Take one out, give it a device, run it. 5 When it is done, its successors wait for one less. 6 Those that wait for none now
# enter the queue. 7 Repeat 4 to 6 until all are done.
#
# The picture numbers its steps in the same way, and stops at step 4. **Ask the class:** which task is next, and why? What
# happens when two tasks are ready and one device is free?

# %%
aw.ReadyQueueView(attention, 2, "critical_path", predict=True)

# %% [markdown]
# The same two schedules as timelines, on one axis. **Ask the class:** where does a device idle, and whose fault is it?

# %%
aw.TimelineView(schedule.simulate(attention, 2, "fifo"), schedule.simulate(attention, 2, "critical_path"))

# %% [markdown]
# Go on in lesson 80, where you write the seven steps; in lesson 90, where memory and copies compete too.
#
# ### The insight: a sort, and resources (7 minutes)
#
# Scheduling is a topological sort **plus resource allocation**. The lecturer's figures: a good scheduler uses over 90 % of the
# devices, a bad one perhaps not 50 %.
#
# **Ask the class:** eight towers of matrix products stand side by side, and two workers run them. How much of the workers' time
# does each policy use?
#
# The lab runs the ops on two threads and rejects each repetition in which other programs disturbed it. Where too few are left,
# or the machine has one core, it simulates with the cost of each op, and says so in the last line.

# %%
seconds = 0.3 if SMALL else 8.0
towers = claims.eight_towers(128 if SMALL else 512)
used = claims.examine(claims.CLAIMS["H1"], towers, 5, seconds)
used

# %%
aw.TimelineView(used.timelines["in_order"], used.timelines["critical_path"])

# %% [markdown]
# Issuing in order keeps about one of two workers busy: an op that has to wait blocks everything behind it. With a ready
# queue the others pass it.
#
# So is a scheduler that reaches 50 % a bad one? **Ask the class:** here is a single tower, op after op in one chain.

# %%
claims.examine(claims.CLAIMS["H1"], claims.one_tower(128 if SMALL else 512), 5, seconds)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A scheduler keeps half of two workers busy. Is it a bad scheduler?
#
# **Expected:** it depends on the graph: on one tower nobody can do better, since W / (m · C) is one half. Print the bound
# beside each utilisation.

# %% [markdown]
# No policy can do better, because there are never two ops to run at once. With work W, critical path C and m devices no
# schedule uses more than W / (m · C). **Print that bound beside every utilisation**, or you blame the scheduler for the graph.
#
# ## 4 Differentiation and scheduling together (9 minutes)
#
# Automatic differentiation adds backward ops to the graph, and the scheduler has to place them too. The lecturer tuned a
# Transformer: backward was more work than forward, everything ran in series, the GPU idled; overlapping parts of forward and
# backward gained 30 %.
#
# Why can there be a gain at all? Each layer has two backward ops. **dX** hands the gradient on to the layer below: a chain,
# like forward. **dW** is the gradient of the layer's own weights: nobody waits for it, so it can fill any gap.
#
# **Ask the class:** two layers, three *micro-batches*, every op takes 1, two devices. One micro-batch after the other takes 12.
# How much can be saved? In the lower timeline, when does one core go forward while the other goes backward?

# %%
step = schedule.training_step(2, micro_batches=3)
aw.TimelineView(schedule.simulate(step, 2, "in_order"), schedule.simulate(step, 2, "critical_path"))

# %% [markdown]
# *Simulated.* While micro-batch 0 goes backward, micro-batch 2 goes forward, and dW fills what is left: 9 instead of 12. That
# is a gain of a third, the lecture's 30 %, in a world of round numbers. The price is memory: more micro-batches are under way.
#
# Now a real Transformer, forward and backward of a stack of blocks. We compare one plan for all micro-batches with the loop
# "forward, backward, forward, backward", run in two ways:
#
# * with a **ready queue** inside of each pass: every op of the pass may run as soon as it is ready, and
# * **op after op**, in the order in which an eager framework meets them.
#
# **Ask the class:** which of the two is harder to beat?

# %%
layers, width = (1, 32) if SMALL else (4, 256)
joint = claims.transformer(layers, width, 4)
overlap = claims.examine(claims.CLAIMS["H2"], joint, 5, 2 * seconds)
print(f"backward / forward: {overlap.timelines['in_order'].backward_over_forward:.1f} times the work\n")
overlap

# %% [markdown]
# And the same with **one** micro-batch: there is no second forward pass that could overlap with anything. What is gained here
# is hardly overlap.

# %%
claims.examine(claims.CLAIMS["H2"], claims.transformer(layers, width, 1), 5, seconds)

# %% [markdown]
# Compare the two tables line by line.
#
# * **Over the loop with a ready queue** four micro-batches gain a good part of the third that theory promises: this is overlap,
#   and nothing else. One micro-batch gains next to nothing (a measured figure scatters around zero), since it has no second
#   forward pass to overlap with.
# * **Over issuing op after op** the gain is larger, and one micro-batch gains something too. That part comes from ops that pass
#   each other inside one pass, such as dW beside dX.
#
# "Overlap gained 30 %" is true, and so is the question "over which baseline?". It depends on the model as well: where forward
# itself has much to do side by side, as with three products for q, k and v, the loop is better and the gain smaller. The
# numbers of the results do not change: in a measured run the lab compares the gradients of all policies, bit by bit. Go on in
# lesson 110.
#
# ## 5 Summary and advice (5 minutes)
#
# From one line to all of it. `aw.explain` takes a loss and shows its graph, the order, the backward sweep, the tasks and their
# schedule on one page; select an op in one picture, and it is selected in all.

# %%
x, w = ad.tensor(2.0, requires_grad=True, name="x"), ad.tensor(0.5, requires_grad=True, name="w")
loss = block(x, w)
loss.backward()
aw.explain(loss)

# %% [markdown]
# The lecturer's advice: build a micro framework of your own. Addition, subtraction, multiplication, division and a few
# functions are enough. You have seen that it fits on a screen.
#
# ## Summary
#
# * **Reverse mode** is the chain rule on a **computation graph**, and training needs it by arithmetic: one output, many inputs.
#   It pays with memory for saved values.
# * Lost signs, wrong orders and missing factors **raise nothing**, and some of them train. Numerical gradients find them in
#   milliseconds.
# * **Registering** an op gives it a schema, a shape rule, a dtype rule, kernels and gradient rules. A wrong shape rule leaves
#   the numbers right and spoils all that is decided from the graph.
# * **Scheduling** is a topological sort plus resources. A ready queue lets ops pass each other, priorities follow the critical
#   path, and no policy beats W / (m · C).
# * Backward belongs to the same graph and the same schedule. A gain is a gain **over a baseline**: name it.
#
# ## Exercises
#
# 1. Switch another fault on: `faults.FAULTS` has them all, each with its story. Which ones does training not notice?
# 2. Give `by_hand` of Story A its plus sign back. Then lose another sign. Does `gradcheck` say which entries are wrong?
# 3. Register `MyCustomOp` again, with a dtype that follows its input: `x: T` in, `y: T` out. What does `float64` give now?
# 4. Change one cost in `attention` so that first come, first served is as good as the critical path. Then find one where the
#    critical path is not the best policy in `schedule.POLICIES`.
# 5. Predict, then run: the second timeline of section 4 with `backward_first`. Which one is faster, and which needs less
#    memory? Compare `makespan` and `peak`.
# 6. Which sentence of today would you check first in the framework that you use?
#
# Where do you stand?

# %%
progress()
