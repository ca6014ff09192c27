"""The structure that a factorisation leaves open."""
