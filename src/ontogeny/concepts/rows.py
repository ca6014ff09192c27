"""Solving for one factor while the other is fixed: rows in turn, each in closed form.

The problem is ``min 1/2 <X, G X> - <X, B>`` with a constraint or penalty on X (r, p), where
``G = F F^T`` and ``B = F A^T`` come from the other factor F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .linalg import eigen, product
from .tensors import if_read, on_cpu, precise

STILL = 1e-4  # of a column's largest entry: a column of which no entry moves further is done
ROUND = 5  # sweeps after which columns are checked
# Rounds after which the host asks another device whether any column still moves.
READ_EVERY = 5
BLOCK = 20  # rows whose share of the other rows is taken off in one product
SMALL = 1e-2  # squared length of a combination of concepts, against the longest, to nearly vanish


@dataclass(frozen=True)
class Factor:
    """How one factor is constrained.

    ``kind`` is ``"nonnegative"``, ``"sparse"`` (L1 with `penalty`), ``"ball"`` (rows of norm at
    most 1) or ``"free"``. `shift` adds a step along the positive combination of concepts that
    nearly vanishes (see ``shift_step``).
    """

    kind: str
    penalty: Tensor | None = None
    shift: bool = False

    def cost(self, X: Tensor) -> Tensor | float:
        """Return the value of the penalty."""
        return (
            0.0
            if self.penalty is None
            else precise(self.penalty) * precise(X.abs().sum())
        )

    def nearest(self, row: Tensor, width: Tensor | None) -> Tensor:
        """Solve for one row (..., p) of curvature 1 given its unconstrained solution, in place.

        `width` is the penalty over the row's curvature.
        """
        if self.kind == "nonnegative":
            return (row if width is None else row.sub_(width)).clamp_(min=0)
        if self.kind == "sparse":
            assert width is not None
            return row - row.clamp(-width, width)  # soft thresholding
        if self.kind == "ball":
            return row.div_(
                torch.linalg.vector_norm(row, dim=-1, keepdim=True).clamp_(min=1)
            )
        return row


def sweep(X: Tensor, G: Tensor, B: Tensor, factor: Factor, times: int = 1) -> Tensor:
    """Minimise ``1/2 <X, G X> - <X, B>`` over the rows of `X` (r, p) in turn, in place.

    All rows, `times` times.
    """
    r = len(X)
    diagonal = torch.diagonal(G)
    floor = torch.finfo(X.dtype).eps * diagonal.amax()
    curvature = torch.maximum(diagonal, floor.clamp(min=torch.finfo(X.dtype).tiny))[
        :, None
    ]
    # Row k of X without constraints is row k of B - G X from here on.
    G = G / curvature
    B = B / curvature
    G.diagonal().sub_(1)
    widths: Sequence[Tensor | None] = [None] * r
    if factor.penalty is not None:
        widths = (factor.penalty / curvature[:, 0]).unbind()
    # Batched products of one matrix: for a single row they are up to twice as fast as plain ones.
    batch = X[None]
    G = G[None]
    B = B[None]
    rows = batch.split(1, 1)
    blocks = []
    for low in range(0, r, BLOCK):
        block = slice(low, min(low + BLOCK, r))
        outer = G[:, block].clone()
        outer[:, :, block] = 0
        blocks.append((block, outer, G[:, block, block].split(1, 1)))
    for _ in range(times):
        for block, outer, inner in blocks:
            rest = torch.baddbmm(B[:, block], outer, batch, alpha=-1).split(1, 1)
            near = batch[:, block]
            for k, (row, weights) in enumerate(
                zip(rest, inner, strict=True), block.start
            ):
                row.baddbmm_(weights, near, alpha=-1)
                rows[k].copy_(factor.nearest(row, widths[k]))
    return X


def vanishing(G: Tensor, noise: float) -> tuple[Tensor, Tensor]:
    """Return the eigenvector (r,) of the smallest eigenvalue of `G` (r, r), and that value.

    The vector is zero where it is not positive or the value is not small: then no positive
    combination of concepts nearly vanishes. The value is zero where it is below `noise` times the
    largest: then the combination does vanish.
    """
    values, vectors = eigen(precise(G))
    null = vectors[:, 0]
    smallest = values[0]
    largest = values[-1]
    null = null * torch.where(null.sum() < 0, -1.0, 1.0)
    positive = (null > 1e-6).all() & (smallest < SMALL * largest)
    return null * positive, smallest * (smallest > noise * largest)


def shift_step(X: Tensor, B: Tensor, null: Tensor, value: Tensor) -> Tensor:
    """Move each column of `X` (r, p) >= 0 to its optimum along ``vanishing(G)``, in place.

    Where concepts are signed, some positive combination of them is often nearly zero. Coordinate
    steps creep along it; one line search per column does not.
    """
    helps = (value > 0) & (null.sum() > 0)
    if if_read(helps) is False:
        return X
    along = (null * helps).to(X.dtype)[None]
    weight = (1 / value.clamp(min=1e-30)).to(X.dtype)
    # <null, B - G X> / value, where G null = value null.
    step = product(along, B) * weight - product(along, X)
    lowest = -(X / along.mT.clamp(min=1e-6)).amin(0, keepdim=True)
    return X.addcmul_(torch.maximum(step, lowest), along.mT).clamp_(min=0)


def solve_rows(
    B: Tensor,
    G: Tensor,
    X: Tensor,
    factor: Factor,
    *,
    null: tuple[Tensor, Tensor] | None = None,
    max_sweeps: int = 200,
) -> Tensor:
    """Solve ``min 1/2 <x, G x> - <x, b>`` for each column of `B` (r, p) from `X`, to tolerance.

    A column stops by its own rule (no entry moves by more than `STILL` of its largest one), so that
    its solution does not depend on the columns it is solved with. `null` is what ``vanishing``
    gives for `G`, if steps along it are wanted.
    """
    rounds = range(1, -(-max_sweeps // ROUND) + 1)
    X = X.clone()
    going = torch.ones_like(X[0], dtype=torch.bool)
    # All columns together: to take out some, the host would have to count them.
    if not on_cpu(X):
        for number in rounds:
            Y = X.clone()
            moving = _round(Y, G, B, factor, null)
            X = torch.where(going, Y, X)
            going = going & moving
            if number % READ_EVERY == 0 and not bool(going.any()):
                break
        return X
    at = torch.arange(X.shape[1])
    Y = X.clone()
    rest = B
    for _ in rounds:
        going = _round(Y, G, rest, factor, null)
        if bool(going.all()):
            continue
        X[:, at] = Y
        if not bool(going.any()):
            return X
        at = at[going]
        Y = Y[:, going].contiguous()
        rest = rest[:, going].contiguous()
    X[:, at] = Y
    return X


def _round(
    X: Tensor, G: Tensor, B: Tensor, factor: Factor, null: tuple[Tensor, Tensor] | None
) -> Tensor:
    """Sweep `X` (r, p) a few times, in place; return which columns (p,) still move."""
    start = X.clone()
    if null is not None:
        shift_step(X, B, *null)
    sweep(X, G, B, factor, ROUND - 1)
    before = X.clone()
    sweep(X, G, B, factor)
    moved = (X - before).abs().amax(0)
    going = moved > STILL * X.abs().amax(0)
    # Sweeps creep where concepts are nearly dependent; a search along their path does not.
    _along_path(X, start, G, B, factor, going)
    return going


def next_worst(unused: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Give each of the `unused` concepts (r,) the sample with the next largest `error` (n,).

    Returns
    -------
    samples
        Indices (r,), different ones for different unused concepts.
    given
        Which concepts (r,) got one: the unused ones, as far as there are samples.
    """
    count = min(len(unused), len(error))
    place = unused.cumsum(0) - 1
    worst = torch.topk(error, count).indices
    return worst[place.clamp(0, count - 1)], unused & (place < count)


