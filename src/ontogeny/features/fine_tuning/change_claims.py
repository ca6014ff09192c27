"""Claims of what further training made of the concepts of its base."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject

# What became of concepts, as a claim says it.
KINDS = {"kept": Kind.KEPT, "turned": Kind.TURNED, "lost": Kind.FADED, "new": Kind.BORN}


def claims_of_changes(name: str, data: xr.Dataset) -> list[Claim]:
    """Return how many concepts are kept, turned, lost and new at the end, beside control runs.

    Parameters
    ----------
    name
        Of the node.
    data
        With ``concepts_since(step, layer, change)``; nothing is claimed where they are not known
        at two checkpoints.
    """
    if "concepts_since" not in data:
        return []
    known = data.concepts_since.dropna("step", how="all")
    if known.sizes["step"] < 2:
        return []
    counts = _at_end(known)
    total = f"{float(counts.sum()):,.0f} concepts"
    claims = []
    for change, kind in KINDS.items():
        count = float(counts.sel(change=change))
        beside = _of_controls(data, change)
        subject = Subject(name, "concepts_since", label=total)
        sureness = _sureness(count, beside)
        claims.append(Claim(kind, subject, value=count, beside=beside, **sureness))
    return claims


def _at_end(counts: xr.DataArray) -> xr.DataArray:
    """Return counts over all layers at the last step at which any of them is known."""
    return counts.dropna("step", how="all").isel(step=-1).sum("layer", min_count=1)


def _of_controls(data: xr.Dataset, change: str) -> tuple[Beside, ...]:
    beside = data.get("concepts_since_control")
    if beside is None or not beside.notnull().any():
        return ()
    counts = _at_end(beside).sel(change=change)
    runs = [str(run) for run in counts["run"].values]
    pairs = zip(runs, counts.values.tolist(), strict=True)
    return tuple(
        Beside("control", run, count) for run, count in pairs if np.isfinite(count)
    )


def _sureness(count: float, beside: tuple[Beside, ...]) -> dict[str, Any]:
    """Return how sure it is: beyond every control run, or as some of them have."""
    if not beside:
        return {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
    if all(count > control.value for control in beside):
        return {"certainty": Certainty.SURE}
    return {"certainty": Certainty.AS_CONTROLS}
