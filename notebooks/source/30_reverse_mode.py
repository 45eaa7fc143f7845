"""Lesson 30, reverse mode: order and accumulation, the freedom of the order, and what both modes cost.

After: 20_forward_mode.
"""

# %% [markdown]
# # From the output back to all inputs
#
# **The question:** a neural network has a million weights and one loss. How can a framework tell for *every* weight how the
# loss would move, in hardly more time than it takes to compute the loss once?
#
# By the end you can
#
# * send a *cotangent* (余切向量) from the output back to all inputs: *reverse mode* (反向模式),
# * say why contributions are added, and why a node has to wait for all of them,
# * write the backward sweep, so that it calls each rule once and does not mind how deep the program is,
# * find all orders that are right, not only one,
# * predict which mode is cheaper for n inputs and m outputs, and what reverse mode pays in memory.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 The same derivatives, from the other end | 6 |
# | 2 Contributions | 8 |
# | 3 Three ways to get it wrong | 24 |
# | 4 The order is not unique | 16 |
# | 5 Which mode is cheaper? | 12 |
# | 6 Why deep learning goes backwards | 8 |
# | 7 The price: memory | 10 |
#
# **What must come across:** Order and accumulation are the two halves of a backward sweep. The order is free as long as a
# node waits for all its consumers. Reverse mode wins because a loss is one output, and pays in memory.
#
# **If time is short, leave for home:** the picture drawn by hand in section 5, and exercise `count_orders`.

# %%
import time

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, limited, progress, solution
from autodiff_lab import ops

# %% [markdown]
# ## 1 The same derivatives, from the other end
#
# Here is a program with three inputs and one output, a single neuron: a weight, a bias, and what it is given.
#
# **Predict:** forward mode moves one input at a time. How many passes does it take to know all three derivatives?


# %%
def neuron(x, w, b):
    h = x * w
    s = h + b
    return ops.tanh(s)


point = (2.0, 0.5, -0.25)
for direction in np.eye(3):
    print(direction, ad.jvp(neuron, point, tuple(direction))[1])

# %% [markdown]
# Three. And each pass computes the same tanh again. Now ask the question backwards. Do not ask "if this *input* moves, how
# much does everything move?" but "how much does the **output** move for each unit that this value moves?" That
# number belongs to every value of the program. It is called the value's **cotangent**, or its gradient.
#
# For the output itself the answer is 1. From there it goes back, step by step. `ad.vjp` runs the program once, and gives
# the value and a function that sends a cotangent back.

# %%
value, pull = ad.vjp(neuron, *point)
print(value, pull(1.0))

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** Forward mode took three passes for the neuron. How many sweeps does reverse mode take, and
# what does it ask?
#
# **Expected:** one. It asks how much the *output* moves for each unit that a value moves, and that number belongs to every
# value at once.

# %% [markdown]
# The same three numbers, from **one** sweep. (VJP means vector-Jacobian product: a row of the Jacobian, where forward mode
# gives a column.)
#
# ## 2 Contributions
#
# Each operation again has a rule for each of its inputs. It is given `g`, the cotangent of the result, and returns what it
# contributes to the cotangent of that input:

# %%
import inspect

for op in ("mul", "tanh"):
    for rule in ad.registry[op].vjp_rules.values():
        print(inspect.getsource(rule))

# %% [markdown]
# Always the same pattern: *what arrives from above, times the local derivative*. That is the chain rule (链式法则), read
# from the outside to the inside.
#
# Look at the names in the brackets. The rule of `mul` for x needs y, the rule of `tanh` needs its own result. Forward
# mode has them at hand. The backward sweep comes later, so somebody has to keep them.
#
# Here is a program in which values are used several times: `h` goes two ways, and `t` is used twice by one operation.

# %%
x = ad.tensor(2.0, requires_grad=True, name="x")
w = ad.tensor(0.5, requires_grad=True, name="w")
h = x * w
t = ops.tanh(h)
u = t * t
loss = u + h
print(loss)

# %% [markdown]
# If `h` moves, `loss` moves for two reasons: directly, and over `t` and `u`. Small movements add up, so **contributions are
# added**.
#
# **Predict:** in what order are the nodes visited? How many contributions does each receive? May the rule of `h` run as
# soon as the first one has come? Then step.

