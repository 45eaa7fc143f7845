"""Lesson 70, devices: one op on two devices, which kernel runs, when numbers travel, and what the host waits for.

After: 60_registering_an_op.
Machine: a GPU is used if there is one; without it the simulated device stands in, and says so.
"""

# %% [markdown]
# # One op, two devices
#
# **The question:** a program that runs on the CPU shall run on a GPU. Who decides which code runs there, when do
# numbers travel, and why is the program slow, though the GPU is fast?
#
# By the end you can
#
# * say where a value lies and who may move it, and see every copy in the graph,
# * say which *kernel* (核函数) a call runs, by *dispatch* (分发) on device and dtype,
# * write a kernel for a second device, and say why "right on the CPU" does not mean "right on the GPU",
# * read what host and device do at the same time, and where the host *synchronises* (同步),
# * find hidden copies and hidden waits, and know what to do when memory is full.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 Where numbers lie | 8 |
# | 2 Moving is an op | 8 |
# | 3 Which kernel runs? | 14 |
# | 4 A second kernel | 18 |
# | 5 The host does not wait | 14 |
# | 6 Hidden copies | 14 |
# | 7 When memory is full | 10 |
#
# **What must come across:** An op runs where its operands lie; a copy is an op; the host queues and goes on. Everything is
# shown on a simulated device, so a GPU is not needed.
#
# **If time is short, leave for home:** section 7, and exercise 6 at the end.

# %%
import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, limited, progress, solution
from autodiff_lab import ops, simulated
from autodiff_lab.layers import MLP
from autodiff_lab.optimizers import SGD, Optimizer

gpu = ad.accelerator()
print(*ad.devices(), f"this lesson uses: {gpu}", sep="\n")

# %% [markdown]
# Have you no GPU? Then the lesson uses `sim:0`, a device that is *simulated* (模拟) and says so wherever it appears. It
# computes with NumPy, so it is not fast. In everything else it behaves like a GPU, and is as strict as one: it has memory
# of its own, does its work later than it is asked to, and refuses what a GPU refuses. A real GPU hides most of that; here
# you can look inside.

# %% [markdown]
# ## 1 Where numbers lie
#
# An array lies in the memory of one device. The GPU (the *device*) computes with what lies in its own memory, and the CPU (the
# *host*, 主机) with what lies in its own.
#
# **Predict:** `here` lies on the CPU, `there` on the device. Which of the five lines below give a result, and
# where does it lie?


# %%
def tried(text):
    try:
        print(f"{text:24}", eval(text))
    except Exception as error:
        print(f"{text:24}", f"{type(error).__name__}: {error}")


here = ad.tensor([1.0, 2.0, 3.0])
there = here.to(gpu)
for text in ("ops.tanh(here)", "ops.tanh(there)", "there * 2.0", "there + here", "there + np.ones(3)"):
    tried(text)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Which of the five lines give a result, and where does it lie?
#
# **Expected:** the first three do: on the CPU, on the device, on the device (a Python number lies nowhere). The last two
# mix devices and are refused; `there + np.ones(3)` is the one that people get wrong, since a NumPy array lies on the CPU.

# %% [markdown]
# The same op runs on both devices; it runs where its operands lie. A Python number lies nowhere: it goes along with the
# call. But two arrays on two devices do not meet. Somebody has to move one, and the lab does not do that by itself.
#
# Why so strict? Could it not just copy? Let us see what a copy costs. The simulated device has about the speeds of a GPU.
#
# **Predict:** how much longer does it take to bring 100 MB to the device than to add 1 to all of them there?

# %%
costs = simulated.device(0).costs
print(costs)
nbytes = 100e6
print(f"over the link {1e3 * costs.link(nbytes):6.2f} ms")
print(f"x + 1 there   {1e3 * costs.kernel(2 * nbytes):6.2f} ms   (every byte is read, and written)")

# %% [markdown]
# A program that copies for every op is slower than one that never leaves the CPU. So a framework that copies without a
# word hides the most expensive thing that it does.

