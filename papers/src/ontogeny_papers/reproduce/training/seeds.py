"""Many seeds of one small run, recorded and resumable; on a GPU all of them in one program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from ontogeny.errors import ArgumentError, StoreError
from ontogeny.recording import Recorder
from ontogeny.store import difference, plain
from ontogeny.training.loop import Loss, Progress, train
from ontogeny.whole_files import write_json, write_whole

from .stacked import OptimizerSettings, StackedModels

_SAVE_EVERY = 500  # steps between two states from which a stopped run goes on


def train_seeds(
    folder: str | PathLike[str],
    build: Callable[[int], nn.Module],
    batches: Callable[[int], Callable[[int], Any]],
    loss: Loss,
    steps: int,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    optimizer: OptimizerSettings | None = None,
    every: int | Sequence[int] = 100,
    vectorise: bool | None = None,
    device: str | torch.device = "cpu",
    settings: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Train one model for each seed and record its checkpoints; a stopped run goes on.

    ``folder/seed-<seed>/`` is a trajectory with ``training_log.json`` beside the checkpoints. The
    optimizer's state is saved every 500 steps, so that a stopped training goes on from there and
    ends with the same bits (on one machine, with the same number of threads).

    Parameters
    ----------
    folder
        New, or the folder of the same training.
    build
        ``build(seed)`` returns the untrained model; PyTorch is seeded with the seed before.
    batches
        ``batches(seed)`` returns a function of the update, counted from 0, that returns its batch.
    loss
        ``loss(model, batch)``; must work under ``torch.vmap`` where seeds are vectorised.
    steps
        Updates.
    seeds
        Whole numbers that differ.
    optimizer
        `OptimizerSettings`.
    every
        Steps between checkpoints, or a list of steps; step 0 and the last are always recorded.
        The same for all seeds of a folder.
    vectorise
        Whether all seeds are trained in one program; None: on a GPU only. On one CPU core it is
        no faster (see ``benchmarks/marker_training.py``).
    device
        Where to train.
    settings
        What else makes this training what it is, as JSON-ready data: noted in the folder and
        compared when it goes on.
    progress
        Called as ``progress(step, steps, loss)``, counted over all seeds.

    Returns
    -------
    list of pathlib.Path
        The trajectories' folders in the order of `seeds`.

    Raises
    ------
    ArgumentError
        If seeds repeat, or `folder` holds another training.
    NonFiniteError
        If a training diverges.

    Examples
    --------
    >>> import tempfile
    >>> def batches(seed):
    ...     return lambda step: torch.ones(4, 2) * (seed + 1)
    >>> folders = train_seeds(
    ...     tempfile.mkdtemp(),
    ...     lambda seed: nn.Linear(2, 1),
    ...     batches,
    ...     lambda model, x: model(x).square().mean(),
    ...     4,
    ...     seeds=[0, 1],
    ...     every=2,
    ... )
    >>> [path.name for path in folders]
    ['seed-0', 'seed-1']
    """
    place = Path(folder)
    seed_list = _check_seeds(seeds)
    how = optimizer or OptimizerSettings()
    together = torch.device(device).type == "cuda" if vectorise is None else vectorise
    recorded = every if isinstance(every, int) else [int(step) for step in every]
    _claim(
        place,
        {
            "steps": steps,
            "every": recorded,
            "optimizer": asdict(how),
            **(settings or {}),
        },
    )
    groups = [seed_list] if together else [[seed] for seed in seed_list]
    for index, group in enumerate(groups):
        waiting = [
            seed for seed in group if not (place / f"seed-{seed}" / _LOG).is_file()
        ]
        if waiting:
            models = [_seeded(build, seed) for seed in waiting]
            _train_group(
                _Group(place, waiting, steps, how, every, torch.device(device)),
                StackedModels(models, loss),
                [batches(seed) for seed in waiting],
                _part(progress, index, len(groups)),
            )
    return [place / f"seed-{seed}" for seed in seed_list]


_LOG = "training_log.json"


@dataclass(frozen=True)
class _Group:
    """Seeds that are trained together, and where."""

    place: Path
    seeds: list[int]
    steps: int
    optimizer: OptimizerSettings
    every: int | Sequence[int]
    device: torch.device

    @property
    def state(self) -> Path:
        return self.place / f".state-{'-'.join(map(str, self.seeds))}.pt"


