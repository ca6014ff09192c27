"""All views of one basis in one tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import xarray as xr

from ontogeny import semantics
from ontogeny.errors import ArgumentError, check_type, check_whole
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.features.wordspace.support import Support

from .clouds import clusters_view, orthants_view, tree_view
from .maps import concepts_view, space_view
from .scores import coherence_view, lift_view


def semantics_page(
    basis: ConceptBasis,
    support: Support | None = None,
    *,
    dims: int = 5,
    heldout: Any = None,
    labels: Mapping[str, str] | None = None,
    n_draws: int = 50,
    title: str = "Semantics of next-token prediction",
    step: int = 0,
    random_state: int = 0,
) -> xr.DataTree:
    """Return all views of a basis as one tree for the report.

    Parameters
    ----------
    basis
        With names of words.
    support
        What it was made from, for the lift of contexts and words, and for what words show on hover.
    dims
        Concepts of the orthants; coherence is shown for one less to two more as well.
    heldout
        Text for the score that needs no labels.
    labels
        Class of words; :func:`ontogeny.semantics.word_classes` by default. The coherence of words
        of another language needs labels of one's own.
    n_draws
        Random partitions and rotations each.
    title
        Of the page.
    step
        The training step that the basis belongs to; 0 for a corpus.
    random_state
        Seed of the draws.

    Raises
    ------
    ArgumentError
        If the basis has fewer concepts than `dims` or no names of words.

    Examples
    --------
    >>> support = semantics.support_matrix(
    ...     "to go to see a cat to run a dog " * 3, lengths=(1, 2)
    ... )
    >>> page = semantics_page(
    ...     semantics.svd_concepts(support, 3), support, dims=2, n_draws=5
    ... )
    >>> [*page.children][:4]
    ['orthants', 'refinement', 'clusters', 'concepts']
    """
    check_type("basis", basis, ConceptBasis)
    check_type("labels", labels, Mapping, type(None))
    check_whole("step", step, 0)
    if basis.words is None:
        raise ArgumentError(
            "basis must know its words; give them to embedding_concepts."
        )
    nodes = {
        "orthants": orthants_view(semantics.orthants(basis, dims), support=support),
        "refinement": tree_view(semantics.refinement_tree(basis, dims)),
        **_clusters(basis, dims, random_state),
        "concepts": concepts_view(basis),
    }
    labels = semantics.word_classes(basis.words) if labels is None else labels
    if basis.k >= 3:
        nodes["embedding"] = space_view(basis, labels)
    counts: dict[str, Any] = {
        "n_permutations": n_draws,
        "n_rotations": n_draws,
        "random_state": random_state,
    }
    if support is not None:
        nodes["contexts-and-words"] = lift_view(
            semantics.signature_lift(support, basis, dims, **counts)
        )
    if len({labels[word] for word in basis.words if word in labels}) >= 2:
        near = (
            None
            if heldout is None
            else semantics.neighbour_vectors(heldout, basis.words)
        )
        counted = [p for p in range(dims - 1, dims + 3) if 1 <= p <= basis.k]
        nodes["coherence"] = coherence_view(
            {
                p: semantics.orthant_coherence(
                    basis, labels, p, neighbours=near, **counts
                )
                for p in counted
            }
        )
    tree = xr.DataTree.from_dict(nodes)
    tree.attrs = {
        "title": title,
        "steps": json.dumps([int(step)]),
        "nodes": json.dumps([*nodes]),
    }
    return tree


def _clusters(
    basis: ConceptBasis, dims: int, random_state: int
) -> dict[str, xr.Dataset]:
    """Return a node of as many clusters as orthants, fewer where fewer words differ."""
    k = min(2**dims, semantics.most_clusters(basis, dims, normalised=True))
    if k < 2:
        return {}
    options: dict[str, Any] = {
        "dims": dims,
        "normalised": True,
        "random_state": random_state,
    }
    return {"clusters": clusters_view(semantics.spectral_clusters(basis, k, **options))}
