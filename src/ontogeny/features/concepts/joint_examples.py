"""What readouts of joint concepts say of every token of a few texts, for the example text."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...capture.activation import ActivationCollector
from ...concepts.joint.readout import CheckpointReadout
from ...inputs import Inputs, ShownTexts
from ...inputs.sampling import TokenSample
from ...needs import Activations, InputSet, Need
from ...observables.pieces import SHOWN, shown_variables
from ...observables.readings import Reading
from ...words.names import Names

PARTS = 100  # of the largest shared code of a concept, that codes are stored in
FULL = 250  # the largest number that is stored
MISSING = 255  # no code there

SHOWN_KEPT = (*SHOWN, "shown_shared_code")
SHOWN_CODES: Names = {
    **SHOWN,
    "shown_code": (
        "code of each token shown by a readout of the checkpoint; 255 where there is none",
        "hundredths of the largest shared code",
    ),
    "shown_shared_code": (
        "shared code of each token shown; 255 where it was not fitted",
        "hundredths of the largest shared code",
    ),
}
_DIMS = ("concept", "shown_text", "shown_place")


@dataclass(frozen=True)
class ShownActivations(Need):
    """Activations of the ordinary tokens of a few texts: ``{module path: (n, m) float32 tensor}``.

    They are read whole however few tokens are sampled of all texts, in the same forward passes.
    """

    layers: str | tuple[str, ...]
    on: str | None = None
    count: int = 3

    def labels(self, source: Any) -> tuple[str, ...]:
        """Return the labels of the modules that match."""
        return Activations(self.layers, self.on).labels(source)

    def pass_key(self, source: Any) -> Hashable:
        """Return the key of the pass that other activations are read in."""
        return Activations(self.layers, self.on).pass_key(source)

    def collector(self, source: Any) -> ActivationCollector:
        """Return what gathers the tokens."""
        sample = ShownTexts.of(source.inputs, self.count).sample
        return ActivationCollector(
            self.labels(source), source.inputs, sample, source.settings.device
        )

    def tensors(self, source: Any) -> set[str] | None:
        """Return the tensors of the modules up to the deepest layer."""
        return Activations(self.layers, self.on).tensors(source)

    def units(self, inputs: Inputs) -> np.ndarray:
        """Return the unit of every token."""
        return np.asarray(inputs.groups[ShownTexts.of(inputs, self.count).sample.text])


@dataclass(frozen=True)
class ShownCodes:
    """Codes of every token of a few texts.

    Parameters
    ----------
    need
        The activations that codes are fitted to.
    count
        Number of texts; 0 keeps nothing.
    """

    need: Activations
    count: int

    def needs(self) -> list[Need]:
        """Return what is read beside the activations."""
        return [self._activations, InputSet(self.need.on)] if self.count else []

    def with_texts(self, state: xr.Dataset, reading: Reading) -> xr.Dataset:
        """Return a state with the texts, and the shared codes of those tokens that were fitted."""
        if not self.count:
            return state
        inputs = reading[InputSet(self.need.on)]
        need = self.need
        texts = ShownTexts.of(inputs, self.count)
        row = rows_of(
            texts.sample, inputs.sample(need.tokens, need.max_tokens, need.random_state)
        )
        codes = state.codes.transpose("layer", "token", "concept").values
        there = (row >= 0)[:, None]
        parts = [_grid(np.where(there, one[row], np.nan), one, texts) for one in codes]
        return state.assign(
            shown_variables(texts)
            | {"shown_shared_code": (("layer", *_DIMS), np.stack(parts))}
        )

    def at_step(
        self, reading: Reading, half: np.ndarray
    ) -> Callable[[str, torch.Tensor, float, CheckpointReadout], dict[str, Any]]:
        """Return what gives the codes of one layer at a step, by the readouts of this checkpoint.

        A token gets the readout that is not fitted on its text; `half` (n,) are the tokens of one
        half of the texts. It is given path, activations (n, m), their standard deviation and what
        the checkpoint says of the latents.
        """
        if not self.count:
            return lambda *_: {}
        texts_shown = ShownTexts.of(reading[InputSet(self.need.on)], self.count)
        values = reading[self._activations]
        texts = reading.units(self.need)
        # Every text shown is on the side of the fold on which the sampled tokens of its unit are.
        first = np.isin(reading.units(self._activations), texts[half])

        def one(
            path: str, A: torch.Tensor, size: float, there: CheckpointReadout
        ) -> dict[str, Any]:
            codes = there.decoder.codes
            moments = there.moments
            # Centred by the mean of the sampled tokens, which the readouts were fitted on.
            Y = to_numpy(values[path]).astype(np.float64) - to_numpy(A).astype(
                np.float64
            ).mean(0)
            # Constant features, as where they are standardised.
            Y[:, ~moments.X.any(axis=0)] = 0.0
            predicted = moments.predicted_of(
                (Y / size).astype(np.float32), first, codes
            )
            return {"shown_code": (_DIMS, _grid(predicted, codes, texts_shown))}

        return one

    @property
    def _activations(self) -> ShownActivations:
        return ShownActivations(self.need.layers, self.need.on, self.count)


def rows_of(tokens_of: TokenSample, sample: TokenSample) -> np.ndarray:
    """Return the row of `sample` that each wanted token is, -1 where it is none.

    Examples
    --------
    >>> sample = TokenSample(np.array([0, 0, 2]), np.array([1, 3, 0]))
    >>> rows_of(TokenSample(np.array([0, 0, 2]), np.array([3, 4, 0])), sample).tolist()
    [1, -1, 2]
    """
    places = enumerate(zip(sample.text.tolist(), sample.position.tolist(), strict=True))
    rows = {token: row for row, token in places}
    tokens = zip(tokens_of.text.tolist(), tokens_of.position.tolist(), strict=True)
    return np.array([rows.get(token, -1) for token in tokens], dtype=int)


def shown_of_concepts(data: xr.Dataset) -> xr.Dataset:
    """Return a node with codes of its concepts alone, as small numbers."""
    variables = {}
    for name in ("shown_code", "shown_shared_code"):
        if name in data:
            codes = data[name].fillna(MISSING).astype(np.uint8)
            if "concept_kind" in data:
                concept = ~data.concept_kind.isin(["", "no concept"])
                codes = codes.where(concept, np.uint8(MISSING)).transpose(
                    *data[name].dims
                )
            variables[name] = codes
    return data.assign(variables)


def _grid(values: np.ndarray, codes: np.ndarray, texts: ShownTexts) -> np.ndarray:
    """Return codes (tokens, r) over concept, text and place, in parts of the largest shared one."""
    peak = codes.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.clip(np.round(PARTS * values / peak), 0, FULL)
    as_bytes = np.where(np.isfinite(parts), parts, MISSING).astype(np.uint8)
    return texts.grid(as_bytes.T, np.uint8(MISSING))
