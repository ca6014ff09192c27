"""Which files are the checkpoints of a run, in which order, and why the others are not."""

from .candidates import ordered, step_of_file
from .choosing import Choice, Order, order_of

__all__ = ["Choice", "Order", "order_of", "ordered", "step_of_file"]
