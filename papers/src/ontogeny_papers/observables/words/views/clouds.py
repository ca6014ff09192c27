"""Word clouds of orthants, and of their refinement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.errors import ArgumentError, check_iterable, check_type, check_whole
from ontogeny.features.wordspace.support import Support
from ontogeny.figures import Section, Words, attach
from ontogeny.figures.words import show_token

from ....semantics.orthant import Orthant
from ....semantics.refinement import RefinementTree
from .words import SOURCE

TOP = 40
NAMED_WORDS = 3  # words of an orthant in its heading
PARTNERS = 3  # contexts of a word, and words of a context, that are named on hover
_AXES = (
    "Random rotations inside the same concepts give orthants that are about as coherent: read an "
    "orthant as a group of words, not its signs as properties."
)


def orthants_view(
    groups: Sequence[Orthant],
    top: int = TOP,
    *,
    support: Support | None = None,
    title: str = "Orthants",
) -> xr.Dataset:
    """Return clouds of the words of each orthant, and of its contexts, sized by typicality.

    Parameters
    ----------
    groups
        Of :func:`ontogeny.semantics.orthants`; empty sides are left out.
    top
        Words and contexts kept for each.
    support
        What the concepts were made from: words then show on hover the contexts that they follow
        most often, and contexts the words that follow them.
    title
        Heading of the section, where a page holds several.

    Raises
    ------
    ArgumentError
        If no orthant holds a word, or `support` is not what the orthants were made from.

    Notes
    -----
    Figs 4, 6 and 22 to 25 of the paper.

    Examples
    --------
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(np.eye(3)[:, :2], np.ones(2), None, ("a", "b", "c"))
    >>> dict(orthants_view(semantics.orthants(basis, 2)).sizes)
    {'orthant': 1, 'rank': 3}
    """
    groups = list(check_iterable("groups", groups, "orthants"))
    for group in groups:
        check_type("each of groups", group, Orthant)
    check_whole("top", top)
    check_type("support", support, Support, type(None))
    check_type("title", title, str)
    orthants = [o for o in groups if o.words]
    if not orthants:
        raise ArgumentError("groups must hold an orthant with words; none has any.")
    names = [o.name for o in orthants]
    data = xr.Dataset(coords={"orthant": names})
    data = data.assign(_cloud("word", [(o.words, o.typicality) for o in orthants], top))
    sizes = [f"{_called(o)}, {len(o.contexts)} contexts" for o in orthants]
    data["heading"] = ("orthant", sizes)
    if support is not None:
        data = data.assign(_contexts(orthants, support, data.sizes["rank"], top))
    has_support = support is not None
    figures = [
        Words(
            "orthant-words",
            "Words of each orthant",
            value="typicality",
            words="word",
            groups="orthant",
            heading="heading",
            context="seen_after" if has_support else None,
            caption="The most typical words; size is typicality, the sum of |uₖ| over the "
            "concepts. It ranks frequent words first.",
        )
    ]
    if any(o.contexts for o in orthants):
        sides = [
            ([" ".join(c) for c in o.contexts], o.context_typicality) for o in orthants
        ]
        data = data.assign(_cloud("context", sides, top))
        figures.append(
            Words(
                "orthant-contexts",
                "Contexts of the same signs",
                value="context_typicality",
                words="context",
                groups="orthant",
                rank="context_rank",
                heading="heading",
                context="seen_before" if has_support else None,
                caption="The contexts whose signs are those of the words above: what comes before "
                "them.",
            )
        )
    section = Section(
        title,
        f"Words and contexts by the signs of their entries in {len(orthants[0].dims)} concepts.",
        symbol="sign(u₁[z]), …, sign(uₚ[z])",
        care=_AXES,
        source=f"{SOURCE}, Def. 1",
    )
    return attach(data, section, figures)


def _contexts(
    groups: Sequence[Orthant], support: Support, words: int, top: int
) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Return for every shown word what it follows most often, for every context what follows it."""
    rows = support.counts.tocsr()
    columns = support.counts.tocsc()
    index = max((o.word_index.max(initial=-1) for o in groups), default=-1)
    other = max((o.context_index.max(initial=-1) for o in groups), default=-1)
    if index >= rows.shape[0] or other >= rows.shape[1]:
        raise ArgumentError(
            f"support has {rows.shape[0]} words and {rows.shape[1]} contexts; the orthants know "
            f"word {index} and context {other}."
        )
    after = [
        [
            _most("after", rows, z, support.contexts)
            for z in o.word_index[:words].tolist()
        ]
        for o in groups
    ]
    before = [
        [
            _most("before", columns, c, support.words)
            for c in o.context_index[:top].tolist()
        ]
        for o in groups
    ]
    variables = {"seen_after": (("orthant", "rank"), _filled(after, words, ""))}
    if any(before):
        contexts = max(map(len, before))
        variables["seen_before"] = (
            ("orthant", "context_rank"),
            _filled(before, contexts, ""),
        )
    return variables


def _most(when: str, counts: Any, line: int, names: Sequence[Any]) -> str:
    """Return the partners of one row or column with the largest counts."""
    part = slice(counts.indptr[line], counts.indptr[line + 1])
    partners = counts.indices[part]
    seen = counts.data[part]
    best = np.lexsort((partners, -seen))[:PARTNERS]
    words = (
        f"“{_readable(names[partners[i]])}” ({int(seen[i]):,})" for i in best.tolist()
    )
    return f"{when} {', '.join(words)}" if len(best) else ""


def _readable(name: Any) -> str:
    parts = (name,) if isinstance(name, str) else name
    return " ".join(show_token(part) for part in parts)


