"""The need of observables that read directions as tokens: the readout of every layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import check_whole
from ..inputs import Inputs
from ..needs import Need
from .logits import head_path
from .reading import ModelSource
from .readout import Readout, readouts, why_no_readout


@dataclass(frozen=True, eq=False)
class LayerReadouts(Mapping[str, Readout]):
    """The readouts of layers by label; those without one are missing.

    Parameters
    ----------
    found
        The readouts.
    reasons
        Why the other layers have none.

    Examples
    --------
    >>> LayerReadouts({}, {"h.0.mlp.c_fc": "it is no site of the stream"}).get("h.0.mlp.c_fc")
    """

    found: Mapping[str, Readout]
    reasons: Mapping[str, str]

    def __getitem__(self, label: str) -> Readout:
        return self.found[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


@dataclass(frozen=True)
class Readouts(Need):
    """What layers write to the vocabulary: `LayerReadouts`, see `ontogeny.capture.readout`.

    Layers may be any; those that do not write into the residual stream have no readout. A few texts
    are run, for the scales of the norms.

    Parameters
    ----------
    layers
        Glob or globs over module paths, or short names.
    on
        Name of the input set; None means the study's first.
    n_texts
        Texts that the scales are averaged over, evenly spaced in the set.

    Examples
    --------
    >>> from torch import nn
    >>> from ontogeny.capture import read
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> need = Readouts("1")
    >>> read(model, [need], {"text": Inputs.from_tokens([[1, 2]])})[need].reasons
    {'1': 'Sequential has no linear map to a vocabulary'}
    """

    layers: str | tuple[str, ...]
    on: str | None = None
    n_texts: int = 8

    def __post_init__(self) -> None:
        if isinstance(self.layers, list):
            object.__setattr__(self, "layers", tuple(self.layers))
        check_whole("n_texts", self.n_texts)

    def labels(self, source: ModelSource) -> tuple[str, ...]:
        """Return the labels of the modules that match."""
        layers = (self.layers,) if isinstance(self.layers, str) else self.layers
        return source.layers(layers)

    def read(self, source: ModelSource) -> LayerReadouts:
        """Return the readouts, from one pass of the texts."""
        labels = self.labels(source)
        reasons = {label: why_no_readout(source.model, label) for label in labels}
        known = [label for label in labels if not reasons[label]]
        if not known:
            return LayerReadouts({}, reasons)
        found = readouts(
            source.model,
            known,
            inputs=self._texts(source.inputs),
            vocabulary=source.inputs.vocab_size,
        )
        return LayerReadouts(
            {label: found[label] for label in known},
            {label: why for label, why in reasons.items() if why},
        )

    def tensors(self, source: ModelSource) -> set[str]:
        """Return the tensors of all modules that are called."""
        return source.tensors_read()

    def size(self, source: ModelSource) -> int:
        """Return the bytes of the vocabulary map in float32."""
        path = head_path(source.model)
        if path is None:
            return 0
        return 4 * source.model.get_submodule(path).get_parameter("weight").numel()

    def _texts(self, inputs: Inputs) -> Inputs:
        count = min(self.n_texts, len(inputs))
        return inputs.subset(np.linspace(0, len(inputs) - 1, count).astype(int))
