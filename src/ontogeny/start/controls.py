"""The control runs that fit the checkpoints of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..observables import ModelFacts
from ..summary.learning import MIRRORED
from ..trajectory import Trajectory
from ..trajectory.audit.weight_values import is_initialisation
from .presets import Preset
from .source import is_repository
from .source_tables import WITHOUT_RENAMING
from .wishes import Wishes

_RENAMED = 7  # tokens have 5,040 renamings; six have fewer than are drawn


def controls_of(
    wishes: Wishes,
    table: Mapping[str, Any],
    sets: Sequence[str],
    run: Trajectory,
    preset: Preset,
    model: ModelFacts,
) -> Mapping[str, Any]:
    """Return the table of control runs that fits these checkpoints; what was set stays."""
    if len(run) == 1:  # nothing moves that a control could follow
        return {"count": 0}
    chosen = {assignment.partition("=")[0].strip() for assignment in sets}
    if _begins_trained(run, wishes.source) and "controls.kind" not in chosen:
        count = (
            _in_pairs(table["count"])
            if "controls.count" in chosen
            else 2 * preset.controls
        )
        table = {**table, "kind": MIRRORED, "count": count}
    elif _is_hardly_renamed(model) and "controls.count" not in chosen:
        least = WITHOUT_RENAMING if table["count"] else 0
        table = {**table, "count": max(table["count"], least)}
    if "controls.steps" not in chosen:
        # Of mirrored ones only the luck from the first step to the last counts; the one between is
        # for a run that diverged at the end. Others have half-change steps, which take four. More
        # only costs: of SmolLM2 with six steps, controls took 36 of 42 readings.
        least = 3 if table["kind"] == MIRRORED else max(4, len(run) // 2)
        table = {**table, "steps": min(preset.control_steps, least)}
    return table


def _is_hardly_renamed(model: ModelFacts) -> bool:
    """Return whether a model has so few tokens that renaming them has hardly another outcome."""
    return model.tokens is not None and model.tokens < _RENAMED


def _in_pairs(count: Any) -> Any:
    """Return the next even number; what is no number is refused where the study is made."""
    return count + count % 2 if isinstance(count, int) else count


def _begins_trained(run: Trajectory, source: str) -> bool:
    """Return whether the first checkpoint is no initialisation: motion mostly harms such a run.

    Of a repository, whose first weights may be large, only the step is asked.
    """
    first = int(run.steps[0])
    return first > 0 if is_repository(source) else not is_initialisation(run[first])
