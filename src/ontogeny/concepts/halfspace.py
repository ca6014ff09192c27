"""Semi-NMF as a truncated SVD whose codes lie in a half-space.

Codes Y (n, r) of a subspace can be made non-negative by an invertible map, without a change of the
product, as soon as all of them lie on one side of a hyperplane, ``Y z > 0``: the map adds to each
code a multiple of its distance from that hyperplane. So the best semi-NMF of rank r is the best
subspace of dimension r with codes in a half-space; its codes are those of any subspace, less the
part ``min(0, Y z)`` on the wrong side. The error is that of the SVD where some direction has all
samples on one side (Gillis and Kumar, SIAM J. Matrix Anal. 36, 2015), and elsewhere about half-way
from there to the SVD of rank r - 1.

Nothing here is ill-conditioned, unlike descent in non-negative codes, whose concepts nearly cancel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .linalg import eigen, identity, thin_svd
from .rows import vanishing
from .tensors import if_read, iterate, on_cpu, precise, select

MARGIN = 0.03  # smallest typical distance of a code from the hyperplane, against all
CONDITION = 1e-7  # smallest squared length of a near-cancellation that float32 resolves
# Part by which a step of z alone must lower what is on the wrong side.
TURN_TOLERANCE = 1e-3
RIDGE = 1e-6  # keeps the steps of z finite where few samples lie on the wrong side
KEPT = 0.1  # part of their independence that concepts must keep when they move to another subspace


@dataclass(frozen=True)
class HalfSpace:
    """Codes ``Y = U Sigma`` (n, r), singular vectors V (m, r), and the direction z (r,)."""

    Y: Tensor
    V: Tensor
    z: Tensor
    n_iter: int
    converged: bool

    def wrong(self) -> float:
        """Squared distance of the codes from the half-space."""
        return float(_wrong(precise(self.Y), self.z))

    def energy(self) -> float:
        """Squared norm of the codes."""
        return float(precise(self.Y.square().sum(1)).sum())

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return non-negative U (r, n) and W (r, m) of about this product."""
        Y = precise(self.Y)
        V = precise(self.V)
        z = self.z
        along = (Y @ z)[:, None]
        across = _complement(z)
        W = V @ across
        signs = torch.take_along_dim(W, W.abs().argmax(0, keepdim=True), 0).sign()
        W = W * signs
        Y = (Y @ across) * signs
        size = Y.square().mean(0).sqrt().clamp(min=torch.finfo(Y.dtype).tiny)
        # A code is non-negative if its distance is at least this part of what is mixed in.
        edge = (-Y / size).amax(1, keepdim=True).clamp(min=0)
        typical = edge.square().mean().sqrt() / (MARGIN * along.square().mean().sqrt())
        needed = (edge / along.clamp(min=torch.finfo(Y.dtype).tiny)).amax()
        mixed = size * torch.minimum(typical, needed)
        lowest = (-Y / mixed.clamp(min=torch.finfo(Y.dtype).tiny)).amax(1, keepdim=True)
        along = torch.maximum(along.clamp(min=0), lowest)
        U = torch.cat([along, Y + along * mixed], 1).clamp(min=0)
        W = torch.cat([(V @ z)[:, None] - (W @ mixed)[:, None], W], 1)
        return U.mT.to(self.Y.dtype), W.mT.to(self.Y.dtype)

    def continued(self, W: Tensor) -> Tensor | None:
        """Return the concepts `W` (m, r) moved into this subspace, or None if they do not fit.

        The combination of them that nearly cancels becomes a multiple of z.
        """
        W = precise(W)
        V = precise(self.V)
        null = _cancelling(W)
        if null is None:
            return None
        moved = V @ (V.mT @ W)
        length = torch.linalg.vector_norm(W @ null)
        moved = moved + torch.outer(length * (V @ self.z) - moved @ null, null)
        before, after = (torch.linalg.eigvalsh(X.mT @ X) for X in (W, moved))
        if len(null) > 1 and after[1] < KEPT * before[1]:
            return None
        return (moved / torch.linalg.vector_norm(moved, dim=0)).to(self.V.dtype)