# %%
aw.GradientFlowView(loss)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** In what order are the nodes visited, and may the rule of h run when the first contribution
# has come?
#
# **Expected:** loss, u, t, h, then x and w. No: h receives one directly and one over t and u. A rule that runs too early
# sends on only a part.

# %% [markdown]
# Two things make a backward sweep: the **order**, in which a node comes after all its consumers; and the **accumulation**
# (累加), in which contributions are added. Each of them can be done wrong, and almost every home-made engine does it.
#
# ## 3 Three ways to get it wrong
#
# For experiments, a graph as plain as possible: a dictionary, as in lesson 10, and beside it the local derivative of each
# edge. The gradient of a node times the number on an edge is the contribution along it.


# %%
double_use = {"y": ["x", "x"], "x": []}
local = {"y": [2.0, 3.0], "x": []}


def rule(node, g):
    return [g * d for d in local[node]]


print(rule("y", 1.0))

# %% [markdown]
# **Wrong way 1: last path wins.** "A node has one gradient, so I store what arrives."
#
# **Predict:** two contributions arrive at x. What will be stored, and what should be?

# %%
gradients = {"y": 1.0}
for node in ("y", "x"):
    for source, contribution in zip(double_use[node], rule(node, gradients[node])):
        gradients[source] = contribution
print(gradients)

# %% [markdown]
# Three, and right is 2 + 3 = 5. No error, and on every program in which each value is used once, the result is right.
#
# **Wrong way 2: a walk for every path.** "Then I add. When a contribution arrives, I add it, and send it on at once." The
# numbers are right. But look at what it costs. The program doubles a number again and again, y = y + y.
#
# **Predict:** there are 12 additions. How many times does a rule run?


# %%
def doubling(times):
    return {"y0": [], **{f"y{i + 1}": [f"y{i}", f"y{i}"] for i in range(times)}}


def walk(graph, node, calls=0):
    for source in graph[node]:
        calls = walk(graph, source, calls)
    return calls + (1 if graph[node] else 0)


for times in (1, 2, 3, 12):
    print(times, "additions:", walk(doubling(times), f"y{times}"), "calls of a rule")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** There are 12 additions `y = y + y`. How often does a rule run if each contribution is sent
# on at once?
#
# **Expected:** 4095 times, 2 to the power of 12 less one: once for every *path*. Waiting until all have arrived makes it
# 12.

# %% [markdown]
# 2 to the power of 12, less one. With 20 additions it is a million, with 50 it would take years. And the walk calls
# itself, so a chain of 5,000 operations ends with a RecursionError. The lab waits until all contributions have arrived,
# and then calls each rule once:

# %%
y = ad.tensor(1.0, requires_grad=True)
for _ in range(20):
    y = y + y
with ad.listen() as heard:
    y.backward()
print(sum(type(event) is ad.events.CotangentComplete for event in heard), "nodes ran their rules")

# %% [markdown]
# **Wrong way 3: each node once, in any order that looks natural.** "I remember where I have been, and go level by level."
# That is breadth-first search. Our program again, as a dictionary, with a skip connection from `h` to `loss`:


# %%
skip = {"loss": ["u", "h"], "u": ["t", "t"], "t": ["h"], "h": ["x"], "x": []}
local = {"loss": [1.0, 1.0], "u": [0.5, 0.5], "t": [0.25], "h": [4.0], "x": []}


def sweep(graph, order):
    gradients = dict.fromkeys(graph, 0.0) | {order[0]: 1.0}
    for node in order:
        for source, contribution in zip(graph[node], rule(node, gradients[node])):
            gradients[source] += contribution
    return gradients


# %% [markdown]
# **Predict:** on which level is `h`, counted from `loss` by the shortest way? What has arrived at `h` when its rule runs?

# %%
print("breadth-first:", sweep(skip, ["loss", "u", "h", "t", "x"]))
print("right:        ", sweep(skip, ["loss", "u", "t", "h", "x"]))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Breadth-first, h is visited right after loss. What has arrived at h by then, and which
# gradient ends up wrong?
#
# **Expected:** only the contribution over the skip connection. h itself ends right, since the other one still arrives; x
# gets 4 in place of 5, since h had sent already.

