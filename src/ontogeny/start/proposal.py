"""A study that fits a run: what was wished, filled in by what one of its checkpoints shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import activity
from ..machine import one_thread
from ..observables import ModelFacts
from ..trajectory import Trajectory
from ..trajectory.audit import early as early_findings
from .asked import not_as_asked
from .complete import check_files
from .draft import Draft
from .opened import Opened
from .presets import FINE_TUNING, ONE_MODEL, Preset, preset_named
from .sets import with_sets
from .shown import look
from .source import is_repository
from .source_tables import classifies
from .wishes import Wishes


@dataclass(frozen=True)
class Proposal:
    """A study file's content, and what it was made of.

    Attributes
    ----------
    available
        Checkpoints that there are.
    lines
        Which they are, in which order, and what is left out.
    texts
        What the texts are, and what too little of them costs.
    """

    wishes: Wishes
    preset: Preset
    content: Mapping[str, Any]
    shown: ModelFacts
    available: int
    lines: Sequence[str]
    texts: Sequence[str] = ()

    @property
    def left_out(self) -> dict[str, str]:
        """Why observables of the preset are not in it, by kind."""
        entries = self.content.get("left_out", ())
        reasons: dict[str, str] = {}
        for entry in entries:
            reasons |= dict.fromkeys(entry["kinds"], entry["why"])
        return reasons

    def left_out_lines(self) -> list[str]:
        """Return for each reason which observables of the preset are left out."""
        return [
            f"left out: {', '.join(entry['kinds'])}, because {entry['why']}"
            for entry in self.content.get("left_out", ())
        ]


@one_thread()
def propose(
    wishes: Wishes,
    folder: Path,
    before: Callable[[Trajectory], None] = lambda _: None,
    agree: Callable[[str], bool] = lambda _: False,
    opened: Opened | None = None,
) -> Proposal:
    """Load one checkpoint and return the study that fits.

    Parameters
    ----------
    wishes
        What was asked for.
    folder
        Where the study file is to stand: its paths are relative to it.
    before
        Called with the chosen checkpoints before the first is loaded, and so perhaps downloaded.
    agree
        Called with what trial passes show of the places that can be learned, where that is not all
        of them; whether these are to be scored.
    opened
        The run that was wished, where it is open already.

    Raises
    ------
    OntogenyError
        If anything that was asked for cannot be; the message says what can.
    """
    early = [arg for arg in wishes.sets if not arg.startswith("observables.")]
    late = [arg for arg in wishes.sets if arg.startswith("observables.")]
    preset_named(wishes.preset)  # wrong names are refused before anything is opened
    check_files(wishes)
    activity.now(f"opening {wishes.source}")
    as_given = wishes
    opened = opened or Opened.of(wishes)
    wishes = opened.wishes
    run = opened.run
    preset = preset_named(_fitting_preset(wishes, run))
    activity.now("reading texts and tokenizer")
    draft = Draft.read(wishes, run, preset, folder, early)
    trajectory = draft.trajectory
    before(trajectory)
    lines = _trajectory_lines(wishes, preset, trajectory, run)
    if opened.others:
        lines.insert(1, opened.others)
    activity.now(
        "looking at the last checkpoint: its layers, losses and attention maps"
    )
    model = look(trajectory[int(trajectory.steps[-1])], draft.first)
    draft.fit(model, agree)
    lines += not_as_asked(early, wishes.max_length, draft.asked_for, draft.content)
    model, of_examples = draft.observe(model)
    lines += of_examples
    final = with_sets(draft.content, late)
    texts = draft.texts_read()
    return Proposal(as_given, preset, final, model, len(run), lines, texts)


def _trajectory_lines(
    wishes: Wishes, preset: Preset, trajectory: Trajectory, run: Trajectory
) -> list[str]:
    """Return which checkpoints are taken of a run, and what an audit finds at once."""
    lines = trajectory.lines()
    if len(trajectory) < len(run) and not wishes.steps:
        thinned = f"preset {preset.name} takes {len(trajectory)}; --steps all takes all"
        lines.insert(1, thinned)
    # Before anything is computed; the audit of the result says the same.
    if not is_repository(wishes.source):
        findings = early_findings(list(trajectory), run.catalogue, run.path)
        lines += [f"audit: {finding.message}" for finding in findings]
    return lines


def _fitting_preset(wishes: Wishes, run: Trajectory) -> str:
    """Return the preset that was asked for; of the standard one, what the run's kind needs."""
    if wishes.preset != "standard":
        return wishes.preset
    if len(run) == 1:
        return ONE_MODEL
    return FINE_TUNING if run.has_base or classifies(run) else wishes.preset
