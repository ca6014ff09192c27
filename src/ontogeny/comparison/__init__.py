"""Several studied runs as one result along ``run``: seeds, sizes, recipes side by side.

Every run keeps its own noise, verdicts and controls; nothing is measured or judged again. What the
runs do not share is refused or marked, so that a difference between curves is one between runs.
"""

from ..words.runs import summary_lines
from .comparing import compare, write_comparison

__all__ = ["compare", "summary_lines", "write_comparison"]
