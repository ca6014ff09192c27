"""Concepts, orthants and clusters of a corpus (Figs 4 to 6, 11, 14, 20 to 25)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.claims import Reason
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.features.wordspace.support import Support

from ...observables.words.views.clouds import clusters_view, orthants_view
from ...observables.words.views.page import semantics_page
from ..formats import p_value
from ..recipe import Findings, Materials
from ..verdicts import LEVEL, Verdict, decided, more_often
from .groupings import (
    AGREEMENT,
    LEAST,
    as_dataset,
    groupings_view,
    known_classes,
    of_groups,
    of_rotation,
    orthant_scores,
    score_of,
    spread,
)

_KMEANS = "k-means on {} concepts"
_UNIT = "k-means on {} concepts, rows of norm 1"
_SINGLE = "best single concept"
_FEWEST = 5  # words of known classes in an orthant that is judged alone
_ALONE = (2, 4, 6)  # concepts whose poles Fig. 14 shows, counted from 1


@dataclass(frozen=True)
class OrthantSize:
    """Words, contexts, concepts of the orthants (one more and one less too), draws of each null."""

    vocab_size: int = 1000
    n_contexts: int = 10_000
    dims: int = 5
    n_draws: int = 100

    @property
    def depths(self) -> tuple[int, int, int]:
        """Numbers of concepts: one less than `dims`, `dims`, and one more."""
        return self.dims - 1, self.dims, self.dims + 1


def measure_orthants(size: OrthantSize, materials: Materials) -> Findings:
    """Return orthants and clusters of a text beside random groups and rotated axes.

    Raises
    ------
    ArgumentError
        If the text has too few words of at least two word classes.
    """
    support = materials.support(size.vocab_size, size.n_contexts)
    basis = semantics.svd_concepts(support, k=max(2 * size.dims, 8))
    labels = known_classes(support.words, materials.title)
    materials.progress.note(
        f"{support.shape[0]} words, {support.shape[1]} contexts: scoring"
    )
    pieces = materials.pieces
    scores = pieces.piece("groupings", lambda: _scores(basis, labels, size))
    lift = pieces.piece("lift", lambda: _lift(support, basis, size))
    shares = pieces.piece("shares", lambda: _shares(basis, labels, size))

    def page() -> dict[str, xr.Dataset]:
        tree = semantics_page(basis, support, dims=size.dims, n_draws=size.n_draws)
        return {str(name): child.to_dataset() for name, child in tree.children.items()}

    care = "The best of several single concepts is chosen with the labels in sight."
    text = "Orthants beside k-means with as many clusters as orthants, and the poles of one concept."
    nodes = {
        "groupings": groupings_view(scores, text, care),
        **pieces.piece_nodes("page", page),
    }
    nodes |= _others(basis, support, size)
    allowed = np.asarray(support.S.sum(axis=1)).ravel()
    correlation = abs(float(np.corrcoef(basis.U[:, 0], allowed)[0, 1]))
    numbers = (scores, lift, correlation, size.dims, shares)
    return Findings(nodes, numbers)


def judge_orthants(
    scores: xr.Dataset,
    lift: xr.Dataset,
    correlation: float,
    dims: int,
    shares: xr.Dataset,
) -> list[Verdict]:
    """Judge groupings, single orthants, the lift, and how much of concept 1 is word frequency."""
    groups = _verdicts(scores, OrthantSize(dims=dims))
    return [*groups, _of_shares(shares), _of_lift(lift), _of_frequency(correlation)]


def _others(
    basis: ConceptBasis, support: Support, size: OrthantSize
) -> dict[str, xr.Dataset]:
    """Return orthants of one concept less and more, poles of single ones, and other clusters."""
    fewer, dims, more = size.depths
    nodes = {
        f"orthants-{p}": orthants_view(
            semantics.orthants(basis, p),
            support=support,
            title=f"Orthants of {p} concepts",
        )
        for p in (fewer, more)
    }
    nodes |= {
        f"concept-{k}": orthants_view(
            semantics.orthants(basis, [k - 1]),
            support=support,
            title=f"The poles of concept {k}",
        )
        for k in _ALONE
    }
    return nodes | {
        f"clusters-{p}": clusters_view(
            _clusters(basis, p), title=f"Clusters on {p} concepts"
        )
        for p in (dims, more)
    }


def _clusters(
    basis: ConceptBasis, p: int, normalised: bool = False
) -> list[semantics.Cluster]:
    """Return 2^p clusters on p concepts, fewer where fewer words differ."""
    k = min(2**p, semantics.most_clusters(basis, p, normalised=normalised))
    return semantics.spectral_clusters(basis, k, dims=p, normalised=normalised)


def _scores(
    basis: ConceptBasis, labels: dict[str, str], size: OrthantSize
) -> xr.Dataset:
    """Return the agreement of each grouping with word classes, beside its nulls."""
    scores = orthant_scores(basis, labels, size.depths, size.n_draws)
    for p in size.depths[1:]:
        for name, normalised in ((_KMEANS, False), (_UNIT, True)):
            clusters = _clusters(basis, p, normalised)
            score = semantics.coherence(
                clusters, labels, n_permutations=size.n_draws
            ).ami
            scores[name.format(p)] = score
    draws: dict[str, Any] = {"n_permutations": size.n_draws, "n_rotations": 0}
    poles = [
        semantics.orthant_coherence(basis, labels, [d], **draws).ami
        for d in range(size.dims)
    ]
    return as_dataset({**scores, _SINGLE: max(poles, key=lambda score: score.value)})


def _shares(
    basis: ConceptBasis, labels: dict[str, str], size: OrthantSize
) -> xr.Dataset:
    """Return which share of each orthant's words of known classes is of one class."""
    classes = [
        [labels[str(word)] for word in orthant.words if word in labels]
        for orthant in semantics.orthants(basis, size.dims)
    ]
    classes = [group for group in classes if len(group) >= _FEWEST]
    pool = np.array([one for group in classes for one in group])
    ends = np.cumsum([len(group) for group in classes])
    rng = np.random.default_rng(0)
    draws = [np.split(rng.permutation(pool), ends[:-1]) for _ in range(size.n_draws)]
    random = [
        [_largest_share(group) for group in draw[: len(classes)]] for draw in draws
    ]
    return xr.Dataset(
        {
            "share": ("orthant", [_largest_share(group) for group in classes]),
            "random": (("draw", "orthant"), random),
        }
    )


