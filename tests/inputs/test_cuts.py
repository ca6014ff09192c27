"""What is not read of a source of texts is said with them, before anything is computed."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest

from ontogeny.study.input_tables import input_sets
from ontogeny.tasks import bundled_texts, load_texts, train_tokenizer

ALL = 40
READ = 6


@pytest.fixture(scope="module")
def run():
    """What is asked of a run for texts: its tokenizer."""
    tokenizer = train_tokenizer(bundled_texts()[:100], 300)
    return SimpleNamespace(tokenizer=lambda: tokenizer, checkpoints=[None])


def table_of(kind, folder):
    """Return a table of inputs with 40 texts of 9 tokens or so, of which it takes six."""
    texts = [f"a sentence with {i} words or so" for i in range(ALL)]
    (folder / "lines.txt").write_text("\n".join(texts))
    with (folder / "labelled.csv").open("w", newline="") as file:
        rows = [("text", "label"), *((text, i % 2) for i, text in enumerate(texts))]
        csv.writer(file).writerows(rows)
    ids = np.arange(ALL * 9, dtype=np.uint16) % 200
    np.save(folder / "rows.npy", ids.reshape(ALL, 9))
    np.save(folder / "stream.npy", ids)
    tables = {
        "bundled": {"bundled": "english-and-python"},
        "lines": {"files": ["lines.txt"], "unit": "line"},
        "texts": {"texts": texts},
        "labelled": {"dataset": "labelled.csv"},
        "balanced": {"dataset": "labelled.csv", "balanced": True},
        "rows": {"tokens": ["rows.npy"]},
        "two files of rows": {"tokens": ["rows.npy", "rows.npy"]},
        "stream": {"tokens": ["stream.npy"], "max_length": 9},
    }
    return tables[kind] | {"max_texts": READ}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("bundled", f"the first of {len(bundled_texts('english-and-python')):,}"),
        ("lines", "the first of 40, one a line"),
        ("texts", "the first of 40"),
        ("labelled", "drawn from 40, labelled 0 (3), 1 (3)"),
        ("balanced", "drawn from 40, labelled 0 (3), 1 (3)"),
        ("rows", "the first of 40"),
        ("two files of rows", "the first of each file, of 80"),
        ("stream", "evenly spread pieces of 360 ids"),
    ],
)
def test_texts_that_are_not_read_are_said(kind, said, run, tmp_path):
    table = table_of(kind, tmp_path)
    ids_alone = SimpleNamespace(tokenizer=lambda: None, checkpoints=[Nameless()])
    asked = ids_alone if "tokens" in table else run
    inputs = input_sets(table, tmp_path, asked)["text"]
    assert len(inputs) == READ
    assert inputs.sentence.startswith(f"{READ} texts, {said}, ")
    whole = input_sets(table | {"max_texts": 10_000}, tmp_path, asked)["text"]
    assert not any(word in whole.sentence for word in ("of 40", "of 80", "of 360"))


def test_of_further_sets_the_same_is_said(run, tmp_path):
    table = table_of("lines", tmp_path)
    both = input_sets(table | {"training": {"files": ["lines.txt"]}}, tmp_path, run)
    assert "the first of 40" in both["training"].sentence


def test_of_a_stream_of_the_hub_it_is_said_that_there_are_more(monkeypatch):
    datasets = pytest.importorskip("datasets")
    rows = [{"text": f"story {i}"} for i in range(9)]
    made = datasets.Dataset.from_list(rows).to_iterable_dataset()
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: made)
    assert load_texts("tinystories", max_texts=4).form.startswith("the first of")
    assert load_texts("tinystories", max_texts=9).form == ""
    assert load_texts("tinystories", max_texts=20).form == ""


class Nameless:
    """A checkpoint that tells nothing of its vocabulary."""

    is_downloaded = False

    def configuration(self):
        return None
