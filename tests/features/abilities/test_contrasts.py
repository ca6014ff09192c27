"""Contrasts: the words in which pairs differ, and that a liking for words is no ability."""

import itertools

import numpy as np
import pytest

from helpers.paths import DATA
from ontogeny.features.abilities.contrasts import Ties, ties_of_words, words_apart
from ontogeny.features.abilities.exact_tests import (
    exchange_law,
    guess_law,
    p_above,
    p_changed,
)
from ontogeny.features.abilities.guesses import guesses, one_answer
from ontogeny.features.abilities.intervals import LEVEL, Chance, share_interval
from ontogeny.observables import MinimalPairs


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("He is here.", "He are here.", ("is", "are")),
        ("IS he here?", "Are he here?", ("is", "are")),
        ("he does not run", "he does run", ("not", "")),
        ("themselves were", "himself was", ("themselves were", "himself was")),
        ("a big dog", "a dog big", ("", "")),
        ("from Rome", "from rome", ("(capitals)", "(no capitals)")),
        ("the end.", "the end .", ("(no spaces)", "(spaces)")),
        ("我们很好", "我们好很", ("", "")),
        ("他吃了饭", "他吃着饭", ("了", "着")),
        ("ฉันกิน", "ฉันดิน", ("ก", "ด")),
    ],
)
def test_words_apart_are_those_of_one_text_alone(right, wrong, words):
    assert words_apart(right, wrong) == words
    assert words_apart(wrong, right) == words[::-1]


def test_contrasts_count_in_either_direction_and_those_that_share_a_word_are_one_cluster():
    ties = ties_of_words(
        ["is", "are", "ever", "ever", "", "", "not"],
        ["are", "is", "really", "also", "", "", ""],
    )
    assert ties.contrast.tolist() == [0, 0, 1, 2, 3, 4, 5]
    assert ties.cluster.tolist() == [0, 0, 1, 1, 2, 3, 4]
    assert ties.side[0] == -ties.side[1] != 0 and ties.side[4] == 0
    assert ties.liking == pytest.approx((2 * 0.5 + 3 * 1 + 2 * 0.5) / 7)


def brute_law(votes, ties):
    """Return the law of the sum by all exchanges: choices in contrasts, words of clusters."""
    toward = votes * np.where(ties.side == 0, 1, ties.side)
    sums = []
    names = np.unique(ties.cluster)
    places = [
        np.flatnonzero(ties.contrast == name) for name in np.unique(ties.contrast)
    ]
    for orders in itertools.product(
        *(itertools.permutations(place) for place in places)
    ):
        dealt = np.empty_like(toward)
        for place, order in zip(places, orders, strict=True):
            dealt[place] = toward[list(order)]
        of_cluster = [
            (dealt * np.where(ties.side == 0, 1, ties.side))[ties.cluster == name].sum()
            for name in names
        ]
        sums += [
            sum(np.multiply(signs, of_cluster))
            for signs in itertools.product((1, -1), repeat=len(names))
        ]
    return sums


@pytest.mark.parametrize("seed", range(6))
def test_exact_tests_are_those_of_all_exchanges(seed):
    rng = np.random.default_rng(seed)
    contrast = np.array([0, 0, 0, 0, 1, 1, 2, 3])
    ties = Ties(contrast, rng.choice([-1, 1], 8), np.array([0, 0, 0, 0, 0, 0, 1, 2]))
    votes = rng.choice([-1, 0, 1], 8)
    sums = np.array(brute_law(votes, ties))
    law = exchange_law(votes, ties)
    for total in range(-8, 9):
        place = len(law) // 2 + total
        expected = law[place] if 0 <= place < len(law) else 0.0
        assert np.mean(sums == total) == pytest.approx(expected, abs=1e-11)
    assert p_above(votes, ties) == pytest.approx(np.mean(sums >= votes.sum()))
    assert p_changed(votes, ties) == pytest.approx(
        np.mean(np.abs(sums) >= abs(votes.sum()))
    )


