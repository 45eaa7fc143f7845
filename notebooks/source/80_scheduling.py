"""Lesson 80, scheduling: the ready queue, whom it serves, critical paths, and what more workers and lists cannot do.

After: 10_computation_graph.
"""

# %% [markdown]
# # Who runs next?
#
# **The question:** a training step is hundreds or thousands of operations, and a machine has several workers: the cores of a
# processor, the streams of a GPU. Who decides what runs next, and how much does that decision matter?
#
# By the end you can
#
# * play the seven steps of a scheduler (调度器) with a *ready queue* (就绪队列), and write one,
# * tell a topological order from the order of execution,
# * serve a queue in three ways: first come first, last come first, and by priority (优先级),
# * find the *critical path* (关键路径) and make a priority of it,
# * say where your intuition fails: more workers can make it slower, and never waiting is not always best,
# * measure on your machine how much of it a schedule uses, and say what no schedule could use.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 A graph says who waits, not when | 6 |
# | 2 The seven steps | 18 |
# | 3 A topological order is not the order of execution | 8 |
# | 4 Whom does the queue serve? | 10 |
# | 5 The critical path | 20 |
# | 6 More workers, and slower | 12 |
# | 7 Patience | 8 |
# | 8 On your machine | 8 |
#
# **What must come across:** Scheduling is a topological sort plus resources. A priority has to look ahead. Intuition fails:
# more workers may hurt, and waiting may help.
#
# **If time is short, leave for home:** the exercise `shortest`, then `slower_with_more`.

# %%
import itertools

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, progress, solution
from autodiff_lab import ops, schedule

# %% [markdown]
# ## 1 A graph says who waits, not when
#
# Here is a small program, recorded as a graph. Each operation becomes a **task**: it waits for some others, and it takes some
# time. Let us say that the products take 4 seconds and everything else 1.
#
# **Predict:** which tasks could run at the same time? How long does it take with one worker? With two? With ten?


# %%
def program(x, w, v):
    left = ops.tanh(ops.matmul(x, w))
    right = ops.exp(x) + 1.0
    return ops.matmul(left * right, v)


graph = ad.record(program, *(np.eye(3) for _ in range(3)))


# %%
class Given:
    error = "made up for this lesson"

    def seconds(self, work):
        return 4.0 if work.op.name == "matmul" else 1.0


tasks = schedule.from_graph(graph, Given())
for workers in (1, 2, 10):
    print(f"workers: {workers:2}   seconds: {schedule.simulate(tasks, workers, 'fifo').makespan}")

# %% [markdown]
# `Given` is a *cost model*, the answer to "how long does this take?" in three lines. `schedule.simulate` runs the tasks in
# virtual time: nothing is computed, a clock jumps from event to event. The time from the start to the last end is called the
# **makespan**.
#
# Ten workers are no better than two. Look why: beside the name of each task stands what it costs, and the number in the name
# tells tasks of one kind apart. Step through the picture; from time to time it asks you what comes next. (The *priority* of a
# task says who goes first, the highest of them. Here it only counts who came first: 0, then −1, then −2. Section 4 has others.)

# %%
aw.ReadyQueueView(tasks, 2, "fifo", predict=True)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** How much do ten workers gain over two here?
#
# **Expected:** nothing: the longest way through the graph takes as long with any number of workers.

# %% [markdown]
# ## 2 The seven steps
#
# What you have just played is the workflow of most frameworks:
#
# 1. Take all operations from the graph.
# 2. Count for each how many others it waits for.
# 3. Put those with count 0 into the ready queue.
# 4. Take one out, allocate a resource for it, execute it.
# 5. When it is done, count down for those that wait for it.
# 6. Put those that reached 0 into the queue.
# 7. Repeat 4 to 6 until all are done.
#
# You have met five of them: they are the topological sort by counting (拓扑排序) of lesson 10. New are the clock and the
# worker in step 4. *Scheduling is a topological sort plus the allocation of resources.* The lab tells every step that it
# takes:

# %%
with ad.listen() as heard:
    schedule.simulate(tasks, 2, "fifo")
