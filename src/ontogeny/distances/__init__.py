"""How far two dictionaries are from one another.

`distance` and `correlation` by name or each as a function, `compare` for all of them at once.
"""

from .._exports import exported_names, exporter
from .correlations import correlation
from .covariances import bures, grassmann, matrix_log
from .norms import entrywise, frobenius, nuclear, schatten, spectral
from .registry import compare, distance, names
from .rotations import procrustes

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
    *exported_names("distances"),
]

__getattr__ = exporter("distances")
