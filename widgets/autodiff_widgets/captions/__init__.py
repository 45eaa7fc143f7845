"""Every sentence that a view says, keyed by the kind of event: one file a topic, as all of them in one would pass 800 lines.

A view chooses the names (``Names``); the numbers come from the event. A file also has the openings, closings and questions
of its topic, so that all that is said of it can be read in one go.
"""

from . import (
    devices,
    gradients,
    graphs,
    live,
    ops,
    orders,
    passes,
    plans,
    registration,
    scheduling,
    timelines,
    training,
)
from .sentences import SENTENCES, Names, Sentence, caption, counted, few, listed, percent, says

__all__ = [
    "NOT_SHOWN", "SENTENCES", "Names", "Sentence", "caption", "counted", "devices", "few", "gradients", "graphs", "listed",
    "live", "ops", "orders", "passes", "percent", "plans", "registration", "says", "scheduling", "timelines", "training",
]  # fmt: skip

NOT_SHOWN = {**devices.NOT_SHOWN, **scheduling.NOT_SHOWN}  # kinds that no view says, with the reason
