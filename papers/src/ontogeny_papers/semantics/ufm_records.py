"""What is kept of the training of free embeddings, and the theory beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.arrays import Array, namespace, to_numpy
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.wordspace.order import first_crossing

from .gradient_flow import closed_form, half_times
from .objectives import Objective
from .subspaces import leading_directions, subspace_overlap

OVERLAPS = (1, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class UfmBasis:
    """The concepts of S̃ that fit into d dimensions: U (V, r), sigma (r,), V (m, r)."""

    U: Array
    sigma: Array
    V: Array


def basis_of(S: Array, d: int) -> UfmBasis:
    """Return the leading d concepts of a centred support matrix, or all there are.

    Raises
    ------
    ArgumentError
        If it is zero.
    """
    xp = namespace(S)
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    if float(sigma[0]) == 0:
        raise ArgumentError(
            "S_centred is zero: every word follows every context, nothing to learn."
        )
    rank = int(xp.sum(xp.astype(sigma > 1e-6 * sigma[0], xp.int64)))
    r = min(d, rank)
    return UfmBasis(U[:, :r], sigma[:r], Vt[:r, :].T)


class UfmRecorder:
    """What is kept of the training at chosen iterations."""

    def __init__(self, objective: Objective, basis: UfmBasis, grams: frozenset[int]) -> None:
        self.objective, self.basis, self.grams = objective, basis, grams
        self.ks = [k for k in OVERLAPS if k <= len(basis.sigma)]
        self.directions = {
            name: leading_directions(M, self.ks[-1]) for name, M in objective.candidates().items()
        }
        self._rows: list[dict[str, Any]] = []
        self._grams: list[tuple[float, np.ndarray, np.ndarray]] = []

    def take(self, i: int, time: float, W: Array, H: Array, gram: bool) -> None:
        """Record iteration `i`."""
        L, S = W @ H, self.objective.S
        xp = namespace(L)
        loss = self.objective.value(W, H)
        if not math.isfinite(loss):
            raise NonFiniteError(
                f"the training diverged at iteration {i}; a smaller step_size may help."
            )
        inner = (self.basis.U.T @ W) @ (H @ self.basis.V)
        along = xp.linalg.diagonal(inner)
        norm = float(xp.linalg.vector_norm(L))
        Q = leading_directions(L, self.ks[-1])
        self._rows.append(
            {
                "iteration": i,
                "time": time,
                "loss": loss,
                "projection": to_numpy(along),
                "singular_value": to_numpy(xp.linalg.svdvals(L))[: len(along)],
                "logit_norm": norm,
                "complement_norm": float(
                    xp.linalg.vector_norm(L - self.basis.U @ inner @ self.basis.V.T)
                ),
                "mixing_norm": float(
                    xp.linalg.vector_norm(inner - along * xp.eye(len(along), dtype=along.dtype))
                ),
                "cosine": float(xp.sum(L * S)) / (norm * float(xp.linalg.vector_norm(S)) or 1.0),
                "overlap": [subspace_overlap(U, Q, self.ks) for U in self.directions.values()],
            }
        )
        if gram:
            self._grams.append((time, to_numpy(W @ W.T), to_numpy(H.T @ H)))

    def result(self) -> xr.Dataset:
        """Return all records as one dataset."""
        dims: dict[str, tuple[str, ...]] = {
            "projection": ("time", "concept"),
            "singular_value": ("time", "concept"),
            "overlap": ("time", "matrix", "k"),
        }
        columns = {name: np.array([row[name] for row in self._rows]) for name in self._rows[0]}
        data = xr.Dataset(
            {
                name: (dims.get(name, ("time",)), values)
                for name, values in columns.items()
                if name not in ("time", "iteration")
            },
            coords={
                "time": columns["time"],
                "iteration": ("time", columns["iteration"]),
                "concept": np.arange(1, len(self.basis.sigma) + 1),
                "matrix": list(self.directions),
                "k": self.ks,
            },
        )
        data = data.assign(sigma=("concept", to_numpy(self.basis.sigma).astype(np.float64)))
        if self._grams:
            times, words, contexts = zip(*self._grams, strict=True)
            data = data.assign(
                word_gram=(("gram_time", "word", "word_"), np.array(words)),
                context_gram=(("gram_time", "context", "context_"), np.array(contexts)),
            ).assign_coords(gram_time=list(times))
        return data


def with_theory(data: xr.Dataset, objective: Objective, delta: float) -> xr.Dataset:
    """Return the records with half-times, and with the closed form where it is known."""
    times, series = data.time.values, data.projection.values.T
    sigma = data.sigma.values
    # A projection that ends below zero is no share of a concept: it has no half-time.
    last = np.where(series[:, -1] > 0, series[:, -1], np.nan)
    level = sigma if objective.loss == "square" else last
    data = data.assign(half_time=("concept", first_crossing(times, series, level / 2)))
    if objective.loss == "square" and objective.is_plain:
        data = data.assign(theory=(("time", "concept"), sigma * closed_form(sigma, delta, times)))
        if (np.log(sigma) + 2 * delta > math.log(2)).all():
            data = data.assign(theory_half_time=("concept", half_times(sigma, delta)))
    return _labelled(data)


_LABELS = {
    "projection": ("projection of the logits on the concept", "uᵢᵀ L vᵢ"),
    "singular_value": ("singular value of the logits", "σᵢ(L)"),
    "theory": ("closed form", "σᵢ aᵢ(t)"),
    "sigma": ("singular value of the centred support matrix", "σᵢ"),
    "complement_norm": ("norm of the logits outside the concepts", "‖L − UUᵀLVVᵀ‖"),
    "mixing_norm": ("norm of what mixes the concepts", "‖off-diagonal of UᵀLV‖"),
    "cosine": ("cosine of the logits with the centred support matrix", "cos(L, S̃)"),
    "overlap": ("overlap of the k leading directions", "‖UₖᵀQₖ‖²/k"),
    "logit_norm": ("norm of the logits", "‖L‖"),
    "loss": ("loss with its penalty", ""),
}


def _labelled(data: xr.Dataset) -> xr.Dataset:
    for name, (label, symbol) in _LABELS.items():
        if name in data:
            data[name].attrs.update(long_name=label, symbol=symbol)
    data.time.attrs.update(long_name="time of the flow", units="1")
    return data
