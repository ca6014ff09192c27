"""The best possible loss: a number, a column or an array; nonsense is refused by its place."""

import json

import numpy as np
import pytest

from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.start.best_loss import best_loss

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
    assert best_loss(str(tmp_path / "best.npy"), ["ids.npy"], {}, INPUTS)[0] == 0.5


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
    with pytest.raises(ArgumentError, match="a column of --texts that is a table"):
        best_loss("best", ["ids.npy"], {}, INPUTS)
    np.save(tmp_path / "square.npy", np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="one number for each text"):
        best_loss(str(tmp_path / "square.npy"), ["ids.npy"], {}, INPUTS)
    with pytest.raises(ArgumentError, match="cannot be read"):
        best_loss(str(tmp_path / "none.npy"), ["ids.npy"], {}, INPUTS)
