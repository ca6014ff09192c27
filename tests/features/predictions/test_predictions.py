"""What a model says in gaps: planted models, the model's own logits, and gaps chosen blindly."""

import json

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.said import said_of
from helpers.study_examples import tiny_model
from ontogeny.errors import ArgumentError
from ontogeny.features.predictions.choice import choose_gaps
from ontogeny.features.predictions.gaps import gaps_at, given_gaps
from ontogeny.inputs import Inputs
from ontogeny.observables import Predictions
from ontogeny.observables.crossing import leads_from
from ontogeny.observables.word_frequencies import shares_elsewhere
from ontogeny.tasks import train_tokenizer

WORDS = 12
COMMON = 3
TEXTS = [
    "The method returns a new list of the items, and it raises an error if the list is empty.",
    "If the object is not iterable, a new error is raised and the method returns an empty list.",
    "Changed in version 3.8: the method accepts a list of items and returns the new object.",
    "It is an error if the version of the object is not the same as that of the new list.",
    "The items of the list are the same as those of the object that the method returns here.",
    "An error is raised if the new object is empty, and the list of items stays the same.",
]


class Lookup(nn.Module):
    """Predicts the next token from the last one alone, from a table of logits."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(
            torch.as_tensor(table, dtype=torch.float32)
        )

    def forward(self, input_ids):
        return self.table(input_ids)


def cycles(texts=10, length=14):
    """Texts in which each token is followed by the next one of WORDS, from different starts."""
    return Inputs.from_tokens((np.arange(length) + np.arange(texts)[:, None]) % WORDS)


def planted_tables():
    """Logits by the last token: COMMON at step 10, the right token from 20 on.

    At step 40 the first half of the tokens is forgotten.
    """
    common = np.zeros((WORDS, WORDS))
    common[:, COMMON] = 3.0
    right = 4.0 * np.roll(np.eye(WORDS), 1, axis=1)
    forgotten = right.copy()
    forgotten[: WORDS // 2] = np.eye(WORDS)[: WORDS // 2]
    return {0: 2 * np.eye(WORDS), 10: common, 20: right, 40: forgotten, 60: 2 * right}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The result of the planted tables, and the token before each gap."""
    models = {step: Lookup(table) for step, table in planted_tables().items()}
    observable = Predictions(n_gaps=5, top=4, objective="causal")
    study = og.Study(
        og.Trajectory.from_models(models), cycles(), [observable], device="cpu"
    )
    tree = study.run(tmp_path_factory.mktemp("planted") / "study")
    text, position = choose_gaps(cycles(), 5)
    return tree["predictions"].to_dataset(), cycles().ids[text, position - 1]


def test_ids_without_a_tokenizer_stand_apart_around_a_gap():
    inputs = Inputs.from_tokens([[5, 61, 7, 83]])
    gaps = gaps_at(inputs, np.array([0]), np.array([2]), [str(i) for i in range(90)])
    assert (gaps.before, gaps.after) == ((" 5 61",), (" 83",))


def test_answers_are_those_of_the_planted_tables(planted):
    data, before = planted
    np.testing.assert_array_equal(data.right_id, (before + 1) % WORDS)
    for step, table in planted_tables().items():
        p = (np.exp(table) / np.exp(table).sum(axis=1, keepdims=True))[before]
        at, right = data.sel(step=step), data.right_id.values
        own = p[np.arange(5), right]
        np.testing.assert_allclose(at.right_probability, own, rtol=1e-5)
        np.testing.assert_allclose(
            at.answer_probability, -np.sort(-p)[:, :4], rtol=1e-5
        )
        np.testing.assert_array_equal(
            at.answer_id, np.argsort(-p, axis=1, kind="stable")[:, :4]
        )
        ties = [(row[:i] == row[i]).sum() for row, i in zip(p, right, strict=True)]
        np.testing.assert_array_equal(
            at.right_rank, 1 + (p > own[:, None]).sum(axis=1) + ties
        )
        assert float(at.right) == pytest.approx(own.mean())


