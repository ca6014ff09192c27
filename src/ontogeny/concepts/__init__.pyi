# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from .base import Extractor as Extractor
from .convex import ConvexNMF as ConvexNMF
from .ica import ICA as ICA
from .joint.changes import concept_changes as concept_changes
from .joint.dictionary import JointDictionary as JointDictionary
from .kmeans import KMeans as KMeans
from .nonnegative import NMF as NMF
from .nonnegative import SemiNMF as SemiNMF
from .registry import make as make
from .registry import names as names
from .sae import SAE as SAE
from .sparse import DictionaryLearning as DictionaryLearning
from .sparse import SparsePCA as SparsePCA
from .spectral import PCA as PCA
from .spectral import SVD as SVD

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
]

def __getattr__(name: str) -> Any: ...
