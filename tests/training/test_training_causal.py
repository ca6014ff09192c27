import json

import pytest
import torch

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError
from ontogeny.tasks import train_tokenizer
from ontogeny.training import (
    causal_language_modelling,
    causal_model,
    record_training_run,
    scrambled,
    train,
)
from ontogeny.training.causal import CausalBatch
from ontogeny.training.parallel import shared_among

TEXTS = [f"The number {n} comes after {n - 1}." for n in range(60)]
TOKENIZER = train_tokenizer(TEXTS, vocab_size=300)
TINY = {
    "steps": 12,
    "tokens_per_step": 64,
    "length": 16,
    "vocab_size": 300,
    "layers": 1,
}
TINY |= {"width": 16, "architecture": "gpt-neox"}


def task(**options):
    return causal_language_modelling(
        TEXTS, TOKENIZER, **{"length": 16, "tokens_per_step": 64} | options
    )


def small_model(**options):
    return causal_model(TOKENIZER, **{"layers": 2, "width": 32} | options)


def batch():
    return task().sample(torch.Generator().manual_seed(0))


def test_the_loss_is_that_of_transformers():
    model = small_model()
    theirs = model(input_ids=batch().ids, labels=batch().ids).loss
    torch.testing.assert_close(task().loss(model, batch()), theirs)


def test_crops_are_pieces_of_the_stream():
    made = task()
    windows = {tuple(row) for row in made.stream.unfold(0, 16, 1).tolist()}
    assert all(tuple(row) in windows for row in batch().ids.tolist())


def test_the_parts_of_a_batch_give_the_gradient_of_the_whole():
    whole, shared = small_model(), small_model()
    task().loss(whole, batch()).backward()
    with shared_among(3, task().loss) as gradient:
        gradient(shared, batch())
    for ours, theirs in zip(shared.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def test_a_batch_of_fewer_crops_than_parts_is_split_into_its_crops():
    parts = CausalBatch(torch.zeros(2, 4, dtype=torch.int64)).split(5)
    assert [share for _, share in parts] == [0.5, 0.5]


def test_unigram_entropy_of_equally_frequent_tokens_is_the_log_of_their_number():
    made = task()
    uniform = type(made)(torch.arange(8), 2, 1)
    assert uniform.unigram_entropy == pytest.approx(2.0794415)


def test_training_goes_below_the_unigrams_and_on_random_tokens_it_does_not():
    made, model = task(), small_model()
    last = train(model, made.sample, made.loss, 150).loss[-10:].mean()
    noise = made.scrambled("nothing", 0, TOKENIZER)
    other = small_model()
    without = train(other, noise.sample, noise.loss, 150).loss[-10:].mean()
    assert last < 0.6 * made.unigram_entropy
    assert without > made.unigram_entropy


def test_a_run_is_recorded_and_can_be_scrambled(tmp_path):
    run = record_training_run(tmp_path / "run", TEXTS, checkpoints=6, **TINY)
    trajectory = Trajectory.from_folder(run)
    assert trajectory[0].model().config.model_type == "gpt_neox"
    assert trajectory.steps.tolist() == [0, 1, 2, 4, 8, 12]
    log = json.loads((run / "training_log.json").read_text("utf-8"))
    assert log["settings"]["architecture"] == "gpt-neox"
    control = scrambled(run, tmp_path / "control", "frequencies", TEXTS)
    assert control[0].fingerprint == trajectory[0].fingerprint
    assert control[12].fingerprint != trajectory[12].fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"length": 1}, "length must be a whole number of at least 2; got 1"),
        ({"tokens_per_step": 20}, "multiple of length=16; got 20"),
        ({"length": 10**5, "tokens_per_step": 10**5}, "texts are too short"),
    ],
)
def test_a_wrong_task_is_refused(options, said):
    with pytest.raises(ArgumentError, match=said):
        task(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": 0}, "layers must be a whole number of at least 1"),
        ({"width": 30}, "even multiple of heads"),
    ],
)
def test_a_wrong_model_is_refused(options, said):
    with pytest.raises(ArgumentError, match=said):
        small_model(**options)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"architecture": "gpt-neo"}, "architecture must be .*gpt-neox"),
        ({"checkpoints": 3}, "checkpoints must be .*4"),
    ],
)
def test_a_wrong_setting_of_a_run_is_refused(tmp_path, changes, said):
    with pytest.raises(ArgumentError, match=said):
        record_training_run(tmp_path / "run", TEXTS, **TINY | changes)
