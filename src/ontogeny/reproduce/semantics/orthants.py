"""Concepts, orthants and clusters of a corpus (Figs 4 to 6, 11, 14, 20 to 25)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ... import semantics
from ...errors import ArgumentError
from ...figures import Band, NullComparison, Section, attach
from ...observables import semantics_page
from ..recipe import Findings, Materials
from ..verdicts import Verdict

__all__ = ["OrthantSize", "measure_orthants"]

LEVEL = 0.05
"""Share of draws that chance may reach where a claim counts as shown."""


@dataclass(frozen=True)
class OrthantSize:
    """Words, contexts, concepts of the orthants, and draws of each null."""

    vocab_size: int = 1000
    n_contexts: int = 10_000
    dims: int = 5
    draws: int = 100


def measure_orthants(size: OrthantSize, materials: Materials) -> Findings:
    """Return orthants and clusters of a text beside random groups and rotated axes.

    Raises
    ------
    ArgumentError
        If the text has too few words of at least two word classes.
    """
    support = materials.support(size.vocab_size, size.n_contexts)
    basis = semantics.svd_concepts(support, k=max(2 * size.dims, 8))
    labels = semantics.word_classes(support.words)
    materials.progress.note(f"{support.shape[0]} words, {support.shape[1]} contexts: scoring")
    if len(set(labels.values())) < 2:
        raise ArgumentError(
            f"text must hold English words of two word classes to score groups of words; "
            f"{materials.title} has {len(labels)} words of such a class."
        )
    pieces = materials.pieces
    scores = _as_scores(pieces.kept("groupings", lambda: _as_data(_scores(basis, labels, size))))
    lift = semantics.SignatureLift(
        **{
            str(name): values.values
            for name, values in pieces.kept("lift", lambda: _lift(support, basis, size)).items()
        }
    )

    def page() -> dict[str, xr.Dataset]:
        tree = semantics_page(basis, support, dims=size.dims, draws=size.draws)
        return {str(name): child.to_dataset() for name, child in tree.children.items()}

    nodes = {"groupings": _view(scores, size), **pieces.kept_nodes("page", page)}
    return Findings(
        [*_verdicts(scores, size), _of_lift(lift), _of_frequency(support, basis)], nodes
    )


def _scores(
    basis: semantics.ConceptBasis, labels: dict[str, str], size: OrthantSize
) -> dict[str, semantics.Score]:
    """Return the agreement of each grouping with word classes, by the grouping's name."""
    clusters = {"k-means, log₂ k concepts": False, "k-means, rows of norm 1": True}
    poles = [
        semantics.orthant_coherence(basis, labels, [d], permutations=size.draws, rotations=0).ami
        for d in range(size.dims)
    ]
    scores = {
        f"orthants of {size.dims} concepts": semantics.orthant_coherence(
            basis, labels, size.dims, permutations=size.draws, rotations=size.draws
        ).ami
    }
    for name, normalised in clusters.items():
        groups = semantics.spectral_clusters(basis, 2**size.dims, normalised=normalised)
        scores[name] = semantics.coherence(groups, labels, permutations=size.draws).ami
    scores["best single concept"] = max(poles, key=lambda score: score.value)
    return scores


def _as_data(scores: dict[str, semantics.Score]) -> xr.Dataset:
    """Return scores as they are kept; only the first has draws of rotated axes."""
    first, *_ = scores.values()
    return xr.Dataset(
        {
            "value": ("grouping", [score.value for score in scores.values()]),
            "permuted": (("grouping", "draw"), [score.permuted for score in scores.values()]),
            "rotated": ("turn", np.asarray(first.rotated)),
        },
        coords={"grouping": list(scores)},
    )


def _as_scores(data: xr.Dataset) -> dict[str, semantics.Score]:
    names = [str(name) for name in data.grouping.values]
    turned = [data.rotated.values, *[None] * (len(names) - 1)]
    return {
        name: semantics.Score(float(value), draws, rotated)
        for name, value, draws, rotated in zip(
            names, data.value.values, data.permuted.values, turned, strict=True
        )
    }


