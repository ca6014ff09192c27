"""Trajectories with known truth: what every observable and verdict can be held against.

The activations of a planted run are written down, not learned: sparse codes times a dictionary
that moves, or does not, in a known way. They are the rows of lookup tables inside a model, so that
capture, observables and studies read them as they read any other model's.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.errors import ArgumentError, check_choice
from ontogeny.inputs import Inputs
from ontogeny.trajectory import Trajectory


class PlantedModel(nn.Module):
    """A model whose layer ``layers.k`` outputs a given row for each token: nothing is computed.

    Parameters
    ----------
    activations
        (layers, vocabulary, features): row v of layer k is what token v gives there.

    Examples
    --------
    >>> model = PlantedModel(torch.ones(2, 5, 3))
    >>> model(torch.tensor([[0, 4]])).shape
    torch.Size([1, 2, 3])
    """

    def __init__(self, activations: Tensor) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Embedding.from_pretrained(a) for a in activations.float()
        )

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Return the last layer's activations (texts, tokens, features)."""
        found = input_ids
        for layer in self.layers:
            found = layer(input_ids)
        return found


@dataclass(frozen=True)
class Planted:
    """A planted run and its truth.

    Attributes
    ----------
    kind
        What was planted, see `planted`.
    trajectory, inputs
        The run, and inputs in which each token occurs once.
    activations
        (T, layers, n, m) float32: what the layers output.
    dictionaries
        (T, layers, m, r): the true concepts, before noise.
    develops
        Whether a function of the activations changes in a directed way: a change that neither a
        change of basis nor noise explains.
    boundary
        Step at which the noisy regime begins, or None.
    concept
        The one concept that is born or splits, or None.
    """

    kind: str
    trajectory: Trajectory
    inputs: Inputs
    activations: np.ndarray
    dictionaries: np.ndarray
    develops: bool
    boundary: int | None = None
    concept: int | None = None


@dataclass(frozen=True)
class _Plan:
    """What stays the same over the steps of one layer, and the position of each step."""

    codes: np.ndarray  # (n, r)
    first: np.ndarray  # (m, r)
    last: np.ndarray  # (m, r)
    progress: np.ndarray  # (T,) 0 to 1
    noise: float
    memory: float
    rng: np.random.Generator


def planted(
    kind: str,
    *,
    steps: Any = None,
    n: int = 300,
    m: int = 16,
    r: int = 6,
    layers: int = 2,
    noise: float = 0.05,
    memory: float = 0.5,
    random_state: int = 0,
) -> Planted:
    """Make a run of which it is known what happens.

    Parameters
    ----------
    kind
        - ``"nothing"``: the same activations at every step
        - ``"noise"``: independent noise around the same activations
        - ``"memory"``: stationary noise around the same activations that remembers: its
          correlation is `memory` to the power of the number of checkpoints between
        - ``"walk"``: a random walk of the activations, by `noise` from checkpoint to checkpoint:
          it gets somewhere else without any direction
        - ``"basis"``: an unrelated orthogonal basis at every step
        - ``"rotation"``: the basis turns steadily
        - ``"drift"``: the dictionary goes from one to another
        - ``"birth"``: one concept's strength rises from zero
        - ``"split"``: one concept becomes two, each used by half of its tokens
        - ``"regimes"``: the dictionary approaches its end smoothly until a boundary, and then
          only fluctuates

        In all but the first, noise is added at every step.
    steps
        Increasing steps; 0, 1, 2, 4, ... 16,384 by default.
    n, m, r, layers
        Tokens, features, concepts, layers (independent of each other).
    noise
        Standard deviation of the noise, against that of the activations.
    memory
        Correlation of the noise at neighbouring checkpoints, of ``"memory"`` alone.
    random_state
        Seed of everything.

    Raises
    ------
    ArgumentError
        If the kind is unknown, there are fewer than six steps, r exceeds m or is below 2, or noise
        or memory is out of range.

    Examples
    --------
    >>> run = planted("birth", random_state=1)
    >>> run.develops, run.concept, run.activations.shape
    (True, 0, (16, 2, 300, 16))
    """
    check_choice("kind", kind, PLANTED)
    given = [0, *(2**k for k in range(15))] if steps is None else list(steps)
    try:
        steps = [operator.index(step) for step in given]
    except TypeError:
        raise ArgumentError(f"steps must be whole numbers; got {given!r}.") from None
    if len(steps) < 6 or any(b <= a for a, b in itertools.pairwise(steps)):
        raise ArgumentError(f"steps must be at least six, increasing; got {steps}.")
    if not 2 <= r <= m or n < 2 * r or layers < 1:
        raise ArgumentError(
            "r must lie between 2 and m, n be at least 2 r and layers at least 1; "
            f"got r={r}, m={m}, n={n}, layers={layers}."
        )
    if not 0 <= noise < 1:
        raise ArgumentError(f"noise must lie in [0, 1); got {noise}.")
    if not 0 <= memory < 1:
        raise ArgumentError(f"memory must lie in [0, 1); got {memory}.")
    rng = np.random.default_rng(random_state)
    plans = [_plan(len(steps), n, m, r, noise, memory, rng) for _ in range(layers)]
    made = [PLANTED[kind](plan) for plan in plans]
    activations = np.stack([a for a, _ in made], axis=1).astype(np.float32)
    models = {
        step: PlantedModel(torch.from_numpy(a))
        for step, a in zip(steps, activations, strict=True)
    }
    if (
        kind == "nothing"
    ):  # a suite whose checkpoints are all equal is refused: mark each step
        for step, model in models.items():
            model.register_buffer("step", torch.tensor(step))
    boundary = steps[_boundary(len(steps))] if kind == "regimes" else None
    width = min(n, 20)
    ids = [list(range(low, min(low + width, n))) for low in range(0, n, width)]
    return Planted(
        kind=kind,
        trajectory=Trajectory.from_models(models),
        inputs=Inputs.from_tokens(ids, vocab_size=n),
        activations=activations,
        dictionaries=np.stack([d for _, d in made], axis=1),
        develops=kind in ("drift", "birth", "split", "regimes"),
        boundary=boundary,
        concept=0 if kind in ("birth", "split") else None,
    )