# %% [markdown]
# ## 2 Moving is an op
#
# `x.to(device)` copies. It is an op like any other, `to_device`: it stands in the graph, and has a gradient rule.
#
# **Predict:** below `x` and `w` lie on the CPU, and so does the loss. How many copies are in the graph? (A value that lies
# elsewhere says where.)


# %%
def loss(x, w):
    y = x.to(gpu) @ w.to(gpu)
    return ops.sum(ops.tanh(y)).to("cpu")


rng = np.random.default_rng(70)
x, w = rng.normal(size=(64, 32)), rng.normal(size=(32, 8))
graph = ad.record(loss, x, w)
aw.GraphView(graph)

# %% [markdown]
# Now we ask for the gradient of `w`. **Predict:** what is the gradient rule of a copy to the device? How many copies does the
# backward pass add?

# %%
step = ad.record(ad.value_and_grad(loss, argnums=1), x, w)
for node in step:
    if node.kind == "op" and node.op.name == "to_device":
        print(f"{node.phase:9} to {node.device:6} {node.shape}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** What is the gradient rule of a copy to the device? How many copies does backward add for w?
#
# **Expected:** a copy in the other direction. The gradient of w goes home by one copy, and that of the loss, which was
# copied to the CPU, goes to the device by one. x wants no gradient, so nothing comes back for it.

# %% [markdown]
# What was copied forward comes back as a gradient, by a copy in the other direction. `x` wants no gradient, so nothing
# comes back for it.
#
# A graph shows the copies that are planned. What is really copied is *told*, to whoever listens, also when no `to_device`
# stands anywhere. **Predict:** how many bytes travel when the graph runs? (A float64 has 8.)

# %%
with ad.listen() as told:
    step(x, w)
for event in told:
    if isinstance(event, ad.events.Transferred):
        print(f"{event.source:6} to {event.target:6} {event.nbytes:6} bytes")

# %% [markdown]
# Weights that travel there and back in every step are a mistake of beginners. A layer's weights are made on the device, or
# moved there **once**: `layer.to(gpu)`.

# %% [markdown]
# ## 3 Which kernel runs?
#
# What we call an op has many implementations, called kernels: one for every array library, a better one for this GPU, a
# better one still for float32. Which of them runs is decided for every call, by the device and the dtype of its
# operands. This is *dispatch*.
#
# Here is an op with one kernel for everybody, and three special ones.


# %%
@ad.op(elementwise=True)
def doubled(xp, x):
    """2 · x."""
    return x + x


# %%
@doubled.kernel("cpu")
def by_the_cpu(xp, x):
    return 2 * x


@doubled.kernel("cuda")
def by_cuda(xp, x):
    return x * 2


@doubled.kernel("any", dtype="float32")
def narrow(xp, x):
    return xp.multiply(x, 2, dtype=xp.float32)


# %% [markdown]
# **Predict:** an array of float32 lies on the CPU. Two kernels fit, `by_the_cpu` and `narrow`. Which one runs? Then step.

# %%
aw.DispatchView(doubled, np.ones(3, np.float32))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** A float32 array on the CPU: `by_the_cpu` or `narrow`?
#
# **Expected:** `by_the_cpu`. The device counts more than the dtype: keys are tried in the order device and dtype, device,
# dtype, anything.

# %% [markdown]
# Four keys are looked for, from the most special to the most general one: device and dtype, the device, the dtype, anything.
# The device counts more than the dtype: who wrote a kernel for a device knew it well.
#
# **Predict** the kernel for each line before you run. One of them surprises many people.

# %%
for device in ("cpu", "cuda:0", "sim:0"):
    for dtype in ("float32", "float64"):
        keys = ad.dispatch_told(doubled, [np.ones(3, dtype)], device=device)
        print(f"{device:7} {dtype:8} {keys[-1].kernel:10} found at key {len(keys)}")

# %% [markdown]
# `sim:0` is a stand-in for a GPU, and does not take the kernels that were written for CUDA: it could not run them. And no
# device falls back to a kernel of the CPU, since that kernel could not read the device's memory.
#
# **Exercise: write the dispatch.**

# %% exercise="kernel_for"

# %% [markdown]
# ## 4 A second kernel
#
# A colleague has an op whose kernel has worked on the CPU for years.


# %%
@ad.op(elementwise=True)
def leaky(xp, x):
    """x where x > 0, else x / 10."""
    return np.where(x > 0, x, 0.1 * x)


print(leaky(np.array([-1.0, 2.0])))

# %% [markdown]
# **Predict:** what happens on the device? At which of the two lines?

# %%
result = leaky(ad.tensor([-1.0, 2.0], device="sim:0"))
print("the call came back:", result.shape, result.dtype)
try:
    print(result.numpy())
except ad.OpError as error:
    print(error)

# %% [markdown]
# The kernel calls NumPy, and NumPy computes on the CPU. Look also at *when* it failed: the call itself came back, with shape
# and dtype, and the error came where the numbers were needed. Section 5 is about that. The message names the line
# that is to blame.
#
# A kernel is given the array library that computes where its arrays lie: `xp`. Here are four kernels that are right on the
# CPU. **Predict:** which of them run on the device?


# %%
def calls_numpy(xp, x):
    return np.tanh(x)


def has_a_table(xp, x):
    return x * np.array([1.0, 10.0, 100.0])


def looks(xp, x):
    return x if x.sum() > 0 else -x


def comes_home(xp, x):
    return xp.asarray([2.0 * float(number) for number in x])


# %%
sim = ad.library_of("sim:0")
for kernel in (calls_numpy, has_a_table, looks, comes_home):
    print(f"{kernel.__name__} on the CPU:", kernel(np, np.array([1.0, -2.0, 0.5])))
    try:
        kernel(sim, sim.asarray(np.array([1.0, -2.0, 0.5])))
    except TypeError as error:
        print(f"  on sim:0: {error}")

# %% [markdown]
# None of them. Right on the CPU is not right on the GPU. A real GPU can be more patient at one place or other (CuPy lets
# `np.tanh` of its own arrays pass), and there the program works by luck, on that library, in that version.
#
# So a second kernel is *tested*: on many inputs, several dtypes and shapes, against the first one. Must the numbers be
# equal? **Predict:** the same 100,000 numbers in float32, added up in two orders.

# %%
many = rng.normal(size=100_000).astype(np.float32)
print(f"{np.sum(many):.5f}, one after the other {np.cumsum(many)[-1]:.5f}, in float64 {np.sum(many, dtype=float):.5f}")

# %% [markdown]
# Rounding depends on the order, and a GPU adds in another order than a CPU. So kernels are compared with a tolerance: some
# units in the last digit of the largest number that was on the way, not bit for bit. (The simulated device computes with
# NumPy. It gives the same bits, and cannot show you this.)
#
# **Exercise: a second kernel.** The first one is below. It is right, on the CPU.


# %%
def nearest_level_on_the_cpu(xp, x, levels):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape):
        out[place] = min(levels, key=lambda level: abs(x[place] - level))
    return out


