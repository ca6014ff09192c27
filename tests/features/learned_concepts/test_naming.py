"""Names of planted codes: what their places share is found, and random places share nothing."""

import numpy as np
import pytest

import ontogeny as og
from ontogeny.concepts.beyond_token import strong
from ontogeny.features.learned_concepts.contexts import BANDS, contexts, typical
from ontogeny.features.learned_concepts.found import BEYOND, Finder
from ontogeny.features.learned_concepts.naming import Namer, phi
from ontogeny.features.learned_concepts.parts import scaled
from ontogeny.features.learned_concepts.places import FLAGS, REST, Places, Rule

WORDS = [
    "the",
    "cat",
    ",",
    "dog",
    ".",
    "looking",
    "said",
    "ran",
    "and",
    "she",
    "to",
    "big",
    "a",
    "red",
    "house",
    '"',
    "(",
    ")",
    "sing",
    "ing",
    "7",
    "Tim",
    "one",
    "Lily",
]
PIECES = [w if w in {",", ".", "ing", '"', "(", ")"} else f" {w}" for w in WORDS]
ID = {word: i for i, word in enumerate(WORDS)}


@pytest.fixture(scope="module")
def places():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, len(WORDS), (200, 40))
    inputs = og.Inputs.from_tokens(ids)
    return Places(inputs, inputs.sample(), PIECES)


@pytest.fixture(scope="module")
def namer(places):
    text = places.sample.text
    return Namer(places, text % 2 == 0, text, 0)


def one_text(*words):
    inputs = og.Inputs.from_tokens([[ID[word] for word in words]])
    return Places(inputs, inputs.sample(), PIECES)


def holds(places, label):
    return next(rule.holds for rule in places.rules() if rule.label == label).tolist()


def test_words_are_joined_of_pieces_and_found_beside():
    places = one_text("sing", "ing", "cat", ",", "dog")
    names = np.array(places.names)
    assert names[places.words(0)].tolist() == ["singing", "singing", "cat", ",", "dog"]
    assert names[places.words(-1)].tolist() == ["", "", "singing", "cat", ","]
    assert names[places.words(1)].tolist() == ["cat", "cat", ",", "dog", ""]


def test_the_rest_of_a_word_is_what_is_behind_a_piece():
    places = one_text("sing", "ing", "ing", "cat", "sing", "ing")
    names = np.array(places.names)
    rest = names[places.listed(REST)[0]].tolist()
    assert rest == ["inging", "ing", "", "", "ing", ""]


def test_rules_hold_where_they_say():
    places = one_text(
        "Tim", "said", '"', "the", "cat", '"', ".", "she", "said", "the", "the"
    )
    assert (
        holds(places, "inside quotation marks")
        == [False] * 3 + [True] * 3 + [False] * 5
    )
    assert (
        holds(places, "first word of a sentence")
        == [True] + [False] * 6 + [True] + [False] * 3
    )
    repeated = holds(places, "word that has occurred before")
    assert repeated == [False] * 8 + [True] * 3
    assert holds(places, "word that has just occurred") == [False] * 10 + [True]
    assert holds(places, "after with a capital") == [False, True] + [False] * 9
    assert (
        holds(places, "word article") == [False] * 3 + [True] + [False] * 5 + [True] * 2
    )
    assert set(FLAGS) <= {rule.label for rule in places.rules()}


def test_pieces_of_a_word_are_its_first_and_its_last():
    places = one_text("cat", "sing", "ing", "ing", "dog", ",", "sing", "ing")
    for label, rows in (("first", {1, 6}), ("last", {3, 7})):
        of_word = holds(places, f"{label} piece of a word")
        assert set(np.flatnonzero(of_word).tolist()) == rows


def test_a_window_leaves_out_the_words_that_it_cuts():
    places = one_text("sing", "ing", "cat", "dog", "sing", "ing", "ing", "the")
    around = [places.ids(np.array([row]), (-2, 2))[0].tolist() for row in range(8)]
    names = [["" if i < 0 else WORDS[i] for i in ids] for ids in around]
    assert names[0] == ["", "", "sing", "ing", "cat"]  # the text begins here
    assert names[3] == ["", "cat", "dog", "", ""]  # half of "singing" twice
    assert names[5] == ["dog", "sing", "ing", "ing", "the"]
    # Its own word is there as far as the window goes.
    assert places.ids(np.array([5]), (-1, 0))[0].tolist() == [ID["sing"], ID["ing"]]


