"""Block coordinate descent with extrapolation: one solver for NMF, semi-NMF and sparse coding.

``min 1/2 |A - U W^T|^2 + penalties`` is convex in each row of ``U^T`` and ``W^T`` alone, and that
step has a closed form. A sweep takes all rows in turn (HALS: Cichocki and Phan 2009), in blocks so
that most of the work is matrix products, and reuses the products with A. Between the two factors
the iterates are extrapolated, with a restart whenever the objective would rise
(Ang and Gillis, Neural Computation 31, 2019).

Factors are held transposed, ``U`` (r, n) and ``W`` (r, m): rows are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from .linalg import least_squares, product
from .rows import Factor, next_worst, shift_step, sweep, vanishing
from .tensors import Stalled, if_read, iterate, precise, select

WINDOW = 10  # iterations over which progress is measured
REVIVE_UNTIL = 10  # iterations in which concepts without a use start again at a sample


class Fit(NamedTuple):
    """Factors ``U`` (r, n), ``W`` (r, m), iterations and convergence."""

    U: Tensor
    W: Tensor
    n_iter: int
    converged: bool


def alternate(
    A: Tensor,
    U: Tensor,
    W: Tensor,
    codes: Factor,
    dictionary: Factor,
    *,
    max_iter: int,
    tol: float,
) -> Fit:
    """Fit ``A ~ U^T W`` to `A` (n, m) from a start `U` (r, n), `W` (r, m).

    It is done when the objective fell by less than `tol` of itself within ten iterations.
    """
    norm2 = precise(A.square().sum(1)).sum()
    stalled = Stalled(tol, WINDOW, noise=4 * torch.finfo(A.dtype).eps * norm2)
    steps = descend(A, U, W, codes, dictionary)
    (U, W, _), n_iter, converged = iterate(
        steps, lambda step: stalled(step[2]), max_iter
    )
    return Fit(U, W, n_iter, converged)


def descend(
    A: Tensor, U: Tensor, W: Tensor, codes: Factor, dictionary: Factor, sweeps: int = 2
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield U, W and the objective of one iteration after the other.

    Where the objective would rise, the factors stay, and the objective is infinite: the next step
    is plain and accepted as it comes.
    """
    norm2 = precise(A.square().sum(1)).sum()
    infinite = torch.full_like(norm2, math.inf)
    U_ahead = U
    W = W.clone()
    W_ahead = W.clone()
    # How far a step is extrapolated, and how far at most (0-dimensional, in the precision of A).
    beta = A.new_full((), 0.5)
    ceiling = A.new_full((), 1.0)
    best = infinite
    for i in count(1):
        G = product(W_ahead, W_ahead.mT)
        B = product(W_ahead, A.mT)
        new_U = _update(U_ahead, W_ahead, G, B, codes, sweeps)
        if i <= REVIVE_UNTIL:
            _revive(A, new_U, W, W_ahead)
        U_ahead = _extrapolated(new_U, U, beta, codes)
        G = product(U_ahead, U_ahead.mT)
        B = product(U_ahead, A)
        new_W = _update(W_ahead, U_ahead, G, B, dictionary, sweeps)
        fitted = precise((B * new_W).sum(1)).sum()
        square = precise(G * product(new_W, new_W.mT)).sum()
        cost = codes.cost(U_ahead) + dictionary.cost(new_W)
        objective = (norm2 / 2 - fitted + square / 2).clamp(min=0) + cost
        ahead = _extrapolated(new_W, W, beta, dictionary)
        higher = (1.01 * ceiling).clamp(max=1)
        U, W, U_ahead, W_ahead, best, beta, ceiling = select(
            objective > best,
            (U, W, U, W, infinite, beta / 1.5, beta),
            (
                new_U,
                new_W,
                U_ahead,
                ahead,
                objective,
                torch.minimum(higher, 1.05 * beta),
                higher,
            ),
        )
        yield U, W, best


def _update(
    X: Tensor, F: Tensor, G: Tensor, B: Tensor, factor: Factor, sweeps: int
) -> Tensor:
    """Return `X` improved: the exact solution for a free factor, `sweeps` sweeps for others.

    `F` is the other factor, ``G = F F^T`` and ``B = F A^T``.
    """
    if factor.kind == "free":
        return least_squares(F[None], B[None], G[None])[0]
    X = X.clone()
    if factor.shift:
        shift_step(X, B, *vanishing(G, 4 * torch.finfo(G.dtype).eps))
    return sweep(X, G, B, factor, sweeps)


def _extrapolated(new: Tensor, old: Tensor, beta: Tensor, factor: Factor) -> Tensor:
    point = new + beta * (new - old)
    return point.clamp_(min=0) if factor.kind == "nonnegative" else point


def _revive(A: Tensor, U: Tensor, W: Tensor, W_ahead: Tensor) -> None:
    """Start concepts that no sample uses again at the samples that are reconstructed worst.

    In place, in U (r, n) and in both dictionaries (r, m).
    """
    unused = (U == 0).all(1)
    if if_read(unused.any()) is False:
        return
    error = (A - U.mT @ W_ahead).square().sum(1)
    worst, revived = next_worst(unused, error)
    revived = (revived & (error[worst] > 0))[:, None]
    worst = worst[:, None]
    rows = A[worst[:, 0]]
    size = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-30)
    for dictionary in (W, W_ahead):
        dictionary.copy_(torch.where(revived, rows / size, dictionary))
    U.scatter_(1, worst, torch.where(revived, 0.1 * size, U.gather(1, worst)))
