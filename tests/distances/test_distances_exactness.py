"""Every distance against its definition in 50 digits (mpmath) and against dense forms."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
import torch

from ontogeny import distances

EPS = 1e-6


def _mp(x):
    return mp.matrix(x.tolist())


def _frobenius(x):
    return mp.sqrt(mp.fsum(v * v for v in x))


def _singular_values(x):
    return mp.svd_r(x, compute_uv=False)


def _of_gram(x, f):
    values, vectors = mp.eigsy(x * x.T + mp.mpf(EPS) * mp.eye(x.rows))
    return vectors * mp.diag([f(v) for v in values]) * vectors.T


def _bures(w, v):
    root = _of_gram(w, mp.sqrt)
    gw, gv = (x * x.T + mp.mpf(EPS) * mp.eye(x.rows) for x in (w, v))
    inner = root * gv * root
    fidelity = mp.fsum(
        mp.sqrt(max(e, 0)) for e in mp.eigsy((inner + inner.T) / 2, eigvals_only=True)
    )
    trace = mp.fsum(gw[i, i] + gv[i, i] for i in range(w.rows))
    return mp.sqrt(trace - 2 * fidelity)


def _projection(x):
    left, values, _ = mp.svd_r(x)
    kept = [i for i in range(len(values)) if values[i] > values[0] * mp.mpf(10) ** -13]
    basis = mp.matrix([[left[i, j] for j in kept] for i in range(left.rows)])
    return basis * basis.T


def _procrustes(w, v):
    squares = mp.fsum(x * x for x in w) + mp.fsum(x * x for x in v)
    return mp.sqrt(abs(squares - 2 * mp.fsum(_singular_values(v.T * w))))


ORACLES = {
    "frobenius": lambda w, v: _frobenius(w - v),
    "spectral": lambda w, v: max(_singular_values(w - v)),
    "nuclear": lambda w, v: mp.fsum(_singular_values(w - v)),
    "entrywise": lambda w, v: mp.fsum(abs(x) for x in w - v),
    "procrustes": _procrustes,
    "schatten": lambda w, v: (
        mp.fsum(s ** mp.mpf(1.5) for s in _singular_values(w - v)) ** (1 / mp.mpf(1.5))
    ),
    "matrix-log": lambda w, v: _frobenius(_of_gram(w, mp.log) - _of_gram(v, mp.log)),
    "grassmann": lambda w, v: _frobenius(_projection(w) - _projection(v)) / mp.sqrt(2),
    "bures": _bures,
}


def test_every_distance_has_an_oracle():
    assert tuple(ORACLES) == distances.names()


def _cases():
    rng = np.random.default_rng(7)
    W = rng.standard_normal((12, 4)) + 0.5
    noise = rng.standard_normal(W.shape)
    deficient = W @ np.diag([1.0, 1.0, 1.0, 0.0])
    graded = W * np.array([1.0, 1e-2, 1e-4, 1e-6])
    yield "far", W, rng.standard_normal(W.shape)
    for size in (1e-1, 1e-3, 1e-5):
        yield f"noise {size}", W, W + size * noise
    yield "zero column", deficient, W + 0.1 * noise
    yield (
        "zero column in both",
        deficient,
        (W + 0.1 * noise) @ np.diag([0.0, 1.0, 1.0, 1.0]),
    )
    yield "one zero matrix", W, np.zeros_like(W)
    yield "orthogonal spaces", np.eye(12)[:, :4], 2 * np.eye(12)[:, 4:8]
    yield "graded columns", graded, graded + 1e-3 * noise
    yield "wide", rng.standard_normal((3, 5)), rng.standard_normal((3, 5))
    yield "one column", W[:, :1], noise[:, :1]


CASES = {label: (W, V) for label, W, V in _cases()}


@pytest.mark.parametrize("label", CASES)
@pytest.mark.parametrize("name", ORACLES)
def test_distance_equals_its_definition_in_fifty_digits(name, label):
    W, V = CASES[label]
    with mp.workdps(50):
        truth = float(ORACLES[name](_mp(W), _mp(V)))
    assert distances.distance(name, W, V) == pytest.approx(truth, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("size", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("name", ORACLES)
def test_small_distances_keep_their_digits(name, size):
    rng = np.random.default_rng(3)
    W = rng.standard_normal((14, 5)) + 0.5
    V = W + size * rng.standard_normal(W.shape)
    with mp.workdps(50):
        truth = float(ORACLES[name](_mp(W), _mp(V)))
    # The numbers themselves are only given to 1e-16: that is what may be lost of a tiny distance.
    assert distances.distance(name, W, V) == pytest.approx(
        truth, rel=1e-10 + 1e-15 / size
    )


def _dense_root(x, eps):
    values, vectors = np.linalg.eigh(x @ x.T + eps * np.eye(len(x)))
    return (vectors * np.sqrt(values)) @ vectors.T


def test_matrix_log_and_bures_equal_dense_forms_at_full_size():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((768, 100)) + 0.5
    V = W + 0.1 * rng.standard_normal(W.shape)
    eps = 1e-2  # small enough to matter, large enough for the dense null space to be right

    logs = []
    for x in (W, V):
        values, vectors = np.linalg.eigh(x @ x.T + eps * np.eye(768))
        logs.append((vectors * np.log(values)) @ vectors.T)
    assert distances.matrix_log(W, V, eps=eps) == pytest.approx(
        np.linalg.norm(logs[0] - logs[1]), rel=1e-8
    )

    first, second = _dense_root(W, eps), _dense_root(V, eps)
    left, _, right = np.linalg.svd(second @ first)
    residual = np.linalg.norm(first - second @ left @ right)
    assert distances.bures(W, V, eps=eps) == pytest.approx(residual, rel=1e-8)


def test_bures_becomes_procrustes_without_regularisation():
    rng = np.random.default_rng(1)
    W, V = rng.standard_normal((2, 60, 8))
    assert distances.bures(W, V, eps=1e-22) == pytest.approx(
        distances.procrustes(W, V), rel=1e-9
    )


def test_schatten_and_entrywise_norms_meet_their_named_cases():
    W, V = np.random.default_rng(2).standard_normal((2, 30, 6))
    same = pytest.approx
    assert distances.schatten(W, V, p=1) == same(distances.nuclear(W, V), rel=1e-12)
    assert distances.schatten(W, V, p=2) == same(distances.frobenius(W, V), rel=1e-12)
    assert distances.schatten(W, V, p=math.inf) == same(
        distances.spectral(W, V), rel=1e-12
    )
    assert distances.entrywise(W, V, p=2) == same(distances.frobenius(W, V), rel=1e-12)
    assert distances.entrywise(W, V, p=math.inf) == np.abs(W - V).max()


UNSEEN = ("procrustes", "matrix-log", "grassmann", "bures")


@pytest.mark.parametrize("change", ["rotation", "permutation", "signs"])
@pytest.mark.parametrize("rank", [100, 60])
@pytest.mark.parametrize("name", UNSEEN)
def test_rotated_columns_are_at_distance_zero_at_full_size(name, rank, change):
    rng = np.random.default_rng(4)
    W = rng.standard_normal((768, 100)) + 0.5
    W[:, rank:] = 0.0
    turn = {
        "rotation": scipy.linalg.qr(rng.standard_normal((100, 100)))[0],
        "permutation": np.eye(100)[:, rng.permutation(100)],
        "signs": np.diag(rng.choice([-1.0, 1.0], 100)),
    }[change]
    tiny = 1e-11 * np.linalg.norm(W)
    assert distances.distance(name, W, W) < tiny
    assert distances.distance(name, W, W @ turn) < tiny


@pytest.mark.parametrize("name", ORACLES)
def test_first_order_growth_continues_down_to_tiny_noise(name):
    # Every one of them grows linearly in small noise: 1e-9 must give a thousandth of 1e-6.
    rng = np.random.default_rng(5)
    W = rng.standard_normal((200, 20))
    noise = rng.standard_normal(W.shape)
    large, small = (
        distances.distance(name, W, W + size * noise) for size in (1e-6, 1e-9)
    )
    assert small == pytest.approx(large / 1000, rel=1e-4)


@pytest.mark.parametrize("name", UNSEEN)
def test_ill_conditioned_dictionaries_lose_nothing_near_zero(name):
    # Singular values from 1e2 to 1e-8: a plain V^T W squares them.
    rng = np.random.default_rng(6)
    left, right = (
        scipy.linalg.qr(rng.standard_normal((n, 8)), mode="economic")[0]
        for n in (20, 8)
    )
    W = (left * np.logspace(2, -8, 8)) @ right
    V = W * (1 + 1e-10 * rng.standard_normal(W.shape))
    with mp.workdps(60):
        truth = float(ORACLES[name](_mp(W), _mp(V)))
    assert distances.distance(name, W, V) == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("name", ORACLES)
def test_float32_input_is_computed_in_float64(name):
    rng = np.random.default_rng(8)
    W = rng.standard_normal((50, 7)).astype(np.float32)
    V = (W + 1e-4 * rng.standard_normal(W.shape)).astype(np.float32)
    wide = distances.distance(name, W.astype(np.float64), V.astype(np.float64))
    assert distances.distance(name, W, V) == pytest.approx(wide, rel=1e-12)
    assert distances.distance(name, torch.tensor(W), torch.tensor(V)) == pytest.approx(
        wide, rel=1e-7
    )


def test_rank_deficient_float32_dictionaries_span_what_their_dtype_can_tell():
    rng = np.random.default_rng(9)
    W = (rng.standard_normal((60, 3)) @ rng.standard_normal((3, 6))).astype(np.float32)
    turn = scipy.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert distances.grassmann(W, (W @ turn).astype(np.float32)) < 1e-5


def test_unequal_ranks_are_as_far_as_their_projections():
    E = np.eye(6)
    W, V = E[:, :3].copy(), E[:, :3].copy()
    V[:, 2] = 0.0
    assert distances.grassmann(W, V) == pytest.approx(math.sqrt(0.5))
    assert distances.grassmann(V, W) == pytest.approx(math.sqrt(0.5))
    assert distances.grassmann(W, np.zeros_like(W)) == pytest.approx(math.sqrt(1.5))


@pytest.mark.parametrize("name", ["matrix-log", "grassmann", "bures"])
def test_different_numbers_of_concepts_meet_the_definition_in_fifty_digits(name):
    rng = np.random.default_rng(5)
    W, V = rng.standard_normal((9, 4)), rng.standard_normal((9, 2))
    with mp.workdps(50):
        truth = float(ORACLES[name](_mp(W), _mp(V)))
    for first, second in ((W, V), (V, W), (torch.tensor(W), torch.tensor(V))):
        assert distances.distance(name, first, second) == pytest.approx(
            truth, rel=1e-10
        )
    batch = distances.distance(name, np.stack([W, 2 * W]), np.stack([V, 2 * V]))
    assert batch[0] == pytest.approx(truth, rel=1e-10)


def test_different_numbers_of_concepts_on_common_axes_are_at_closed_forms():
    a, b = np.array([3.0, 2.0, 1.0]), np.array([2.0, 0.5])
    W, V = np.eye(7)[:, :3] * a, np.eye(7)[:, :2] * b
    b = np.append(b, 0.0)
    roots = np.sqrt(a**2 + EPS) - np.sqrt(b**2 + EPS)
    logs = np.log((a**2 + EPS) / (b**2 + EPS))
    assert distances.bures(W, V, eps=EPS) == pytest.approx(
        np.linalg.norm(roots), rel=1e-12
    )
    assert distances.matrix_log(W, V, eps=EPS) == pytest.approx(
        np.linalg.norm(logs), rel=1e-12
    )
    assert distances.grassmann(W, V) == pytest.approx(math.sqrt(0.5), rel=1e-12)
