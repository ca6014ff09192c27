"""The control runs that fit the checkpoints of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..inputs import Inputs
from ..observables import ModelFacts
from ..summary.learning import MIRRORED
from ..trajectory import Trajectory
from .first_checkpoint import begins_trained
from .presets import Preset
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
    texts: Inputs,
) -> Mapping[str, Any]:
    """Return the table of control runs that fits these checkpoints; what was set stays."""
    if len(run) == 1:  # nothing moves that a control could follow
        return {"count": 0}
    chosen = {assignment.partition("=")[0].strip() for assignment in sets}
    kind_is_said = "controls.kind" in chosen
    if not kind_is_said and begins_trained(run, wishes.source, texts, model.objective):
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
