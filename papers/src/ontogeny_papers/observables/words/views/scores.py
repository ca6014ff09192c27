"""Coherence and lift, each beside its nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.errors import ArgumentError, check_type
from ontogeny.figures import Band, Curves, NullComparison, Section, attach

from .words import SOURCE

_NULLS = {"permuted": "random groups", "rotated": "rotated axes"}
_SCORES = {
    "ami": "adjusted mutual information with word classes",
    "purity": "purity of word classes",
    "similarity": "likeness of surroundings in held-out text",
}


def coherence_view(scores: Mapping[int, semantics.Coherence]) -> xr.Dataset:
    """Return the scores of orthants beside random partitions and rotated bases.

    Parameters
    ----------
    scores
        By number of concepts, of :func:`ontogeny.semantics.orthant_coherence`.

    Raises
    ------
    ArgumentError
        If there are none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> words = tuple("abcdefgh")
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(rng.normal(size=(8, 2)), np.ones(2), None, words)
    >>> scores = {
    ...     2: semantics.orthant_coherence(basis, dict(zip(words, "xxxyyyzz")), 2)
    ... }
    >>> sorted(coherence_view(scores).attrs)
    ['figures', 'role', 'section', 'statements']
    """
    check_type("scores", scores, Mapping)
    for score in scores.values():
        check_type("each of scores", score, semantics.Coherence)
    if not scores:
        raise ArgumentError("scores must hold at least one Coherence.")
    rows = [f"{p} concepts" for p in scores]
    data = xr.Dataset(coords={"dims": rows})
    figures = []
    for name, title in _SCORES.items():
        values = [getattr(score, name) for score in scores.values()]
        if any(score is None for score in values):
            continue
        data[name] = (
            "dims",
            [s.value for s in values],
            {"long_name": title, "units": "1"},
        )
        draws = {null: [getattr(s, null) for s in values] for null in _NULLS}
        data, bands = _with_bands(data, "dims", draws, f"{name}_")
        figures.append(
            NullComparison(
                name,
                title[0].upper() + title[1:],
                value=name,
                rows="dims",
                bands=bands,
                caption="Bands: 95 % of random groups of the same sizes and of random "
                "rotations inside the same concepts.",
            )
        )
    section = Section(
        "Coherence",
        "How well orthants agree with word classes, and how alike the surroundings of their words "
        "are in other text.",
        null="random groups of the same sizes: 0 for adjusted mutual information",
        care="What the true axes add is the distance to the rotated ones, and it is small.",
    )
    sentences = [_sentence(p, s) for p, s in scores.items() if len(s.ami.permuted)]
    return attach(data, section, figures, sentences)


def lift_view(lift: semantics.SignatureLift) -> xr.Dataset:
    """Return how dense the support is by how many signs of word and context differ.

    Examples
    --------
    >>> lift = semantics.SignatureLift(
    ...     np.array([3.0, 0.5]), np.ones((4, 2)), np.ones((4, 2))
    ... )
    >>> lift_view(lift).sizes["distance"]
    2
    """
    check_type("lift", lift, semantics.SignatureLift)
    title = {"long_name": "density of the support, relative to all pairs", "units": "1"}
    data = xr.Dataset(
        {"lift": ("distance", lift.by_distance, title)},
        coords={"distance": np.arange(len(lift.by_distance))},
    )
    draws = {null: getattr(lift, null).T for null in _NULLS}
    data, bands = _with_bands(data, "distance", draws)
    figure = Curves(
        "lift",
        "Do contexts lead to words of their own signs?",
        value="lift",
        x="distance",
        series=None,
        bands=bands,
        y_scale="log",
        caption="Left: word and context have the same signs in all concepts; right: opposite ones.",
    )
    section = Section(
        "Contexts and words",
        "How often a word can follow a context, by the number of concepts in which their signs "
        "differ.",
        care="Part of the lift is frequency: the first concept is mostly how frequent a word is.",
        source=f"{SOURCE}, Fig. 6",
    )
    p = len(lift.by_distance) - 1
    score = lift.lift
    statements = []
    if np.isfinite(score.value) and np.isfinite(score.permuted).any():
        statements.append(
            f"Words follow contexts of their own signature in {p} concepts {score.value:.1f} times "
            "as often as any word follows any context (random groups "
            f"{np.nanmean(score.permuted):.1f})."
        )
    return attach(data, section, [figure], statements)


def _with_bands(
    data: xr.Dataset, dim: str, draws: Mapping[str, Sequence[Any]], prefix: str = ""
) -> tuple[xr.Dataset, list[Band]]:
    """Add the ends of the 95 % band along `dim` of every null with draws; also return the bands."""
    bands = []
    for null, label in _NULLS.items():
        if any(values is None or not len(values) for values in draws[null]):
            continue
        band = Band(f"{prefix}{null}_low", f"{prefix}{null}_high", label)
        low, high = np.transpose([_ends(values) for values in draws[null]])
        data = data.assign({band.lower: (dim, low), band.upper: (dim, high)})
        bands.append(band)
    return data, bands


def _ends(draws: np.ndarray) -> np.ndarray:
    has_draws = np.isfinite(draws).any()
    return np.nanquantile(draws, [0.025, 0.975]) if has_draws else np.full(2, np.nan)


def _sentence(p: int, score: semantics.Coherence) -> str:
    ami = score.ami
    chance = np.mean(score.ami.permuted)
    text = (
        f"Orthants of {p} concepts agree with word classes by an adjusted mutual information of "
        f"{_written(ami.value)}; random groups of the same sizes by {_written(chance)}"
    )
    if ami.rotated is None or not len(ami.rotated):
        return f"{text}."
    return (
        f"{text}, rotated axes by {_written(np.mean(ami.rotated))} ± {np.std(ami.rotated):.2f} "
        f"(percentile of the true axes: {ami.rotated_percentile:.0f})."
    )


def _written(value: float) -> str:
    return f"{round(float(value), 2) + 0.0:.2f}"  # + 0.0: no minus before a zero
