"""Concepts, orthants and clusters of a corpus (Figs 4 to 6, 11, 14, 20 to 25)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ... import semantics
from ...errors import ArgumentError
from ...figures import Band, NullComparison, Section, attach
from ...observables import semantics_page
from ..evidence import LEVEL
from ..recipe import Findings, Materials
from ..verdicts import Verdict

_OTHERS = ("k-means, log₂ k concepts", "k-means, rows of norm 1", "best single concept")


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
    scores = pieces.kept("groupings", lambda: _scores(basis, labels, size))
    lift = pieces.kept("lift", lambda: _lift(support, basis, size))

    def page() -> dict[str, xr.Dataset]:
        tree = semantics_page(basis, support, dims=size.dims, draws=size.draws)
        return {str(name): child.to_dataset() for name, child in tree.children.items()}

    nodes = {"groupings": _view(scores, size), **pieces.kept_nodes("page", page)}
    verdicts = [*_verdicts(scores, size), _of_lift(lift), _of_frequency(support, basis)]
    return Findings(verdicts, nodes)


def _scores(basis: semantics.ConceptBasis, labels: dict[str, str], size: OrthantSize) -> xr.Dataset:
    """Return the agreement of each grouping with word classes, beside its nulls."""
    draws: dict[str, Any] = {"permutations": size.draws}
    orthants = semantics.orthant_coherence(
        basis, labels, size.dims, rotations=size.draws, **draws
    ).ami
    clusters = [
        semantics.coherence(
            semantics.spectral_clusters(basis, 2**size.dims, normalised=normalised), labels, **draws
        ).ami
        for normalised in (False, True)
    ]
    poles = [
        semantics.orthant_coherence(basis, labels, [d], rotations=0, **draws).ami
        for d in range(size.dims)
    ]
    scores = [orthants, *clusters, max(poles, key=lambda score: score.value)]
    names = [f"orthants of {size.dims} concepts", *_OTHERS]
    title = {"long_name": "adjusted mutual information with word classes", "units": "1"}
    return xr.Dataset(
        {
            "ami": ("grouping", [score.value for score in scores], title),
            "permuted": (("grouping", "draw"), [score.permuted for score in scores]),
            "rotated": ("turn", np.asarray(orthants.rotated)),
        },
        coords={"grouping": names},
    )


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


def _view(scores: xr.Dataset, size: OrthantSize) -> xr.Dataset:
    low, high = scores.permuted.quantile([0.025, 0.975], "draw").drop_vars("quantile")
    data = scores[["ami"]].assign(random_low=low, random_high=high)
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


def _verdicts(scores: xr.Dataset, size: OrthantSize) -> list[Verdict]:
    rotated = scores.rotated.values
    orthants, kmeans, unit_rows, single = (
        semantics.Score(float(each.ami), each.permuted.values, rotated)
        for each in (scores.isel(grouping=i) for i in range(scores.sizes["grouping"]))
    )
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


def _of_lift(data: xr.Dataset) -> Verdict:
    lift = semantics.SignatureLift(**{str(n): values.values for n, values in data.items()})
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
