"""Geometry that next-token prediction builds: unconstrained features, scores, predicted orders."""
