"""The estimator of joint dictionaries: closed forms, invariances, streams, bad input."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint import whitening
from ontogeny.concepts.joint.codes import METHODS, _readout, sparse
from ontogeny.concepts.joint.presence import found_again
from ontogeny.concepts.joint.runs import StaleDictionaryWarning
from ontogeny.errors import ArgumentError, NonFiniteError
from planted_lives import planted_lives

FEW = {"steady": 8, "born": 6, "dying": 3, "turning": 3, "born_turning": 0}


@pytest.fixture(scope="module")
def run():
    return planted_lives(n=1500, m=24, random_state=3, **FEW)


def make(**options):
    return JointDictionary(
        **{"n_concepts": 24, "n_active": 1, "readable": 0.4, **options}
    )


@pytest.fixture(scope="module")
def found(run):
    return make().fit(run.activations, groups=run.texts)


def test_shapes_and_the_reconstruction_that_decoders_give(run, found):
    S, n, m = run.activations.shape
    assert found.codes_.shape == (n, 24) and found.components_.shape == (S, 24, m)
    assert (
        found.strength_.shape == found.readable_.shape == found.floor_.shape == (S, 24)
    )
    assert (found.codes_ >= 0).all() and 0 < (found.codes_ > 0).sum() <= n
    used = int((found.codes_.sum(axis=0) > 0).sum())
    for t in (0, S - 1):
        A = run.activations[t].astype(np.float64)
        design = np.column_stack([found.codes_, np.ones(n)])
        exact = design @ np.linalg.lstsq(design, A, rcond=None)[0]
        np.testing.assert_allclose(
            found.codes_ @ found.components_[t] + found.offsets_[t],
            exact,
            atol=2e-4 * A.std(),
        )
        left = ((A - exact) ** 2).sum() / ((A - A.mean(axis=0)) ** 2).sum()
        np.testing.assert_allclose(
            found.explained_[t], 1 - left * n / (n - 1 - used), atol=1e-4
        )


def test_strength_of_noiseless_independent_features_is_their_share_of_the_variance():
    rng = np.random.default_rng(0)
    U = (rng.exponential(size=(4000, 3)) * (rng.uniform(size=(4000, 3)) < 0.1)).astype(
        np.float32
    )
    size = np.array([[3.0, 2, 1], [3, 2, 0]])
    X = np.stack([(U * s) @ np.eye(3, 8) for s in size]) + 5.0
    found = JointDictionary(3, n_active=1, reseeds=0).fit(X)
    correlation, match = found_again(U, found.codes_)
    assert (correlation > 0.99).all()
    share = size**2 * U.var(axis=0)
    share = np.sqrt(share / share.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.strength_[:, match], share, atol=0.02)


def test_strength_of_pure_noise_is_nothing_on_average():
    rng = np.random.default_rng(1)
    found = JointDictionary(20, n_active=2, reseeds=0).fit(
        rng.normal(size=(1, 3000, 30))
    )
    with pytest.warns(StaleDictionaryWarning):
        later = found.transform_steps(rng.normal(size=(12, 3000, 30)))
    squared = np.where(later.strength > 0, later.strength**2 + later.floor**2, np.nan)
    assert np.nanmean(squared) < 2 * np.mean(later.floor**2)
    assert (later.strength == 0).mean() > 0.3
    assert np.abs(later.readable).mean() < 0.03


def test_nothing_depends_on_the_basis_the_size_or_the_mean_of_a_checkpoint(run, found):
    rng = np.random.default_rng(2)
    m = run.activations.shape[2]
    moved = np.stack(
        [
            10.0 ** rng.uniform(-4, 4)
            * A.astype(np.float64)
            @ np.linalg.qr(rng.normal(size=(m, m)))[0]
            for A in run.activations
        ]
    )
    moved += rng.normal(size=(len(moved), 1, m)) * moved.std(axis=(1, 2), keepdims=True)
    other = make().fit(moved, groups=run.texts)
    correlation, match = found_again(found.codes_, other.codes_)
    # Dense directions have no sparse code of their own: which mixture is found is chance.
    concept = found.is_concept_ & (found.found_again_ > 0.95)
    assert concept.sum() > 10 and (correlation[concept] > 0.98).all()
    here, there = found.strength_[:, concept], other.strength_[:, match[concept]]
    # But where two latents share their tokens.
    near = np.abs(here - there).max(axis=0) < 0.03
    assert near.mean() > 0.9
    first, second = np.flatnonzero(concept)[near], match[concept][near]
    assert (other.lives_.born[second] == found.lives_.born[first]).all()
    assert (other.lives_.kind[second] == found.lives_.kind[first]).all()


def test_streams_give_the_numbers_of_arrays(run, found):
    class Lazy:
        most, alive = 0, 0

        def __len__(self):
            return len(run.activations)

        def __getitem__(self, t):
            return run.activations[t]

    kinds = [
        list(run.activations),
        Lazy(),
        lambda: iter(run.activations),
        torch.from_numpy(run.activations),
    ]
    for X in kinds:
        other = make().fit(X, groups=run.texts)
        np.testing.assert_array_equal(other.codes_, found.codes_)
        np.testing.assert_array_equal(other.strength_, found.strength_)
        np.testing.assert_array_equal(other.births_.after, found.births_.after)


def _kernel_of(n):
    return np.zeros((n, n), dtype=np.float32, order="F")


def test_kernel_of_tokens_and_stack_give_the_same_directions(run):
    steps = [
        np.ascontiguousarray(A - A.mean(axis=0)) for A in run.activations[:, :, :8]
    ]
    steps = [(A / A.std()).astype(np.float32) for A in steps]
    gathered = [
        whitening.Gathered(len(steps[0]), 8, 10, stacked=True) for _ in range(2)
    ]
    gathered[1]._kernel = _kernel_of(len(steps[0]))
    for each in gathered:
        for X in steps:
            each.add(X)
    stack, kernel = (each.whitened(20, 0) for each in gathered)
    np.testing.assert_allclose(stack.T @ stack / len(stack), np.eye(20), atol=1e-3)
    cosines = np.linalg.svd(stack.T @ kernel / len(stack))[1]
    assert (cosines > 0.99).all()


def test_a_fit_from_the_kernel_finds_the_concepts_of_the_stack(run, found, monkeypatch):
    whole = whitening.Gathered.__init__

    def kernel(self, n, m, count, *, stacked=False):
        whole(self, n, m, count, stacked=stacked)
        self._kernel = _kernel_of(n)

    monkeypatch.setattr(whitening.Gathered, "__init__", kernel)
    other = make().fit(run.activations, groups=run.texts)
    correlation, _ = found_again(found.codes_, other.codes_)
    assert np.median(correlation[found.is_concept_]) > 0.99


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_sparse_codes_and_repeats_itself(run, method, monkeypatch):
    monkeypatch.setattr("ontogeny.concepts.joint.codes.EPOCHS", 5)
    X = run.activations[::3]
    first, second = (
        make(method=method, reseeds=0, n_draws=0).fit(X, groups=run.texts)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.codes_, second.codes_)
    assert 0 < (first.codes_ > 0).sum() <= X.shape[1]
    assert np.isfinite(first.strength_).all() and (first.explained_ > 0.1).all()


def test_checkpoints_outside_the_fit_are_decoded_like_the_others(run):
    found = make(fit_steps=(0, 3, 6, 9)).fit(run.activations, groups=run.texts)
    assert found.fit_steps_.tolist() == [0, 3, 6, 9] and len(found.strength_) == 10
    again = found.transform_steps(run.activations[4:6])
    np.testing.assert_allclose(
        again.strength, found.strength_[4:6], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        again.readable, found.readable_[4:6], rtol=1e-5, atol=1e-6
    )


def test_extending_gives_what_a_fit_on_the_same_steps_gives(run):
    whole = make(fit_steps=tuple(range(8)), reseeds=0).fit(
        run.activations, groups=run.texts, steps=np.arange(10) * 5
    )
    part = make(fit_steps=None, reseeds=0).fit(
        run.activations[:8], groups=run.texts, steps=np.arange(8) * 5
    )
    part.extend(run.activations[8:], steps=[40, 45])
    np.testing.assert_allclose(part.strength_, whole.strength_, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(part.lives_.kind, whole.lives_.kind)
    np.testing.assert_allclose(
        part.components_, whole.components_, rtol=1e-5, atol=1e-5
    )
    assert part.steps_.tolist() == whole.steps_.tolist() == list(range(0, 50, 5))
    with pytest.raises(ArgumentError, match="increasing"):
        part.extend(run.activations[9:], steps=[45])


def test_a_stale_dictionary_says_so(run):
    found = make(reseeds=0).fit(run.activations[:5], groups=run.texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.transform_steps(run.activations[3:5])
    other = planted_lives(n=1500, m=24, random_state=99, **FEW)
    with pytest.warns(StaleDictionaryWarning, match="Fit again"):
        found.transform_steps(other.activations[-1:])


def test_a_birth_at_the_last_checkpoint_is_not_confirmed(run, found):
    late = int(found.lives_.born[found.lives_.born > 2].min())
    cut = make(reseeds=0).fit(run.activations[: late + 1], groups=run.texts)
    assert (cut.lives_.born < late).all()
    assert not cut.lives_.confirmed[cut.lives_.start == late].any()


def test_constant_checkpoints_and_features_hold_no_concept(run):
    X = run.activations.astype(np.float64).copy()
    X[0] = 7.0
    X[:, :, 0] = 1e8
    found = make(reseeds=0).fit(X, groups=run.texts)
    assert (found.strength_[0] == 0).all() and (found.readable_[0] == 0).all()
    assert np.isfinite(found.components_).all() and (found.components_[0] == 0).all()


def test_more_latents_than_directions_stay_empty():
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(3, 200, 2))
    found = JointDictionary(20, n_active=1, reseeds=0).fit(X)
    assert ((found.codes_ == 0).all(axis=0)).sum() >= 14
    assert np.isfinite(found.strength_).all() and np.isfinite(found.readable_).all()


def test_fewer_tokens_are_drawn_by_the_seed(run):
    found = make(max_tokens=600, reseeds=0).fit(run.activations, groups=run.texts)
    assert (
        len(found.rows_) == len(found.codes_) == 600
        and (np.diff(found.rows_) > 0).all()
    )


def test_clone_pickle_and_parameters(run, found):
    copy = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(
        copy.transform_steps(run.activations[:1]).strength,
        found.transform_steps(run.activations[:1]).strength,
    )
    other = clone(found)
    assert not hasattr(other, "codes_") and other.get_params() == found.get_params()
    assert "n_active=1" in repr(found)
    with pytest.raises(NotFittedError):
        other.transform_steps(run.activations)


def test_half_of_the_texts_predicts_the_other_half(run):
    found = make(reseeds=0).fit(run.activations, groups=run.texts)
    for text in np.unique(run.texts):
        assert len(set(found._tokens.half[run.texts == text])) == 1
    assert 0.4 < found._tokens.half.mean() < 0.6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_concepts": 0}, "n_concepts must be a whole number of at least 1"),
        ({"method": "nmf"}, "method must be one of 'ica', 'svd', 'batchtopk', 'l1'"),
        (
            {"n_active": 25},
            "n_active must be a whole number of at least 1 and at most 24",
        ),
        ({"fit_steps": (0, 10)}, "fit_steps must hold indexes from 0 to 9"),
        ({"fit_steps": (0, 1.5)}, "fit_steps must be a whole number of at least 0"),
        ({"scale": "layer"}, "scale must be one of 'step', 'none'"),
        ({"readable": 1.5}, "readable must be a finite number"),
        ({"reseeds": -1}, "reseeds must be a whole number of at least 0"),
        ({"max_tokens": 3}, "max_tokens must be a whole number of at least 4"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_arguments_out_of_range_are_named(run, given, message):
    with pytest.raises(ArgumentError, match=message):
        make(**given).fit(run.activations, groups=run.texts)


def test_bad_activations_are_refused(run):
    X = run.activations.copy()
    X[4, 3, 2] = np.nan
    with pytest.raises(NonFiniteError, match=r"X\[4\] holds 1 NaN"):
        make().fit(X)
    with pytest.raises(ArgumentError, match="its shape is"):
        make().fit(X[0])
    with pytest.raises(ArgumentError, match="read more than once; got generator"):
        make().fit(x for x in run.activations)
    with pytest.raises(ArgumentError, match=r"X\[1\] has \(1400, 24\)"):
        make().fit([run.activations[0], run.activations[1][:1400]])
    with pytest.raises(
        ArgumentError, match="groups must hold one text for each of the 1500"
    ):
        make().fit(run.activations, groups=np.zeros(3))
    with pytest.raises(ArgumentError, match="at least two texts"):
        make().fit(run.activations, groups=np.zeros(1500))
    with pytest.raises(ArgumentError, match="steps must be 10 increasing numbers"):
        make().fit(run.activations, steps=[1, 2])
    with pytest.raises(ArgumentError, match="steps must be 10 increasing numbers"):
        make().fit(run.activations, steps=[*range(9), np.nan])
    with pytest.raises(ArgumentError, match="at least one checkpoint; it gave none"):
        make().fit(lambda: iter([]))


def test_sparse_keeps_the_largest_and_turns_to_the_right():
    rng = np.random.default_rng(0)
    codes = rng.exponential(size=(100, 5)) * [1, -2, 3, -4, 0]
    kept = sparse(codes, 2)
    assert (kept > 0).sum() == 200 and (kept[:, 4] == 0).all()
    np.testing.assert_array_equal(
        kept, sparse(codes * [-1, 5, -7, 1, 1], 2).astype(kept.dtype)
    )


def test_rounding_that_leaves_a_negative_variance_is_read_as_none():
    """On one processor a study of eight nearly collinear codes ended in a singular matrix."""
    D, gram = np.array([[1.0, 0.0, 0.0]]), np.array([[1.02]])
    weights = _readout(D, gram, np.eye(3))
    size = 1e-2 * (3 - 1.02) / 3  # what is added to every variance
    np.testing.assert_allclose(weights, [[1 / size], [0], [0]], rtol=1e-10, atol=1e-10)
