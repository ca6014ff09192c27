"""Attention maps as they pass through a forward pass, and their entropy."""
