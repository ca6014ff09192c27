"""Series over training steps: did they change, when, and could it be chance.

Functions of NumPy arrays only. The training step is the last axis of series (`development`,
`step_order_test`) and the first one of tables with one column a layer (`compare_signals`).
"""

from ontogeny.dynamics.transforms import transform

from .._exports import exported_names, exporter
from ..multiple_tests import holm
from .developments import development
from .half_change import half_change_step
from .order import step_order_test
from .trend_tests import trend_test

__all__ = [
    "development",
    "half_change_step",
    "holm",
    "step_order_test",
    "transform",
    "trend_test",
    *exported_names("dynamics"),
]

__getattr__ = exporter("dynamics")
