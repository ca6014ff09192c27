"""Smooth and noisy regimes of any curve over training, of each layer and of all (row A18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...dynamics import Regimes as Found
from ...dynamics import holm, regimes
from ...errors import check_number, check_whole
from ...figures import Boundary, Column, Curves, Section, Table, attach
from ...summary import Names
from .base import OfCurve, curve_reference, short


@dataclass(frozen=True)
class Regimes(OfCurve):
    """Where the noise around the trend of a node's curves changes, or that it does not.

    Once for each layer, and once for all layers jointly: the run's boundary.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.observables.curves.OfCurve`.
    jointly
        A further dimension of the variable, such as the heads of attention entropy or the
        coordinates of an activation path: a layer's curves along it are judged together, instead
        of the one that `select` picks.
    alpha
        Level of the tests; over the layers their p-values are corrected (Holm).
    draws, random_state
        Draws of null and bootstrap, and their seed.

    Examples
    --------
    >>> Regimes("concepts-ica").name
    'concepts-ica-regimes'
    >>> Regimes("activation-path", "path", jointly="coordinate").name
    'activation-path-regimes'
    """

    jointly: str = ""
    alpha: float = 0.05
    draws: int = 199
    random_state: int = 0

    kind: ClassVar[str] = "regimes"
    variables: ClassVar[Names] = {
        "boundary": ("boundary", "steps"),
        "boundary_p": ("p-value of a boundary, corrected", "1"),
        "noise_ratio": ("noise after over before", "1"),
        "other_boundary": ("second boundary", "steps"),
        "trend": ("trend of the curve", "as curve"),
        "residual": ("difference from the neighbours' cubic", "as curve"),
        "residual_size": ("noise around the trend", "as curve"),
        "noise_before": ("noise before", "as curve"),
        "noise_after": ("noise after", "as curve"),
        "joint_boundary": ("boundary of all layers", "steps"),
        "joint_other_boundary": ("second boundary of all layers", "steps"),
        "joint_noise_before": ("noise before, all layers", "as curve"),
        "joint_noise_after": ("noise after, all layers", "as curve"),
        "joint_noise_ratio": ("noise after over before, all layers", "1"),
        "joint_p": ("p-value of a boundary, all layers", "1"),
        "joint_p_third": ("p-value of a third regime, all layers", "1"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("alpha", self.alpha, 0, 1, above=True, below=True)
        check_whole("draws", self.draws, minimum=19)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add boundaries of each layer and of all, noise on both sides, figures and sentences."""
        data = self.curves(data, nodes, self.jointly)
        curves = self.tabulated(data)
        steps = data.step.values
        options: dict[str, Any] = {
            "reference_index": curve_reference(data, curves),
            "alpha": self.alpha,
            "n_draws": self.draws,
            "random_state": self.random_state,
        }
        joint = regimes(steps, curves.reshape(len(steps), -1), **options)
        single = [regimes(steps, curves[:, i], **options) for i in range(curves.shape[1])]
        p = holm([found.p_value for found in single])
        kept = (p <= self.alpha) & [found.boundary is not None for found in single]
        rows = [_row(found, bool(keep)) for found, keep in zip(single, kept, strict=True)]
        columns = {name: ("layer", np.array([row[name] for row in rows])) for name in rows[0]}
        shared = {f"joint_{name}": value for name, value in _row(joint).items()}
        dims = data.curve.dims
        data = (
            data.assign(columns)
            .assign(shared)
            .assign(
                trend=(dims, joint.trend.reshape(curves.shape)),
                residual=(dims, joint.residuals.reshape(curves.shape)),
                boundary_p=("layer", p),
                joint_p=joint.p_value,
                joint_p_third=joint.p_third,
            )
        )
        figures = _FIGURES
        if self.jointly:
            size = (data.residual**2).mean(self.jointly) ** 0.5
            data = data.assign(residual_size=size)
            figures = [_SIZES, _LAYERS]
        words = _words(self.of, joint, int(kept.sum()), int(np.isfinite(p).sum()))
        return attach(data, _section(self.of), figures, words, role="regimes")


