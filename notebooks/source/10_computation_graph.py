"""Lesson 10, a program is a graph: recording, sharing, topological order, gradients, and the engine on one screen.

After: 00_lecture.
"""

# %% [markdown]
# # A program is a graph
#
# **The question:** you write `loss.backward()`, one line. What does a framework have to know about your program to
# answer it?
#
# By the end you can
#
# * read the *computation graph* (计算图) of a program: its nodes and its edges,
# * say why a graph is not a tree, and why that matters,
# * record a program with a *tracer* of your own,
# * put a graph into a *topological order* (拓扑序), with code of your own,
# * follow a gradient backwards through the graph, contribution by contribution,
# * find the faults of a small engine that looks right.
#
# The lesson takes 60 to 90 minutes. It has one rhythm: **predict**, run, look, check. Make every prediction before
# you run the cell, on paper if you can. A wrong guess that you notice teaches more than a right one.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Recording a program | 8 |
# | 2 A graph is not a tree | 20 |
# | 3 An order to run it in | 10 |
# | 4 Your turn | 15 |
# | 5 Gradients flow along the order, backwards | 8 |
# | 6 An engine on one screen | 8 |
# | 7 Where it breaks | 12 |
# | 8 Why the order matters | 7 |
#
# **What must come across:** Values are nodes, uses are edges, and a graph is not a tree. An order is right by its property,
# not because it equals one list.
#
# **If time is short, leave for home:** sections 6 and 7, to be read. Keep section 8, which is the reason for all of it.

# %%
import autodiff_lab as ad
import autodiff_widgets as aw
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import ops

# %% [markdown]
# ## 1 Recording a program
#
# Below is a program of two operations. A framework can *record* it: it runs the function once, not on numbers but on
# stand-ins that write down what is done to them.
#
# **Predict:** how many nodes will the graph have? Count the values, not the operations.


# %%
def predict(x, w):
    h = x * w
    return ops.tanh(h)


graph = ad.record(predict, 2.0, 0.5)
print(graph)

# %% [markdown]
# Four nodes: two inputs and two results. Each line says how one value comes about: `mul(0, 1)` is the product of
# node 0 and node 1. Those numbers are the **edges**. An edge points from a value to the operation that uses it.
#
# Here is the same graph as a picture. Click a node to see its facts: the shape, the type of number, the line of *your*
# code that it came from. Step through it with the buttons, or with the arrow keys.

# %%
aw.GraphView(graph)

# %% [markdown]
# Nothing was computed when the graph was recorded. It is a plan, and it runs on any numbers:

# %%
print(graph(2.0, 0.5), graph(3.0, -1.0))

# %% [markdown]
# ## 2 A graph is not a tree
#
# School formulas look like trees: every part is used once. Programs are not like that. They compute something, give it
# a name, and use the name several times.
#
# **Predict:** in `x * x`, how many nodes are there? How many edges?

# %%
aw.GraphView(ad.record(lambda x: x * x, 3.0))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** How many nodes and how many edges has `x * x`?
#
# **Expected:** two nodes, the input and the product, and two edges that start at the same node. Usual wrong answers: three
# nodes (a tree), or one edge (a set of neighbours).
#
# **If nobody comes to it:** ask how many times x is *used*.

# %% [markdown]
# One input, one product, **two** edges: both arrows start at the same node. Remember this little graph. Many faults in
# home-made engines show on it first.
#
# Next, a *diamond*: one value goes two ways, and the ways meet again.
#
# **Predict:** how many nodes? Will `h` be drawn twice, since two operations use it?


# %%
def diamond(x):
    h = ops.exp(x)
    left = h + 1.0
    right = h * 2.0
    return left * right


aw.GraphView(ad.record(diamond, 0.5))

# %% [markdown]
# `h` is drawn once, because it is computed once. Now see what it would cost to forget that. This program doubles a
# value twenty times.
#
# **Predict:** how many nodes does its graph have? How many would it have if every use had a copy of its own?


# %%
def doubled(y, times=20):
    for _ in range(times):
        y = y + y
    return y


graph = ad.record(doubled, 1.0)
copies = 1
for node in graph:
    copies = 1 if node.kind == "input" else 1 + 2 * copies
print(len(graph), "nodes in the graph,", f"{copies:,}", "if it were a tree")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A value is doubled twenty times. How many nodes has the graph, and how many would a tree
# have?
#
# **Expected:** 21, against 2,097,151: each use would be a copy of all that is below it.

