"""Concepts of all steps: their plane, tracks, transforms and Lipschitz ratios."""
