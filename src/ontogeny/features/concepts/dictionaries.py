"""Concepts at each step, and how far they still are from the reference step's (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from ... import distances
from ...arrays import on_host
from ...claims import Claim, Subject, measurement
from ...distances.correlations import CORRELATIONS
from ...distances.nearest import matched
from ...errors import ArgumentError
from ...figures import Section
from ...needs import Need
from ...needs.derived import Reference
from ...observables import Reading, Run, by_layer
from ...observables.arguments import check_names
from ...observables.extractor_fits import (
    PRECISIONS,
    FromExtractor,
    as_kept,
    code_coordinates,
    dictionary_array,
    extractor_title,
    layer_state,
)
from ...observables.rotations import Rotations
from ...quantities import Quantity
from ...trees import Nodes
from ...units import Units
from ...words.one_model import is_one_model
from .describer import Describer
from .dictionaries_chained import starts_of_chain
from .dictionaries_compared import Comparison
from .dictionaries_declared import (
    PRESETS,
    VARIABLES,
    correlations_declared,
    distances_declared,
    section_declared,
)
from .dictionaries_described import (
    KEPT_OF_STATE,
    NAMED,
    claims_of_one_naming,
    describing,
    with_named,
    with_untrained,
)
from .noise import (
    FOUND_AGAIN,
    Fitted,
    beside_refits,
    claims_of_replication,
    cold_starts,
    refit_transforms,
    replication,
)

_EXACT = ("svd", "pca")


@dataclass(frozen=True)
class Concepts(FromExtractor):
    """A concept extractor fitted at every step and layer, compared with the reference step.

    At each step the dictionary W_t (m, r) is compared with W_ref three ways: ``as returned`` by
    the solver; ``matched``, concepts permuted and signed to fit; ``rotation removed``, activations
    first turned onto the reference's by the best orthogonal map, then matched. At about five steps
    (``Study(noise=5)``; 0 switches it off) it is refitted from a cold start on three bootstrap
    resamples of the texts, in the other floating-point precision and, where the solver depends on
    a seed, with three other seeds, and compared with what chance gives.

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
    keep_dictionaries
        How the dictionaries W_t of every step, those of a refit, and ``code_coordinates`` are
        stored: ``"float32"``, ``"float16"`` (half the bytes, numbers right to 0.05 %), or
        ``"none"``. Distances are computed before and do not change. A step and layer of m features
        and r concepts takes 4 m r bytes in float32; observables of this node's dictionaries,
        as the papers have, need them.
    options
        Further arguments of the extractor.
    examples
        Contexts that are kept of each concept at each step, with its name, its tokens and what it
        writes to the vocabulary; 0 describes nothing. Concepts of different steps are different
        fits: to follow a concept over the steps, use `JointConcepts`.
    label
        Name of the node, where a study holds the same extractor twice.

    Examples
    --------
    >>> Concepts("ica", n_concepts=20, layers="model.layers.*.mlp").name
    'concepts-ica'
    """

    extractor: str
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "mlp"
    distances: tuple[str, ...] = ("frobenius", "procrustes")
    correlations: tuple[str, ...] = ()
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    init: str = "seeded"
    keep_codes: bool = False
    keep_dictionaries: str = "float32"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    examples: int = 0

    kind = "concepts"
    minima = {"examples": 0}
    choices = {
        "init": ("seeded", "reference", "chain"),
        "keep_dictionaries": PRECISIONS,
    }
    question = (
        "Which directions does a dictionary find at each step, and how far are they "
        "from the last?"
    )
    presets = PRESETS
    state_variables = KEPT_OF_STATE
    uses_noise = True
    variables = VARIABLES

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_names("distances", self.distances, distances.names())
        check_names("correlations", self.correlations, CORRELATIONS, minimum=0)
        if "internal" in self.correlations and self.n_concepts < 2:
            raise ArgumentError(
                "correlations: 'internal' needs at least two concepts; got 1."
            )

    @property
    def name(self) -> str:
        """The label, or ``concepts-`` and the extractor."""
        return self.label or f"concepts-{self.extractor}"

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """Distances to the reference, the reconstruction error, and correlations."""
        title = extractor_title(self.extractor)
        return (
            *distances_declared(title, self._judged, self.distances[0]),
            *correlations_declared(),
            FOUND_AGAIN,
            *([NAMED] if self._describer.active else ()),
        )

    @property
    def section(self) -> Section:  # type: ignore[override]
        """Heading and margin notes."""
        return section_declared(extractor_title(self.extractor), self._judged)

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        return [self.activations, Reference(self.activations), *self._describer.needs()]

    @property
    def prepares_over_steps(self) -> bool:
        """Whether all steps are fitted in order beforehand."""
        return self.init == "chain"

    def prepare(self, run: Run) -> xr.Dataset:
        """Fit the reference step's dictionaries, and with ``init="chain"`` all others in order."""
        values = run.reading(run.reference_step)[self.activations]
        fits: dict[str, torch.Tensor] = {}

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            _, U, fits[path] = self._fit(A)
            return {
                "dictionary": dictionary_array(fits[path]),
                "codes": (("token", "concept"), _codes(U)),
            }

        state = by_layer(values, one)
        if self.init == "chain":
            starts = starts_of_chain(
                run, self.activations, fits, lambda A, W: self._fit(A, W)[2]
            )
            state = state.assign(starts)
        return with_untrained(
            state, run, self._describer, lambda A: _codes(self._fit(A)[1])
        )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return dictionaries, codes in few numbers, and distances of every layer."""
        activations = self.activations
        reference = Reference(activations)
        describe = describing(reading, state, self._describer)
        there = reading[reference]
        units = Units(reading.units(activations))
        here = reading.step == reading.reference_step

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            layer = layer_state(state, path)
            W_ref = torch.as_tensor(layer.dictionary.values[: A.shape[1]]).to(A.dtype)
            U_ref = torch.as_tensor(layer.codes.values).to(A.dtype)
            start = None if here else self._start(layer, reading.step, W_ref)
            rotations = Rotations(reading, reference, path, A, there[path].to(A))
            units_of_noise = units if reading.noise else None
            fitted = Fitted(W_ref, U_ref)
            variables, U, W = self._observe_layer(
                rotations, fitted, start, units_of_noise
            )
            return {
                **variables,
                **describe(path, _codes(U), dictionary_array(W).values),
            }

        return by_layer(reading[activations], one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Count the concepts with a name."""
        return with_named(data)

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which concepts repeat and, of one checkpoint, have a name, and failed fits."""
        if "converged" not in data:
            return []
        named = claims_of_one_naming(name, data) if is_one_model(data) else ()
        fits = data.converged.values
        failed = int((fits == 0).sum())
        count = float(np.isfinite(fits).sum())
        lost = measurement(Subject(name, "converged"), failed, whole=count)
        again = claims_of_replication(name, data)
        return [*named, *again, *([lost] if failed else [])]

    @property
    def _describer(self) -> Describer:
        return Describer(self.activations, self.examples)

    @property
    def _comparison(self) -> Comparison:
        return Comparison(self.distances, self.correlations)

    @property
    def _judged(self) -> str:
        """The distance that the verdict uses."""
        return "procrustes" if "procrustes" in self.distances else self.distances[0]

    def _observe_layer(
        self,
        rotations: Rotations,
        reference: Fitted,
        start: torch.Tensor | None,
        units: Units | None,
    ) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
        """Return what is stored of one layer, with codes and dictionary.

        With `units`, refits on resampled texts are stored as well. Fits are made where the
        activations are. Dictionaries are compared on the host: they are small, the comparisons
        many, and each would make it wait for a device.
        """
        A = rotations.here
        estimator, U, W = self._fit(A, start)
        W = on_host(W)
        result: dict[str, Any] = {
            "dictionary": dictionary_array(W),
            "code_coordinates": code_coordinates(reference.codes.to(U), U),
            "norm": float(W.norm()),
            "reconstruction_error": _relative_error(estimator, A),
            "iterations": float(estimator.n_iter_),
            "converged": float(estimator.converged_),
        }
        if self.keep_codes:
            result["codes"] = (("token", "concept"), _codes(U))
        if units is None:
            compared = self._comparison.of(W, reference, rotations.best)
            result |= {str(name): v for name, v in compared.items()}
        else:
            result |= self._noise(Fitted(W, on_host(U)), reference, rotations, units)
        return as_kept(result, self.keep_dictionaries), U, W

    def _noise(
        self, here: Fitted, reference: Fitted, rotations: Rotations, units: Units
    ) -> dict[str, Any]:
        """Return the comparisons beside refits and chance, and what is kept of the refits."""
        seeded = (
            "random_state" in self._estimator().get_params()
            and self.extractor not in _EXACT
        )
        A = rotations.here
        others: dict[str, torch.Tensor] = {}
        codes: dict[str, torch.Tensor] = {}
        errors = []
        for name, B, seed in cold_starts(
            A, self.random_state, seeded=seeded, units=units
        ):
            estimator, codes[name], W = self._fit(B, seed=seed)
            others[name] = on_host(W).to(A.dtype)
            errors.append(_relative_error(estimator, B))
        # One refit whole, as a control for what is made of the dictionaries themselves.
        refit = others.get("seed 1", next(iter(others.values())))

        def fit(B: torch.Tensor) -> tuple[torch.Tensor, Any]:
            estimator, U, _ = self._fit(B)
            return U, estimator.transform

        return {
            **replication(A, here.codes, codes, fit, units, self.random_state),
            **beside_refits(
                here,
                reference,
                others,
                self._comparison.of,
                rotations,
                self.random_state,
            ),
            **refit_transforms(here.dictionary, reference.dictionary, others),
            "reconstruction_error_refit": ("refit", np.array(errors)),
            "refit_dictionary": dictionary_array(matched(here.dictionary, refit)),
        }

    def _fit(
        self,
        A: torch.Tensor,
        start: torch.Tensor | None = None,
        seed: int | None = None,
    ) -> tuple[Any, torch.Tensor, torch.Tensor]:
        """Return the fitted extractor, codes (n, r) and dictionary (m, r)."""
        if not bool(A.any()):
            raise ArgumentError("all activations are 0, in which there are no concepts")
        estimator = self._estimator(seed)
        U = estimator.fit_transform(A, init_dictionary=start)
        return estimator, U, estimator.components_.T

    def _start(
        self, state: xr.Dataset, step: int, W_ref: torch.Tensor
    ) -> torch.Tensor | None:
        """Return the dictionary that the fit of a step starts from; None for a cold start."""
        if self.init == "reference":
            return W_ref
        if (
            self.init == "seeded"
            or "start" not in state
            or step not in state.step.values
        ):
            return None
        return torch.as_tensor(state.start.sel(step=step).values[: len(W_ref)]).to(
            W_ref
        )


def _codes(U: torch.Tensor) -> np.ndarray:
    return np.asarray(U.detach().cpu().numpy(), dtype=np.float32)


def _relative_error(estimator: Any, A: torch.Tensor) -> float:
    return float(estimator.reconstruction_error_) / float(A.norm())
