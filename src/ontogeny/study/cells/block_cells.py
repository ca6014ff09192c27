"""The cell of a weight matrix over all steps; one may be extended by steps that are new.

Some observables compare each checkpoint of a matrix with the first one alone (`from_first`). Then
a further checkpoint changes none of what was found at the others, and only new ones are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...capture.blocks import WeightBlock
from ...errors import NonFiniteError, StoreError
from ...store import difference, plain
from ...trajectory import Checkpoint, Trajectory
from .cache import EXTENDED, Checked, read_verified
from .dependencies import Header
from .environment import environment, environment_of
from .graph import Context, ObservedCell, Outcome, header_of
from .readings import ReadBlock, load_state


@dataclass(frozen=True)
class BlockCell(ObservedCell):
    """What an observable observes of one weight block over all steps.

    Attributes
    ----------
    grows
        Whether the observable compares each step with the first one alone: then a stored cell is
        extended by the steps that are new.
    device
        What computes it: what another one has computed is not extended.
    """

    block: WeightBlock = field(kw_only=True)
    grows: bool = field(kw_only=True)
    device: str = field(kw_only=True)

    def check(
        self,
        folder: Path | None,
        trajectory: Trajectory,
        digest: Callable[[Checkpoint], str],
        header: Callable[[Path], Header] | None,
    ) -> Checked:
        """Return the outcome of what is stored; ``"extended"`` where only some steps are new."""
        checked = super().check(folder, trajectory, digest, header)
        if checked.outcome != "stale" or folder is None:
            return checked
        kept = self.standing(folder, header)
        return checked if kept is None else checked._replace(outcome=EXTENDED)

    def standing(
        self, folder: Path, header: Callable[[Path], Header] | None
    ) -> xr.Dataset | None:
        """Return what stands of it at other steps, if it grows."""
        if not (self.grows and (folder / self.place).is_file()):
            return None
        return standing(folder / self.place, self.fingerprint(header), self.device)

    def steps_left(self, folder: Path | None, steps: Sequence[int]) -> list[int]:
        """Return the steps of a run that are read for it, by what a folder holds."""
        header = None if folder is None else header_of(folder, self.sources)
        kept = None if folder is None else self.standing(folder, header)
        return [*steps] if kept is None else left(kept, steps)

    def compute(self, context: Context) -> Outcome:
        """Observe the block at the steps that are new, where it grows; else at all of them."""
        kept = self.standing(context.job.folder, context.dependencies.header)
        if kept is None:
            return self._observed(context)
        steps = [int(step) for step in context.trajectory.steps]
        new = left(kept, steps)
        if not new:
            return Outcome(kept.sel(step=steps))
        try:
            found = self._observe(context, context.trajectory.select(steps=new))
        except NonFiniteError:
            return self._observed(context)
        return Outcome(joined(kept, found, steps))

    def _observed(self, context: Context) -> Outcome:
        """Observe the block, without checkpoints between the ends that hold NaN or infinity.

        They get NaN and the reason in ``status(step)``. Much is measured from the first checkpoint
        or to the last one: where one of these is not finite, nothing is left to say.
        """
        run = context.trajectory
        try:
            return Outcome(self._observe(context, run))
        except NonFiniteError as error:
            # One diverged checkpoint must not cost a block its whole path. Without its first or
            # last step, however, distances would be of another path, so then the cell fails.
            broken = self._reading(context, run).not_finite()
            if not broken.any() or broken[0] or broken[-1]:
                raise
            why = f"failed: NonFiniteError: {error}".split("\n")[0]
        data = self._observe(context, run.select(steps=run.steps[~broken].tolist()))
        data = data.reindex(step=run.steps)
        status = np.where(broken, why, "done").astype(object)
        return Outcome(
            data.assign(status=xr.DataArray(status, {"step": run.steps}, ("step",)))
        )

    def _observe(self, context: Context, run: Trajectory) -> xr.Dataset:
        """Return what the observable finds at the steps of a trajectory."""
        observable = context.job.by_name[self.node]
        state = load_state(observable, context.dependencies.read)
        return observable.observe(self._reading(context, run), state)

    def _reading(self, context: Context, run: Trajectory) -> ReadBlock:
        return ReadBlock(run, self.block, context.job.settings.reference_step)


def standing(
    path: Path, fingerprint: Mapping[str, Any], device: str
) -> xr.Dataset | None:
    """Return the steps of a stored cell that are still what they were; None if there are none.

    Its first step and all else that it follows from have to be the same, and so has what computes
    numbers here: rows of one curve do not come from two machines.
    """
    try:
        cell = read_verified(path)
    except StoreError:  # it is damaged, which is said where it is checked
        return None
    now = plain(fingerprint)
    before = dict(cell.fingerprint)
    weights = now.pop("weights")
    old = before.pop("weights", {})
    here = environment_of(cell.provenance) == environment(device)
    if cell.status != "done" or not here or difference(before, now):
        return None
    # A step that failed is tried again, with those that it may have failed for.
    if "step" not in cell.data.coords or "status" in cell.data:
        return None
    kept = [s for s in cell.data.step.values if old.get(str(s)) == weights.get(str(s))]
    firsts = {str(cell.data.step.values[0]), next(iter(weights))}
    return cell.data.sel(step=kept) if {*map(str, kept[:1])} == firsts else None


def left(kept: xr.Dataset, steps: Sequence[int]) -> list[int]:
    """Return the steps that are to be read: the first one and those that do not stand."""
    new = [step for step in steps if step not in kept.step.values]
    return [steps[0], *new] if new else []


def joined(kept: xr.Dataset, found: xr.Dataset, steps: Sequence[int]) -> xr.Dataset:
    """Return what stands and what was found at the first and the new steps, in their order.

    Examples
    --------
    >>> kept = xr.Dataset({"moved": ("step", [0.0, 1.0])}, {"step": [0, 10]})
    >>> found = xr.Dataset({"moved": ("step", [0.0, 0.5])}, {"step": [0, 5]})
    >>> joined(kept, found, [0, 5, 10]).moved.values.tolist()
    [0.0, 0.5, 1.0]
    """
    over_steps = [n for n, values in found.data_vars.items() if "step" in values.dims]
    new = found[over_steps].sel(step=[s for s in steps if s not in kept.step.values])
    rows = xr.concat([kept[over_steps], new], dim="step").sel(step=[*steps])
    return found.drop_dims("step").assign(rows.data_vars)[[*found.data_vars]]
