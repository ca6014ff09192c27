"""The lives of joint concepts, from the stacked cells of all steps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Certainty, Claim, Reason, Subject, measurement
from ...concepts.joint.lives import Lives, lives
from ...concepts.joint.presence import FOUND_AGAIN, Presence, birth_intervals, widened
from ...words.names import Names

DRAWS = 100  # resamples of the texts
SHOWN = 6  # newborn concepts that are drawn, of each layer
FEWEST = 3  # steps that lives can be read off

# Kind of a latent that can be read, and that a fit to half of the texts does not find.
APART = "not found again"

# Kinds of latents that make no sentence and get no name.
SET_ASIDE = ("", "no concept", APART)

COUNTS = {
    "n_concepts": "concepts",
    "n_born": "concepts born during the run",
    "n_gone": "concepts gone by the end",
    "n_steady": "concepts that are there at every {checkpoint}",
    "n_found_again": "concepts that a fit from another seed finds again",
    "n_apart": "readable latents that half of the texts does not find",
}
STEPS = {
    "concept_born": "{checkpoint} of the birth",
    "concept_born_after": "last {checkpoint} that is surely before the birth",
    "concept_born_before": "first {checkpoint} that is surely not before the birth",
    "concept_gone": "{checkpoint} from which on a concept is gone",
    "concept_settled": "{checkpoint} from which on its strength stays near its last value",
}
VARIABLES: Names = {
    "concept_kind": ("kind of life", ""),
    "concept_grown_out_of": ("older concept with the same decoders; -1 if none", "1"),
    "concept_inside": ("older concept inside of which it was born; -1 if none", "1"),
    **{name: (title, "{step}s") for name, title in STEPS.items()},
    **{name: (title, "concepts") for name, title in COUNTS.items()},
    "own_share": ("share of the strength that no older concept has", "1"),
    "line": ("concepts, the oldest first", ""),
    "line_concept": ("number of the concept", "1"),
    "life": ("strength as a share of its peak", "1"),
    "mean_life": ("mean strength of the concepts, each as a share of its peak", "1"),
    "newborn_strength": ("strength of concepts born during the run", "1"),
    "newborn": ("concepts born during the run", ""),
    "newborn_concept": ("number of the newborn concept", "1"),
}


def lives_of_layers(data: xr.Dataset, readable: float, seed: int) -> xr.Dataset:
    """Return the stacked cells with the lives of the concepts of each layer.

    Steps at which a layer failed are left out of it. Layers with fewer than three steps get no
    lives; where all are like that, nothing is added.
    """
    if "strength" not in data or data.sizes["step"] < FEWEST:
        return data
    layers: dict[Any, xr.Dataset] = {}
    for layer in data.layer.values:
        one = data.sel(layer=layer, drop=True)
        is_complete = one.strength.notnull().all("concept").values
        if is_complete.sum() >= FEWEST:
            layers[layer] = _of_layer(
                one.isel(step=np.flatnonzero(is_complete)), readable, seed
            )
    if not layers:
        return data
    names = xr.DataArray(list(layers), dims="layer", name="layer")
    stacked = xr.concat(layers.values(), dim=names, join="outer", data_vars="all")
    stacked = stacked.reindex(layer=data.layer.values, step=data.step.values)
    kinds = stacked.concept_kind
    stacked["concept_kind"] = kinds.where(kinds.notnull(), "").astype(object)
    # The largest; the intervals of births can be computed again without it.
    return data.drop_vars("whitened").assign(stacked.data_vars)


def _of_layer(one: xr.Dataset, readable: float, seed: int) -> xr.Dataset:
    """Return the lives of one layer whose steps are all known."""
    strength, there = (
        one[name].transpose("step", "concept").values
        for name in ("strength", "readability")
    )
    whitened = one.whitened.transpose("step", "concept", "other").values
    life = lives(strength, there, whitened, readable)
    presence = Presence(
        decoders=np.zeros((len(strength), 0)),
        strength=strength,
        floor=np.zeros_like(strength),
        readable=there,
        explained=one.explained.values,
        whitened=whitened,
        influence=one.influence.transpose("step", "block", "concept").values,
        spread=one.spread.transpose("step", "concept").values,
    )
    births = birth_intervals(presence, life, DRAWS, np.random.default_rng([seed, 3]))
    if "half_strength" in one and bool(one.half_strength.notnull().all()):
        for by_half in one.half_strength.transpose(
            "text_half", "step", "concept"
        ).values:
            births = widened(births, life.born, by_half, one.half.values)
    certain = np.ones(len(life.kind), dtype=bool)
    if "replicates" in one:
        certain = one.replicates.values > 0
    is_shown = life.is_concept & certain
    steps = one.step.values.astype(np.float64)
    again = one.found_again.values
    values = {
        "concept_kind": (
            "concept",
            np.where(life.is_concept & ~certain, APART, life.kind).astype(object),
        ),
        "concept_grown_out_of": ("concept", life.grown_out_of.astype(np.float64)),
        "concept_inside": ("concept", life.inside.astype(np.float64)),
        "own_share": (("step", "concept"), life.own_share),
    }
    indexes = (life.born, births.after, births.before, life.gone, life.settled)
    for name, index in zip(STEPS, indexes, strict=True):
        has_index = is_shown & (index >= 0)
        values[name] = (
            "concept",
            np.where(has_index, steps[np.maximum(index, 0)], np.nan),
        )
    made = xr.Dataset(
        {
            **values,
            **_counts(life, again, is_shown),
            **_curves(life, strength, is_shown),
        },
        coords={"step": one.step.values},
    )
    # Numbered, so that layers with more or fewer of them can be stacked.
    numbered = [dim for dim in ("line", "newborn") if dim in made.dims]
    return made.assign_coords({dim: np.arange(made.sizes[dim]) for dim in numbered})


def _counts(life: Lives, again: np.ndarray, is_shown: np.ndarray) -> dict[str, Any]:
    numbers = (
        is_shown.sum(),
        (is_shown & (life.born >= 0)).sum(),
        (is_shown & (life.gone >= 0)).sum(),
        (is_shown & life.steady).sum(),
        (is_shown & (again >= FOUND_AGAIN)).sum(),
        (life.is_concept & ~is_shown).sum(),
    )
    return {name: ((), float(n)) for name, n in zip(COUNTS, numbers, strict=True)}


def _curves(life: Lives, strength: np.ndarray, is_shown: np.ndarray) -> dict[str, Any]:
    """Return what the figures draw: lines of all concepts, and the strongest newborn ones."""
    peak = np.maximum(strength.max(axis=0), 1e-30)
    concept = np.flatnonzero(is_shown)
    order = concept[np.lexsort((-peak[concept], life.start[concept]))]
    values: dict[str, Any] = {
        "life": (("line", "step"), (strength / peak)[:, order].T),
        "mean_life": ("step", _mean_share(strength / peak, is_shown)),
        "line_concept": ("line", order.astype(np.float64)),
    }
    born = np.flatnonzero(is_shown & (life.born >= 0))
    strongest = np.sort(born[np.argsort(-peak[born], kind="stable")][:SHOWN])
    if len(strongest):
        values["newborn_strength"] = (("newborn", "step"), strength[:, strongest].T)
        values["newborn_concept"] = ("newborn", strongest.astype(np.float64))
    return values


def _mean_share(shares: np.ndarray, concept: np.ndarray) -> np.ndarray:
    """Return the mean of the concepts' shares (T, r) at each step, NaN where there is none."""
    return (
        shares[:, concept].mean(axis=1)
        if concept.any()
        else np.full(len(shares), np.nan)
    )