nearest_level_on_the_cpu(np, np.array([0.2, 0.9, -3.0]), (0.0, 1.0))

# %% exercise="nearest_level"

# %% [markdown]
# ## 5 The host does not wait
#
# What does the host do while the device computes? It goes on. A call of an op puts work into a *queue* (队列) and comes
# back at once. The device takes one piece after the other. On the simulated device we can watch both, in *virtual
# time*, which follows from the costs above and is the same on every computer.


# %%
def lanes(told):
    """A row for each event: who is busy, with what, and when. Four microseconds a character."""
    first = told[0].queued
    for event in told:
        match event:
            case ad.events.WorkQueued():
                row = f"device {event.name}"
            case ad.events.Synchronised():
                row = f"host   waits: {event.asked_by}"
            case ad.events.Transferred():
                row = f"host   copies {event.nbytes} bytes"
        start, end = (round(1e6 * (time - first) / 4) for time in event[-2:])
        print(f"{row:24} |{' ' * start}{'█' * max(end - start, 1)}")


# %% [markdown]
# **Predict:** the program has four calls and one `.item()`. At which of its lines does the host spend its time?

# %%
x = ad.tensor(rng.normal(size=(1000, 1000)), device="sim:0")
with ad.listen() as told:
    y = ops.tanh(x)
    y = y * 2.0
    y = y + 1.0
    total = y.sum()
    total.item()
