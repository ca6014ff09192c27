"""Labelled concepts: whether predictions follow their directions (TCAV)."""
