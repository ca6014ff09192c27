"""Joint concepts at checkpoints: read one at a time for the fit, and what they do at one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
import torch
import xarray as xr

from ... import activity
from ...arrays import to_numpy
from ...claims import Beside, Claim, Subject, measurement
from ...concepts.joint.readout import CheckpointReadout
from ...concepts.joint.runs import STALE
from ...concepts.joint.snapshots import standardised
from ...concepts.joint.whitening import Gathered
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...needs import Activations
from ...observables.readings import Reading, Run
from ...quantities import Measured


def standard(A: torch.Tensor) -> tuple[np.ndarray, float]:
    """Return activations (n, m) centred and divided by their standard deviation, and that."""
    values = to_numpy(A)
    return standardised(values, np.arange(len(values)))


class CheckpointFile:
    """Checkpoints (n, m) of one layer, in a temporary file until it is their turn to be fitted.

    A fit holds an (n, n) kernel beside its checkpoints. With all layers at once in memory that
    would be hundreds of megabytes for each of them.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._shapes: list[tuple[int, int]] = []

    def add(self, X: np.ndarray) -> None:
        """Keep a standardised checkpoint (n, m) in float32."""
        self._file.write(np.ascontiguousarray(X).data)
        self._shapes.append((X.shape[0], X.shape[1]))

    @property
    def width(self) -> int:
        """The features of all checkpoints together."""
        return sum(m for _, m in self._shapes)

    def views(self) -> Iterator[np.ndarray]:
        """Give the checkpoints that were added, in float32."""
        self._file.seek(0)
        for shape in self._shapes:
            X = np.empty(shape, dtype=np.float32)
            self._file.readinto(X.data)  # type: ignore[attr-defined]
            yield X

    def gathered(self, *, stacked: bool) -> Gathered:
        """Return the checkpoints as a fit takes them; `stacked` as of `Gathered`."""
        n, m = self._shapes[0]
        gathered = Gathered(n, m, len(self._shapes), stacked=stacked)
        for X in self.views():
            gathered.add(X)
        return gathered


def read_together(
    run: Run,
    steps: Sequence[int],
    need: Activations,
    files: ExitStack,
    *,
    with_steps: bool,
) -> tuple[dict[str, CheckpointFile], Reading]:
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
    files
        Closes the temporary files.
    with_steps
        Whether a person named the steps; then none is left out.

    Raises
    ------
    ArgumentError
        If a step that was named cannot be read.
    """
    gathered: dict[str, CheckpointFile] = {}
    last: Reading | None = None
    unread: Exception = ArgumentError("there is no step to fit the codes on.")
    for step in steps:
        try:
            reading = run.reading(step)
            values = reading[need]
        except (CheckpointError, NonFiniteError) as error:
            if with_steps:
                raise ArgumentError(
                    f"fit_steps cannot use step {step}: {error}"
                ) from error
            unread = error
            continue
        last = reading
        for path, A in values.items():
            if path not in gathered:
                file = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
                gathered[path] = CheckpointFile(file)
            gathered[path].add(standard(A)[0])
    if last is None:
        raise unread
    activity.now("fitting joint concepts")
    return gathered, last


def observed(
    there: CheckpointReadout, again: np.ndarray, limit: float
) -> dict[str, Any]:
    """Return strength and readability of the latents at a checkpoint.

    `again` are the codes (n, r) of another seed; a latent is readable from `limit` on.
    """
    presence = there.presence
    halves = there.readable
    counts = [float((halves >= limit)[i].sum()) for i in (0, 1)]
    counts.append(float((there.moments.readable(again).mean(axis=0) >= limit).sum()))
    labels = {"refit": ["half 1", "half 2", "seed 1"]}
    return {
        "concepts_there": Measured(
            float((presence.readable[0] >= limit).sum()),
            replicates=xr.DataArray(np.array(counts), dims="refit", coords=labels),
        ),
        "explained": float(presence.explained[0]),
        "strength": ("concept", presence.strength[0]),
        "readability": ("concept", presence.readable[0]),
        "whitened": (("concept", "other"), presence.whitened[0]),
        "influence": (("block", "concept"), presence.influence[0]),
        "spread": ("concept", presence.spread[0]),
    }


def stale_claims(name: str, data: xr.Dataset, fitted: Sequence[int]) -> Iterator[Claim]:
    """Give each layer whose codes know less of new checkpoints than of old ones.

    Parameters
    ----------
    name
        Of the node.
    data
        Cells along ``step``, with ``explained(step, layer)``.
    fitted
        Steps that the codes were fitted on.

    Examples
    --------
    >>> explained = xr.DataArray(
    ...     [[0.8], [0.7], [0.5]],
    ...     {"step": [0, 10, 20], "layer": ["h.0"]},
    ...     ("step", "layer"),
    ... )
    >>> data = explained.to_dataset(name="explained")
    >>> [(claim.last, claim.since) for claim in stale_claims("joint", data, (0, 10))]
    [(0.5, 20.0)]
    """
    if "explained" not in data or not len(fitted):
        return
    explained = data.explained.transpose("step", "layer")
    old = explained.sel(step=explained.step.isin(list(fitted)))
    new = explained.sel(step=explained.step > max(fitted))
    if not old.sizes["step"] or not new.notnull().any():
        return
    for layer in data.layer.values:
        least = float(old.sel(layer=layer).min())
        later = new.sel(layer=layer).dropna("step")
        if later.size and float(later.min()) < STALE * least:
            yield measurement(
                Subject(name, "explained", str(layer)),
                float(later.min()),
                units="1",
                since=float(later.step[later.values.argmin()]),
                beside=[Beside("reference", "where fitted", least)],
            )
