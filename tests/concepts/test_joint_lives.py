"""Joint dictionaries against planted lives, nulls, and lives written down by hand."""

import numpy as np
import pytest

from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint.lives import KINDS, first_half, lives, was_low
from ontogeny.concepts.joint.presence import found_again
from planted_lives import planted_lives

SMALL = {
    "n": 2500,
    "m": 48,
    "steady": 14,
    "born": 14,
    "dying": 6,
    "turning": 6,
    "born_turning": 4,
}


def fitted(run, X=None, **options):
    made = JointDictionary(60, n_active=2, readable=0.4, **{"n_draws": 50, **options})
    return made.fit(run.activations if X is None else X, groups=run.texts)


@pytest.fixture(scope="module")
def run():
    return planted_lives(random_state=11, **SMALL)


@pytest.fixture(scope="module")
def found(run):
    return fitted(run)


def test_planted_features_are_found_and_their_births_are_exact(run, found):
    result = run.recovered(found.codes_, found.lives_.born)
    assert result.found >= 0.94
    assert result.recall >= 0.83
    assert result.exact == 1.0
    assert result.steady == 0


@pytest.mark.parametrize("variant", [{"noise": 1.0}, {"nested": 0.3}, {"growth": 1.0}])
def test_variants_of_the_planted_run(variant):
    run = planted_lives(random_state=12, **{**SMALL, **variant})
    found = fitted(run, reseeds=0, n_draws=0)
    result = run.recovered(found.codes_, found.lives_.born)
    assert result.recall >= 0.69
    assert result.exact >= 0.9
    assert result.steady == 0


def test_features_that_widen_are_not_born():
    run = planted_lives(random_state=13, widening=6, **SMALL)
    result = run.recovered(*_codes_and_births(fitted(run, reseeds=0, n_draws=0)))
    naive = fitted(run, reseeds=0, n_draws=0)
    start = first_half(naive.strength_)
    by_strength = np.where(
        naive.is_concept_ & was_low(naive.strength_, start), start, -1
    )
    assert run.recovered(naive.codes_, by_strength).widening > result.widening
    assert result.widening <= 1
    assert (naive.lives_.kind == "fires on more tokens").any()
    assert (
        naive.lives_.grown_out_of[naive.lives_.kind == "fires on more tokens"] >= 0
    ).all()


def _codes_and_births(found):
    return found.codes_, found.lives_.born


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("null", ["permuted", "jittered"])
def test_nothing_is_born_where_nothing_is(run, null, seed):
    X = getattr(run, null)(random_state=seed)
    found = fitted(run, X, reseeds=0, n_draws=0, random_state=seed)
    assert (found.lives_.born >= 0).sum() == 0
    # Without the rule of readability they would be born in masses.
    if null == "permuted":
        assert was_low(found.strength_, first_half(found.strength_)).sum() > 10
        assert found.is_concept_.sum() <= 2


def test_the_false_birth_rate_is_measured_on_permuted_tokens(run, found):
    assert found.false_birth_rate(run.activations, groups=run.texts) == 0.0


def test_intervals_hold_the_planted_births(run, found):
    result = found.births_
    born = np.flatnonzero(found.lives_.born >= 0)
    with np.errstate(invalid="ignore"):  # latents that there are not have no codes
        correlation = np.nan_to_num(np.corrcoef(run.codes.T, found.codes_.T))
    correlation = correlation[: len(run.born), len(run.born) :]
    truth = run.born[correlation[:, born].argmax(axis=0)]
    assert (result.after[born] < truth).all() and (truth <= result.before[born]).all()
    assert (result.after < result.before)[born].all()
    assert (result.agreement[born] > 0.5).all()
    other = np.setdiff1d(np.arange(len(result.after)), born)
    assert (result.after[other] == -1).all() and (result.before[other] == -1).all()


def test_concepts_are_found_again_with_another_seed(found):
    assert (found.found_again_[found.is_concept_] > 0.7).mean() > 0.9


def _whitened(S, r):
    return np.repeat(np.eye(r)[None], S, axis=0)


