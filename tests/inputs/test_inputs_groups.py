"""Texts that repeat and documents: found, counted, and kept whole by splits."""

import numpy as np
import pytest

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.inputs import stratified_split
from ontogeny.inputs.splits import text_groups
from ontogeny.tasks import LabelledTexts, document_files, read_labelled, split_texts


def test_the_fingerprint_is_of_tokens_alone_unless_texts_share_a_unit():
    """Stored studies of different texts stay valid; those with repeats are computed again."""
    rows = [[1, 2], [3, 4], [5, 6]]
    plain = og.Inputs.from_tokens(rows)
    assert (
        og.Inputs.from_tokens(rows, documents=["a", "b", "c"]).fingerprint
        == plain.fingerprint
    )
    together = og.Inputs.from_tokens(rows, documents=["a", "b", "a"])
    assert together.fingerprint != plain.fingerprint
    assert (
        og.Inputs.from_tokens(rows, documents=[7, 8, 7]).fingerprint
        == together.fingerprint
    )


def test_texts_repeat_by_tokens_and_by_characters():
    texts = ["One text", "another", " one  TEXT ", "third"]
    inputs = og.Inputs.from_tokens([[1], [2], [3], [1]], texts=texts)
    # The third and the first share tokens.
    assert inputs.groups.tolist() == [0, 1, 0, 0]
    assert inputs.counts["duplicates"] == 2 and inputs.counts["units"] == 2
    assert "2 of 4 texts repeat others" in inputs.repeats


def test_documents_that_share_a_text_are_one_unit():
    rows = [[1], [2], [1], [3], [4]]
    inputs = og.Inputs.from_tokens(rows, documents=["a", "a", "b", "b", "c"])
    assert inputs.groups.tolist() == [0, 0, 0, 0, 4]
    assert inputs.counts["documents"] == 3 and inputs.counts["units"] == 2
    assert inputs.subset([1, 4]).groups.tolist() == [0, 1]


def test_groups_do_not_depend_on_the_side_of_padding():
    inputs = og.Inputs.from_tokens([[1, 2, 3], [4], [4], [1, 2]])
    assert (
        inputs.padded("left").groups.tolist() == inputs.groups.tolist() == [0, 1, 1, 3]
    )
    assert inputs.padded("left").counts["duplicates"] == 1


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["a", "b"], "one document for each of 3 texts"),
        ([0.5, 1.0, 2.0], "texts or whole numbers"),
        (["a", None, "b"], "texts or whole numbers"),
        (["a", 1, "b"], "mixed"),
    ],
)
def test_documents_that_are_none_are_refused(documents, message):
    with pytest.raises(ArgumentError, match=message):
        og.Inputs.from_tokens([[1], [2], [3]], documents=documents)


@pytest.mark.parametrize("seed", range(20))
def test_splits_keep_units_whole_and_classes_in_both_parts(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(12), rng.integers(1, 6, 12))
    constant = (np.arange(12) % 2)[groups]
    mixed = rng.integers(0, 2, len(groups))
    for labels in (constant, mixed):
        first, second = stratified_split(labels, 2 / 3, seed, groups)
        assert not set(groups[first]) & set(groups[second])
        assert sorted([*first, *second]) == list(range(len(groups)))
        assert set(labels[first]) == set(labels[second]) == {0, 1}
        assert 0.45 < len(first) / len(groups) < 0.85


def test_units_of_one_text_are_split_as_without_units():
    labels = np.random.default_rng(0).integers(0, 3, 60)
    known = stratified_split(labels, 0.6, 4)
    for part, same in zip(
        known, stratified_split(labels, 0.6, 4, np.arange(60)), strict=True
    ):
        np.testing.assert_array_equal(part, same)


def test_a_class_of_a_single_document_cannot_be_split():
    with pytest.raises(ArgumentError, match="two units of texts"):
        stratified_split([0, 0, 1, 1], groups=[0, 1, 2, 2])


def test_held_out_texts_are_not_copies_of_training_texts():
    texts = [f"text {i}" for i in range(40)] * 3
    kept, heldout = split_texts(texts, 0.2)
    assert not set(kept) & set(heldout) and len(heldout) == 24
    data = LabelledTexts(tuple(texts), np.arange(120) % 40 % 2)
    train, test = data.split()
    assert not set(train.texts) & set(test.texts)
    assert text_groups(texts).tolist() == [*range(40)] * 3


def test_documents_are_read_from_columns_and_files(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("sentence,label,review\ngood,1,a\nbad,0,b\nfine,1,a\n")
    data = read_labelled(table, document="review")
    assert data.documents.tolist() == ["a", "b", "a"] and data.groups.tolist() == [
        0,
        1,
        0,
    ]
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"text": "good", "url": "x"}\n{"text": "bad", "url": "x"}\n')
    assert read_labelled(lines, document="url").groups.tolist() == [0, 0]
    with pytest.raises(ArgumentError, match="no column document='page'"):
        read_labelled(table, document="page")
    with pytest.raises(ArgumentError, match="names a column"):
        read_labelled(table, document="page", file_format="lines")
    wiki = " = Oak = \n \n = = Wood = = \n A tree .\n Its wood .\n \n = Ash = \n \n Another .\n"
    (tmp_path / "wiki.txt").write_text(wiki)
    (tmp_path / "more.txt").write_text("Nothing else .\n")
    found = document_files(tmp_path / "*.txt", documents="article", unit="line")
    assert found.texts == ("Nothing else .", "A tree .", "Its wood .", "Another .")
    assert found.documents.tolist() == [0, 1, 1, 2]
    by_file = document_files(tmp_path / "*.txt", unit="line")
    assert by_file.documents.tolist() == [0, 1, 1, 1]


def test_a_column_of_a_table_names_documents_and_a_missing_one_is_refused():
    rows = [{"text": "good", "url": "x"}, {"text": "bad", "url": "y"}]
    found = LabelledTexts.from_rows(rows, label=None, document="url").documents
    assert found.tolist() == ["x", "y"]
    column = np.array(["x", "x"], dtype=object)
    assert og.Inputs.from_tokens([[1], [2]], documents=column).groups.tolist() == [0, 0]
    with pytest.raises(
        ArgumentError, match=r"documents must be texts or whole .* got None"
    ):
        LabelledTexts.from_rows(
            [*rows, {"text": "so", "url": None}], label=None, document="url"
        )
    with pytest.raises(ArgumentError, match="they are mixed"):
        og.Inputs.from_tokens([[1], [2]], documents=np.array(["x", 1], dtype=object))
