"""Groups of words beside word classes, random groups and rotated axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.claims import Reason
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.figures import Band, NullComparison, Section, attach

from ..verdicts import LEVEL, Verdict

AGREEMENT = 0.1
"""Adjusted mutual information below which groups are not called ones that people recognise.

Random groups have 0 and the classes themselves 1; what the paper shows has .2 to .5. With enough
words .07 is far above chance, and no reader would see a class in such a group.
"""


def recognised(score: semantics.Score, least: float = AGREEMENT) -> bool | None:
    """Return whether groups score above random ones: None where they do so, and too little."""
    above = score.p_value <= LEVEL and score.value > 0
    return None if above and score.value < least else above


LEAST = f"{AGREEMENT:g} at least counts"


def known_classes(words: Sequence[str], title: str) -> dict[str, str]:
    """Return the classes of the words.

    Raises
    ------
    ArgumentError
        If there are none of at least two classes; `title` says in what.
    """
    labels = semantics.word_classes(words)
    if len(set(labels.values())) < 2:
        raise ArgumentError(
            f"text must hold English words of two word classes to score groups of words; "
            f"{title} has {len(labels)} words of such a class."
        )
    return labels


def orthant_scores(
    basis: ConceptBasis, labels: dict[str, str], dims: Sequence[int], n_draws: int
) -> dict[str, semantics.Score]:
    """Return the agreement of the orthants of p concepts with word classes, for each p."""
    return {
        f"orthants of {p} concepts": semantics.orthant_coherence(
            basis, labels, p, n_permutations=n_draws, n_rotations=n_draws
        ).ami
        for p in dims
    }


def as_dataset(scores: dict[str, semantics.Score]) -> xr.Dataset:
    """Return scores of groupings with their draws, as a piece that is kept."""
    title = {"long_name": "adjusted mutual information with word classes", "units": "1"}
    turns = max(0 if s.rotated is None else len(s.rotated) for s in scores.values())
    none = np.full(turns, np.nan)
    return xr.Dataset(
        {
            "ami": ("grouping", [s.value for s in scores.values()], title),
            "permuted": (("grouping", "draw"), [s.permuted for s in scores.values()]),
            "rotated": (
                ("grouping", "turn"),
                [none if s.rotated is None else s.rotated for s in scores.values()],
            ),
        },
        coords={"grouping": list(scores)},
    )


def score_of(scores: xr.Dataset, grouping: str) -> semantics.Score:
    """Return the score of one grouping; without rotations where it has no axes."""
    one = scores.sel(grouping=grouping)
    turned = one.rotated.values
    return semantics.Score(
        float(one.ami), one.permuted.values, None if np.isnan(turned).any() else turned
    )


def of_groups(
    claim: str, score: semantics.Score, more: str = "", beside: str = ""
) -> Verdict:
    """Judge whether groups agree with word classes better than random groups do."""
    return Verdict(
        claim,
        recognised(score),
        f"adjusted mutual information with word classes {score.value:.2f}{more}",
        f"random groups of the same sizes {spread(score.permuted)}{beside}; {LEAST}",
        reason=Reason.SMALL,
    )


def of_rotation(scores: Sequence[semantics.Score]) -> Verdict:
    """Judge whether the true axes are better than nearly all rotated ones, for every score.

    The paper says that single concepts carry no meaning, and compares no other axes.
    """
    percentiles = [s.rotated_percentile for s in scores]
    return Verdict(
        "other axes inside the same concepts give orthants that are less good",
        min(percentiles) > 100 * (1 - LEVEL) or None,
        ", ".join(
            f"{s.value:.2f} at percentile {at:.0f}"
            for s, at in zip(scores, percentiles, strict=True)
        )
        + " of rotated axes",
        "random rotations inside the same concepts "
        + ", ".join(spread(s.rotated) for s in scores if s.rotated is not None),
        reason=Reason.WITHIN_CHANCE,  # not seen is not absent
        of_paper=False,
    )


def groupings_of_models(
    scores: Mapping[str, xr.Dataset], text: str, care: str
) -> xr.Dataset:
    """Return the view of the groupings of several models, each under the model's name."""
    rows = [
        data.assign_coords(grouping=[f"{name}: {g}" for g in data.grouping.values])
        for name, data in scores.items()
    ]
    return groupings_view(xr.concat(rows, dim="grouping"), text, care)


def groupings_view(scores: xr.Dataset, text: str, care: str) -> xr.Dataset:
    """Return the agreement of every grouping with word classes, beside random groups."""
    low, high = scores.permuted.quantile([0.025, 0.975], "draw").drop_vars("quantile")
    data = scores[["ami"]].assign(random_low=low, random_high=high)
    figure = NullComparison(
        "groupings",
        "How well groups of words agree with word classes",
        value="ami",
        rows="grouping",
        bands=[
            Band("random_low", "random_high", "random groups of the same sizes, 95 %")
        ],
    )
    section = Section(
        "Ways to group words",
        text,
        null="Random groups of the same sizes: 0.",
        care=care,
    )
    return attach(data, section, [figure])


def spread(draws: np.ndarray) -> str:
    """Return the mean and the standard deviation of draws."""
    return f"{round(float(np.mean(draws)), 2) + 0.0:.2f} ± {np.std(draws):.2f}"
