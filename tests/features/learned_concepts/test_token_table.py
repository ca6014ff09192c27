"""How much of a layer single tokens are: against a plain loop, and as a table over steps."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.concepts.beyond_token import PRIOR, Tokens, centred
from ontogeny.features.learned_concepts.token_table import with_token_table


def test_the_share_of_a_token_is_that_of_its_shrunk_mean():
    rng = np.random.default_rng(0)
    token = rng.integers(0, 6, 200)
    H = centred(rng.normal(size=(200, 4)) + token[:, None])
    shares = Tokens(token, np.arange(200) // 10).of_each(H, np.array([4, 99]))
    rows = H[token == 4].astype(np.float64)
    mean = rows.sum(axis=0) / (len(rows) + PRIOR)
    assert shares[0] == pytest.approx(
        len(rows) * (mean @ mean) / (H.astype(np.float64) ** 2).sum(), rel=1e-5
    )
    assert shares[1] == 0  # stands nowhere


def test_all_tokens_together_are_less_than_the_layer():
    rng = np.random.default_rng(1)
    token = rng.integers(0, 6, 300)
    H = centred(rng.normal(size=(300, 4)))
    assert 0 < Tokens(token, np.arange(300)).of_each(H, np.arange(6)).sum() < 1


def test_frequent_tokens_stand_first():
    tokens = Tokens(np.array([7, 7, 7, 2, 2, 5]), np.arange(6))
    assert tokens.frequent(2).tolist() == [7, 2]


@pytest.fixture
def table():
    curves = np.array([[[0.1, 0.0], [0.1, 0.3], [0.1, 0.4]]])
    curves = np.concatenate(
        [curves, np.full_like(curves, np.nan)]
    )  # a layer that failed
    data = xr.Dataset(
        {
            "token_part": (("layer", "step", "listed"), curves),
            "frequent_id": ("listed", [5, 9]),
            "piece_text": ("piece", [" the", " whale"]),
        },
        {"piece": [5, 9], "step": [0, 10, 20], "layer": ["a", "b"]},
    )
    return with_token_table(data)


def test_rows_stand_by_their_last_share(table):
    one = table.sel(layer="a")
    assert one.token_text.values.tolist() == [" whale", " the"]
    assert one.token_first.values.tolist() == [0.0, 0.1]
    assert one.token_last.values.tolist() == [0.4, 0.1]
    assert one.token_half.values.tolist() == [10, 0]


def test_rows_of_the_table_are_no_places_among_the_frequent_tokens(table):
    assert "listed" not in table.token_text.dims
    assert table.frequent_id.dims == ("listed",)


def test_a_layer_that_failed_has_no_rows(table):
    one = table.sel(layer="b")
    assert np.isnan(one.token_last).all() and set(one.token_text.values) == {""}


def test_data_without_pieces_stays_what_it_is():
    data = xr.Dataset({"token_part": (("layer", "step", "listed"), np.ones((1, 1, 1)))})
    assert with_token_table(data) is data
