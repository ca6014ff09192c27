"""Concepts of all steps: their plane, their transforms and Lipschitz ratios."""
