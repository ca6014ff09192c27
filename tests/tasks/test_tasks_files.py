import gzip
import json
import lzma
import re
import textwrap

import numpy as np
import pytest

from helpers.paths import DATA
from ontogeny.errors import ArgumentError
from ontogeny.tasks import document_files, read_labelled, text_files
from ontogeny.tasks.plain import WORDS, form_of

LONG = "A sentence that is long enough to be a paragraph."


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b.txt").write_text(
        f"{LONG} b\nwrapped\n\n{LONG} b2\n", encoding="utf-8"
    )
    (tmp_path / "a.txt").write_text(f"{LONG} a\n", encoding="utf-8")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.jsonl").write_text(
        '{"text": "c1"}\n\n"c2"\n', encoding="utf-8"
    )
    (tmp_path / "deep" / "d.json").write_text(
        '["d1", {"text": "d2\\nmore"}]', encoding="utf-8"
    )
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff")
    return tmp_path


def test_a_folder_gives_all_its_text_files_by_name(folder):
    assert text_files(folder) == [
        f"{LONG} a",
        f"{LONG} b\nwrapped",
        f"{LONG} b2",
        "c1",
        "c2",
        "d1",
        "d2\nmore",
    ]


def test_globs_files_and_repeats_are_read_once_in_the_order_given(folder):
    both = text_files([folder / "b.txt", str(folder / "*.txt")])
    assert both == [f"{LONG} b\nwrapped", f"{LONG} b2", f"{LONG} a"]
    assert text_files(str(folder / "**" / "*.jsonl")) == ["c1", "c2"]


def test_relative_paths_are_relative_to_here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert text_files("a.txt") == text_files("a*.txt") == [f"{LONG} a"]


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(tmp_path):
    (tmp_path / "notes[1].txt").write_text("kept", encoding="utf-8")
    assert text_files(tmp_path / "notes[1].txt") == ["kept"]


PROSE = " ".join(
    f"Sentence number {n} tells of one more thing that nobody knew." for n in range(40)
)


@pytest.mark.parametrize(
    ("content", "form", "count"),
    [
        (
            "".join(
                f"A story about number {n}. {'It rains. ' * (n % 7)}\n"
                for n in range(80)
            ),
            "line",
            80,
        ),
        (
            textwrap.fill(PROSE, 72) + "\n\n" + textwrap.fill(PROSE, 72) + "\n",
            "paragraph",
            2,
        ),
        (textwrap.fill(PROSE, 72), "file", 1),
        (
            "\n".join(f"The cat {n} sat on a mat, and it was glad." for n in range(60)),
            "line",
            60,
        ),
        (
            "KING:\nHear me speak.\n\nALL:\nSpeak, speak.\n\nKING:\nYou are resolved.\n",
            "paragraph",
            3,
        ),
        ("def f(x):\n    return x\n\n\ndef g():\n    pass\n", "paragraph", 2),
        (
            "A tale.\n\nIts end.\n<|endoftext|>\nAnother.\n<|endoftext|>\n",
            "document",
            2,
        ),
        (
            f" = Oak = \n \n {PROSE} \n {PROSE} \n \n = = Age = = \n \n {PROSE} \n",
            "line",
            3,
        ),
    ],
)
def test_the_form_of_plain_texts_is_recognised(tmp_path, content, form, count):
    (tmp_path / "x.txt").write_text(content, encoding="utf-8")
    found = document_files(tmp_path / "x.txt")
    said = "" if form == "file" else ", as recognised (inputs.unit)"
    assert found.form == WORDS[form] + said
    assert len(found) == count


def _drawn(alphabet, least, most, seed=0):
    rng = np.random.default_rng(seed)
    return [
        "".join(rng.choice([*alphabet], rng.integers(least, most + 1)))
        for _ in range(200)
    ]


LINES = {
    "sums": [
        f"{a} + {b} = {a + b}" for a in range(0, 100, 7) for b in range(0, 100, 7)
    ],
    "sums of one length": [
        f"{a:03}+{b:03}={a + b:04}" for a in range(20) for b in range(9)
    ],
    "names": [*map(str.title, _drawn("abcdefgh", 3, 9))],
    "molecules": _drawn(["C", "c1ccccc1", "N", "(=O)", "Cl"], 12, 30),
    "bases": _drawn("ACGT", 60, 60),
    "moves": [" ".join(_drawn("abcdefgh", 2, 3, n)[:40]) for n in range(60)],
}
CHINESE = "".join(_drawn("我你他是的不在有了人这中大来上个国", 40, 40))


@pytest.mark.parametrize("name", LINES)
def test_lines_of_one_pattern_are_texts(tmp_path, name):
    (tmp_path / "x.txt").write_text("\n".join(LINES[name]), encoding="utf-8")
    found = document_files(tmp_path / "x.txt")
    assert list(found.texts) == LINES[name]


def test_wrapped_text_without_blanks_is_no_list_of_lines():
    assert form_of([textwrap.fill(CHINESE, 44)]) == "file"


