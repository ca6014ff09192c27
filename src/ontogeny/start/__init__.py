"""From the name of a run to a study that fits it: presets, study files, and what they cost."""

from __future__ import annotations

from .cost import Cost, download_limit, estimate, time_left, to_fetch, total
from .presets import PRESETS, Preset
from .proposal import Proposal, Wishes, propose
from .shown import look
from .source import (
    check_source,
    is_repository,
    name_of,
    names_of,
    open_source,
    same_source,
)
from .written import study_text

__all__ = [
    "PRESETS",
    "Cost",
    "Preset",
    "Proposal",
    "Wishes",
    "check_source",
    "download_limit",
    "estimate",
    "is_repository",
    "look",
    "name_of",
    "names_of",
    "open_source",
    "propose",
    "same_source",
    "study_text",
    "time_left",
    "to_fetch",
    "total",
]
