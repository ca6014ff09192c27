"""Whether a decay is exponential: its weight among shapes that are materially different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .decay_shapes import ALTERNATIVES
from .fit import Fit, information_criteria
from .fits import least_rss

ENOUGH = 0.9
"""Weight from which on a curve is called exponential; nine times all others together."""

IN_WORDS = {
    "exponential": "an exponential",
    "power": "a power law",
    "stretched-exponential": "a stretched exponential",
    "compressed-exponential": "a compressed exponential",
    "two-exponentials": "two exponentials",
    "straight": "a straight line",
}


def exponential_evidence(
    times: np.ndarray, series: np.ndarray, fits: Mapping[str, Fit], offset: bool
) -> dict[str, float]:
    """Return the weights of an exponential and of shapes materially different from it.

    An exponential is a limit of the general power law and of the stretched exponential, which
    therefore never fit worse, and no data can tell it from them. So it is compared with those
    members only that differ from it: power laws with an exponent of at most 3, stretched
    exponentials with β up to 0.8 or from 1.25 on, two exponentials whose rates differ threefold
    and of which each takes 20 to 80 % of the fall, and a straight line. The weights are those of
    Schwarz's criterion; AICc's penalty would decide alone where there are a dozen checkpoints.

    Parameters
    ----------
    times
        Steps (T,).
    series
        Values (T,), NaN where one is missing.
    fits
        Fits of ``exponential`` and ``straight`` to them.
    offset
        Whether the shapes have an offset.

    Returns
    -------
    dict
        Name to weight; they sum to 1.

    References
    ----------
    G. Schwarz 1978; R. E. Kass, A. E. Raftery, J. Amer. Statist. Assoc. 90, 1995 (weights).

    Examples
    --------
    >>> from .fit_comparison import compare_fits
    >>> t = np.arange(20.0)
    >>> noise = 0.002 * np.random.default_rng(0).normal(size=20)
    >>> evidence = compare_fits(t, np.exp(-t / 6) + noise).evidence
    >>> evidence["exponential"] > 0.9, round(sum(evidence.values()), 6)
    (True, 1.0)
    """
    there = ~np.isnan(series)
    t = times[there]
    y = series[there]
    scores = {name: fits[name].bic for name in ("exponential", "straight")}
    for shape in ALTERNATIVES:
        rss = least_rss(shape, t, y, offset)
        scores[shape.name] = information_criteria(
            rss, len(y), len(shape.parameters) + 1 + offset
        )[1]
    values = np.array(list(scores.values()))
    weights = np.exp(-(values - values.min()) / 2)
    return dict(zip(scores, (weights / weights.sum()).tolist(), strict=True))


def remaining(evidence: Mapping[str, float]) -> tuple[str, ...]:
    """Return the shapes that keep the exponential from `ENOUGH`, the likeliest first.

    Those at least nine times as likely as it, if there are any; else those not less likely than a
    ninth of it.

    Examples
    --------
    >>> remaining({"exponential": 0.6, "power": 0.3, "straight": 0.1})
    ('power', 'straight')
    >>> remaining({"exponential": 0.95, "power": 0.05})
    ()
    """
    weight = evidence.get("exponential", np.nan)
    if not weight < ENOUGH:  # NaN: nothing was compared
        return ()
    odds = ENOUGH / (1 - ENOUGH)
    others = sorted(
        ((w, n) for n, w in evidence.items() if n != "exponential"), reverse=True
    )
    likelier = tuple(name for w, name in others if w >= weight * odds)
    return (
        likelier
        or tuple(name for w, name in others if w >= weight / odds)
        or (others[0][1],)
    )


def in_words(names: Sequence[str]) -> str:
    """Return shapes as people write them.

    Examples
    --------
    >>> in_words(["power", "straight", "two-exponentials"])
    'a power law, a straight line or two exponentials'
    """
    words = [IN_WORDS[name] for name in names]
    return " or ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + words[-1:])
