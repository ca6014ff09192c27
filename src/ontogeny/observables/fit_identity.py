"""By what a concept is known again: the fit that it is of, and a sketch of its codes."""

from __future__ import annotations

import hashlib

import numpy as np

from ..inputs.sampling import TokenSample

# Numbers by which a concept is known again. By 64, three runs of 70 components shared two or three
# concepts more than by their codes, where these had to correlate by .5.
SKETCH = 256
BITS = 64  # of each mixed key


def fit_id(codes: np.ndarray) -> tuple[tuple[()], np.ndarray]:
    """Return the digest of codes: labels by a person hold for the same fit only."""
    digest = hashlib.blake2b(
        np.ascontiguousarray(codes).tobytes(), digest_size=8
    ).hexdigest()
    return (), np.array(digest, dtype=object)


def code_sketch(
    codes: np.ndarray, sample: TokenSample
) -> tuple[tuple[str, str], np.ndarray]:
    """Return (r, 256) what tells by its codes (n, r) whether a concept of another fit is the same.

    Sums of the standardised codes with random signs, which depend on text and place of a token
    alone. The cosine of two sketches is about the correlation of the codes, also where some of the
    tokens are others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sample = TokenSample(np.arange(900) // 30, np.arange(900) % 30)
    >>> codes = rng.exponential(size=(900, 3))
    >>> first = code_sketch(codes, sample)[1]
    >>> again = code_sketch(
    ...     codes[:800] + 0.1, TokenSample(sample.text[:800], sample.position[:800])
    ... )
    >>> bool((first[0] @ again[1][0]) > 0.9), bool(abs(first[0] @ again[1][1]) < 0.5)
    (True, True)
    """
    token = (sample.text.astype(np.uint64) << np.uint64(32)) + (
        sample.position + 1
    ).astype(np.uint64)
    places = np.arange(BITS, dtype=np.uint64)
    values = np.asarray(codes, dtype=np.float64)
    centred = values - values.mean(axis=0)
    sums = np.empty((centred.shape[1], SKETCH))
    # One part of the signs is in memory at a time: all were more than the codes.
    for start in range(0, SKETCH, BITS):
        mixed = _mixed(token + _APART * np.full(1, start // BITS, dtype=np.uint64))
        bits = mixed[:, None] >> places & np.uint64(1)
        sums[:, start : start + BITS] = centred.T @ (2.0 * bits - 1.0)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    return ("concept", "sketch"), (sums / np.where(length > 0, length, 1.0)).astype(
        np.float32
    )


_APART = np.uint64(0x632BE59BD9B4E019)  # between the keys of a token's parts


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Return 64 well mixed bits of each key (splitmix64, Steele, Lea and Flood 2014)."""
    z = keys * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
