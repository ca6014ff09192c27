"""Where a network that learned the organisms puts words and contexts (Figs 2A and 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.figures import Scatter, Section, attach

from ..formats import joined
from ..verdicts import LEVEL, Runs, RunsOf, Verdict, unanimous
from .organism_geometry import Geometry, p_value

_STATES = ("untrained", "trained")
# Cosine of the two representations of a concept, which the theory makes equal.
_SAME = 0.9


def measure_embeddings(
    geometry: Geometry, runs_of: RunsOf, of_entropy: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return what `judge_embeddings` is given, seed by seed with the draws of the nulls.

    Parameters
    ----------
    geometry
        The organisms.
    runs_of
        By label: of each seed ``W(state, subject, width)`` and ``H(state, width, attribute)`` of
        the untrained and the trained network, for the two representations of a concept.
    of_entropy
        Labels of those with the cross-entropy, which are measured for clusters and axes too.
    """
    entropy = [run for label in of_entropy for run in runs_of[label]]
    kinds = geometry.kinds
    kingdom = geometry.distinctions[0]
    both = np.r_[kingdom.words, kingdom.contexts]
    fine = np.stack(list(kinds.values())).argmax(0)
    everything = [
        [np.concatenate(_directions(run, state)) for state in _STATES]
        for run in entropy
    ]
    words = [[_directions(run, state)[0] for state in _STATES] for run in entropy]
    return {
        "clusters": {
            "words and contexts of plants and of animals cluster apart": _clusters(
                everything, both, geometry.n_draws
            ),
            f"words cluster into {', '.join(kinds)}": _clusters(
                words, fine, geometry.n_draws
            ),
        },
        "axes": _axes(geometry, entropy),
        "same": {
            label: {
                state: np.array(
                    [_cosines(geometry.basis, *_embeddings(r, state)) for r in runs]
                )
                for state in _STATES
            }
            for label, runs in runs_of.items()
        },
    }


def judge_embeddings(
    numbers: Mapping[str, Mapping[str, Any]], of_entropy: Sequence[str]
) -> list[Verdict]:
    """Judge where trained networks put words and contexts.

    The paper claims that both represent a concept alike where it trains with the cross-entropy.
    """
    clusters, axes, same = (
        numbers[name].items() for name in ("clusters", "axes", "same")
    )
    return [
        *(_of_clusters(f"{claim} (Fig. 2A)", **of) for claim, of in clusters),
        *_of_axes(**dict(axes)),
        *(_of_same(label, of, label in of_entropy) for label, of in same),
    ]


def _embeddings(run: xr.Dataset, state: str) -> tuple[np.ndarray, np.ndarray]:
    """Return W (V, d), centred as the theory's logits are, and H (d, m)."""
    W, H = (run[name].sel(state=state).values.astype(float) for name in "WH")
    return W - W.mean(0), H


