"""Lesson 20, forward mode: tangents travel with the values; dual numbers, Jacobians by passes, nested derivatives.

After: 10_computation_graph.
"""

# %% [markdown]
# # Tangents travel with the values
#
# **The question:** you turn one knob of a long program. How fast does the result move, and can you know it while the
# program runs, without running it twice?
#
# By the end you can
#
# * send a *tangent* (切向量) along with every value: *forward mode* (前向模式),
# * say why this is not the method of finite differences, and show it,
# * write forward mode yourself, with *dual numbers* (对偶数),
# * fill a *Jacobian* (雅可比矩阵) pass by pass, and say what it costs,
# * take a derivative inside of a derivative without mixing them up.
#
# The lesson takes 60 to 90 minutes. **Predict**, run, look, check. Write your predictions down: they are the part from
# which you learn.

# %% [markdown] tags=["instructor"]
# ### For the instructor
#
# | section | minutes |
# | --- | --- |
# | 1 How fast does it move? | 6 |
# | 2 Every operation has a rule | 10 |
# | 3 It is not finite differences | 8 |
# | 4 Dual numbers | 20 |
# | 5 One pass, one direction | 20 |
# | 6 A derivative inside of a derivative | 20 |
#
# **What must come across:** A tangent is computed from rules, exactly, in the same run. One pass gives one direction.
# Nested derivatives need tangents that know whose they are.
#
# **If time is short, leave for home:** section 6 with its exercise. No later lesson needs it.

# %%
import math

import autodiff_lab as ad
import autodiff_widgets as aw
import numpy as np
from autodiff_exercises import check, hint, limited, progress, solution
from autodiff_lab import ops

# %% [markdown]
# ## 1 How fast does it move?
#
# Think of a rectangle with the sides x = 2 and y = 5. Its area is x · y = 10. Now the side x grows, at a speed of 1 per
# second, and y stays.
#
# **Predict:** how fast does the area grow at this moment? And how fast if y grows at speed 1, too?


# %%
def area(x, y):
    return x * y


print(ad.jvp(area, (2.0, 5.0), (1.0, 0.0)))
print(ad.jvp(area, (2.0, 5.0), (1.0, 1.0)))

# %% [markdown]
# `ad.jvp` takes a function, the inputs, and the speed of each input. It returns two numbers: the value, and its speed.
# (`array(10.)` is the number 10: NumPy's form of an array without axes. JVP means *Jacobian-vector product*; section 5 says
# why.)
#
# The speed that belongs to a value is called its **tangent**. The tangents of all inputs together are a **direction**: they
# say which way the inputs move. The tangent of the result is the *directional derivative* (方向导数).
#
# **Predict:** both sides shrink at speed 2. What comes out? You do not need to compute anything new.

# %%
print(ad.jvp(area, (2.0, 5.0), (-2.0, -2.0)))

# %% [markdown] tags=["instructor"]
# **Ask the class (1 minute).** Both sides of the rectangle shrink at speed 2. How fast does the area move? Do not compute
# anything new.
#
# **Expected:** −14: the tangent is linear in the direction, and (1, 1) gave 7.

# %% [markdown]
# −2 times as fast as before. Twice the direction, twice the tangent; and the tangents of two directions add up. In a word:
# the tangent of the result depends *linearly* on the direction, however crooked the function is.
#
# ## 2 Every operation has a rule
#
# A program is a chain of small operations. Each of them needs to know only one thing: *if my operands move this fast, how
# fast does my result move?* For the product you have just found the rule yourself:
#
# $$(a \cdot b)' = a' \cdot b + a \cdot b'$$
#
# Here is a program of four operations.


# %%
def program(x, w):
    h = x * w
    t = ops.tanh(h)
    return t + h * h


print(ad.record(program, 2.0, 0.5))

# %% [markdown]
# **Predict**, on paper, with x moving at speed 1 and w at rest: what is the tangent of `h`? What is the tangent of
# `h * h`? (The rule of `tanh` is t′ = (1 − t²) · h′. You may leave numbers like tanh(1) as they are.)
#
# Then look at what the lab does. It has one rule like this for each operand of each operation, and they read like the
# formulas:

# %%
import inspect

for op in ("mul", "tanh"):
    for rule in ad.registry[op].jvp_rules.values():
        print(inspect.getsource(rule))

# %% [markdown]
# `dx` is the tangent of the operand x, and `out` is the result; `: Any` and the line with the `@` are only for Python. Now step
# through a pass. Watch the two numbers in each
# box, the value and the tangent: both are made at the same moment, and both go on together.

# %%
aw.ForwardModeView(program, 2.0, 0.5, seed="x")

# %% [markdown] tags=["instructor"]
# **Ask the class (3 minutes).** x moves at speed 1 and w rests. What are the tangents of `h` and of `h * h`?
#
# **Expected:** `h` moves at w = 0.5; `h * h` moves at 2 · h · 0.5 = 1, since h is 1. Usual wrong answer for the second: h ·
# 0.5, because only one of the two factors was thought to move.

