"""Series over training steps: did they change, when, and could it be chance.

Functions of NumPy arrays only. The training step is the last axis of series (`development`,
`step_order_test`, `detrend`) and the first one of tables with one column a layer (`regimes`,
`compare_signals`, `standardise`).
"""

from __future__ import annotations

from .averages import AVERAGES, average_dictionary, window_steps
from .code_matching import CodeMatching, match_codes
from .development import Development, development
from .encoder import Encoding, encode
from .fit import Fit
from .fit_comparison import FitComparison, compare_fits
from .fits import fit_exponential, fit_power, fit_stretched_exponential
from .half_change import half_change_interval, half_change_step
from .least_norm import ENCODER_NORMS, Encoder, fit_encoder
from .lipschitz import LipschitzRatios, lipschitz_ratios, local_constants
from .logits import LogitComparison, compare_logits, concept_shares
from .multiple import holm
from .mutual_information import mutual_information
from .order import smallest_p, step_order_test
from .permutation import PermutationTest, permutation_test
from .progress import LearningProgress, learning_progress
from .recurrence import Recurrence, recurrence
from .regime_table import compare_regimes, regime_table
from .regimes import Regime, Regimes, regimes
from .signals import SignalComparison, compare_signals, standardise
from .smoothing import rolling_mean
from .transforms import Transform, TransformPath, transform, transform_path
from .trend_test import trend_test
from .trends import FEWEST_FOR_A_TREND, Detrended, detrend
from .warping import dtw

__all__ = [
    "AVERAGES",
    "ENCODER_NORMS",
    "FEWEST_FOR_A_TREND",
    "CodeMatching",
    "Detrended",
    "Development",
    "Encoder",
    "Encoding",
    "Fit",
    "FitComparison",
    "LearningProgress",
    "LipschitzRatios",
    "LogitComparison",
    "PermutationTest",
    "Recurrence",
    "Regime",
    "Regimes",
    "SignalComparison",
    "Transform",
    "TransformPath",
    "average_dictionary",
    "compare_fits",
    "compare_logits",
    "compare_regimes",
    "compare_signals",
    "concept_shares",
    "detrend",
    "development",
    "dtw",
    "encode",
    "fit_encoder",
    "fit_exponential",
    "fit_power",
    "fit_stretched_exponential",
    "half_change_interval",
    "half_change_step",
    "holm",
    "learning_progress",
    "lipschitz_ratios",
    "local_constants",
    "match_codes",
    "mutual_information",
    "permutation_test",
    "recurrence",
    "regime_table",
    "regimes",
    "rolling_mean",
    "smallest_p",
    "standardise",
    "step_order_test",
    "transform",
    "transform_path",
    "trend_test",
    "window_steps",
]
