"""Joint concepts in a study: planted lives inside a model, states that stay, what the page says."""

import gc
import json
import os
import weakref

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.said import said_of
from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint import readout
from ontogeny.concepts.joint.readout import Moments
from ontogeny.concepts.joint.snapshots import fixed_half
from ontogeny.concepts.joint.whitening import Gathered
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts import joint
from ontogeny.features.concepts.joint_gathered import standard
from ontogeny.features.concepts.joint_lives import SET_ASIDE
from planted_lives import planted_lives
from planted_runs import PlantedModel

TEXT = 25


def planted(seed=3):
    return planted_lives(
        n=1500,
        m=24,
        steady=8,
        born=6,
        dying=3,
        turning=3,
        born_turning=0,
        tokens_per_text=TEXT,
        random_state=seed,
    )


def trajectory(activations):
    """A model with two layers: the planted run, and copies of its end with fresh noise."""
    rng = np.random.default_rng(0)
    last = activations[-1]
    models = {}
    for t, values in enumerate(activations):
        noise = 0.1 * last.std() * rng.standard_normal(last.shape)
        both = np.stack([values, last + noise]).astype(np.float32)
        models[10 * t] = PlantedModel(torch.from_numpy(both))
    return og.Trajectory.from_models(models)


def inputs(n=1500):
    ids = np.arange(n).reshape(-1, TEXT).tolist()
    return og.Inputs.from_tokens(ids, vocab_size=n)


class Values(dict):
    """What a reading holds of a run whose texts have as many tokens each."""

    def units(self, need):
        return np.arange(1500) // TEXT


def observable(**options):
    given = {
        "n_concepts": 24,
        "n_active": 1,
        "fit_steps": 10,
        "readable": 0.4,
        "max_tokens": None,
    }
    return og.observables.JointConcepts("layers.*", **{**given, **options})


@pytest.fixture(scope="module")
def run():
    return planted()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("joint") / "s"
    study = og.Study(
        trajectory(run.activations), inputs(), [observable()], device="cpu"
    )
    tree = study.run(folder)
    assert tree.attrs["problems"] == "[]"
    return folder


@pytest.fixture(scope="module")
def node(folder):
    return og.open_study(folder).result["joint-concepts"].to_dataset()


def test_planted_births_are_in_the_result(run, node):
    born = node.concept_born.sel(layer="layers.0").values
    said = np.sort(born[np.isfinite(born)]) / 10
    planted = np.sort(run.born[run.born >= 0])
    assert len(said) >= 5
    assert set(said) <= set(planted)
    after = node.concept_born_after.sel(layer="layers.0").values
    before = node.concept_born_before.sel(layer="layers.0").values
    known = np.isfinite(born)
    assert (after[known] < born[known]).all() and (born[known] <= before[known]).all()


def test_nothing_is_born_in_a_layer_that_only_jitters(node):
    one = node.sel(layer="layers.1")
    assert np.isnan(one.concept_born.values).all() and int(one.n_born) == 0
    assert int(one.n_steady) == int(one.n_concepts) > 0


def test_the_study_gives_the_numbers_of_the_estimator(run, node):
    found = JointDictionary(24, n_active=1, readable=0.4, reseeds=0).fit(
        run.activations, groups=run.texts
    )
    kinds = node.concept_kind.sel(layer="layers.0").values
    for kind in ("born", "from the start"):
        assert abs((kinds == kind).sum() - (found.lives_.kind == kind).sum()) <= 2
    strongest = np.sort(node.strength.sel(layer="layers.0").max("step").values)[-5:]
    np.testing.assert_allclose(
        strongest, np.sort(found.strength_.max(axis=0))[-5:], rtol=0.1
    )


def test_the_mean_life_is_that_of_the_concepts_alone(node):
    share = node.strength / node.strength.max("step")
    wanted = share.where(~node.concept_kind.isin(SET_ASIDE)).mean("concept")
    np.testing.assert_allclose(
        node.mean_life.transpose("step", "layer"),
        wanted.transpose("step", "layer"),
        rtol=1e-6,
    )


def test_what_the_page_draws_and_says(folder, node):
    figures = {figure["id"]: figure for figure in json.loads(node.attrs["figures"])}
    assert {"concepts-there", "lives", "newborn"} <= set(figures)
    words = said_of(observable(), node)
    about = {
        path: " ".join(w for w in words if f" of {path} " in w)
        for path in node.layer.values
    }
    assert "were born at step" in about["layers.0"]
    assert "are concepts, found in both halves" in about["layers.1"]
    assert "born" not in about["layers.1"] and "below" not in about["layers.1"]
    assert [str(row) for row in node.row.values] == [
        "layers.0 · readable latents",
        "layers.1 · readable latents",
    ]
    changed = dict(zip(node.row_layer.values, node.changed.values, strict=True))
    assert not changed["layers.1"]
    life = node.life.sel(layer="layers.0").values
    assert np.nanmax(life) == 1 and np.nanmin(life) >= 0
    og.open_study(folder).report(folder / "page.html")