def _directions(run: xr.Dataset, state: str) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors of words (V, d) and of contexts (m, d), both about their mean."""
    W, H = _embeddings(run, state)
    sides = (W, (H - H.mean(1, keepdims=True)).T)
    return sides[0] / _norms(sides[0]), sides[1] / _norms(sides[1])


def _clusters(
    vectors: Sequence[Sequence[np.ndarray]], classes: np.ndarray, n_draws: int
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    others = [rng.permutation(classes) for _ in range(n_draws)]
    before, after = np.array(
        [[contrast(x, classes) for x in pair] for pair in vectors]
    ).T
    null = np.array(
        [[contrast(pair[1], other) for other in others] for pair in vectors]
    )
    return {"before": before, "after": after, "null": null}


def _of_clusters(
    claim: str, before: np.ndarray, after: np.ndarray, null: np.ndarray
) -> Verdict:
    p = max(p_value(row, value) for row, value in zip(null, after, strict=True))
    return Verdict(
        claim,
        unanimous((after > before) & (after > np.quantile(null, 1 - LEVEL, axis=1))),
        f"mean cosine within classes minus between them {joined(after)}",
        f"untrained {joined(before)}; random classes {np.mean(null):.2f} ± {np.std(null):.2f} "
        f"(p = {p:.2g})",
    )


def _axes(geometry: Geometry, runs: Runs) -> dict[str, Any]:
    """Return projections on the axes that the other side makes.

    A context is part of its own axis H v, so that its projection there says something even in an
    untrained network. The theory makes W^T u and H v the same axis: words are projected on H v and
    contexts on W^T u.
    """
    before, mine = (
        np.array(
            [_along(geometry, geometry.basis, *_embeddings(run, state)) for run in runs]
        )
        for state in _STATES
    )
    shuffled, rotated = (
        np.array(
            [
                [_along(geometry, b, *_embeddings(run, "trained")) for b in bases]
                for run in runs
            ]
        )
        for bases in (geometry.shuffled(), geometry.rotated())
    )
    return {
        "before": before,
        "mine": mine,
        "shuffled": shuffled,
        "rotated": rotated,
        "k": geometry.basis.k,
    }


def _of_axes(
    before: np.ndarray,
    mine: np.ndarray,
    shuffled: np.ndarray,
    rotated: np.ndarray,
    k: int,
) -> list[Verdict]:
    p, p_rotated = (
        max(p_value(row, value) for row, value in zip(null, mine, strict=True))
        for null in (shuffled, rotated)
    )
    measured = (
        f"area under the curve of words on H vₖ and contexts on Wᵀuₖ {joined(mine)}"
    )
    return [
        Verdict(
            "projections on two concepts order plants and animals, mammals and others (Fig. 10)",
            unanimous((mine > before) & (p <= LEVEL)),
            measured,
            f"untrained {joined(before)}; concepts of shuffled next words {shuffled.mean():.2f} "
            f"(p = {p:.2g}); chance is above 0.5, as either direction counts",
        ),
        Verdict(
            "other axes of the same concepts order them less well",
            p_rotated <= LEVEL or None,
            measured,
            f"random rotations of the {k} concepts {rotated.mean():.2f}, as well "
            f"in {p_rotated:.0%}",
            reason=Reason.WITHIN_CHANCE,  # not seen is not absent
            of_paper=False,
        ),
    ]


def _along(
    geometry: Geometry, basis: ConceptBasis, W: np.ndarray, H: np.ndarray
) -> float:
    """Return how well the first two concepts part the two distinctions in an embedding."""
    of_words, of_contexts = basis.representations(W, H)
    words = W @ of_contexts
    contexts = H.T @ of_words
    distinctions = enumerate(geometry.distinctions)
    return float(
        np.mean([d.separation(words[:, k], contexts[:, k]) for k, d in distinctions])
    )


def _of_same(label: str, cosines: Mapping[str, np.ndarray], claimed: bool) -> Verdict:
    (first, second) = cosines["trained"][:, [0, 1], [0, 1]].T
    before = cosines["untrained"]
    crossed = np.abs(cosines["trained"][:, [0, 1], [1, 0]]).max()
    return Verdict(
        f"{label}: words and contexts represent a concept by the same vector (Eq. 4, Fig. 10)",
        unanimous(np.minimum(first, second) >= _SAME),
        f"cosine of Wᵀuₖ and H vₖ, concept 1: {joined(first)}, concept 2: {joined(second)}",
        f"untrained at most {before[:, [0, 1], [0, 1]].max():.2f}; different concepts at most "
        f"{crossed:.2f}; {_SAME:g} or more would say so",
        of_paper=claimed,
    )


def _cosines(basis: ConceptBasis, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return the cosines (2, 2) of the first two W^T u_k and H v_k."""
    u, v = (
        x[:, :2] / np.linalg.norm(x[:, :2], axis=0) for x in basis.representations(W, H)
    )
    return np.asarray(u.T @ v)


