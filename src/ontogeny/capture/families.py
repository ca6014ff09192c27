"""How the blocks of known model families are built: where attention, MLP and the stream are.

One row per family, in relative module paths. A site is a module's output, ``PATH#in`` its input,
``PATH#q`` the part of a fused output (see :mod:`ontogeny.capture.sites`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["ALIASES", "FAMILIES", "Family", "family_of", "longest_text"]

ALIASES = ("attn", "mlp", "resid", "resid_pre", "resid_mid", "q", "k", "v", "o", "embed", "unembed")


@dataclass(frozen=True)
class Family:
    """Where the parts of one family's models are, relative to a block or to the model.

    Parameters
    ----------
    title
        The family's name in messages.
    blocks
        Path of the numbered blocks: ``"h"``, ``"encoder.layer"``.
    attention
        The attention module of a block, which also returns the attention maps.
    attn, mlp
        Sites of what attention and MLP give, before any norm and before they join the stream.
    resid_mid
        Site of the stream between the two, None where they are parallel.
    query, key, value, output
        Sites of the projections; ``"attn.c_attn#q"`` is a part of a fused one.
    attn_weights, mlp_weights
        Patterns of the modules that hold the weights of each.
    embed, unembed
        Token embedding and vocabulary map; the first that a model or a file has is meant.
    stream
        How attention (a) and MLP (m) join the stream (x): ``"pre-norm"`` x + a, then x + m;
        ``"parallel"`` x + a + m; ``"post-norm"`` N(x + a), then N(x + m); ``"normed"`` x + N(a),
        then x + N(m).
    final_norm
        The norm after the last block, which transformers applies to ``hidden_states[-1]``; None
        if there is none, and ``hidden_states[-1]`` is the last block's output.
    interleaved
        Whether fused query, key and value lie side by side within each head rather than one after
        the other.
    fused_axis
        Axis of a fused weight matrix along which its parts lie.
    """

    title: str
    blocks: str
    attention: str
    attn: str
    mlp: str
    resid_mid: str | None
    query: str
    key: str
    value: str
    output: str
    attn_weights: tuple[str, ...]
    mlp_weights: tuple[str, ...]
    embed: tuple[str, ...]
    unembed: tuple[str, ...]
    stream: str = "pre-norm"
    final_norm: str | None = "norm"
    interleaved: bool = False
    fused_axis: int = 0
    in_block: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sites = {
            "attn": self.attn,
            "mlp": self.mlp,
            "resid": "",
            "resid_pre": "#in",
            "resid_mid": self.resid_mid,
            "q": self.query,
            "k": self.key,
            "v": self.value,
            "o": self.output,
        }
        known = {name: site for name, site in sites.items() if site is not None}
        object.__setattr__(self, "in_block", known)

    @property
    def fused(self) -> str | None:
        """The fused query, key and value map of a block, if there is one."""
        path, _, part = self.query.partition("#")
        return path if part else None

    def is_fused(self, name: str) -> bool:
        """Return whether a module or weight of this name holds query, key and value in one."""
        if self.fused is None:
            return False
        return f".{name.removesuffix('.weight')}".endswith(f".{self.fused}")

    def is_vocabulary(self, name: str) -> bool:
        """Return whether a weight of this name has one row per token of the vocabulary."""
        ends = tuple(f".{path}.weight" for path in (*self.embed, *self.unembed))
        return f".{name}".endswith(ends)


def _llama(title: str, resid_mid: str = "post_attention_layernorm#in", **other: Any) -> Family:
    return Family(
        title=title,
        blocks="layers",
        attention="self_attn",
        attn="self_attn",
        mlp="mlp",
        resid_mid=resid_mid,
        query="self_attn.q_proj",
        key="self_attn.k_proj",
        value="self_attn.v_proj",
        output="self_attn.o_proj",
        attn_weights=("self_attn",),
        mlp_weights=("mlp",),
        embed=("embed_tokens",),
        unembed=("lm_head",),
        **other,
    )


def _bert(title: str) -> Family:
    return Family(
        title=title,
        blocks="encoder.layer",
        attention="attention.self",
        attn="attention.output.dense",
        mlp="output.dense",
        resid_mid="attention",
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        output="attention.output.dense",
        attn_weights=("attention",),
        mlp_weights=("intermediate", "output"),
        embed=("embeddings.word_embeddings",),
        unembed=("cls.predictions.decoder", "lm_head.decoder"),
        stream="post-norm",
        final_norm=None,
    )


_GPT2 = Family(
    title="GPT-2",
    blocks="h",
    attention="attn",
    attn="attn",
    mlp="mlp",
    resid_mid="ln_2#in",
    query="attn.c_attn#q",
    key="attn.c_attn#k",
    value="attn.c_attn#v",
    output="attn.c_proj",
    attn_weights=("attn",),
    mlp_weights=("mlp",),
    embed=("wte",),
    unembed=("lm_head",),
    final_norm="ln_f",
    fused_axis=1,  # its Conv1D stores (in, out)
)
_NEOX = Family(
    title="GPT-NeoX",
    blocks="layers",
    attention="attention",
    attn="attention",
    mlp="mlp",
    resid_mid=None,
    query="attention.query_key_value#q",
    key="attention.query_key_value#k",
    value="attention.query_key_value#v",
    output="attention.dense",
    attn_weights=("attention",),
    mlp_weights=("mlp",),
    embed=("embed_in",),
    unembed=("embed_out", "lm_head"),
    stream="parallel",
    final_norm="final_layer_norm",
    interleaved=True,
)
_NEOX_SEQUENTIAL = replace(_NEOX, resid_mid="post_attention_layernorm#in", stream="pre-norm")
_MODERNBERT = Family(
    title="ModernBERT",
    blocks="layers",
    attention="attn",
    attn="attn",
    mlp="mlp",
    resid_mid="mlp_norm#in",
    query="attn.Wqkv#q",
    key="attn.Wqkv#k",
    value="attn.Wqkv#v",
    output="attn.Wo",
    attn_weights=("attn",),
    mlp_weights=("mlp",),
    embed=("embeddings.tok_embeddings",),
    unembed=("decoder",),
    final_norm="final_norm",
)
_T5 = Family(
    title="T5 (its encoder)",
    blocks="encoder.block",
    attention="layer.0.SelfAttention",
    attn="layer.0.SelfAttention",
    mlp="layer.1.DenseReluDense",
    resid_mid="layer.0",
    query="layer.0.SelfAttention.q",
    key="layer.0.SelfAttention.k",
    value="layer.0.SelfAttention.v",
    output="layer.0.SelfAttention.o",
    attn_weights=("layer.0",),
    mlp_weights=("layer.1",),
    embed=("encoder.embed_tokens", "shared"),
    unembed=("lm_head",),
    final_norm="encoder.final_layer_norm",
)

FAMILIES: dict[str, Family] = {
    "gpt2": _GPT2,
    "gpt_neox": _NEOX,
    "llama": _llama("LLaMA"),
    "olmo": _llama("OLMo"),
    "olmo2": _llama("OLMo 2", "mlp#in", stream="normed"),
    "qwen2": _llama("Qwen 2"),
    "qwen3": _llama("Qwen 3"),
    "gemma": _llama("Gemma"),
    "gemma2": _llama("Gemma 2", "pre_feedforward_layernorm#in", stream="normed"),
    "gemma3_text": _llama("Gemma 3", "pre_feedforward_layernorm#in", stream="normed"),
    "eurobert": _llama("EuroBERT"),
    "bert": _bert("BERT"),
    "roberta": _bert("RoBERTa"),
    "modernbert": _MODERNBERT,
    "t5": _T5,
    "ontogeny_readout": _llama("ReadoutTransformer"),
}
"""The known families by transformers' ``model_type``."""


def family_of(model: Any) -> Family | None:
    """Return the family of a model with a transformers configuration, or None if it is unknown.

    Examples
    --------
    >>> from transformers import GPT2Config
    >>> from types import SimpleNamespace
    >>> family_of(SimpleNamespace(config=GPT2Config())).blocks
    'h'
    >>> family_of(object()) is None
    True
    """
    config = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if kind == "gpt_neox" and not getattr(config, "use_parallel_residual", True):
        return _NEOX_SEQUENTIAL
    return FAMILIES.get(kind) if isinstance(kind, str) else None


def longest_text(config: Any) -> int | None:
    """Return how many tokens the position table of a model takes, None if there is no limit.

    RoBERTa counts positions from its padding id on, so its table takes fewer than it has rows.

    Examples
    --------
    >>> from transformers import RobertaConfig
    >>> longest_text(RobertaConfig(max_position_embeddings=514))
    512
    """
    longest = getattr(config, "max_position_embeddings", None)
    if not isinstance(longest, int):
        return None
    if getattr(config, "model_type", None) == "roberta":
        return longest - int(config.pad_token_id) - 1
    return longest
