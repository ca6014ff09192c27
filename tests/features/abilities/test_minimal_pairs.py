"""Minimal pairs: scores of a plain loop, files of all forms, and courses with a known truth."""

import json
import pickle
from functools import partial

import numpy as np
import pytest
import torch
import transformers

import ontogeny as og
from helpers import english_pairs
from helpers.family_models import build
from ontogeny.capture.predictor import Predictor
from ontogeny.errors import ArgumentError
from ontogeny.features.abilities.contrasts import Ties, ties_of_words, words_apart
from ontogeny.features.abilities.examples import _as_tokens, _once
from ontogeny.features.abilities.intervals import Chance, above_chance, course_of
from ontogeny.features.abilities.pairs import pair_of
from ontogeny.features.abilities.prefix_trees import tree_scores
from ontogeny.features.abilities.token_texts import (
    HEADLESS,
    TokenTexts,
    _at_scored,
    tokenised,
)
from ontogeny.inputs.vocabularies import vocabulary_tokenizer
from ontogeny.observables import MinimalPairs
from ontogeny.tasks import train_tokenizer
from ontogeny.tasks.records import Example, read_examples, read_records

MASK = 4


def pairs_of(records, method):
    return read_examples(records, "a.jsonl", partial(pair_of, method=method), "pair")


def token_texts(rows, widths):
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ids, width = np.concatenate(rows), np.concatenate(widths)
    return TokenTexts(ids.astype(np.int32), width.astype(np.int16), start, MASK)


ROWS = [[1, 9, 12, 30], [1, 7], [1, 30, 12, 9], [1, *range(10, 24)]]
"""Texts after a beginning: of several tokens, of one, the same in another order, and a long one."""


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "llama"])
def test_causal_scores_are_those_of_a_plain_loop(family):
    model = build(family)
    found = token_texts(ROWS, [[0, *[1] * (len(row) - 1)] for row in ROWS])
    scores = found.scores(Predictor(model, "causal"))
    for row, score in zip(ROWS, scores, strict=True):
        with torch.no_grad():
            log_p = model(torch.tensor([row])).logits[0].log_softmax(-1)
        loop = sum(float(log_p[i - 1, row[i]]) for i in range(1, len(row)))
        assert score == pytest.approx(loop, abs=1e-4)


