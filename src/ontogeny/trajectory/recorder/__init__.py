"""Checkpoints that a training loop or transformers' Trainer writes while it trains."""

from .recorder import Recorder
from .schedule import Schedule, log_steps

__all__ = ["Recorder", "Schedule", "log_steps"]
