"""Concept extractors: activations A (n, m) to codes U (n, r) and a dictionary W (m, r).

All of them are scikit-learn transformers; NumPy arrays and PyTorch tensors are taken alike.
"""

from .._exports import exported_names, exporter

# Loaded when they are first used: what reads a finished study fits none, and scikit-learn takes
# half a second.
_ATTRIBUTES = {
    "ConvexNMF": "convex",
    "DictionaryLearning": "sparse",
    "Extractor": "base",
    "ICA": "ica",
    "JointDictionary": "joint.dictionary",
    "KMeans": "kmeans",
    "NMF": "nonnegative",
    "PCA": "spectral",
    "SAE": "sae",
    "SVD": "spectral",
    "SemiNMF": "nonnegative",
    "SparsePCA": "sparse",
    "concept_changes": "joint.changes",
    "make": "registry",
    "names": "registry",
}

__all__ = [*_ATTRIBUTES, *exported_names("concepts")]

__getattr__ = exporter("concepts", _ATTRIBUTES)
