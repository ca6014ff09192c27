"""Gram matrices and path statistics against direct computation and closed forms."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.geometry import (
    early_energy,
    gram,
    increment_participation_ratio,
    increment_variance_rank,
    net_drift_ratio,
    random_walk_null,
    variance_rank,
    walk_participation_ratio,
)
from ontogeny_papers.geometry.path import variance_rank_from_gram
from ontogeny_papers.geometry.snapshots import SnapshotGram, increments_gram


def walk(n_steps: int, dimension: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_steps, dimension)).cumsum(axis=0)


def test_gram_is_that_of_the_displacements():
    path = walk(7, 30)
    moved = path - path[0]
    np.testing.assert_allclose(gram(path.reshape(7, 5, 6)), moved @ moved.T, atol=1e-12)


def test_small_motion_of_large_float32_weights_is_not_cancelled():
    start = np.float32(1000.0) * np.ones(64, dtype=np.float32)
    ulp = np.spacing(np.float32(1000.0))
    path = np.stack([start + k * ulp for k in range(4)])
    expected = 64 * float(ulp) ** 2 * np.outer(np.arange(4), np.arange(4))
    np.testing.assert_allclose(gram(path), expected, rtol=1e-14)
    assert variance_rank(path) == 1


def test_streaming_over_any_slices_gives_the_same_gram(monkeypatch):
    path = walk(6, 101)
    monkeypatch.setattr("ontogeny_papers.geometry.snapshots.CHUNK", 6 * 7)
    streaming = SnapshotGram(6)
    for start, stop in ((0, 1), (1, 50), (50, 101)):
        streaming.add(path[:, start:stop])
    assert streaming.dimension == 101
    np.testing.assert_allclose(streaming.gram, gram(path), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_tensors_of_every_precision_are_summed_in_float64(dtype):
    path = torch.from_numpy(walk(5, 40)).to(dtype)
    expected = gram(path.to(torch.float64).numpy())
    np.testing.assert_allclose(gram(path), expected, rtol=1e-12, atol=1e-10)


def test_memory_stays_bounded_for_memory_mapped_weights(tmp_path):
    shape = (8, 4_000_000)  # 128 MB in float32, 256 MB as float64
    mapped = np.memmap(tmp_path / "weights", dtype=np.float32, mode="w+", shape=shape)
    mapped[:, ::1000] = walk(8, 4000)
    tracemalloc.start()
    found = gram(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6
    np.testing.assert_allclose(
        found, gram(walk(8, 4000).astype(np.float32)), rtol=1e-12
    )


def test_a_bad_block_adds_nothing(monkeypatch):
    monkeypatch.setattr("ontogeny_papers.geometry.snapshots.CHUNK", 3)
    block = np.arange(12.0).reshape(3, 4)
    streaming = SnapshotGram(3).add(block)
    before = streaming.gram
    broken = block.copy()
    broken[2, 3] = np.nan
    with pytest.raises(NonFiniteError, match="block holds 1 NaN"):
        streaming.add(broken)
    np.testing.assert_array_equal(streaming.gram, before)
    assert streaming.dimension == 4


@given(st.integers(3, 12), st.integers(2, 30), st.floats(0.05, 1.0), st.integers(0, 99))
@settings(max_examples=40)
def test_variance_rank_is_what_a_pca_of_the_snapshots_says(
    n_steps, dimension, variance, seed
):
    path = walk(n_steps, dimension, seed)
    ratio = np.cumsum(PCA(svd_solver="full").fit(path).explained_variance_ratio_)
    expected = int(np.sum(ratio < variance - 1e-12)) + 1
    assert variance_rank(path, variance) == expected


def test_variance_rank_of_a_straight_line_is_one_and_of_nothing_zero():
    line = np.outer(np.linspace(0, 1, 30), np.ones(100))
    assert variance_rank(line) == 1
    assert variance_rank(np.ones((5, 10))) == 0
    assert variance_rank(np.ones((1, 10))) == 0


def test_order_place_scale_and_rotation_of_snapshots_leave_the_rank_unchanged():
    path = walk(20, 60)
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    for variance in (0.5, 0.9, 0.99):
        rank = variance_rank(path, variance)
        assert variance_rank(path[rng.permutation(20)], variance) == rank
        assert (
            variance_rank(1e-8 * path @ rotation + rng.normal(size=60), variance)
            == rank
        )


def test_float32_and_float64_snapshots_agree():
    path = walk(40, 500)
    assert variance_rank(path.astype(np.float32)) == variance_rank(path)


def test_growing_windows_equal_separate_calls():
    path = walk(15, 80)
    ranks = random_walk_null(path, n_draws=2, ends=range(2, 16)).observed
    assert ranks.tolist() == [variance_rank(path[:end]) for end in range(2, 16)]
    assert ranks[0] == 1


def test_increments_are_those_of_the_path():
    path = walk(9, 25)
    steps = np.diff(path, axis=0)
    np.testing.assert_allclose(increments_gram(gram(path)), steps @ steps.T, atol=1e-10)
    energy = np.linalg.svd(steps, compute_uv=False) ** 2
    expected = energy.sum() ** 2 / (energy**2).sum()
    assert increment_participation_ratio(gram(path)) == pytest.approx(expected)
    assert (
        increment_variance_rank(gram(path))
        == np.sum(np.cumsum(energy) < 0.9 * energy.sum()) + 1
    )


def test_net_drift_ratio_of_a_line_a_walk_and_a_loop():
    line = np.outer(np.arange(21.0), np.ones(10))
    assert net_drift_ratio(gram(line)) == pytest.approx(20)
    orthogonal = np.tri(21)
    assert net_drift_ratio(gram(orthogonal)) == pytest.approx(1)
    loop = np.vstack([walk(20, 10), walk(20, 10)[:1]])
    assert net_drift_ratio(gram(loop)) == pytest.approx(0, abs=1e-12)
    assert net_drift_ratio(gram(np.ones((4, 3)))) == 0.0


def early_energy_directly(path: np.ndarray, end: int, components: int) -> float:
    basis = PCA(components).fit(path[:end]).components_
    later = path[end:] - path[end - 1]
    return float(np.sum((later @ basis.T) ** 2) / np.sum(later**2))


@pytest.mark.parametrize(("early", "components"), [(0.3, 1), (0.3, 4), (0.5, 2)])
def test_early_energy_is_the_projection_on_the_early_components(early, components):
    path = walk(20, 12, seed=3)
    expected = early_energy_directly(path, round(early * 20), components)
    assert early_energy(gram(path), early, components) == pytest.approx(
        expected, abs=1e-12
    )


def test_early_energy_of_components_far_below_the_first_is_the_projection_on_them():
    rng = np.random.default_rng(0)
    path = np.outer(np.linspace(0, 1, 20), rng.normal(size=2000))
    path += 3e-6 * rng.normal(size=path.shape)
    path[6:] += 1e-2 * rng.normal(size=2000)  # leaves the line once its noise is known
    early = np.linalg.svd(path[:6] - path[:6].mean(axis=0), full_matrices=False)[2][:4]
    later = path[6:] - path[5]
    expected = np.sum((later @ early.T) ** 2) / np.sum(later**2)
    assert early_energy(gram(path)) == pytest.approx(expected, rel=1e-9)


def test_early_energy_is_one_for_a_plane_and_zero_for_new_directions():
    plane = walk(20, 2) @ np.eye(2, 50)
    assert early_energy(gram(plane)) == pytest.approx(1.0)
    assert early_energy(gram(np.tri(20))) == pytest.approx(0.0, abs=1e-12)
    frozen_later = np.vstack([walk(6, 5), np.repeat(walk(6, 5)[-1:], 14, axis=0)])
    assert early_energy(gram(frozen_later)) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gram(np.ones(3)), ArgumentError, "snapshots must have shape"),
        (lambda: gram(np.ones((3, 0))), ArgumentError, "none of it empty"),
        (lambda: gram([[1.0, np.inf], [0.0, 1.0]]), NonFiniteError, "infinite"),
        (
            lambda: SnapshotGram(0),
            ArgumentError,
            "n_snapshots must be a whole number of at least 1",
        ),
        (
            lambda: SnapshotGram("3"),
            ArgumentError,
            "n_snapshots must be a whole number",
        ),
        (
            lambda: walk_participation_ratio(np.zeros((3, 3)), np.nan),
            ArgumentError,
            "dimension",
        ),
        (
            lambda: SnapshotGram(3).add(np.ones((2, 3))),
            ArgumentError,
            r"shape \(3, \.\.\.\)",
        ),
        (lambda: SnapshotGram(3).add([1.0]), ArgumentError, "got list"),
        (lambda: variance_rank(np.eye(3), 0.0), ArgumentError, "variance must lie in"),
        (lambda: variance_rank_from_gram(np.ones((3, 4))), ArgumentError, "square"),
        (
            lambda: variance_rank_from_gram(np.eye(3)),
            ArgumentError,
            "first row and column zero",
        ),
        (lambda: random_walk_null(np.eye(3), ends=[1]), ArgumentError, "from 2 to 3"),
        (lambda: random_walk_null(np.eye(3), ends=[4]), ArgumentError, "from 2 to 3"),
        (
            lambda: early_energy(np.zeros((4, 4)), 0.9),
            ArgumentError,
            "early must be a share",
        ),
        (
            lambda: early_energy(np.zeros((4, 4)), 0.5, 0),
            ArgumentError,
            "components must be",
        ),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
