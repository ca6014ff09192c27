"""Concepts at each step, and how far they still are from the reference step's (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from .. import concepts, distances
from ..errors import ArgumentError, check_choice
from ..needs import Activations, Need, Reference
from .base import Observable, Reading, Run, by_layer
from .concept_figures import summarise_concepts

__all__ = ["ALIGNMENTS", "Concepts"]

ALIGNMENTS = ("as returned", "matched", "rotation removed")
_RESAMPLES = 3


@dataclass(frozen=True)
class Concepts(Observable):
    """A concept extractor fitted at every step and layer, compared with the reference step.

    At each step the dictionary W_t (m, r) is compared with W_ref three ways: ``as returned`` by
    the solver; ``matched``, concepts permuted and signed to fit; ``rotation removed``, activations
    first turned onto the reference's by the best orthogonal map, then matched. At about five steps
    it is refitted on three bootstrap resamples of the tokens and, where the solver depends on a
    seed, with three other seeds (decision 12), and compared with what chance gives.

    Parameters
    ----------
    extractor
        Name of an extractor, see ``ontogeny.concepts.names()``.
    n_concepts
        Number r of concepts.
    layers
        Glob or globs over module paths.
    distances
        Names of distances, see ``ontogeny.distances.names()``.
    on, tokens, max_tokens, random_state
        Which tokens; `random_state` also seeds the solver, equally at every step.
    init
        ``"seeded"``: the same seed at every step; ``"reference"``: start from the reference
        step's dictionary.
    options
        Further arguments of the extractor.
    label
        Name of the node, where a study holds the same extractor twice.

    Examples
    --------
    >>> Concepts("ica", n_concepts=20, layers="model.layers.*.mlp").name
    'concepts-ica'
    """

    extractor: str
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "model.layers.*.mlp"
    distances: tuple[str, ...] = ("frobenius", "procrustes")
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    init: str = "seeded"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None

    kind: ClassVar[str] = "concepts"
    uses_noise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("extractor", self.extractor, concepts.names())
        check_choice("init", self.init, ("seeded", "reference"))
        if isinstance(self.distances, str):
            raise ArgumentError(f"distances must be a list of names; got {self.distances!r}.")
        if not self.distances:
            raise ArgumentError("distances must name at least one distance; got none.")
        object.__setattr__(self, "distances", tuple(self.distances))
        for name in self.distances:
            check_choice("distances", name, distances.names())
        self._estimator(self.random_state)
        self.needs()

    @property
    def name(self) -> str:
        """The label, or ``concepts-`` and the extractor."""
        return self.label or f"concepts-{self.extractor}"

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        own = Activations(self.layers, self.on, self.tokens, self.max_tokens, self.random_state)
        return [own, Reference(own)]

    def prepare(self, run: Run) -> xr.Dataset:
        """Fit the reference step's dictionaries."""
        values = run.reading(run.reference_step)[self.needs()[0]]
        return by_layer(values, lambda _, A: {"dictionary": self._dictionary(A, None)})

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return dictionaries, fits and distances of every layer."""
        if state is None:
            raise ArgumentError(f"{self.name} needs the state that prepare() returns; got None.")
        own, reference = self.needs()
        there = reading[reference]

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            W_ref = torch.as_tensor(_trimmed(state, path, A.shape[1])).to(A)
            return self._observe_layer(A, there[path].to(A), W_ref, reading.noise)

        return by_layer(reading[own], one)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add noise floors, development rows, words and figures."""
        return summarise_concepts(data, self.extractor, self.distances)

    def _observe_layer(
        self, A: torch.Tensor, A_ref: torch.Tensor, W_ref: torch.Tensor, noise: bool
    ) -> dict[str, Any]:
        estimator, W = self._fit(A, W_ref, self.random_state)
        rotation = _rotation(A, A_ref)
        result: dict[str, Any] = {
            "dictionary": _dictionary_array(W),
            "norm": float(W.norm()),
            "reconstruction_error": float(estimator.reconstruction_error_) / float(A.norm()),
            "iterations": float(estimator.n_iter_),
            "converged": float(estimator.converged_),
        }
        result |= self._compared(W, W_ref, rotation)
        if noise:
            result |= self._noise(A, A_ref, W, W_ref, rotation)
        return result

    def _compared(
        self, W: torch.Tensor, V: torch.Tensor, rotation: torch.Tensor
    ) -> dict[str, xr.DataArray]:
        """Return distances (distance, alignment) of W to V, absolute and relative to the norms."""
        values = np.array([self._distances(W, V, rotation)]).reshape(len(self.distances), -1)
        norm = float((W.square().sum() + V.square().sum()).sqrt())
        return {
            "distance_to_reference": self._labelled(values),
            "relative_distance": self._labelled(values / norm),
        }

    def _distances(
        self, W: torch.Tensor, V: torch.Tensor, rotation: torch.Tensor
    ) -> list[list[float]]:
        turned = rotation.T @ W
        pairs = (W, _matched(V, W), _matched(V, turned))
        return [[distances.distance(name, V, X) for X in pairs] for name in self.distances]

    def _noise(
        self,
        A: torch.Tensor,
        A_ref: torch.Tensor,
        W: torch.Tensor,
        W_ref: torch.Tensor,
        rotation: torch.Tensor,
    ) -> dict[str, xr.DataArray]:
        """Return relative distances of refits to this fit and to the reference, and of chance."""
        identity = torch.eye(A.shape[1], dtype=A.dtype, device=A.device)
        refits = self._refits(A, W_ref)
        to_fit = np.stack([self._relative(V, W, identity) for V in refits])
        to_reference = np.stack([self._relative(V, W_ref, rotation) for V in refits])
        chance = np.stack([self._chance(A, A_ref, W, W_ref, draw) for draw in range(_RESAMPLES)])
        return {
            "refit_distance": self._labelled(to_fit, "refit"),
            "refit_to_reference": self._labelled(to_reference, "refit"),
            "chance_distance": self._labelled(chance, "draw"),
        }

    def _refits(self, A: torch.Tensor, W_ref: torch.Tensor) -> list[torch.Tensor]:
        rng = np.random.default_rng([self.random_state, 1])
        fits = []
        for _ in range(_RESAMPLES):
            rows = torch.from_numpy(np.sort(rng.integers(0, len(A), len(A)))).to(A.device)
            fits.append(self._fit(A[rows], None, self.random_state)[1])
        if "random_state" in self._estimator(0).get_params() and self.extractor not in _EXACT:
            seeds = range(self.random_state + 1, self.random_state + 1 + _RESAMPLES)
            fits += [self._fit(A, None, seed)[1] for seed in seeds]
        return fits

    def _chance(
        self,
        A: torch.Tensor,
        A_ref: torch.Tensor,
        W: torch.Tensor,
        W_ref: torch.Tensor,
        draw: int,
    ) -> np.ndarray:
        """Return distances where nothing is shared: a random basis, or tokens out of order."""
        generator = torch.Generator().manual_seed(1000 * self.random_state + draw)
        gauss = torch.randn(A.shape[1], A.shape[1], generator=generator, dtype=torch.float64)
        basis = torch.linalg.qr(gauss).Q.to(A)
        order = torch.randperm(len(A), generator=generator).to(A.device)
        random_basis = self._relative(basis @ W, W_ref, torch.eye(A.shape[1]).to(A))
        out_of_order = self._relative(W, W_ref, _rotation(A[order], A_ref))
        return np.concatenate([random_basis[:, :2], out_of_order[:, 2:]], axis=1)

    def _relative(self, W: torch.Tensor, V: torch.Tensor, rotation: torch.Tensor) -> np.ndarray:
        return np.asarray(self._compared(W, V, rotation)["relative_distance"].values)

    def _fit(
        self, A: torch.Tensor, start: torch.Tensor | None, seed: int
    ) -> tuple[Any, torch.Tensor]:
        estimator = self._estimator(seed)
        initial = start if self.init == "reference" else None
        estimator.fit(A, init_dictionary=initial)
        return estimator, estimator.components_.T

    def _dictionary(self, A: torch.Tensor, start: torch.Tensor | None) -> xr.DataArray:
        return _dictionary_array(self._fit(A, start, self.random_state)[1])

    def _estimator(self, seed: int) -> Any:
        return concepts.make(
            self.extractor, n_concepts=self.n_concepts, random_state=seed, **self.options
        )

    def _labelled(self, values: np.ndarray, first: str | None = None) -> xr.DataArray:
        dims = ("distance", "alignment")
        coords = {"distance": list(self.distances), "alignment": list(ALIGNMENTS)}
        return xr.DataArray(values, dims=(first, *dims) if first else dims, coords=coords)


_EXACT = ("svd", "pca")


def _rotation(A: torch.Tensor, A_ref: torch.Tensor) -> torch.Tensor:
    """Return the orthogonal Q (m, m) that brings A Q nearest to A_ref."""
    return distances.align(A_ref, A, under="rotation").transform


def _matched(W: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Return V with its concepts permuted and signed to lie nearest to those of W."""
    return distances.align(W, V, under="signed-permutation").aligned


def _dictionary_array(W: torch.Tensor) -> xr.DataArray:
    return xr.DataArray(W.detach().cpu().numpy().astype(np.float32), dims=("feature", "concept"))


def _trimmed(state: xr.Dataset, path: str, features: int) -> np.ndarray:
    """Return a layer's dictionary without the padding of wider layers; refuse one that failed."""
    layer = state.sel(layer=path)
    if str(layer.status.item()) != "done":
        raise ArgumentError(f"its reference step {layer.status.item()}")
    return layer.dictionary.values[:features]
