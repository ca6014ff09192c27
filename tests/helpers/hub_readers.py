"""What worker processes do with a bounded trajectory."""

import os
from pathlib import Path


def read(trajectory, cache, step):
    """Load a step's model; return how many revisions were on disk while its tensors were open."""
    trajectory[step].model()
    with trajectory[step].open():
        return sum(
            bool(files) and Path(folder).parent.name == "snapshots"
            for folder, _, files in os.walk(cache)
        )
