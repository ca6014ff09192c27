"""Figure 9 and Algorithm 3: what linear encoders read of the last step's concepts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason

from ...observables.concepts.encoder import EncoderDynamics
from ...observables.curves.fits import Fits
from ..formats import short, spread
from ..verdicts import Found, Runs, Verdict, each, if_finite, unanimous
from . import approach
from .concept_recipe import ConceptRecipe, sizes
from .extractors import EVEN, concepts
from .paths import done_by, path_lengths, the_runs

_FIRST = 0.2  # of the training: about where the report's first regime ends
_MARGIN = 1.1  # by which one path must be longer than another to count as rougher
_METRICS = ("cross_entropy", "mse", "kl", "correlation")


def judge(results: Found) -> Sequence[Verdict]:
    """Judge Figure 9: the curves converge early, smoothly, and the noisy regime is gone.

    A distance to the end of a run falls in a turned control too, and measures that are blind to
    changes of basis are smoother than those that are not: neither says anything of the concepts.
    """
    encoders = the_runs(results, "encoder-dynamics-ica")
    concepts = the_runs(results, "concepts-ica")
    return [
        _converges(encoders),
        _early(encoders),
        *(_smoother(encoders, concepts, *part) for part in _PARTS),
        _second_extractor(encoders),
        _decays(results),
    ]


_PARTS = (
    ("kl", 0.0, "the curves are smoother than distances between concepts"),
    ("kl", 0.5, "the noise of the second regime is gone from the curves"),
    (
        "correlation",
        0.5,
        "the softmax does not explain that: correlations of the logits lack the noise too",
    ),
)
_CALLED = {"kl": "KL", "correlation": "correlation of the logits"}


def _compared(encoders: Runs, metric: str, end: str = "") -> list[xr.DataArray]:
    return [
        run[f"comparison{end}"].sel(metric=metric, codes="train-fitted", drop=True)
        for run in encoders
    ]


def _controls(encoders: Runs, metric: str) -> list[xr.DataArray]:
    return [
        curve.isel(run=i, drop=True)
        for curve in _compared(encoders, metric, "_control")
        for i in range(curve.sizes["run"])
    ]


def _converges(encoders: Runs) -> Verdict:
    """Judge whether all four comparisons approach those of the last step."""
    ends = {m: [_ends(curve) for curve in _compared(encoders, m)] for m in _METRICS}
    first, last = np.array(ends["kl"]).T
    shuffled = each(
        _compared(encoders, "kl", "_shuffled"), lambda curve: curve.median()
    )
    control = each(_controls(encoders, "kl"), _ends)
    approach = all(
        (end > begin) == (metric == "correlation")
        for metric, seeds in ends.items()
        for begin, end in seeds
    )
    falls_less = control[:, 1] >= 0.5 * control[:, 0]
    return Verdict(
        "cross-entropy, MSE, KL and correlation approach the last step's",
        if_finite(approach, first, last),
        f"KL from {short(first)} to {short(last)} nats, correlation from "
        f"{short(np.array(ends['correlation'])[:, 0])} to "
        f"{short(np.array(ends['correlation'])[:, 1])} (the reference's own encoder at the end)",
        f"codes out of order {short(shuffled)} nats; turned runs, which learn nothing, from "
        f"{short(control[:, 0])} to {short(control[:, 1])} as they reach their own end",
        alike=if_finite(not falls_less.any(), control),
    )


def _ends(curve: xr.DataArray) -> tuple[float, float]:
    median = curve.dropna("step").median("layer")
    return (float(median[0]), float(median[-1])) if median.size else (np.nan, np.nan)


def _early(encoders: Runs) -> Verdict:
    """Judge whether most of the change is over in the first regime, and not in the controls."""
    done = done_by(_compared(encoders, "correlation"), _FIRST)
    controls = _controls(encoders, "correlation")
    # A control that does not change at all is known, and its share is none.
    control = done_by(controls, _FIRST)
    holds = unanimous(done > 0.5, done)
    half = np.concatenate([_half_steps(run) for run in encoders])
    finite = half[np.isfinite(half)]
    last = float(encoders[0].step[-1])
    when = (
        f"at step {np.median(finite):,.0f} of {last:,.0f}" if len(finite) else "never"
    )
    return Verdict(
        "the structure of the concepts may have converged in the first regime",
        holds,
        f"by {_FIRST:.0%} of the steps the correlation of the logits has done {short(done)} of its "
        f"change; KL is half-way {when} (median of seeds and layers)",
        f"turned runs {short(control)} by then; half counts as converged",
        alike=if_finite((control > 0.5).any(), [_ends(curve) for curve in controls]),
    )


def _half_steps(run: xr.Dataset) -> np.ndarray:
    return (
        np.asarray(run["half_step"].values, dtype=float)
        if "half_step" in run
        else np.full(1, np.nan)
    )


def _smoother(
    encoders: Runs, concepts: Runs, metric: str, since: float, claim: str
) -> Verdict:
    """Compare path lengths with those of dictionaries as returned, and without their freedoms."""
    mine = path_lengths(_compared(encoders, metric), since)
    plain, free = (
        path_lengths([_distance(run, kind) for run in concepts], since)
        for kind in ("frobenius", "procrustes")
    )
    holds = unanimous(plain > _MARGIN * mine, mine, plain)
    as_smooth = bool((free <= _MARGIN * mine).any())
    part = "in the second half of the steps" if since else "over the whole run"
    return Verdict(
        claim,
        holds,
        f"length of the path for its net change, {part}: {_CALLED[metric]} {spread(mine, 2)}, "
        f"Frobenius distance of the dictionaries {spread(plain, 2)}",
        f"Procrustes distance of the same dictionaries {spread(free, 2)}"
        + (": an invariant distance is as smooth without encoders" if as_smooth else "")
        + "; 1 never turns back",
        alike=if_finite(as_smooth, free),
    )


def _distance(run: xr.Dataset, kind: str) -> xr.DataArray:
    return run.relative_distance.sel(distance=kind, alignment="as returned", drop=True)


def _second_extractor(encoders: Runs) -> Verdict:
    """Compare both codes of the test rows at the reference step itself."""
    at = [
        int(np.argmin(np.abs(run.step.values - run.attrs["reference_step"])))
        for run in encoders
    ]
    kl = [
        run.comparison.sel(metric="kl").median("layer").isel(step=i)
        for run, i in zip(encoders, at, strict=True)
    ]
    mine, other = (
        np.array([float(one.sel(codes=codes)) for one in kl])
        for codes in ("train-fitted", "test-fitted")
    )
    first = np.array([_ends(curve)[0] for curve in _compared(encoders, "kl")])
    share = other / first
    return Verdict(
        "fitting the test codes anew, as Algorithm 3 does, costs nothing",
        unanimous(share < 0.1, share),
        f"at the last step itself KL is {short(other)} nats with an extractor fitted on the test "
        f"rows, {short(mine)} with that of the train rows",
        f"the whole range of the curve is {short(first)} nats; less than a tenth of it counts",
        of_paper=False,
    )


def _decays(results: Found) -> Verdict:
    """Judge the shape of the curves, where it was fitted."""
    claim = approach.WHOLE.format("KL of the encoders")
    if _SHAPES.name not in results:
        return Verdict(
            claim, None, "no shapes fitted", "no null", reason=Reason.NOTHING_SCORED
        )
    return approach.exponential(the_runs(results, _SHAPES.name), claim, of_paper=True)


_SHAPES = Fits(
    "encoder-dynamics-ica",
    "comparison",
    select={"metric": "kl", "codes": "train-fitted"},
    first=EVEN,
    offset=False,
)

RECIPES = (
    ConceptRecipe(
        "concepts-figure-9",
        "Old activations and the last step's concepts",
        "linear encoders predict the codes of the last step's ICA concepts from the activations of "
        "earlier steps; their curves are smooth, and the noise of the second regime is gone.",
        "Bernas 2025, sec. 6.1, Algorithm 3, Fig. 9",
        *sizes(
            lambda n, m: (
                concepts("ica", n, m),
                EncoderDynamics("ica", n, max_tokens=m),
                _SHAPES,
            )
        ),
        "a second regime of thousands of steps; two seeds and eight concepts.",
        judge=judge,
    ),
)
