# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from ..multiple_tests import holm as holm
from .developments import development as development
from .half_change import half_change_step as half_change_step
from .order import step_order_test as step_order_test
from .trend_tests import trend_test as trend_test
from ontogeny.dynamics.transforms import transform as transform

__all__ = ["development", "half_change_step", "holm", "step_order_test", "transform", "trend_test"]

def __getattr__(name: str) -> Any: ...
