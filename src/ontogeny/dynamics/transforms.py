"""Transform dynamics: the linear map that turns the reference's concepts into a step's."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Array, namespace
from ..distances.pair import as_given, double
from ..distances.rotations import best_rotation
from ..errors import ArgumentError


@dataclass(frozen=True)
class TransformError:
    """What a transform X leaves: of the dictionary, and of the codes that belong to it.

    Parameters
    ----------
    dictionary
        ``|W_t - W_ref X|_F``.
    codes
        ``|U_t - U_ref X^-T|_F``.
    """

    dictionary: float
    codes: float


@dataclass(frozen=True, eq=False)
class Transform:
    """What `transform` found.

    Parameters
    ----------
    matrix
        T (r, r), the least-squares solution of ``W_t = W_ref T`` of least norm.
    error
        ``|U_t - U_ref T^-T|_F``, the report's reconstruction error.
    log_det
        ``log |det T|``; over the singular values that count where `rank` is below r.
    condition
        Largest over smallest singular value of T; at most 1 / eps.
    rank
        Singular values of T that count: those above a `max_condition`-th of the largest.
    general, orthogonal, identity
        What T, the nearest orthogonal map of the dictionaries, and no map at all leave.
    rotation
        That orthogonal map Q (r, r).
    dictionary_norm, codes_norm
        ``|W_t|_F`` and ``|U_t|_F``, to read the errors against.
    """

    matrix: Array
    log_det: float
    condition: float
    rank: int
    general: TransformError
    orthogonal: TransformError
    identity: TransformError
    rotation: Array
    dictionary_norm: float
    codes_norm: float

    @property
    def error(self) -> float:
        """Error of the codes under T."""
        return self.general.codes

    @property
    def pseudo_inverse(self) -> bool:
        """Whether T was too ill-conditioned for an inverse, so that a pseudo-inverse stood in."""
        return self.rank < self.matrix.shape[0]

    @property
    def shares(self) -> dict[str, float]:
        """How the change ``|W_t - W_ref|²`` of the dictionary splits: the three add up to 1.

        ``rotation`` is what the orthogonal map explains, ``deformation`` what T explains beyond
        it, ``outside`` what lies outside the reference concepts' span. All 0 without a change.
        """
        whole = self.identity.dictionary**2
        turned = self.orthogonal.dictionary**2
        residual = self.general.dictionary**2
        if whole == 0:
            return dict.fromkeys(("rotation", "deformation", "outside"), 0.0)
        turned = min(turned, whole)
        residual = min(residual, turned)
        return {
            "rotation": (whole - turned) / whole,
            "deformation": (turned - residual) / whole,
            "outside": residual / whole,
        }


def transform(
    W_t: Array, U_t: Array, W_ref: Array, U_ref: Array, *, max_condition: float = 1e8
) -> Transform:
    """Find the map T with ``W_t = W_ref T``, and how well it also carries the codes over.

    Parameters
    ----------
    W_t, W_ref
        Dictionaries (m, r) of a step and of the reference, NumPy or PyTorch.
    U_t, U_ref
        Their codes (n, r) on the same rows. Only inner products between codes matter, so that
        coordinates in an orthonormal basis of the columns of both serve as well.
    max_condition
        Condition number of T beyond which its pseudo-inverse is taken: singular values below
        ``1 / max_condition`` of the largest count as zero.

    Returns
    -------
    Transform
        The map with its errors, beside those of the best rotation and of no map.

    Raises
    ------
    ArgumentError
        If shapes do not fit or `max_condition` is below 1.
    NonFiniteError
        If an array holds NaN or infinity.

    Notes
    -----
    Bernas (2025), sec. 8.7.2. With ``A = U W^T`` the codes go by ``T^-T``; the report writes
    ``T^-1``. That presumes equal activations at both steps, so that the codes' error also holds
    what the activations changed: read it beside that of the identity and of the rotation.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> W, U, T = (
    ...     rng.normal(size=(20, 3)),
    ...     rng.normal(size=(50, 3)),
    ...     rng.normal(size=(3, 3)),
    ... )
    >>> fit = transform(W @ T, U @ np.linalg.inv(T).T, W, U)
    >>> (
    ...     bool(np.allclose(fit.matrix, T)),
    ...     bool(fit.error < 1e-9),
    ...     bool(fit.identity.codes > 1),
    ... )
    (True, True, True)
    """
    if not max_condition >= 1:
        raise ArgumentError(f"max_condition must be at least 1; got {max_condition!r}.")
    W, matrix = _one("W_t", W_t)
    V, _ = _one("W_ref", W_ref)
    U, _ = _one("U_t", U_t)
    B, _ = _one("U_ref", U_ref)
    _check_shapes(W, U, V, B)
    xp = namespace(W, U, V, B)
    T = _least_squares(V, W, float(xp.finfo(matrix.dtype).eps))
    left, values, right = xp.linalg.svd(T, full_matrices=False)
    largest = float(values[0])
    mask = (values > largest / max_condition) & (values > 0)
    inverse_transposed = (
        left * xp.where(mask, 1.0 / xp.where(mask, values, 1.0), 0.0)
    ) @ right
    Q = best_rotation((W.mT @ V)[None].mT)[0]
    smallest = max(float(values[-1]), largest * float(xp.finfo(W.dtype).eps))
    norm = xp.linalg.matrix_norm
    return Transform(
        matrix=as_given(T, matrix),
        log_det=float(xp.sum(xp.log(values[mask]))),
        condition=largest / smallest
        if smallest > 0
        else 1.0 / float(xp.finfo(W.dtype).eps),
        rank=int(xp.sum(xp.astype(mask, xp.int64))),
        general=TransformError(
            float(norm(W - V @ T)), float(norm(U - B @ inverse_transposed))
        ),
        orthogonal=TransformError(float(norm(W - V @ Q)), float(norm(U - B @ Q))),
        identity=TransformError(float(norm(W - V)), float(norm(U - B))),
        rotation=as_given(Q, matrix),
        dictionary_norm=float(norm(W)),
        codes_norm=float(norm(U)),
    )


def _one(name: str, value: Array) -> tuple[Array, Array]:
    stack, matrix = double(name, value)
    if matrix.ndim != 2:
        raise ArgumentError(
            f"{name} must have 2 dimensions; its shape is {tuple(matrix.shape)}."
        )
    return stack[0], matrix


def _check_shapes(W: Array, U: Array, V: Array, B: Array) -> None:
    for names, first, second in (("W_t and W_ref", W, V), ("U_t and U_ref", U, B)):
        if first.shape != second.shape:
            raise ArgumentError(
                f"{names} must have the same shape; got {tuple(first.shape)} and "
                f"{tuple(second.shape)}."
            )
    if W.shape[1] != U.shape[1]:
        raise ArgumentError(f"W_t has {W.shape[1]} concepts and U_t {U.shape[1]}.")


def _least_squares(V: Array, W: Array, eps: float) -> Array:
    """Return the T of least norm that minimises ``|W - V T|_F``; rounding is no direction."""
    xp = namespace(V)
    left, values, right = xp.linalg.svd(V, full_matrices=False)
    mask = values > eps * max(V.shape) ** 0.5 * xp.linalg.matrix_norm(V)
    inverse = xp.where(mask, 1.0 / xp.where(mask, values, 1.0), 0.0)
    return right.mT @ (inverse[:, None] * (left.mT @ W))
