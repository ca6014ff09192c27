"""k-means as a factorisation: one-hot codes, centroids as dictionary."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn.cluster
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ..errors import ArgumentError, check_whole
from .base import Extractor
from .checks import check_stopping
from .iteration import iterate
from .solution import Solution


@dataclass(eq=False, repr=False)
class KMeans(Extractor):
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

    n_concepts: int = 100
    _: KW_ONLY
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    random_state: Any = None

    def _check_options(self) -> None:
        check_stopping(self.max_iter, self.tol)
        check_whole("n_init", self.n_init)

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        r = self.n_concepts
        if len(A) < r:
            raise ArgumentError(
                f"n_concepts={r} clusters need at least as many samples; got n_samples = {len(A)}."
            )
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator()))
        first = None if start is None else start.mT
        centers, labels, n_iter, converged = cluster(
            A, r, seed, max_iter=self.max_iter, tol=self.tol, n_init=self.n_init, start=first
        )
        if start is None:
            # In order of energy: the samples of a cluster times the square of its center.
            energy = torch.bincount(labels, minlength=r) * centers.square().sum(1)
            centers = centers[torch.argsort(energy, descending=True, stable=True)]
        # Assigned anew in the final order, so that ties go where transform sends them.
        return Solution(self._encode(A, centers.mT), centers.mT, None, n_iter, converged)

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(nearest(A, W.mT), W.shape[1]).to(A.dtype)


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
        limit = tol * float(A.var(0, correction=0).mean())
        steps = _lloyd(A, _seeds(A, r, seed) if start is None else start)
        (result, _), n_iter, converged = iterate(steps, lambda step: step[1] <= limit, max_iter)
        return result, nearest(A, result), n_iter, converged
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


def _lloyd(A: Tensor, centers: Tensor) -> Iterator[tuple[Tensor, float]]:
    """Yield the centers of Lloyd's iteration and by how much they moved, squared.

    An empty cluster moves to the sample that is farthest from its center.
    """
    while True:
        labels = nearest(A, centers)
        count = torch.bincount(labels, minlength=len(centers)).to(A.dtype)
        new = torch.zeros_like(centers).index_add_(0, labels, A) / count.clamp(min=1)[:, None]
        empty = torch.nonzero(count == 0)[:, 0]
        if len(empty):
            far = torch.topk((A - centers[labels]).square().sum(1), len(empty)).indices
            new[empty] = A[far]
        moved = float((new - centers).square().sum())
        centers = new
        yield centers, moved
