"""Trajectories of adapters, and of runs whose base is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..weights.building import Template
from ..weights.inert import few, plain
from ..weights.transformers_models import checked_configuration
from .bases import AdaptedModel, find_base, head_size
from .settings import SETTINGS, AdapterSettings, read_settings
from .weights import AdapterWeights, BaseWeights


def adapter_steps(folder: Path, paths: Mapping[int, Path]) -> dict[int, Path]:
    """Return the adapters among the checkpoints of a folder, or the one that it is itself."""
    folders = {step: path for step, path in paths.items() if (path / SETTINGS).is_file()}
    if folders or paths or not (folder / SETTINGS).is_file():
        return folders
    try:
        state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
        step = int(state["global_step"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        step = 1
    return {max(step, 1): folder}


def open_adapters(
    folder: Path, paths: Mapping[int, Path], base: Checkpoint | None, model: Template | None
) -> tuple[Checkpoint, ...]:
    """Return the base as step 0, and a checkpoint for each adapter.

    Raises
    ------
    CheckpointError
        If the base is not found, or the adapters name several.
    """
    settings = {step: read_settings(path) for step, path in sorted(paths.items()) if step}
    if not settings:
        raise CheckpointError(f"{folder} holds no adapter after step 0.")
    bases = sorted({s.base for s in settings.values()})
    if base is None:
        if len(bases) > 1:
            raise CheckpointError(
                f"the adapters in {folder} name several bases: {few(bases)}; select those of one, "
                "or say which with --base (base= in Python)."
            )
        base = find_base(bases[0], model, (folder, folder.parent))
    first = next(iter(settings.values()))
    template = model if model is not None else _template(base, first)
    adapted = [_adapted(step, base, of_step, template) for step, of_step in settings.items()]
    return (based(base, adapted[0]), *adapted)


def with_base(checkpoints: tuple[Checkpoint, ...], base: Checkpoint) -> tuple[Checkpoint, ...]:
    """Return a run with its base as step 0, in place of a step 0 of its own."""
    adapted = tuple(c for c in checkpoints if c.step > 0)
    if not adapted:
        raise CheckpointError("a base is step 0, and the run has no checkpoint after it.")
    return (based(base, adapted[0]), *adapted)


def based(base: Checkpoint, first: Checkpoint) -> Checkpoint:
    """Return the base as step 0 of the run that `first` is the first checkpoint of."""
    weights = BaseWeights(base, first)
    return Checkpoint(0, f"base {base.label}", None, weights, first.template, derived=weights)


def _adapted(
    step: int, base: Checkpoint, settings: AdapterSettings, template: Template | None
) -> Checkpoint:
    label = settings.folder.name
    weights = AdapterWeights(base, settings, label)
    return Checkpoint(step, label, settings.folder, weights, template, derived=weights)


def _template(base: Checkpoint, settings: AdapterSettings) -> Template | None:
    """Return what builds the adapted class; None where it is the base's own."""
    configuration = base.configuration()
    if configuration is None or base.path is None:
        return base.template  # of a GGUF file, which has no config.json
    name = settings.class_name(checked_configuration(base.path))
    if name is None or [name] == configuration.get("architectures"):
        return None
    with settings.files().open() as reader:
        labels = head_size({n: reader.shape(n) for n in reader.names()})
    return AdaptedModel(base.path, plain(name), labels)