lanes(told)
print(f"the last call was queued {1e6 * (told[3].queued - told[0].queued):.0f} µs after the first")

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** Four calls and one `.item()`: at which line does the host spend its time?
#
# **Expected:** in `.item()`. The calls only put work into a queue. Who measures `ops.tanh(x)` without waiting measures the
# queue.

# %% [markdown]
# All four calls were queued before the first kernel was half done. The host spent its time in `.item()`: it waited until
# everything that was queued had been computed, then fetched 8 bytes. Who measures how long `ops.tanh(x)` takes, and forgets
# to wait for the device, measures the queue.
#
# What would the host find if it did not wait? On a GPU whatever happens to lie in that memory: perhaps the numbers, perhaps
# not yet. `.item()`, `.numpy()` and `print` always wait. The simulated device can show what they protect from:

# %%
y = ops.tanh(x)
try:
    y.data.get(blocking=False)
except simulated.NotSynchronisedError as error:
    print(error)
simulated.device(0).synchronize()
print(y.data.get(blocking=False)[0, :3])

# %% [markdown]
# Waiting has a price beyond the wait. Below a model is trained. After each step the host prepares the next batch, which
# takes 100 µs, and it keeps the losses, for a plot. In one program it reads the loss after every step. In the other one
# the losses stay on the device until the end.
#
# **Predict:** both do the same computations. Which one is faster, and by how much?


# %%
def train(read_every_step, steps=20):
    model = MLP(32, 64, 10, seed=0).to("sim:0")
    optimizer, losses = Optimizer(model.parameters(), SGD(0.1)), []
    began = simulated.host.now
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ops.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item() if read_every_step else loss.detach())
        simulated.host.now += 100e-6  # the host prepares the next batch
    losses = np.array(losses) if read_every_step else ops.stack(losses).numpy()
    return losses, 1e3 * (simulated.host.now - began)


# %%
batch = ad.tensor(rng.normal(size=(64, 32)), dtype=np.float32, device="sim:0")
labels = ad.tensor(rng.integers(0, 10, 64), device="sim:0")
read, milliseconds = train(read_every_step=True)
later, fewer = train(read_every_step=False)
print(f"read every step: {milliseconds:.2f} ms, at the end: {fewer:.2f} ms, same losses: {(read == later).all()}")

# %% [markdown]
# The same numbers, in less time. A number that is read is copied, and the copy waits its turn behind all that was queued: the
# backward pass, and the optimizer's step, too. When the wait is over nothing is queued any more. So while the host prepares
# a batch the device is idle, and while the device computes the host is idle. Who does not wait lets both work at once. Reading
# one number was enough to take that away.

# %% [markdown]
# ## 6 Hidden copies
#
# `.item()` can be seen. Others hide. **Predict:** which of these lines copy numbers between host and device?

