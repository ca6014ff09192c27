"""The path of activations in random coordinates, and the regimes that it shows."""

import numpy as np
import pytest
import torch

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.observables import ActivationPath, Regimes
from planted_runs import planted


class Reading(dict):
    """Activations of one layer as a reading."""

    def __missing__(self, need):
        return {"a": self["values"]}


def coordinates(A, **options):
    observable = ActivationPath("a", **options)
    return observable.observe(Reading(values=torch.as_tensor(A)), None).path.values[0]


def test_coordinates_have_size_one_and_ignore_the_scale():
    A = np.random.default_rng(0).normal(size=(60, 20))
    found = coordinates(A, coordinates=2000)
    assert np.mean(found**2) == pytest.approx(1, rel=0.15)
    assert coordinates(7.5 * A, coordinates=2000) == pytest.approx(found)


def test_noise_of_a_share_moves_the_coordinates_by_that_share():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 20))
    noisy = A + 0.05 * rng.normal(size=A.shape)
    moved = coordinates(noisy, coordinates=2000) - coordinates(A, coordinates=2000)
    assert np.sqrt(np.mean(moved**2)) == pytest.approx(0.05, rel=0.15)


def test_only_the_seed_changes_the_directions():
    A = np.random.default_rng(2).normal(size=(30, 8))
    assert np.array_equal(coordinates(A), coordinates(A))
    assert not np.allclose(coordinates(A), coordinates(A, random_state=1))


def test_silent_layers_and_no_coordinates_are_refused():
    status = ActivationPath("a").observe(Reading(values=torch.zeros(5, 3)), None).status
    assert "all activations are 0" in str(status.values[0])
    with pytest.raises(
        ArgumentError, match="coordinates must be a whole number of at least 1"
    ):
        ActivationPath("a", coordinates=0)


@pytest.mark.parametrize("seed", range(2))
def test_the_path_shows_a_planted_change_of_noise_that_the_distance_does_not(
    tmp_path, seed
):
    run = planted("regimes", steps=range(0, 4800, 100), random_state=seed)
    observables = [
        ActivationPath("layers.*"),
        Regimes("activation-path", "path", jointly="coordinate"),
    ]
    tree = og.Study(run.trajectory, run.inputs, observables).run(tmp_path / "s")
    found = tree["activation-path-regimes"]
    assert abs(found.boundary - run.boundary).max() <= 200
    assert abs(float(found.joint_boundary) - run.boundary) <= 200
    assert (found.noise_ratio_low < 5).all() and (found.noise_ratio > 2.5).all()
    assert (tree["activation-path"].change.isel(step=slice(1, None)) > 0).all()


@pytest.mark.parametrize(("directions", "spread"), [(1, 0.33), (60, 0.18)])
def test_the_change_is_estimated_as_well_as_the_page_says(directions, spread):
    rng = np.random.default_rng(3)
    D = rng.normal(size=(60, directions)) @ rng.normal(size=(directions, 60))
    found = [
        np.sqrt(np.mean(coordinates(D, random_state=seed) ** 2)) for seed in range(600)
    ]
    assert np.std(found) / np.mean(found) == pytest.approx(spread, abs=0.035)
