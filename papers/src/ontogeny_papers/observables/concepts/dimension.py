"""Intrinsic dimension of the concepts of two regimes, layer by layer (Bernas 2025, Table 3)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import dynamics, geometry
from ontogeny.errors import ArgumentError, NonFiniteError, check_choice, check_number
from ontogeny.figures import Column, Figure, Footer, Section, Table
from ontogeny.observables.arguments import check_names
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.observables.readings import SeriesReading
from ontogeny.quantities import Measured, Quantity
from ontogeny.trees import Nodes

from ...distances.alignment import aligned_to
from ...dynamics.averages import AVERAGES, window_steps
from ...geometry.dimension_change import DimensionChange
from ...geometry.intrinsic import IntrinsicDimension as geometry_IntrinsicDimension
from ...geometry.neighbour_ratios import METHODS
from .series import ConceptSeries, finished_dictionaries

_WINDOWS: dict[str, Any] = {
    "halves": None,
    "found": None,
    "table-2": ((20_000, 100_000), (380_000, 460_000)),
    "table-3": ((10_000, 240_000), (250_000, 480_000)),
}
_AVERAGED = {
    "aligned": "aligned, then averaged",
    "unaligned": "averaged as returned",
    "report-code": "as the report's code averages",
}
_MEANS = {"early": "early window", "late": "late window", "change": "late - early"}
_SHORT = {"early": "early", "late": "late", "change": "late - early"}
_CANDIDATES = (1, 2, 5, 10, 20, 50, 100, 200, 400, 800)


@dataclass(frozen=True)
class IntrinsicDimension(ConceptSeries):
    """TwoNN on the dictionaries of a `Concepts` node, compared over an early and a late window.

    Whether the dimension changes is judged on the means of the checkpoints' own dimensions (see
    `ontogeny.geometry.dimension_change`). The dimensions of dictionaries averaged over a window are
    numbers without a verdict, because they depend on how much the checkpoints agree. Each estimate
    stands beside its standard error, the same estimate on isotropic points of the
    same shape, and the Gaussian dimensions that would look like it.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    windows
        ``"halves"`` of the checkpoints; ``"found"``: before and after the regime boundary of the
        layer's concepts (halves where none is found); ``"table-2"`` and ``"table-3"``: the
        report's; or two pairs of steps.
    averages
        See `ontogeny.dynamics.average_dictionary`.
    methods
        See `ontogeny.geometry.two_nn`.
    discard
        Share of the largest ratios left out.
    n_draws
        Draws of each null.
    random_state
        Seed of the nulls.

    Examples
    --------
    >>> IntrinsicDimension("concepts-ica").name
    'concepts-ica-dimension'
    """

    windows: str | tuple[tuple[float, float], ...] = "halves"
    averages: tuple[str, ...] = AVERAGES
    methods: tuple[str, ...] = ("regression", "likelihood")
    discard: float = 0.0
    n_draws: int = 20
    random_state: int = 0

    kind = "intrinsic-dimension"
    minima = {"n_draws": 2}
    question = "In how many dimensions do the dictionaries lie, early and late?"
    fewest_steps = 2
    presets = (PresetEntry(("everything",), {"of": "concepts-ica"}, 110),)
    suffix = "dimension"
    quantities = (
        *(
            Quantity(
                when,
                f"{when} window, averaged dictionaries",
                "dimensions",
                symbol="d",
                nulls={"null": "isotropic points"},
            )
            for when in ("early", "late")
        ),
        *(
            Quantity(
                f"checkpoint_{name}",
                f"{title}, mean over checkpoints",
                "dimensions",
                figure=False,
            )
            for name, title in _MEANS.items()
        ),
        Quantity(
            "step_dimension",
            "TwoNN dimension of one checkpoint's concepts",
            "dimensions",
            heading="concepts of one checkpoint",
            unit="concepts",
            nulls={"null": "isotropic points"},
            caption="TwoNN on the dictionary of each checkpoint by itself.",
        ),
    )
    variables = {
        "early_mean": ("early window, mean over layers", "dimensions"),
        "late_mean": ("late window, mean over layers", "dimensions"),
        "window_low": ("first {checkpoint} of the window", "{step}s"),
        "window_high": ("last {checkpoint} of the window", "{step}s"),
        "boundary_found": ("whether a regime boundary was found", "1"),
        "p_change": ("p-value of a change of dimension", "1"),
        "looks_like": ("Gaussian dimension that would look like it", "dimensions"),
    }
    section = Section(
        title="Intrinsic dimension of concepts ({of})",
        definition="How many directions the cloud of concepts fills locally, from the distances "
        "of each concept to its two nearest others (TwoNN).",
        symbol="P(r₂/r₁ > t) = t⁻ᵈ",
        null="Isotropic Gaussian points of the same number and length: with few points the "
        "estimate stays far below the number of features.",
        care="Compare with the null before reading a number as a dimension. One checkpoint's SVD "
        "dictionary has orthogonal columns: its number describes the spectrum. PCA is undefined "
        "and refused. The dimension of averaged dictionaries falls or rises with how much the "
        "checkpoints of a window agree, so it has no verdict.",
        source="Bernas 2025, Algorithm 4 and Table 3; Facco et al. 2017",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        if isinstance(self.windows, str):
            check_choice("windows", self.windows, _WINDOWS)
        else:
            _check_windows(self.windows)
        check_names("averages", self.averages, AVERAGES)
        check_names("methods", self.methods, METHODS)
        check_number("discard", self.discard, 0, 0.5, below=True)

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return dimensions, errors and nulls of one layer: by window, and step by step."""
        steps, _, W, at = finished_dictionaries(reading)
        boundary = _boundary_index(steps, W, W[at]) if self.windows == "found" else None
        windows = self._windows(steps, boundary)
        inside = [window_steps(steps, window) for window in windows]
        result: dict[str, Any] = {}
        like: list[tuple[float, float]] = []
        for when, mask in zip(("early", "late"), inside, strict=True):
            table = [
                [self._estimate(W[mask], how, method, W[at]) for method in self.methods]
                for how in self.averages
            ]
            parts = [
                (
                    ("average", "estimator"),
                    [[getattr(one, part) for one in row] for row in table],
                )
                for part in ("value", "stderr", "null")
            ]
            result |= Measured(
                parts[0], stderr=parts[1], nulls={"null": parts[2]}
            ).variables(when)
            like.append(self._looks_like(table[0][0]))
        low, high = zip(*windows, strict=True)
        return xr.Dataset(
            {
                **result,
                "window_low": ("window", np.array(low, dtype=float)),
                "window_high": ("window", np.array(high, dtype=float)),
                "boundary_found": np.float64(boundary is not None),
                "looks_like_low": ("window", [low for low, _ in like]),
                "looks_like_high": ("window", [high for _, high in like]),
                # First, since it says why a dimension is undefined.
                **self._by_step(W).variables("step_dimension"),
                **self._change(W, inside, W[at]),
            },
            coords={
                "average": list(self.averages),
                "estimator": list(self.methods),
                "window": ["early", "late"],
                "step": steps,
            },
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add means over layers."""
        return data.assign(
            early_mean=data.early.mean("layer"), late_mean=data.late.mean("layer")
        )

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return a table of both windows, and one for every average and method."""
        checkpoints = [
            Column(f"checkpoint_{n}", title, sd=f"checkpoint_{n}_stderr")
            for n, title in _SHORT.items()
        ]
        table = Table(
            "windows",
            "Early and late, mean over each window's checkpoints",
            columns=[*checkpoints, Column("p_change", "p")],
            caption="In brackets the standard error. p: the dimension is the same in both windows.",
        )
        averaged = [
            Table(
                f"windows-{how}-{method}",
                f"Dictionaries {_AVERAGED[how]}, by {method}",
                columns=[
                    Column("early", "early", sd="early_stderr"),
                    Column("late", "late", sd="late_stderr"),
                    Column("early_null", "isotropic"),
                ],
                footer=[
                    Footer(
                        "mean over layers", {"early": "early_mean", "late": "late_mean"}
                    )
                ],
                select={"average": how, "estimator": method},
                caption="In brackets the standard error of one cloud. How the windows differ here "
                "depends on how much their checkpoints agree, so it is no change of dimension.",
            )
            for how in self.averages
            for method in self.methods
        ]
        return [table, *averaged]

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return in how many layers the checkpoints' dimensions fall or rise."""
        change = data.checkpoint_change.values
        p = data.p_change.values
        one = data.sel(average=self.averages[0], estimator=self.methods[0])
        mask = np.isfinite(one.early.values)
        judged = np.isfinite(p)
        if not mask.any():
            return ["The intrinsic dimension is undefined in all layers."]
        lower, higher = (int((p[sign * change > 0] < 0.05).sum()) for sign in (-1, 1))
        count = int(judged.sum())
        text = (
            f"{self.of}: from the early to the late window the dimension of the checkpoints' "
            f"concepts falls in {lower} of {count} layers and rises in {higher} (p < .05 each, so "
            f"chance alone gives at most about {0.025 * count:.1f} of each)."
            if count
            else f"{self.of}: whether the dimension changes cannot be judged in {int(mask.sum())} "
            "layers. Four checkpoints are needed in each window, with concepts that are not all "
            "orthogonal."
        )
        like = int((one.early.values >= one.early_null.values * 0.75)[mask].sum())
        text += (
            f" In {like} of {int(mask.sum())} layers the early estimate of averaged dictionaries "
            "is at least three quarters of that of isotropic points."
        )
        if self.windows == "found":
            text += (
                f" A regime boundary was found in {int(data.boundary_found.values[mask].sum())} "
                f"of {int(mask.sum())} layers; the others are cut in halves."
            )
        return [text]

    def _change(
        self, W: np.ndarray, inside: Sequence[np.ndarray], reference: np.ndarray
    ) -> dict[str, Any]:
        """Return the mean dimension of each window's checkpoints, and whether they differ."""
        clouds = aligned_to(reference, W).transpose(0, 2, 1)
        try:
            change = geometry.dimension_change(
                clouds, inside[0], inside[1], self.methods[0], discard=self.discard
            )
        except ArgumentError:  # orthogonal at every checkpoint, as SVD is
            change = DimensionChange(*[np.nan] * 6)
        values = {
            "early": (change.early, change.early_stderr),
            "late": (change.late, change.late_stderr),
            "change": (change.difference, change.stderr),
        }
        result: dict[str, Any] = {"p_change": change.p_value}
        for name, (value, stderr) in values.items():
            result |= Measured(((), value), stderr=((), stderr)).variables(
                f"checkpoint_{name}"
            )
        return result

    def _windows(
        self, steps: np.ndarray, boundary: int | None
    ) -> tuple[tuple[float, float], ...]:
        """Return the early and the late window; a boundary is the index of the late one's start."""
        if not isinstance(self.windows, str):
            return self.windows
        if _WINDOWS[self.windows] is not None:
            return _WINDOWS[self.windows]
        cut = len(steps) // 2 if boundary is None else boundary
        return (steps[0], steps[cut - 1]), (steps[cut], steps[-1])

    def _estimate(
        self, W: np.ndarray, how: str, method: str, reference: np.ndarray
    ) -> geometry_IntrinsicDimension:
        group = min(24, len(W) * W.shape[2] // 8) if how == "report-code" else 24
        cloud = dynamics.average_dictionary(
            W, how, reference=reference, group=max(group, 1)
        )
        return self._two_nn(cloud, method, self.n_draws)

    def _two_nn(
        self, cloud: np.ndarray, method: str, n_draws: int
    ) -> geometry_IntrinsicDimension:
        with warnings.catch_warnings():
            # Said once, in the section's words; SVD of one step is the case.
            warnings.simplefilter("ignore", geometry.SpectrumOnlyWarning)
            return geometry.two_nn(
                cloud,
                method,
                discard=self.discard,
                n_draws=n_draws,
                random_state=self.random_state,
            )

    def _looks_like(self, size: geometry_IntrinsicDimension) -> tuple[float, float]:
        """Return the smallest and largest Gaussian dimension that would look like an estimate."""
        table = geometry.two_nn_calibrated(
            size, list(_CANDIDATES), random_state=self.random_state
        )
        dims = table.dimension.values[table.compatible.values]
        return (float(dims.min()), float(dims.max())) if len(dims) else (np.nan, np.nan)

    def _by_step(self, W: np.ndarray) -> Measured:
        """Return dimension, error and null of every checkpoint's concepts."""
        value, error = np.array([self._of_step(w) for w in W]).T
        if np.isnan(value).all():
            self._two_nn(W[0].T, self.methods[0], 0)  # says why it is undefined
        null = geometry.two_nn_null(
            W.shape[2],
            W.shape[1],
            self.methods[0],
            discard=self.discard,
            n_draws=self.n_draws,
            random_state=self.random_state,
        )
        return Measured(
            ("step", value), stderr=("step", error), nulls={"null": ("draw", null)}
        )

    def _of_step(self, W: np.ndarray) -> tuple[float, float]:
        """Return dimension and error of one checkpoint's concepts; NaN where undefined."""
        try:
            size = self._two_nn(W.T, self.methods[0], 0)
        except (ArgumentError, NonFiniteError):
            return np.nan, np.nan
        return size.value, size.stderr


def _boundary_index(
    steps: np.ndarray, W: np.ndarray, reference: np.ndarray
) -> int | None:
    """Return the first step after the regime boundary of the distances to the reference."""
    moved = aligned_to(reference, W) - reference
    curve = np.sqrt((moved**2).sum((1, 2)))
    here = curve > 0  # the reference itself is at 0 by construction
    boundary = dynamics.regimes(steps[here], curve[here]).boundary
    if boundary is None:
        return None
    index = int(np.searchsorted(steps, boundary))
    return index if 0 < index < len(steps) else None


def _check_windows(windows: tuple[tuple[float, float], ...]) -> None:
    if len(windows) != 2 or not all(
        -np.inf < low <= high < np.inf for low, high in windows
    ):
        raise ArgumentError(
            f"windows must be one of {', '.join(_WINDOWS)} or two pairs of steps, first and last, "
            f"such as [[0, 100], [200, 400]]; got {windows!r}."
        )
