"""Encoder dynamics: how well activations predict the reference's concepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...arrays import Array, matrix
from ...dynamics.least_norm import Encoder, fit_encoder
from ...errors import ArgumentError
from .code_matching import CodeMatching, match_codes
from .logits import LogitComparison, compare_logits


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
    >>> found = encode(A[:200], A[200:], U[:200], U[200:])
    >>> bool(found.correlation > 0.9), bool(found.kl < 0.2)
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
            raise ArgumentError(f"match must be None, 'each' or a CodeMatching; got {match!r}.")
        match = match_codes(codes, reference)
    if match is not None:
        reference = match.apply(reference)
    comparison = compare_logits(codes, reference, temperature=temperature)
    return Encoding(**vars(comparison), encoder=encoder, codes=codes, matching=match)
