"""Recording from transformers' Trainer."""

import subprocess
import sys

import pytest
import torch
import transformers

import ontogeny as og
from ontogeny.errors import ArgumentError


def gpt2():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_embd=16,
        n_layer=2,
        n_head=2,
        vocab_size=40,
        n_positions=16,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config)


def tokenizer():
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]"
    )


def trainer(folder, steps=10, callbacks=(), **more):
    ids = torch.randint(0, 40, (24, 8), generator=torch.Generator().manual_seed(1))
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        seed=3,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        logging_strategy="no",
        **{"save_strategy": "no", **more},
    )
    return transformers.Trainer(
        model=gpt2(),
        args=arguments,
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
        eval_dataset=[{"input_ids": row, "labels": row} for row in ids],
        processing_class=tokenizer(),
        data_collator=transformers.default_data_collator,
        callbacks=list(callbacks),
    )


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(state, expected):
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


def test_the_trainer_trains_bit_for_bit_the_same_with_the_callback(tmp_path):
    plain = trainer(tmp_path / "out")
    plain.train()
    callback = og.RecorderCallback(tmp_path / "run", every=4)
    assert isinstance(callback, transformers.TrainerCallback)
    recorded = trainer(tmp_path / "out", callbacks=[callback])
    recorded.train()
    assert same(recorded.model.state_dict(), plain.model.state_dict())
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    assert list(trajectory.steps) == [0, 4, 8, 10]
    assert same(trajectory[0].model().state_dict(), gpt2().state_dict())
    assert same(trajectory[10].model().state_dict(), plain.model.state_dict())
    assert trajectory.tokenizer().get_vocab() == {"[UNK]": 0, "a": 1}
    assert list(trajectory.audit()) == []


def test_the_length_of_the_run_comes_from_the_trainer_and_its_own_layout_is_read(
    tmp_path,
):
    callback = og.RecorderCallback(tmp_path / "run")
    run = trainer(
        tmp_path / "out", 40, [callback], save_strategy="steps", save_steps=20
    )
    run.train()
    recorded = og.Trajectory.from_folder(tmp_path / "run")
    assert recorded.steps[-1] == 40 and len(recorded) == 22
    own = og.Trajectory.from_folder(tmp_path / "out")
    assert list(own.steps) == [20, 40]
    assert same(own[40].model().state_dict(), recorded[40].model().state_dict())
    assert own.tokenizer().get_vocab() == {"[UNK]": 0, "a": 1}
    assert list(own.audit()) == []


def test_a_resumed_trainer_goes_on_with_its_recording(tmp_path):
    def run(steps, **options):
        callback = og.RecorderCallback(tmp_path / "run", every=3)
        return trainer(
            tmp_path / "out", steps, [callback], save_strategy="steps", save_steps=6
        )

    run(6).train()
    run(12).train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-6"))
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    assert list(trajectory.steps) == [0, 3, 6, 9, 12] and list(trajectory.audit()) == []
    other = run(12)
    with torch.no_grad():
        other.model.lm_head.weight += 1
    with pytest.raises(ArgumentError, match="another run"):
        other.train()


def test_the_best_checkpoint_that_the_trainer_loads_is_no_last_step(tmp_path, caplog):
    """At the end the model held another step's weights, and was recorded as the last one."""
    callback = og.RecorderCallback(tmp_path / "run", every=3)
    often = {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_strategy": "steps",
        "save_steps": 4,
    }
    # The first one.
    worst = {"metric_for_best_model": "eval_loss", "greater_is_better": True}
    best = trainer(
        tmp_path / "out", 10, [callback], load_best_model_at_end=True, **often, **worst
    )
    best.train()
    assert best.state.best_model_checkpoint.endswith("checkpoint-4")
    trajectory = og.Trajectory.from_folder(tmp_path / "run")
    assert list(trajectory.steps) == [0, 3, 6, 9, 10]
    last, ninth = (trajectory[step].model().state_dict() for step in (10, 9))
    assert not same(last, best.model.state_dict()) and not same(last, ninth)
    assert "lacks the last step" not in caplog.text


def test_the_trainers_own_folder_and_bad_arguments_are_refused(tmp_path):
    run = trainer(tmp_path / "out", callbacks=[og.RecorderCallback(tmp_path / "out")])
    with pytest.raises(ArgumentError, match="Trainer's output_dir"):
        run.train()
    with pytest.raises(ArgumentError, match="every must be at least 1"):
        og.RecorderCallback(tmp_path / "run", every=0)
    assert og.RecorderCallback(
        tmp_path / "run", every=iter([1, 2])
    )._recorder.schedule.every == (1, 2)


@pytest.mark.slow
def test_opening_and_recording_import_transformers_only_when_it_is_needed(tmp_path):
    code = (
        "import sys, torch, ontogeny as og\n"
        "og.Recorder(sys.argv[1])(0, torch.nn.Linear(2, 2))\n"
        "trajectory = og.Trajectory.from_folder(sys.argv[1], model=torch.nn.Linear(2, 2))\n"
        "trajectory.skeleton().load(0), trajectory.audit(), trajectory.fingerprint\n"
        "assert 'transformers' not in sys.modules\n"
        "og.RecorderCallback\n"
        "assert 'transformers' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
