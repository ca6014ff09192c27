"""Small transformers: that of the demo, and a causal one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..errors import ArgumentError, check_whole
from ..inputs.tokenize import count_ids

if TYPE_CHECKING:
    from transformers import (
        EuroBertForMaskedLM,
        GPTNeoXForCausalLM,
        PreTrainedTokenizerBase,
    )


def demo_model(
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: int = 6,
    width: int = 128,
    heads: int = 4,
    key_value_heads: int = 2,
    feed_forward: int | None = None,
    max_length: int = 512,
    random_state: int = 0,
) -> EuroBertForMaskedLM:
    """Return a small, untrained EuroBERT for masked language modelling (Boizard et al. 2025).

    transformers' own class: bidirectional attention with grouped queries, rotary positions,
    RMSNorm, SwiGLU, separate input and output embeddings. The weights start with the standard
    deviation ``width ** -0.5``, which keeps the size of activations: transformers' 0.02 suits a
    width of about 2,500 and delays a narrow model by hundreds of steps. Only the output layer
    starts with 0.02, so that the untrained model holds all tokens for about equally likely.

    Parameters
    ----------
    tokenizer
        Gives the size of the vocabulary and the ids of padding, mask, begin and end.
    layers, width, heads
        Number of blocks, of hidden units, of query heads.
    key_value_heads
        Number of key and value heads; `heads` must be a multiple.
    feed_forward
        Hidden units of the SwiGLU; twice `width` by default.
    max_length
        Longest text in tokens.
    random_state
        Seed of the weights; PyTorch's own random state is left as it was.

    Raises
    ------
    ArgumentError
        If the sizes do not fit each other, or the tokenizer lacks one of the special tokens.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["a text"], vocab_size=261)
    >>> model = demo_model(tokenizer, layers=2, width=32)
    >>> type(model).__name__, model.config.num_key_value_heads
    ('EuroBertForMaskedLM', 2)
    """
    sizes = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "key_value_heads": key_value_heads,
    }
    _check_sizes(sizes)
    if heads % key_value_heads:
        raise ArgumentError(
            f"heads must be a multiple of key_value_heads; got {heads} and {key_value_heads}."
        )
    # Imported here: transformers takes seconds to load.
    from transformers import EuroBertConfig, EuroBertForMaskedLM

    config = EuroBertConfig(
        vocab_size=count_ids(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width if feed_forward is None else feed_forward,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        max_position_embeddings=max_length,
        tie_word_embeddings=False,
        initializer_range=width**-0.5,
        **_special_ids(tokenizer),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        model = EuroBertForMaskedLM(config)
        torch.nn.init.normal_(model.lm_head.weight, std=0.02)
    return model


def causal_model(
    tokenizer: PreTrainedTokenizerBase,
    *,
    layers: int = 6,
    width: int = 128,
    heads: int = 4,
    max_length: int = 512,
    random_state: int = 0,
) -> GPTNeoXForCausalLM:
    """Return a small, untrained GPT-NeoX for next-token prediction (Black et al. 2022).

    transformers' own class, the architecture of the Pythia suite: causal attention, rotary
    positions on a quarter of each head, parallel attention and feed-forward, LayerNorm, separate
    input and output embeddings. There is no dropout.

    Parameters
    ----------
    tokenizer
        Gives the size of the vocabulary and the ids of begin and end.
    layers, width, heads
        Number of blocks, of hidden units, of heads; the feed-forward has four times the width.
    max_length
        Longest text in tokens.
    random_state
        Seed of the weights; PyTorch's own random state is left as it was.

    Raises
    ------
    ArgumentError
        If the sizes do not fit each other, or the tokenizer lacks one of the special tokens.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["a text"], vocab_size=261)
    >>> type(causal_model(tokenizer, layers=2, width=32)).__name__
    'GPTNeoXForCausalLM'
    """
    _check_sizes({"layers": layers, "width": width, "heads": heads})
    # Imported here: transformers takes seconds to load.
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    ids = _special_ids(tokenizer)
    config = GPTNeoXConfig(
        vocab_size=count_ids(tokenizer),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=max_length,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        tie_word_embeddings=False,
        bos_token_id=ids["bos_token_id"],
        eos_token_id=ids["eos_token_id"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        return GPTNeoXForCausalLM(config)


def _check_sizes(sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        check_whole(name, size)
    width = sizes["width"]
    heads = sizes["heads"]
    if width % heads or (width // heads) % 2:
        raise ArgumentError(
            f"width must be an even multiple of heads (rotary positions turn pairs); "
            f"got width={width}, heads={heads}."
        )


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    names = ("pad_token_id", "mask_token_id", "bos_token_id", "eos_token_id")
    ids = {name: getattr(tokenizer, name) for name in names}
    missing = [name.removesuffix("_id") for name, value in ids.items() if value is None]
    if missing:
        raise ArgumentError(f"tokenizer must have a {' and a '.join(missing)}.")
    return ids
