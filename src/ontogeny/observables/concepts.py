"""Concepts at each step, and how far they still are from the reference step's (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from .. import concepts, distances
from ..distances.correlations import CORRELATIONS
from ..errors import ArgumentError, CheckpointError, NonFiniteError, check_choice
from ..needs import Activations, Need, Reference
from ..summary import Names
from .arguments import check_names
from .base import Observable, Reading, Run, by_layer
from .concept_figures import VARIABLES, summarise_concepts
from .concept_fits import (
    code_coordinates,
    dictionary_array,
    layer_state,
    make_extractor,
    matched,
    rotation,
)
from .concept_noise import Pair, noise_floors, refits

__all__ = ["ALIGNMENTS", "Concepts"]

ALIGNMENTS = ("as returned", "matched", "rotation removed")
_EXACT = ("svd", "pca")


@dataclass(frozen=True)
class Concepts(Observable):
    """A concept extractor fitted at every step and layer, compared with the reference step.

    At each step the dictionary W_t (m, r) is compared with W_ref three ways: ``as returned`` by
    the solver; ``matched``, concepts permuted and signed to fit; ``rotation removed``, activations
    first turned onto the reference's by the best orthogonal map, then matched. At about five steps
    (``Study(noise=5)``; 0 switches it off) it is refitted from a cold start on three bootstrap
    resamples of the tokens, in the other floating-point precision and, where the solver depends on
    a seed, with three other seeds (decision 12), and compared with what chance gives.

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
    correlations
        Names of correlations with the reference's concepts, see `ontogeny.distances.correlation`;
        ``"weighted"`` weighs each of the reference's concepts by its share of the reference's
        codes, ``"internal"`` is that of this step's own concepts.
    on, tokens, max_tokens, random_state
        Which tokens; `random_state` also seeds the solver, equally at every step.
    init
        ``"seeded"``: the same seed at every step; ``"reference"``: start from the reference
        step's dictionary; ``"chain"``: start from the neighbouring step nearer to the reference.
        The reference step itself is fitted from the seed in every case, so that its distance is 0.
        A chain reads and fits every checkpoint once more, one after the other, before the steps
        are observed.
    keep_codes
        Whether the codes U_t (token, concept) are stored too. They are large: 100 codes of 5,000
        tokens at 48 steps and 12 layers are 1.2 GB. Without them their norms are kept alone.
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
    correlations: tuple[str, ...] = ()
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    init: str = "seeded"
    keep_codes: bool = False
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None

    kind: ClassVar[str] = "concepts"
    version: ClassVar[int] = 4
    uses_noise: ClassVar[bool] = True
    variables: ClassVar[Names] = VARIABLES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("extractor", self.extractor, concepts.names())
        check_choice("init", self.init, ("seeded", "reference", "chain"))
        check_names("distances", self.distances, distances.names())
        check_names("correlations", self.correlations, CORRELATIONS, minimum=0)
        if "internal" in self.correlations and self.n_concepts < 2:
            raise ArgumentError("correlations: 'internal' needs at least two concepts; got 1.")
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
        """Fit the reference step's dictionaries, and with ``init="chain"`` all others in order."""
        values = run.reading(run.reference_step)[self.needs()[0]]
        fits: dict[str, torch.Tensor] = {}

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            _, U, fits[path] = self._fit(A, None, self.random_state)
            codes = U.detach().cpu().numpy().astype(np.float32)
            return {
                "dictionary": dictionary_array(fits[path]),
                "codes": (("token", "concept"), codes),
            }

        state = by_layer(values, one)
        return state.assign(self._chain(run, fits)) if self.init == "chain" else state

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return dictionaries, codes in few numbers, and distances of every layer."""
        if state is None:
            raise ArgumentError(f"{self.name} needs the state that prepare() returns; got None.")
        own, reference = self.needs()
        there = reading[reference]

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            known = layer_state(state, path)
            W_ref = torch.as_tensor(known.dictionary.values[: A.shape[1]]).to(A)
            U_ref = torch.as_tensor(known.codes.values).to(A)
            here = reading.step == reading.reference_step
            start = None if here else self._start(known, reading.step, W_ref)
            pair = Pair(there[path].to(A), W_ref, U_ref)
            return self._observe_layer(A, pair, start, reading.noise)

        return by_layer(reading[own], one)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add noise floors, development rows, words and figures."""
        return summarise_concepts(data, self.extractor, self.distances)

    def _observe_layer(
        self,
        A: torch.Tensor,
        reference: Pair,
        start: torch.Tensor | None,
        noise: bool,
    ) -> dict[str, Any]:
        estimator, U, W = self._fit(A, start, self.random_state)
        result: dict[str, Any] = {
            "dictionary": dictionary_array(W),
            "code_coordinates": code_coordinates(reference.codes, U),
            "norm": float(W.norm()),
            "reconstruction_error": _relative_error(estimator, A),
            "iterations": float(estimator.n_iter_),
            "converged": float(estimator.converged_),
        }
        turn = rotation(A, reference.activations)
        result |= self._compared(W, reference, turn)
        if self.keep_codes:
            codes = U.detach().cpu().numpy().astype(np.float32)
            result["codes"] = xr.DataArray(codes, dims=("token", "concept"))
        if noise:
            result |= self._noise(Pair(A, W, U), reference)
        return result

    def _compared(self, W: torch.Tensor, other: Pair, turn: torch.Tensor) -> dict[str, Any]:
        """Return distances of W to the other dictionary, also relative, and correlations."""
        values = self._over_alignments(self._distances, W, other, turn)
        norm = float((W.square().sum() + other.dictionary.square().sum()).sqrt())
        result = {
            "distance_to_reference": self._labelled("distance", values),
            "relative_distance": self._labelled("distance", values / norm),
        }
        if self.correlations:
            values = self._over_alignments(self._correlations, W, other, turn)
            result["correlation_to_reference"] = self._labelled("correlation", values)
        return result

    def _over_alignments(
        self, measures: Any, W: torch.Tensor, other: Pair, turn: torch.Tensor
    ) -> np.ndarray:
        """Return the measures (measure, alignment) of W as returned, matched and turned."""
        V = other.dictionary
        return np.array([measures(X, other) for X in (W, matched(V, W), matched(V, turn.T @ W))]).T

    def _distances(self, W: torch.Tensor, other: Pair) -> list[float]:
        return [distances.distance(name, other.dictionary, W) for name in self.distances]

    def _correlations(self, W: torch.Tensor, other: Pair) -> list[float]:
        V, U = other.dictionary, other.codes
        return [
            distances.correlation(name, W)
            if name == "internal"
            else distances.correlation(name, V, W, U=U if name == "weighted" else None)
            for name in self.correlations
        ]

    def _noise(self, here: Pair, reference: Pair) -> dict[str, xr.DataArray]:
        def relative(W: torch.Tensor, other: Pair, turn: torch.Tensor) -> np.ndarray:
            found = self._compared(W, other, turn)
            both = ("relative_distance", "correlation_to_reference")
            return np.concatenate([found[name].values for name in both if name in found])

        errors: list[float] = []

        def fit(A: torch.Tensor, seed: int) -> torch.Tensor:
            estimator, _, W = self._fit(A, None, seed)
            errors.append(_relative_error(estimator, A))
            return W

        others = refits(
            here.activations,
            fit,
            self.random_state,
            seeded="random_state" in self._estimator(0).get_params()
            and self.extractor not in _EXACT,
        )
        found = noise_floors(here, reference, others, relative, self.random_state)
        found |= {"refit_error": found["refit_norm"].copy(data=np.array(errors))}
        # One refit whole, as a control for what is made of the dictionaries themselves.
        kept = others.get("seed 1", others["tokens 1"])
        found["refit_dictionary"] = dictionary_array(matched(here.dictionary, kept))
        return self._parted(found)

    def _parted(self, found: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
        """Return floors of distances and of correlations, which were measured together, apart."""
        count, result = len(self.distances), dict(found)
        for name in ("refit_distance", "chance_distance", "refit_to_reference"):
            result[name] = found[name].isel(distance=slice(count))
        if self.correlations:
            for kind in ("refit", "chance"):
                rest = found[f"{kind}_distance"].isel(distance=slice(count, None))
                result[f"{kind}_correlation"] = rest.rename(distance="correlation")
        return result

    def _fit(
        self, A: torch.Tensor, start: torch.Tensor | None, seed: int
    ) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """Return the fitted extractor, codes (n, r) and dictionary (m, r)."""
        if not bool(A.any()):
            raise ArgumentError("all activations are 0, in which there are no concepts")
        estimator = self._estimator(seed)
        U = estimator.fit_transform(A, init_dictionary=start)
        return estimator, U, estimator.components_.T

    def _start(self, known: xr.Dataset, step: int, W_ref: torch.Tensor) -> torch.Tensor | None:
        """Return the dictionary that the fit of a step starts from; None for a cold start."""
        if self.init == "reference":
            return W_ref
        if self.init == "seeded" or "start" not in known or step not in known.step.values:
            return None
        return torch.as_tensor(known.start.sel(step=step).values[: len(W_ref)]).to(W_ref)

    def _chain(self, run: Run, fits: Mapping[str, torch.Tensor]) -> dict[str, xr.DataArray]:
        """Walk from the reference step outwards; return what each step starts from."""
        steps = np.asarray(run.steps)
        before, after = steps[steps < run.reference_step], steps[steps > run.reference_step]
        starts: dict[int, xr.DataArray] = {}
        for walk in (before[::-1], after):
            last = dict(fits)
            for step in walk.tolist() if fits else []:
                starts[step] = by_layer(last, lambda _, W: {"start": dictionary_array(W)}).start
                last |= self._next(run, step, last)
        order = sorted(starts)
        if not order:
            return {}
        stacked = xr.concat([starts[step] for step in order], dim="step", join="outer")
        return {"start": stacked.assign_coords(step=order)}

    def _next(
        self, run: Run, step: int, last: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Return the dictionaries of a step, each from the last one; none where it fails."""
        try:
            values = run.reading(step)[self.needs()[0]]
        except (CheckpointError, NonFiniteError):  # its own cell says so; the chain goes on
            return {}
        found: dict[str, torch.Tensor] = {}

        def one(path: str, W: torch.Tensor) -> Mapping[str, Any]:
            found[path] = self._fit(values[path], W.to(values[path]), self.random_state)[2]
            return {}

        by_layer(last, one)
        return found

    def _estimator(self, seed: int) -> Any:
        return make_extractor(self.extractor, self.n_concepts, seed, self.options)

    def _labelled(self, dim: str, values: np.ndarray) -> xr.DataArray:
        names = self.distances if dim == "distance" else self.correlations
        coords = {dim: list(names), "alignment": list(ALIGNMENTS)}
        return xr.DataArray(values, dims=(dim, "alignment"), coords=coords)


def _relative_error(estimator: Any, A: torch.Tensor) -> float:
    return float(estimator.reconstruction_error_) / float(A.norm())
