"""Do a step's activations already tell the reference's concepts: Algorithm 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr

from ontogeny import dynamics
from ontogeny.errors import ArgumentError, check_number
from ontogeny.figures import Heatmap, Section
from ontogeny.needs import InputSet, Need
from ontogeny.observables import PresetEntry, Reading, Run, by_layer
from ontogeny.observables.catalogued import SOME_LAYERS
from ontogeny.observables.extractor_fits import (
    FromExtractor,
    extractor_title,
    layer_state,
)
from ontogeny.quantities import Measured, Quantity
from ontogeny.summary.noise import reference_index
from ontogeny.trees import Nodes
from ontogeny.units import Units

from ...dynamics.least_norm import ENCODER_NORMS, Encoder
from ...dynamics.logits import concept_shares

_CODES = ("train-fitted", "test-fitted")
_METRICS = {
    "cross_entropy": "cross-entropy of the concept distributions",
    "mse": "squared error of the concept distributions",
    "kl": "KL divergence of the concept distributions",
    "correlation": "correlation between the logits",
}
_DRAWS = 3


class _Split(NamedTuple):
    """Train and test rows of one layer, or which texts they come from."""

    train: Any
    test: Any


@dataclass(frozen=True)
class EncoderDynamics(FromExtractor):
    """A linear encoder from each step's activations to the reference's codes, tested on new rows.

    At the reference step an extractor is fitted on train rows; its codes of them are the target of
    the encoders. On test rows an encoder's codes are compared with the ``train-fitted`` extractor's
    and with those of one ``test-fitted`` (the report's), matched to the former once, at the
    reference step. At the noise steps it is refitted on resampled texts and on codes whose rows are
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
        Where texts repeat or share documents, about this share: whole units, see `Inputs.groups`.
    test_on
        Input set of the test rows instead; all rows of `on` then serve to train.
    on, tokens, max_tokens, random_state
        Which rows; `random_state` also seeds the extractor, the resamples and the shuffles.

    Examples
    --------
    >>> EncoderDynamics("ica", n_concepts=20).name
    'encoder-dynamics-ica'
    """

    extractor: str = "ica"
    n_concepts: int = 100
    layers: str | tuple[str, ...] = "mlp"
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

    kind = "encoder-dynamics"
    choices = {"norm": ENCODER_NORMS}
    question = "Can the last checkpoint's concepts be read from earlier activations?"
    presets = (
        PresetEntry(("everything",), {"n_concepts": "$concepts", **SOME_LAYERS}, 120),
    )
    uses_noise = True
    variables = {
        "share": ("mean share of a concept", "1"),
        "encoder_rank": ("rank of the encoder", "directions"),
        "gap": ("duality gap of the solver, relative", "1"),
        "converged": ("whether the solver converged", "1"),
    }
    charts = (
        Heatmap(
            "shares",
            "Share of every concept",
            value="share",
            y="concept",
            facet="layer",
            caption="Mean softmax of the encoded codes: what each of the reference's concepts "
            "counts for at each {checkpoint}, whatever its direction. An encoder that finds "
            "nothing and has no intercept gives codes near 0, and each of r concepts a share near "
            "1/r.",
        ),
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("test_fraction", self.test_fraction, 0, 1, above=True, below=True)
        check_number("ridge", self.ridge)
        check_number("temperature", self.temperature, 1e-12)

    @property
    def name(self) -> str:
        """The label, or ``encoder-dynamics-`` and the extractor."""
        return self.label or f"encoder-dynamics-{self.extractor}"

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """Comparisons on the test rows, and the error on the train rows."""
        nulls = {"shuffled": "codes out of order"}
        return (
            Quantity(
                "comparison",
                "encoded codes against the reference's",
                per="metric",
                labels=_METRICS,
                heading="{label}",
                facet="codes",
                rows=f"{{layer}} · {extractor_title(self.extractor)} codes by encoder",
                at={"metric": "kl", "codes": "train-fitted"},
                relative_to="reference",
                nulls=nulls,
                caption="On held-out rows. Left: codes of the extractor fitted on the train rows; "
                "right: of one fitted on the test rows and matched once, as in the report.",
            ),
            Quantity(
                "train_error",
                "error on the train rows, relative",
                symbol="‖U_ref − AₜEₜ‖ / ‖U_ref‖",
                heading="what the encoder leaves on its train rows",
                nulls=nulls,
                caption="Relative to the norm of the reference's codes. Where the band reaches "
                "down, a map of this size fits anything.",
            ),
        )

    @property
    def section(self) -> Section:  # type: ignore[override]
        """Heading and margin notes."""
        return Section(
            title=f"Encoder dynamics ({extractor_title(self.extractor)})",
            definition="A linear map is fitted from the activations of each {checkpoint} to the "
            "codes of the reference {checkpoint}'s concepts, and tried on rows that it has not "
            "seen: what does this {checkpoint} already tell of the concepts of the reference?",
            symbol="Eₜ = argmin ‖U_ref − AₜE‖ ({norm}),  P = softmax(U_ref), Q = softmax(AₜEₜ)",
            null="Grey: the same map fitted to codes in random order. The untrained model, where "
            "the first checkpoint is one, is the other control: what can be read from random "
            "features.",
            care="An encoder undoes every invertible change of the activations, so that these "
            "curves are smoother than distances between concepts by construction. They say that "
            "the information is there, not that the model uses it. The value at the reference is "
            "left out of the verdict.",
            source="Bernas 2025, Algorithm 3, sec. 6.1, Figs 8-9",
        )

    def needs(self) -> Sequence[Need]:
        """Return the activations of the train rows, and of the test rows where they are others."""
        alone = [InputSet(self.on)] if self.test_on is None else []
        return [*self._of_rows(), *alone]

    def _of_rows(self) -> list[Need]:
        sets = [self.on] if self.test_on is None else [self.on, self.test_on]
        return [self.activations_on(on) for on in sets]

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the reference step's codes of train and test rows."""

        def one(path: str, A: _Split) -> Mapping[str, Any]:
            if not bool(A.train.any()):
                raise ArgumentError(
                    "all activations are 0, in which there are no concepts"
                )
            estimator = self._estimator()
            train = estimator.fit_transform(A.train)
            test = estimator.transform(A.test)
            other = self._estimator().fit_transform(A.test)
            both = torch.stack([test, dynamics.match_codes(test, other).apply(other)])
            return {
                "train": (("row_train", "concept"), train.cpu().numpy()),
                "test": (("codes", "row_test", "concept"), both.cpu().numpy()),
            }

        return by_layer(self._rows(run.reading(run.reference_step)), one)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the comparisons, the error on the train rows and the share of each concept."""

        def one(path: str, A: _Split) -> Mapping[str, Any]:
            layer = layer_state(state, path)
            U = _Split(
                *(
                    torch.as_tensor(layer[part].values).to(A.train)
                    for part in _Split._fields
                )
            )
            encoder = self._encoder(A.train, U.train)
            codes = encoder.predict(A.test)
            noise = self._draws(A, U, self._units(reading)) if reading.noise else {}
            comparison = noise.get("comparison", {})
            errors = noise.get("train_error", {})
            return {
                "comparison": Measured(self._compared(codes, U.test), **comparison),
                "train_error": Measured(encoder.relative_error, **errors),
                "encoder_rank": float(encoder.rank),
                "gap": encoder.gap,
                "converged": float(encoder.converged),
                "share": (
                    "concept",
                    concept_shares(codes, temperature=self.temperature),
                ),
            }

        return by_layer(self._rows(reading), one)

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what the reference itself, the first checkpoint and chance leave, in medians."""
        kl = data.comparison.sel(metric="kl").median("layer")
        words = []
        at = reference_index(data)
        kl_at = None if at is None else kl.isel(step=at)
        if kl_at is not None and np.isfinite(kl_at.values).all():
            words.append(
                f"At the reference {{checkpoint}} the encoder leaves a KL of {_number(kl_at[0])} "
                f"nats to the extractor that it was trained on, and {_number(kl_at[1])} to one "
                "fitted on the test rows: the second is what matching two fits costs, not a change "
                "of the model."
            )
        first = kl.sel(codes="train-fitted").dropna("step")
        chance = data.get("comparison_shuffled")
        elsewhere = first.size and int(first.step[0]) != data.attrs.get(
            "reference_step"
        )
        if chance is not None and elsewhere:
            median = chance.sel(metric="kl", codes="train-fitted").median()
            words.append(
                f"The first checkpoint ({{step}} {int(first.step[0]):,}) leaves "
                f"{_number(first[0])} nats, codes out of order {_number(median)} (medians over "
                "layers)."
            )
        failed = int((data.converged.values == 0).sum())
        return words + (
            [f"{failed} encoders did not reach their tolerance."] if failed else []
        )

    def _rows(self, reading: Reading) -> dict[str, _Split]:
        """Return train and test activations of every layer."""
        values = [reading[need] for need in self._of_rows()]
        if self.test_on is not None:
            return {path: _Split(A, values[1][path]) for path, A in values[0].items()}
        is_test = torch.from_numpy(self._held_out(reading))
        return {
            path: _Split(A[~is_test.to(A.device)], A[is_test.to(A.device)])
            for path, A in values[0].items()
        }

    def _units(self, reading: Reading) -> _Split:
        """Return which texts the train and the test rows come from."""
        units = [reading.units(need) for need in self._of_rows()]
        if self.test_on is not None:
            return _Split(*(Units(rows) for rows in units))
        is_test = self._held_out(reading)
        return _Split(Units(units[0][~is_test]), Units(units[0][is_test]))

    def _held_out(self, reading: Reading) -> np.ndarray:
        """Return which rows (n,) are held out: the last ones, or those of the last units."""
        units = Units(reading.units(self._of_rows()[0]))
        inputs = reading[InputSet(self.on)]
        if inputs.counts["units"] == len(inputs):
            n = len(units.place)
            count = max(1, round(self.test_fraction * n))
            if count >= n:
                raise ArgumentError(f"{n} rows are too few to hold {count} of them out")
            return np.arange(n) >= n - count
        if units.count < 2:
            raise ArgumentError("all rows are of texts that repeat or of one document")
        from_end = np.cumsum(units.sizes[::-1])[:-1]
        count = 1 + int(
            np.abs(from_end - self.test_fraction * len(units.place)).argmin()
        )
        return np.asarray(units.place >= units.count - count)

    def _draws(self, A: _Split, U: _Split, units: _Split) -> dict[str, dict[str, Any]]:
        """Return comparisons on resampled texts, and what train codes out of order give."""
        rng = np.random.default_rng([self.random_state, 2])
        resampled = []
        shuffled = []
        errors = []
        for _ in range(_DRAWS):
            rows, tests = (torch.from_numpy(part.resampled(rng)) for part in units)
            encoder = self._encoder(A.train[rows], U.train[rows])
            resampled.append(
                self._compared(encoder.predict(A.test[tests]), U.test[:, tests])
            )
            order = torch.from_numpy(rng.permutation(len(U.train)))
            encoder = self._encoder(A.train, U.train[order])
            shuffled.append(self._compared(encoder.predict(A.test), U.test))
            errors.append(encoder.relative_error)
        names = xr.DataArray(
            [f"texts {i + 1}" for i in range(_DRAWS)], dims="refit", name="refit"
        )
        several = min(part.count for part in units) > 1
        return {
            "comparison": {
                "replicates": xr.concat(resampled, dim=names) if several else None,
                "nulls": {"shuffled": xr.concat(shuffled, dim="draw")},
            },
            "train_error": {"nulls": {"shuffled": ("draw", np.array(errors))}},
        }

    def _encoder(self, A: torch.Tensor, U: torch.Tensor) -> Encoder:
        return dynamics.fit_encoder(
            A, U, self.norm, ridge=self.ridge, intercept=self.intercept
        )

    def _compared(self, codes: torch.Tensor, references: torch.Tensor) -> xr.DataArray:
        """Return the comparison (metric, codes) with either kind of reference codes."""
        changes = [
            dynamics.compare_logits(codes, reference, temperature=self.temperature)
            for reference in references
        ]
        table = [
            [getattr(comparison, metric) for comparison in changes]
            for metric in _METRICS
        ]
        coords = {"metric": list(_METRICS), "codes": list(_CODES)}
        return xr.DataArray(table, dims=("metric", "codes"), coords=coords)


def _number(value: xr.DataArray | float) -> str:
    return f"{float(value):.2g}"
