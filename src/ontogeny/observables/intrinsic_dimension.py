"""Intrinsic dimension of the concepts of two regimes, layer by layer (A12, Table 3)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from .. import dynamics, geometry
from ..errors import ArgumentError, NonFiniteError, check_choice, check_number, check_whole
from ..figures import Band, Column, Curves, Footer, Pair, Section, Table, attach
from ..needs import Need, Series
from ..summary import Names
from .arguments import check_names, check_node
from .base import Observable, SeriesReading

__all__ = ["IntrinsicDimension"]

WINDOWS: dict[str, Any] = {
    "halves": None,
    "found": None,
    "table-2": ((20_000, 100_000), (380_000, 460_000)),
    "table-3": ((10_000, 240_000), (250_000, 480_000)),
}
_CANDIDATES = (1, 2, 5, 10, 20, 50, 100, 200, 400, 800)


@dataclass(frozen=True)
class IntrinsicDimension(Observable):
    """TwoNN on the dictionaries of a `Concepts` node, averaged over an early and a late window.

    Each estimate stands beside its standard error, the same estimate on isotropic points of the
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
    draws
        Draws of each null.
    random_state
        Seed of the nulls.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> IntrinsicDimension("concepts-ica").name
    'concepts-ica-dimension'
    """

    of: str
    windows: str | tuple[tuple[float, float], ...] = "halves"
    averages: tuple[str, ...] = dynamics.AVERAGES
    methods: tuple[str, ...] = ("regression", "likelihood")
    discard: float = 0.0
    draws: int = 20
    random_state: int = 0
    label: str | None = None

    kind: ClassVar[str] = "intrinsic-dimension"
    version: ClassVar[int] = 2
    variables: ClassVar[Names] = {
        "early": ("early window", "dimensions"),
        "late": ("late window", "dimensions"),
        "difference": ("late - early", "dimensions"),
        "step_dimension": ("TwoNN dimension of one checkpoint's concepts", "dimensions"),
        **dict.fromkeys(("early_null", "late_null"), ("isotropic points", "dimensions")),
        "early_sd": ("early window, standard error", "dimensions"),
        "late_sd": ("late window, standard error", "dimensions"),
        "difference_sd": ("late - early, standard error", "dimensions"),
        "early_mean": ("early window, mean over layers", "dimensions"),
        "late_mean": ("late window, mean over layers", "dimensions"),
        "window_low": ("first step of the window", "steps"),
        "window_high": ("last step of the window", "steps"),
        "boundary_found": ("whether a regime boundary was found", "1"),
        "looks_like": ("Gaussian dimension that would look like it", "dimensions"),
        "step_low": ("one checkpoint's concepts, lower end", "dimensions"),
        "step_high": ("one checkpoint's concepts, upper end", "dimensions"),
        "null": ("isotropic points", "dimensions"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_node("of", self.of)
        if isinstance(self.windows, str):
            check_choice("windows", self.windows, WINDOWS)
        else:
            _check_windows(self.windows)
        check_names("averages", self.averages, dynamics.AVERAGES)
        check_names("methods", self.methods, ("regression", "origin", "likelihood"))
        check_number("discard", self.discard, 0, 0.5, below=True)
        check_whole("draws", self.draws, minimum=2)

    @property
    def name(self) -> str:
        """The label, or the name of the concepts with ``-dimension``."""
        return self.label or f"{self.of}-dimension"

    def needs(self) -> Sequence[Need]:
        """Return the dictionaries of all steps."""
        return [Series(self.of, ("dictionary",))]

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return dimensions, errors and nulls of one layer: by window, and step by step."""
        data = reading.data.dropna("feature", how="all", subset=["dictionary"])
        steps = data.step.values
        W = data.dictionary.transpose("step", "feature", "concept").values.astype(np.float64)
        reference = W[int(np.argmin(np.abs(steps - reading.reference_step)))]
        boundary = _boundary_index(steps, W, reference) if self.windows == "found" else None
        windows = self._windows(steps, boundary)
        inside = [dynamics.window_steps(steps, w) for w in windows]
        values = {
            (how, method): [self._estimate(W[i], how, method, reference) for i in inside]
            for how in self.averages
            for method in self.methods
        }
        result = {
            f"{when}{suffix}": (
                ("average", "estimator"),
                [[getattr(values[h, m][k], field) for m in self.methods] for h in self.averages],
            )
            for k, when in enumerate(("early", "late"))
            for suffix, field in (("", "value"), ("_sd", "stderr"), ("_null", "null"))
        }
        low, high = zip(*windows, strict=True)
        return xr.Dataset(
            {
                **result,
                "window_low": ("window", np.array(low, dtype=float)),
                "window_high": ("window", np.array(high, dtype=float)),
                "boundary_found": np.float64(boundary is not None),
                **self._looks_like(values[self.averages[0], self.methods[0]]),
                **self._by_step(W),
            },
            coords={
                "average": list(self.averages),
                "estimator": list(self.methods),
                "window": ["early", "late"],
                "step": steps,
            },
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add differences, means over layers, words, the table and the curves."""
        error = np.hypot(data.early_sd, data.late_sd)
        data = data.assign(
            difference=data.late - data.early,
            difference_sd=error,
            early_mean=data.early.mean("layer"),
            late_mean=data.late.mean("layer"),
        )
        for when in ("early", "late"):
            data[when].attrs.update(symbol="d")
        return attach(data, _section(self.of), self._figures(), _statements(data, self))

    def _windows(self, steps: np.ndarray, boundary: int | None) -> tuple[tuple[float, float], ...]:
        """Return the early and the late window; a boundary is the position of the late one."""
        if not isinstance(self.windows, str):
            return self.windows
        if WINDOWS[self.windows] is not None:
            return WINDOWS[self.windows]
        if len(steps) < 2:
            raise ArgumentError("two windows need at least two finished steps")
        cut = len(steps) // 2 if boundary is None else boundary
        return (steps[0], steps[cut - 1]), (steps[cut], steps[-1])

    def _estimate(
        self, W: np.ndarray, how: str, method: str, reference: np.ndarray
    ) -> geometry.IntrinsicDimension:
        group = min(24, len(W) * W.shape[2] // 8) if how == "report-code" else 24
        cloud = dynamics.average_dictionary(W, how, reference=reference, group=max(group, 1))
        return self._two_nn(cloud, method, self.draws)

    def _two_nn(self, cloud: np.ndarray, method: str, draws: int) -> geometry.IntrinsicDimension:
        with warnings.catch_warnings():
            # Said once, in the section's words; SVD of one step is the case.
            warnings.simplefilter("ignore", geometry.SpectrumOnlyWarning)
            return geometry.two_nn(
                cloud, method, discard=self.discard, n_null=draws, random_state=self.random_state
            )

    def _looks_like(self, found: Sequence[geometry.IntrinsicDimension]) -> dict[str, Any]:
        """Return the least and largest Gaussian dimension compatible with both windows."""
        low, high = [], []
        for one in found:
            table = geometry.two_nn_calibrated(
                one, list(_CANDIDATES), random_state=self.random_state
            )
            dims = table.dimension.values[table.compatible.values]
            low.append(float(dims.min()) if len(dims) else np.nan)
            high.append(float(dims.max()) if len(dims) else np.nan)
        return {"looks_like_low": ("window", low), "looks_like_high": ("window", high)}

    def _by_step(self, W: np.ndarray) -> dict[str, Any]:
        value, error = np.array([self._of_step(w) for w in W]).T
        if np.isnan(value).all():
            self._two_nn(W[0].T, self.methods[0], 0)  # says why it is undefined
        null = geometry.two_nn_null(
            W.shape[2],
            W.shape[1],
            self.methods[0],
            discard=self.discard,
            n_draws=self.draws,
            random_state=self.random_state,
        )
        return {
            "step_dimension": ("step", value),
            "step_low": ("step", value - 1.96 * error),
            "step_high": ("step", value + 1.96 * error),
            "null_low": ("step", np.full(len(W), null.mean() - 1.96 * null.std())),
            "null_high": ("step", np.full(len(W), null.mean() + 1.96 * null.std())),
        }

    def _of_step(self, W: np.ndarray) -> tuple[float, float]:
        """Return dimension and error of one checkpoint's concepts; NaN where undefined."""
        try:
            found = self._two_nn(W.T, self.methods[0], 0)
        except (ArgumentError, NonFiniteError):
            return np.nan, np.nan
        return found.value, found.stderr

    def _figures(self) -> list[Any]:
        tables = [
            Table(
                f"windows-{how}-{method}",
                f"Early and late, dictionaries {_AVERAGED[how]}, by {method}",
                columns=[
                    Column("early", "early", sd="early_sd"),
                    Column("late", "late", sd="late_sd"),
                    Column("difference", "late - early", sd="difference_sd"),
                    Column("early_null", "isotropic"),
                ],
                pairs=[Pair("early", "late", better="lower")],
                footer=[Footer("mean over layers", {"early": "early_mean", "late": "late_mean"})],
                select={"average": how, "estimator": method},
                caption="In brackets the standard error; shaded the lower one, also where the "
                "difference is within its error.",
            )
            for how in self.averages
            for method in self.methods
        ]
        curve = Curves(
            "steps",
            "Concepts of one checkpoint",
            value="step_dimension",
            interval=("step_low", "step_high"),
            bands=[Band("null_low", "null_high", "isotropic points")],
            caption="TwoNN on the dictionary of each checkpoint by itself.",
        )
        return [*tables, curve]


_AVERAGED = {
    "aligned": "aligned, then averaged",
    "unaligned": "averaged as returned",
    "report-code": "as the report's code averages",
}


def _boundary_index(steps: np.ndarray, W: np.ndarray, reference: np.ndarray) -> int | None:
    """Return the first step after the regime boundary of the distances to the reference."""
    from ..distances import align

    base = np.broadcast_to(reference, W.shape)
    moved = align(base, W, under="signed-permutation").aligned - base
    curve = np.sqrt((moved**2).sum((1, 2)))
    here = curve > 0  # the reference itself is at 0 by construction
    boundary = dynamics.regimes(steps[here], curve[here]).boundary
    if boundary is None:
        return None
    index = int(np.searchsorted(steps, boundary))
    return index if 0 < index < len(steps) else None


def _check_windows(windows: tuple[tuple[float, float], ...]) -> None:
    if len(windows) != 2 or not all(-np.inf < low <= high < np.inf for low, high in windows):
        raise ArgumentError(
            f"windows must be one of {', '.join(WINDOWS)} or two pairs of steps, first and last, "
            f"such as [[0, 100], [200, 400]]; got {windows!r}."
        )


def _section(of: str) -> Section:
    return Section(
        title=f"Intrinsic dimension of concepts ({of})",
        definition="How many directions the cloud of concepts fills locally, from the distances "
        "of each concept to its two nearest others (TwoNN).",
        symbol="P(r₂/r₁ > t) = t⁻ᵈ",
        null="Isotropic Gaussian points of the same number and length: with few points the "
        "estimate stays far below the number of features.",
        care="Compare with the null before reading a number as a dimension. One checkpoint's SVD "
        "dictionary has orthogonal columns: its number describes the spectrum. PCA is undefined "
        "and refused. Averaging without alignment mixes different concepts.",
        source="Bernas 2025, Algorithm 4 and Table 3; Facco et al. 2017",
    )


def _statements(data: xr.Dataset, observable: IntrinsicDimension) -> list[str]:
    """Say in how many layers late and early differ by more than their errors."""
    how, method = observable.averages[0], observable.methods[0]
    one = data.sel(average=how, estimator=method)
    known = np.isfinite(one.difference.values)
    if not known.any():
        return ["The intrinsic dimension is undefined in all layers."]
    far = np.abs(one.difference.values) > 1.96 * one.difference_sd.values
    lower = int((far & (one.difference.values < 0)).sum())
    higher = int((far & (one.difference.values > 0)).sum())
    count = int(known.sum())
    cut = ""
    if observable.windows == "found":
        cut = (
            f" A regime boundary was found in {int(data.boundary_found.values[known].sum())} of "
            f"{count} layers; the others are cut in halves."
        )
    words = (
        f"{observable.of}: from the early to the late window the dimension falls by more than its "
        f"error in {lower} of {count} layers and rises in {higher} (chance alone: about "
        f"{0.025 * count:.1f} each)."
    )
    like = (one.early.values >= one.early_null.values * 0.75)[known]
    note = (
        f" In {int(like.sum())} of {count} layers the early estimate is at least three quarters of "
        "that of isotropic points."
    )
    return [words + note + cut]
