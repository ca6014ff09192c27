"""Non-negative factorisations of activations: NMF and semi-NMF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import ArgumentError, check_choice
from .alternating import alternate
from .base import Extractor
from .halfspace import HalfSpace, best_half_space
from .linalg import least_squares, moments, pseudo_inverse, thin_svd, unit_rows
from .rows import Factor, solve_rows, vanishing
from .solution import Solution
from .tensors import check_stopping, if_read, precise

NONNEGATIVE = Factor("nonnegative")
# Squared length of a combination of unit concepts, against the longest, that counts as nothing.
VANISHED = {torch.float32: 1e-9, torch.float64: 1e-13}
SHIFTED = Factor("nonnegative", shift=True)


def nonnegative_codes(A: Tensor, W: Tensor, *, max_sweeps: int = 200) -> Tensor:
    """Return ``argmin |A - U W^T|`` over ``U >= 0`` (n, r), row by row.

    The start is a function of each row alone, so that where the solution is not unique (more
    concepts than the rank of W) the same row still gets the same codes.
    """
    # Rounding, which decides between equal codes, sees the same layout.
    W = W.mT.contiguous().mT
    G, B, null = _normal_equations(A, W)
    start = _rough_codes(G, B, null[0])
    G = G.to(B.dtype)
    return solve_rows(B, G, start, NONNEGATIVE, null=null, max_sweeps=max_sweeps).mT


def _normal_equations(
    A: Tensor, W: Tensor
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Return ``W^T W`` (precise), ``W^T A^T`` and the combination of concepts that vanishes."""
    G = precise(W).mT @ precise(W)
    return G, W.mT @ A.mT, vanishing(G, VANISHED[A.dtype])


def _rough_codes(G: Tensor, B: Tensor, null: Tensor) -> Tensor:
    """Return least squares codes (r, n), made non-negative at the smallest cost.

    If a positive combination of the concepts (nearly) vanishes, adding it makes the codes
    non-negative at no (or little) loss; the smallest such addition leaves a zero in each column.
    Otherwise negative codes are set to zero.
    """
    null = null.to(B.dtype)
    X = pseudo_inverse(G, max(VANISHED[B.dtype], 1e-7)).to(B.dtype) @ B
    some = (null > 0).any()
    if if_read(some) is not False:
        X = X - torch.where(some, (X / null[:, None]).amin(0), 0.0) * null[:, None]
    return X.clamp(min=0)