def _largest_share(classes: Any) -> float:
    return float(np.unique(classes, return_counts=True)[1].max() / len(classes))


def _lift(support: Support, basis: ConceptBasis, size: OrthantSize) -> xr.Dataset:
    lift = semantics.signature_lift(
        support, basis, size.dims, n_permutations=size.n_draws, n_rotations=size.n_draws
    )
    return xr.Dataset(
        {
            "by_distance": ("distance", lift.by_distance),
            "permuted": (("draw", "distance"), lift.permuted),
            "rotated": (("draw", "distance"), lift.rotated),
        }
    )


def _verdicts(scores: xr.Dataset, size: OrthantSize) -> list[Verdict]:
    by_depth = {p: score_of(scores, f"orthants of {p} concepts") for p in size.depths}
    orthants = by_depth[size.dims]
    single = score_of(scores, _SINGLE)
    return [
        *(
            of_groups(
                f"orthants of {p} concepts are groups that people recognise", score
            )
            for p, score in by_depth.items()
        ),
        of_rotation([orthants]),
        Verdict(
            "a single concept says less than several together",
            orthants.value > single.value,
            f"best single concept {single.value:.2f}, orthants {orthants.value:.2f}",
            f"random groups {spread(single.permuted)} and {spread(orthants.permuted)}",
        ),
        *(
            of_groups(
                f"k-means on {p} concepts, up to {2**p} clusters, gives semantics too",
                score_of(scores, _KMEANS.format(p)),
                f", rows of norm 1 {float(scores.ami.sel(grouping=_UNIT.format(p))):.2f}",
                f"; orthants {by_depth[p].value:.2f}",
            )
            for p in size.depths[1:]
        ),
        _of_single(single, size.dims),
    ]


def _of_single(best: semantics.Score, concepts: int) -> Verdict:
    """Judge whether no single concept gives groups that people recognise; one does if the best does.

    It is chosen of several, which its p-value must outweigh.
    """
    p = min(1.0, best.p_value * concepts)
    is_group = best.value >= AGREEMENT
    return Verdict(
        "single concepts are not groups that people recognise (Fig. 14)",
        decided(not is_group, is_group and p <= LEVEL, best.value),
        f"adjusted mutual information with word classes of the poles of the best of {concepts} "
        f"{best.value:.2f}",
        f"random groups of the same sizes {spread(best.permuted)} ({p_value(p)}, times "
        f"{concepts}); {LEAST}",
        reason=Reason.WITHIN_CHANCE,
    )


def _of_shares(data: xr.Dataset) -> Verdict:
    """Judge how many single orthants hold more of one class than random groups do."""
    claim = "some orthants are groups of one class"
    n = data.share.size
    if not n:
        return Verdict(
            claim, None, f"no orthant has {_FEWEST} words of known classes", "no number"
        )
    count = int((data.share > data.random.quantile(1 - LEVEL, "draw")).sum())
    enough, p = more_often(count, n, LEVEL)
    return Verdict(
        claim,
        True
        if enough
        else None,  # an orthant that does not stand out may be one all the same
        f"{count} of {n} orthants with {_FEWEST} or more words of known classes hold more of one "
        "class than 95 % of random groups",
        f"by chance 5 % do, as many with {p_value(p)}; mean share of the largest class "
        f"{float(data.share.mean()):.2f}, random groups {float(data.random.mean()):.2f}",
    )


def _of_lift(data: xr.Dataset) -> Verdict:
    lift = semantics.SignatureLift(
        **{str(n): values.values for n, values in data.items()}
    )
    score = lift.lift
    return Verdict(
        "contexts lead to words of their own signature (Fig. 6)",
        score.p_value <= LEVEL and lift.falls,
        f"{score.value:.1f} times as often as any word any context; by signs that differ "
        + ", ".join(f"{value:.2g}" for value in lift.by_distance),
        f"random groups {np.nanmean(score.permuted):.1f} times; frequency is part of it",
    )


def _of_frequency(correlation: float) -> Verdict:
    """Judge what nobody claims but every list of words depends on."""
    return Verdict(
        "the first concept is more than word frequency",
        correlation < 0.5,
        f"|correlation| of u₁ with how many contexts allow a word {correlation:.2f}",
        "0.5 or less would say so",
        of_paper=False,
    )