def test_named_steps_never_ask_for_the_steps_of_the_study(run):
    class Run:
        reference_step = 90
        is_control = False
        read = ()

        @property
        def steps(self):
            raise AssertionError("the state would depend on all steps")

        def reading(self, step):
            self.read = (*self.read, step)
            values = torch.from_numpy(run.activations[step // 10])
            return Values({own.activations: {"layers.0": values}})

    own, asked = observable(fit_steps=(90, 0, 30), examples=0), Run()
    state = own.prepare(asked)
    assert asked.read == (0, 30, 90)
    assert state.codes.sizes == {"layer": 1, "token": 1500, "concept": 24}


@pytest.mark.slow
def test_codes_that_know_little_of_new_checkpoints_are_said_to_be_stale(run, tmp_path):
    """What is born after the named steps is in no code; where all steps are named, nothing is."""
    models = {
        10 * t: PlantedModel(torch.from_numpy(A[None]))
        for t, A in enumerate(run.activations.astype(np.float32))
    }

    def said(steps):
        chosen = observable(fit_steps=steps, examples=0)
        study = og.Study(og.Trajectory.from_models(models), inputs(), [chosen], noise=0)
        node = study.run(tmp_path / str(len(steps)))["joint-concepts"]
        data = node.to_dataset()
        return [w for w in said_of(chosen, data) if "stale" in w], data

    (sentence,), node = said((0, 10))
    explained = node.explained.values[:, 0]
    assert explained[2:].min() < 0.9 * explained[:2].min()
    worst = 10 * (2 + explained[2:].argmin())
    share = f"{100 * explained[2:].min():.0f} %"
    assert f"{share} of the variance (" in sentence
    assert sentence.endswith(f"at step {worst}.")
    assert said(tuple(models))[0] == []


@pytest.mark.slow
def test_a_new_checkpoint_changes_no_concept_of_a_folder_that_was_begun_with_twelve(
    tmp_path,
):
    run = planted_lives(
        n=600,
        m=16,
        steady=5,
        born=5,
        dying=0,
        turning=0,
        born_turning=0,
        n_steps=14,
        tokens_per_text=TEXT,
        random_state=0,
    )
    models = {
        10 * t: PlantedModel(torch.from_numpy(A[None]))
        for t, A in enumerate(run.activations.astype(np.float32))
    }
    chosen = observable(n_concepts=12, fit_steps=6, examples=0)

    def codes(count, folder):
        first = dict(list(models.items())[:count])
        study = og.Study(
            og.Trajectory.from_models(first), inputs(600), [chosen], noise=0
        )
        node = study.run(tmp_path / folder, progress=False)["joint-concepts"]
        return node.found_again.values, node.fitted_step.values, node.strength.values

    first, later, anew = codes(12, "kept"), codes(14, "kept"), codes(14, "new")
    np.testing.assert_array_equal(first[0], later[0])
    np.testing.assert_array_equal(first[2], later[2][:12])
    assert later[1].max() == 110 and anew[1].max() == 130
    assert later[2].shape[0] == 14


@pytest.mark.slow
def test_a_control_run_needs_none_of_the_named_steps(run, tmp_path):
    study = og.Study(
        trajectory(run.activations),
        inputs(),
        [observable(fit_steps=(10, 20, 30))],
        device="cpu",
        controls=1,
        control_steps=3,
    )
    tree = study.run(tmp_path / "s")
    assert tree.attrs["problems"] == "[]"
    (control,) = json.loads(tree.attrs["controls"])
    assert set(control["steps"]).isdisjoint({10, 20, 30})
    found = tree["joint-concepts"]
    assert found.concepts_there_control.notnull().any()
    mean = found.mean_life_control
    assert set(mean.dims) == {"run", "layer", "step"}
    known = mean.notnull().any(["run", "layer"]).values
    assert set(found.step.values[known].tolist()) <= set(control["steps"])


@pytest.mark.skipif(
    "ONTOGENY_TEST_NOISE" in os.environ, reason="noise makes every layer vary"
)
def test_a_layer_that_does_not_vary_fails_alone(run, tmp_path):
    still = [
        PlantedModel(torch.stack([torch.from_numpy(a), torch.ones(1500, 24)]))
        for a in run.activations[:4]
    ]
    study = og.Study(
        og.Trajectory.from_models(dict(enumerate(still))),
        inputs(),
        [observable(fit_steps=4)],
        device="cpu",
    )
    node = study.run(tmp_path / "s")["joint-concepts"].to_dataset()
    assert node.strength.sel(layer="layers.0").notnull().all()
    assert node.strength.sel(layer="layers.1").isnull().all()
    assert int(node.n_concepts.sel(layer="layers.0")) > 0


@pytest.mark.slow
def test_a_run_that_diverges_loses_its_broken_checkpoint_alone(run, tmp_path):
    """Codes are those of the steps before; a step that was named must be readable."""
    models = {
        10 * t: PlantedModel(torch.from_numpy(A[None]))
        for t, A in enumerate(run.activations[:5].astype(np.float32))
    }
    worse = models | {50: PlantedModel(torch.full((1, 1500, 24), torch.nan))}
    given, chosen = {"device": "cpu", "noise": 0}, observable(examples=0)
    whole, broken = map(og.Trajectory.from_models, (models, worse))
    expected = og.Study(whole, inputs(), [chosen], **given).run(tmp_path / "whole")
    tree = og.Study(broken, inputs(), [chosen], **given).run(tmp_path / "broken")
    (problem,) = json.loads(tree.attrs["problems"])
    assert "step 50" in problem and "NonFiniteError" in problem
    found, alone = (each["joint-concepts"].strength.values for each in (tree, expected))
    np.testing.assert_allclose(found[:5], alone, atol=1e-6)
    assert np.isnan(found[5]).all()
    named = observable(fit_steps=(0, 20, 50))
    tree = og.Study(broken, inputs(), [named], **given).run(tmp_path / "named")
    assert "fit_steps cannot use step 50" in tree.attrs["problems"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "nmf"}, "method must be one of"),
        ({"n_active": 25}, "n_active must be at most n_concepts, which is 24"),
        ({"fit_steps": 0}, "fit_steps must be a whole number of at least 1"),
        ({"fit_steps": ()}, "name at least one step"),
        ({"readable": 2.0}, "readable must be a finite number"),
    ],
)
def test_arguments_out_of_range_are_named(given, message):
    with pytest.raises(ArgumentError, match=message):
        observable(**given)


