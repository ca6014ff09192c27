"""Section, maps and sentences of the observable `TCAV`."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny.figures import Figure, Heatmap, Section

from .base import LEVEL


def significant(data: xr.Dataset) -> list[str]:
    """Return what differs from shuffled labels, and from random concepts, concept by concept."""
    words = []
    for concept in data.concept.values:
        here = data.sel(concept=concept)
        if not np.isfinite(here.p_corrected).any():
            words.append(f"{concept}: no layer has a score at any {{checkpoint}}.")
            continue
        scores, slopes = (
            _count(here[name]) for name in ("p_corrected", "derivative_p_corrected")
        )
        random = here.random_score.values
        random = random[np.isfinite(random)]
        low, high = np.quantile(random, [0.025, 0.975])
        words.append(
            f"{concept}: {scores} scores and {slopes} mean derivatives (layers and "
            f"{{checkpoint}}s) differ from those of shuffled labels (two-sided, p ≤ {LEVEL:g}, "
            "corrected over concepts, layers and {checkpoint}s); 95 % of the shuffled scores lie "
            f"between {low:.2f} and {high:.2f}."
        )
        extreme = float(np.isin(random, (0.0, 1.0)).mean())
        if extreme > LEVEL:
            words.append(
                f"{concept}: {extreme:.0%} of the shuffled scores are 0 or 1, so that scores can "
                "hardly differ; go by the mean derivative."
            )
        if (
            "against_p_corrected" in here
            and np.isfinite(here.against_p_corrected).any()
        ):
            words.append(
                f"{concept} against random texts: {_count(here.against_p_corrected)} "
                f"mean derivatives differ from those of {data.sizes['draw']} random concepts of "
                f"{int(here.against_texts.max())} texts (two-sided, p ≤ {LEVEL:g}, corrected)."
            )
    return words


def _count(p_values: xr.DataArray) -> str:
    """Return how many p-values are significant, of those that are known."""
    return f"{int((p_values <= LEVEL).sum())} of {int(np.isfinite(p_values).sum())}"


def section(against: bool) -> Section:
    """Return the section; `against` says whether there are random texts."""
    return Section(
        title="Labelled concepts: influence (TCAV)",
        definition="Fraction of held-out texts of which the predicted tokens become more likely "
        "when activations move along the concept's direction.",
        symbol="TCAV = mean 1[∂f(x)/∂h · v > 0]",
        null="Directions for shuffled labels, the same shuffles at every {checkpoint}; two-sided, "
        "corrected over concepts, layers and {checkpoint}s (largest standardised value of each "
        "shuffle)." + (_AGAINST if against else ""),
        care="Gradients of different texts share directions, so most random directions score near "
        "0 or 1: a score far from one half shows nothing by itself, and where many shuffles score "
        "0 or 1 no score can differ from them. The mean derivative does not saturate.",
        source="Bernas 2025, sec. 6.2, Fig. 10, Table 2; Kim et al. 2018",
    )


_AGAINST = (
    " Random concepts: random texts separated from other random texts, of as many texts as the "
    "concept, the same at every layer and {checkpoint}; tested by the mean derivative alike."
)
_SLOPE = "mean directional derivative"
_MAPS = (
    ("significant", "score", "", "one half than shuffled labels"),
    ("derivatives-significant", _SLOPE, "derivative_", "zero than shuffled labels"),
    (
        "against-significant",
        f"{_SLOPE} against random texts",
        "against_",
        "zero than random concepts",
    ),
)


def significance_maps(data: xr.Dataset) -> list[Figure]:
    """Return the maps of p-values, of random concepts where there are any."""
    return [
        Heatmap(
            name,
            f"Corrected p-value of the {what}",
            value=f"{prefix}p_corrected",
            facet="concept",
            caption=f"At most 0.05: further from {meaning} reach anywhere.",
        )
        for name, what, prefix, meaning in _MAPS
        if f"{prefix}p_corrected" in data
    ]
