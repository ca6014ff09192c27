"""k-means as a factorisation: one-hot codes, centroids as dictionary."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.cluster
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ..arrays import Array
from ..errors import ArgumentError, check_whole
from .base import Solution, plain_tensors
from .checks import check_stopping
from .scale import power_of_two
from .stream import BatchExtractor

__all__ = ["KMeans", "cluster", "nearest"]


class KMeans(BatchExtractor):
    """k-means: each sample is its centroid, ``A ~ U W^T`` with one-hot U.

    On the CPU scikit-learn's solver does the work, on a GPU a plain Lloyd iteration.

    Parameters
    ----------
    n_concepts
        Number r of clusters; at most the number of samples.
    n_init
        Restarts from new starts; the best is kept.
    max_iter, tol
        Stop of Lloyd's iteration; `tol` is relative to the mean variance of the features.
    random_state
        Seed of the k-means++ starts.

    References
    ----------
    MacQueen (1967); report, Def. 28.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.0], [0.2], [10.0], [10.4]])
    >>> KMeans(n_concepts=2, random_state=0).fit(A).components_.ravel().round(6).tolist()
    [10.2, 0.1]
    """

    _scale_in: ClassVar[str] = "dictionary"

    def __init__(
        self,
        n_concepts: int = 100,
        *,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_concepts = n_concepts
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_options(self) -> None:
        check_stopping(self.max_iter, self.tol)
        check_whole("n_init", self.n_init)

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        if A.shape[1] < self.n_concepts:
            raise ArgumentError(
                f"n_concepts={self.n_concepts} clusters need at least as many samples; "
                f"got n_samples = {A.shape[1]}."
            )
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator()))
        fits = [
            cluster(
                a,
                self.n_concepts,
                seed,
                max_iter=self.max_iter,
                tol=self.tol,
                n_init=self.n_init,
                start=None if start is None else start[k].mT,
            )
            for k, a in enumerate(A)
        ]
        centers = torch.stack([c for c, _, _, _ in fits])
        if start is None:
            # In order of energy: the samples of a cluster times the square of its center.
            count = torch.stack([torch.bincount(f[1], minlength=self.n_concepts) for f in fits])
            energy = count * centers.square().sum(2)
            order = torch.argsort(energy, dim=1, descending=True, stable=True)
            centers = torch.take_along_dim(centers, order[:, :, None], 1)
        # Assigned anew in the final order, so that ties go where transform sends them.
        codes = self._one_hot(A, centers.mT)
        return Solution(
            codes, centers.mT, None, [i for _, _, i, _ in fits], [c for _, _, _, c in fits]
        )

    def reset(self) -> None:
        """Forget the rows that ``fit`` or ``partial_fit`` took in, so that batches start afresh."""
        super().reset()
        self._batches: sklearn.cluster.MiniBatchKMeans | None = None

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Take in further rows `X` (n, m) as one mini-batch (Sculley 2010), on the CPU in float64.

        The first batch needs at least r rows. Errors are those of the last batch; ``converged_``
        is False, because a pass over batches has no stopping rule. After a call of ``fit`` it
        starts afresh, with a warning.

        Raises
        ------
        ArgumentError
            If the first batch is too small, or `n_concepts` has changed since.
        NonFiniteError
            If `X` holds NaN or infinity; the rows seen before stay as they are.
        """
        with plain_tensors():
            return self._absorb(X)

    def _absorb(self, X: Array) -> Self:
        solver = getattr(self, "_batches", None)
        rows = self._check_batch(X, first=solver is None)
        if solver is not None and solver.n_clusters != self.n_concepts:
            raise ArgumentError(
                f"n_concepts was {solver.n_clusters} for the first batch and is now "
                f"{self.n_concepts}; call reset() to start afresh."
            )
        if solver is None:
            if len(rows) < self.n_concepts:
                raise ArgumentError(
                    f"the first batch must have at least n_concepts={self.n_concepts} samples; "
                    f"got n_samples = {len(rows)}."
                )
            seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator()))
            solver = sklearn.cluster.MiniBatchKMeans(self.n_concepts, n_init=1, random_state=seed)
        solver.partial_fit(rows.double().cpu().numpy())
        self._batches = solver
        W = torch.from_numpy(solver.cluster_centers_.copy()).to(rows.device).mT[None]
        codes = self._one_hot(rows[None].double(), W)
        solution = Solution(
            codes.to(rows), W.to(rows), n_iter=[int(solver.n_steps_)], converged=[False]
        )
        solution.state["scale"] = power_of_two(solution.dictionary)
        self._keep(solution, rows[None], 0, like=X)
        return self

    @staticmethod
    def _one_hot(A: Tensor, W: Tensor) -> Tensor:
        labels = torch.stack([nearest(a, w.mT) for a, w in zip(A, W, strict=True)])
        return torch.nn.functional.one_hot(labels, W.shape[2]).to(A.dtype)

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return self._one_hot(A[None], W[None])[0]


