"""The loss of every token against direct evaluation, and the lines that it is read against."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.capture_models import MASK, build
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.features.predictions import loss
from ontogeny.inputs import Inputs, ShownTexts
from ontogeny.observables import TokenLosses
from ontogeny.observables.known_texts import KnownTexts
from ontogeny.observables.word_frequencies import bigram_costs, guesses, token_costs

LENGTHS = (9, 14, 3, 12, 14, 6)


def texts(side="right"):
    rng = np.random.default_rng(0)
    rows = [[5, *rng.integers(6, 30, length - 1)] for length in LENGTHS]
    inputs = Inputs.from_tokens(
        rows, special_ids=[5], mask_token_id=MASK, vocab_size=64
    )
    return inputs.padded(side)


def own_losses(model, ids, masked):
    """Minus the log-probability of each token by a pass of its own; NaN for the first."""
    found = np.full(len(ids), np.nan)
    for place in range(1, len(ids)):
        shown = ids.copy()
        if masked:
            shown[place] = MASK
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(shown[None])).logits[0].double()
        own = torch.log_softmax(logits[place if masked else place - 1], dim=-1)
        found[place] = -float(own[ids[place]])
    return found


@pytest.fixture(scope="module", params=["gpt2", "bert"])
def result(request, tmp_path_factory):
    models = {step: build(request.param, seed=step) for step in (0, 1, 2)}
    study = og.Study(
        og.Trajectory.from_models(models),
        texts("left"),
        [TokenLosses(2, 10)],
        device="cpu",
    )
    tree = study.run(tmp_path_factory.mktemp(request.param) / "study")
    return tree["token-losses"].to_dataset(), models, request.param


def test_losses_equal_a_pass_for_each_token(result):
    data, models, family = result
    inputs = texts()
    for step, model in models.items():
        for row, text in enumerate(data.text_number.values):
            ids = inputs.ids[text][inputs.mask[text]]
            own = own_losses(model, ids, family == "bert")[:10]
            at = data.sel(step=step).isel(text=row)
            np.testing.assert_allclose(at.token_loss, own, rtol=1e-4)
            assert at.token_id.values.tolist() == ids[:10].tolist()
            assert float(at.text_loss) == pytest.approx(np.nanmean(own), rel=1e-4)
        shown = data.sel(step=step)
        assert float(shown.shown_loss) == pytest.approx(
            np.nanmean(shown.token_loss.values)
        )


def test_long_texts_of_different_units_are_chosen(result):
    data, _, _ = result
    assert (
        set(data.text_number.values.tolist()) <= {1, 3, 4} and data.sizes["place"] == 10
    )
    copies = Inputs.from_tokens([[5, 6, 7, 8]] * 3 + [[6, 7]])
    chosen = ShownTexts.of(copies, 3, 8).number
    assert len(chosen) == 2 and 3 in chosen


def test_a_token_that_is_not_predicted_has_no_rank(result):
    data, _, _ = result
    nothing = np.isnan(data.token_loss.values)
    assert nothing[..., 0].all() and not nothing[..., 1:].any()
    np.testing.assert_array_equal(data.token_rank.values == -1, nothing)
    assert np.isnan(data.token_leads_from.values[:, 0]).all()


def test_a_right_token_leads_where_it_stays_first(result):
    data, _, _ = result
    first = data.token_rank.values == 1
    for text, place in np.ndindex(*first.shape[1:]):
        held = [s for i, s in enumerate((0, 1, 2)) if first[i:, text, place].all()]
        np.testing.assert_equal(
            data.token_leads_from.values[text, place], min(held, default=np.nan)
        )


def test_word_frequencies_stand_beside_each_token(result):
    data, _, _ = result
    inputs = texts()
    row, place = np.nonzero(np.isfinite(data.token_loss_frequencies.values))
    costs = token_costs(inputs, data.text_number.values[row], place, 64)
    np.testing.assert_allclose(data.token_loss_frequencies.values[row, place], costs)
    assert float(data.shown_loss_frequencies) == pytest.approx(costs.mean())


def test_bigrams_stand_beside_each_token_of_causal_models_alone(result):
    data, _, family = result
    assert ("token_loss_bigrams" in data) == (family == "gpt2")
    if family == "gpt2":
        row, place = np.nonzero(np.isfinite(data.token_loss.values[0]))
        costs = bigram_costs(texts(), data.text_number.values[row], place, 64)
        found = data.token_loss_bigrams.values
        np.testing.assert_allclose(found[row, place], costs)
        assert np.isfinite(found).sum() == len(row)


def test_bigrams_of_single_tokens_count_all_texts_whichever_are_asked_for():
    inputs = texts()
    predicted = inputs.scored & (np.arange(inputs.ids.shape[1]) > 0)
    text, column = np.nonzero(predicted)
    costs = bigram_costs(inputs, text, column, 64)
    of_text = np.bincount(text, costs) / np.bincount(text)
    expected = guesses(inputs, predicted, 64, pairs=True)["bigram"]
    np.testing.assert_allclose(of_text, expected)
    some = text == 1
    asked = bigram_costs(inputs, text[some], column[some], 64)
    np.testing.assert_array_equal(asked, costs[some])


def test_what_is_beyond_a_text_is_empty(tmp_path):
    trajectory = og.Trajectory.from_models({s: build("gpt2", seed=s) for s in (0, 1)})
    inputs = Inputs.from_tokens([[6, 7, 8, 9], [6, 7]])
    tree = og.Study(trajectory, inputs, [TokenLosses()], device="cpu").run(
        tmp_path / "study"
    )
    data = tree["token-losses"]
    assert data.token_id.values.tolist() == [[6, 7, 8, 9], [6, 7, -1, -1]]
    assert np.isfinite(data.token_loss.values[0]).tolist() == [
        [False, True, True, True],
        [False, True, False, False],
    ]
    assert data.piece.values.tolist() == [6, 7, 8, 9]


def test_a_reference_step_that_is_not_finite_loses_its_own_cells_alone(tmp_path):
    models = {step: build("llama", seed=step) for step in (0, 1, 2)}
    with torch.no_grad():
        for weight in models[2].parameters():
            weight.fill_(float("nan"))
    study = og.Study(
        og.Trajectory.from_models(models), texts(), [TokenLosses(2, 10)], device="cpu"
    )
    with pytest.warns(StudyWarning):
        data = study.run(tmp_path / "study")["token-losses"].to_dataset()
    lost = np.isnan(data.token_loss.values).all(axis=(1, 2))
    assert lost.tolist() == [False, False, True]
    assert data.status.values[2].startswith("failed: NonFiniteError")


def test_the_result_says_whether_tokens_were_masked(result):
    data, _, family = result
    assert bool(data.masked) == (family == "bert")


@pytest.mark.parametrize(
    "options", [{"n_texts": 0}, {"max_tokens": 1}, {"objective": "class"}]
)
def test_arguments_out_of_range_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        TokenLosses(**options)


def test_word_frequencies_cost_the_same_with_bigrams_and_alone():
    inputs = texts()
    predicted = inputs.ordinary & (np.arange(inputs.ids.shape[1]) > 0)
    found = guesses(inputs, predicted, 64, pairs=True)
    alone = guesses(inputs, predicted, 64, pairs=False)
    np.testing.assert_array_equal(found["unigram"], alone["unigram"])
    text, column = np.nonzero(predicted)
    costs = token_costs(inputs, text, column, 64)
    of_text = np.bincount(text, costs) / np.bincount(text)
    np.testing.assert_allclose(alone["unigram"], of_text, rtol=1e-10)


def test_lines_of_the_loss_are_made_once_for_all_steps(tmp_path, monkeypatch):
    made = []

    def counted(*args, **options):
        made.append(args)
        return guesses(*args, **options)

    monkeypatch.setattr(loss, "guesses", counted)
    loss._guesses.cache_clear()
    models = {step: build("gpt2", seed=step) for step in range(4)}
    study = og.Study(
        og.Trajectory.from_models(models),
        texts(),
        [og.observables.Loss()],
        device="cpu",
    )
    node = study.run(tmp_path / "study")["loss"]
    # Two texts in the dry run.
    assert [len(args[0]) for args in made] == [2, len(LENGTHS)]
    inputs, predicted = texts(), np.zeros(texts().ids.shape, dtype=bool)
    predicted[:, 1:] = inputs.ordinary[:, 1:]
    alone = guesses(inputs, predicted, 64, pairs=False)["unigram"]
    np.testing.assert_array_equal(node.loss_unigram_of_text, alone)


def test_other_texts_or_masks_get_lines_of_their_own():
    loss._guesses.cache_clear()
    one, other = (
        texts(),
        Inputs.from_tokens([[6, 7, 8], [7, 8, 9, 6]], mask_token_id=MASK),
    )
    keys = [
        (one, 64, None),
        (other, 64, None),
        (one, 65, None),
        (one, 64, (0.15, 0)),
        (one, 64, (0.15, 1)),
    ]
    found = [loss._guesses(KnownTexts.of(i), *rest) for i, *rest in keys]
    assert loss._guesses.cache_info().misses == len(keys)
    assert [len(each) for each in found] == [2, 2, 2, 1, 1]
    assert not found[0][0][1].flags.writeable


def test_texts_with_nothing_to_predict_in_what_is_shown_are_not_chosen():
    """A prompt that is marked as special fills all that is shown of the first text."""
    special = [[1, 1, 0, 0], [1, 0, 0, 0]]
    inputs = Inputs.from_tokens([[1, 2, 3, 4], [1, 5, 6, 7]], special=special)
    assert ShownTexts.of(inputs, 2, 2).number.tolist() == [1]
    with pytest.raises(ArgumentError, match="max_tokens=2"):
        ShownTexts.of(inputs.subset([0]), 1, 2)