# %%
x = ad.tensor([3.0, -1.0, 2.0], device="sim:0")
suspects = (
    "x * 2.0", "x.sum() > 0", "bool(x.sum() > 0)", "float(x.max())", "x[1:]", "x[np.array([0, 2])]",
    "repr(x)", "x.shape", "[row.item() for row in x]", "ops.where(x > 0, x, 0.0)", "x.to('cpu').to('sim:0')",
)  # fmt: skip
for text in suspects:
    with ad.listen() as told:
        eval(text)
    copies = [event.nbytes for event in told if isinstance(event, ad.events.Transferred)]
    print(f"{text:26} {'bytes: ' + str(copies) if copies else 'nothing'}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Does `x.sum() > 0` copy? And `bool(x.sum() > 0)`?
#
# **Expected:** the first makes a value on the device and copies nothing; the second copies one byte and waits for all that
# was queued. `where` decides on the device.

# %% [markdown]
# `x.sum() > 0` is a value on the device, and copies nothing. To *decide* by it, in an `if`, the host has to know it. `where`
# decides on the device. An index that is a NumPy array lies on the host, and travels with the call. And a `print` that was
# forgotten in a loop is a wait.
#
# **Exercise: find the hidden copies** of a program.

# %% exercise="copied_bytes"

# %% [markdown]
# ## 7 When memory is full
#
# A device has a memory of its own, and less of it than the host. For this section we take a second simulated device, with
# room for 40 MB.
#
# **Predict:** `x` has 8 MB. Each round makes 8 MB more and forgets its input. After how many rounds is the memory full? And
# what changes inside `no_grad`?


# %%
def rounds(x, at_most=50):
    for done in range(at_most):
        try:
            x = ops.tanh(x)
        except simulated.OutOfMemoryError as error:
            return f"full after {done} rounds: {error}"
    return f"{done + 1} rounds, no problem"


small = simulated.device(1)
small.memory_limit = 40_000_000
x = ad.tensor(np.ones((1000, 1000)), requires_grad=True, device="sim:1")
print(rounds(x))
with ad.no_grad():
    print(rounds(x))

# %% [markdown]
# `y = tanh(x)` needs `y` again in the backward pass, so every result is saved until then. Training needs memory for everything
# that the backward pass will read; computing without gradients needs only what is alive. The error came at the *call*, not
# later: how much memory a result needs is known from its shape.
#
# **Predict:** what is in use now, after both runs? And when `x` is gone, too?

# %%
print(small)
del x
print(small)

# %% [markdown]
# An array's memory is free again when nobody holds the array: no variable, no list, no graph. "Out of memory" after some
# hundred steps mostly means that somebody keeps things. A favourite is `losses.append(loss)`.
#
# **Predict:** what does one such `loss` hold?

# %%
for keep in (lambda loss: loss, lambda loss: loss.detach(), lambda loss: loss.item()):
    kept = []
    for _ in range(3):
        x = ad.tensor(np.ones((500, 500)), requires_grad=True, device="sim:1")
        kept.append(keep(ops.sum(ops.exp(x))))
    del x
    print(f"{small.memory_used:8} bytes in use")

# %% [markdown]
# A loss holds its whole graph, with every saved value. `.detach()` keeps one number on the device, without waiting;
# `.item()` keeps one on the host, and waits.

# %% [markdown]
# ## Summary
#
# * An op runs **where its operands lie**. Arrays on two devices do not meet; a Python number lies nowhere.
# * **Moving is an op**: it stands in the graph, its gradient moves back, and every copy is told.
# * **Dispatch** looks for a kernel by device and dtype, then device, then dtype, then anything. It never falls back to
#   the CPU.
# * A kernel computes with **`xp`**: no NumPy, no table of NumPy, no look at its own numbers. Right on the CPU is not right on
#   the GPU, so a second kernel is tested against the first.
# * The host **queues and goes on**. `.item()`, `float`, `if` and `print` make it wait, and what waits cannot overlap.
# * Memory is full because something is **held**: mostly a graph. `no_grad`, `detach`, and no lists of losses.
#
# ## Exercises
#
# 1. *kernel_for*: section 3, checked.
# 2. *nearest_level*: section 4, checked.
# 3. *copied_bytes*: section 6, checked.
# 4. Repair `leaky`: register a kernel for `"sim"` with `@leaky.kernel("sim")`, and look with `aw.DispatchView` which one
#    runs on which device.
# 5. In `train` of section 5 the host prepares a batch in 100 µs. How does the difference between the two programs depend on
#    that time? Try 0, 50 and 500 µs, then explain what you see.
# 6. The costs of a simulated device can be set: `simulated.device(0).costs = simulated.Costs(launch=50e-6)`. How do the
#    rows of section 5 look, if every kernel takes long to start? What would you do about it?
# 7. `loss` of section 2 copies `w` in every step. Rewrite the step so that `w` stays on the device, and count the bytes.
#
# Where do you stand?

# %%
progress()
