"""Whether attention heads copy: eigenvalues of what a head makes of the token that it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError
from ..needs import Need, Source
from .families import Family, family_of
from .forward import check_weights_there
from .layer_readout import readouts
from .layers import match_layers
from .norms import norm_part
from .readout_path import path_to_vocabulary
from .sites import part_index, split_label


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """What the heads of one layer do to the tokens that they look at, without biases.

    Parameters
    ----------
    value
        (heads, m, d): from the stream of m features to the head's d values, the norm before
        attention included.
    output
        (heads, d, m): from there to what the vocabulary map is given, the norms behind included.
    """

    value: Tensor
    output: Tensor


def copying_score(token_map: Any, value: Any, output: Any) -> np.ndarray:
    """Return how much attention heads copy the tokens that they look at, between -1 and 1.

    Parameters
    ----------
    token_map
        (m, m) = W_Uᵀ W_E, of the vocabulary map (V, m) and the token embedding (V, m).
    value
        (heads, m, d), from the stream to a head's values: rows are multiplied from the left.
    output
        (heads, d, m), from a head's values to the stream.

    Returns
    -------
    numpy.ndarray
        (heads,) ``Σ λ / Σ |λ|`` over the eigenvalues λ of the map from tokens to logits,
        W_E W_V W_O W_Uᵀ (V, V). It is 1 where attention to a token raises that token's own logit
        in every direction, and 0 by chance. A head whose map is 0 has 0.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite.

    Notes
    -----
    N. Elhage et al., *A mathematical framework for transformer circuits*, 2021, "Summarizing OV/QK
    matrices". The eigenvalues other than 0 are those of W_O W_Uᵀ W_E W_V (d, d).

    Examples
    --------
    >>> one = torch.eye(3)[None]
    >>> copying_score(torch.eye(3), one, one), copying_score(torch.eye(3), one, -one)
    (array([1.]), array([-1.]))
    """
    inner = (
        torch.as_tensor(output) @ torch.as_tensor(token_map) @ torch.as_tensor(value)
    )
    small = inner.cpu().double().numpy()
    if not np.isfinite(small).all():  # LAPACK would hang or crash on them
        raise NonFiniteError(
            "copying scores are not finite: a weight holds NaN or infinity."
        )
    eigenvalues = np.linalg.eigvals(small)
    size = np.abs(eigenvalues).sum(axis=-1)
    return np.divide(
        eigenvalues.real.sum(axis=-1), size, out=np.zeros_like(size), where=size > 0
    )


@dataclass(frozen=True)
class CopyingScores(Need):
    """Copying scores of all heads: ``{attention site: (1 + draws, heads)}``, the first the value.

    The others are those of embeddings that were permuted among the tokens.

    Parameters
    ----------
    layers
        Glob over attention modules, as `ontogeny.capture.match_layers` reads it.
    on
        Name of the input set, whose tokenizer says how many tokens there are.
    n_draws, random_state
        How often embeddings are permuted, and the seed.
    """

    layers: str | tuple[str, ...] = "attn"
    on: str | None = None
    n_draws: int = 3
    random_state: int = 0
    runs_model = False

    def check(self, source: Source) -> None:
        """Refuse a model whose weights do not say what a head copies."""
        check_has_ov_circuit(source.model)
        match_layers(source.model, self.layers)

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return the scores."""
        model = source.model
        vocabulary = source.inputs.vocab_size
        for name, parameter in model.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                raise NonFiniteError(
                    f"copying scores are not finite: {name} holds NaN or infinity."
                )
        embedding = model.get_input_embeddings().weight.detach().float()[:vocabulary]
        layers = match_layers(model, self.layers)
        unembedding = readouts(model, layers[:1], vocabulary=vocabulary)[
            layers[0]
        ].unembedding
        rng = np.random.default_rng([self.random_state, 12])
        orders = [np.arange(len(embedding))]
        orders += [rng.permutation(len(embedding)) for _ in range(self.n_draws)]
        with torch.no_grad():
            maps = [
                unembedding.T @ embedding[torch.from_numpy(order)] for order in orders
            ]
            return {
                layer: np.stack(
                    [copying_score(m, head.value, head.output) for m in maps]
                )
                for layer, head in head_weights(model, layers)
            }


