"""What predicts a code, against a plain loop, closed forms and chance."""

import numpy as np
import pytest

from helpers.described_examples import token_ids, zipf_texts
from ontogeny import describe


def plain_share(column, labels, units):
    """Return the share of variance that means of other units explain, one row after the other."""
    left = total = 0.0
    for i in range(len(column)):
        other = units != units[i]
        same = other & (labels == labels[i])
        mean = column[other].mean()
        left += (column[i] - (column[same].mean() if same.any() else mean)) ** 2
        total += (column[i] - mean) ** 2
    return max(1 - left / total, 0)


def test_shares_are_those_of_a_plain_loop():
    documents = np.random.default_rng(0).integers(0, 9, 20)
    inputs = zipf_texts(20, 14, documents=documents)
    sample = inputs.sample("all", 160)
    ids, codes = (
        token_ids(inputs, sample),
        np.random.default_rng(1).normal(size=(160, 6)),
    )
    codes[:, 1] += ids
    codes[:, 2] += sample.position
    codes[:, 3] -= np.minimum(sample.position, 3)
    found = describe.enrichment(codes, inputs, sample)
    tokens = [
        row[there].tolist() for row, there in zip(inputs.ids, inputs.mask, strict=True)
    ]
    near = {
        offset: np.array(
            [
                tokens[t][p + offset] if 0 <= p + offset < len(tokens[t]) else -1
                for t, p in zip(sample.text, sample.position, strict=True)
            ]
        )
        for offset in (-1, 1)
    }
    bins = [p if p < 8 else 8 for p in sample.position]
    labels = {
        "token": ids,
        "token before": near[-1],
        "token after": near[1],
        "place": bins,
    }
    turned, units = codes * describe.orientation(codes), inputs.groups[sample.text]
    for position, of in labels.items():
        wanted = [plain_share(column, np.array(of), units) for column in turned.T]
        got = found.enrichment.sel(position=position).values
        np.testing.assert_allclose(got, wanted, atol=1e-10)


@pytest.mark.parametrize(("offset", "position"), [(0, "token"), (-1, "token before")])
def test_a_lookup_is_explained_wholly(offset, position):
    inputs = zipf_texts(80, 20, words=15)
    sample = inputs.sample()
    value = np.random.default_rng(0).exponential(size=16)
    ids = token_ids(inputs, sample)
    before = np.where(sample.position > 0, np.roll(ids, 1), -1)
    code = value[ids if offset == 0 else before]
    found = describe.enrichment(code[:, None], inputs, sample).enrichment.isel(
        concept=0
    )
    assert found.sel(position=position) == pytest.approx(1)
    assert (found.drop_sel(position=position) < 0.15).all()


def test_random_codes_are_explained_by_nothing():
    inputs = zipf_texts(100, 24)
    sample = inputs.sample()
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(len(sample), 100))
    codes[:, 50:] = np.where(
        rng.random(codes[:, 50:].shape) < 0.04, codes[:, 50:] ** 2, 0
    )
    found = describe.enrichment(codes, inputs, sample).enrichment
    assert (found >= 0).all() and found.mean() < 0.002 and found.max() < 0.02


def test_a_code_that_a_text_shares_is_not_explained_by_its_tokens():
    """A code that is 1 in some texts: leaving out rows would find it in their own tokens."""
    inputs = zipf_texts(60, 20, words=400)
    sample = inputs.sample()
    topic = np.random.default_rng(1).random(60) < 0.1
    found = describe.enrichment(topic[sample.text][:, None], inputs, sample).enrichment
    assert (found < 0.05).all()


def test_constant_codes_have_nothing_to_explain():
    inputs = zipf_texts(10, 8)
    sample = inputs.sample()
    found = describe.enrichment(
        np.full((len(sample), 2), 3.0), inputs, sample
    ).enrichment
    assert (found == 0).all()