# %% [markdown]
# Look at `x`: 4 in place of 5. At the end `h` has the right gradient, but it had sent its own contribution before the
# one from `t` came. What comes late is lost. On a chain, both orders agree, and so this fault can live in a framework for
# a long time: networks with skip connections train, only badly.
#
# **Exercise: backward on a graph.** Write the sweep, so that none of the three can happen.

# %% exercise="backward"

# %% [markdown]
# The check adds up by itself: every node must have exactly the sum of what its consumers send. No other numbers pass, and
# any order that is right does.

# %% [markdown]
# ## 4 The order is not unique
#
# Often several nodes are ready at the same time. Which one runs first does not matter for the result. It matters for
# time and memory: a scheduler lives from this choice.
#
# Here is micro, the small engine of lesson 10. We give it orders drawn at random: a depth-first search that goes to the
# inputs in any order.

# %%
import random
from unittest.mock import patch

from autodiff_lab import micro
from autodiff_lab.micro import Value


# %%
def some_order(output):
    order, entered, stack = [], set(), [(output, False)]
    while stack:
        value, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(value)
        elif value not in entered:
            entered.add(value)
            parents = random.sample(value.parents, len(value.parents))
            stack += [(value, True), *((parent, False) for parent in parents)]
    return order


# %% [markdown]
# **Predict:** the program below runs backwards twenty times, in orders drawn at random. How many different orders will
# there be? How many different gradients?

# %%
found, orders = set(), set()
for _ in range(20):
    x = Value(0.5, requires_grad=True)
    a, b, c = x.tanh(), x.exp(), x * x
    out = a * b + c * a
    names = {x: "x", a: "a", b: "b", c: "c", out: "out"}
    order = some_order(out)
    with patch.object(micro, "topological_order", lambda output, order=order: order):
        out.backward()
    orders.add(" ".join(names.get(value, "·") for value in order))
    found.add(round(x.grad, 12))
print(len(orders), "orders, gradients:", found)

# %% [markdown]
# One gradient. (We rounded to twelve digits: sums that are added in another order may differ in the last one.)
#
# **Exercise: every legal next node.** A sweep has come some way. Which nodes may go on?

# %% exercise="legal_next"

# %% [markdown]
# **Exercise: count the orders.** **Predict** first, for two chains of two nodes that do not touch: how many orders are
# there?

# %% exercise="count_orders"

# %% [markdown]
# Even small graphs have many orders, and large ones have more than anybody could ever try. So a check must not compare
# your order with one that is stored: it has to test the property.

# %% [markdown]
# ## 5 Which mode is cheaper?
#
# Forward mode takes a pass for each input, reverse mode a sweep for each output. So count, for a function with n inputs
# and m outputs: a table with random numbers, times tanh(x).
#
# **Predict:** which mode needs fewer calls of rules for n = 64 and m = 1? For n = 1 and m = 64? And where do they cross?


# %%
def mixing(n, m):
    table = np.random.default_rng(0).normal(size=(m, n))
    return lambda x: table @ ops.tanh(x), np.linspace(-1.0, 1.0, n)


sizes = (1, 4, 16, 64)
print("calls of rules, forward / reverse")
print("          " + "".join(f"{f'm = {m}':>12}" for m in sizes))
for n in sizes:
    costs = [ad.jacobian_cost(*mixing(n, m)) for m in sizes]
    row = [f"{one.forward_rule_calls} / {one.reverse_rule_calls}" for one in costs]
    print(f"n = {n:<6}" + "".join(f"{text:>12}" for text in row))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which mode is cheaper for 64 inputs and 1 output? For 1 input and 64 outputs? Where do they
# cross?
#
# **Expected:** reverse; forward; by count where the number of inputs equals that of the outputs. By the clock they cross
# somewhere near it.