def test_many_short_files_are_a_text_each(tmp_path):
    for n in range(25):
        (tmp_path / f"{n:02}.txt").write_text(
            f"Review {n}.\nGood.\n\nBuy it.\n", encoding="utf-8"
        )
    found = document_files(tmp_path)
    assert (
        found.form == WORDS["file"] and found.texts[3] == "Review 3.\nGood.\n\nBuy it."
    )


def test_white_space_and_short_pieces_stay_as_they_are(tmp_path):
    (tmp_path / "x.txt").write_text(
        "One\n\n  if x:\n\treturn  1\n\nTwo\n", encoding="utf-8"
    )
    assert text_files(tmp_path / "x.txt", unit="paragraph") == [
        "One",
        "  if x:\n\treturn  1",
        "Two",
    ]


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        (
            "x.jsonl",
            '{"content": "a b", "id": "7"}\n{"content": " c", "id": "8"}\n',
            ["a b", " c"],
        ),
        ("x.json", '{"data": [{"story": "a b"}, {"story": "c d"}]}', ["a b", "c d"]),
        (
            "x.csv",
            'id,comment,stars\n1,"good, really",5\n2,so so,3\n',
            ["good, really", "so so"],
        ),
        (
            "x.tsv",
            'sentence\tlabel\n"hide new\t0\ncontains no wit\t1\n',
            ['"hide new', "contains no wit"],
        ),
        (
            "x.csv",
            "1,It was a long day here.\n0,No rain fell.\n",
            ["It was a long day here.", "No rain fell."],
        ),
    ],
)
def test_the_column_of_texts_is_guessed_where_one_is_text(
    tmp_path, name, content, texts
):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert text_files(tmp_path / name) == texts


def test_a_dataset_that_was_saved_to_disk_is_read_by_its_column(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"story": ["a b c", "d e f"], "id": [1, 2]})
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        for name in ("data-00000-of-00001.arrow", "cache-0a1b.arrow"):
            with arrow.ipc.new_stream(tmp_path / part / name, table.schema) as writer:
                writer.write_table(table)
        for name in ("dataset_info.json", "state.json"):
            (tmp_path / part / name).write_text('{"features": {}}')
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    texts = document_files(tmp_path)
    assert (
        texts.texts == ("a b c", "d e f") * 2 and texts.form == "of the column 'story'"
    )
    (tmp_path / "x.arrow").write_bytes(b"no table")
    with pytest.raises(ArgumentError, match=r"x\.arrow is not readable as Arrow"):
        document_files(tmp_path / "x.arrow")


def test_an_arrow_file_is_read_as_a_stream_is(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"story": ["a b c", "d e f"], "id": [1, 2]})
    with arrow.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    assert document_files(tmp_path / "x.arrow").texts == ("a b c", "d e f")


def test_a_file_named_as_datasets_names_its_own_is_read_where_no_table_is(tmp_path):
    (tmp_path / "state.json").write_text('[{"text": "a b c"}, {"text": "d e f"}]')
    assert document_files(tmp_path).texts == ("a b c", "d e f")


