"""The world of organisms, its supports, and the test of coarse before fine."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny import semantics
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.wordspace.class_costs import renamings
from ontogeny_papers.reproduce import tasks, training
from ontogeny_papers.semantics.coarse_to_fine import _as_frequent, _random_classes

WORLD = tasks.organism_world()


# ---- the world ----------------------------------------------------------------------------------


def test_first_concepts_are_plants_and_animals_then_mammals():
    basis = semantics.svd_concepts(WORLD.S, k=12)
    assert basis.k == 6  # the paper's rank
    plants = np.isin(WORLD.subjects, ["rose", "tulip", "apple", "oak"])
    assert (np.sign(basis.U[plants, 0]) == -np.sign(basis.U[~plants, 0][0])).all()
    assert (np.sign(basis.U[~plants, 0]) == np.sign(basis.U[~plants, 0][0])).all()
    mammals = np.isin(WORLD.subjects, ["dog", "wolf", "cat", "tiger"])
    others = ~plants & ~mammals
    assert (basis.U[mammals, 1] * basis.U[others, 1] < 0).all()
    assert np.allclose(basis.sigma, [4.09, 2.35, 1.41, 1.41, 1.17, 0.59], atol=0.01)


def test_texts_ids_and_support_say_the_same():
    for j, (text, row) in enumerate(
        zip(WORLD.contexts, WORLD.context_ids, strict=True)
    ):
        assert [WORLD.words[i] for i in row if i >= 0] == text.split()
        true = {s for c, s in WORLD.pairs if c == text}
        assert true == {
            s for s, yes in zip(WORLD.subjects, WORLD.S[:, j], strict=True) if yes
        }
    assert WORLD.words[: len(WORLD.subjects)] == WORLD.subjects
    counted = semantics.support_from_pairs(WORLD.pairs)
    assert counted.S.toarray().sum() == WORLD.S.sum()
    assert np.allclose(
        semantics.svd_concepts(counted, 6).sigma,
        semantics.svd_concepts(WORLD.S, 6).sigma,
    )


# ---- which set is predicted ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["cross_entropy", "square"])
def test_ideal_logits_are_read_as_their_own_sets(loss):
    ideal = 30 * WORLD.S if loss == "cross_entropy" else WORLD.S - WORLD.S.mean(axis=0)
    found = semantics.support_confusion(ideal, WORLD.S, loss=loss, words=WORLD.subjects)
    assert float(found.exact) == float(found.superset) == 1
    assert np.array_equal(np.diag(np.diag(found.confusion)), found.confusion)
    assert int(found.confusion.sum()) == len(WORLD.attributes)
    assert found.true.values[0].split()[0] == "dog"  # the largest set comes first


def test_a_model_that_knows_only_kingdoms_is_never_exact_below_them_but_always_a_superset():
    kingdom = (WORLD.S.T @ WORLD.S > 0).astype(float)
    logits = 30 * (WORLD.S @ kingdom > 0)
    found = semantics.support_confusion(logits, WORLD.S)
    assert float(found.superset) == 1
    # The attributes that name a kingdom.
    assert float(found.exact) == pytest.approx(5 / 13)


def test_confusion_along_training_is_that_of_every_step():
    logits = np.random.default_rng(0).standard_normal((3, *WORLD.S.shape))
    whole = semantics.support_confusion(logits, WORLD.S)
    for i in range(3):
        one = semantics.support_confusion(logits[i], WORLD.S)
        assert np.array_equal(whole.confusion[i], one.confusion)
        assert float(whole.superset[i]) == float(one.superset)


@settings(max_examples=30)
@given(st.integers(0, 9999))
def test_adding_a_number_to_all_logits_of_a_context_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal(WORLD.S.shape)
    moved = logits + rng.standard_normal(WORLD.S.shape[1])
    a, b = (semantics.support_confusion(x, WORLD.S) for x in (logits, moved))
    assert np.array_equal(a.predicted_set, b.predicted_set)


# ---- coarse before fine -------------------------------------------------------------------------


def planted(coarse_at, fine_at, seed=0, steps=80):
    """Logits in which kingdoms appear at one time and the sets within them at another."""
    time = np.arange(steps)
    kingdoms = ["uses sunlight for food", "moves to find food"]
    of_kingdom = np.array([WORLD.S[:, WORLD.attributes.index(k)] for k in kingdoms]).T
    inside = np.array(
        [of_kingdom[:, int(column @ of_kingdom[:, 1] > 0)] for column in WORLD.S.T]
    ).T
    noise = 0.01 * np.random.default_rng(seed).standard_normal((steps, *WORLD.S.shape))
    grows = [5 / (1 + np.exp(-(time - t) / 2)) for t in (coarse_at, fine_at)]
    return time, grows[0][:, None, None] * inside + grows[1][
        :, None, None
    ] * WORLD.S + noise


def test_a_planted_hierarchy_is_found_and_its_size_measured():
    found = semantics.coarse_before_fine(
        *planted(10, 40), WORLD.S, words=WORLD.subjects, n_draws=199
    )
    # Of few classes of words as frequent, one is the planted one.
    assert found.p_value < 0.02
    ratio = np.log2((found.pairs.fine_step + 1) / (found.pairs.coarse_step + 1)).values
    # Mammals were not planted.
    in_kingdom = found.pairs.coarse.values != "dog wolf cat tiger"
    assert in_kingdom.sum() == 8 and ratio[in_kingdom].min() > 1.5
    assert np.abs(ratio[~in_kingdom]).max() < 0.1


def test_the_other_order_is_not_called_coarse_first():
    found = semantics.coarse_before_fine(*planted(70, 10), WORLD.S, n_draws=199)
    assert found.advantage < 0


def test_without_a_hierarchy_the_p_value_is_no_smaller_than_chance():
    """Every context learns its own words one by one in random order: no class is special."""
    rng, time, small = np.random.default_rng(3), np.arange(60), 0
    for _ in range(20):
        at = rng.uniform(5, 50, WORLD.S.shape)
        logits = 6 * WORLD.S / (1 + np.exp(-(time[:, None, None] - at)))
        found = semantics.coarse_before_fine(time, logits, WORLD.S, n_draws=99)
        small += found.p_value <= 0.05
    assert small <= 4  # 1 expected; more than 4 has probability 0.3 %


def words_ruled_out(seed, steps=40):
    """Logits in which every word is ruled out at one random time in all contexts: no class is."""
    rng, time = np.random.default_rng(seed), np.arange(steps)
    at = np.clip(rng.normal(17, 7, (len(WORLD.S), 1)), 1, steps - 2)
    rises, falls = (
        1 / (1 + np.exp(-(time[:, None, None] - t) / 2)) for t in (20.0, at)
    )
    return time, 6 * WORLD.S * rises - 6 * (1 - WORLD.S) * falls


def test_the_level_holds_where_all_pairs_share_their_classes_and_words():
    """With classes drawn for each pair alone the null is half as wide as chance (18 of 100)."""
    found = [
        semantics.coarse_before_fine(
            *words_ruled_out(seed), WORLD.S, n_draws=99, random_state=seed
        )
        for seed in range(100)
    ]
    # 5 expected; 12 or more: 0.4 %.
    assert sum(each.p_value <= 0.05 for each in found) <= 11
    off = [each.advantage - each.null.mean() for each in found]
    assert np.std(off) < 1.4 * np.sqrt(np.mean([each.null.var() for each in found]))


def test_contexts_that_come_twice_change_nothing():
    time, logits = words_ruled_out(0)
    once = semantics.coarse_before_fine(time, logits, WORLD.S, n_draws=49)
    twice = semantics.coarse_before_fine(
        time, np.repeat(logits, 2, axis=2), np.repeat(WORLD.S, 2, axis=1), n_draws=49
    )
    np.testing.assert_allclose(twice.null, once.null, rtol=1e-10)
    assert twice.p_value == once.p_value


def test_random_classes_hold_the_contexts_words_and_any_other_equally_often():
    rng = np.random.default_rng(0)
    own, coarse = np.repeat([1.0, 0], [2, 6]), np.repeat([1.0, 0], [5, 3])
    renamed = rng.permuted(np.tile(np.arange(8), (4000, 1)), axis=1)
    sets = _random_classes(
        own, coarse, renamed, rng.random(renamed.shape), [np.arange(8)]
    )
    assert np.array_equal(np.unique(sets), [0, 1]) and (sets.sum(axis=0) == 5).all()
    assert (sets[:2] == 1).all()
    assert np.abs(sets[2:].mean(axis=1) - 0.5).max() < 5 * 0.5 / np.sqrt(4000)


def frequencies_first(seed, steps=60):
    """Animals are four times as frequent, which is learned first; then word by word, no class."""
    rng, time = np.random.default_rng(seed), np.arange(steps)[:, None, None]
    often = np.exp(np.where(np.arange(12) < 4, -1.5, 0.0) + 0.3 * rng.normal(size=12))
    at = rng.uniform(15, 50, WORLD.S.shape)
    early, late = 1 / (1 + np.exp(-(time - 6.0) / 2)), 1 / (1 + np.exp(-(time - at)))
    return time.ravel(), np.log(often)[:, None] * early + 6 * WORLD.S * late, often


def test_a_model_that_learns_frequencies_first_and_no_class_is_not_called_coarse_first():
    matched, any_word = [], []
    for seed in range(40):
        time, logits, often = frequencies_first(seed)
        for found, frequencies in ((matched, often), (any_word, np.ones(12))):
            test = semantics.coarse_before_fine(
                time,
                logits,
                WORLD.S,
                n_draws=19,
                random_state=seed,
                frequencies=frequencies,
            )
            found.append(test.p_value)
    assert np.sum(np.array(matched) <= 0.05) <= 6  # 2 expected; 7 or more: 0.3 %
    assert np.sum(np.array(any_word) <= 0.05) >= 35  # what matching is for


def test_words_change_places_only_with_words_as_frequent():
    groups = _as_frequent(np.ones((6, 1)), np.array([1.0, 5.0, 1.1, 4.1, 9.0, 1.2]))
    assert [sorted(group.tolist()) for group in groups] == [[4], [1, 3], [0, 2, 5]]
    rng = np.random.default_rng(0)
    renamed = renamings(groups, 200, rng)
    last = rng.random(renamed.shape)
    own, coarse = np.eye(6)[0], np.array([1.0, 1, 1, 0, 0, 0])
    sets = _random_classes(own, coarse, renamed, last, groups)
    assert (sets[0] == 1).all() and (sets[4] == 0).all()
    assert (sets[[1, 3]].sum(axis=0) == 1).all() and (
        sets[[2, 5]].sum(axis=0) == 1
    ).all()
    assert 0.35 < sets[1].mean() < 0.65 and 0.35 < sets[2].mean() < 0.65


def test_where_classes_are_groups_of_frequency_there_is_no_p_value():
    S = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    time = np.arange(30)
    logits = 0.3 * time[:, None, None] * S
    found = semantics.coarse_before_fine(
        time, logits, S, n_draws=9, frequencies=[4.0, 4, 1, 1]
    )
    assert np.isnan(found.p_value) and np.isfinite(found.advantage)


@pytest.mark.parametrize("frequencies", [[1.0, 2.0], [0.0] + [1.0] * 11, [np.nan] * 12])
def test_frequencies_that_are_none_are_refused(frequencies):
    time, logits = words_ruled_out(0)
    with pytest.raises((ArgumentError, NonFiniteError), match="frequencies"):
        semantics.coarse_before_fine(time, logits, WORLD.S, frequencies=frequencies)


def test_sets_without_nesting_have_nothing_coarse():
    with pytest.raises(ArgumentError, match="larger"):
        semantics.coarse_before_fine(np.arange(2), np.zeros((2, 3, 3)), np.eye(3))


# ---- training on contexts -----------------------------------------------------------------------


def test_a_transformer_learns_the_world_and_its_loss_is_the_one_written_out():
    task = training.ContextTask(WORLD.context_ids, WORLD.P)
    model = training.context_model(
        len(WORLD.words), WORLD.context_ids.shape[1], width=32
    )
    data = training.record_logits(model, task, 60, at=[0, 30], learning_rate=5e-3)
    assert data.logits.dims == (
        "step",
        "word",
        "context",
    ) and data.step.values.tolist() == [0, 30, 60]
    found = semantics.support_confusion(data.logits.values, WORLD.S)
    assert (
        float(found.exact[-1]) > float(found.exact[0])
        and float(found.superset[-1]) == 1
    )
    z = data.logits.values[0].astype(np.float64)
    written = -(WORLD.P * (z - np.log(np.exp(z).sum(axis=0)))).sum(axis=0).mean()
    assert float(data.batch_loss[0]) == pytest.approx(written, rel=1e-5)


def test_padding_does_not_change_what_a_context_predicts():
    task = training.ContextTask(WORLD.context_ids, WORLD.P)
    model = training.context_model(
        len(WORLD.words), WORLD.context_ids.shape[1], width=16
    ).eval()
    ids, last, _ = task.batch(np.arange(len(WORLD.attributes)))
    logits = task.logits(model)
    for j, length in enumerate(task.lengths):
        with torch.no_grad():
            alone = model(ids[j : j + 1, :length]).logits[0, -1, : len(WORLD.subjects)]
        assert np.allclose(alone, logits[:, j], atol=1e-5)
        assert int(last[j]) == length - 1


def test_batches_hold_contexts_of_one_length_in_proportion():
    ids = np.array([[0, -1]] * 6 + [[0, 1]] * 2)
    task = training.ContextTask(ids, np.eye(8), batch_size=3)
    generator = torch.Generator().manual_seed(0)
    lengths = [task.sample(generator)[0].shape for _ in range(400)]
    assert set(lengths) == {(3, 1), (2, 2)}
    assert 0.18 < np.mean([s == (2, 2) for s in lengths]) < 0.32


def test_the_same_seed_gives_the_same_run():
    task = training.ContextTask(WORLD.context_ids, WORLD.P, batch_size=4)

    def run():
        model = training.context_model(len(WORLD.words), 10, width=16, random_state=3)
        return training.record_logits(
            model, task, 5, at=[], random_state=4
        ).logits.values

    state = torch.random.get_rng_state()
    assert np.array_equal(run(), run())
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((np.zeros((2, 2), int), np.eye(3)), "ids must be"),
        ((np.array([[0], [-1]]), np.eye(2)), "context 1 has no word"),
        ((np.zeros((2, 1), int), np.ones((2, 2))), "probabilities"),
        ((np.zeros((2, 1), int), np.eye(2), "squared"), "loss_kind"),
        ((np.zeros((2, 1), int), np.eye(2), "square", 0), "batch_size"),
    ],
)
def test_impossible_tasks_are_refused(arguments, word):
    with pytest.raises(ArgumentError, match=word):
        training.ContextTask(*arguments)