# %% [markdown]
# 21 against two million. Real networks share values everywhere: each weight, each skip connection, each normalised
# activation. Whoever walks a graph as if it were a tree never comes to an end.

# %% [markdown]
# How can a framework see all this, when it is only handed a function? It calls the function on *stand-ins* (占位对象):
# objects whose operators do not compute, but write down a line and give back another stand-in. Such a recorder is called
# a *tracer*. In Python, `a * b` calls the method `__mul__` of `a`:


# %%
class Talking:
    def __mul__(self, other):
        print("somebody multiplied me")
        return Talking()


result = (lambda x: x * x * x)(Talking())

# %% [markdown]
# The program ran, and no number was ever there. **Exercise: a tracer.** Make the stand-ins write a graph.

# %% exercise="trace"

# %% [markdown]
# The check compares your graph with the lab's own recording of the same program. Names are free: what has to agree is
# which node uses which.

# %% [markdown]
# ## 3 An order to run it in
#
# A node can be computed only when all its inputs are known. A list of all nodes in which **each node stands after all
# its inputs** is called a *topological order*. In the program below `h` goes two ways: a long one over `t` and `u`, and
# a short one over `v`.


# %%
def block(x, w):
    h = x * w
    t = ops.tanh(h)
    u = t * t
    v = ops.exp(h)
    return u + v


graph = ad.record(block, 2.0, 0.5)
print(graph)

# %% [markdown]
# **Predict:** write down one order by hand. Is it the only one? Which two nodes may change places, and which may not?
#
# Then watch a machine do it. *Depth-first search* starts at the output and goes to the inputs first. It keeps what is
# waiting on a stack, and writes a node down when all its inputs are written down. Step slowly at the end: where does
# the search meet `h` a second time, and what does it do there?

# %%
aw.TopologicalOrderView(graph, algorithm="depth_first")

# %% [markdown]
# *Kahn's algorithm* works from the other side. Every node counts the inputs that it waits for. A node whose count is
# zero joins a queue; when it leaves the queue, all its consumers count down by one.
#
# **Predict:** what is the count of `u` at the start, where `u = t * t`?

# %%
aw.TopologicalOrderView(graph, algorithm="kahn")

# %% [markdown]
# A count of two, from one input: an edge is counted each time it is used. Do the two algorithms agree?

# %%
one, other = ad.depth_first_order(graph), ad.kahn_order(graph)
for order in (one, other, one[::-1]):
    print(order, ad.is_topological_order(graph, order))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Depth-first search and counting give two different lists. Which of them is right?
#
# **Expected:** both. Each node stands after all of its inputs in both of them; nothing else is asked. So a test must check
# the property and not compare with a stored list.

# %% [markdown]
# They do not agree, and both are right: what counts is the property. Schedulers live from this freedom, since they may
# choose what runs next. The third list is the first one reversed, and it is wrong everywhere.
#
# When the short way has no operation on it at all, it is called a *skip connection*: `return u + h`. Residual networks
# and Transformers are made of them, so your order has to get them right.

# %% [markdown]
# ## 4 Your turn
#
# **Exercise: topological order.** Now you write what you have just watched.

# %% exercise="topological_order"

# %% [markdown]
# The check does not compare your list with one stored answer; it tests the property, on small graphs, on random ones
# and on one that is 5,000 operations deep. If something is wrong, it says what it believes you believed, and gives you
# the smallest input on which it showed. Run that input in a cell of your own and look at what comes back.

# %% [markdown]
# ## 5 Gradients flow along the order, backwards
#
# So why does a framework want an order at all? Because of `backward`. Here is the block again, this time with numbers.

# %%
x = ad.tensor(2.0, requires_grad=True, name="x")
w = ad.tensor(0.5, requires_grad=True, name="w")
h = x * w
t = ops.tanh(h)
u = t * t
v = ops.exp(h)
loss = u + v
print(loss)

# %% [markdown]
# The gradient starts at `loss` with the number 1: if `loss` grows by a little, `loss` grows by just as much. Each
# operation then sends one **contribution** along each of its edges: the gradient that arrived, times its own local
# derivative.
#
# One walk over all nodes, from `loss` back to the inputs, is called a *sweep*. Many local derivatives need a value of the
# forward pass (that of `x * w` needs `x` and `w`), so such values are *saved*, kept in memory, until the last rule that
# reads them has run; then their memory is *freed*.
#
# **Predict:** how many contributions does `h` receive? How many does `t` receive? In what order will the nodes be
# visited? Then step.

