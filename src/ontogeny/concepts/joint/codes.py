"""Sparse codes of tokens that all checkpoints share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.stats
import torch
from torch import Tensor

from ...machine import one_thread
from ..gates import Gate, gate_of
from ..linalg import product
from ..sae import Autoencoder, train
from ..tensors import plain_tensors
from .presence import FOUND_AGAIN, found_again, inverse_of
from .sources import of_half, unmixing
from .whitening import Gathered

# Crosscoders: codes from all checkpoints by one linear layer, a decoder for each checkpoint.

EPOCHS = 40
BATCH = 512
LEARNING_RATE = 3e-3
ALPHA = 1e-2  # of the L1 variant: against the mean squared error, per unit of code times norm


class Crosscoder(Autoencoder):
    """Parameters of a crosscoder, whose gate and penalty see codes times norms of decoders."""

    def __init__(self, W: Tensor, gate: Gate, widths: list[int]) -> None:
        super().__init__(W, W, torch.zeros_like(W[:1]), gate)
        self.widths = widths

    def size(self) -> Tensor:
        """Return the sum over checkpoints of the norms of the decoders, (1, r)."""
        norms = [torch.linalg.vector_norm(W, dim=0) for W in self.W.split(self.widths)]
        return torch.stack(norms).sum(0, keepdim=True)

    def sized(self, X: Tensor, size: Tensor) -> Tensor:
        """Return pre-activations times norms of decoders, as the gate sees them."""
        return (product(X - self.b, self.E) + self.c) * size

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return codes, reconstruction and penalty."""
        size = self.size()
        sized, penalty = self.gate.train(self.sized(X, size), self.extra)
        codes = sized / size
        return codes, product(codes, self.W.mT) + self.b, penalty


def crosscoder_codes(
    Y: Tensor, widths: list[int], r: int, method: str, k: int, seed: int
) -> Tensor:
    """Return the codes (n, r) of a crosscoder that is trained on the stack `Y` (n, sum of widths).

    `method` is ``"batchtopk"`` (the k n largest of a batch) or ``"l1"`` (ReLU and an L1 penalty).
    """
    generator = torch.Generator().manual_seed(seed)
    unit = Y.square().mean().sqrt()
    X = Y / torch.where(unit > 0, unit, 1.0)
    gate = gate_of(
        "vanilla" if method == "l1" else method, min(k, r), ALPHA / len(widths)
    )
    rows = torch.randperm(len(X), generator=generator)[torch.arange(r) % len(X)]
    W = X[rows].mT + 0.1 * torch.randn(X.shape[1], r, generator=generator)
    model = Crosscoder(
        W / torch.linalg.vector_norm(W, dim=0, keepdim=True), gate, widths
    )
    model.match_size(X[:BATCH])
    train(model, X, EPOCHS, BATCH, LEARNING_RATE, generator)
    with torch.no_grad():
        return gate.infer(model.sized(X, model.size()), model.threshold())


METHODS = ("ica", "svd", "batchtopk", "l1")
TRAINED = ("batchtopk", "l1")
REFINED = 2  # times that codes are read anew from what all checkpoints write
RIDGE = 1e-2  # added to the covariance of the residual, against its mean variance
# Skewness of sparse codes, at least; ICA of noise alone finds up to half of it.
SKEWED = 1.0
# The same against the mean variance of the activations, where nothing is left.
ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Fits:
    """Sparse codes of tokens that all checkpoints share, by several fits.

    Attributes
    ----------
    codes
        (n, r) of the fit to all tokens; latents that there are not are 0.
    others
        (n, r) of each fit from another seed.
    halves
        (n, r) of two fits, each to the tokens of one half of the texts, in the order of `codes`:
        every token has the code of the fit to its own half. None where halves are not fitted.
    half
        (r,) correlation of each source with its best match by the fit to a half, over all tokens;
        the smaller one of both halves. NaN where halves are not fitted.
    """

    codes: np.ndarray
    others: list[np.ndarray]
    halves: np.ndarray | None
    half: np.ndarray

    def replicates(self, again: np.ndarray) -> np.ndarray:
        """Return (r,) which latents both halves find; where there are no halves, which `again`."""
        return np.asarray(
            np.where(np.isnan(self.half), again, self.half) >= FOUND_AGAIN
        )


