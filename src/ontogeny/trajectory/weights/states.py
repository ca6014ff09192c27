"""What is noted in the folder of a checkpoint, such as the Hugging Face Trainer's state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRAINER_STATE = "trainer_state.json"


def trainer_state(folder: Path) -> dict[str, Any]:
    """Return the Trainer's state in `folder`; empty if there is none that can be read."""
    return json_table(folder / TRAINER_STATE)


def json_table(path: Path) -> dict[str, Any]:
    """Return the object of JSON in a file; empty if there is none that can be read."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}
