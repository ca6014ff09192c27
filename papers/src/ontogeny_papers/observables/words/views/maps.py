"""Concepts as heatmaps, and words and contexts as points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError, check_flag, check_type, check_whole
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures
from ontogeny.figures import Curves, Heatmap, Scatter, Section, attach

from .words import SOURCE, labels_of

SHOWN = 40
CLASSES = 6


def concepts_view(basis: ConceptBasis, k: int = 8, shown: int = SHOWN) -> xr.Dataset:
    """Return the analyzer vectors of the most typical words and contexts, and the spectrum.

    Parameters
    ----------
    basis
        Concepts.
    k
        Concepts drawn.
    shown
        Words and contexts drawn: those with the largest entries in these concepts.

    Notes
    -----
    Figs 1 and 8 of the paper.

    Examples
    --------
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(np.eye(3)[:, :2], np.ones(2), None, ("a", "b", "c"))
    >>> sorted(concepts_view(basis).data_vars)
    ['U', 'sigma']
    """
    check_type("basis", basis, ConceptBasis)
    check_whole("shown", shown)
    k = min(check_whole("k", k), basis.k)
    data = xr.Dataset(
        {
            "sigma": (
                "number",
                basis.sigma,
                {"long_name": "singular value", "symbol": "σₖ"},
            )
        },
        coords={"number": np.arange(1, basis.k + 1), "concept": np.arange(1, k + 1)},
    )
    figures: list[Any] = [
        Curves(
            "spectrum",
            "Singular values",
            value="sigma",
            x="number",
            series=None,
            caption="How much of the support each concept holds.",
        )
    ]
    sides = [
        ("U", "word", basis.U, basis.words),
        ("V", "context", basis.V, basis.contexts),
    ]
    for name, kind, vectors, names in sides:
        if vectors is None:
            continue
        picked = _typical(vectors[:, :k], shown)
        labels = labels_of(names, picked)
        data = data.assign_coords({kind: labels})
        title = {"long_name": f"{kind} analyzer vectors", "units": "1"}
        data[name] = ((kind, "concept"), vectors[picked, :k], title)
        figures.append(
            Heatmap(
                f"{kind}-vectors",
                f"{kind.capitalize()} analyzer vectors",
                value=name,
                x="concept",
                y=kind,
                caption=f"The {len(picked)} most typical ones, grouped "
                "by the signs of their entries.",
            )
        )
    section = Section(
        "Concepts",
        f"Singular vectors of the {basis.source or 'centred support matrix'}: which words and "
        "contexts go together.",
        symbol="W = U Σ¹ᐟ² Rᵀ"
        if basis.source.startswith("word")
        else "S̃ = (I − 11ᵀ/V) S = U Σ Vᵀ",
        care="A single concept rarely means anything by itself; the first is mostly frequency.",
        source=f"{SOURCE}, Eq. (3)",
    )
    return attach(data, section, figures)


def space_view(
    basis: ConceptBasis,
    labels: Mapping[str, str] | None = None,
    shown: int = 300,
    *,
    normalised: bool = True,
) -> xr.Dataset:
    """Return words, and contexts if there are any, in the space of the first three concepts.

    Parameters
    ----------
    basis
        With at least three concepts.
    labels
        Class of words; the six most frequent ones have a colour each. Without, words and contexts
        have.
    shown
        Words and contexts drawn, the most typical ones.
    normalised
        Whether rows are scaled to norm 1, so that frequent words do not outshine the others.

    Raises
    ------
    ArgumentError
        If the basis has fewer than three concepts.

    Notes
    -----
    Fig. 2A of the paper: U Sigma^1/2 and V Sigma^1/2, which are the embeddings up to rotation.

    Examples
    --------
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(np.eye(4)[:, :3], np.ones(3), None, tuple("abcd"))
    >>> space_view(basis).sizes["point"]
    4
    """
    check_type("basis", basis, ConceptBasis)
    check_type("labels", labels, Mapping, type(None))
    check_whole("shown", shown)
    check_flag("normalised", normalised)
    if basis.k < 3:
        raise ArgumentError(
            f"basis must have at least 3 concepts for a view; it has {basis.k}."
        )
    roots = np.sqrt(basis.sigma[:3])
    places = []
    kinds = []
    names = []
    for kind, vectors, texts_of in (
        ("word", basis.U, basis.words),
        ("context", basis.V, basis.contexts),
    ):
        if vectors is None:
            continue
        picked = _typical(vectors[:, :3], shown)
        rows = vectors[picked, :3] * roots
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        places.append(rows / np.where(norms > 0, norms, 1.0) if normalised else rows)
        texts = labels_of(texts_of, picked)
        names += [text if kind == "word" else f"{text} …" for text in texts]
        raw = texts if texts_of is None else [texts_of[i] for i in picked]
        kinds += _kinds(raw, labels) if kind == "word" else [kind] * len(raw)
    xyz = np.concatenate(places)
    data = xr.Dataset(
        {
            f"concept_{i + 1}": ("point", xyz[:, i], {"long_name": f"concept {i + 1}"})
            for i in range(3)
        }
        | {"name": ("point", names), "kind": ("point", kinds)}
    )
    figure = Scatter(
        "space",
        "Words and contexts in three concepts",
        x="concept_1",
        y="concept_2",
        z="concept_3",
        points="point",
        colour="kind",
        label="name",
        caption="Words and the contexts before them in the embedding that the concepts predict.",
    )
    section = Section(
        "Embedding",
        "Words and contexts where the theory puts their embeddings.",
        symbol="U Σ¹ᐟ², V Σ¹ᐟ²",
        source=f"{SOURCE}, Fig. 2",
    )
    return attach(data, section, [figure])


def _typical(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the rows with the largest entries, those of one signature side by side."""
    sizes = np.abs(vectors).sum(1)
    picked = np.argsort(-sizes, kind="stable")[:count]
    codes = signatures(vectors[picked, : min(vectors.shape[1], 3)])
    return picked[np.lexsort((-sizes[picked], codes))]


def _kinds(words: Sequence[Any], labels: Mapping[str, str] | None) -> list[str]:
    """Return the class of each word if it is one of the most frequent classes, else "word"."""
    classes = [(labels or {}).get(word, "word") for word in words]
    frequent = {
        name
        for name, _ in Counter(c for c in classes if c != "word").most_common(CLASSES)
    }
    return [name if name in frequent else "word" for name in classes]
