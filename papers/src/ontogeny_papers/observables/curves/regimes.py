"""Smooth and noisy regimes of any curve over training, of each layer and of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.dynamics import holm
from ontogeny.errors import check_number, check_whole
from ontogeny.figures import Boundary, Curves, Figure, Section
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.summary import NumberTable
from ontogeny.summary.figures import along
from ontogeny.trees import Nodes

from ...dynamics.two_regimes import Regimes as Found
from ...dynamics.two_regimes import regimes
from .base import OfCurve, curve_reference, short


@dataclass(frozen=True)
class Regimes(OfCurve):
    """Where the noise around the trend of a node's curves changes, or that it does not.

    Once for each layer, and once for all layers jointly: the run's boundary.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.features.curves.OfCurve`.
    jointly
        A further dimension of the variable, such as the heads of attention entropy or the
        coordinates of an activation path: a layer's curves along it are judged together, instead
        of the one that `select` picks.
    level
        Level of the tests; over the layers their p-values are corrected (Holm).
    n_draws, random_state
        Draws of null and bootstrap, and their seed.

    Examples
    --------
    >>> Regimes("concepts-ica").name
    'concepts-ica-regimes'
    >>> Regimes("activation-path", "path", jointly="coordinate").name
    'activation-path-regimes'
    """

    jointly: str = ""
    level: float = 0.05
    n_draws: int = 199
    random_state: int = 0

    kind = "regimes"
    question = "When does the noise around a curve's trend change?"
    fewest_steps = 2
    presets = (
        PresetEntry(
            ("everything",),
            {"of": "concepts-ica", "select": {"distance": "procrustes"}},
            210,
        ),
    )
    role = "regimes"
    section = Section(
        title="Regimes ({of})",
        definition="Where the noise around the trend of the curves changes: a smooth and a noisy "
        "part of training, found rather than set by hand.",
        symbol="mₜ = trend(t) + σ(t) εₜ",
        null="The same trends with noise of one level throughout; the boundary must save more "
        "than 95 % of such series give. It must also save more beyond a gradual change of the "
        "noise than 98 % of series give whose noise changes gradually. Intervals: bootstrap.",
        care="Noise is what neighbouring checkpoints do not predict: it depends on their "
        "spacing. The boundary is found about one checkpoint early. The curve of one layer says "
        "little with fewer than 30 checkpoints. Jumps of a curve are distinguished from noise; "
        "soft bends over more than three checkpoints can still look like it. Noise that falls "
        "with the learning rate changes gradually. A boundary says nothing about learning: a "
        "run that moved as far and learned nothing may have the same.",
        source="Bernas 2025, sec. 5.1 and 6",
    )
    tables = (
        NumberTable(
            "layers",
            "Each layer by itself",
            (
                ("boundary", "boundary", "steps", "boundary"),
                ("noise_before", "noise before", "as curve", "noise before"),
                ("noise_after", "noise after", "as curve", "noise after"),
                ("noise_ratio", "noise after over before", "1", "after / before"),
                ("boundary_p", "p-value of a boundary, corrected", "1", "p (Holm)"),
            ),
            caption="Without a boundary: the noise of the whole curve stands in the second column.",
        ),
    )
    variables = {
        "other_boundary": ("second boundary", "{step}s"),
        "trend": ("trend of the curve", "as curve"),
        "residual": ("difference from the neighbours' cubic", "as curve"),
        "residual_size": ("noise around the trend", "as curve"),
        "joint_boundary": ("boundary of all layers", "{step}s"),
        "joint_other_boundary": ("second boundary of all layers", "{step}s"),
        "joint_noise_before": ("noise before, all layers", "as curve"),
        "joint_noise_after": ("noise after, all layers", "as curve"),
        "joint_noise_ratio": ("noise after over before, all layers", "1"),
        "joint_p": ("p-value of a boundary, all layers", "1"),
        "joint_p_gradual": ("p-value of a gradual change, all layers", "1"),
        "joint_gradual_ratio": (
            "noise at the last over the first {checkpoint}, gradually",
            "1",
        ),
        "joint_p_third": ("p-value of a third regime, all layers", "1"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("level", self.level, 0, 1, above=True, below=True)
        check_whole("n_draws", self.n_draws, minimum=19)

    def examined(self, data: xr.Dataset, nodes: Nodes) -> tuple[xr.Dataset, list[str]]:
        """Add boundaries of each layer and of all, and the noise on both sides."""
        curves = self.tabulated(data)
        steps = data.step.values
        options: dict[str, Any] = {
            "reference_index": curve_reference(data, curves),
            "level": self.level,
            "n_draws": self.n_draws,
            "random_state": self.random_state,
        }
        joint = regimes(steps, curves.reshape(len(steps), -1), **options)
        single = [
            regimes(steps, curves[:, i], **options) for i in range(curves.shape[1])
        ]
        p = holm([search.p_value for search in single])
        is_shown = (p <= self.level) & [
            search.boundary is not None for search in single
        ]
        rows = [
            _row(search, bool(keep))
            for search, keep in zip(single, is_shown, strict=True)
        ]
        dims = data.curve.dims
        shared = {f"joint_{name}": value for name, value in _row(joint).items()}
        data = data.assign(along("layer", rows)).assign(shared)
        data = data.assign(
            trend=(dims, joint.trend.reshape(curves.shape)),
            residual=(dims, joint.residuals.reshape(curves.shape)),
            boundary_p=("layer", p),
            joint_p=joint.p_value,
            joint_p_third=joint.p_third,
            joint_p_gradual=joint.p_gradual,
            joint_gradual_ratio=joint.gradual_ratio,
        )
        if self.jointly:
            data = data.assign(
                residual_size=(data.residual**2).mean(self.jointly) ** 0.5
            )
        return data, _words(
            self.of, joint, int(is_shown.sum()), int(np.isfinite(p).sum())
        )

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the curves and the noise around their trends, with the boundaries."""
        names = ("boundary", "boundary_low", "boundary_high", "noise_ratio")
        joint = Boundary(*(f"joint_{name}" for name in names))
        noise = partial(Curves, "noise", "Noise around the trend", boundaries=[joint])
        if self.jointly:
            return [
                noise(
                    value="residual_size",
                    y_scale="log",
                    caption="Root mean square, over the curves judged together, of each value's "
                    "difference from the cubic through its four neighbours.",
                )
            ]
        return [
            Curves(
                "curves",
                "Curves with the boundary of their regimes",
                value="curve",
                reference="trend",
                reference_label="trend",
                boundaries=[
                    joint,
                    Boundary("joint_other_boundary", label="second boundary"),
                ],
                caption="The boundary of all layers jointly, with its 95 % interval; the noisier "
                "side is shaded. Dashed: the trend.",
            ),
            noise(
                value="residual",
                caption="Difference of each value from the cubic through its four neighbours.",
            ),
        ]


