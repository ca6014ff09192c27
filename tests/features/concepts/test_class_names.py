"""Class names: right where classes of words are planted, rare where there are none."""

import numpy as np
import pytest
import xarray as xr
from scipy import sparse

from helpers.described_examples import lookup_codes, token_ids
from ontogeny import describe
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.describe.names import upper_limit
from ontogeny.features.concepts.describe.row_words import RowWords, joined_pieces
from ontogeny.features.concepts.describe.rows import Rows
from ontogeny.features.concepts.meaning.coherence import coherence
from ontogeny.features.concepts.meaning.contexts import DEFAULT, WordContexts
from ontogeny.features.concepts.meaning.naming import borne_out, chosen_names
from ontogeny.features.concepts.meaning.vectors import (
    WordVectors,
    _reduced,
    word_vectors,
)
from ontogeny.inputs import Inputs

CLASSES, PER_CLASS = 10, 24
VERBS = [f" word{i}" for i in range(CLASSES * PER_CLASS)]
# What as many words by chance give.
UNTRAINED = np.random.default_rng(9).normal(size=99)


def grammar(texts=250, length=24, seed=0, shuffled=False):
    """Return texts in which every class of words is followed by one of two others."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, PER_CLASS + 1)
    state = rng.integers(CLASSES, size=texts)
    ids = np.empty((texts, length), dtype=int)
    for place in range(length):
        word = rng.choice(PER_CLASS, size=texts, p=weights / weights.sum())
        ids[:, place] = PER_CLASS * state + word
        state = (state + rng.integers(1, 3, size=texts)) % CLASSES
    return Inputs.from_tokens(rng.permuted(ids, axis=None) if shuffled else ids)


def planted(seed=0, per_class=2):
    """Return the words of some concepts: five or six of one class each."""
    rng = np.random.default_rng(seed)
    return [
        (
            PER_CLASS * c
            + rng.choice(PER_CLASS // 2, rng.integers(5, 7), replace=False)
        ).tolist()
        for c in range(CLASSES)
        for _ in range(per_class)
    ]


def named(codes, inputs, **options):
    given = {"untrained": UNTRAINED, "pieces": VERBS, **options}
    return describe.class_names(codes, inputs, inputs.sample(), **given)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_planted_classes_are_named_with_their_words(noise):
    inputs = grammar(400)
    classes = planted()
    codes = lookup_codes(token_ids(inputs, inputs.sample()), classes, noise=noise)
    found = named(codes, inputs)
    right = [
        len(set(name.split(" · ")) & {f"word{i}" for i in words}) >= 2
        for name, words in zip(found.class_name.values, classes, strict=True)
    ]
    assert np.mean(right) >= 0.9
    assert (found.coherence > found.coherence_limit).mean() >= 0.9


def test_sets_of_words_that_are_no_class_get_no_name():
    """Words of all classes, as frequent: at most 5 % are named before the correction."""
    inputs = grammar(400)
    rng = np.random.default_rng(1)
    for seed in range(3):
        mixed = [
            rng.choice(CLASSES * PER_CLASS, 6, replace=False).tolist()
            for _ in range(20)
        ]
        codes = lookup_codes(token_ids(inputs, inputs.sample()), mixed, seed)
        found = named(codes, inputs)
        assert (found.class_name != "").sum() <= 1
        assert abs(found.coherence.values).max() < 6


def test_shuffled_tokens_have_no_classes():
    inputs = grammar(shuffled=True)
    codes = lookup_codes(token_ids(inputs, inputs.sample()), planted())
    found = named(codes, inputs)
    assert (found.class_name == "").all() and (found.coherence < 4).all()


def test_p_values_are_valid_where_words_are_drawn_by_chance():
    """The p-value of a class of words that were drawn as the null draws them is uniform."""
    rng = np.random.default_rng(2)
    unit = rng.normal(size=(400, 8))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    carried = np.zeros((400, 300))
    for j in range(300):
        carried[rng.choice(400, 8, replace=False), j] = rng.uniform(0.5, 1, 8)
    known = WordVectors(unit, rng.permutation(400))
    found = coherence([carried] * 2, [known] * 2, 0, 500)
    assert np.mean(found.p <= 0.05) == pytest.approx(0.05, abs=0.035)
    assert found.z.mean() == pytest.approx(
        0, abs=0.2
    ) and found.z.std() == pytest.approx(1, abs=0.2)


def test_no_name_below_the_limit_or_without_an_untrained_model():
    inputs = grammar(400)
    codes = lookup_codes(token_ids(inputs, inputs.sample()), planted())
    assert (named(codes, inputs, untrained=[1e3]).class_name == "").all()
    assert (named(codes, inputs, untrained=[]).class_name == "").all()
    assert np.isnan(upper_limit([np.nan]))
    with pytest.raises(ArgumentError, match="untrained must be a list of numbers"):
        named(codes, inputs, untrained=[[1.0]])


def test_vectors_of_words_come_from_texts_that_they_were_not_chosen_on():
    """Each half's words are judged by the other half; texts without sampled rows serve both."""
    inputs = Inputs.from_tokens(
        [[0, 1, 2], [2, 1, 0], [3, 4, 3]], documents=["a", "b", "c"]
    )
    sample = inputs.sample()
    rows = Rows(inputs, type(sample)(sample.text[:6], sample.position[:6]))
    known = WordContexts.of(rows, [str(i) for i in range(5)])
    assert known.words.tolist() == ["0", "1", "2"]  # the words of sampled tokens
    for (
        vectors
    ) in known.vectors:  # one text each, and the third: no word but its own twice
        assert vectors.counts.tolist() == [1, 1, 1]
    assert known.source == "6 words of the other texts"


