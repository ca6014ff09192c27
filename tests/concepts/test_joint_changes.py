"""What a tuned model kept, lost, got and turned: planted, without the artefacts of crosscoders."""

from dataclasses import replace

import numpy as np
import pytest

from ontogeny.concepts import JointDictionary, concept_changes
from ontogeny.concepts.joint.presence import Presence, found_again

N, M, EACH = 3000, 32, 4
KINDS = np.repeat(["kept", "faint", "turned", "lost", "new"], EACH)
FAINT = 0.15  # of its strength in the base


def models_of(seed, *, own_basis=False, width=M, background=0.3):
    """Four concepts of each kind in a base and a tuned model, with dense noise of their own."""
    rng = np.random.default_rng(seed)
    U = rng.exponential(size=(N, len(KINDS))) * (
        rng.uniform(size=(N, len(KINDS))) < 0.06
    )
    base = rng.normal(size=(len(KINDS), M)) / np.sqrt(M)
    tuned = base.copy()
    tuned[KINDS == "turned"] = rng.normal(size=(EACH, M)) / np.sqrt(M)
    tuned *= np.select([KINDS == "faint", KINDS == "lost"], [FAINT, 0.0], 1.0)[:, None]
    base *= (KINDS != "new")[:, None]
    if own_basis:
        tuned = tuned @ rng.normal(size=(M, width)) / np.sqrt(M)
    found = {}
    for name, D in (("base", base), ("tuned", tuned)):
        dense = (
            rng.normal(size=(N, 3)) @ rng.normal(size=(3, D.shape[1])) * background / 6
        )
        found[name] = [U @ D + dense + 0.01 * rng.normal(size=(N, D.shape[1]))]
    return U, found


def fitted(X, **options):
    options = {"n_active": 2, "reseeds": 0, "n_draws": 0, **options}
    return JointDictionary(24, **options).fit(
        X, groups=np.arange(len(X["base"][0])) // 20
    )


def changes_of(found, X, **options):
    there = found.presence_
    return concept_changes(*(there[name] for name in X), found.replicates_, **options)


@pytest.fixture(scope="module")
def planted():
    U, X = models_of(3)
    found = fitted(X)
    return U, X, found, changes_of(found, X)


def test_what_was_planted_is_said_of_every_concept(planted):
    U, _, found, changes = planted
    correlation, latent = found_again(U, found.codes_)
    assert (correlation > 0.9).all() and len(set(latent.tolist())) == len(KINDS)
    wanted = np.where(KINDS == "faint", "kept", KINDS)
    assert changes.kind[latent].tolist() == wanted.tolist()
    counts = changes.counts()
    assert (
        counts["lost"] == counts["new"] == counts["turned"] == EACH
        and changes.common_basis
    )


def test_ratios_and_cosines_are_those_that_were_planted(planted):
    U, X, found, changes = planted
    latent = found_again(U, found.codes_)[1]
    spread = {name: np.sqrt(A[0].var(axis=0).sum()) for name, A in X.items()}
    kept, faint = latent[KINDS == "kept"], latent[KINDS == "faint"]
    # Strengths are shares of each model's variance.
    size = spread["base"] / spread["tuned"]
    for chosen, planted_ratio in ((kept, size), (faint, FAINT * size)):
        assert (changes.low[chosen] <= planted_ratio * 1.05).all()
        assert (changes.high[chosen] >= planted_ratio * 0.95).all()
    np.testing.assert_allclose(changes.cosine[kept], 1, atol=0.05)
    assert (np.abs(changes.cosine[latent[KINDS == "turned"]]) < 0.5).all()


def test_a_faint_concept_is_not_shrunk_to_none(planted):
    """Complete shrinkage: an L1 penalty drops a small decoder, and the concept looks lost."""
    U, _, found, changes = planted
    latent = found_again(U, found.codes_)[1][KINDS == "faint"]
    assert (changes.kind[latent] == "kept").all()
    assert (changes.low[latent] > 0.1).all() and (changes.high[latent] < 0.3).all()
    assert (changes.cosine[latent] > 0.7).all()


def split(U, codes):
    """Return (f,) how many latents stand for each planted concept."""
    centred = [A - A.mean(axis=0) for A in (U, codes)]
    unit = [A / np.maximum(np.linalg.norm(A, axis=0), 1e-30) for A in centred]
    return (unit[0].T @ unit[1] > 0.4).sum(axis=1)


