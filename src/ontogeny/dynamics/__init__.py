"""Series over training steps: did they develop, when, and could it be chance.

Functions of NumPy arrays only; the last axis is the training step.
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
from .least_norm import Encoder as Encoder
from .least_norm import fit_encoder as fit_encoder
from .logits import LogitComparison as LogitComparison
from .logits import compare_logits as compare_logits
from .logits import concept_shares as concept_shares
from .multiple import holm as holm
from .order import step_order_test as step_order_test
from .smoothing import rolling_mean as rolling_mean
from .transforms import Transform as Transform
from .transforms import TransformPath as TransformPath
from .transforms import transform as transform
from .transforms import transform_path as transform_path

__all__ = [
    "AVERAGES",
    "average_dictionary",
    "window_steps",
    "CodeMatching",
    "Encoder",
    "Encoding",
    "LogitComparison",
    "compare_logits",
    "concept_shares",
    "encode",
    "fit_encoder",
    "match_codes",
    "Transform",
    "TransformPath",
    "transform",
    "transform_path",
    "Development",
    "development",
    "half_change_step",
    "holm",
    "rolling_mean",
    "step_order_test",
]
