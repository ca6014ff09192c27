"""The lives of learned concepts over all steps of a run, from its stacked cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...control_kinds import is_null
from .births import BORN, NONE, READABLE, START, STILL, Curves, Lives, lives
from .found import LEARNED

FEWEST = 3  # steps that lives can be read off
APART = "in the learned part alone"  # no birth is judged of it: it is unreadable by construction


def with_lives(data: xr.Dataset) -> xr.Dataset:
    """Return stacked cells with the lives of the components of each layer."""
    if "strength" not in data:
        return data
    read = data.token_share.notnull().transpose("layer", "step").values
    layers = np.flatnonzero(read.sum(axis=1) >= FEWEST)
    if not len(layers):
        return data
    pieces = [_of_layer(data.isel(layer=i), read[i]) for i in layers]
    stacked = xr.concat(pieces, dim=data.layer[layers], join="outer", data_vars="all")
    stacked = stacked.reindex(layer=data.layer.values)
    kinds = stacked.concept_kind
    return data.assign(
        {
            **stacked,
            "concept_kind": kinds.where(kinds.notnull(), "").astype(object),
            "least_readability": READABLE,
        }
    )


def _of_layer(one: xr.Dataset, there: np.ndarray) -> xr.Dataset:
    """Return the lives of one layer at the steps (T,) at which it is `there`."""
    concepts = one.again.notnull().values
    steps = one.step.values[there].astype(np.float64)
    readable, strength = (
        _fits(one, name)[:, there][:, :, concepts]
        for name in ("readability", "strength")
    )
    curves = Curves(readable, strength)
    fitted = np.searchsorted(steps, one.fit_step.values, side="right") - 1
    grown = None
    if "grown_readability" in one:
        grown = one.grown_readability.transpose("fit", "concept").values[:, concepts]
    life = lives(curves, fitted, grown)
    kind = np.where(one.found_in.values[concepts] == LEARNED, APART, life.kind).astype(
        object
    )
    born = kind == BORN
    indexes = {
        "concept_born": np.where(born, life.start, NONE),
        "concept_born_after": np.where(born, life.after, NONE),
        "concept_born_before": np.where(born, life.before, NONE),
        "concept_gone": life.gone,
    }
    values: dict[str, Any] = {
        name: ("concept", np.where(index >= 0, steps[np.maximum(index, 0)], np.nan))
        for name, index in indexes.items()
    }
    judged = kind != APART
    counts = life.births[:, judged].sum(axis=1)
    peak = np.maximum(curves.strength[0].max(axis=0), 1e-30)
    values |= {
        "concept_kind": ("concept", kind),
        "concept_born_share": ("concept", life.share),
        "concept_turned": ("concept", _turned(one, there, concepts, curves, life)),
        "n_born": float(born.sum()),
        "n_born_low": float(counts.min(initial=born.sum())),
        "n_born_high": float(counts.max(initial=born.sum())),
        "life": (("concept", "step"), (curves.strength[0] / peak).T),
    }
    coords = {
        "concept": one["concept"].values[concepts],
        "step": one.step.values[there],
    }
    return xr.Dataset(values, coords).reindex(
        concept=one["concept"].values, step=one.step.values
    )


def _fits(one: xr.Dataset, name: str) -> np.ndarray:
    """Return numbers (fit, step, concept) of the fit to all texts, then of its refits."""
    whole = one[name].transpose("step", "concept").values
    refits = one[f"refit_{name}"].transpose("refit", "step", "concept").values
    return np.nan_to_num(np.concatenate([whole[None], refits]).astype(np.float64))


def _turned(
    one: xr.Dataset,
    there: np.ndarray,
    concepts: np.ndarray,
    curves: Curves,
    life: Lives,
) -> np.ndarray:
    """Return the cosine (r,) of the decoders where a component is first there and at the end."""
    if "decoder" not in one:
        return np.full(int(concepts.sum()), np.nan)
    D = one.decoder.transpose("step", "concept", "feature").values[there][:, concepts]
    rows = np.arange(D.shape[1])
    first = D[np.maximum(life.start, 0), rows]
    last = D[-1, rows]
    length = np.linalg.norm(first, axis=1) * np.linalg.norm(last, axis=1)
    cosine = np.einsum(
        "cm,cm->c", np.nan_to_num(first), np.nan_to_num(last)
    ) / np.maximum(length, 1e-30)
    return np.where(life.start >= 0, cosine, np.nan)


def claims(node: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give what is claimed of each concept of a judged node, beside its control runs."""
    if "concept_kind" not in data:
        return
    if "run" in data.dims:
        data = data.isel(run=[is_null(str(run)) for run in data["run"].values])
    for layer in data.layer.values:
        one = data.sel(layer=layer)
        limits, beside = _controls(one)
        for j in np.flatnonzero(one.concept_kind.values != "").tolist():
            concept = one.isel(concept=j)
            about = float(concept["named_about"]) if "named_about" in concept else -1.0
            limit = limits.get(about, 0.0)
            yield from _of_concept(node, str(layer), concept, limit, beside)


