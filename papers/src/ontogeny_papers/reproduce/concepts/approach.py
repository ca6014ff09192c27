"""Verdicts on how concepts approach those of the last step: Figures 1 to 5 and 13 of the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.summary.noise import reference_index

from ...dynamics.progress import learning_progress
from ...observables.curves.base import floor_of
from ..formats import short
from ..verdicts import Verdict, decided, each, exceeds, if_finite, why_open

_TWICE = float(np.log(2))
_TURNED = (
    "turned runs are read at too few steps to have regimes; the distance of a random walk to its "
    "end has none"
)


def falls(nodes: Sequence[xr.Dataset], *, of_paper: bool = True) -> Verdict:
    """Judge Definition 11: below the first value for good, in all distances and layers.

    Distances to the last step fall in a run that learned nothing as well, where that is so.
    """
    returned, turned = ([_progressed(node, way) for node in nodes] for way in _WAYS)
    share = np.array([is_returned.mean() for is_returned in returned])
    holds = decided((share == 1).all(), (share < 0.5).all(), share)
    controls = np.concatenate([_controls_fell(node) for node in nodes])
    return Verdict(
        "the nine distances to the last step fall for good (learning progress, Definition 11)",
        holds,
        f"relative to the norms of both dictionaries, which grow: as the solver returned the "
        f"concepts {_count(returned)} curves of all distances, layers and seeds; with order, signs "
        f"and rotation removed {_count(turned)}",
        f"{_count([controls])} curves of turned runs, which learn nothing, end below their first "
        "value as well; so does the distance of a random walk to its end",
        alike=controls.mean() > 0.5 if controls.size else None,
        of_paper=of_paper,
    )


_WAYS = ("as returned", "rotation removed")


def _total(shares: np.ndarray, counts: Sequence[int]) -> str:
    """Return shares of each seed's curves as ``"5 of 6"``."""
    return f"{np.sum(shares * np.asarray(counts)):.0f} of {sum(counts)}"


def _count(values: Sequence[np.ndarray]) -> str:
    fell = np.concatenate([one.ravel() for one in values])
    finite = fell[np.isfinite(fell)]
    return f"{int(finite.sum())} of {finite.size}"


def _progressed(node: xr.Dataset, alignment: str) -> np.ndarray:
    """Return whether each curve (distance, layer) fell for good; NaN where noise is unknown."""
    progress = []
    for distance in node.indexes["distance"]:
        select = {"distance": distance, "alignment": alignment}
        floors = floor_of(node, "relative_distance", select, node.layer.values.tolist())
        curves = node.relative_distance.sel(select).transpose("layer", "step").values
        progress.append(
            [
                _fell(node, curve, floor)
                for curve, floor in zip(curves, floors, strict=True)
            ]
        )
    return np.array(progress)


def _fell(node: xr.Dataset, curve: np.ndarray, floor: float) -> float:
    if not np.isfinite(floor):
        return float("nan")
    reference = reference_index(node)
    return float(
        learning_progress(
            node.step.values, curve, floor, reference_index=reference
        ).progressed
    )


def _controls_fell(node: xr.Dataset) -> np.ndarray:
    """Return whether each curve of each control run ends below its first value, (curves,)."""
    if "relative_distance_control" not in node:
        return np.array([])
    curves = node.relative_distance_control.sel(alignment=_WAYS[0])
    reference = node.attrs.get("reference_step")
    read = curves.sel(step=node.step != reference).dropna("step", how="all")
    if read.sizes["step"] < 2:
        return np.array([])
    return np.asarray(
        (read.isel(step=-1) < read.isel(step=0)).values.ravel(), dtype=np.float64
    )


