"""Verdicts on commutators, their projection and sparse latents of runs of the marker task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.errors import ArgumentError, NonFiniteError

from ..dynamics.signals import compare_signals
from .formats import named, short, spread
from .verdicts import LEVEL, Found, Runs, Verdict, each, exceeds, unanimous

_WEAK = 0.3  # correlation around the trends
_EXCLUDED = 0.5  # correlation that the runs must rule out before one is called weak
_CONVERGED = 0.1  # of the loss's way down that may be left
_EXPLODED = 10
_STAYS = 0.5  # of the first value
_FALLEN = 0.5  # of the highest value, or of that of gradients
_LESS = 0.8  # of chance
_OUTSIDE = 95.0  # % of the norm
_LITTLE = 2.0  # points of accuracy
_STRONG = 0.5  # |r| of a latent
_SO_FAR = "basis of the run so far, all parameters"
_WHOLE = "basis of the whole run, all parameters"


def commuting(results: Found) -> list[Verdict]:
    """Judge Figure 3: whether commutators stay large, spike after convergence and with the loss."""
    (runs,) = results["commutators"].values()
    explosion = each(runs, _explosion)
    is_finite = np.isfinite(explosion).all()
    norms, defects, gradients = (
        np.array([_first_late_last(_median(run, name)) for run in runs]).T
        for name in ("norm", "defect", "gradient_norm")
    )
    return [
        _stays(
            "the norm of commutators stays large throughout training",
            norms,
            f"that of gradients goes from {short(gradients[0])} to {short(gradients[2])}",
        ),
        _stays(
            "the normalised defect stays large throughout training",
            defects,
            "0 where steps commute; float64, so that rounding adds nothing",
            of_paper=False,
        ),
        Verdict(
            "commutators explode once nine tenths of the loss's way down are done",
            unanimous(explosion > _EXPLODED, explosion),
            f"the largest normalised defect after that is {spread(explosion)} times that at it"
            if is_finite
            else "the loss gets there at the last checkpoint or not at all",
            f"medians of a few pairs vary by themselves: {_EXPLODED} times counts",
            of_paper=False,
        ),
        _with_the_loss(runs),
    ]


def _median(run: xr.Dataset, name: str) -> xr.DataArray:
    """Return the median over pairs of batches at each step."""
    return run[f"{name}_over_pairs"].sel(statistic="median", drop=True)


def _first_late_last(series: xr.DataArray) -> tuple[float, float, float]:
    """Return a series' first value, its median over the second half of training, its last."""
    values = series.dropna("step")
    late = values.where(values.step >= values.step[-1] / 2, drop=True)
    return float(values[0]), float(late.median()), float(values[-1])


def _stays(
    claim: str, values: np.ndarray, beside: str, *, of_paper: bool = True
) -> Verdict:
    """Judge whether a series keeps half of its first value in later training, seed by seed.

    The median of many steps counts: of noisy values some step is always low.
    """
    first, late, last = values
    return Verdict(
        claim,
        unanimous(late > _STAYS * first, first, late),
        f"{short(first)} at first, {short(late)} in the second half (median of the steps), "
        f"{short(last)} in the end",
        f"{beside}; half of the first counts as large",
        of_paper=of_paper,
    )


def _explosion(run: xr.Dataset) -> float:
    """Return the largest defect after convergence over that at it; NaN where none comes after.

    The loss has converged from when on it stays within a tenth of its way down above its lowest.
    """
    series = {"defect": _median(run, "defect"), "loss": run["loss"].median("pair")}
    finite = xr.Dataset(series).dropna("step")
    loss = finite["loss"].values
    defect = finite.defect.values
    if len(loss) < 3:
        return np.nan
    above = np.flatnonzero(loss > loss.min() + _CONVERGED * (loss[0] - loss.min()))
    start = int(above[-1]) + 1 if len(above) else 0
    if start + 1 >= len(loss) or defect[start] <= 0:
        return np.nan
    return float(defect[start + 1 :].max() / defect[start])


