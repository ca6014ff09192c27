"""What was observed during a training: JSON lines beside the checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError

if TYPE_CHECKING:
    import pandas as pd

OBSERVED = "observed.jsonl"


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add one line to the record; one that an interrupted process left half-written is cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(entry, allow_nan=False) + "\n"
    with path.open("ab+") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())


def read_observed(folder: str | Path) -> pd.DataFrame:
    """Return what was observed while a run was recorded, as a tidy table.

    Parameters
    ----------
    folder
        The recorder's folder.

    Returns
    -------
    pandas.DataFrame
        Columns ``step``, ``name`` and ``value``; of a step that was observed twice, the last.

    Raises
    ------
    CheckpointError
        If nothing was observed there.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> append(folder / OBSERVED, {"step": 0, "metrics": {"observed/loss": 3.5}})
    >>> read_observed(folder)
       step           name  value
    0     0  observed/loss    3.5
    """
    import pandas as pd

    path = Path(folder) / OBSERVED
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {OBSERVED}: nothing was observed while it trained.")
    values = {
        (entry["step"], name): value
        for entry in entries(path)
        for name, value in entry.get("metrics", {}).items()
    }
    rows = [(step, name, value) for (step, name), value in sorted(values.items())]
    return pd.DataFrame(rows, columns=["step", "name", "value"])


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the entries of a record; a half-written line is left out."""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            yield entry
