"""What a study finds out of its model before it computes: once, with a dry run of what is new.

A commit of the Hub never changes. So what is found at one is kept in the study's folder: of several
processes there, or of one that is started again, the first alone downloads it to look at it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import xarray as xr

from ... import activity
from ...capture.blocks import WeightBlock
from ...capture.reading import PassKey
from ...errors import CheckpointError, NonFiniteError, StoreError, check_choice
from ...inputs import Inputs
from ...needs import Need
from ...observables import Observable
from ...store import Cell, difference, plain, read_cell, write_cell
from ...trajectory import Checkpoint, Prefetch, Trajectory
from ...trajectory.weights.files import WeightFiles
from ...trajectory.weights.placed import unplaced
from ..cells.cache import DigestCache
from ..cells.environment import environment, pinned
from ..folder.claims import held
from ..folder.code import library_code
from ..folder.frozen import identity
from ..folder.layout import digests_path, probe_path
from ..folder.settings import Settings
from .build import has_begun
from .dry_run import DryFailure, can_be_tried, confirmed
from .guard import Fallback, guard, is_tried
from .probe import Probe, needs_of_steps, probe, widest_stored

log = logging.getLogger("ontogeny.study")

_OF_NEEDS = ("reads", "passes", "bytes", "layers")


@dataclass
class Examination:
    """The probe of a study, and the dry runs of its observables, each made once.

    Which observables get a dry run depends on the folder: those that have no finished cell in it.
    What one folder spared its study is tried when another one asks for it.

    Parameters
    ----------
    trajectory, inputs, observables, settings
        Of the study.
    """

    trajectory: Trajectory
    inputs: Mapping[str, Inputs]
    observables: Sequence[Observable]
    settings: Settings
    _probe: Probe | None = None
    _fallback: Fallback | None = None
    _failures: dict[str, DryFailure | None] = field(default_factory=dict)

    def of(
        self, folder: Path | None, *, keep: bool = False, bounded: bool = False
    ) -> Probe:
        """Return the probe, with the failures of what has no finished cell in a folder.

        With `keep` the folder may keep it, and give what it has kept; where Hub revisions are
        `bounded`, no download is left behind.

        Raises
        ------
        LayerMatchError, ArgumentError
            What would otherwise fail hours later.
        CheckpointError, NonFiniteError
            If none of three checkpoints can be read: what was wrong with the first.
        """
        tried = [o for o in self.observables if can_be_tried(o)]
        observables = [o for o in tried if folder is None or not has_begun(folder, o)]
        untried = [o for o in observables if o.name not in self._failures]
        if self._probe is None or untried:
            with pinned(self.settings.threads):
                probed = self._first_readable(
                    untried, folder if keep else None, bounded
                )
                self._probe = self._guarded(probed)
            failed = {failure.node: failure for failure in self._probe.failures}
            self._failures |= {o.name: failed.get(o.name) for o in untried}
        failures = (self._failures[o.name] for o in observables)
        return replace(
            self._probe, failures=tuple(f for f in failures if f is not None)
        )

    def spare(self, probed: Probe | None = None) -> None:
        """Let no observable get a dry run, as its cells are computed at once.

        A study of more checkpoints may have been `probed` already.
        """
        self._failures = dict.fromkeys(o.name for o in self.observables)
        self._probe = probed or self._probe

    def bare(self) -> Probe:
        """Return the probe without a dry run, which is made when a folder asks for it."""
        self.spare()
        probed = self.of(None)
        self._failures = {}
        return probed

    def _guarded(self, probed: Probe) -> Probe:
        """Return the probe with the way in which the model must be read."""
        if self._fallback is None:
            activity.now("planning: trying the model on one text")
            needs = needs_of_steps(self.observables)
            settings = probed.resolved(self.settings)
            self._fallback = guard(self.trajectory, self.inputs, needs, settings)
        return replace(probed, fallback=probed.fallback.joined(self._fallback))

    def _first_readable(
        self, tried: Sequence[Observable], folder: Path | None, bounded: bool
    ) -> Probe:
        """Examine the first checkpoint, or another where that one cannot be read."""
        for observable in self.observables:
            for need in observable.needs():
                if need.at_step.on is not None:
                    check_choice("on", need.at_step.on, self.inputs)
        for observable in self.observables:
            observable.check_inputs(self.inputs)
        steps = [int(s) for s in self.trajectory.steps]
        errors: list[Exception] = []
        for step in dict.fromkeys([*steps[:2], steps[-1]]):
            try:
                return self._examined(step, tried, folder, bounded)
            except (CheckpointError, NonFiniteError) as error:
                log.debug("step %d cannot be read: %s", step, error)
                errors.append(error)
        raise errors[0]

    def _examined(
        self, step: int, tried: Sequence[Observable], folder: Path | None, bounded: bool
    ) -> Probe:
        activity.now(f"planning: trying every observable at step {step}")
        checkpoint = self.trajectory.select(steps=[step])
        if folder is not None and all(map(_is_identified, checkpoint)):
            examined = self._stored_or_probed(folder, checkpoint, tried, bounded)
        else:
            examined = self._probed(checkpoint, tried, bounded)
        if self.settings.dtype == "stored":
            examined = replace(
                examined, dtype=widest_stored(examined.dtype, self.trajectory)
            )
        settings = examined.resolved(self.settings)
        failures = confirmed(
            examined.failures, self.trajectory, self.inputs, tried, settings
        )
        return replace(examined, failures=failures)

    def _probed(
        self, checkpoint: Trajectory, tried: Sequence[Observable], bounded: bool
    ) -> Probe:
        arguments = (self.inputs, self.observables, self.settings, tried)
        if not bounded:
            return probe(checkpoint, *arguments)
        with Prefetch(checkpoint, max_revisions=1) as prefetch:
            return probe(prefetch.trajectory, *arguments)

    def _stored_or_probed(
        self,
        folder: Path,
        checkpoint: Trajectory,
        tried: Sequence[Observable],
        bounded: bool,
    ) -> Probe:
        """Return what a process in this environment has found at a revision, or find it now.

        It is only kept if no dry run has failed.
        """
        path = probe_path(folder)
        needs = needs_of_steps(self.observables)
        digests = DigestCache(digests_path(folder))
        fingerprint = {
            **identity(checkpoint, self.inputs, self.observables, self.settings),
            "needs": [repr(need) for need in needs],
            "weights": self.settings.weights,
            "environment": environment(self.settings.device),
            "code": library_code(),
            "checkpoint": [
                (digests.whole(c), str(c.configuration()), *_format_of(c))
                for c in checkpoint
            ],
        }
        names = {observable.name for observable in tried}
        digests.save()
        with held(folder, "probe"):
            if (stored_result := _read(path, fingerprint, names, needs)) is not None:
                return stored_result
            probed = self._probed(checkpoint, tried, bounded)
            if not probed.failures:
                text = json.dumps(
                    {"tried": sorted(names), "probe": encoded(probed, needs)}
                )
                write_cell(
                    path,
                    Cell(xr.Dataset(attrs={"found": text}), fingerprint=fingerprint),
                )
            return probed


def _is_identified(checkpoint: Checkpoint) -> bool:
    """Return whether files or a commit say all that a model is: no code of a user's makes it."""
    if checkpoint.source is not None:
        return not checkpoint.is_computed
    return all(
        not is_tried(c) and isinstance(c.weights, WeightFiles)
        for c in checkpoint.sources
    )


