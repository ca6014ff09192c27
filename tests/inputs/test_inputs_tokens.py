"""Inputs from tokens: layout, refusals, fingerprints, batches, samples, corruption."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ontogeny import Inputs
from ontogeny.errors import ArgumentError
from ontogeny.inputs.splits import class_counts, label_array

ROWS = [[5, 6, 7, 8], [9], [3, 4]]

ragged = st.lists(
    st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=8
)


def test_lists_arrays_and_tensors_give_the_same_inputs():
    ids = [[5, 6, 7], [8, 9, 0]]
    mask = [[1, 1, 1], [1, 1, 0]]
    prints = {
        Inputs.from_tokens(ids, mask).fingerprint,
        Inputs.from_tokens(np.array(ids), np.array(mask)).fingerprint,
        Inputs.from_tokens(
            torch.tensor(ids), torch.tensor(mask, dtype=torch.bool)
        ).fingerprint,
        Inputs.from_tokens([[5, 6, 7], [8, 9]]).fingerprint,
        Inputs.coerce(
            {"input_ids": torch.tensor(ids), "attention_mask": mask}
        ).fingerprint,
    }
    assert len(prints) == 1


def test_importing_inputs_loads_no_model_code():
    code = "import sys, ontogeny.inputs; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_coerce_returns_inputs_themselves():
    inputs = Inputs.from_tokens(ROWS)
    assert Inputs.coerce(inputs) is inputs


def test_arrays_cannot_be_changed_and_the_callers_own_can():
    ids, mask = np.array([[5, 6]]), np.ones((1, 2), bool)
    inputs = Inputs(ids=ids, mask=mask, special=~mask)
    with pytest.raises(ValueError, match="read-only"):
        inputs.ids[0, 0] = 1
    ids[0, 0] = 1
    assert inputs.ids[0, 0] == 5
    copy = pickle.loads(pickle.dumps(inputs))
    with pytest.raises(ValueError, match="read-only"):
        copy.ids[0, 0] = 1


def test_pickle_keeps_everything():
    inputs = Inputs.from_tokens(
        ROWS, texts=["a", "b", "c"], labels=[0, 1, 0], mask_token_id=2
    )
    copy = pickle.loads(pickle.dumps(inputs))
    assert copy.fingerprint == inputs.fingerprint and copy.texts == inputs.texts
    assert copy.labels.tolist() == [0, 1, 0] and copy.counts == inputs.counts


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"ids": [[5, 6, 7, 9], [9], [3, 4]]}, False),
        ({"ids": [[5, 6, 7, 8], [9, 0], [3, 4]]}, False),
        ({"special_ids": [5]}, False),
        ({"mask_token_id": 1}, False),
        ({"labels": [1, 2, 3]}, False),
    ],
)
def test_fingerprint_changes_with_what_a_study_sees(change, same):
    ids = change.pop("ids", ROWS)
    changed = Inputs.from_tokens(ids, **change)
    assert (changed.fingerprint == Inputs.from_tokens(ROWS).fingerprint) is same


def test_counts_add_up():
    counts = Inputs.from_tokens(ROWS, special_ids=[5, 9]).counts
    assert counts == {
        "texts": 3,
        "tokens": 7,
        "ordinary": 5,
        "special": 2,
        "padding": 5,
        "truncated": 0,
        "dropped": 0,
        "duplicates": 0,
        "documents": 0,
        "units": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": []}, "ids must hold one row"),
        ({"ids": [[]]}, "ids must hold one row"),
        ({"ids": 3}, "ids must hold one row"),
        ({"ids": [1, 2]}, "ids must hold one row"),
        ({"ids": np.ones((2, 2, 2), int)}, "ids must hold one row"),
        ({"ids": [[0.5, 1.0]]}, "ids must hold integers; got float64"),
        ({"ids": [["a"]]}, "ids must hold integers"),
        ({"ids": [[-1]]}, "ids must be 0 or more; they span -1 to -1"),
        ({"ids": [[12]], "vocab_size": 10}, "between 0 and 9; they span 12 to 12"),
        ({"ids": [[1, 2]], "mask": [[0, 0]]}, r"these have none: \[0\]"),
        ({"ids": [[1], []]}, r"these have none: \[1\]"),
        ({"ids": [[1, 2, 3]], "mask": [[1, 0, 1]]}, "one run of tokens"),
        ({"ids": [[1, 2], [1, 2]], "mask": [[1, 0], [0, 1]]}, "one run of tokens"),
        ({"ids": [[1, 2]], "mask": [[1]]}, r"mask must be a bool array of shape"),
        ({"ids": [[1, 2]], "special": [[1], [0]]}, "special must be"),
        ({"ids": [[1, 2]], "labels": [1, 2]}, "labels has 2 entries for 1 texts"),
        ({"ids": [[1, 2]], "texts": ["a", "b"]}, "texts has 2 entries for 1 texts"),
        (
            {"ids": [[1, 2]], "vocab_size": 5, "mask_token_id": 5},
            "mask_token_id must be",
        ),
    ],
)
def test_bad_tokens_are_refused_with_what_came(arguments, message):
    ids = arguments.pop("ids")
    with pytest.raises(ArgumentError, match=message):
        Inputs.from_tokens(ids, **arguments)


def test_coerce_says_what_it_accepts():
    with pytest.raises(ArgumentError, match=r"got list. Use Inputs.from_texts"):
        Inputs.coerce(["a text"])


def test_special_must_cover_padding():
    mask = np.array([[True, False]])
    with pytest.raises(ArgumentError, match="special must be True at padding too"):
        Inputs(ids=np.array([[1, 0]]), mask=mask, special=np.zeros((1, 2), bool))


@given(ragged, st.sampled_from(["left", "right"]))
def test_padding_moves_without_changing_any_text(rows, side):
    inputs = Inputs.from_tokens(rows)
    moved = inputs.padded(side)
    assert [moved.ids[i][moved.mask[i]].tolist() for i in range(len(rows))] == rows
    assert moved.padded("right").fingerprint == inputs.fingerprint
    assert moved.counts == inputs.counts


@given(ragged, st.integers(1, 5), st.sampled_from(["left", "right"]))
def test_batches_hold_every_text_once_without_loss(rows, batch_size, side):
    inputs = Inputs.from_tokens(rows).padded(side)
    seen = {}
    for batch in inputs.batches(batch_size):
        assert batch.ids.shape == (len(batch.rows), inputs.lengths[batch.rows].max())
        for index, row in enumerate(batch.rows.tolist()):
            assert row not in seen
            seen[row] = batch.ids[index][batch.mask[index]].tolist()
            positions = batch.position_ids[index][batch.mask[index]]
            assert positions.tolist() == list(range(len(rows[row])))
    assert [seen[i] for i in range(len(rows))] == rows


def test_batches_go_from_long_to_short_and_ties_keep_their_order():
    inputs = Inputs.from_tokens([[1] * n for n in (2, 5, 2, 7, 5)])
    assert [b.rows.tolist() for b in inputs.batches(2)] == [[3, 1], [4, 0], [2]]


def test_batch_size_must_be_positive():
    with pytest.raises(
        ArgumentError, match="batch_size must be a whole number of at least 1; got 0"
    ):
        Inputs.from_tokens(ROWS).batches(0)


def test_sample_never_takes_padding_or_special_tokens():
    inputs = Inputs.from_tokens([[1, 5, 6, 2], [1, 7, 2], [1, 2]], special_ids=[1, 2])
    sample = inputs.sample("all")
    assert list(zip(sample.text.tolist(), sample.position.tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
        (1, 1),
    ]
    assert inputs.sample("mean").text.tolist() == [0, 1]
    assert inputs.sample("last").position.tolist() == [3, 2, 1]
    assert inputs.sample("cls").position.tolist() == [0, 0, 0]
    everything, later = inputs.sample("all"), inputs.sample("later")
    assert later.position.tolist() == [p for p in everything.position.tolist() if p > 0]


@given(
    ragged, st.sampled_from(["all", "mean", "last", "cls", "masked"]), st.integers(1, 9)
)
def test_sample_is_seeded_and_does_not_depend_on_the_padding_side(
    rows, tokens, max_tokens
):
    inputs = Inputs.from_tokens(rows, mask_token_id=60)
    one = inputs.sample(tokens, max_tokens, random_state=3)
    other = inputs.padded("left").sample(tokens, max_tokens, random_state=3)
    np.testing.assert_array_equal(one.text, other.text)
    np.testing.assert_array_equal(one.position, other.position)
    whole = inputs.sample(tokens, None, random_state=3)
    assert len(one) == min(max_tokens, len(whole))
    kept = set(zip(one.text.tolist(), one.position.tolist(), strict=True))
    assert len(kept) == len(one)
    assert kept <= set(zip(whole.text.tolist(), whole.position.tolist(), strict=True))
    assert np.all(np.lexsort((one.position, one.text)) == np.arange(len(one)))


def test_sample_is_uniform_over_tokens():
    inputs = Inputs.from_tokens([[1] * 10, [2] * 30])
    drawn = np.concatenate([inputs.sample("all", 4, seed).text for seed in range(500)])
    expected, spread = 0.75, np.sqrt(0.75 * 0.25 / len(drawn))
    assert abs(drawn.mean() - expected) < 4 * spread


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": "al"}, "tokens must be one of 'all'.*Did you mean 'all'"),
        ({"tokens": "masked"}, "no mask token"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1; got 0"),
        ({"max_tokens": 1, "random_state": -1}, "random_state must be a whole number"),
        ({"max_tokens": 1, "random_state": 0.5}, "random_state must be a whole number"),
    ],
)
def test_bad_sampling_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Inputs.from_tokens(ROWS).sample(**arguments)


def test_nothing_ordinary_to_sample_is_an_error():
    with pytest.raises(ArgumentError, match="no text has an ordinary token"):
        Inputs.from_tokens([[1, 2]], special_ids=[1, 2]).sample("all")


@given(ragged, st.floats(0.01, 0.99), st.integers(0, 5))
def test_corruption_masks_a_fixed_fraction_of_each_text(rows, fraction, seed):
    inputs = Inputs.from_tokens(rows, special_ids=[0, 1], mask_token_id=60)
    ids, positions = inputs.corrupt(fraction, seed)
    assert (ids[positions] == 60).all()
    np.testing.assert_array_equal(ids[~positions], inputs.ids[~positions])
    assert not positions[inputs.special].any()
    number = inputs.ordinary.sum(axis=1)
    quota = np.where(number > 0, np.maximum(1, np.floor(fraction * number + 0.5)), 0)
    np.testing.assert_array_equal(positions.sum(axis=1), quota)
    left = inputs.padded("left")
    moved = left.corrupt(fraction, seed)[1]
    for row in range(len(rows)):
        np.testing.assert_array_equal(
            moved[row][left.mask[row]], positions[row][inputs.mask[row]]
        )


def test_corruption_reaches_every_token_equally():
    inputs = Inputs.from_tokens([list(range(5, 25))], mask_token_id=60)
    hits = sum(inputs.corrupt(0.25, seed)[1][0].astype(int) for seed in range(400))
    assert abs(hits - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)


def test_corruption_fraction_must_be_a_fraction():
    with pytest.raises(ArgumentError, match=r"mask_fraction must be .* below 1; got 1"):
        Inputs.from_tokens(ROWS, mask_token_id=60).corrupt(1.0)


def test_subset_trims_and_keeps_texts_and_labels():
    inputs = Inputs.from_tokens(ROWS, texts=["a", "b", "c"], labels=[7, 8, 9]).padded(
        "left"
    )
    part = inputs.subset([2, 1])
    assert part.ids.tolist() == [[3, 4], [0, 9]]
    assert part.texts == ("c", "b") and part.labels.tolist() == [9, 8]


@pytest.mark.parametrize(
    "labels", [[1, "1"], ["0", True], [True, 1], [1.0, "1.0"], [None, 1]]
)
def test_labels_of_different_kinds_are_refused_and_not_written_alike(labels):
    with pytest.raises(ArgumentError, match="labels must be all texts"):
        Inputs.from_tokens([[1], [2]], labels=labels)


def test_texts_of_numpy_and_of_python_are_of_one_kind():
    labels = [np.str_("good"), "bad", np.str_("bad")]
    assert label_array(labels).tolist() == ["good", "bad", "bad"]
    assert label_array([np.float32(1), 2, np.int64(3)]).tolist() == [1, 2, 3]


def test_nan_is_no_label():
    with pytest.raises(ArgumentError, match="NaN"):
        Inputs.from_tokens([[1], [2]], labels=[1.0, float("nan")])


def test_labels_that_are_written_differently_are_different_classes():
    labels = ["1", "01", "1.0", "1"]
    inputs = Inputs.from_tokens([[1], [2], [3], [4]], labels=labels)
    assert inputs.labels.tolist() == labels
    assert class_counts(inputs.labels) == {"01": 1, "1": 2, "1.0": 1}


def test_padding_without_a_mask_is_warned_of():
    ids = np.array([[5, 6, 0, 0], [5, 6, 7, 8], [5, 9, 7, 0]])
    with pytest.warns(
        UserWarning, match=r"1 of 3 texts end in several tokens 0, .*mask=\(ids != 0\)"
    ):
        found = Inputs.from_tokens(ids)
    assert found.counts["tokens"] == 12
    assert Inputs.from_tokens(ids, mask=(ids != 0)).counts["tokens"] == 9
    # 0 is a word here.
    assert Inputs.from_tokens(np.where(ids == 6, 0, ids)).counts["tokens"] == 12
    assert Inputs.from_tokens([[5, 6], [5, 6, 7, 8]]).counts["tokens"] == 6
    with pytest.warns(UserWarning, match="several tokens 3"):
        Inputs.from_tokens(np.array([[5, 3, 3]]), pad_token_id=3)
