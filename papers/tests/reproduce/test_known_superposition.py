"""The case of superposition: its batches, its phase diagram, its judge, and a tiny run."""

import dataclasses

import numpy as np
import pytest
import torch
import xarray as xr

from ontogeny_papers.reproduce.known import KnownSize, superposition
from ontogeny_papers.reproduce.known.superposition import SuperpositionRun

TWO = SuperpositionRun(2, 1, (0.0, 0.9), (0.5, 2.0), steps=2, batch_size=8)
FIVE = SuperpositionRun(steps=2, batch_size=8)


def test_batches_have_the_stated_share_of_zeros():
    x = SuperpositionRun(batch_size=4000).batches(0)(7)
    zeros = (x == 0).float().mean(dim=(1, 2)).numpy()
    np.testing.assert_allclose(zeros, [0, 0.8, 0.9], atol=0.01)
    assert (x == SuperpositionRun(batch_size=4000).batches(0)(7)).all()


def test_the_loss_is_that_of_a_plain_loop():
    run = SuperpositionRun(3, 2, (0.5,), (0.5, 2.0), batch_size=6)
    torch.manual_seed(0)
    model, x, total = run.model(), run.batches(0)(0), 0.0
    for index, (_, q) in enumerate(run.grid):
        W = model.maps[run.names[index]].weight
        for one in x[index]:
            out = torch.relu(W.T @ (W @ one) + model.bias[index])
            weights = torch.tensor([1.0, q, q**2])
            total += (weights * (one - out) ** 2).sum().item() / (3 * 6)
    assert run.loss(model, x).item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("sparsity", [0.0, 0.7, 0.95])
@pytest.mark.parametrize("importance", [0.4, 1.5])
def test_the_phase_is_that_of_the_smallest_error_of_random_draws(sparsity, importance):
    rng = np.random.default_rng(0)
    x = rng.random((100_000, 2)) * (rng.random((100_000, 2)) >= sparsity)
    mean, opposite = x.mean(0), np.maximum(x[:, ::-1] * -1 + x, 0)
    weights = np.array([1.0, importance])
    first, second = x.copy(), x.copy()
    first[:, 1], second[:, 0] = mean[1], mean[0]
    guesses = [first, second, opposite]
    errors = [float((weights * (x - guess) ** 2).sum(1).mean()) for guess in guesses]
    assert superposition.best_phase(sparsity, importance) == int(np.argmin(errors))


def node(run, norms, dimensions):
    """Return the last two steps of models with planted norms and dimensions (models, features)."""
    norms, dimensions = (np.asarray(each, float) for each in (norms, dimensions))
    there = norms >= 0.5
    mean = np.where(there, dimensions, 0).sum(1) / np.maximum(there.sum(1), 1)
    numbers = {"represented": there.sum(1), "dimensionality": mean}
    data = {
        name: (("step", "layer"), np.stack([0 * v, v])) for name, v in numbers.items()
    }
    for name, values in (
        ("feature_norm", norms),
        ("feature_dimensionality", dimensions),
    ):
        data[name] = (("step", "layer", "feature"), np.stack([0 * values, values]))
        control = np.full((1, 2, *values.shape), 0.7)
        data[f"{name}_control"] = (("run", "step", "layer", "feature"), control)
    layers = [f"maps.{name}.weight" for name in run.names]
    return xr.Dataset(data, {"step": [0, 10], "layer": layers})


def answers(geometry, phases):
    five = node(FIVE, [[1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [1] * 5], geometry)
    two = node(TWO, phases, np.ones((4, 2)))
    labels = superposition.RECIPE.quick.runs
    found = {
        "feature-geometry": dict(zip(labels, ([five] * 3, [two] * 3), strict=True))
    }
    return [verdict.holds for verdict in superposition.judge_of(FIVE, TWO)(found)]


def test_the_judge_finds_what_is_planted_and_misses_what_is_not():
    expected = [superposition.best_phase(*cell) for cell in TWO.grid]
    norms = [[(1, 0), (0, 1), (1, 1)][phase] for phase in expected]
    published = [[1] * 5, [0.5] * 5, [0.4] * 5]
    assert answers(published, norms) == [True] * 4
    assert answers([[0.9] * 5, [0.5] * 5, [0.46] * 5], norms) == [
        False,
        True,
        False,
        True,
    ]
    assert answers(published, [(1, 1)] * 4)[3] is False


def test_a_tiny_run_is_trained_studied_and_judged(tmp_path):
    size = KnownSize(
        superposition._runs(FIVE, TWO), (0,), 1, superposition._OBSERVABLES
    )
    recipe = dataclasses.replace(
        superposition.RECIPE,
        quick=size,
        controls=1,
        judge=superposition.judge_of(FIVE, TWO),
    )
    text = recipe.run(tmp_path, quick=True).read_text(encoding="utf-8")
    assert "Elhage" in text and "turned runs" in text