@dataclass(eq=False, repr=False, kw_only=True)
class NMF(Extractor):
    """Non-negative matrix factorisation ``A ~ U W^T``, U and W non-negative.

    Solved by block coordinate descent with extrapolation. Canonical form: dictionary columns of
    unit norm, in the order of their energy.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    nonnegative
        What to do with negative activations: None refuses them, ``"relu"`` drops them,
        ``"split"`` factorises ``[A+, A-]`` side by side (the dictionary is then the difference
        of the two parts), ``"shift"`` subtracts each feature's minimum and adds it back.
    max_iter, tol
        Done when ten iterations lower the objective by less than `tol` of itself.
    random_state
        Seed of the random start.

    Attributes
    ----------
    parts_ : array of shape (r, 2 m)
        With ``nonnegative="split"``: the non-negative dictionaries of A+ and of A-.

    References
    ----------
    Lee and Seung, Nature 401 (1999); Ang and Gillis, Neural Computation 31 (2019); report, Def. 18.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.uniform(size=(60, 3)) @ rng.uniform(size=(3, 12))
    >>> nmf = NMF(n_concepts=3, random_state=0).fit(A)
    >>> bool((nmf.components_ >= 0).all() and nmf.relative_error_ < 0.02)
    True
    """

    nonnegative: str | None = None
    max_iter: int = 300
    tol: float = 1e-4

    def _check_options(self) -> None:
        if self.nonnegative is not None:
            check_choice("nonnegative", self.nonnegative, ("relu", "split", "shift"))
        check_stopping(self.max_iter, self.tol)

    def _held(self, n: int, m: int) -> int:
        copies = {None: 0, "relu": 1, "shift": 1, "split": 2}[self.nonnegative]
        # The squares of the activations; each factor, its last value, and the one ahead.
        return (copies + 1) * n * m + 3 * self.n_concepts * (n + m)

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        offset = A.amin(0, keepdim=True) if self.nonnegative == "shift" else None
        P = self._positive(A if offset is None else A - offset)
        if start is None:
            size = (P.mean() / self.n_concepts).sqrt()
            generator = self._generator()
            U = _random(self.n_concepts, P.shape[0], generator, P) * size
            W = _random(self.n_concepts, P.shape[1], generator, P) * size
        else:
            W = unit_rows(self._positive(start.mT, clip=True))
            U = nonnegative_codes(P, W.mT, max_sweeps=5).mT
        fit = alternate(
            P, U, W, NONNEGATIVE, NONNEGATIVE, max_iter=self.max_iter, tol=self.tol
        )
        dictionary = order_by_energy(fit.U, fit.W, keep=start is not None)
        codes = nonnegative_codes(P, dictionary)
        solution = Solution(codes, dictionary, offset, fit.n_iter, fit.converged)
        if self.nonnegative == "split":
            m = A.shape[1]
            solution.state["parts"] = dictionary.mT
            solution.dictionary = dictionary[:m] - dictionary[m:]
        return solution

    def _positive(self, A: Tensor, *, clip: bool = False) -> Tensor:
        """Return the non-negative matrix to factorise for activations `A` (n, m)."""
        if self.nonnegative == "split":
            return torch.cat([A.clamp(min=0), (-A).clamp(min=0)], dim=-1)
        if self.nonnegative is not None or clip:
            return A.clamp(min=0)
        if bool((A < 0).any()):
            raise ArgumentError(
                "Negative values in data passed to NMF; choose nonnegative='relu', 'split' or "
                f"'shift' to say what to do with them (smallest value {float(A.min()):.3g})."
            )
        return A

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        if self.nonnegative == "split":
            W = self._fitted("_parts", A).mT
        return nonnegative_codes(self._positive(A), W)

    @property
    def parts_(self) -> Any:
        """The non-negative dictionaries of A+ and A-, side by side (r, 2 m)."""
        return self._parts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.nonnegative is None
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SemiNMF(Extractor):
    """Semi-NMF ``A ~ U W^T``: one factor non-negative, the other free, for signed activations.

    Canonical form: dictionary columns of unit norm, in the order of their energy. Where the rank
    of A allows, the solution is found as the best subspace of dimension r with codes on one side
    of a hyperplane, which a nearly cancelling combination of concepts makes non-negative; else, or
    from a dictionary without such a combination, by block coordinate descent. Such codes are
    dense: see ``density_``.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    nonnegative
        ``"codes"`` (Ding's form) or ``"dictionary"`` (the report's Def. 20).
    max_iter, tol
        Done when an iteration lowers the objective by less than a tenth of `tol` of itself (in
        descent: ten iterations by less than `tol`).
    random_state
        Here for symmetry with the other extractors; nothing is drawn.

    Attributes
    ----------
    density_ : float
        Fraction of the entries of the non-negative factor that are not zero.

    References
    ----------
    Ding, Li and Jordan, PAMI 32 (2010); Gillis and Kumar, SIAM J. Matrix Anal. 36 (2015);
    report, Def. 20.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.uniform(size=(60, 3)) @ rng.normal(size=(3, 12))
    >>> semi = SemiNMF(n_concepts=3, random_state=0)
    >>> bool((semi.fit_transform(A) >= 0).all() and semi.relative_error_ < 0.01)
    True
    """

    nonnegative: str = "codes"
    max_iter: int = 200
    tol: float = 1e-4

    def _check_options(self) -> None:
        check_choice("nonnegative", self.nonnegative, ("codes", "dictionary"))
        check_stopping(self.max_iter, self.tol)

    def _held(self, n: int, m: int) -> int:
        return moments(n, m)

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        W, n_iter, converged = self._fit(A, start)
        solution = Solution(self._encode(A, W), W, None, n_iter, converged)
        factor = solution.codes if self.nonnegative == "codes" else solution.dictionary
        solution.state["density"] = precise((factor != 0).to(A.dtype)).mean()
        return solution

    def _fit(self, A: Tensor, start: Tensor | None) -> tuple[Tensor, int, bool]:
        """Return the dictionary (m, r), iterations and convergence."""
        positive_codes = self.nonnegative == "codes"
        if positive_codes or start is None:
            side = A if positive_codes else A.mT
            result = best_half_space(
                side, self.n_concepts, start=start, max_iter=self.max_iter, tol=self.tol
            )
            W = None if result is None else self._dictionary(result, side, start)
            if result is not None and W is not None:
                return W.contiguous(), result.n_iter, result.converged
        rules = (SHIFTED, Factor("free"))
        rules = rules if positive_codes else rules[::-1]
        fit = alternate(
            A, *self._start(A, start), *rules, max_iter=self.max_iter, tol=self.tol
        )
        W = order_by_energy(fit.U, fit.W, keep=start is not None)
        return W.contiguous(), fit.n_iter, fit.converged

    def _dictionary(
        self, result: HalfSpace, A: Tensor, start: Tensor | None
    ) -> Tensor | None:
        """Return the dictionary (m, r) of a half-space, in the order of `start` if given."""
        if start is not None:
            return result.continued(unit_rows(start.mT).mT)
        U, W = result.factors()
        if self.nonnegative == "dictionary":
            U = W
            W = nonnegative_codes(A, unit_rows(W).mT).mT
        return order_by_energy(U, W, keep=False)

    def _start(self, A: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a start (r, n), (r, m)."""
        if start is not None:
            W = unit_rows(start.mT)
            if self.nonnegative == "dictionary":
                W = W.clamp(min=0)
                return self._encode(A, W.mT).mT, W
            # Exact codes of the old dictionary take as long as the whole fit from rough ones.
            G, B, null = _normal_equations(A, W.mT)
            return _rough_codes(G, B, null[0]), W
        if self.nonnegative == "codes":
            return shifted_svd(A, self.n_concepts)
        W, U = shifted_svd(A.mT, self.n_concepts)
        return U, W

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        if self.nonnegative == "codes":
            return nonnegative_codes(A, W)
        return least_squares(W.mT, W.mT @ A.mT).mT

    @property
    def density_(self) -> float:
        """Fraction of the entries of the non-negative factor that are not zero."""
        return float(self._density)


def shifted_svd(A: Tensor, r: int) -> tuple[Tensor, Tensor]:
    """Return U (r, n) non-negative and W (r, m) with the error of the rank r - 1 SVD.

    Each left singular vector is shifted by its minimum; one more column of ones takes the shifts
    back (Gillis and Kumar 2015).
    """
    Y, sigma, V = thin_svd(A, max(r - 1, 1))
    left = Y / sigma.clamp(min=1e-30).sqrt()
    right = V * sigma.sqrt()
    low = left.amin(0, keepdim=True).clamp(max=0)
    U = torch.cat([torch.ones_like(left[:, :1]), left - low], 1)
    W = torch.cat([right @ low.mT, right], 1)
    return U.mT[:r].contiguous(), W.mT[:r].contiguous()


def order_by_energy(U: Tensor, W: Tensor, *, keep: bool) -> Tensor:
    """Return the dictionary (m, r) of unit columns, by energy of U (r, n) and W (r, m).

    The order is set before the final codes are solved for, so that ``transform`` repeats them to
    the last bit also where they are not unique. `keep` leaves the concepts in their order.
    """
    energy = U.square().sum(1) * W.square().sum(1)
    W = unit_rows(W)
    return W.mT if keep else W[torch.argsort(energy, descending=True, stable=True)].mT


def _random(r: int, p: int, generator: torch.Generator, like: Tensor) -> Tensor:
    """Return absolute values of Gaussian draws (r, p)."""
    return torch.randn(r, p, generator=generator, dtype=torch.float64).abs().to(like)
