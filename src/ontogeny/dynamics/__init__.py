"""Series over training steps: did they develop, when, and could it be chance.

Functions of NumPy arrays only; the last axis is the training step.
"""

from __future__ import annotations

from .development import Development as Development
from .development import development as development
from .development import half_change_step as half_change_step
from .multiple import holm as holm
from .order import step_order_test as step_order_test
from .smoothing import rolling_mean as rolling_mean

__all__ = [
    "Development",
    "development",
    "half_change_step",
    "holm",
    "rolling_mean",
    "step_order_test",
]
