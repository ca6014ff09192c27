"""Verdicts on commutators, their projection and sparse latents of runs of the marker task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..dynamics import compare_signals
from ..errors import ArgumentError, NonFiniteError
from .judges import Found
from .verdicts import Verdict

__all__ = ["avoidance", "commuting", "latents", "outside"]

_WEAK = 0.3  # correlation around the trends


def commuting(found: Found) -> list[Verdict]:
    """Judge Figure 3: whether commutators stay large, spike after convergence and with the loss."""
    (runs,) = found["commutators"].values()
    first, middle, last = (_over_steps(runs, "defect", at) for at in (0.0, 0.5, 1.0))
    norms = [_over_steps(runs, "norm", at) for at in (0.0, 1.0)]
    gradients = [_over_steps(runs, "gradient_norm", at) for at in (0.0, 1.0)]
    return [
        Verdict(
            "the normalised defect stays as large as before training",
            last >= first,
            f"{first:.2g} at first, {middle:.2g} half-way, {last:.2g} in the end",
            "0 where steps commute; float64, so that rounding adds nothing",
        ),
        Verdict(
            "commutators explode after convergence",
            last > 10 * first,
            f"normalised defect {last / first:.1f} times that before training",
            f"their norm goes from {norms[0]:.2g} to {norms[1]:.2g}, that of gradients from "
            f"{gradients[0]:.2g} to {gradients[1]:.2g}",
        ),
        _with_the_loss(runs),
    ]


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
    return Verdict(
        claim,
        abs(found.joint_pearson) < _WEAK if np.isfinite(found.joint_p) else None,
        f"correlation of the logarithms around their trends {found.joint_pearson:.2f}",
        f"p = {found.joint_p:.2g} of surrogates that share nothing; trends included {raw:.2f}; "
        f"below {_WEAK} counts as weak",
    )


def avoidance(found: Found) -> list[Verdict]:
    """Judge Figure 4: whether commutators avoid the trajectory's directions, beside gradients."""
    commutator, gradient, chance = _inside(found)
    return [
        Verdict(
            "commutators project less on the trajectory's directions than on random ones",
            commutator < chance,
            f"share of the norm inside, last step, whole run: {commutator:.3f}",
            f"random subspaces of the same dimension {chance:.3f}",
        ),
        Verdict(
            "commutators project less on them than plain gradients do",
            commutator < 0.5 * gradient,
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
            outer["commutators"] > 0.95,
            shown,
            "√(1 − ρ²), not 1 − ρ",
        ),
        Verdict(
            "that tells commutators apart from other vectors",
            outer["commutators"] > outer["plain gradients"] + 0.01,
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
            all(3 <= value <= 5 for value in followed),
            "latents that correlate with m, by variant: "
            + ", ".join(f"{value:.0f}" for value in followed),
            "beyond the best of shuffled texts; before training "
            + ", ".join(f"{float(v):.0f}" for v in count.isel(step=0).values.ravel()),
        ),
        Verdict(
            "removing them costs most early in training",
            early > late + 1,
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
