"""The index: the path through the course, and where the student stands. It is the first page that a student sees."""

# %% [markdown]
# # Autodiff Lab
#
# You write one line, `loss.backward()`, and a framework computes a million derivatives. This course opens the framework: the
# graph that it records, the order that it finds, the rules that it applies, the devices and the schedule that it chooses. You
# run each of these parts, watch it step by step, and write it yourself.
#
# **How a lesson works.** *Predict* what comes out, on paper if you can; *run* the cell (**Shift + Enter**); *look* at the
# picture, with its buttons or the arrow keys; *check* your own code. A check says one of four things: right, wrong (and which
# belief the mistake comes from), not attempted, or why it could not be checked. `hint("name")` helps in small doses.
#
# **Where do you stand?** Run the next cell. It draws the path through the course with your own progress; an arrow says which
# lesson helps before which, and a click on a title opens it. No lesson is locked, and each of them runs alone.

# %%
from autodiff_exercises import course

course()

# %% [markdown]
# ## The lessons

# %% generated="lessons"

# %% [markdown]
# Answers are saved in each lesson's own file when you save it (**Ctrl + S**), and your progress in one small file beside your
# other data. A picture that stays empty comes back with *Kernel → Restart Kernel and Run All Cells*.