def test_the_right_token_leads_from_its_planted_step(planted):
    data, before = planted
    forgotten = before < WORDS // 2
    assert forgotten.any() and not forgotten.all()
    np.testing.assert_array_equal(data.right_leads_from, np.where(forgotten, 60, 20))
    # Right at step 10 by luck, until step 40.
    common = np.where(data.right_id == COMMON, 0, 10)
    np.testing.assert_array_equal(
        data.right_leads_after, np.where(forgotten, 40, common)
    )


def test_who_knows_frequencies_alone_gives_one_answer_everywhere(planted):
    data, _ = planted
    count = data.sizes["gap"]
    assert data.shared_first_answer.sel(step=10) == count
    assert float(data.shared_first_answer_frequencies) == count
    said = said_of(Predictions(), data)
    assert f"{count} of {count} gaps share one first answer at step 10." in said
    leads = f"The right answer leads in 5 of {count} gaps in the end (at first 0; most "
    assert any(text.startswith(leads) for text in said)


def test_gaps_are_said_to_share_an_answer_only_where_two_do(planted):
    data, _ = planted
    for count, is_said in ((2, True), (1, False)):
        same = xr.full_like(data.shared_first_answer, count)
        said = said_of(Predictions(), data.assign(shared_first_answer=same))
        assert any("share one first answer" in text for text in said) is is_said


def test_right_tokens_at_the_end_stand_beside_those_at_first_and_in_control_runs(
    planted,
):
    data, _ = planted
    count = data.sizes["gap"]
    share = np.full((2, data.sizes["step"]), np.nan)
    share[:, -1] = 4 / count, 2 / count
    data = data.assign(right_first_control=(("run", "step"), share))
    [words] = [w for w in said_of(Predictions(), data) if "answer leads in" in w]
    assert f"leads in 5 of {count} gaps in the end (at first 0; most" in words
    assert words.endswith("; controls 2 to 4).")
    share[:, -1] = np.nan  # not read at the last step
    assert "control" not in " ".join(said_of(Predictions(), data))


def test_word_frequencies_are_those_of_other_texts(planted):
    data, _ = planted
    ids, (text, _) = cycles().ids, choose_gaps(cycles(), 5)
    shares = [
        (np.delete(ids, row, axis=0) == right).mean()
        for row, right in zip(text, data.right_id.values, strict=True)
    ]
    np.testing.assert_allclose(data.frequency, shares)
    assert float(data.right_frequencies) == pytest.approx(np.mean(shares))
    guessed = (data.frequent_id == data.right_id).mean()
    assert float(data.right_first_frequencies) == pytest.approx(float(guessed))


def test_leads_equal_a_plain_loop():
    rng = np.random.default_rng(0)
    steps = np.array([0, 3, 7, 9, 20])
    leads = rng.integers(0, 2, (5, 200)).astype(float)
    leads[2] = np.nan
    begin, before = leads_from(steps, leads)
    kept = [0, 1, 3, 4]
    for gap in range(200):
        from_, last = np.nan, np.nan
        for i in kept:
            if all(leads[j, gap] for j in kept if j >= i):
                from_ = steps[i]
                last = steps[max([j for j in kept if j < i], default=i)]
                break
        np.testing.assert_equal((begin[gap], before[gap]), (from_, last))


def test_no_finished_step_has_no_lead():
    begin, before = leads_from(np.array([0, 5]), np.full((2, 3), np.nan))
    assert np.isnan(begin).all() and np.isnan(before).all()


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS * 3, vocab_size=330)


def test_chosen_gaps_are_free_words_in_distinct_texts(tokenizer):
    inputs = Inputs.from_texts(TEXTS, tokenizer, max_length=64)
    text, position = choose_gaps(inputs, 4)
    assert len(set(text)) == 4
    ids = inputs.ids[text, position]
    assert len(set(ids)) == 4
    units = [sum(i in row for row in inputs.ids) for i in ids]
    assert min(units) > 1
    gaps = gaps_at(inputs, text, position, [])
    for before, i, after in zip(gaps.before, ids, gaps.after, strict=True):
        word = tokenizer.decode([i]).strip()
        assert word.isalpha() and before.endswith(" ") and not after[:1].isalnum()
        assert f"{before}{word}{after}" in TEXTS
    counts = np.bincount(inputs.ids[inputs.ordinary])[ids]
    assert (np.diff(counts) <= 0).all()


