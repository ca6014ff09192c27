"""Concepts followed from checkpoint to checkpoint, beside what refitting alone loses."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny.words.voice import OF_STEPS

STEPS = (0, 1, 2, 4, 8, 16)
PATH = "model.layers.1.mlp"


def reading(W, steps, reference):
    dims = ("step", "feature", "concept")
    data = xr.Dataset({"dictionary": (dims, W)}, coords={"step": list(steps)})
    return type("Reading", (), {"data": data, "reference_step": reference})


def lives():
    """Orthogonal concepts: 0 stays, 1 turns slowly, 2 is born at step 20, 3 is always new."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 20)))[0]
    W = np.empty((5, 200, 4))
    for t in range(5):
        angle = t * np.pi / 8
        turning = np.cos(angle) * Q[:, 1] + np.sin(angle) * Q[:, 2]
        W[t] = np.stack(
            [Q[:, 0], turning, Q[:, 3 if t > 1 else 4], Q[:, 10 + t]], axis=1
        )
    order = [[0, 1, 2, 3], [3, 1, 0, 2], [1, 0, 3, 2], [2, 3, 1, 0], [0, 1, 2, 3]]
    signs = np.random.default_rng(1).choice([-1, 1], size=(5, 4))
    return np.stack([W[t][:, order[t]] * signs[t] for t in range(5)])


def observed(W, steps, reference, **options):
    tracks = og.observables.ConceptTracks("of", **options)
    return tracks.observe(reading(W, steps, reference), None)


def test_planted_lives_are_followed_whatever_their_order_and_sign():
    found = observed(lives(), (0, 10, 20, 30, 40), 40)
    assert found.line_concept.values.tolist() == [0, 1, 2, 3]
    alive = np.isfinite(found.similarity.values)
    assert alive.sum(axis=1).tolist() == [5, 5, 3, 1]
    assert found.followed.values.tolist() == [0.5, 0.5, 0.75, 0.75, 1.0]
    np.testing.assert_allclose(found.similarity[0], 1)
    # the turning one stays the same track from step to step, and ends up orthogonal to its start
    expected = np.cos(np.pi / 8 * (4 - np.arange(5)))
    np.testing.assert_allclose(found.similarity[1], expected, atol=1e-7)
    assert np.isnan(found.continued[0])
    assert found.continued.values[1:].tolist() == [0.75, 0.5, 0.75, 0.75]
    assert found.births.values[1:].tolist() == [1, 2, 1, 1]
    assert found.deaths.values[1:].tolist() == [1, 2, 1, 1]


def test_concepts_of_a_reference_in_the_middle_are_followed_both_ways():
    found = observed(lives(), (0, 10, 20, 30, 40), 20)
    assert np.isfinite(found.similarity.values).sum(axis=1).tolist() == [5, 5, 3, 1]
    assert found.followed.values.tolist() == [0.5, 0.5, 1.0, 0.75, 0.75]


def test_a_split_and_a_merge_are_told_from_birth_and_death():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 9)))[0]
    one, twin = Q[:, 0], 0.8 * Q[:, 0] + 0.6 * Q[:, 1]
    before = np.stack([one, Q[:, 2], Q[:, 3]], axis=1)
    after = np.stack([one, twin, Q[:, 3]], axis=1)
    found = observed(np.stack([before, after, before]), (0, 1, 2), 2)
    assert found.splits.values[1:].tolist() == [1, 0]
    assert found.merges.values[1:].tolist() == [0, 1]
    assert found.births.values[1:].tolist() == [0, 1]
    assert found.deaths.values[1:].tolist() == [1, 0]
    assert found.parent.values[1].tolist() == [-1, 0, -1]
    assert found.heir.values[1].tolist() == [-1, 0, -1]


def test_unrelated_dictionaries_are_followed_as_often_as_chance_says():
    W = np.random.default_rng(0).normal(size=(30, 64, 40))
    found = observed(W, range(30), 29, level=0.05)
    assert 0.02 < float(found.continued.mean()) < 0.08
    assert float(found.followed[0]) == 0


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracks") / "s"
    chosen = [
        og.observables.Concepts("ica", n_concepts=3, layers=LAYERS, max_tokens=120),
        og.observables.ConceptTracks("concepts-ica"),
    ]
    trajectory = og.Trajectory.from_models(developing(STEPS))
    tree = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=3).run(
        folder
    )
    assert tree.attrs["problems"] == "[]"
    og.open_study(folder).report(folder / "page.html")
    return tree


def test_a_study_stores_what_the_function_gives_and_the_share_of_refits(tree):
    node, of = tree["concepts-ica-tracks"], tree["concepts-ica"].sel(layer=PATH)
    W = of.dictionary.transpose("step", "feature", "concept").values.astype(np.float64)
    expected = og.distances.tracks(W, steps=np.array(STEPS))
    found = node.sel(layer=PATH)
    np.testing.assert_array_equal(
        found.track.transpose("step", "concept"), expected.track
    )
    np.testing.assert_allclose(found.threshold, expected.threshold)
    noisy = json.loads(tree.attrs["settings"])["noise_steps"]
    known = np.isfinite(node.refit_continued).all("layer")
    assert node.step.values[known.values].tolist() == noisy
    at = {"step": noisy[-1]}
    pair = [
        of[n].sel(at).transpose("feature", "concept").values for n in ("dictionary",)
    ]
    pair += [of.refit_dictionary.sel(at).transpose("feature", "concept").values]
    again = og.distances.tracks(
        np.stack(pair), threshold=float(found.threshold.sel(at))
    )
    share = (again.start[1] == "continued").mean()
    assert float(found.refit_continued.sel(at)) == pytest.approx(float(share))


