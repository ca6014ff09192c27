"""A trained control: a recorded run once more, on tokens from which less can be learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from ..errors import ArgumentError, check_choice, check_whole
from ..tasks import python_documentation, split_texts
from ..trajectory import Trajectory
from .loop import Progress
from .run import RunSettings, record
from .scrambling import SCRAMBLED


def scrambled(
    run: str | PathLike[str],
    folder: str | PathLike[str],
    kind: str = "nothing",
    texts: Sequence[str] | None = None,
    *,
    random_state: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Trajectory:
    """Train a run of `record_training_run` again on scrambled tokens, and return its trajectory.

    Tokenizer, initial weights, batches, masks, optimiser, schedule and checkpoints are those of
    the run; only which tokens stand in the text differs (`scrambled_tokens`). Special tokens stay
    where they are. What such a run shows too was not learned from the text.

    Parameters
    ----------
    run
        The folder of the run.
    folder
        A new or empty folder for the control.
    kind
        ``"frequencies"`` puts the tokens in random order, so that only how frequent each is can
        be learned; with ``"nothing"`` all are drawn anew, equally likely.
    texts
        Those of the run; `python_documentation` by default.
    random_state
        Seed of the order or of the tokens; that of the run is in its folder.
    device, progress
        As in `record_training_run`.

    Returns
    -------
    Trajectory
        Titled by the kind, such as ``"run (trained on nothing 0)"``.

    Raises
    ------
    ArgumentError
        If `run` is no folder of `record_training_run` or was trained on other texts, the kind is
        unknown, or `folder` is not empty.
    NonFiniteError
        If the training diverges.

    Examples
    --------
    >>> import tempfile
    >>> from ontogeny.training import record_training_run
    >>> texts = [f"{n}: some words about nothing in particular" for n in range(40)]
    >>> sizes = {
    ...     "tokens_per_step": 64,
    ...     "length": 16,
    ...     "vocab_size": 261,
    ...     "layers": 1,
    ...     "width": 16,
    ... }
    >>> run = record_training_run(tempfile.mkdtemp(), texts, steps=4, **sizes)
    >>> control = scrambled(run, tempfile.mkdtemp(), "frequencies", texts)
    >>> control[0].fingerprint == Trajectory.from_folder(run)[0].fingerprint
    True
    >>> control[4].fingerprint == Trajectory.from_folder(run)[4].fingerprint
    False
    """
    check_choice("kind", kind, SCRAMBLED)
    check_whole("random_state", random_state, 0)
    run = Path(run)
    settings, seed, heldout = _recorded(run)
    texts = python_documentation() if texts is None else texts
    if split_texts(texts, settings.heldout)[1] != heldout:
        raise ArgumentError(
            f"texts are not those that {run.name} was trained on: other ones would be held out."
        )
    made = record(folder, texts, settings, seed, device, progress, (kind, random_state))
    return replace(
        Trajectory.from_folder(made),
        title=f"{run.name} (trained on {kind} {random_state})",
    )


def _recorded(run: Path) -> tuple[RunSettings, int, list[str]]:
    """Return the settings and the seed that a run was trained with, and the texts held out."""
    try:
        log = json.loads((run / "training_log.json").read_text(encoding="utf-8"))
        lines = (run / "heldout.jsonl").read_text(encoding="utf-8").split("\n")
        # As they were, with their ends.
        heldout = [json.loads(line) for line in lines if line]
        return RunSettings(**log["settings"]), int(log.get("random_state", 0)), heldout
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArgumentError(
            f"run must be a folder that record_training_run wrote; {run} has no readable "
            f"training_log.json and heldout.jsonl ({error})."
        ) from None
