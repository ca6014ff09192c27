"""What reproduces and what does not, as a table that stands first on the page of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.errors import ArgumentError
from ontogeny.figures import Column, Section, Table, attach

from .formats import typeset

# Where one of these is the reason, nothing stands beside the number, or there is none.
_UNTESTED = (Reason.NO_CONTROLS, Reason.NOTHING_SCORED)


@dataclass(frozen=True)
class Verdict:
    """One claim, how sure it is, what was measured, and what chance or a control gives.

    Parameters
    ----------
    claim
        What the paper says, short.
    holds
        Whether it held in this run; None where this run cannot decide it.
    measured
        The number.
    beside
        The same number of the null or control, or why there is none.
    alike
        Whether the null or the control has it as well: what holds then shows nothing, and `holds`
        becomes None. None where that is unknown: what holds is then not tested.
    reason
        Why it is open where it neither holds nor fails.
    of_paper
        Whether the paper claims it; no page counts what it does not.

    Examples
    --------
    >>> verdict = Verdict("the rank is low", True, "5.4", "random walk 5.4", alike=True)
    >>> verdict.kind.value, verdict.certainty.value
    ('reproduces', 'as controls')
    """

    claim: str
    holds: bool | None
    measured: str
    beside: str
    alike: bool | None = False
    reason: Reason = Reason.CASES_DIFFER
    of_paper: bool = True

    def __post_init__(self) -> None:
        alike = self.alike if self.holds else False
        if self.holds and alike is None:
            object.__setattr__(self, "reason", Reason.NO_CONTROLS)
        # Of an array it is no `False` itself.
        shown = self.holds is not None and alike is not None and not alike
        object.__setattr__(self, "alike", bool(alike))
        object.__setattr__(self, "holds", bool(self.holds) if shown else None)

    @property
    def kind(self) -> Kind:
        """Whether it is found again, or the opposite is."""
        refuted = self.holds is not None and not self.holds
        return Kind.CONTRADICTS if refuted else Kind.REPRODUCES

    @property
    def certainty(self) -> Certainty:
        """How sure that is, in the word of every claim of a study."""
        if self.holds is not None:
            return Certainty.SURE
        if self.alike:
            return Certainty.AS_CONTROLS
        untested = self.reason in _UNTESTED
        return Certainty.NOT_TESTED if untested else Certainty.OPEN

    def stored(self) -> dict[str, str | bool]:
        """Return its fields as they stand in results and files, by name."""
        is_open = self.certainty in (Certainty.OPEN, Certainty.NOT_TESTED)
        return {
            "claim": self.claim,
            "of_paper": self.of_paper,
            "kind": self.kind.value,
            "certainty": self.certainty.value,
            "reason": self.reason.value if is_open else "",
            "measured": typeset(self.measured),
            "beside": typeset(self.beside),
        }


def verdict_view(
    verdicts: Sequence[Verdict],
    claim: str,
    source: str,
    limits: str = "",
    material: str = "",
) -> xr.Dataset:
    """Return the verdicts as a node with one table.

    Parameters
    ----------
    verdicts
        At least one, each of another claim.
    claim
        What the paper says as a whole.
    source
        Where it says so.
    limits
        What this run is too small to show.
    material
        What it was measured on, in a sentence.

    Raises
    ------
    ArgumentError
        If there is no verdict, or two of one claim.

    Examples
    --------
    >>> rows = [Verdict("the rank is low", False, "5.4", "random walk 5.0")]
    >>> verdict_view(rows, "all is low.", "Nobody 1900").kind.values.tolist()
    ['contradicts']
    """
    claims = [verdict.claim for verdict in verdicts]
    if not claims or len(set(claims)) < len(claims):
        raise ArgumentError(
            f"verdicts must hold at least one claim, each once; got {claims}."
        )
    rows = [verdict.stored() for verdict in verdicts]
    data = xr.Dataset(
        {name: ("claim", [row[name] for row in rows]) for name in rows[0]}
    ).set_coords("claim")
    table = Table(
        "verdicts",
        "What reproduces and what does not",
        rows="claim",
        columns=[
            Column("kind", "what"),
            Column("certainty", "certainty"),
            Column("reason", "why it is open"),
            Column("measured", "measured"),
            Column("beside", "null or control"),
        ],
    )
    section = Section(
        "Verdict",
        "The claims of the paper one by one, each beside what chance or a control gives.",
        care="About these runs only: small models, few seeds.",
        source=source,
    )
    statements = [f"The paper: {claim}"]
    if limits:
        statements.append(f"What this setting cannot show: {limits}")
    if material:
        statements.append(material)
    return attach(data, section, [table], statements, role="claims")


Runs = Sequence[xr.Dataset]
"""What is kept of each seed of a run, such as a node of its study."""
RunsOf = Mapping[str, Runs]
"""The seeds of every run, by its label."""
Found = Mapping[str, RunsOf]
"""The nodes of each seed's study, by node and label of the run."""


