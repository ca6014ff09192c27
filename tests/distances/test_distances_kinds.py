"""NumPy and PyTorch, batches, dtypes, and what is refused early."""

import numpy as np
import pytest
import torch

from ontogeny import distances
from ontogeny.errors import ArgumentError, NonFiniteError

_rng = np.random.default_rng(0)
W, V = _rng.standard_normal((2, 9, 4))
U = _rng.standard_normal((11, 4))


@pytest.mark.parametrize("name", distances.names())
def test_tensors_give_what_arrays_give(name):
    ours = distances.distance(name, torch.tensor(W), torch.tensor(V))
    assert isinstance(ours, float)
    assert ours == pytest.approx(distances.distance(name, W, V), rel=1e-11)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_come_back_in_the_kind_dtype_and_shape_that_went_in(kind, dtype):
    rng = np.random.default_rng(1)
    batch = rng.standard_normal((2, 3, 9, 4)).astype(dtype)
    other = rng.standard_normal((2, 3, 9, 4)).astype(dtype)
    codes = rng.standard_normal((2, 3, 11, 4)).astype(dtype)
    values = distances.compare(kind(batch), kind(other), kind(codes))
    for name, value in values.items():
        assert type(value) is type(kind(batch))
        assert value.dtype == kind(batch).dtype
        assert tuple(value.shape) == (2, 3)
        single = distances.compare(batch[1, 2], other[1, 2], codes[1, 2])[name]
        assert float(value[1, 2]) == pytest.approx(single, rel=1e-6)


def test_compare_agrees_with_every_function_of_its_own():
    values = distances.compare(W, V, U)
    assert list(values) == [
        *distances.names(),
        "columnwise",
        "optimal",
        "internal",
        "weighted",
    ]
    for name in distances.names():
        assert values[name] == pytest.approx(distances.distance(name, W, V), rel=1e-10)
    for name in ("columnwise", "optimal", "internal"):
        assert values[name] == pytest.approx(
            distances.correlation(name, W, V), rel=1e-10
        )
    assert values["weighted"] == distances.correlation("weighted", W, V, U=U)
    assert "weighted" not in distances.compare(W, V)
    assert "internal" not in distances.compare(W[:, :1], V[:, :1])


def test_compare_gives_the_measures_that_are_asked_for_from_shared_factorisations(
    monkeypatch,
):
    shapes, svd = [], np.linalg.svd

    def counted(stack, **options):
        shapes.append(stack.shape[1:])
        return svd(stack, **options)

    monkeypatch.setattr(np.linalg, "svd", counted)
    wanted = ("weighted", "bures", "grassmann", "matrix-log")
    values = distances.compare(W, V, U, measures=wanted)
    assert shapes.count(W.shape) == 2, "one of each dictionary"
    assert tuple(values) == wanted
    for name in wanted[1:]:
        assert values[name] == pytest.approx(distances.distance(name, W, V), rel=1e-10)
    assert shapes.count(W.shape) == 2 + 3 * 2
    with pytest.raises(
        ArgumentError, match="measures: 'weighted' needs the codes U of W"
    ):
        distances.compare(W, V, measures=["weighted"])
    with pytest.raises(ArgumentError, match=r"a name in measures must be .*'bures'"):
        distances.compare(W, V, measures=["buers"])


def test_zero_matrices_and_zero_columns_give_numbers():
    zero = np.zeros_like(W)
    assert set(distances.compare(zero, zero).values()) == {0.0}
    hollow = W * np.array([1.0, 0.0, 0.0, 1.0])
    for pair in ((zero, W), (hollow, W), (hollow, V * np.array([0.0, 0.0, 1.0, 1.0]))):
        assert np.isfinite(list(distances.compare(*pair, U).values())).all()


def test_options_reach_the_distance_they_are_for():
    plain = distances.compare(W, V)
    other = distances.compare(
        W, V, options={"schatten": {"p": 2}, "bures": {"eps": 1.0}}
    )
    assert other["schatten"] == pytest.approx(plain["frobenius"])
    assert other["bures"] == pytest.approx(distances.bures(W, V, eps=1.0))
    assert other["matrix-log"] == plain["matrix-log"]


def test_half_precision_and_integers_are_widened():
    half = W.astype(np.float16)
    assert distances.frobenius(half, half * 0) == pytest.approx(
        np.linalg.norm(half.astype(np.float64)), rel=1e-10
    )
    assert (
        distances.frobenius(torch.ones(2, 2, dtype=torch.bfloat16), torch.zeros(2, 2))
        == 2.0
    )
    assert distances.nuclear(np.eye(2, dtype=int), np.zeros((2, 2), dtype=int)) == 2.0


def test_gradients_are_left_outside():
    tensor = torch.tensor(W, requires_grad=True)
    assert distances.procrustes(tensor, torch.tensor(V)) == pytest.approx(
        distances.procrustes(W, V), rel=1e-10
    )


@pytest.mark.parametrize("name", distances.names())
def test_nan_and_infinity_are_refused(name):
    for bad in (np.nan, np.inf):
        broken = W.copy()
        broken[3, 1] = bad
        with pytest.raises(NonFiniteError, match="V holds 1 NaN"):
            distances.distance(name, W, broken)


@pytest.mark.parametrize("name", distances.names())
def test_numbers_whose_products_overflow_are_refused_and_small_ones_are_not(name):
    with pytest.raises(ArgumentError, match="common scale"):
        distances.distance(name, 1e200 * W, V)
    assert np.isfinite(distances.distance(name, 1e-200 * W, 1e60 * V))


def test_a_batch_result_beyond_its_dtype_is_refused():
    large = np.full((2, 3, 3), 2e38, dtype=np.float32)
    assert distances.entrywise(large[0], -large[0]) == pytest.approx(3.6e39)
    with pytest.raises(NonFiniteError, match="does not fit in float32"):
        distances.entrywise(large, -large)


def test_refusals_name_the_argument_and_what_is_allowed():
    with pytest.raises(ArgumentError, match=r"same shape .*\(9, 4\) and \(9, 3\)"):
        distances.procrustes(W, V[:, :3])
    for name in set(distances.names()) - {"matrix-log", "grassmann", "bures"}:
        with pytest.raises(
            ArgumentError, match="columns are compared one with another"
        ):
            distances.distance(name, W, V[:, :3])
    with pytest.raises(
        ArgumentError, match=r"same number of features.*\(9, 4\) and \(8, 4\)"
    ):
        distances.bures(W, V[:8])
    with pytest.raises(ArgumentError, match="Did you mean 'procrustes'"):
        distances.distance("procrustus", W, V)
    with pytest.raises(ArgumentError, match="no option 'p'; it has eps"):
        distances.distance("bures", W, V, p=2)
    with pytest.raises(ArgumentError, match="p must be at least 1"):
        distances.schatten(W, V, p=0.5)
    with pytest.raises(ArgumentError, match="eps must be positive"):
        distances.matrix_log(W, V, eps=0.0)
    with pytest.raises(ArgumentError, match="rank_tolerance"):
        distances.grassmann(W, V, rank_tolerance=2.0)
    with pytest.raises(ArgumentError, match="all be NumPy or all be PyTorch"):
        distances.frobenius(W, torch.tensor(V))
    with pytest.raises(ArgumentError, match="W must have at least 2"):
        distances.frobenius(W[:, 0], V[:, 0])
    with pytest.raises(ArgumentError, match="a name in options"):
        distances.compare(W, V, options={"shatten": {}})
