"""What makes another model, and what only a training or a version of transformers writes."""

import json

import pytest
import torch
import transformers

from ontogeny import RecorderCallback, Trajectory
from ontogeny.trajectory.weights.configuration import other_model, read_configuration

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "rope_theta": 10000.0,
}


def rewritten(**changed):
    """Return the configuration as today's transformers writes it."""
    config = transformers.LlamaConfig.from_dict({**LLAMA, **changed}).to_dict()
    return {
        **json.loads(json.dumps(config, default=str)),
        "architectures": ["LlamaForCausalLM"],
    }


def test_a_configuration_that_another_version_wrote_is_the_same_model():
    assert "rope_parameters" in rewritten() and other_model(LLAMA, rewritten()) == []
    assert (
        other_model(LLAMA, {**LLAMA, "unsloth_version": "1", "attention_dropout": 0.1})
        == []
    )
    assert (
        other_model(LLAMA, {**LLAMA, "id2label": {"0": "a"}, "problem_type": "x"}) == []
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"rope_theta": 500000.0},
        {"num_hidden_layers": 2},
        {"rms_norm_eps": 0.1},
        {"hidden_act": "relu"},
    ],
)
def test_what_changes_the_function_is_another_model(changed):
    assert other_model(LLAMA, rewritten(**changed)) and other_model(
        LLAMA, {**LLAMA, **changed}
    )


def test_a_recorded_training_of_a_classifier_keeps_step_0(tmp_path):
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        num_labels=2,
    )
    model = transformers.BertForSequenceClassification(config)
    data = [{"input_ids": [i % 20] * 4, "labels": i % 2} for i in range(8)]
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(
            str(tmp_path / "out"),
            max_steps=2,
            per_device_train_batch_size=4,
            use_cpu=True,
            report_to=[],
            save_steps=1,
            disable_tqdm=True,
        ),
        train_dataset=data,
        callbacks=[RecorderCallback(tmp_path / "recorded", every=1)],
    )
    model.save_pretrained(tmp_path / "out" / "checkpoint-0")
    trainer.train()
    for folder in ("out", "recorded"):
        run = Trajectory.from_folder(tmp_path / folder)
        skeleton = run.skeleton()
        assert run.steps.tolist() == [0, 1, 2]
        before = skeleton.load(2).classifier.weight.clone()
        assert not torch.equal(skeleton.load(0).classifier.weight, before)
    first, last = (
        read_configuration(tmp_path / "out" / f"checkpoint-{s}") for s in (0, 2)
    )
    assert first.get("problem_type") is None
    assert last["problem_type"] == "single_label_classification"
