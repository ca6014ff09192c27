"""What every solver gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Solution:
    """What a solver gives for A (n, m): ``A ~ codes @ dictionary.mT + offset``.

    ``codes`` (n, r), ``dictionary`` (m, r), ``offset`` (1, m) or None; ``state`` holds further
    fitted tensors by name.
    """

    codes: Tensor
    dictionary: Tensor
    offset: Tensor | None = None
    n_iter: int = 1
    converged: bool = True
    state: dict[str, Tensor] = field(default_factory=dict)

    def canonical(self, *, signed: bool, ordered: bool = True) -> Tensor:
        """Bring the concepts into canonical form; return the order (r,) they were put in.

        The largest-magnitude entry of each dictionary column becomes positive (`signed`), and the
        concepts are put in the order of their energy ``|u_j|^2 |w_j|^2``, largest first
        (`ordered`).
        """
        U = self.codes
        W = self.dictionary
        signs = torch.ones_like(W[0])
        if signed:
            peak = W.abs().argmax(0, keepdim=True)
            signs = torch.where(torch.take_along_dim(W, peak, 0)[0] < 0, -signs, signs)
        order = torch.arange(W.shape[1], device=W.device)
        if ordered:
            energy = U.square().sum(0) * W.square().sum(0)
            order = torch.argsort(energy, descending=True, stable=True)
        self.dictionary = W.index_select(1, order) * signs[order]
        self.codes = U.index_select(1, order) * signs[order]
        return order
