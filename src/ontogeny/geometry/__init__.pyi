# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from .rank import effective_rank as effective_rank
from .rank import participation_ratio as participation_ratio
from .rank import singular_value_rank as singular_value_rank
from .rank import stable_rank as stable_rank
from ontogeny.features.fine_tuning.increments import intruder_dimensions as intruder_dimensions
from ontogeny.features.fine_tuning.increments import share_in_leading as share_in_leading

__all__ = [
    "effective_rank",
    "stable_rank",
    "participation_ratio",
    "singular_value_rank",
    "intruder_dimensions",
    "share_in_leading",
]

def __getattr__(name: str) -> Any: ...
