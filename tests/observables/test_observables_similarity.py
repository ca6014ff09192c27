"""Similarity of activations to the reference step along a study."""

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, jittering, rotating, tiny_inputs
from ontogeny import capture, distances
from ontogeny.errors import ArgumentError
from ontogeny.observables import Similarity

MEASURES = ("cka", "svcca", "pwcca")


def studied(models, folder, **options):
    trajectory = og.Trajectory.from_models(models)
    observable = Similarity(LAYERS, measures=MEASURES, **options)
    tree = og.Study(trajectory, tiny_inputs(40), [observable], device="cpu").run(folder)
    return trajectory, tree["similarity"].to_dataset()


def test_it_is_that_of_the_two_models_activations(tmp_path):
    trajectory, data = studied(developing(), tmp_path / "s", max_tokens=None)
    first, last = (
        capture.activations(trajectory[int(step)].model(), tiny_inputs(40), LAYERS, max_tokens=None)
        for step in trajectory.steps[[0, -1]]
    )
    for layer in data.layer.values:
        X, Y = (found[layer].double().numpy() for found in (first, last))
        at = data.similarity.sel(layer=layer, step=trajectory.steps[0])
        for measure in MEASURES:
            expected = getattr(distances, measure)(X, Y)
            assert float(at.sel(measure=measure)) == pytest.approx(expected, rel=1e-5)
    reference = data.similarity.sel(step=trajectory.steps[-1])
    np.testing.assert_allclose(reference, 1.0, atol=1e-9)


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
