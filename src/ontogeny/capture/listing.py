"""What modules a model has, and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from ..inputs import Inputs
from .forward import first_tensor, quiet, run
from .layers import match_layers
from .sites import module_of, watched


class LayerInfo(NamedTuple):
    """One site: its label, the name of its module's class, and the shape of what it gives.

    The shape is None for a module that is not called or gives no tensor.
    """

    path: str
    kind: str
    shape: tuple[int, ...] | None


def list_layers(
    model: nn.Module, pattern: str | Sequence[str] = "**", inputs: Any = None
) -> list[LayerInfo]:
    """Return the sites that match, with the shapes that they give for one text.

    Parameters
    ----------
    model
        Any module.
    pattern
        Patterns over module paths (see :mod:`ontogeny.capture.layers`).
    inputs
        The first text of these is run; None runs a text of four tokens.

    Raises
    ------
    LayerMatchError
        If a pattern matches no module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
    >>> list_layers(model, "1")
    [LayerInfo(path='1', kind='Linear', shape=(1, 4, 3))]
    """
    labels = match_layers(model, pattern)
    shapes: dict[str, tuple[int, ...]] = {}

    def note(path: str, output: Any) -> None:
        tensor = first_tensor(output)
        if isinstance(tensor, Tensor):
            shapes.setdefault(path, tuple(tensor.shape))

    inputs = Inputs.from_tokens(np.arange(4)[None]) if inputs is None else Inputs.coerce(inputs)
    with quiet(model), watched(model, labels, note):
        run(model, inputs.padded("right").subset([0]).batches(1)[0])
    return [
        LayerInfo(label, type(model.get_submodule(module_of(label))).__name__, shapes.get(label))
        for label in labels
    ]
