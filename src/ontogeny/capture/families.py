"""How the blocks of known model families are built: where attention, MLP and the stream are.

One row per family, in relative module paths. A site is a module's output, ``PATH#in`` its input,
``PATH#q`` the part of a fused output (see :mod:`ontogeny.capture.sites`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

ALIASES = (
    "attn",
    "mlp",
    "resid",
    "resid_pre",
    "resid_mid",
    "q",
    "k",
    "v",
    "o",
    "embed",
    "unembed",
)


@dataclass(frozen=True)
class Family:
    """Where the parts of one family's models are, relative to a block or to the model.

    Parameters
    ----------
    title
        The family's name in messages.
    qkv
        Sites of query, key and value, or the one module that gives all three.
    output
        Site of the projection after attention.
    embed, unembed
        Token embedding and vocabulary map; the first that a model or a file has is meant.
    resid_mid
        Site of the stream between the two, None where they are parallel.
    blocks
        Path of the numbered blocks: ``"h"``, ``"encoder.layer"``.
    attn, mlp
        Sites of what attention and MLP give, before any norm and before they join the stream.
    attention
        The attention module of a block, which also returns the attention maps; by default `attn`.
    attn_norm
        The norm that attention's input passes, in a block; empty where there is none.
    attn_weights, mlp_weights
        Patterns of the modules that hold the weights of each; by default `attn` and `mlp`.
    stream
        How attention (a) and MLP (m) join the stream (x): ``"pre-norm"`` x + a, then x + m;
        ``"parallel"`` x + a + m; ``"post-norm"`` N(x + a), then N(x + m); ``"normed"`` x + N(a),
        then x + N(m).
    final_norm
        The norm after the last block, which transformers applies to ``hidden_states[-1]``; None
        if there is none, and ``hidden_states[-1]`` is the last block's output.
    joined_by
        The norms that attention's and MLP's outputs pass where `stream` is ``"post-norm"`` or
        ``"normed"``, in a block; empty elsewhere.
    head
        What stands between the stream and the vocabulary map where that is more than a norm: a
        module, its dense layer and its norm, with an elementwise function between those two.
    interleaved
        Whether fused query, key and value lie side by side within each head rather than one after
        the other.
    fused_axis
        Axis of a fused weight matrix along which its parts lie.
    """

    title: str
    qkv: tuple[str, str, str] | str
    output: str
    embed: tuple[str, ...]
    unembed: tuple[str, ...]
    resid_mid: str | None
    blocks: str = "layers"
    attn: str = "attn"
    mlp: str = "mlp"
    attention: str = ""
    attn_norm: str = ""
    attn_weights: tuple[str, ...] = ()
    mlp_weights: tuple[str, ...] = ()
    stream: str = "pre-norm"
    final_norm: str | None = "norm"
    joined_by: tuple[str, ...] = ()
    head: tuple[str, str, str] | None = None
    interleaved: bool = False
    fused_axis: int = 0
    in_block: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.qkv
        if isinstance(parts, str):
            parts = (f"{parts}#q", f"{parts}#k", f"{parts}#v")
        query, key, value = parts
        sites = {
            "attn": self.attn,
            "mlp": self.mlp,
            "resid": "",
            "resid_pre": "#in",
            "resid_mid": self.resid_mid,
            "q": query,
            "k": key,
            "v": value,
            "o": self.output,
        }
        derived = {
            "in_block": {
                name: site for name, site in sites.items() if site is not None
            },
            "attention": self.attention or self.attn,
            "attn_weights": self.attn_weights or (self.attn,),
            "mlp_weights": self.mlp_weights or (self.mlp,),
        }
        for name, content in derived.items():
            object.__setattr__(self, name, content)

    @property
    def query(self) -> str:
        """Site of the query projection; ``"attn.c_attn#q"`` is a part of a fused one."""
        return self.in_block["q"]

    def is_fused(self, name: str) -> bool:
        """Return whether a module or weight of this name holds query, key and value in one."""
        if not isinstance(self.qkv, str):
            return False
        # With the dots, "crossattn.c_attn" does not end in "attn.c_attn".
        return f".{name.removesuffix('.weight')}".endswith(f".{self.qkv}")

    def is_vocabulary(self, name: str) -> bool:
        """Return whether a weight of this name has one row per token of the vocabulary."""
        ends = tuple(f".{path}.weight" for path in (*self.embed, *self.unembed))
        return f".{name}".endswith(ends)


_LLAMA = Family(
    title="LLaMA",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    output="self_attn.o_proj",
    embed=("embed_tokens",),
    unembed=("lm_head",),
    resid_mid="post_attention_layernorm#in",
    attn="self_attn",
    attn_norm="input_layernorm",
    attn_weights=("self_attn", "linear_attn"),  # hybrid models have both
)
_NORMS_AFTER = ("post_attention_layernorm", "post_feedforward_layernorm")
_OLMO2 = replace(
    _LLAMA,
    title="OLMo 2",
    resid_mid="mlp#in",
    stream="normed",
    joined_by=_NORMS_AFTER,
    attn_norm="",
)
_GEMMA2 = replace(
    _OLMO2,
    title="Gemma 2",
    resid_mid="pre_feedforward_layernorm#in",
    attn_norm="input_layernorm",
)
_GPT2 = Family(
    title="GPT-2",
    qkv="attn.c_attn",
    output="attn.c_proj",
    embed=("wte",),
    unembed=("lm_head",),
    resid_mid="ln_2#in",
    blocks="h",
    attn_norm="ln_1",
    final_norm="ln_f",
    fused_axis=1,  # its Conv1D stores (in, out)
)
_NEOX = Family(
    title="GPT-NeoX",
    qkv="attention.query_key_value",
    output="attention.dense",
    embed=("embed_in",),
    unembed=("embed_out", "lm_head"),
    resid_mid=None,
    attn="attention",
    attn_norm="input_layernorm",
    stream="parallel",
    final_norm="final_layer_norm",
    interleaved=True,
)
_NEOX_SEQUENTIAL = replace(
    _NEOX, resid_mid="post_attention_layernorm#in", stream="pre-norm"
)
_BERT = Family(
    title="BERT",
    qkv=("attention.self.query", "attention.self.key", "attention.self.value"),
    output="attention.output.dense",
    embed=("embeddings.word_embeddings",),
    unembed=("cls.predictions.decoder", "lm_head.decoder"),
    resid_mid="attention",
    blocks="encoder.layer",
    attn="attention.output.dense",
    mlp="output.dense",
    attention="attention.self",
    attn_weights=("attention",),
    mlp_weights=("intermediate", "output"),
    stream="post-norm",
    final_norm=None,
    joined_by=("attention.output.LayerNorm", "output.LayerNorm"),
    head=("cls.predictions.transform", "dense", "LayerNorm"),
)
_MODERNBERT = Family(
    title="ModernBERT",
    qkv="attn.Wqkv",
    output="attn.Wo",
    embed=("embeddings.tok_embeddings",),
    unembed=("decoder",),
    resid_mid="mlp_norm#in",
    attn_norm="attn_norm",
    final_norm="final_norm",
    head=("head", "dense", "norm"),
)
_T5_ATTENTION = "layer.0.SelfAttention"
_T5 = Family(
    title="T5 (its encoder)",
    qkv=(f"{_T5_ATTENTION}.q", f"{_T5_ATTENTION}.k", f"{_T5_ATTENTION}.v"),
    output=f"{_T5_ATTENTION}.o",
    embed=("encoder.embed_tokens", "shared"),
    unembed=("lm_head",),
    resid_mid="layer.0",
    blocks="encoder.block",
    attn=_T5_ATTENTION,
    mlp="layer.1.DenseReluDense",
    attn_weights=("layer.0",),
    mlp_weights=("layer.1",),
    final_norm="encoder.final_layer_norm",
)

# The known families by transformers' ``model_type``.
FAMILIES: dict[str, Family] = {
    "gpt2": _GPT2,
    "gpt_neox": _NEOX,
    "llama": _LLAMA,
    "olmo": replace(_LLAMA, title="OLMo"),
    "olmo2": _OLMO2,
    "qwen2": replace(_LLAMA, title="Qwen 2"),
    "qwen3": replace(_LLAMA, title="Qwen 3"),
    "gemma": replace(_LLAMA, title="Gemma"),
    "gemma2": _GEMMA2,
    "gemma3_text": replace(_GEMMA2, title="Gemma 3"),
    "eurobert": replace(_LLAMA, title="EuroBERT"),
    "bert": _BERT,
    "roberta": replace(_BERT, title="RoBERTa", head=("lm_head", "dense", "layer_norm")),
    "modernbert": _MODERNBERT,
    "t5": _T5,
    "ontogeny_next_token": replace(_LLAMA, title="NextTokenForCausalLM"),
    "ontogeny_readout": replace(_LLAMA, title="ReadoutTransformer"),
}


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


_LENGTHS = (
    "max_position_embeddings",
    "block_size",
    "context_length",
    "max_seq_len",
    "n_ctx",
)


def longest_text(config: Any) -> int | None:
    """Return how many tokens the position table of a model takes, None if there is no limit.

    RoBERTa counts positions from its padding id on, so its table takes fewer than it has rows. Of a
    configuration that is none of transformers the usual names count, such as ``block_size``.

    Examples
    --------
    >>> from transformers import RobertaConfig, XLNetConfig
    >>> longest_text(RobertaConfig(max_position_embeddings=514))
    512
    >>> longest_text(XLNetConfig())
    """
    if not hasattr(config, "model_type"):
        lengths = (getattr(config, name, None) for name in _LENGTHS)
        return next((n for n in lengths if isinstance(n, int) and n > 0), None)
    longest = getattr(config, "max_position_embeddings", None)
    if not isinstance(longest, int) or longest < 1:  # XLNet gives -1
        return None
    if getattr(config, "model_type", None) == "roberta":
        return longest - int(config.pad_token_id) - 1
    return longest