def clusters_view(
    clusters: Sequence[semantics.Cluster], top: int = TOP, *, title: str = "Clusters"
) -> xr.Dataset:
    """Return clouds of the words of each k-means cluster, sized by how near they are to its centre.

    Parameters
    ----------
    clusters
        Of :func:`ontogeny.semantics.spectral_clusters`.
    top
        Words kept for each.
    title
        Heading of the section, where a page holds several.

    Raises
    ------
    ArgumentError
        If there are none.

    Notes
    -----
    Figs 5, 20 and 21 of the paper.

    Examples
    --------
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(np.eye(3)[:, :2], np.ones(2), None, ("a", "b", "c"))
    >>> dict(clusters_view(semantics.spectral_clusters(basis, 2)).sizes)
    {'cluster': 2, 'rank': 2}
    """
    clusters = list(check_iterable("clusters", clusters, "clusters"))
    for cluster in clusters:
        check_type("each of clusters", cluster, semantics.Cluster)
    check_whole("top", top)
    check_type("title", title, str)
    if not clusters:
        raise ArgumentError("clusters must hold at least one Cluster.")
    data = xr.Dataset(coords={"cluster": np.arange(1, len(clusters) + 1)})
    clouds = [(c.words, 1.0 / (1.0 + c.distance)) for c in clusters]
    texts, weights = _table(clouds, top)
    words = {"long_name": "1 / (1 + distance from the centre)", "units": "1"}
    data["word"] = (("cluster", "rank"), texts)
    data["nearness"] = (("cluster", "rank"), weights, words)
    data["heading"] = (
        "cluster",
        [
            f"{', '.join(map(str, c.words[:NAMED_WORDS]))} · {len(c.words)} words"
            for c in clusters
        ],
    )
    figure = Words(
        "cluster-words",
        "Words of each cluster",
        value="nearness",
        words="word",
        groups="cluster",
        heading="heading",
        caption="Largest clusters first. The words nearest to the centre are the largest.",
    )
    section = Section(
        title,
        f"k-means with {len(clusters)} clusters on the words' vectors in "
        f"{len(clusters[0].centre)} concepts.",
        care="k-means finds groups in anything, and needs no axes. Whether groups are coherent is "
        "a matter of scores beside random groups of the same sizes.",
        source=f"{SOURCE}, sec. 5.2, Figs 5, 20 and 21",
    )
    return attach(data, section, [figure])


def tree_view(tree: RefinementTree, top: int = 15) -> xr.Dataset:
    """Return the orthants of one, two, ... concepts as a tree of word clouds.

    Parameters
    ----------
    tree
        Of :func:`ontogeny.semantics.refinement_tree`.
    top
        Words kept for each orthant.

    Notes
    -----
    Figs 2 and 11 of the paper.

    Examples
    --------
    >>> from ontogeny.features.wordspace.concepts import ConceptBasis
    >>> basis = ConceptBasis(np.array([[0.9, 0.1], [-0.4, 0.2]]), np.ones(2), None)
    >>> tree_view(semantics.refinement_tree(basis, 2)).parent.values.tolist()
    ['', '', '+', '-']
    """
    check_type("tree", tree, RefinementTree)
    check_whole("top", top)
    orthants = [o for level in tree.levels for o in level if o.words]
    data = xr.Dataset(coords={"orthant": [o.name for o in orthants]})
    data = data.assign(_cloud("word", [(o.words, o.typicality) for o in orthants], top))
    data["heading"] = ("orthant", [_called(o) for o in orthants])
    data["parent"] = ("orthant", [o.name[:-1] for o in orthants])
    figure = Words(
        "refinement",
        "From one concept to several",
        value="typicality",
        words="word",
        groups="orthant",
        heading="heading",
        parent="parent",
        caption="Every further concept splits an orthant into at most two.",
    )
    section = Section(
        "Refinement",
        "Few concepts part words broadly, more concepts finely.",
        care=_AXES,
        source=f"{SOURCE}, sec. 4.3 and Fig. 11",
    )
    return attach(data, section, [figure])


def _called(orthant: Orthant) -> str:
    """Return what an orthant is called: its most typical words, its signs, how many words."""
    order = np.argsort(-np.asarray(orthant.typicality), kind="stable")[:NAMED_WORDS]
    label = ", ".join(orthant.words[i] for i in order)
    return f"{label} · signs {' '.join(orthant.name)} · {len(orthant.words)} words"


def _cloud(
    kind: str, groups: Sequence[tuple[Sequence[Any], np.ndarray]], top: int
) -> dict[str, tuple[tuple[str, str], np.ndarray]]:
    """Return texts and weights of groups over (orthant, rank); empty and NaN where one ends."""
    rank, weight = (
        ("rank", "typicality")
        if kind == "word"
        else (f"{kind}_rank", f"{kind}_typicality")
    )
    texts, weights = _table(groups, top)
    return {kind: (("orthant", rank), texts), weight: (("orthant", rank), weights)}


def _table(
    groups: Sequence[tuple[Sequence[Any], np.ndarray]], top: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return texts and weights (group, rank); empty and NaN where a group ends."""
    longest = max(1, min(top, max(len(words) for words, _ in groups)))
    texts = [[str(word) for word in words[:longest]] for words, _ in groups]
    weights = [weight[:longest] for _, weight in groups]
    return _filled(texts, longest, ""), _filled(weights, longest, np.nan)


def _filled(rows: Sequence[Any], width: int, fill: Any) -> np.ndarray:
    """Return rows of different lengths as one table, with `fill` behind those that end early."""
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows])
