"""What modules a model has, and what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from ..inputs import Inputs
from .forward import first_tensor, hooked, quiet, run
from .layers import match_layers

__all__ = ["LayerInfo", "list_layers"]


class LayerInfo(NamedTuple):
    """One module: its path, the name of its class, and the shape of its output.

    The shape is None for a module that is not called or gives no tensor.
    """

    path: str
    kind: str
    shape: tuple[int, ...] | None


def list_layers(
    model: nn.Module, pattern: str | Sequence[str] = "**", inputs: Any = None
) -> list[LayerInfo]:
    """Return the modules that match, with the shapes that they give for one text.

    Parameters
    ----------
    model
        Any module.
    pattern
        Patterns over module paths.
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
    modules = {path: model.get_submodule(path) for path in match_layers(model, pattern)}
    shapes: dict[str, tuple[int, ...]] = {}

    def note(path: str, output: Any) -> None:
        tensor = first_tensor(output)
        if isinstance(tensor, Tensor):
            shapes.setdefault(path, tuple(tensor.shape))

    inputs = Inputs.from_tokens(np.arange(4)[None]) if inputs is None else Inputs.coerce(inputs)
    with quiet(model), hooked(modules, note):
        run(model, inputs.padded("right").subset([0]).batches(1)[0])
    return [
        LayerInfo(path, type(module).__name__, shapes.get(path)) for path, module in modules.items()
    ]
