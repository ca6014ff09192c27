"""What concepts of a single step are, where they are fitted to each step anew."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...capture.vocabulary_map import Readout
from ...claims import Beside, Certainty, Claim, Reason, Subject, measurement
from ...concepts.joint.readout import CheckpointReadout
from ...control_kinds import is_null
from ...observables import Reading, Run, by_layer
from ...quantities import Quantity
from .describe.rows import orientation
from .described import near, only_of, tidied, vocabulary
from .describer import Describer, Texts, Untrained
from .joint_lives import SET_ASIDE
from .naming import chosen_names

KEPT_OF_STATE = (
    "piece_text",
    "concentration_untrained",
    "unnamed_because",
    "stands_in_because",
)

NAMED = Quantity(
    "named",
    "number of concepts with a name",
    "concepts",
    optional=True,
    minimum=0.0,
    caption="A name is given where a concept is sharper than 95 % of those of the untrained model "
    "in the same layer, and than permuted codes.",
)

Describe = Callable[[str, np.ndarray, np.ndarray], Mapping[str, Any]]


def with_untrained(
    state: xr.Dataset,
    run: Run,
    describer: Describer,
    codes: Callable[[torch.Tensor], np.ndarray],
) -> xr.Dataset:
    """Return a state with how sharp the concepts of the untrained model are.

    `codes` fits concepts to activations (n, m) and returns their codes (n, r). The state stays as
    it is where nothing is described.
    """
    if not describer.active:
        return state
    untrained = describer.untrained(run, codes)
    layers = [xr.Dataset(untrained.variables(str(path))) for path in state.layer.values]
    stacked = xr.concat(
        layers, dim=state.layer, join="outer", data_vars="all", coords="minimal"
    )
    return state.assign(stacked.data_vars).assign(piece_text=describer.pieces(run))


def describing(
    reading: Reading, state: xr.Dataset | None, describer: Describer
) -> Describe:
    """Return what describes the concepts of a layer from its path, codes (n, r) and dictionary.

    Concepts are turned to the side where they are strong, see `ontogeny.describe.orientation`.
    """
    if state is None or not describer.active:
        return lambda path, codes, dictionary: {}
    texts = describer.texts(reading)
    readouts = describer.readouts(reading)
    pieces = [str(piece) for piece in state["piece_text"].values]

    def describe(
        path: str, codes: np.ndarray, dictionary: np.ndarray
    ) -> Mapping[str, Any]:
        untrained = Untrained.stored(state.sel(layer=path), path)
        directions = (dictionary * orientation(codes)).T
        return {
            **texts.described(codes, untrained.by_layer.get(path), pieces),
            **texts.contexts(codes),
            **near(directions @ directions.T),
            **vocabulary(directions, readouts.get(path), texts.random_state),
        }

    return describe


def with_named(data: xr.Dataset) -> xr.Dataset:
    """Return a node with the number of concepts that have a name, (step, layer).

    NaN where none could get one; without it where that holds of all layers.
    """
    if "name" not in data:
        return data
    data = tidied(chosen_names(data))
    has_values = data["concentration"].notnull().any("concept") & (
        data["unnamed_because"] == ""
    )
    if not has_values.any():
        return data
    return data.assign(named=(data["name"] != "").sum("concept").where(has_values))


def claims_of_one_naming(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give how many concepts of a single checkpoint got a name, and which, layer by layer."""
    if "name" not in data:
        return
    for layer in data.layer.values:
        one = data.sel(layer=layer).isel(step=0)
        if because := str(one.unnamed_because.item()):
            yield _unnamed(name, str(layer), because)
            continue
        names = Counter(map(str, one["name"].values.ravel()))
        del names[""]
        yield measurement(
            Subject(name, "named", str(layer)),
            names.total(),
            whole=float(one.concentration.notnull().sum()),
            parts=[label for label, _ in names.most_common()],
        )


def _unnamed(name: str, layer: str, because: str) -> Claim:
    return measurement(
        Subject(name, "unnamed_because", layer, label=because),
        math.nan,
        certainty=Certainty.NOT_TESTED,
        reason=Reason.FAILED,
    )


SHARED: tuple[str, ...] = tuple(
    f"shared_context_{part}" for part in ("id", "code", "text", "place")
)