for (step, kind), events in itertools.groupby(heard, lambda event: (event.step, type(event).__name__)):
    names = [tasks.name(event.task) for event in events if hasattr(event, "task")]
    print(f"step {step}  {kind:24} {', '.join(names)}")

# %% [markdown]
# **Exercise: the seven steps.** Write the scheduler. Tasks are a dictionary again, as in the first lessons: each task with
# those that it waits for.

# %% exercise="seven_steps"

# %% [markdown]
# Your function makes no difference between simulating and scheduling: put a real call where you wrote down a start, and wait
# for a real end where you jumped, and it runs programs. `schedule.run` of the lab is built in just this way, and shares its
# ready queue with `schedule.simulate`.
#
# ## 3 A topological order is not the order of execution
#
# "Sort the graph once, then run the operations in that order." This works, and many frameworks began so. With several workers
# it has a price. Below, `a` is slow and `b` waits for it; `c` and `d` wait for nobody.
#
# **Predict:** the order a, b, c, d is topological. Two workers take the tasks in *this* order, and each starts as soon as it
# may. When does `c` start?
#
# In the picture each row, or *lane*, is a worker, and time goes to the right. Two schedules stand one below the other.

# %%
four = schedule.Tasks(
    {
        "a": schedule.Task(cost=3),
        "b": schedule.Task(cost=2, after=["a"]),
        "c": schedule.Task(cost=3),
        "d": schedule.Task(cost=2, after=["c"]),
    }
)
aw.TimelineView(schedule.simulate(four, 2, "in_order"), schedule.simulate(four, 2, "fifo"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Two workers take a, b, c, d strictly in this order. When does c start?
#
# **Expected:** at 3, when a is done: b stands at the head of the line, is not ready, and holds up c, which is. "In
# topological order" is not "as soon as possible".

# %% [markdown]
# In order, `b` stands at the head of the line, is not ready, and holds up `c`, which is. The second worker is idle, and the
# picture says for which reason. A topological order says who may not overtake **whom**; who waits for nobody may overtake.
#
# It is not always so bad. **Predict:** on a chain, a → b → c → d, which of the two ways is faster?

# %%
chain = {"a": schedule.Task(cost=3)} | {
    name: schedule.Task(cost=2, after=[before]) for before, name in (("a", "b"), ("b", "c"), ("c", "d"))
}
for policy in ("in_order", "fifo"):
    print(policy, schedule.simulate(chain, 2, policy).makespan)

# %% [markdown]
# Neither. A chain has nothing that could run side by side; no policy helps. Keep that in mind whenever somebody promises you
# a speed-up: *ask what the graph looks like*.
#
# ## 4 Whom does the queue serve?
#
# Step 4 says "take one". Which one? That decision is called the **policy** (策略):
#
# * FIFO, first in, first out: who became ready first goes first.
# * LIFO, last in, first out: the newest first, as from a pile of plates.
# * By priority: each task has a number, and the highest goes first.
#
# **Exercise: whom the queue serves.**

# %% exercise="served"

# %% [markdown]
# Now six tasks under two policies: there is one long way, `k1` → `k2` → `k3`, of 3 seconds each, and three short errands of 2
# seconds, `e1`, `e2` and `e3`, that nobody waits for.
#
# **Predict:** at the beginning all are ready but `k2` and `k3`. FIFO takes them in the order in which they are written down:
# the errands first. What is the makespan with two workers? What would be the best?

# %%
errands = {name: schedule.Task(cost=2) for name in ("e1", "e2", "e3")}
key = {"k1": schedule.Task(cost=3)} | {
    name: schedule.Task(cost=3, after=[before]) for before, name in (("k1", "k2"), ("k2", "k3"))
}
workshop = schedule.Tasks(errands | key)
aw.TimelineView(schedule.simulate(workshop, 2, "fifo"), schedule.simulate(workshop, 2, "lifo"))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** LIFO wins here. Is it the better policy?
#
# **Expected:** no: the important task happens to stand last. Written down the other way round, FIFO wins. A policy that
# looks at the order of arrival is lucky or unlucky.

# %% [markdown]
# LIFO wins here, and it knows nothing: the important task happens to stand last in the dictionary. Written down the other way
# round, `key | errands`, FIFO wins. A policy that only looks at the *order of arrival* is lucky or unlucky. A good one has to
# know what comes after.
#
# ## 5 The critical path
#
# Which task should never wait? The one with the longest way still before it. The longest way from the start of a task to the
# end of the program is its **upward rank**. The largest of all ranks is the length of the **critical path**, and no number of
# workers finishes before that.
#
# **Predict:** what is the rank of `k1`? Of `e1`?

# %%
ranks = schedule.upward_ranks(workshop, schedule.cores(2))
print({task.name: rank for task, rank in zip(workshop, ranks)})
print("makespan by critical path:", schedule.simulate(workshop, 2, "critical_path").makespan)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** What is the upward rank of k1, and of e1? What does the largest rank tell?
#
# **Expected:** 9 and 2. The largest rank is the length of the critical path: nobody finishes before that, with any number
# of workers.

# %% [markdown]
# **Exercise: upward rank.** Values may also have to travel from one device to another, and that time belongs to the way.

# %% exercise="upward_rank"

# %% [markdown]
# The rank is a priority that looks ahead. It costs one pass over the graph, backwards, before anything runs.
#
# In the lab a policy of your own is a function in a cell. It is given a task and the state of the run, and returns a number:
# the highest goes first. **Predict:** is it a good idea to begin with the task that takes longest?


# %%
def longest_first(task, state):
    return task.cost


def critical_path(task, state):
    return ranks[task.id]


for policy in (longest_first, critical_path, "fifo"):
    print(schedule.simulate(workshop, 2, policy))

# %% [markdown]
# Here it is, because the important tasks are also the longest. Turn that round and try: give `k1`, `k2` and `k3` a cost of 1
# and add two more of them.
#
# **Exercise: beat FIFO.** You may use everything that you have: it is the choice that counts.

# %% exercise="beat_fifo"

# %% [markdown]
# Play against a policy yourself: in the picture below *you* choose what starts, by clicking on a ready task whenever it is your
# turn. Your rival takes the longest way first. (To play again, run the cell again.)

# %%
aw.ReadyQueueView(workshop, 2, "critical_path", race=True)

# %% [markdown]
# ## 6 More workers, and slower
#
# Graham published these nine tasks in 1969. They stand in a list; whenever a worker is free, it takes the first task of the
# list that is ready. (This is the policy `priority`.)

# %%
NAMES = ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9"]
COSTS = [3, 2, 2, 2, 4, 4, 4, 4, 9]
BEFORE = {"T9": ["T1"]} | {name: ["T4"] for name in ("T5", "T6", "T7", "T8")}


def graham(costs=COSTS, before=BEFORE, order=NAMES):
    places = {name: -place for place, name in enumerate(order)}
    return schedule.Tasks(
        {n: schedule.Task(cost=c, after=before.get(n, ()), priority=places[n]) for n, c in zip(NAMES, costs)}
    )


print("three workers:", schedule.simulate(graham(), 3, "priority").makespan)

# %% [markdown]
# Twelve, and that cannot be beaten: T1 and T9 alone take that long. Now we help. **Predict** for each of the four, is it
# faster, slower, or the same?
#
# 1. There is a fourth worker.
# 2. Every task takes one second less.
# 3. T5 and T6 need not wait for T4 any more.
# 4. T3 stands a little later in the list.

# %%
shorter = [cost - 1 for cost in COSTS]
freer = {name: BEFORE[name] for name in ("T9", "T7", "T8")}
other = ["T1", "T2", "T4", "T5", "T6", "T3", "T9", "T7", "T8"]
print("1:", schedule.simulate(graham(), 4, "priority").makespan)
print("2:", schedule.simulate(graham(costs=shorter), 3, "priority").makespan)
print("3:", schedule.simulate(graham(before=freer), 3, "priority").makespan)
print("4:", schedule.simulate(graham(order=other), 3, "priority").makespan)

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** A fourth worker, shorter tasks, fewer dependencies, another list: faster or slower than 12?
#
# **Expected:** all four slower: 15, 13, 16 and 14 (Graham, 1969). Almost nobody guesses that. With four workers T8 is ready
# when T1 ends, takes the worker, and T9, the long one, has to wait.

# %% [markdown]
# All four are slower. It is called **Graham's anomaly**. What has the fourth worker done? Put both timelines on one axis.
# **Predict:** which task starts too early?

# %%
aw.TimelineView(schedule.simulate(graham(), 3, "priority"), schedule.simulate(graham(), 4, "priority"))

# %% [markdown]
# With four workers T4 is done sooner, so T5 to T8 are ready sooner. When T1 ends, T8 is waiting already, and it stands before
# T9 in the list: it takes the worker, and T9, the long one, has to wait. With three workers T9 was lucky: T5 to T8 were not
# yet ready.
#
# The list is to blame, not the number. **Predict:** with the critical path as the policy, does the fourth worker still hurt?

# %%
for workers in (3, 4):
    print(workers, schedule.simulate(graham(), workers, "critical_path").makespan)

# %% [markdown]
# **Exercise: slower with more.** Where do other lists have such places?

# %% exercise="slower_with_more"

# %% [markdown]
# ## 7 Patience
#
# All policies so far are *greedy* (贪心): no worker is ever idle while a task is ready. Surely that cannot be wrong?
#
# **Predict:** two workers; `a` takes 1 second, then two long tasks `b1` and `b2` become ready, and `z` waits for both. `c`
# waits for nobody and nobody waits for it. What is best for the second worker at time 0?


# %%
five = {
    "a": schedule.Task(cost=1),
    "b1": schedule.Task(cost=10, after=["a"]),
    "b2": schedule.Task(cost=10, after=["a"]),
    "c": schedule.Task(cost=2),
    "z": schedule.Task(cost=5, after=["b1", "b2"]),
}


def patient(task, state):
    too_early = task.name == "c" and not state.has_started(state.tasks.id_of("b2"))
    return None if too_early else schedule.soonest(task, state)


# %% [markdown]
# A policy is *two* functions. The second one, `place`, names the resource, or answers None: not now. Ours lets `c` wait.

# %%
greedy = schedule.simulate(five, 2, "critical_path")
waiting = schedule.simulate(five, 2, schedule.Policy("patient", lambda task, state: -task.id, patient))
aw.TimelineView(greedy, waiting)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** What is best for the second worker at time 0: to start c, or to wait one second?
#
# **Expected:** to wait. c would keep it until 2, while b2 is ready at 1, and z waits for b2. Greedy is never worse than 2 −
# 1/m times the best, and is not the best.

# %% [markdown]
# One second of doing nothing wins one second for the whole. So "never idle" is a rule of thumb. How good is it? Graham proved
# that with m workers *any* greedy schedule takes at most 2 − 1/m times as long as the best one. And the best one? Nobody
# knows a way to find it that is fast for all graphs: the problem is NP-hard. For a handful of tasks you can try everything.
#
# **Exercise: shortest.** (Worth it if you have a quarter of an hour left.)

# %% exercise="shortest"

# %% [markdown]
# ## 8 On your machine
#
# Is it worth the trouble for a real program? "A good scheduler uses over 90 % of the devices, a bad one perhaps not half",
# says the lecture. Let us measure. The program: eight towers of matrix products, side by side. Beside it: one tower.
#
# **Predict** for two workers, how much of them does each policy use, of eight towers and of one: in topological order, FIFO,
# critical path?


# %%
def towers(x, weights):
    total = 0.0
    for column in weights:
        h = x
        for w in column:
            h = ops.tanh(ops.matmul(h, w))
        total = total + h
    return total


rng = np.random.default_rng(0)
x = rng.normal(size=(300, 300)).astype("float32")
eight = [[rng.normal(size=(300, 300)).astype("float32") / 17 for _ in range(3)] for _ in range(8)]
one = [[w for column in eight[:4] for w in column]]

# %% [markdown]
# `schedule.run` computes the graph on real threads. `schedule.measure` times each operation alone; with these costs
# `simulate` says what two workers should need. Both stand side by side, and both print the **bound**: with all work W,
# critical path CP and m workers, no policy uses more than W / (m · CP), or 100 %.


# %%
def compare(name, weights):
    arguments = [x, *(w for column in weights for w in column)]
    graph = ad.record(towers, x, weights)
    costs = schedule.measure(graph, *arguments, repeats=3)
    tasks = schedule.from_graph(graph, costs)
    print(name)
    for policy in ("in_order", "fifo", "critical_path"):
        expected = schedule.simulate(tasks, 2, policy)
        runs = [schedule.run(graph, arguments, 2, policy, costs=costs)[1] for _ in range(3)]
        real = max(run.cpu_utilisation for run in runs)
        print(f"  {policy:14} measured {real:4.0%}  simulated {expected.utilisation:4.0%}  of {expected.bound:4.0%}")


compare("eight towers", eight)
compare("one tower", one)

# %% [markdown]
# *Measured* is the time that the workers really computed, of all the time that they had. If other programs keep your machine
# busy, or if it has one core only, the measured column is lower than it should be; the simulated one does not mind.
#
# Read the simulated column first. In order, one tower after the other, the second worker has next to nothing to do, and about
# half is used. A ready queue finds the other towers, and nearly everything is used. And on **one** tower all three are alike:
# the bound itself is one half. With two cores free, the measured column tells the same story. *The bound is a property of the
# graph, and the policy decides how near you come.* So never look at a utilisation without the bound beside it.
#
# Where did the time go that was not used? In the picture idle time is hatched: select a stretch of it, and beside the picture
# you read why nobody worked there. (Two runs never take exactly the same time, so do not compare the two makespans here.)

# %%
graph = ad.record(towers, x, eight)
arguments = [x, *(w for column in eight for w in column)]
outputs, in_order = schedule.run(graph, arguments, 2, "in_order")
others, by_rank = schedule.run(graph, arguments, 2, "critical_path")
aw.TimelineView(in_order, by_rank)

# %% [markdown]
# One thing more: are the results the same, whoever ran first?

# %%
print(np.array_equal(outputs, others))

# %% [markdown]
# Bit by bit. The order of execution may change; who waits for whom may not, and so neither do the numbers.
#
# ## Summary
#
# * Scheduling is a topological sort **plus** the allocation of resources: seven steps around a ready queue.
# * A topological order says who may not overtake whom. Run *in* that order, one task that is not ready holds up all others.
# * FIFO and LIFO see the order of arrival only. The **upward rank**, the longest way to the end, makes a priority that looks
#   ahead.
# * The makespan is never shorter than the critical path, nor than all work divided by the workers. Print that bound.
# * More workers, shorter tasks and fewer dependencies can all make a list schedule *slower*. And a worker that waits for a
#   moment is sometimes right.
# * A policy helps where the graph has something to run side by side. On a chain all policies are equal.
#
# ## Exercises
#
# 1. *seven_steps*: section 2, checked.
# 2. *served*: section 4, checked.
# 3. *upward_rank*: section 5, checked. Which graph makes the rank of the first task the sum of all costs?
# 4. *beat_fifo*: section 5, checked. Is there a graph on which the critical path loses against FIFO? Let random graphs
#    tell you.
# 5. *slower_with_more*: section 6, checked.
# 6. *shortest*: section 7, checked.
# 7. On paper: show that a greedy schedule is never longer than twice the best one. (At each moment, either all workers are
#    busy, or some task of a longest way is running.)
# 8. HEFT is a policy that also fills gaps. Run `schedule.simulate(five, 2, "heft")`: does it find the patient plan? Why?
# 9. `schedule.POLICIES` has more. Which of them uses your machine best for a program of your own?
#
# Where do you stand?

# %%
progress()
