"""Independent component analysis: whitened FastICA with symmetric decorrelation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import check_choice
from .base import Extractor
from .linalg import moments, polar, thin_svd
from .solution import Solution
from .tensors import check_stopping, iterate, on_cpu

# Squared condition the fast way can take.
SINGULAR = {torch.float32: 1e-6, torch.float64: 1e-13}
POLISH = 4  # Newton steps, at the maximum, that take off what rounding left

# The derivative of a contrast at sources (r, n), and the mean of its second derivative (r,).
Contrast = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(eq=False, repr=False, kw_only=True)
class ICA(Extractor):
    """Independent sources of unit variance: ``A ~ U W^T + mean`` with the mixing matrix W.

    The data are centred, whitened in their r leading directions, and rotated to the most
    non-Gaussian sources by the fixed-point iteration of FastICA. Sources beyond the rank of the
    centred A are zero.

    Parameters
    ----------
    n_concepts
        Number r of sources.
    fun
        Contrast: ``"logcosh"``, ``"exp"`` or ``"cube"``.
    max_iter, tol
        The iteration stops where no row of the rotation turns by more than `tol`
        (``1 - |cosine|``), or after `max_iter` iterations.
    random_state
        Seed of the first rotation.

    References
    ----------
    Hyvärinen and Oja, Independent component analysis, Neural Networks 13 (2000); report, Def. 27.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> S = rng.laplace(size=(2000, 2))
    >>> mixing = np.array([[1.0, 0.5], [0.2, 1.0]])
    >>> U = ICA(n_concepts=2, random_state=0).fit_transform(S @ mixing.T)
    >>> cosines = np.abs(np.corrcoef(U.T, S.T)[:2, 2:])
    >>> bool((cosines.max(axis=0) > 0.99).all())
    True
    """

    _scale_in = "dictionary"

    fun: str = "logcosh"
    max_iter: int = 200
    tol: float = 1e-4

    def _check_options(self) -> None:
        check_choice("fun", self.fun, CONTRASTS)
        check_stopping(self.max_iter, self.tol)

    def _held(self, n: int, m: int) -> int:
        return n * m + moments(n, m)  # centred

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        n = len(A)
        r = self.n_concepts
        draw = torch.randn(r, r, generator=self._generator(), dtype=torch.float64).to(A)
        mean = A.mean(0, keepdim=True)
        Y, sigma, V = thin_svd(A - mean, r)
        # Signs of singular vectors are arbitrary; with them fixed, a seed is the same start in
        # either precision and at a neighbouring checkpoint.
        signs = torch.take_along_dim(V, V.abs().argmax(0, keepdim=True), 0).sign()
        signs = torch.where(signs == 0, 1.0, signs)
        Y = Y * signs
        V = V * signs
        rank = int((sigma > 0).sum())
        scale = sigma[:rank] / n**0.5
        Z = Y[:, :rank] / scale
        first = draw[:rank, :rank]
        sources = torch.arange(rank, device=A.device)  # the concepts that are not zero
        if start is not None:
            used = torch.nonzero((start != 0).any(0))[:, 0]
            if rank in (len(used), r):
                sources = used if len(used) == rank else sources
                # The start's mixing, seen in whitened space.
                first = ((V[:, :rank].mT @ start[:, sources]) / scale[:, None]).mT
        Q, n_iter, converged = rotate(
            Z, decorrelate(first), self.fun, self.max_iter, self.tol
        )
        codes = A.new_zeros(n, r)
        W = torch.zeros_like(V)
        codes[:, sources] = Z @ Q.mT
        W[:, sources] = (V[:, :rank] * scale) @ Q.mT
        solution = Solution(codes, W, mean, n_iter, converged)
        solution.canonical(signed=True, ordered=start is None)
        # As a batch of one, whose rounding differs: codes stay those of earlier versions.
        mixing = solution.dictionary.cpu().double().mT[None]
        solution.state["unmixing"] = torch.linalg.pinv(mixing)[0].to(A)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return A @ self._fitted("_unmixing", A)


def rotate(
    Z: Tensor, Q: Tensor, fun: str | Contrast, max_iter: int, tol: float
) -> tuple[Tensor, int, bool]:
    """Turn whitened `Z` (n, r) to sources ``Z Q^T``; return Q, iterations, convergence."""
    if Z.shape[1] == 0:
        return Q, 1, True
    rows = Z.mT.contiguous()  # products are faster along rows
    turns = _turns(rows, Q, CONTRASTS[fun] if isinstance(fun, str) else fun)
    (Q, _), n_iter, converged = iterate(turns, lambda step: step[1] < tol, max_iter)
    return Q, n_iter, converged


def _turns(Z: Tensor, Q: Tensor, contrast: Contrast) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rotations Q of `Z` (r, n), each with the largest turn ``1 - |cosine|`` of a row."""
    nearest = decorrelate if on_cpu(Z) else polar
    while True:
        g, slope = contrast(Q @ Z)
        new = nearest(g @ Z.mT / Z.shape[1] - slope[:, None] * Q)
        turn = (1 - (new * Q).sum(1).abs()).abs().max()
        Q = new
        yield Q, turn


def decorrelate(Q: Tensor) -> Tensor:
    """Return the nearest orthogonal matrix, ``(Q Q^T)^-1/2 Q``."""
    if Q.numel() == 0:
        return Q
    if not on_cpu(Q):
        return decorrelate(Q.cpu()).to(Q)
    values, vectors = torch.linalg.eigh(Q @ Q.mT)
    if float(values[0]) > SINGULAR[Q.dtype] * float(values[-1]):
        near = (vectors / values.sqrt()) @ (vectors.mT @ Q)
        for _ in range(POLISH):
            residual = -near @ near.mT
            residual.diagonal().add_(1)
            near = near + 0.5 * residual @ near
            if float(residual.abs().max()) < torch.finfo(Q.dtype).eps ** 0.5:
                return near
    u, _, vh = torch.linalg.svd(Q)
    return u @ vh


def _logcosh(Y: Tensor) -> tuple[Tensor, Tensor]:
    # On a CPU NumPy's tanh is several times faster than PyTorch's.
    g = torch.from_numpy(np.tanh(Y.numpy())) if on_cpu(Y) else Y.tanh_()
    return g, 1 - g.square().mean(1)


def _exp(Y: Tensor) -> tuple[Tensor, Tensor]:
    square = Y.square()
    bell = torch.exp(-square / 2)
    return Y * bell, ((1 - square) * bell).mean(1)


def _cube(Y: Tensor) -> tuple[Tensor, Tensor]:
    return Y**3, 3 * Y.square().mean(1)


CONTRASTS: dict[str, Contrast] = {"logcosh": _logcosh, "exp": _exp, "cube": _cube}
