"""Concept extractors: activations A (n, m) to codes U (n, r) and a dictionary W (m, r).

All of them are scikit-learn transformers; NumPy arrays and PyTorch tensors are taken alike.
"""

from __future__ import annotations

from .base import Extractor
from .ica import ICA
from .registry import make, names
from .spectral import PCA, SVD

__all__ = ["Extractor", "ICA", "PCA", "SVD", "make", "names"]