def _format_of(checkpoint: Checkpoint) -> tuple[Any, ...]:
    """Return what else a model is made of, where its format says it and no config.json does.

    The header of a GGUF file goes into no digest of its tensors: the file itself counts.
    """
    weights = checkpoint.weights
    if unplaced(checkpoint.template) is None or not isinstance(weights, WeightFiles):
        return ()
    return str(checkpoint.settings()), str(weights.stamp())


def _read(
    path: Path, fingerprint: Mapping[str, Any], names: set[str], needs: Sequence[Need]
) -> Probe | None:
    """Return what is kept; None where it is damaged, of something else, or without a dry run."""
    try:
        cell = read_cell(path)
        if difference(cell.fingerprint, plain(fingerprint)):
            return None
        content = json.loads(cell.data.attrs["found"])
        return (
            decoded(content["probe"], needs) if names <= set(content["tried"]) else None
        )
    except (
        StoreError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ):
        return None


def encoded(outcome: Probe, needs: Sequence[Need]) -> str:
    """Return a probe as JSON, what it holds of needs in their order; without failures."""
    content = {part.name: getattr(outcome, part.name) for part in fields(outcome)}
    del content["failures"]
    content |= {name: [content[name].get(need) for need in needs] for name in _OF_NEEDS}
    return json.dumps(
        content, default=lambda x: sorted(x) if type(x) is frozenset else asdict(x)
    )


def decoded(text: str, needs: Sequence[Need]) -> Probe:
    """Return the probe that `encoded` gave as JSON."""
    parts = _tuples(json.loads(text))
    for name in _OF_NEEDS:
        parts[name] = dict(zip(needs, parts[name], strict=True))
    reads = {
        n: None if names is None else frozenset(names)
        for n, names in parts["reads"].items()
    }
    passes = {
        n: PassKey(**key) for n, key in parts["passes"].items() if key is not None
    }
    layers = {n: labels for n, labels in parts["layers"].items() if labels is not None}
    blocks = {
        name: WeightBlock(**block) for name, block in parts["weight_blocks"].items()
    }
    of_needs = {
        "reads": reads,
        "passes": passes,
        "layers": layers,
        "weight_blocks": blocks,
    }
    fallback = Fallback(**parts["fallback"])
    return Probe(**{**parts, **of_needs, "fallback": fallback})


def _tuples(value: Any) -> Any:
    """Return what JSON gave with tuples in the place of lists."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
