"""Fitting from batches of rows: exact second moments, mini-batches, or a budget of rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from ..arrays import Array, matrix
from ..errors import ArgumentError, check_whole
from .base import Extractor, Solution, as_tensor, give, plain_tensors
from .checks import check_seed
from .linalg import column_gram, leading

__all__ = ["BatchExtractor", "MomentExtractor", "Moments", "fit_batches", "sample_rows"]

SQUARABLE = (1e-140, 1e140)  # largest entries whose squares, summed, are numbers of float64


@dataclass
class Moments:
    """Count, mean (m,) and second moment about the mean (m, m) of the rows seen, in float64."""

    count: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Moments:
        """Return the moments of `rows` (n, m)."""
        rows = rows.double()
        mean = rows.mean(0)
        return cls(len(rows), mean, column_gram(rows - mean))

    def merged(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub and LeVeque 1983)."""
        count = self.count + other.count
        gap = other.mean - self.mean
        weight = self.count * other.count / count
        return Moments(
            count,
            self.mean + gap * (other.count / count),
            self.scatter + other.scatter + weight * torch.outer(gap, gap),
        )

    def about_zero(self) -> Tensor:
        """Return the second moment about zero, ``A^T A``."""
        return self.scatter + self.count * torch.outer(self.mean, self.mean)


class BatchExtractor(Extractor):
    """An extractor that also takes its rows in batches."""

    _fitted_at_once = False

    def reset(self) -> None:
        """Forget the rows that ``fit`` or ``partial_fit`` took in, so that batches start afresh."""
        self._fitted_at_once = False

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Take in further rows `X` (n, m)."""
        raise NotImplementedError

    def fit_transform(
        self, X: Array, y: Any = None, *, init_dictionary: Array | None = None
    ) -> Array:
        """Fit to `X` and return its codes U (n, r); see ``fit``."""
        self.reset()
        codes = super().fit_transform(X, y, init_dictionary=init_dictionary)
        self._fitted_at_once = True
        return codes

    def _check_batch(self, X: Array, *, first: bool) -> Tensor:
        """Return the rows of a batch, checked."""
        self._check_arguments()
        if self._fitted_at_once:
            warnings.warn(
                f"{type(self).__name__}.partial_fit starts afresh: fit keeps nothing of its rows. "
                "Give them to partial_fit as well, or call reset() if they are to be forgotten.",
                stacklevel=4,
            )
            self._fitted_at_once = False
        rows = self._check(X, reset=first)
        largest = float(rows.abs().max())
        if largest and not SQUARABLE[0] < largest < SQUARABLE[1]:
            raise ArgumentError(
                f"the largest entry of a batch must lie between {SQUARABLE[0]:.0e} and "
                f"{SQUARABLE[1]:.0e} (or be 0); it is {largest:.3g}. Multiply X by a constant."
            )
        return rows


class MomentExtractor(BatchExtractor):
    """An extractor whose dictionary is a function of the second moments of A."""

    _moments: Moments | None = None

    def reset(self) -> None:
        """Forget the rows that ``fit`` or ``partial_fit`` took in, so that batches start afresh."""
        super().reset()
        self._moments = None

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Take in further rows `X` (n, m) and refit: exact, whatever the batches.

        The errors are then those of all rows seen, from their second moments; codes come from
        ``transform``. A call of ``fit`` starts afresh. After one, so does ``partial_fit``, with a
        warning: ``fit`` keeps no moments.

        Raises
        ------
        ArgumentError
            If squares of `X` would overflow or vanish in float64.
        NonFiniteError
            If `X` holds NaN or infinity; the rows seen before stay as they are.
        """
        with plain_tensors():
            self._absorb(X)
            self._refit(X)
        return self

    def _absorb(self, X: Array) -> None:
        new = Moments.of(self._check_batch(X, first=self._moments is None))
        self._moments = new if self._moments is None else self._moments.merged(new)

    def _refit(self, like: Array) -> None:
        assert self._moments is not None
        moments = self._moments
        dtype = as_tensor(matrix("X", like)).dtype
        C = self._moment_matrix(moments)
        k = min(self.n_concepts, len(C))
        values, V = leading(C, k)
        eps = torch.finfo(torch.float64).eps
        alive = values > len(C) * eps * values[:1]
        sigma = torch.where(alive, values.clamp(min=0), 0.0).sqrt()
        pad = (0, self.n_concepts - k)
        V = torch.nn.functional.pad(V * alive, pad)
        sigma = torch.nn.functional.pad(sigma, pad)
        solution = self._from_moments(moments, sigma, V)
        solution.canonical(signed=True, ordered=False)
        solution.state["scale"] = sigma.new_ones(1)
        total = float(torch.trace(moments.about_zero()))
        left = float(torch.trace(C)) - float(sigma.square().sum())
        self._keep_cast(solution, dtype, like)
        self.reconstruction_error_ = math.sqrt(max(left, 0.0))
        self.relative_error_ = math.sqrt(max(left, 0.0) / total) if total > 0 else 0.0

    def _keep_cast(self, solution: Solution, dtype: torch.dtype, like: Array) -> None:
        solution.dictionary = solution.dictionary.to(dtype)
        solution.codes = solution.codes.to(dtype)
        if solution.offset is not None:
            solution.offset = solution.offset.to(dtype)
        solution.state = {name: value.to(dtype) for name, value in solution.state.items()}
        blank = solution.dictionary.new_zeros(1, 1, solution.dictionary.shape[1])
        self._keep(solution, blank, 0, like=like)

    def _moment_matrix(self, moments: Moments) -> Tensor:
        """Return the matrix (m, m) whose leading eigenvectors span the dictionary."""
        raise NotImplementedError

    def _from_moments(self, moments: Moments, sigma: Tensor, V: Tensor) -> Solution:
        """Return a solution with one row of zero codes, from singular values and vectors."""
        raise NotImplementedError


