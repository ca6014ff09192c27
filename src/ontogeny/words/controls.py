"""What control runs can show, by how they were made and by how the run began."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np
import xarray as xr

from ..control_kinds import MOTION, NO_NULLS, kind_of
from ..trees import found_in
from .content import Content

MADE_OF_MOTION = (*MOTION, *NO_NULLS)

TRAINED_START = (
    "The first checkpoint is no initialisation, and random motion harms what it knows, so that "
    "control runs made of motion judge no change but learning."
)

NONE_TRAINED = (
    "No control run was trained on tokens without sense, which is the stronger control; "
    "--set controls.folders.nothing=FOLDER adds one."
)


def began_trained(nodes: Iterable[xr.Dataset]) -> bool:
    """Return whether a run began trained, so that runs made of its motion judge no change.

    The loss knows (``loss_trained_start``), and the accuracy where it is so of it. Without a loss,
    controls are mirrored of no other run.

    Examples
    --------
    >>> began_trained([xr.Dataset({"loss_trained_start": 1.0})])
    True
    """
    nodes = list(nodes)
    flags = [
        node["loss_trained_start"] for node in nodes if "loss_trained_start" in node
    ]
    labels = [found_in(node, "accuracy_trained_start", 0.0) for node in nodes]
    if flags or any(bool(np.any(value)) for value in labels):
        return any(bool(np.any(value)) for value in (*flags, *labels))
    runs = chain(*(node["run"].values for node in nodes if "run" in node.coords))
    return any(kind_of(str(run)) == "mirrored" for run in runs)


def made_of_motion(content: Content) -> bool:
    """Return whether a study has control runs, and all move as the run does, untrained."""
    return bool(content.controls) and all(
        kind_of(run) in MADE_OF_MOTION for run in content.controls
    )
