"""What digests of tensors and files prove."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ...errors import CheckpointError, check_choice
from ..adapters.own import own_tensors
from ..adapters.settings import said_of_itself
from ..checkpoint import Checkpoint
from ..findings import Finding, counted, join_steps, some
from ..hub.repository import list_files
from ..opening import Catalogue
from ..order.readings import NO_STEP
from ..tokenizers import changed_files
from ..weights.configuration import changes
from ..weights.digests import non_finite as non_finite_names
from ..weights.digests import shard_digests
from ..weights.files import Weights, matrix_names
from ..weights.folders import find_weights

_MOST = 20  # checkpoints that a remedy names


def duplicate_groups(checkpoints: Sequence[Checkpoint]) -> list[tuple[int, ...]]:
    """Return the steps of every group of checkpoints with the same weights, byte for byte."""
    groups: dict[object, list[int]] = {}
    for checkpoint in checkpoints:
        groups.setdefault(_content(checkpoint), []).append(checkpoint.step)
    return [tuple(steps) for steps in groups.values() if len(steps) > 1]


def identical(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield every group of checkpoints with the same weights."""
    for steps in duplicate_groups(checkpoints):
        count = f" ({len(steps)} checkpoints)" if len(steps) > 2 else ""
        text = f"{join_steps(steps)} hold the same weights, byte for byte{count}"
        yield Finding("identical", "certain", steps, text)


def _content(checkpoint: Checkpoint) -> object:
    files = checkpoint.file_digests()
    # Under whatever names: shards of an index can be numbered anew.
    if files is not None:
        return tuple(sorted(files.values()))
    return tuple(sorted(checkpoint.digests().items())), str(_adapter(checkpoint))