def likes_words(number, share, noise, rng, pairs=12):
    """Return the words of a group, and which pairs are right of a model that only likes words."""
    first = np.tile(np.arange(pairs) < round(share * pairs), number)
    one = np.repeat(2 * np.arange(number), pairs)
    right, wrong = np.where(first, one, one + 1), np.where(first, one + 1, one)
    liking = rng.normal(size=2 * number)
    apart = liking[right] - liking[wrong] + noise * rng.normal(size=len(right))
    return ties_of_words(list(map(str, right)), list(map(str, wrong))), (
        apart > 0
    ).astype(float)


@pytest.mark.parametrize("share", [0.5, 2 / 3, 1.0])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 10])
def test_a_model_that_only_likes_words_is_not_above_chance(number, share):
    rng, false = np.random.default_rng(number), 0
    for draw in range(200):
        ties, right = likes_words(number, share, (0.1, 1.0)[draw % 2], rng)
        false += (
            Chance(np.full(len(right), 0.5), ties, of_words=True).p_value(right)
            <= LEVEL
        )
    assert false <= 20  # 10 are expected at most; 21 of them once in 1,000 times


def test_a_liking_is_one_half_of_a_contrast_that_stands_both_ways_and_costs_no_power():
    both = ties_of_words(["is", "are"] * 15, ["are", "is"] * 15)
    likes_is = np.array([1.0, 0.0] * 15)
    chance = Chance(np.full(30, 0.5), both, of_words=True)
    assert chance.p_value(likes_is) > 0.5
    able = np.array([1.0] * 26 + [0.0] * 4)
    assert chance.p_value(able) < 1e-4  # a sign test of independent pairs says .00003
    one_way = Chance(
        np.full(30, 0.5), ties_of_words(["is"] * 30, ["are"] * 30), of_words=True
    )
    assert one_way.p_value(np.ones(30)) == one_way.smallest_p == 0.5


def test_five_contrasts_of_one_direction_are_enough_and_four_are_not():
    for number, smallest in ((4, 2**-4), (5, 2**-5)):
        words = [
            [f"{side}{i}" for i in range(number) for _ in range(6)] for side in "ab"
        ]
        chance = Chance(np.full(6 * number, 0.5), ties_of_words(*words), of_words=True)
        assert chance.p_value(np.ones(6 * number)) == pytest.approx(smallest)
        assert chance.smallest_p == pytest.approx(smallest)


@pytest.mark.parametrize("number", [2, 3, 5, 30])
@pytest.mark.parametrize("spread", [0.02, 2.0, 50.0])
def test_intervals_over_clusters_hold_the_truth(number, spread):
    rng, held, draws = np.random.default_rng(7), 0, 300
    for _ in range(draws):
        cluster = np.repeat(np.arange(number), 1 + rng.geometric(0.1, number))
        effect = rng.beta(0.7 * spread, 0.3 * spread, number)[cluster]
        right = (rng.random(len(cluster)) < effect).astype(float)
        low, high = (
            end[0] for end in share_interval(right[None], Ties.of_clusters(cluster))
        )
        held += low <= 0.7 <= high
    assert held >= 0.91 * draws  # of 95 %, fewer once in 600 times


def test_one_cluster_has_no_interval_and_alike_clusters_no_certainty():
    one = share_interval(np.ones((1, 40)), Ties.of_clusters(np.zeros(40, dtype=int)))
    assert np.isnan(one).all()
    low, _ = share_interval(
        np.ones((1, 40)), Ties.of_clusters(np.repeat(np.arange(5), 8))
    )
    # 1 of 16 models that like words is right, or wrong, in all five.
    assert low[0] < 0.5


def test_questions_that_share_their_answers_are_held_against_one_answer_everywhere():
    answers, right = [["yes", "no"]] * 100, ["yes"] * 70 + ["no"] * 30
    chance, cluster = guesses(["a"] * 100, answers, right)
    always_yes = np.array([1.0] * 70 + [0.0] * 30)
    group = Chance(chance, Ties.of_clusters(cluster))
    assert chance.tolist() == [0.7] * 100 and group.p_value(always_yes) > 0.4
    assert group.p_value(np.ones(100)) < 1e-10
    letters = ["ABCD"[i % 4] for i in range(40)]
    chance, cluster = guesses(
        ["a"] * 40, [["A", "b", "C", "d"], ["a", "B", "c", "D"]] * 20, letters
    )
    assert set(chance) == {0.25} and len(set(cluster)) == 40


