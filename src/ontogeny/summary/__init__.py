"""From declared quantities to intervals, floors, bands, rows, verdicts, sentences and figures.

Whatever an observable measures passes through `summarise`, so that all of it is judged by the same
rules. There is one rule for noise that is missing: it stays unknown (NaN) and gives no verdict. And
there is one unit that noise is resampled over: the text, never the token.
"""

from ..units import Units
from ..words.names import Names
from .figures import NumberTable
from .verdicts import with_verdicts

__all__ = ["Names", "NumberTable", "Units", "with_verdicts"]
