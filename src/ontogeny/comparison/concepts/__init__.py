"""Concepts over the runs of a comparison: those of each run matched, or one dictionary over all."""