def best_half_space(
    A: Tensor, r: int, *, start: Tensor | None, max_iter: int, tol: float
) -> HalfSpace | None:
    """Return the best subspace of dimension `r` for `A` (n, m) with codes in a half-space.

    The search starts at the SVD and the best of: the mean, the last singular direction, and the
    combination of the concepts `start` (m, r) that nearly cancels; or at the space of `start`, if
    that is better. It is done when a step lowers the objective by less than a tenth of `tol` of
    itself. None where the rank of A is below r, or r is 1.
    """
    Y, sigma, V = thin_svd(A, r)
    if r < 2 or not float(sigma[-1]) > 0:
        return None
    best = _best_direction(Y, V, _directions(Y, V, sigma, start), max_iter)
    space = None if start is None else _space_of(A, start)
    if (
        space is not None
        and space.wrong() - space.energy() < best.wrong() - best.energy()
    ):
        best = space
    # Where no code is on the wrong side the SVD is the optimum.
    return best if best.wrong() == 0 else _improved(A, best, max_iter, tol)


def _directions(
    Y: Tensor, V: Tensor, sigma: Tensor, start: Tensor | None
) -> list[Tensor]:
    """Return unit vectors (r,) from which to search."""
    last = torch.zeros_like(precise(sigma))
    last[-1] = 1
    directions = [(precise(Y) / precise(sigma)).mean(0), last, -last]
    null = None if start is None else _cancelling(precise(start))
    if start is not None and null is not None:
        directions.insert(0, precise(V).mT @ (precise(start) @ null))
    return [z / torch.linalg.vector_norm(z) for z in directions if bool((z != 0).any())]


def _space_of(A: Tensor, W: Tensor) -> HalfSpace | None:
    """Return the space of the concepts `W` (m, r) with the direction in which they cancel."""
    wide = precise(W)
    null = _cancelling(wide)
    if null is None:
        return None
    V = torch.linalg.qr(wide).Q
    z = V.mT @ (wide @ null)
    V = V.to(A)
    return HalfSpace(A @ V, V, z / torch.linalg.vector_norm(z), 0, False)


def _best_direction(
    Y: Tensor, V: Tensor, starts: list[Tensor], max_iter: int
) -> HalfSpace:
    """Return the direction with the smallest part of the codes `Y` (n, r) on its wrong side."""
    codes = precise(Y)
    steps = _turns(codes, min(starts, key=lambda z: float(_wrong(codes, z))))
    (z, _), n_iter, converged = iterate(steps, lambda step: step[1], max_iter)
    return HalfSpace(Y, V, z, n_iter, converged)


