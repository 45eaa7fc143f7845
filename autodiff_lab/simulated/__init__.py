"""A stand-in for a GPU, on NumPy: as strict as CuPy, with its own memory, streams, events and virtual time.

``ad.tensor(…, device="sim:0")`` uses it. Nothing here is fast; everything is labelled simulated.

>>> import autodiff_lab as ad
>>> x = ad.tensor([1.0, 2.0], device="sim:0")
>>> with ad.listen() as told:
...     total = (x * x).sum().item()
>>> total, [type(event).__name__ for event in told]
(5.0, ['WorkQueued', 'WorkQueued', 'Synchronised', 'Transferred'])
"""

from .arrays import SimulatedArray
from .device import (
    Costs,
    Device,
    Event,
    NotSynchronisedError,
    OutOfMemoryError,
    Stream,
    StreamOrderError,
    device,
    host,
)
from .library import DeviceArray, numbers_in

__all__ = [
    "Costs", "Device", "DeviceArray", "Event", "NotSynchronisedError", "OutOfMemoryError", "SimulatedArray", "Stream",
    "StreamOrderError", "device", "host", "numbers_in",
]  # fmt: skip
