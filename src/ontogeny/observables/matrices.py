"""Weight matrices of a model by name, at each step on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..capture.blocks import WeightBlock, match_blocks, weight_block
from ..needs import Need
from ..trajectory.weights.files import TensorReader


def parameter_blocks(
    model: nn.Module, patterns: str | Sequence[str]
) -> dict[str, WeightBlock]:
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
    settings = (
        config.to_dict() if config is not None and hasattr(config, "to_dict") else None
    )
    # A reader sorts its names, and layer 10 would come before layer 2.
    order = {name: i for i, name in enumerate(parameters)}
    matched = sorted(
        match_blocks(reader, patterns), key=lambda b: order[b.partition("#")[0]]
    )
    return {name: weight_block(reader, name, settings) for name in matched}


@dataclass(frozen=True, eq=False)
class _OnDevice(Mapping[str, Tensor]):
    """Weight matrices by name; those of files are put on the device when they are asked for."""

    reader: TensorReader
    blocks: Mapping[str, WeightBlock]
    device: str

    def __getitem__(self, name: str) -> Tensor:
        block = self.blocks[name]
        matrix = block.rows(self.reader, 0, block.shape[0]).flatten(1)
        return matrix.to(self.device) if matrix.device.type == "cpu" else matrix

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)


@dataclass(frozen=True)
class Matrices(Need):
    """Weight matrices of a model: ``{name: (n, m) tensor}``, which are not copied.

    Parameters
    ----------
    blocks
        Globs over names, or short names.
    """

    blocks: str | tuple[str, ...]
    reads_inputs = False
    runs_model = False

    def check(self, source: Any) -> None:
        """Refuse patterns that match no weight matrix."""
        parameter_blocks(source.model, self.blocks)

    def read(self, source: Any) -> Mapping[str, Tensor]:
        """Return the matrices; what has more than two dimensions is taken as (first, all other)."""
        return _OnDevice(
            TensorReader(dict(source.model.named_parameters())),
            parameter_blocks(source.model, self.blocks),
            source.settings.device,
        )

    def tensors(self, source: Any) -> set[str]:
        """Return the tensors that the matrices lie in."""
        return {
            block.tensor
            for block in parameter_blocks(source.model, self.blocks).values()
        }
