"""Splits, samples, labels on inputs, data sets of the Hub, and study files that name them."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.inputs import stratified_split
from ontogeny.inputs.splits import class_counts, stratified_draw
from ontogeny.study import read_study
from ontogeny.tasks import LabelledTexts, load_texts
from ontogeny.tasks.hub_texts import DATASETS

LABELS = st.lists(st.integers(0, 2), min_size=6, max_size=60).filter(
    lambda labels: min(class_counts(labels).values()) > 1
)


@settings(max_examples=60)
@given(LABELS, st.floats(0.05, 0.95), st.integers(0, 100))
def test_splits_are_stratified_partitions(labels, fraction, seed):
    first, second = stratified_split(labels, fraction, seed)
    assert sorted([*first, *second]) == list(range(len(labels)))
    labels = np.array(labels)
    for label, count in class_counts(labels).items():
        wanted = min(max(fraction * count, 1), count - 1)
        assert abs((labels[first] == label).sum() - wanted) <= 0.5 + 1e-9
    again = stratified_split(labels, fraction, seed)
    assert np.array_equal(first, again[0])


@settings(max_examples=60)
@given(LABELS, st.integers(1, 70), st.integers(0, 100))
def test_draws_keep_the_shares(labels, count, seed):
    drawn = stratified_draw(labels, count, seed)
    assert len(drawn) == min(count, len(labels)) == len(set(drawn.tolist()))
    share = len(drawn) / len(labels)
    for label, whole in class_counts(labels).items():
        assert abs((np.array(labels)[drawn] == label).sum() - share * whole) <= 1.5


def test_another_seed_gives_another_split():
    labels = np.arange(100) % 2
    assert not np.array_equal(
        stratified_split(labels)[0], stratified_split(labels, random_state=1)[0]
    )


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 0, 0], r"these have one: \[1\]"),
        ([1], r"these have one: \[1\] \(of 1 texts\)"),
        ([], "one label per text"),
    ],
)
def test_a_class_of_one_cannot_be_split(labels, words):
    with pytest.raises(ArgumentError, match=words):
        stratified_split(labels)


def test_labels_are_part_of_the_fingerprint():
    plain = Inputs.from_tokens([[1, 2], [3, 4]])
    good = Inputs.from_tokens([[1, 2], [3, 4]], labels=[1, 0])
    bad = Inputs.from_tokens([[1, 2], [3, 4]], labels=[0, 1])
    assert len({i.fingerprint for i in (plain, good, bad)}) == 3
    assert good.subset([1, 0]).labels.tolist() == [0, 1]
    assert good.padded("left").fingerprint != plain.padded("left").fingerprint


# ---- the library datasets ------------------------------------------------------------------------


def stand_in(monkeypatch, rows, **kwargs):
    """Let the library return an in-memory data set; nothing touches the network."""
    datasets = pytest.importorskip("datasets")
    asked = {}

    def load_dataset(path, config=None, **options):
        asked.update(path=path, config=config, **options)
        made = datasets.Dataset.from_list(rows)
        return made.to_iterable_dataset() if options["streaming"] else made

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked


@pytest.mark.parametrize("name", ["sst2", "cola", "rotten-tomatoes"])
def test_named_data_sets_have_their_fields(monkeypatch, name):
    known = DATASETS[name]
    rows = [{known.text: f"text {i}", "label": i % 2, "idx": i} for i in range(40)]
    asked = stand_in(monkeypatch, rows)
    data = load_texts(name, "validation", max_texts=10, revision="abc")
    assert (asked["path"], asked["config"]) == (known.path, known.config)
    assert (asked["split"], asked["revision"]) == ("validation", "abc")
    assert data.balance == {0: 5, 1: 5}


def test_wikipedia_is_streamed_by_paragraph(monkeypatch):
    one = "A first paragraph that is long enough to stand alone."
    body = f"{one}\n\nA second paragraph, which is also long enough for that."
    asked = stand_in(monkeypatch, [{"text": body}] * 5)
    data = load_texts("wikipedia", max_texts=3)
    assert asked["streaming"] and data.labels is None
    assert len(data) == 3 and data.texts[1].startswith("A second")
    with pytest.raises(
        ArgumentError, match="too large to be read whole; give max_texts"
    ):
        load_texts("wikipedia")


@pytest.mark.parametrize("name", ["tinystories", "openwebtext"])
def test_large_corpora_are_streamed_and_read_no_further_than_asked(monkeypatch, name):
    datasets = pytest.importorskip("datasets")
    read = []

    def endless():
        while True:
            read.append(1)
            yield {"text": f"story {len(read)}"}

    def load_dataset(path, config, streaming, **options):
        assert (path, config, streaming) == (DATASETS[name].path, None, True)
        return datasets.IterableDataset.from_generator(endless)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    data = load_texts(name, max_texts=4)
    assert (
        len(data.texts) == 4
        and data.texts[0].startswith("story")
        and data.labels is None
    )
    assert len(read) < 20
    with pytest.raises(ArgumentError, match="give max_texts"):
        load_texts(name)


def test_wikitext_is_read_whole_with_headings_before_their_text(monkeypatch):
    line = "The tower is 324 metres tall and the tallest structure of the city ."
    rows = [
        {"text": ""},
        {"text": " = Tower = \n"},
        {"text": f" {line} \n"},
        {"text": ""},
    ] * 3
    asked = stand_in(monkeypatch, rows)
    data = load_texts("wikitext-2", "validation")
    assert (asked["config"], asked["streaming"]) == ("wikitext-2-raw-v1", False)
    assert data.texts == (f"= Tower = {line}",) * 3


def test_a_local_data_set_is_loaded_by_the_library_itself(tmp_path):
    pytest.importorskip("datasets")
    rows = [{"text": f"t{i}", "label": i % 2} for i in range(6)]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = load_texts(str(tmp_path / "own"), text="text", label="label")
    assert data.texts == tuple(f"t{i}" for i in range(6))
    assert data.labels.tolist() == [0, 1, 0, 1, 0, 1]


def test_what_is_missing_is_named(monkeypatch):
    stand_in(
        monkeypatch, [{"sentence": "a", "label": -1}, {"sentence": "b", "label": -1}]
    )
    with pytest.raises(
        ArgumentError, match="has no field 'txt'; name one of 'sentence', 'label'"
    ):
        load_texts("sst2", text="txt")
    with pytest.raises(
        ArgumentError, match="sst2/test has no labels: all of them are -1"
    ):
        load_texts("sst2", "test")
    import datasets

    def fail(*args, **options):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(
        ArgumentError, match=r"cannot be loaded: ConnectionError: no route$"
    ):
        load_texts("cola")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ArgumentError, match=r"pip install 'ontogeny\[datasets\]'"):
        load_texts("sst2")


def test_rows_in_memory_are_checked():
    rows = [{"text": "a", "label": 1}, {"text": "b"}]
    with pytest.raises(ArgumentError, match="row 1 has no field 'label'"):
        LabelledTexts.from_rows(rows)
    with pytest.raises(ArgumentError, match="row 0: 'text' is int, not a string"):
        LabelledTexts.from_rows([{"text": 3}], label=None)


# ---- study files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run with a tokenizer, as the Recorder writes it."""
    import ontogeny as og
    from helpers.study_examples import tiny_model
    from ontogeny.tasks import train_tokenizer

    folder = tmp_path_factory.mktemp("run")
    tokenizer = train_tokenizer(
        ["the good film was bad and the film was good"] * 20, 280
    )
    recorder = og.Recorder(folder / "run", every=lambda step: True, tokenizer=tokenizer)
    recorder(0, tiny_model(vocabulary=len(tokenizer)))
    (folder / "data.tsv").write_text(
        "sentence\tlabel\n"
        + "".join(f"the good film {i}\t{i % 2}\n" for i in range(20))
    )
    (folder / "pos.txt").write_text("good film\nthe good\n")
    (folder / "neg.txt").write_text("bad film\n")
    return folder


