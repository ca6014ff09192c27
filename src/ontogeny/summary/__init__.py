"""From declared quantities to intervals, floors, bands, rows, verdicts, sentences and figures.

Whatever an observable measures passes through `summarise`, so that all of it is judged by the same
rules. There is one rule for noise that is missing: it stays unknown (NaN) and gives no verdict. And
there is one unit that noise is resampled over: the text, never the token.

Rows of the developmental chart are variables with a dimension ``row`` in the node of a result.
Those from ``control_first`` on exist only where there are control runs:

``row`` : row
    label, such as ``layers.3.mlp · ICA concepts``
``row_layer`` : row
    module path or ``""``
``row_name``, ``row_kind`` : row
    the label without the layer, and what of it all rows of the quantity share
``row_compares``, ``row_to`` : row
    ``"distance"`` or ``"similarity"``, and ``"reference"`` or ``"last"``, of a value relative to
    another step; else ``""``
``progress`` : row, step
    fraction of the way from first to last value, 0 to 1 (may overshoot)
``distinct`` : row, step
    the change since the first step exceeds the noise floor
``first_value``, ``last_value`` : row
    first and last value that count (the reference step does not)
``own_value`` : row
    a value of its own, no distance to a reference step or similarity with one
``half_step``, ``half_step_low``, ``half_step_high`` : row
    half-change step with its interval, wherever the row moved, else NaN
``settled_step`` : row
    from here on it moves less than its noise, and half of its change is surely over; NaN if never,
    or only from the last step on
``noise_known``, ``moved`` : row
    the noise of the last step was measured; the change from first to last exceeds it
``only_memory`` : row
    the memory of the reference step would give the same curve, so there is no verdict
``p_uncorrected``, ``smallest_p`` : row
    p-value against noise with short memory, and the memory of the reference; the smallest that
    the number of steps allows. Where the quantity brings a test of change, ``x_p_changed``, its
    p-value, and 0
``own_change_test`` : row
    the quantity brings a test of change on its own examples
``p_order``, ``p_slow`` : row
    p-values against any order of the steps, and against slow noise, each of one row
``p_value`` : row
    ``p_uncorrected`` after Holm's correction over all rows of the page (rows of ``role``
    ``"motion"`` among themselves)
``reason`` : row
    which test decided that it did not change, empty where it did: ``noise not measured``, ``few
    checkpoints``, ``few checkpoints for so many rows``, ``within noise``, ``order``, ``memory of
    the reference``, ``short memory`` or ``slow noise``
``judgeable`` : row
    one can say whether it changed: the noise is known, the level can be reached with so many steps
    and rows, and neither the memory of the reference nor slow noise looks the same
``can_learn``, ``better_sign`` : row
    held-out performance (``Quantity.better``); +1 or -1 where higher or lower is better, else
    0
``p_learned``, ``p_learned_uncorrected`` : row
    p-value of the gain of performance where nothing was learned, see nulls
``p_lost``, ``p_lost_uncorrected`` : row
    p-value of its getting worse where nothing was forgotten; NaN where no test says so
``outside``, ``not_improved`` : row
    on one side of all controls (of performance the better one); performance surely no better
    than at first
``controls_needed`` : row
    control runs of the same spread that would decide, those there are where only texts are
    too few; NaN where more would not
``lead``, ``change_floor`` : row
    last value above the null that it must beat, in standard errors; noise of the change
``changed`` : row
    it moved, ``p_value`` is at most 1 %, ``p_order`` and ``p_slow`` are at most 5 %, or it is
    ``beyond``
``beyond`` : row
    it moved and ``p_control`` is at most 5 %, or it was ``learned`` or ``lost``
``learned`` : row
    performance that improved by more than where nothing is learned, and than in every
    control, at 5 % over the page
``lost`` : row
    performance that got worse by more than texts and motion give, at 5 % over the page
``developed`` : row
    the same as ``learned``, for one version
``control_first``, ``control_last``, ``control_half_step`` : row, run
    the same of each control run, at the steps that it was read at
``run_change``, ``run_half_step`` : row, run
    those of the run itself at these steps
``p_control_change``, ``p_control_half`` : row
    whether a further control would lie as far off, uncorrected
``p_control_share`` : row
    as which share of a test it counts where the layers of its quantity move together
``p_control`` : row
    twice the smaller of the two p-values, after a correction over the page by Holm's steps,
    in which the rows of a quantity that are left count by these shares, up to all of them
"""

from ..units import Units
from ..words.names import Names
from .figures import NumberTable
from .verdicts import with_verdicts

__all__ = ["Names", "NumberTable", "Units", "with_verdicts"]
