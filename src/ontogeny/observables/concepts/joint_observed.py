"""How checkpoints are gathered for joint concepts, and what these do at one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...concepts.joint.dictionary import STALE
from ...concepts.joint.intervals import found_again
from ...concepts.joint.presence import Decoder
from ...concepts.joint.snapshots import deviation, standardised
from ...concepts.joint.whitening import Gathered
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...needs import Activations
from ...quantities import Measured
from ..base import Reading, Run


def standard(A: torch.Tensor) -> tuple[np.ndarray, float]:
    """Return activations (n, m) centred and divided by their standard deviation, and that."""
    values = to_numpy(A)
    rows = np.arange(len(values))
    return standardised(values, rows, "step", 1.0), deviation(values, rows)


def read_together(
    run: Run, steps: Sequence[int], need: Activations, *, stacked: bool, named: bool
) -> tuple[dict[str, Gathered], Reading]:
    """Return the checkpoints of each layer, read one at a time, and the last reading.

    Checkpoints that cannot be read or give NaN are left out: their own cells say so. If all are,
    the error of the last one is raised.

    Parameters
    ----------
    run
        The run.
    steps
        Training steps.
    need
        The activations.
    stacked
        As of `Gathered`.
    named
        Whether a person named the steps; then none is left out.

    Raises
    ------
    ArgumentError
        If a step that was named cannot be read.
    """
    gathered: dict[str, Gathered] = {}
    last: Reading | None = None
    unread: Exception = ArgumentError("there is no step to fit the codes on.")
    for step in steps:
        try:
            reading = run.reading(step)
            values = reading[need]
        except (CheckpointError, NonFiniteError) as error:
            if named:
                raise ArgumentError(f"fit_steps cannot use step {step}: {error}") from error
            unread = error
            continue
        last = reading
        for path, A in values.items():
            if path not in gathered:
                n, m = A.shape
                gathered[path] = Gathered(n, m, len(steps), stacked=stacked)
            gathered[path].add(standard(A)[0])
    if last is None:
        raise unread
    return gathered, last


def observed(X: np.ndarray, decoder: Decoder, other: Decoder, limit: float) -> dict[str, Any]:
    """Return strength and readability of the latents at a standardised checkpoint `X` (n, m).

    `other` has the codes of another seed; a latent is readable from `limit` on.
    """
    grams = decoder.grams(X)
    halves, seeds = (each.readable(X, grams) for each in (decoder, other))
    there = decoder.presence(X, grams, halves)
    counts = [float((halves >= limit)[i].sum()) for i in (0, 1)]
    counts.append(float((seeds.mean(axis=0) >= limit).sum()))
    labels = {"refit": ["half 1", "half 2", "seed 1"]}
    return {
        "concepts_there": Measured(
            float((there.readable[0] >= limit).sum()),
            replicates=xr.DataArray(np.array(counts), dims="refit", coords=labels),
        ),
        "explained": float(there.explained[0]),
        "strength": ("concept", there.strength[0]),
        "readability": ("concept", there.readable[0]),
        "whitened": (("concept", "other"), there.whitened[0]),
        "influence": (("block", "concept"), there.influence[0]),
        "spread": ("concept", there.spread[0]),
        "found_again": ("concept", found_again(decoder.codes, other.codes)[0]),
    }


def stale_sentences(data: xr.Dataset, fitted: Sequence[int]) -> list[str]:
    """Return one sentence for each layer whose codes know less of new checkpoints than of old ones.

    Parameters
    ----------
    data
        Cells along ``step``, with ``explained(step, layer)``.
    fitted
        Steps that the codes were fitted on.

    Examples
    --------
    >>> explained = xr.DataArray(
    ...     [[0.8], [0.7], [0.5]], {"step": [0, 10, 20], "layer": ["h.0"]}, ("step", "layer")
    ... )
    >>> stale_sentences(explained.to_dataset(name="explained"), (0, 10))[0].partition(":")[0]
    'The codes of h.0 have gone stale'
    """
    if "explained" not in data or not len(fitted):
        return []
    explained = data.explained.transpose("step", "layer")
    old = explained.sel(step=explained.step.isin(list(fitted)))
    new = explained.sel(step=explained.step > max(fitted))
    if not old.sizes["step"] or not new.notnull().any():
        return []
    found = []
    for layer in data.layer.values:
        least, later = float(old.sel(layer=layer).min()), new.sel(layer=layer).dropna("step")
        if later.size and float(later.min()) < STALE * least:
            worst = int(later.step[later.values.argmin()])
            found.append(
                f"The codes of {layer} have gone stale: they explain {float(later.min()):.2f} of "
                f"the variance at step {worst:,}, and at least {least:.2f} at the steps that they "
                "were fitted on. Add later steps to fit_steps."
            )
    return found
