"""What the observables of labelled concepts share: fits at every layer, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError, check_number
from ontogeny.inputs import Inputs
from ontogeny.needs import Activations
from ontogeny.observables.arguments import check_names
from ontogeny.observables.base import Observable
from ontogeny.quantities import Quantity
from ontogeny.units import Units
from ontogeny.words.names import Names

from ...concepts.cav import CAV, SOLVERS
from ...concepts.concept_directions import (
    GRANULARITIES,
    ConceptDirection,
    LabelledRows,
    fit_direction,
)
from ...dynamics.permutation import permutation_test

LEVEL = 0.05
JUDGED: Names = {
    "p_corrected": ("corrected p-value", "1"),
    "p_single": ("p-value, not corrected", "1"),
    "lasting_step": ("{checkpoint} from which on it differs from chance", "{step}s"),
}
"""What `judged` adds."""


@dataclass(frozen=True)
class LabelledConcepts(Observable):
    """Base of the observables that find concept directions on labelled input sets.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    on
        Labelled input sets, one concept each; None means the study's first.
    tokens
        What a row of activations is: ``"mean"`` over a text's ordinary tokens, ``"last"``,
        ``"cls"``.
    l2, intercept, solver
        How directions are found; see `ontogeny.concepts.CAV`.
    train_fraction
        Share of each class that finds the direction; the others test it.
    n_random
        Shuffled label sets; a corrected p-value cannot be smaller than 1 / (n_random + 1).
    n_refits
        Bootstrap refits of the direction.
    random_state
        Seed of the split, the shuffles and the resamples: the same at every step and layer.
    """

    layers: str | tuple[str, ...]
    on: str | tuple[str, ...] | None = None
    tokens: str = "mean"
    l2: float = 0.3
    intercept: bool = False
    solver: str = "lbfgs"
    train_fraction: float = 2 / 3
    n_random: int = 100
    n_refits: int = 20
    random_state: int = 0

    minima = {"n_random": 1, "n_refits": 1}
    choices: ClassVar[Mapping[str, Iterable[str]]] = {
        "tokens": GRANULARITIES,
        "solver": SOLVERS,
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        if isinstance(self.on, tuple):
            check_names("on", self.on)
        check_number(
            "train_fraction", self.train_fraction, 0, 1, above=True, below=True
        )
        check_number("l2", self.l2)

    @property
    def sets(self) -> tuple[str | None, ...]:
        """Names of the input sets."""
        return (
            (self.on,)
            if self.on is None or isinstance(self.on, str)
            else tuple(self.on)
        )

    @property
    def concepts(self) -> list[str]:
        """Names of the concepts."""
        return [name or "inputs" for name in self.sets]

    def _of_concepts(
        self, name: str, title: str, words: str, **options: Any
    ) -> Quantity:
        """Return a quantity over concepts and layers, with a row for each."""
        several = " of {concept}" if len(self.sets) > 1 else ""
        return Quantity(
            name,
            title,
            rows=f"{{layer}} · {words}{several}",
            unit="held-out texts",
            **options,
        )

    def check_inputs(self, inputs: Mapping[str, Inputs]) -> None:
        """Refuse an input set without two classes, or too small to be split.

        Raises
        ------
        ArgumentError
            Names the set, where its texts come from, and how many each class has.
        """
        for on in self.sets:
            name = on or next(iter(inputs))
            try:
                self._rows(inputs[name])
            except ArgumentError as error:
                source = f" ({inputs[name].source})" if inputs[name].source else ""
                raise ArgumentError(f"input set {name!r}{source}: {error}") from None

    def _cav(self) -> CAV:
        return CAV(l2=self.l2, intercept=self.intercept, solver=self.solver)

    def _activations(self, on: str | None) -> Activations:
        return Activations(self.layers, on, self.tokens, None, self.random_state)

    def _rows(self, inputs: Inputs) -> LabelledRows:
        return LabelledRows.of(
            inputs, self.tokens, self.train_fraction, self.random_state
        )

    def _fit(self, A: Any, rows: LabelledRows) -> ConceptDirection:
        cav = self._cav()
        seed = self.random_state
        return fit_direction(A, rows, cav, self.n_random, self.n_refits, seed)

    def _stacked(
        self, pieces: Sequence[Mapping[str, Any]]
    ) -> dict[str, xr.DataArray | tuple[tuple[str, ...], np.ndarray]]:
        """Return the variables of all concepts of one layer along ``concept``."""
        result: dict[str, Any] = {}
        for name, first in pieces[0].items():
            if not isinstance(first, tuple):
                result[name] = (
                    "concept",
                    np.array([float(piece[name]) for piece in pieces]),
                )
                continue
            rows = [np.asarray(piece[name][1]) for piece in pieces]
            width = max(map(len, rows))
            result[name] = (
                ("concept", *first[0]),
                np.stack([padded(r, width) for r in rows]),
            )
        return result


def padded(array: np.ndarray, width: int) -> np.ndarray:
    """Return a vector with -1 behind it: concepts differ in their number of texts.

    Examples
    --------
    >>> padded(np.array([True, False]), 3).tolist()
    [1, 0, -1]
    """
    array = array.astype(np.int8) if array.dtype == bool else array
    return np.pad(array, (0, width - len(array)), constant_values=-1)


def judged(
    data: xr.Dataset, value: str, random: str, prefix: str = "", **options: Any
) -> xr.Dataset:
    """Add ``p_single``, ``p_corrected`` and ``lasting_step`` of a variable (concept, layer, step).

    `prefix` goes before their names. The correction is over all concepts, layers and steps.
    ``lasting_step`` is the first step from which on the corrected p-value stays at most `LEVEL`,
    NaN if it does not.
    """
    order = ("concept", "layer", "step")
    observed = data[value].transpose(*order).values
    test = permutation_test(
        observed, data[random].transpose(*order, "draw").values, **options
    )
    steps = data.step.values
    # A step that is missing says nothing against those around it.
    below = (test.p_corrected <= LEVEL) | np.isnan(test.p_corrected)
    lasting = np.flip(np.logical_and.accumulate(np.flip(below, -1), axis=-1), -1)
    lasting &= np.isfinite(test.p_corrected)
    first = np.where(lasting.any(-1), steps[lasting.argmax(-1)], np.nan)
    variables = {
        f"{prefix}p_single": (order, test.p_value),
        f"{prefix}p_corrected": (order, test.p_corrected),
        f"{prefix}lasting_step": (order[:2], first),
    }
    return data.assign(variables)


def chance_band(data: xr.Dataset, random: str, name: str) -> dict[str, xr.DataArray]:
    """Return ``{name}_low``, ``{name}_high`` (concept, step): 95 % of the draws, all layers."""
    low, high = data[random].quantile(
        [0.025, 0.975], dim=("layer", "draw"), skipna=True
    )
    return {
        f"{name}_low": low.drop_vars("quantile"),
        f"{name}_high": high.drop_vars("quantile"),
    }


def texts_of(data: xr.Dataset, value: str, of_text: str) -> dict[str, xr.DataArray]:
    """Return what each held-out text says, ``{value}_of_text``; NaN where there is none (-1).

    Where cells hold ``text_unit``, texts that repeat or share a document say one thing together:
    their mean, with ``{value}_weights``.
    """
    texts = data[of_text].astype(float)
    texts = texts.where(texts >= 0)
    if "text_unit" not in data:
        return {f"{value}_of_text": texts}
    weights = data.get(f"{value}_weights", xr.ones_like(data.text_unit))
    return _over_units(texts, weights, data.text_unit, value)


def _over_units(
    texts: xr.DataArray, weights: xr.DataArray, unit: xr.DataArray, value: str
) -> dict[str, xr.DataArray]:
    """Return means and weights of units in the first places along ``text``, NaN and 0 behind."""
    dims = [d for d in texts.dims if d not in ("concept", "text")]
    texts = texts.transpose("concept", *dims, "text")
    unit = unit.max("step") if "step" in unit.dims else unit
    weights = weights.fillna(0.0).max("step") if "step" in weights.dims else weights
    means = np.full(texts.shape, np.nan)
    totals = np.zeros((texts.shape[0], texts.shape[-1]))
    for i, (positions, weight) in enumerate(
        zip(unit.values, weights.transpose("concept", "text").values, strict=True)
    ):
        there = positions >= 0
        units = Units(positions[there])
        mean, total = units.means(texts.values[i][..., there], weight[there])
        missing = np.isnan(texts.values[i][..., there]).any(-1)
        means[i][..., : units.count] = np.where(missing[..., None], np.nan, mean)
        totals[i, : units.count] = total
    return {
        f"{value}_of_text": texts.copy(data=means),
        f"{value}_weights": xr.DataArray(totals, dims=("concept", "text")),
    }


def text_units(rows: Sequence[Units]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return ``text_unit(concept, text)``, -1 behind the texts; nothing where all are distinct."""
    if all(units.distinct for units in rows):
        return {}
    width = max(len(units.place) for units in rows)
    table = np.stack([padded(units.place, width) for units in rows])
    return {"text_unit": (("concept", "text"), table)}