def further(nodes: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether they fall further than those of turned runs over the same steps."""
    beyond = each(nodes, lambda node: node.beyond.mean())
    rows = [node.sizes["row"] for node in nodes]
    change = each(nodes, lambda node: node.run_change.mean())
    turned = each(nodes, lambda node: (node.control_last - node.control_first).mean())
    return Verdict(
        "they fall further than those of runs that move as far and learn nothing",
        decided((beyond == 1).all(), (change >= turned).all(), change, turned),
        f"Procrustes distance with the rotation removed, relative to the norms, changes by "
        f"{short(change)} from the first step to the last at which turned runs are read",
        f"turned runs over these steps {short(turned)}; the change differs from "
        f"theirs in {_total(beyond, rows)} layers (p ≤ 0.05, corrected over all rows of the study)",
        of_paper=False,
    )


# ---- regimes and shape --------------------------------------------------------------------------


def two_regimes(
    nodes: Sequence[xr.Dataset], regimes: Sequence[xr.Dataset], what: str
) -> Verdict:
    """Judge whether a smooth regime is followed by a noisy one, noisier than refits are.

    Parameters
    ----------
    nodes
        Concepts of each seed.
    regimes
        Their regimes, of the same curve.
    what
        The curve in words, and in the labels of the node: ``"as returned"``.
    """
    boundary = each(regimes, lambda node: node.joint_boundary)
    ends = each(
        regimes, lambda node: [node.joint_noise_ratio_low, node.joint_noise_ratio_high]
    )
    later = np.isfinite(boundary) & (ends[:, 0] > 1)
    earlier = np.isfinite(boundary) & (ends[:, 1] < 1)
    after = each(regimes, lambda node: node.joint_noise_after)
    gradual = each(regimes, lambda node: node.joint_p_gradual)
    tested = np.isfinite(each(regimes, lambda node: node.joint_p)).all()
    refits = np.array([_refit_noise(node, what) for node in nodes])
    holds = decided((later & (after > refits)).all(), earlier.all())
    return Verdict(
        f"a smooth regime, then a noisy one ({_CURVES[what]})",
        holds,
        "; ".join(regime_words(node) for node in regimes),
        f"refits at one step differ by {short(refits)} (standard deviation); {_TURNED}",
        reason=why_open(
            np.isfinite(boundary) | np.isfinite(gradual),
            Reason.WITHIN_NOISE if tested else Reason.FEW_CHECKPOINTS,
        ),
    )


_CURVES = {
    "as returned": "Frobenius distance, as returned",
    "rotation removed": "Procrustes distance, rotation removed",
}


def _refit_noise(node: xr.Dataset, alignment: str) -> float:
    if "relative_distance_stderr" not in node:
        return float("nan")
    distance = "frobenius" if alignment == "as returned" else "procrustes"
    error = node.relative_distance_stderr.sel(distance=distance, alignment=alignment)
    return float(np.exp(np.log(error.where(error > 0)).mean()))


def regime_words(node: xr.Dataset) -> str:
    """Return the boundary of one seed with its interval, or that there is none."""
    if np.isfinite(node.joint_boundary):
        ratio, low, high = (
            float(node[f"joint_noise_ratio{end}"]) for end in ("", "_low", "_high")
        )
        start, stop = (float(node[f"joint_boundary_{end}"]) for end in ("low", "high"))
        is_finite = np.isfinite([low, high]).all()
        interval = f"({low:.2g}–{high:.2g})" if is_finite else "(interval unknown)"
        return (
            f"boundary at step {float(node.joint_boundary):,.0f} ({start:,.0f}–{stop:,.0f}), noise "
            f"behind it {ratio:.2g} times that before {interval}"
        )
    if not np.isfinite(node.joint_p):
        return "too few checkpoints to say"
    if np.isfinite(node.joint_p_gradual):
        return (
            f"gradual, {float(node.joint_gradual_ratio):.2g} times from first to last"
        )
    return f"none (p = {float(node.joint_p):.2g})"


WHOLE = "the {} is near-exponential over the whole run"
"""What the report claims of the first regime alone."""


def exponential(
    fits: Sequence[xr.Dataset],
    claim: str = WHOLE.format("approach"),
    *,
    of_paper: bool = False,
) -> Verdict:
    """Judge whether curves are exponential rather than of another shape, by layers and seeds."""
    shares = each(fits, lambda node: node.exponential.mean())
    ruled = each(fits, lambda node: node.ruled_out.mean())
    r2 = each(fits, lambda node: node.r2.mean())
    layers = [node.sizes["layer"] for node in fits]
    return Verdict(
        claim,
        decided((shares > 0.5).all(), (ruled > 0.5).all(), r2),
        f"exponential in {_total(shares, layers)} curves, another shape at least nine times as "
        f"likely in {_total(ruled, layers)}; mean R² {short(r2)}",
        f"best of the other shapes: mean R² {short(best_other(fits))}; any falling curve has a "
        "high one",
        of_paper=of_paper,
    )


def best_other(fits: Sequence[xr.Dataset]) -> np.ndarray:
    """Return the mean R² of the best shape other than an exponential, (seeds,)."""
    others = [
        name
        for name in fits[0].indexes["model"]
        if name not in ("exponential", "constant")
    ]
    return each(fits, lambda node: node.r2_of.sel(model=others).max("model").mean())


def converges(dynamics: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether changes vanish in the refits' noise; a falling learning rate does that alone.

    So it can be refuted here, and not shown.
    """
    share = each(dynamics, lambda node: node.converged.mean())
    since = np.array([float(node.quiet_since.max()) for node in dynamics])
    layers = [node.sizes["layer"] for node in dynamics]
    quiet = (
        f", from step {short(since)} at the latest" if np.isfinite(since).all() else ""
    )
    return Verdict(
        "the approach converges: changes come to stay within the noise of refits",
        False if (share < 0.5).all() else None,
        f"in {_total(share, layers)} layers of all seeds{quiet}",
        "a learning rate that falls to zero stills a run that learns nothing as well, so that "
        "this can be refuted and not shown",
        reason=Reason.NO_CONTROLS,
    )


# ---- one extractor beside others ----------------------------------------------------------------


def smoother(
    name: str,
    nodes: dict[str, Sequence[xr.Dataset]],
    regimes: dict[str, Sequence[xr.Dataset]],
) -> Verdict:
    """Judge whether one extractor's curves are smoother late than those of others, and refits not.

    Parameters
    ----------
    name
        The extractor that should be smoother.
    nodes, regimes
        Concepts of each seed, and regimes with residuals around the trend, by extractor.
    """
    rough = {key: each(members, _late_roughness) for key, members in regimes.items()}
    refit = {
        key: np.array([_refit_noise(node, "as returned") for node in members])
        for key, members in nodes.items()
    }
    others = [key for key in rough if key != name]
    apart = [_twice_as_rough(rough[key], rough[name]) for key in others]
    alone = [_twice_as_rough(refit[key], refit[name]) for key in others]
    holds = decided(all(apart), False in apart)
    same = holds and all(alone)
    return Verdict(
        f"{name}: late in training it is smoother than ICA and sparse PCA",
        holds,
        f"noise around the trend in the later half, relative to the norms: {_by(rough)}",
        f"refits at one checkpoint: {_by(refit)}"
        + (
            "; they differ alike, which is the solver's doing in any run"
            if same
            else ""
        )
        + "; a factor of two counts",
        alike=if_finite(all(alone), *refit.values()),
    )


def _twice_as_rough(here: np.ndarray, there: np.ndarray) -> bool | None:
    with np.errstate(divide="ignore", invalid="ignore"):
        return exceeds(np.log(here), np.log(there), _TWICE)


def _late_roughness(regimes: xr.Dataset) -> float:
    """Return the root mean square difference from neighbouring checkpoints in the later half."""
    late = regimes.residual.sel(step=regimes.step > regimes.step.values[-1] / 2)
    return float((late**2).mean() ** 0.5)


def _by(numbers: dict[str, np.ndarray]) -> str:
    return ", ".join(f"{key} {short(values)}" for key, values in numbers.items())
