"""What failed in one node, steps and layers of one reason together, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from ..trees import found_in

# What ``failed`` says of a node whose cells, each with its own reason, all failed.
NO_CELL = "no cell of this observable could be computed"


@dataclass(frozen=True)
class Problem:
    """Cells of one observable that failed for the same reason, in the same layers.

    Parameters
    ----------
    node
        Name of the observable.
    why
        The reason, as the node's ``status`` or ``failed`` gives it.
    steps
        The training steps; empty where cells are not of steps, or the summary failed.
    layers
        Layers or weight blocks; empty where whole cells failed.
    run
        Name of the control run; empty for the run that is studied.
    """

    node: str
    why: str
    steps: tuple[int, ...] = ()
    layers: tuple[str, ...] = ()
    run: str = ""

    @property
    def where(self) -> str:
        """The node, after the name of a control run.

        Examples
        --------
        >>> Problem("loss", "failed: out of range", run="turned 0").where
        'turned 0: loss'
        """
        return f"{self.run}: {self.node}" if self.run else self.node

    @property
    def reason(self) -> str:
        """Why, without the word that it failed.

        Examples
        --------
        >>> Problem("loss", "failed: ValueError: out of range").reason
        'ValueError: out of range'
        """
        return self.why.removeprefix("failed: ")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return {**asdict(self), "steps": list(self.steps), "layers": list(self.layers)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Return the problem that `to_dict` gave."""
        lists = {name: tuple(data.get(name, ())) for name in ("steps", "layers")}
        return cls(**{**data, **lists})


def of_node(node: str, data: xr.Dataset, run: str = "") -> list[Problem]:
    """Return what failed in a node, from its ``status`` and what its summary says.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"status": ("step", ["failed: ValueError: no", "done"])}, {"step": [0, 8]}
    ... )
    >>> of_node("loss", data)
    [Problem(node='loss', why='failed: ValueError: no', steps=(0,), layers=(), run='')]
    """
    problems = [
        Problem(node, why, steps, layers, run)
        for (why, layers), steps in _grouped(statuses(data)).items()
    ]
    failed = str(data.attrs.get("failed", ""))
    if failed and not (failed == NO_CELL and problems):
        problems.append(Problem(node, f"failed: {failed}", run=run))
    return problems


def statuses(data: xr.Dataset) -> dict[int | str, dict[str, str]]:
    """Return the status of each layer in each cell: ``{step, block or layer: {layer: status}}``.

    A cell whose status does not depend on the layer has one under the empty name.
    """
    status = found_in(data, "status")
    if status is None or status.dtype.kind not in "OUT":
        return {}
    over = next((dim for dim in ("step", "block", "layer") if dim in status.dims), None)
    if over is None or len(status.dims) > 2:
        return {}
    rest = [str(dim) for dim in status.dims if dim != over]
    names = [str(v) for v in status[rest[0]].values] if rest else [""]
    table = status.transpose(over, *rest).values.reshape(-1, len(names))
    keys = [
        key if isinstance(key, str) else int(key)
        for key in status[over].values.tolist()
    ]
    return {
        key: dict(zip(names, map(str, row), strict=True))
        for key, row in zip(keys, table, strict=True)
    }


def _grouped(
    cells: Mapping[int | str, Mapping[str, str]],
) -> dict[tuple[str, tuple[str, ...]], tuple[int, ...]]:
    """Return the steps of each reason and the layers that it holds for."""
    steps: dict[tuple[str, tuple[str, ...]], tuple[int, ...]] = {}
    places: dict[str, tuple[str, ...]] = {}
    for key, layers in cells.items():
        for why in dict.fromkeys(why for why in layers.values() if why != "done"):
            if isinstance(key, str):  # of blocks and layers, which have no step
                places[why] = (*places.get(why, ()), key)
                continue
            failed = tuple(name for name, reason in layers.items() if reason == why)
            where = () if len(failed) == len(layers) else failed
            steps[why, where] = (*steps.get((why, where), ()), key)
    return steps | dict.fromkeys(places.items(), ())


@dataclass(frozen=True)
class Standing:
    """Numbers of an observable's cells.

    Parameters
    ----------
    cells
        How many it has: 0 where it follows from other nodes alone.
    failed
        How many are missing, or failed in at least one layer.
    finished
        How many hold something.
    lost
        Whether nothing of the observable was computed.
    """

    cells: int
    failed: int
    finished: int
    lost: bool


def standing_of(data: xr.Dataset) -> Standing:
    """Return how much of a node was computed.

    Examples
    --------
    >>> standing_of(
    ...     xr.Dataset({"status": ("step", ["done", "failed: no"])}, {"step": [0, 8]})
    ... )
    Standing(cells=2, failed=1, finished=1, lost=False)
    """
    cells = [set(layers.values()) for layers in statuses(data).values()]
    failed = sum(outcome != {"done"} for outcome in cells)
    finished = sum("done" in outcome for outcome in cells)
    lost = not finished and (bool(cells) or "failed" in data.attrs)
    return Standing(len(cells), failed, finished, lost)


_READ_AGAIN = (
    "Repair the checkpoint or download it again, and run the study again: what is missing is "
    "computed then, and nothing else."
)
_FINITE = (
    "The model gives NaN or infinity there. If the weights are finite, a wider dtype may help; "
    "otherwise leave these steps out with select."
)
_SMALLER = (
    "Lower batch_size or max_tokens, or use fewer workers, and run the study again."
)
_CHANGE = (
    "Change what the message names, in the study file or in the model, and run the study again: "
    "what is finished is kept."
)
_OTHERWISE = (
    "Run the study again with --verbose to see where it comes from: what failed is tried again, "
    "and what is finished is kept."
)
_ADVICE = {
    ("missing:", "CheckpointError"): _READ_AGAIN,
    ("NonFiniteError",): _FINITE,
    ("OutOfMemory", "out of memory", "MemoryError"): _SMALLER,
    ("ArgumentError", "LayerMatchError"): _CHANGE,
}


def advice(why: str) -> str:
    """Return what to do about a failure with this reason.

    Examples
    --------
    >>> advice("failed: NonFiniteError: the loss is not finite")[:37]
    'The model gives NaN or infinity there'
    """
    for words, then in _ADVICE.items():
        if any(word in why for word in words):
            return then
    return _OTHERWISE