def test_questions_with_one_right_answer_count_once():
    answers = [["water", f"x{i}", f"y{i}", f"z{i}"] for i in range(30)]
    chance, cluster = guesses(["a"] * 30, answers, ["water"] * 15 + ["Water "] * 15)
    group = Chance(chance, Ties.of_clusters(cluster))
    assert set(chance) == {0.25} and group.p_value(np.ones(30)) == pytest.approx(0.25)
    assert np.isnan(share_interval(np.ones((1, 30)), group.ties)).all()
    assert (
        len(set(one_answer(["a"] * 3 + ["b"] * 3, ["x", "X", "x", "x", "y", "x"]))) == 4
    )


def test_the_law_of_guesses_is_binomial_where_all_count():
    from scipy.stats import binom

    law = guess_law(np.full(7, 0.25), np.arange(7))
    np.testing.assert_allclose(law, binom.pmf(np.arange(8), 7, 0.25), atol=1e-10)


@pytest.mark.parametrize(
    ("paradigm", "clusters", "can_be_above"),
    [
        ("npi_present_1", 1, False),  # "ever" is wrong in all pairs
        ("principle_A_case_1", 3, False),
        ("anaphor_number_agreement", 1, True),  # each word is right and wrong
        ("irregular_past_participle_verbs", 18, True),
        ("adjunct_island", 1000, True),  # an order of words
    ],
)
def test_paradigms_of_blimp_have_as_many_clusters_as_their_words_say(
    paradigm, clusters, can_be_above
):
    file = DATA / "blimp" / f"{paradigm}.jsonl"
    if not file.is_file():
        pytest.skip(f"{file} is not there; set ONTOGENY_DATA")
    words = [words_apart(*pair.texts) for pair in MinimalPairs(str(file)).read()[0]]
    ties = ties_of_words(*zip(*words, strict=True))
    assert len(ties.sizes) == clusters
    smallest = Chance(np.full(len(words), 0.5), ties, of_words=True).smallest_p
    assert (smallest <= LEVEL) is can_be_above


@pytest.mark.parametrize("of_words", [True, False])
def test_what_chance_reaches_and_the_test_say_the_same(of_words):
    """A page called "44 to 100 %" above chance: the interval was over other contrasts."""
    rng = np.random.default_rng(3)
    words = rng.choice(list("abcdef"), (40, 2))
    words = words[words[:, 0] != words[:, 1]]
    ties = ties_of_words(*words.T)
    if not of_words:
        ties = Ties.of_clusters(np.arange(len(words)))
    chance = Chance(np.full(len(words), 0.5), ties, of_words)
    verdicts = set()
    for share in np.linspace(0.3, 1.0, 60):
        right = rng.choice(
            [0, 0.5, 1], len(words), p=[(1 - share) * 0.9, 0.1, share * 0.9]
        )
        above = right.mean() > chance.reach(right) + 1e-12
        assert above == (chance.p_value(right) <= LEVEL)
        verdicts.add(above)
    assert verdicts == {True, False}
    assert np.isnan(chance.reach(np.full(len(words), np.nan)))


@pytest.mark.parametrize("ties", [0, 1, 2, 3])
def test_half_right_ties_are_neither_above_what_chance_reaches_nor_below_it(ties):
    number = 30
    chance = Chance(np.full(number, 0.5), Ties.of_clusters(np.arange(number)))
    for count in range(number - ties + 1):
        right = np.repeat([1.0, 0.5, 0.0], [count, ties, number - ties - count])
        above = right.mean() > chance.reach(right) + 1e-12
        assert above == (chance.p_value(right) <= LEVEL), (count, ties)