def _lift(
    support: semantics.Support, basis: semantics.ConceptBasis, size: OrthantSize
) -> xr.Dataset:
    found = semantics.signature_lift(
        support, basis, size.dims, permutations=size.draws, rotations=size.draws
    )
    return xr.Dataset(
        {
            "by_distance": ("distance", found.by_distance),
            "permuted": (("draw", "distance"), found.permuted),
            "rotated": (("draw", "distance"), found.rotated),
        }
    )


def _view(scores: dict[str, semantics.Score], size: OrthantSize) -> xr.Dataset:
    ends = np.array([np.quantile(s.permuted, [0.025, 0.975]) for s in scores.values()])
    title = {"long_name": "adjusted mutual information with word classes", "units": "1"}
    data = xr.Dataset(
        {
            "ami": ("grouping", [s.value for s in scores.values()], title),
            "random_low": ("grouping", ends[:, 0]),
            "random_high": ("grouping", ends[:, 1]),
        },
        coords={"grouping": list(scores)},
    )
    figure = NullComparison(
        "groupings",
        "How well groups of words agree with word classes",
        value="ami",
        rows="grouping",
        bands=[Band("random_low", "random_high", "random groups of the same sizes, 95 %")],
    )
    section = Section(
        "Ways to group words",
        f"Orthants of {size.dims} concepts beside k-means and the poles of one concept.",
        null="Random groups of the same sizes: 0.",
        care="The best of several single concepts is chosen with the labels in sight.",
    )
    return attach(data, section, [figure])


def _verdicts(scores: dict[str, semantics.Score], size: OrthantSize) -> list[Verdict]:
    orthants, kmeans, unit_rows, single = scores.values()
    rotated = np.asarray(orthants.rotated)
    return [
        Verdict(
            f"orthants of {size.dims} concepts are groups that people recognise",
            orthants.p_value <= LEVEL and orthants.value > 0,
            f"adjusted mutual information with word classes {orthants.value:.2f}",
            f"random groups of the same sizes {_spread(orthants.permuted)}",
        ),
        Verdict(
            "the singular axes themselves carry the meaning",
            orthants.rotated_percentile > 100 * (1 - LEVEL),
            f"{orthants.value:.2f}, percentile {orthants.rotated_percentile:.0f} of rotated axes",
            f"random rotations inside the same concepts {_spread(rotated)}",
        ),
        Verdict(
            "a single concept says less than several together",
            orthants.value > single.value,
            f"best single concept {single.value:.2f}, orthants {orthants.value:.2f}",
            f"random groups {_spread(single.permuted)} and {_spread(orthants.permuted)}",
        ),
        Verdict(
            "k-means on log₂ k concepts gives semantics too",
            kmeans.p_value <= LEVEL and kmeans.value > 0,
            f"k = {2**size.dims}: {kmeans.value:.2f}, rows of norm 1 {unit_rows.value:.2f}",
            f"random groups {_spread(kmeans.permuted)}; orthants {orthants.value:.2f}",
        ),
    ]


def _of_lift(lift: semantics.SignatureLift) -> Verdict:
    score = lift.lift
    return Verdict(
        "contexts lead to words of their own signature (Fig. 6)",
        score.p_value <= LEVEL and lift.falls,
        f"{score.value:.1f} times as often as any word any context; by signs that differ "
        + ", ".join(f"{value:.2g}" for value in lift.by_distance),
        f"random groups {np.nanmean(score.permuted):.1f} times; frequency is part of it",
    )


def _of_frequency(support: semantics.Support, basis: semantics.ConceptBasis) -> Verdict:
    """Judge what nobody claims but every list of words depends on."""
    allowed = np.asarray(support.S.sum(axis=1)).ravel()
    found = abs(float(np.corrcoef(basis.U[:, 0], allowed)[0, 1]))
    return Verdict(
        "(not claimed) the first concept is more than word frequency",
        found < 0.5,
        f"|correlation| of u₁ with how many contexts allow a word {found:.2f}",
        "0.5 or less would say so",
    )


def _spread(draws: np.ndarray) -> str:
    return f"{round(float(np.mean(draws)), 2) + 0.0:.2f} ± {np.std(draws):.2f}"