# %%
aw.GradientFlowView(loss)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** How many contributions do `h` and `t` receive? When may the rule of `h` run?
#
# **Expected:** two each. The rule of h runs when *both* have come, that is after those of `tanh` and of `exp`.

# %% [markdown]
# `t` received two, both from `u`, since `t * t` has two edges. `h` received two as well, one from `tanh` and one from
# `exp`. Only when **all** contributions of a node have arrived does its own rule run. That is the
# topological order, read backwards.
#
# Do not believe the picture; check it. A gradient says how much the loss moves when an input moves a little.

# %%
loss.backward()
step = 1e-6
up, down = block(2.0 + step, 0.5), block(2.0 - step, 0.5)
print("measured:", (up - down) / (2 * step))
print("backward:", x.grad.item())

# %% [markdown]
# ## 6 An engine on one screen
#
# How much code does this take? Surprisingly little. Engines like the one below are printed in many lectures and blog
# posts. It has two ideas: *each tensor knows how it was computed*, and *order first, then gradients*.
#
# First, what a tensor is: data, a gradient, the tensors it came from, and a function that sends the gradient back.


# %%
class Tensor:
    def __init__(self, data, requires_grad=False):
        self.data = data
        self.requires_grad = requires_grad
        self.grad = None
        self._backward = lambda: None
        self._parents = set()


# %% [markdown]
# Second, the operations. Each makes its result, and leaves with it a closure for later.


# %%
def add(self, other):
    out = Tensor(self.data + other.data)
    out._parents = {self, other}

    def _backward():
        self.grad = (self.grad or 0) + out.grad
        other.grad = (other.grad or 0) + out.grad

    out._backward = _backward
    return out


Tensor.__add__ = add


# %%
def mul(self, other):
    out = Tensor(self.data * other.data)
    out._parents = {self, other}

    def _backward():
        self.grad = (self.grad or 0) + other.data * out.grad
        other.grad = (other.grad or 0) + self.data * out.grad

    out._backward = _backward
    return out


Tensor.__mul__ = mul


# %% [markdown]
# Third, `backward`. You know the inner function: it is depth-first search, written with recursion.


# %%
def backward(self):
    order, visited = [], set()

    def build(tensor):
        if tensor not in visited:
            visited.add(tensor)
            for parent in tensor._parents:
                build(parent)
            order.append(tensor)

    build(self)
    self.grad = 1
    for tensor in reversed(order):
        tensor._backward()


# %% [markdown]
# That is a complete engine. Does it work? The derivative of x² + x is 2x + 1.

# %%
Tensor.backward = backward

x = Tensor(3.0, requires_grad=True)
y = x * x + x
y.backward()
print(x.grad)

# %% [markdown]
# Right. Many people stop here. Let us be less polite.

# %% [markdown]
# ## 7 Where it breaks
#
# There are six faults in those few lines. For each one: **predict** what happens, then run. Which of them would you
# rather have in your project: the ones that stop with an error, or the others?
#
# **Fault 1: calling `backward` twice.** The derivative of x⁴ at 3 is 108. Gradients of inputs add up from call to call,
# so after the second call it should be 216.

# %%
x = Tensor(3.0)
h = x * x
y = h * h
y.backward()
print("once: ", x.grad)
y.backward()
print("twice:", x.grad)

# %% [markdown]
# 324: the gradient of `h`, from the first call, was still lying there and was counted again. It is a value in between,
# so each call has to start it afresh. No error, just a wrong number.
#
# **Fault 2: arrays of different shapes.** `w` has three numbers, so its gradient must have three as well.

# %%
import numpy as np

x, w = Tensor(np.ones((2, 3))), Tensor(np.array([1.0, 2.0, 3.0]))
(x * w).backward()
print(w.data.shape, w.grad.shape)

# %% [markdown]
# Each of the three numbers was used twice, once in each row, so two contributions should have been added up. Again no
# error. A training loop would go on with it.
#
# **Fault 3: an array used twice.** Look at `self.grad or 0`. What is the truth value of an array?

# %%
x = Tensor(np.array([1.0, 2.0]))
try:
    (x * x).backward()
except ValueError as error:
    print(error)

# %% [markdown]
# **Fault 4: plain numbers.**

