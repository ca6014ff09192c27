"""Small support matrices."""

import numpy as np


def support(words=12, contexts=40, seed=0):
    rng = np.random.default_rng(seed)
    S = (rng.random((words, contexts)) < 0.35).astype(float)
    S[rng.integers(0, words, contexts), np.arange(contexts)] = 1
    return S


def centred(S):
    return S - S.mean(axis=0)