def test_brackets_that_are_never_opened_do_not_count():
    assert holds(one_text(")", "cat", "(", "dog", ")"), "inside brackets") == [
        False,
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("truth", "label"),
    [
        (lambda p: p.words(-1) == p.names.index("looking"), "after “looking”"),
        (lambda p: p.words(1) == p.names.index("house"), "before “house”"),
        (
            lambda p: (p.listed("soon after") == p.names.index("house")).any(axis=0),
            "soon after “house”",
        ),
        (
            lambda p: p.listed(REST)[0] == p.names.index("ing"),
            "word that goes on with “ing”",
        ),
        (lambda p: p.sample.position == 16, "position 17"),
        (
            lambda p: np.array(holds(p, "inside quotation marks")),
            "inside quotation marks",
        ),
    ],
)
def test_a_planted_rule_is_named_and_told_on_other_texts(places, namer, truth, label):
    rng, true = np.random.default_rng(1), truth(places)
    name = namer.name(3 * true + 0.3 * rng.normal(size=len(true)))
    assert name.label == label and name.p_value < 1e-6 and name.phi > 0.8
    assert name.low <= name.auc <= name.high and name.auc > 0.9


def test_a_second_condition_is_about_another_word(places, namer):
    comma = places.words(0) == places.names.index(",")
    after = np.isin(
        places.words(-1), [places.names.index(word) for word in ("said", "ran")]
    )
    name = namer.judged(namer.rule(comma & after), comma & after)
    assert name.phi > 0.95 and "said" in name.label and "ran" in name.label
    assert {part.split(" “")[0] for part in name.label.split(" and ", 1)} == {
        "word",
        "after",
    }


def test_a_code_is_strong_from_the_level_on_at_which_a_rule_says_most(places, namer):
    """Above a mixture of places, a quarter lower, stand those of one word."""
    rng = np.random.default_rng(6)
    house = places.words(0) == places.names.index("house")
    mixed = ~house & (rng.random(len(house)) < 0.06)
    code = 5.0 * house + 3.9 * mixed + 0.1 * rng.normal(size=len(house))
    name = namer.name(code)
    assert name.label == "word “house”" and name.phi > 0.95
    np.testing.assert_array_equal(name.fires, house)
    assert strong(code[:, None])[mixed].all()  # at the lowest level
    assert namer.held(name, code) == (1, 1, 0)


def test_a_rule_of_the_strongest_places_alone_does_not_hold_in_the_middle(
    places, namer
):
    rng = np.random.default_rng(7)
    house = places.words(0) == places.names.index("house")
    mixed = ~house & (rng.random(len(house)) < 0.25)
    code = 5.0 * house + mixed * rng.uniform(4, 4.9, len(house))
    rule = Rule("word", "word “house”", house)
    top, middle, other = namer.held(namer.judged(rule, code > 1), code)
    assert top > 0.6 and middle == 0 and other == 0


def test_a_rule_of_the_middle_places_alone_is_no_name(places, namer):
    """One of SmolLM2's names held at none of its strongest places."""
    rng = np.random.default_rng(7)
    house = places.words(0) == places.names.index("house")
    mixed = ~house & (rng.random(len(house)) < 0.3 * house.mean())
    noise = 0.3 * rng.normal(size=len(house))
    halves = places.sample.text % 2 == 0
    finder = Finder(namer, places, None, halves, 1, 2, 0)
    untrained = rng.normal(size=(len(house), 1))

    def names_of(others):
        code = 3.0 * house + others * mixed + noise
        taught = np.ones(1, dtype=bool)
        return finder._described(code[:, None], untrained, taught)["name"][1].tolist()

    assert names_of(2.9) == ["word “house”"] and names_of(4.0) == [""]


def test_what_an_untrained_model_tells_gets_no_name(places, namer):
    """A base that is tuned has learned before: what it tells may have a name, also where it grows."""
    rng = np.random.default_rng(10)
    after = places.words(-1) == places.names.index("looking")
    n = len(after)

    def rows(strength):
        X = rng.normal(size=(n, 6))
        X[:, 0] += strength * after
        return scaled(X).astype(np.float16)

    halves = places.sample.text % 2 == 0
    finder = Finder(namer, places, None, halves, 6, 2, 0)
    end = {1: rows(12)}
    blank = rows(0)
    taught = ["after “looking”"]

    def names_of(first, untrained, grown):
        state = finder.layer(first, untrained, end, [grown])
        names = state["name"].values[state["found_in"].values == BEYOND]
        return [name for name in names if name]

    assert names_of(blank, blank, rows(0)) == taught
    assert names_of(blank, rows(12), rows(0)) == []
    assert names_of(blank, blank, rows(12)) == []
    assert names_of(rows(12), blank, rows(12)) == taught


def test_words_of_one_text_alone_are_not_listed(places, namer):
    """They would hold at half of the places on which rules are chosen, and at none elsewhere."""
    rng = np.random.default_rng(8)
    fires = (places.sample.text == 0) & (rng.random(len(places.sample.text)) < 0.8)
    fires |= places.words(-1) == places.names.index("looking")
    assert namer.rule(fires).label == "after “looking”"