def _with_the_loss(runs: Runs) -> Verdict:
    """Judge whether norms of commutators rise and fall with the loss, beyond the trends of both."""
    claim = "spikes of commutators hardly go with those of the loss"
    # A loss of 0 has no logarithm, which is said below.
    with np.errstate(divide="ignore"):
        norm = np.log(each(runs, lambda run: _median(run, "norm"))).T
        loss = np.log(each(runs, lambda run: run["loss"].median("pair"))).T
    try:
        result = compare_signals(norm, loss, runs[0].step.values)
    except (ArgumentError, NonFiniteError) as error:
        return Verdict(claim, None, "not compared", str(error), reason=Reason.FAILED)
    raw = float(np.mean(result.pearson))
    size = abs(result.joint_pearson)
    count = float(np.sum(result.n)) - 3 * len(runs)  # Fisher's z, summed over seeds
    reach = 1.96 / np.sqrt(max(count, 1.0))
    largest = float(np.tanh(np.arctanh(min(size, 0.999)) + reach))
    # A schedule in common could only make it stronger: what is weak is weak without a p-value.
    weak = bool(size < _WEAK and largest < _EXCLUDED)
    is_clear = bool(size >= _WEAK and result.joint_p <= LEVEL)
    return Verdict(
        claim,
        size < _WEAK if weak or is_clear else None,
        f"correlation of the logarithms around their trends {result.joint_pearson:.2f}",
        f"p = {result.joint_p:.2g} of surrogates that share nothing; trends included {raw:.2f}; "
        f"below {_WEAK} counts as weak where {_EXCLUDED} can be ruled out; largest that fits "
        f"{largest:.2f}",
    )


def avoidance(results: Found) -> list[Verdict]:
    """Judge Figure 4: whether commutators avoid the trajectory's directions, beside gradients."""
    (runs,) = results["projection"].values()
    commutator, gradient, chance = _inside(runs)
    so_far = [run.rho_median.sel(setting=_SO_FAR) for run in runs]
    falls = [_first_highest_last(rho.sel(vector="commutator")) for rho in so_far]
    plain = [_first_highest_last(rho.sel(vector="gradient")) for rho in so_far]
    _, highest, last = np.array(falls).T
    return [
        Verdict(
            "the share of a commutator inside falls towards zero in training",
            unanimous(last < _FALLEN * highest, highest, last),
            f"share of the norm inside the directions of the run so far: {_course(falls)}",
            f"plain gradients: {_course(plain)}; half of the highest counts as fallen",
        ),
        Verdict(
            "they project less on the trajectory's directions than on random ones",
            unanimous(commutator < _LESS * chance, commutator, chance),
            f"share of the norm inside, last step, {_WHOLE}: {spread(commutator, 3)}",
            f"random subspaces of the same dimension {spread(chance, 3)}; a fifth less counts",
            of_paper=False,
        ),
        Verdict(
            "they project less on them than plain gradients do",
            unanimous(commutator < _FALLEN * gradient, commutator, gradient),
            f"share of the norm inside {spread(commutator, 3)}",
            f"plain gradients {spread(gradient, 3)}; half of that counts as less",
            of_paper=False,
        ),
    ]


def _first_highest_last(rho: xr.DataArray) -> tuple[float, float, float]:
    """Return a share over steps: its first known value, the highest, the last."""
    values = rho.dropna("step").values
    return float(values[0]), float(values.max()), float(values[-1])


def _course(series: Sequence[tuple[float, float, float]]) -> str:
    first, highest, last = np.array(series).T
    return (
        f"{spread(first, 3)} at first, {spread(highest, 3)} at the highest, "
        f"{spread(last, 3)} in the end"
    )


