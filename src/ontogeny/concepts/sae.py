"""Sparse autoencoders: vanilla, TopK, BatchTopK and JumpReLU."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ..errors import check_choice, check_number, check_whole
from .alternating import Factor, sweep
from .base import Extractor, Solution
from .gates import Gate, gate_of
from .linalg import column_gram

__all__ = ["SAE"]

VARIANTS = ("vanilla", "topk", "batchtopk", "jumprelu")
RESAMPLE_UNTIL = 0.5  # dead concepts start again within this part of the training
OVERSHOT = 2  # times the squared error, to which concepts that start again must not raise it
DECAY_FROM = 0.6  # from here on the learning rate falls linearly to a twentieth
RIDGE = 1e-3  # against the variance of the activations, where an encoder is regressed
CODE_SWEEPS = 10  # over the codes that it is regressed on
TOBIT_STEPS = 2


class SAE(Extractor):
    """Sparse autoencoder ``A ~ U W^T + b``: codes by one gated linear layer, unit-norm dictionary.

    ``U = gate((A - b) E + c)``. The loss is the mean squared error per entry, plus `alpha` times
    the mean L1 norm (vanilla) or the mean number of active concepts (JumpReLU) of a sample;
    it is taken where activations have unit variance, so that `alpha` and the learning rate mean
    the same at every scale. Concepts that no sample used during an epoch of the first half of
    the training start again at the samples that are reconstructed worst (Bricken et al. 2023),
    in every variant, in place of an auxiliary loss.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    variant
        ``"vanilla"`` (ReLU and L1), ``"topk"`` (the k largest of a sample), ``"batchtopk"`` (the
        k n largest of a batch; a fixed threshold afterwards) or ``"jumprelu"`` (a learned
        threshold each, L0 penalty through straight-through estimates).
    alpha
        Weight of the sparsity penalty of ``"vanilla"`` and ``"jumprelu"``.
    k
        Active concepts a sample of ``"topk"`` and ``"batchtopk"``; at most r are used.
    epochs, batch_size, learning_rate
        Training by Adam; a fixed number of epochs.
    random_state
        Seed of the start (samples) and of the batches.

    Attributes
    ----------
    encoder_ : array of shape (m, r)
    encoder_bias_ : array of shape (r,)
        E and c, for activations as they come.
    threshold_ : array of shape (r,)
        Pre-activations up to it give 0 (``"batchtopk"``, ``"jumprelu"``).
    dead_ : int
        Concepts that no sample uses.

    References
    ----------
    Bricken et al. (2023); Gao et al., arXiv:2406.04093 (TopK); Bussmann et al.,
    arXiv:2412.06410 (BatchTopK); Rajamanoharan et al., arXiv:2407.14435 (JumpReLU).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(200, 8))
    >>> U = SAE(n_concepts=16, variant="topk", k=3, epochs=3, random_state=0).fit_transform(A)
    >>> int((U > 0).sum(axis=1).max())
    3
    """

    _scale_in: ClassVar[str] = "codes"

    def __init__(
        self,
        n_concepts: int = 100,
        *,
        variant: str = "vanilla",
        alpha: float = 1e-3,
        k: int = 10,
        epochs: int = 16,
        batch_size: int = 512,
        learning_rate: float = 3e-3,
        random_state: Any = None,
    ) -> None:
        self.n_concepts = n_concepts
        self.variant = variant
        self.alpha = alpha
        self.k = k
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _check_options(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_number("alpha", self.alpha, above=True)
        check_number("learning_rate", self.learning_rate, above=True)
        for name in ("k", "epochs", "batch_size"):
            check_whole(name, getattr(self, name))

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(1, keepdim=True)
        unit = (A - mean).square().mean((1, 2), keepdim=True).sqrt()
        unit = torch.where(unit > 0, unit, 1.0)
        X = (A - mean) / unit
        generator = self._generator()
        gate = gate_of(self.variant, min(self.k, self.n_concepts), self.alpha)
        W = self._start(X, start, generator)
        if start is None or self.variant in ("topk", "batchtopk"):
            model = _Autoencoder(W, W, torch.zeros_like(W[:, :1]), gate)
            model.match_size(X[:, : self.batch_size])
        else:
            model = _Autoencoder(W, *_encoder_of(W, X, self.alpha), gate)
        _train(model, X, self.epochs, self.batch_size, self.learning_rate, generator)
        with torch.no_grad():
            offset = mean + unit * model.b
            pre = (A - offset) @ model.E + unit * model.c
            codes = gate.infer(pre, model.threshold() * unit)
            solution = Solution(codes, model.W.detach(), offset)
        K = len(A)
        solution.n_iter, solution.converged = [self.epochs] * K, [True] * K
        order, _ = solution.canonical(signed=False, ordered=start is None)
        columns = order[:, None, :]
        solution.state["encoder"] = torch.take_along_dim(model.E.detach(), columns, 2)
        solution.state["bias"] = torch.take_along_dim(model.c.detach() * unit, columns, 2)[:, 0]
        threshold = model.threshold().expand_as(model.c) * unit
        solution.state["limit"] = torch.take_along_dim(threshold, columns, 2)[:, 0]
        solution.state["dead"] = (solution.codes == 0).all(1).sum(1)
        return solution

    def _start(self, X: Tensor, start: Tensor | None, generator: torch.Generator) -> Tensor:
        """Return unit dictionary columns (K, m, r): samples, or the given dictionary."""
        _, n, m = X.shape
        r = self.n_concepts
        noise = torch.randn(m, r, generator=generator, dtype=torch.float64).to(X)
        chosen = torch.randperm(n, generator=generator)[torch.arange(r) % n].to(X.device)
        W = X[:, chosen].mT + 0.1 * noise if start is None else start + 1e-6 * noise
        return W / torch.linalg.vector_norm(W, dim=1, keepdim=True)

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        pre = A @ self._fitted("_encoder", A) + self._fitted("_bias", A)
        gate = gate_of(self.variant, min(self.k, self.n_concepts), self.alpha)
        return gate.infer(pre[None], self._fitted("_limit", A)[None, None])[0]

    @property
    def encoder_(self) -> Any:
        """Weights E (m, r) of the encoder."""
        return self._encoder

    @property
    def encoder_bias_(self) -> Any:
        """Bias c (r,) of the encoder."""
        return self._bias * self._scale

    @property
    def threshold_(self) -> Any:
        """Threshold (r,) that pre-activations must exceed."""
        return self._limit * self._scale

    @property
    def dead_(self) -> int:
        """Number of concepts that no sample uses."""
        return int(self._dead)


def _encoder_of(W: Tensor, X: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Return weights E (K, m, r) and bias c (K, 1, r) that suit a given dictionary (K, m, r).

    A dictionary says nothing of its encoder, which takes many epochs to learn. So the codes of `X`
    that the loss asks for are found, and E and c regressed on them: on what a ReLU lets through,
    and from above where it lets nothing through (a Tobit model, by EM). A gate that keeps the k
    largest codes ranks better by W itself.
    """
    K, n, m = X.shape
    codes = X.new_zeros(K, W.shape[2], n)
    rule = Factor("nonnegative", X.new_full((K, 1), alpha * m / 2))
    sweep(codes, W.mT @ W, W.mT @ X.mT, rule, CODE_SWEEPS)
    moment = torch.stack([column_gram(x) for x in X]).double()
    moment.diagonal(dim1=1, dim2=2).add_(RIDGE * n)
    factor, aim = torch.linalg.cholesky(moment), codes
    for step in range(TOBIT_STEPS):
        c = aim.mean(2, keepdim=True)
        E = torch.cholesky_solve(((aim - c) @ X).mT.double(), factor).to(X)
        if step + 1 < TOBIT_STEPS:
            aim = torch.where(codes > 0, codes, (E.mT @ X.mT + c).clamp(max=0))
    return E, c.mT


