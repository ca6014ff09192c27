"""A study of a run that is still training: again whenever checkpoints have landed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import (
    ArgumentError,
    CheckpointError,
    LayerMatchError,
    OntogenyError,
    check_number,
    check_whole,
)
from ..report.page.live import Live
from ..trajectory import Trajectory
from ..trajectory.landing import Landing, Look
from .progress import Progress, Silent
from .results.study_result import StudyResult
from .running.executors import Submitting
from .speaking import say
from .study import Study

FEWEST = 3  # with fewer checkpoints there are no curves to show


def watch(
    open_study: Callable[[], Study],
    folder: str | Path,
    *,
    every: float = 60.0,
    settle: float = 5.0,
    until: int | None = None,
    patience: float | None = None,
    page: str | Path | None = None,
    executor: Submitting | None = None,
    progress: Progress | None = None,
    keep_going: bool = False,
) -> StudyResult:
    """Study a run while it trains, rewrite its page, and return the result when it has ended.

    A round begins when checkpoints have landed, the first one when there are three. Until the
    training has ended, distances are measured to the first step, and noise floors and control runs
    are left out: they depend on all steps. The last round is the study as `open_study` gives it, as
    if it had been made afterwards.

    The training has ended when a `Recorder` says so or has the last step that it was told of, when
    the Hugging Face Trainer's last checkpoint is that of ``max_steps``, or as `until` and
    `patience` say. Ctrl-C ends the watch before that; the page then says that it is provisional.
    What fails in one round is said, and tried again in the next.

    Parameters
    ----------
    open_study
        Gives the study of the folder as it is now; called in each round.
    folder
        The study's folder. A watch that was stopped goes on where it was.
    every
        Seconds between two looks at the folder of the checkpoints.
    settle
        Seconds for which the files of a checkpoint must stand still before it is read. What a
        `Recorder` wrote is whole at once.
    until
        A step; the training has ended when it, or a later one, is there.
    patience
        Seconds without a new checkpoint after which the training has ended.
    page
        The page; ``report.html`` in `folder` by default.
    executor, progress, keep_going
        As in `Study.run`.

    Raises
    ------
    ArgumentError
        If an argument is not what it must be, or a study cannot be made in the first round.

    Examples
    --------
    >>> import tempfile, torch, ontogeny as og
    >>> where = tempfile.mkdtemp()
    >>> record, model = (
    ...     og.Recorder(f"{where}/run", every=1, total=2),
    ...     torch.nn.Linear(4, 4),
    ... )
    >>> for step in (0, 1, 2):
    ...     with torch.no_grad():
    ...         _ = model.weight.add_(
    ...             torch.randn(4, 4, generator=torch.manual_seed(step))
    ...         )
    ...     _ = record(step, model)
    >>> def study():
    ...     run = og.Trajectory.from_folder(f"{where}/run", model=model)
    ...     return og.Study(
    ...         run, og.Inputs.from_tokens([[1, 2]]), [og.observables.WeightChange()]
    ...     )
    >>> result = og.study.watch(
    ...     study, f"{where}/study", every=1
    ... )  # the training has ended
    >>> result["weight-change"].step.values
    array([0, 1, 2])
    """
    check_number("every", every, 0, above=True)
    check_number("settle", settle, 0)
    if until is not None:
        check_whole("until", until, 0)
    if patience is not None:
        check_number("patience", patience, 0, above=True)
    path = Path(folder)
    page = path / "report.html" if page is None else Path(page)
    run = partial(
        Study.run,
        folder=path,
        executor=executor,
        progress=progress or Silent(),
        rereference=True,
        keep_going=keep_going,
    )
    return _Watch(
        open_study, run, page, every, settle, until, patience, progress or Silent()
    ).run()


@dataclass
class _Watch:
    """Looks at the folder until the training has ended; see `watch`.

    Attributes
    ----------
    shown
        What the page shows, as long as it is provisional.
    """

    open_study: Callable[[], Study]
    run_study: Callable[[Study], StudyResult]
    page: Path
    every: float
    settle: float
    until: int | None
    patience: float | None
    progress: Progress
    landing: Landing | None = None
    shown: StudyResult | None = None
    warnings: set[str] = field(default_factory=set)

    def run(self) -> StudyResult:
        """Return the result of the last round."""
        seen = Look({})
        studied = Look({})
        changed = time.monotonic()
        try:
            while True:
                look = self._look()
                if look is None:
                    time.sleep(self.every)
                    continue
                if look != seen:
                    self._say_gone(seen, look)
                    seen = look
                    changed = time.monotonic()
                if look.landed and self._is_over(look, changed):
                    return self._last_round(look)
                # A round that failed leaves `studied` as it is, so that it is tried again even if
                # nothing more lands.
                if look.landed != studied.landed and self._round(look):
                    studied = look
                time.sleep(self._pause(look))
        except BaseException:
            # It must not hide why the watch ends.
            with suppress(OntogenyError, OSError):
                if self.shown is not None:  # nobody writes the page again
                    _write_page(self.shown, self.page, {"every": None})
            raise

    def _last_round(self, look: Look) -> StudyResult:
        """Make the study as it was asked for."""
        study = self.open_study()
        self.shown = self.run_study(study.over(_landed(study.trajectory, look)))
        _write_page(self.shown, self.page)
        return self.shown

    def _provisional_round(self, look: Look) -> None:
        """Study what has landed, as far as that can be said before the training has ended."""
        study = self.open_study()
        trajectory = _landed(study.trajectory, look)
        count = len(trajectory)
        if count < FEWEST:
            have = "s have" if count > 1 else " has"
            self.progress.note(
                f"{count} checkpoint{have} landed; the first page takes {FEWEST}"
            )
            return
        # Files that are being written are no findings of an audit while the training goes on.
        in_progress = replace(trajectory.catalogue, incomplete=(), temporary=())
        trajectory = replace(trajectory, catalogue=in_progress)
        # Of the last step, the noise steps and the controls' steps each round has others: what
        # refers to them would be computed anew as often. The first step stays.
        options = {"reference": "first", "noise": 0, "controls": 0, "control_runs": ()}
        self.shown = self.run_study(study.over(trajectory, **options))
        _write_page(self.shown, self.page, {"every": self.every})
        self.progress.note(f"page: {self.page}")

    def _pause(self, look: Look) -> float:
        """Return the seconds until the next look: soon, if something has only to settle."""
        waits = look.unsettled or self.landing is None
        return min(self.every, self.settle or self.every) if waits else self.every

    def _look(self) -> Look | None:
        """Return what has landed by now, None where that cannot be told at this moment."""
        try:
            if self.landing is None:
                trajectory = self.open_study().trajectory
                choice = trajectory.catalogue.choice
                self.landing = Landing(
                    _folder_of(trajectory), self.settle, choice=choice
                )
            return self.landing.look()
        except (CheckpointError, OSError) as error:
            self._say(f"waiting for checkpoints: {error}")
            return None

    def _is_over(self, look: Look, changed: float) -> bool:
        reached = self.until is not None and max(look.landed) >= self.until
        waited = (
            self.patience is not None and time.monotonic() - changed >= self.patience
        )
        return reached or waited or look.ended

    def _round(self, look: Look) -> bool:
        """Return whether a round could be made; else it is tried again."""
        try:
            self._provisional_round(look)
        except (OntogenyError, OSError) as error:
            mistake = isinstance(error, ArgumentError | LayerMatchError)
            if (
                mistake
                and not isinstance(error, CheckpointError)
                and self.shown is None
            ):
                raise
            self._say(f"this round failed and is tried again: {error}")
            return False
        return True

    def _say_gone(self, before: Look, now: Look) -> None:
        """Say which checkpoints were deleted, as the Trainer does with ``save_total_limit``."""
        gone = before.landed.keys() - now.landed.keys() - set(now.unsettled)
        if gone:
            steps = "steps" if len(gone) > 1 else "step"
            self._say(
                f"deleted by now, and no longer shown: {steps} "
                f"{', '.join(map(str, sorted(gone)))}. A Recorder keeps all checkpoints, and so "
                "does the Trainer without save_total_limit."
            )

    def _say(self, what: str) -> None:
        """Say something once."""
        if what not in self.warnings:
            self.warnings.add(what)
            say(what)


def _write_page(
    result: StudyResult, page: Path, live: Mapping[str, Any] | None = None
) -> None:
    """Write the page; `live` holds when it refreshes itself, if the run is still training."""
    from .. import atlas, report  # which import what draws

    last = max(json.loads(result.attrs["steps"]))
    note = None if live is None else Live(last, **live)
    report.write(atlas.with_labels(result.tree), page, note)


def _folder_of(trajectory: Trajectory) -> Path:
    if trajectory.path is None:
        raise ArgumentError(
            f"only a folder on this machine can be watched; {trajectory.title} is "
            f"{'on the Hub' if any(c.source for c in trajectory) else 'in memory'}."
        )
    return trajectory.path


def _landed(trajectory: Trajectory, look: Look) -> Trajectory:
    """Return the checkpoints that are written for certain."""
    steps = [int(step) for step in trajectory.steps if step in look.landed]
    if not steps:
        raise CheckpointError(f"no checkpoint of {trajectory.title} is whole by now.")
    return trajectory.select(steps=steps)
