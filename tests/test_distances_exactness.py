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
    fidelity = mp.fsum(mp.sqrt(max(e, 0)) for e in mp.eigsy((inner + inner.T) / 2, eigvals_only=True))
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
    yield "zero column in both", deficient, (W + 0.1 * noise) @ np.diag([0.0, 1.0, 1.0, 1.0])
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
    assert distances.distance(name, W, V) == pytest.approx(truth, rel=1e-10 + 1e-15 / size)
