"""Dictionaries of all steps in order, each fitted from that of its neighbour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
import xarray as xr

from ...errors import CheckpointError, NonFiniteError
from ...needs import Need
from ...observables import Run, by_layer
from ...observables.extractor_fits import dictionary_array

Fitting: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Gives the dictionary of activations, fitted from the one that it is given."""


def starts_of_chain(
    run: Run, need: Need, fits: Mapping[str, torch.Tensor], fit: Fitting
) -> dict[str, xr.DataArray]:
    """Walk from the reference step outwards; return what each step starts from.

    `fits` are the dictionaries of the reference step's layers, and `need` gives activations.
    """
    steps = np.asarray(run.steps)
    before = steps[steps < run.reference_step]
    after = steps[steps > run.reference_step]
    starts: dict[int, xr.DataArray] = {}
    for walk in (before[::-1], after):
        last = dict(fits)
        for step in walk.tolist() if fits else []:
            starts[step] = by_layer(
                last, lambda _, W: {"start": dictionary_array(W)}
            ).start
            last |= _next(run, step, need, last, fit)
    order = sorted(starts)
    if not order:
        return {}
    stacked = xr.concat([starts[step] for step in order], dim="step", join="outer")
    return {"start": stacked.assign_coords(step=order)}


def _next(
    run: Run, step: int, need: Need, last: Mapping[str, torch.Tensor], fit: Fitting
) -> dict[str, torch.Tensor]:
    """Return the dictionaries of a step, each from the last one; none where it fails."""
    try:
        values = run.reading(step)[need]
    except (CheckpointError, NonFiniteError):
        # Its own cell says so; the chain goes on.
        return {}
    dictionaries: dict[str, torch.Tensor] = {}

    def one(path: str, W: torch.Tensor) -> Mapping[str, Any]:
        dictionaries[path] = fit(values[path], W.to(values[path]))
        return {}

    by_layer(last, one)
    return dictionaries
