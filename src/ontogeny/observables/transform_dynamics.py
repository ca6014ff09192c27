"""The linear map between each step's concepts and the reference's, along the run (row A14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .. import dynamics
from ..distances import align
from ..errors import ArgumentError, check_number
from ..needs import Need, Series
from ..summary import Names
from .arguments import check_node
from .base import Observable, SeriesReading
from .concept_noise import MATCHINGS, SHARES
from .transform_figures import MAPS, summarise_transforms

__all__ = ["TransformDynamics"]

_PATH = {
    "velocity": "velocity",
    "rate": "rate",
    "cumulative_change": "cumulative",  # xarray has methods called cumulative and rank
    "normalised": "normalised",
}


@dataclass(frozen=True)
class TransformDynamics(Observable):
    """The transform T_t with W_t = W_ref T_t, from the fits that a `Concepts` node has stored.

    Its error on the codes stands beside that of the nearest rotation and of no map at all, so that
    turning is told from deforming; velocity and cumulative change are given for concepts as the
    solver returned them and for concepts permuted and signed to fit the reference's.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    max_condition
        Condition number beyond which the pseudo-inverse is taken.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> TransformDynamics("concepts-ica").name
    'concepts-ica-transforms'
    """

    of: str
    max_condition: float = 1e8
    label: str | None = None

    kind: ClassVar[str] = "transform-dynamics"
    variables: ClassVar[Names] = {
        "codes_error": ("error of the codes, relative", "1"),
        "dictionary_error": ("error of the dictionary, relative", "1"),
        "velocity": ("change of the transform since the checkpoint before", "1"),
        "rate": ("the same for each training step", "per step"),
        "cumulative_change": ("cumulative change of the transform", "1"),
        "normalised": ("cumulative change, share of the whole", "1"),
        "log_det": ("log-determinant of the transform", "1"),
        "condition": ("condition number of the transform", "1"),
        "transform_rank": ("rank of the transform", "directions"),
        "share": ("share of the squared change", "1"),
        "transform": ("matrix of the transform", "1"),
        "refit": ("change of the transform by refitting", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_node("of", self.of)
        check_number("max_condition", self.max_condition, 1)

    @property
    def name(self) -> str:
        """The label, or the name of the concepts with ``-transforms``."""
        return self.label or f"{self.of}-transforms"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The concepts' node, whose refits are the noise floor."""
        return (self.of,)

    def needs(self) -> Sequence[Need]:
        """Return dictionaries and codes of all steps."""
        return [Series(self.of, ("dictionary", "code_coordinates"))]

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return transforms, errors, determinants and velocities of one layer."""
        data = reading.data.dropna("feature", how="all", subset=["dictionary"])
        steps = data.step.values
        if reading.reference_step not in steps:
            raise ArgumentError(f"the reference step {reading.reference_step} has no fit")
        W = _table(data.dictionary, "step", "feature", "concept")
        sides = data.code_coordinates.transpose("side", "step", "coordinate", "concept")
        U_ref, U = (_table(sides.sel(side=s), "step", ...) for s in ("reference", "here"))
        W_ref = W[int(np.argmax(steps == reading.reference_step))]
        order = align(np.broadcast_to(W_ref, W.shape), W, under="signed-permutation").transform
        found = {
            "as returned": self._transforms(W, U, W_ref, U_ref),
            "matched": self._transforms(W @ order, U @ order, W_ref, U_ref),
        }
        return _described(steps, found)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add what refitting gives, words and figures."""
        return summarise_transforms(data, nodes[self.of], self.of)

    def _transforms(
        self, W: np.ndarray, U: np.ndarray, W_ref: np.ndarray, U_ref: np.ndarray
    ) -> list[dynamics.Transform]:
        return [
            dynamics.transform(w, u, W_ref, b, max_condition=self.max_condition)
            for w, u, b in zip(W, U, U_ref, strict=True)
        ]


def _described(steps: np.ndarray, found: Mapping[str, list[dynamics.Transform]]) -> xr.Dataset:
    matched = found["matched"]
    raw = found["as returned"]
    maps = [
        [t.general for t in matched],
        [t.orthogonal for t in matched],
        [t.identity for t in matched],
        [t.identity for t in raw],
    ]
    sizes = {
        "codes": np.array([t.codes_norm for t in matched]),
        "dictionary": np.array([t.dictionary_norm for t in matched]),
    }
    paths = [
        dynamics.transform_path(steps, np.stack([t.matrix for t in found[name]]))
        for name in MATCHINGS
    ]
    result: dict[str, Any] = {
        name: (("matching", "step"), np.stack([getattr(path, attribute) for path in paths]))
        for name, attribute in _PATH.items()
    }
    for side, size in sizes.items():
        values = np.array([[getattr(e, side) for e in each] for each in maps])
        safe = np.where(size > 0, size, 1.0)
        result[f"{side}_error"] = (("mapping", "step"), values / safe)
    result |= {
        name: ("step", np.array([float(getattr(t, name)) for t in matched]))
        for name in ("log_det", "condition")
    }
    result["transform_rank"] = ("step", np.array([float(t.rank) for t in matched]))
    shares = [[t.shares[name] for t in matched] for name in SHARES]
    matrices = np.stack([t.matrix for t in matched]).astype(np.float32)
    result["share"] = (("share_of", "step"), np.array(shares))
    result["transform"] = (("step", "concept", "concept_"), matrices)
    coords = {
        "step": steps,
        "mapping": list(MAPS),
        "matching": list(MATCHINGS),
        "share_of": list(SHARES),
    }
    return xr.Dataset(result, coords=coords)


def _table(values: xr.DataArray, *dims: Any) -> np.ndarray:
    return values.transpose(*dims).values.astype(np.float64)
