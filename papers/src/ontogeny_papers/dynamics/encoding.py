"""Encoder dynamics: how well activations predict the reference's concepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ontogeny.arrays import Array, matrix, namespace, numpy_matrix
from ontogeny.distances.matching import assignments
from ontogeny.errors import ArgumentError

from .least_norm import Encoder, fit_encoder
from .logits import LogitComparison, compare_logits


@dataclass(frozen=True, eq=False)
class CodeMatching:
    """A one-to-one assignment of concepts, with signs.

    Parameters
    ----------
    order
        (r,): concept ``order[j]`` of the second fit is concept j of the first.
    signs
        (r,): +1 or -1, so that the matched codes correlate positively.
    correlation
        (r,): absolute correlation of each concept with its match; 0 for a constant code.
    """

    order: np.ndarray
    signs: np.ndarray
    correlation: np.ndarray

    def apply(self, V: Array) -> Array:
        """Return codes of the second fit (n, r) in the order and with the signs of the first."""
        V = matrix("V", V)
        if V.shape[1] != len(self.order):
            raise ArgumentError(
                f"V must have {len(self.order)} columns; it has {V.shape[1]}."
            )
        xp = namespace(V)
        signs = xp.asarray(self.signs, dtype=V.dtype, device=V.device)
        return V[:, xp.asarray(self.order, device=V.device)] * signs


def match_codes(U: Array, V: Array) -> CodeMatching:
    """Match the concepts of V to those of U by the absolute correlation of their codes.

    Parameters
    ----------
    U, V
        Codes (n, r) of two fits on the same rows, such as those of an extractor fitted on other
        data and of one fitted on these rows.

    Raises
    ------
    ArgumentError
        If the shapes differ.

    Notes
    -----
    The assignment maximises the sum of absolute correlations (optimal, not greedy). It fits
    chance as well: match once, where both codes belong to one checkpoint, and use that everywhere.

    Examples
    --------
    >>> U = np.random.default_rng(0).normal(size=(50, 3))
    >>> matching = match_codes(U, np.stack([U[:, 2], -U[:, 0], U[:, 1]], axis=1))
    >>> matching.order.tolist(), matching.signs.tolist()
    ([1, 2, 0], [-1.0, 1.0, 1.0])
    """
    first = _standard("U", U)
    second = _standard("V", V)
    if first.shape != second.shape:
        raise ArgumentError(
            f"U and V must have the same shape (n, r); got {first.shape} and {second.shape}."
        )
    correlation = first.T @ second
    order = assignments(np.abs(correlation)[None])[0]
    best = correlation[np.arange(len(order)), order]
    signs = np.where(best < 0, -1.0, 1.0)
    return CodeMatching(order, signs, np.clip(np.abs(best), 0.0, 1.0))


def _standard(name: str, codes: Array) -> np.ndarray:
    """Return centred columns of length 1; columns that are constant up to rounding become 0."""
    values = numpy_matrix(name, codes)
    size = np.abs(values).max(axis=0)
    values = values / np.where(size > 0, size, 1.0)
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    has_length = length > 1e-14 * len(values) ** 0.5
    return np.where(has_length, centred / np.where(has_length, length, 1.0), 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoding(LogitComparison):
    """What `encode` found: the encoder's test codes compared with the reference's.

    Parameters
    ----------
    encoder
        The linear map that was fitted on the train rows, with its error and convergence.
    codes
        Its codes of the test rows (n_test, r).
    matching
        How the reference's test codes were matched; None where they were taken as they are.
    """

    encoder: Encoder
    codes: Array
    matching: CodeMatching | None


def encode(
    A_train: Array,
    A_test: Array,
    U_train_ref: Array,
    U_test_ref: Array,
    norm: str = "fro",
    *,
    match: str | CodeMatching | None = None,
    temperature: float = 1.0,
    **options: Any,
) -> Encoding:
    """Fit an encoder to the reference's codes on train rows and compare its test codes with them.

    Parameters
    ----------
    A_train, A_test
        Activations (n_train, m) and (n_test, m) of one checkpoint.
    U_train_ref, U_test_ref
        Codes of the reference checkpoint on the same rows, (n_train, r) and (n_test, r).
    norm
        What is minimised on the train rows, see `fit_encoder`.
    match
        None if both reference codes come from one extractor, fitted on the train rows. Where the
        test codes come from another, fitted on the test rows (Algorithm 3), their concepts have
        another order and other signs: give the `CodeMatching` found once at the reference, or
        ``"each"`` to match to these very codes, which flatters every checkpoint.
    temperature
        See `compare_logits`.
    options
        ``ridge``, ``intercept``, ``tol``, ``max_iter`` of `fit_encoder`.

    Raises
    ------
    ArgumentError
        If shapes do not fit or an option is not what it must be.
    NonFiniteError
        If an array holds NaN or infinity.

    Notes
    -----
    Bernas (2025), Algorithm 3. Two controls belong beside it: activations of a model that cannot
    know the concepts (untrained, or another run's), and the codes' rows in random order, which
    shows how well a map of this size fits nothing. The error at the reference itself is zero only
    if its codes are linear in its activations (SVD; with an intercept also PCA and ICA).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, U = rng.normal(size=(300, 6)), rng.normal(size=(300, 3))
    >>> A[:, :3] += 3 * U
    >>> encoding = encode(A[:200], A[200:], U[:200], U[200:])
    >>> bool(encoding.correlation > 0.9), bool(encoding.kl < 0.2)
    (True, True)
    """
    encoder = fit_encoder(A_train, U_train_ref, norm, **options)
    codes = encoder.predict(A_test)
    reference = matrix("U_test_ref", U_test_ref)
    if tuple(reference.shape) != tuple(codes.shape):
        raise ArgumentError(
            f"U_test_ref must have shape {tuple(codes.shape)}, the test rows by the concepts of "
            f"U_train_ref; its shape is {tuple(reference.shape)}."
        )
    if isinstance(match, str):
        if match != "each":
            raise ArgumentError(
                f"match must be None, 'each' or a CodeMatching; got {match!r}."
            )
        match = match_codes(codes, reference)
    if match is not None:
        reference = match.apply(reference)
    comparison = compare_logits(codes, reference, temperature=temperature)
    return Encoding(**vars(comparison), encoder=encoder, codes=codes, matching=match)
