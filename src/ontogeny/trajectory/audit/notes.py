"""What was noted when checkpoints were written, against what they hold now.

Bytes alone cannot show that two steps were exchanged. A note can: the digests that a `Recorder`
keeps, those of an earlier audit, or the step in the Trainer's ``trainer_state.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps
from ..order.names import read_name
from ..record import read_record
from ..weights.states import trainer_state


def misplaced(
    folder: Path | None, checkpoints: Sequence[Checkpoint], recorded: Mapping[int, str]
) -> Iterator[Finding]:
    """Yield exchanged, mislabelled and altered checkpoints.

    Parameters
    ----------
    folder
        The run's folder, with the recorder's note if there is one.
    checkpoints
        Those that can be read.
    recorded
        ``{step: fingerprint}`` of an earlier time; counts before the recorder's.
    """
    notes = {**_recorder_digests(folder), **recorded}
    now = {c.step: c.fingerprint for c in checkpoints if c.step in notes}
    wrong = [step for step, digest in now.items() if digest != notes[step]]
    claims = {step: _owner(step, now[step], notes, wrong) for step in wrong}
    yield from _claims(claims, "the digest noted when it was written")
    steps = {_named_step(c): c.step for c in checkpoints}
    claimed = {
        s: other
        for s, other in steps.items()
        if s not in (None, other) and s not in claims
    }
    yield from _claims(claimed, "its trainer_state.json")


def _owner(
    step: int, digest: str, notes: Mapping[int, str], wrong: Sequence[int]
) -> int | None:
    """Return the step that `digest` was noted for; one that lost its own weights before others."""
    owners = sorted(
        other for other, noted in notes.items() if noted == digest and other != step
    )
    return next(
        (other for other in owners if other in wrong), owners[0] if owners else None
    )


def _claims(claims: Mapping[int, int | None], by: str) -> Iterator[Finding]:
    for step, other in sorted(claims.items()):
        if other is None:
            text = f"{{step}} {step} no longer holds what it held by {by}"
            yield Finding("altered", "certain", (step,), text)
        elif claims.get(other) == step:
            if step < other:
                text = f"{join_steps([step, other])} are exchanged, by {by}"
                yield Finding("exchanged", "certain", (step, other), text)
        else:
            text = f"{{step}} {step} holds the weights of {{step}} {other}, by {by}"
            yield Finding("mislabelled", "certain", (step,), text)


def _recorder_digests(folder: Path | None) -> dict[int, str]:
    record = None if folder is None else read_record(folder)
    return {
        int(step): digest
        for step, digest in ((record or {}).get("digests") or {}).items()
    }


def _named_step(checkpoint: Checkpoint) -> int | None:
    """Return the step in the name of a folder of the Trainer, whose state says the true one."""
    path = checkpoint.path
    if path is None or checkpoint.source is not None or not trainer_state(path):
        return None
    number = read_name(checkpoint.label)
    if number is None or number.unit != "step" or not isinstance(number.value, int):
        return None
    return number.value
