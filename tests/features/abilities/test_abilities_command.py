"""Files of examples on the command line: their form is said, and what has none is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from ontogeny.errors import ArgumentError
from ontogeny.start import Wishes, propose
from ontogeny.tasks import train_tokenizer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=270, n_positions=32)
    for step in (0, 5):
        GPT2LMHeadModel(config).save_pretrained(folder / f"checkpoint-{step}")
    train_tokenizer(["the dogs run", "a dog runs"] * 9, vocab_size=270).save_pretrained(
        folder
    )
    return folder


def wishes(run, *files):
    return Wishes(str(run), "quick", abilities=[str(file) for file in files])


def test_files_of_pairs_become_one_observable_and_are_said(run, tmp_path):
    rows = [
        {"right": f"the dogs {i} run", "wrong": f"the dogs {i} runs"} for i in range(4)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "b.csv").write_text(
        "sentence_good,sentence_bad\na dog runs,a dog run\n"
    )
    proposal = propose(wishes(run, tmp_path / "a.jsonl", tmp_path / "b.csv"), tmp_path)
    (table,) = [
        t for t in proposal.content["observables"] if t["kind"] == "minimal-pairs"
    ]
    assert [Path(path).name for path in table["examples"]] == ["a.jsonl", "b.csv"]
    assert (
        f"{tmp_path}/a.jsonl: 4 minimal pairs, by right, wrong; one group"
        in proposal.lines
    )
    assert "--abilities" in wishes(run, "a.jsonl").options()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "a", "label": 1}',
            "has the fields text, label; allowed are minimal pairs",
        ),
        ("", "holds no example"),
    ],
)
def test_files_without_a_form_are_refused_with_what_is_allowed(
    run, tmp_path, content, message
):
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(ArgumentError, match=message):
        propose(wishes(run, tmp_path / "x.jsonl"), tmp_path)


def test_a_run_without_a_tokenizer_cannot_be_asked(run, tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(900, dtype=np.uint16) % 270)
    (tmp_path / "a.jsonl").write_text(
        '{"right": "the dogs run", "wrong": "the dogs runs"}'
    )
    wished = Wishes(
        str(run),
        "quick",
        [str(tmp_path / "ids.npy")],
        tokenizer="none",
        abilities=[str(tmp_path / "a.jsonl")],
    )
    with pytest.raises(
        ArgumentError, match="minimal pairs cannot be asked, because there is no"
    ):
        propose(wished, tmp_path)
