"""Whether a run begins with a trained model, which decides what kind of control runs judge it."""

from __future__ import annotations

import numpy as np
import torch

from .. import capture
from ..errors import OntogenyError
from ..inputs import Inputs
from ..trajectory import Trajectory
from ..trajectory.audit.weight_values import is_initialisation
from .source import is_repository

_SURE = 3  # standard errors


def begins_trained(run: Trajectory, source: str, texts: Inputs, objective: str) -> bool:
    """Return whether the first checkpoint is no initialisation: motion mostly harms such a run.

    Of a repository, whose first weights may be large, only the step is asked. Where no weight
    speaks against an initialisation, as without layers of norms, the losses of a later first step
    decide: once they are better than a guess nothing but mirrored control runs judges them.

    Parameters
    ----------
    run
        The checkpoints.
    source
        Where they come from.
    texts
        The texts that are studied.
    objective
        What the model predicts; empty where it predicts no tokens.
    """
    first = int(run.steps[0])
    if is_repository(source):
        return first > 0
    if not is_initialisation(run[first]):
        return True
    return first > 0 and bool(objective) and _knows(run, texts, objective)


def _knows(run: Trajectory, texts: Inputs, objective: str) -> bool:
    """Return whether the first checkpoint surely predicts better than a uniform guess."""
    try:
        model = run.checkpoints[0].model(dtype=torch.float32)
        losses = capture.losses(model, texts, objective=objective)
    except (OntogenyError, RuntimeError):  # said where it is studied
        return False
    costs = losses["loss"].values[losses["tokens"].values > 0]
    if len(costs) < 2:
        return False
    error = costs.std(ddof=1) / np.sqrt(len(costs))
    return bool(costs.mean() + _SURE * error < np.log(losses.attrs["vocabulary"]))
