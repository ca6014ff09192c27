"""One joint dictionary over several runs: planted concepts, chance, streams, bad input."""

import weakref

import numpy as np
import pytest

from ontogeny.concepts import JointDictionary
from ontogeny.concepts.joint.presence import found_again
from ontogeny.errors import ArgumentError
from planted_across import planted_runs

OPTIONS = {"n_concepts": 140, "n_active": 5, "reseeds": 0, "n_draws": 20}


@pytest.fixture(scope="module")
def planted():
    return planted_runs(n=3000, random_state=5)


@pytest.fixture(scope="module")
def found(planted):
    return JointDictionary(**OPTIONS).fit(planted.activations, groups=planted.texts)


@pytest.fixture(scope="module")
def small():
    return planted_runs(
        n=1200,
        widths=(24, 32),
        shared=8,
        private=4,
        noise=0.1,
        dense=0.1,
        random_state=1,
    )


def few(**options):
    return JointDictionary(
        **{"n_concepts": 24, "n_active": 2, "reseeds": 0, "n_draws": 10, **options}
    )


def births(found):
    return np.stack([each.born for each in found.lives_.values()])


def test_shared_concepts_are_found_in_all_runs_and_private_ones_in_their_own(
    planted, found
):
    called = planted.called(found.codes_, found.present_, births(found))
    assert called["shared"] >= 0.95 and called["private"] == 0
    assert called["exact"] >= 0.95 and called["recall"] >= 0.95
    assert found.runs_ == ("seed 0", "seed 1", "seed 2")
    assert (found.present_.sum(axis=1) >= 57).all()


def test_births_of_each_run_lie_within_their_intervals(found):
    for run in found.runs_:
        born, interval = found.lives_[run].born, found.births_[run]
        said = born >= 0
        assert said.sum() > 20
        assert ((interval.after < born) & (born <= interval.before))[said].all()


@pytest.mark.slow
def test_runs_whose_tokens_are_permuted_share_nothing(planted):
    chance = JointDictionary(**OPTIONS).false_shared_rate(
        planted.activations, groups=planted.texts
    )
    assert chance == 0


def test_each_run_develops_alone_where_nothing_is_shared(small):
    order = np.random.default_rng(0).permutation(len(small.texts))
    one = small.activations["seed 0"]
    found = few().fit({"one": one, "again": one[:, order]})
    assert not found.present_.all(axis=0).any()
    assert (found.present_.sum(axis=1) >= 6).all()
    found = few().fit({"one": one, "again": one})
    assert (found.present_[0] == found.present_[1]).all() and found.present_[
        0
    ].sum() >= 10


def test_one_named_run_has_the_numbers_of_a_list(small):
    A = small.activations["seed 0"]
    steps = range(0, 100, 10)
    alone = few().fit(list(A), groups=small.texts, steps=steps)
    named = few().fit({"a": A}, groups=small.texts, steps={"a": steps})
    np.testing.assert_array_equal(alone.codes_, named.codes_)
    np.testing.assert_array_equal(alone.births_.after, named.births_["a"].after)
    np.testing.assert_array_equal(alone.present_, named.present_)
    np.testing.assert_array_equal(alone.born_steps(), named.born_steps()["a"])
    assert alone.runs_ == ("",) and alone.is_concept_.sum() == alone.present_.sum()


def test_decoders_of_each_run_reconstruct_it_in_its_own_width(small):
    found = few().fit(small.activations, groups=small.texts)
    for run, A in small.activations.items():
        again = found.codes_ @ found.components_[run][-1] + found.offsets_[run][-1]
        left = ((A[-1] - again) ** 2).sum() / ((A[-1] - A[-1].mean(axis=0)) ** 2).sum()
        assert abs(1 - left - found.explained_[run][-1]) < 0.03 and left < 0.4


def test_views_are_read_one_at_a_time(small):
    alive, most = set(), 0

    class Lazy:
        def __init__(self, values):
            self.values = values

        def __len__(self):
            return len(self.values)

        def __getitem__(self, t):
            nonlocal most
            made = self.values[t].copy()
            alive.add(id(made))
            weakref.finalize(made, alive.discard, id(made))
            most = max(most, len(alive))
            return made

    lazy = {run: Lazy(A) for run, A in small.activations.items()}
    found = few().fit(lazy, groups=small.texts)
    whole = few().fit(small.activations, groups=small.texts)
    np.testing.assert_array_equal(found.codes_, whole.codes_)
    assert most <= 2  # a name still holds the one before while the next is made


def test_a_run_is_extended_by_its_name(small):
    early = {run: A[:9] for run, A in small.activations.items()}
    found = few().fit(early, groups=small.texts)
    later = {"seed 1": small.activations["seed 1"][9:]}
    assert found.transform_steps(later)["seed 1"].strength.shape == (1, 24)
    found.extend(later, {"seed 1": [9]})
    assert len(found.strength_["seed 0"]) == 9 and len(found.strength_["seed 1"]) == 10
    with pytest.raises(ArgumentError, match="must hold runs of the fit"):
        found.transform_steps({"seed 7": later["seed 1"]})


def test_crosscoders_take_runs_of_unequal_width(small):
    A = {run: values[:, :400] for run, values in small.activations.items()}
    found = few(method="l1", fit_steps=2).fit(A, groups=small.texts[:400])
    assert (
        found.components_["seed 1"].shape == (10, 24, 32)
        and found.present_.any(axis=1).all()
    )


def test_what_does_not_fit_is_refused(small):
    A = small.activations
    for X, steps, groups, message in (
        ({}, None, None, "must name at least one run"),
        ({1: A["seed 0"]}, None, None, "must name at least one run"),
        ({"a": 3}, None, None, r"X\['a'\] must be an array"),
        (
            {"a": A["seed 0"], "b": A["seed 1"][:, :-1]},
            None,
            None,
            "must have the same tokens",
        ),
        (A, range(10), None, "steps must hold one value for each run"),
        (A, {"seed 0": range(10)}, None, "steps must hold one value for each run"),
        (
            A,
            {"seed 0": range(10), "seed 1": range(9)},
            None,
            r"steps\['seed 1'\] must be 10",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            few().fit(X, steps=steps, groups=groups)
    with pytest.raises(ArgumentError, match="at least two named runs"):
        few().false_shared_rate(A["seed 0"])


def test_a_concept_that_a_tuned_model_writes_faintly_is_neither_lost_nor_split():
    """Crosscoders call such a concept lost (complete shrinkage), or give each model its own."""
    rng = np.random.default_rng(7)
    U = rng.exponential(size=(1500, 5)) * (rng.uniform(size=(1500, 5)) < 0.08)
    # Kept, kept, faint, lost, new.
    strength = {"base": [1, 1, 1, 1, 0], "tuned": [1, 1, 0.2, 0, 1]}
    X = {
        name: [(U * s) @ rng.normal(size=(5, 24)) + 0.02 * rng.normal(size=(1500, 24))]
        for name, s in strength.items()
    }
    found = JointDictionary(5, n_active=1, reseeds=0, n_draws=0).fit(X)
    correlation, latent = found_again(U, found.codes_)
    assert (correlation > 0.9).all() and len(set(latent.tolist())) == 5
    assert found.present_[:, latent].tolist() == [
        [True, True, True, True, False],
        [True, True, True, False, True],
    ]
    faint = (
        found.strength_["tuned"][0, latent[2]] / found.strength_["base"][0, latent[2]]
    )
    assert 0.1 < faint < 0.45
