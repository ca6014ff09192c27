"""Observables that only the experiments of the papers use."""
