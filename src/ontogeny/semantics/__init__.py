"""Geometry that next-token prediction builds: support matrix, SVD concepts, orthants, UFM."""
