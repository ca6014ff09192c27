"""How a model is read, and of which input set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ArgumentError, check_choice, check_whole
from ..inputs import Inputs
from ..needs import Need

POSITIONS = ("auto", "model", "mask", "right")


@dataclass(frozen=True)
class ReadingSettings:
    """How a model is read.

    Parameters
    ----------
    batch_size
        Texts in one forward pass. It may change the last bits of a result.
    device
        Where activations are put. The model runs where it is.
    positions
        How token positions are told to the model: ``"model"`` leaves them to it, ``"mask"`` passes
        position ids counted from the mask, ``"right"`` pads on the right whatever the inputs do,
        ``"auto"`` is ``"right"`` for inputs that are padded on the left and else ``"model"``.
        `check_batch_invariance` tells which of them is right.
    """

    batch_size: int = 16
    device: str = "cpu"
    positions: str = "auto"

    def __post_init__(self) -> None:
        check_choice("positions", self.positions, POSITIONS)
        check_whole("batch_size", self.batch_size)

    def layout(self, inputs: Inputs) -> Inputs:
        """Return `inputs` padded the way they are read."""
        return inputs.padded("right") if self.positions in ("right", "auto") else inputs


def input_set(need: Need, inputs: Mapping[str, Inputs]) -> str:
    """Return the name of the input set that `need` reads.

    Raises
    ------
    ArgumentError
        If there is no such set.
    """
    if not inputs:
        raise ArgumentError("inputs must hold at least one input set.")
    on = next(iter(inputs)) if need.on is None else need.on
    return check_choice("on", on, inputs)