# %% [markdown]
# When an operation is done, nothing of it has to be kept for later. Forward mode needs no record of the
# program, and about twice the memory of a plain run, however long the program is.
#
# ## 3 It is not finite differences
#
# "So it runs the program, moves x a little, and looks how much the result has changed." That sounds similar, and it is
# something else. Let us do exactly that, and compare. The true derivative of x³ at 2 is 12.
#
# **Predict:** the step becomes smaller from line to line. What happens to the error?

# %%
print("step      error of differences")
for exponent in (1, 2, 4, 6, 8, 10, 12, 14):
    step = 10.0**-exponent
    difference = ((2.0 + step) ** 3 - 2.0**3) / step
    print(f"1e-{exponent:02d}     {abs(difference - 12):.1e}")
value, tangent = ad.jvp(lambda x: x**3, (2.0,), (1.0,))
print(f"tangent   {abs(tangent - 12):.1e}")

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The step becomes smaller and smaller. What happens to the error of the difference, and what
# to that of the tangent?
#
# **Expected:** the first falls to about 1e-8 and then grows again, since the digits that two nearly equal numbers share are
# lost. The second has no step: it is right to the last digit.

# %% [markdown]
# With a large step the curve bends away from the straight line. With a small step, two nearly equal numbers are
# subtracted, and what is left of their digits is noise. In between, half of the digits are the best that you get.
# The tangent has no step. It is computed from the rules, and is right to the last digit.
#
# Differences are still useful: as an independent witness, when you want to *check* a rule. That is lesson 50.
#
# ## 4 Dual numbers
#
# How do you make a program carry tangents, if it was written for plain numbers? The same trick as with every tracer: hand
# it other objects. A **dual number** has two parts, written
#
# $$a + a'\varepsilon \qquad\text{with}\qquad \varepsilon^2 = 0$$
#
# Here a is the value, and a′ the tangent. The letter ε stands for "a little step, so small that its square is nothing".
#
# **Predict:** multiply $(a + a'\varepsilon)(b + b'\varepsilon)$ on paper. What stands before the ε?

# %% [markdown]
# The product rule, without anybody having taught it. The same works for a matrix whose square is zero, and Python can
# show it. Here ε is a matrix; the tangent of x · y arrives in the upper right corner.

# %%
one, epsilon = np.eye(2), np.array([[0.0, 1.0], [0.0, 0.0]])
print("ε² =", (epsilon @ epsilon).tolist())
x = 2.0 * one + 1.0 * epsilon
y = 5.0 * one + 0.0 * epsilon
print(x @ y)

# %% [markdown]
# `@` is the product of matrices, and in the corner stands 5 = 1 · 5 + 2 · 0, the tangent.
#
# **Exercise: dual numbers.** Write the whole engine. It is shorter than you think: a class with two parts, and a rule for
# each operation.

# %% exercise="push_tangents"

# %% [markdown]
# Your function may call `f` only once, so that the answer cannot come from differences. If a message tells you where
# it goes wrong, do that one operation by hand.

# %% [markdown]
# ## 5 One pass, one direction
#
# Functions with many inputs and many outputs have many derivatives: how fast does output i move when input j moves?
# They fill a table, the **Jacobian**, with one row for each output and one column for each input.
#
# The function below has three inputs and two outputs. **Predict:** how many entries has its Jacobian? Which of them are
# zero?


# %%
def two_of_three(x):
    return x[:2] * x[2]


x = np.array([2.0, 3.0, 5.0])
print(two_of_three(x))
print(ad.jacobian(two_of_three)(x))

# %% [markdown]
# One pass takes a direction, and there is one number in it for each input. "Then let all inputs move at speed 1, and I
# get all derivatives in one pass."
#
# **Predict:** what comes back, and how many numbers are that?

# %%
everything = np.array([1.0, 1.0, 1.0])
value, derivative = ad.jvp(two_of_three, (x,), (everything,))
print(derivative)

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** Let all three inputs move at once. Do we get the whole Jacobian in one pass?
#
# **Expected:** no: two numbers come back and the table has six. They are the sums of the rows, and nobody can take a sum
# apart.

# %% [markdown]
# Two numbers, and the table has six. Compare them with the table: 7 = 5 + 0 + 2. The effects of all three inputs have
# arrived as **one sum**, and nobody can take it apart any more. That is what a pass gives: the Jacobian *times* the
# direction. Hence its name, Jacobian-vector product.

# %%
direction = np.array([0.5, -1.0, 2.0])
print(ad.jacobian(two_of_three)(x) @ direction)
print(ad.jvp(two_of_three, (x,), (direction,))[1])

# %% [markdown]
# **Predict:** which direction gives the third column alone? So how many passes does the whole table take?
#
# **Exercise: a Jacobian by passes.**

