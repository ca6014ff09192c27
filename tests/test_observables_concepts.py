"""Concepts as an observable: every extractor, both starts, floors and chance."""

import numpy as np
import pytest

import ontogeny as og
from ontogeny.errors import ArgumentError
from study_examples import LAYERS, developing, tiny_inputs

STEPS = (0, 1, 2, 4, 8, 16)
OPTIONS = {"nmf": {"nonnegative": "split"}, "sae": {"epochs": 5}}


@pytest.fixture(scope="module")
def trajectory():
    return og.Trajectory.from_models(developing(STEPS))


def _run(trajectory, folder, *chosen):
    tree = og.Study(trajectory, tiny_inputs(), chosen, device="cpu").run(folder)
    assert tree.attrs["problems"] == "[]"
    return tree


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_extractor_runs_as_an_observable(trajectory, tmp_path):
    chosen = [
        og.observables.Concepts(
            name, n_concepts=3, layers=LAYERS, max_tokens=120, options=OPTIONS.get(name, {})
        )
        for name in og.concepts.names()
    ]
    assert len(chosen) == 10
    tree = _run(trajectory.select(steps=[0, 4, 16]), tmp_path / "s", *chosen)
    for observable in chosen:
        node = tree[observable.name]
        assert "failed" not in node.attrs, (observable.name, node.attrs.get("failed"))
        assert (node.relative_distance.sel(step=16).max() < 0.05) or observable.extractor == "sae"
        assert np.isfinite(node.reconstruction_error).all()


def test_dictionary_and_distance_equal_a_fit_by_hand(trajectory, tmp_path):
    tree = _run(
        trajectory, tmp_path / "s", og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)
    )
    fits = {}
    for step in (4, 16):
        acts = og.capture.activations(trajectory[step].model(), tiny_inputs(), LAYERS)
        estimator = og.concepts.make("pca", n_concepts=3, random_state=0)
        fits[step] = estimator.fit(acts["model.layers.0.mlp"]).components_.T
    node = tree["concepts-pca"].sel(layer="model.layers.0.mlp", step=4)
    np.testing.assert_allclose(
        np.abs(node.dictionary.values), np.abs(fits[4].numpy()), rtol=1e-3, atol=1e-5
    )
    expected = og.distances.distance("frobenius", fits[16], fits[4])
    found = float(node.distance_to_reference.sel(distance="frobenius", alignment="as returned"))
    assert found == pytest.approx(expected, rel=1e-4)


def test_matching_never_increases_a_distance_and_chance_lies_above_refits(trajectory, tmp_path):
    tree = _run(
        trajectory, tmp_path / "s", og.observables.Concepts("ica", n_concepts=3, layers=LAYERS)
    )
    node = tree["concepts-ica"].to_dataset()
    frobenius = node.relative_distance.sel(distance="frobenius")
    gain = frobenius.sel(alignment="as returned") - frobenius.sel(alignment="matched")
    assert float(gain.min()) > -1e-6
    matched = node.sel(distance="procrustes", alignment="matched")
    assert float(matched.chance_distance.mean()) > float(matched.refit_distance.mean())
    assert node.sizes["refit"] == 6  # three resamples of the tokens and three other seeds


def test_starting_from_the_reference_is_another_study(trajectory, tmp_path):
    seeded, warm = (
        og.observables.Concepts("ica", n_concepts=3, layers=LAYERS, init=init, label=init)
        for init in ("seeded", "reference")
    )
    tree = _run(trajectory, tmp_path / "s", seeded, warm)
    warm_fits, cold_fits = tree["reference"].iterations, tree["seeded"].iterations
    assert (warm_fits.sel(step=16) <= cold_fits.sel(step=16)).all()  # it starts at its solution
    assert not np.array_equal(warm_fits, cold_fits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractor": "icaa"}, "Did you mean 'ica'"),
        ({"extractor": "ica", "distances": ("procustes",)}, "Did you mean 'procrustes'"),
        ({"extractor": "ica", "distances": "procrustes"}, "list of names"),
        ({"extractor": "ica", "distances": ()}, "at least one distance"),
        ({"extractor": "ica", "init": "chain"}, "init must be one of"),
        ({"extractor": "ica", "options": {"funn": "exp"}}, "Did you mean 'fun'"),
        ({"extractor": "ica", "tokens": "some"}, "tokens must be one of"),
        ({"extractor": "ica", "max_tokens": 1}, "max_tokens"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.Concepts(**arguments)
