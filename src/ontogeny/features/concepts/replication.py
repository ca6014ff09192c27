"""How many of a dictionary's concepts another fit to the same activations finds again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...concepts.joint.presence import found_again
from ...quantities import Quantity
from ...units import Units

SAME = 0.9
"""Codes of one concept in two fits correlate at least so much; signs do not matter."""

FOUND_AGAIN = Quantity(
    "found_again",
    "share of the concepts that another fit finds again",
    optional=True,
    minimum=0.0,
    heading="concepts that another fit finds again",
    caption=f"Share whose codes correlate by {SAME:g} or more, whatever the sign, with those of a "
    "concept of a fit in the other floating-point precision, from another seed, or with the tokens "
    "in another order; and of fits to the two halves of the texts with each other.",
)

Fit = Callable[[Tensor], tuple[Tensor, Callable[[Tensor], Tensor]]]


def shares(codes: Tensor, other: Tensor) -> tuple[float, float]:
    """Return the share of concepts in another fit's codes (n, r), and how alike the codes are.

    Alike are codes whose correlation with the nearest other code of the same fit is high: its
    median, whatever the sign. Concepts that are nowhere active do not count.

    Examples
    --------
    >>> U = torch.eye(4)[:, :3]
    >>> again, alike = shares(U, -U[:, [1, 2, 0]])
    >>> again, round(alike, 2)
    (1.0, 0.33)
    """
    first, second = (np.asarray(U.detach().cpu().double()) for U in (codes, other))
    first = first[:, np.ptp(first, axis=0) > 0]
    if not first.shape[1]:
        return 0.0, 0.0
    correlation, _ = found_again(first, np.hstack([second, -second]))
    among = np.abs(np.atleast_2d(np.corrcoef(first.T)))
    np.fill_diagonal(among, 0)
    return float((correlation >= SAME).mean()), float(np.median(among.max(axis=0)))


def replication(
    A: Tensor, codes: Tensor, others: Mapping[str, Tensor], fit: Fit, units: Units, seed: int
) -> dict[str, xr.DataArray]:
    """Return what is found again, (change,), of what is tried, and how alike the codes are.

    Parameters
    ----------
    A, codes
        Activations (n, m) and the codes (n, r) of the fit.
    others
        Codes of further fits to the same rows, named as `noise.cold_starts` names them.
    fit
        From activations to codes, and to the function that gives the codes of others.
    units
        Which text each row comes from; halves are of whole texts.
    seed
        Of the order and of the halves.
    """
    rng = np.random.default_rng([seed, 2])
    order = torch.from_numpy(rng.permutation(len(A))).to(A.device)
    half = torch.from_numpy(rng.permutation(units.count)[units.place] % 2 == 0).to(A.device)
    pairs: dict[str, list[tuple[Tensor, ...]]] = {
        change: [(codes, U) for name, U in others.items() if name.startswith(start)]
        for change, start in (("rounding", "float"), ("seed", "seed"))
    }
    # Codes of the fit are on the host, also where activations are on a device.
    pairs["order of tokens"] = [(codes[order.to(codes.device)], fit(A[order])[0])]
    both = min(int(half.sum()), int((~half).sum())) > codes.shape[1]
    pairs["half of texts"] = [tuple(fit(A[h])[1](A) for h in (half, ~half))] if both else []
    again = {c: np.mean([shares(*pair)[0] for pair in p]) for c, p in pairs.items() if p}
    return {
        "found_again": xr.DataArray(list(again.values()), {"change": list(again)}, "change"),
        "code_likeness": xr.DataArray(shares(codes, codes)[1]),
    }


def replication_words(data: xr.Dataset) -> list[str]:
    """Return what is found again at the last step where it was tried, over all layers."""
    tried = data.get("found_again", xr.DataArray([], dims="step")).dropna("step", how="all")
    if not tried.sizes["step"]:
        return []
    last = tried.isel(step=-1)
    mean = last.mean([dim for dim in last.dims if dim != "change"])
    parts = [f"{100 * float(v):.0f} % with another {v.change.item()}" for v in mean if v == v]
    found = f"At step {int(last.step):,} a fit finds concepts again: "
    alike = float(data.code_likeness.sel(step=last.step).median())
    one = f"Its codes repeat: half of them correlate by {alike:.2f} or more with another one."
    return [f"{found}{', '.join(parts)}.", *([one] if alike >= SAME else [])]
