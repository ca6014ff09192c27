"""A study's folder: the settings that it was begun with, and which runs are at work in it.

A run with other settings does not join them. Their cells would lie at the same places, each run
would take the other's for stale and compute it again, and neither result would be whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...errors import StoreError
from ...inputs import Inputs
from ...observables import Observable
from ...store import difference, plain
from ...trajectory import Trajectory
from ...whole_files import sweep, write_json
from .claims import claimed, claims_of, held, sweep_claims
from .code import code_of_cell
from .controls import Controls
from .layout import WRITTEN, settings_path
from .settings import Settings, without_reference

AT_WORK = "run-"
AT_END = "end-"
"""What claims of runs at work begin with, and of those that have computed all."""


def frozen_settings(folder: Path | None) -> dict[str, Any]:
    """Return what a folder has frozen; nothing of one that is no study yet.

    Raises
    ------
    StoreError
        If the file is damaged.
    """
    if folder is None or not settings_path(folder).is_file():
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
    return (
        made[0]["steps"] if made and frozen["control_steps"] == controls.steps else ()
    )


@contextmanager
def entered(
    folder: Path,
    rereference: bool,
    choose: Callable[[Mapping[str, Any]], tuple[Settings, Mapping[str, Any]]],
    identity_of: Callable[[Settings], Mapping[str, Any]],
) -> Iterator[Settings]:
    """Make or enter the folder of a study, and be at work in it with the settings that hold there.

    Parameters
    ----------
    folder
        Where.
    rereference
        Whether the reference step is chosen anew.
    choose
        From what is frozen to the settings, and to what is frozen from now on.
    identity_of
        From the settings to what the run is, see `identity`.

    Raises
    ------
    StoreError
        If the folder holds something else, or a run with other settings is at work in it.
    """
    # Listed before it is read: another process may be making the same folder at this moment.
    others = folder.is_dir() and any(p.name[0] != "." for p in folder.iterdir())
    if others and not frozen_settings(folder):
        raise StoreError(
            f"{folder} holds files that are no study; give an empty or a new folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as at_work:
        # The first of several processes freezes them for all.
        with held(folder, "settings"):
            settings, new_settings = choose(
                without_reference(frozen_settings(folder), rereference)
            )
            at_work.enter_context(present(folder, identity_of(settings)))
            write_json(
                settings_path(folder), {"format": "ontogeny-study-1", **new_settings}
            )
        for place in (folder, *folder.glob("runs/*")):
            sweep_claims(place)
        sweep(folder, *WRITTEN)  # what killed workers left half-written
        yield settings


def identity(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
) -> dict[str, Any]:
    """Return what two runs in one folder must agree on, as far as it is known without reading."""
    steps = {
        "reference_step": settings.reference_step,
        "noise_steps": list(settings.noise_steps),
    }
    content = {
        "settings": {**settings.reading(), **steps},
        "inputs": {name: texts.fingerprint for name, texts in inputs.items()},
        "observables": {
            o.name: {"kind": o.kind, "arguments": o.arguments(), **_code_of(o)}
            for o in observables
        },
        "trajectory": trajectory.provenance(),
    }
    return dict(json.loads(json.dumps(plain(content), default=str)))


def _code_of(observable: Observable) -> dict[str, Any]:
    """Return the code and the libraries of an observable's cells, without those of a model."""
    if not observable.needs():
        return {}
    return code_of_cell(
        "LayerCell" if observable.source else "StepCell", observable, observable.needs()
    )


@contextmanager
def present(folder: Path, identity: Mapping[str, Any]) -> Iterator[None]:
    """Be at work in a folder, with what the run is.

    Raises
    ------
    StoreError
        If a run is at work in it that differs in what both have: settings, inputs, checkpoints, or
        arguments of an observable.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with present(folder, {"settings": {"dtype": "float32"}}):
    ...     with present(folder, {"settings": {"dtype": "bfloat16"}}):
    ...         pass
    Traceback (most recent call last):
    ontogeny.errors.StoreError: process ... on ... computes in this folder with other ...
    """
    for claim in claims_of(folder, AT_WORK):
        if changed := conflict(claim.get("identity", {}), identity):
            others = (
                f" and {len(changed) - 1} more differences" if len(changed) > 1 else ""
            )
            raise StoreError(
                f"process {claim['process']} on {claim['machine']} computes in this folder with "
                f"other settings ({changed[0]}{others}). Wait until it has ended, or give another "
                f"folder than {folder}."
            )
    with claimed(folder, f"{AT_WORK}{uuid.uuid4().hex}", {"identity": identity}):
        yield
    sweep_claims(folder)  # those of processes that were killed meanwhile


def conflict(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return one line for each component that both have and in which they differ.

    What only one of them has, such as a further observable or a new step, hurts nobody.

    Examples
    --------
    >>> conflict({"inputs": {"text": "a"}, "x": 1}, {"inputs": {"text": "b"}, "y": 2})
    ['inputs.text: a -> b']
    """
    return difference(_common(one, other), _common(other, one))


def _common(value: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: (item, other[key]) for key, item in value.items() if key in other}
    return {
        key: _common(item, theirs)
        if isinstance(item, Mapping) and isinstance(theirs, Mapping)
        else item
        for key, (item, theirs) in both.items()
    }
