"""Weight blocks of a module in memory, and of any tensors that go by its parameters' names.

Gradients and updates have the names and shapes of the parameters, so one block reads them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from ...capture.blocks import WeightBlock, match_blocks, weight_block
from ...trajectory.weights import TensorReader


def parameter_blocks(model: nn.Module, patterns: str | Sequence[str]) -> dict[str, WeightBlock]:
    """Return the weight matrices of `model` that match, by name; tied ones under one name.

    They come in the order in which the model has them.

    Parameters
    ----------
    model
        Any module.
    patterns
        As in `match_blocks`; parts of fused projections included (``"#q"``).

    Raises
    ------
    LayerMatchError
        If a pattern matches no weight matrix.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2), nn.Linear(2, 1))
    >>> list(parameter_blocks(model, "*.weight"))
    ['0.weight', '2.weight']
    """
    parameters = dict(model.named_parameters())
    reader = TensorReader(parameters)
    config = getattr(model, "config", None)
    known = config.to_dict() if config is not None and hasattr(config, "to_dict") else None
    # A reader sorts its names, and layer 10 would come before layer 2.
    order = {name: i for i, name in enumerate(parameters)}
    matched = sorted(match_blocks(reader, patterns), key=lambda b: order[b.partition("#")[0]])
    return {name: weight_block(reader, name, known) for name in matched}


def block_values(block: WeightBlock, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the entries of `block` in `tensors`, as a vector.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> block = parameter_blocks(model, "weight")["weight"]
    >>> block_values(block, dict(model.named_parameters())).shape
    torch.Size([6])
    """
    return block.rows(TensorReader(tensors), 0, block.shape[0]).reshape(-1)
