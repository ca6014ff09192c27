"""The ridge path of the cross-entropy and the direction it converges to."""

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers.ufm_examples import centred, support
from ontogeny.errors import ArgumentError, OntogenyError
from ontogeny.semantics import max_margin_logits, ridge_path, step_imbalance


def cosine(A, B):
    return float((A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B))


@pytest.mark.parametrize(("V", "R"), [(4, 1), (4, 10), (8, 3)])
def test_one_hot_labels_have_the_centred_support_as_their_largest_margin(V, R):
    step = step_imbalance(V, R)
    found = max_margin_logits(step.S)
    assert np.allclose(found.logits, step.S_centred, atol=1e-3)
    assert found.nuclear_norm == pytest.approx(step.sigma.sum(), rel=1e-4)


def test_largest_margin_logits_fulfil_their_constraints_and_beat_the_centred_support():
    S = support(8, 20, seed=3)
    found = max_margin_logits(S, tolerance=1e-6)
    for logits, inside in zip(found.logits.T, S.T > 0, strict=True):
        assert np.ptp(logits[inside]) < 1e-12
        assert inside.all() or logits[~inside].max() <= logits[inside].min() - 1 + 1e-12
    assert found.nuclear_norm <= np.linalg.norm(centred(S), "nuc") * (1 + 1e-12)
    assert 0 <= found.gap <= 1e-6


def test_largest_margin_agrees_with_a_smoothed_problem_solved_by_another_method():
    S = support(4, 5, seed=1)
    inside = S > 0
    width = S.size

    def logits(x):
        level, slack = x[:5], x[5 : 5 + width].reshape(S.shape)
        return np.where(inside, level, level - 1 - slack**2)

    def objective(x):
        return np.sqrt(np.linalg.svd(logits(x))[1] ** 2 + 1e-10).sum()

    start = np.concatenate([np.zeros(5), np.full(width, 0.05)])
    best = min(
        minimize(objective, start * s, method="L-BFGS-B", options={"maxiter": 3000}).fun
        for s in (1.0, 3.0)
    )
    assert max_margin_logits(S, tolerance=1e-6).nuclear_norm == pytest.approx(
        best, rel=2e-3
    )


def test_ridge_path_turns_towards_the_largest_margin_and_the_centred_support():
    S = support()
    margin = max_margin_logits(S)
    path = ridge_path(
        centred(S), 12, [1e-1, 1e-2, 1e-3, 1e-4], max_margin=margin.logits
    )
    assert (np.diff(path.max_margin_cosine) > 0).all()
    assert float(path.max_margin_cosine[-1]) > 0.995
    assert float(path.cosine[-1]) > 0.99
    assert (np.diff(path.logit_norm) > 0).all()
    assert float(path.gradient_norm.max()) < 1e-3
    order = np.argsort(-path.projection.values[-1])
    assert np.corrcoef(np.argsort(order), np.arange(11))[0, 1] > 0.9


def test_ridge_path_is_the_same_for_every_dimension_that_is_large_enough():
    S = centred(support(6, 9))
    small, large = (ridge_path(S, d, [0.1, 0.01]) for d in (6, 11))
    assert np.allclose(small.projection, large.projection, rtol=1e-3)


def test_a_ridge_above_the_growth_rate_leaves_nothing():
    with pytest.raises(ArgumentError, match="ridges must go below"):
        ridge_path(centred(support(6, 9)), 6, [1e3])


@pytest.mark.parametrize(
    ("S", "word"),
    [
        (np.full((3, 3), 0.5), "only 0 and 1"),
        (np.array([[1.0, 0.0], [1.0, 0.0]]), "no next word"),
        (np.ones((3, 3)), "every word"),
    ],
)
def test_supports_without_a_margin_are_refused(S, word):
    with pytest.raises(ArgumentError, match=word):
        max_margin_logits(S)


def test_a_margin_that_is_not_found_is_no_margin():
    with pytest.raises(OntogenyError, match="relative gap"):
        max_margin_logits(support(8, 20), tolerance=1e-14, max_iterations=5)


def test_ridge_path_refuses_what_does_not_fit():
    S = centred(support(6, 9))
    with pytest.raises(ArgumentError, match="positive"):
        ridge_path(S, 6, [0.1, -0.1])
    with pytest.raises(ArgumentError, match="max_margin"):
        ridge_path(S, 6, [0.1], max_margin=np.ones((2, 2)))


def test_the_path_finds_concepts_that_stronger_penalties_kept_out():
    S = np.random.default_rng(0).random((8, 20)) < 0.4
    S[1, ~S.any(axis=0)], S[0, S.all(axis=0)] = True, False
    S_centred = S - S.mean(axis=0)
    ridges = [3.0, 0.875, 0.473, 0.255, 0.1]  # each lets more concepts in
    path = ridge_path(S_centred, 8, ridges)
    for ridge in ridges[1:]:
        alone = ridge_path(S_centred, 8, [ridge])
        assert abs(float(path.cosine.sel(ridge=ridge)) - float(alone.cosine[0])) < 1e-4
    strongest = path.sel(ridge=3.0)
    assert float(strongest.logit_norm) == 0 and np.isnan(strongest.cosine)
