"""Figures 6 and 7 of the report: concepts beside the decay of the activations they come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.features.activations.decay import ActivationDecay
from ontogeny.observables import Observable

from ...observables.curves.regimes import Regimes
from ...observables.curves.signals import Signals
from ..formats import joined, short
from ..verdicts import Found, Verdict, decided, each, exceeds, if_finite, more_often
from .agreement import agreement, in_common, of_other_seeds
from .concept_recipe import ConceptRecipe, sizes
from .extractors import AS_RETURNED, EVEN, concepts, noise_of, only_runs

SIGNALS = {
    "ica": "ICA",
    "sparse-pca": "sparse PCA",
    "dictionary": "dictionary learning",
}
"""Extractors of Figures 6, 7 and 16."""
_DECAY = "activation-decay"


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(x, y)[0, 1])


# ---- Figure 6 -----------------------------------------------------------------------------------


def overlay(results: Found) -> Sequence[Verdict]:
    """Judge whether concepts follow activations, in their trends and beyond them."""
    one = only_runs(results)
    signals = {title: one[f"concepts-{key}-signals"] for key, title in SIGNALS.items()}
    return [
        _trends(signals),
        *(_beyond(title, nodes) for title, nodes in signals.items()),
    ]


def _trends(signals: dict[str, Sequence[xr.Dataset]]) -> Verdict:
    correlation = {}
    other = []
    for title, nodes in signals.items():
        rolling = [node.rolling_standardised for node in nodes]
        curves, decays = (
            [x.isel(signal=i, drop=True) for x in rolling] for i in (0, 1)
        )
        correlation[title] = agreement(curves, decays, _pearson)
        other.append(of_other_seeds(curves, decays, _pearson))
    holds, alike, beside = in_common(
        np.column_stack(list(correlation.values())), np.concatenate(other)
    )
    return Verdict(
        "the rolling means of concept distances and activation decay correlate, mean |r| above 0.8",
        holds,
        ", ".join(f"{title} {short(values)}" for title, values in correlation.items()),
        f"{beside}; any two decays have a high one",
        alike=alike,
    )


def _beyond(title: str, nodes: Sequence[xr.Dataset]) -> Verdict:
    r = each(nodes, lambda node: node.joint_pearson)
    p = each(nodes, lambda node: node.joint_p)
    tested = np.isfinite(p).all()
    return Verdict(
        f"{title}: concepts depend on activations beyond the trends of both",
        True if tested and (p <= 0.05).all() and (r > 0).all() else None,
        f"around the trends, all layers, r = {joined(r)} (p = {joined(p, 3)})"
        if tested
        else "no noise around both trends to compare, or jumps in common not ruled out, in "
        f"{int((~np.isfinite(p)).sum())} of {len(p)} seeds",
        "surrogates that keep trend and noise of one curve; whether a run that learned nothing "
        "shows the same is not known, as its concepts follow its activations too",
        reason=Reason.WITHIN_CHANCE if tested else Reason.NOISE_UNKNOWN,
    )


# ---- Figure 7 -----------------------------------------------------------------------------------


def layers(results: Found) -> Sequence[Verdict]:
    """Judge irregular layers: where they are, and whether concepts and activations share them."""
    one = only_runs(results)
    activations = one[f"{_DECAY}-regimes"]
    rough = {key: one[f"concepts-{key}-regimes"] for key in SIGNALS}
    return [
        _same_layer(rough["ica"], activations),
        _separates(rough, one["concepts-ica"]),
        _warped(one["concepts-ica-signals"]),
    ]


def roughness(regimes: xr.Dataset) -> np.ndarray:
    """Return the root mean square difference of each layer's curve from its neighbours, (layer,).

    Relative to the range of the curve, so that layers can be compared.
    """
    curve = regimes.curve.where(regimes.residual.notnull())
    size = (regimes.residual**2).mean("step") ** 0.5
    return np.asarray((size / (curve.max("step") - curve.min("step"))).values)


def _same_layer(
    concepts: Sequence[xr.Dataset], activations: Sequence[xr.Dataset]
) -> Verdict:
    table = [[roughness(node) for node in nodes] for nodes in (concepts, activations)]
    known = np.isfinite(np.array(table)).all(axis=(0, 2))
    if not known.all():
        unknown = (
            f"the noise of a layer is unknown in {(~known).sum()} of {known.size} seeds"
        )
        return Verdict(_SAME, None, unknown, "no null", reason=Reason.NOISE_UNKNOWN)
    places = np.array(table).argmax(axis=2)
    count = int((places[0] == places[1]).sum())
    trials = places.shape[1]
    chance = 1 / len(table[0][0])
    more, p = more_often(count, trials, chance)
    return Verdict(
        _SAME,
        decided(more, more_often(trials - count, trials, 0.5)[0]),
        f"the layer with the most noise is the same in {count} of {trials} seeds (of concepts "
        f"{_places(places[0])}, of activations {_places(places[1])}; the first layer is 0)",
        f"by chance in a share of {chance:.2g} (as many or more p = {p:.2g}); refuted where half of "
        "the seeds can be ruled out",
        reason=Reason.WITHIN_CHANCE,
    )


_SAME = "layers whose activations are irregular have irregular ICA concepts"


def _places(places: np.ndarray) -> str:
    return ", ".join(str(place) for place in places)


def _separates(
    rough: dict[str, Sequence[xr.Dataset]], nodes: Sequence[xr.Dataset]
) -> Verdict:
    spread = {SIGNALS[key]: each(runs, _over_layers) for key, runs in rough.items()}
    ica, *others = spread.values()
    apart = [exceeds(np.log(ica), np.log(other), np.log(1.5)) for other in others]
    refit = each(nodes, _refits_over_layers)
    alone = exceeds(np.log(refit), np.log(np.max(others, axis=0)), np.log(1.5))
    holds = decided(all(apart), False in apart)
    return Verdict(
        "ICA separates regular from irregular layers more clearly than the others",
        holds,
        "noise of the roughest over that of the smoothest layer: "
        + ", ".join(f"{title} {short(values)}" for title, values in spread.items()),
        f"refits of ICA at one checkpoint {short(refit)}; one and a half times counts",
        alike=if_finite(bool(alone), refit),
    )


def _over_layers(regimes: xr.Dataset) -> float:
    values = roughness(regimes)
    return float(values.max() / values.min()) if values.min() > 0 else float("nan")


def _refits_over_layers(node: xr.Dataset) -> float:
    error = node.relative_distance_stderr.sel(AS_RETURNED)
    return float(error.max() / error.min()) if float(error.min()) > 0 else float("nan")


def _warped(nodes: Sequence[xr.Dataset]) -> Verdict:
    """Judge DTW and mutual information beside what the trends alone give, half by chance.

    Of a layer whose noise is unknown there are no surrogates, and it is left out.
    """
    layers = xr.concat([node[_WARPED] for node in nodes], "seed").stack(
        one=("seed", "layer")
    )
    tested = layers.dropna("one")
    count, trials = layers.sizes["one"], tested.sizes["one"]
    if not trials:
        unknown = f"no surrogates of any of {count} layers"
        return Verdict(_TIED, None, unknown, "no null", reason=Reason.NOISE_UNKNOWN)
    nearer = tested.dtw < tested.dtw_surrogates
    more = tested.mutual_information > tested.mutual_information_surrogates
    counts = [int(is_tied.sum()) for is_tied in (nearer, more)]
    tests = [more_often(tied, trials, 0.5) for tied in counts]
    fewer = [more_often(trials - tied, trials, 0.5)[0] for tied in counts]
    means = [f"{float(tested[name].mean()):.2g}" for name in _WARPED]
    return Verdict(
        _TIED,
        decided(all(often for often, _ in tests), all(fewer)),
        f"warping distance {means[0]}, below its surrogates in {counts[0]} of {trials} layers that "
        f"have some (of {count}); mutual information {means[2]} nats, above them in {counts[1]}",
        f"trends alone {means[1]} and {means[3]} nats; half of the layers by chance (p = "
        f"{tests[0][1]:.2g} and {tests[1][1]:.2g}, taking layers as independent)",
        reason=Reason.WITHIN_CHANCE,
    )


_TIED = "dynamic time warping and mutual information tie concepts to activations layer by layer"
_WARPED = [
    "dtw",
    "dtw_surrogates",
    "mutual_information",
    "mutual_information_surrogates",
]


# ---- recipes ------------------------------------------------------------------------------------


def _observables(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    fits = [concepts(key, n_concepts, max_tokens) for key in SIGNALS]
    return (
        *fits,
        ActivationDecay(max_tokens=max_tokens),
        *(
            Signals(
                fit.name,
                "distance_to_reference",
                select=AS_RETURNED,
                against=_DECAY,
                against_variable="distance",
            )
            for fit in fits
        ),
    )


def _of_layers(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    noise = [noise_of(f"concepts-{key}") for key in SIGNALS]
    return (
        *_observables(n_concepts, max_tokens),
        *noise,
        Regimes(_DECAY, "relative", first=EVEN),
    )


RECIPES = (
    ConceptRecipe(
        "concepts-figure-6",
        "Concepts beside the activations that they come from",
        "the distances of ICA, sparse PCA and dictionary learning concepts to the last checkpoint "
        "follow those of the activations, with |r| above 0.8 between the rolling trends.",
        "Bernas 2025, sec. 5.4, Fig. 6",
        *sizes(_observables),
        "fluctuations that are weak beside the trends, with 31 checkpoints.",
        judge=overlay,
    ),
    ConceptRecipe(
        "concepts-figure-7",
        "Regular and irregular layers",
        "layers whose activations do not settle have irregular concepts as well, which ICA shows "
        "most clearly; in the others concepts depend on activations nearly linearly.",
        "Bernas 2025, sec. 5.4, Fig. 7",
        *sizes(_of_layers),
        "which layers are irregular: there are three layers and two seeds.",
        judge=layers,
    ),
)
