"""A training of a small causal transformer by the cross-entropy of its next tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from .known_recipe import KnownRun

if TYPE_CHECKING:
    from ..training.next_token_model import NextTokenForCausalLM


class NextTokenRun(KnownRun):
    """Sizes of a `NextTokenForCausalLM` and its loss; a subclass has them as fields, and texts."""

    vocab_size: int
    layers: int
    width: int
    heads: int
    length: int
    longest: ClassVar[int | None] = None
    """Tokens of the longest text that the model takes; None: those of a training text."""
    use_mlp: ClassVar[bool] = False

    def model(self) -> NextTokenForCausalLM:
        """Return an untrained model, from PyTorch's random state."""
        from ..training.next_token_model import NextTokenConfig, NextTokenForCausalLM

        return NextTokenForCausalLM(
            NextTokenConfig(
                vocab_size=self.vocab_size,
                hidden_size=self.width,
                num_hidden_layers=self.layers,
                num_attention_heads=self.heads,
                max_position_embeddings=self.longest or self.length,
                use_mlp=self.use_mlp,
                attn_implementation="eager",
            )
        )

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Return the mean cross-entropy of the next tokens."""
        from ..training.next_token_model import next_token_loss

        return next_token_loss(model, batch)
