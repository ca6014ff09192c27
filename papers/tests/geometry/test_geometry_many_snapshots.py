"""Ranks of more snapshots than a Gram matrix is made for: the same numbers, in bounded memory."""

import tracemalloc

import numpy as np
import pytest

from ontogeny import geometry
from ontogeny.errors import NonFiniteError
from ontogeny_papers.geometry import leading, path
from ontogeny_papers.geometry.path import variance_rank_from_gram
from ontogeny_papers.geometry.snapshots import SnapshotGram


def walk(steps, size, seed=0, noise=0.0, drift=0.0):
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(steps, size)) + drift * rng.normal(size=size)
    return steps.cumsum(axis=0) + noise * rng.normal(size=steps.shape) + 1e3


@pytest.mark.parametrize("variance", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("options", [{}, {"noise": 0.5}, {"drift": 0.2}])
def test_lanczos_counts_as_the_gram_matrix_does(variance, options):
    snapshots = walk(300, 500, **options)
    expected = variance_rank_from_gram(geometry.gram(snapshots), variance)
    assert leading.leading_rank(snapshots, variance) == expected


def test_it_gives_up_where_too_many_components_are_needed():
    noise = np.random.default_rng(0).normal(size=(300, 4000))
    assert leading.leading_rank(noise, 0.9) is None


def test_a_shape_with_few_directions_is_exact():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 50))
    assert leading.leading_rank(flat, 1 - 1e-9) == 2
    assert leading.leading_rank(np.ones((300, 5)), 0.9) == 0


@pytest.mark.parametrize(
    "many", [walk, lambda s, d: np.random.default_rng(0).normal(size=(s, d))]
)
def test_many_snapshots_have_the_rank_that_few_would(many, monkeypatch):
    snapshots = many(260, 400).reshape(260, 20, 20)
    expected = geometry.variance_rank(snapshots)
    monkeypatch.setattr(path, "MANY", 100)
    assert geometry.variance_rank(snapshots) == expected
    assert geometry.variance_rank(snapshots.astype(np.float32)) == expected


def test_bad_values_among_many_are_said():
    snapshots = walk(2100, 4)
    snapshots[2000, 1] = np.nan
    with pytest.raises(NonFiniteError):
        geometry.variance_rank(snapshots)


def test_memory_does_not_grow_with_the_square_of_the_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr(leading, "CHUNK", 2**17)
    file = tmp_path / "snapshots.npy"
    np.save(file, walk(3000, 64).astype(np.float32))
    snapshots = np.load(file, mmap_mode="r")
    tracemalloc.start()
    assert geometry.variance_rank(snapshots) == 6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25e6 < 8 * 3000**2  # the Gram matrix alone would take 72 MB


def test_a_gram_matrix_is_symmetric_and_that_of_the_displacements():
    snapshots = walk(40, 90)
    moved = snapshots - snapshots[0]
    found = SnapshotGram(40).add(snapshots[:, :31]).add(snapshots[:, 31:]).gram
    np.testing.assert_allclose(found, moved @ moved.T, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(found, found.T)


def test_tiles_of_the_gram_matrix_fit(monkeypatch):
    snapshots = walk(40, 90)
    whole = geometry.gram(snapshots)
    monkeypatch.setattr("ontogeny_papers.geometry.snapshots._TILE", 7)
    np.testing.assert_array_equal(geometry.gram(snapshots), whole)
