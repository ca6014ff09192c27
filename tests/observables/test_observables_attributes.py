"""Every variable of a result says what it is, and every number in which units."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.every_kind import of_other_runs, others, tryable, with_obstacle
from helpers.family_models import build
from helpers.quick_fits import few_starts
from helpers.study_examples import LAYERS, ActivationNorm, developing, tiny_inputs
from helpers.word_semantics_examples import corpus, learning
from ontogeny import observables as obs
from ontogeny.words.names import named
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun, record_marker_runs

pytestmark = pytest.mark.slow

__all__ = ["few_starts"]

STEPS = (0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48)
# Kinds that the other runs below measure.
OF_OTHER_RUNS = {"readout-attention", "word-semantics", *of_other_runs()}
SMALL = {"n_concepts": 6, "layers": LAYERS, "max_tokens": 80}


def labelled():
    plain = tiny_inputs(40)
    rows = [row[mask].copy() for row, mask in zip(plain.ids, plain.mask, strict=True)]
    labels = np.arange(len(rows)) % 2
    for row, label in zip(rows, labels, strict=True):
        row[row == 7] = 8
        if label:
            row[: len(row) - 1] = 7
    return og.Inputs.from_tokens(rows, mask_token_id=1, labels=labels)


def of_a_language_model(folder):
    pairs = {"pairs": 3, "batch_size": 4}
    of_texts = {"on": ("labelled",), "n_random": 5, "n_refits": 2, "intercept": True}
    chosen = [
        obs.Loss(on="plain"),
        obs.Predictions(n_gaps=3, on="plain"),
        obs.TokenLosses(2, on="plain"),
        obs.ActivationDecay(LAYERS, on="plain"),
        obs.ActivationPath(LAYERS, on="plain", coordinates=4),
        obs.AttentionEntropy(on="plain"),
        obs.AttentionHeads(on="plain", n_sequences=4),
        obs.CopyingHeads(on="plain"),
        obs.NgramAgreement(on="plain", orders=(1,)),
        obs.LogitLens(on="plain"),
        obs.TextStatistics(depth=2, n_draws=3, loss="loss", on="plain"),
        obs.Calibration(on="plain"),
        obs.EffectiveDimensions(LAYERS, on="plain"),
        obs.Similarity(LAYERS, on="plain"),
        obs.LayerSimilarity(LAYERS, on="plain"),
        obs.StepSimilarity(LAYERS, on="plain", max_tokens=40),
        obs.Concepts(
            "ica",
            **SMALL,
            on="plain",
            keep_codes=True,
            correlations=("optimal", "internal"),
        ),
        obs.ConceptDistances("concepts-ica", measures=("frobenius", "optimal")),
        obs.ConceptPlane("concepts-ica"),
        obs.ConceptTracks("concepts-ica"),
        obs.JointConcepts(**SMALL, n_active=2, fit_steps=4, on="plain"),
        obs.ConceptChange(layers=LAYERS, max_tokens=80, on="plain"),
        obs.ConceptLayers(**SMALL, n_active=2, on="plain"),
        obs.ConceptEffects(
            layers=LAYERS,
            max_tokens=80,
            on="plain",
            n_removed=2,
            n_draws=3,
            tokens="all",
        ),
        obs.IntrinsicDimension("concepts-ica", n_draws=2, averages=("aligned",)),
        obs.Lipschitz("concepts-ica", "ica", **SMALL, on="plain"),
        obs.TransformDynamics("concepts-ica"),
        obs.EncoderDynamics("ica", **SMALL, on="plain"),
        obs.WeightNorms("model.layers.*.mlp.*.weight"),
        obs.EmbeddingFrequencies(),
        obs.FeatureGeometry("embed"),
        obs.WeightRank("model.layers.*.mlp.*.weight", n_draws=4),
        obs.VocabularyConcepts(n_concepts=6, n_active=2, on="plain"),
        obs.Orientation("model.layers.*.mlp.*.weight", n_draws=10),
        obs.Commutators(on="plain", **pairs),
        obs.Projection(blocks="model.layers.0.mlp.*.weight", k=1, on="plain", **pairs),
        obs.ConceptDirections(LAYERS, **of_texts),
        obs.TCAV(
            LAYERS,
            **of_texts,
            target="masked",
            early=(0, 4),
            late=(8, 48),
            random="plain",
        ),
        obs.Regimes("activation-path", "path", jointly="coordinate", n_draws=19),
        obs.Regimes("activation-decay", "distance", n_draws=19),
        obs.Fits("activation-decay", "distance"),
        obs.Signals("concepts-ica", n_draws=19),
        obs.LearningDynamics("concepts-ica"),
    ]
    chosen += others(
        {o.kind for o in chosen} | OF_OTHER_RUNS, of="concepts-ica", layers=LAYERS
    )
    inputs = {"plain": tiny_inputs(), "labelled": labelled()}
    trajectory = og.Trajectory.from_models(developing(STEPS))
    return chosen, og.Study(trajectory, inputs, chosen, device="cpu", noise=1), folder


def of_a_classifier(folder):
    task = MarkerTask(length=8, vocab_size=8, markers=(1, 2), modulus=4)
    run = MarkerRun(task=task, layers=1, width=8, heads=2, steps=2, batch_size=8)
    runs = record_marker_runs(folder / "run", run, seeds=[0], every=1)
    chosen = [
        obs.ReadoutAccuracy(("text",), cut=(1,)),
        obs.ReadoutAttention(("text",), top=(1,)),
        obs.LabelAccuracy("text"),
        obs.SaeProbe(
            task.marker_ids, on="text", n_latents=16, epochs=1, n_draws=2, removed=2
        ),
    ]
    inputs = {"text": task.inputs(120, 1)}
    return (
        chosen,
        og.Study(og.Trajectory.from_folder(runs[0]), inputs, chosen),
        folder / "study",
    )


def of_a_causal_model(folder):
    texts = tiny_inputs(12)
    chosen = [obs.InContextLearning(early=2, late=6, window=1), obs.PlaceLosses()]
    run = og.Trajectory.from_models(
        {step: build("gpt2", seed=step) for step in (0, 1, 2)}
    )
    return chosen, og.Study(run, texts, chosen), folder


def of_words(folder):
    texts = corpus()
    options = {"vocab_size": 100, "lengths": (1, 1), "n_concepts": 6, "n_draws": 3}
    chosen = [obs.WordSemantics(**options)]
    models = learning(texts)[0]
    return chosen, og.Study(og.Trajectory.from_models(models), texts, chosen), folder


@pytest.fixture(scope="module")
def results(tmp_path_factory, few_starts):
    """All registered observables, each in a tiny study: {kind: [node]}."""
    found = {}
    for make in (of_a_language_model, of_a_causal_model, of_a_classifier, of_words):
        chosen, study, folder = make(tmp_path_factory.mktemp("attributes"))
        tree = study.run(folder)
        problems = json.loads(tree.attrs["problems"])
        assert problems == [], problems
        for observable in chosen:
            found.setdefault(observable.kind, []).append(
                tree[observable.name].to_dataset()
            )
    return found


# What is read with a tokenizer or sampled by a package that is not here has tests of its own.
HERE = sorted({*tryable()} - {"learning-coefficient"} - with_obstacle("no_tokenizer"))


@pytest.mark.parametrize("kind", HERE)
def test_every_variable_says_what_it_is_and_numbers_their_units(results, kind):
    for node in results[kind]:
        assert "failed" not in node.attrs, node.attrs["failed"]
        nameless = [
            name for name, v in node.data_vars.items() if not v.attrs.get("long_name")
        ]
        assert nameless == []
        floats = [name for name, v in node.data_vars.items() if v.dtype.kind == "f"]
        assert [name for name in floats if not node[name].attrs.get("units")] == []
        inherited = [
            n
            for n in node.variables
            if node[n].attrs.get("units", "").startswith("as ")
        ]
        assert inherited == []
        assert node.step.attrs["units"] == "steps" if "step" in node.coords else True


def test_a_curve_and_what_is_fitted_to_it_have_the_units_of_what_was_measured(results):
    assert results["activation-decay"][0].distance.attrs["units"] == "activation units"
    fits, regimes = results["fits"][0], results["regimes"][1]
    for variable in (
        fits.curve,
        fits.amplitude,
        fits.offset_stderr,
        regimes.noise_before,
    ):
        assert variable.attrs["units"] == "activation units"
    assert fits.rate.attrs["units"] == "per step"


def test_what_a_variable_says_of_itself_stays():
    data = xr.Dataset(
        {"x": ("step", [1.0], {"long_name": "mine", "units": "m"}), "x_low": 0.0}
    )
    found = named(
        data.assign_coords(step=[0]), {"x": ("theirs", "1"), "relative_x": ("no", "")}
    )
    assert found.x.attrs == {"long_name": "mine", "units": "m"}
    assert found.x_low.attrs == {"long_name": "mine, lower end", "units": "m"}
    assert data.x_low.attrs == {} and "units" not in data.x_low.attrs


def test_names_derive_from_what_they_belong_to_or_are_left_out():
    names = {"x": ("norm", "m"), "of_x": ("beside", "as x"), "y": ("why", "as nothing")}
    variables = (
        "x_high",
        "x_stderr",
        "x_sd",
        "null_x",
        "relative_x",
        "of_x_low",
        "y",
        "z",
        "z_low",
    )
    found = named(xr.Dataset(dict.fromkeys(variables, 0.0)), names)
    units = {name: found[name].attrs.get("units") for name in variables}
    assert units == {
        "x_high": "m",
        "x_stderr": "m",
        "x_sd": "m",
        "null_x": "m",
        "relative_x": "1",
        "of_x_low": "m",
        "y": None,
        "z": None,
        "z_low": None,
    }
    assert found.z.attrs == found.z_low.attrs == {}
    assert found.relative_x.attrs["long_name"] == "norm, relative"


def test_an_observable_of_a_user_names_its_variables(tmp_path):
    class Named(ActivationNorm):
        variables = {"norm": ("mean norm", "activation units")}

    study = og.Study(
        og.Trajectory.from_models(developing((0, 1))), tiny_inputs(4), [Named()]
    )
    node = study.run(tmp_path)["activation-norm"]
    assert node.norm.attrs == {"long_name": "mean norm", "units": "activation units"}
    assert node.status.attrs["long_name"]
    stored = og.open_study(tmp_path).result["activation-norm"]
    assert stored.norm.attrs == node.norm.attrs
