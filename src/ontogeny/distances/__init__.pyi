# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from .correlations import correlation as correlation
from .covariances import bures as bures
from .covariances import grassmann as grassmann
from .covariances import matrix_log as matrix_log
from .norms import entrywise as entrywise
from .norms import frobenius as frobenius
from .norms import nuclear as nuclear
from .norms import schatten as schatten
from .norms import spectral as spectral
from .registry import compare as compare
from .registry import distance as distance
from .registry import names as names
from .rotations import procrustes as procrustes
from ontogeny.features.activations.similarities import cka as cka
from ontogeny.features.activations.similarities import mutual_neighbours as mutual_neighbours
from ontogeny.features.activations.similarities import pwcca as pwcca
from ontogeny.features.activations.similarities import svcca as svcca

__all__ = [
    "names",
    "distance",
    "frobenius",
    "spectral",
    "nuclear",
    "entrywise",
    "procrustes",
    "schatten",
    "matrix_log",
    "grassmann",
    "bures",
    "correlation",
    "compare",
    "cka",
    "mutual_neighbours",
    "pwcca",
    "svcca",
]

def __getattr__(name: str) -> Any: ...
