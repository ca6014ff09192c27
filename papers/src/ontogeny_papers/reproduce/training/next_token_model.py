"""A small causal transformer that predicts the next token, with or without MLPs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_outputs import CausalLMOutput

from .readout_model import CausalStack, ReadoutConfig


class NextTokenConfig(ReadoutConfig):
    """Sizes of a `NextTokenForCausalLM`; those of a `ReadoutConfig` without the classes.

    Examples
    --------
    >>> NextTokenConfig(vocab_size=64).use_mlp
    False
    """

    model_type = "ontogeny_next_token"

    def __init__(
        self, **sizes: Any
    ) -> None:  # transformers would make one that sets nothing
        super().__init__(**sizes)


class NextTokenForCausalLM(CausalStack):
    """A pre-norm transformer that predicts the next token from attention alone, or with MLPs.

    Without MLPs and with two layers it is the smallest model in which induction heads form (Elhage
    et al. 2021).

    Examples
    --------
    >>> import torch
    >>> model = NextTokenForCausalLM(NextTokenConfig(vocab_size=9, num_hidden_layers=2))
    >>> model(input_ids=torch.zeros(2, 16, dtype=torch.long)).logits.shape
    torch.Size([2, 16, 9])
    """

    config_class = NextTokenConfig

    def __init__(self, config: NextTokenConfig) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        """Return the map to the vocabulary."""
        return self.lm_head

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        **_: Any,
    ) -> CausalLMOutput:
        """Return the logits (texts, tokens, vocabulary) of each next token."""
        hidden = self.stream(input_ids, attention_mask, position_ids)
        return CausalLMOutput(logits=self.lm_head(self.norm(hidden)))


def next_token_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the mean cross-entropy of the next tokens of texts, in nats.

    Parameters
    ----------
    model
        A causal language model.
    ids
        (texts, tokens), all of them predicted but the first of each text.

    Examples
    --------
    >>> import torch
    >>> model = NextTokenForCausalLM(NextTokenConfig(vocab_size=9))
    >>> next_token_loss(model, torch.zeros(2, 16, dtype=torch.long)).ndim
    0
    """
    logits = model(input_ids=ids).logits[:, :-1]
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
