"""What reproduces and what does not, as a table that stands first on the page of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.figures import Column, Section, Table, attach

_ANSWERS = {True: "reproduces", False: "does not reproduce", None: "not shown"}
_OURS = {True: "holds", False: "does not hold", None: "not shown here"}  # counted by no page


@dataclass(frozen=True)
class Verdict:
    """One claim, what was measured, and what chance or a control gives.

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

    Examples
    --------
    >>> Verdict("the rank is low", None, "5.4", "random walk 5.0").answer
    'not shown'
    """

    claim: str
    holds: bool | None
    measured: str
    beside: str

    @property
    def answer(self) -> str:
        """``"reproduces"``, ``"does not reproduce"`` or ``"not shown"``; else ``"holds"`` or not.

        The latter is said of what stands here as ``(not claimed)``.
        """
        answers = _OURS if self.claim.startswith("(not claimed)") else _ANSWERS
        return answers[None if self.holds is None else bool(self.holds)]


def verdict_view(
    verdicts: Sequence[Verdict], claim: str, source: str, limits: str = "", material: str = ""
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
    >>> verdict_view(rows, "all is low.", "Nobody 1900").answer.values.tolist()
    ['does not reproduce']
    """
    claims = [verdict.claim for verdict in verdicts]
    if not claims or len(set(claims)) < len(claims):
        raise ArgumentError(f"verdicts must hold at least one claim, each once; got {claims}.")
    data = xr.Dataset(
        {
            "answer": ("claim", [verdict.answer for verdict in verdicts]),
            "measured": ("claim", [verdict.measured for verdict in verdicts]),
            "beside": ("claim", [verdict.beside for verdict in verdicts]),
        },
        coords={"claim": claims},
    )
    table = Table(
        "verdicts",
        "What reproduces and what does not",
        rows="claim",
        columns=[
            Column("answer", "verdict"),
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
