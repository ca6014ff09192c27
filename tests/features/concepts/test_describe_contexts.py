"""Contexts and strongest tokens, against a plain loop over all rows."""

import numpy as np
import pytest

from helpers.described_examples import token_ids, zipf_texts
from ontogeny import describe
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.concepts.describe.neighbours import neighbours_of_gram
from ontogeny.inputs import Inputs
from ontogeny.inputs.sampling import TokenSample


def plain_contexts(codes, inputs, sample, examples, before, after):
    """Find what `contexts` finds, one row after the other."""
    found = []
    for column in codes.T:
        rows = sorted(range(len(column)), key=lambda i: (-column[i], i))
        peaks, units = [], set()
        for i in rows:
            unit = inputs.groups[sample.text[i]]
            if column[i] > 0 and unit not in units and len(peaks) < examples:
                peaks.append(i)
                units.add(unit)
        found.append(
            [plain_context(column, i, inputs, sample, before, after) for i in peaks]
        )
    return found


def plain_context(column, i, inputs, sample, before, after):
    text, position = sample.text[i], sample.position[i]
    tokens = inputs.ids[text][inputs.mask[text]].tolist()
    known = {
        place: code
        for which, place, code in zip(sample.text, sample.position, column, strict=True)
        if which == text
    }
    ids, codes = [], []
    for place in range(position - before, position + after + 1):
        ids.append(tokens[place] if 0 <= place < len(tokens) else -1)
        codes.append(max(known[place], 0) / column.max() if place in known else -1)
    return text, position, ids, codes


