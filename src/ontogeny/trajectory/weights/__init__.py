"""Weights of one checkpoint: reading and writing files, digests, and modules that hold them."""
