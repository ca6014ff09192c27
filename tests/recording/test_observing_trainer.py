"""Observing inside transformers' Trainer: through its own loggers, with the training unchanged."""

import numpy as np
import pytest
import torch
import transformers

import ontogeny as og
from ontogeny.observables import AttentionEntropy, Loss
from ontogeny.recording import read_observed, to_trainer
from ontogeny.recording.observer import Budget


def gpt2():
    torch.manual_seed(0)
    config = transformers.GPT2Config(  # with dropout, as it comes
        n_embd=16,
        n_layer=2,
        n_head=2,
        vocab_size=40,
        n_positions=16,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config)


def trainer(folder, callbacks=(), **more):
    ids = torch.randint(0, 40, (24, 8), generator=torch.Generator().manual_seed(1))
    arguments = {
        "logging_steps": 4,
        "report_to": [],
        "save_strategy": "no",
        "max_steps": 10,
        **more,
    }
    return transformers.Trainer(
        model=gpt2(),
        args=transformers.TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=4,
            learning_rate=1e-2,
            seed=3,
            use_cpu=True,
            disable_tqdm=True,
            **arguments,
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
        data_collator=transformers.default_data_collator,
        callbacks=list(callbacks),
    )


def observing(folder, **options):
    texts = og.Inputs.from_tokens(np.random.default_rng(0).integers(0, 40, (6, 9)))
    observe = [Loss(), AttentionEntropy()]
    return og.RecorderCallback(
        folder, every=4, observe=observe, inputs=texts, **options
    )


@pytest.fixture
def no_budget(monkeypatch):
    monkeypatch.setattr(Budget, "allows", lambda self: True)


def own(history):
    """Return the Trainer's own entries, without what depends on the clock."""
    timed = (
        "train_runtime",
        "train_samples_per_second",
        "train_steps_per_second",
        "total_flos",
    )
    entries = [{k: v for k, v in each.items() if k not in timed} for each in history]
    return [
        each for each in entries if not any(k.startswith("observed/") for k in each)
    ]


def test_numbers_go_to_the_trainers_history_and_the_training_is_the_same(
    tmp_path, no_budget
):
    plain = trainer(tmp_path / "out")
    plain.train()
    observed = trainer(tmp_path / "out", [observing(tmp_path / "run")])
    observed.train()
    expected = plain.model.state_dict()
    assert all(
        torch.equal(v, expected[k]) for k, v in observed.model.state_dict().items()
    )
    assert observed.model.training == plain.model.training
    found = [each for each in observed.state.log_history if "observed/loss" in each]
    assert [each["step"] for each in found] == [0, 4, 8, 10]
    assert "observed/attention-entropy/entropy/transformer.h.0.attn/0" in found[0]
    # Its own entries at steps 4 and 8 are still there, and mean over the same steps.
    assert own(observed.state.log_history) == own(plain.state.log_history)
    table = read_observed(tmp_path / "run")
    assert table["step"].unique().tolist() == [0, 4, 8, 10]
    losses = table[table["name"] == "observed/loss"]["value"].tolist()
    assert losses == [each["observed/loss"] for each in found]


def test_a_log_that_is_given_is_used_instead(tmp_path, no_budget):
    sent = []
    callback = observing(tmp_path / "run", log=lambda metrics, step: sent.append(step))
    run = trainer(tmp_path / "out", [callback])
    run.train()
    assert sent == [0, 4, 8, 10]
    assert not [each for each in run.state.log_history if "observed/loss" in each]
    run = trainer(tmp_path / "out")
    run.add_callback(observing(tmp_path / "run", log=to_trainer(run), overwrite=True))
    run.train()
    assert [e["step"] for e in run.state.log_history if "observed/loss" in e] == [
        0,
        4,
        8,
        10,
    ]


def test_loggers_that_get_no_numbers_are_named(tmp_path, no_budget):
    run = trainer(tmp_path / "out", [observing(tmp_path / "run")])
    run.args.report_to = ["tensorboard"]
    with pytest.warns(
        match=r"not to report_to=\['tensorboard'\]: .*to_trainer\(trainer\)"
    ):
        run.train()


def test_a_callback_that_is_used_again_logs_to_the_trainer_that_calls_it(
    tmp_path, no_budget
):
    callback = observing(tmp_path / "run", overwrite=True)
    first = trainer(tmp_path / "one", [callback])
    first.train()
    logged = len(first.state.log_history)
    second = trainer(tmp_path / "two", [callback])
    second.train()
    assert [e["step"] for e in second.state.log_history if "observed/loss" in e] == [
        0,
        4,
        8,
        10,
    ]
    assert len(first.state.log_history) == logged


def test_a_callback_that_observes_nothing_sends_nothing(tmp_path):
    run = trainer(tmp_path / "out", [og.RecorderCallback(tmp_path / "run", every=4)])
    run.train()
    assert not (tmp_path / "run" / "observed.jsonl").exists()
    assert [each["step"] for each in run.state.log_history if "loss" in each] == [4, 8]


def test_a_watched_trainer_is_noticed_to_have_ended(tmp_path):
    run = trainer(tmp_path / "out", save_strategy="steps", save_steps=5)
    run.train()
    texts = og.Inputs.from_tokens(np.random.default_rng(0).integers(0, 40, (6, 9)))

    def study():
        found = og.Trajectory.from_folder(tmp_path / "out")
        return og.Study(found, texts, [Loss()], device="cpu")

    result = og.study.watch(study, tmp_path / "study", every=60, settle=0.2)
    assert result["loss"].step.values.tolist() == [5, 10]
    assert "Provisional" not in (tmp_path / "study" / "report.html").read_text()


def test_tensorboard_gets_them_through_the_trainer(tmp_path, no_budget):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = {"report_to": ["tensorboard"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
        run = trainer(tmp_path / "out", **options)
        run.add_callback(observing(tmp_path / "run", log=to_trainer(run)))
        run.train()
    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    assert [e.step for e in events.Scalars("train/observed/loss")] == [0, 4, 8, 10]
