"""Head scores against hand-made heads, and against a plain loop over attention maps."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import build, inputs_of
from helpers.hand_made_heads import HEADS, HandMadeModel
from ontogeny.capture.own_tokens import ordinary_tokens
from ontogeny.errors import ArgumentError, LayerMatchError, NonFiniteError
from ontogeny.features.circuits.reading import HeadScores, head_scores
from ontogeny.features.circuits.sequences import random_sequences, sequences_for
from ontogeny.observables import AttentionHeads


def read(model, inputs, **options):
    need = HeadScores(**options)
    return og.capture.read(model, [need], {"text": inputs})[need]


def texts(length=40, vocabulary=60, count=4):
    rows = np.random.default_rng(0).integers(5, vocabulary, (count, length))
    rows[:, 0] = 1
    return og.Inputs.from_tokens(rows, special_ids=[1], vocab_size=vocabulary)


def test_hand_made_heads_score_one_where_they_belong_and_nothing_elsewhere():
    found = read(HandMadeModel(), texts(), n_sequences=3, period=6)
    scores = found.repeated["attention"]
    assert scores.shape == (3, 3, 3)
    np.testing.assert_array_equal(
        scores, np.broadcast_to(np.eye(3)[..., None], (3, 3, 3))
    )
    np.testing.assert_array_equal(
        found.unrepeated["attention"].mean(-1), np.diag([1.0, 0, 0])
    )


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "bert"])
def test_scores_equal_a_plain_loop_over_the_maps_of_transformers(name):
    model, inputs, period = build(name), inputs_of(), 5
    found = read(model, inputs, n_sequences=3, period=period)
    sequences = sequences_for(model, inputs, 3, period, 0)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(
            torch.tensor(sequences.inputs.ids), output_attentions=True
        ).attentions
    for layer, scores in enumerate(found.repeated.values()):
        for head in range(4):
            for text in range(3):
                a = maps[layer][text, head].double().numpy()
                before = [a[i, i - 1] for i in range(1, 2 * period)]
                copy = [a[i, i - period] for i in range(period, 2 * period)]
                after = [a[i, i - period + 1] for i in range(period, 2 * period)]
                expected = [np.mean(each) for each in (before, copy, after)]
                np.testing.assert_allclose(scores[:, head, text], expected, atol=1e-6)


def test_equal_attention_is_that_of_all_visible_keys():
    causal, both = (
        read(build(name), inputs_of(), period=4).equal for name in ("gpt2", "bert")
    )
    np.testing.assert_allclose(both, 1 / 8)
    visible = 1 / np.arange(1, 9)
    np.testing.assert_allclose(
        causal, [visible[1:].mean(), visible[4:].mean(), visible[4:].mean()]
    )


def test_sequences_repeat_and_do_not_and_are_framed_as_the_texts_are():
    rows = [[1, 5, 6, 7, 8, 9, 10, 2], [1, 7, 2]]
    inputs = og.Inputs.from_tokens(
        rows, special_ids=[1, 2], vocab_size=30, mask_token_id=4
    )
    sequences = sequences_for(HandMadeModel(), inputs, 3, 10, 0)
    assert sequences.period == 3, (
        "a text of eight tokens has room for six between its frame"
    )
    ids = sequences.inputs.ids
    assert (ids[:, 0] == 1).all() and (ids[:, -1] == 2).all()
    halves = ids[:, sequences.place].reshape(6, 2, 3)
    assert (halves[:3, 0] == halves[:3, 1]).all() and (
        halves[:3, 0] == halves[3:, 0]
    ).all()
    assert all(len(set(row.tolist())) == 6 for row in ids[3:, sequences.place])
    assert set(ids[:, sequences.place].ravel().tolist()) <= set(range(30)) - {
        0,
        1,
        2,
        4,
    }


def test_the_same_seed_gives_the_same_sequences_and_another_gives_others():
    one, two, other = (random_sequences(range(40), 3, 6, s)[0] for s in (0, 0, 1))
    assert (one == two).all() and (one != other).any()


def test_tokens_are_those_of_model_and_tokenizer_or_those_that_occur():
    inputs = og.Inputs.from_tokens([[1, 5, 6], [7, 7, 9]], special_ids=[1])
    assert ordinary_tokens(None, inputs).tolist() == [5, 6, 7, 9]
    assert ordinary_tokens(build("gpt2"), inputs).tolist() == [*range(2, 64)]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            lambda: AttentionHeads(period=2),
            "period must be a whole number of at least 3",
        ),
        (
            lambda: AttentionHeads(n_sequences=3),
            "n_sequences must be a whole number of at least 4",
        ),
        (lambda: random_sequences(range(9), 1, 5), "tokens must hold 10 different ids"),
        (
            lambda: head_scores(np.ones((5, 5)), 3),
            r"\(\.\.\., 6, 6\) for a period of 3; got",
        ),
        (
            lambda: read(
                HandMadeModel(), og.Inputs.from_tokens([[5, 6, 7]], vocab_size=60)
            ),
            "takes texts of 3 tokens",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused_with_the_reason(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        wrong()


def test_a_model_without_maps_or_with_nan_is_refused():
    with pytest.raises(LayerMatchError, match="returned attention weights"):
        read(torch.nn.Sequential(torch.nn.Embedding(60, 4)), texts())
    with pytest.raises(NonFiniteError, match="'attention' are not finite"):
        read(HandMadeModel(float("nan")), texts(), period=4)


@pytest.fixture(scope="module")
def formed(tmp_path_factory):
    """The node of a run whose heads form between steps 32 and 64."""
    steps = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    models = {}
    for i, step in enumerate(steps):
        models[step] = HandMadeModel(0.02 + 0.9 / (1 + np.exp(6.0 - i) ** 2))
    run = og.Trajectory.from_models(models)
    study = og.Study(
        run, texts(24), AttentionHeads(n_sequences=6, period=5), device="cpu", noise=0
    )
    return study.run(tmp_path_factory.mktemp("heads"))["attention-heads"].to_dataset()


def test_the_step_of_formation_is_dated_by_the_rows_of_the_chart(formed):
    assert formed.row.values.tolist() == [
        f"attention · {score} head" for score in HEADS
    ]
    assert formed.strongest_head.isel(step=-1).squeeze().values.tolist() == [0, 1, 2]
    assert (formed.half_step > 16).all() and (formed.half_step < 64).all()
    assert (formed.first_value < 0.05).all() and (formed.last_value > 0.9).all()
    assert formed.changed.all()


def test_nulls_stand_beside_the_scores(formed):
    last = formed.isel(step=-1).squeeze("layer")
    unrepeated = last.strongest_score_unrepeated.sel(
        score=["duplicate-token", "induction"]
    )
    assert (unrepeated == 0).all()
    # A previous-token head needs no repetition, so that it would lie inside this null.
    assert formed.strongest_score_unrepeated.sel(score="previous-token").isnull().all()
    assert (last.strongest_score_first_high < 0.05).all()
    assert (formed.head_score_first.dims) == ("score", "initial_head")
