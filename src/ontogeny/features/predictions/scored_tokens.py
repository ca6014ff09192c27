"""What every predicted token costs, and whether it is the first answer, in the pass of losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from ...inputs import Inputs


@dataclass(frozen=True)
class TokenCosts:
    """A function of `ontogeny.needs.predictions.Reduced`: ``loss`` and ``right`` of each token.

    Examples
    --------
    >>> import torch
    >>> log_p = torch.tensor([[0.7, 0.3]]).log()
    >>> costs = TokenCosts().reduction(None, False)(
    ...     np.zeros(1), np.ones(1), torch.tensor([0]), log_p
    ... )
    >>> (
    ...     bool(costs["right"][0]),
    ...     round(costs["loss"].item(), 3),
    ...     costs["vocabulary"].tolist(),
    ... )
    (True, 0.357, [2])
    """

    def reduction(self, inputs: Inputs | None, masked: bool) -> _Costs:
        """Return what is asked of each prediction."""
        return _Costs()


class _Costs:
    def __call__(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> dict[str, Any]:
        right = log_p.gather(1, target[:, None])[:, 0]
        return {
            "loss": -right.double(),
            "right": log_p.argmax(dim=1) == target,
            "vocabulary": np.full(len(text), log_p.shape[1]),
        }

    def result(self, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return all numbers by name, (tokens,), with ``text`` and ``column``."""
        return numbers
