"""Axioms and bounds that must hold whatever the matrices, and where they do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ontogeny import distances

few = settings(max_examples=25, derandomize=True)

METRICS = ("frobenius", "spectral", "nuclear", "entrywise", "schatten")
PSEUDO_METRICS = ("procrustes", "matrix-log", "grassmann", "bures")
ENTRIES = st.floats(-8, 8).map(lambda x: round(x, 2))


def matrices(count, m=5, r=3):
    return hnp.arrays(np.float64, (count, m, r), elements=ENTRIES)


def test_every_distance_is_here_as_metric_or_pseudo_metric():
    assert sorted(METRICS + PSEUDO_METRICS) == sorted(distances.names())


@pytest.mark.parametrize("name", distances.names())
@few
@given(three=matrices(3))
def test_distances_are_symmetric_and_obey_the_triangle_inequality(name, three):
    W, V, X = three
    there, back = distances.distance(name, W, V), distances.distance(name, V, W)
    assert there == pytest.approx(back, rel=1e-8, abs=1e-9)
    detour = distances.distance(name, W, X) + distances.distance(name, X, V)
    assert there <= detour * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", distances.names())
@few
@given(one=matrices(1))
def test_distances_of_a_dictionary_to_itself_are_zero(name, one):
    assert 0 <= distances.distance(name, one[0], one[0]) < 1e-9


@pytest.mark.parametrize("name", METRICS)
@few
@given(two=matrices(2))
def test_metrics_tell_different_dictionaries_apart(name, two):
    W, V = two
    largest = np.abs(W - V).max()
    assert distances.distance(name, W, V) >= largest * (1 - 1e-12)


@pytest.mark.parametrize("name", PSEUDO_METRICS)
def test_pseudo_metrics_do_not_see_a_rotation_of_the_columns(name):
    W = np.arange(15.0).reshape(5, 3) + np.eye(5)[:, :3]
    V = W[:, [2, 0, 1]] * np.array([1.0, -1.0, 1.0])
    assert not np.array_equal(W, V)
    assert distances.distance(name, W, V) < 1e-7


@pytest.mark.parametrize("name", ["optimal", "columnwise"])
@few
@given(two=matrices(2))
def test_correlations_are_symmetric_and_bounded(name, two):
    W, V = two
    value = distances.correlation(name, W, V)
    assert 0 <= value <= 1
    assert value == pytest.approx(distances.correlation(name, V, W), abs=1e-12)


@few
@given(two=matrices(2))
def test_the_optimal_matching_is_at_least_the_columnwise_one(two):
    W, V = two
    values = distances.compare(W, V)
    assert values["optimal"] >= values["columnwise"] - 1e-12
    assert 0 <= values["internal"] <= 1


@few
@given(two=matrices(2), scale=st.sampled_from([1e-20, 1e-6, 1e6, 1e20]))
def test_norms_and_procrustes_scale_with_the_dictionaries(two, scale):
    W, V = two
    for name in (*METRICS, "procrustes"):
        value = distances.distance(name, W, V)
        scaled = distances.distance(name, scale * W, scale * V)
        assert scaled == pytest.approx(scale * value, rel=1e-9, abs=1e-9 * scale)


@few
@given(two=matrices(2))
def test_procrustes_lies_between_its_bounds(two):
    W, V = two
    value = distances.procrustes(W, V)
    assert value <= distances.frobenius(W, V) * (1 + 1e-12) + 1e-12
    # The singular values must at least be moved (Mirsky).
    lowest = np.linalg.norm(
        np.subtract(*(np.linalg.svd(X, compute_uv=False) for X in (W, V)))
    )
    assert value >= lowest * (1 - 1e-9) - 1e-9


@few
@given(two=matrices(2), eps=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_bures_does_not_exceed_procrustes(two, eps):
    W, V = two
    assert (
        distances.bures(W, V, eps=eps) <= distances.procrustes(W, V) * (1 + 1e-9) + 1e-9
    )


@few
@given(two=matrices(2, m=3, r=5))
def test_wide_dictionaries_are_compared_too(two):
    W, V = two
    assert all(np.isfinite(value) for value in distances.compare(W, V).values())