def _along_path(
    X: Tensor, start: Tensor, G: Tensor, B: Tensor, factor: Factor, going: Tensor
) -> Tensor:
    """Move the columns `going` of `X` (r, p) on to the optimum along ``X - start``, in place.

    Zero entries stay zero and no entry changes its sign, so that the objective is quadratic on the
    way and never rises.
    """
    direction = (X - start) * (X != 0)
    slope = B - product(G, X)
    if factor.penalty is not None:
        slope -= factor.penalty * X.sign()
    tiny = torch.finfo(X.dtype).tiny
    curvature = (direction * product(G, direction)).sum(0)
    # Along concepts that cancel the curvature is rounding: a step by it could go anywhere.
    noise = 4 * torch.finfo(X.dtype).eps * G.diagonal().amax()
    is_curved = curvature > noise * direction.square().sum(0)
    step = torch.where(
        is_curved, (slope * direction).sum(0) / curvature.clamp(min=tiny), 0.0
    )
    shrinks = direction * X < 0
    limit = torch.where(
        shrinks, X.abs() / direction.abs().clamp(min=tiny), torch.inf
    ).amin(0)
    step = torch.minimum(step.clamp(min=0), limit) * going
    sign = X.sign()
    return X.addcmul_(step, direction).mul_(X.sign() == sign)
