"""Tasks of the evaluation harness from local folders, with no network, against our own numbers."""

import json
import socket

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import ontogeny as og
from ontogeny.capture.predictor import Predictor
from ontogeny.errors import ArgumentError, MissingExtraError
from ontogeny.features.abilities import harness as module
from ontogeny.features.abilities.token_texts import tokenised
from ontogeny.observables import Choices, Harness
from ontogeny.tasks import train_tokenizer

TASK = {
    "task": "mine",
    "dataset_path": "json",
    "output_type": "multiple_choice",
    "validation_split": "train",
    "doc_to_text": "{{prompt}}",
    "doc_to_target": "right",
    "doc_to_choice": "{{answers}}",
    "num_fewshot": 0,
    "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
}
QUESTIONS = [
    {
        "prompt": f"the cat {i}",
        "answers": ["sat", "are", "is on the mat"],
        "right": i % 3,
    }
    for i in range(9)
]


def test_without_the_package_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'ontogeny\[eval\]'"):
        Harness("mine")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of tasks, on a machine without a network."""
    pytest.importorskip("lm_eval", reason="needs lm-eval: pip install 'ontogeny[eval]'")

    def refuse(*arguments, **options):
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    file = tmp_path / "tasks" / "mine.jsonl"
    file.parent.mkdir()
    file.write_text("\n".join(map(json.dumps, QUESTIONS)))
    data = {"data_files": {"train": str(file)}, "cache_dir": str(tmp_path / "cache")}
    for name, change in (("mine", {}), ("free", {"output_type": "generate_until"})):
        task = {**TASK, "task": name, "dataset_kwargs": data, **change}
        if change:
            task.pop("doc_to_choice")
            task["metric_list"] = [{"metric": "exact_match"}]
        (file.parent / f"{name}.yaml").write_text(json.dumps(task))  # JSON is YAML
    return file.parent


def test_a_local_task_gives_the_numbers_of_choices(folder, tmp_path, monkeypatch):
    tokenizer = train_tokenizer(["he is . we are . the cat sat on the mat"] * 9, 300)
    config = GPT2Config(
        n_layer=1,
        n_embd=8,
        n_head=2,
        vocab_size=len(tokenizer),
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    run = og.Trajectory.from_models(
        {step: GPT2LMHeadModel(config).eval() for step in (0, 10)}, tokenizer=tokenizer
    )
    texts = og.Inputs.from_texts(["the cat sat", "on the mat"], tokenizer)
    asked = [
        Harness("mine", (str(folder),)),
        Harness("mine", (str(folder),), metric="acc_norm", limit=6, label="normalised"),
        Choices(str(folder / "mine.jsonl")),
    ]
    manager, built = pytest.importorskip("lm_eval.tasks").TaskManager, []
    load = manager.load
    monkeypatch.setattr(
        manager, "load", lambda self, tasks: built.append(1) or load(self, tasks)
    )
    result = og.Study(run, texts, asked, device="cpu").run(
        tmp_path / "study", progress=False
    )
    assert len(built) == 1  # for both, and all steps
    assert not result.problems().lost, result.problems()
    theirs, ours = result["harness"], result["choices"]
    np.testing.assert_array_equal(theirs.right.values, ours.right.values)
    np.testing.assert_allclose(theirs.accuracy.values, ours.accuracy.values)
    assert result["normalised"].right.shape == (2, 6)
    assert theirs.accuracy_chance.values == pytest.approx([1 / 3])
    for name in ("accuracy_low", "accuracy_high", "accuracy_floor", "above_chance"):
        np.testing.assert_allclose(theirs[name].values, ours[name].values)
    nameless = [
        name for name, v in theirs.data_vars.items() if not v.attrs.get("long_name")
    ]
    assert nameless == []


def test_log_probabilities_are_those_of_the_harness_own_model(folder):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from tokenizers.processors import TemplateProcessing

    tokenizer = train_tokenizer(["he is . we are . the cat sat on the mat"] * 9, 300)
    # The harness adds no token at the ends of a text, whatever the tokenizer does.
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing("$A", None, [])
    tokenizer.eos_token = tokenizer.pad_token
    config = GPT2Config(
        n_layer=2, n_embd=16, n_head=2, vocab_size=len(tokenizer), n_positions=64
    )
    model = GPT2LMHeadModel(config).eval()
    both = [(q["prompt"], f" {answer}") for q in QUESTIONS for answer in q["answers"]]
    both += [("", f"the cat {i} is") for i in range(5)]
    requests = [Instance("loglikelihood", {}, pair, 0) for pair in both]
    theirs = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4).loglikelihood(
        requests
    )
    tokens, problems = tokenised(*zip(*both, strict=True), tokenizer, masked=False)
    scores, ranks = tokens.scores_and_ranks(Predictor(model, "causal"))
    assert not any(problems)
    assert scores == pytest.approx([score for score, _ in theirs], abs=1e-4)
    assert (ranks == 1).tolist() == [greedy for _, greedy in theirs]


def test_what_cannot_be_asked_is_named(folder):
    with pytest.raises(
        ArgumentError, match="tasks must be tasks of the harness; got 'other'"
    ):
        Harness("other", (str(folder),)).samples()
    with pytest.raises(ArgumentError, match="must ask for probabilities of texts"):
        Harness("free", (str(folder),)).samples()
    with pytest.raises(
        ArgumentError, match=r"metric must be one of .*'acc_norm'\]; got 'f'"
    ):
        Harness("mine", (str(folder),), metric="f").samples()
    with pytest.raises(
        ArgumentError, match="folders must name folders of task files; got 'none'"
    ):
        Harness("mine", ("none",))
    names = [path.name for path in Harness("mine", (str(folder),)).files_read()]
    assert names == ["free.yaml", "mine.jsonl", "mine.yaml"]