class _Autoencoder:
    """Parameters of K autoencoders side by side: E, W (K, m, r), c (K, 1, r), b (K, 1, m)."""

    def __init__(self, W: Tensor, E: Tensor, c: Tensor, gate: Gate) -> None:
        self.gate = gate
        self.W = W.clone().requires_grad_()
        self.E = E.clone().requires_grad_()
        self.c = c.clone().requires_grad_()
        self.b = torch.zeros_like(W[:, :, :1].mT).requires_grad_()
        self.extra = gate.parameters(self.c)

    @torch.no_grad()
    def match_size(self, X: Tensor) -> None:
        """Scale the encoder so that reconstructions start with the size that suits `X` best."""
        fitted = self.gate.infer(X @ self.E, torch.zeros_like(self.c)) @ self.W.mT
        square = fitted.square().sum((1, 2), keepdim=True)
        factor = (fitted * X).sum((1, 2), keepdim=True) / square.clamp(min=1e-30)
        self.E *= factor.clamp(min=0.01, max=1.0)

    def parameters(self) -> list[Tensor]:
        return [self.W, self.E, self.c, self.b, *self.extra]

    def threshold(self) -> Tensor:
        return self.gate.threshold(self.extra, self.c).detach()

    def pre(self, X: Tensor) -> Tensor:
        return (X - self.b) @ self.E + self.c

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return codes, reconstruction and penalty (K,)."""
        codes, penalty = self.gate.train(self.pre(X), self.extra)
        return codes, codes @ self.W.mT + self.b, penalty


@torch.enable_grad()
def _train(
    model: _Autoencoder,
    X: Tensor,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
) -> None:
    """Train by Adam; every autoencoder of the stack sees the same batches."""
    n = X.shape[1]
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, foreach=True)
    for epoch in range(epochs):
        progress = max(0.0, (epoch + 1 - DECAY_FROM * epochs) / ((1 - DECAY_FROM) * epochs))
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - 0.95 * progress)
        order = torch.randperm(n, generator=generator).to(X.device)
        used = torch.zeros_like(model.c, dtype=torch.bool)
        for index in order.split(batch_size):
            rows = X[:, index]
            codes, fitted, penalty = model(rows)
            loss = (fitted - rows).square().mean((1, 2)) + penalty
            optimizer.zero_grad(set_to_none=True)
            loss.sum().backward()
            optimizer.step()
            with torch.no_grad():
                used |= (codes > 0).any(1, keepdim=True)
                model.W /= torch.linalg.vector_norm(model.W, dim=1, keepdim=True).clamp(min=1e-12)
        if epoch + 1 <= RESAMPLE_UNTIL * epochs and not bool(used.all()):
            _resample(model, X, ~used[:, 0], optimizer)


@torch.no_grad()
def _resample(
    model: _Autoencoder, X: Tensor, dead: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    """Point dead concepts (K, r) at the residuals of the samples that are reconstructed worst.

    Their encoders get the mean size of the others': unit ones, of which many see the same residual,
    would all answer it at once, many times over.
    """
    _, fitted, _ = model(X)
    size = torch.linalg.vector_norm(model.E, dim=1)
    for k in torch.nonzero(dead.any(1))[:, 0].tolist():
        concepts = torch.nonzero(dead[k])[:, 0]
        rest = X[k] - fitted[k]
        worst = torch.topk(rest.square().sum(1), min(len(concepts), len(rest))).indices
        concepts = concepts[: len(worst)]
        rows = rest[worst]
        rows = rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp(min=1e-12)
        used = size[k][~dead[k]]
        model.W[k][:, concepts] = rows.mT
        model.E[k][:, concepts] = rows.mT * (used.mean() if len(used) else 1.0)
        model.c[k, 0, concepts] = 0.0
        for parameter in (model.W, model.E, model.c):
            for moment in ("exp_avg", "exp_avg_sq"):
                optimizer.state[parameter][moment][k][..., concepts] = 0.0
    added = model(X)[1] - fitted
    for k in torch.nonzero(dead.any(1))[:, 0].tolist():
        rest = X[k] - fitted[k]
        if (rest - added[k]).square().sum() > OVERSHOT * rest.square().sum():
            best = (added[k] * rest).sum() / added[k].square().sum()
            model.E[k][:, dead[k]] *= best.clamp(min=0.01, max=1.0)
