"""Claims as columns of a result: numbers and plain texts over ``claim``, nothing as JSON.

What claims stand beside is a second table over ``comparison``, whose ``beside_claim`` is the place
of the claim in the first. xarray alone reads both. The columns of claims begin with ``claim_``: a
node of a result may be called ``first`` or ``low``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ..errors import ArgumentError
from .claim import Beside, Claim, Subject
from .vocabulary import Certainty, Kind, Reason

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "claim_"
EVIDENCE = "; "  # between paths of variables, none of which holds it

SUBJECT = ("node", "quantity", "layer", "label", "run")

# Numbers of a claim, each with what it is; units are in a column of their own.
NUMBERS = {
    "value": "size of what happened",
    "low": "size of what happened, lower end",
    "high": "size of what happened, upper end",
    "first": "first value",
    "last": "last value",
    "since": "step from which on it holds",
    "since_low": "step from which on it holds, lower end",
    "since_high": "step from which on it holds, upper end",
    "p_value": "corrected p-value",
    "needed": "how many of what is too few would do",
}
WORDS = {
    "kind": "what happened",
    "certainty": "how sure it is",
    "reason": "why it is open",
    "node": "observable",
    "quantity": "variable of the observable",
    "layer": "module path",
    "label": "concept, ability or reference",
    "run": "run",
    "units": "units of the values",
    "evidence": "variables that it is computed from",
    "figure": "figure that shows it",
}
OF_BESIDE = {
    "beside_claim": "place of the claim that it stands beside",
    "beside_role": "null, reference or control",
    "beside_name": "name of what stands beside it",
    "beside_value": "value of what stands beside it",
    "beside_own": "value of the run at the same steps",
}


def to_dataset(claims: Sequence[Claim]) -> xr.Dataset:
    """Return claims as variables over ``claim`` and ``comparison``.

    Examples
    --------
    >>> claim = Claim(
    ...     Kind.CHANGED, Subject("loss"), Certainty.SURE, first=6.0, last=4.3
    ... )
    >>> data = to_dataset([claim])
    >>> (
    ...     str(data.claim_kind[0].item()),
    ...     float(data.claim_last[0]),
    ...     from_dataset(data) == [claim],
    ... )
    ('changed', 4.3, True)
    """
    texts: dict[str, list[object]] = {
        "kind": [claim.kind.value for claim in claims],
        "certainty": [claim.certainty.value for claim in claims],
        "reason": [claim.reason.value if claim.reason else "" for claim in claims],
    }
    for name in SUBJECT:
        texts[name] = [getattr(claim.subject, name) for claim in claims]
    texts["units"] = [claim.units for claim in claims]
    texts["figure"] = [claim.figure for claim in claims]
    texts["evidence"] = [EVIDENCE.join(claim.evidence) for claim in claims]
    words = {
        name: ("claim", _texts(texts[name]), {"long_name": WORDS[name]})
        for name in WORDS
    }
    numbers = {
        name: (
            "claim",
            np.array([getattr(claim, name) for claim in claims], dtype=float),
            {"long_name": long_name},
        )
        for name, long_name in NUMBERS.items()
    }
    steps = np.array([claim.subject.step for claim in claims], dtype=float)
    tests = np.array([claim.corrected_over for claim in claims], dtype=np.int64)
    weights = np.array([claim.weight for claim in claims], dtype=float)
    more = {
        "step_of": ("claim", steps, {"long_name": "step that it is about"}),
        "corrected_over": (
            "claim",
            tests,
            {"long_name": "tests that p is corrected over"},
        ),
        "weight": ("claim", weights, {"long_name": "how early a reader wants it"}),
    }
    columns = {
        f"{PREFIX}{name}": column for name, column in (words | numbers | more).items()
    }
    return xr.Dataset({**columns, **_beside(claims)})


def _beside(
    claims: Sequence[Claim],
) -> dict[str, tuple[str, np.ndarray, dict[str, str]]]:
    all_beside = list(chain.from_iterable(claim.beside for claim in claims))
    counts = np.array([len(claim.beside) for claim in claims], dtype=int)
    arrays = {
        "beside_claim": np.repeat(np.arange(len(claims)), counts),
        "beside_role": _texts([beside.role for beside in all_beside]),
        "beside_name": _texts([beside.name for beside in all_beside]),
        "beside_value": np.array([beside.value for beside in all_beside], dtype=float),
        "beside_own": np.array([beside.own for beside in all_beside], dtype=float),
    }
    return {
        name: ("comparison", array, {"long_name": OF_BESIDE[name]})
        for name, array in arrays.items()
    }


def _texts(values: Sequence[object]) -> np.ndarray:
    """Return texts as an array; of none it is one of texts too, as objects would become numbers."""
    return np.array(values, dtype=object if values else str)


def claims_frame(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return claims as a table: a line each, with all but what they stand beside.

    Examples
    --------
    >>> claim = Claim(
    ...     Kind.CHANGED, Subject("loss"), Certainty.SURE, first=6.0, last=4.3
    ... )
    >>> claims_frame([claim])[["kind", "node", "certainty", "last"]].values.tolist()
    [['changed', 'loss', 'sure', 4.3]]
    """
    data = to_dataset(claims)
    columns = {
        n: str(n).removeprefix(PREFIX) for n in data if data[n].dims == ("claim",)
    }
    frame = data[list(columns)].to_dataframe().rename(columns=columns)
    frame["comparisons"] = [len(claim.beside) for claim in claims]
    return frame.reset_index(drop=True)


