"""k-means as a factorisation: one-hot codes, centroids as dictionary."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, check_whole
from .base import Extractor
from .rows import next_worst
from .solution import Solution
from .tensors import check_stopping, iterate, on_cpu, precise

# The CPU draws seeds among so many samples, or 30 a cluster: among all that took 2/3 of a fit.
SEEDED = 3_000


@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(Extractor):
    """k-means: each sample is its centroid, ``A ~ U W^T`` with one-hot U.

    On the CPU scikit-learn's solver does the work, from seeds among at most 3,000 samples (or 30 a
    cluster); on a GPU a plain Lloyd iteration, which gives the same bits each time.

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
    >>> KMeans(n_concepts=2, random_state=0).fit(A).components_.ravel().round(
    ...     6
    ... ).tolist()
    [10.2, 0.1]
    """

    _scale_in = "dictionary"

    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4

    def _check_options(self) -> None:
        check_stopping(self.max_iter, self.tol)
        check_whole("n_init", self.n_init)

    def _held(self, n: int, m: int) -> int:
        # Centred, and beside that its squares or the samples of the seeds in float64.
        return (n + max(n, 2 * min(n, max(SEEDED, 30 * self.n_concepts)))) * m

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        r = self.n_concepts
        if len(A) < r:
            raise ArgumentError(
                f"n_concepts={r} clusters need at least as many samples; got n_samples = {len(A)}."
            )
        seed = int(torch.randint(2**31 - 1, (1,), generator=self._generator()))
        first = None if start is None else start.mT
        centers, labels, n_iter, converged = cluster(
            A,
            r,
            seed,
            max_iter=self.max_iter,
            tol=self.tol,
            n_init=self.n_init,
            start=first,
        )
        if start is None:
            # In order of energy: the samples of a cluster times the square of its center.
            energy = one_hot(labels, r).sum(0) * centers.square().sum(1)
            centers = centers[torch.argsort(energy, descending=True, stable=True)]
        # Assigned anew in the final order, so that ties go where transform sends them.
        return Solution(
            self._encode(A, centers.mT), centers.mT, None, n_iter, converged
        )

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return one_hot(nearest(A, W.mT), W.shape[1]).to(A.dtype)


def one_hot(labels: Tensor, r: int) -> Tensor:
    """Return which of `r` labels each of `labels` (n,) is, (n, r); the host reads none of them."""
    return labels[:, None] == torch.arange(r, device=labels.device)


def nearest(A: Tensor, centers: Tensor) -> Tensor:
    """Return for each row of `A` (n, m) the index of the nearest row of `centers` (r, m).

    Of centers that are equally near up to rounding, the first is taken.
    """
    middle = centers.mean(0)  # far from the origin the squares below would cancel
    A = A - middle
    centers = centers - middle
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
    if not on_cpu(A):
        return _on_device(A, r, seed, max_iter, tol, n_init, start)
    import sklearn.cluster  # takes a while
    from sklearn.exceptions import ConvergenceWarning

    solver = sklearn.cluster.KMeans(
        r,
        init=_seeds_on_cpu if start is None else start.numpy(),
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


def _seeds_on_cpu(
    A: np.ndarray, r: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Return scikit-learn's k-means++ seeds (r, m), in the precision in which it is fastest."""
    import sklearn.cluster  # takes a while

    count = max(SEEDED, 30 * r)
    if len(A) > count:
        A = A[random_state.choice(len(A), count, replace=False)]
    return sklearn.cluster.kmeans_plusplus(
        A.astype(np.float64), r, random_state=random_state
    )[0]


def _on_device(
    A: Tensor,
    r: int,
    seed: int,
    max_iter: int,
    tol: float,
    n_init: int,
    start: Tensor | None,
) -> tuple[Tensor, Tensor, int, bool]:
    """Return what ``cluster`` does, where scikit-learn's solver cannot see the activations."""
    generator = torch.Generator().manual_seed(seed)
    limit = tol * A.var(0, correction=0).mean()
    starts = (
        [start]
        if start is not None
        else (_seeds(A, r, generator) for _ in range(n_init))
    )
    fits: list[tuple[float, Tensor, Tensor, int, bool]] = []
    for first in starts:
        (centers, _), n_iter, converged = iterate(
            _lloyd(A, first), lambda step: step[1] <= limit, max_iter
        )
        labels = nearest(A, centers)
        loss = float((A - centers[labels]).square().sum())
        fits.append((loss, centers, labels, n_iter, converged))
    return min(fits, key=lambda fit: fit[0])[1:]


def _seeds(A: Tensor, r: int, generator: torch.Generator) -> Tensor:
    """Return k-means++ seeds (r, m): far samples are drawn with probability by squared distance.

    Of several draws the one is taken that leaves the least, as scikit-learn does.
    """
    trials = 2 + int(math.log(r))
    draws = precise(
        torch.rand(r, trials, generator=generator, dtype=torch.float64).to(A)
    )
    first = _drawn(precise(torch.ones_like(A[:, 0])), draws[0, :1])
    seeds = [A[first]]
    distance = precise((A - seeds[0]).square().sum(1))
    for draw in draws[1:]:
        tried = A[_drawn(distance, draw)]
        apart = torch.stack([precise((A - one).square().sum(1)) for one in tried])
        after = torch.minimum(distance, apart)
        best = after.sum(1).argmin(0, keepdim=True)
        seeds.append(tried[best])
        distance = after[best][0]
    return torch.cat(seeds)


def _drawn(weights: Tensor, draws: Tensor) -> Tensor:
    """Return the indices (k,) where the running sum of `weights` (n,) passes parts (k,) of it.

    First among blocks, then inside one: running sums of GPUs differ from time to time, these, by
    products with a triangle, do not.
    """
    width = math.isqrt(len(weights) - 1) + 1
    blocks = torch.nn.functional.pad(weights, (0, width**2 - len(weights))).reshape(
        width, width
    )
    upper = torch.ones_like(blocks).triu()
    sums = blocks.sum(1)
    reach = sums @ upper
    aim = (draws * reach[-1])[:, None]
    block = (reach <= aim).sum(1).clamp(max=width - 1)
    within = (reach - sums)[block][:, None] + blocks[block] @ upper
    inside = (within <= aim).sum(1).clamp(max=width - 1)
    return (block * width + inside).clamp(max=len(weights) - 1)


def _lloyd(A: Tensor, centers: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the centers of Lloyd's iteration and by how much they moved, squared.

    An empty cluster moves to the sample that is farthest from its center.
    """
    while True:
        labels = nearest(A, centers)
        member = one_hot(labels, len(centers))
        count = member.sum(0)
        means = (member.to(A.dtype).mT @ A) / count.clamp(min=1)[:, None]
        sample, moves = next_worst(count == 0, (A - centers[labels]).square().sum(1))
        new = torch.where(moves[:, None], A[sample], means)
        yield new, (new - centers).square().sum()
        centers = new
