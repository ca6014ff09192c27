"""How far two dictionaries are from one another, and what brings them together.

`distance` and `correlation` by name or each as a function, `compare` for all of them at once,
`pairwise` for all pairs of a stack, `align` for the best permutation, sign, scale, rotation or
invertible map, `tracks` for concepts that live through several steps.
"""

from .align import Alignment, align, alignment_residual
from .chance import MatchingLevel, matching_level
from .compare import compare
from .correlations import correlation
from .covariances import bures, matrix_log
from .equivalence import Equivalence, equivalence
from .norms import entrywise, frobenius, nuclear, schatten, spectral
from .pairs import pairwise
from .plane import concept_plane
from .registry import distance, names
from .rotations import procrustes
from .similarity import cka, cka_of_grams, mutual_neighbours, pwcca, svcca
from .subspaces import grassmann
from .tracks import tracks

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
    "pairwise",
    "align",
    "Alignment",
    "alignment_residual",
    "equivalence",
    "Equivalence",
    "matching_level",
    "MatchingLevel",
    "tracks",
    "concept_plane",
    "cka",
    "cka_of_grams",
    "svcca",
    "pwcca",
    "mutual_neighbours",
]