def test_the_choice_depends_on_its_seed_alone(tokenizer):
    inputs = Inputs.from_texts(TEXTS, tokenizer, max_length=64)
    first = choose_gaps(inputs, 4, random_state=1)
    np.testing.assert_array_equal(
        first, choose_gaps(inputs.padded("left"), 4, random_state=1)
    )
    others = [choose_gaps(inputs, 4, random_state=seed) for seed in range(2, 6)]
    assert any(not np.array_equal(first, other) for other in others)


def test_half_of_the_right_tokens_are_frequent():
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, 201)
    inputs = Inputs.from_tokens(rng.choice(200, (80, 40), p=share / share.sum()))
    text, position = choose_gaps(inputs, 10)
    chosen = inputs.ids[text, position]
    counts = np.bincount(inputs.ids.ravel(), minlength=200)
    order = np.argsort(-counts, kind="stable")
    frequent = set(
        order[: 1 + int(np.argmax(np.cumsum(counts[order]) >= counts.sum() / 2))]
    )
    assert sum(i in frequent for i in chosen) == 5


def test_scripts_without_spaces_have_gaps_of_letters():
    rng = np.random.default_rng(0)
    texts = tuple(
        "".join(rng.choice(list("的一是不了人我在有他"), 19)) + "。" for _ in range(8)
    )
    ids = np.array([[ord(c) - ord("。") for c in text] for text in texts])
    spans = np.tile(np.stack([np.arange(20), np.arange(1, 21)], axis=1), (8, 1, 1))
    everywhere = np.ones(ids.shape, dtype=bool)
    inputs = Inputs(
        ids=ids, mask=everywhere, special=~everywhere, spans=spans, texts=texts
    )
    text, position = choose_gaps(inputs, 6)
    assert len(set(text)) == 6
    assert all(
        texts[t][p] != "。" and 8 <= p < 16 for t, p in zip(text, position, strict=True)
    )


def test_texts_of_one_document_give_one_gap():
    rows = np.random.default_rng(0).integers(0, 9, (6, 20))
    inputs = Inputs.from_tokens(rows, documents=["a", "a", "a", "b", "b", "b"])
    text, _ = choose_gaps(inputs, 5)
    assert sorted(t // 3 for t in text) == [0, 1]


def test_texts_of_one_token_leave_nothing_out():
    with pytest.raises(
        ArgumentError, match="no text has an ordinary token after its first"
    ):
        choose_gaps(Inputs.from_tokens([[1], [2]]), 2)


def test_shares_leave_out_the_units_they_are_asked_for():
    inputs = Inputs.from_tokens([[1, 1, 2], [1, 2, 2, 3]])
    share, most, its = shares_elsewhere(
        inputs, np.array([2, 2, 9]), np.array([0, -1, 1])
    )
    assert share.tolist() == pytest.approx([0.5, 3 / 7, 0.0])
    assert most.tolist() == [2, 1, 1] and its.tolist() == pytest.approx(
        [0.5, 3 / 7, 2 / 3]
    )
    alone = shares_elsewhere(Inputs.from_tokens([[1, 2]]), np.array([1]), np.array([0]))
    assert np.isnan(alone[0]).all() and alone[1].tolist() == [-1]


def word_pieces():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [
        "[PAD]",
        "[MASK]",
        "[UNK]",
        "the",
        "list",
        "of",
        "item",
        "##s",
        "empty",
        "is",
        ".",
    ]
    whole = Tokenizer(
        models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]")
    )
    whole.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return PreTrainedTokenizerFast(
        tokenizer_object=whole,
        pad_token="[PAD]",
        mask_token="[MASK]",
        unk_token="[UNK]",
    )


def sentence_pieces():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["▁the", "▁list", "▁of", "▁item", "s", "▁is", "▁empty", ".", "▁", "a"]
    vocabulary = [("<pad>", 0.0), ("<unk>", 0.0), *((word, -2.0) for word in words)]
    whole = Tokenizer(models.Unigram(vocabulary, unk_id=1))
    whole.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", unk_token="<unk>"
    )


