"""What the concepts of a layer are: tokens, names and contexts, as a node holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...capture.vocabulary_map import Readout, written
from ...words.names import Names
from .describe.neighbours import neighbours_of_gram

EMPTY = -1  # an id where there is no token
NEIGHBOURS = 3
# Tokens on either side, that a concept writes; fewer of smaller vocabularies.
WRITTEN = 5

KEPT = (
    "name",
    "name_p",
    "name_beside",
    "concentration",
    "concentration_limit",
    "concentration_untrained",
    "unnamed_because",
    "stands_in_because",
    "token_id",
    "token_share",
    "firing",
    "enrichment",
    "fit_id",
    "code_sketch",
    "piece_text",
)
_WHOLE = ("_id", "_text", "_place")
_TEXTS = ("name", "name_beside", "unnamed_because", "stands_in_because", "fit_id")

_CONTEXTS: Names = {
    "{}_id": ("token ids of the contexts; -1 beyond the text", ""),
    "{}_code": ("codes in the contexts, of the largest code of the concept", "1"),
    "{}_text": ("text of the context", ""),
    "{}_place": ("place of the strongest token in its text", "tokens"),
}
DESCRIBED: Names = {
    "name": ("name: tokens that carry most of the squared code", ""),
    "name_beside": ("what tells a concept from others of the same name", ""),
    "name_p": (
        "p-value of the concentration against permuted codes, corrected (Holm)",
        "1",
    ),
    "concentration": (
        "share of the squared code on three tokens, on held-out texts",
        "1",
    ),
    "concentration_limit": (
        "95th percentile of the concentration in the untrained model",
        "1",
    ),
    "concentration_untrained": (
        "concentration of the latents of the untrained model",
        "1",
    ),
    "unnamed_because": ("why no concept of the layer can get a name", ""),
    "stands_in_because": (
        "why weights in random order stand for an untrained model",
        "",
    ),
    "token_id": ("ids of the tokens that carry most of the squared code", ""),
    "token_share": ("share of the squared code on a token", "1"),
    "firing": ("share of the tokens on which the concept fires", "1"),
    "enrichment": (
        "share of the code's variance that is explained, leave-one-out",
        "1",
    ),
    "code_sketch": (
        "sums of a code with random signs: the same concept has them too",
        "1",
    ),
    "sketch": ("number of the sum", ""),
    "fit_id": ("digest of the codes: which fit the concepts are of", ""),
    "written_up_id": ("ids of the tokens whose logits the concept raises most", ""),
    "written_up": ("logits that the concept raises most", "logits"),
    "written_down_id": ("ids of the tokens whose logits the concept lowers most", ""),
    "written_down": ("logits that the concept lowers most", "logits"),
    "written_random": (
        "95th percentile of the largest logit of random directions",
        "logits",
    ),
    "near": ("number of a concept that writes alike", "1"),
    "near_cosine": (
        "cosine with a concept that writes alike, where activations are white",
        "1",
    ),
    "piece_text": ("characters of a token", ""),
    "piece": ("token id", ""),
    "place": ("place before or after the strongest token", "tokens"),
    "position": ("what explains the code", ""),
    **{name.format("context"): words for name, words in _CONTEXTS.items()},
    **{name.format("shared_context"): words for name, words in _CONTEXTS.items()},
}


def near(gram: np.ndarray) -> dict[str, Any]:
    """Return the concepts that write alike, from inner products (r, r) of their directions."""
    return arrays(neighbours_of_gram(gram, NEIGHBOURS))


def vocabulary(
    directions: np.ndarray, readout: Readout | None, seed: int
) -> dict[str, Any]:
    """Return what directions (r, m) write to the vocabulary; nothing without a readout."""
    if readout is None:
        return {}
    count = min(WRITTEN, len(readout.unembedding))
    data = written(directions, readout, count, random_state=seed)
    # Of a smaller vocabulary as long as what stands beside it.
    none = {name: EMPTY if str(name).endswith("_id") else 0.0 for name in data}
    return arrays(data.pad(rank=(0, WRITTEN - count), constant_values=none))


def piece_array(pieces: list[str]) -> xr.DataArray:
    """Return pieces over their token ids."""
    texts = np.array(pieces, dtype=object)
    return xr.DataArray(texts, {"piece": np.arange(len(pieces))}, dims="piece")


def tidied(data: xr.Dataset) -> xr.Dataset:
    """Return a described node as it stands in the result.

    Gaps of layers and steps that failed are -1 or empty, not NaN, and of the pieces of the
    vocabulary those are kept that some id stands for.
    """
    replaced = {}
    for name, value in data.data_vars.items():
        if str(name) in _TEXTS:
            replaced[name] = value.where(value.notnull(), "").astype(object)
        elif (
            str(name).endswith(_WHOLE) and value.dtype.kind in "iuf"
        ) or name == "near":
            replaced[name] = value.fillna(EMPTY).astype(np.int32)
    data = data.assign(replaced)
    if "piece_text" not in data:
        return data
    whole = (
        v
        for n, v in data.data_vars.items()
        if str(n).endswith("_id") and v.dtype.kind == "i"
    )
    ids = [np.unique(value.values) for value in whole]
    used = np.unique(np.concatenate([*ids, np.zeros(0, dtype=int)]))
    text_of = dict(
        zip(
            data["piece"].values.tolist(),
            data["piece_text"].values.tolist(),
            strict=True,
        )
    )
    texts = [text_of.get(i, str(i)) for i in used.tolist() if i >= 0]
    dataset = data.drop_vars(["piece_text", "piece"])
    return dataset.assign(
        piece_text=piece_array(texts).assign_coords(piece=used[used >= 0])
    )


def only_of(data: xr.Dataset, concept: xr.DataArray) -> xr.Dataset:
    """Return a described node with contexts and names of `concept` (layer, concept) alone."""
    replaced = {}
    for name, value in data.data_vars.items():
        if str(name).startswith("context_"):
            replaced[name] = value.where(
                concept, 0 if str(name).endswith("_code") else EMPTY
            )
            replaced[name] = replaced[name].astype(value.dtype)
        elif name == "name":
            replaced[name] = value.where(concept, "").astype(object)
    return data.assign(
        {name: replaced[name].transpose(*data[name].dims) for name in replaced}
    )


def arrays(*parts: xr.Dataset) -> dict[str, Any]:
    """Return the variables of datasets, small: float32 and int32."""
    small = {"f": np.float32, "i": np.int32}
    found = {}
    for part in parts:
        for name, value in part.data_vars.items():
            dtype = small.get(value.dtype.kind, value.dtype)
            found[str(name)] = value.astype(dtype, copy=False)
    return found
