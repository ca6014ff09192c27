"""Whether what people bring fits the layers of a model: asked once, before a study begins."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ArgumentError
from ..needs import Need
from ..needs.base import Source


@dataclass(frozen=True)
class OfWidth(Need):
    """Layers of a given width; it reads nothing.

    Parameters
    ----------
    layers
        Globs over module paths.
    width
        Features that each of them must have.
    what
        What is brought, as messages say it.
    """

    layers: str | tuple[str, ...]
    width: int
    what: str
    runs_model = False

    def check(self, source: Source) -> None:
        """Refuse layers of another width."""
        for label in source.layers(self.globs(self.layers)):
            width = source.width([label])
            if width != self.width:
                raise ArgumentError(
                    f"{self.what} has {self.width} features, and {label!r} gives {width}; choose "
                    "a layer of that width, or check that it was made for this model."
                )

    def read(self, source: Source) -> None:
        """Return nothing."""

    def tensors(self, source: Source) -> set[str]:
        """Return no tensors."""
        return set()