@pytest.mark.parametrize("make", [word_pieces, sentence_pieces])
def test_sentences_are_tokenised_as_with_their_answers(make):
    tokenizer = make()
    gaps = given_gaps(
        ["the ____[list] is empty.", "the ____[items] of the list"], tokenizer
    )
    for row, text in enumerate(["the list is empty.", "the items of the list"]):
        kept = gaps.inputs.ids[row][gaps.inputs.mask[row]]
        assert kept.tolist() == tokenizer(text, add_special_tokens=False).input_ids
    assert gaps.position.tolist() == [1, 1] and gaps.width.tolist() == [1, 2]
    pieces = tokenizer.convert_ids_to_tokens(gaps.right_id.tolist())
    assert [p.strip("▁") for p in pieces] == ["list", "item"]
    assert gaps.before == ("the ", "the ") and gaps.after == (
        " is empty.",
        " of the list",
    )


def test_a_gap_without_an_answer_is_one_token_wide(tokenizer):
    gaps = given_gaps(
        ["The method ____ a new list.", "Changed in version 3____8: new."], tokenizer
    )
    assert gaps.width.tolist() == [1, 1] and gaps.right_id.tolist() == [-1, -1]
    pieces = tokenizer.batch_decode(
        [[i] for i in gaps.inputs.ids[1][gaps.inputs.mask[1]]]
    )
    assert (
        pieces[int(gaps.position[1]) - 1] == "3"
        and pieces[int(gaps.position[1]) + 1] == "8"
    )


def test_a_causal_model_sees_nothing_behind_the_gap(tokenizer):
    gaps = given_gaps(["The method ____[returns] a new list."], tokenizer).cut()
    assert gaps.after == ("",) and gaps.width.tolist() == [1]
    assert gaps.inputs.lengths.tolist() == [int(gaps.position[0]) + 1]
    assert int(gaps.inputs.ids[0, -1]) == int(gaps.right_id[0])


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("no gap", "must have one gap, written ____, .* got 0"),
        ("a ____ and ____", "got 2"),
        ("a ____[] b", "the answer in .* is empty"),
    ],
)
def test_sentences_without_one_gap_are_refused(sentence, words):
    with pytest.raises(ArgumentError, match=words):
        Predictions([sentence])


def test_a_gap_inside_a_token_is_refused(tokenizer):
    with pytest.raises(ArgumentError, match="does not begin and end where tokens"):
        given_gaps(["The met____[h]od returns"], tokenizer)


def test_sentences_need_a_fast_tokenizer():
    with pytest.raises(
        ArgumentError, match="sentences need a fast tokenizer, and the run has no"
    ):
        given_gaps(["a ____ b"], None)


@pytest.mark.parametrize(
    "options", [{"n_gaps": 0}, {"top": 0}, {"objective": "class"}, {"sentences": [""]}]
)
def test_arguments_out_of_range_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        Predictions(**options)


@pytest.fixture(scope="module")
def said(tokenizer, tmp_path_factory):
    """Sentences put to two models in a study, the models, and the result."""
    models = {step: tiny_model(step, vocabulary=len(tokenizer)) for step in (0, 5, 10)}
    trajectory = og.Trajectory.from_models(models, tokenizer=tokenizer)
    inputs = Inputs.from_texts(TEXTS, tokenizer, max_length=48)
    sentences = ["The ____[items] of the list", "If the ____ is not iterable,"]
    observable = Predictions(sentences, top=3)
    study = og.Study(
        trajectory, inputs, [observable], device="cpu", controls=2, control_steps=3
    )
    tree = study.run(tmp_path_factory.mktemp("said") / "study")
    return tree["predictions"].to_dataset(), models