def reduced(results: Found, change: Callable[[xr.Dataset], xr.Dataset]) -> Found:
    """Return what a function makes of every node, such as what is judged of it."""
    return {
        name: {label: [*map(change, runs)] for label, runs in by_run.items()}
        for name, by_run in results.items()
    }


LEVEL = 0.05


def each(runs: Sequence[Any], number: Callable[[Any], Any]) -> np.ndarray:
    """Return what a function gives of each seed, (seeds, ...).

    Examples
    --------
    >>> each([xr.Dataset({"x": 1.0}), xr.Dataset({"x": 2.0})], lambda run: run.x)
    array([1., 2.])
    """
    return np.array([np.asarray(number(run), dtype=float) for run in runs])


def if_finite(holds: Any, *numbers: ArrayLike) -> bool | None:
    """Return whether a claim holds, None where a number that it rests on is missing.

    Examples
    --------
    >>> if_finite(3.0 > 2.0, 3.0), if_finite(float("nan") > 2.0, float("nan"))
    (True, None)
    """
    is_finite = all(np.isfinite(np.asarray(n, dtype=float)).all() for n in numbers)
    return bool(holds) if is_finite else None


def decided(shown: Any, refuted: Any, *numbers: ArrayLike) -> bool | None:
    """Return True where a claim is shown, False where it is refuted, None where neither.

    None as well where a number that it rests on is missing.

    Examples
    --------
    >>> (
    ...     decided(3.0 > 2.0, 3.0 < 0.0),
    ...     decided(1.0 > 2.0, 1.0 < 0.0),
    ...     decided(-1 > 2, -1 < 0),
    ... )
    (True, None, False)
    """
    return if_finite(shown, *numbers) if shown or refuted else None


def unanimous(holds: ArrayLike, *numbers: ArrayLike) -> bool | None:
    """Return whether a claim holds in all seeds or in none, None where they differ or lack numbers.

    Examples
    --------
    >>> unanimous([True, True]), unanimous([False, False]), unanimous([True, False])
    (True, False, None)
    """
    is_true = np.asarray(holds, dtype=bool)
    return (
        if_finite(is_true.all(), *numbers)
        if is_true.all() or not is_true.any()
        else None
    )


def why_open(cases: ArrayLike, otherwise: Reason) -> Reason:
    """Return why a claim is open: some cases show it and others do not, or none does.

    Examples
    --------
    >>> why_open([True, False], Reason.WITHIN_NOISE).value
    'seeds or layers differ'
    >>> why_open([False, False], Reason.WITHIN_NOISE).value
    'within noise'
    """
    return Reason.CASES_DIFFER if np.any(cases) else otherwise


def exceeds(here: ArrayLike, there: ArrayLike, by: float) -> bool | None:
    """Return whether the seeds of one run lie above those of another, seed by seed.

    Parameters
    ----------
    here, there
        One number of each seed, (seeds,); the same seeds in both.
    by
        Above 0: how far the means must be apart.

    Returns
    -------
    bool or None
        True where the means are more than `by` apart and every seed agrees on the direction;
        False where no seed is; None where seeds disagree or a number is missing.

    Examples
    --------
    >>> exceeds([3.0, 4.0], [2.0, 2.0], by=0.5), exceeds([2.1, 2.2], [2.0, 2.0], by=0.5)
    (True, False)
    >>> exceeds([2.0, 6.0], [2.1, 2.1], by=0.5) is None
    True
    """
    apart = np.asarray(here, dtype=float) - np.asarray(there, dtype=float)
    if not np.isfinite(apart).all():
        return None
    if (apart <= by).all():
        return False
    return True if apart.mean() > by and (apart > 0).all() else None


def in_all(cases: ArrayLike) -> bool | None:
    """Return whether a claim holds in all cases, or in too few to hold in half of such cases.

    None where it holds in some and not in others (binomial, 5 %).

    Examples
    --------
    >>> in_all([True] * 10), in_all([True] + [False] * 9), in_all([True, False] * 5)
    (True, False, None)
    """
    is_true = np.asarray(cases, dtype=bool)
    few = more_often(int((~is_true).sum()), is_true.size, 0.5)[0]
    return False if few else unanimous(is_true)


def more_often(count: int, trials: int, chance: float) -> tuple[bool, float]:
    """Return whether a count is above chance at 5 %, and its p-value (binomial, one-sided).

    Examples
    --------
    >>> more_often(1, 16, 0.05)[0], more_often(4, 16, 0.05)[0]
    (False, True)
    """
    p = float(binomtest(count, trials, chance, alternative="greater").pvalue)
    return p <= LEVEL, p


def last_of(runs: Runs, name: str) -> np.ndarray:
    """Return the last value of every set of texts, of each seed: (seeds, sets)."""
    return each(runs, lambda run: run[name].isel(step=-1).transpose("set"))
