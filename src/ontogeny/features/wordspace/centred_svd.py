"""The leading singular triplets of a matrix whose columns are centred, without forming it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

METHODS = ("auto", "dense", "gram", "lanczos")

# A dense SVD up to this many entries, the Gram matrix up to this many rows, Lanczos beyond.
DENSE_ENTRIES = 1_000_000
GRAM_ROWS = 2000
# Below this share of the matrix's norm a singular value is rounding, not a concept: the Gram matrix
# holds squares, of which float64 keeps sixteen digits.
NEGLIGIBLE = {"dense": 1e-12, "gram": 1e-6, "lanczos": 1e-7}
# Entries this near to the largest one count as equal to it where signs are fixed, so that rounding
# does not choose among ties.
TIE = 1e-6


def centred_svd(
    A: Any, k: int, method: str = "auto", random_state: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, sigma and V of `A` minus its column means: `k` triplets, or its rank.

    Examples
    --------
    >>> U, sigma, V = centred_svd(np.array([[1.0, 0], [0, 1]]), k=2)
    >>> sigma, U.shape, V.shape
    (array([1.]), (2, 1), (2, 1))
    """
    if method == "auto":
        method = _method(A.shape, k)
    triplets = {"dense": _dense, "gram": _gram, "lanczos": _lanczos}[method]
    U, sigma, V = triplets(Centred(A), min(int(k), *A.shape), random_state)
    is_large = sigma > NEGLIGIBLE[method] * max(_norm(A), np.finfo(float).tiny)
    U = U[:, is_large]
    sigma = sigma[is_large]
    V = V[:, is_large]
    signs = column_signs(U)
    return U * signs, sigma, V * signs


def column_signs(U: np.ndarray) -> np.ndarray:
    """Return the signs which make the largest entry of each column positive, the first of equals.

    Examples
    --------
    >>> column_signs(np.array([[-0.6, 0.8], [0.8, -0.8]]))
    array([1., 1.])
    """
    if not U.size:
        return np.ones(U.shape[1])
    size = np.abs(U)
    first = (size >= (1 - TIE) * size.max(0)).argmax(0)
    return np.where(U[first, np.arange(U.shape[1])] < 0, -1.0, 1.0)


class Centred:
    """The matrix minus its column means, as products that never form it."""

    def __init__(self, A: Any) -> None:
        self.A = A
        self.means = np.asarray(A.sum(0)).reshape(-1) / A.shape[0]
        self.shape = A.shape

    def times(self, X: np.ndarray) -> np.ndarray:
        """Return the centred matrix times `X`."""
        return self.A @ X - self.means @ X

    def transposed_times(self, X: np.ndarray) -> np.ndarray:
        """Return the transposed centred matrix times `X`."""
        return self.A.T @ X - np.multiply.outer(self.means, X.sum(0))

    def is_zero(self) -> bool:
        """Return whether nothing but rounding is left after centring."""
        total = _norm(self.A) ** 2
        return total - self.shape[0] * self.means @ self.means <= 1e-14 * total

    def dense(self) -> np.ndarray:
        """Return the centred matrix itself."""
        return (self.A.toarray() if sparse.issparse(self.A) else self.A) - self.means


def _dense(A: Centred, k: int, _: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    U, sigma, Vt = np.linalg.svd(A.dense(), full_matrices=False)
    return U[:, :k], sigma[:k], Vt[:k].T


def _gram(A: Centred, k: int, _: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvectors of the smaller Gram matrix; the other side and sigma by one product."""
    rows, columns = A.shape
    if rows <= columns:
        U = _leading(_double_centred(_product(A.A)), k)
        V = A.transposed_times(U)
    else:
        # 1^T S~ = 0, so S^T S~ = S~^T S~.
        V = _leading(_product(A.A.T) - rows * np.outer(A.means, A.means), k)
        U = A.times(V)
    image = V if rows <= columns else U
    sigma = np.linalg.norm(image, axis=0)
    image = image / np.maximum(sigma, np.finfo(float).tiny)
    return (U, sigma, image) if rows <= columns else (image, sigma, V)


def _product(A: Any) -> np.ndarray:
    product = A @ A.T
    return product.toarray() if sparse.issparse(product) else product


def _double_centred(gram: np.ndarray) -> np.ndarray:
    gram = gram - gram.mean(0)
    return gram - gram.mean(1, keepdims=True)


def _leading(gram: np.ndarray, k: int) -> np.ndarray:
    return np.linalg.eigh((gram + gram.T) / 2)[1][:, ::-1][:, :k]


def _lanczos(
    A: Centred, k: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    operator = LinearOperator(
        A.shape,
        matvec=lambda x: A.times(x.reshape(-1)),
        rmatvec=lambda x: A.transposed_times(x.reshape(-1)),
        matmat=A.times,
        rmatmat=A.transposed_times,
        dtype=np.float64,
    )
    if k >= min(A.shape) or A.is_zero():  # what ARPACK cannot do
        return _gram(A, k, seed)
    start = np.random.default_rng(seed).normal(size=min(A.shape))
    U, sigma, Vt = svds(operator, k=k, v0=start)
    order = np.argsort(-sigma, kind="stable")
    return U[:, order], sigma[order], Vt[order].T


def _method(shape: tuple[int, int], k: int) -> str:
    if shape[0] * shape[1] <= DENSE_ENTRIES:
        return "dense"
    return "gram" if min(shape) <= GRAM_ROWS or k >= min(shape) - 1 else "lanczos"


def _norm(A: Any) -> float:
    """Return the Frobenius norm of A before centring: what rounding is measured against."""
    return float(np.linalg.norm(A.data if sparse.issparse(A) else A))