# %% [markdown]
# On the diagonal they are equal, below it reverse mode wins, above it forward mode. The rule calls are *counted*, so
# they are the same on every machine. Seconds are not. Measure them on yours, one pass after the other: m stays 16, n
# grows. (`ad.jacobian` itself lets all passes travel together as one stack. That saves Python's time for each call and not
# the arithmetic, so with arrays as small as these it would hide what we want to see.)


# %%
def forward_passes(f, x):
    return [ad.jvp(f, (x,), (direction,))[1] for direction in np.eye(x.size)]


def reverse_passes(f, x):
    value, pull = ad.vjp(f, x)
    return [pull(row)[0] for row in np.eye(value.size)]


# %%
def seconds(function, *arguments):
    taken = []
    for _ in range(7):
        began = time.perf_counter()
        function(*arguments)
        taken.append(time.perf_counter() - began)
    return min(taken)


inputs = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64]
measured = {"forward": [], "reverse": []}
for n in inputs:
    f, x = mixing(n, 16)
    measured["forward"].append(seconds(forward_passes, f, x))
    measured["reverse"].append(seconds(reverse_passes, f, x))

# %%
for n, forward, reverse in zip(inputs, *measured.values()):
    print(f"n = {n:2}   forward {forward * 1e3:6.2f} ms   reverse {reverse * 1e3:6.2f} ms")

# %% [markdown]
# The same as a picture. **Predict:** which of the two lines will be flat?

# %%
from IPython.display import SVG


def line(name, dashes, top):
    corners = " ".join(f"{60 + 5 * n},{200 - 170 * s / top:.0f}" for n, s in zip(inputs, measured[name]))
    height = 200 - 170 * measured[name][-1] / top
    label = f'<text x="386" y="{height + 5:.0f}">{name}</text>'
    return f'<polyline points="{corners}" fill="none" stroke="#2a6fdb" stroke-width="3" {dashes}/>{label}'


# %%
top = max(map(max, measured.values()))
picture = f"""<svg xmlns="http://www.w3.org/2000/svg" width="460" height="240" font-family="sans-serif" font-size="14">
<title>Seconds for a Jacobian with 16 outputs, against the number of inputs</title>
<rect width="460" height="240" fill="white"/><path d="M60 25 V200 H385" stroke="black" fill="none"/>
{line("forward", "", top)}{line("reverse", 'stroke-dasharray="8 5"', top)}
<path d="M140 200 V30" stroke="gray" stroke-dasharray="2 4"/><text x="112" y="22">n = m = 16</text>
<text x="8" y="38">{top * 1e3:.1f} ms</text><text x="44" y="205">0</text>
<text x="200" y="228">number of inputs n (1 to 64)</text></svg>"""
SVG(picture)

# %% [markdown]
# Forward mode rises with the number of inputs, reverse mode stays almost flat. On your machine they do not cross exactly
# at n = m: the two modes do different work for each pass, and reverse mode first has to record the program. Say where
# they cross for you; counts alone would not have told.
#
# ## 6 Why deep learning goes backwards
#
# A training step needs the gradient of **one** number, the loss, for **all** weights: m = 1, and n is huge. Here is a
# network with two layers. Its weights become more and more; the number of its operations stays.
#
# **Predict:** the weights become a hundred times more. How does the number of rule calls change in reverse mode? And how
# many passes would forward mode take?


# %%
def network_loss(w1, w2, x, target):
    error = ops.tanh(x @ w1) @ w2 - target
    return (error * error).mean()


def network(width):
    random = np.random.default_rng(0)
    shapes = [(8, width), (width, 4), (256, 8), (256, 4)]
    return [random.normal(size=shape) / np.sqrt(width) for shape in shapes]


# %%
print("weights  rules  loss alone  loss and gradient  forward mode would take")
for width in (10, 100, 1000):
    arguments = network(width)
    with ad.listen() as heard:
        ad.grad(network_loss, argnums=(0, 1))(*arguments)
    rules = sum(type(event) is ad.events.ContributionAdded for event in heard)
    alone = seconds(network_loss, *arguments)
    both = seconds(ad.value_and_grad(network_loss, argnums=(0, 1)), *arguments)
    weights = arguments[0].size + arguments[1].size
    print(f"{weights:7}  {rules:5}  {alone * 1e3:7.2f} ms  {both * 1e3:14.2f} ms  {weights * both:14.1f} s")