def fitted_codes(
    gathered: Gathered,
    r: int,
    method: str,
    k: float,
    seeds: Sequence[int],
    half: np.ndarray | None = None,
) -> Fits:
    """Return the codes of a fit, of one more for each seed but the first, and of two to halves.

    The fit by ICA takes no seed; further ones begin at random tokens. `half` (n,) is True for the
    tokens of one half of the texts; only ICA is fitted to halves.
    """
    with plain_tensors(), one_thread(blas=True):
        if method != "ica":
            codes = [
                sparse(S, k)
                for S in _other_method(gathered, r, method, round(k), seeds)
            ]
            return Fits(codes[0], codes[1:], None, np.full(r, np.nan))
        Z = gathered.whitened(r, seeds[0])
        starts = [None, *seeds[1:]]
        sources = [np.asarray(Z @ unmixing(Z, r, seed).T) for seed in starts]
        if half is None or not Z.shape[1]:
            codes = _all_refined(sources, r, k, gathered)
            return Fits(codes[0], codes[1:], None, np.full(r, np.nan))
        parts = [of_half(Z, rows, r) for rows in (half, ~half)]
        parts = [np.hstack([part, -part]) for part in parts]  # sources have no sign
        matches = [found_again(sources[0], part) for part in parts]
        matched = [
            part[:, match] for part, (_, match) in zip(parts, matches, strict=True)
        ]
        both = np.where(half[:, None], *matched)
        *codes, halves = _all_refined([*sources, both], r, k, gathered)
        correlation = np.min([c for c, _ in matches], axis=0)
        return Fits(
            codes[0], codes[1:], halves, np.pad(correlation, (0, r - len(correlation)))
        )


def _other_method(
    gathered: Gathered, r: int, method: str, k: int, seeds: Sequence[int]
) -> list[np.ndarray]:
    if method in TRAINED:
        Y = torch.from_numpy(gathered.stack())
        return [
            crosscoder_codes(Y, gathered.widths, r, method, k, seed).numpy()
            for seed in seeds
        ]
    Z = gathered.whitened(r, seeds[0])
    return [np.pad(Z, ((0, 0), (0, r - Z.shape[1]))) for _ in seeds]


def _all_refined(
    sources: list[np.ndarray], r: int, k: float, gathered: Gathered
) -> list[np.ndarray]:
    """Return sparse codes (n, r) of sources (n, c), as dense per latent with c < r as with r."""
    if not sources[0].shape[1]:
        return [np.zeros((len(S), r), dtype=np.float32) for S in sources]
    widths = [k * S.shape[1] / r for S in sources]
    for _ in range(REFINED):
        sources = refined(sources, widths, gathered)
    codes = [sparse(S, dense) for S, dense in zip(sources, widths, strict=True)]
    return [np.pad(U, ((0, 0), (0, r - U.shape[1]))) for U in codes]


