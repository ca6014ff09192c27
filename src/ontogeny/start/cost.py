"""What a study will fetch, keep and take, from listings and from timing one checkpoint."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from .. import activity
from ..errors import OntogenyError
from ..machine import size_text
from ..study import Plan, Study, make_study
from ..study.cells.graph import StepCell
from ..study.planning.probe import Probe
from ..trajectory import Trajectory
from ..trajectory.downloading import check_space, missing_bytes
from ..words.formats import plural
from .sampled import samples_of, with_samples
from .watch import Watch, watched

MOST_BYTES = 2_000_000_000  # bytes that are fetched without asking
MOST_SECONDS = 1800.0  # seconds that are computed without asking

_NOISE = 5  # steps at which noise floors are measured, by default
_NOISE_COST = 2.0  # what such a step costs beside another; 2.1 in the demo's study
SUMMARIES = 1.2  # what is computed from all steps, and the page
_MERGED = 2.0  # bytes of cells with what is merged of them; 1.9 to 2.4 in four studies
# How much longer it takes where tasks beside each other use the same memory.
_SLOWER = 1.6
_ENDS = 20.0  # seconds until processes have started, and from the last cell to the page
_PAGE = 10_000_000  # a page, and the smallest result


@dataclass(frozen=True)
class Cost:
    """What a study fetches, keeps and takes.

    Attributes
    ----------
    fetched
        Bytes that are fetched from the Hub and stay in its cache.
    stored
        Bytes of the study's own folder, about.
    dropped
        Bytes that lie in it beside until the study is finished.
    seconds
        All of it with one worker, about.
    at_one
        What one checkpoint took.
    kept
        What of it is not computed again: all, but for examples of which samples were timed.
    fixed
        The share of what one checkpoint took that is for all examples where samples were timed: it
        does not grow with the texts.
    why_not
        Why no checkpoint was timed; empty if one was.
    untimed
        Observables that are not in the time, as all checkpoints would be fetched for it.
    failing
        What failed at that checkpoint, one line for each reason.
    busy
        Share of the time that processors worked on that checkpoint: little on a full machine, whose
        clock says more than the study takes.
    texts
        How many are read.
    fewer
        Gives the cost of the same study with so many checkpoints, none of which is computed yet:
        the one that was timed may be none of them.
    keep
        Begins the study in a folder, or another one of the same texts, with the cells of the
        checkpoint that was timed.
    """

    checkpoints: int
    fetched: int
    stored: int
    seconds: float
    at_one: float
    device: str
    why_not: str = ""
    studies: int = 1
    dropped: int = 0
    untimed: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    busy: float = 1.0
    texts: int = 0
    fewer: Callable[[int], Cost] | None = None
    keep: Callable[..., Study] | None = None
    kept: float = 0.0
    fixed: float = 0.0

    def lines(self, workers: int = 1, free: float = math.inf) -> list[str]:
        """Return what is said before a study starts, where so many bytes of disk are `free`."""
        fetched = f"{size_text(self.fetched)}" if self.fetched else "nothing"
        if self.why_not:
            return [
                f"to download: {fetched}",
                f"no checkpoint was timed: {self.why_not}",
            ]
        spread = f" with {workers} workers" if workers > 1 else ""
        cached = (
            f", {size_text(self.fetched)} in the Hub's cache" if self.fetched else ""
        )
        time_ = _span(self.seconds_with(workers))
        one = f"{self.at_one:.1f} s for one of {self.checkpoints} checkpoints on {self.device}"
        busy = ""
        if self.device == "cpu":
            busy = f", {_processor(self.busy * self.seconds)} of processor time"
        without = f", without {', '.join(self.untimed)}" if self.untimed else ""
        largest = self.stored + self.dropped
        running = (
            f", {size_text(largest)} while it runs"
            if 20 * self.dropped > self.stored
            else ""
        )
        scarce = f", but only {size_text(int(free))} are free" if free < largest else ""
        return [
            *self.failing,
            f"to download: {fetched}",
            f"on disk: {size_text(self.stored)} of results{running}{scarce}{cached}",
            f"time: {time_}{spread}{busy}, by {one}{without}",
        ]

    def seconds_with(self, workers: int) -> float:
        """Return how long all of it takes with so many workers, about."""
        return self.seconds / workers + _ENDS * self.studies

    def limits(self, workers: int = 1) -> list[str]:
        """Return what is above a limit, in words; empty if nothing is."""
        seconds = self.seconds_with(workers)
        time_words = [f"take {_span(seconds)}"] if seconds > MOST_SECONDS else []
        return [*download_limit(self.fetched), *time_words]


def total(costs: Sequence[Cost]) -> Cost:
    """Return what several studies cost together.

    Examples
    --------
    >>> one = Cost(8, 0, 10_000_000, 60.0, 2.0, "cpu")
    >>> total([one, one]).seconds, total([one, one]).checkpoints
    (120.0, 16)
    """
    names = ("checkpoints", "fetched", "stored", "seconds", "studies")
    sums: dict[str, Any] = {
        name: sum(getattr(cost, name) for cost in costs) for name in names
    }
    sums["dropped"] = max(cost.dropped for cost in costs)  # they run one after another
    why_not = next((cost.why_not for cost in costs if cost.why_not), "")
    failing = dict.fromkeys(chain.from_iterable(cost.failing for cost in costs))
    return replace(costs[0], **sums, why_not=why_not, failing=tuple(failing))


def download_limit(fetched: int) -> list[str]:
    """Return in words that more is to be fetched than may be without asking, if so."""
    return [f"download {size_text(fetched)}"] if fetched > MOST_BYTES else []


def to_fetch(trajectory: Trajectory, bounded: bool = False) -> int:
    """Return the bytes of weights that are not on this machine yet.

    Raises
    ------
    CheckpointError
        If the disk of the Hub's cache cannot hold them, unless it holds a few at once, or the Hub
        cannot be reached.
    """
    needed = missing_bytes(trajectory)
    if needed and not bounded:
        check_space(
            needed, next(c.source.cache for c in trajectory if c.source is not None)
        )
    return needed


def estimate(
    content: Mapping[str, Any], folder: Path, fetched: int, sampled: bool = False
) -> Cost:
    """Return what a study costs, after computing one of its checkpoints into a temporary folder.

    What was computed there is the study's, which `Cost.keep` puts into its folder. Where examples
    are `sampled`, as minimal pairs, those cells are none of it.

    Raises
    ------
    OntogenyError
        If the study cannot be made. One whose checkpoint fails is estimated without a time: what is
        wrong is said when it is run.
    """
    activity.now("computing one checkpoint, which shows what all of them take")
    study = make_study(content, folder)
    steps = len(study.trajectory)
    controls = content.get("controls", {})
    count = int(controls.get("count", 0))
    of_controls = count * min(int(controls.get("steps", 12)), steps)
    noise = min(int(content.get("options", {}).get("noise", _NOISE)), steps)
    made = count * all(checkpoint.source is None for checkpoint in study.trajectory)
    counts = (steps, of_controls, noise, 1 + count)
    cost = _timed(study, fetched, counts, made / (1 + count), sampled)
    # The checkpoint is kept: of one model of 135M, 6 to 16 minutes were said where 2 were left.
    seconds = cost.seconds - SUMMARIES * cost.kept
    texts = len(next(iter(study.inputs.values())))
    return replace(cost, seconds=seconds, texts=texts)


def time_left(study: Study, plan: Plan) -> Cost:
    """Return what is left of a planned study costs, after computing one of its checkpoints.

    That goes into a temporary folder, and the checkpoint is the last one that is on this machine;
    where there is none, the last one is fetched.
    """
    cells = [e for e in plan.entries if e.to_do and isinstance(e.cell, StepCell)]
    steps = {e.key for e in cells if not e.run}
    noise = {e.key for e in cells if not e.run and e.cell.components.get("noise")}
    runs = len({e.run for e in cells})
    controls = plan.checkpoints - len(steps)
    share = plan.dropped_bytes / max(1, plan.reference_bytes)
    return _timed(
        study, plan.download_bytes, (len(steps), controls, len(noise), runs), share
    )


def _timed(
    study: Study,
    fetched: int,
    counts: tuple[int, ...],
    dropped: float,
    sampled: bool = False,
) -> Cost:
    """Return the cost of checkpoints of a run and of controls, as many as are counted.

    `counts` are those of the run, those of controls, those with noise floors, and the runs: each,
    the study's own and its controls, has references and states. A share of the references is
    `dropped`. A study whose one checkpoint fails has no time.
    """
    try:
        here = all(checkpoint.is_downloaded for checkpoint in study.trajectory)
        probed = study.examination.bare() if here else None
        clock = time.perf_counter()
        worked = time.process_time()
        watch = _one_checkpoint(study, probed, sampled)
        worked = time.process_time() - worked
        busy = worked / max(time.perf_counter() - clock, 1e-9)
        in_blocks = 0.0 if probed is None else _all_blocks(study, probed)
    except OntogenyError as error:
        why_not = str(error).split("\n")[0]
        return Cost(counts[0], fetched, 0, 0.0, 0.0, study.device, why_not)
    untimed = () if here else tuple(o.name for o in study.observables if o.over_blocks)
    failing = tuple(watch.failing(study))

    def keep(place: Path, other: Study | None = None) -> Study:
        begun = other or study
        begun.begin(place, watch.computed(), watch.handed)
        return begun

    def priced(counts: Sequence[int], in_blocks: float) -> Cost:
        steps, of_controls, noise, runs = counts
        # A control begins with what the run has read, and writes no texts, say. Where every step
        # has noise floors, they are in the time of the one; elsewhere what comes after references
        # and states has them.
        read = of_controls - (runs - 1)
        checkpoints = watch.step * steps + (watch.step - watch.of_run) * read
        noises = (not watch.noisy) * noise * (_NOISE_COST - 1) * watch.late
        seconds = runs * watch.before + checkpoints + noises + in_blocks
        # References and states are cells alone; of SmolLM2's fine-tuning each run's take 34 MB, of
        # which 28 are dropped.
        cells = _MERGED * watch.written * (steps + of_controls)
        gone = round(dropped * runs * watch.references)

        def fewer(count: int) -> Cost:
            controls = (runs - 1) * min(count, of_controls // max(1, runs - 1))
            of_count = (count, controls, min(noise, count), runs)
            return priced(of_count, in_blocks * count / steps)

        return Cost(
            steps,
            fetched,
            _PAGE + runs * watch.written_before + round(cells) - gone,
            SUMMARIES * seconds,
            watch.step,
            study.device,
            dropped=gone,
            untimed=untimed,
            failing=failing,
            busy=busy,
            fewer=fewer,
            keep=keep,
            kept=watch.kept,
            fixed=watch.asked / watch.step if watch.step > 0 else 0.0,
        )

    return priced(counts, in_blocks)


def _one_checkpoint(study: Study, probed: Probe | None, sampled: bool = False) -> Watch:
    """Return what one checkpoint took, and how many bytes were written for it.

    It is computed as the study will, beside the same reference; without noise floors if there is
    such a step.
    """
    settings = study.examination.settings
    steps = [int(s) for s in study.trajectory.steps]
    here = [int(c.step) for c in study.trajectory if c.is_downloaded] or steps[-1:]
    bare = [step for step in here if step not in settings.noise_steps]
    step = max(bare or here)
    reference = settings.reference_step if settings.reference_step in here else step
    of_step = study.trajectory.select(steps=sorted({step, reference}))
    # An earlier reference is computed first: with noise floors (1: of the first step), as it will.
    noise = int(reference < step) if bare and settings.noise_steps else 5 * (not bare)
    options: dict[str, Any] = {"reference": reference, "noise": noise, "controls": 0}
    with tempfile.TemporaryDirectory() as place:
        samples = samples_of(study.observables, Path(place)) if sampled else []
        options["observables"] = with_samples(study.observables, samples)
        timed = study.over(of_step, control_runs=(), **options)
        handed = timed.hand_on()
        watch = watched(timed, f"{study.trajectory.unit} {step}", not bare, probed)
    watch.handed = handed
    watch.extend(samples)
    return watch


def _all_blocks(study: Study, probed: Probe) -> float:
    """Return the seconds for weight blocks over all steps; one is timed, of middle size."""
    seconds = 0.0
    sizes = {n: probed.block_bytes[b.tensor] for n, b in probed.weight_blocks.items()}
    for observable in (o for o in study.observables if o.over_blocks):
        names = sorted(probed.blocks[observable.name], key=sizes.__getitem__)
        arguments = {**observable.arguments(), "blocks": names[len(names) // 2]}
        one = Study(study.trajectory, study.inputs, [type(observable)(**arguments)])
        seconds += len(names) * watched(one).step
    return seconds


def _processor(seconds: float) -> str:
    """Return the time that processors work, all of it with one worker.

    Examples
    --------
    >>> _processor(40.0), _processor(600.0), _processor(9000.0)
    ('about 1 minute', 'about 10 minutes', 'about 2.5 hours')
    """
    minutes = max(1, round(seconds / 60))
    return (
        f"about {plural(minutes, 'minute')}"
        if minutes < 90
        else f"about {seconds / 3600:.1f} hours"
    )


def _span(seconds: float) -> str:
    """Return how long it takes as long as the one checkpoint did, and how long on busy cores."""
    low, high = (round(bound / 60) for bound in (seconds, _SLOWER * seconds))
    if high <= 1:
        return "about 1 minute"
    if low < 90:
        return f"{max(low, 1)} to {max(high, 2)} minutes"
    return f"{low / 60:.1f} to {high / 60:.1f} hours"
