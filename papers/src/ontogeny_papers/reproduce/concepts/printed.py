"""Tables 2 and 3 of the report: what follows from their cells, without any run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from scipy.stats import binomtest

from ontogeny import dynamics
from ontogeny.claims import Reason
from ontogeny.figures import Curves, Section, attach

from ..recipe import Findings, Materials, MeasuredRecipe
from ..verdicts import LEVEL, Verdict, decided, unanimous

# Table 2 as printed, layers 1 to 11: first mean, first SD, second mean, second SD.
_PRINTED = {
    "syntactic": (
        (0.597, 0.145, 0.440, 0.115),
        (0.514, 0.077, 0.594, 0.184),
        (0.543, 0.146, 0.480, 0.150),
        (0.385, 0.180, 0.341, 0.237),
        (0.483, 0.176, 0.506, 0.264),
        (0.342, 0.116, 0.574, 0.250),
        (0.606, 0.156, 0.484, 0.221),
        (0.541, 0.087, 0.337, 0.203),
        (0.501, 0.168, 0.725, 0.162),
        (0.512, 0.230, 0.619, 0.247),
        (0.593, 0.172, 0.657, 0.275),
    ),
    "semantic": (
        (0.571, 0.137, 0.581, 0.109),
        (0.535, 0.186, 0.635, 0.179),
        (0.329, 0.128, 0.339, 0.191),
        (0.423, 0.183, 0.577, 0.294),
        (0.441, 0.235, 0.367, 0.201),
        (0.308, 0.126, 0.528, 0.270),
        (0.650, 0.205, 0.277, 0.232),
        (0.502, 0.175, 0.541, 0.248),
        (0.663, 0.173, 0.572, 0.291),
        (0.684, 0.162, 0.491, 0.284),
        (0.606, 0.277, 0.678, 0.190),
    ),
}
_COLUMNS = ("first", "first_sd", "second", "second_sd")
_PRINTED_SUMS = {"syntactic": (0.142, 0.125), "semantic": (-0.127, -0.292)}

# Table 3 as printed, layers 1 to 11: first and second regime.
_DIMENSIONS = {
    "SVD": (
        (34.91, 24.7),
        (28.72, 25.05),
        (35.84, 34.02),
        (40.35, 34.27),
        (42.18, 37.83),
        (46.52, 36.01),
        (36.96, 37.08),
        (49.08, 38.95),
        (48.4, 55.21),
        (75.07, 57.5),
        (68.98, 55.1),
    ),
    "ICA": (
        (46.98, 31.09),
        (37.94, 23.79),
        (23.14, 8.55),
        (17.54, 16.51),
        (22.85, 20.86),
        (14.58, 9.99),
        (29.1, 21.27),
        (20.17, 21.99),
        (20.69, 14.67),
        (44.47, 37.67),
        (20.36, 20.79),
    ),
    "semi-NMF": (
        (34.06, 24.95),
        (27.04, 27.97),
        (22.77, 11.29),
        (20.01, 12.73),
        (21.58, 18.38),
        (10.42, 8.76),
        (15.24, 24.22),
        (40.13, 22.32),
        (20.96, 13.78),
        (34.07, 32.38),
        (24.42, 23.5),
    ),
    "dictionary learning": (
        (13.17, 15.25),
        (12.35, 13.58),
        (9.76, 10.19),
        (11.2, 8.03),
        (8.67, 7.83),
        (7.28, 7.79),
        (7.33, 6.0),
        (9.04, 6.04),
        (10.69, 8.21),
        (10.64, 7.12),
        (8.3, 5.69),
    ),
    "k-means": (
        (11.1, 15.57),
        (9.61, 9.98),
        (3.05, 2.52),
        (3.54, 4.01),
        (3.39, 3.91),
        (3.18, 3.13),
        (6.32, 6.3),
        (8.58, 8.67),
        (8.45, 17.47),
        (7.74, 14.02),
        (4.78, 6.7),
    ),
}


_PRINTED_MEANS = {
    "SVD": (46.09, 39.61),
    "ICA": (27.07, 20.65),
    "semi-NMF": (24.61, 20.03),
    "dictionary learning": (9.86, 8.7),
    "k-means": (6.34, 8.39),
}
_PRINTED_RISES = {"semantic": 7, "syntactic": 6}
_ROUNDING = 0.01
_TIE = 1e-9  # sums of cells of three digits that are equal round apart
_EXCHANGES = 9999


@dataclass(frozen=True)
class Cells:
    """Printed cells have no size."""


def measure(size: Cells, materials: Materials) -> Findings:
    """Return the cells, and what is claimed of them."""
    scores = xr.Dataset(
        {
            name: (("concept", "layer"), np.array(list(_PRINTED.values()))[..., i])
            for i, name in enumerate(_COLUMNS)
        },
        {"concept": list(_PRINTED), "layer": np.arange(1, 12)},
    )
    dimensions = xr.Dataset(
        {
            name: (("extractor", "layer"), np.array(list(_DIMENSIONS.values()))[..., i])
            for i, name in enumerate(("first", "second"))
        },
        {"extractor": list(_DIMENSIONS), "layer": np.arange(1, 12)},
    )
    numbers = (scores, dimensions)
    return Findings({"cells": _view(scores)}, numbers)


def judge(scores: xr.Dataset, dimensions: xr.Dataset) -> list[Verdict]:
    """Judge what the report says of its own cells."""
    return [
        _printed_sums(scores),
        _printed_caption(scores),
        _printed_rises(scores),
        _noisier(scores),
        _noise_of_rising(scores),
        _gain_of_syntax(scores),
        _evenly(scores),
        _last_layer(scores),
        _falling_dimensions(dimensions),
        _printed_means(dimensions),
    ]


def _noisier(scores: xr.Dataset) -> Verdict:
    """Judge in how many layers the deviation is larger in the second regime.

    Both concepts are read off one model: a layer in which it is larger for both counts once.
    """
    change = scores.second_sd - scores.first_sd
    more = np.sign(change).sum("concept").values
    exchanged = np.array(list(product([-1, 1], repeat=more.size))) @ more
    p = float((exchanged >= more.sum()).mean())
    fewer = float((exchanged <= more.sum()).mean())
    return Verdict(
        "Table 2: the second regime is noisier than the first",
        decided(p <= LEVEL, fewer <= LEVEL),
        f"the standard deviation is larger in {int((change > 0).sum())} of {change.size} layers of "
        "both concepts",
        "both regimes exchanged in any set of layers, for both concepts at once, give as many or "
        f"more with p = {p:.2g}, taking layers as independent",
        reason=Reason.WITHIN_CHANCE,
    )


def _gain_of_syntax(scores: xr.Dataset) -> Verdict:
    """Judge the difference of both ΣΔ, beside regimes exchanged in any layers of both concepts."""
    change = scores.second - scores.first
    total = change.sum("layer")
    apart = float(total.sel(concept="syntactic") - total.sel(concept="semantic"))
    signs = np.random.default_rng(0).choice([-1, 1], (_EXCHANGES, change.size))
    exchanged = signs @ np.abs(change.values.ravel())
    p = float((1 + (exchanged >= apart - _TIE).sum()) / (1 + _EXCHANGES))
    return Verdict(
        "Table 2: syntactic concepts gain more from the second regime than semantic ones",
        decided(p <= LEVEL, p >= 1 - LEVEL),
        f"ΣΔ of the printed cells: syntactic {float(total.sel(concept='syntactic')):+.3f}, semantic "
        f"{float(total.sel(concept='semantic')):+.3f}",
        f"regimes exchanged in any layers give such a difference or more with p = {p:.2g}",
        reason=Reason.WITHIN_CHANCE,
    )


def _noise_of_rising(scores: xr.Dataset) -> Verdict:
    """Judge whether layers that rise get noisier, more often than those that do not."""
    rises = (scores.second > scores.first).values
    noisier = (scores.second_sd > scores.first_sd).values
    own, others = noisier[rises], noisier[~rises]
    p = float(binomtest(int(own.sum()), own.size, 0.5, alternative="greater").pvalue)
    return Verdict(
        "Table 2: most layers whose score rises have a larger standard deviation",
        bool(own.mean() > 0.5),
        f"{own.sum()} of {own.size} layers of both concepts whose score rises (a coin gives as "
        f"many or more with p = {p:.2g})",
        f"of layers whose score falls {others.sum()} of {others.size}",
        alike=bool(others.mean() >= own.mean()),
    )


def _evenly(scores: xr.Dataset) -> Verdict:
    """Judge the spread of scores over layers, beside regimes exchanged layer by layer."""
    ratios, p_values = zip(
        *(_spread_ratio(scores, name) for name in _PRINTED), strict=True
    )
    pairs = list(zip(_PRINTED, ratios, strict=True))
    return Verdict(
        "Table 2: concepts spread more evenly across layers in the second regime",
        decided(max(p_values) <= LEVEL, min(p_values) >= 1 - LEVEL),
        "standard deviation of the scores over layers, second over first: "
        + ", ".join(f"{name} {ratio:.2f}" for name, ratio in pairs),
        "both regimes exchanged in any set of layers give as little with p = "
        + ", ".join(f"{p:.2g}" for p in p_values)
        + "; below 1 is more even",
        reason=Reason.WITHIN_CHANCE,
    )


def _spread_ratio(scores: xr.Dataset, concept: str) -> tuple[float, float]:
    """Return the ratio of both deviations, and in what share of exchanges it is as small."""
    first, _, second, _ = _cells(scores, concept)
    exchanged = np.array(list(product([False, True], repeat=len(first))))
    ratio = np.where(exchanged, first, second).std(axis=1)
    ratio /= np.where(exchanged, second, first).std(axis=1)
    return float(ratio[0]), float((ratio <= ratio[0] * (1 + 1e-12)).mean())


def _last_layer(scores: xr.Dataset) -> Verdict:
    """Judge whether the last layer is stronger and steadier, beside how often any layer is."""
    stronger, steadier = (
        scores.second > scores.first,
        scores.second_sd < scores.first_sd,
    )
    both = stronger & steadier
    last = scores.isel(layer=-1)
    changes = ", ".join(
        f"{name} {float(one.first):.3f} ({float(one.first_sd):.3f}) to {float(one.second):.3f} "
        f"({float(one.second_sd):.3f})"
        for name, one in last.groupby("concept", squeeze=False)
        for one in [one.squeeze()]
    )
    others = ", ".join(
        f"{name} {int(both.sel(concept=name).sum())}" for name in _PRINTED
    )
    return Verdict(
        "Table 2: the last layer's scores are stronger and steadier in the second regime",
        unanimous(both.isel(layer=-1).values),
        f"mean (standard deviation) of layer 11: {changes}",
        f"of 11 layers as many are both: {others}",
    )


def _falling_dimensions(dimensions: xr.Dataset) -> Verdict:
    """Judge in how many layers each method falls, by sign tests; k-means is the exception."""
    falls = (dimensions.second < dimensions.first).sum("layer")
    layers = dimensions.sizes["layer"]
    p_values = {
        str(name): float(binomtest(int(n), layers, 0.5, alternative="greater").pvalue)
        for name, n in zip(falls.extractor.values, falls.values, strict=True)
    }
    claimed = [p for name, p in p_values.items() if name != "k-means"]
    return Verdict(
        "Table 3: the dimension falls across nearly all extraction methods (all but k-means)",
        max(claimed) <= LEVEL or None,
        f"layers of {layers} in which it falls: "
        + ", ".join(
            f"{name} {int(n)}" for name, n in zip(p_values, falls.values, strict=True)
        ),
        "sign tests p = "
        + ", ".join(f"{p:.2g}" for p in p_values.values())
        + "; each method but k-means must fall in more layers than a coin gives",
        reason=Reason.WITHIN_CHANCE,
    )


def _printed_means(dimensions: xr.Dataset) -> Verdict:
    """Average the cells of Table 3 again."""
    means = np.stack(
        [dimensions[name].mean("layer") for name in ("first", "second")], axis=1
    )
    printed = np.array(list(_PRINTED_MEANS.values()))
    return Verdict(
        "the means of Table 3 follow from its cells",
        bool((np.abs(means - printed) <= _ROUNDING).all()),
        f"they differ by {np.abs(means - printed).max():.2g} at most",
        f"rounding of cells and means can move them by {_ROUNDING}",
    )


def _cells(scores: xr.Dataset, concept: str) -> list[np.ndarray]:
    """Return means and deviations of both regimes, (layers,) each."""
    one = scores.sel(concept=concept)
    return [one[name].values for name in _COLUMNS]


def _table(scores: xr.Dataset, concept: str) -> xr.Dataset:
    return dynamics.compare_regimes(*_cells(scores, concept))


def _rounding(scores: xr.Dataset, concept: str) -> tuple[float, float]:
    """Return how far rounding to three decimals can move the two sums of the printed cells."""
    first, first_sd, second, second_sd = _cells(scores, concept)
    half = 0.0005
    change = np.abs(second - first)
    low = np.hypot(first_sd - half, second_sd - half)
    aware = (change + 2 * half) / low - change / np.hypot(first_sd, second_sd)
    return 2 * half * len(first), float(aware.sum())


def _printed_sums(scores: xr.Dataset) -> Verdict:
    """Add up the cells of Table 2 again."""
    parts = []
    right = []
    reach = []
    for name, printed in _PRINTED_SUMS.items():
        table = _table(scores, name)
        sums = float(table.sum_difference), float(table.sigma_aware_sum)
        limits = _rounding(scores, name)
        right += [
            abs(a - b) <= r for a, b, r in zip(sums, printed, limits, strict=True)
        ]
        parts.append(f"{name} {sums[0]:+.3f} and {sums[1]:+.3f}")
        reach.append(limits)
    texts = [f"{name} {a:+.3f} and {b:+.3f}" for name, (a, b) in _PRINTED_SUMS.items()]
    plain, aware = np.max(reach, axis=0)
    return Verdict(
        "the sums of Table 2 follow from its cells",
        all(right),
        f"ΣΔ and ΣωΔ of the printed cells: {', '.join(parts)}",
        f"printed: {', '.join(texts)}; rounding of the cells can move them by at most {plain:.3f} "
        f"and {aware:.3f}",
    )


def _printed_caption(scores: xr.Dataset) -> Verdict:
    """Compare which concept the caption of Table 2 gives each sum."""
    sums = {name: float(_table(scores, name).sum_difference) for name in _PRINTED}
    return Verdict(
        "its caption: ΣΔ is +0.142 for the semantic and −0.127 for the syntactic concept",
        sums["semantic"] > 0 > sums["syntactic"],
        f"from the cells the semantic sum is {sums['semantic']:+.3f} and the syntactic one "
        f"{sums['syntactic']:+.3f}",
        "the table itself has them so: the caption exchanges the two",
    )


def _printed_rises(scores: xr.Dataset) -> Verdict:
    """Count the layers whose mean rises again."""
    rises = {
        name: int((scores.second > scores.first).sel(concept=name).sum())
        for name in _PRINTED_RISES
    }
    layers = scores.sizes["layer"]
    p_values = [
        float(binomtest(n, layers, 0.5, alternative="greater").pvalue)
        for n in rises.values()
    ]
    return Verdict(
        "Table 2: semantic scores rise in 7 of 11 layers, syntactic ones in 6",
        rises == _PRINTED_RISES,
        ", ".join(f"{name} {n} of {layers}" for name, n in rises.items()),
        "the cells as printed; a coin gives as many or more with p = "
        + ", ".join(f"{p:.2g}" for p in p_values),
    )


def _view(scores: xr.Dataset) -> xr.Dataset:
    means = xr.concat([scores["first"], scores["second"]], "regime")
    data = xr.Dataset({"score": means.assign_coords(regime=["first", "second"])})
    data["score"].attrs = {"long_name": "TCAV score as printed", "units": "1"}
    figure = Curves(
        "cells",
        "Table 2 as printed",
        value="score",
        x="layer",
        facet="concept",
        series="regime",
    )
    section = Section(
        "Printed cells",
        "Means of TCAV scores in both regimes, layer by layer, as Table 2 prints them.",
        source="Bernas 2025, sec. 6.2, Table 2",
    )
    return attach(data, section, [figure], role="motion")


RECIPES = (
    MeasuredRecipe(
        "concepts-printed-tables",
        "What the printed tables say",
        "in the second regime scores of most layers rise and get noisier, concepts spread over the "
        "layers, and the dimension falls.",
        "Bernas 2025, sec. 6.2 and 6.3, Tables 2 and 3",
        Cells(),
        Cells(),
        measure=measure,
        judge=judge,
    ),
)
