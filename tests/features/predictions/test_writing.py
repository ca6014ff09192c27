"""What a model writes, against passes of one token at a time and against planted distributions."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.capture_models import MASK, build
from ontogeny.capture.predictor import Predictor
from ontogeny.capture.writing import LIKELIEST, NOTHING, continued, filled
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.predictions.prompts import beginnings, given_prompts
from ontogeny.inputs import Inputs
from ontogeny.observables import Writing
from ontogeny.tasks import train_tokenizer


def likeliest(model, ids, count):
    """Append the token of the largest logit, by a whole pass for each."""
    ids = list(ids)
    for _ in range(count):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits
        ids.append(int(logits[0, -1].argmax()))
    return ids[-count:]


class Planted(nn.Module):
    """Says the same at every place, whatever it reads."""

    def __init__(self, shares):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(shares).log())

    def forward(self, input_ids):
        return self.logits.expand(*input_ids.shape, -1)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_what_is_written_is_the_largest_logit_each_time(family):
    model = build(family, seed=1)
    prompt = [5, 9, 7, 11]
    written = continued(Predictor(model, "causal"), [prompt], 12)[0]
    stop = model.generation_config.eos_token_id
    expected = likeliest(model, prompt, 12)
    if stop in expected:
        end = expected.index(stop) + 1
        expected[end:] = [NOTHING] * (12 - end)
    assert written[0].tolist() == expected


def test_a_model_that_cannot_generate_writes_the_same(monkeypatch):
    model = build("gpt2", seed=2)
    model.generation_config.eos_token_id = None
    prompt = [5, 9, 7]
    by_generate = continued(
        Predictor(model, "causal"), [prompt, prompt[::-1]], 8, random_state=3
    )
    monkeypatch.setattr(type(model), "can_generate", lambda *_: False)
    again = continued(
        Predictor(model, "causal"), [prompt, prompt[::-1]], 8, random_state=3
    )
    assert (by_generate == again).all()


def test_settings_of_the_model_change_nothing():
    model = build("gpt2", seed=2)
    before = continued(Predictor(model, "causal"), [[5, 9]], 8)
    model.generation_config.temperature = 9.0
    model.generation_config.do_sample = True
    model.generation_config.repetition_penalty = 50.0
    assert (continued(Predictor(model, "causal"), [[5, 9]], 8) == before).all()


def test_draws_have_the_planted_shares_and_the_likeliest_is_always_the_same():
    shares = [0.5, 0.3, 0.15, 0.05]
    predictor = Predictor(Planted(shares), "causal")
    rows = np.stack([continued(predictor, [[1]], 10, seed)[0] for seed in range(60)])
    assert (rows[:, 0] == 0).all()
    counts = np.bincount(rows[:, 1].ravel(), minlength=4) / rows[:, 1].size
    # Of 600 draws a share of a half has a standard error of .02.
    assert np.abs(counts - shares).max() < 0.08


def test_the_draw_is_among_the_likeliest_alone():
    shares = np.full(LIKELIEST + 60, 1e-3)
    shares[:LIKELIEST] = 2e-3
    predictor = Predictor(Planted((shares / shares.sum()).tolist()), "causal")
    rows = [continued(predictor, [[1]], 20, seed)[0, 1] for seed in range(5)]
    assert np.max(rows) < LIKELIEST
    assert len(np.unique(rows)) > 20


def test_writing_ends_where_the_text_ends_and_where_the_model_reads_no_further():
    model = build("gpt2", seed=4)
    first = likeliest(model, [5, 9], 1)[0]
    model.generation_config.eos_token_id = first
    written = continued(Predictor(model, "causal"), [[5, 9]], 6)[0]
    assert written[0].tolist() == [first, *[NOTHING] * 5]
    model.generation_config.eos_token_id = None
    longest = model.config.n_positions
    prompt = np.full(longest - 2, 5)
    assert (continued(Predictor(model, "causal"), [prompt], 6)[0, 0] >= 0).sum() == 2


def test_weights_that_are_not_finite_write_nothing():
    model = build("gpt2", seed=4)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="not finite where it writes"):
        continued(Predictor(model, "causal"), [[5, 9]], 3)


def test_gaps_are_filled_from_left_to_right():
    model = build("bert", seed=5)
    ids = np.array([5, 9, 7, 11, 8, 6])
    text = Inputs.from_tokens([ids], mask_token_id=MASK, vocab_size=64)
    got = filled(Predictor(model, "masked"), text, 2, 3)[0]
    seen = ids.copy()
    seen[2:5] = MASK
    for place in range(2, 5):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(seen[None])).logits
        seen[place] = int(logits[0, place].argmax())
    assert got.tolist() == seen[2:5].tolist()


def test_a_prompt_is_half_of_a_text_or_what_stands_before_the_answer():
    rows = [[5, *range(10, 20)], [5, *range(20, 30)]]
    inputs = Inputs.from_tokens(rows, special_ids=[5], vocab_size=64)
    pieces = [str(i) for i in range(64)]
    halves = beginnings(inputs, pieces, False, 2, 24, 60, 0)
    assert [p.ids.tolist() for p in halves] == [row[:6] for row in rows]
    assert [p.follows.tolist() for p in halves] == [row[6:] for row in rows]
    asked = Inputs.from_tokens(rows, special_ids=[5], vocab_size=64, score="last:2")
    before = beginnings(asked, pieces, False, 1, 24, 60, 0)[0]
    assert before.count == 2
    assert before.ids.tolist() in [row[:-2] for row in rows]


def test_a_short_answer_shortens_no_other_one():
    rows = [[5, *range(10, 20), 9, 11], [5, *range(20, 25), 9, *range(31, 36)]]
    inputs = Inputs.from_tokens(
        rows, special_ids=[5], vocab_size=64, score="answer", answer_after=[9]
    )
    both = beginnings(inputs, [str(i) for i in range(64)], False, 2, 24, 60, 0)
    assert [p.follows.tolist() for p in both] == [[11], rows[1][7:]]


def test_prompts_of_ones_own_end_where_they_were_written():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    (prompt,) = given_prompts(["the cat"], tokenizer, False, 9, 16)
    assert tokenizer.decode(prompt.ids, skip_special_tokens=True).strip() == "the cat"
    assert prompt.ids[-1] != tokenizer.eos_token_id
    with pytest.raises(ArgumentError, match="prompts need a tokenizer"):
        given_prompts(["the cat"], None, False, 9, 16)
    with pytest.raises(ArgumentError, match="must have a token"):
        given_prompts(["the cat", " "], tokenizer, False, 9, 16)


def test_prompts_that_leave_no_room_to_write_are_refused():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    texts = ["the cat", "the cat sat"]  # the longer one has four tokens
    assert len(given_prompts(texts, tokenizer, False, 9, 5)) == 2
    with pytest.raises(ArgumentError, match=r"of the 4 .* got 4 in 'the cat sat'"):
        given_prompts(texts, tokenizer, False, 9, 4)


def test_a_masked_model_fills_as_many_gaps_as_it_has_room_for():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    texts = ["the cat ____ on"]
    (free,) = given_prompts(texts, tokenizer, True, 9, 99)
    beside = len(free.ids) - 9
    (tight,) = given_prompts(texts, tokenizer, True, 9, beside + 2)
    assert (tight.count, len(tight.ids)) == (2, beside + 2)
    with pytest.raises(ArgumentError, match=f"of the {beside} .* got {beside} in"):
        given_prompts(texts, tokenizer, True, 9, beside)


FITS = ("the cat", "____ ____", "____[ ]")  # what a causal model goes on with


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("text", [*FITS, "", " ", "the " * 600])
def test_no_error_of_a_prompt_speaks_of_another_argument(text, masked):
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    for reads in (tokenizer, None):
        if reads is not None and not masked and text in FITS:
            assert given_prompts([text], reads, masked, 9, 16)
            continue
        with pytest.raises(ArgumentError) as refusal:
            given_prompts([text], reads, masked, 9, 16)
        message = str(refusal.value)
        assert "sentences" not in message
        assert "prompts" in message or repr(text) in message


def test_nothing_of_the_answer_stands_beside_the_gaps():
    tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    (prompt,) = given_prompts(["the ____[cat sat] on"], tokenizer, True, 3, 16)
    behind = prompt.ids[prompt.at + prompt.count :]
    assert tokenizer.decode(behind, skip_special_tokens=True) == " on"


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_a_study_holds_what_each_checkpoint_writes(family, tmp_path):
    models = {step: build(family, seed=step) for step in (0, 1, 2)}
    rng = np.random.default_rng(0)
    rows = [[5, *rng.integers(6, 30, 11)] for _ in range(4)]
    inputs = Inputs.from_tokens(
        rows, special_ids=[5], mask_token_id=MASK, vocab_size=64
    )
    study = og.Study(
        og.Trajectory.from_models(models), inputs, [Writing(n_tokens=5)], device="cpu"
    )
    data = study.run(tmp_path / "study")["writing"].to_dataset()
    ids = data.written_id.transpose("step", "prompt", "choice", "written").values
    assert ids.shape[:3] == (3, 2, 2)
    if family == "gpt2":
        prompts = data.prompt_id.values  # of one length
        expected = continued(Predictor(models[2], "causal"), prompts, 5, 0)
        assert ids[2].tolist() == expected.tolist()
    assert data.prompt_text.values[0]
    assert data.written_at_last.values[0] != data.written_at_first.values[0]
