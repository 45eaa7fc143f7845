"""Python's search for garbage while tapes grow, each test in an interpreter of its own, whose heap nobody else has filled."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCENE = """
import gc, json, weakref
import numpy as np
import autodiff_lab as ad

class Ring:
    def __init__(self):
        self.itself = self

held = []  # what is dropped only when it is old: searches of young objects would find it

def hold(count):
    held.extend(Ring() for _ in range(count))
    return [weakref.ref(one) for one in held[-count:]]

def alive(rings):
    return sum(ring() is not None for ring in rings)

x, w, b = (ad.tensor([number], requires_grad=True) for number in (0.5, 0.9999, 1e-4))

def tape(nodes, each=lambda number: None):
    h = x
    for number in range(nodes):
        h = h + b if number & 1 else h * w
        each(number)
    return h

def make_objects(count=300_000):
    return [[] for _ in range(count)]

looked_at = []

def look(phase, info):
    if phase == "start" and info["generation"] == 2:
        looked_at.append(len(gc.get_objects()))

tape(10)
gc.collect()
gc.callbacks.append(look)
"""


def after(code: str) -> Any:
    """What ``found`` is after some code in that scene."""
    program = f"{SCENE}\n{code}\nprint(json.dumps(found))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return json.loads(ran.stdout)


def test_full_searches_while_a_tape_grows_look_at_next_to_nothing() -> None:
    found = after("""
kept = tape(200_000)
with_it = list(looked_at)
del kept, looked_at[:]
gc.unfreeze()
gc.callbacks[:] = [look]
gc.collect()
del looked_at[:]
kept = tape(200_000)
found = sum(with_it), sum(looked_at), len(with_it)
""")
    ours, without, searches = found
    assert searches >= 3 and without > 500_000
    assert ours < without / 4  # the first finds the objects that there were before the tape


def test_each_node_adds_one_to_what_is_counted_as_alive() -> None:
    found = after("""
from autodiff_lab.garbage import nodes_alive
before = nodes_alive()
h = tape(1000)
during = nodes_alive() - before
del h
found = during, nodes_alive() - before
""")
    assert found == [1000, 0]


def test_garbage_of_a_training_loop_with_long_tapes_is_found_while_it_runs() -> None:
    found = after("""
rings, most = [], 0
for step in range(12):
    rings += hold(10)
    loss = tape(60_000)
    held.clear()
    loss.backward()
    most = max(most, alive(rings))
found = most
""")
    assert 10 <= found <= 40  # of 120: what a few steps leave


def test_garbage_made_during_a_forward_pass_is_found_after_it() -> None:
    found = after("""
rings = hold(100)
h = tape(100_000)
held.clear()
before = alive(rings)
h.backward()
del h
make_objects()
found = before, alive(rings), gc.get_freeze_count()
""")
    assert found == [100, 0, 0]


def test_a_tape_that_an_error_ends_leaves_nothing_frozen() -> None:
    found = after("""
def fail(number):
    if number == 150_000:
        held.clear()
        raise ArithmeticError

rings = hold(5)
try:
    tape(200_000, fail)
except ArithmeticError:
    pass
frozen = gc.get_freeze_count()
make_objects()
found = frozen > 0, gc.get_freeze_count(), alive(rings)
""")
    assert found == [True, 0, 0]


def test_collect_finds_garbage_also_in_the_midst_of_a_tape() -> None:
    found = after("""
rings = hold(5)
h = tape(150_000)
held.clear()
before = gc.get_freeze_count() > 0, alive(rings)
gc.collect()
later = hold(5)
more = tape(20_000)  # too few for a search of Python's own, and enough for one to be put off
held.clear()
gc.collect()
found = *before, gc.get_freeze_count(), alive(rings), alive(later)
""")
    assert found == [True, 5, 0, 0, 0]


def test_what_the_user_froze_stays_frozen_and_a_collector_that_is_off_stays_off() -> None:
    found = after("""
gc.freeze()
before = gc.get_freeze_count()
h = tape(150_000)
during = gc.get_freeze_count() - before
del h
make_objects()
after_it = gc.get_freeze_count() - before
gc.unfreeze()
gc.disable()
del looked_at[:]
tape(150_000)
found = during, after_it, looked_at, gc.isenabled(), gc.get_freeze_count()
""")
    assert found[0] <= 0 and found[1] <= 0  # frozen objects may die, none is added
    assert found[1] > -1000
    assert found[2:] == [[], False, 0]


def test_graphs_that_come_and_go_are_searched_as_ever() -> None:
    found = after("""
rings, frozen = [], 0
for step in range(1500):
    rings += hold(1)
    kept = tape(300)
    frozen = max(frozen, gc.get_freeze_count())
    made = make_objects(200)
    del held[:-20]
found = alive(rings) < 1000, frozen
""")
    assert found == [True, 0]


def test_threads_that_record_at_once_get_their_gradients_and_leave_nothing_frozen() -> None:
    found = after("""
from threading import Thread
results = []

def work():
    start = ad.tensor([1.0], requires_grad=True)
    h = start
    for number in range(60_000):
        h = h + 0.0 if number & 1 else h * w
    h.backward()
    results.append(start.grad.item() == 0.9999 ** 30_000 or abs(start.grad.item() / 0.9999 ** 30_000 - 1) < 1e-9)

threads = [Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
make_objects()
found = results, gc.get_freeze_count()
""")
    assert found == [[True] * 3, 0]


def test_a_process_that_forks_while_a_tape_grows_goes_on_searching() -> None:
    found = after("""
import os
if not hasattr(os, "fork"):
    found = 0
else:
    rings = hold(5)
    h = tape(150_000)
    held.clear()
    child = os.fork()
    if child == 0:
        del h
        make_objects()
        os._exit(alive(rings))
    found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
""")
    assert found == 0
