"""Codes over random texts, with planted meaning, for what describes concepts."""

import numpy as np

from ontogeny.inputs import Inputs

WORDS = 60


def zipf_texts(texts=60, length=24, words=WORDS, seed=0, **others):
    """Return random texts whose words are as unequally frequent as those of language."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, words + 1)
    ids = rng.choice(words, size=(texts, length), p=weights / weights.sum())
    kept = [row[: rng.integers(length // 2, length + 1)] for row in ids]
    return Inputs.from_tokens(kept, vocab_size=words, **others)


def token_ids(inputs, sample):
    """Return the token of each row."""
    first = inputs.mask.argmax(axis=1)[sample.text]
    return inputs.ids[sample.text, first + sample.position]


def lookup_codes(ids, planted, seed=0, noise=0.0):
    """Return (n, r) codes that fire on the planted words, of varying size, with some noise."""
    rng = np.random.default_rng(seed)
    fires = np.stack([np.isin(ids, words) for words in planted], axis=1)
    size = 0.5 + rng.exponential(0.5, fires.shape)
    return fires * size + noise * np.maximum(rng.normal(size=fires.shape), 0)