def _plan(
    T: int,
    n: int,
    m: int,
    r: int,
    noise: float,
    memory: float,
    rng: np.random.Generator,
) -> _Plan:
    """Draw sparse codes and the first and last dictionary of one layer."""
    codes = rng.laplace(size=(n, r)) * (rng.uniform(size=(n, r)) < 0.5)
    first, last = (_unit(rng.standard_normal((m, r))) for _ in range(2))
    place = np.linspace(-1, 1, T)
    progress = 1 / (1 + np.exp(-5 * place))
    progress = (progress - progress[0]) / (progress[-1] - progress[0])
    return _Plan(codes, first, last, progress, noise, memory, rng)


def _unit(W: np.ndarray) -> np.ndarray:
    return W / np.linalg.norm(W, axis=-2, keepdims=True)


def _render(
    plan: _Plan, W: np.ndarray, noise: np.ndarray | float | None = None
) -> np.ndarray:
    """Return activations (T, n, m) of dictionaries (T, m, r), with fresh noise at every step."""
    clean = plan.codes @ W.swapaxes(1, 2)
    level = plan.noise if noise is None else noise
    size = np.asarray(level).reshape(-1, 1, 1) * clean.std()
    return clean + size * plan.rng.standard_normal(clean.shape)


def _still(plan: _Plan) -> np.ndarray:
    return np.repeat(plan.last[None], len(plan.progress), axis=0)


def _nothing(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    W = _still(plan)
    return np.repeat(_render(plan, W[:1]), len(W), axis=0), W


def _noise(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    W = _still(plan)
    return _render(plan, W), W


def _memory(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    W = _still(plan)
    noise = _fresh(plan, W)
    for t in range(1, len(W)):
        noise[t] = plan.memory * noise[t - 1] + np.sqrt(1 - plan.memory**2) * noise[t]
    return plan.codes @ W.swapaxes(1, 2) + noise, W


def _walk(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    W = _still(plan)
    return plan.codes @ W.swapaxes(1, 2) + np.cumsum(_fresh(plan, W), axis=0), W


def _fresh(plan: _Plan, W: np.ndarray) -> np.ndarray:
    """Return independent noise (T, n, m) of the planned size."""
    return _render(plan, W) - plan.codes @ W.swapaxes(1, 2)


def _basis(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    m = len(plan.last)
    turns = [np.linalg.qr(plan.rng.standard_normal((m, m)))[0] for _ in plan.progress]
    W = np.stack([q @ plan.last for q in turns])
    return _render(plan, W), W


def _rotation(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import expm

    m = len(plan.last)
    S = plan.rng.standard_normal((m, m))
    S = (S - S.T) / np.sqrt(2 * m)
    W = np.stack([expm((1 - p) * S) @ plan.last for p in plan.progress])
    return _render(plan, W), W


def _drift(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    p = plan.progress[:, None, None]
    W = (1 - p) * plan.first + p * plan.last
    return _render(plan, W), W


def _birth(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    W = _still(plan)
    W[:, :, 0] *= plan.progress[:, None]
    return _render(plan, W), W


def _split(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Concept 0 goes to w0 + w1, and concept 1, used by the other half, to w0 - w1."""
    half = plan.rng.uniform(size=len(plan.codes)) < 0.5
    codes = plan.codes.copy()
    codes[:, 1] = np.where(half, 0.0, plan.codes[:, 0])
    codes[:, 0] = np.where(half, plan.codes[:, 0], 0.0)
    W = _still(plan)
    apart = plan.progress[:, None] * plan.last[:, 1]
    W[:, :, 0], W[:, :, 1] = plan.last[:, 0] + apart, plan.last[:, 0] - apart
    moved = replace(plan, codes=codes)
    return _render(moved, W), W


def _boundary(T: int) -> int:
    return T // 2


def _regimes(plan: _Plan) -> tuple[np.ndarray, np.ndarray]:
    """Return an approach with little noise up to the middle, then full noise and no trend."""
    T = len(plan.progress)
    left = np.exp(-4 * np.arange(T) / _boundary(T))
    left[_boundary(T) :] = 0.0
    W = plan.last + left[:, None, None] * (plan.first - plan.last)
    levels = np.where(np.arange(T) < _boundary(T), plan.noise / 5, plan.noise)
    return _render(plan, W, levels), W


PLANTED: Mapping[str, Callable[[_Plan], tuple[np.ndarray, np.ndarray]]] = {
    "nothing": _nothing,
    "noise": _noise,
    "memory": _memory,
    "walk": _walk,
    "basis": _basis,
    "rotation": _rotation,
    "drift": _drift,
    "birth": _birth,
    "split": _split,
    "regimes": _regimes,
}
"""What can be planted."""
