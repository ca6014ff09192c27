"""What planning reads of a model of two hundred matrices: nothing once for each of them."""

import sys
from collections import Counter

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


def test_planning_reads_tokenizers_and_weights_once_and_not_for_each_matrix(run, monkeypatch):
    loads, opens, read = Counter(), counted_opens(monkeypatch), tokenizers._read
    monkeypatch.setattr(tokenizers, "_loaded", {})
    monkeypatch.setattr(tokenizers, "_read", lambda path: loads.update([path]) or read(path))
    trajectory = og.Trajectory.from_folder(run)
    texts = og.Inputs.from_texts(bundled_texts()[:4], trajectory.tokenizer(), max_length=12)
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
    assert len(og.Trajectory.from_folder(tmp_path).tokenizer()) == len(other) != len(first)
