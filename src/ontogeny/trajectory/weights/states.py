"""What the Hugging Face Trainer notes in the folder of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRAINER_STATE = "trainer_state.json"


def trainer_state(folder: Path) -> dict[str, Any]:
    """Return the Trainer's state in `folder`; empty if there is none that can be read."""
    try:
        state = json.loads((folder / TRAINER_STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}
