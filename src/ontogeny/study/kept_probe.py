"""What was found at the first revision on the Hub, kept in the folder for the next process.

A commit never changes, so that of several processes in a folder, or of one that is started again,
the first one alone downloads the revision to look at it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import xarray as xr

from ..capture import PassKey, WeightBlock
from ..errors import StoreError
from ..inputs import Inputs
from ..needs import Need
from ..observables import Observable
from ..store import Cell, difference, plain, read_cell, write_cell
from ..trajectory import Trajectory
from .claims import held
from .environment import environment
from .layout import probe_path
from .presence import identity
from .probe import Probe, needs_of_steps
from .settings import Settings

_OF_NEEDS = ("reads", "passes", "bytes", "layers")
_PLAIN = (
    "block_bytes",
    "positions",
    "batch_difference",
    "model_class",
    "attention",
    "parameters",
    "stored_bytes",
    "model_bytes",
    "pass_bytes",
    "dtype",
)


def kept_probe(
    folder: Path,
    checkpoint: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    tried: Sequence[Observable],
    examine: Callable[[], Probe],
) -> Probe:
    """Return what `examine` finds, or what a process in this environment has found before.

    Only what is found at a Hub revision is kept, and only if no dry run has failed.

    Parameters
    ----------
    folder
        Of the study.
    checkpoint
        The one that is examined, alone.
    inputs, observables, settings
        Of the study.
    tried
        The observables that are to have had a dry run.
    examine
        Examines the checkpoint.
    """
    if any(each.source is None or each.is_computed for each in checkpoint):
        return examine()
    path, needs = probe_path(folder), needs_of_steps(observables)
    fingerprint = {
        **identity(checkpoint, inputs, observables, settings),
        "needs": [repr(need) for need in needs],
        "weights": settings.weights,
        "environment": environment(settings.device),
    }
    names = {observable.name for observable in tried}
    with held(folder, "probe"):
        if (kept := _read(path, fingerprint, names, needs)) is not None:
            return kept
        found = examine()
        if not found.failures:
            text = json.dumps({"tried": sorted(names), "probe": _encoded(found, needs)})
            write_cell(path, Cell(xr.Dataset(attrs={"found": text}), fingerprint=fingerprint))
        return found


def _read(
    path: Path, fingerprint: Mapping[str, Any], names: set[str], needs: Sequence[Need]
) -> Probe | None:
    """Return what is kept; None where it is damaged, of something else, or without a dry run."""
    try:
        stored = read_cell(path)
        if difference(stored.fingerprint, plain(fingerprint)):
            return None
        content = json.loads(stored.data.attrs["found"])
        return _decoded(content["probe"], needs) if names <= set(content["tried"]) else None
    except (StoreError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _encoded(probe: Probe, needs: Sequence[Need]) -> dict[str, Any]:
    """Return a probe as plain data: what it holds of needs in their order."""
    of_needs = {name: [_plain(getattr(probe, name).get(n)) for n in needs] for name in _OF_NEEDS}
    blocks = {name: asdict(block) for name, block in probe.weight_blocks.items()}
    rest = {name: plain(getattr(probe, name)) for name in (*_PLAIN, "blocks")}
    return {**rest, "of_needs": of_needs, "weight_blocks": blocks}


def _plain(value: Any) -> Any:
    if isinstance(value, PassKey):
        return asdict(value)
    return sorted(value) if isinstance(value, frozenset) else value


def _decoded(content: Mapping[str, Any], needs: Sequence[Need]) -> Probe:
    found = {name: dict(zip(needs, content["of_needs"][name], strict=True)) for name in _OF_NEEDS}
    return Probe(
        reads={n: None if each is None else frozenset(each) for n, each in found["reads"].items()},
        passes={n: _pass_key(each) for n, each in found["passes"].items() if each is not None},
        bytes=found["bytes"],
        layers={n: tuple(each) for n, each in found["layers"].items() if each is not None},
        blocks={node: tuple(names) for node, names in content["blocks"].items()},
        weight_blocks={n: _block(each) for n, each in content["weight_blocks"].items()},
        **{name: content[name] for name in _PLAIN},
    )


def _pass_key(content: Mapping[str, Any]) -> PassKey:
    corruption = content["corruption"]
    return PassKey(**{**content, "corruption": None if corruption is None else tuple(corruption)})


def _block(content: Mapping[str, Any]) -> WeightBlock:
    columns = content["columns"]
    return WeightBlock(
        **{
            **content,
            "shape": tuple(content["shape"]),
            "runs": tuple((first, last) for first, last in content["runs"]),
            "columns": None if columns is None else tuple(columns),
        }
    )
