"""How concepts of a study are described: on its texts, beside its untrained model.

`ontogeny.describe` has the functions on arrays; here they meet a study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...capture.vocabulary_map import Readout
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...inputs import Inputs
from ...inputs.sampling import TokenSample
from ...needs import Activations, InputSet, Need, Readouts
from ...observables.fit_identity import code_sketch, fit_id
from ...observables.readings import Run
from .describe.contexts import contexts
from .describe.enrichment import enrichment
from .describe.names import names
from .describe.rows import Rows, concentration, turned
from .describe.tokens import strongest_tokens
from .described import arrays, piece_array
from .naming import beside

NONE = "there is no untrained model to compare with"


@dataclass(frozen=True)
class Describer:
    """Describes codes of the tokens that a need reads.

    Parameters
    ----------
    need
        The activations whose tokens have codes.
    examples
        Contexts of each concept; 0 describes nothing.
    """

    need: Activations
    examples: int

    @property
    def active(self) -> bool:
        """Whether concepts are described; means of whole texts have no tokens."""
        return self.examples > 0 and self.need.tokens != "mean"

    def needs(self) -> list[Need]:
        """Return what is read beside the activations."""
        needs = [InputSet(self.need.on), Readouts(self.need.layers, self.need.on)]
        return needs if self.active else []

    def texts(self, reading: Any) -> Texts:
        """Return the texts of a reading, with the tokens that have codes."""
        inputs = reading[InputSet(self.need.on)]
        need = self.need
        sample = inputs.sample(need.tokens, need.max_tokens, need.random_state)
        return Texts(inputs, sample, self.examples, need.random_state)

    def readouts(self, reading: Any) -> Mapping[str, Readout]:
        """Return the maps of the layers to the vocabulary; none where nothing is described."""
        if not self.active:
            return {}
        readouts: Mapping[str, Readout] = reading[
            Readouts(self.need.layers, self.need.on)
        ]
        return readouts

    def untrained(
        self, run: Run, codes: Callable[[torch.Tensor], np.ndarray]
    ) -> Untrained:
        """Return how sharp the latents of the untrained model are, layer by layer.

        `codes` fits latents to activations (n, m) and returns their codes (n, r). Latents that
        never fire, as where there are fewer directions than latents, are none.
        """
        try:
            reading = run.untrained()
            values = reading[self.need]
            texts = self.texts(reading)
        except (ArgumentError, CheckpointError, NonFiniteError) as error:
            return Untrained({}, {}, f"{NONE}: {error}".split("\n")[0].rstrip("."))
        by_path = {}
        failed = {}
        for path, A in values.items():
            try:
                by_path[path] = texts.of_untrained(codes(A))
            except (ValueError, ArithmeticError, RuntimeError) as error:
                failed[path] = f"{NONE}: {error}".split("\n")[0].rstrip(".")
        return Untrained(
            by_path, failed, NONE, getattr(reading, "stands_in_because", "")
        )

    def pieces(self, run: Run) -> xr.DataArray:
        """Return how every token of the vocabulary is written."""
        return piece_array(run.pieces(self.need))


def _firing(codes: np.ndarray) -> np.ndarray:
    """Return the codes of the latents that fire; zeros of others would lower the limit."""
    firing = codes[:, codes.any(axis=0)]
    if not firing.shape[1]:
        raise ArgumentError("none of its latents fires")
    return firing


@dataclass(frozen=True)
class Untrained:
    """Concentrations of the untrained model's latents by layer, or why there are none.

    ``stands_in_because`` is why the model has its trained weights with their values in random order
    instead.
    """

    by_layer: Mapping[str, np.ndarray]
    failed: Mapping[str, str]
    reason: str
    stands_in_because: str = ""

    @classmethod
    def stored(cls, layer: xr.Dataset, path: str) -> Untrained:
        """Return those of one layer of a state."""
        if "concentration_untrained" not in layer:
            return cls({}, {}, str(layer["unnamed_because"].item()))
        values = layer["concentration_untrained"].values
        finite = (
            {path: values[np.isfinite(values)]} if np.isfinite(values).any() else {}
        )
        return cls(finite, {}, str(layer["unnamed_because"].item()))

    def because(self, path: str) -> str:
        """Return why concepts of a layer can get no name; empty where they can."""
        return "" if path in self.by_layer else self.failed.get(path, self.reason)

    def variables(self, path: str) -> dict[str, Any]:
        """Return what a state keeps of a layer."""
        variables: dict[str, Any] = {
            "unnamed_because": ((), np.array(self.because(path), dtype=object)),
            "stands_in_because": ((), np.array(self.stands_in_because, dtype=object)),
        }
        if path in self.by_layer:
            values = self.by_layer[path]
            coords = {"untrained": np.arange(len(values))}
            variables["concentration_untrained"] = xr.DataArray(
                values, coords, dims="untrained"
            )
        return variables


@dataclass(frozen=True)
class Texts:
    """The texts that codes are of, and what describes codes on them."""

    inputs: Inputs
    sample: TokenSample
    examples: int
    random_state: int

    def concentration(self, codes: np.ndarray) -> np.ndarray:
        """Return the share (r,) of the squared code on three tokens, on held-out texts."""
        return np.asarray(
            concentration(codes, self.inputs, self.sample, self.random_state)
        )

    def of_untrained(self, codes: np.ndarray) -> np.ndarray:
        """Return the concentrations of an untrained model's latents."""
        return self.concentration(_firing(codes))

    def described(
        self, codes: np.ndarray, untrained: np.ndarray | None, pieces: list[str]
    ) -> dict[str, Any]:
        """Return tokens, names and the like of the concepts with codes (n, r)."""
        parts = (
            f(codes, self.inputs, self.sample) for f in (strongest_tokens, enrichment)
        )
        return {
            **arrays(*parts),
            **self._names(codes, untrained, pieces),
            "fit_id": fit_id(codes),
            "code_sketch": code_sketch(turned(codes), self.sample),
        }

    def told_apart(
        self, described: dict[str, Any], codes: np.ndarray, pieces: list[str]
    ) -> dict[str, Any]:
        """Return what describes concepts, with what tells those of equal names apart."""
        names = xr.Dataset(described)["name"].values.tolist()
        rows = Rows(self.inputs, self.sample)
        neighbours = beside(turned(codes), rows, names, pieces)
        return {**described, "name_beside": ("concept", neighbours)}

    def contexts(self, codes: np.ndarray, prefix: str = "") -> dict[str, Any]:
        """Return where codes are strongest, under names with a prefix."""
        examples = contexts(codes, self.inputs, self.sample, examples=self.examples)
        return {f"{prefix}{name}": value for name, value in arrays(examples).items()}

    def _names(
        self, codes: np.ndarray, untrained: np.ndarray | None, pieces: list[str]
    ) -> dict[str, Any]:
        if untrained is None:
            none = np.full(codes.shape[1], "", dtype=object)
            shares = self.concentration(codes).astype(np.float32)
            return {"name": ("concept", none), "concentration": ("concept", shares)}
        chosen_names = names(
            codes,
            self.inputs,
            self.sample,
            untrained=untrained,
            pieces=pieces,
            random_state=self.random_state,
        )
        return arrays(chosen_names)