def branches():
    """Texts of which many begin alike, some over more than a tree of 256 nodes."""
    rng = np.random.default_rng(0)
    starts = [rng.integers(5, 60, rng.integers(1, 8)) for _ in range(40)]
    ends = [rng.integers(5, 60, rng.integers(1, 12)) for _ in range(160)]
    rows = [[1, *starts[n // 4].tolist(), *end.tolist()] for n, end in enumerate(ends)]
    return token_texts(rows, [[0, 0, *[1] * (len(row) - 2)] for row in rows])


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_beginnings_that_texts_share_are_read_once(family):
    model, texts, nodes = build(family), branches(), []
    expected = _at_scored(Predictor(model, "causal"), texts, np.arange(len(texts)))
    model.register_forward_pre_hook(
        lambda _, args, inputs: nodes.append(inputs["input_ids"].numel()),
        with_kwargs=True,
    )
    scores, ranks = texts.scores_and_ranks(Predictor(model, "causal"))
    assert np.abs(scores - expected[0]).max() < 1e-4 and (ranks == expected[1]).all()
    assert sum(nodes) < 0.85 * len(texts.ids)


def windowed():
    config = transformers.GPTNeoConfig(
        vocab_size=64,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        window_size=4,
        attention_types=[[["global", "local"], 1]],
        max_position_embeddings=400,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    return transformers.GPTNeoForCausalLM(config).eval()


def alibi():
    config = transformers.FalconConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        alibi=True,
    )
    torch.manual_seed(0)
    return transformers.FalconForCausalLM(config).eval()


@pytest.mark.parametrize("make", [windowed, alibi])
def test_a_model_that_counts_positions_otherwise_reads_every_text_whole(make):
    model, texts = make(), branches()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    expected = _at_scored(Predictor(model, "causal"), texts, np.arange(len(texts)))
    tree = tree_scores(Predictor(model, "causal"), texts, ranks=False)
    assert (
        (make is alibi) if tree is None else np.abs(tree[0] - expected[0]).max() > 0.01
    )
    assert np.abs(texts.scores(Predictor(model, "causal")) - expected[0]).max() < 1e-4


class Recurrent(torch.nn.Module):
    """Takes positions and masks, and reads in the order of the row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.read = (
            torch.nn.Embedding(64, 16),
            torch.nn.GRU(16, 16, batch_first=True),
        )
        self.head = torch.nn.Linear(16, 64)

    def forward(
        self, input_ids, attention_mask=None, position_ids=None, use_cache=False
    ):
        return self.head(self.read(self.embed(input_ids))[0])


def test_a_long_text_beside_short_ones_does_not_hide_what_a_model_ignores():
    rows = np.random.default_rng(0).integers(2, 64, (8, 20)).tolist()
    rows = [[1, *row] for row in rows] + [
        [1, *np.random.default_rng(1).integers(2, 64, 400)]
    ]
    texts = token_texts(rows, [[0, *[1] * (len(row) - 1)] for row in rows])
    predictor = Predictor(Recurrent().eval(), "causal")
    expected = _at_scored(predictor, texts, np.arange(len(texts)))[0]
    assert np.abs(texts.scores(predictor) - expected).max() < 1e-3


@pytest.mark.parametrize("family", ["bert", "eurobert"])
def test_masked_scores_hide_the_rest_of_the_word(family):
    model, widths = build(family), [[0, 2, 1, 1], [0, 1], [0, 1, 1, 1], [0, *[1] * 14]]
    scores = token_texts(ROWS, widths).scores(Predictor(model, "masked"))
    for row, width, score in zip(ROWS, widths, scores, strict=True):
        loop = 0.0
        for place in np.flatnonzero(width):
            hidden = list(row)
            hidden[place : place + width[place]] = [MASK] * width[place]
            with torch.no_grad():
                log_p = model(torch.tensor([hidden])).logits[0, place].log_softmax(-1)
            loop += float(log_p[row[place]])
        assert score == pytest.approx(loop, abs=1e-4)


def test_words_are_hidden_whole_and_long_texts_left_out():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, 300)
    found, problems = tokenised(
        ["", ""], ["hush cat", "the " * 40], tokenizer, masked=True, longest=30
    )
    first = found.width[found.of(0)].tolist()
    assert first[:5] == [0, 4, 3, 2, 1] and problems[0] == ""
    assert problems[1] == "it is longer than the 30 tokens that the model takes"


def test_bad_pairs_get_one_line_each_and_the_rest_goes_on(tmp_path):
    file = tmp_path / "mine.jsonl"
    rows = [
        {"right": "he is", "wrong": "he are", "group": "verbs"},
        {"right": "same", "wrong": "same"},
        {"right": "alone"},
    ]
    file.write_text("\n".join([*map(json.dumps, rows), "{broken"]))
    pairs, left_out = pairs_of(read_records(file), "sentence")
    assert [pair.group for pair in pairs] == ["verbs"]
    assert any("line 2: its texts are equal" in line for line in left_out)
    assert any("line 3: it has no field 'wrong'" in line for line in left_out)
    assert len(left_out) == 3
    (tmp_path / "empty.csv").write_text("")
    assert (
        len(
            MinimalPairs((str(file), str(tmp_path / "empty.csv"))).arguments()[
                "content"
            ]
        )
        == 32
    )
    with pytest.raises(ArgumentError, match=r"empty\.csv holds no pair"):
        MinimalPairs(str(tmp_path / "empty.csv"))


def test_blimp_fields_and_its_prefix_method(tmp_path):
    row = {
        "sentence_good": "Ann has really run.",
        "sentence_bad": "Ann has ever run.",
        "one_prefix_prefix": "Ann has",
        "one_prefix_word_good": "really",
        "one_prefix_word_bad": "ever",
        "UID": "npi",
        "one_prefix_method": True,
    }
    file = tmp_path / "npi.jsonl"
    file.write_text(json.dumps(row))
    (whole,), _ = pairs_of(read_records(file), "sentence")
    (part,), _ = pairs_of(read_records(file), "prefix")
    assert (whole.group, whole.texts[0]) == ("npi", "Ann has really run.")
    assert (part.before[0], part.texts) == ("Ann has", (" really", " ever"))


def test_bundled_pairs_are_those_of_their_templates():
    pairs, left_out = MinimalPairs().read()
    assert [(*pair.texts, pair.group) for pair in pairs] == english_pairs.rows()
    assert not left_out and len(set(pairs)) == 690
    likings = set()
    for name in {pair.group for pair in pairs}:
        words = [words_apart(*pair.texts) for pair in pairs if pair.group == name]
        ties = ties_of_words(*zip(*words, strict=True))
        likings.add(ties.liking)
        assert Chance(np.full(30, 0.5), ties, of_words=True).smallest_p < 1e-4
    assert likings == {0.5}  # also where the same words stand in another order


def test_independent_guesses_are_within_their_interval_and_not_above_chance():
    rng, steps = np.random.default_rng(0), np.array([0, 10, 20])
    alone = Chance(np.full(30, 0.5), Ties.of_clusters(np.arange(30)))
    courses = [
        course_of(steps, rng.integers(0, 2, (3, 30)).astype(float), alone)
        for _ in range(200)
    ]
    inside = [bool(c.low[-1] <= 0.5 <= c.high[-1]) for c in courses]
    assert np.mean(inside) >= 0.93
    assert above_chance(np.array([c.p_ends[1] for c in courses])).sum() <= 1


class Table(torch.nn.Module):
    """Predicts the next token from the last one."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(table)

    def forward(self, input_ids):
        return self.table(input_ids)


def test_a_planted_ability_has_its_step(tmp_path):
    tokenizer = train_tokenizer(["he is . we are . the cat sat on the mat"] * 9, 300)
    file = tmp_path / "pairs.csv"
    subjects = [("he", "is", "are"), ("we", "are", "is")]
    lines = [
        f"{s} {good} {n},{s} {bad} {n},agreement"
        for s, good, bad in subjects
        for n in range(9)
    ]
    file.write_text("\n".join(["right,wrong,group", *lines]))
    models = {}
    for step in (0, 10, 20, 30):
        generator = torch.Generator().manual_seed(step)
        table = 0.1 * torch.randn(len(tokenizer), len(tokenizer), generator=generator)
        if step >= 20:
            for subject, good, _ in subjects:
                last = tokenizer.encode(subject, add_special_tokens=False)[-1]
                table[
                    last, tokenizer.encode(f" {good}", add_special_tokens=False)[0]
                ] += 9.0
        models[step] = Table(table)
    inputs = og.Inputs.from_texts(["the cat sat", "on the mat"], tokenizer)
    run = og.Trajectory.from_models(models, tokenizer=tokenizer)
    pairs = MinimalPairs(str(file), objective="causal")
    study = og.Study(run, inputs, [pairs], device="cpu")
    data = study.run(tmp_path / "study", progress=False)["minimal-pairs"]
    assert data.accuracy.sel(group="agreement", step=[20, 30]).values.tolist() == [
        1.0,
        1.0,
    ]
    assert data.above_chance.values.tolist() == [True]
    assert float(data.above_from[0]) == 20.0 and float(data.above_from_low[0]) in (
        0.0,
        10.0,
    )
    assert data.score_right.dims == ("step", "pair")
    assert set(data.group_of_pair.values) == {"agreement"}
    assert float(data.liking[0]) == 0.5
    assert int(data.clusters[0]) == 1 and np.isnan(data.accuracy_last_low[0])
    assert {*data.word_right.values} == {"is", "are"}


def test_a_record_of_two_pairs_is_left_out_and_both_are_named():
    record = {
        "right": "it is",
        "wrong": "it are",
        "sentence_good": "it are",
        "sentence_bad": "it is",
    }
    with pytest.raises(
        ArgumentError, match=r"two pairs, in sentence_good, .* and right, wrong"
    ):
        pair_of(record, "a", "line 1", "sentence")
    same = {**record, "sentence_good": "it is", "sentence_bad": "it are"}
    assert pair_of(same, "a", "line 1", "sentence").texts == ("it is", "it are")


def test_pairs_that_say_the_reverse_of_each_other_are_left_out():
    texts = [
        ("it is", "it are"),
        ("it are", "it is"),
        ("he runs", "he run"),
        ("he runs", "he run"),
    ]
    pairs = [
        pair_of({"right": a, "wrong": b}, "a", f"line {i}", "sentence")
        for i, (a, b) in enumerate(texts, 1)
    ]
    kept, left_out = _once(pairs, "pair")
    assert [pair.where for pair in kept] == ["line 3"]
    assert left_out == [
        "line 4: it repeats another one",
        "line 1: another one says the reverse",
        "line 2: another one says the reverse",
    ]


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ({"kind": "abab"}, {"a", "b"}),
        ({"note": "wxyz", "kind": "abab"}, {"a", "b"}),  # which is a name of each pair
        ({"kind": "abab", "Group": "ccdd"}, {"c", "d"}),
        ({"note": "wxyz"}, {"pairs"}),
        ({"kind": "aaaa"}, {"pairs"}),
        ({"kind": "ab b"}, {"pairs"}),  # one is not said
    ],
)
def test_a_column_of_texts_that_repeat_is_the_group(tmp_path, columns, groups):
    rows = ["good,bad," + ",".join(columns)]
    for i, values in enumerate(zip(*columns.values(), strict=True)):
        rows.append(f"he runs {i},he run {i}," + ",".join(values))
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    observable = MinimalPairs(str(tmp_path / "pairs.csv"))
    assert {example.group for example in observable.read()[0]} == groups


def letters(tmp_path):
    """Return the tokenizer of nanoGPT's ``meta.pkl``: characters, and none to begin with."""
    names = {c: i for i, c in enumerate("\n abcdefghijklmnopqrstuvwxyz")}
    with (tmp_path / "meta.pkl").open("wb") as file:
        pickle.dump({"stoi": names, "vocab_size": len(names)}, file)
    return vocabulary_tokenizer(tmp_path / "meta.pkl")


def test_pairs_that_differ_in_a_token_without_a_score_are_left_out_and_counted(
    tmp_path,
):
    """They would be compared by what follows: "a cat" and "an cat" by " cat" and "n cat"."""
    tokenizer = letters(tmp_path)
    texts = [("they run", "i run"), ("he runs", "he run"), ("you go", "she go")]
    examples = [
        Example(pair, ("", ""), 0, "verbs", f"line {i}") for i, pair in enumerate(texts)
    ]
    prompted = Example(("they run", "i run"), ("so ", "so "), 0, "verbs", "line 3")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1,
        n_embd=8,
        n_head=2,
        vocab_size=28,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    predictor = Predictor(model, "causal")
    good, tokens, why = _as_tokens([*examples, prompted], tokenizer, predictor)
    assert [example.where for example in good] == ["line 1", "line 3"]
    assert [line.partition(":")[0] for line in why] == ["line 0", "line 2"]
    assert all(HEADLESS in line for line in why)
    assert tokens.scored.tolist() == [6, 5, 8, 5]  # all but the first, unless prompted
    # With a token to begin with each has a score, and none is left out.
    tokenizer.bos_token = "\n"
    good, tokens, why = _as_tokens([*examples, prompted], tokenizer, predictor)
    assert len(good) == 4 and not why
    assert tokens.scored.tolist() == [8, 5, 7, 6, 6, 6, 8, 5]