def _turns(Y: Tensor, z: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield directions z, each with whether its step hardly lowered what is on the wrong side."""
    ridge = RIDGE * Y.square().sum(0).min()
    value = _wrong(Y, z)
    while True:
        z = _turn(Y, z, ridge)
        before = value
        value = _wrong(Y, z)
        yield z, (value == 0) | (before - value <= TURN_TOLERANCE * before)


def _improved(A: Tensor, h: HalfSpace, max_iter: int, tol: float) -> HalfSpace:
    """Return the space and direction improved in turn; the objective never rises.

    With the distances ``u >= 0`` from the hyperplane fixed, the best space is a truncated SVD of
    what u leaves of A, of which each iteration makes one step of orthogonal iteration.
    """
    steps = _orthogonal(A, h.V @ _complement(h.z).to(h.V), h.V @ h.z.to(h.V), tol)
    most = max(1, max_iter - h.n_iter + 1)
    (across, along, V, w, _), count, converged = iterate(
        steps, lambda step: step[-1], most
    )
    return _principal(across, along, V, w, max(h.n_iter + count - 1, 1), converged)


def _orthogonal(
    A: Tensor, V: Tensor, w: Tensor, tol: float
) -> Iterator[tuple[Tensor, ...]]:
    """Yield the best codes across (n, r - 1) and along (n,), V and w, and whether to stop."""
    norm2 = precise(A.square().sum(1)).sum()
    noise = 4 * torch.finfo(A.dtype).eps * norm2
    best = torch.full_like(norm2, torch.inf)
    state = (A @ V, A @ w, V, w)
    while True:
        along = A @ w
        across = A @ V
        u = along.clamp(min=0)
        g = (u / torch.linalg.vector_norm(u).clamp(min=1e-30)) @ A
        shared = g @ V
        parts = (across.square().sum(0), -shared.square(), g.square())
        value = norm2 - sum(precise(x).sum() for x in parts)
        done = best - value <= torch.maximum(tol / 10 * value, noise)
        state = select(value <= best, (across, along, V, w), state)
        best = torch.minimum(best, value)
        yield (*state, done)
        V = torch.linalg.qr(across.mT.matmul(A).mT - torch.outer(g, shared)).Q
        w = g - V @ (V.mT @ g)
        w = w - V @ (V.mT @ w)  # twice is enough
        w = w / torch.linalg.vector_norm(w).clamp(min=1e-30)


def _principal(
    across: Tensor, along: Tensor, V: Tensor, w: Tensor, n_iter: int, converged: bool
) -> HalfSpace:
    """Return a half-space whose other axes are the principal ones of `across` (n, r - 1)."""
    _, axes = eigen(precise(across).mT @ precise(across))
    axes = axes.flip(1).to(V)
    Y, V = (torch.cat([x @ axes, y[:, None]], 1) for x, y in ((across, along), (V, w)))
    z = torch.zeros_like(precise(V[0]))
    z[-1] = 1
    return HalfSpace(Y, V, z, n_iter, converged)


def _wrong(Y: Tensor, z: Tensor) -> Tensor:
    """Return the squared distance of the codes on the wrong side of z."""
    return (Y @ z).clamp(max=0).square().sum()


def _turn(Y: Tensor, z: Tensor, ridge: Tensor) -> Tensor:
    """Return z after a step of inverse iteration with the codes on its wrong side, never worse."""
    side = Y @ z < 0
    if if_read(side.any()) is False:
        return z
    wrong = Y[side] if on_cpu(Y) else Y * side[:, None]
    moment = wrong.mT @ wrong
    moment.diagonal().add_(ridge)
    aim = torch.linalg.solve_ex(moment, z).result
    best = _wrong(Y, z)
    aim = aim / torch.linalg.vector_norm(aim)
    turned = z
    lower = torch.zeros_like(best, dtype=torch.bool)
    for part in (1.0, 0.5, 0.25, 0.125):
        new = z + part * (aim - z)
        new = new / torch.linalg.vector_norm(new)
        first = (_wrong(Y, new) < best) & ~lower
        if if_read(first):
            return new
        turned = torch.where(first, new, turned)
        lower = lower | first
    return turned


def _complement(z: Tensor) -> Tensor:
    """Return an orthonormal basis (r, r - 1) of the complement of z, near to unit vectors."""
    largest = int(z.abs().argmax())
    mirror = z.clone()
    mirror[largest] += torch.sign(z[largest])
    mirror = mirror / torch.linalg.vector_norm(mirror)
    basis = identity(mirror[None]) - 2 * torch.outer(mirror, mirror)
    return torch.cat([basis[:, :largest], basis[:, largest + 1 :]], 1)


def _cancelling(W: Tensor) -> Tensor | None:
    """Return the positive unit vector that concepts `W` (m, r) nearly cancel under, if there is."""
    size = torch.linalg.vector_norm(W, dim=0)
    if bool((size == 0).any()):
        return None
    null, value = vanishing(W.mT @ W, CONDITION / 10)
    return null if float(value) > 0 and bool((null > 0).any()) else None
