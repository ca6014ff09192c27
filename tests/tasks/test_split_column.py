"""A column that says which rows are training texts: read by set, typing errors refused by row."""

import json
from pathlib import Path

import pytest

from ontogeny.errors import ArgumentError
from ontogeny.start.further_sets import sets_of_column, unused_column
from ontogeny.tasks import document_files

ROWS = [("a", "train"), ("b", "test"), ("c", "train"), ("d", "test")]


def table(path, rows=ROWS, column="split"):
    kind = path.suffix
    if kind == ".jsonl":
        lines = (json.dumps({"text": f"text {t}", column: s}) for t, s in rows)
        path.write_text("\n".join(lines))
    elif kind == ".csv":
        path.write_text(
            f"text,{column}\n" + "".join(f"text {t},{s}\n" for t, s in rows)
        )
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")

        columns = {"text": [f"text {t}" for t, _ in rows], column: [s for _, s in rows]}
        parquet.write_table(arrow.table(columns), path)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("column", ["split", "Split"])
def test_rows_are_read_by_the_set_that_they_name(tmp_path, suffix, column):
    path = table(tmp_path / f"all{suffix}", column=column)
    read = {s: document_files(path, split=s).texts for s in ("training", "held-out")}
    assert read == {"training": ("text a", "text c"), "held-out": ("text b", "text d")}
    assert (
        len(document_files(path).texts)
        == len(document_files(path, split="all").texts)
        == 4
    )
    assert "rows that are training" in document_files(path, split="training").form


def test_one_file_with_both_sets_becomes_two_input_sets(tmp_path):
    table(tmp_path / "all.jsonl")
    assert sets_of_column(["all.jsonl"], tmp_path) == {
        "split": "held-out",
        "training": {"files": ["all.jsonl"], "split": "training"},
    }
    assert unused_column([str(tmp_path / "all.jsonl")])[0].endswith("training texts")


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["A", "B"], "names no usual name of a set ('A', 'B')"),
        (["train", "train"], "names only training texts ('train')"),
    ],
)
def test_a_column_that_names_not_both_sets_is_not_used_and_that_is_said(
    tmp_path, values, what
):
    path = table(tmp_path / "all.jsonl", list(zip("ab", values, strict=True)))
    assert sets_of_column([path.name], tmp_path) == {}
    assert unused_column([str(path)]) == [f"the column 'split' {what} and is not used"]


@pytest.mark.parametrize(
    "rows", [[*ROWS, ("e", "tset")], [("a", "train"), ("e", "tset")]]
)
def test_a_value_that_names_no_set_is_refused_by_its_row(tmp_path, rows):
    path = table(tmp_path / "all.jsonl", rows)
    assert sets_of_column([path.name], tmp_path)  # not silently read as one set
    with pytest.raises(ArgumentError) as error:
        document_files(path, split="held-out")
    assert f"line {len(rows)}: its 'split' is 'tset'" in str(error.value)
    assert "Did you mean 'test'?" in str(error.value)


def test_plain_text_and_rows_without_the_column_have_no_sets(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert (
        sets_of_column(["a.txt"], tmp_path)
        == {}
        == sets_of_column(["no.csv"], tmp_path)
    )
    assert unused_column([str(tmp_path / "a.txt")]) == []
    with pytest.raises(ArgumentError, match="plain text, which has no column 'split'"):
        document_files(tmp_path / "a.txt", split="training")
    path = Path(tmp_path / "b.jsonl")
    path.write_text('{"text": "a b"}\n')
    with pytest.raises(ArgumentError, match="line 1 has no column 'split'"):
        document_files(path, split="training")
