"""All pairs of a stack, and the plane of all concepts."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from ontogeny import distances
from ontogeny.errors import ArgumentError

_rng = np.random.default_rng(21)
# Steps that come closer and closer, as in training: from 1 to 1e-8.
STACK = np.stack(
    [_rng.standard_normal((12, 4)) * size for size in (1.0, 0.1, 1e-3, 1e-6, 1e-8)]
) + _rng.standard_normal((12, 4))
CODES = _rng.standard_normal((5, 30, 4))


def test_pairwise_agrees_with_comparing_each_pair():
    matrix = distances.pairwise(STACK, CODES, steps=[0, 1, 10, 100, 1000])
    assert matrix.dims == ("distance", "step", "step_")
    for i in range(5):
        for j in range(5):
            single = distances.compare(STACK[i], STACK[j], CODES[i])
            assert list(matrix["distance"].values) == list(single)
            np.testing.assert_allclose(
                matrix[:, i, j], list(single.values()), rtol=1e-6, atol=1e-10
            )


def test_pairwise_keeps_the_digits_of_neighbouring_steps():
    matrix = distances.pairwise(STACK, measures=["frobenius", "procrustes"])
    assert matrix.sel(distance="frobenius", step=3, step_=4) == pytest.approx(
        np.linalg.norm(STACK[3] - STACK[4]), rel=1e-10
    )
    ratio = matrix.sel(step=3, step_=4) / matrix.sel(step=2, step_=4)
    assert (ratio < 2e-3).all() and (ratio > 5e-4).all()


def test_pairwise_does_not_depend_on_workers_or_kind():
    one = distances.pairwise(STACK, workers=1)
    assert distances.pairwise(STACK, workers=3).identical(one)
    tensors = distances.pairwise(torch.tensor(STACK), batch_size=2)
    np.testing.assert_allclose(tensors, one, rtol=1e-6, atol=1e-10)


def test_pairwise_takes_leading_dimensions():
    rng = np.random.default_rng(1)
    layers = rng.standard_normal((2, 3, 9, 4))
    codes = rng.standard_normal((2, 3, 7, 4))
    both = distances.pairwise(layers, codes)
    assert both.dims == ("distance", "batch_0", "step", "step_")
    for layer in range(2):
        alone = distances.pairwise(layers[layer], codes[layer])
        np.testing.assert_allclose(both[:, layer], alone, rtol=1e-9, atol=1e-10)


def test_pairwise_refuses_what_does_not_fit():
    with pytest.raises(ArgumentError, match="at least three dimensions"):
        distances.pairwise(STACK[0])
    with pytest.raises(ArgumentError, match="Did you mean 'procrustes'"):
        distances.pairwise(STACK, measures=["procrusted"])
    with pytest.raises(ArgumentError, match="steps must name the 5 steps"):
        distances.pairwise(STACK, steps=[1, 2])
    with pytest.raises(ArgumentError, match="workers must be at least 1"):
        distances.pairwise(STACK, workers=-1)


def test_the_plane_is_that_of_scikit_learn():
    points = np.swapaxes(STACK, 1, 2).reshape(-1, 12)
    for stack, rows in ((STACK, points), (STACK[:2], points[:8])):  # tall and wide
        oracle = PCA(n_components=2, svd_solver="full").fit(rows)
        plane = distances.concept_plane(stack)
        np.testing.assert_allclose(
            plane["explained_variance"], oracle.explained_variance_ratio_, rtol=1e-9
        )
        np.testing.assert_allclose(
            abs(plane["position"].values.reshape(-1, 2)),
            abs(oracle.transform(rows)),
            atol=1e-9,
        )
        largest = abs(plane["direction"]).argmax("feature")
        assert (plane["direction"].isel(feature=largest) > 0).all()


def test_the_plane_refuses_what_spans_none():
    with pytest.raises(ArgumentError, match="span no plane"):
        distances.concept_plane(np.ones((3, 5, 2)))
    with pytest.raises(ArgumentError, match="n_axes must be between 1 and 3"):
        distances.concept_plane(np.ones((2, 5, 2)), n_axes=4)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([0, 10, 10], "steps must differ; 10 stands there 2 times"),
        ([0, 20, 10], "steps must increase; 10 follows 20"),
        (["a", "b", "a"], "steps must differ; a stands there 2 times"),
    ],
)
@pytest.mark.parametrize("function", [distances.pairwise, distances.tracks])
def test_steps_that_are_equal_or_out_of_order_are_refused(function, steps, says):
    stack = np.random.default_rng(0).standard_normal((3, 8, 2))
    with pytest.raises(ArgumentError, match=says):
        function(stack, steps=steps)
