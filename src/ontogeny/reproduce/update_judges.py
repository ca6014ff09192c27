"""Verdicts on commutators, their projection and sparse latents of runs of the marker task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..dynamics import compare_signals
from ..errors import ArgumentError, NonFiniteError
from .judges import Found, told
from .verdicts import Verdict

__all__ = ["avoidance", "commuting", "latents", "outside"]

_LEVEL = 0.05
_WEAK = 0.3  # correlation around the trends
_EXCLUDED = 0.5  # correlation that the runs must rule out before a weak one is told
_CONVERGED = 0.1  # of the loss's way down that may be left
_LESS = 0.8  # of chance


def commuting(found: Found) -> list[Verdict]:
    """Judge Figure 3: whether commutators stay large, spike after convergence and with the loss."""
    (runs,) = found["commutators"].values()
    first, middle, last = (_over_steps(runs, "defect", at) for at in (0.0, 0.5, 1.0))
    explosion = float(np.mean([_explosion(run) for run in runs]))
    norms = [_over_steps(runs, "norm", at) for at in (0.0, 1.0)]
    gradients = [_over_steps(runs, "gradient_norm", at) for at in (0.0, 1.0)]
    return [
        Verdict(
            "the normalised defect stays as large as before training",
            told(last >= first, first, last),
            f"{first:.2g} at first, {middle:.2g} half-way, {last:.2g} in the end",
            "0 where steps commute; float64, so that rounding adds nothing",
        ),
        Verdict(
            "commutators explode after convergence",
            told(explosion > 10, explosion),
            f"largest normalised defect after convergence {explosion:.1f} times that at it"
            if np.isfinite(explosion)
            else "the loss converges at the last checkpoint or not at all",
            f"before training to the end {last / first:.1f} times; their norm goes from "
            f"{norms[0]:.2g} to {norms[1]:.2g}, that of gradients from "
            f"{gradients[0]:.2g} to {gradients[1]:.2g}",
        ),
        _with_the_loss(runs),
    ]


def _explosion(run: xr.Dataset) -> float:
    """Return the largest defect after convergence over that at it; NaN where none comes after.

    The loss has converged from when on it stays within a tenth of its way down above its lowest.
    """
    known = run[["defect", "training_loss"]].dropna("step")
    loss, defect = known.training_loss.values, known.defect.values
    if len(loss) < 3:
        return float("nan")
    above = np.flatnonzero(loss > loss.min() + _CONVERGED * (loss[0] - loss.min()))
    start = int(above[-1]) + 1 if len(above) else 0
    if start + 1 >= len(loss) or defect[start] <= 0:
        return float("nan")
    return float(defect[start + 1 :].max() / defect[start])


def _with_the_loss(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether norms of commutators rise and fall with the loss, beyond the trends of both."""
    claim = "spikes of commutators hardly go with those of the loss"
    with np.errstate(divide="ignore"):  # a loss of 0 has no logarithm, which is said below
        norm, loss = (
            np.log(np.stack([run[name].values for run in runs], axis=1))
            for name in ("norm", "training_loss")
        )
    try:
        found = compare_signals(norm, loss, runs[0].step.values)
    except (ArgumentError, NonFiniteError) as error:
        return Verdict(claim, None, "not compared", str(error))
    raw = float(np.mean(found.pearson))
    size = abs(found.joint_pearson)
    count = float(np.sum(found.n)) - 3 * len(runs)  # Fisher's z, summed over seeds
    reach = 1.96 / np.sqrt(max(count, 1.0))
    largest = float(np.tanh(np.arctanh(min(size, 0.999)) + reach))
    weak = bool(size < _WEAK and largest < _EXCLUDED and np.isfinite(found.joint_p))
    shown = bool(size >= _WEAK and found.joint_p <= _LEVEL)
    return Verdict(
        claim,
        size < _WEAK if weak or shown else None,
        f"correlation of the logarithms around their trends {found.joint_pearson:.2f}",
        f"p = {found.joint_p:.2g} of surrogates that share nothing; trends included {raw:.2f}; "
        f"below {_WEAK} counts as weak where {_EXCLUDED} can be ruled out; largest that fits "
        f"{largest:.2f}",
    )


