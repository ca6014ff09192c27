"""TCAV scores in two windows of training: a table over layers and concepts."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.figures import Column, Footer, Pair, Table

from ...dynamics.regime_table import regime_table

Window = tuple[float, float]
_WINDOWS = ("early", "late")
_EARLY = (20 / 480, 100 / 480)
_LATE = (380 / 480, 460 / 480)

_NAMES = {
    **{
        f"{window}_{what}": (f"{words}, {window} {{checkpoint}}s", "1")
        for window in (*_WINDOWS, "overall")
        for what, words in (
            ("mean", "mean score"),
            ("sd", "standard deviation of the scores"),
        )
    },
    **{
        f"{window}_steps": (f"checkpoints, {window} {{checkpoint}}s", "checkpoints")
        for window in _WINDOWS
    },
    "difference": ("difference of the means", "1"),
    "standardised": ("difference over the standard deviations", "1"),
    "sum_difference": ("sum of differences over layers", "1"),
    "sigma_aware_sum": ("sum of standardised differences over layers", "1"),
    "improving": ("layers that rise", "layers"),
}


def regime_tables(
    data: xr.Dataset, early: Window | None, late: Window | None
) -> tuple[xr.Dataset, list[Table], list[str]]:
    """Compare ``score(concept, layer, step)`` in two windows, layer by layer.

    Returns the data with each concept's `ontogeny.dynamics.regime_table`, the figure (none where no
    layer of any concept can be compared), and sentences on the layers that are left out and why.
    """
    last = float(data.step.values[-1])
    early = early or (round(_EARLY[0] * last), round(_EARLY[1] * last))
    late = late or (round(_LATE[0] * last), round(_LATE[1] * last))
    columns: list[Column] = []
    pairs = []
    words = []
    sums: dict[str, dict[str, str]] = {"sum of differences": {}, "sigma-aware sum": {}}
    for i, concept in enumerate(data.concept.values):
        scores = data.score.sel(concept=concept).transpose("layer", "step")
        table, reasons = _compared(scores, early, late)
        for reason, layers in reasons.items():
            which = (
                "any layer"
                if len(layers) == scores.sizes["layer"]
                else ", ".join(layers)
            )
            words.append(f"{concept}: the two windows do not compare {which}: {reason}")
        if table is None:
            continue
        names = {str(name): f"regime{i}_{name}" for name in table.data_vars}
        data = data.assign(
            {names[str(k)]: v.variable for k, v in table.data_vars.items()}
        )
        for key, name in names.items():
            data[name].attrs.update(
                long_name=f"{concept}: {_NAMES[key][0]}", units=_NAMES[key][1]
            )
        for name, head in (
            ("early", "First"),
            ("late", "Second"),
            ("overall", "Overall"),
        ):
            mean = names[f"{name}_mean"]
            sd = names[f"{name}_sd"]
            columns.append(Column(mean, head, sd=sd, over=str(concept)))
        pairs.append(Pair(names["early_mean"], names["late_mean"]))
        sums["sum of differences"][names["late_mean"]] = names["sum_difference"]
        sums["sigma-aware sum"][names["late_mean"]] = names["sigma_aware_sum"]
    if not columns:
        return data, [], words
    figure = Table(
        "regimes",
        "Scores in two windows of training",
        columns=columns,
        pairs=pairs,
        footer=[Footer(label, cells, signed=True) for label, cells in sums.items()],
        caption=f"Mean (SD) over the checkpoints of {{step}}s {early[0]:,.0f} to {early[1]:,.0f}, "
        f"{late[0]:,.0f} to {late[1]:,.0f}, and all. Differences are second minus first, summed "
        "over the layers shown; the sigma-aware sum divides each by √(σ₁² + σ₂²). Neighbouring "
        "checkpoints are no independent draws, so neither sum is a test.",
    )
    return data, [figure], words


def _compared(
    scores: xr.DataArray, early: Window, late: Window
) -> tuple[xr.Dataset | None, dict[str, list[str]]]:
    """Return the table of the layers that can be compared, NaN in others, and those by reason."""
    steps = scores.step.values
    layers: list[str] = []
    reasons: dict[str, list[str]] = {}
    for layer in map(str, scores.layer.values):
        try:
            regime_table(scores.sel(layer=[layer]), steps, early, late)
            layers.append(layer)
        except ArgumentError as error:
            reasons.setdefault(str(error), []).append(layer)
    if not layers:
        return None, reasons
    table = regime_table(scores.sel(layer=layers), steps, early, late)
    return table.reindex(layer=np.array(scores.layer.values, dtype=str)), reasons
