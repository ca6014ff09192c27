"""Layers of a model on texts that an observable brings itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from ..capture.activation import ActivationCollector
from ..capture.collect import feed
from ..capture.families import longest_text
from ..capture.forward import check_fits
from ..capture.objectives import ReadingSettings
from ..inputs import Inputs
from ..inputs.sampling import TokenSample
from ..needs import Need
from ..needs.base import Source


class LayerReader:
    """A model that gives activations of chosen layers on any texts, until the next is read.

    Parameters
    ----------
    model
        The module.
    labels
        Layers.
    settings
        How it is read.
    """

    def __init__(
        self, model: nn.Module, labels: Sequence[str], settings: ReadingSettings
    ) -> None:
        self._model = model
        self._settings = settings
        self.labels = tuple(labels)

    @property
    def longest(self) -> int | None:
        """Tokens that a text may have; None if the model sets no limit."""
        return longest_text(getattr(self._model, "config", None))

    def activations(self, inputs: Inputs, sample: TokenSample) -> dict[str, Tensor]:
        """Return activations (rows, m) at tokens of texts, by layer."""
        laid_out = self._settings.layout(inputs)
        check_fits(self._model, laid_out)
        collector = self.collector(inputs, sample)
        feed(
            self._model,
            laid_out.batches(self._settings.batch_size),
            [collector],
            position_ids=self._settings.positions == "mask",
        )
        return collector.result()

    def collector(self, inputs: Inputs, sample: TokenSample) -> ActivationCollector:
        """Return what takes the same out of passes over these texts that something else makes."""
        laid_out = self._settings.layout(inputs)
        return ActivationCollector(self.labels, laid_out, sample, self._settings.device)


@dataclass(frozen=True)
class OwnTexts(Need):
    """Layers to be read on an observable's own texts: a `LayerReader`. Forward passes are its own.

    Parameters
    ----------
    layers
        Globs over module paths, or short names.
    on
        Input set that says how the model is read; the first by default.
    """

    layers: str | tuple[str, ...]
    on: str | None = None

    def labels(self, source: Source) -> tuple[str, ...]:
        """Return the labels of the layers that match."""
        found: tuple[str, ...] = source.layers(self.globs(self.layers))
        return found

    def check(self, source: Source) -> None:
        """Refuse patterns that match no layer."""
        self.labels(source)

    def read(self, source: Source) -> LayerReader:
        """Return what reads the layers."""
        return LayerReader(source.model, self.labels(source), source.settings)

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the deepest layer."""
        names: set[str] = source.tensors_read(self.labels(source))
        return names
