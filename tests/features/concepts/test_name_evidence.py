"""Which names concepts keep: those that code and contexts bear out, of words joined of pieces."""

import numpy as np
import xarray as xr

from ontogeny import describe
from ontogeny.features.concepts.describe.row_words import RowWords, joined_pieces
from ontogeny.features.concepts.naming import borne_out, chosen_names
from ontogeny.inputs import Inputs


def test_pieces_are_joined_to_words():
    inputs = Inputs.from_tokens(
        [[0, 1, 2, 0, 3, 2], [4, 0, 1, 5, 2, 2]], special_ids=[4]
    )
    pieces = [" Tim", "my", ".", "es", "<s>", "\n  "]
    words = RowWords.of(inputs, inputs.sample(), pieces)
    assert words.words[words.place[:4]].tolist() == ["Timmy", "Timmy", ".", "Times"]
    assert words.words.tolist() == ["\n", ".", "Times", "Timmy"]
    joined = joined_pieces(words, inputs.ids[inputs.ordinary], pieces)
    assert joined[:4] == ["Tim…", "Timmy", ".", "Times"]
    codes = (inputs.ids[inputs.ordinary] == 1)[:, None]
    found = describe.names(
        codes, inputs, inputs.sample(), untrained=[0.1] * 20, pieces=pieces
    )
    assert found.name.item() in ("Timmy", "")


def described(name="comma", explained=0.5, peaks=(0, 0, 1, 1), **more):
    ids = np.array([[[[2, peak, 2] for peak in peaks]]])
    return xr.Dataset(
        {
            "name": (("layer", "concept"), np.array([[name]], dtype=object)),
            "enrichment": (("layer", "concept", "position"), [[[explained, 0.0]]]),
            "shared_context_id": (("layer", "concept", "example", "place"), ids),
            "piece_text": ("piece", np.array([",", " said", " x"], dtype=object)),
            **more,
        },
        {
            "piece": [0, 1, 2],
            "place": [-1, 0, 1],
            "position": ["token", "token before"],
        },
    )


def test_names_that_code_or_contexts_refute_are_taken_back():
    assert chosen_names(described()).name.item() == "comma"  # two of four contexts
    assert chosen_names(described(peaks=(0, 1, 1, 1))).name.item() == ""
    assert chosen_names(described(explained=0.06)).name.item() == ""
    assert chosen_names(described(explained=np.nan)).name.item() == "comma"


def test_a_name_fits_where_a_context_is_strongest_at_a_piece_of_its_words():
    one = described("Timmy, Max, Sue").isel(layer=0, concept=0)
    one["piece_text"].values[:] = [" Tim", "my", "."]
    one["shared_context_id"].values[:] = [[2, 0, 1], [0, 1, 2], [2, 2, 2], [2, 2, 2]]
    assert borne_out(one, "Timmy, Max, Sue")


def test_equal_names_get_what_differs():
    others = [described(), described(), described("the", peaks=(0, 0, 0, 0))]
    data = xr.concat(others, "concept", data_vars="minimal")
    data["name_beside"] = (
        ("layer", "concept"),
        [["after said", "before x", "after said"]],
    )
    found = chosen_names(data).name.values[0].tolist()
    assert found[:2] == ["comma after said", "comma before x"] and found[2] == ""
