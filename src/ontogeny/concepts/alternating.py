"""Block coordinate descent with extrapolation: one solver for NMF, semi-NMF and sparse coding.

``min 1/2 |A - U W^T|^2 + penalties`` is convex in each row of ``U^T`` and ``W^T`` alone, and that
step has a closed form. A sweep takes all rows in turn (HALS: Cichocki and Phan 2009), in blocks so
that most of the work is matrix products, and reuses the products with A. Between the two factors
the iterates are extrapolated, with a restart whenever the objective would rise
(Ang and Gillis, Neural Computation 31, 2019).

Factors are held transposed, ``U`` (K, r, n) and ``W`` (K, r, m): rows are contiguous. Every matrix
of the stack has its own extrapolation, restart and stop, so that a stack gives what its matrices
give one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .linalg import least_squares

__all__ = ["Factor", "Fit", "alternate", "shift_step", "solve_rows", "sweep", "vanishing"]

BLOCK = 20  # rows whose share of the other rows is taken off in one product
WINDOW = 10  # iterations over which progress is measured
SMALL = 1e-2  # squared length of a combination of concepts, against the longest, to nearly vanish
REVIVE_UNTIL = 10  # iterations in which concepts without a use start again at a sample


@dataclass(frozen=True)
class Factor:
    """How one factor is constrained.

    ``kind`` is ``"nonnegative"``, ``"sparse"`` (L1 with `penalty`), ``"ball"`` (rows of norm at
    most 1) or ``"free"``. `penalty` is (K, 1), one weight a matrix. `shift` adds a step along the
    positive combination of concepts that nearly vanishes (see ``shift_step``).
    """

    kind: str
    penalty: Tensor | None = None
    shift: bool = False

    def pick(self, keep: Tensor) -> Factor:
        """Return the same for the matrices `keep` of the stack."""
        return self if self.penalty is None else replace(self, penalty=self.penalty[keep])

    def cost(self, X: Tensor) -> Tensor | float:
        """Return the penalty's value for each matrix of the stack."""
        if self.penalty is None:
            return 0.0
        return self.penalty[:, 0].double() * X.abs().sum((1, 2)).double()

    def nearest(self, row: Tensor, width: Tensor | None) -> Tensor:
        """Solve for one row (K, 1, p) of curvature 1 given its unconstrained solution, in place.

        `width` (K, 1, 1) is the penalty over the row's curvature.
        """
        if self.kind == "nonnegative":
            return (row if width is None else row.sub_(width)).clamp_(min=0)
        if self.kind == "sparse":
            assert width is not None
            if len(row) == 1:
                return torch.nn.functional.softshrink(row, float(width))
            return row.sign() * (row.abs() - width).clamp_(min=0)
        if self.kind == "ball":
            return row.div_(torch.linalg.vector_norm(row, dim=2, keepdim=True).clamp_(min=1))
        return row


def sweep(X: Tensor, G: Tensor, B: Tensor, factor: Factor, times: int = 1) -> Tensor:
    """Minimise ``1/2 <X, G X> - <X, B>`` over the rows of `X` (K, r, p) in turn, in place.

    All rows, `times` times.
    """
    r = X.shape[1]
    diagonal = torch.diagonal(G, dim1=1, dim2=2)
    floor = torch.finfo(X.dtype).eps * diagonal.amax(1, keepdim=True)
    curvature = torch.maximum(diagonal, floor.clamp(min=torch.finfo(X.dtype).tiny))[:, :, None]
    # Row k of X without constraints is row k of B - G X from here on.
    G, B = G / curvature, B / curvature
    G.diagonal(dim1=1, dim2=2).sub_(1)
    widths = (
        None if factor.penalty is None else (factor.penalty[:, :, None] / curvature).split(1, 1)
    )
    rows, blocks = X.split(1, 1), []
    for low in range(0, r, BLOCK):
        block = slice(low, min(low + BLOCK, r))
        outer = G[:, block].clone()
        outer[:, :, block] = 0
        blocks.append((block, outer, G[:, block, block].split(1, 1)))
    for _ in range(times):
        for block, outer, inner in blocks:
            rest = torch.baddbmm(B[:, block], outer, X, alpha=-1).split(1, 1)
            near = X[:, block]
            for k, (row, weights) in enumerate(zip(rest, inner, strict=True), block.start):
                row.baddbmm_(weights, near, alpha=-1)
                rows[k].copy_(factor.nearest(row, None if widths is None else widths[k]))
    return X


