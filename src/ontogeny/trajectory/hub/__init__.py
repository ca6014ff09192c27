"""Revisions of model repositories on the Hugging Face Hub."""
