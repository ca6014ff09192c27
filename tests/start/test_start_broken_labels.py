"""A column of labels with gaps is no table without labels: a classifier's study refuses it."""

import pytest

from ontogeny.errors import ArgumentError
from ontogeny.start.source_tables import _has_labels


def table(tmp_path, labels, head="text,label"):
    path = tmp_path / "reviews.csv"
    rows = [f"a review with the number {i},{label}" for i, label in enumerate(labels)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.mark.parametrize("labels", [["good", "", "bad"], ["", "", ""]])
def test_rows_without_a_label_are_named_and_left_out_where_that_is_said(
    tmp_path, labels
):
    path = table(tmp_path, labels)
    with pytest.raises(ArgumentError, match=r"label is empty.*inputs\.on_error=skip"):
        _has_labels(path, skips=False)
    assert _has_labels(path, skips=True)


def test_whole_tables_and_texts_are_read_as_what_they_are(tmp_path):
    assert _has_labels(table(tmp_path, ["good", "bad"]), skips=False)
    assert not _has_labels(table(tmp_path, ["x", "y"], "text,writer"), skips=False)
    plain = tmp_path / "plain.txt"
    plain.write_text("one line\nand another\n")
    assert not _has_labels(plain, skips=False)