_ENDS = ("", "_low", "_high")
_NUMBERS = (
    *(f"boundary{end}" for end in _ENDS),
    "other_boundary",
    "noise_before",
    "noise_after",
    *(f"noise_ratio{end}" for end in _ENDS),
)


def _row(search: Found, keep: bool = True) -> dict[str, float]:
    """Return the boundary in numbers; NaN without one, or where it is not kept."""
    nothing = np.nan
    row = dict.fromkeys(_NUMBERS, nothing)
    if search.boundary is None or search.interval is None or not keep:
        if search.regimes:
            row["noise_before"] = _size(search.regimes[0].noise)
        return row
    place = search.boundaries.index(search.boundary)
    sides = (search.regimes[place], search.regimes[place + 1])
    before, after = (_size(side.noise) for side in sides)
    low, high = search.noise_ratio_interval
    ratio = (search.noise_ratio, low, high)
    # Of three: not what is beside it.
    if search.smooth not in sides or search.noisy not in sides:
        ratio = (after / before, nothing, nothing)
    elif after < before:
        ratio = (1 / search.noise_ratio, 1 / high, 1 / low)
    others = [b for b in search.boundaries if b != search.boundary]
    values = (
        search.boundary,
        *search.interval,
        *(others or [nothing])[:1],
        before,
        after,
        *ratio,
    )
    return dict(zip(_NUMBERS, values, strict=True))


def _size(noise: float | np.ndarray) -> float:
    """Return the geometric mean over layers of the noise."""
    sizes = np.atleast_1d(noise)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.exp(np.log(sizes).mean())) if len(sizes) else np.nan


def _words(of: str, joint: Found, layers: int, count: int) -> list[str]:
    if joint.reason:
        return [f"Regimes of {of}: {joint.reason}."]
    if joint.gradual:
        text = (
            f"The noise around the curves of {of} changes with the {{checkpoint}}, but a gradual "
            f"change ({joint.gradual_ratio:.2g} times from first to last) explains it as well as a "
            f"boundary (p = {joint.p_gradual:.2f}): no boundary"
        )
    elif joint.boundary is None or joint.interval is None:
        text = (
            f"The noise around the curves of {of} does not visibly change with the {{checkpoint}}, "
            f"all layers together (p = {joint.p_value:.2f})"
        )
    else:
        low, high = joint.interval
        least, most = joint.noise_ratio_interval
        text = (
            f"The curves of {of} are {joint.order.replace('three', 'of three regimes')}, with a "
            f"boundary at {{step}} {short(joint.boundary)} ({short(low)}–{short(high)}); the noise "
            f"of the noisiest is {joint.noise_ratio:.1f} times that of the smoothest "
            f"({least:.1f}–{most:.1f})"
        )
    words = [f"{text}."]
    if count:
        words.append(
            f"In {layers} of {count} layers judged alone the noise changes at once."
        )
    if joint.spacing_ratio > 2 or joint.spacing_ratio < 0.5:
        words.append(
            f"Checkpoints of the noisy regime lie {joint.spacing_ratio:.2g} times as far apart as "
            "those of the smooth one, which changes the noise by itself."
        )
    return words
