"""Convex NMF: concepts are convex combinations of samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import ArgumentError, check_choice, check_whole
from .base import Extractor
from .kmeans import cluster, nearest, one_hot
from .linalg import identity
from .nonnegative import nonnegative_codes
from .rows import Factor, sweep
from .solution import Solution
from .tensors import Stalled, check_stopping, iterate, precise

NONNEGATIVE = Factor("nonnegative")
FLOOR = 1e-10  # keeps multiplicative factors off 0, where the square root is not smooth
CHOSEN = 64  # samples of which a concept's coefficients change in one pass
STEPS = 10  # accelerated steps over these
PASSES = 3  # from a guess towards coefficients of a dictionary near an edge of the cone
SPLITTING = 10  # steps towards coefficients that give a dictionary exactly
TRIAL = 3  # of these, after which they must have come nearer than the clusters' means

Steps = Iterator[tuple[Tensor, Tensor, Tensor]]  # U (r, n), H (r, l) and the objective


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexNMF(Extractor):
    """Convex NMF ``A ~ U H Z``: U, H non-negative, ``W^T = H Z``, Z samples (all or landmarks).

    By default a k-means start, sweeps over the codes and, for one concept after the other, steps
    over the 64 samples whose coefficients want to move most. A gradient step over all samples at
    once would have to be as short as their common mean asks for. The n x n Gram matrix is never
    formed: an iteration costs about three products of A with r columns and ``4 r n`` numbers (8 MB
    at n = 5,000 and r = 100, 80 MB at n = 50,000, in float32). ``variant="multiplicative"`` is the
    rule of Ding, Li and Jordan and holds one n x n matrix and one more while it starts (0.2 GB at
    n = 5,000, 20 GB at n = 50,000; with landmarks n x l and l x l). In both the objective never
    rises.

    The iteration count is fixed by default, which makes the map from A to (U, W) a finite
    composition (report, sec. 8.6); give `tol` to stop sooner.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    variant
        ``"accelerated"``, ``"multiplicative"``, or ``"report"``: the report's Algorithm 5 as
        printed, whose update of H has ``H U U^T`` where ``U^T U H`` is right. It raises the
        objective on signed data and is there for comparison only.
    strict_convex
        Rows of H sum to 1. Else dictionary columns have unit norm. U takes the scale, so that
        the product is the same; ``"report"`` normalises without that, as printed.
    landmarks
        Use this many samples, drawn once, instead of all as Z.
    max_iter
        Iterations.
    tol
        None runs all iterations; a number stops when one iteration lowers the objective by less
        than `tol` of itself.
    random_state
        Seed of the start and of the landmarks.

    Attributes
    ----------
    coefficients_ : array of shape (r, n) or (r, landmarks)
        H.
    landmarks_ : array of shape (landmarks,)
        Indices of the samples Z.
    objective_ : float
        ``|A - U H Z|^2 / 2`` as the last iteration left it (the codes returned are exact).

    References
    ----------
    Ding, Li and Jordan, PAMI 32 (2010); report, Def. 19 and Algorithm 5.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(40, 5))
    >>> convex = ConvexNMF(n_concepts=3, random_state=0).fit(A)
    >>> bool(np.allclose(convex.coefficients_ @ A, convex.components_))
    True
    """

    variant: str = "accelerated"
    strict_convex: bool = True
    landmarks: int | None = None
    max_iter: int = 50
    tol: float | None = None

    @property
    def _scale_in(self) -> str:  # type: ignore[override]
        return "dictionary" if self.strict_convex else "codes"

    @property
    def _on_overflow(self) -> str:  # type: ignore[override]
        printed = "; the printed rule does that, variant='multiplicative' does not"
        return printed if self.variant == "report" else Extractor._on_overflow

    def _check_options(self) -> None:
        check_choice(
            "variant", self.variant, ("accelerated", "multiplicative", "report")
        )
        if not isinstance(self.strict_convex, bool):
            raise ArgumentError(
                f"strict_convex must be True or False; got {self.strict_convex!r}."
            )
        check_stopping(self.max_iter, 0 if self.tol is None else self.tol)
        if self.landmarks is not None:
            check_whole("landmarks", self.landmarks)

    def _held(self, n: int, m: int) -> int:
        landmarks = n if self.landmarks is None else min(n, self.landmarks)
        if self.variant == "accelerated":
            return 2 * landmarks * m  # of the clusters
        return n * landmarks

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        generator = self._generator()
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator))
        landmarks = torch.arange(len(A))
        Z = A
        if self.landmarks is not None and self.landmarks < len(A):
            landmarks = (
                torch.randperm(len(A), generator=generator)[: self.landmarks]
                .sort()
                .values
            )
            Z = A[landmarks.to(A.device)]
        H = _start(Z, self.n_concepts, seed, start)
        rule = _accelerated if self.variant == "accelerated" else _multiplicative
        stalled = Stalled(-math.inf if self.tol is None else self.tol)
        (U, H, objective), n_iter, converged = iterate(
            rule(A, Z, H, self), lambda step: stalled(step[2]), self.max_iter
        )
        U, H = self._normalised(U, H, Z)
        solution = Solution(U, (H @ Z).mT, None, n_iter, converged or self.tol is None)
        if start is None:
            # Its last codes are far from exact ones.
            if self.variant == "multiplicative":
                solution.codes = nonnegative_codes(A, solution.dictionary)
            H = H[solution.canonical(signed=False)]
        if self.variant != "report":
            solution.codes = nonnegative_codes(A, solution.dictionary)
        # W carries the scale of A under strict convexity, H then has none; else the other way.
        solution.state["coefficients"] = H
        solution.state["objective"] = objective
        solution.state["landmarks"] = landmarks.to(A.device)
        return solution

    def _normalised(self, U: Tensor, H: Tensor, Z: Tensor) -> tuple[Tensor, Tensor]:
        """Return codes (n, r) and coefficients (r, l) of the same product from U (r, n) and H."""
        size = (
            H.sum(1) if self.strict_convex else torch.linalg.vector_norm(H @ Z, dim=1)
        )
        size = torch.where(size > 0, size, 1.0)[:, None]
        if self.variant == "report" and self.strict_convex:
            size = torch.ones_like(size)
        return (U * size).mT, H / size

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return nonnegative_codes(A, W)

    @property
    def coefficients_(self) -> Any:
        """H: each dictionary column is this combination of the samples."""
        return (
            self._coefficients
            if self.strict_convex
            else self._coefficients / self._scale
        )

    @property
    def objective_(self) -> float:
        """Half the squared error that the last iteration left."""
        return float(self._objective) * float(self._scale) ** 2

    @property
    def landmarks_(self) -> Any:
        """Indices of the samples that the concepts are made of."""
        return self._landmarks


def _start(Z: Tensor, r: int, seed: int, start: Tensor | None) -> Tensor:
    """Return H (r, l): means of k-means clusters, or an approximation of a given dictionary."""
    count = len(Z)
    if start is None:
        centers, *_ = cluster(Z, min(r, count), seed, max_iter=10)
    else:
        centers = start.mT
    H = one_hot(nearest(Z, centers), r).to(Z.dtype).mT.contiguous()
    size = H.sum(1, keepdim=True)
    empty = torch.nonzero(size[:, 0] == 0)[:, 0]
    H[empty, (empty * 7919) % count] = 1.0
    H = H / size.clamp(min=1)
    if start is None:
        return H
    return _without_gaps(_reproduce(H, centers, Z), Z, (centers == 0).all(1))


def _without_gaps(H: Tensor, Z: Tensor, gaps: Tensor) -> Tensor:
    """Return `H` with its rows `gaps` (r,) at means of clusters far from all other rows."""
    if not bool(gaps.any()):
        return H
    clusters = _start(Z, len(H), 0, None)
    centers = clusters @ Z
    others = H[~gaps] @ Z
    if len(others):
        centers = centers - others[nearest(centers, others)]
    far = torch.topk(centers.square().sum(1), int(gaps.sum())).indices
    H = H.clone()
    H[gaps] = clusters[far]
    return H


def _reproduce(H: Tensor, W: Tensor, Z: Tensor) -> Tensor:
    """Return ``H >= 0`` (r, l) near to ``H Z = W`` (r, m), from a first guess.

    Douglas-Rachford splitting between ``H Z = W`` and ``H >= 0`` arrives in a few steps where many
    such H exist. Where there is hardly one (W near an edge of the cone of samples) descent from the
    guess comes nearer.
    """
    second = precise(Z.mT @ Z)
    ridge = 1e-6 * second.diagonal().mean().clamp(min=1.0)
    inverse = torch.linalg.inv(second + ridge * identity(second)).to(Z.dtype)
    point = H
    near = torch.linalg.vector_norm(H @ Z - W)
    for step in range(1, SPLITTING + 1):
        positive = point.clamp(min=0)
        mirrored = 2 * positive - point
        point = point + mirrored - positive - ((mirrored @ Z - W) @ inverse) @ Z.mT
        if (
            step == TRIAL
            and torch.linalg.vector_norm(point.clamp(min=0) @ Z - W) > near
        ):
            nearer = H @ Z
            for _ in range(PASSES):
                H, nearer = _pass_over_concepts(H, nearer, identity(H.mT), W, Z)
            return H
    return point.clamp_(min=0)


def _accelerated(A: Tensor, Z: Tensor, H: Tensor, options: ConvexNMF) -> Steps:
    """Yield (U, H, objective) of sweeps over U and passes over the rows of H."""
    W = H @ Z
    norm2 = precise(A.square().sum(1)).sum()
    U = A.new_zeros(len(H), len(A))
    sweeps = 10
    while True:
        sweep(U, W @ W.mT, W @ A.mT, NONNEGATIVE, sweeps)
        if sweeps > 2:
            H = _without_gaps(H, Z, (U == 0).all(1))
            W = H @ Z
        sweeps = 2
        G = U @ U.mT
        C = U @ A
        H, W = _pass_over_concepts(H, W, G, C, Z)
        yield U, H, norm2 / 2 + _quadratic(G, C, W)


def _pass_over_concepts(
    H: Tensor, W: Tensor, G: Tensor, C: Tensor, Z: Tensor
) -> tuple[Tensor, Tensor]:
    """Lower ``1/2 <H Z, G H Z> - <C, H Z>`` over ``H >= 0`` (r, l) by one row after the other.

    Of each row those entries change that a step of their own would take farthest. Samples share a
    mean, so that a step of all at once is about as many times shorter as there are samples.
    """
    tiny = torch.finfo(H.dtype).tiny
    curvature = G.diagonal()
    curvature = curvature.clamp(min=torch.finfo(H.dtype).eps * curvature.amax()).clamp(
        min=tiny
    )
    length2 = Z.square().sum(1).clamp(min=tiny)
    alone = H + ((C - G @ W) / curvature[:, None]) @ Z.mT / length2
    farthest = (alone.clamp_(min=0) - H).abs_() * length2.sqrt()
    farthest_rows = torch.topk(
        farthest, min(CHOSEN, len(Z)), dim=1, sorted=False
    ).indices
    rows = H.gather(1, farthest_rows)
    W = W.clone()
    for row, indices, w, g, c, scale in zip(
        rows, farthest_rows, W, G, C, curvature, strict=True
    ):
        samples = Z[indices]
        change = _steps_of_row(row, samples @ samples.mT, samples @ (c - g @ W) / scale)
        row += change
        w += change @ samples
    return H.scatter(1, farthest_rows, rows), W


def _steps_of_row(h: Tensor, K: Tensor, slope: Tensor) -> Tensor:
    """Return a change of ``h >= 0`` that lowers ``1/2 <x, K x> - <slope, x>`` in the change x.

    By accelerated projected gradient. It is 0 where rounding lets the objective rise.
    """
    largest = K.abs().sum(1).amax().clamp(min=torch.finfo(h.dtype).tiny)  # or more
    # A step is one product, because there are many: x goes to this matrix times x, plus `along`.
    step = identity(K) - K / largest
    along = slope / largest
    lowest = -h
    x = ahead = torch.zeros_like(h)
    theta = 1.0
    for _ in range(STEPS):
        new = torch.maximum(torch.addmv(along, step, ahead), lowest)
        next_theta = (1 + (1 + 4 * theta**2) ** 0.5) / 2
        ahead = torch.add(new, new - x, alpha=(theta - 1) / next_theta)
        x = new
        theta = next_theta
    return x * (slope @ x > (x @ K @ x) / 2)


def _quadratic(G: Tensor, C: Tensor, W: Tensor) -> Tensor:
    return precise(G * (W @ W.mT)).sum() / 2 - precise(C * W).sum()


def _multiplicative(A: Tensor, Z: Tensor, H: Tensor, options: ConvexNMF) -> Steps:
    """Yield (U, H, objective) of the multiplicative updates.

    Products are re-associated so that nothing of n x n is multiplied by n x n, and the negative
    part of the Gram matrix is never held: its products are those of the positive part less those
    of the Gram matrix, which go through A.
    """
    printed = options.variant == "report"
    N = (A @ Z.mT).clamp_(min=0)
    M = N if A is Z else (Z @ Z.mT).clamp_(min=0)
    H = H + 0.1 / H.shape[1]
    U = 0.1 + one_hot(nearest(A, H @ Z), len(H)).to(A.dtype)
    norm2 = precise(A.square().sum(1)).sum()
    while True:
        W = H @ Z
        plus = N @ H.mT
        minus = (plus - A @ W.mT).clamp_(min=0)
        inner = H @ (M @ H.mT)
        inner_minus = (inner - W @ W.mT).clamp_(min=0)
        U = _scaled(U, plus + U @ inner_minus, minus + U @ inner)
        plus = U.mT @ N
        minus = (plus - (U.mT @ A) @ Z.mT).clamp_(min=0)
        G = U.mT @ U
        residual = (H @ U) @ U.mT if printed else None
        quadratic = H @ M if residual is None else residual @ M
        cross = quadratic - (
            (H @ Z) @ Z.mT if residual is None else (residual @ Z) @ Z.mT
        )
        cross = cross.clamp_(min=0)
        if residual is None:
            H = _scaled(H, plus + G @ cross, minus + G @ quadratic)
        else:
            H = _scaled(H, plus + cross, minus + quadratic)
            if options.strict_convex:
                H = H / (H.sum(1, keepdim=True) + FLOOR)
        W = H @ Z
        yield U.mT, H, norm2 / 2 + _quadratic(U.mT @ U, U.mT @ A, W)


def _scaled(X: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (X * torch.sqrt(up / (down + FLOOR))).clamp_(min=FLOOR)
