"""How often weight files are opened."""

from collections import Counter
from pathlib import Path

from ontogeny.trajectory.weights import files


def counted_opens(monkeypatch):
    """Return the number of times that safetensors files are opened from now on, by path."""
    opens, open_path, open_checked = Counter(), Path.open, files._safe

    def counting(path, *arguments, **options):
        opens[path] += path.suffix == ".safetensors"
        return open_path(path, *arguments, **options)

    def counting_checked(path):
        opens[path] += 1
        return open_checked(path)

    monkeypatch.setattr(Path, "open", counting)
    monkeypatch.setattr(files, "_safe", counting_checked)
    return opens
