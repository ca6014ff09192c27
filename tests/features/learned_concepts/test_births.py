"""Births from planted curves and planted activations: what is said of each, and what is not."""

import numpy as np
import pytest

from ontogeny.features.learned_concepts import dictionary
from ontogeny.features.learned_concepts.births import Curves, lives, rises
from ontogeny.features.learned_concepts.checkpoint import presence
from ontogeny.features.learned_concepts.components import (
    AGAIN,
    components,
    correlations,
    nearest,
)
from ontogeny.features.learned_concepts.dictionary import sparse_codes
from ontogeny.features.learned_concepts.parts import Predictor, scaled

STEPS = 10


def curve(values):
    return np.array(values, dtype=float)[:, None]


def of(*fits):
    """Return the lives of one component whose fits have the same strength and readability."""
    stacked = np.stack([curve(values) for values in fits])
    return lives(Curves(stacked, stacked))


RISES = [0.1, 0.1, 0.1, 0.5, 0.8, 0.9, 0.9]


def test_a_birth_is_between_its_last_absence_and_its_presence():
    life = of(RISES, RISES, RISES)
    assert life.kind[0] == "born" and (life.start[0], life.share[0]) == (4, 1.0)
    assert life.after[0] <= 2 and life.before[0] >= 4


def test_the_interval_holds_the_birth_of_every_refit():
    later = [0.1, 0.1, 0.1, 0.1, 0.5, 0.8, 0.9]
    life = of(RISES, RISES, later)
    # Of the first two, without checkpoint 2.
    assert (life.after[0], life.before[0]) == (1, 5)


@pytest.mark.parametrize(
    "values",
    [
        [0.7, 0.1, 0.1, 0.5, 0.8, 0.9, 0.9],  # there before, and gone for a while
        [0.5, 0.1, 0.1, 0.5, 0.8, 0.9, 0.9],  # not quite absent at the first checkpoint
        [0.45, 0.45, 0.45, 0.5, 0.8, 0.9, 0.9],  # never absent
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9],  # only at the last checkpoint
        [0.1, 0.1, 0.8, 0.1, 0.1, 0.1, 0.9],  # not there at the next checkpoint
    ],
)
def test_what_is_no_birth(values):
    assert of(values, values, values).kind[0] != "born"


def test_one_half_that_does_not_say_born_is_enough_against_it():
    never_absent = [0.45, 0.45, 0.45, 0.5, 0.8, 0.9, 0.9]
    assert of(RISES, RISES, never_absent).kind[0] == "grows"
    assert of(RISES, RISES, [0.0] * 7).kind[0] == "grows"
    assert of(RISES, RISES, RISES, [0.0] * 7).share[0] == pytest.approx(3 / 4)


def test_a_fit_made_before_a_birth_does_not_count_against_it():
    late = [0.1, 0.1, 0.1, 0.1, 0.1, 0.8, 0.9, 0.9]
    stacked = np.stack([curve(values) for values in (late, late, late, [0.0] * 8)])
    curves = Curves(stacked, stacked)
    for place, share in ((4, 1), (6, 3 / 4)):
        fitted = np.array([7, 7, 7, place])
        assert lives(curves, fitted).share[0] == pytest.approx(share)
        assert lives(curves, fitted).kind[0] == "born"


def test_what_the_first_checkpoint_gives_when_it_only_grows_is_no_birth():
    stacked = np.stack([curve(RISES)] * 3)
    curves = Curves(stacked, stacked)
    for readable, kind in ((0.1, "born"), (0.39, "born"), (0.4, "grows"), (1, "grows")):
        grown = np.array([[0.0], [0.0], [readable]])  # one of the fits is enough
        life = lives(curves, grown=grown)
        assert life.kind[0] == kind
        assert life.births[:, 0].any() and (life.share[0] == 1) == (kind == "born")


def test_a_control_without_components_has_no_lives():
    """Of the demo's run on fewer tokens the controls had none, and their summary failed."""
    none = np.zeros((3, 6, 0))
    found = lives(Curves(none, none))
    assert found.kind.shape == (0,) and found.births.shape[1] == 0


def test_a_dip_of_strength_of_what_can_be_read_is_no_birth():
    strength = curve([0.05, 0.9, 0.9, 0.9, 0.9])
    readable = curve([0.9, 0.9, 0.9, 0.9, 0.9])
    assert not rises(readable, strength).born.any()


def test_what_is_gone_at_the_end_fades_from_then_on():
    fades = [0.9, 0.9, 0.9, 0.3, 0.1, 0.1]
    life = of(fades, fades, fades)
    assert (life.kind[0], life.gone[0]) == ("from the start", 4)
    assert of(RISES, RISES, RISES).gone[0] == -1


@pytest.mark.parametrize("half", [[0.9] * 6, [0.9, 0.9, 0.9, 0.9, 0.9, 0.1]])
def test_what_a_half_or_one_checkpoint_alone_misses_has_not_faded(half):
    fades = [0.9, 0.9, 0.9, 0.3, 0.1, 0.1]
    assert of(fades, fades, half).gone[0] == -1
    assert of(half, half, half).gone[0] == -1


# ---- planted activations -------------------------------------------------------------------------


