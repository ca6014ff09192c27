"""The concepts of all steps as points of one plane (row A13, Fig. 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .. import distances
from ..errors import ArgumentError
from ..figures import Scatter, Section, attach
from ..needs import Need, Series
from .attributes import Names
from .base import Observable, SeriesReading

__all__ = ["ConceptPlane"]

_AXES = ("first", "second")


@dataclass(frozen=True)
class ConceptPlane(Observable):
    """The leading plane of all concepts of all steps of a `Concepts` node, layer by layer.

    Concepts are first permuted and signed to fit the reference step's. At the steps where the node
    was refitted, one refit (another seed, or resampled tokens) is drawn on the same axes: what the
    picture owes to the solver.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> ConceptPlane("concepts-ica").name
    'concepts-ica-plane'
    """

    of: str
    label: str | None = None

    kind: ClassVar[str] = "concept-plane"
    variables: ClassVar[Names] = {
        "first": ("concept, component 1", "dictionary units"),
        "second": ("concept, component 2", "dictionary units"),
        "refit_first": ("refitted concept, component 1", "dictionary units"),
        "refit_second": ("refitted concept, component 2", "dictionary units"),
        "explained_variance": ("share of the variance of the concepts", "1"),
        "direction": ("direction of a component, of length 1", "1"),
        "centre": ("mean of all concepts", "dictionary units"),
    }

    @property
    def name(self) -> str:
        """The label, or the name of the concepts with ``-plane``."""
        return self.label or f"{self.of}-plane"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The concepts' node, which holds the refits."""
        return (self.of,)

    def needs(self) -> Sequence[Need]:
        """Return the dictionaries of all steps."""
        return [Series(self.of, ("dictionary",))]

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``first`` and ``second`` (step, concept), and the plane that they are of."""
        data = reading.data.dropna("feature", how="all", subset=["dictionary"])
        steps = data.step.values
        if len(steps) < 2:
            raise ArgumentError("a plane of all steps needs at least two finished steps")
        W = data.dictionary.transpose("step", "feature", "concept").values.astype(np.float64)
        stack = _aligned(W, int(np.argmin(np.abs(steps - reading.reference_step))))
        plane = distances.concept_plane(stack, steps=steps)
        places = {name: plane.position.isel(axis=i, drop=True) for i, name in enumerate(_AXES)}
        return xr.Dataset(
            {
                **places,
                "explained_variance": plane.explained_variance,
                "direction": (("axis", "feature"), plane.direction.values),
                "centre": ("feature", plane.centre.values),
            },
            coords={"feature": data.feature.values},
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add refits on the same axes, words and figures."""
        refitted = "refit_dictionary" in nodes[self.of]
        if refitted:
            data = _with_refits(data, nodes[self.of])
        return attach(data, _section(self.of), _figures(refitted), _words(data, refitted))


def _aligned(W: np.ndarray, reference: int) -> np.ndarray:
    base = np.broadcast_to(W[reference], W.shape)
    return np.asarray(distances.align(base, W, under="signed-permutation").aligned)


def _with_refits(data: xr.Dataset, node: xr.Dataset) -> xr.Dataset:
    """Add the places (layer, step, concept) of refits, each matched to the fit of its step."""
    places = np.full((2, *data.first.transpose("layer", "step", "concept").shape), np.nan)
    at = np.abs(data.step.values - data.attrs["reference_step"])
    for i, layer in enumerate(data.layer.values):
        one = data.sel(layer=layer).dropna("feature", how="all", subset=["centre"])
        of = node.sel(layer=layer, feature=one.feature, step=data.step)
        W, refit = (
            of[name].transpose("step", "feature", "concept").values.astype(np.float64)
            for name in ("dictionary", "refit_dictionary")
        )
        there = np.flatnonzero(np.isfinite(W).all((1, 2)))
        both = there[np.isfinite(refit[there]).all((1, 2))]
        if not len(both):
            continue
        fitted = np.full_like(W, np.nan)
        fitted[there] = _aligned(W[there], int(np.argmin(at[there])))
        moved = distances.align(fitted[both], refit[both], under="signed-permutation").aligned
        centred = np.asarray(moved) - one.centre.values[:, None]
        places[:, i, both] = np.einsum("af,sfc->asc", one.direction.values, centred)
    dims = ("layer", "step", "concept")
    return data.assign({f"refit_{name}": (dims, places[i]) for i, name in enumerate(_AXES)})


def _words(data: xr.Dataset, refitted: bool) -> list[str]:
    share = data.explained_variance.sum("axis", min_count=2)
    if not np.isfinite(share).any():
        return []
    low, high = (100 * float(f(share)) for f in (np.nanmin, np.nanmax))
    words = [f"The planes hold {low:.0f} to {high:.0f} % of the variance of the concepts."]
    if not refitted:
        return words
    steps = [_length(data, *_AXES, between=True)]
    steps.append(_length(data, *_AXES, between=False))
    if np.isfinite(steps).all():
        words.append(
            f"From checkpoint to checkpoint a concept moves by {steps[0]:.2g} in its plane, by "
            f"refitting at one step {steps[1]:.2g} (root mean squares)."
        )
    return words


def _length(data: xr.Dataset, *axes: str, between: bool) -> float:
    """Return the root mean square of moves between checkpoints, or of refits from their fit."""
    moves = [
        data[name].diff("step") if between else data[f"refit_{name}"] - data[name] for name in axes
    ]
    square = sum(np.square(move.values) for move in moves)
    known = np.isfinite(square)
    return float(np.sqrt(square[known].mean())) if known.any() else float("nan")


def _figures(refitted: bool) -> list[Scatter]:
    shared: dict[str, Any] = {"points": ("step", "concept"), "facet": "layer", "colour": "step"}
    figures = [
        Scatter(
            "plane",
            "Concepts of all steps in one plane",
            x="first",
            y="second",
            caption="Leading principal components of the concepts of all steps; permuted and "
            "signed to fit the reference step's.",
            **shared,
        )
    ]
    if refitted:
        figures.append(
            Scatter(
                "refits",
                "Refits on the same axes",
                x="refit_first",
                y="refit_second",
                caption="At the steps of the noise floor: another seed, or resampled tokens.",
                **shared,
            )
        )
    return figures


def _section(of: str) -> Section:
    return Section(
        title=f"Concepts in a plane ({of})",
        definition="Every concept of every step is a point of the feature space; the plane is "
        "that of the two leading principal components of all of them together.",
        symbol="(w_tj − w̄) · (v₁, v₂)",
        null="Refits at one step on the same axes: where they are spread as far as the steps are, "
        "the picture shows the solver.",
        care="Two components of many dimensions. Smooth curves of any kind look like arcs in their "
        "principal components, a random walk too.",
        source="Bernas 2025, sec. 8.7.1, Fig. 11",
    )
