"""Reading a model for several needs at once: one forward pass per batch and reading key.

A key is (input set, corruption, attention implementation, whether the vocabulary map is watched).
Needs with the same key share their passes, others get their own, so that a need's numbers are the
same to the last bit whatever else is read (decision 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..errors import ArgumentError, check_choice
from ..inputs import Inputs
from ..needs import Activations, Attention, Gradients, InputSet, Losses, Need
from .activation import ActivationCollector
from .attention import AttentionCollector
from .collect import Collector, feed
from .forward import check_fits, eager_attention, quiet
from .layers import match_attention, match_layers
from .logits import head_path
from .loss import LossCollector, resolve_objective
from .sites import module_of

__all__ = ["ReadingKey", "ReadingSettings", "input_set", "read", "reading_key"]

MASK_FRACTION = 0.15
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
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise ArgumentError(f"batch_size must be a positive integer; got {self.batch_size!r}.")

    def layout(self, inputs: Inputs) -> Inputs:
        """Return `inputs` padded the way they are read."""
        right = self.positions == "right" or self.positions == "auto"
        return inputs.padded("right") if right else inputs


@dataclass(frozen=True)
class ReadingKey:
    """What needs must have in common to share a forward pass."""

    on: str
    corruption: tuple[float, int] | None = None
    eager: bool = False
    watches_head: bool = False


def read(
    model: nn.Module,
    needs: Iterable[Need],
    inputs: Mapping[str, Inputs],
    settings: ReadingSettings | None = None,
) -> dict[Need, Any]:
    """Read `model` for all `needs`, with one forward pass per batch and reading key.

    Parameters
    ----------
    model
        Any module; its modes, gradients and hooks, and the random state, are left as they are.
    needs
        `Activations` give ``{path: (n, m) float32 tensor}``, `Attention` a Dataset
        ``entropy(layer, head, text)``, ``uniform(text)``, ``tokens(text)``, `Losses` a Dataset
        ``loss(text)``, ``tokens(text)``.
    inputs
        Input sets by name; a need with ``on=None`` reads the first.
    settings
        Batch size, device and positions.

    Raises
    ------
    ArgumentError
        If an input set is unknown, or a module's output is not what a need can read.
    LayerMatchError
        If a layer pattern matches nothing.
    NonFiniteError
        If NaN or infinity is read.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> inputs = {"text": Inputs.from_tokens([[1, 2, 3], [4, 5]])}
    >>> need = Activations("1", tokens="mean")
    >>> values = read(model, [need, Losses(objective="causal")], inputs)
    >>> values[need]["1"].shape
    torch.Size([2, 4])
    """
    settings = settings or ReadingSettings()
    groups: dict[ReadingKey, list[Need]] = {}
    for need in dict.fromkeys(needs):
        groups.setdefault(reading_key(model, need, inputs), []).append(need)
    values: dict[Need, Any] = {}
    for key, group in groups.items():
        values |= _read_group(model, key, group, Inputs.coerce(inputs[key.on]), settings)
    return values


def reading_key(model: nn.Module, need: Need, inputs: Mapping[str, Inputs]) -> ReadingKey:
    """Return the key under which `need` is read.

    Raises
    ------
    ArgumentError
        If the need is not one that a forward pass can meet, or names an unknown input set.
    """
    if not isinstance(need, Activations | Attention | Losses):
        raise ArgumentError(
            f"a reading gives Activations, Attention or Losses; got {type(need).__name__}."
        )
    on = input_set(need, inputs)
    if isinstance(need, Attention):
        return ReadingKey(on, eager=True)
    if isinstance(need, Losses):
        masked = resolve_objective(model, need.objective) == "masked"
        return ReadingKey(on, (need.mask_fraction, need.random_state) if masked else None)
    head = head_path(model)
    paths = [module_of(label) for label in match_layers(model, need.patterns)]
    return ReadingKey(
        on,
        (MASK_FRACTION, need.random_state) if need.tokens == "masked" else None,
        watches_head=head is not None and any(f"{head}.".startswith(f"{p}.") for p in paths),
    )


def input_set(
    need: Activations | Attention | Losses | Gradients | InputSet, inputs: Mapping[str, Inputs]
) -> str:
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


def _read_group(
    model: nn.Module,
    key: ReadingKey,
    needs: list[Need],
    inputs: Inputs,
    settings: ReadingSettings,
) -> dict[Need, Any]:
    inputs = settings.layout(inputs)
    ids, masked = inputs.corrupt(*key.corruption) if key.corruption else (None, None)
    check_fits(model, inputs, ids)
    collectors: dict[Need, Collector] = {}
    loss = LossCollector(model, inputs, masked)  # with the same key, all losses are the same
    for need in needs:
        if isinstance(need, Activations):
            sample = inputs.sample(need.tokens, need.max_tokens, need.random_state, MASK_FRACTION)
            paths = match_layers(model, need.patterns)
            collectors[need] = ActivationCollector(paths, inputs, sample, settings.device)
        elif isinstance(need, Attention):
            paths = match_attention(model, need.layers)
            collectors[need] = AttentionCollector(paths, inputs, need.tokens, need.top)
        else:
            collectors[need] = loss
    with quiet(model), eager_attention(model) if key.eager else nullcontext():
        feed(
            model,
            inputs.batches(settings.batch_size, ids),
            list(dict.fromkeys(collectors.values())),
            position_ids=settings.positions == "mask",
        )
    return {need: collector.result() for need, collector in collectors.items()}
