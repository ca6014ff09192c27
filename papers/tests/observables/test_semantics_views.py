"""The views of a basis: what they hold, and that the report draws them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from ontogeny import report, semantics
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny_papers.observables.words.views.clouds import (
    clusters_view,
    orthants_view,
    tree_view,
)
from ontogeny_papers.observables.words.views.maps import concepts_view, space_view
from ontogeny_papers.observables.words.views.page import semantics_page
from ontogeny_papers.observables.words.views.scores import coherence_view, lift_view

HOSTILE = "</script><img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    names = [
        "in",
        "may",
        "june",
        "july",
        "the",
        "cat",
        "dog",
        "ran",
        "sat",
        HOSTILE,
        "世界",
        "مرحبا",
    ]
    text = []
    for _ in range(600):
        text += ["in", rng.choice(names[1:4]), "the", rng.choice(names[5:7])]
        text += [rng.choice(names[7:9]), rng.choice(names[9:])]
    support = semantics.support_matrix([str(w) for w in text], 12, 200, lengths=(1, 3))
    return support, semantics.svd_concepts(support, 6)


def test_clusters_are_drawn_as_they_are_found(corpus, tmp_path):
    clusters = semantics.spectral_clusters(corpus[1], 4, dims=5, normalised=True)
    data = clusters_view(clusters, top=3)
    for row, cluster in zip(data.word.values, clusters, strict=True):
        assert [word for word in row if word] == list(cluster.words[:3])
    nearness = data.nearness.values
    assert (np.diff(nearness, axis=1) <= 0)[~np.isnan(nearness[:, 1:])].all()
    tree = semantics_page(*reversed(corpus), dims=3, n_draws=4)
    assert 2 <= tree["clusters"].sizes["cluster"] <= 8
    tree = xr.DataTree.from_dict({"clusters": tree["clusters"].to_dataset()})
    tree.attrs = {"title": "Words", "steps": "[0]", "nodes": '["clusters"]'}
    page = report.write(tree, tmp_path / "page.html").read_text()
    assert "Words of each cluster" in page and HOSTILE not in page
    with pytest.raises(ArgumentError, match="at least one Cluster"):
        clusters_view([])


def test_a_page_of_few_different_words_has_fewer_clusters():
    U = np.array([[1.0, 0.2], [1.0, 0.2], [-0.5, 0.3], [-1.0, -0.1]])
    basis = ConceptBasis(U, np.ones(2), None, ("a", "b", "c", "d"))
    tree = semantics_page(basis, dims=2, n_draws=4)
    assert tree["clusters"].sizes["cluster"] == 3
    same = ConceptBasis(np.ones((3, 2)), np.ones(2), None, ("a", "b", "c"))
    assert "clusters" not in semantics_page(same, dims=2, n_draws=4).children


def test_words_tell_what_they_follow_and_contexts_what_follows_them(corpus):
    support, basis = corpus
    groups = semantics.orthants(basis, 3)
    data = orthants_view(groups, top=4, support=support)
    counts = support.counts.toarray()
    checked = 0
    for orthant in [o for o in groups if o.words]:
        row = data.sel(orthant=orthant.name)
        for word, told in zip(row.word.values, row.seen_after.values, strict=True):
            if word:
                seen = counts[support.words.index(word)]
                assert (
                    told.startswith("after “")
                    and f"({int(seen.max()):,})" in told.split("”")[1]
                )
                checked += 1
        for j, told in zip(
            orthant.context_index[:4], row.seen_before.values, strict=False
        ):
            best = support.words[int(counts[:, j].argmax())]
            assert told.startswith(f"before “{best}” ({int(counts[:, j].max())})"), told
    assert checked > 5
    figures = json.loads(data.attrs["figures"])
    assert [f["context"] for f in figures] == ["seen_after", "seen_before"]
    small = semantics.support_matrix("a b a c a b b", lengths=1)
    with pytest.raises(ArgumentError, match="support has 3 words"):
        orthants_view(groups, support=small)


def test_clouds_hold_the_words_of_each_orthant_in_order(corpus):
    groups = semantics.orthants(corpus[1], 3)
    data = orthants_view(groups, top=4)
    for orthant in groups:
        if not orthant.words:
            assert orthant.name not in data.orthant.values
            continue
        row = data.sel(orthant=orthant.name)
        shown = [word for word in row.word.values if word]
        assert shown == list(orthant.words[:4])
        weights = row.typicality.values[: len(shown)]
        np.testing.assert_allclose(weights, orthant.typicality[:4])
        assert np.isnan(row.typicality.values[len(shown) :]).all()
        contexts = [text for text in row.context.values if text]
        assert contexts == [" ".join(c) for c in orthant.contexts[:4]]


def test_every_orthant_of_the_tree_names_its_parent(corpus):
    data = tree_view(semantics.refinement_tree(corpus[1], 4))
    names = set(data.orthant.values)
    for name, parent in zip(data.orthant.values, data.parent.values, strict=True):
        assert parent == name[:-1]
        assert parent == "" or parent in names


def test_heatmaps_show_the_largest_entries(corpus):
    basis = corpus[1]
    data = concepts_view(basis, k=3, shown=5)
    largest = np.sort(np.abs(basis.U[:, :3]).sum(1))[-5:]
    np.testing.assert_allclose(np.sort(np.abs(data.U.values).sum(1)), largest)
    np.testing.assert_allclose(data.sigma.values, basis.sigma)


def test_tokens_that_read_the_same_stay_apart():
    basis = ConceptBasis(np.eye(3), np.ones(3), None, ("Ġa", "▁a", " a"))
    data = concepts_view(basis)
    assert len(set(data.word.values)) == 3


def test_points_are_the_embeddings_that_the_concepts_predict(corpus):
    basis = corpus[1]
    labels = semantics.word_classes(basis.words)
    data = space_view(basis, labels, normalised=False)
    june = int(np.flatnonzero(data.name.values == "june")[0])
    row = basis.U[basis.words.index("june"), :3] * np.sqrt(basis.sigma[:3])
    np.testing.assert_allclose(
        [data[f"concept_{i}"].values[june] for i in (1, 2, 3)], row
    )
    assert data.kind.values[june] == "month"
    unit = space_view(basis)
    norms = sum(unit[f"concept_{i}"].values ** 2 for i in (1, 2, 3))
    np.testing.assert_allclose(norms, 1)


def test_bands_hold_the_middle_of_the_draws(corpus):
    support, basis = corpus
    labels = {
        "may": "month",
        "june": "month",
        "cat": "animal",
        "dog": "animal",
        "ran": "verb",
    }
    score = semantics.orthant_coherence(
        basis, labels, 3, n_permutations=40, n_rotations=20
    )
    data = coherence_view({3: score})
    assert data.ami.item() == score.ami.value
    low, high = np.quantile(score.ami.rotated, [0.025, 0.975])
    assert data.ami_rotated_low.item() == pytest.approx(low)
    assert data.ami_rotated_high.item() == pytest.approx(high)
    assert f"{score.ami.value:.2f}" in json.loads(data.attrs["statements"])[0]
    found = semantics.signature_lift(support, basis, 3, n_permutations=5, n_rotations=0)
    drawn = lift_view(found)
    np.testing.assert_allclose(drawn.lift.values, found.by_distance)
    assert "rotated_low" not in drawn


def test_the_report_draws_the_page_and_nothing_in_it_runs(corpus, tmp_path):
    support, basis = corpus
    tree = semantics_page(
        basis, support, dims=3, n_draws=5, heldout=["in", "may", "in", "june"]
    )
    page = report.write(tree, tmp_path / "page.html").read_text("utf-8")
    assert "<img/src=x" not in page
    assert json.dumps("世界")[1:-1] in page
    assert "Orthants of 3 concepts agree" in page


def test_text_of_another_language_needs_no_word_classes(tmp_path):
    rng = np.random.default_rng(0)
    nouns, verbs = ["кошка", "собака", "птица"], ["спит", "ест", "поёт"]
    text = " ".join(f"{rng.choice(nouns)} {rng.choice(verbs)} ।" for _ in range(300))
    support = semantics.support_matrix(text, lengths=(1, 2))
    basis = semantics.svd_concepts(support)
    tree = semantics_page(basis, support, dims=2, n_draws=3)
    assert {"кошка", "спит"} <= set(tree["orthants"].word.values.ravel())
    page = report.write(tree, tmp_path / "page.html").read_text("utf-8")
    assert json.dumps("кошка")[1:-1] in page
    by_hand = dict.fromkeys(nouns, "noun") | dict.fromkeys(verbs, "verb")
    scored = semantics_page(basis, support, dims=2, n_draws=3, labels=by_hand)
    assert scored["coherence"].ami.values.max() > 0.9


def test_the_figures_are_drawn_for_papers(corpus, tmp_path):
    support, basis = corpus
    tree = semantics_page(basis, support, dims=3, n_draws=3)
    written = report.write_figures(tree, tmp_path, formats=["svg"])
    names = {path.name for path in written}
    for part in ("orthant-words", "refinement", "word-vectors", "space", "lift", "ami"):
        assert any(part in name for name in names), (part, names)


def test_a_page_can_be_stored_and_read_again(corpus, tmp_path):
    tree = semantics_page(corpus[1], dims=2, n_draws=3)
    tree.to_zarr(tmp_path / "page.zarr", zarr_format=2)
    again = xr.open_datatree(tmp_path / "page.zarr", engine="zarr")
    assert set(again.children) == set(tree.children)
    assert (
        again["orthants"].word.values.tolist() == tree["orthants"].word.values.tolist()
    )


def test_what_cannot_be_drawn_is_refused():
    basis = ConceptBasis(np.eye(4)[:, :2], np.ones(2), None)
    with pytest.raises(ArgumentError, match="must know its words"):
        semantics_page(basis)
    with pytest.raises(ArgumentError, match="at least 3 concepts"):
        space_view(basis)
    with pytest.raises(ArgumentError, match="orthant with words"):
        orthants_view([])
    with pytest.raises(ArgumentError, match="at least one Coherence"):
        coherence_view({})
