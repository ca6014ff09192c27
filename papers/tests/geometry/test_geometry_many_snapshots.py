"""Gram matrices of many snapshots, made in tiles and chunks."""

import numpy as np
import pytest

from ontogeny import geometry
from ontogeny.errors import NonFiniteError
from ontogeny_papers.geometry.snapshots import SnapshotGram


def walk(steps, size):
    rng = np.random.default_rng(0)
    return rng.normal(size=(steps, size)).cumsum(axis=0) + 1e3


def test_bad_values_among_many_are_said():
    snapshots = walk(2100, 4)
    snapshots[2000, 1] = np.nan
    with pytest.raises(NonFiniteError):
        geometry.variance_rank(snapshots)


def test_a_gram_matrix_is_symmetric_and_that_of_the_displacements():
    snapshots = walk(40, 90)
    moved = snapshots - snapshots[0]
    found = SnapshotGram(40).add(snapshots[:, :31]).add(snapshots[:, 31:]).gram
    np.testing.assert_allclose(found, moved @ moved.T, rtol=1e-10, atol=1e-9)
    np.testing.assert_array_equal(found, found.T)


def test_tiles_of_the_gram_matrix_fit(monkeypatch):
    snapshots = walk(40, 90)
    whole = geometry.gram(snapshots)
    monkeypatch.setattr("ontogeny_papers.geometry.snapshots._TILE", 7)
    np.testing.assert_array_equal(geometry.gram(snapshots), whole)