def refined(
    sources: Sequence[np.ndarray], densities: Sequence[float], gathered: Gathered
) -> list[np.ndarray]:
    """Return the codes (n, r) of several fits, with what they leave of each token read anew.

    The leading directions of the stack do not hold all of a weak concept. Every checkpoint in full
    does. Where its decoder is d_t and N_t the covariance of what sparse codes leave, x_t,
    generalised least squares add ``sum_t d_t N_t^-1 x_t / sum_t d_t N_t^-1 d_t`` to the code of a
    token: tokens that write along a concept's decoder, but have no code of it, get one. Sources
    that are hardly skewed are no sparse codes, and stay as they are.
    """
    codes = [sparse(S, k) for S, k in zip(sources, densities, strict=True)]
    centred = [U - U.mean(axis=0) for U in codes]
    grams = [(u.T @ u).astype(np.float64) for u in centred]
    solvers = [
        u @ inverse_of(G).astype(np.float32)
        for u, G in zip(centred, grams, strict=True)
    ]
    readings = [np.zeros_like(U) for U in codes]
    information = [np.zeros_like(G) for G in grams]
    for X in gathered.steps():
        moment = (X.T @ X).astype(np.float64)
        for i, solver in enumerate(solvers):
            D = (solver.T @ X).astype(np.float64)
            readout = _readout(D, grams[i], moment)
            readings[i] += X @ readout.astype(np.float32)
            information[i] += D @ readout
    refit = []
    for S, U, u, read, gram in zip(
        sources, codes, centred, readings, information, strict=True
    ):
        # What all checkpoints read of the residual alone: with what the codes themselves write
        # taken off, a code only moves by what the sparse codes have lost.
        full = U + _divided(read - u @ gram.astype(np.float32), np.diag(gram))
        refit.append(np.where(skewness(full) > SKEWED, full, S))
    return refit


def _readout(D: np.ndarray, gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Return ``N^-1 D^T`` (m, r) of decoders D, with N what least squares leave of `moment`."""
    residual = moment - D.T @ gram @ D
    size = max(RIDGE * np.trace(residual), ROUNDING * np.trace(moment), 1e-30) / len(
        residual
    )
    residual.flat[:: len(residual) + 1] += size
    scale = float(np.trace(residual)) / len(residual)
    try:
        return (
            np.asarray(scipy.linalg.solve(residual / scale, D.T, assume_a="pos"))
            / scale
        )
    except np.linalg.LinAlgError:
        # Of codes that are nearly collinear, rounding may leave a direction a negative variance.
        variances, axes = np.linalg.eigh(residual)
        return np.asarray(axes / np.maximum(variances, size) @ (axes.T @ D.T))


def _divided(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return columns of `values` divided by numbers; those divided by 0 are left out."""
    used = by > 1e-12 * max(float(by.max(initial=0)), 1e-30)
    return np.where(used, values / np.where(used, by, 1.0), 0).astype(np.float32)


def sparse(codes: np.ndarray, k: float) -> np.ndarray:
    """Return the n k largest positive values of codes (n, r), the rest 0; k need not be whole.

    Columns are first divided by their standard deviation, and turned so that they are skewed to
    the right: a sparse feature is mostly absent and sometimes large.

    Examples
    --------
    >>> sparse(np.array([[0.0, 1], [0, 2], [0, 3], [-9, 4]]), 1).round(2)
    array([[0.  , 0.  ],
           [0.  , 1.79],
           [0.  , 2.68],
           [2.31, 3.58]], dtype=float32)
    """
    spread = codes.std(axis=0)
    used = spread > 1e-6 * max(float(np.abs(codes).max()), 1e-30)
    signs = np.where(skewness(codes) < 0, -1.0, 1.0)
    values = np.where(used, codes / np.where(used, spread, 1.0) * signs, 0.0).astype(
        np.float32
    )
    # One limit for the whole table, not one a token: a text full of concepts may have more than k.
    count = min(round(len(values) * k), values.size)
    limit = max(
        float(np.partition(values, values.size - count, axis=None)[-count]), 0.0
    )
    return np.where((values >= limit) & (values > 0), values, np.float32(0.0))


def skewness(codes: np.ndarray) -> np.ndarray:
    """Return the third standardised moment (r,) of columns of codes; 0 of constant ones."""
    used = codes.std(axis=0) > 1e-6 * max(float(np.abs(codes).max()), 1e-30)
    skew = np.zeros(codes.shape[1])
    skew[used] = scipy.stats.skew(codes[:, used], axis=0)
    return skew
