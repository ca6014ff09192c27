"""Claims of what further training made of the concepts of its base."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ...claims import Beside, Claim, Kind, Subject
from ...claims.counts import sureness_of_counts
from ...claims.values import of_controls

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
    values = [float(counts.sel(change=change)) for change in KINDS]
    besides = [_of_controls(data, change) for change in KINDS]
    most = [max((each.value for each in beside), default=np.nan) for beside in besides]
    sureness = sureness_of_counts(values, most)
    subject = Subject(name, "concepts_since", label=total)
    return [
        Claim(kind, subject, value=value, beside=beside, **sure)
        for kind, value, beside, sure in zip(
            KINDS.values(), values, besides, sureness, strict=True
        )
    ]


def _at_end(counts: xr.DataArray) -> xr.DataArray:
    """Return counts over all layers at the last step at which any of them is known."""
    return counts.dropna("step", how="all").isel(step=-1).sum("layer", min_count=1)


def _of_controls(data: xr.Dataset, change: str) -> tuple[Beside, ...]:
    beside = data.get("concepts_since_control")
    if beside is None or not beside.notnull().any():
        return ()
    return tuple(of_controls(_at_end(beside).sel(change=change)))