def outside(results: Found) -> list[Verdict]:
    """Judge Figure 5: whether nearly all of a commutator is outside, and what else is."""
    (runs,) = results["projection"].values()
    names = ("commutators", "plain gradients", "random directions")
    outer = [100 * np.sqrt(1 - share**2) for share in _inside(runs)]
    shares = [f"{n} {spread(share)} %" for n, share in zip(names, outer, strict=True)]
    holds = unanimous(outer[0] > _OUTSIDE, outer[0])
    # Where as much of a gradient or a random direction is outside, this tells of no commutator.
    always = bool((np.array(outer[1:]) > _OUTSIDE).all(axis=1).any())
    return [
        Verdict(
            "more than 95 % of a commutator is outside the trajectory's directions",
            holds,
            f"{shares[0]}; last step, {_WHOLE}",
            f"{shares[1]}, {shares[2]}; √(1 − ρ²), not 1 − ρ",
            alike=always,
        )
    ]


def _inside(runs: Runs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return shares inside, one of each seed: of commutators, gradients and random directions."""
    last = [run.sel(setting=_WHOLE).isel(step=-1) for run in runs]
    commutator, gradient = each(
        last, lambda run: run.rho_median.sel(vector=["commutator", "gradient"])
    ).T
    return commutator, gradient, each(last, lambda run: run.control)


def latents(results: Found) -> list[Verdict]:
    """Judge Figure 6: how many latents follow m, and what removing the five strongest costs."""
    (runs,) = results["sae-probe"].values()
    names = ["accuracy_lost", "latents_above_null", "accuracy"]
    data = xr.concat(
        [run[names] for run in runs], "seed", coords="minimal", compat="override"
    )
    count = data.latents_above_null.transpose("seed", "step", "variant")
    lost = 100 * data.accuracy_lost.mean("variant").transpose(
        "seed", "step", "ablation"
    )
    # Untrained: nothing to lose.
    lost = lost.isel(step=slice(min(1, data.sizes["step"] - 1), None))
    mine, random, equal, largest = (
        lost.sel(ablation=name) for name in ("count", "random", "matched", "largest")
    )
    early, late = (mine.isel(step=i).values for i in (0, -1))
    worst = int(np.argmax(mine.mean("seed").values))
    little = unanimous((mine < _LITTLE).all("step"), mine)
    # Where not even the largest latents cost more, removing so few shows nothing.
    always = bool((largest < _LITTLE).all())
    strongest = each(
        runs, lambda run: run.count_correlation.isel(step=-1).max("latent")
    )
    strong = each(
        runs, lambda run: (run.count_correlation.isel(step=-1) >= _STRONG).sum("latent")
    )
    followed = count.isel(step=-1).values
    variants = data.variant.values
    right = data.accuracy.sel(step=lost.step).transpose("seed", "step")
    return [
        Verdict(
            "3 to 5 latents correlate strongly with the number of markers m",
            unanimous(((strong >= 3) & (strong <= 5)).all(axis=1), strong),
            f"latents with |r| of {_STRONG} or more: {named(variants, strong, 0)}; strongest |r| "
            f"{named(variants, strongest, 2)}; beyond the best of shuffled texts "
            f"{named(variants, followed, 0)}",
            f"beyond it before training {named(variants, count.isel(step=0).values, 0)}",
        ),
        Verdict(
            "removing the five that correlate most costs little at all stages",
            little,
            f"at most {spread(mine.isel(step=worst))} points of accuracy, at step "
            f"{int(lost.step[worst]):,}",
            f"there random latents {spread(random.isel(step=worst))}, of equal energy "
            f"{spread(equal.isel(step=worst))}, the largest {spread(largest.isel(step=worst))}; "
            f"under {_LITTLE:.0f} points count as little, if the largest cost more",
            alike=always,
        ),
        Verdict(
            "removing these five costs most early in training",
            exceeds(early, late, 1.0) if not always else None,
            f"points of accuracy lost: {spread(early)} at step {int(lost.step[0]):,} "
            f"(accuracy {spread(right[:, 0], 2)}), {spread(late)} in the end",
            f"random latents {spread(random.isel(step=0))} and "
            f"{spread(random.isel(step=-1))}; one point counts",
            reason=Reason.SMALL if always else Reason.CASES_DIFFER,
        ),
    ]