def test_a_parquet_file_is_read_by_its_column(tmp_path):
    arrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    table = arrow.table({"id": [1, 2], "story": ["one two", "three four"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert document_files(tmp_path / "x.parquet").form == "of the column 'story'"


def test_of_several_columns_of_text_one_must_be_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("question,answer\nwho is it,nobody at all\nwhy so,just because\n")
    with pytest.raises(ArgumentError, match=r"'question', 'answer'\): name one"):
        text_files(path)
    assert text_files(path, field="answer") == ["nobody at all", "just because"]


@pytest.mark.parametrize("wide", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_without_a_mark_are_named_so_that_the_advice_works(
    tmp_path, wide
):
    path = tmp_path / "x.txt"
    path.write_bytes("plain text, été\nof two lines\n".encode(wide))
    with pytest.raises(ArgumentError, match=f"zero bytes, as {wide} does") as told:
        text_files(path)
    advised = re.search(r"encoding='([a-z0-9-]+)'", str(told.value))[1]
    assert text_files(path, encoding=advised)[0].startswith("plain text, été")


def test_zeros_that_no_encoding_explains_are_no_text(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(bytes(1) * 40 + b"ids" * 3)
    with pytest.raises(ArgumentError, match="it is no text: give token ids"):
        text_files(path)


def test_units(folder):
    assert text_files(folder / "b.txt", unit="line") == [
        f"{LONG} b",
        "wrapped",
        f"{LONG} b2",
    ]
    assert text_files(folder / "b.txt", unit="file") == [
        f"{LONG} b\nwrapped\n\n{LONG} b2"
    ]


def test_another_field_and_encoding(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"body": "Größe"}\n'.encode("latin-1"))
    assert text_files(path, field="body", encoding="latin-1") == ["Größe"]


def test_byte_order_mark_and_windows_line_ends_vanish(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert text_files(path, unit="line") == ["one", "two"]


def test_line_separators_inside_json_strings_do_not_break_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps("a\u2028b", ensure_ascii=False) + "\n", encoding="utf-8")
    assert text_files(path) == ["a\u2028b"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.txt", b"ab\xff", "byte 2"),
        ("x.json", b"{", "not JSON"),
        ("x.json", b'{"text": "a"}', "must hold a list; it holds an object"),
        ("x.json", b"[1]", "entry 1 must be a string; it is the value 1"),
        (
            "x.jsonl",
            b'{"text": "a"}\n{"b": "c"}',
            "line 2 has no field 'text'; it has 'b'. Name",
        ),
        ("x.jsonl", b'"a"\n{', "line 2: it is not JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArgumentError, match=said) as caught:
        text_files(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("paths", ["none/*.txt", "none.txt", [], "", "empty"])
def test_nothing_to_read_is_an_error(tmp_path, monkeypatch, paths):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="paths"):
        text_files(paths)


def test_files_without_text_are_an_error(tmp_path):
    (tmp_path / "x.txt").write_text(" \n\n = Title = \n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="hold no text"):
        text_files(tmp_path / "x.txt")


def test_unknown_unit_and_encoding_are_refused(folder):
    with pytest.raises(ArgumentError, match="paragraph"):
        text_files(folder, unit="paragraphs")
    with pytest.raises(ArgumentError, match="utf-9"):
        text_files(folder, encoding="utf-9")


WIKITEXT = DATA / "wikitext-2" / "valid.txt"


@pytest.mark.skipif(
    not WIKITEXT.is_file(), reason="WikiText-2 is not here (ONTOGENY_DATA)"
)
def test_wikitext_gives_its_paragraphs_without_headings():
    texts = text_files(WIKITEXT, unit="line")
    lines = [line.strip() for line in WIKITEXT.read_text("utf-8").split("\n")]
    wanted = [line for line in lines if line and not (line[0] == line[-1] == "=")]
    assert texts == wanted


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (
            ["01", "1", "2"],
            ["01", "1", "2"],
        ),  # two classes that are written differently
        (["1", "1.0", "0"], ["1", "1.0", "0"]),
        (["1.0", "0.0", "1.0"], [1, 0, 1]),  # nothing would merge
        (["0", "1", "1"], [0, 1, 1]),
        (
            ["9007199254740993", "9007199254740992"],
            [9007199254740993, 9007199254740992],
        ),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
    ],
)
def test_labels_are_one_class_only_if_they_are_written_alike(tmp_path, written, labels):
    file = tmp_path / "data.tsv"
    file.write_text("text\tlabel\n" + "".join(f"words\t{label}\n" for label in written))
    assert read_labelled(file).labels.tolist() == labels


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (["true", "false"], [1, 0]),
        (["true", "1", "0"], ["True", "1", "0"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["1.0", "0.0"], [1, 0]),
        (['"1"', '"01"'], ["1", "01"]),
    ],
)
def test_json_labels_of_different_kinds_do_not_merge(tmp_path, written, labels):
    file = tmp_path / "data.jsonl"
    file.write_text(
        "".join(f'{{"text": "words", "label": {label}}}\n' for label in written)
    )
    assert read_labelled(file).labels.tolist() == labels


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b"a", mtime=0), "gzip"),
        (lzma.compress(b"a"), "xz"),
        (b"%PDF-1.7", "PDF"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_archives_and_pages_are_no_texts(tmp_path, content, kind):
    path = tmp_path / "texts.txt"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=f"is {kind}, no text: unpack it"):
        text_files(path)


def test_columns_may_be_apart_by_semicolons(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text('id;text\n1;"One; two"\n2;Three four\n')
    assert text_files(path) == ["One; two", "Three four"]
    path.write_text("id,text\n1,One; two\n")
    assert text_files(path) == ["One; two"]


def test_files_of_one_line_each_are_one_a_file(tmp_path):
    """A folder of 120 such files was said to hold texts "one a line"."""
    for i in range(25):
        (tmp_path / f"{i:02d}.txt").write_text(f"A cat sat on mat {i}.\n")
    assert document_files(tmp_path).form == "one a file"
    (tmp_path / "99.txt").write_text("One line.\nAnother.\n")
    texts = document_files(tmp_path, unit="line")
    assert texts.form == "one a line" and len(texts.texts) == 27


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_is_followed_and_refused_where_another_encoding_was_said(
    tmp_path, encoding
):
    (tmp_path / "a.txt").write_bytes("Grüße\n".encode(encoding))
    assert text_files(tmp_path / "a.txt", unit="line") == ["Grüße"]
    alike = "utf-8" if encoding == "utf-8-sig" else f"{encoding}-le"
    assert text_files(tmp_path / "a.txt", unit="line", encoding=alike) == ["Grüße"]
    with pytest.raises(
        ArgumentError, match=f"mark of {encoding}; encoding=cp1252 was said"
    ):
        text_files(tmp_path / "a.txt", unit="line", encoding="cp1252")
