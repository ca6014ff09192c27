"""A stand-in Hub that notes what lies on disk whenever weights are asked for, and how often."""

import os
from collections import Counter
from pathlib import Path

import torch

from helpers.hub_models import REPO, model_files, neox
from helpers.hub_server import StandIn


def snapshots(cache):
    """Return the snapshot folders of a cache that hold weights, wherever below it they lie."""
    folders = (
        Path(f) for f, _, files in os.walk(cache) if any(map(_is_weights, files))
    )
    return [folder for folder in folders if folder.parent.name == "snapshots"]


def suite(steps, folder):
    """Return revisions of one small model whose weights move with the steps."""
    files = model_files(neox(0), folder)
    model, revisions = neox(0), {}
    for i, step in enumerate(steps):
        generator = torch.Generator().manual_seed(i)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.02 * torch.randn(p.shape, generator=generator))
        revisions[f"step{step}"] = {**files, **_weights(model, folder)}
    return revisions


def _weights(model, folder):
    model.save_pretrained(folder)
    name = "model.safetensors"
    return {name: (folder / name).read_bytes()}


class CountedHub(StandIn):
    """Counts, for a cache, the snapshots that hold weights while others are asked for.

    Attributes
    ----------
    beside
        The most snapshots with weights that lay there when weights of another were asked for.
    downloads
        How often the weights of each commit were sent.
    """

    def __init__(self, revisions, cache):
        super().__init__({REPO: revisions})
        self.cache, self.beside, self.downloads = cache, 0, Counter()

    def note(self, kind, line):
        super().note(kind, line)
        if kind == "get" and _is_weights(line):
            commit = line.split("/resolve/")[1].split("/")[0]
            others = [s for s in snapshots(self.cache) if s.name != commit]
            with self._lock:
                self.beside = max(self.beside, len(others))
                self.downloads[commit] += 1


def _is_weights(name):
    return name.endswith(".safetensors")
