"""Names: right where meaning was planted, rare where there is none, harmless whatever the token."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import hypergeom
from transformers import LlamaConfig, LlamaModel

from helpers.described_examples import WORDS, lookup_codes, token_ids, zipf_texts
from ontogeny import capture, concepts, describe
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.describe.chance import permutation_bound
from ontogeny.features.concepts.describe.names import name_of, untrained_limit
from ontogeny.features.concepts.describe.rows import (
    Confirmation,
    confirmations,
    described,
)
from ontogeny.inputs import Inputs

PIECES = [f" word{i}" for i in range(WORDS)]
UNTRAINED = np.full(40, 0.3)


def planted_words(count, seed=0):
    """Return one to three words for each of some concepts."""
    rng = np.random.default_rng(seed)
    return [
        rng.choice(40, size=rng.integers(1, 4), replace=False).tolist()
        for _ in range(count)
    ]


def words_of(name):
    return {int(word.removeprefix("word")) for word in name.split(", ") if word}


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_planted_words_are_named(noise):
    inputs = zipf_texts(120)
    sample, planted = inputs.sample(), planted_words(40)
    codes = lookup_codes(token_ids(inputs, sample), planted, noise=noise)
    found = describe.names(codes, inputs, sample, untrained=UNTRAINED, pieces=PIECES)
    names = found.name.values.tolist()
    assert np.mean([name != "" for name in names]) >= 0.9
    # The heaviest words enter a name: every one of them is planted, and with one word all of it.
    right = [
        words_of(name) <= set(words) for name, words in zip(names, planted, strict=True)
    ]
    assert all(right)
    single = [i for i, words in enumerate(planted) if len(words) == 1]
    assert all(words_of(names[i]) == set(planted[i]) for i in single if names[i])
    if not noise:
        assert found.concentration.values == pytest.approx(1)


def test_what_is_planted_in_a_model_is_named_from_its_activations():
    """Embeddings of known words hold planted directions, and the layers add nothing."""
    inputs = zipf_texts(120, 24)
    planted = [[w, w + 20] if w % 3 == 0 else [w] for w in range(20)]
    model = untrained_model(0)
    directions = torch.linalg.qr(torch.randn(32, 20, generator=torch.manual_seed(1)))[
        0
    ].T
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.zero_()
        rows = 0.02 * torch.randn(WORDS, 32, generator=torch.manual_seed(2))
        for words, direction in zip(planted, directions, strict=True):
            rows[words] += direction
        model.embed_tokens.weight.copy_(rows)
    sample = inputs.sample()
    codes = codes_of(model, inputs)
    untrained = describe.concentration(
        codes_of(untrained_model(3), inputs), inputs, sample
    )
    found = describe.names(codes, inputs, sample, untrained=untrained, pieces=PIECES)
    named = [words_of(name) for name in found.name.values.tolist() if name]
    assert len(named) >= 18
    assert np.mean([any(words <= set(p) for p in planted) for words in named]) >= 0.9


def untrained_model(seed):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    return LlamaModel(config).eval()


def codes_of(model, inputs, layer="layers.1"):
    (acts,) = capture.activations(model, inputs, layers=layer, tokens="all").values()
    return concepts.make(
        "ica", n_concepts=20, random_state=0, max_iter=400
    ).fit_transform(acts)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_untrained_models_get_names_at_the_stated_rate():
    """One untrained model's concepts, against another one's limit: 5 % are named, no more."""
    inputs = zipf_texts(100, 20)
    sample = inputs.sample()
    codes = [codes_of(untrained_model(seed), inputs) for seed in range(8)]
    shares = [describe.concentration(each, inputs, sample) for each in codes]
    named = [
        describe.names(
            codes[b], inputs, sample, untrained=shares[a], pieces=PIECES
        ).name
        != ""
        for a, b in itertools.permutations(range(8), 2)
    ]
    assert np.mean(named) <= 0.05 + 0.03  # 20 latents are a coarse limit; eight models
    pooled = describe.names(
        codes[0], inputs, sample, untrained=np.concatenate(shares[1:]), pieces=PIECES
    )
    assert (pooled.name != "").mean() <= 0.1


def test_permuted_codes_get_no_name():
    inputs = zipf_texts(120)
    sample = inputs.sample()
    codes = lookup_codes(token_ids(inputs, sample), planted_words(40))
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(codes)
        found = describe.names(
            shuffled, inputs, sample, untrained=np.zeros(40), pieces=PIECES
        )
        assert (found.name == "").all() and (found.name_p > 0.05).all()


def test_three_rows_by_luck_are_no_concentration():
    inputs = zipf_texts(100)
    sample = inputs.sample()
    rng = np.random.default_rng(0)
    codes = np.zeros((len(sample), 300))
    for column in codes.T:
        column[rng.choice(len(sample), 3, replace=False)] = 1
    naive = describe.strongest_tokens(codes, inputs, sample, 3).token_share.sum("rank")
    assert (naive > 0.999).all()
    assert describe.concentration(codes, inputs, sample).mean() < 0.2
    found = describe.names(
        codes, inputs, sample, untrained=np.full(20, 0.1), pieces=PIECES
    )
    assert (found.name == "").all()


def test_concentration_is_that_of_a_plain_loop():
    inputs = zipf_texts(30, 16, documents=np.random.default_rng(0).integers(0, 9, 30))
    sample = inputs.sample("all", 200)
    codes = np.random.default_rng(1).normal(size=(200, 20)) ** 3
    values, rows = described(codes, inputs, sample)
    found = confirmations(values, rows, 0)
    ids, q = token_ids(inputs, sample), np.maximum(values, 0) ** 2
    units = inputs.groups[sample.text]
    sizes = [len(each.strength) for each in found]
    assert sum(sizes) == 200 and min(sizes) > 60
    # Tokens chosen on the first half are confirmed on the second one, whose rows are these.
    half = np.array([(found[0].strength == row).all(axis=1).any() for row in q])
    assert not set(units[half]) & set(units[~half])
    shares = []
    for first, second in ((~half, half), (half, ~half)):
        share = []
        for column in q.T:
            carried = {
                i: column[first & (ids == i)].sum() for i in set(ids[first].tolist())
            }
            three = sorted(carried, key=lambda i: -carried[i])[:3]
            share.append(
                column[second & np.isin(ids, three)].sum() / column[second].sum()
            )
        shares.append(share)
    wanted = np.mean(shares, axis=0)
    np.testing.assert_allclose(
        describe.concentration(codes, inputs, sample), wanted, atol=1e-10
    )


def test_the_bound_is_above_the_exact_probability_and_near_it():
    """Codes of 0 and 1: the number of hits is hypergeometric."""
    n = 500
    for fires, k, hits in itertools.product(
        (5, 40, 250), (3, 20, 100), (1, 2, 5, 18, 60)
    ):
        if hits > min(fires, k):
            continue
        strength = np.zeros((n, 1))
        strength[:fires] = 4.0
        found = Confirmation(strength, np.array([4.0 * hits]), np.array([k]))
        exact, bound = hypergeom.sf(hits - 1, n, fires, k), permutation_bound(found)[0]
        assert exact <= bound * (1 + 1e-9)
        assert bound <= 10 * exact


def test_the_bound_is_above_sampled_permutations():
    rng = np.random.default_rng(0)
    strength = np.where(
        rng.random((300, 4)) < [1, 0.5, 0.1, 0.03], rng.exponential(size=(300, 4)), 0
    )
    k = np.array([30, 12, 8, 20])
    draws = np.stack(
        [rng.permutation(strength)[:30].cumsum(0)[k - 1, range(4)] for _ in range(2000)]
    )
    for quantile in (0.5, 0.9, 0.99):
        carried = np.quantile(draws, quantile, axis=0)
        sampled = (draws >= carried).mean(axis=0)
        assert (permutation_bound(Confirmation(strength, carried, k)) >= sampled).all()


def test_impossible_and_dead_strengths_have_probability_one():
    dead = Confirmation(np.zeros((9, 1)), np.zeros(1), np.zeros(1, dtype=int))
    assert permutation_bound(dead).tolist() == [1.0]
    below = Confirmation(np.ones((9, 1)), np.array([2.0]), np.array([2]))
    assert permutation_bound(below)[0] == pytest.approx(1)


@pytest.mark.parametrize(
    ("piece", "name"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        (" שלום", "\u2068שלום\u2069"),
        ("\n", "new line"),
        ("\x07", "U+0007"),
        ("a\u202eb", "a\\u202eb"),
        (" the", "the"),
        ("<|eos|>", "<|eos|>"),
        ("\u200b", "zero width space"),
        ("<0xE2>", "<0xE2>"),
    ],
)
def test_a_name_is_safe_whatever_the_token(piece, name):
    inputs = zipf_texts(60)
    sample = inputs.sample()
    codes = lookup_codes(token_ids(inputs, sample), [[5]])
    pieces = [*PIECES[:5], piece, *PIECES[6:]]
    found = describe.names(codes, inputs, sample, untrained=UNTRAINED, pieces=pieces)
    assert found.name.item() == name


@pytest.mark.parametrize(
    ("pieces", "shares", "name"),
    [
        ([" the", "The", "the"], [0.5, 0.3, 0.2], "the"),
        (["The", " the", ","], [0.5, 0.3, 0.1], "The"),
        ([" a", ",", "The", " the"], [0.3, 0.2, 0.18, 0.17], "The, a, comma"),
        (
            [",", ".", "(", ")"],
            [0.3, 0.3, 0.2, 0.2],
            "comma, full stop, open parenthesis",
        ),
        ([",", "."], [0.5, 0.09], "comma"),
        ([",", "."], [0.5, 0.11], "comma, full stop"),
    ],
)
def test_forms_of_a_word_are_one_and_weak_tokens_are_left_out(pieces, shares, name):
    assert name_of(range(len(pieces)), shares, pieces) == name


def test_an_id_without_a_piece_is_named_by_its_digits():
    assert name_of([7, -1], [0.9, 0.0], ["a"]) == "7"


def test_the_limit_holds_its_rate_for_any_number_of_latents():
    rng = np.random.default_rng(0)
    for q, rate in ((5, 1 / 6), (19, 0.05), (24, 0.05), (200, 0.05)):
        drawn = rng.random((4000, q + 1))
        exceeds = [row[0] > untrained_limit(row[1:]) for row in drawn]
        assert np.mean(exceeds) <= rate + 0.015
        assert q < 20 or np.mean(exceeds) > 0.03
    assert untrained_limit([0.2, 0.7, 0.1]) == 0.7 and np.isnan(untrained_limit([]))


def test_no_concept_is_named_without_an_untrained_model():
    inputs = zipf_texts(60)
    sample = inputs.sample()
    codes = lookup_codes(token_ids(inputs, sample), [[5]])
    found = describe.names(codes, inputs, sample, untrained=[], pieces=PIECES)
    assert found.name.item() == "" and found.concentration == 1 and found.name_p < 1e-6
    assert np.isnan(found.concentration_limit)


def test_a_token_that_every_row_is_of_gives_no_name():
    inputs = Inputs.from_tokens([[1, i] for i in range(2, 40)], special_ids=[1])
    sample = inputs.sample("cls")
    codes = np.random.default_rng(0).random((len(sample), 5))
    shares = describe.concentration(codes, inputs, sample)
    assert (shares == 1).all()
    found = describe.names(codes, inputs, sample, untrained=shares, pieces=["x"] * 40)
    assert (found.name == "").all()


@pytest.mark.parametrize(
    ("untrained", "pieces", "words"),
    [
        ([1.5], PIECES, "untrained must be a list of concentrations from 0 to 1"),
        ([[0.5]], PIECES, "untrained must be a list of concentrations"),
        (UNTRAINED, "abc", "pieces must be a list of texts, one for each token id"),
        (UNTRAINED, [1], "entry 0 is 1"),
    ],
)
def test_what_names_need_is_checked(untrained, pieces, words):
    inputs = zipf_texts(10)
    sample = inputs.sample()
    with pytest.raises(ArgumentError, match=words):
        describe.names(
            np.ones((len(sample), 1)),
            inputs,
            sample,
            untrained=untrained,
            pieces=pieces,
        )
