"""Which runs are at work in a study's folder: one with other settings does not join them.

Their cells would lie at the same places. Each run would take the other's for stale and compute it
again, and neither result would be whole.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..inputs import Inputs
from ..observables import Observable
from ..store import difference, plain
from ..trajectory import Trajectory
from .claims import claimed, claims_of, sweep_claims
from .settings import Settings

_PREFIX = "run-"


def identity(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
) -> dict[str, Any]:
    """Return what two runs in one folder must agree on, as far as it is known without reading."""
    own = {"reference_step": settings.reference_step, "noise_steps": list(settings.noise_steps)}
    found = {
        "settings": {**settings.reading(), **own},
        "inputs": {name: each.fingerprint for name, each in inputs.items()},
        "observables": {
            o.name: {"kind": o.kind, "version": o.version, "arguments": o.arguments()}
            for o in observables
        },
        "trajectory": trajectory.provenance(),
    }
    return dict(json.loads(json.dumps(plain(found), default=str)))


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
    for claim in claims_of(folder, _PREFIX):
        if changed := conflict(claim.get("identity", {}), identity):
            others = f" and {len(changed) - 1} more differences" if len(changed) > 1 else ""
            raise StoreError(
                f"process {claim['process']} on {claim['machine']} computes in this folder with "
                f"other settings ({changed[0]}{others}). Wait until it has ended, or give another "
                f"folder than {folder}."
            )
    with claimed(folder, f"{_PREFIX}{uuid.uuid4().hex}", {"identity": identity}):
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
