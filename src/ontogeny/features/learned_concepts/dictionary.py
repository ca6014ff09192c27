"""More components than dimensions: a sparse dictionary that begins with independent components."""

from __future__ import annotations

import numpy as np

from .checkpoint import decoders
from .parts import scaled

EPOCHS = 8
# Features for each latent that a token may use. 16 of 576: of SmolLM2, see the benchmarks.
FEATURES = 36
FEWEST = 2  # latents that a token may use at least
# Share of the tokens, from which on a latent is none: of Gaussian rows both halves find hardly others.
DENSE = 0.25


def sparse_codes(
    X: np.ndarray, rows: np.ndarray, begun: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """Return codes (n, count) of all rows X (n, m), by a TopK autoencoder fitted to some of them.

    Parameters
    ----------
    rows
        (n,) True where it is fitted.
    begun
        (n, r) codes of the components that it begins with; other latents begin where these leave
        most to explain.
    """
    from ...concepts.sae import SAE

    first = decoders(X[rows], begun[rows]).T
    start = np.zeros((X.shape[1], count), dtype=np.float32)
    start[:, : first.shape[1]] = first / np.linalg.norm(first, axis=0)
    active = max(FEWEST, round(X.shape[1] / FEATURES))
    fit = SAE(count, variant="topk", k=active, epochs=EPOCHS, random_state=seed).fit(
        X[rows], init_dictionary=start
    )
    codes = np.asarray(fit.transform(X))
    return scaled(np.where((codes > 0).mean(axis=0) > DENSE, 0, codes))