class Planted:
    """Sparse codes, each written from a checkpoint on, in directions of its own, and noise."""

    def __init__(self, seed, births, gone=None, rate=0.03, noise=0.3, n=6000, m=48):
        self.rng = np.random.default_rng(seed)
        r = len(births)
        fires = self.rng.random((n, r)) < rate
        self.codes = fires * self.rng.gamma(4.0, 0.5, size=(n, r))
        self.D = self.rng.normal(size=(r, m)) / np.sqrt(m)
        self.births, self.gone = np.array(births), np.array(gone or [STEPS] * r)
        self.half, self.noise = np.arange(n) < n // 2, noise

    def at(self, step, dense=0.0):
        there = (step >= self.births) & (step < self.gone)
        X = (self.codes * there) @ self.D
        X = X + self.noise / np.sqrt(self.D.shape[1]) * self.rng.normal(size=X.shape)
        if dense:
            X = X + dense * self.rng.normal(size=(len(X), 1)) * self.rng.normal(
                size=X.shape[1]
            )
        return scaled(X)

    def lives(self, step=STEPS - 1, **dense):
        """Return components that both halves find, which planted code each is, and its life."""
        found = components(self.at(step), self.half, len(self.births), 0)
        found = found.kept(np.flatnonzero(found.again >= AGAIN))
        fits = np.concatenate([found.codes[None], found.halves])
        parts = [
            presence(Predictor(self.at(t, dense.get(f"at_{t}", 0.0)), self.half), fits)
            for t in range(STEPS)
        ]
        life = lives(Curves(*(np.stack(p, axis=1) for p in zip(*parts, strict=True))))
        correlation = np.corrcoef(self.codes.T, found.codes.T)[
            : len(self.births), len(self.births) :
        ]
        return np.abs(correlation).argmax(axis=0), np.abs(correlation).max(axis=0), life


def test_planted_births_are_found_exactly_and_nothing_else_is_born():
    births = [0] * 8 + [3, 4, 5, 6, 7] * 3
    which, r, life = Planted(0, births).lives()
    truth = np.array(births)[which]
    assert len(set(which)) >= 0.95 * len(births) and r.min() > 0.9
    born = life.kind == "born"
    assert (born == (truth > 0)).all()
    assert (life.start[born] == truth[born]).all()
    assert ((life.after < truth) & (truth <= life.before))[born].all()


def test_a_constant_concept_beside_a_dense_direction_is_not_born():
    for step in ("at_0", "at_2"):
        _, _, life = Planted(1, [0] * 12).lives(**{step: 3.0})
        assert len(life.kind) and not (life.kind == "born").any()


def test_fading_components_are_found_where_they_are_there():
    planted = Planted(2, [0] * 10, [STEPS] * 6 + [6] * 4)
    which, _, life = planted.lives(step=5)
    fades = np.isin(which, [6, 7, 8, 9])
    assert (
        fades.sum() >= 3
        and (life.gone[fades] == 6).all()
        and (life.gone[~fades] == -1).all()
    )


def test_a_sparse_dictionary_finds_more_components_than_dimensions():
    """Planted: 30 sparse codes in 16 dimensions."""
    rng = np.random.default_rng(5)
    n, m, r = 12_000, 16, 30
    codes = (rng.random((n, r)) < 0.03) * rng.gamma(8.0, 0.25, size=(n, r))
    D = rng.normal(size=(r, m))
    X = scaled(codes @ (D / np.linalg.norm(D, axis=1, keepdims=True)))
    half = np.arange(n) < n // 2

    def planted(found):
        again = found.codes[:, found.again >= AGAIN]
        correlation = np.corrcoef(codes.T, again.T)[:r, r:]
        return int((np.abs(correlation).max(axis=1) >= AGAIN).sum()), again.shape[1]

    alone, count = planted(components(X, half, m, 0))
    more, with_latents = planted(components(X, half, m, 0, latents=2 * r))
    assert alone <= count <= m
    assert more >= 1.5 * alone and more > m
    # Of 16 independent components most are mixtures; of those that latents add most are planted.
    assert more - alone >= 0.75 * (with_latents - count)


def test_a_sparse_dictionary_of_noise_adds_nothing():
    X = scaled(np.random.default_rng(6).normal(size=(6000, 16)))
    found = components(X, np.arange(6000) < 3000, 16, 0, latents=48)
    assert (found.again >= AGAIN).sum() <= 1


def test_a_latent_that_is_active_on_many_tokens_is_none(monkeypatch):
    """Planted: a code at two tokens in three, beside sparse ones."""
    rng = np.random.default_rng(8)
    n, m, r = 4000, 12, 8
    codes = (rng.random((n, r)) < 0.04) * rng.gamma(8.0, 0.25, size=(n, r))
    codes[:, 0] = (rng.random(n) < 0.67) * rng.gamma(8.0, 0.25, size=n)
    X = scaled(codes @ np.linalg.qr(rng.normal(size=(m, m)))[0][:r])

    def found():
        latents = sparse_codes(X, np.ones(n, dtype=bool), scaled(codes), 2 * m, 0)
        return np.abs(correlations(codes, latents)).max(axis=1)

    assert found()[0] < AGAIN <= np.median(found()[1:])
    monkeypatch.setattr(dictionary, "DENSE", 1.0)
    assert found()[0] >= AGAIN


def test_noise_has_hardly_a_component_that_both_halves_find():
    X = scaled(np.random.default_rng(3).normal(size=(6000, 24)))
    assert (components(X, np.arange(6000) < 3000, 24, 0).again >= AGAIN).sum() <= 1


def test_a_code_that_is_not_there_is_matched_by_nothing():
    codes = np.random.default_rng(4).normal(size=(100, 3)).astype(np.float32)
    matched, r = nearest(codes, np.zeros((100, 0), dtype=np.float32))
    assert not matched.any() and not r.any()
    for none in (codes[:, :0], np.zeros((100, 0))):
        assert nearest(none, codes)[0].shape == (100, 0)
    signed, r = nearest(codes, -codes[:, ::-1])
    np.testing.assert_allclose(signed, codes, rtol=1e-6)
    np.testing.assert_allclose(r, 1, atol=1e-5)
