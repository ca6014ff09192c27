"""Numbers of several seeds in words."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

_LISTED = 4  # more seeds than this are written as mean ± SD


def typeset(text: str) -> str:
    """Return a text with its minus signs and percentages as the pages of the library have them.

    Examples
    --------
    >>> typeset("-0.4 ± 0.01 (5%; 2e-05)")
    '−0.4 ± 0.01 (5 %; 2e-05)'
    """
    return re.sub(r"(?<=\d)%", " %", re.sub(r"(?<![\w.)])-(?=\.?\d)", "−", text))


def spread(values: ArrayLike, digits: int = 1) -> str:
    """Return ``"2.4 ± 0.1"``, mean and sample SD over seeds; the number alone where there is one.

    Examples
    --------
    >>> spread([2.0, 3.0]), spread([-0.01]), spread([2.0, float("nan")])
    ('2.5 ± 0.7', '0.0', 'unknown')
    """
    seeds = np.atleast_1d(np.asarray(values, dtype=float))
    if not np.isfinite(seeds).all():
        return "unknown"
    mean = f"{round(seeds.mean(), digits) + 0.0:.{digits}f}"  # no minus before a zero
    return mean if len(seeds) == 1 else f"{mean} ± {seeds.std(ddof=1):.{digits}f}"


def short(values: np.ndarray) -> str:
    """Return a mean and SD over seeds, of numbers of any size, or "unknown".

    The mean has two digits; of a hundred and more as many as reach the first one of the SD.

    Examples
    --------
    >>> (
    ...     short(np.array([2e-5, 3e-5])),
    ...     short(np.array([0.25])),
    ...     short(np.array([310.0, 490.0])),
    ... )
    ('2.5e-05 ± 7e-06', '0.25', '400 ± 100')
    >>> short(np.array([1234.0, 1235.0]))
    '1,234.5 ± 0.7'
    """
    if not np.isfinite(values).all():
        return "unknown"
    mean = float(np.mean(values))
    if len(values) < 2:
        return _rounded(mean, 2)
    sd = float(np.std(values, ddof=1))
    digits = 2
    # "1,200 ± 0.7" would look exact, which "0.12 ± 0.0007" does not.
    if abs(mean) >= 100 and sd:
        digits = _leading_place(mean) - _leading_place(sd) + 1
    return f"{_rounded(mean, max(digits, 2))} ± {_rounded(sd, 1)}"


def _leading_place(value: float) -> int:
    return int(f"{abs(value):.0e}".partition("e")[2])


def _rounded(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):,.15g}"  # 390, where .2g alone gives 3.9e+02


def listed(values: ArrayLike) -> str:
    """Return steps of seeds: each where they are few, else their median and range.

    Examples
    --------
    >>> listed([40, 1200.0]), listed([10, 20, 30, 40, float("nan")])
    ('40 and 1,200', '25 (10 to 40; never in 1 of 5)')
    """
    steps = np.asarray(values, dtype=float)
    if len(steps) <= _LISTED:
        return " and ".join(f"{v:,.0f}" if np.isfinite(v) else "never" for v in steps)
    finite = steps[np.isfinite(steps)]
    if not len(finite):
        return f"never in {len(steps)}"
    never = (
        f"; never in {len(steps) - len(finite)} of {len(steps)}"
        if len(finite) < len(steps)
        else ""
    )
    return (
        f"{np.median(finite):,.0f} ({finite.min():,.0f} to {finite.max():,.0f}{never})"
    )


def named(names: ArrayLike, values: np.ndarray, digits: int = 1) -> str:
    """Return every name with mean and SD of its seeds; `values` is (seeds, names).

    Examples
    --------
    >>> named(["Q", "V"], np.array([[3.0, 2.0], [5.0, 2.0]]))
    'Q: 4.0 ± 1.4, V: 2.0 ± 0.0'
    """
    columns = zip(np.asarray(names), np.asarray(values).T, strict=True)
    return ", ".join(f"{name}: {spread(column, digits)}" for name, column in columns)


def p_value(p: float) -> str:
    """Return ``"p = 0.03"``, or ``"p < .001"`` below that.

    Examples
    --------
    >>> p_value(0.031), p_value(8e-17)
    ('p = 0.031', 'p < .001')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.2g}"


def joined(values: ArrayLike, digits: int = 2) -> str:
    """Return the number of each seed.

    Examples
    --------
    >>> joined([0.5, 0.25])
    '0.50, 0.25'
    """
    return ", ".join(f"{value:.{digits}f}" for value in np.asarray(values))
