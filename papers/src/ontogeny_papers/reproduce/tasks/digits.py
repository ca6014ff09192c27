"""Handwritten digits with STEP imbalance: a few classes with many examples, a few with few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ontogeny.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class ImbalancedDigits:
    """Images with the labels of a few classes, majorities first.

    Parameters
    ----------
    images
        (n, 1, 8, 8) float32, 0 to 1.
    labels
        Class of each image (n,) int64, 0 to classes − 1.
    names
        ``("majority 1", ..., "minority 1", ...)``.
    digits
        The digit of each class.
    """

    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    digits: tuple[int, ...]

    @property
    def S(self) -> np.ndarray:
        """One-hot support (classes, n): each image is a context that one class follows."""
        return (self.labels == np.arange(len(self.names))[:, None]).astype(float)


def imbalanced_digits(
    majorities: Sequence[int] = (0, 1),
    minorities: Sequence[int] = (2, 3),
    *,
    per_majority: int = 100,
    ratio: int = 10,
    random_state: int = 0,
) -> ImbalancedDigits:
    """Draw an imbalanced set of scikit-learn's bundled digits; nothing is downloaded.

    Parameters
    ----------
    majorities, minorities
        Digits 0 to 9, each in one class at most.
    per_majority
        Images of each majority, at most about 174, which is what there is of every digit.
    ratio
        R: each minority has ``per_majority / ratio`` images, rounded, at least one.
    random_state
        Seed of the draw.

    Raises
    ------
    ArgumentError
        If there are too few images.

    Notes
    -----
    After Zhao and Thrampoulidis 2025, Fig. 9, with the 8 × 8 digits of scikit-learn (Alpaydin and
    Kaynak 1998) in place of MNIST.

    Examples
    --------
    >>> data = imbalanced_digits(ratio=20)
    >>> data.images.shape, np.bincount(data.labels).tolist()
    ((210, 1, 8, 8), [100, 100, 5, 5])
    """
    from sklearn.datasets import load_digits

    digits = (*majorities, *minorities)
    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(random_state)
    counts = [per_majority] * len(majorities)
    counts += [max(round(per_majority / ratio), 1)] * len(minorities)
    rows = []
    for digit, count in zip(digits, counts, strict=True):
        there = np.flatnonzero(labels == digit)
        if count > len(there):
            raise ArgumentError(
                f"per_majority={per_majority} is more than the {len(there)} images of a {digit}."
            )
        rows.append(rng.permutation(there)[:count])
    names = [f"majority {i + 1}" for i in range(len(majorities))]
    names += [f"minority {i + 1}" for i in range(len(minorities))]
    places = np.concatenate(rows)
    return ImbalancedDigits(
        (images[places].reshape(-1, 1, 8, 8) / 16).astype(np.float32),
        np.repeat(np.arange(len(digits)), counts),
        tuple(names),
        tuple(int(d) for d in digits),
    )
