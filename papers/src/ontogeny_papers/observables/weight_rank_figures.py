"""The words and figures of `WeightRank`, for any share of the variance."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny.figures import Band, Curves, Figure, NullComparison, Section
from ontogeny.summary import NumberTable

_NULLS = {
    "walk": "random walk",
    "shuffled": "directions in random order",
    "lag": "same cosine per lag",
    "line": "line with noise",
}
_SUBSCRIPTS = str.maketrans("0123456789.", "₀₁₂₃₄₅₆₇₈₉.")


def symbol(variance: float) -> str:
    """Return the paper's symbol for the rank that holds `variance`.

    Examples
    --------
    >>> symbol(0.9), symbol(0.995)
    ('r₉₀', 'r₉₉.₅')
    """
    return "r" + f"{100 * variance:g}".translate(_SUBSCRIPTS)


def walk_rank(variance: float) -> int | None:
    """Return the variance rank of a long random walk in many dimensions, whose λₖ go as 1/k².

    None where no number of components is enough.

    Examples
    --------
    >>> walk_rank(0.9), walk_rank(0.5), walk_rank(1.0)
    (6, 1, None)
    """
    if variance >= 1:
        return None
    share = np.cumsum(6 / (np.pi * np.arange(1, 100_000)) ** 2)
    rank = int(np.searchsorted(share, variance)) + 1
    return rank if rank < len(share) else None


def section(variance: float) -> Section:
    """Return the heading and margin notes."""
    share = f"{100 * variance:g} %"
    name = symbol(variance)
    walk = walk_rank(variance)
    of_walk = (
        "A random walk in many dimensions needs all its components. "
        if walk is None
        else f"A random walk in many dimensions has {name} = {walk} whatever the number of "
        "snapshots (fewer for few of them), and less with drift: a low rank by itself shows "
        "nothing. "
    )
    return Section(
        title="Variance rank of weight trajectories",
        definition=f"Number of principal components that hold {share} of the variance of a "
        "matrix's snapshots over training (called effective rank in the paper).",
        symbol=f"{name} = min{{k : Σᵢ≤ₖ λᵢ ≥ {variance:g} Σλᵢ}}",
        null="Random walks with the same step lengths in as many dimensions; the directions of the "
        "path in random order, each step as long as the one at its place; walks with the same mean "
        "increment cosine per lag; a straight line with noise. Shuffling snapshots would change "
        "nothing and is no null.",
        care=f"{of_walk}It depends on the number of snapshots and their spacing. That weights move "
        "says nothing of function by itself.",
        source="Xu 2026, sec. 3.3.1, Fig. 1",
    )


def statements(data: xr.Dataset, variance: float) -> list[str]:
    """Return what the ranks, the early components and the whole displacements show."""
    rank = data.variance_rank.values
    count = data.sizes["block"]
    is_finite = np.isfinite(rank)
    if not is_finite.any():
        return []
    matrices = int(is_finite.sum())
    below = int((data.p_corrected.values[is_finite] < 0.05).sum())
    early = _median(data.early_energy)
    of_random = _median(data.early_high)
    ends = dict.fromkeys(f"{end(rank):.0f}" for end in (np.nanmin, np.nanmax))
    walk = _median((data.walk_low + data.walk_high) / 2)
    whole = _median(data.learned_rank)
    gaussian = _median(data.gaussian_rank)
    ratio = _median(data.increment_participation_ratio)
    chance = _median(data.walk_participation_ratio)
    return [
        (
            f"The variance rank ({100 * variance:g} %) of {matrices} of {count} weight matrices is "
            f"{' to '.join(ends)}; a random walk with the same step lengths gives about {walk:.0f}."
        ),
        (
            f"In {below} of {matrices} matrices it is lower than with the same directions in "
            "random order and step lengths at their place (permutation test, false discovery rate "
            "5 %)."
        ),
        (
            f"Up to four components of the first 30 % of the snapshots (two at least) hold "
            f"{early:.2f} of the later motion (median); with directions in random "
            f"order up to {of_random:.2f}."
        ),
        (
            f"The increments themselves use {ratio:.1f} directions (participation ratio, median); "
            f"those of a random walk {chance:.1f}."
        ),
        (
            f"The whole displacement, W_T − W_0, has {whole:.0f} singular directions for "
            f"{100 * variance:g} % of its energy (median); a Gaussian matrix of that shape "
            f"{gaussian:.0f}."
        ),
    ]


def _median(values: xr.DataArray) -> float:
    return float(np.nanmedian(values.values))


CHARTS: tuple[Figure, ...] = (
    NullComparison(
        "whole-run",
        "Variance rank of the whole run",
        value="variance_rank",
        rows="block",
        bands=[
            Band(f"{name}_low", f"{name}_high", label) for name, label in _NULLS.items()
        ],
        caption="Dots: measured. Bands, top to bottom as in the legend: 95 % of the draws.",
    ),
    Curves(
        "growing",
        "Variance rank of the run so far",
        value="growing_rank_by_kind",
        x="step_",
        series=None,
        facet="kind",
        bands=[
            Band(f"growing_{n}_low_by_kind", f"growing_{n}_high_by_kind", _NULLS[n])
            for n in ("walk", "shuffled")
        ],
        caption="Mean over the matrices of one kind, from the first checkpoint up to each "
        "{checkpoint}.",
    ),
)
"""The figures of the node."""


def separating(variance: float) -> NumberTable:
    """Return the table of what separates a run from a random walk."""
    share = f"{100 * variance:g} %"
    increments = "increments"
    early = "later motion in early components"
    learned = f"rank of W_T − W_0 ({share})"
    use = "participation ratio of the increments"
    of_walk = "participation ratio of a random walk"
    of_learned = "variance rank of the whole displacement"
    of_increments = "variance rank of the increments"
    many = "directions"
    return NumberTable(
        "separating",
        "What distinguishes a run from a random walk",
        (
            ("snapshots", "snapshots used", "snapshots", "snapshots"),
            (
                "net_drift_ratio",
                "squared net drift over squared increments",
                "1",
                "net drift (walk: 1)",
            ),
            (
                "increment_rank",
                of_increments,
                many,
                f"directions for {share}",
                increments,
            ),
            ("increment_participation_ratio", use, many, "participation", increments),
            ("walk_participation_ratio", of_walk, many, "of a walk", increments),
            ("early_energy", "energy early in the path", "1", "measured", early),
            (
                "early_high",
                "energy early in the path, directions in random order, upper end",
                "1",
                "97.5 % in random order",
                early,
            ),
            ("learned_rank", of_learned, many, "measured", learned),
            (
                "gaussian_rank",
                "variance rank of a Gaussian matrix",
                many,
                "Gaussian",
                learned,
            ),
        ),
        rows="block",
        caption="Net drift: |w_T − w_0|² over the sum of squared steps. Early components: up to 4 "
        "of the first 30 % of the snapshots, two snapshots at least.",
    )