def shards(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield every shard that several checkpoints share although their other shards differ.

    A shard that all of three or more checkpoints share holds weights that are not trained.
    """
    holders: dict[str, list[tuple[int, str]]] = {}
    contents: dict[int, frozenset[str]] = {}
    for checkpoint in checkpoints:
        files = checkpoint.file_digests()
        parts = shard_digests(checkpoint.weights) if files is None else files
        contents[checkpoint.step] = frozenset(parts.values())
        if len(parts) > 1:
            for name, digest in parts.items():
                holders.setdefault(digest, []).append((checkpoint.step, name))
    different = len(set(contents.values()))
    together: dict[tuple[int, ...], list[str]] = {}
    for places in holders.values():
        steps = tuple(sorted({step for step, _ in places}))
        kinds = len({contents[step] for step in steps})
        if kinds > 1 and not (kinds == different > 2):
            together.setdefault(steps, []).append(places[0][1])
    for steps, names in sorted(together.items()):
        text = f"{join_steps(steps)} share {some(sorted(names))}, byte for byte, and nothing else"
        last = checkpoints[-1].step
        if steps[-1] == last:
            others = join_steps(steps[:-1])
            verb = "carries" if len(steps) == 2 else "carry"
            text = (
                f"{others} {verb} {some(sorted(names))} of the last {{checkpoint}}, {last}, "
                "byte for byte"
            )
        yield Finding("shared-shard", "certain", steps, text)


def non_finite(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield the checkpoints with NaN or infinity in the same tensors, and these."""
    together: dict[tuple[str, ...], list[int]] = {}
    for checkpoint in checkpoints:
        together.setdefault(non_finite_names(checkpoint.weights), []).append(
            checkpoint.step
        )
    together.pop((), None)
    for names, steps in together.items():
        hold = "holds" if len(steps) == 1 else "hold"
        text = f"{join_steps(steps)} {hold} NaN or infinity in {some(names)}"
        yield Finding("non-finite", "certain", tuple(steps), text)


def configuration(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield every step at which config.json, or names, shapes or dtypes of tensors change."""
    advice = None
    for before, after in itertools.pairwise(checkpoints):
        if _same_file(before, after):
            changed = []
        else:
            changed = changes(before.configuration(), after.configuration())
            changed += changes(_adapter(before), _adapter(after))
        if changed:
            text = f"the configuration changes at {{step}} {after.step}: {some(changed, '; ')}"
            yield Finding("configuration", "certain", (after.step,), text)
            continue
        old = _signature(before)
        new = _signature(after)
        if old is not None and new is not None and old != new:
            names = sorted(name for name in old | new if old.get(name) != new.get(name))
            text = f"name, shape or dtype changes at {{step}} {after.step} in {some(names)}"
            if advice is None:  # said once: it is of all of them
                advice = remedy(_by_signature(checkpoints))
                text += advice
            yield Finding("configuration", "certain", (after.step,), text)


def _adapter(checkpoint: Checkpoint) -> dict[str, Any] | None:
    """Return the settings of what is the adapter in a folder, by its own tensors."""
    if checkpoint.derived is not None or checkpoint.path is None:
        return None
    return said_of_itself(checkpoint.path) or None


def remedy(runs: Sequence[Sequence[Checkpoint]]) -> str:
    """Return how all runs in one folder but the longest are left out."""
    rest = [c for c in chain(*runs) if c not in max(runs, key=len)]
    if (
        any(c.path is None or c.source is not None for c in rest)
        or not 0 < len(rest) <= _MOST
    ):
        return ""
    options = " ".join(f"--exclude {shlex.quote(c.label)}" for c in rest)
    if len(runs) == 2:
        return f"; if these are two runs, leave one out: {options}"
    return f"; if these are {len(runs)} runs, keep only the longest: {options}"


def _by_signature(checkpoints: Sequence[Checkpoint]) -> list[list[Checkpoint]]:
    groups: dict[object, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        groups.setdefault(str(_signature(checkpoint)), []).append(checkpoint)
    return list(groups.values())


def never_moving(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield how many matrices are the same in all checkpoints, byte for byte, where some move."""
    if len(checkpoints) < 2 or any(c.file_digests() is not None for c in checkpoints):
        return
    first, *rest = [c.digests() for c in checkpoints]
    with checkpoints[0].open() as reader:
        matrices = matrix_names(reader)
    still = [n for n in matrices if all(digests.get(n) == first[n] for digests in rest)]
    if 0 < len(still) < len(matrices):
        text = (
            f"{len(still)} of {len(matrices)} matrices never move from {{step}} "
            f"{checkpoints[0].step} to {checkpoints[-1].step}: {some(still)}"
        )
        yield Finding("frozen", "certain", (), text)


def _same_file(before: Checkpoint, after: Checkpoint) -> bool:
    """Return whether the Hub lists the same config.json for both (or none), so none is fetched."""
    if before.source is None or after.source is None:
        return False
    return before.source.listing().get("config.json") == after.source.listing().get(
        "config.json"
    )


def _signature(checkpoint: Checkpoint) -> dict[str, tuple] | None:
    if not checkpoint.is_downloaded:
        return None
    with checkpoint.open() as reader:
        return {
            name: (reader.shape(name), reader.dtype(name)) for name in reader.names()
        }


def tokenizer(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield every step at which the tokenizer changes."""
    for before, step, names in changed_files(checkpoints):
        text = f"the tokenizer changes between {{step}}s {before} and {step} ({some(names)})"
        yield Finding("tokenizer", "certain", (step,), text)


RULES = ("mark", "drop", "raise")


def resolve(
    checkpoints: tuple[Checkpoint, ...], on_duplicate: str
) -> tuple[tuple[Checkpoint, ...], tuple[Finding, ...]]:
    """Return the checkpoints to keep, and findings on the others.

    Raises
    ------
    ArgumentError
        If `on_duplicate` is unknown.
    CheckpointError
        With ``"raise"``, if any checkpoints hold the same weights.
    """
    check_choice("on_duplicate", on_duplicate, RULES)
    if on_duplicate == "mark":
        return checkpoints, ()
    list_files(chain.from_iterable(c.hub_revisions for c in checkpoints))
    groups = duplicate_groups(own_tensors(checkpoints))
    if groups and on_duplicate == "raise":
        listed = "; ".join(counted(join_steps(group)) for group in groups)
        raise CheckpointError(f"checkpoints hold the same weights: {listed}.")
    last = checkpoints[-1].step
    dropped: set[int] = set()
    noted = []
    for group in groups:
        base = last if last in group else group[0]
        others = tuple(step for step in group if step != base)
        dropped.update(others)
        verb = "is" if len(others) == 1 else "are"
        text = (
            f"{join_steps(others)} {verb} left out: the same weights as {{step}} {base}, byte "
            "for byte"
        )
        noted.append(Finding("duplicate-dropped", "certain", others, text))
    return tuple(c for c in checkpoints if c.step not in dropped), tuple(noted)


_FILES = 5  # files without a step that are looked at


def copies(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield neighbours with the same weights, and a last checkpoint that is the first."""
    pairs = [*itertools.pairwise(checkpoints)]
    if len(checkpoints) > 2:
        pairs.append((checkpoints[0], checkpoints[-1]))
    for one, other in pairs:
        if _same(one.weights, other.weights):
            steps = (one.step, other.step)
            text = f"{join_steps(steps)} hold the same weights, byte for byte"
            yield Finding("identical", "certain", steps, text)


def without_a_step(
    folder: Path, catalogue: Catalogue, checkpoints: Sequence[Checkpoint]
) -> Iterator[Finding]:
    """Yield what was left out as it has no step, and is a checkpoint that was taken."""
    left_out = () if catalogue.order is None else catalogue.order.left_out
    for name in [name for name, why in left_out if why == NO_STEP][:_FILES]:
        try:
            weights = find_weights(folder / name, catalogue.choice.key)
        except CheckpointError:
            continue
        step = next(
            (c.step for c in checkpoints[::-1] if _same(weights, c.weights)), None
        )
        if step is not None:
            text = f"{name}, which was left out, holds the weights of {{step}} {step}, byte for byte"
            yield Finding("identical", "certain", (step,), text)


def _same(one: Weights, other: Weights) -> bool:
    """Return whether two hold the same tensors; small ones, which any training moves, first."""
    try:
        with one.open() as first, other.open() as second:
            names = sorted(
                first.names(), key=lambda name: torch.Size(first.shape(name)).numel()
            )
            return set(names) == set(second.names()) and all(
                first.shape(name) == second.shape(name)
                and first.dtype(name) == second.dtype(name)
                and torch.equal(first.get(name), second.get(name))
                for name in names
            )
    except CheckpointError:  # the audit of the result says what is wrong with it
        return False