def _train_group(
    group: _Group,
    stack: StackedModels,
    batches: Sequence[Callable[[int], Any]],
    progress: Progress | None,
) -> None:
    stack.to(group.device)
    stack._template[0].to(group.device)
    before = _restore(group)
    start = before["step"] if before else 0
    optimizer, schedule = group.optimizer.build(stack, group.steps, start)
    if before:
        stack.load_state_dict(before["weights"])
        optimizer.load_state_dict(before["optimizer"])
    every: Any = (
        group.every if isinstance(group.every, int) else [*group.every, group.steps]
    )
    recorders = [
        Recorder(group.place / f"seed-{seed}", every, total=group.steps)
        for seed in group.seeds
    ]
    losses = list(before["losses"]) if before else []

    def batch_losses(module: nn.Module, batch: Any) -> Tensor:
        loss = module(batch)
        losses.append(loss.detach())
        return loss.sum()

    def record(step: int, _: nn.Module) -> None:
        last = step == group.steps
        for index, recorder in enumerate(recorders):
            if last or recorder.schedule.due(step):
                model = stack.model(index)
                recorder.finish(step, model) if last else recorder(step, model)
        if step > start and step % _SAVE_EVERY == 0 and not last:
            _save(group, stack, optimizer, step, losses)

    train(
        stack,
        _stream(batches, start),
        batch_losses,
        group.steps,
        start=start,
        optimizer=optimizer,
        schedule=schedule,
        on_step=[record],
        clip=math.inf,
        device=group.device,
        random_state=group.seeds[0],
        progress=progress,
    )
    _finish(group, torch.stack(losses).cpu().numpy())


def _stream(batches: Sequence[Callable[[int], Any]], start: int) -> Iterator[Any]:
    step = start
    while True:
        drawn = [draw(step) for draw in batches]
        yield pytree.tree_map(lambda *leaves: torch.stack(leaves), *drawn)
        step += 1


def _finish(group: _Group, losses: np.ndarray) -> None:
    """Write each seed's log, which marks it as done, and drop the state."""
    for index, seed in enumerate(group.seeds):
        record = {
            "step": list(range(1, group.steps + 1)),
            "loss": losses[:, index].astype(float).tolist(),
            "seed": seed,
        }
        write_whole(group.place / f"seed-{seed}" / _LOG, json.dumps(record).encode())
    group.state.unlink(missing_ok=True)


def _save(
    group: _Group,
    stack: StackedModels,
    optimizer: Optimizer,
    step: int,
    losses: list[Tensor],
) -> None:
    """Write what a stopped training goes on from."""
    partial = group.state.with_suffix(".partial")
    state = {"weights": stack.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "losses": torch.stack(losses), "step": step}, partial)
    partial.replace(group.state)


def _restore(group: _Group) -> dict[str, Any] | None:
    if not group.state.is_file():
        return None
    try:
        saved = torch.load(group.state, map_location=group.device, weights_only=True)
        return {
            name: saved[name] for name in ("weights", "optimizer", "losses", "step")
        }
    except Exception as error:
        raise StoreError(
            f"{group.state} is damaged ({error}); delete it and the seeds' folders to start anew."
        ) from error


def _seeded(build: Callable[[int], nn.Module], seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(seed)


def _check_seeds(seeds: Sequence[int]) -> list[int]:
    numbers = list(seeds) if isinstance(seeds, Iterable) else [seeds]
    whole = all(
        isinstance(s, int | np.integer) and not isinstance(s, bool) for s in numbers
    )
    if not numbers or not whole or len(set(numbers)) < len(numbers) or min(numbers) < 0:
        raise ArgumentError(
            f"seeds must be different whole numbers from 0 on; got {numbers}."
        )
    return [int(seed) for seed in numbers]


def _claim(place: Path, settings: dict[str, Any]) -> None:
    """Note what is trained in this folder, or compare it with what is noted."""
    path = place / "training.json"
    if not path.is_file():
        if place.is_dir() and any(p.name[0] != "." for p in place.iterdir()):
            raise ArgumentError(f"{place} holds other files; give a new folder.")
        write_json(path, settings)
        return
    changed = difference(json.loads(path.read_text(encoding="utf-8")), plain(settings))
    if changed:
        raise ArgumentError(
            f"{place} holds another training ({'; '.join(changed)}); give another folder."
        )


def _part(progress: Progress | None, index: int, groups: int) -> Progress | None:
    if progress is None:
        return None
    return lambda step, steps, loss: progress(
        index * steps + step, groups * steps, loss
    )
