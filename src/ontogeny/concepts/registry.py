"""The extractors by name."""

from __future__ import annotations

import inspect
from typing import Any

from ..errors import check_choice, check_known
from .base import Extractor
from .convex import ConvexNMF
from .ica import ICA
from .kmeans import KMeans
from .nonnegative import NMF, SemiNMF
from .sae import SAE
from .sparse import DictionaryLearning, SparsePCA
from .spectral import PCA, SVD

_EXTRACTORS: dict[str, type[Extractor]] = {
    "nmf": NMF,
    "convex-nmf": ConvexNMF,
    "semi-nmf": SemiNMF,
    "svd": SVD,
    "pca": PCA,
    "sparse-pca": SparsePCA,
    "ica": ICA,
    "kmeans": KMeans,
    "dictionary": DictionaryLearning,
    "sae": SAE,
}


def names() -> tuple[str, ...]:
    """Return the names of all extractors.

    Examples
    --------
    >>> "ica" in names()
    True
    """
    return tuple(_EXTRACTORS)


def extractor_class(name: str) -> type[Extractor] | None:
    """Return the class of an extractor, or None if there is none of this name."""
    return _EXTRACTORS.get(name)


def make(
    name: str, n_concepts: int = 100, random_state: Any = 0, **options: Any
) -> Extractor:
    """Return an unfitted extractor by its name; `options` are its own keyword arguments.

    Raises
    ------
    ArgumentError
        If the name or an option is unknown, or a value is not what it must be.

    Examples
    --------
    >>> make("ica", n_concepts=10, fun="exp")
    ICA(fun='exp', n_concepts=10, random_state=0)
    """
    kind = _EXTRACTORS[check_choice("name", name, _EXTRACTORS)]
    allowed = [
        p
        for p in inspect.signature(kind).parameters
        if p not in ("n_concepts", "random_state")
    ]
    check_known(name, "option", options, allowed)
    made = kind(n_concepts=n_concepts, random_state=random_state, **options)
    made._check_arguments()  # fit() does so too, but here nothing has been computed yet
    return made