def _row(found: Found, keep: bool = True) -> dict[str, float]:
    """Return the boundary in numbers; NaN without one, or where it is not kept."""
    nothing = float("nan")
    if found.boundary is None or found.interval is None or not keep:
        return {
            "boundary": nothing,
            "boundary_low": nothing,
            "boundary_high": nothing,
            "other_boundary": nothing,
            "noise_before": _size(found.regimes[0].noise) if found.regimes else nothing,
            "noise_after": nothing,
            "noise_ratio": nothing,
            "noise_ratio_low": nothing,
            "noise_ratio_high": nothing,
        }
    place = found.boundaries.index(found.boundary)
    before, after = (_size(found.regimes[i].noise) for i in (place, place + 1))
    others = [b for b in found.boundaries if b != found.boundary]
    low, high = found.noise_ratio_interval
    falls = after < before
    ratio = 1 / found.noise_ratio if falls else found.noise_ratio
    sides = (found.regimes[place], found.regimes[place + 1])
    if found.smooth not in sides or found.noisy not in sides:  # of three: not what is beside it
        ratio, low, high = after / before, nothing, nothing
    return {
        "boundary": found.boundary,
        "boundary_low": found.interval[0],
        "boundary_high": found.interval[1],
        "other_boundary": others[0] if others else nothing,
        "noise_before": before,
        "noise_after": after,
        "noise_ratio": ratio,
        "noise_ratio_low": 1 / high if falls else low,
        "noise_ratio_high": 1 / low if falls else high,
    }


def _size(noise: float | np.ndarray) -> float:
    """Return the geometric mean over layers of the noise."""
    sizes = np.atleast_1d(noise)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.exp(np.log(sizes).mean())) if len(sizes) else float("nan")


def _words(of: str, joint: Found, layers: int, count: int) -> list[str]:
    if joint.reason:
        return [f"Regimes of {of}: {joint.reason}."]
    if joint.boundary is None or joint.interval is None:
        text = (
            f"The noise around the curves of {of} does not visibly change with the step, all "
            f"layers together (p = {joint.p_value:.2f})"
        )
    else:
        low, high = joint.interval
        least, most = joint.noise_ratio_interval
        text = (
            f"The curves of {of} are {joint.order.replace('three', 'of three regimes')}, with a "
            f"boundary at step {short(joint.boundary)} ({short(low)}-{short(high)}); the noise "
            f"of the noisiest is {joint.noise_ratio:.1f} times that of the smoothest "
            f"({least:.1f}-{most:.1f})"
        )
    words = [f"{text}."]
    if count:
        words.append(f"In {layers} of {count} layers judged alone the noise changes.")
    if joint.spacing_ratio > 2 or joint.spacing_ratio < 0.5:
        words.append(
            f"Checkpoints of the noisy regime lie {joint.spacing_ratio:.2g} times as far apart as "
            "those of the smooth one, which changes the noise by itself."
        )
    return words


def _section(of: str) -> Section:
    return Section(
        title=f"Regimes ({of})",
        definition="Where the noise around the trend of the curves changes: a smooth and a noisy "
        "part of training, found rather than set by hand.",
        symbol="mₜ = trend(t) + σ(t) εₜ",
        null="The same trends with noise of one level throughout; the boundary must save more "
        "than 95 % of such series give. Intervals: bootstrap.",
        care="Noise is what neighbouring checkpoints do not foretell: it depends on their "
        "spacing. The boundary is found about one checkpoint early. The curve of one layer says "
        "little with fewer than 30 checkpoints. Jumps of a curve are told from noise; several soft "
        "bends, over two or three checkpoints each, can still look like it.",
        source="Bernas 2025, sec. 5.1 and 6",
    )


_JOINT = Boundary(
    "joint_boundary", "joint_boundary_low", "joint_boundary_high", "joint_noise_ratio"
)
_LAYERS = Table(
    "layers",
    "Each layer by itself",
    columns=[
        Column("boundary", "boundary", interval=("boundary_low", "boundary_high")),
        Column("noise_before", "noise before"),
        Column("noise_after", "noise after"),
        Column("noise_ratio", "after / before", interval=("noise_ratio_low", "noise_ratio_high")),
        Column("boundary_p", "p (Holm)"),
    ],
    caption="Without a boundary: the noise of the whole curve stands in the second column.",
)
_SIZES = Curves(
    "noise",
    "Noise around the trend",
    value="residual_size",
    boundaries=[_JOINT],
    y_scale="log",
    caption="Root mean square, over the curves judged together, of each value's difference from "
    "the cubic through its four neighbours.",
)
_FIGURES = [
    Curves(
        "curves",
        "Curves with the boundary of their regimes",
        value="curve",
        reference="trend",
        reference_label="trend",
        boundaries=[_JOINT, Boundary("joint_other_boundary", label="second boundary")],
        caption="The boundary of all layers jointly, with its 95 % interval; the noisier side is "
        "shaded. Dashed: the trend.",
    ),
    Curves(
        "noise",
        "Noise around the trend",
        value="residual",
        boundaries=[_JOINT],
        caption="Difference of each value from the cubic through its four neighbours.",
    ),
    _LAYERS,
]