# %%
x = Tensor(3.0)
for expression in ("2 * x", "x * 2"):
    try:
        eval(expression)
    except (TypeError, AttributeError) as error:
        print(expression, "→", error)

# %% [markdown]
# **Fault 5: `requires_grad` is written down, and then nobody reads it.** A data set needs no gradient, and its
# operations need no record. Here it gets both, which costs time and memory in every step of a training run.

# %%
weight, data = Tensor(2.0, requires_grad=True), Tensor(5.0, requires_grad=False)
(weight * data).backward()
print(data.grad)

# %% [markdown]
# **Fault 6: deep programs.** A thousand additions in a row are nothing unusual.

# %%
import sys

y = x = Tensor(1.0)
for _ in range(sys.getrecursionlimit()):
    y = y + x
try:
    y.backward()
except RecursionError as error:
    print(error)

# %% [markdown]
# If the check told you about recursion a while ago, you know why. The lab has the same engine with these faults
# repaired, for plain numbers only: `autodiff_lab.micro`, about a hundred lines. Read it, for you know all its parts:
# `micro??` in a cell of its own shows it. (Write your own order first.)

# %%
from autodiff_lab import micro
from autodiff_lab.micro import Value

x = Value(3.0, requires_grad=True)
h = 2 * x * x
y = h * h
y.backward()
print("once: ", x.grad)
y.backward()
print("twice:", x.grad, " h:", h.grad)

# %% [markdown]
# It is honest about what it cannot do:

# %%
try:
    Value(np.ones(3))
except TypeError as error:
    print(error)

# %% [markdown]
# ## 8 Why the order matters
#
# Suppose somebody replaces the search by a simpler one: level by level from the output, *breadth-first*. Each node is
# visited once, the code is shorter, nothing raises.


# %%
def breadth_first(output):
    order = [output]
    for value in order:
        order += [parent for parent in dict.fromkeys(value.parents) if parent not in order]
    return order[::-1]


# %% [markdown]
# We run two programs through micro, with its own order and with the false one. The first program is a chain. The second
# one has a skip connection around `tanh` and `exp`.
#
# **Predict:** which of the four gradients will be wrong, and where does the gradient get lost?

# %%
from unittest.mock import patch


def gradient(program, order):
    x = Value(0.5, requires_grad=True)
    with patch.object(micro, "topological_order", order):
        program(x).backward()
    return x.grad


def chain(x):
    return ((x * 2).tanh() + 1).exp()


# %%
def skipping(x):
    h = x * 2
    return h + h.tanh().exp()


right = micro.topological_order
for program in (chain, skipping):
    print(program.__name__, gradient(program, right), gradient(program, breadth_first))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Four gradients, two programs and two orders: which is wrong, and where does it get lost?
#
# **Expected:** only the one of the program with the skip connection, in breadth-first order. The rule of h runs before the
# contribution over `tanh` and `exp` has arrived; what comes later is lost, and nothing raises.

# %% [markdown]
# On the chain both agree. With the skip connection the false order runs the rule of `h` before all contributions to
# `h` have arrived. What comes later is lost. The program runs, the loss is right, the gradient is wrong, and training
# is only *slow*. Faults of this kind have cost teams weeks, because nothing ever raises.
#
# So test an order by its property, and a gradient against a measurement, on a program that has a skip connection.

# %% [markdown]
# ## Summary
#
# * Recording a program gives a **graph**: values are nodes, uses are edges. `x * x` has two edges.
# * A graph is **not a tree**. Each value is computed once, however often it is used.
# * A **topological order** puts each node after all its inputs. Depth-first search and counting both find one; there
#   are many, and all are right.
# * `backward` walks the order in reverse. A node's rule runs when **all its contributions** have arrived; they are
#   **added**.
# * The dangerous faults are those that raise nothing: stale gradients, shapes that broadcast, a wrong order.
#
# ## Exercises
#
# 1. *A tracer*: section 2, checked. *Topological order*: section 4, checked.
# 2. On paper: draw the graph of `(x + y) * (x + y)`, written in one line as here. How many additions does the framework
#    record? Then record it. What would you write to have only one?
# 3. On paper: how many topological orders does the diamond of section 2 have? Look at its constants, too.
# 4. Section 7, fault 2: what would `mul` have to do with `out.grad` so that the shapes agree?
# 5. Make a program of your own of at least ten operations. Look at it in `GraphView`, and predict with
#    `GradientFlowView` closed which node is visited last.
#
# Where do you stand?

# %%
progress()
