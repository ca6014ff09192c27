"""Variance rank of weight paths as an observable: planted paths and their nulls."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError

STEPS = tuple(range(0, 400, 10))


class _Paths(nn.Module):
    """One matrix for each planted path."""

    def __init__(self, walk, line, still, back):
        super().__init__()
        for name, value in {"walk": walk, "line": line, "still": still, "back": back}.items():
            layer = nn.Linear(30, 30, bias=False)
            layer.weight = nn.Parameter(torch.as_tensor(value, dtype=torch.float32))
            setattr(self, name, layer)

    def forward(self, input_ids):
        return self.walk(torch.nn.functional.one_hot(input_ids % 30, 30).float())


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    rng = np.random.default_rng(0)
    shape = (len(STEPS), 30, 30)
    walk = np.cumsum(rng.normal(size=shape), axis=0)
    line = np.linspace(0, 5, len(STEPS))[:, None, None] * rng.normal(size=(30, 30))
    still = np.broadcast_to(rng.normal(size=(30, 30)), shape)
    # every step takes back the noise of the one before: in another order it would add up
    back = line + 0.5 * rng.normal(size=shape)
    models = {
        step: _Paths(walk[i], line[i], still[i].copy(), back[i]) for i, step in enumerate(STEPS)
    }
    study = og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2, 3]]),
        [og.observables.WeightRank("*.weight", draws=200)],
        device="cpu",
    )
    result = study.run(tmp_path_factory.mktemp("rank") / "s")
    assert result.attrs["problems"] == "[]"
    return result["weight-rank"].to_dataset()


def test_planted_paths_have_their_ranks(tree):
    rank = tree.variance_rank
    assert int(rank.sel(block="line.weight")) == 1
    assert int(rank.sel(block="still.weight")) == 0
    walk = tree.sel(block="walk.weight")
    assert float(walk.walk_low) <= float(walk.variance_rank) <= float(walk.walk_high)
    assert float(tree.net_drift_ratio.sel(block="line.weight")) == pytest.approx(len(STEPS) - 1)
    assert float(tree.net_drift_ratio.sel(block="walk.weight")) == pytest.approx(1, abs=0.4)


def test_displacement_equals_the_norm_of_the_difference(tree):
    line = tree.displacement.sel(block="line.weight")
    expected = np.linspace(0, 1, len(STEPS)) * float(line[-1])
    np.testing.assert_allclose(line, expected, rtol=1e-5, atol=1e-6)
    assert float(tree.displacement.sel(block="still.weight").max()) == 0


def test_a_random_walk_is_not_called_lower_than_chance(tree):
    assert float(tree.p_corrected.sel(block="walk.weight")) > 0.05
    assert float(tree.p_lower.sel(block="line.weight")) == 1.0  # every order gives the same line


def test_noise_that_is_taken_back_is_lower_than_in_random_order(tree):
    assert float(tree.p_corrected.sel(block="back.weight")) < 0.05


def test_the_growing_window_ends_at_the_whole_run(tree):
    last = tree.growing_rank.isel(step=-1)
    np.testing.assert_array_equal(last, tree.variance_rank)


@pytest.mark.parametrize("arguments", [{"variance": 0}, {"variance": 1.5}, {"draws": 2}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ArgumentError):
        og.observables.WeightRank("*.weight", **arguments)