# %% exercise="jacobian_by_passes"

# %% [markdown]
# As many passes as there are inputs, however many outputs there are. The lab can count for you: a program with few inputs
# and many outputs, then one with many inputs and a single output.
#
# **Predict:** how many tangents does each of them need?

# %%
spread = np.linspace(1.0, 2.0, 50)
print(ad.jacobian_cost(lambda x: ops.tanh(spread * x), 0.5))

# %%
weights = np.linspace(-1.0, 1.0, 50)
print(ad.jacobian_cost(lambda w: (ops.tanh(w) * w).sum(), weights))

# %% [markdown]
# For one input forward mode is as good as it gets: one pass for fifty outputs. For fifty inputs it takes fifty passes,
# although there is only one output. A small neural network has a million inputs in this sense, its weights, and one output,
# the loss. The other line of the report, "reverse", is the subject of lesson 30.
#
# ## 6 A derivative inside of a derivative
#
# Some questions nest: the curvature is a derivative of a derivative, and a training step that runs inside of another
# training needs one, too. Look at
#
# $$\frac{d}{dx}\Bigl[\,x \cdot \frac{d}{dy}(x + y)\Bigr]$$
#
# **Predict:** what is the inner derivative? So what is the whole?

# %% [markdown]
# The inner derivative is 1, whatever x is. So the bracket is x · 1, and its derivative is **1**.
#
# Now a small engine like the one from section 4, and nothing wrong with it as long as one derivative runs at a time:


# %%
class Dual:
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    __radd__, __rmul__ = __add__, __mul__


# %%
def simple_derivative(f, x):
    return f(Dual(x, 1.0)).tangent


print(simple_derivative(lambda x: x * x + 3.0 * x, 2.0))

# %% [markdown]
# Right: 2x + 3 = 7. **Predict:** what will it say to the nested question?

# %%
print(simple_derivative(lambda x: x * simple_derivative(lambda y: x + y, 2.0), 3.0))

# %% [markdown] tags=["instructor"]
# **Ask the class (2 minutes).** The nested derivative is 1. What will the small engine say, and where does it go wrong?
#
# **Expected:** 2. In `x + y` both numbers carry a tangent of 1, y that of the inner derivative and x that of the outer one;
# the engine adds them, and the inner derivative takes the sum for its own.

# %% [markdown]
# Two, and no error. The fault has a name: *perturbation confusion* (扰动混淆). Look at the moment when x + y is computed. Both
# numbers carry the tangent 1: y carries that of the inner derivative, x that of the outer one. The engine adds them
# up, and the inner derivative takes the sum for its own.
#
# The two steps are different letters, ε₁ and ε₂, and nothing in these objects says which is which. The lab gives each
# running derivative a *level* of its own. For one level the numbers of the levels below are constants:


# %%
def inner(x):
    _value, tangent = ad.jvp(lambda y: x + y, (2.0,), (1.0,))
    return x * tangent


print(ad.jvp(inner, (3.0,), (1.0,))[1])

# %% [markdown]
# **Exercise: nested derivatives.** Repair the small engine.

# %% exercise="derivative"

# %% [markdown]
# With levels, everything nests: a derivative of a derivative of a derivative, and forward mode inside of reverse mode or
# around it. The second derivative of x³ is 6x, in three ways:


# %%
def cube(x):
    return x * x * x


def slope(x):
    return ad.jvp(cube, (x,), (1.0,))[1]


print("forward over forward:", ad.jvp(slope, (2.0,), (1.0,))[1])
print("forward over reverse:", ad.jvp(ad.grad(cube), (2.0,), (1.0,))[1])
print("reverse over forward:", ad.grad(slope)(2.0))

# %% [markdown]
# ## Summary
#
# * In **forward mode** each value carries its **tangent**: how fast it moves. Each operation has a rule that makes the
#   tangent of its result.
# * It is **not finite differences**: one run, no step, right to the last digit.
# * A **dual number** is a value and a tangent, a + a′ε with ε² = 0.
# * **One pass gives one direction**: the Jacobian times a vector. The whole table takes as many passes as there are
#   inputs.
# * Nested derivatives need tangents that know whose they are. Mixed up, they give a wrong number and no error.
#
# ## Exercises
#
# 1. *Dual numbers*: section 4. *A Jacobian by passes*: section 5. *Nested derivatives*: section 6. All checked.
# 2. On paper: what is the rule of a / b? Derive it from a dual number: what must $(c + c'\varepsilon)(b + b'\varepsilon)$ be?
# 3. Change the program of section 2 so that w moves and x rests. Predict the tangent of the result, then step.
# 4. A camera turns by one angle, and a million pixels move. How many forward passes does the Jacobian take?
# 5. In section 3, use the difference of both sides, $(f(x+h) - f(x-h)) / 2h$. How does the table change, and which part of
#    it stays?
#
# Where do you stand?

# %%
progress()
