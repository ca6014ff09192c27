"""One node of a reproduction: what it takes from each seed, and how it is drawn and said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Curves, Figure, Section, attach


@dataclass(frozen=True)
class View:
    """One node of a reproduction.

    Parameters
    ----------
    node
        Name of the observable whose results are taken.
    take
        From one seed's node to the few numbers that are averaged.
    section
        Words of the section.
    alone
        Figures where there is one run.
    compared
        Figures where runs are compared, along the dimension ``run``.
    say
        Sentences from the averages.
    """

    node: str
    take: Callable[[xr.Dataset], xr.Dataset]
    section: Section
    alone: Sequence[Figure]
    compared: Sequence[Figure]
    say: Callable[[xr.Dataset], list[str]]

    def draw(self, data: xr.Dataset, claim: str, source: str) -> xr.Dataset:
        """Return the averages with section, figures and sentences; `claim` is the paper's."""
        several = "run" in data.dims
        section = dataclasses.replace(
            self.section,
            care=f"{self.section.care} Shade: mean ± SD over {int(np.max(data.seeds))} seeds.",
            source=source,
        )
        figures = list(self.compared if several else self.alone)
        return attach(data, section, figures, [f"The paper: {claim}", *self.say(data)], "motion")


def curves(name: str, title: str, value: str, **options: Any) -> Curves:
    """Return curves of a mean over seeds with its standard deviation as shade."""
    return Curves(name, title, value=value, interval=(f"{value}_low", f"{value}_high"), **options)


def spread(data: xr.Dataset, name: str, digits: int, **labels: str) -> str:
    """Return ``"5.4 ± 0.5"``, or the mean alone where one seed has no deviation."""
    mean, sd = (float(data[each].sel(labels)) for each in (name, f"{name}_sd"))
    return f"{mean:.{digits}f}" + (f" ± {sd:.{digits}f}" if np.isfinite(sd) else "")


def runs_of(data: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Return each run with what its sentences begin with; nothing for a single run."""
    if "run" not in data.dims:
        return [("", data)]
    return [(f"{label}: ", data.sel(run=label)) for label in data.run.values]
