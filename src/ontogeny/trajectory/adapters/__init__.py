"""Runs of fine-tuning: adapters on a base, and a base as step 0."""