def test_a_turned_concept_is_one_latent_and_not_one_of_each_model(planted):
    """Latent decoupling: two latents that fire together cost a crosscoder no more than one."""
    U, X, found, changes = planted
    assert (split(U, found.codes_) == 1).all()
    few = slice(300)  # enough for a crosscoder to show it
    trained = fitted({name: [A[0][few]] for name, A in X.items()}, method="l1")
    same = concept_changes(trained.presence_["base"], trained.presence_["tuned"])
    said = same.kind[found_again(U[few], trained.codes_)[1]]
    assert (said != np.where(KINDS == "faint", "kept", KINDS)).any()
    assert (
        split(U[few], trained.codes_).max() > 1 and changes.counts()["turned"] == EACH
    )


def test_a_model_beside_itself_has_lost_and_got_nothing():
    _, X = models_of(4)
    rng = np.random.default_rng(0)
    again = {
        "base": X["base"],
        "tuned": [X["base"][0] + 0.01 * rng.normal(size=(N, M))],
    }
    changes = changes_of(fitted(again), again)
    assert changes.counts()["kept"] == 4 * EACH
    assert not any(
        changes.counts()[kind] for kind in ("lost", "new", "turned", "unclear")
    )


@pytest.mark.parametrize("width", [M, 56])
def test_nothing_is_called_turned_between_bases_of_their_own(width):
    _, X = models_of(5, own_basis=True, width=width)
    changes = changes_of(fitted(X), X)
    counts = changes.counts()
    assert not changes.common_basis and counts["turned"] == 0
    assert (counts["lost"], counts["new"], counts["kept"]) == (EACH, EACH, 3 * EACH)


def test_tokens_in_another_order_keep_nothing():
    _, X = models_of(6)
    rng = np.random.default_rng(0)
    X["tuned"] = [X["tuned"][0][rng.permutation(N)]]
    assert changes_of(fitted(X), X).counts()["kept"] == 0


def test_a_concept_between_lost_and_kept_is_said_to_be_unclear(planted):
    there = planted[2].presence_["base"]
    third = replace(there, strength=there.strength / 3, readable=there.readable - 0.6)
    kinds = concept_changes(there, third).kind
    assert set(kinds.tolist()) == {"unclear", "no concept"}


@pytest.mark.filterwarnings("error")
def test_stored_presences_in_single_precision_give_the_same(planted):
    _, X, found, changes = planted
    there = [found.presence_[name] for name in X]
    fields = type(there[0]).__annotations__
    single = [
        replace(one, **{f: getattr(one, f).astype(np.float32) for f in fields})
        for one in there
    ]
    for presence in single:  # one that is written nowhere, without noise
        presence.strength[0, 0] = presence.floor[0, 0] = 0
    again = concept_changes(*single, found.replicates_)
    assert again.kind[1:].tolist() == changes.kind[1:].tolist()
    np.testing.assert_allclose(
        again.cosine[1:], changes.cosine[1:], rtol=1e-4, atol=1e-5
    )
    assert np.isnan(again.cosine[0])


def faded(readable, strength=0.07, turned=False):
    """The same concept at two checkpoints, of which the second writes little and reads it less."""

    def at(strength, readable):
        one = np.full((1, 1), strength)
        return Presence(
            decoders=np.full((1, 1, 3), strength),
            strength=one,
            floor=np.full((1, 1), 0.1),
            readable=np.full((1, 1), readable),
            influence=np.zeros((1, 5, 1)),
            spread=np.full((1, 1), 1e-6),
            explained=np.ones(1),
            whitened=np.zeros((1, 0, 0)),
        )

    second = at(strength, readable)
    if turned:
        second = replace(second, decoders=second.decoders * np.array([1, -1, 0.0]))
    return concept_changes(at(1.0, 0.9), second, common_basis=True)


def test_a_concept_that_faded_to_where_nothing_more_is_known_of_it_is_not_called_kept():
    """Five concepts at 0 to 10 % of their peak, read at .54 to .60, were "kept"."""
    assert faded(0.54).kind == ["unclear"]
    assert faded(0.9).kind == ["unclear"]  # the direction is below its noise
    assert faded(0.54, 0.8).kind == ["kept"]
    assert faded(0.54, 0.15, turned=True).kind == ["unclear"]
    assert faded(0.9, 0.15, turned=True).kind == ["turned"]
    # Faint, and plainly read in a known direction.
    assert faded(0.9, 0.15).kind == ["kept"]