def test_what_is_strong_in_the_other_half_alone_gets_a_name_of_no_worth():
    """Also where the rule that is tried first holds nowhere in the half of the texts."""
    rng = np.random.default_rng(9)
    ids = rng.integers(0, len(WORDS), (200, 40))
    ids[::2][np.isin(ids[::2], [ID["the"], ID["a"]])] = ID["cat"]
    inputs = og.Inputs.from_tokens(ids)
    places = Places(inputs, inputs.sample(), PIECES)
    text = places.sample.text
    namer = Namer(places, text % 2 == 0, text, 0)
    fires = (text % 2 == 1) & (rng.random(len(text)) < 0.02)
    name = namer.name(fires + 0.01 * rng.random(len(text)))
    np.testing.assert_array_equal(name.fires, fires)
    assert abs(name.phi) < 0.1 and name.p_value > 0.001


def test_shuffled_places_are_not_called_significant_too_often(places, namer):
    rng = np.random.default_rng(2)
    at_random = rng.random((60, len(places.sample.text))) < 0.02
    names = [namer.judged(namer.rule(fires), fires) for fires in at_random]
    p = np.array([name.p_value for name in names])
    assert (p < 0.05).mean() < 0.15 and max(abs(name.phi) for name in names) < 0.2


def test_the_test_is_that_of_the_hypergeometric_distribution():
    """With one text to judge on, the mean and variance are those of drawing without replacement."""
    from scipy.stats import hypergeom, norm

    rng = np.random.default_rng(3)
    inputs = og.Inputs.from_tokens(rng.integers(0, len(WORDS), (2, 300)))
    places = Places(inputs, inputs.sample(), PIECES)
    half = places.sample.text == 0
    namer = Namer(places, half, places.sample.text, 0)
    fires = rng.random(600) < 0.1
    rule = next(rule for rule in places.rules() if rule.label == "word article")
    K, n, k = (
        rule.holds[~half].sum(),
        fires[~half].sum(),
        (rule.holds & fires)[~half].sum(),
    )
    urn = hypergeom(300, K, n)
    assert namer.judged(rule, fires).p_value == pytest.approx(
        norm.sf((k - urn.mean()) / urn.std())
    )


def test_phi_is_the_correlation_of_two_properties():
    rng = np.random.default_rng(4)
    a, b = rng.random(500) < 0.3, rng.random(500) < 0.4
    assert phi(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert phi(a, np.zeros(500, dtype=bool)) == 0


def test_contexts_come_from_the_range_of_codes_and_from_misses(places):
    rng = np.random.default_rng(5)
    code = rng.gamma(0.5, 2.0, size=len(places.sample.text)) - 1
    fires = code > 2
    rule = np.zeros(len(code), dtype=bool)
    rule[::9] = True
    made = contexts(code, fires, rule, places, 4, 0)
    codes = made["context_code"]
    assert codes.shape == (len(BANDS), 4, 19)
    values = codes[..., 12] * code.max()
    assert (np.diff(values[:3].mean(axis=1)) < 0).all()
    assert (values[:3] > 2).all() and (values[3] < 0.5).all()
    for band in made["context_text"]:
        assert len(set(band.tolist())) == 4  # distinct texts
    text, place = made["context_text"][0, 0], made["context_place"][0, 0]
    assert made["context_id"][0, 0, 12] == places.inputs.ids[text, place]
    assert made["histogram"].sum() == len(code)
    row = np.flatnonzero(
        (places.sample.text == text) & (places.sample.position == place - 1)
    )
    before = code[row[0]] / code.max() if len(row) else -1
    assert codes[0, 0, 11] == pytest.approx(before, rel=1e-6)
    again = contexts(code, fires, rule, places, 4, 0)
    np.testing.assert_array_equal(again["context_text"], made["context_text"])


def test_a_code_with_few_strong_places_leaves_gaps(places):
    code = np.zeros(len(places.sample.text))
    code[3] = 5.0
    made = contexts(code, code > 1, np.zeros(len(code), dtype=bool), places, 4, 0)
    assert (made["context_text"][0] >= 0).sum() == 1 and (
        made["context_text"][3] == -1
    ).all()
    assert (made["context_id"][3] == -1).all()


def test_a_rare_word_is_more_typical_than_a_common_one_that_is_hardly_more_frequent():
    words = np.repeat([1, 1, 2, 2, 3, 3], [60, 940, 3, 5, 37, 955])
    fires = np.repeat([True, False] * 3, [60, 940, 3, 5, 37, 955])
    assert typical(words, fires).tolist() == [2, 1]  # 8.0 and 4.2 by the counts' ratio
    assert typical(words, np.zeros(2000, dtype=bool)).tolist() == []
