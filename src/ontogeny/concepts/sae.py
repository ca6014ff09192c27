"""Sparse autoencoders: vanilla, TopK, BatchTopK and JumpReLU."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..arrays import Array
from ..errors import DenseCodesWarning, check_choice, check_number, check_whole
from .base import Extractor
from .gates import Gate, gate_of
from .linalg import column_gram, product, unit_rows
from .rows import Factor, next_worst, sweep
from .solution import Solution
from .tensors import if_read, precise

VARIANTS = ("vanilla", "topk", "batchtopk", "jumprelu")
RESAMPLE_UNTIL = 0.5  # dead concepts start again within this part of the training
# Times the squared error, to which concepts that start again must not raise it.
OVERSHOT = 2
DECAY_FROM = 0.6  # from here on the learning rate falls linearly to a twentieth
RIDGE = 1e-3  # against the variance of the activations, where an encoder is regressed
CODE_SWEEPS = 10  # over the codes that it is regressed on
TOBIT_STEPS = 2
# Learned thresholds (their logarithms) need larger steps to get anywhere.
THRESHOLD_PACE = 10
DENSE = 0.4  # share of active concepts from which on codes are dense; a ReLU alone lets half through


@dataclass(eq=False, repr=False, kw_only=True)
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
    active_ : float
        Share of the concepts that a sample uses, in the mean.

    Warns
    -----
    DenseCodesWarning
        If samples use more than 40 % of the concepts in the mean although a penalty (`alpha`)
        should make them sparse. One `alpha` does not suit all activations: the default gives
        dense codes of many.

    References
    ----------
    Bricken et al. (2023); Gao et al., arXiv:2406.04093 (TopK); Bussmann et al.,
    arXiv:2412.06410 (BatchTopK); Rajamanoharan et al., arXiv:2407.14435 (JumpReLU).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(200, 8))
    >>> U = SAE(
    ...     n_concepts=16, variant="topk", k=3, epochs=3, random_state=0
    ... ).fit_transform(A)
    >>> int((U > 0).sum(axis=1).max())
    3
    """

    variant: str = "vanilla"
    alpha: float = 1e-3
    k: int = 10
    epochs: int = 16
    batch_size: int = 512
    learning_rate: float = 3e-3

    def _check_options(self) -> None:
        check_choice("variant", self.variant, VARIANTS)
        check_number("alpha", self.alpha, above=True)
        check_number("learning_rate", self.learning_rate, above=True)
        for name in ("k", "epochs", "batch_size"):
            check_whole(name, getattr(self, name))

    def _held(self, n: int, m: int) -> int:
        return 2 * n * m  # scaled, and the residual where concepts start again

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(0, keepdim=True)
        unit = (A - mean).square().mean().sqrt()
        unit = torch.where(unit > 0, unit, 1.0)
        X = (A - mean) / unit
        generator = self._generator()
        gate = self._gate()
        W = self._start(X, start, generator)
        if start is None or self.variant in ("topk", "batchtopk"):
            model = Autoencoder(W, W, torch.zeros_like(W[:1]), gate)
            model.match_size(X[: self.batch_size])
        else:
            model = Autoencoder(W, *_encoder_of(W, X, self.alpha), gate)
        train(model, X, self.epochs, self.batch_size, self.learning_rate, generator)
        E = model.E.detach()
        W = model.W.detach()
        bias = model.c.detach() * unit
        offset = mean + unit * model.b.detach()
        limit = model.threshold() * unit
        codes = gate.infer(product(A - offset, E) + bias, limit)
        solution = Solution(codes, W, offset, self.epochs)
        order = solution.canonical(signed=False, ordered=start is None)
        solution.state["encoder"] = E[:, order]
        solution.state["bias"] = bias[0, order]
        solution.state["limit"] = limit[0, order]
        solution.state["dead"] = (solution.codes == 0).all(0).sum()
        solution.state["active"] = (
            precise(solution.codes.count_nonzero()) / codes.numel()
        )
        return solution

    def _keep(self, solution: Solution, A: Tensor, like: Array) -> None:
        super()._keep(solution, A, like)
        if self.variant in ("vanilla", "jumprelu") and self.active_ > DENSE:
            warnings.warn(
                f"SAE: a sample uses {self.active_:.0%} of the {self.n_concepts} concepts in the "
                f"mean, which is not sparse; raise alpha ({self.alpha:g}), or take "
                'variant="topk" with the number k of concepts that a sample may use.',
                DenseCodesWarning,
                stacklevel=4,  # the caller of fit_transform, which scikit-learn wraps once
            )

    def _gate(self) -> Gate:
        return gate_of(self.variant, min(self.k, self.n_concepts), self.alpha)

    def _start(
        self, X: Tensor, start: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Return unit dictionary columns (m, r): samples, or the given dictionary."""
        (n, m) = X.shape
        r = self.n_concepts
        noise = torch.randn(m, r, generator=generator, dtype=torch.float64).to(X)
        rows = torch.randperm(n, generator=generator)[torch.arange(r) % n].to(X.device)
        W = X[rows].mT + 0.1 * noise if start is None else start + 1e-6 * noise
        return W / torch.linalg.vector_norm(W, dim=0, keepdim=True)

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        pre = A @ self._fitted("_encoder", A) + self._fitted("_bias", A)
        return self._gate().infer(pre, self._fitted("_limit", A))

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

    @property
    def active_(self) -> float:
        """Share of the concepts that a sample uses, in the mean."""
        return float(self._active)


def _encoder_of(W: Tensor, X: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    """Return weights E (m, r) and bias c (1, r) that suit a given dictionary (m, r).

    A dictionary says nothing of its encoder, which takes many epochs to learn. So the codes of `X`
    that the loss asks for are found, and E and c regressed on them: on what a ReLU lets through,
    and from above where it lets nothing through (a Tobit model, by EM). A gate that keeps the k
    largest codes ranks better by W itself.
    """
    n, m = X.shape
    codes = X.new_zeros(W.shape[1], n)
    rule = Factor("nonnegative", X.new_full((), alpha * m / 2))
    sweep(codes, product(W.mT, W), product(W.mT, X.mT), rule, CODE_SWEEPS)
    moment = precise(column_gram(X))
    moment.diagonal().add_(RIDGE * n)
    factor = torch.linalg.cholesky(moment)
    aim = codes
    for step in range(TOBIT_STEPS):
        c = aim.mean(1, keepdim=True)
        E = torch.cholesky_solve(product(aim - c, X).mT.to(factor), factor).to(X)
        if step + 1 < TOBIT_STEPS:
            aim = torch.where(codes > 0, codes, (product(E.mT, X.mT) + c).clamp(max=0))
    return E, c.mT


class Autoencoder:
    """Parameters of an autoencoder: E, W (m, r), c (1, r), b (1, m)."""

    def __init__(self, W: Tensor, E: Tensor, c: Tensor, gate: Gate) -> None:
        self.gate = gate
        self.W = W.clone().requires_grad_()
        self.E = E.clone().requires_grad_()
        self.c = c.clone().requires_grad_()
        self.b = torch.zeros_like(W[:, :1].mT).requires_grad_()
        self.extra = gate.parameters(self.c)

    @torch.no_grad()
    def match_size(self, X: Tensor) -> None:
        """Scale the encoder so that reconstructions start with the size that suits `X` best."""
        fitted = product(
            self.gate.infer(product(X, self.E), torch.zeros_like(self.c)), self.W.mT
        )
        factor = (fitted * X).sum() / fitted.square().sum().clamp(min=1e-30)
        self.E *= factor.clamp(min=0.01, max=1.0)

    def parameters(self) -> list[Tensor]:
        """Return the trained tensors but those of the gate."""
        return [self.W, self.E, self.c, self.b]

    def threshold(self) -> Tensor:
        """Return what pre-activations must exceed after training, (1, r)."""
        return self.gate.threshold(self.extra, self.c).detach()

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return codes, reconstruction and penalty."""
        codes, penalty = self.gate.train(
            product(X - self.b, self.E) + self.c, self.extra
        )
        return codes, product(codes, self.W.mT) + self.b, penalty


@torch.enable_grad()
def train(
    model: Autoencoder,
    X: Tensor,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
) -> None:
    """Train by Adam."""
    n = len(X)
    orders = torch.stack(
        [torch.randperm(n, generator=generator) for _ in range(epochs)]
    )
    orders = orders.to(X.device)  # at once: each copy waits for a device
    groups: list[dict[str, Any]] = [{"params": model.parameters()}]
    if model.extra:
        groups.append({"params": model.extra, "lr": THRESHOLD_PACE * learning_rate})
    optimizer = torch.optim.Adam(groups, lr=learning_rate, foreach=True)
    rates = [group["lr"] for group in optimizer.param_groups]
    for epoch in range(epochs):
        progress = max(
            0.0, (epoch + 1 - DECAY_FROM * epochs) / ((1 - DECAY_FROM) * epochs)
        )
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * (1 - 0.95 * progress)
        order = orders[epoch]
        used = torch.zeros_like(model.c, dtype=torch.bool)
        for index in order.split(batch_size):
            rows = X[index]
            codes, fitted, penalty = model(rows)
            loss = (fitted - rows).square().mean() + penalty
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                used |= (codes > 0).any(0, keepdim=True)
                model.W /= torch.linalg.vector_norm(model.W, dim=0, keepdim=True).clamp(
                    min=1e-12
                )
        if epoch + 1 <= RESAMPLE_UNTIL * epochs and if_read(used.all()) is not True:
            _resample(model, X, ~used[0], optimizer)


@torch.no_grad()
def _resample(
    model: Autoencoder, X: Tensor, dead: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    """Point dead concepts (r,) at the residuals of the samples that are reconstructed worst.

    Their encoders get the mean size of the others': unit ones, of which many see the same residual,
    would all answer it at once, many times over.
    """
    fitted = model(X)[1]
    rest = X - fitted
    worst, begins = next_worst(dead, rest.square().sum(1))
    columns = unit_rows(rest[worst]).mT
    alive = (~dead).sum()
    total = (torch.linalg.vector_norm(model.E, dim=0) * ~dead).sum()
    size = torch.where(alive > 0, total / alive.clamp(min=1), 1.0)
    model.W.copy_(torch.where(begins, columns, model.W))
    model.E.copy_(torch.where(begins, columns * size, model.E))
    model.c.mul_(~begins)
    for parameter in (model.W, model.E, model.c):
        for moment in ("exp_avg", "exp_avg_sq"):
            optimizer.state[parameter][moment].mul_(~begins)
    added = model(X)[1] - fitted
    best = (added * rest).sum() / added.square().sum()
    over = (rest - added).square().sum() > OVERSHOT * rest.square().sum()
    model.E.mul_(torch.where(dead & over, best.clamp(min=0.01, max=1.0), 1.0))