def with_descriptions(
    state: xr.Dataset,
    run: Run,
    reading: Reading,
    describer: Describer,
    untrained_codes: Callable[[torch.Tensor], np.ndarray],
) -> xr.Dataset:
    """Return the shared codes of all layers with what describes them.

    Parameters
    ----------
    state
        ``codes(layer, token, concept)`` and ``status(layer)``.
    run
        For the untrained model and the pieces of tokens.
    reading
        Any reading, for the texts.
    describer
        What is asked for; where that is nothing, the state is returned as it is.
    untrained_codes
        From activations (n, m) of the untrained model to codes (n, r) that are fitted to them.
    """
    if not describer.active:
        return state
    texts = describer.texts(reading)
    pieces = describer.pieces(run)
    written = pieces.values.tolist()
    untrained = describer.untrained(run, untrained_codes)
    done = [str(path) for path in state.layer.values[state.status.values == "done"]]

    def one(path: str, codes: np.ndarray) -> Mapping[str, Any]:
        described = texts.described(codes, untrained.by_layer.get(path), written)
        return {
            **texts.told_apart(described, codes, written),
            **texts.contexts(codes, "shared_"),
            **untrained.variables(path),
        }

    data = by_layer({path: state.codes.sel(layer=path).values for path in done}, one)
    status = data.status.reindex(layer=state.layer.values)
    described = data.drop_vars("status").reindex(layer=state.layer.values)
    failed = state.status.where(state.status != "done", status)
    return state.assign(described.data_vars).assign(status=failed, piece_text=pieces)


def described_at_step(
    there: CheckpointReadout, size: float, texts: Texts, readout: Readout | None
) -> dict[str, Any]:
    """Return what a standardised checkpoint alone says of the latents.

    Where they are strongest by a readout of this checkpoint, what their decoders write to the
    vocabulary, and which of them write alike. `size` is the checkpoint's standard deviation.
    """
    return {
        **texts.contexts(there.predicted),
        **near(there.presence.whitened[0]),
        **vocabulary(size * there.decoders, readout, texts.random_state),
    }


def with_names(data: xr.Dataset) -> xr.Dataset:
    """Return a node with the names of its concepts alone, and how many there are in each layer.

    NaN where no concept could get one.
    """
    if "name" not in data:
        return data
    data = tidied(chosen_names(data))
    if "concept_kind" not in data:
        return data
    data = only_of(data, ~data.concept_kind.isin(SET_ASIDE))
    n_names = (data["name"] != "").sum("concept")
    return data.assign(named=n_names.where(data["unnamed_because"] == ""))


def claims_of_names(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give how many concepts of each layer have a name, beside control runs."""
    if "named" not in data or "n_concepts" not in data:
        return
    for layer in data.layer.values:
        one = data.sel(layer=layer)
        if float(one.n_concepts) > 0:
            because = str(one.unnamed_because.item())
            yield (
                _unnamed(name, str(layer), because)
                if because
                else _named(name, str(layer), one)
            )
    for reason in dict.fromkeys(map(str, _stand_ins(data))):
        if reason:
            subject = Subject(name, "stands_in_because", label=reason.rstrip("."))
            yield measurement(subject, 1.0)


def _stand_ins(data: xr.Dataset) -> np.ndarray:
    """Return what stands for the untrained model, where none of the kind can be made."""
    no = np.zeros(0, dtype=object)
    return (
        data["stands_in_because"].values.ravel() if "stands_in_because" in data else no
    )


def _named(name: str, layer: str, one: xr.Dataset) -> Claim:
    """Return how many concepts of a layer got a name; sure is a larger share than in controls."""
    count = int(one.named)
    beside = list(_controls(one))
    most = max((control.value for control in beside), default=math.nan)
    shares = [control.value / control.own for control in beside if control.own]
    certainty = Certainty.SURE
    reason = None
    if not beside:
        certainty = Certainty.NOT_TESTED
        reason = Reason.NO_CONTROLS
    elif count <= most:
        certainty = Certainty.AS_CONTROLS
    elif count <= float(one.n_concepts) * max(shares, default=0.0):
        certainty = Certainty.OPEN
        reason = Reason.WITHIN_CHANCE
    return measurement(
        Subject(name, "named", layer),
        count,
        whole=float(one.n_concepts),
        beside=beside,
        certainty=certainty,
        reason=reason,
    )


def _controls(one: xr.Dataset) -> Iterator[Beside]:
    """Give how many concepts got a name in each control run, and of how many."""
    if "named_control" not in one or "n_concepts_control" not in one:
        return
    counts = zip(one.named_control.values, one.n_concepts_control.values, strict=True)
    runs = map(str, one.run.values)
    for run, (named, concepts) in zip(runs, counts, strict=True):
        if is_null(run) and np.isfinite([named, concepts]).all():
            yield Beside("control", run, float(named), float(concepts))
