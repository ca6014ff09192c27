"""What the removal of concepts costs, as the node of their effects has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..words.content import Content
from ..words.formats import plain_text

_NUMBERS = ("judged_removed", "judged_random", "judged_other")
_WANTED = {"removed_concept", "verdict", "judged_step", *_NUMBERS}

Removals = dict[tuple[str, int], dict[str, Any]]


def read_removals(content: Content, of: str) -> Removals:
    """Return for each removed concept, by layer and number, what it costs beside its controls.

    Read from the effects of the concepts of node `of`; a node that does not say of which, is taken
    to be of the only concepts there are. Empty where none was removed, or none was judged.
    """
    settings = content.settings if isinstance(content.settings, dict) else {}
    observables = settings.get("observables") or {}
    for node in content.nodes:
        data = node.dataset
        named = observables.get(node.path) or {}
        if not set(data.data_vars) >= _WANTED or named.get("of", of) != of:
            continue
        if set(data["verdict"].dims) != {"layer", "removal"} or data["judged_step"].size != 1:
            continue
        order = ("layer", "removal")
        numbers = {n: data[n].transpose(*order).values.astype(float) for n in _NUMBERS}
        verdicts = data["verdict"].transpose(*order).values.astype(object)
        concepts = data["removed_concept"].transpose(*order).values.astype(float)
        step = float(data["judged_step"].values.reshape(-1)[0])
        known = np.isfinite(concepts) & np.isfinite(numbers["judged_removed"]) & (verdicts != "")
        return {
            (plain_text(data["layer"].values[i]), int(concepts[i, k])): {
                "step": step,
                "verdict": plain_text(verdicts[i, k]),
                **{name.removeprefix("judged_"): _known(numbers[name][i, k]) for name in _NUMBERS},
            }
            for i, k in np.argwhere(known).tolist()
        }
    return {}


def _known(value: float) -> float | None:
    return float(f"{value:.3g}") if math.isfinite(value) else None
