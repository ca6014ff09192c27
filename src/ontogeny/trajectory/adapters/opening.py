"""Trajectories of adapters and of runs whose base is given, and where such a base is."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..hub.client import resolve_cache
from ..hub.repository import Repository, is_name
from ..hub.revision import HubWeights
from ..weights.announced import announce
from ..weights.building import Template
from ..weights.folders import find_weights, weight_files
from ..weights.formats import own_template
from ..weights.inert import few, plain
from ..weights.states import trainer_state
from .base import AbsentBase, BaseWeights
from .building import template_of
from .mlx import mlx_adapter, mlx_settings
from .settings import FILES, SETTINGS, AdapterSettings, read_settings
from .weights import AdapterWeights

logger = logging.getLogger("ontogeny.trajectory")

IS_BASE = "an adapter at step 0, which is the base"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def adapter_steps(
    folder: Path, paths: Mapping[int, Path], name: str | None = None
) -> dict[int, Path]:
    """Return the folders of the adapters among checkpoints, or that of the one that is here alone.

    `name` is that of an adapter, which peft saves in a folder of its own unless it is the default.

    Raises
    ------
    CheckpointError
        If a checkpoint holds several, and none is named.
    """
    places = {
        step: place for step, path in paths.items() if (place := _place(path, name))
    }
    if places or paths or (place := _place(folder, name)) is None:
        return places
    step = trainer_state(folder).get("global_step")
    return {step if isinstance(step, int) and step > 0 else 1: place}


def _place(path: Path, name: str | None) -> Path | None:
    """Return where the adapter of a checkpoint lies; None where there is none."""
    if mlx_adapter(path):
        return path
    if not path.is_dir():
        return None
    below = {
        place.parent.name: place.parent for place in sorted(path.glob(f"*/{SETTINGS}"))
    }
    if name in below:
        return below[name]
    if (path / SETTINGS).is_file():
        if below:
            names = few(list(below))
            text = f"beside its own adapter, {path} holds others, which --key names: {names}."
            announce(names, text, path)
        if whole := [
            file.name
            for file in weight_files(path)
            if file.name not in FILES and not mlx_adapter(file)
        ]:
            text = (
                f"beside its adapter, {path} holds other weights ({few(whole)}): the adapter on "
                "its base is read. Move adapter_config.json away to read those."
            )
            announce("weights beside an adapter", text, path)
        return path
    if not below or weight_files(path):
        return None
    if len(below) > 1:
        raise CheckpointError(
            f"{path} holds several adapters: {few(list(below))}; say which with --key (key= in "
            "Python)."
        )
    return next(iter(below.values()))


def not_adapters(
    paths: Mapping[int, Path], adapters: Mapping[int, Path]
) -> dict[int, str]:
    """Return which checkpoints of a run of adapters are left out, and why."""
    others = {
        step: "no adapter, as the others are" for step in paths if step not in adapters
    }
    return others | {step: IS_BASE for step in adapters if step == 0}


def open_adapters(
    folder: Path,
    paths: Mapping[int, Path],
    base: Checkpoint | None,
    model: Template | None,
) -> tuple[tuple[Checkpoint, ...], tuple[tuple[int, str], ...]]:
    """Return the base as step 0 with a checkpoint for each adapter, and ``(step, why)`` of others.

    Where the base is not here, what reads it fails.

    Raises
    ------
    CheckpointError
        If the adapters name several bases, or none of them is whole.
    """
    settings = {
        step: mlx_settings(path) or read_settings(path)
        for step, path in sorted(paths.items())
        if step
    }
    incomplete = []
    for step, of_step in list(settings.items()):
        try:
            of_step.files().check()
        except CheckpointError as error:
            incomplete.append((step, str(error)))
            del settings[step]
    if not settings:
        why = (
            incomplete[0][1]
            if incomplete
            else f"{folder} holds no adapter after step 0."
        )
        raise CheckpointError(why)
    first = next(iter(settings.values()))
    base = base or _named_base(folder, list(settings.values()), model)
    template = template_of(base, first) if model is None else model
    places = {step: _checkpoint_of(folder, paths[step]) for step in settings}
    adapted = [
        _adapted(step, places[step], base, s, template) for step, s in settings.items()
    ]
    return (based(base, adapted[0]), *adapted), tuple(incomplete)


def _named_base(
    folder: Path, settings: list[AdapterSettings], model: Template | None
) -> Checkpoint:
    """Return the base that adapters name; one that fails when it is read where it is not here."""
    bases = sorted({(s.base, s.revision) for s in settings})
    if len(bases) > 1:
        names = [name if at == "main" else f"{name} at {at}" for name, at in bases]
        raise CheckpointError(
            f"the adapters in {folder} name several bases: {few(names)}; select those of one, "
            "or say which with --base (base= in Python)."
        )
    name, revision = bases[0]
    try:
        return find_base(name, model, (folder, folder.parent), revision)
    except CheckpointError as error:
        label = plain(Path(name).name) or "(none is named)"
        absent = AbsentBase(str(error))
        return Checkpoint(0, label, None, absent, model or absent)


def with_base(
    checkpoints: tuple[Checkpoint, ...], base: Checkpoint
) -> tuple[Checkpoint, ...]:
    """Return a run with its base as step 0, in place of a step 0 of its own."""
    adapted = tuple(c for c in checkpoints if c.step > 0)
    if not adapted:
        raise CheckpointError(
            "a base is step 0, and the run has no checkpoint after it."
        )
    return (based(base, adapted[0]), *adapted)


def based(base: Checkpoint, first: Checkpoint) -> Checkpoint:
    """Return the base as step 0 of the run that `first` is the first checkpoint of."""
    weights = BaseWeights(base, first)
    return Checkpoint(
        0, f"base {base.label}", None, weights, first.template, derived=weights
    )


def _checkpoint_of(folder: Path, place: Path) -> Path:
    """Return the checkpoint that an adapter is in: it, or the folder around one with a name."""
    return place if folder in (place, place.parent) else place.parent


def _adapted(
    step: int,
    path: Path,
    base: Checkpoint,
    settings: AdapterSettings,
    template: Template | None,
) -> Checkpoint:
    label = plain(path.name, 255)
    weights = AdapterWeights(base, settings, label, template)
    return Checkpoint(step, label, path, weights, template, derived=weights)


def find_base(
    base_name: str | Path,
    model: Template | None,
    beside: tuple[Path, ...] = (),
    revision: str = "main",
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
    revision
        Of the Hub: a branch, a tag or a commit.

    Raises
    ------
    CheckpointError
        If there is neither, or the folder holds no weights.
    """
    base_path = Path(base_name).expanduser()
    places = [base_path, *(folder / base_path for folder in beside)]
    if base_path.is_absolute():  # of the machine that trained it
        places += [folder / base_path.name for folder in beside]
    for path in places:
        if path.exists():
            if base_path.is_absolute() and path != base_path:
                logger.warning(
                    "the base %s is not here; %s is taken for it.", base_path, path
                )
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
        commits = repository.commits()
        if revision not in commits and not _COMMIT.fullmatch(revision):
            raise CheckpointError(f"it has no revision {plain(revision)}")
        commit = commits.get(revision, revision)
    except CheckpointError as error:
        raise CheckpointError(
            f"the base {plain(name)} is not in this folder and cannot be asked for ({error}); say "
            "where it is with --base MODEL (base= in Python)."
        ) from None
    logger.warning(
        "the base of this run is %s on the Hub; it is fetched when it is read.", name
    )
    source = repository.revision(revision, commit)
    return Checkpoint(0, name, source.path, HubWeights(source), model, None, source)
