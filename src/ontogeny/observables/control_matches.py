"""Which component of each control run a concept is nearest to, and whether it is born there."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..quantities import CONTROL
from ..words.names import Names

SAME = 0.7  # correlation of codes from which on two components are the same
COMPARED = ("code_sketch", "concept_born")
VARIABLES: Names = {
    "control_match": (
        "correlation of the code with the nearest one of the control run, by their sketches",
        "1",
    ),
    "control_match_concept": ("number of that concept in the control run", "1"),
    "control_match_born": (
        "{step} of its birth there; none where it is not born",
        "{step}s",
    ),
    "least_match": ("correlation from which on two concepts are the same", "1"),
}


def with_control_matches(data: xr.Dataset) -> xr.Dataset:
    """Return a node with the component of each control run whose codes are most like a concept's.

    Their sketches are compared (`code_sketch`): the correlation that 256 numbers tell has a standard
    error of .03 at .7, and of .06 where there is none, so that the largest of fifty is about .15.

    Parameters
    ----------
    data
        With ``code_sketch(layer, concept, sketch)``, and of control runs ``code_sketch_control``
        and ``concept_born_control`` over (run, layer, control_concept). Without them it stays.

    Examples
    --------
    >>> own, theirs = np.eye(2, 256), np.eye(3, 256)[None, None, ::-1]
    >>> born = (("run", "layer", "control_concept"), [[[np.nan, 20.0, np.nan]]])
    >>> found = with_control_matches(
    ...     xr.Dataset(
    ...         {
    ...             "code_sketch": (("layer", "concept", "sketch"), own[None]),
    ...             "code_sketch_control": ((*born[0], "sketch"), theirs),
    ...             "concept_born_control": born,
    ...         }
    ...     )
    ... )
    >>> (
    ...     found.control_match_concept.values.tolist(),
    ...     found.control_match_born.values.tolist(),
    ... )
    ([[[2.0, 1.0]]], [[[nan, 20.0]]])
    """
    if not {"code_sketch", f"code_sketch_{CONTROL}"} <= set(data):
        return data
    own = data.code_sketch.transpose("layer", "concept", "sketch").values
    dims = ("run", "layer", f"{CONTROL}_concept")
    theirs = data[f"code_sketch_{CONTROL}"].transpose(*dims, "sketch").values
    cosine = np.abs(np.einsum("lcs,rlks->rlck", own, theirs, dtype=np.float64))
    known = np.isfinite(cosine).any(axis=-1)
    cosine = np.nan_to_num(cosine, nan=-1.0)
    best = cosine.argmax(axis=-1)
    births = np.full(theirs.shape[:-1], np.nan)
    if f"concept_born_{CONTROL}" in data:
        births = data[f"concept_born_{CONTROL}"].transpose(*dims).values
    match = cosine.max(axis=-1)
    values = {
        "control_match": match,
        "control_match_concept": best.astype(np.float64),
        "control_match_born": np.take_along_axis(births, best, axis=-1),
    }
    over = ("run", "layer", "concept")
    found = {name: (over, np.where(known, v, np.nan)) for name, v in values.items()}
    return data.assign({**found, "least_match": SAME})