# %% [markdown]
# The number of rules does not change at all, however many weights there are. Compare the times: with few weights, most of
# the time goes into writing the record; with many, into arithmetic, and then loss *and* gradient cost a few times as much as
# the loss alone. A few times, for thousands of derivatives. That is the reason why PyTorch, TensorFlow, MindSpore and JAX
# train in reverse mode. (The last column is an estimate: as many passes as there are weights, each as long as the
# column before it says. Nobody waits for that.)
#
# ## 7 The price: memory
#
# Nothing is free. Forward mode forgets each value as soon as it was used. The rules of reverse mode run later and read
# values of the forward pass, so these are **saved**.
#
# **Predict:** which values of this program must be kept? Look at the rules in section 2 again.

# %%
a = ad.tensor(np.linspace(0.1, 1.0, 1000), requires_grad=True, name="a")
b = ops.exp(a)
c = b + 1.0
d = c * a
total = d.sum()
graph = ad.graph_of(total, {"b": b, "c": c, "d": d})
for value, keepers in graph.saved_by.items():
    node = graph.nodes[value]
    print(f"{node.name}: {node.nbytes} bytes, kept for the rules of {[graph.nodes[k].label for k in keepers]}")

# %% [markdown]
# `b` is kept, since the rule of `exp` is its own result. `c` and `a` are kept for the product. Nobody needs `d`: the rule of
# a sum reads only the shape. A rule names what it reads, and exactly that is saved.
#
# How much is it in a deeper program? **Predict:** ten times as many layers, how many bytes?


# %%
def saved_bytes(layers):
    y = a
    for _ in range(layers):
        y = ops.tanh(y)
    graph = ad.graph_of(y.sum())
    return sum(graph.nodes[value].nbytes for value in graph.saved_by)


for layers in (1, 10, 100):
    print(layers, "layers:", saved_bytes(layers), "bytes saved")

# %% [markdown]
# Memory grows with the length of the program. In training, these saved values often take more room than the weights. And
# they are freed from the end: watch when, in the first program.

# %%
with ad.listen() as heard:
    total.backward()
for event in heard:
    if type(event) is ad.events.CotangentComplete:
        print(f"the rules of {event.op} run")
    if type(event) is ad.events.SavedValueReleased:
        print(f"    its saved value {event.name} is not needed any more: {event.nbytes} bytes")

# %% [markdown]
# What was saved last is freed first. In the middle of a training step, at the turning point between forward and backward,
# memory is fullest.
#
# One more thing that a sweep must not mind is depth:

# %%
y = x = ad.tensor(1.0, requires_grad=True)
for _ in range(5000):
    y = y + x
y.backward()
print(x.grad)

# %% [markdown]
# ## Summary
#
# * In **reverse mode** every value has a **cotangent**: how much the output moves for each unit that the value moves. It
#   flows from the output to the inputs.
# * Contributions are **added**; a node's rule runs once, **when all of them have arrived**.
# * Last path wins, a walk for every path, breadth-first: all three run without an error on simple programs, and fail on
#   values that are used twice, on deep programs, on skip connections.
# * The order is **not unique**; all that are right give the same gradient.
# * The Jacobian costs a pass for each input in forward mode, a sweep for each output in reverse mode. Training has one output
#   and many inputs.
# * Reverse mode pays with **memory**: what the rules read is kept until they run.
#
# ## Exercises
#
# 1. *Backward on a graph*: section 3. *Every legal next node* and *count the orders*: section 4. All checked.
# 2. On paper: the backward sweep of `loss = (x + y) * (x + y)`, at x = 1 and y = 2. Write down each contribution. Then check
#    with `GradientFlowView`.
# 3. A function has 3 inputs and 1,000 outputs, and feeds a second one with 1,000 inputs and 3 outputs. Which mode would you
#    use for the first, which for the second, and which for both together?
# 4. In section 7, replace `c * a` by `c + a`. Predict what is saved now.
# 5. Change the sweep of section 3 so that it sends contributions through `legal_next`, choosing at random.
#
# Where do you stand?

# %%
progress()
