"""Do two steps of gradient descent commute? See Xu 2026, sec. 3.3.2.

θ_AB takes a step on batch A and then one on batch B; θ_BA the other way round. Their difference is
of second order in the learning rate and is lost when the two are subtracted in float32; here only
gradients are subtracted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ontogeny.errors import ArgumentError, NonFiniteError, check_choice

from .field import GradientField, Loss, Vector, inner, norm

METHODS = ("difference", "bracket")


@dataclass(frozen=True, eq=False)
class Commutator:
    """θ_AB − θ_BA of two batches, with the gradients that it is made of.

    Parameters
    ----------
    delta
        ``{name: tensor}``, one for each trainable parameter, in the dtype of the computation.
    gradient_a, gradient_b
        Gradients of the two batches at the model's parameters, in the same form.
    loss_a, loss_b
        Their losses.
    lr
        Learning rate η.
    method
        ``"difference"`` or ``"bracket"``.
    """

    delta: Vector
    gradient_a: Vector
    gradient_b: Vector
    loss_a: float
    loss_b: float
    lr: float
    method: str

    @property
    def norm(self) -> float:
        """Norm ‖θ_AB − θ_BA‖ over all parameters."""
        return norm(self.delta)

    @property
    def defect(self) -> float:
        """Norm of the commutator over those of the two steps: ‖θ_AB − θ_BA‖ / (‖η g_A‖ ‖η g_B‖).

        Raises
        ------
        NonFiniteError
            If a gradient is zero, where it is not defined.
        """
        return self.norm / (self.lr**2 * self._norms()[0] * self._norms()[1])

    @property
    def cosine(self) -> float:
        """Cosine of the two gradients.

        Raises
        ------
        NonFiniteError
            If a gradient is zero, where it is not defined.
        """
        first, second = self._norms()
        return inner(self.gradient_a, self.gradient_b) / (first * second)

    def _norms(self) -> tuple[float, float]:
        norms = norm(self.gradient_a), norm(self.gradient_b)
        if 0.0 in norms:
            raise NonFiniteError(
                "the gradient of a batch is zero, so defect and cosine are undefined."
            )
        return norms


def commutator(
    model: nn.Module,
    loss: Loss,
    batch_a: Any,
    batch_b: Any,
    lr: float,
    *,
    method: str = "difference",
    dtype: torch.dtype | str | None = None,
    random_state: int = 0,
) -> Commutator:
    """Return θ_AB − θ_BA of two steps of gradient descent on batches A and B.

    Parameters
    ----------
    model
        Any module. Nothing of it is changed: parameters and buffers are exchanged for copies during
        a call, also when the loss raises. Its mode is kept; dropout masks are the same in all
        gradients of a batch.
    loss
        ``loss(model, batch)``: a scalar tensor. It must use the `model` that it is given.
    batch_a, batch_b
        What the loss takes.
    lr
        Learning rate η.
    method
        ``"difference"``: η[(g_A(θ − ηg_B) − g_A(θ)) − (g_B(θ − ηg_A) − g_B(θ))], which equals
        θ_AB − θ_BA and does not cancel. ``"bracket"``: η²(H_B g_A − H_A g_B) by Hessian-vector
        products, its limit for small η; the two differ by a share of order η.
    dtype
        ``"float64"``, ``"float32"``, or None: float64 for up to 20 million parameters. In float64
        the model's own casts to float32 are kept from happening.
    random_state
        Seed of dropout.

    Returns
    -------
    Commutator
        With ``.delta`` {name: tensor}, ``.norm``, ``.defect``, ``.cosine``.

    Raises
    ------
    ArgumentError
        If an argument is not what it must be, or the loss is no scalar.
    NonFiniteError
        If a loss or gradient is not finite.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    >>> result = commutator(
    ...     model,
    ...     lambda m, x: m(x).square().mean(),
    ...     torch.randn(5, 3),
    ...     torch.randn(5, 3),
    ...     lr=1e-3,
    ... )
    >>> (
    ...     list(result.delta) == [name for name, _ in model.named_parameters()],
    ...     result.norm < 1e-4,
    ... )
    (True, True)
    """
    pairs = commutators(
        model,
        loss,
        [batch_a, batch_b],
        lr,
        method=method,
        dtype=dtype,
        random_state=random_state,
    )
    return next(pairs)


def commutators(
    model: nn.Module,
    loss: Loss,
    batches: Sequence[Any],
    lr: float,
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    method: str = "difference",
    dtype: torch.dtype | str | None = None,
    random_state: int = 0,
) -> Iterator[Commutator]:
    """Yield `commutator` of each pair of batches; a batch's own gradient is computed once.

    One pair is held at a time, beside the gradients of batches that come again.

    Parameters
    ----------
    model, loss, lr, method, dtype, random_state
        As in `commutator`.
    batches
        The batches.
    pairs
        Positions (A, B) in `batches`; by default (0, 1), (2, 3), ..., for which there must be an
        even number of them.

    Yields
    ------
    Commutator
        In the order of `pairs`.

    Raises
    ------
    ArgumentError, NonFiniteError
        As in `commutator`.

    Examples
    --------
    >>> model = nn.Linear(3, 1)
    >>> batches = torch.eye(3)[:, None]
    >>> every = [(0, 1), (0, 2), (1, 2)]
    >>> results = commutators(
    ...     model, lambda m, x: m(x).square().mean(), batches, 0.1, every
    ... )
    >>> sum(1 for _ in results)
    3
    """
    check_choice("method", method, METHODS)
    if isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < math.inf:
        raise ArgumentError(f"lr must be a positive finite number; got {lr!r}.")
    indices = _pairs(pairs, len(batches))
    field = GradientField(model, loss, dtype, random_state)
    return _results(field, batches, float(lr), indices, method)


def _pairs(
    pairs: Sequence[tuple[int, int]] | None, count: int
) -> list[tuple[int, int]]:
    if pairs is None:
        if count % 2:
            raise ArgumentError(
                f"{count} batches do not make whole pairs; give an even number of them, or pairs=."
            )
        pairs = [(i, i + 1) for i in range(0, count - 1, 2)]
    try:
        indices = [(int(a), int(b)) for a, b in pairs]
    except (TypeError, ValueError):
        indices = []
    if not indices or any(
        a == b or not (0 <= a < count and 0 <= b < count) for a, b in indices
    ):
        raise ArgumentError(
            f"pairs must be positions of two different batches out of {count}; got {pairs!r}."
        )
    return indices


def _results(
    field: GradientField,
    batches: Sequence[Any],
    lr: float,
    pairs: list[tuple[int, int]],
    method: str,
) -> Iterator[Commutator]:
    uses = Counter(i for pair in pairs for i in pair)
    gradients: dict[int, tuple[float, Vector]] = {}
    for pair in pairs:
        for i in pair:
            if i not in gradients:
                gradients[i] = field.gradient(batches[i], seed=i)
        (loss_a, gradient_a), (loss_b, gradient_b) = (gradients[i] for i in pair)
        delta = _delta(field, batches, pair, (gradient_a, gradient_b), lr, method)
        uses.subtract(pair)
        for i in pair:
            if not uses[i]:
                del gradients[i]
        yield Commutator(delta, gradient_a, gradient_b, loss_a, loss_b, lr, method)


def _delta(
    field: GradientField,
    batches: Sequence[Any],
    pair: tuple[int, int],
    gradients: tuple[Vector, Vector],
    lr: float,
    method: str,
) -> Vector:
    (a, b) = pair
    (gradient_a, gradient_b) = gradients
    if method == "bracket":
        of_b = field.derivative(batches[b], gradient_a, seed=b)
        of_a = field.derivative(batches[a], gradient_b, seed=a)
        return {name: lr**2 * (of_b[name] - of_a[name]) for name in of_a}
    _, a_after_b = field.gradient(batches[a], field.moved(gradient_b, -lr), seed=a)
    _, b_after_a = field.gradient(batches[b], field.moved(gradient_a, -lr), seed=b)
    return {
        name: lr
        * ((a_after_b[name] - gradient_a[name]) - (b_after_a[name] - gradient_b[name]))
        for name in gradient_a
    }
