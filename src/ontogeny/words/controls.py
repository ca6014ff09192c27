"""What a control run is, said once where controls first appear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from .content import Content
from .control_kinds import kind_of

_START = "start from the same weights and"
_NOT_LEARNED = ": a change like theirs may be motion alone"
# What control runs of each computed kind do; others are trained, on texts without sense.
WHAT_THEY_DO = {
    "turned": f"{_START} move as far at every {{checkpoint}}, in random directions{_NOT_LEARNED}",
    "mirrored": f"{_START} move as far at every {{checkpoint}}, in random directions and "
    f"back{_NOT_LEARNED}",
    "walk": f"{_START} take random steps as long as the run’s{_NOT_LEARNED}",
    "line": "go straight from the run’s first weights to its last",
    "shuffled": f"{_START} move as far at every {{checkpoint}}, in the run’s directions in "
    "another order",
}

TRAINED_START = (
    "The first checkpoint is no initialisation, and random motion harms what it knows, so that "
    "control runs made of motion judge no change but learning."
)

NONE_TRAINED = (
    "None was trained on tokens without sense, the stronger control of what lies beyond motion."
)
ADD_ONE = "Add one: --set controls.folders.nothing=FOLDER (a full path)."

PAIRS = (
    "whether it learned can be judged by pairs of mirrored control runs: "
    "--set controls.kind=mirrored --set controls.count=6"
)

_TRAINED = "are trained in the same way on tokens without sense" + _NOT_LEARNED


def explained(content: Content, subject: str = "They") -> str:
    """Say what the control runs of a study do; nothing where there are none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> explained(SimpleNamespace(controls=["walk 0"]))  # doctest: +ELLIPSIS
    'They start from the same weights and take random steps as long as the run’s: a change like ...'
    """
    kinds = dict.fromkeys(kind_of(name) for name in content.controls)
    words = dict.fromkeys(WHAT_THEY_DO.get(kind, _TRAINED) for kind in kinds)
    return f"{subject} {'; or '.join(words)}." if words else ""


def began_trained(nodes: Iterable[xr.Dataset]) -> bool:
    """Return whether a run began trained, so that runs made of its motion judge no change.

    The loss knows (``loss_trained_start``), and the accuracy where it is so of it. Without a loss,
    controls are mirrored of no other run.

    Examples
    --------
    >>> began_trained([xr.Dataset({"loss_trained_start": 1.0})])
    True
    """
    nodes = list(nodes)
    flags = [node["loss_trained_start"] for node in nodes if "loss_trained_start" in node]
    labels = [node.get("accuracy_trained_start", 0.0) for node in nodes]
    if flags or any(bool(np.any(value)) for value in labels):
        return any(bool(np.any(value)) for value in (*flags, *labels))
    runs = (str(run) for node in nodes if "run" in node.coords for run in node["run"].values)
    return any(kind_of(run) == "mirrored" for run in runs)


def made_of_motion(content: Content) -> bool:
    """Return whether a study has control runs, and all move as the run does, untrained."""
    return bool(content.controls) and all(kind_of(run) in WHAT_THEY_DO for run in content.controls)


def names_against_controls(
    n_names: int, concepts: int, controls: Sequence[tuple[int, int | None]]
) -> str:
    """Say what the names of concepts in control runs, (named, concepts) each, mean for those here.

    Examples
    --------
    >>> names_against_controls(31, 112, [(5, 8), (12, 23)])
    'not a larger share of the concepts that can be read than in every control run'
    >>> names_against_controls(9, 92, [(10, 99)])
    'no more than motion gives'
    """
    if n_names <= max((count for count, _ in controls), default=-1):
        return "no more than motion gives"
    shares = [count / total for count, total in controls if total]
    if n_names > concepts * max(shares, default=0.0):
        return "more than in any control run" if controls else ""
    return "not a larger share of the concepts that can be read than in every control run"


def in_pairs(names: Iterable[str]) -> bool:
    """Return whether all these control runs are pairs of a motion and the same one backwards."""
    return all(kind_of(name) == "mirrored" for name in names)
