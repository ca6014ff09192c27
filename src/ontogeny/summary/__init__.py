"""From declared quantities to intervals, floors, bands, rows, verdicts, sentences and figures.

Whatever an observable measures passes through `summarise`, so that all of it is judged by the same
rules. There is one rule for noise that is missing: it stays unknown (NaN) and gives no verdict. And
there is one unit that noise is resampled over: the text, never the token.
"""

from __future__ import annotations

from ..units import Units
from ..words.names import Names, named
from ..words.statements import statements
from .bands import null_bands, over_steps
from .controls import with_controls
from .noise import MEASURABLE, change_floor, with_noise
from .reference import reference_index
from .rows import chart_rows
from .runs import along_runs, mean_of_seeds, over_seeds, stack_runs
from .summarise import summarise
from .tables import NumberTable, along
from .verdicts import judged, with_verdicts

__all__ = [
    "MEASURABLE",
    "Names",
    "NumberTable",
    "Units",
    "along",
    "along_runs",
    "change_floor",
    "chart_rows",
    "judged",
    "mean_of_seeds",
    "named",
    "null_bands",
    "over_seeds",
    "over_steps",
    "reference_index",
    "stack_runs",
    "statements",
    "summarise",
    "with_controls",
    "with_noise",
    "with_verdicts",
]
