"""Where checkpoints come from: a folder, the Hub, or models in memory.

Each way of opening gives the checkpoints by increasing step, and a `Catalogue` of what else is
known. Folders are those that our `Recorder` and the Hugging Face Trainer write
(``checkpoint-500/``), and those with folders named ``step500``, ``step-500`` or ``step_500``, or
with weight files whose names hold the step, as nanoGPT, Lightning and own training loops write.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from torch import Tensor, nn

from ..artefacts import PROBE, known_as
from ..errors import ArgumentError, CheckpointError, TooFewCheckpointsError
from .adapters.opening import (
    IS_BASE,
    adapter_steps,
    find_base,
    not_adapters,
    open_adapters,
    with_base,
)
from .checkpoint import Checkpoint
from .elsewhere import checkpoints_below, elsewhere
from .findings import Finding, some
from .hub.names import Revisions, choose
from .hub.repository import RemoteModel, Repositories, Repository
from .hub.revision import HubWeights
from .order.candidates import (
    LEFT_BEHIND,
    OWN_MODEL,
    ordered,
    step_of_file,
    step_of_folder,
)
from .order.choosing import ASKED, Choice, Order
from .order.readings import NO_STEP
from .record import planned_steps, read_record
from .selection import check_step
from .shapes import are_sizes
from .weights.building import Template
from .weights.configuration import CONFIGURATION
from .weights.files import MemoryWeights, state_tensors
from .weights.folders import find_weights, holds_weights, weight_files
from .weights.formats import own_template
from .weights.inert import plain
from .weights.recognised import unreadable


@dataclass(frozen=True)
class Catalogue:
    """What is known of a folder beside its whole checkpoints.

    Attributes
    ----------
    steps
        All whole checkpoints, also those that a selection leaves out.
    planned
        Steps that the recorder's schedule called for or that it wrote, or None without a recorder.
    incomplete
        ``(step, why)`` of folders without readable weights.
    temporary
        Names of folders that an interrupted save left behind.
    gaps
        ``(step, why)`` of steps that were asked for and do not exist.
    noted
        Findings made when the checkpoints were chosen.
    order, choice
        Of a folder, how its steps were read and what was left out, and what was said of it.
    """

    steps: tuple[int, ...]
    planned: tuple[int, ...] | None = None
    incomplete: tuple[tuple[int, str], ...] = ()
    temporary: tuple[str, ...] = ()
    gaps: tuple[tuple[int, str], ...] = ()
    noted: tuple[Finding, ...] = ()
    order: Order | None = None
    choice: Choice = field(default_factory=Choice)


Opened: TypeAlias = tuple[tuple[Checkpoint, ...], Catalogue]


def open_folder(
    folder: Path,
    model: Template | None,
    choice: Choice | None = None,
    base: str | Path | None = None,
) -> Opened:
    """Return the checkpoints in `folder`, or the one that is this file or this folder.

    Of adapters, step 0 is the base that they name, or the one that is given.

    Raises
    ------
    ArgumentError
        If there is neither a folder nor a file.
    CheckpointError
        If it holds no whole checkpoint, or its steps can be read in two ways.
    """
    choice = choice or Choice()
    if folder.is_file():
        step = step_of_file(folder, choice)
        start = _start(base, model)
        return _one_model(step, folder, model, choice.key, start)
    if not folder.is_dir():
        raise TooFewCheckpointsError(f"{folder} is neither a folder nor a file.")
    start = _start(base, model)
    checkpoints = []
    incomplete = []
    paths, order = ordered(folder, choice)
    adapters = adapter_steps(folder, paths, choice.key)
    if adapters:
        rest = [
            (order.names[step], why)
            for step, why in not_adapters(paths, adapters).items()
        ]
        order = replace(order, left_out=(*order.left_out, *rest))
        adapted, broken = open_adapters(folder, adapters, start, model)
        # Where the folder is the adapter itself, its file needs no step.
        return adapted, _catalogue(adapted, broken, choice, order if paths else None)
    for step, path in paths.items():
        try:
            checkpoints.append(_checkpoint(step, path, folder, model, choice.key))
        except CheckpointError as error:
            # Otherwise it was deleted meanwhile, as the Trainer does with old checkpoints.
            if path.exists():
                incomplete.append((step, str(error)))
    if not checkpoints and not incomplete and _is_model(folder):
        return _one_model(step_of_folder(folder), folder, model, choice.key, start)
    if not checkpoints:
        raise _nothing(folder, incomplete, order)
    _check_is_run(folder, checkpoints, order)
    if start is not None:
        checkpoints = [*with_base(tuple(checkpoints), start)]
    steps = tuple(checkpoint.step for checkpoint in checkpoints)
    temporary = sorted(
        p.name for p in folder.iterdir() if LEFT_BEHIND.fullmatch(p.name)
    )
    planned = planned_steps(read_record(folder), steps[-1])
    catalogue = Catalogue(
        steps,
        planned,
        tuple(incomplete),
        tuple(temporary),
        (),
        _unnumbered(order),
        order,
        choice,
    )
    return tuple(checkpoints), catalogue


def _is_model(folder: Path) -> bool:
    """Return whether a folder is itself a checkpoint; what a study keeps there is none."""
    if not holds_weights(folder):
        return False
    names = {path.name for path in weight_files(folder)}
    return not (known_as(folder) and names == {PROBE})


def _check_is_run(folder: Path, run: Sequence[Checkpoint], order: Order) -> None:
    """Refuse models of several sizes, whose numbers are no steps: each has shapes of its own."""
    if order.guessed and (why := are_sizes(run)):
        raise CheckpointError(
            f"{folder}: {why}. Name one, such as {folder / run[-1].label}, or say "
            f"--step-from '{order.guessed}' if their numbers are steps."
        )


def _catalogue(
    run: tuple[Checkpoint, ...],
    incomplete: tuple[tuple[int, str], ...],
    choice: Choice,
    order: Order | None,
) -> Catalogue:
    """Return what is known of adapters."""
    noted = () if order is None else _unnumbered(order)
    steps = tuple(checkpoint.step for checkpoint in run)
    return Catalogue(steps, None, incomplete, noted=noted, order=order, choice=choice)


def _start(base: str | Path | None, model: Template | None) -> Checkpoint | None:
    return None if base is None else find_base(base, model)


def _checkpoint(
    step: int, path: Path, run: Path, model: Template | None, key: str | None
) -> Checkpoint:
    """Return a checkpoint in the folder `run`; the nearest config.json counts.

    Neither FSDP's nor DeepSpeed's checkpoints have one; the Trainer's run does when it is done.
    """
    weights = find_weights(path, key)
    home = path
    weights.check()
    template = own_template(weights) if model is None else model
    around = (weights.files[0].parent, path, run, run.parent)
    places = [place for place in around if (place / CONFIGURATION).is_file()]
    if template is None and places:
        home = places[0]
    return Checkpoint(step, plain(path.name, 255), home, weights, template)


def _unnumbered(order: Order) -> tuple[Finding, ...]:
    """Return a finding on what looks like a checkpoint and was left out, unasked."""
    expected = (OWN_MODEL, IS_BASE, *ASKED)
    left = [f"{n} ({why})" for n, why in order.left_out if not why.startswith(expected)]
    return (
        (Finding("unnumbered", "certain", (), f"left out: {some(left)}"),)
        if left
        else ()
    )


def _nothing(
    folder: Path, incomplete: list[tuple[int, str]], order: Order
) -> CheckpointError:
    if incomplete:
        step, why = incomplete[0]
        return CheckpointError(
            f"{folder} holds {len(incomplete)} checkpoints but none is whole; step {step}: {why}"
        )
    if folder.name.startswith("models--") and (folder / "snapshots").is_dir():
        name = folder.name.removeprefix("models--").replace("--", "/")
        place = shlex.quote(str(folder.resolve().parent))
        return CheckpointError(
            f"{folder} is the Hub's cache of {name}, which is the name to give, after "
            f"export HF_HUB_CACHE={place}."
        )
    if own := known_as(folder):
        return CheckpointError(f"{folder} is no run but {own}.")
    if below := checkpoints_below(folder):
        names = some([str(path) for path in below])
        return CheckpointError(
            f"{folder} holds no checkpoints itself; name the folder: {names}."
        )
    if (reason := unreadable(folder)) is not None:
        return CheckpointError(f"{folder} {reason}.")
    if unread := [name for name, why in order.left_out if why == NO_STEP]:
        return CheckpointError(
            f"{folder} holds {some(unread)}, whose steps cannot be read; say where in the names "
            "they stand, as --step-from 'v{}', or name one of them."
        )
    return CheckpointError(
        f"{folder} holds no checkpoints; looked for folders named checkpoint-500, step500, "
        "step-500 or step_500 with model.safetensors or pytorch_model.bin inside, for files such "
        "as ckpt_500.pt, step=500.ckpt or 500.safetensors, or a ckpt.pt that holds its step, and "
        "for one model: weights beside a config.json, or a single weight file."
    )


def _one_model(
    step: int,
    path: Path,
    model: Template | None,
    key: str | None,
    base: Checkpoint | None = None,
) -> Opened:
    """Return the one checkpoint that is this file or folder, after its base where one is given."""
    at = step if base is None else max(step, 1)
    one = (_checkpoint(at, path, path.parent, model, key),)
    others = tuple(elsewhere(path)) if path.is_dir() else ()
    run = one if base is None else with_base(one, base)
    order = Order({c.step: c.label for c in run}, left_out=others)
    return run, Catalogue(tuple(order.names), order=order)


def open_hub(
    repository: Repository | Repositories,
    revisions: Revisions | None,
    pattern: str | re.Pattern[str] | None,
    strict: bool,
    model: Template | None,
    trust_remote_code: bool,
) -> Opened:
    """Return the revisions of a repository, or one for each of several repositories.

    Raises
    ------
    ArgumentError, CheckpointError
        As described in `Trajectory.from_hub`.
    """
    commits = repository.commits()
    choice = choose(commits, revisions, pattern, strict, repository.repo)
    checkpoints = []
    for step, (name, tokens) in choice.names.items():
        source = repository.revision(name, commits[name], trust_remote_code)
        template = RemoteModel(source) if trust_remote_code and model is None else model
        checkpoints.append(
            Checkpoint(
                step, name, source.path, HubWeights(source), template, tokens, source
            )
        )
    catalogue = Catalogue(
        tuple(choice.names), gaps=tuple(choice.gaps.items()), noted=choice.noted
    )
    return tuple(checkpoints), catalogue


def open_models(
    models: Mapping[int, nn.Module | Mapping[str, Tensor]], model: Template | None
) -> Opened:
    """Return models in memory, or state dicts that are put into `model`.

    Raises
    ------
    ArgumentError
        If a step is not an integer of at least 0, a value is no module or state dict, or two
        steps share all their tensors.
    """
    if not isinstance(models, Mapping) or not models:
        raise ArgumentError(
            "models must be a dict {step: module or state dict} with at least one step; "
            f"got {type(models).__name__}."
        )
    by_step = {
        check_step("a step of models", step): value for step, value in models.items()
    }
    _check_models(by_step)
    checkpoints = []
    for step, value in sorted(by_step.items()):
        template = value if model is None and isinstance(value, nn.Module) else model
        checkpoints.append(
            Checkpoint(step, f"step {step}", None, MemoryWeights(value), template)
        )
    return tuple(checkpoints), Catalogue(tuple(sorted(by_step)))


def _check_models(models: Mapping[int, object]) -> None:
    """Check that every value is a module or a state dict with tensors of its own."""
    owner: dict[tuple[int, ...], int] = {}
    for step, value in models.items():
        if isinstance(value, nn.Module):
            tensors: Mapping[str, object] = state_tensors(value)
        elif isinstance(value, Mapping):
            tensors = value
        else:
            tensors = {"": None}
        if any(hasattr(tensor, "full_tensor") for tensor in tensors.values()):
            raise ArgumentError(
                f"models[{step}] is shared by several processes, each with a part of its weights; "
                "give {name: tensor.full_tensor()} of its state dict with model=, or load it "
                "without a tp_plan."
            )
        if not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
            raise ArgumentError(
                f"models[{step}] must be an nn.Module or a state dict of tensors; "
                f"got {type(value).__name__}."
            )
        storage = tuple(t.data_ptr() for t in tensors.values() if isinstance(t, Tensor))
        if any(storage) and storage in owner:
            raise ArgumentError(
                f"steps {owner[storage]} and {step} share the same tensors, so they would always "
                "be equal; pass copies, such as copy.deepcopy(model)."
            )
        owner[storage] = step
