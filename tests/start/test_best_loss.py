"""The best possible loss: a number, a column or an array; nonsense is refused by its place."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.start.best_loss import best_loss
from ontogeny.start.draft import Draft
from ontogeny.start.wishes import Wishes

INPUTS = Inputs.from_tokens([[1, 2, 3], [4, 5, 6]], score="all")


def rows(path, values):
    path.write_text(
        "".join(json.dumps({"text": "a b", "best": v}) + "\n" for v in values)
    )
    return str(path)


def test_a_number_is_itself_and_nothing_is_none():
    assert best_loss("1.386", [], {}, INPUTS) == (1.386, [])
    assert best_loss("0", [], {}, INPUTS) == (0.0, [])
    assert best_loss("", [], {}, INPUTS) == (None, [])


def test_a_column_is_averaged_over_the_tokens_that_are_scored(tmp_path):
    path = rows(tmp_path / "a.jsonl", [0.5, "1.5", 9.0])
    inputs = Inputs.from_tokens(
        [[1, 2, 3, 4], [5, 6, 0, 0]], mask=[[1] * 4, [1, 1, 0, 0]]
    )
    floor, (line,) = best_loss("best", [path], {"max_texts": 2}, inputs)
    assert floor == pytest.approx((0.5 * 4 + 1.5 * 2) / 6, rel=1e-5)
    assert "the mean of 2 in the column 'best'" in line


def test_an_array_beside_token_ids_is_taken_as_well(tmp_path):
    np.save(tmp_path / "best.npy", [0.25, 0.75])
    np.save(tmp_path / "ids.npy", INPUTS.ids)
    texts = [str(tmp_path / "ids.npy")]
    assert best_loss(str(tmp_path / "best.npy"), texts, {}, INPUTS)[0] == 0.5


def test_rows_without_a_text_have_no_part_in_the_mean(tmp_path):
    """The column was cut at as many rows as texts are read, empty ones among them."""
    path = tmp_path / "a.jsonl"
    texts = [("a b", 1.0), (" ", 9.0), ("c d", 3.0), ("e f", 8.0)]
    path.write_text(
        "".join(json.dumps({"text": t, "best": v}) + "\n" for t, v in texts)
    )
    floor, _ = best_loss("best", [str(path)], {"max_texts": 2}, INPUTS)
    assert floor == 2.0


@pytest.mark.parametrize("name", [".", "*.jsonl"])
def test_a_column_is_of_the_files_of_folders_and_globs(tmp_path, name):
    for file, best in (("a", 1.0), ("b", 3.0)):
        rows(tmp_path / f"{file}.jsonl", [best])
    assert best_loss("best", [str(tmp_path / name)], {}, INPUTS)[0] == 2.0


def test_texts_that_are_left_out_are_said(tmp_path):
    path = rows(tmp_path / "a.jsonl", [1.0, 2.0, 6.0])
    floor, (line,) = best_loss("best", [path], {}, INPUTS)
    assert floor == 3.0 and line.endswith("also of 1 whose texts are left out")


@pytest.mark.parametrize(
    ("files", "count", "fits"),
    [
        (["ids"], 2, True),
        (["ids"], 9, True),  # the first two are read
        (["ids"], 1, False),
        (["ids", "ids"], 2, True),
        (["ids", "ids"], 9, False),  # one of each is read
        (["stream"], 2, True),
        (["stream"], 9, False),  # pieces from all over it are read
        (["tensor"], 9, False),
    ],
)
def test_numbers_that_may_be_of_other_texts_are_refused(tmp_path, files, count, fits):
    np.save(tmp_path / "ids.npy", np.zeros((9, 3), int))
    np.save(tmp_path / "stream.npy", np.zeros(27, int))
    torch.save(torch.zeros(27, dtype=torch.long), tmp_path / "tensor.pt")
    np.save(tmp_path / "best.npy", np.arange(count, dtype=float))
    texts = [str(next(tmp_path.glob(f"{name}.*"))) for name in files]
    best = str(tmp_path / "best.npy")
    if fits:
        assert best_loss(best, texts, {"max_texts": 2}, INPUTS)[0] == 0.5
        return
    with pytest.raises(ArgumentError, match="one number for each text"):
        best_loss(best, texts, {"max_texts": 2}, INPUTS)


@pytest.mark.parametrize(
    ("split", "fits"), [(None, True), ("all", True), ("held-out", False)]
)
def test_more_numbers_than_rows_of_one_set_are_refused(tmp_path, split, fits):
    """Two held-out rows are read, and the first two numbers are of training rows."""
    path = rows(tmp_path / "a.jsonl", [1.0] * 4)
    np.save(tmp_path / "best.npy", [1.0, 2.0, 3.0, 4.0])
    table = {"max_texts": 2} | ({"split": split} if split else {})
    best = str(tmp_path / "best.npy")
    if fits:
        assert best_loss(best, [path], table, INPUTS)[0] == 1.5
        return
    with pytest.raises(ArgumentError, match="one number for each text"):
        best_loss(best, [path], table, INPUTS)


@pytest.mark.parametrize("given", ["-1", "nan", "inf"])
def test_a_number_that_is_no_loss_is_refused(given):
    with pytest.raises(ArgumentError, match=f"--floor {given} must be nats per token"):
        best_loss(given, [], {}, INPUTS)


@pytest.mark.parametrize(
    "values", [[0.5, -1.0], [0.5, None], [0.5, "much"], [0.5, True]]
)
def test_a_value_of_a_column_that_is_no_loss_is_refused_by_its_row(tmp_path, values):
    path = rows(tmp_path / "a.jsonl", values)
    with pytest.raises(ArgumentError, match=r"a\.jsonl, line 2 must be nats per token"):
        best_loss("best", [path], {}, INPUTS)


def test_what_is_no_column_and_no_array_of_losses_is_refused(tmp_path):
    path = rows(tmp_path / "a.jsonl", [0.5])
    with pytest.raises(
        ArgumentError, match="line 1 has no such column; it has 'text', 'best'"
    ):
        best_loss("bets", [path], {}, INPUTS)
    np.save(tmp_path / "ids.npy", INPUTS.ids)
    with pytest.raises(ArgumentError, match="a column of --texts that is a table"):
        best_loss("best", [str(tmp_path / "ids.npy")], {}, INPUTS)
    np.save(tmp_path / "square.npy", np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="one number for each text"):
        best_loss(str(tmp_path / "square.npy"), ["ids.npy"], {}, INPUTS)
    with pytest.raises(ArgumentError, match="cannot be read"):
        best_loss(str(tmp_path / "none.npy"), ["ids.npy"], {}, INPUTS)


def test_a_floor_without_a_loss_is_refused():
    asked = SimpleNamespace(
        wishes=Wishes("run", floor="1.4"), content={"inputs": {}}, _beside_loss=dict
    )
    with pytest.raises(ArgumentError, match="no loss of tokens is measured"):
        Draft._as_scored(asked, [{"kind": "label-accuracy"}])
    (loss,) = Draft._as_scored(asked, [{"kind": "loss"}])
    assert loss == {"kind": "loss"}