def avoidance(found: Found) -> list[Verdict]:
    """Judge Figure 4: whether commutators avoid the trajectory's directions, beside gradients."""
    commutator, gradient, chance = _inside(found)
    return [
        Verdict(
            "commutators project less on the trajectory's directions than on random ones",
            told(commutator < _LESS * chance, commutator, chance),
            f"share of the norm inside, last step, whole run: {commutator:.3f}",
            f"random subspaces of the same dimension {chance:.3f}; a fifth less counts as less",
        ),
        Verdict(
            "commutators project less on them than plain gradients do",
            told(commutator < 0.5 * gradient, commutator, gradient),
            f"share of the norm inside {commutator:.3f}",
            f"plain gradients {gradient:.3f}; half of that counts as less",
        ),
    ]


def outside(found: Found) -> list[Verdict]:
    """Judge Figure 5: whether nearly all of a commutator is outside, and what else is."""
    names = ("commutators", "plain gradients", "random directions")
    inside = dict(zip(names, _inside(found), strict=True))
    outer = {name: np.sqrt(1 - share**2) for name, share in inside.items()}
    shown = ", ".join(f"{name} {100 * value:.1f} %" for name, value in outer.items())
    return [
        Verdict(
            "more than 95 % of a commutator is outside the trajectory's directions",
            told(outer["commutators"] > 0.95, outer["commutators"]),
            shown,
            "√(1 − ρ²), not 1 − ρ",
        ),
        Verdict(
            "that tells commutators apart from other vectors",
            told(outer["commutators"] > outer["plain gradients"] + 0.01, list(outer.values())),
            shown,
            "one point more than plain gradients counts as apart",
        ),
    ]


def latents(found: Found) -> list[Verdict]:
    """Judge Figure 6: how many latents follow m, and what their removal costs and when."""
    (runs,) = found["sae-probe"].values()
    data = xr.concat(runs, dim="seed", coords="minimal", compat="override").mean("seed")
    lost, count = data.accuracy_lost, data.latents_above_null
    followed = [float(value) for value in count.isel(step=-1).values.ravel()]
    mine, random = (100 * lost.sel(ablation=name) for name in ("count", "random"))
    second = min(1, data.sizes["step"] - 1)  # before training there is nothing to lose
    early, late = (float(mine.isel(step=i).mean()) for i in (second, -1))
    return [
        Verdict(
            "3 to 5 latents follow the task's structure",
            told(all(3 <= value <= 5 for value in followed), followed),
            "latents that correlate with m, by variant: "
            + ", ".join(f"{value:.0f}" for value in followed),
            "beyond the best of shuffled texts; before training "
            + ", ".join(f"{float(v):.0f}" for v in count.isel(step=0).values.ravel()),
        ),
        Verdict(
            "removing them costs most early in training",
            told(early > late + 1, early, late),
            f"points of accuracy lost: {early:.1f} at step {int(data.step[second]):,}, "
            f"{late:.1f} in the end",
            f"random latents in the end {float(random.isel(step=-1).mean()):.1f}; one point counts",
        ),
    ]


def _over_steps(runs: Sequence[xr.Dataset], name: str, share: float) -> float:
    """Return the mean over seeds of a series at a share of the way through its known steps."""
    values = []
    for run in runs:
        known = run[name].dropna("step")
        values.append(float(known[round(share * (known.sizes["step"] - 1))]))
    return float(np.mean(values))


def _inside(found: Found) -> tuple[float, float, float]:
    """Return the share inside of a commutator, of a plain gradient, and of random directions."""
    (runs,) = found["projection"].values()
    last = [run.isel(step=-1, setting=-1) for run in runs]
    rho = np.mean([each.rho_median.values for each in last], axis=0)
    return float(rho[0]), float(rho[1]), float(np.mean([each.control for each in last]))