def embeddings_view(geometry: Geometry, run: xr.Dataset) -> xr.Dataset:
    """Return the trained words and contexts in three principal components, and with the concepts.

    Words and contexts are unit vectors about their mean. Each concept has its two ends, H v_k and
    -H v_k as unit vectors, in the components of words and of contexts.
    """
    words, contexts = _directions(run, "trained")
    W, H = _embeddings(run, "trained")
    axes = geometry.basis.representations(W, H)[1][:, :2].T
    ends = np.concatenate([axes, -axes]) / _norms(np.concatenate([axes, -axes]))
    names = [*geometry.world.subjects, *(f"{a} …" for a in geometry.world.attributes)]
    kinds = [
        *_kinds(geometry, np.eye(len(words))),
        *_kinds(geometry, geometry.world.S.T),
    ]
    marks = [f"concept {k}" for k in (1, 2, 1, 2)]
    ways = ("+1", "+2", "−1", "−2")
    data = _placed(
        "point", _components(np.concatenate([words, contexts]), 3), names, kinds
    )
    figures = [
        Scatter(
            "embedding",
            "Words and contexts of a trained network",
            x="point_1",
            y="point_2",
            z="point_3",
            colour="point_kind",
            label="point_name",
            caption="Principal components of all words and contexts (Fig. 2A).",
        )
    ]
    for side, vectors, part in (
        ("context", contexts, slice(len(words), None)),
        ("word", words, slice(len(words))),
    ):
        within = _components(vectors, 2, np.concatenate([vectors, ends]))
        data = data.merge(
            _placed(side, within, [*names[part], *ways], [*kinds[part], *marks])
        )
        figures.append(
            Scatter(
                f"{side}-axes",
                f"{side.capitalize()}s and the axes of two concepts",
                x=f"{side}_1",
                y=f"{side}_2",
                points=side,
                colour=f"{side}_kind",
                label=f"{side}_name",
                caption=f"Principal components of the {side}s, with both "
                "ends of concepts 1 and 2 (Fig. 10).",
            )
        )
    section = Section(
        "Embeddings of the organisms",
        "Where a transformer that was trained with the cross-entropy puts words and contexts.",
        symbol="vₖᵈ = H vₖ",
        care="One seed. A plane shows clusters and leaves out what else there is: see the "
        "verdicts. Words and contexts are each shown about their own mean.",
        source="Zhao and Thrampoulidis 2025, Figs 2 and 10",
    )
    return attach(data, section, figures)


def _kinds(geometry: Geometry, true_of: np.ndarray) -> list[str]:
    """Return the class that holds all subjects of each row (n, V), else that it is of animals."""
    kinds = geometry.kinds.items()
    return [
        next((name for name, mask in kinds if not row[~mask].any()), "all animals")
        for row in true_of
    ]


def _placed(
    dim: str, places: np.ndarray, names: list[str], kinds: list[str]
) -> xr.Dataset:
    axes = {
        f"{dim}_{i}": (
            dim,
            places[:, i - 1],
            {"long_name": f"component {i}", "units": "1"},
        )
        for i in range(1, places.shape[1] + 1)
    }
    return xr.Dataset(
        {**axes, f"{dim}_name": (dim, names), f"{dim}_kind": (dim, kinds)}
    )


def _components(
    vectors: np.ndarray, k: int, points: np.ndarray | None = None
) -> np.ndarray:
    """Return rows of `points` in the first k principal components of `vectors`."""
    mean = vectors.mean(0)
    axes = np.linalg.svd(vectors - mean, full_matrices=False)[2][:k]
    return np.asarray(((vectors if points is None else points) - mean) @ axes.T)


def contrast(vectors: np.ndarray, classes: np.ndarray) -> float:
    """Return the mean inner product of pairs of one class minus that of pairs of two.

    Examples
    --------
    >>> contrast(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]), np.array([0, 0, 1, 1]))
    1.0
    """
    pairs = np.triu_indices(len(vectors), 1)
    products = (vectors @ vectors.T)[pairs]
    same = (classes[:, None] == classes)[pairs]
    return float(products[same].mean() - products[~same].mean())


def _norms(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=1, keepdims=True)