def test_each_checkpoint_is_read_once_and_the_other_seed_is_matched_once(
    run, tmp_path, monkeypatch
):
    """With descriptions: one factor of each half, and one readout for the codes of either seed."""
    counts = {"factor": 0, "readout": 0, "match": 0}

    def counting(name, function):
        def counted(*given, **options):
            counts[name] += 1
            return function(*given, **options)

        return counted

    monkeypatch.setattr(readout, "_factor", counting("factor", readout._factor))
    monkeypatch.setattr(
        readout.Moments, "predicted", counting("readout", Moments.predicted)
    )
    monkeypatch.setattr(joint, "found_again", counting("match", joint.found_again))
    steps = 4
    models = {
        10 * t: PlantedModel(torch.from_numpy(A[None]))
        for t, A in enumerate(run.activations[:steps].astype(np.float32))
    }
    study = og.Study(
        og.Trajectory.from_models(models),
        inputs(),
        [observable(fit_steps=4)],
        device="cpu",
    )
    node = study.run(tmp_path)["joint-concepts"].to_dataset()
    assert counts == {"factor": 2 * steps, "readout": 2 * steps, "match": 1}
    assert "context_id" in node and node.found_again.dims == ("layer", "concept")


@pytest.mark.slow
def test_one_layer_is_in_memory_at_a_time_while_codes_are_fitted(run, monkeypatch):
    """Layers wait in files, and what a fit takes of them is what was read, bit for bit."""
    alive, most = weakref.WeakSet(), []
    fit = joint.fitted_codes

    def fitted(gathered, *given):
        alive.add(gathered)
        gc.collect()
        most.append(len(alive))
        return fit(gathered, *given)

    monkeypatch.setattr(joint, "fitted_codes", fitted)

    class Run:
        reference_step, is_control = 90, False

        def reading(self, step):
            values = torch.from_numpy(run.activations[step // 10])
            return Values(
                {own.activations: {f"layers.{i}": values * 2**i for i in range(3)}}
            )

    own = observable(fit_steps=(0, 30, 90), examples=0)
    codes = own.prepare(Run()).codes.values
    assert most == [1, 1, 1]
    whole = Gathered(1500, 24, 3)
    for step in (0, 30, 90):
        whole.add(standard(torch.from_numpy(run.activations[step // 10]))[0])
    np.testing.assert_array_equal(
        codes[0], own._codes(whole, fixed_half(np.arange(1500) // TEXT))["codes"][1]
    )
    np.testing.assert_array_equal(codes[0], codes[1])
