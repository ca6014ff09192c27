"""Parameters, activations and concepts on their way to the reference: who explains whom (A8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from .. import capture, concepts, distances, dynamics
from ..errors import ArgumentError, check_choice, check_number
from ..needs import Activations, Gradients, Need, Reference
from ..summary import Names
from .arguments import check_node
from .base import Observable, Reading, Run, by_layer
from .concept_fits import dictionary_array, layer_state, make_extractor, matched
from .lipschitz_figures import summarise_lipschitz

__all__ = ["Lipschitz"]

_RANDOM = 3


@dataclass(frozen=True)
class Lipschitz(Observable):
    """Distances of parameters and activations to the reference, beside those of concepts.

    From them follow the report's ratios per step and layer: concepts per activations and
    activations per parameters. At the noise steps the two maps are perturbed, parameters to
    activations and activations to dictionary, in random directions and towards the reference; and
    concepts are fitted to activations that lie as far from the reference as this step's, with the
    same differences dealt out to the wrong tokens: if distance alone explained the concepts, they
    would be as far.

    The reference's parameters are kept in the study's folder (4 bytes each).

    Parameters
    ----------
    of
        Name of the `Concepts` node whose distances are read.
    extractor, n_concepts, options
        The extractor of that node; used for its local constants.
    layers, on, tokens, max_tokens, random_state
        As in that node; `random_state` also seeds the perturbations.
    distance
        Which of its distances is tested against activations; the ratios are given for all of them.
    relative_radius
        Size of the perturbations, as a share of what is perturbed.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> Lipschitz("concepts-ica", extractor="ica").name
    'concepts-ica-lipschitz'
    """

    of: str
    extractor: str
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "model.layers.*.mlp"
    distance: str = "procrustes"
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    relative_radius: float = 1e-3
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None

    kind: ClassVar[str] = "lipschitz"
    version: ClassVar[int] = 2
    uses_noise: ClassVar[bool] = True
    variables: ClassVar[Names] = {
        "parameter_distance": ("distance of all parameters to the reference step", "weight units"),
        "parameter_norm": ("norm of all parameters", "weight units"),
        "activation_distance": (
            "distance of the activations to the reference step",
            "activation units",
        ),
        "activation_norm": ("norm of the activations", "activation units"),
        "activations": ("distance of the activations", "activation units"),
        "concept_distance": ("distance of the concepts to the reference step", "dictionary units"),
        "concepts_per_activations": (
            "concept distance per activation distance",
            "dictionary units per activation unit",
        ),
        "activations_per_parameters": (
            "activation distance per parameter distance",
            "activation units per weight unit",
        ),
        "per_parameters": (
            "activation distance per parameter distance",
            "activation units per weight unit",
        ),
        "refit": ("refits, per activation distance", "dictionary units per activation unit"),
        "chance": ("chance, per activation distance", "dictionary units per activation unit"),
        "random": (
            "local constant of the layer, random directions",
            "activation units per weight unit",
        ),
        "layer_random": (
            "local constant of the layer, random directions",
            "activation units per weight unit",
        ),
        "layer_towards": (
            "local constant of the layer, towards the reference",
            "activation units per weight unit",
        ),
        "extractor_random": (
            "local constant of the extractor, random directions",
            "dictionary units per activation unit",
        ),
        "extractor_towards": (
            "local constant of the extractor, towards the reference",
            "dictionary units per activation unit",
        ),
        "spearman": ("rank correlation of concept and activation distances", "1"),
        "fluctuation_spearman": ("the same around the trends", "1"),
        "fluctuation_p": ("p-value that they share more than their trends", "1"),
        "here_relative": ("concept distance of this step, relative to the norms", "1"),
        "dealt_relative": ("the same with its differences dealt out to other tokens", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("extractor", self.extractor, concepts.names())
        check_choice("distance", self.distance, distances.names())
        check_node("of", self.of)
        check_number("relative_radius", self.relative_radius, 0, 1, above=True, below=True)
        self._estimator()
        self.needs()

    @property
    def name(self) -> str:
        """The label, or the name of the concepts with ``-lipschitz``."""
        return self.label or f"{self.of}-lipschitz"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The concepts' node, whose distances are read."""
        return (self.of,)

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference, and the model with its inputs."""
        own = Activations(self.layers, self.on, self.tokens, self.max_tokens, self.random_state)
        return [own, Reference(own), Gradients("none", on=self.on)]

    def prepare(self, run: Run) -> xr.Dataset:
        """Keep the reference's parameters and dictionaries."""
        own, _, lent = self.needs()
        reading = run.reading(run.reference_step)

        def one(_: str, A: torch.Tensor) -> Mapping[str, Any]:
            return {"dictionary": dictionary_array(self._dictionary(A))}

        state = by_layer(reading[own], one)
        parameters = _flat(reading[lent].model).cpu().numpy()
        return state.assign(parameters=("parameter", parameters))

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return distances at this step, and at noise steps the local constants."""
        if state is None:
            raise ArgumentError(f"{self.name} needs the state that prepare() returns; got None.")
        own, reference, lent = self.needs()
        there = reading[reference]
        model = reading[lent].model
        theta = _flat(model)
        theta_ref = torch.as_tensor(state.parameters.values).to(theta)
        # Where nothing differs from the reference there is no direction towards it.
        away = bool((theta != theta_ref).any())
        local = self._layer_maps(reading[lent], theta, theta_ref, away) if reading.noise else {}

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            A_ref = there[path].to(A)
            apart, error = _apart(A, A_ref)
            result: dict[str, Any] = {
                "activation_distance": apart,
                "activation_distance_stderr": error,
                "activation_norm": float(A.double().norm()),
            }
            if reading.noise:
                result |= _named("layer", local[path], (), away)
                known = layer_state(state, path).dictionary.values[: A.shape[1]]
                moved = bool((A_ref != A).any())
                result |= self._extractor(A, A_ref, torch.as_tensor(known).to(A), moved)
            return result

        return by_layer(reading[own], one).assign(
            parameter_distance=float((theta.double() - theta_ref.double()).norm()),
            parameter_norm=float(theta.double().norm()),
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add ratios, the test of the report's claim, words and figures."""
        return summarise_lipschitz(data, nodes[self.of], self.of, self.distance)

    def _layer_maps(
        self, lent: Any, theta: torch.Tensor, theta_ref: torch.Tensor, away: bool
    ) -> dict[str, np.ndarray]:
        """Return the local constants of the maps from parameters to activations, by layer."""
        need = self.needs()[0]

        def activations(vector: torch.Tensor) -> Mapping[str, torch.Tensor]:
            _load(lent.model, vector)
            values = capture.read(
                lent.model, [need], {self.on or "text": lent.inputs}, lent.settings
            )
            return dict(values[need])

        generator = torch.Generator().manual_seed(self.random_state)
        ways = [torch.randn(len(theta), generator=generator) for _ in range(_RANDOM)]
        ways += [theta_ref - theta] if away else []
        return dynamics.local_constants(
            activations, theta, ways, relative_radius=self.relative_radius
        )

    def _extractor(
        self, A: torch.Tensor, A_ref: torch.Tensor, W_ref: torch.Tensor, away: bool
    ) -> dict[str, Any]:
        """Return the extractor's local constants and the distance that the size alone gives."""
        first = self._dictionary(A.double())

        def dictionary(B: torch.Tensor) -> Mapping[str, torch.Tensor]:
            W = self._dictionary(B)
            return {"as returned": W, "matched": matched(first, W)}

        rng = np.random.default_rng([self.random_state, 3])
        ways = [torch.from_numpy(rng.standard_normal(A.shape)) for _ in range(_RANDOM)]
        ways += [A_ref.double() - A.double()] if away else []
        found = dynamics.local_constants(
            dictionary, A.double(), ways, relative_radius=self.relative_radius
        )
        table = np.stack(list(found.values()))
        result = _named("extractor", table, ("matching",), away)
        if away:
            order = torch.from_numpy(rng.permutation(len(A)))
            dealt = A_ref + (A - A_ref)[order]
            result["here_relative"] = self._relative(self._dictionary(A), W_ref)
            result["dealt_relative"] = self._relative(self._dictionary(dealt), W_ref)
        return result

    def _relative(self, W: torch.Tensor, W_ref: torch.Tensor) -> float:
        norm = float((W.square().sum() + W_ref.square().sum()).sqrt())
        apart = distances.distance(self.distance, W_ref, matched(W_ref, W))
        return float(apart) / norm if norm > 0 else 0.0

    def _dictionary(self, A: torch.Tensor) -> torch.Tensor:
        return self._estimator().fit(A).components_.T

    def _estimator(self) -> Any:
        return make_extractor(self.extractor, self.n_concepts, self.random_state, self.options)


def _apart(A: torch.Tensor, A_ref: torch.Tensor) -> tuple[float, float]:
    """Return the distance of activations (n, m), and its standard error over tokens."""
    squares = (A.double() - A_ref.double()).square().sum(dim=1)
    apart = float(squares.sum().sqrt())
    if apart == 0 or len(squares) < 2:
        return apart, 0.0
    return apart, float(squares.std()) * len(squares) ** 0.5 / (2 * apart)


def _named(what: str, table: np.ndarray, dims: tuple[str, ...], away: bool) -> dict[str, Any]:
    """Return the constants of random directions and, off the reference, of that towards it."""
    result: dict[str, Any] = {f"{what}_random": ((*dims, "draw"), table[..., :_RANDOM])}
    if away:
        result[f"{what}_towards"] = (dims, table[..., _RANDOM])
    return result


def _flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().float().reshape(-1) for p in model.parameters()])


def _load(model: torch.nn.Module, vector: torch.Tensor) -> None:
    """Write all parameters in place; the loan of the model puts the old ones back."""
    start = 0
    with torch.no_grad():
        for parameter in model.parameters():
            stop = start + parameter.numel()
            parameter.copy_(vector[start:stop].reshape(parameter.shape))
            start = stop
