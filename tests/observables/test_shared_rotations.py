"""One rotation of activations for all observables of a checkpoint."""

from collections import Counter

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.distances.features import feature_rotation
from ontogeny.features.concepts.noise import RESAMPLES, _in_random_basis
from ontogeny.observables import rotations
from ontogeny.study.cells import dependencies

STEPS = (0, 4, 16)
LAYER_COUNT = 2


@pytest.fixture
def made(monkeypatch):
    """Count the rotations that are computed, by what they are computed from."""
    counts = Counter()

    def counted(A, B):
        counts[A.numpy().tobytes(), B.numpy().tobytes()] += 1
        return feature_rotation(A, B)

    monkeypatch.setattr(rotations, "feature_rotation", counted)
    return counts


def _run(trajectory, folder):
    options = {"n_concepts": 3, "layers": LAYERS, "max_tokens": 120}
    observables = [
        og.observables.ActivationDecay(LAYERS, max_tokens=120),
        og.observables.Concepts("svd", **options),
        og.observables.Concepts("pca", **options),
    ]
    tree = og.Study(trajectory, tiny_inputs(), observables, device="cpu", noise=1).run(
        folder
    )
    assert tree.attrs["problems"] == "[]"
    return {o.name: tree[o.name].to_dataset().drop_attrs() for o in observables}


@pytest.mark.slow
def test_each_is_computed_once_and_changes_no_number(tmp_path, made, monkeypatch):
    trajectory = og.Trajectory.from_models(developing(STEPS))
    together = _run(trajectory, tmp_path / "together")
    # At the reference step there is nothing to turn; where noise is measured, tokens out of order
    # are rotated too.
    assert set(made.values()) == {1}
    assert len(made) == LAYER_COUNT * (len(STEPS) - 1 + RESAMPLES)
    once = sum(made.values())
    monkeypatch.setattr(dependencies.Shared.__init__, "__defaults__", (0,))
    apart = _run(trajectory, tmp_path / "apart")
    assert sum(made.values()) - once > 2 * once  # by each observable for itself
    for name, node in together.items():
        assert node.identical(apart[name])


def test_what_does_not_fit_is_computed_again_and_what_fits_is_not_pushed_out():
    kept = dependencies.Shared(limit=100)
    calls = Counter()

    def make(key, size):
        def one():
            calls[key] += 1
            return np.zeros(size, dtype=np.uint8)

        return one

    for _ in range(3):
        for key, size in (("first", 60), ("large", 50), ("small", 40)):
            assert len(kept.get(key, make(key, size))) == size
    assert calls == {"first": 1, "large": 3, "small": 1}


def test_a_dictionary_in_a_random_basis_keeps_its_inner_products():
    W = torch.randn(
        40, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    turned = _in_random_basis(W, 0)
    torch.testing.assert_close(turned.mT @ turned, W.mT @ W, rtol=1e-10, atol=1e-10)
    # Its directions are uniformly random: the mean over many draws vanishes.
    mean = sum(_in_random_basis(W, seed) for seed in range(400)) / 400
    assert float(mean.norm() / W.norm()) < 0.1
