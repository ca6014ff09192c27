"""Small causal transformers that answer at the last token, with or without MLPs."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


class ReadoutConfig(PreTrainedConfig):
    """Sizes of a `ReadoutTransformer`, under transformers' names.

    Parameters
    ----------
    vocab_size, num_labels
        Token ids, and classes of the answer.
    hidden_size, num_hidden_layers, num_attention_heads
        Width, blocks and heads; the heads divide the width.
    max_position_embeddings
        Longest sequence.
    use_mlp
        Whether blocks have an MLP of four times the width (GELU).
    layer_norm_eps
        Added to variances.

    Examples
    --------
    >>> ReadoutConfig(num_labels=8).hidden_size
    128
    """

    model_type = "ontogeny_readout"

    def __init__(
        self,
        vocab_size: int = 24,
        hidden_size: int = 128,
        num_hidden_layers: int = 4,
        num_attention_heads: int = 4,
        max_position_embeddings: int = 16,
        use_mlp: bool = False,
        layer_norm_eps: float = 1e-5,
        **more: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.max_position_embeddings = max_position_embeddings
        self.use_mlp = use_mlp
        self.layer_norm_eps = layer_norm_eps
        super().__init__(**more)


class _Linear(nn.Linear):
    """A linear map over rows, so that many seeds at once (torch.vmap) are one batched product."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b."""
        rows = functional.linear(x.flatten(0, -2), self.weight, self.bias)
        return rows.unflatten(0, x.shape[:-1])


class _Attention(nn.Module):
    """Causal attention with separate W_Q, W_K, W_V, W_O."""

    def __init__(self, config: ReadoutConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.config = config
        self.heads = config.num_attention_heads
        self.scaling = (width // self.heads) ** -0.5
        self.is_causal = True
        self.q_proj = _Linear(width, width)
        self.k_proj = _Linear(width, width)
        self.v_proj = _Linear(width, width)
        self.o_proj = _Linear(width, width)

    def forward(
        self, hidden: Tensor, mask: Tensor | None, queries: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output of the last `queries` positions, and the maps where eager."""
        query = self._heads(self.q_proj(hidden[:, -queries:]))
        key = self._heads(self.k_proj(hidden))
        value = self._heads(self.v_proj(hidden))
        kind = self.config._attn_implementation
        attend = (
            _explicit
            if kind in (None, "eager")
            else ALL_ATTENTION_FUNCTIONS.get_interface(kind, _explicit)
        )
        mixed, weights = attend(
            self,
            query,
            key,
            value,
            mask,
            scaling=self.scaling,
            dropout=0.0,
            is_causal=False,
        )
        return self.o_proj(mixed.flatten(2)), weights

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


def _explicit(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Attend with explicit maps: transformers' interface, (texts, tokens, heads, size) out."""
    scores = query @ key.transpose(2, 3) * scaling
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    return (weights @ value).transpose(1, 2), weights


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up_proj = _Linear(width, 4 * width)
        self.down_proj = _Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the MLP's output."""
        return self.down_proj(functional.gelu(self.up_proj(x)))


class _Block(nn.Module):
    def __init__(self, config: ReadoutConfig) -> None:
        super().__init__()
        width = config.hidden_size
        eps = config.layer_norm_eps
        self.input_layernorm = nn.LayerNorm(width, eps)
        self.self_attn = _Attention(config)
        if config.use_mlp:
            self.post_attention_layernorm = nn.LayerNorm(width, eps)
            self.mlp = _Mlp(width)

    def forward(self, hidden: Tensor, mask: Tensor | None, queries: int) -> Tensor:
        """Return the stream at the last `queries` positions."""
        mixed, _ = self.self_attn(self.input_layernorm(hidden), mask, queries)
        hidden = hidden[:, -queries:] + mixed
        if hasattr(self, "mlp"):
            hidden = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return hidden


class CausalStack(PreTrainedModel):
    """Embeddings, causal pre-norm blocks and a last norm: what the models here have in common.

    Learned positions, LayerNorm, separate query, key, value and output maps in every layer, no
    MLP unless the configuration asks for one. Modules are named as in LLaMA, so that the short
    names of captures work: ``layers.0.self_attn.q_proj``.
    """

    base_model_prefix = "model"
    main_input_name = "input_ids"
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: ReadoutConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.embed_positions = nn.Embedding(config.max_position_embeddings, width)
        self.layers = nn.ModuleList(
            [_Block(config) for _ in range(config.num_hidden_layers)]
        )
        self.norm = nn.LayerNorm(width, config.layer_norm_eps)

    def _init_weights(self, module: nn.Module) -> None:
        """Keep PyTorch's own initial values, those of the paper's code."""

    def stream(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        position_ids: Tensor | None,
        last_only: bool = False,
    ) -> Tensor:
        """Return the stream after the last block, (texts, tokens, width).

        Parameters
        ----------
        input_ids
            (texts, tokens).
        attention_mask
            (texts, tokens), 0 at padding, or None.
        position_ids
            (texts, tokens), or counted from the first column.
        last_only
            Let the last block compute the last position only.
        """
        count = input_ids.shape[1]
        places = torch.arange(count, device=input_ids.device)
        positions = places if position_ids is None else position_ids
        hidden = self.embed_tokens(input_ids) + self.embed_positions(positions)
        mask = _mask(count, attention_mask, hidden.dtype, hidden.device)
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            one = last_only and index == last
            hidden = layer(
                hidden, mask[:, :, -1:] if one else mask, 1 if one else count
            )
        return hidden


class ReadoutTransformer(CausalStack):
    """A pre-norm causal transformer whose answer is read at the last token (Xu 2026, sec. 3.2).

    Examples
    --------
    >>> model = ReadoutTransformer(ReadoutConfig(num_labels=8))
    >>> model(input_ids=torch.zeros(2, 16, dtype=torch.long)).logits.shape
    torch.Size([2, 8])
    """

    config_class = ReadoutConfig

    def __init__(self, config: ReadoutConfig) -> None:
        super().__init__(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        readout_only: bool = False,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """Return the logits (texts, labels) of the answer, and the loss where labels are given.

        Parameters
        ----------
        input_ids
            (texts, tokens).
        attention_mask
            (texts, tokens), 0 at padding; the answer is read at the last token that is none.
        position_ids
            (texts, tokens), or counted from the first column.
        labels
            (texts,): adds the mean cross-entropy.
        readout_only
            Let the last block compute the last position only: the same answer for less work.
            Only without padding.
        """
        alone = readout_only and attention_mask is None
        hidden = self.stream(input_ids, attention_mask, position_ids, alone)
        if attention_mask is None:
            final = hidden[:, -1]
        else:
            places = torch.arange(input_ids.shape[1], device=input_ids.device)
            ends = (places * attention_mask).argmax(1)
            final = hidden[torch.arange(len(ends), device=ends.device), ends]
        logits = self.score(self.norm(final))
        loss = None if labels is None else functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def _mask(
    count: int, attention_mask: Tensor | None, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Return what is added to scores, (1 or texts, 1, tokens, tokens): 0 or the lowest number."""
    lowest = torch.finfo(dtype).min if attention_mask is not None else -math.inf
    allowed = torch.ones((1, 1, count, count), dtype=torch.bool, device=device).tril()
    if attention_mask is not None:
        allowed = allowed & attention_mask[:, None, None, :].bool()
    return torch.zeros(allowed.shape, dtype=dtype, device=device).masked_fill(
        ~allowed, lowest
    )
