"""What the concepts of a layer are: names, tokens and contexts, for any codes of tokens.

`ontogeny.concepts.describe` has the functions on arrays; here they meet a study: its texts, its
tokenizer, its untrained model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...capture import Readout, written
from ...concepts.describe import (
    concentration,
    contexts,
    enrichment,
    names,
    neighbours,
    strongest_tokens,
)
from ...errors import ArgumentError, CheckpointError
from ...inputs import Inputs
from ...inputs.sampling import TokenSample
from ...needs import Activations, InputSet, Need, Readouts
from ...summary import Names
from ..base import Run

EMPTY = -1  # an id where there is no token
NEIGHBOURS = 3
NO_STEP_0 = "there is no untrained model to compare with"

KEPT = (
    "name",
    "name_p",
    "concentration",
    "concentration_limit",
    "concentration_untrained",
    "unnamed_because",
    "token_id",
    "token_share",
    "firing",
    "enrichment",
    "fit_id",
    "piece_text",
)
_WHOLE = ("_id", "_text", "_place")
_TEXTS = ("name", "unnamed_because", "fit_id")

_CONTEXTS: Names = {
    "{}_id": ("token ids of the contexts; -1 beyond the text", ""),
    "{}_code": ("codes in the contexts, of the largest code of the concept", "1"),
    "{}_text": ("text of the context", ""),
    "{}_place": ("place of the strongest token in its text", "tokens"),
}
DESCRIBED: Names = {
    "name": ("name: tokens that carry most of the squared code; empty where not named", ""),
    "name_p": ("p-value of the concentration against permuted codes, corrected (Holm)", "1"),
    "concentration": ("share of the squared code on three tokens, on held-out texts", "1"),
    "concentration_limit": ("95th percentile of the concentration in the untrained model", "1"),
    "concentration_untrained": ("concentration of the latents of the untrained model", "1"),
    "unnamed_because": ("why no concept of the layer can get a name", ""),
    "token_id": ("ids of the tokens that carry most of the squared code", ""),
    "token_share": ("share of the squared code on a token", "1"),
    "firing": ("share of the tokens on which the concept fires", "1"),
    "enrichment": ("share of the code's variance that is explained, leave-one-out", "1"),
    "fit_id": ("digest of the codes: which fit the concepts are of", ""),
    "written_up_id": ("ids of the tokens whose logits the concept raises most", ""),
    "written_up": ("logits that the concept raises most", "logits"),
    "written_down_id": ("ids of the tokens whose logits the concept lowers most", ""),
    "written_down": ("logits that the concept lowers most", "logits"),
    "written_random": ("95th percentile of the largest logit of random directions", "logits"),
    "near": ("number of a concept that writes alike", "1"),
    "near_cosine": ("cosine with a concept that writes alike, where activations are white", "1"),
    "piece_text": ("characters of a token", ""),
    "piece": ("token id", ""),
    "place": ("place before or after the strongest token", "tokens"),
    "position": ("what explains the code", ""),
    **{name.format("context"): words for name, words in _CONTEXTS.items()},
    **{name.format("shared_context"): words for name, words in _CONTEXTS.items()},
}


@dataclass(frozen=True)
class Describer:
    """Describes codes of the tokens that a need reads.

    Parameters
    ----------
    need
        The activations whose tokens have codes.
    examples
        Contexts of each concept; 0 describes nothing.
    """

    need: Activations
    examples: int

    @property
    def active(self) -> bool:
        """Whether concepts are described; means of whole texts have no tokens."""
        return self.examples > 0 and self.need.tokens != "mean"

    def needs(self) -> list[Need]:
        """Return what is read beside the activations."""
        own = [InputSet(self.need.on), Readouts(self.need.layers, self.need.on)]
        return own if self.active else []

    def texts(self, reading: Any) -> Texts:
        """Return the texts of a reading, with the tokens that have codes."""
        inputs, need = reading[InputSet(self.need.on)], self.need
        sample = inputs.sample(need.tokens, need.max_tokens, need.random_state)
        return Texts(inputs, sample, self.examples, need.random_state)

    def readouts(self, reading: Any) -> Mapping[str, Readout]:
        """Return the maps of the layers to the vocabulary; none where nothing is described."""
        if not self.active:
            return {}
        found: Mapping[str, Readout] = reading[Readouts(self.need.layers, self.need.on)]
        return found

    def untrained(self, run: Run, codes: Callable[[torch.Tensor], np.ndarray]) -> Untrained:
        """Return how sharp the latents of the untrained model are, layer by layer.

        `codes` fits latents to activations (n, m) and returns their codes (n, r).
        """
        try:
            reading = run.untrained()
            values, texts = reading[self.need], self.texts(reading)
        except (ArgumentError, CheckpointError) as error:
            return Untrained({}, {}, f"{NO_STEP_0}: {error}".split("\n")[0].rstrip("."))
        found, failed = {}, {}
        for path, A in values.items():
            try:
                found[path] = texts.concentration(codes(A))
            except (ValueError, ArithmeticError, RuntimeError) as error:
                failed[path] = f"{NO_STEP_0}: {error}".split("\n")[0].rstrip(".")
        return Untrained(found, failed, NO_STEP_0)

    def pieces(self, run: Run) -> xr.DataArray:
        """Return how every token of the vocabulary is written."""
        return piece_array(run.pieces(self.need))


@dataclass(frozen=True)
class Untrained:
    """Concentrations of the untrained model's latents by layer, or why there are none."""

    by_layer: Mapping[str, np.ndarray]
    failed: Mapping[str, str]
    reason: str

    @classmethod
    def stored(cls, layer: xr.Dataset, path: str) -> Untrained:
        """Return those of one layer of a state."""
        if "concentration_untrained" not in layer:
            return cls({}, {}, str(layer["unnamed_because"].item()))
        values = layer["concentration_untrained"].values
        known = {path: values[np.isfinite(values)]} if np.isfinite(values).any() else {}
        return cls(known, {}, str(layer["unnamed_because"].item()))

    def of(self, path: str) -> np.ndarray | None:
        """Return the concentrations in a layer, None where there are none."""
        return self.by_layer.get(path)

    def because(self, path: str) -> str:
        """Return why concepts of a layer can get no name; empty where they can."""
        return "" if path in self.by_layer else self.failed.get(path, self.reason)

    def variables(self, path: str) -> dict[str, Any]:
        """Return what a state keeps of a layer."""
        found: dict[str, Any] = {"unnamed_because": ((), np.array(self.because(path), dtype=object))}
        if path in self.by_layer:
            values = self.by_layer[path]
            coords = {"untrained": np.arange(len(values))}
            found["concentration_untrained"] = xr.DataArray(values, coords, dims="untrained")
        return found


