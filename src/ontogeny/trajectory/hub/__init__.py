"""Revisions of model repositories on the Hugging Face Hub."""

from .names import UnknownRevisionError
from .revision import HubRevision, HubWeights, NotDownloadedError

__all__ = ["HubRevision", "HubWeights", "NotDownloadedError", "UnknownRevisionError"]
