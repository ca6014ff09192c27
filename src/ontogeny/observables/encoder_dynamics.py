"""Do a step's activations already tell the reference's concepts: Algorithm 3 (row A10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from .. import concepts, dynamics
from ..errors import ArgumentError, check_choice, check_number
from ..needs import Activations, Need
from ..summary import Names
from .base import Observable, Reading, Run, by_layer
from .concept_fits import layer_state, make_extractor
from .encoder_figures import METRICS, summarise_encoders

__all__ = ["CODES", "EncoderDynamics"]

CODES = ("train-fitted", "test-fitted")
_DRAWS = 3


@dataclass(frozen=True)
class EncoderDynamics(Observable):
    """A linear encoder from each step's activations to the reference's codes, tested on new rows.

    At the reference step an extractor is fitted on train rows; its codes of them are the target of
    the encoders. On test rows an encoder's codes are compared with the ``train-fitted`` extractor's
    and with those of one ``test-fitted`` (the report's), matched to the former once, at the
    reference step. At the noise steps it is refitted on resampled rows and on codes whose rows are
    out of order, which is what a map of this size finds by chance.

    Parameters
    ----------
    extractor, n_concepts, options
        The extractor of the reference step and its further arguments.
    layers
        Glob or globs over module paths.
    norm, ridge, intercept
        What the encoder minimises, see `ontogeny.dynamics.fit_encoder`. Codes of PCA and ICA are
        linear in activations only with an intercept; the report's encoder has none.
    temperature
        Divides the codes before the softmax, see `ontogeny.dynamics.compare_logits`.
    test_fraction
        Share of the rows that is held out: the last ones, so that hardly a text is on both sides.
    test_on
        Input set of the test rows instead; all rows of `on` then serve to train.
    on, tokens, max_tokens, random_state
        Which rows; `random_state` also seeds the extractor, the resamples and the shuffles.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> EncoderDynamics("ica", n_concepts=20).name
    'encoder-dynamics-ica'
    """

    extractor: str = "ica"
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "model.layers.*.mlp"
    norm: str = "fro"
    ridge: float = 0.0
    intercept: bool = False
    temperature: float = 1.0
    test_fraction: float = 0.3
    on: str | None = None
    test_on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None

    kind: ClassVar[str] = "encoder-dynamics"
    version: ClassVar[int] = 2
    uses_noise: ClassVar[bool] = True
    variables: ClassVar[Names] = {
        "comparison": ("encoded codes against the reference's", "1"),
        "low": ("comparison, lower end", "1"),
        "high": ("comparison, upper end", "1"),
        "resampled": ("comparison on resampled rows", "1"),
        "shuffled": ("comparison by chance, codes out of order", "1"),
        "shuffled_train_error": ("error on the train rows by chance", "1"),
        "train_shuffled": ("error on the train rows by chance", "1"),
        "share": ("mean share of a concept", "1"),
        "train_error": ("error on the train rows, relative", "1"),
        "encoder_rank": ("rank of the encoder", "directions"),
        "gap": ("duality gap of the solver, relative", "1"),
        "converged": ("whether the solver converged", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("extractor", self.extractor, concepts.names())
        check_choice("norm", self.norm, dynamics.ENCODER_NORMS)
        check_number("test_fraction", self.test_fraction, 0, 1, above=True, below=True)
        check_number("ridge", self.ridge)
        check_number("temperature", self.temperature, 1e-12)
        self._estimator()
        self.needs()

    @property
    def name(self) -> str:
        """The label, or ``encoder-dynamics-`` and the extractor."""
        return self.label or f"encoder-dynamics-{self.extractor}"

    def needs(self) -> Sequence[Need]:
        """Return the activations of the train rows, and of the test rows where they are others."""
        own = [self.on] if self.test_on is None else [self.on, self.test_on]
        return [
            Activations(self.layers, on, self.tokens, self.max_tokens, self.random_state)
            for on in own
        ]

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the reference step's codes of train and test rows."""
        rows = self._rows(run.reading(run.reference_step))

        def one(path: str, pair: tuple[torch.Tensor, torch.Tensor]) -> Mapping[str, Any]:
            A_train, A_test = pair
            if not bool(A_train.any()):
                raise ArgumentError("all activations are 0, in which there are no concepts")
            estimator = self._estimator()
            train = estimator.fit_transform(A_train)
            test = estimator.transform(A_test)
            other = self._estimator().fit_transform(A_test)
            matching = dynamics.match_codes(test, other)
            both = torch.stack([test, matching.apply(other)]).cpu().numpy()
            return {
                "train": (("row_train", "concept"), train.cpu().numpy()),
                "test": (("codes", "row_test", "concept"), both),
                "matching_correlation": ("concept", matching.correlation),
            }

        return by_layer(rows, one)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the comparisons, the error on the train rows and the share of each concept."""
        if state is None:
            raise ArgumentError(f"{self.name} needs the state that prepare() returns; got None.")

        def one(path: str, pair: tuple[torch.Tensor, torch.Tensor]) -> Mapping[str, Any]:
            known = layer_state(state, path)
            train, test = (torch.as_tensor(known[name].values).to(pair[0]) for name in _SPLITS)
            result = self._encoded(*pair, train, test)
            if reading.noise:
                result |= self._draws(*pair, train, test)
            return result

        return by_layer(self._rows(reading), one)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add bands, development rows, words and figures."""
        return summarise_encoders(data, self.extractor, self.norm)

    def _rows(self, reading: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Return train and test activations of every layer."""
        values = [reading[need] for need in self.needs()]
        if len(values) == 2:
            return {path: (A, values[1][path]) for path, A in values[0].items()}
        pairs = {}
        for path, A in values[0].items():
            held_out = max(1, round(self.test_fraction * len(A)))
            if held_out >= len(A):
                raise ArgumentError(f"{len(A)} rows are too few to hold {held_out} of them out")
            pairs[path] = (A[:-held_out], A[-held_out:])
        return pairs

    def _encoded(
        self, A_train: torch.Tensor, A_test: torch.Tensor, train: torch.Tensor, test: torch.Tensor
    ) -> dict[str, Any]:
        encoder = self._encoder(A_train, train)
        codes = encoder.predict(A_test)
        return {
            "comparison": self._compared(codes, test),
            "train_error": encoder.relative_error,
            "encoder_rank": float(encoder.rank),
            "gap": encoder.gap,
            "converged": float(encoder.converged),
            "share": ("concept", dynamics.concept_shares(codes, temperature=self.temperature)),
        }

    def _draws(
        self, A_train: torch.Tensor, A_test: torch.Tensor, train: torch.Tensor, test: torch.Tensor
    ) -> dict[str, Any]:
        """Return the comparisons on resampled rows, and with the train codes out of order."""
        rng = np.random.default_rng([self.random_state, 2])
        resampled, shuffled, errors = [], [], []
        for _ in range(_DRAWS):
            rows = torch.from_numpy(np.sort(rng.integers(0, len(A_train), len(A_train))))
            held = torch.from_numpy(np.sort(rng.integers(0, len(A_test), len(A_test))))
            encoder = self._encoder(A_train[rows], train[rows])
            resampled.append(self._compared(encoder.predict(A_test[held]), test[:, held]))
            order = torch.from_numpy(rng.permutation(len(train)))
            encoder = self._encoder(A_train, train[order])
            shuffled.append(self._compared(encoder.predict(A_test), test))
            errors.append(encoder.relative_error)
        return {
            "resampled": xr.concat(resampled, dim="draw"),
            "shuffled": xr.concat(shuffled, dim="draw"),
            "shuffled_train_error": ("draw", np.array(errors)),
        }

    def _encoder(self, A: torch.Tensor, U: torch.Tensor) -> dynamics.Encoder:
        return dynamics.fit_encoder(A, U, self.norm, ridge=self.ridge, intercept=self.intercept)

    def _compared(self, codes: torch.Tensor, references: torch.Tensor) -> xr.DataArray:
        """Return the comparison (metric, codes) with either kind of reference codes."""
        found = [
            dynamics.compare_logits(codes, each, temperature=self.temperature)
            for each in references
        ]
        table = [[getattr(each, metric) for each in found] for metric in METRICS]
        coords = {"metric": list(METRICS), "codes": list(CODES)}
        return xr.DataArray(table, dims=("metric", "codes"), coords=coords)

    def _estimator(self) -> Any:
        return make_extractor(self.extractor, self.n_concepts, self.random_state, self.options)


_SPLITS = ("train", "test")
