"""Section, figures and sentences of the observable `TCAV`."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..figures import Band, Curves, Figure, Heatmap, Section
from .supervised import LEVEL

__all__ = ["figures", "section", "significant"]


def significant(data: xr.Dataset) -> list[str]:
    """Return what differs from shuffled labels, and from random concepts, concept by concept."""
    words = []
    for concept in data.concept.values:
        here = data.sel(concept=concept)
        if not np.isfinite(here.p_corrected).any():
            words.append(f"{concept}: no layer has a score at any step.")
            continue
        scores, slopes = (_count(here[name]) for name in ("p_corrected", "derivative_p_corrected"))
        random = here.random_score.values
        random = random[np.isfinite(random)]
        low, high = np.quantile(random, [0.025, 0.975])
        words.append(
            f"{concept}: {scores} scores and {slopes} mean derivatives "
            "(layers and steps) differ from those of shuffled labels (two-sided, p ≤ "
            f"{LEVEL:g}, corrected over concepts, layers and steps); 95 % of the shuffled scores "
            f"lie between {low:.2f} and {high:.2f}."
        )
        extreme = float(np.isin(random, (0.0, 1.0)).mean())
        if extreme > LEVEL:
            words.append(
                f"{concept}: {extreme:.0%} of the shuffled scores are 0 or 1, so that scores can "
                "hardly tell; go by the mean derivative."
            )
        if "against_p_corrected" in here and np.isfinite(here.against_p_corrected).any():
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
        null=_SHUFFLED + (_AGAINST if against else ""),
        care="Gradients of different texts share directions, so most random directions score near "
        "0 or 1: a score far from one half shows nothing by itself, and where many shuffles score "
        "0 or 1 no score can differ from them. The mean derivative does not saturate.",
        source="Bernas 2025, sec. 6.2, Fig. 10, Table 2; Kim et al. 2018",
    )


_SHUFFLED = (
    "Directions for shuffled labels, the same shuffles at every step; two-sided, corrected over "
    "concepts, layers and steps (largest standardised value of each shuffle)."
)
_AGAINST = (
    " Random concepts: random texts parted from other random texts, of as many texts as the "
    "concept, the same at every layer and step; tested by the mean derivative alike."
)


def figures(against: bool) -> list[Figure]:
    """Return the figures; `against` says whether there are random texts."""
    drawn: list[Figure] = [
        *_pair(
            "scores",
            "significant",
            "TCAV scores",
            "score",
            "p_corrected",
            Band("chance_low", "chance_high", "shuffled labels"),
            "One half: the direction raises and lowers equally often. Grey: 95 % of the "
            "directions for shuffled labels, over all layers.",
            "At most 0.05: further from one half than shuffled labels reach anywhere.",
        ),
        *_pair(
            "derivatives",
            "derivatives-significant",
            "Mean directional derivative",
            "relative_derivative",
            "derivative_p_corrected",
            Band("derivative_chance_low", "derivative_chance_high", "shuffled labels"),
            "Mean over held-out texts along the unit direction, over the root mean square of "
            "the same for shuffled labels. Grey: 95 % of the latter, over all layers.",
            "At most 0.05: further from zero than shuffled labels reach anywhere.",
        ),
    ]
    if not against:
        return drawn
    scores = Curves(
        "against-scores",
        "TCAV scores against random texts",
        value="against_score",
        facet="concept",
        bands=[Band("against_score_chance_low", "against_score_chance_high", "random concepts")],
        caption="The direction parts the concept's texts from random ones. Grey: 95 % of as many "
        "random concepts of as many texts, over all layers.",
    )
    return [
        *drawn,
        scores,
        *_pair(
            "against-derivatives",
            "against-significant",
            "Mean directional derivative against random texts",
            "relative_against_derivative",
            "against_p_corrected",
            Band("against_chance_low", "against_chance_high", "random concepts"),
            "Over the root mean square of random concepts. Grey: 95 % of these, over all layers. "
            "Whatever else parts the concept's texts from the random ones, such as their source, "
            "is in the direction too.",
            "At most 0.05: further from zero than random concepts reach anywhere.",
        ),
    ]


def _pair(
    name: str, tested: str, title: str, value: str, p_value: str, band: Band, *captions: str
) -> list[Figure]:
    """Return the curves of a value with its null, and the heatmap of its p-values."""
    what = "score" if value == "score" else title[0].lower() + title[1:]
    return [
        Curves(name, title, value=value, facet="concept", bands=[band], caption=captions[0]),
        Heatmap(
            tested,
            f"Corrected p-value of the {what}",
            value=p_value,
            facet="concept",
            caption=captions[1],
        ),
    ]