def test_the_page_draws_the_lines_and_compares_with_refits(tree):
    attrs = tree["concepts-ica-tracks"].attrs
    figures = {figure["id"]: figure for figure in json.loads(attrs["figures"])}
    assert set(figures) == {"lines", "followed", "continued", "events"}
    assert figures["followed"]["reference"] == "refit_followed"
    assert any("finds" in s for s in json.loads(attrs["statements"]))


def node_of(share, followed, steps, reference):
    """Two layers with the same tracks, and refits that keep this share of ten concepts."""
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(200, 20)))[0]
    fit = np.broadcast_to(W[:, :10], (len(steps), 200, 10)).copy()
    for t in range(len(steps)):
        lost = 10 - round(10 * followed[t])
        fit[t, :, :lost] = W[:, 10 : 10 + lost]
    refit = fit.copy()
    lost = 10 - round(10 * share)
    refit[:, :, :lost] = rng.normal(size=(len(steps), 200, lost))
    refit[1:-1] = np.nan  # refitted at the ends only
    dims = ("layer", "step", "feature", "concept")
    both = {"dictionary": fit, "refit_dictionary": refit}
    of = xr.Dataset(
        {name: (dims, np.stack([v, v])) for name, v in both.items()},
        coords={"layer": ["a", "b"], "step": list(steps), "feature": np.arange(200)},
    )
    tracks = og.observables.ConceptTracks("of")
    given = reading(fit, steps, reference)
    one = tracks.observe(given, None)
    data = xr.concat([one, one], dim=xr.Variable("layer", ["a", "b"]))
    return tracks.summarise(data.assign_attrs(reference_step=reference), {"of": of})


def test_refits_in_a_row_multiply_away_from_the_reference():
    data = node_of(0.8, [1.0] * 5, (0, 1, 2, 3, 4), 2).isel(layer=0)
    np.testing.assert_allclose(data.refit_followed, [0.64, 0.8, 1, 0.8, 0.64])
    assert data.refit_continued.values[[0, -1]].tolist() == [0.8, 0.8]
    assert np.isnan(data.refit_continued.values[1:-1]).all()
    words = json.loads(data.attrs["statements"])
    assert (
        "100 % of the reference step's" in OF_STEPS.fill(words[0])
        and "in 0 of 2 layers" in words[1]
    )


def test_what_became_another_concept_on_its_way_is_said_to_be_so():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 2)))[0]
    angles = np.linspace(0, np.pi / 2, 9)
    W = np.stack([(np.cos(a) * Q[:, 0] + np.sin(a) * Q[:, 1])[:, None] for a in angles])
    tracks = og.observables.ConceptTracks("of")
    one = tracks.observe(reading(W, range(9), 8), None).expand_dims(layer=["a"])
    data = tracks.summarise(one.assign_attrs(reference_step=8), {"of": xr.Dataset()})
    (words,) = json.loads(OF_STEPS.fill(data.attrs["statements"]))
    assert "100 % of the reference step's" in words and "they became is 0.00" in words


def test_layers_that_lose_more_than_refits_do_are_counted():
    data = node_of(0.9, [0.2, 0.2, 1.0, 1.0, 1.0], (0, 1, 2, 3, 4), 4)
    assert data.all_births.values.tolist() == [8, 8]
    assert any("in 2 of 2 layers" in s for s in json.loads(data.attrs["statements"]))


def test_without_refits_nothing_is_said_of_them(tree):
    of = tree["concepts-ica"].to_dataset().drop_vars("refit_dictionary")
    bare = tree["concepts-ica-tracks"].to_dataset()
    bare = bare.drop_vars([n for n in bare if "refit" in str(n)])
    data = og.observables.ConceptTracks("concepts-ica").summarise(
        bare, {"concepts-ica": of}
    )
    figures = {figure["id"]: figure for figure in json.loads(data.attrs["figures"])}
    assert figures["followed"]["reference"] is None
    assert len(json.loads(data.attrs["statements"])) == 1


def test_a_step_that_failed_is_skipped_and_one_step_is_refused():
    W = lives()
    found = observed(np.delete(W, 2, axis=0), (0, 10, 30, 40), 40)
    assert found.step.values.tolist() == [0, 10, 30, 40]
    with pytest.raises(ArgumentError, match="two finished steps"):
        observed(W[:1], (0,), 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"threshold": 1.5}, "threshold"), ({"level": -0.1}, "level")],
)
def test_options_out_of_range_are_refused_when_it_is_made(options, words):
    with pytest.raises(ArgumentError, match=words):
        og.observables.make("concept-tracks", of="concepts-ica", **options)
