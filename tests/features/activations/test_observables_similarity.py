"""Similarity of activations to the reference step along a study."""

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, jittering, rotating, tiny_inputs
from ontogeny import capture, distances
from ontogeny.errors import ArgumentError
from ontogeny.observables import LayerSimilarity, Similarity, StepSimilarity

MEASURES = ("cka", "svcca", "pwcca", "mutual-neighbours")


def studied(models, folder, **options):
    trajectory = og.Trajectory.from_models(models)
    observable = Similarity(LAYERS, measures=MEASURES, **options)
    tree = og.Study(trajectory, tiny_inputs(40), [observable], device="cpu").run(folder)
    return trajectory, tree["similarity"].to_dataset()


@pytest.mark.slow
def test_it_is_that_of_the_two_models_activations(tmp_path):
    trajectory, data = studied(developing(), tmp_path / "s", max_tokens=None)
    first, last = (
        capture.activations(
            trajectory[int(step)].model(), tiny_inputs(40), LAYERS, max_tokens=None
        )
        for step in trajectory.steps[[0, -1]]
    )
    for layer in data.layer.values:
        X, Y = (found[layer].double().numpy() for found in (first, last))
        at = data.similarity.sel(layer=layer, step=trajectory.steps[0])
        for measure in MEASURES:
            expected = getattr(distances, measure.replace("-", "_"))(X, Y)
            assert float(at.sel(measure=measure)) == pytest.approx(expected, rel=1e-5)
    reference = data.similarity.sel(step=trajectory.steps[-1])
    np.testing.assert_allclose(reference, 1.0, atol=1e-9)


@pytest.mark.slow
def test_tokens_out_of_order_are_far_below_and_a_rotation_changes_nothing(tmp_path):
    _, data = studied(rotating(), tmp_path / "s")
    cka = data.sel(measure="cka")
    np.testing.assert_allclose(cka.similarity, 1.0, atol=1e-4)
    assert (cka.similarity_shuffled_high < 0.5).all()
    assert not data.changed.any()


def test_jitter_is_no_development(tmp_path):
    _, data = studied(jittering(), tmp_path / "s")
    assert not data.changed.any() and data.noise_known.all()


@pytest.mark.parametrize("measures", [(), ("cka", "cka"), ("rsa",)])
def test_other_measures_are_refused(measures):
    with pytest.raises(ArgumentError, match="measures"):
        Similarity(measures=measures)


def test_layers_are_compared_in_pairs(tmp_path):
    trajectory = og.Trajectory.from_models(developing((0, 1, 2, 4)))
    chosen = LayerSimilarity(LAYERS, MEASURES, max_tokens=None)
    tree = og.Study(trajectory, tiny_inputs(40), chosen, device="cpu").run(
        tmp_path / "s"
    )
    data = tree["layer-similarity"].to_dataset()
    found = capture.activations(
        trajectory[4].model(), tiny_inputs(40), LAYERS, max_tokens=None
    )
    first, second = (found[path].double().numpy() for path in data.of_layer.values)
    for measure in MEASURES:
        similar = getattr(distances, measure.replace("-", "_"))
        at = data.between.sel(step=4, measure=measure).values
        expected = [[1.0, similar(first, second)], [similar(second, first), 1.0]]
        np.testing.assert_allclose(at, expected, rtol=1e-5)
        before = data.to_layer_before.sel(step=4, measure=measure)
        assert float(before.squeeze()) == pytest.approx(expected[1][0], rel=1e-5)
    assert data.noise_known.all()
    assert (data.to_layer_before_shuffled_low.sel(measure="cka") < 0.5).all()


def test_a_single_layer_is_not_compared_with_others(tmp_path):
    trajectory = og.Trajectory.from_models(developing((0, 1)))
    study = og.Study(
        trajectory, tiny_inputs(8), LayerSimilarity("layers[0].mlp"), device="cpu"
    )
    with pytest.raises(ArgumentError, match="layers must match at least two layers"):
        study.run(tmp_path)


def test_all_steps_are_compared_with_all_others(tmp_path):
    steps = (0, 1, 2, 4, 8)
    trajectory = og.Trajectory.from_models(developing(steps))
    chosen = StepSimilarity(LAYERS, max_tokens=120)
    tree = og.Study(trajectory, tiny_inputs(40), chosen, device="cpu").run(
        tmp_path / "s"
    )
    data = tree["step-similarity"].to_dataset()
    found = [
        capture.activations(
            trajectory[step].model(), tiny_inputs(40), LAYERS, max_tokens=120
        )
        for step in (1, 8)
    ]
    for layer in data.layer.values:
        X, Y = (each[layer].double().numpy() for each in found)
        at = data.sel(layer=layer, step=1, step_=8)
        assert float(at.between) == pytest.approx(distances.cka(X, Y), abs=1e-5)
        assert abs(float(at.between_shuffled)) < 0.3 and float(at.between_stderr) > 0
    np.testing.assert_allclose(data.between.sel(step=4, step_=4), 1.0, atol=1e-9)
    assert "gram" not in data and "unit" not in data