def test_few_texts_are_joined_by_the_default_ones_and_that_is_said():
    texts = ["the cat saw a dog", "a dog saw the cat"]
    pieces = sorted({w for text in texts for w in text.split()})
    ids = [[pieces.index(w) for w in text.split()] for text in texts]
    inputs = Inputs.from_tokens(ids, texts=texts)
    known = WordContexts.of(
        Rows(inputs, inputs.sample()), [f" {piece}" for piece in pieces]
    )
    assert known.source.endswith(f"as these are few {DEFAULT}")
    assert known.vectors[0].counts[known.words.tolist().index("the")] > 100


def test_pieces_are_joined_to_words():
    inputs = Inputs.from_tokens(
        [[0, 1, 2, 0, 3, 2], [4, 0, 1, 5, 2, 2]], special_ids=[4]
    )
    pieces = [" Tim", "my", ".", "es", "<s>", "\n  "]
    words = RowWords.of(inputs, inputs.sample(), pieces)
    assert words.words[words.place[:4]].tolist() == ["Timmy", "Timmy", ".", "Times"]
    assert words.words.tolist() == ["\n", ".", "Times", "Timmy"]
    joined = joined_pieces(words, inputs.ids[inputs.ordinary], pieces)
    assert joined[:4] == ["Tim…", "Timmy", ".", "Times"]
    codes = (inputs.ids[inputs.ordinary] == 1)[:, None]
    found = describe.names(
        codes, inputs, inputs.sample(), untrained=[0.1] * 20, pieces=pieces
    )
    assert found.name.item() in ("Timmy", "")


def test_rare_words_have_no_vector_and_orders_of_texts_do_not_matter():
    texts = [["a", "b"], ["c", "b"], ["a", "b"], ["c", "b"], ["once", "b"]]
    found = word_vectors(texts, ["a", "c", "once"])
    again = word_vectors(texts[::-1], ["a", "c", "once"])
    assert np.isnan(found.vectors[2]).all() and found.counts.tolist() == [2, 2, 1]
    gram = found.vectors[:2] @ found.vectors[:2].T
    np.testing.assert_allclose(gram, again.vectors[:2] @ again.vectors[:2].T, atol=1e-6)
    assert np.isnan(word_vectors([], ["a"]).vectors).all()


def test_vectors_of_words_in_equal_contexts_are_the_same_in_every_run():
    """ARPACK, which was used before, goes on from a random vector where it reaches the rank."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.3, (20, 400)).astype(float)[rng.integers(0, 20, 59)]
    once = _reduced(sparse.csr_array(counts), 60)
    assert np.array_equal(_reduced(sparse.csr_array(counts), 60), once)
    left, size, _ = np.linalg.svd(counts)
    size[size < 1e-9 * size[0]] = 0
    near = left[:, :58] * np.sqrt(size[:58])
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    np.testing.assert_allclose(once @ once.T, near @ near.T, atol=1e-6)


def described(name="comma", explained=0.5, peaks=(0, 0, 1, 1), **more):
    ids = np.array([[[[2, peak, 2] for peak in peaks]]])
    return xr.Dataset(
        {
            "name": (("layer", "concept"), np.array([[name]], dtype=object)),
            "enrichment": (("layer", "concept", "position"), [[[explained, 0.0]]]),
            "shared_context_id": (("layer", "concept", "example", "place"), ids),
            "piece_text": ("piece", np.array([",", " said", " x"], dtype=object)),
            **more,
        },
        {
            "piece": [0, 1, 2],
            "place": [-1, 0, 1],
            "position": ["token", "token before"],
        },
    )


def test_names_that_code_or_contexts_refute_are_taken_back():
    assert chosen_names(described()).name.item() == "comma"  # two of four contexts
    assert chosen_names(described(peaks=(0, 1, 1, 1))).name.item() == ""
    assert chosen_names(described(explained=0.06)).name.item() == ""
    assert chosen_names(described(explained=np.nan)).name.item() == "comma"


def test_classes_go_before_tokens_where_contexts_bear_them_out():
    given = {
        "class_name": (
            ("layer", "concept"),
            np.array([["asked · said · told"]], dtype=object),
        )
    }
    both = chosen_names(described(**given))
    assert (both.name.item(), both.name_kind.item()) == ("asked · said · told", "class")
    token = chosen_names(described(peaks=(0, 0, 0, 1), **given))
    assert (token.name.item(), token.name_kind.item()) == ("comma", "token")


@pytest.mark.parametrize(
    ("share", "name"), [(0.99, "comma"), (0.6, "asked · said · told")]
)
def test_a_token_that_carries_nearly_all_of_a_concept_names_it(share, name):
    """The concept of all underscores was called "__getitem__ · __repr__"."""
    data = described(
        class_name=(
            ("layer", "concept"),
            np.array([["asked · said · told"]], dtype=object),
        ),
        token_share=(("layer", "concept", "rank"), [[[share, 0.005]]]),
    )
    assert chosen_names(data).name.item() == name


def test_a_class_fits_where_a_context_is_strongest_at_a_piece_of_its_words():
    one = described("Timmy · Max · Sue").isel(layer=0, concept=0)
    one["piece_text"].values[:] = [" Tim", "my", "."]
    one["shared_context_id"].values[:] = [[2, 0, 1], [0, 1, 2], [2, 2, 2], [2, 2, 2]]
    assert borne_out(one, "Timmy · Max · Sue", "class")


def test_equal_names_get_what_differs():
    others = [described(), described(), described("the", peaks=(0, 0, 0, 0))]
    data = xr.concat(others, "concept", data_vars="minimal")
    data["name_beside"] = (
        ("layer", "concept"),
        [["after said", "before x", "after said"]],
    )
    found = chosen_names(data).name.values[0].tolist()
    assert found[:2] == ["comma after said", "comma before x"] and found[2] == ""
