"""Random numbers that depend on what they are for, and not on what was drawn before."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(random_state: int, *purpose: str | int) -> np.random.Generator:
    """Return a generator for one purpose, such as a tensor's name and a side of it.

    The same seed and purpose give the same numbers in every process, in any order of use.

    Examples
    --------
    >>> one, other = generator(0, "weight", 3), generator(0, "weight", 3)
    >>> one.random() == other.random()
    True
    """
    text = repr((random_state, *purpose)).encode()
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(text, digest_size=32).digest()))
