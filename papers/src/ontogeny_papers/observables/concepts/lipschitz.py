"""Parameters, activations and concepts on their way to the reference: who explains whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from ontogeny import capture, distances, dynamics
from ontogeny.distances.nearest import matched
from ontogeny.errors import ArgumentError, check_choice, check_number
from ontogeny.features.concepts.dictionaries import Concepts
from ontogeny.features.concepts.noise import MATCHINGS
from ontogeny.figures import Section
from ontogeny.needs import Gradients, Need
from ontogeny.needs.derived import Reference
from ontogeny.observables import Observable, Reading, Run, by_layer
from ontogeny.observables.extractor_fits import (
    FromExtractor,
    dictionary_array,
    layer_state,
)
from ontogeny.quantities import Measured, Quantity
from ontogeny.trees import Nodes
from ontogeny.units import Units

from .claim import claim_statistics, claim_words
from .series import ConceptSeries

_RANDOM = 3
_SHARED = (
    "extractor",
    "n_concepts",
    "layers",
    "on",
    "tokens",
    "max_tokens",
    "random_state",
    "options",
)
_PER_WEIGHT = "activation units per weight unit"
_PER_ACTIVATION = "dictionary units per activation unit"


@dataclass(frozen=True)
class Lipschitz(FromExtractor, ConceptSeries):
    """Distances of parameters and activations to the reference, beside those of concepts.

    From them follow the report's ratios per step and layer: concepts per activations and
    activations per parameters. At the noise steps the two maps are perturbed, parameters to
    activations and activations to dictionary, in random directions and towards the reference; and
    concepts are fitted to activations that lie as far from the reference as this step's, with the
    same differences permuted over tokens: if distance alone explained the concepts, they would be
    as far.

    The reference's parameters are kept in the study's folder (4 bytes each).

    Parameters
    ----------
    of
        Name of the `Concepts` node whose distances are read.
    extractor, n_concepts, options
        The extractor of that node; used for its local constants.
    layers, on, tokens, max_tokens, random_state
        As in that node, which is checked; `random_state` also seeds the perturbations.
    distance
        Which of its distances is tested against activations; the ratios are given for all of them.
    relative_radius
        Size of the perturbations, as a share of what is perturbed.

    Examples
    --------
    >>> Lipschitz("concepts-ica", extractor="ica").name
    'concepts-ica-lipschitz'
    """

    extractor: str
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "mlp"
    distance: str = "procrustes"
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    relative_radius: float = 1e-3
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    kind = "lipschitz"
    question = "How much do concepts move when activations and parameters do?"
    requires = ConceptSeries.requires
    uses_noise = True
    suffix = "lipschitz"
    quantities = (
        Quantity(
            "concepts_per_activations",
            "concept distance per activation distance",
            _PER_ACTIVATION,
            per="distance",
            heading="{label} distance of concepts per activation distance",
            y_scale="log",
            nulls={"refit": "refitting alone", "chance": "chance"},
            caption="d(φ(h_t), φ(h_ref)) / ‖h_t − h_ref‖. A Lipschitz extractor keeps it bounded; "
            "a rise towards the reference is what noise in the fit, or a jump of the solver, looks "
            "like. Grey: the distance between refits at this {checkpoint}, and that of unrelated "
            "concepts, over the same activation distance: within the first, the ratio is the "
            "solver's noise.",
        ),
        Quantity(
            "activations_per_parameters",
            "activation distance per parameter distance",
            _PER_WEIGHT,
            y_scale="log",
            minimum=0.0,
            nulls={"random": "random directions"},
            caption="‖h_t − h_ref‖ / ‖θ_t − θ_ref‖, all parameters of the model. Grey: the same "
            "ratio for small steps from this checkpoint in random directions of its parameters.",
        ),
        Quantity(
            "parameter_distance",
            "distance of all parameters to the reference {checkpoint}",
            "weight units",
            noise="exact",
            caption="‖θ_t − θ_ref‖, exact: nothing is sampled.",
        ),
        Quantity(
            "activation_distance",
            "distance of the activations to the reference {checkpoint}",
            "activation units",
            minimum=0.0,
            caption="‖h_t − h_ref‖_F, as it is.",
        ),
    )
    section = Section(
        title="Parameters, activations, concepts ({of})",
        definition="How far parameters, activations and concepts are from the reference's at each "
        "{checkpoint}, and their ratios. The report's claim: concepts converge because activations "
        "do, and these because parameters do.",
        symbol="d(φ(h_t), φ(h_T)) ≤ L_φ ‖h_t − h_T‖ ≤ L_φ L_f ‖θ_t − θ_T‖",
        null="Grey: refitting and chance under the ratios of concepts, random directions under "
        "that of activations. Fluctuations around the two trends against surrogates that keep "
        "trend and memory; and activations as far from the reference, with the differences "
        "permuted over tokens.",
        care="Concepts by {distance} distance. Permuted differences hold the reference's own "
        "activations once more, with the other sign. A bound says that one curve cannot stay up "
        "while the other goes to 0; it does not say that it follows it. Ratios and perturbations "
        "give lower bounds of Lipschitz constants, never upper ones.",
        source="Bernas 2025, Defs 35-37, Property 1, sec. 5.2-5.3",
    )
    variables = {
        "parameter_norm": ("norm of all parameters", "weight units"),
        "activation_norm": ("norm of the activations", "activation units"),
        "concept_distance": (
            "distance of the concepts to the reference {checkpoint}",
            "dictionary units",
        ),
        "layer_random": ("local constant of the layer, random directions", _PER_WEIGHT),
        "layer_towards": (
            "local constant of the layer, towards the reference",
            _PER_WEIGHT,
        ),
        "extractor_random": (
            "local constant of extractor, random directions",
            _PER_ACTIVATION,
        ),
        "extractor_towards": (
            "local constant of extractor, towards the reference",
            _PER_ACTIVATION,
        ),
        "spearman": ("rank correlation of concept and activation distances", "1"),
        "fluctuation_spearman": ("the same around the trends", "1"),
        "fluctuation_p": ("p-value that they share more than their trends", "1"),
        "here_relative": (
            "concept distance of this {checkpoint}, relative to the norms",
            "1",
        ),
        "permuted_relative": (
            "the same with its differences permuted over tokens",
            "1",
        ),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_choice("distance", self.distance, distances.names())
        check_number(
            "relative_radius", self.relative_radius, 0, 1, above=True, below=True
        )

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node of other concepts: ratios would mix two fits."""
        of = observables[self.of]
        if not isinstance(of, Concepts):
            raise ArgumentError(
                f"{self.name} needs a node of concepts; {self.of!r} is of kind {of.kind!r}."
            )
        for name in _SHARED:
            mine = getattr(self, name)
            other = getattr(of, name)
            if mine != other:
                raise ArgumentError(
                    f"{name} of {self.name} must be that of {self.of}, {other!r}; got {mine!r}."
                )
        check_choice(f"distance of {self.name}", self.distance, of.distances)

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference, and the model with its inputs."""
        return [
            self.activations,
            Reference(self.activations),
            Gradients("none", on=self.on),
        ]

    def prepare(self, run: Run) -> xr.Dataset:
        """Keep the reference's parameters and dictionaries."""
        activations, _, borrowed = self.needs()
        reading = run.reading(run.reference_step)
        state = by_layer(
            reading[activations],
            lambda _, A: {"dictionary": dictionary_array(self._dictionary(A))},
        )
        parameters = _flat(reading[borrowed].model).cpu().numpy()
        return state.assign(parameters=("parameter", parameters))

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return distances at this step, and at noise steps the local constants."""
        if state is None:
            raise ArgumentError(
                f"{self.name} needs the state that prepare() returns; got None."
            )
        activations, reference, borrowed = self.needs()
        there = reading[reference]
        units = Units(reading.units(activations))
        theta = _flat(reading[borrowed].model)
        theta_ref = torch.as_tensor(state.parameters.values).to(theta)
        # Where nothing differs from the reference there is no direction towards it.
        away = bool((theta != theta_ref).any())
        local = (
            self._layer_maps(reading[borrowed], theta, theta_ref, away)
            if reading.noise
            else {}
        )

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            A_ref = there[path].to(A)
            result: dict[str, Any] = {
                "activation_distance": _apart(A, A_ref, units),
                "activation_norm": float(A.double().norm()),
            }
            if reading.noise:
                result |= _prefixed("layer", local[path], (), away)
                dictionary = layer_state(state, path).dictionary.values[: A.shape[1]]
                moved = bool((A_ref != A).any())
                result |= self._extractor(
                    A, A_ref, torch.as_tensor(dictionary).to(A), moved
                )
            return result

        return by_layer(reading[activations], one).assign(
            parameter_distance=float((theta.double() - theta_ref.double()).norm()),
            parameter_norm=float(theta.double().norm()),
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add ratios and what stands under them, and the test of the report's claim."""
        of = nodes[self.of]
        if "distance" not in of:
            raise ArgumentError(f"{self.of} has no finished cell to compare with.")
        apart = of.distance_to_reference.reindex(step=data.step, layer=data.layer)
        apart = apart.transpose("distance", "alignment", "layer", "step")
        moved = data.activation_distance.transpose("layer", "step")
        steps = data.step.values
        weights = data.parameter_distance
        first = dynamics.lipschitz_ratios(steps, apart.values, moved.values)
        second = dynamics.lipschitz_ratios(steps, moved.values, weights.values)
        tested = apart.sel(distance=self.distance, alignment="matched").values
        data = data.assign(
            concept_distance=apart,
            concepts_per_activations=(apart.dims, first.ratio),
            activations_per_parameters=(moved.dims, second.ratio),
            **claim_statistics(data, tested, moved.values),
        )
        # The distances between refits and of chance hold nothing of the run's own movement.
        for null in ("refit_low", "refit_high", "chance_low", "chance_high"):
            if f"distance_to_reference_{null}" in of:
                under = of[f"distance_to_reference_{null}"].reindex_like(
                    data.activation_distance
                )
                data[f"concepts_per_activations_{null}"] = under / moved.where(
                    moved > 0
                )
        if "activation_distance_stderr" in data:
            error = data.activation_distance_stderr / weights.where(weights > 0)
            data["activations_per_parameters_stderr"] = error
        if "layer_random" in data:
            data["activations_per_parameters_random"] = data.layer_random
        return data

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return the report's claim, what size alone explains, and the local constants."""
        return claim_words(data)

    def _layer_maps(
        self, borrowed: Any, theta: torch.Tensor, theta_ref: torch.Tensor, away: bool
    ) -> dict[str, np.ndarray]:
        """Return the local constants of the maps from parameters to activations, by layer."""
        need = self.needs()[0]
        model = borrowed.model
        inputs = {self.on or "text": borrowed.inputs}
        parameters = list(model.parameters())
        sizes = [parameter.numel() for parameter in parameters]

        def activations(vector: torch.Tensor) -> Mapping[str, torch.Tensor]:
            # In place: where the model was borrowed, the old parameters are put back.
            with torch.no_grad():
                for parameter, part in zip(
                    parameters, vector.split(sizes), strict=True
                ):
                    parameter.copy_(part.reshape(parameter.shape))
            return dict(capture.read(model, [need], inputs, borrowed.settings)[need])

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
        constants = dynamics.local_constants(
            dictionary, A.double(), ways, relative_radius=self.relative_radius
        )
        table = np.stack(list(constants.values()))
        result = _prefixed("extractor", table, ("matching",), away)
        if away:
            order = torch.from_numpy(rng.permutation(len(A)))
            permuted = A_ref + (A - A_ref)[order]
            result["here_relative"] = self._relative(self._dictionary(A), W_ref)
            result["permuted_relative"] = self._relative(
                self._dictionary(permuted), W_ref
            )
        return result

    def _relative(self, W: torch.Tensor, W_ref: torch.Tensor) -> float:
        norm = float((W.square().sum() + W_ref.square().sum()).sqrt())
        apart = distances.distance(self.distance, W_ref, matched(W_ref, W))
        return float(apart) / norm if norm > 0 else 0.0

    def _dictionary(self, A: torch.Tensor) -> torch.Tensor:
        return self._estimator().fit(A).components_.T


def _apart(A: torch.Tensor, A_ref: torch.Tensor, units: Units) -> Measured:
    """Return the distance of activations (n, m), with its standard error over texts."""
    squares = (A.double() - A_ref.double()).square().sum(dim=1)
    apart = float(squares.sum().sqrt())
    error = units.sum_stderr(squares.cpu().numpy())
    if error is not None:  # of a root, by its derivative
        error = error / (2 * apart) if apart > 0 else 0.0
    return Measured(apart, stderr=error)


def _prefixed(
    what: str, table: np.ndarray, dims: tuple[str, ...], away: bool
) -> dict[str, Any]:
    """Return the constants of random directions and, off the reference, of that towards it."""
    constants = xr.DataArray(table, dims=(*dims, "draw"))
    if dims:
        constants = constants.assign_coords(matching=list(MATCHINGS))
    result = {f"{what}_random": constants[..., :_RANDOM]}
    if away:
        result[f"{what}_towards"] = constants[..., _RANDOM]
    return result


def _flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().float().reshape(-1) for p in model.parameters()])