def nearest(A: Tensor, centers: Tensor) -> Tensor:
    """Return for each row of `A` (n, m) the index of the nearest row of `centers` (r, m).

    Of centers that are equally near up to rounding, the first is taken.
    """
    middle = centers.mean(0)  # far from the origin the squares below would cancel
    A, centers = A - middle, centers - middle
    distance = torch.addmm(centers.square().sum(1) / 2, A, centers.mT, alpha=-1)
    slack = 16 * torch.finfo(A.dtype).eps * A.square().sum(1, keepdim=True)
    near = distance <= distance.amin(1, keepdim=True) + slack
    index = torch.arange(len(centers), device=A.device)
    return torch.where(near, index, len(centers)).amin(1)


def cluster(
    A: Tensor,
    r: int,
    seed: int,
    *,
    max_iter: int,
    tol: float = 1e-4,
    n_init: int = 1,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor, int, bool]:
    """Return centers (r, m), labels (n,), iterations and convergence of k-means on `A` (n, m)."""
    if A.is_cuda:
        found = _lloyd(A, _seeds(A, r, seed) if start is None else start, max_iter, tol)
        return found[0], nearest(A, found[0]), *found[1:]
    solver = sklearn.cluster.KMeans(
        r,
        init="k-means++" if start is None else start.numpy(),
        n_init=n_init if start is None else 1,
        max_iter=max_iter,
        tol=tol,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # Fewer distinct samples than clusters: the surplus centers repeat others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        solver.fit(A.numpy())
    centers = torch.from_numpy(np.ascontiguousarray(solver.cluster_centers_))
    labels = torch.from_numpy(solver.labels_).long()
    return centers.to(A.dtype), labels, int(solver.n_iter_), solver.n_iter_ < max_iter


def _seeds(A: Tensor, r: int, seed: int) -> Tensor:
    """Return k-means++ seeds (r, m): far samples are drawn with probability by squared distance."""
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(r, generator=generator, dtype=torch.float64).to(A.device)
    chosen = [int(draws[0] * len(A))]
    distance = (A - A[chosen[0]]).square().sum(1).double()
    for draw in draws[1:]:
        reach = distance.cumsum(0)
        chosen.append(min(int(torch.searchsorted(reach, draw * reach[-1])), len(A) - 1))
        distance = torch.minimum(distance, (A - A[chosen[-1]]).square().sum(1).double())
    return A[chosen]


def _lloyd(A: Tensor, centers: Tensor, max_iter: int, tol: float) -> tuple[Tensor, int, bool]:
    """Lloyd's iteration; an empty cluster moves to the sample that is farthest from its center."""
    limit = tol * float(A.var(0, correction=0).mean())
    for i in range(1, max_iter + 1):
        labels = nearest(A, centers)
        count = torch.bincount(labels, minlength=len(centers)).to(A.dtype)
        new = torch.zeros_like(centers).index_add_(0, labels, A) / count.clamp(min=1)[:, None]
        empty = torch.nonzero(count == 0)[:, 0]
        if len(empty):
            far = torch.topk((A - centers[labels]).square().sum(1), len(empty)).indices
            new[empty] = A[far]
        moved = float((new - centers).square().sum())
        centers = new
        if moved <= limit:
            return centers, i, True
    return centers, max_iter, False
