"""Dictionaries as functions: from activations to codes and back, as SAELens computes them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

STEP = 4096  # rows that are encoded at once


@dataclass(frozen=True, eq=False)
class Encoding:
    """A dictionary of m features of activations and r latents.

    Parameters
    ----------
    weights
        ``W_enc`` (m, r), ``W_dec`` (r, m), ``b_dec`` (m,), and what the architecture has beside:
        ``b_enc``, ``threshold``, or ``b_gate``, ``b_mag``, ``r_mag``, each (r,).
    architecture
        ``"standard"``, ``"topk"``, ``"jumprelu"`` or ``"gated"``.
    k
        Latents that fire at most, of ``"topk"``.
    by_decoder
        Whether ``"topk"`` weighs latents by the length of their decoders.
    input_bias
        Whether ``b_dec`` is taken off before encoding.
    normalize
        ``"none"``, ``"constant_norm_rescale"`` or ``"layer_norm"``.
    centred
        Whether the mean over features is taken off first: what centred weights would have written.
    hook
        Where its activations were read, as it says itself; empty where it does not.

    Examples
    --------
    >>> eye = torch.eye(2)
    >>> weights = {"W_enc": eye, "W_dec": eye, "b_dec": torch.zeros(2)}
    >>> one = Encoding(weights | {"b_enc": torch.tensor([0.0, -1.0])})
    >>> one.codes(torch.tensor([[2.0, 0.5]]))
    tensor([[2., 0.]])
    """

    weights: dict[str, Tensor] = field(repr=False)
    architecture: str = "standard"
    k: int = 0
    by_decoder: bool = False
    input_bias: bool = True
    normalize: str = "none"
    centred: bool = False
    hook: str = ""

    @property
    def width(self) -> int:
        """Number m of features."""
        return int(self.weights["W_enc"].shape[0])

    @property
    def count(self) -> int:
        """Number r of latents."""
        return int(self.weights["W_enc"].shape[1])

    @cached_property
    def digest(self) -> str:
        """Hex digest of all that decides what it gives."""
        digest = hashlib.blake2b(digest_size=16)
        rest = (self.architecture, self.k, self.by_decoder, self.input_bias)
        digest.update(repr((*rest, self.normalize, self.centred)).encode())
        for name in sorted(self.weights):
            tensor = self.weights[name].contiguous()
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def codes(self, A: Tensor) -> Tensor:
        """Return the codes (n, r) of activations (n, m), in the type of the weights."""
        parts = A.split(STEP)
        return torch.cat([self._encoded(self._taken(some)[0]) for some in parts])

    def both(self, A: Tensor) -> tuple[Tensor, Tensor]:
        """Return codes (n, r) and what they give back (n, m), both float32."""
        codes = []
        given = []
        for some in A.split(STEP):
            X, scale, mean = self._taken(some)
            code = self._encoded(X)
            codes.append(code.float())
            given.append((self._decoded(code) * scale + mean).float())
        return torch.cat(codes), torch.cat(given)

    def _taken(self, A: Tensor) -> tuple[Tensor, Tensor | float, Tensor | float]:
        """Return activations as they are encoded, and the scale and mean to put back."""
        X = A.to(self.weights["W_enc"].dtype)
        if self.centred:
            X = X - X.mean(dim=-1, keepdim=True)
        if self.normalize == "constant_norm_rescale":
            factor = self.width**0.5 / X.norm(dim=-1, keepdim=True)
            return X * factor, 1 / factor, 0.0
        if self.normalize == "layer_norm":
            mean = X.mean(dim=-1, keepdim=True)
            spread = (X - mean).std(dim=-1, keepdim=True)
            return (X - mean) / (spread + 1e-5), spread, mean
        return X, 1.0, 0.0

    def _encoded(self, X: Tensor) -> Tensor:
        w = self.weights
        X = X - w["b_dec"] * self.input_bias
        if self.architecture == "gated":
            gate = X @ w["W_enc"] + w["b_gate"] > 0
            size = (X @ (w["W_enc"] * w["r_mag"].exp()) + w["b_mag"]).relu()
            return gate.to(size.dtype) * size
        before = X @ w["W_enc"] + w["b_enc"]
        if self.architecture == "jumprelu":
            return before.relu() * (before > w["threshold"]).to(before.dtype)
        if self.architecture != "topk":
            return before.relu()
        if self.by_decoder:
            before = before * w["W_dec"].norm(dim=-1)
        top = before.topk(self.k, dim=-1, sorted=False)
        return torch.zeros_like(before).scatter(-1, top.indices, top.values.relu())

    def _decoded(self, codes: Tensor) -> Tensor:
        w = self.weights
        if self.by_decoder:
            codes = codes * (1 / w["W_dec"].norm(dim=-1))
        return codes @ w["W_dec"] + w["b_dec"]
