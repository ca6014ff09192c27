"""What concepts of a single step are, where they are fitted to each step anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...capture.layer_readout import Readout
from ...concepts.joint.readout import CheckpointReadout
from ...observables import Reading, Run, by_layer
from ...quantities import Quantity
from ...words.controls import names_against_controls
from ...words.formats import joined, plural
from .describe.rows import orientation
from .described import near, only_of, tidied, vocabulary
from .describer import Describer, Texts, Untrained
from .joint_lives import SET_ASIDE
from .meaning.naming import chosen_names

SHOWN = 6  # names in one sentence

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


def named_words(data: xr.Dataset) -> list[str]:
    """Return how many concepts of a single checkpoint got a name, and which, layer by layer."""
    if "name" not in data:
        return []
    sentences = []
    total = _name_words(data, f"{plural(data.sizes['layer'], 'layer')}")
    for layer in data.layer.values:
        one = data.sel(layer=layer).isel(step=0)
        if because := str(one.unnamed_because.item()):
            sentences.append(f"No concept of {layer} can get a name: {because}.")
        else:
            sentences.append(_name_words(one, str(layer)))
    return (
        [total, *sentences]
        if len(sentences) > 1 and (data["name"] != "").any()
        else sentences
    )


def _name_words(data: xr.Dataset, where: str) -> str:
    """Return how many got a name, and the names that most concepts have."""
    names = Counter(map(str, data["name"].values.ravel()))
    del names[""]
    count = int(data.concentration.notnull().sum())
    listed = joined([f"“{name}”" for name, _ in names.most_common(SHOWN)])
    if not names:
        return f"None of the {count} concepts of {where} got a name."
    such = ": " if len(names) <= SHOWN else ", such as "
    return f"{names.total()} of {count} concepts of {where} got a name{such}{listed}."


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
    words = texts.words(written, describer.further_texts(reading))
    untrained = describer.untrained(run, untrained_codes, words)
    done = [str(path) for path in state.layer.values[state.status.values == "done"]]

    def one(path: str, codes: np.ndarray) -> Mapping[str, Any]:
        return {
            **texts.with_classes(
                texts.described(codes, untrained.by_layer.get(path), written),
                codes,
                words,
                untrained.alike.get(path),
                written,
            ),
            **texts.contexts(codes, "shared_"),
            **untrained.variables(path),
        }

    data = by_layer({path: state.codes.sel(layer=path).values for path in done}, one)
    status = data.status.reindex(layer=state.layer.values)
    described = data.drop_vars("status").reindex(layer=state.layer.values)
    failed = state.status.where(state.status != "done", status)
    state = state.assign(described.data_vars).assign(status=failed, piece_text=pieces)
    return state if words is None else state.assign(words.variables())


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


def named_sentences(data: xr.Dataset) -> list[str]:
    """Return one sentence a layer on how many of its concepts have a name."""
    return [*_sentences(data), *stand_in_sentence(data)] if "named" in data else []


def stand_in_sentence(data: xr.Dataset) -> list[str]:
    """Say what stands for the untrained model, where none of the kind can be made."""
    reasons = (
        data["stands_in_because"].values.ravel() if "stands_in_because" in data else ()
    )
    return [
        f"Names are judged beside this model with the values of each weight matrix in random "
        f"order, because {reason.rstrip('.')}."
        for reason in dict.fromkeys(filter(None, map(str, reasons)))
    ]


def _sentences(data: xr.Dataset) -> Iterator[str]:
    for layer in data.layer.values:
        one = data.sel(layer=layer)
        count = float(one.n_concepts)
        because = str(one.unnamed_because.item())
        if not count > 0:
            continue
        if because:
            yield f"No concept of {layer} can get a name: {because}."
            continue
        n_names = int(one.named)
        of = f"{n_names} of {count:.0f}" if n_names else f"None of the {count:.0f}"
        yield f"{of} concepts of {layer} got a name{_controls(one)}."


def _controls(one: xr.Dataset) -> str:
    """Return how many concepts got a name in control runs, in brackets."""
    if "named_control" not in one or "n_concepts_control" not in one:
        return ", and no control was run"
    counts = np.stack([one.named_control.values, one.n_concepts_control.values])
    pairs = counts[:, np.isfinite(counts).all(axis=0)].astype(int).T.tolist()
    listed = ", ".join(f"{n_names} of {count}" for n_names, count in pairs)
    if not pairs:
        return ", and no control run had concepts"
    means = names_against_controls(int(one.named), int(one.n_concepts), pairs)
    return f" (control runs: {listed}), {means}"
