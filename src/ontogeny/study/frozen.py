"""What a study's folder keeps of the settings that it was begun with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..store import sweep, write_json
from .claims import held, sweep_claims
from .controls import Controls
from .layout import WRITTEN, settings_path
from .settings import Settings, without_reference


def frozen_settings(folder: Path | None) -> dict[str, Any]:
    """Return what a folder has frozen; nothing of one that is no study yet.

    Raises
    ------
    StoreError
        If the file is damaged.
    """
    if folder is None or not settings_path(folder).exists():
        return {}
    try:
        frozen = json.loads(settings_path(folder).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{settings_path(folder)} is damaged: {error}") from error
    if not isinstance(frozen, dict) or not frozen:
        raise StoreError(f"{settings_path(folder)} is damaged: it holds no settings.")
    return frozen


def frozen_steps(frozen: Mapping[str, Any], controls: Controls) -> Sequence[int]:
    """Return the steps at which a folder has controls, if as many steps are still asked for."""
    made = [c for c in frozen.get("controls", ()) if c["random_state"] is not None]
    return made[0]["steps"] if made and frozen["control_steps"] == controls.steps else ()


def freeze(
    folder: Path,
    rereference: bool,
    choose: Callable[[Mapping[str, Any]], tuple[Settings, Mapping[str, Any]]],
    enter: Callable[[Settings], object],
) -> Settings:
    """Make or enter the folder of a study, and return the settings that hold in it.

    Parameters
    ----------
    folder
        Where.
    rereference
        Whether the reference step is chosen anew.
    choose
        From what is frozen to the settings, and to what is frozen from now on.
    enter
        Is called with the settings before they are frozen, and may refuse them.

    Raises
    ------
    StoreError
        If the folder holds something else.
    """
    # Listed before it is read: another process may be making the same folder at this moment.
    others = folder.is_dir() and any(p.name[0] != "." for p in folder.iterdir())
    if others and not frozen_settings(folder):
        raise StoreError(f"{folder} holds files that are no study; give an empty or a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder, "settings"):  # the first of several processes freezes them for all
        settings, kept = choose(without_reference(frozen_settings(folder), rereference))
        enter(settings)
        write_json(settings_path(folder), {"format": "ontogeny-study-1", **kept})
    sweep_claims(folder)
    sweep(folder, *WRITTEN)  # what killed workers left half-written
    return settings
