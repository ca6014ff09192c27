"""Figures of a result as every renderer reads them: a specification with the arrays it draws.

Start with `drawable`; `panels`, `scatter`, `words` and `tables` check a specification against its
node and choose what is drawn (which panels, which points, which words) once for all renderers.
"""