@dataclass(frozen=True)
class Texts:
    """The texts that codes are of, and what describes codes on them."""

    inputs: Inputs
    sample: TokenSample
    examples: int
    random_state: int

    def concentration(self, codes: np.ndarray) -> np.ndarray:
        """Return the share (r,) of the squared code on three tokens, on held-out texts."""
        return np.asarray(concentration(codes, self.inputs, self.sample, self.random_state))

    def described(
        self, codes: np.ndarray, untrained: np.ndarray | None, pieces: list[str]
    ) -> dict[str, Any]:
        """Return tokens, names and the like of the concepts with codes (n, r)."""
        parts = [
            strongest_tokens(codes, self.inputs, self.sample),
            enrichment(codes, self.inputs, self.sample),
        ]
        found = _arrays(*parts)
        if "firing" not in found:
            found["firing"] = ("concept", (codes != 0).mean(axis=0))
        return {**found, **self._names(codes, untrained, pieces), "fit_id": fit_id(codes)}

    def contexts(self, codes: np.ndarray, prefix: str = "") -> dict[str, Any]:
        """Return where codes are strongest, under names with a prefix."""
        found = contexts(codes, self.inputs, self.sample, examples=self.examples)
        return {f"{prefix}{name}": value for name, value in _arrays(found).items()}

    def _names(
        self, codes: np.ndarray, untrained: np.ndarray | None, pieces: list[str]
    ) -> dict[str, Any]:
        if untrained is None:
            none = np.full(codes.shape[1], "", dtype=object)
            own = self.concentration(codes).astype(np.float32)
            return {"name": ("concept", none), "concentration": ("concept", own)}
        found = names(
            codes,
            self.inputs,
            self.sample,
            untrained=untrained,
            pieces=pieces,
            random_state=self.random_state,
        )
        return _arrays(found)


