"""The concepts of all steps as points of one plane (Bernas 2025, Fig. 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from ontogeny import distances
from ontogeny.figures import Scatter, Section
from ontogeny.observables.readings import SeriesReading
from ontogeny.trees import Nodes

from ...distances.alignment import aligned_to
from .series import ConceptSeries, finished_dictionaries

_AXES = ("first", "second")


_PLANE = Scatter(
    "plane",
    "Concepts of all {checkpoint}s in one plane",
    x="first",
    y="second",
    points=("step", "concept"),
    facet="layer",
    colour="step",
    caption="Leading principal components of the concepts of all {checkpoint}s; permuted and signed "
    "to fit the reference {checkpoint}'s.",
)


@dataclass(frozen=True)
class ConceptPlane(ConceptSeries):
    """The leading plane of all concepts of all steps of a `Concepts` node, layer by layer.

    Concepts are first permuted and signed to fit the reference step's. At the steps where the node
    was refitted, one refit (another seed, or resampled texts) is drawn on the same axes: what the
    picture owes to the solver.

    Parameters
    ----------
    of
        Name of the `Concepts` node.

    Examples
    --------
    >>> ConceptPlane("concepts-ica").name
    'concepts-ica-plane'
    """

    kind = "concept-plane"
    question = "How do all concepts of all steps lie in one plane?"
    suffix = "plane"
    variables = {
        "first": ("concept, component 1", "dictionary units"),
        "second": ("concept, component 2", "dictionary units"),
        "refit_first": ("refitted concept, component 1", "dictionary units"),
        "refit_second": ("refitted concept, component 2", "dictionary units"),
        "explained_variance": ("share of the variance of the concepts", "1"),
        "direction": ("direction of a component, of length 1", "1"),
        "centre": ("mean of all concepts", "dictionary units"),
    }
    section = Section(
        title="Concepts in a plane ({of})",
        definition="Every concept of every {checkpoint} is a point of the feature space; the plane "
        "is that of the two leading principal components of all of them together.",
        symbol="(w_tj − w̄) · (v₁, v₂)",
        null="Refits at one {checkpoint} on the same axes: where they are spread as far as the "
        "{checkpoint}s are, the picture shows the solver. The plane is fitted to the "
        "{checkpoint}s, which makes refits look a little closer.",
        care="Two components of many dimensions. Smooth curves of any kind look like arcs in their "
        "principal components, a random walk too.",
        source="Bernas 2025, sec. 8.7.1, Fig. 11",
    )
    charts = (
        _PLANE,
        replace(
            _PLANE,
            id="refits",
            title="Refits on the same axes",
            x="refit_first",
            y="refit_second",
            caption="At the {checkpoint}s of the noise floor: another seed, or resampled texts; "
            "matched to the reference {checkpoint}'s like the others.",
        ),
    )

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``first`` and ``second`` (step, concept), and the plane that they are of."""
        steps, features, W, reference = finished_dictionaries(reading)
        stack = aligned_to(W[reference], W)
        plane = distances.concept_plane(stack, steps=steps)
        places = {
            name: plane.position.isel(axis=i, drop=True) for i, name in enumerate(_AXES)
        }
        return xr.Dataset(
            {
                **places,
                "explained_variance": plane.explained_variance,
                "direction": (("axis", "feature"), plane.direction.values),
                "centre": ("feature", plane.centre.values),
            },
            coords={"feature": features},
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add refits on the same axes."""
        of = nodes[self.of]
        return _with_refits(data, of) if "refit_dictionary" in of else data

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what share of the variance is shown, and how far refitting moves a concept."""
        share = data.explained_variance.sum("axis", min_count=2)
        if not np.isfinite(share).any():
            return []
        low, high = (100 * float(f(share)) for f in (np.nanmin, np.nanmax))
        words = [
            f"The planes hold {low:.0f} to {high:.0f} % of the variance of the concepts."
        ]
        if "refit_first" not in data:
            return words
        moves, refits = _lengths(data)
        both = np.isfinite(moves) & np.isfinite(refits)
        if both.any():
            words.append(
                f"At the refitted {{checkpoint}}s a concept lies {np.median(refits[both]):.2g} "
                f"from its refit in its plane, and {np.median(moves[both]):.2g} from itself at the "
                "checkpoints beside (root mean squares over concepts, medians of "
                f"{int(both.sum())} layers and {{checkpoint}}s); refitting moves it as far or "
                f"further in {int((refits >= moves)[both].sum())}."
            )
        return words


def _with_refits(data: xr.Dataset, node: xr.Dataset) -> xr.Dataset:
    """Add the places (layer, step, concept) of refits, matched to the reference as all steps are.

    Matched to the fit of their own step they would lie closer to it than steps can to each other.
    """
    places = np.full(
        (2, *data.first.transpose("layer", "step", "concept").shape), np.nan
    )
    at = np.abs(data.step.values - data.attrs["reference_step"])
    for i, layer in enumerate(data.layer.values):
        one = data.sel(layer=layer).dropna("feature", how="all", subset=["centre"])
        of = node.sel(layer=layer, feature=one.feature, step=data.step)
        W, refit = (
            of[name].transpose("step", "feature", "concept").values.astype(float)
            for name in ("dictionary", "refit_dictionary")
        )
        there = np.flatnonzero(np.isfinite(W).all((1, 2)))
        both = there[np.isfinite(refit[there]).all((1, 2))]
        if not len(both):
            continue
        reference = W[there[np.argmin(at[there])]]
        centred = aligned_to(reference, refit[both]) - one.centre.values[:, None]
        places[:, i, both] = np.einsum("af,sfc->asc", one.direction.values, centred)
    dims = ("layer", "step", "concept")
    return data.assign(
        {f"refit_{name}": (dims, places[i]) for i, name in enumerate(_AXES)}
    )


def _lengths(data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return how far concepts lie from the checkpoints beside and from refits, (layer, step).

    One number for each layer and step, since the size of dictionaries differs between them.
    """
    dims = ("layer", "step", "concept")
    at, refit = (
        np.stack([data[f"{kind}{name}"].transpose(*dims).values for name in _AXES])
        for kind in ("", "refit_")
    )
    squares = np.square(np.diff(at, axis=2)).sum(axis=0).mean(axis=-1)
    beside = np.full((2, *at.shape[1:3]), np.nan)
    beside[0, :, 1:] = squares
    beside[1, :, :-1] = squares
    is_finite = np.isfinite(beside)
    total = np.where(is_finite, beside, 0.0).sum(axis=0) / np.maximum(
        is_finite.sum(axis=0), 1
    )
    moves = np.sqrt(np.where(is_finite.any(axis=0), total, np.nan))
    return moves, np.sqrt(np.square(refit - at).sum(axis=0).mean(axis=-1))