def test_rules_of_a_life_by_hand():
    curves = np.array(
        [
            [1.0, 1.0, 1.0, 1.0, 0.9, 1.0],  # steady
            [0.0, 0.1, 0.6, 1.0, 1.0, 1.0],  # born at 2, settled at 3
            [1.0, 0.9, 0.2, 0.1, 0.1, 0.0],  # gone from 2 on
            [0.3, 0.4, 0.6, 0.8, 0.9, 1.0],  # grows, never low
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],  # at the last checkpoint: not confirmed
            [0.0, 0.1, 0.6, 1.0, 1.0, 1.0],  # not readable
        ]
    ).T
    readable = np.full(curves.shape, 0.9)
    readable[:, 5] = [0, 0, 0, 0, 0, 0.95]
    found = lives(curves, readable, _whitened(*curves.shape), 0.6)
    assert found.kind.tolist() == [
        "from the start",
        "born",
        "from the start",
        "grows",
        "born",
        "no concept",
    ]
    assert set(found.kind) <= set(KINDS)
    assert found.born.tolist() == [-1, 2, -1, -1, -1, -1]
    assert found.confirmed.tolist() == [True, True, True, True, False, False]
    assert found.gone.tolist() == [-1, -1, 2, -1, -1, -1]
    assert found.steady.tolist() == [True, False, False, False, False, False]
    assert found.settled.tolist() == [0, 3, -1, 3, -1, 3]


def test_a_younger_concept_with_the_same_decoders_fires_on_more_tokens():
    curves = np.array([[1.0] * 5, [0.0, 0.0, 1.0, 1.0, 1.0]]).T
    same = _whitened(5, 2)
    same[:, 0, 1] = same[:, 1, 0] = 0.6
    found = lives(curves, np.full((5, 2), 0.9), same, 0.6)
    assert found.kind.tolist() == ["from the start", "fires on more tokens"]
    assert found.grown_out_of.tolist() == [-1, 0]
    assert found.born.tolist() == [-1, -1]


def test_a_concept_born_inside_of_another_is_born_when_it_writes_something_of_its_own():
    # Decoders where activations are white: of the older one e0; of the younger one, which fires
    # where the older one does, e0 until index 2 and e0 + 2 e1 from then on.
    old = np.repeat([[1.0, 0.0]], 5, axis=0)
    young = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    D = np.stack([old, young], axis=1)
    whitened = np.einsum("sim,sjm->sij", D, D)
    found = lives(np.linalg.norm(D, axis=2), np.full((5, 2), 0.9), whitened, 0.6)
    assert found.kind.tolist() == ["from the start", "born"]
    assert found.born.tolist() == [-1, 2]
    assert found.inside.tolist() == [-1, 0]
    np.testing.assert_allclose(
        found.own_share[:, 1], [0, 0, 0.8**0.5, 0.8**0.5, 0.8**0.5], atol=1e-9
    )


@pytest.mark.parametrize("method", ["batchtopk", "l1"])
def test_crosscoders_find_planted_features_and_fewer_than_ica(
    run, found, method, monkeypatch
):
    monkeypatch.setattr("ontogeny.concepts.joint.codes.EPOCHS", 15)
    other = fitted(run, method=method, reseeds=0, n_draws=0)
    there = run.recovered(other.codes_, other.lives_.born)
    assert 0.3 < there.found < run.recovered(found.codes_, found.lives_.born).found


def test_rounding_and_the_order_of_tokens_change_nothing_that_is_shown():
    """Activations as noisy as their signal, whose fits from seeds share half of their sources."""
    run = planted_lives(random_state=14, **{**SMALL, "noise": 1.0})
    whole, rng = fitted(run), np.random.default_rng(0)
    shown = np.flatnonzero(whole.is_concept_ & whole.replicates_)
    assert len(shown) > 15
    noisy = run.activations * (1 + 1e-6 * rng.standard_normal(run.activations.shape))
    order = rng.permutation(len(run.texts))
    made = JointDictionary(60, n_active=2, readable=0.4, n_draws=50)
    moved = made.fit(run.activations[:, order], groups=run.texts[order])
    for other, codes in ((fitted(run, noisy), None), (moved, order)):
        own = whole.codes_ if codes is None else whole.codes_[codes]
        correlation, match = found_again(own, other.codes_)
        assert (correlation[shown] > 0.99).all() and other.replicates_[
            match[shown]
        ].all()
        assert (
            other.lives_.born[match[shown]] == whole.lives_.born[shown]
        ).mean() > 0.97


def test_half_of_the_texts_finds_what_is_shown():
    run = planted_lives(random_state=11, **SMALL)
    whole = fitted(run, reseeds=0, n_draws=0)
    shown = whole.is_concept_ & whole.replicates_
    assert (
        shown.sum() > 30 and not whole.replicates_[whole.codes_.sum(axis=0) == 0].any()
    )
    part = run.texts % 2 == 0
    other = JointDictionary(60, n_active=2, readable=0.4, reseeds=0, n_draws=0)
    other.fit(run.activations[:, part], groups=run.texts[part])
    correlation, _ = found_again(whole.codes_[part], other.codes_)
    assert (correlation[shown] > 0.7).mean() >= 0.9