def from_dataset(data: xr.Dataset) -> list[Claim]:
    """Return the claims that `to_dataset` wrote.

    Raises
    ------
    ArgumentError
        If a column is missing, or holds a word that no claim may have.
    """
    names = (*(f"{PREFIX}{name}" for name in (*WORDS, *NUMBERS)), *OF_BESIDE)
    missing = [name for name in names if name not in data]
    if missing:
        raise ArgumentError(
            f"claims must have the column {missing[0]!r}; there is none."
        )
    columns = {
        str(name).removeprefix(PREFIX): data[name].values for name in data.data_vars
    }
    beside: dict[int, list[Beside]] = {}
    for i in range(data.sizes["comparison"]):
        beside.setdefault(int(columns["beside_claim"][i]), []).append(
            Beside(
                str(columns["beside_role"][i]),
                str(columns["beside_name"][i]),
                _number(columns["beside_value"][i]),
                _number(columns["beside_own"][i]),
            )
        )
    return [_claim(columns, i, beside.get(i, [])) for i in range(data.sizes["claim"])]


def _claim(columns: dict[str, np.ndarray], i: int, beside: Sequence[Beside]) -> Claim:
    words = {name: str(columns[name][i]) for name in WORDS}
    subject = Subject(
        **{name: words[name] for name in SUBJECT}, step=_number(columns["step_of"][i])
    )
    evidence = words["evidence"]
    return Claim(
        Kind(_known(words["kind"], Kind)),
        subject,
        Certainty(_known(words["certainty"], Certainty)),
        Reason(_known(words["reason"], Reason)) if words["reason"] else None,
        **{name: _number(columns[name][i]) for name in NUMBERS},
        units=words["units"],
        corrected_over=int(columns["corrected_over"][i]),
        beside=tuple(beside),
        evidence=tuple(evidence.split(EVIDENCE)) if evidence else (),
        figure=words["figure"],
    )


def _known(word: str, words: type[Kind] | type[Certainty] | type[Reason]) -> str:
    if word not in [known.value for known in words]:
        raise ArgumentError(
            f"claims must not have the {words.__name__.lower()} {word!r}."
        )
    return word


def _number(value: float) -> float:
    """Return a number; of those that are none always the same one, so that claims can be equal."""
    return math.nan if math.isnan(value) else float(value)
