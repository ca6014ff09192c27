"""Geometry that next-token prediction builds: support matrix, SVD concepts, orthants, UFM.

Arrays and text only; embeddings of models are read by :mod:`ontogeny.capture`.
"""

from ._exports import exported_names, exporter

__all__ = [*exported_names("semantics")]

__getattr__ = exporter("semantics")