def test_sentences_get_the_models_own_answers(said, tokenizer):
    data, models = said
    masked = ["The<|mask|> of the list", "If the<|mask|> is not iterable,"]
    items = tokenizer(" items", add_special_tokens=False).input_ids
    masked[0] = masked[0].replace("<|mask|>", "<|mask|>" * len(items))
    for step, model in models.items():
        for gap, text in enumerate(masked):
            ids = torch.tensor([tokenizer(text).input_ids])
            at = int((ids[0] == tokenizer.mask_token_id).nonzero()[0])
            with torch.no_grad():
                p = model(input_ids=ids).logits[0, at].double().softmax(-1).numpy()
            found = data.sel(step=step).isel(gap=gap)
            np.testing.assert_allclose(
                found.answer_probability, -np.sort(-p)[:3], rtol=1e-4
            )
            assert found.answer_id.values.tolist() == np.argsort(-p)[:3].tolist()
            if gap == 0:
                assert float(found.right_probability) == pytest.approx(
                    p[items[0]], rel=1e-4
                )
                assert int(data.right_id[0]) == items[0]
            else:
                assert np.isnan(found.right_probability) and int(found.right_rank) == -1


def test_pieces_of_all_ids_are_there(said, tokenizer):
    data, _ = said
    known = dict(
        zip(data.piece.values.tolist(), data.piece_text.values.tolist(), strict=True)
    )
    ids = {*data.answer_id.values.ravel().tolist(), *data.frequent_id.values.tolist()}
    assert ids <= set(known)
    spaced = next(i for i in known if known[i].startswith(" "))
    assert tokenizer.decode([spaced]) == known[spaced]


def test_control_runs_stand_beside_each_quantity(said):
    data, _ = said
    for name in ("right", "right_first", "shared_first_answer"):
        assert data[f"{name}_control"].dims == ("step", "run") or (
            set(data[f"{name}_control"].dims) == {"step", "run"}
        )
    assert "row" not in data.dims  # a few examples are no claim


def test_the_page_shows_the_answers(said):
    data, _ = said
    kinds = [figure["kind"] for figure in json.loads(data.attrs["figures"])]
    assert kinds == ["curves", "curves", "table", "curves"]
    assert data.gap_text.values.tolist() == [
        "The ____ of the list",
        "If the ____ is not iterable,",
    ]
    assert data.gap.values.tolist()[1] == "2"
    assert data.answer_at_last.values[0].endswith("%")


def test_missing_steps_stay_missing():
    cells = xr.Dataset(
        {
            "shared_first_answer": ("step", [2.0, np.nan, 1.0]),
            "answer_id": (("step", "gap", "rank"), [[[1.0]], [[np.nan]], [[2.0]]]),
            "answer_probability": (
                ("step", "gap", "rank"),
                [[[0.5]], [[np.nan]], [[0.9]]],
            ),
            "right_probability": (("step", "gap"), [[0.2], [np.nan], [0.9]]),
            "right_rank": (("step", "gap"), [[2.0], [np.nan], [1.0]]),
            "right_id": ("gap", [2]),
            "frequency": ("gap", [0.1]),
            "frequent_id": ("gap", [1]),
            "frequent_share": ("gap", [0.2]),
            "gap_before": ("gap", ["a"]),
            "gap_after": ("gap", ["b"]),
            "vocabulary_pieces": ("vocabulary", ["x", "y", "z"]),
        },
        coords={"step": [0, 5, 9], "rank": [1]},
    )
    found = Predictions().summarise(cells, {})
    assert found.answer_id.values.ravel().tolist() == [1, -1, 2]
    assert (
        float(found.right_leads_from[0]) == 9 and float(found.right_leads_after[0]) == 0
    )
    assert found.answer_at_last.values.tolist() == ["z 90 %"]


def test_a_masked_model_without_a_mask_token_is_refused_when_planned():
    trajectory = og.Trajectory.from_models({0: tiny_model(0), 1: tiny_model(1)})
    inputs = Inputs.from_tokens(np.random.default_rng(0).integers(4, 40, (6, 10)))
    with pytest.raises(ArgumentError, match="no mask token"):
        og.Study(trajectory, inputs, [Predictions()], device="cpu").plan()


def test_a_gap_with_nothing_before_it_is_refused_by_its_sentence():
    """GPT-2's tokenizer begins no text with a token of its own."""
    inputs = Inputs.from_tokens([[5, 6, 7], [8, 9]])
    pieces = ["?"] * 8 + [" cat", " sat"]
    gaps = gaps_at(inputs, np.array([0, 1]), np.array([1, 0]), pieces)
    with pytest.raises(ArgumentError, match="before that of '____ sat'; move the gap"):
        gaps.cut()
