"""What planning reads of a model of two hundred matrices: nothing once for each of them."""

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
import transformers

import ontogeny as og
from helpers.counted_opens import counted_opens
from helpers.text_models import save_tokenizer
from ontogeny import observables as of
from ontogeny.tasks import bundled_texts, train_tokenizer
from ontogeny.trajectory import tokenizers

STEPS = (0, 10, 20, 30)
_counting: list[Counter] = []


def _count(event, arguments):
    if _counting and event == "open" and isinstance(arguments[0], str):
        _counting[0][arguments[0]] += 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many") / "run"
    tokenizer = train_tokenizer(bundled_texts(), 300)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
    sizes |= {"num_hidden_layers": 29, "vocab_size": len(tokenizer)}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    for step in STEPS:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.01 * torch.randn_like(parameter))
        model.save_pretrained(folder / f"checkpoint-{step}")
    save_tokenizer(tokenizer, folder)
    return folder


def test_planning_reads_tokenizers_and_weights_once_and_not_for_each_matrix(
    run, monkeypatch
):
    loads, opens, read = (
        Counter(),
        counted_opens(monkeypatch),
        tokenizers.named_tokenizer,
    )
    monkeypatch.setattr(tokenizers, "_loaded", {})
    monkeypatch.setattr(
        tokenizers, "named_tokenizer", lambda path: loads.update([path]) or read(path)
    )
    trajectory = og.Trajectory.from_folder(run)
    texts = og.Inputs.from_texts(
        bundled_texts()[:4], trajectory.tokenizer(), max_length=12
    )
    study = og.Study(trajectory, texts, [of.WeightRank(), of.Loss()], controls=2)
    sys.addaudithook(_count)
    _counting.append(files := Counter())
    plan = study.plan()
    _counting.clear()
    matrices = {entry.key for entry in plan.entries}
    assert len(matrices) > 200 and len({entry.run for entry in plan.entries}) == 3
    assert loads.total() == 1
    assert max(opens.values()) <= 10 and opens.total() < len(matrices)
    of_run = Counter({path: n for path, n in files.items() if str(run) in path})
    assert of_run.total() < len(matrices), of_run.most_common(3)


def test_another_tokenizer_in_its_place_is_read_anew(run, tmp_path):
    first = og.Trajectory.from_folder(run).tokenizer()
    assert og.Trajectory.from_folder(run).tokenizer() is first
    other = train_tokenizer(bundled_texts(), 280)
    other.save_pretrained(tmp_path)
    (tmp_path / "checkpoint-1").symlink_to(run / "checkpoint-10")
    assert (
        len(og.Trajectory.from_folder(tmp_path).tokenizer()) == len(other) != len(first)
    )


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (
            "tokenizer_config.json",
            {"padding_side": "left"},
        ),  # a state, which no audit minds
        ("config.json", {"model_type": "gpt2"}),  # transformers takes the class from it
    ],
)
def test_a_tokenizer_is_shared_by_folders_of_the_same_bytes_alone(
    run, tmp_path, file, changes
):
    tokenizer = og.Trajectory.from_folder(run).tokenizer()
    settings = (run / "checkpoint-0" / "config.json").read_text()
    for name in ("one", "same", "other"):
        tokenizer.save_pretrained(tmp_path / name)
        (tmp_path / name / "config.json").write_text(settings)
    path = tmp_path / "other" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    one, same, other = (
        tokenizers._read_once(tmp_path / n) for n in ("one", "same", "other")
    )
    assert one is same and other is not one
    assert tokenizers._read_once(tmp_path / "one") is one
    if "padding_side" in changes:
        assert (one.padding_side, other.padding_side) == (
            tokenizer.padding_side,
            "left",
        )


@pytest.mark.parametrize("workers", [0, 4])
def test_checkpoints_of_another_size_are_refused_by_name_for_any_workers(
    tmp_path, workers
):
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
    config = transformers.LlamaConfig(**sizes, num_hidden_layers=1, vocab_size=40)
    model = transformers.LlamaForCausalLM(config)
    for step in STEPS:
        if step == 20:
            model.resize_token_embeddings(48)
        model.save_pretrained(tmp_path / "run" / f"checkpoint-{step}")
    texts = og.Inputs.from_tokens([[1, 2, 3, 4]] * 4)
    run = og.Trajectory.from_folder(tmp_path / "run")
    study = og.Study(run, texts, [of.Loss()], controls=0, noise=0, reference="first")
    pool = ThreadPoolExecutor(4) if workers else nullcontext()
    with pytest.warns(og.errors.StudyWarning), pool as executor:
        result = study.run(tmp_path / "study", executor, progress=False)
    status = result["loss"].status.values.tolist()
    assert status[:2] == ["done", "done"]
    expected = "another model than checkpoint-0: vocab_size 40 -> 48"
    assert [expected in each for each in status[2:]] == [True, True], status


class Grown(torch.nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.words = torch.nn.Embedding(vocab_size, 8)
        self.head = torch.nn.Linear(8, vocab_size)

    def forward(self, ids):
        return self.head(self.words(ids))


@pytest.mark.parametrize("workers", [0, 4])
def test_own_models_of_another_size_are_refused_by_name_for_any_workers(
    tmp_path, workers
):
    for (
        step
    ) in STEPS:  # as nanoGPT keeps them: each file builds a model of its own size
        size = 48 if step >= 20 else 40
        content = {
            "model": Grown(size).state_dict(),
            "model_args": {"vocab_size": size},
        }
        torch.save(content, tmp_path / f"ckpt_{step}.pt")
    texts = og.Inputs.from_tokens([[1, 2, 3, 4]] * 4)
    run = og.Trajectory.from_folder(tmp_path, Grown)
    study = og.Study(run, texts, [of.Loss(objective="causal")], controls=0, noise=0)
    pool = ThreadPoolExecutor(4) if workers else nullcontext()
    with pytest.warns(og.errors.StudyWarning), pool as executor:
        result = study.run(tmp_path / "study", executor, progress=False)
    status = result["loss"].status.values.tolist()
    assert status[:2] == ["done", "done"]
    expected = "another model than ckpt_0.pt: head.bias [40] -> [48]; head.weight [40, 8] -> [48, 8]"
    assert [expected in each for each in status[2:]] == [True] * (len(STEPS) - 2), (
        status
    )
