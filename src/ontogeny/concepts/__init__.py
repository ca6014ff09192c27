"""Concept extractors: activations A (n, m) to codes U (n, r) and a dictionary W (m, r).

All of them are scikit-learn transformers; NumPy arrays and PyTorch tensors are taken alike.
"""

from .._exports import exported_names, exporter
from .base import Extractor
from .convex import ConvexNMF
from .ica import ICA
from .joint.changes import concept_changes
from .joint.dictionary import JointDictionary
from .kmeans import KMeans
from .nonnegative import NMF, SemiNMF
from .registry import make, names
from .sae import SAE
from .sparse import DictionaryLearning, SparsePCA
from .spectral import PCA, SVD

__all__ = [
    "ConvexNMF",
    "DictionaryLearning",
    "Extractor",
    "ICA",
    "JointDictionary",
    "KMeans",
    "NMF",
    "PCA",
    "SAE",
    "SVD",
    "SemiNMF",
    "SparsePCA",
    "concept_changes",
    "make",
    "names",
    *exported_names("concepts"),
]

__getattr__ = exporter("concepts")
