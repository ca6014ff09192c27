"""Variance rank of weight paths as an observable: planted paths and their nulls."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.capture_models import build, inputs_of
from ontogeny.errors import ArgumentError

STEPS = tuple(range(0, 400, 10))


class _Paths(nn.Module):
    """One matrix for each planted path."""

    def __init__(self, walk, line, still, back):
        super().__init__()
        for name, value in {
            "walk": walk,
            "line": line,
            "still": still,
            "back": back,
        }.items():
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
        step: _Paths(walk[i], line[i], still[i].copy(), back[i])
        for i, step in enumerate(STEPS)
    }
    study = og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2, 3]]),
        [og.observables.WeightRank("*.weight", n_draws=200)],
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
    assert float(tree.net_drift_ratio.sel(block="line.weight")) == pytest.approx(
        len(STEPS) - 1
    )
    assert float(tree.net_drift_ratio.sel(block="walk.weight")) == pytest.approx(
        1, abs=0.4
    )


def test_displacement_equals_the_norm_of_the_difference(tree):
    line = tree.displacement.sel(block="line.weight")
    expected = np.linspace(0, 1, len(STEPS)) * float(line[-1])
    np.testing.assert_allclose(line, expected, rtol=1e-5, atol=1e-6)
    assert float(tree.displacement.sel(block="still.weight").max()) == 0


def test_a_random_walk_is_not_called_lower_than_chance(tree):
    assert float(tree.p_corrected.sel(block="walk.weight")) > 0.05
    # Every order gives the same line.
    assert float(tree.p_lower.sel(block="line.weight")) == 1.0


def test_noise_that_is_taken_back_is_lower_than_in_random_order(tree):
    assert float(tree.p_corrected.sel(block="back.weight")) < 0.05


def test_the_growing_window_ends_at_the_whole_run(tree):
    last = tree.growing_rank.isel(step=-1)
    np.testing.assert_array_equal(last, tree.variance_rank)


def test_the_rank_of_what_was_learned_is_that_of_the_difference(tree):
    assert int(tree.learned_rank.sel(block="still.weight")) == 0
    # one step of a random walk is as good as another: the difference is a Gaussian matrix
    walk = tree.sel(block="walk.weight")
    assert float(walk.learned_rank) == pytest.approx(float(walk.gaussian_rank), abs=1)


def test_statistics_that_separate_tell_a_line_from_a_walk(tree):
    line, walk = tree.sel(block="line.weight"), tree.sel(block="walk.weight")
    assert float(line.increment_participation_ratio) == pytest.approx(1, abs=1e-6)
    assert (
        float(line.early_energy) == pytest.approx(1) and float(walk.early_energy) < 0.2
    )
    expected = float(walk.walk_participation_ratio)
    assert float(walk.increment_participation_ratio) == pytest.approx(
        expected, rel=0.05
    )
    for name in ("lag", "line"):
        assert float(line[f"{name}_low"]) == float(line[f"{name}_high"]) == 1


def test_the_words_say_the_share_that_was_asked_for():
    data = observed(og.observables.WeightRank("*.weight", variance=0.8, n_draws=8))
    words = " ".join(
        str(json.loads(data.attrs[name]))
        for name in ("section", "figures", "statements")
    )
    assert "80 %" in words and "r₈₀ = 3 whatever" in words and "90 %" not in words
    assert data.variance_rank.attrs["symbol"] == "r₈₀"


def test_more_snapshots_than_asked_for_are_thinned_evenly_and_counted():
    whole = observed(og.observables.WeightRank("*.weight", n_draws=8))
    thin = observed(og.observables.WeightRank("*.weight", n_draws=8, max_snapshots=10))
    assert (int(whole.snapshots[0]), int(thin.snapshots[0])) == (len(STEPS), 10)
    np.testing.assert_array_equal(whole.displacement, thin.displacement)
    np.testing.assert_array_equal(whole.learned_rank, thin.learned_rank)
    assert int(np.isfinite(thin.growing_rank).sum()) <= 10
    np.testing.assert_array_equal(thin.growing_rank.isel(step=-1), thin.variance_rank)
    path, chosen = planted(), np.linspace(0, len(STEPS) - 1, 10).round().astype(int)
    assert int(thin.variance_rank[0]) == og.geometry.variance_rank(path[chosen])


def planted():
    return np.cumsum(np.random.default_rng(0).normal(size=(len(STEPS), 12, 20)), axis=0)


class _Block:
    """One planted matrix, handed over in two slices of rows."""

    name, shape, masked_rows, reference_step = "w.weight", (12, 20), 0, 0
    steps = np.array(STEPS)

    def chunks(self):
        path = planted()
        yield path[:, :5].reshape(len(STEPS), -1)
        yield path[:, 5:].reshape(len(STEPS), -1)


def observed(observable):
    cell = observable.observe(_Block(), None).expand_dims(block=["w.weight"])
    return observable.summarise(cell, {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"variance": 0},
        {"variance": 1.5},
        {"n_draws": 2},
        {"n_draws": "8"},
        {"max_snapshots": 2},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ArgumentError):
        og.observables.WeightRank("*.weight", **arguments)


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "bert", "llama", "eurobert"])
def test_query_key_and_value_are_ranked_each_for_itself(family, tmp_path):
    models = {step: build(family, seed=step) for step in (0, 1, 2, 3)}
    observable = og.observables.WeightRank(("q", "k", "v"), n_draws=8)
    study = og.Study(
        og.Trajectory.from_models(models), inputs_of(), [observable], device="cpu"
    )
    data = study.run(tmp_path / "s")["weight-rank"].to_dataset()
    assert set(data.status.values) == {"done"}
    blocks = [str(b) for b in data.block.values]
    assert len(blocks) == 9  # three projections of three layers
    for block in blocks[:3]:
        path = [part_of(model, block) for model in models.values()]
        moved = [np.linalg.norm(values - path[0]) for values in path]
        np.testing.assert_allclose(data.displacement.sel(block=block), moved, rtol=1e-5)


def part_of(model, block):
    """The entries of a block by the layout of its family, written out."""
    name, _, part = block.partition("#")
    weight = dict(model.named_parameters())[name].detach().numpy()
    if not part:
        return weight
    i = "qkv".index(part)
    if "c_attn" in name:  # GPT-2: (in, out), one part after the other
        width = weight.shape[1] // 3
        return weight[:, i * width : (i + 1) * width]
    heads = model.config.num_attention_heads  # GPT-NeoX: side by side in every head
    return weight.reshape(heads, 3, -1, weight.shape[1])[:, i]