@pytest.mark.parametrize("kind", ["signed", "sparse", "binary", "dead"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_contexts_are_those_of_a_plain_loop(kind, side):
    rng = np.random.default_rng(0)
    documents = rng.integers(0, 12, 30)
    inputs = zipf_texts(30, 16, documents=documents, special_ids=[0]).padded(side)
    sample = inputs.sample("all", 150, random_state=1)
    codes = np.random.default_rng(2).normal(size=(150, 7)) ** 3
    if kind in ("sparse", "binary"):
        codes = np.where(codes > 0.5, codes if kind == "sparse" else 1.0, 0.0)
    if kind == "dead":
        codes[:, :] = 0
        codes[4, 2] = 1.0
    turned = codes * describe.orientation(codes)
    found = describe.contexts(codes, inputs, sample, 4, 3, 2)
    assert found.place.values.tolist() == [-3, -2, -1, 0, 1, 2]
    for j, wanted in enumerate(plain_contexts(turned, inputs, sample, 4, 3, 2)):
        one = found.isel(concept=j)
        for e, (text, position, ids, shown) in enumerate(wanted):
            assert (one.context_text[e], one.context_place[e]) == (text, position)
            assert one.context_id[e].values.tolist() == ids
            np.testing.assert_allclose(one.context_code[e], shown, rtol=1e-6)
        left = one.isel(example=slice(len(wanted), None))
        assert (left.context_text == -1).all() and (left.context_place == -1).all()
        assert (left.context_id == -1).all() and (left.context_code == -1).all()
    assert found.context_code.dtype == np.float32


def test_texts_that_repeat_give_one_context():
    inputs = Inputs.from_tokens([[1, 2], [1, 2], [3, 2]])
    found = describe.contexts(
        [[0], [3], [0], [3], [0], [1]], inputs, inputs.sample(), 3
    )
    assert found.context_text.values.tolist() == [[0, 2, -1]]


def test_codes_of_whole_texts_show_the_beginning_of_the_text():
    inputs = Inputs.from_tokens([[5, 6, 7], [8, 9]])
    sample = inputs.sample("mean")
    found = describe.contexts([[1.0], [4.0]], inputs, sample, 2, 1, 2)
    assert found.context_id.values.tolist() == [[[-1, 8, 9, -1], [-1, 5, 6, 7]]]
    assert found.context_code.values.tolist() == [[[-1, 1, -1, -1], [-1, 0.25, -1, -1]]]
    assert found.context_place.values.tolist() == [[-1, -1]]
    tokens = describe.strongest_tokens([[1.0], [4.0]], inputs, sample)
    assert (tokens.token_id == -1).all() and (tokens.token_share == 0).all()
    assert np.isnan(describe.concentration([[1.0], [4.0]], inputs, sample)).all()
    assert (describe.enrichment([[1.0], [4.0]], inputs, sample).enrichment == 0).all()
    named = describe.names(
        [[1.0], [4.0]], inputs, sample, untrained=[np.nan], pieces=["a"] * 10
    )
    assert named.name.values.tolist() == [""] and np.isnan(named.concentration_limit)


@pytest.mark.parametrize("tokens", ["last", "cls"])
def test_rows_of_one_token_a_text_are_described_by_that_token(tokens):
    inputs = Inputs.from_tokens([[1, 5, 6], [1, 7], [1, 5, 6, 4]], special_ids=[1])
    sample = inputs.sample(tokens)
    found = describe.contexts([[1.0], [3.0], [2.0]], inputs, sample, 1, 1, 1)
    last = [[[1, 7, -1]]] if tokens == "last" else [[[-1, 1, 7]]]
    assert found.context_id.values.tolist() == last
    ids = describe.strongest_tokens([[1.0], [3.0], [2.0]], inputs, sample, 3).token_id
    assert ids.values.tolist() == ([[7, 4, 6]] if tokens == "last" else [[1, -1, -1]])


def test_strongest_tokens_are_those_of_a_plain_loop():
    inputs = zipf_texts(20, 12)
    sample = inputs.sample("all", 120)
    codes = np.random.default_rng(3).normal(size=(120, 5)) ** 3
    turned = np.maximum(codes * describe.orientation(codes), 0)
    found = describe.strongest_tokens(codes, inputs, sample, 4)
    ids = token_ids(inputs, sample)
    for j, column in enumerate(turned.T):
        carried = {i: (column[ids == i] ** 2).sum() for i in sorted(set(ids.tolist()))}
        ranked = sorted(carried, key=lambda i: (-carried[i], i))[:4]
        assert found.token_id[j].values.tolist() == ranked
        shares = [carried[i] / sum(carried.values()) for i in ranked]
        np.testing.assert_allclose(found.token_share[j], shares)
        assert found.firing[j] == (column > 0).mean()


def test_turning_a_code_changes_no_description():
    inputs = zipf_texts(20, 12)
    sample, codes = inputs.sample(), None
    codes = np.random.default_rng(3).normal(size=(len(sample), 5)) ** 3
    signs = np.array([1, -1, -1, 1, -1])
    for of in (describe.contexts, describe.strongest_tokens, describe.enrichment):
        one, other = of(codes, inputs, sample), of(codes * signs, inputs, sample)
        assert one.identical(other)
    np.testing.assert_array_equal(
        describe.orientation(-codes), -describe.orientation(codes)
    )


def test_neighbours_are_the_smallest_angles():
    D = np.random.default_rng(4).normal(size=(9, 4))
    D[5] = 0
    found = describe.neighbours(D, 3)
    for j in range(9):
        cosines = {
            i: D[i] @ D[j] / np.linalg.norm(D[i]) / np.linalg.norm(D[j])
            for i in range(9)
            if i not in (j, 5) and j != 5
        }
        ranked = sorted(cosines, key=lambda i: -abs(cosines[i]))[:3] + [-1] * (
            3 * (j == 5)
        )
        assert found.near[j].values.tolist() == ranked
        wanted = [cosines.get(i, 0.0) for i in ranked]
        np.testing.assert_allclose(found.near_cosine[j], wanted, atol=1e-12)
    few = describe.neighbours(D[:2], 3)
    assert few.near.values.tolist() == [[1, -1, -1], [0, -1, -1]]
    assert describe.neighbours(D * 1e-200, 3).near.equals(found.near)
    of_gram = neighbours_of_gram(D @ D.T, 3)
    assert of_gram.near.equals(found.near)
    np.testing.assert_allclose(of_gram.near_cosine, found.near_cosine, atol=1e-12)


INPUTS = Inputs.from_tokens([[1, 2], [3]])


@pytest.mark.parametrize(
    ("codes", "sample", "error", "words"),
    [
        (
            [[1.0]],
            INPUTS.sample(),
            ArgumentError,
            "one row for each of 3 rows of sample; got 1",
        ),
        ([[1.0], [np.nan], [0]], INPUTS.sample(), NonFiniteError, "codes holds 1 NaN"),
        ([1.0, 2, 3], INPUTS.sample(), ArgumentError, "codes must have 2 dimensions"),
        (
            [[1.0]],
            TokenSample(np.array([2]), np.array([0])),
            ArgumentError,
            "texts 0 to 1",
        ),
        (
            [[1.0]],
            TokenSample(np.array([1]), np.array([1])),
            ArgumentError,
            "beyond its text",
        ),
        ([[1.0]], "all", ArgumentError, "sample must be of type TokenSample"),
    ],
)
@pytest.mark.parametrize(
    "of", [describe.contexts, describe.enrichment, describe.concentration]
)
def test_codes_and_rows_that_do_not_belong_together_are_refused(
    of, codes, sample, error, words
):
    with pytest.raises(error, match=words):
        of(codes, INPUTS, sample)


def test_counts_and_inputs_are_checked():
    sample = INPUTS.sample()
    with pytest.raises(ArgumentError, match="examples must be a whole number"):
        describe.contexts(np.ones((3, 1)), INPUTS, sample, 0)
    with pytest.raises(ArgumentError, match="inputs must be of type Inputs"):
        describe.contexts(np.ones((3, 1)), INPUTS.ids, sample)
    one = INPUTS.subset([0])
    for of in (describe.enrichment, describe.concentration):
        with pytest.raises(ArgumentError, match="two units of texts at least"):
            of(np.ones((2, 1)), one, one.sample())
