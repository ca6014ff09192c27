"""What is provably or probably wrong with the checkpoints of a run.

Digests, names and notes prove things (`digests`, `notes`, `missing`); numbers raise suspicions
(`numbers`, `losses`). Of Hub revisions the listings are enough for the first kind: no weights are
fetched, and the numbers of those that are on this machine anyway are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ...errors import CheckpointError
from ...machine import one_thread
from ..adapters.own import own_tensors, unread_adapters
from ..checkpoint import Checkpoint
from ..findings import Finding, Findings, counted
from ..hub.repository import list_files
from ..opening import Catalogue
from .copied_tensors import copied
from .digests import (
    configuration,
    copies,
    identical,
    never_moving,
    non_finite,
    resolve,
    shards,
    tokenizer,
    without_a_step,
)
from .loss_values import losses
from .missing_steps import holes, left_behind, missing
from .notes import misplaced
from .run_branches import branches
from .several_runs import restarts
from .weight_values import numbers

__all__ = ["audit", "early", "holes", "resolve"]


@one_thread()
def audit(
    checkpoints: Sequence[Checkpoint],
    catalogue: Catalogue,
    folder: Path | None,
    recorded: Mapping[int, str],
) -> Findings:
    """Return the findings on the checkpoints: first on weights, then on what is around them.

    Within a kind they are in the order of their steps. Of adapters their own tensors are looked at:
    no base is needed for that.

    Parameters
    ----------
    checkpoints
        Those of the trajectory, increasing.
    catalogue
        What else is known of the run, `folder` its folder if it has one.
    recorded
        ``{step: fingerprint}`` of an earlier time.
    """
    reach = (checkpoints[0].step, checkpoints[-1].step)
    whole = checkpoints
    checkpoints = own_tensors(checkpoints)
    list_files(chain.from_iterable(c.hub_revisions for c in checkpoints))
    checkpoints, findings = _readable(checkpoints)
    steps = {checkpoint.step for checkpoint in checkpoints}
    whole = [checkpoint for checkpoint in whole if checkpoint.step in steps]
    findings.extend(unread_adapters(whole))
    here = [c for c in checkpoints if c.is_downloaded]
    of_shards = list(shards(checkpoints))
    of_tensors = _unexplained(copied(here), of_shards)
    findings.extend([*identical(checkpoints), *of_shards, *of_tensors])
    findings.extend(never_moving(checkpoints))
    findings.extend(misplaced(folder, whole, recorded))
    findings.extend(branches(folder, checkpoints))
    for check in (non_finite, restarts):
        findings.extend(check(here))
    explained = set().union(*(finding.steps for finding in of_tensors))
    findings.extend(numbers(here, explained))
    findings.extend(losses(folder, checkpoints))
    for check in (configuration, tokenizer):
        findings.extend(check(checkpoints))
    findings.extend(missing(catalogue, reach))
    findings.extend(left_behind(catalogue))
    return Findings(_worded(findings, catalogue, folder))


@one_thread()
def early(
    checkpoints: Sequence[Checkpoint],
    catalogue: Catalogue | None = None,
    folder: Path | None = None,
) -> list[Finding]:
    """Return what is seen before anything is computed: several runs, branches and copies.

    Checkpoints that cannot be read are left out: the audit of the result says so.

    Parameters
    ----------
    checkpoints
        Those of the trajectory, increasing.
    catalogue
        What else is known of the run, in its `folder`; None looks at the checkpoints alone.
    """
    readable = [c for c in own_tensors(checkpoints) if _opens(c)]
    findings = [*configuration(readable), *restarts(readable), *copies(readable)]
    findings += branches(folder, readable)
    if catalogue is not None and folder is not None:
        findings += without_a_step(folder, catalogue, readable)
    return _worded(findings, catalogue, folder)


def _unexplained(found: Iterable[Finding], shared: Sequence[Finding]) -> list[Finding]:
    """Return findings on tensors of steps that share no shard, which says the same."""
    return [f for f in found if not any(set(f.steps) <= set(s.steps) for s in shared)]


def _worded(
    findings: Sequence[Finding], catalogue: Catalogue | None, folder: Path | None
) -> list[Finding]:
    """Return findings with names for paths in the run's folder, in what its steps count."""
    order = None if catalogue is None else catalogue.order
    unit = "step" if order is None else order.unit.removesuffix("s")
    texts = [finding.message.replace(f"{folder}/", "") for finding in findings]
    texts = [counted(text, unit) for text in texts]
    return [replace(f, message=text) for f, text in zip(findings, texts, strict=True)]


def _opens(checkpoint: Checkpoint) -> bool:
    try:
        checkpoint.configuration()
        with checkpoint.open():
            return True
    except CheckpointError:
        return False


def _readable(
    checkpoints: Sequence[Checkpoint],
) -> tuple[list[Checkpoint], list[Finding]]:
    """Return the checkpoints that can be read, and a finding for each other one."""
    readable = []
    broken = []
    for checkpoint in checkpoints:
        try:
            _ = checkpoint.fingerprint
            if checkpoint.source is None:
                checkpoint.configuration()
            elif checkpoint.is_downloaded:
                checkpoint.digests()
        except CheckpointError as error:
            text = f"{{step}} {checkpoint.step} cannot be read: {error}"
            broken.append(Finding("unreadable", "certain", (checkpoint.step,), text))
        else:
            readable.append(checkpoint)
    return readable, broken
