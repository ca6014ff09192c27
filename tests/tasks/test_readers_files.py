"""Labelled texts from local files: quotes, encodings, headers, and what is broken."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.paths import DATA
from ontogeny.errors import ArgumentError
from ontogeny.tasks import read_labelled, text_files
from ontogeny.tasks.records import read_records


def written(folder, name, content, encoding="utf-8"):
    path = folder / name
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


# ---- real files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "balance", "first"),
    [
        (
            "cola/in_domain_train.tsv",
            {"file_format": "cola"},
            {0: 2528, 1: 6023},
            "Our friends won",
        ),
        (
            "cola/in_domain_dev.tsv",
            {"file_format": "cola"},
            {0: 162, 1: 365},
            "The sailors rode",
        ),
        (
            "cola/out_of_domain_dev.tsv",
            {"text": 3, "label": 1},
            {0: 162, 1: 354},
            "Somebody just",
        ),
        (
            "sst2/stsa.binary.train",
            {"file_format": "label-text"},
            {0: 3310, 1: 3610},
            "a stirring",
        ),
        (
            "sst2/stsa.binary.dev",
            {"file_format": "label-text"},
            {0: 428, 1: 444},
            "one long",
        ),
        (
            "sst2/glue-phrases-train.tsv",
            {},
            {0: 29780, 1: 37569},
            "hide new secretions",
        ),
    ],
)
def test_public_data_sets_read_right(name, options, balance, first):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there; set ONTOGENY_DATA")
    data = read_labelled(DATA / name, **options)
    assert data.balance == balance
    assert data.texts[0].startswith(first)
    assert not data.skipped


def test_one_file_a_class():
    folder = DATA / "rt-polarity"
    if not folder.exists():
        pytest.skip(f"{folder} is not there; set ONTOGENY_DATA")
    data = read_labelled({1: folder / "rt-polarity.pos", 0: folder / "rt-polarity.neg"})
    assert data.balance == {0: 5331, 1: 5331}
    assert "clichés" in " ".join(data.texts)


# ---- what is written comes back ------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    str.strip
)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(TEXT, st.integers(0, 3)), min_size=1, max_size=8), st.booleans()
)
def test_csv_of_the_standard_library_comes_back(tmp_path_factory, rows, header):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(["label", "sentence"])
        writer.writerows([label, text] for text, label in rows)
    data = read_labelled(path, **({} if header else {"text": 1, "label": 0}))
    assert list(data.texts) == [text.strip() for text, _ in rows]
    assert data.labels.tolist() == [label for _, label in rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_marks_and_line_ends(tmp_path, encoding, newline):
    lines = ["sentence\tlabel", 'crème "brûlée\t1', "plain\t0"]
    path = written(tmp_path, "data.tsv", newline.join(lines), encoding)
    known = "cp1252" if encoding == "cp1252" else "utf-8"
    data = read_labelled(path, encoding=known)
    assert data.texts == ('crème "brûlée', "plain")
    assert data.labels.tolist() == [1, 0]


def test_a_line_separator_of_unicode_inside_a_sentence_is_no_line_end(tmp_path):
    path = written(tmp_path, "data.tsv", "sentence\tlabel\none\u2028line\x85too\t1\n")
    assert read_labelled(path).texts == ("one\u2028line\x85too",)


def test_quotes_are_plain_in_tsv_unless_asked_for(tmp_path):
    path = written(
        tmp_path, "data.tsv", 'text\tlabel\n"Never," he said\t1\n"a\tb"\t0\n'
    )
    with pytest.raises(ArgumentError, match="line 3: it has 3 fields instead of 2"):
        read_labelled(path)
    path = written(tmp_path, "quoted.tsv", 'text\tlabel\n"a\tb"\t0\n')
    assert read_labelled(path, quotes=True).texts == ("a\tb",)


def test_labels_may_be_words_numbers_or_truth_values(tmp_path):
    words = written(tmp_path, "words.csv", "text,label\na,good\nb,bad\n")
    assert read_labelled(words).labels.tolist() == ["good", "bad"]
    whole = written(tmp_path, "whole.csv", "text,label\na,1.0\nb,0\n")
    assert read_labelled(whole).labels.dtype == np.int64
    truth = written(
        tmp_path,
        "truth.jsonl",
        '{"text": "a", "label": true}\n\n{"text": "b", "label": 0}',
    )
    assert read_labelled(truth).labels.tolist() == [1, 0]


def test_columns_by_name_and_by_number(tmp_path):
    path = written(tmp_path, "data.csv", "id,Review,stars\n7,fine,4\n")
    assert read_labelled(path).labels is None
    assert read_labelled(path, label="stars").labels.tolist() == [4]
    # By number: no row of names.
    assert read_labelled(path, text=1).texts == ("Review", "fine")
    with pytest.raises(
        ArgumentError, match=r"has no column label='star'.*mean 'stars'"
    ):
        read_labelled(path, label="star")
    with pytest.raises(ArgumentError, match="text=9 is no column; rows have 3"):
        read_labelled(path, text=9)


def test_lines_have_no_labels(tmp_path):
    data = read_labelled(written(tmp_path, "texts.txt", "\none\n\n two \n"))
    assert data.texts == ("one", "two") and data.labels is None
    with pytest.raises(ArgumentError, match="has no labels to split by"):
        data.split()


# ---- what is broken ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "a.csv",
            'text,label\n"never closed,1\nx,0\n',
            "line 2: a quote is not closed",
        ),
        ("a.csv", 'text,label\nok,1\n"a"b,1\n', "line 3: ',' expected after '\"'"),
        (
            "a.csv",
            "text,label\nok,1\na,b,0\nc\n",
            "2 broken rows: line 3: it has 3 .*; line 4",
        ),
        ("a.csv", 'text,label\n"two\nlines",1\nbad\n', "line 4: it has 1 fields"),
        (
            "a.csv",
            "text,label\n ,1\nx,\n",
            "line 2: its text is empty; line 3: its label is empty",
        ),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text"\n[1]',
            "line 2: it is not JSON.*; line 3",
        ),
        (
            "a.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b"}',
            "line 2: it has no field 'label'",
        ),
        ("a.jsonl", '{"text": 5, "label": 1}', "line 1: its text is int, not a string"),
        ("a.jsonl", '{"text": "a", "label": null}', "line 1: its label is None"),
    ],
)
def test_broken_rows_are_named_by_line(tmp_path, name, content, words):
    path = written(tmp_path, name, content)
    with pytest.raises(ArgumentError, match=words):
        read_labelled(path)


def test_broken_rows_can_be_left_out_and_are_counted(tmp_path):
    path = written(tmp_path, "a.csv", "text,label\nok,1\na,b,0\nfine,0\n")
    data = read_labelled(path, on_error="skip")
    assert data.texts == ("ok", "fine")
    assert data.skipped == ("line 3: it has 3 fields instead of 2",)
    assert "1 rows skipped" in repr(data)


def test_many_broken_rows_are_not_all_listed(tmp_path):
    path = written(tmp_path, "a.csv", "text,label\n" + "x\n" * 500)
    with pytest.raises(ArgumentError, match=r"500 broken rows.*and 495 more") as error:
        read_labelled(path)
    assert len(str(error.value)) < 400


def test_a_wrong_encoding_names_the_line(tmp_path):
    path = written(tmp_path, "a.tsv", "text\tlabel\nplain\t0\ncrème\t1\n", "cp1252")
    with pytest.raises(
        ArgumentError, match=r"line 3 is not utf-8 text.*0xe8.*encoding='cp1252'"
    ):
        read_labelled(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"file_format": "xml"}, "file_format must be one of 'csv'"),
        ({"encoding": "utf-9"}, "encoding 'utf-9' is not known"),
        ({"on_error": "ignore"}, "on_error must be one of"),
    ],
)
def test_bad_arguments_are_refused(tmp_path, options, words):
    with pytest.raises(ArgumentError, match=words):
        read_labelled(written(tmp_path, "a.csv", "text,label\na,1\n"), **options)


def test_files_without_rows_or_names(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        read_labelled(tmp_path / "none.csv")
    with pytest.raises(ArgumentError, match="holds no text"):
        read_labelled(written(tmp_path, "empty.csv", ""))
    with pytest.raises(ArgumentError, match="holds no text"):
        read_labelled(written(tmp_path, "head.csv", "text,label\n"))
    with pytest.raises(
        ArgumentError, match=r"first row names no text column.*It reads"
    ):
        read_labelled(written(tmp_path, "bare.csv", "good film,1\n"))
    with pytest.raises(ArgumentError, match="at least one file for a label"):
        read_labelled({})


def test_a_quote_that_is_not_closed_costs_its_own_row_only(tmp_path):
    rows = 'text,label\ngood,1\n"broken,0\nfine,1\nbad,0\n'
    data = read_labelled(written(tmp_path, "open.csv", rows), on_error="skip")
    assert data.texts == ("good", "fine", "bad") and data.labels.tolist() == [1, 1, 0]
    assert data.skipped == ("line 3: a quote is not closed",)
    two = 'text,label\n"one,0\nfine,1\n"two,0\nbad,0\n'
    data = read_labelled(written(tmp_path, "two.csv", two), on_error="skip")
    assert data.texts == ("fine", "bad") and len(data.skipped) == 2


def test_rows_between_two_broken_quotes_are_not_lost_in_silence(tmp_path):
    path = written(
        tmp_path, "pair.csv", 'text,label\ngood,1\n"broken,0\nfine,1\nbad",0\n'
    )
    with pytest.raises(ArgumentError, match="line 3: its quoted text holds whole rows"):
        read_labelled(path)
    honest = written(
        tmp_path, "honest.csv", 'text,label\n"two lines,\nno row",1\nb,0\n'
    )
    assert read_labelled(honest).texts == ("two lines,\nno row", "b")


def test_broken_first_lines_of_json_do_not_hide_the_fields(tmp_path):
    path = written(tmp_path, "a.jsonl", '{bad\n{"text": "b", "label": 1}\n')
    assert read_labelled(path, on_error="skip").texts == ("b",)
    path = written(tmp_path, "nan.jsonl", '{"text": "b", "label": NaN}\n')
    with pytest.raises(ArgumentError, match="line 1: its label is nan"):
        read_labelled(path)


WRITTEN = ["NA", "None", "007", "1e5", "true", "nan", "1.0"]


def in_format(folder, file_format, texts):
    path = folder / f"data.{file_format}"
    if file_format in ("csv", "tsv"):
        path.write_text(
            "text,label\n".replace(",", "," if file_format == "csv" else "\t")
        )
        with path.open("a", newline="") as file:
            delimiter = "," if file_format == "csv" else "\t"
            csv.writer(file, delimiter=delimiter).writerows((t, t) for t in texts)
    elif file_format in ("json", "jsonl"):
        rows = [json.dumps({"text": text, "label": text}) for text in texts]
        path.write_text(
            "\n".join(rows) if file_format == "jsonl" else f"[{','.join(rows)}]"
        )
    else:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = arrow.table({"text": texts, "label": texts})
        if file_format == "parquet":
            parquet.write_table(table, path)
        else:
            with arrow.ipc.new_stream(path, table.schema) as writer:
                writer.write_table(table)
    return path


@pytest.mark.parametrize(
    "file_format", ["csv", "tsv", "json", "jsonl", "parquet", "arrow"]
)
def test_what_looks_like_a_number_or_like_nothing_stays_a_text(tmp_path, file_format):
    path = in_format(tmp_path, file_format, WRITTEN)
    assert read_labelled(path).texts == tuple(WRITTEN)
    assert read_labelled(path).labels.tolist() == WRITTEN
    assert text_files(path, field="text") == WRITTEN
    assert [row["text"] for _, row in read_records(path)] == WRITTEN


@pytest.mark.parametrize("reader", [read_labelled, text_files, read_records])
def test_a_short_row_is_said_with_its_line_by_every_reader(tmp_path, reader):
    path = written(tmp_path, "a.csv", "text,label\nok then,1\n\n'b'\n")
    try:
        said = str(list(reader(path)))
    except ArgumentError as error:
        said = str(error)
    assert "it has 1 fields instead of 2" in said and "4" in said