def vanishing(G: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Return the eigenvector (K, r) of the smallest eigenvalue of `G`, and that value (K,).

    The vector is zero where it is not positive or the value is not small: then no positive
    combination of concepts nearly vanishes. The value is zero where it is below `noise` times the
    largest: then the combination does vanish.
    """
    values, vectors = torch.linalg.eigh(G.double())
    null, smallest, largest = vectors[..., 0], values[..., 0], values[..., -1]
    null = null * torch.where(null.sum(-1, keepdim=True) < 0, -1.0, 1.0)
    positive = (null > 1e-6).all(-1) & (smallest < SMALL * largest)
    return null * positive[..., None], smallest * (smallest > noise * largest)


def shift_step(X: Tensor, B: Tensor, null: Tensor, value: Tensor) -> Tensor:
    """Move each column of `X` (K, r, p) >= 0 to its optimum along ``vanishing(G)``, in place.

    Where concepts are signed, some positive combination of them is often nearly zero. Coordinate
    steps creep along it; one line search per column does not.
    """
    usable = (value > 0) & (null.sum(1) > 0)
    if not bool(usable.any()):
        return X
    along = null.to(X.dtype)[:, None]
    weight = torch.where(usable, 1 / value.clamp(min=1e-30), 0.0)[:, None, None].to(X.dtype)
    # <null, B - G X> / value, where G null = value null.
    step = (along @ B) * weight - along @ X
    lowest = -(X / along.mT.clamp(min=1e-6)).amin(1, keepdim=True)
    step = torch.maximum(step, lowest) * usable[:, None, None]
    return X.addcmul_(step, along.mT).clamp_(min=0)


def update(X: Tensor, F: Tensor, G: Tensor, B: Tensor, factor: Factor, sweeps: int) -> Tensor:
    """Return `X` improved: the exact solution for a free factor, `sweeps` sweeps for others.

    `F` is the other factor, ``G = F F^T`` and ``B = F A^T``.
    """
    if factor.kind == "free":
        return least_squares(F, B, G)
    X = X.clone()
    if factor.shift:
        shift_step(X, B, *vanishing(G, 4 * torch.finfo(G.dtype).eps))
    return sweep(X, G, B, factor, sweeps)


@dataclass
class Fit:
    """Factors ``U`` (K, r, n), ``W`` (K, r, m), iterations and convergence of each matrix."""

    U: Tensor
    W: Tensor
    n_iter: list[int]
    converged: list[bool]
    objective: list[float]


@dataclass
class _State:
    """The running part of a stack; every tensor has the matrices along its first dimension."""

    index: Tensor
    A: Tensor
    U: Tensor
    W: Tensor
    U_ahead: Tensor
    W_ahead: Tensor
    norm2: Tensor
    beta: Tensor
    ceiling: Tensor
    objective: Tensor
    history: Tensor

    def pick(self, keep: Tensor) -> _State:
        return _State(**{name: value[keep] for name, value in vars(self).items()})


def alternate(
    A: Tensor,
    U: Tensor,
    W: Tensor,
    codes: Factor,
    dictionary: Factor,
    *,
    max_iter: int,
    tol: float,
    sweeps: int = 2,
    observe: Callable[[float], None] | None = None,
) -> Fit:
    """Fit ``A ~ U^T W`` to a stack `A` (K, n, m) from a start `U` (K, r, n), `W` (K, r, m).

    A matrix is done when its objective fell by less than `tol` of itself within ten iterations.
    `observe` is called with the objective of the first running matrix after every iteration.
    """
    K = len(A)
    norm2 = A.square().sum(2).double().sum(1)
    infinite = torch.full_like(norm2, torch.inf)
    state = _State(
        index=torch.arange(K, device=A.device),
        A=A,
        U=U,
        W=W,
        U_ahead=U.clone(),
        W_ahead=W.clone(),
        norm2=norm2,
        beta=A.new_full((K, 1, 1), 0.5),
        ceiling=A.new_ones(K, 1, 1),
        objective=infinite,
        history=infinite[:, None].repeat(1, WINDOW),
    )
    out = Fit(U.clone(), W.clone(), [max_iter] * K, [False] * K, [float("inf")] * K)
    for i in range(1, max_iter + 1):
        _iterate(state, codes, dictionary, sweeps, revive=i <= REVIVE_UNTIL)
        if observe is not None:
            observe(float(state.objective[0]))
        done = _finished(state, i, tol)
        if i < max_iter and not bool(done.any()):
            continue
        _record(out, state, done, i, last=i == max_iter)
        keep = ~done
        if not bool(keep.any()):
            break
        state, codes, dictionary = state.pick(keep), codes.pick(keep), dictionary.pick(keep)
    return out


def _iterate(s: _State, codes: Factor, dictionary: Factor, sweeps: int, *, revive: bool) -> None:
    G, B = s.W_ahead @ s.W_ahead.mT, s.W_ahead @ s.A.mT
    U = update(s.U_ahead, s.W_ahead, G, B, codes, sweeps)
    if revive:
        _revive(s, U)
    U_ahead = _ahead(U, s.U, s.beta, codes)
    G, B = U_ahead @ U_ahead.mT, U_ahead @ s.A
    W = update(s.W_ahead, U_ahead, G, B, dictionary, sweeps)
    fitted = (B * W).sum(2).double().sum(1)
    square = (G * (W @ W.mT)).double().sum((1, 2))
    objective = (s.norm2 / 2 - fitted + square / 2).clamp(min=0)
    objective = objective + codes.cost(U_ahead) + dictionary.cost(W)
    worse = objective > s.objective
    back = worse[:, None, None]
    W_ahead = _ahead(W, s.W, s.beta, dictionary)
    s.U_ahead = torch.where(back, s.U, U_ahead)
    s.W_ahead = torch.where(back, s.W, W_ahead)
    s.U = torch.where(back, s.U, U)
    s.W = torch.where(back, s.W, W)
    s.ceiling = torch.where(back, s.beta, (1.01 * s.ceiling).clamp(max=1))
    s.beta = torch.where(back, s.beta / 1.5, torch.minimum(s.ceiling, 1.05 * s.beta))
    # After a rejected step the next one is plain and accepted as it comes.
    s.objective = torch.where(worse, torch.inf, objective)


def _ahead(new: Tensor, old: Tensor, beta: Tensor, factor: Factor) -> Tensor:
    point = new + beta * (new - old)
    return point.clamp_(min=0) if factor.kind == "nonnegative" else point


def _finished(s: _State, i: int, tol: float) -> Tensor:
    """Return which matrices made too little progress over the last iterations."""
    slot = i % WINDOW
    accepted = torch.isfinite(s.objective)
    before = s.history[:, slot].clone()
    s.history[:, slot] = torch.where(accepted, s.objective, before)
    noise = 4 * torch.finfo(s.A.dtype).eps * s.norm2
    small = before - s.objective <= torch.maximum(tol * s.objective, noise)
    return accepted & torch.isfinite(before) & small & (i > WINDOW)


def _record(out: Fit, s: _State, done: Tensor, i: int, *, last: bool) -> None:
    for row, k in enumerate(s.index.tolist()):
        if last or bool(done[row]):
            out.U[k], out.W[k] = s.U[row], s.W[row]
            out.n_iter[k], out.converged[k] = i, bool(done[row])
            out.objective[k] = float(s.objective[row])


def _revive(s: _State, U: Tensor) -> None:
    """Start concepts that no sample uses again at the samples that are reconstructed worst."""
    unused = (U == 0).all(2)
    for k in torch.nonzero(unused.any(1))[:, 0].tolist():
        concepts = torch.nonzero(unused[k])[:, 0]
        error = (s.A[k] - U[k].mT @ s.W_ahead[k]).square().sum(1)
        count = min(len(concepts), int((error > 0).sum()))
        worst = torch.topk(error, count).indices
        rows = s.A[k, worst]
        size = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-30)
        s.W[k, concepts[:count]] = s.W_ahead[k, concepts[:count]] = rows / size
        U[k, concepts[:count], worst] = 0.1 * size[:, 0]


def solve_rows(
    B: Tensor,
    G: Tensor,
    X: Tensor,
    factor: Factor,
    *,
    null: tuple[Tensor, Tensor] | None = None,
    max_sweeps: int = 200,
    tol: float = 1e-4,
) -> Tensor:
    """Solve ``min 1/2 <x, G x> - <x, b>`` for each column of `B` (r, p) from `X`, to tolerance.

    A column stops by its own rule (no entry moves by more than `tol` of its largest one), so that
    its solution does not depend on the columns it is solved with. `null` is what ``vanishing``
    gives for `G`, if steps along it are wanted.
    """
    X, at = X.clone(), torch.arange(X.shape[1], device=X.device)
    Y, rest = X[None].clone(), B[None]
    checks = 5
    for _ in range(0, max_sweeps, checks):
        start = Y.clone()
        if null is not None:
            shift_step(Y, rest, *null)
        sweep(Y, G[None], rest, factor, checks - 1)
        before = Y.clone()
        sweep(Y, G[None], rest, factor)
        moved = (Y - before).abs().amax(1)[0]
        going = moved > tol * Y.abs().amax(1)[0]
        # Sweeps creep where concepts are nearly dependent; a search along their path does not.
        along_path(Y, start, G[None], rest, factor, going)
        if bool(going.all()):
            continue
        X[:, at] = Y[0]
        if not bool(going.any()):
            return X
        at, Y, rest = at[going], Y[:, :, going].contiguous(), rest[:, :, going].contiguous()
    X[:, at] = Y[0]
    return X


def along_path(
    X: Tensor, start: Tensor, G: Tensor, B: Tensor, factor: Factor, going: Tensor
) -> Tensor:
    """Move the columns `going` of `X` (1, r, p) on to the optimum along ``X - start``, in place.

    Zero entries stay zero and no entry changes its sign, so that the objective is quadratic on the
    way and never rises.
    """
    direction = (X - start) * (X != 0)
    slope = B - G @ X
    if factor.penalty is not None:
        slope -= factor.penalty[:, :, None] * X.sign()
    tiny = torch.finfo(X.dtype).tiny
    curvature = (direction * (G @ direction)).sum(1)
    # Along concepts that cancel the curvature is rounding: a step by it could go anywhere.
    noise = 4 * torch.finfo(X.dtype).eps * G.diagonal(dim1=1, dim2=2).amax(1)
    known = curvature > noise[:, None] * direction.square().sum(1)
    step = torch.where(known, (slope * direction).sum(1) / curvature.clamp(min=tiny), 0.0)
    shrinks = direction * X < 0
    limit = torch.where(shrinks, X.abs() / direction.abs().clamp(min=tiny), torch.inf).amin(1)
    step = torch.minimum(step.clamp(min=0), limit) * going
    sign = X.sign()
    return X.addcmul_(step[:, None], direction).mul_(X.sign() == sign)