def fit_batches(
    extractor: Extractor,
    batches: Iterable[Array],
    *,
    max_tokens: int = 50_000,
    random_state: Any = 0,
) -> Extractor:
    """Fit `extractor` to rows that come in batches and need never lie in memory together.

    SVD and PCA are exact over all rows, k-means takes one pass of mini-batches (small ones are
    put together, so that each has r rows or more); the others are fitted to `max_tokens` rows,
    drawn uniformly from all of them.

    Parameters
    ----------
    extractor
        An extractor; it is fitted in place and returned.
    batches
        Arrays (n_i, m).
    max_tokens
        Rows kept for extractors without ``partial_fit``.
    random_state
        Seed of the rows kept.

    Raises
    ------
    ArgumentError
        If there is no batch, or batches have different numbers of columns.
    NonFiniteError
        If a batch holds NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from ontogeny.concepts import make
    >>> A = np.random.default_rng(0).normal(size=(300, 5))
    >>> streamed = fit_batches(
    ...     make("pca", n_concepts=2), (A[i : i + 50] for i in range(0, 300, 50))
    ... )
    >>> whole = make("pca", n_concepts=2).fit(A)
    >>> bool(np.allclose(streamed.components_, whole.components_))
    True
    """
    if not isinstance(extractor, Extractor):
        raise ArgumentError(f"extractor must be an Extractor; got {type(extractor).__name__}.")
    if not isinstance(extractor, BatchExtractor):
        return extractor.fit(sample_rows(batches, max_tokens, random_state=random_state))
    extractor.reset()
    last: Array | None = None
    if isinstance(extractor, MomentExtractor):
        with plain_tensors():
            for last in _each(batches):
                extractor._absorb(last)
            extractor._refit(last)
        return extractor
    for rows in _joined(batches, extractor.n_concepts):
        extractor.partial_fit(rows)
    return extractor


def _each(batches: Iterable[Array]) -> Iterator[Array]:
    """Yield the batches, of which there must be one."""
    if hasattr(batches, "shape"):
        raise ArgumentError("batches must be an iterable of arrays (n_i, m); got a single one.")
    count = 0
    for count, batch in enumerate(batches, 1):  # noqa: B007
        yield batch
    if count == 0:
        raise ArgumentError("batches must give at least one array; it gave none.")


def _joined(batches: Iterable[Array], least: int) -> Iterator[Array]:
    """Yield the rows of `batches` in their order, at least `least` at a time but for the last."""
    waiting: list[Tensor] = []
    like: Array | None = None
    for like in _each(batches):
        waiting.append(as_tensor(matrix("batch", like)).detach().clone())
        if sum(map(len, waiting)) >= least:
            yield give(_stacked(waiting), like)
            waiting = []
    if waiting:
        yield give(_stacked(waiting), like)


def _stacked(parts: list[Tensor]) -> Tensor:
    """Return the rows of all `parts`, whose numbers of columns must agree."""
    widths = sorted({part.shape[1] for part in parts})
    if len(widths) > 1:
        raise ArgumentError(f"batches must have one number of columns; they have {widths}.")
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def sample_rows(batches: Iterable[Array], max_rows: int, *, random_state: Any = 0) -> Array:
    """Return `max_rows` rows drawn uniformly from all batches (all rows, if there are fewer).

    Every row gets a random key; the rows with the smallest keys are kept, in their order.

    Raises
    ------
    ArgumentError
        If there is no batch, `max_rows` is no whole number of at least 1, or batches have
        different numbers of columns.
    NonFiniteError
        If a batch holds NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> sample_rows([np.zeros((4, 2)), np.ones((4, 2))], 3).shape
    (3, 2)
    """
    check_whole("max_rows", max_rows)
    generator = torch.Generator().manual_seed(int(check_seed(random_state).randint(2**31)))
    kept: Tensor | None = None
    keys = torch.empty(0, dtype=torch.float64)
    like: Array | None = None
    for batch in _each(batches):
        like = matrix("batch", batch)
        rows = as_tensor(like).detach()
        new = torch.rand(len(rows), generator=generator, dtype=torch.float64)
        # A copy, because a stream may hand out the same memory again.
        pool = rows.clone() if kept is None else _stacked([kept, rows])
        keys = torch.cat([keys, new])
        if len(keys) > max_rows:
            chosen = torch.topk(keys, max_rows, largest=False).indices.sort().values
            pool, keys = pool[chosen.to(pool.device)], keys[chosen]
        kept = pool
    assert kept is not None
    return give(kept, like)