def claims_of_lives(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give for each layer how many concepts it has, with births only where there are any."""
    if "n_concepts" not in data:
        if "strength" in data and data.sizes["step"] < FEWEST:
            yield measurement(
                Subject(name, "n_concepts"),
                math.nan,
                certainty=Certainty.NOT_TESTED,
                reason=Reason.FEW_CHECKPOINTS,
                needed=FEWEST,
                evidence=(f"{name}/strength",),
            )
        return
    for layer in data.layer.values:
        yield from _of_one_layer(name, str(layer), data.sel(layer=layer))


def _of_one_layer(name: str, layer: str, one: xr.Dataset) -> Iterator[Claim]:
    counts = {count: max(float(one[count]), 0.0) for count in COUNTS}
    every = counts["n_concepts"]
    whole = {"n_concepts": float(one.sizes["concept"])}
    for count in ("n_concepts", "n_apart", "n_steady", "n_born", "n_gone"):
        is_told = count == "n_concepts" or (every and counts[count])
        if count == "n_apart":
            is_told = counts[count] > 0
        if is_told:
            dates: dict[str, Any] = _dates(one) if count == "n_born" else {}
            subject = Subject(name, count, layer)
            of = whole.get(count, every)
            yield measurement(subject, counts[count], whole=of, **dates)


def _dates(one: xr.Dataset) -> dict[str, float]:
    """Return the median birth of a layer, and between which steps all surely are."""
    born = one.concept_born.to_series().dropna()
    after, before = (
        one[name].to_series().dropna()
        for name in ("concept_born_after", "concept_born_before")
    )
    ends = {
        "since": born.median(),
        "since_low": after.min(),
        "since_high": before.max(),
    }
    return {name: float(end) for name, end in ends.items()}