def fit_id(codes: np.ndarray) -> tuple[tuple[()], np.ndarray]:
    """Return the digest of codes: labels by a person hold for the same fit only."""
    digest = hashlib.blake2b(np.ascontiguousarray(codes).tobytes(), digest_size=8).hexdigest()
    return (), np.array(digest, dtype=object)


def near(gram: np.ndarray) -> dict[str, Any]:
    """Return the concepts that write alike, from inner products (r, r) of their directions."""
    values, vectors = np.linalg.eigh(gram.astype(np.float64))
    rows = vectors * np.sqrt(np.maximum(values, 0))  # directions with these inner products
    return _arrays(neighbours(rows, min(NEIGHBOURS, len(gram) - 1))) if len(gram) > 1 else {}


def vocabulary(directions: np.ndarray, readout: Readout | None, seed: int) -> dict[str, Any]:
    """Return what directions (r, m) write to the vocabulary; nothing without a readout."""
    if readout is None:
        return {}
    return _arrays(written(directions, readout, random_state=seed))


def piece_array(pieces: list[str]) -> xr.DataArray:
    """Return pieces over their token ids."""
    texts = np.array(pieces, dtype=object)
    return xr.DataArray(texts, {"piece": np.arange(len(pieces))}, dims="piece")


def tidied(data: xr.Dataset) -> xr.Dataset:
    """Return a described node as it stands in the result.

    Gaps of layers and steps that failed are -1 or empty, not NaN, and of the pieces of the
    vocabulary those are kept that some id stands for.
    """
    found = {}
    for name, value in data.data_vars.items():
        if str(name) in _TEXTS:
            found[name] = value.where(value.notnull(), "").astype(object)
        elif str(name).endswith(_WHOLE) and value.dtype.kind in "iuf" or name == "near":
            found[name] = value.fillna(EMPTY).astype(np.int32)
    data = data.assign(found)
    if "piece_text" not in data:
        return data
    ids = [np.unique(v.values) for n, v in data.data_vars.items() if str(n).endswith("_id")
           and v.dtype.kind == "i"]  # fmt: skip
    used = np.unique(np.concatenate([*ids, np.zeros(0, dtype=int)]))
    known = dict(zip(data["piece"].values.tolist(), data["piece_text"].values.tolist(), strict=True))
    texts = [known.get(i, str(i)) for i in used.tolist() if i >= 0]
    kept = data.drop_vars(["piece_text", "piece"])
    return kept.assign(piece_text=piece_array(texts).assign_coords(piece=used[used >= 0]))


def only_of(data: xr.Dataset, concept: xr.DataArray) -> xr.Dataset:
    """Return a described node with contexts and names of `concept` (layer, concept) alone."""
    found = {}
    for name, value in data.data_vars.items():
        if str(name).startswith("context_"):
            found[name] = value.where(concept, 0 if str(name).endswith("_code") else EMPTY)
            found[name] = found[name].astype(value.dtype)
        elif name == "name":
            found[name] = value.where(concept, "").astype(object)
    return data.assign({name: found[name].transpose(*data[name].dims) for name in found})


def _arrays(*parts: xr.Dataset) -> dict[str, Any]:
    """Return the variables of datasets, small: float32 and int32."""
    small = {"f": np.float32, "i": np.int32}
    return {
        str(name): value.astype(small[value.dtype.kind]) if value.dtype.kind in small else value
        for part in parts
        for name, value in part.data_vars.items()
    }