def study_of(folder, inputs):
    (folder / "study.toml").write_text(
        f'[trajectory]\nfolder = "run"\n{inputs}\n[[observables]]\nkind = "loss"\n'
    )
    return read_study(folder / "study.toml")


def test_a_study_file_reads_a_table_with_labels(run_folder):
    study = study_of(
        run_folder,
        '[inputs.reviews]\ndataset = "data.tsv"\nmax_texts = 10\nrandom_state = 3',
    )
    inputs = study.inputs["reviews"]
    assert len(inputs) == 10 and class_counts(inputs.labels) == {0: 5, 1: 5}


def test_a_study_file_balances_the_classes(run_folder):
    inputs = '[inputs]\ndataset = { 1 = "pos.txt", 0 = "neg.txt" }\nbalanced = true'
    assert study_of(run_folder, inputs).inputs["text"].labels.tolist() == [1, 0]


def test_a_study_file_reads_one_file_a_class(run_folder):
    study = study_of(run_folder, '[inputs]\ndataset = { 1 = "pos.txt", 0 = "neg.txt" }')
    assert study.inputs["text"].labels.tolist() == [1, 1, 0]


def test_a_study_file_gives_labels_to_its_own_texts(run_folder):
    study = study_of(
        run_folder, '[inputs]\ntexts = ["good", "", "bad"]\nlabels = [1, 1, 0]'
    )
    assert study.inputs["text"].labels.tolist() == [1, 0]  # the empty text is left out


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ('dataset = "none.tsv"', "cannot be read: No such file"),
        ('dataset = "data.tsv"\nfield = "text"', "has no column text='text'"),
        (
            'dataset = "data.tsv"\nsplit = "train"',
            "split does not go with a local file",
        ),
        (
            'dataset = "sst2"\nencoding = "utf-8"',
            "encoding does not go with a data set of the Hub",
        ),
        ("dataset = 5", "dataset must be a name, a file or a table"),
        ('dataset = "data.tsv"\ntexts = ["a"]', "needs one of files"),
        ('texts = ["a"]\nfield = "text"', "field does not go with texts"),
        ('dataset = "data.tsv"\nlabels = [1]', "labels does not go with dataset"),
        ('dataset = "data.tsv"\nfeild = "x"', "has no key 'feild'"),
    ],
)
def test_wrong_keys_of_a_study_file_are_refused(run_folder, inputs, words):
    with pytest.raises(ArgumentError, match=words):
        study_of(run_folder, f"[inputs]\n{inputs}")
