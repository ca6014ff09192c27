"""Trajectories of adapters and of runs whose base is given, and where such a base is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..hub.client import resolve_cache
from ..hub.repository import Repository, is_name
from ..hub.revision import HubWeights
from ..weights.building import Template
from ..weights.folders import find_weights
from ..weights.formats import own_template
from ..weights.inert import few, plain
from ..weights.states import trainer_state
from ..weights.transformers_models import checked_configuration, named_class
from .settings import SETTINGS, AdapterSettings, read_settings
from .weights import AdapterWeights, BaseWeights

logger = logging.getLogger("ontogeny.trajectory")

_HEADS = ("score.weight", "classifier.weight", "classifier.out_proj.weight", "qa_outputs.weight")


def adapter_steps(folder: Path, paths: Mapping[int, Path]) -> dict[int, Path]:
    """Return the adapters among the checkpoints of a folder, or the one that it is itself."""
    folders = {step: path for step, path in paths.items() if (path / SETTINGS).is_file()}
    if folders or paths or not (folder / SETTINGS).is_file():
        return folders
    step = trainer_state(folder).get("global_step")
    return {step if isinstance(step, int) and step > 0 else 1: folder}


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


def find_base(
    base_name: str | Path, model: Template | None, beside: tuple[Path, ...] = ()
) -> Checkpoint:
    """Return a base as a checkpoint of step 0; of the Hub, nothing but its commit is asked for.

    Parameters
    ----------
    base_name
        A folder or file of weights, or OWNER/NAME.
    model
        Builds the module, for one that is not of transformers.
    beside
        Folders that a relative path may be counted from.

    Raises
    ------
    CheckpointError
        If there is neither, or the folder holds no weights.
    """
    base_path = Path(base_name).expanduser()
    for path in (base_path, *(folder / base_path for folder in beside)):
        if path.exists():
            path = path.resolve()
            weights = find_weights(path)
            template = own_template(weights) if model is None else model
            return Checkpoint(0, path.name, path, weights, template)
    name = str(base_name)
    if not is_name(name) and not (name and name == base_path.name and name.isascii()):
        raise CheckpointError(
            f"the base {plain(name) or '(none is named)'} is no folder here and no OWNER/NAME of "
            "the Hub; say where it is with --base MODEL (base= in Python)."
        )
    repository = Repository(name, resolve_cache(None))
    try:
        commit = repository.commits()["main"]
    except (CheckpointError, KeyError) as error:
        raise CheckpointError(
            f"the base {plain(name)} is not in this folder and cannot be asked for ({error}); say "
            "where it is with --base MODEL (base= in Python)."
        ) from None
    logger.warning("the base of this run is %s on the Hub; it is fetched when it is read.", name)
    source = repository.revision("main", commit)
    return Checkpoint(0, name, source.path, HubWeights(source), model, None, source)


@dataclass(frozen=True)
class AdaptedModel:
    """Builds the class that was adapted, where the base's own class is another."""

    folder: Path
    class_name: str
    labels: int | None

    def __call__(self) -> nn.Module:
        """Return the module, with untrained weights.

        Raises
        ------
        CheckpointError
            If transformers has no such class.
        """
        cls: Any = named_class(self.class_name)
        config = checked_configuration(self.folder, cls)
        if self.labels is not None:
            config.num_labels = self.labels
        return cls(config)


def head_size(shapes: dict[str, tuple[int, ...]]) -> int | None:
    """Return how many labels the head has that an adapter holds, or None without one.

    Examples
    --------
    >>> head_size({"score.weight": (3, 8)}), head_size({"lm_head.weight": (50, 8)})
    (3, None)
    """
    return next((shape[0] for n, shape in shapes.items() if n.endswith(_HEADS)), None)