def _controls(one: xr.Dataset) -> tuple[dict[float, float], list[Beside]]:
    """Return the best name of all control runs by what it is about, and how much each has learned.

    Sharpness does not tell them apart: of 24 births of a small GPT-2 one had a sharper code than
    all components of two walks and two turned runs.
    """
    if "n_learned_control" not in one:
        return {}, []
    limits: dict[float, float] = {}
    if "named_phi_control" in one:
        about, phi = (
            one[f"named_{n}_control"].values.ravel() for n in ("about", "phi")
        )
        for each in np.unique(about[np.isfinite(about)]).tolist():
            limits[each] = float(np.nanmax(phi[about == each]))
    own = float(one.n_learned)
    counts = zip(one.run.values, one.n_learned_control.values, strict=True)
    return limits, [
        Beside("control", str(run), float(count), own)
        for run, count in counts
        if np.isfinite(count)  # a layer that failed there
    ]


def _is_beyond(one: xr.Dataset, limit: float) -> bool:
    return "named_phi" in one and float(one["named_phi"]) > limit


def is_born_in_controls(one: xr.Dataset) -> bool:
    """Return whether one concept is born in a control run as well, by its codes."""
    if "control_match" not in one:
        return False
    same = one.control_match.values >= float(one.least_match)
    return bool((same & np.isfinite(one.control_match_born.values)).any())


def _of_concept(
    node: str, layer: str, one: xr.Dataset, limit: float, beside: list[Beside]
) -> Iterator[Claim]:
    kind = str(one.concept_kind.item())
    number = int(one["concept"])
    label = str(one["name"].item()) if "name" in one else ""
    subject = Subject(node, "strength", layer, label or f"concept {number}")
    certainty = Certainty.SURE
    reason = None
    if not beside:
        certainty = Certainty.NOT_TESTED
        reason = Reason.NO_CONTROLS
    elif not _is_beyond(one, limit) or (kind == BORN and is_born_in_controls(one)):
        certainty = Certainty.AS_CONTROLS
    common: dict[str, Any] = {
        "subject": subject,
        "certainty": certainty,
        "reason": reason,
        "first": float(one.life[0]),
        "last": float(one.life[-1]),
        "beside": beside,
        "evidence": (f"{node}/strength", f"{node}/readability"),
        "figure": f"{node}/lives",
    }
    if kind == BORN:
        yield Claim(
            Kind.BORN,
            since=float(one.concept_born),
            since_low=float(one.concept_born_after),
            since_high=float(one.concept_born_before),
            value=float(one.concept_born_share),
            **common,
        )
    if np.isfinite(one.concept_gone):
        yield Claim(Kind.FADED, since=float(one.concept_gone), **common)
    elif kind == START and np.isfinite(one.concept_turned):
        cosine = float(one.concept_turned)
        yield Claim(
            Kind.KEPT if cosine >= STILL else Kind.TURNED, value=cosine, **common
        )