def check_has_ov_circuit(model: nn.Module) -> None:
    """Refuse a model in which no linear map leads from tokens through a head to logits.

    Raises
    ------
    ArgumentError
        If its family is unknown, it has no vocabulary map, or something stands between.
    """
    check_weights_there(model)
    family = family_of(model)
    name = type(model).__name__
    if family is None:
        raise ArgumentError(f"copying scores of {name} are unknown: so is its family.")
    if family.stream == "post-norm":
        raise ArgumentError(
            f"copying scores of {name} are not defined: its stream is normed after every layer, so "
            "that no head is given the token embedding itself."
        )
    path = path_to_vocabulary(model, match_layers(model, "attn")[0])
    if not isinstance(path, str) and path.head is None:
        return
    why = (
        path
        if isinstance(path, str)
        else "a nonlinear function stands before its vocabulary map"
    )
    raise ArgumentError(f"copying scores of {name} are not defined: {why}.")


def head_weights(
    model: nn.Module, layers: Sequence[str]
) -> Iterator[tuple[str, HeadWeights]]:
    """Give what the heads of each layer do, layer after layer, in float32.

    Parameters
    ----------
    model
        A model of a family that `ontogeny.capture` knows.
    layers
        Sites that attention writes at, as ``match_layers(model, "attn")`` names them.

    Raises
    ------
    ArgumentError
        If a layer is none of them.
    """
    family = family_of(model)
    assert family is not None  # check_has_ov_circuit has looked
    every = match_layers(model, "attn")
    sites = zip(
        *(match_layers(model, name) for name in ("resid", "v", "o")), strict=True
    )
    of_layer = dict(zip(every, sites, strict=True))
    outputs = readouts(model, list(layers))
    for layer in layers:
        if layer not in of_layer:
            raise ArgumentError(
                f"layers must name attention, such as 'attn'; got {layer!r}."
            )
        block, value, output = of_layer[layer]
        weights = _of_block(model, family, block, value, output)
        flat = weights.output.flatten(0, 1)
        for part in outputs[layer].parts:
            flat = part(flat)
        yield layer, HeadWeights(weights.value, flat.reshape(weights.output.shape))


def _of_block(
    model: nn.Module, family: Family, block: str, value: str, output: str
) -> HeadWeights:
    """Return the weights of one block's heads, with the norm before attention."""
    config: Any = model.config
    heads = int(config.num_attention_heads)
    path, part = split_label(value)
    rows = _outward(model.get_submodule(path))  # (outputs, m)
    if part:
        rows = rows[part_index(part, len(rows), heads if family.interleaved else None)]
    # (h, d, m).
    out = _outward(model.get_submodule(output)).T.reshape(heads, -1, rows.shape[1])
    into = rows.reshape(-1, out.shape[1], rows.shape[1])  # (key and value heads, d, m)
    into = into.repeat_interleave(heads // len(into), dim=0)
    if family.attn_norm:
        norm = model.get_submodule(f"{block}.{family.attn_norm}")
        if (scaled := norm_part(norm, rows.device)) is not None:  # no norm: an identity
            into = scaled.around((into * scaled.gain).flatten(0, 1)).reshape(into.shape)
    return HeadWeights(into.transpose(1, 2), out)


def _outward(module: nn.Module) -> Tensor:
    """Return a linear layer's weight as (outputs, inputs); GPT-2's Conv1D stores it turned."""
    weight = module.get_parameter("weight").detach().float()
    return weight.T if type(module).__name__ == "Conv1D" else weight
