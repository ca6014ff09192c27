"""Series over training steps: did they develop, when, and could it be chance.

Functions of NumPy arrays only. The training step is the last axis of series (`development`,
`step_order_test`, `detrend`) and the first one of tables with one column a layer (`regimes`,
`compare_signals`, `standardise`).
"""

from __future__ import annotations

from .averages import AVERAGES as AVERAGES
from .averages import average_dictionary as average_dictionary
from .averages import window_steps as window_steps
from .code_matching import CodeMatching as CodeMatching
from .code_matching import match_codes as match_codes
from .development import Development as Development
from .development import development as development
from .development import half_change_step as half_change_step
from .encoder import Encoding as Encoding
from .encoder import encode as encode
from .fit import Fit as Fit
from .fit_comparison import FitComparison as FitComparison
from .fit_comparison import compare_fits as compare_fits
from .fits import fit_exponential as fit_exponential
from .fits import fit_power as fit_power
from .fits import fit_stretched_exponential as fit_stretched_exponential
from .least_norm import ENCODER_NORMS as ENCODER_NORMS
from .least_norm import Encoder as Encoder
from .least_norm import fit_encoder as fit_encoder
from .lipschitz import LipschitzRatios as LipschitzRatios
from .lipschitz import lipschitz_ratios as lipschitz_ratios
from .lipschitz import local_constants as local_constants
from .logits import LogitComparison as LogitComparison
from .logits import compare_logits as compare_logits
from .logits import concept_shares as concept_shares
from .multiple import holm as holm
from .mutual_information import mutual_information as mutual_information
from .order import step_order_test as step_order_test
from .permutation import PermutationTest as PermutationTest
from .permutation import permutation_test as permutation_test
from .progress import LearningProgress as LearningProgress
from .progress import learning_progress as learning_progress
from .recurrence import Recurrence as Recurrence
from .recurrence import recurrence as recurrence
from .regime_table import compare_regimes as compare_regimes
from .regime_table import regime_csv as regime_csv
from .regime_table import regime_latex as regime_latex
from .regime_table import regime_table as regime_table
from .regimes import Regime as Regime
from .regimes import Regimes as Regimes
from .regimes import regimes as regimes
from .signals import SignalComparison as SignalComparison
from .signals import compare_signals as compare_signals
from .signals import standardise as standardise
from .smoothing import rolling_mean as rolling_mean
from .transforms import Transform as Transform
from .transforms import TransformPath as TransformPath
from .transforms import transform as transform
from .transforms import transform_path as transform_path
from .trends import FEWEST_FOR_A_TREND as FEWEST_FOR_A_TREND
from .trends import Detrended as Detrended
from .trends import detrend as detrend
from .warping import dtw as dtw

__all__ = [
    "FEWEST_FOR_A_TREND",
    "Detrended",
    "Fit",
    "FitComparison",
    "LearningProgress",
    "Recurrence",
    "Regime",
    "Regimes",
    "SignalComparison",
    "compare_fits",
    "compare_signals",
    "detrend",
    "dtw",
    "fit_exponential",
    "fit_power",
    "fit_stretched_exponential",
    "learning_progress",
    "mutual_information",
    "recurrence",
    "regimes",
    "standardise",
    "AVERAGES",
    "average_dictionary",
    "window_steps",
    "CodeMatching",
    "Encoder",
    "Encoding",
    "LipschitzRatios",
    "LogitComparison",
    "lipschitz_ratios",
    "local_constants",
    "compare_logits",
    "concept_shares",
    "encode",
    "fit_encoder",
    "ENCODER_NORMS",
    "match_codes",
    "Transform",
    "TransformPath",
    "transform",
    "transform_path",
    "Development",
    "development",
    "half_change_step",
    "PermutationTest",
    "compare_regimes",
    "permutation_test",
    "regime_csv",
    "regime_latex",
    "regime_table",
    "holm",
    "rolling_mean",
    "step_order_test",
]
