"""Losses by name, differentiable, for observables that need gradients.

A study file names a loss and never holds a path to code. Other packages add theirs as
entry points of the group ``ontogeny.losses``: a function ``(inputs, need) -> loss(model, batch)``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .._exports import load_entry
from ..errors import ArgumentError, check_choice, check_whole
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..needs import Gradients, Need
from .forward import run, without_added
from .logits import logits_of
from .loss import resolve_objective
from .predicted import next_tokens
from .trial.causality import check_causal, check_logits

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


GROUP = "ontogeny.losses"

Loss: TypeAlias = Callable[[nn.Module, Batch], Tensor]


def loss_names() -> tuple[str, ...]:
    """Return the names that `ontogeny.needs.Gradients` may give as its loss.

    Under a name of the library's own, an installed package's loss is never used.

    Examples
    --------
    >>> loss_names()[:3]
    ('next-token', 'masked', 'classification')
    """
    return (*_OURS, *entry_points(group=GROUP).names)


def make_loss(
    model: nn.Module, inputs: Inputs, need: Gradients, *, position_ids: bool = False
) -> Loss:
    """Return the loss that `need` names, as a function ``loss(model, batch)``.

    Parameters
    ----------
    model
        Tells what is predicted where `need` names no loss.
    inputs
        The input set; its labels are those of ``"classification"``.
    need
        Name of the loss and its settings.
    position_ids
        Whether the model is given positions counted from the mask.

    Raises
    ------
    ArgumentError
        If the loss is unknown, or the inputs lack what it predicts.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> inputs = Inputs.from_tokens([[1, 2, 3], [4, 5]])
    >>> loss = make_loss(model, inputs, Gradients("next-token"))
    >>> loss(model, inputs.batches(2)[0]).shape
    torch.Size([])
    """
    name = need.loss
    if name is None:
        name = {"causal": "next-token", "masked": "masked"}[_objective(model, inputs)]
    if name == "next-token":
        check_causal(model, inputs)
    elif name == "masked":
        check_logits(model, inputs)
    if name in _OURS:
        return _OURS[name](inputs, need, position_ids)
    # Which looks through all installed packages.
    check_choice("loss", name, loss_names())
    loss = load_entry("loss", entry_points(group=GROUP)[name], ArgumentError)(
        inputs, need
    )
    if not callable(loss):
        raise ArgumentError(
            f"the loss {name!r} must be a function (inputs, need) that returns loss(model, batch); "
            f"it returned {type(loss).__name__}."
        )
    return loss


def _objective(model: nn.Module, inputs: Inputs) -> str:
    try:
        return resolve_objective(model)
    except ArgumentError:
        raise ArgumentError(
            f"the class name {type(model).__name__} does not show what the model predicts; give "
            f"loss= one of {', '.join(map(repr, loss_names()))}."
        ) from None


def _next_token(inputs: Inputs, need: Gradients, position_ids: bool) -> Loss:
    positions = next_tokens(inputs)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = _of_every_token(run(model, batch, position_ids=position_ids), batch)
        predicted = positions[batch.rows, batch.columns]
        return _of_tokens(logits[:, :-1], predicted[:, 1:], batch.ids[:, 1:])

    return loss


def _masked(inputs: Inputs, need: Gradients, position_ids: bool) -> Loss:
    ids, positions = inputs.corrupt(need.mask_fraction, need.random_state)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        seen = dataclasses.replace(batch, ids=ids[batch.rows, batch.columns])
        logits = _of_every_token(run(model, seen, position_ids=position_ids), batch)
        return _of_tokens(logits, positions[batch.rows, batch.columns], batch.ids)

    return loss


def _classification(inputs: Inputs, need: Gradients, position_ids: bool) -> Loss:
    if inputs.labels is None:
        raise ArgumentError(
            "the loss 'classification' needs inputs with labels=; they have none."
        )
    labels = np.asarray(inputs.labels)
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or labels.min() < 0:
        raise ArgumentError(
            "the loss 'classification' needs one class number (0, 1, ...) per text as label; "
            f"labels have dtype {labels.dtype} and shape {labels.shape}."
        )
    targets = torch.from_numpy(labels.astype(np.int64))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = _logits(run(model, batch, position_ids=position_ids))
        if logits.ndim == 3:  # read out at the last token of each text
            logits = logits[torch.arange(len(logits)), torch.from_numpy(batch.last)]
        classes = targets[torch.from_numpy(np.asarray(batch.rows))]
        return cross_entropy(logits, classes.to(logits.device))

    return loss


def _none(inputs: Inputs, need: Gradients, position_ids: bool) -> Loss:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        raise ArgumentError("this need gives the model without a loss (loss='none').")

    return loss


_OURS: dict[str, Callable[[Inputs, Gradients, bool], Loss]] = {
    "next-token": _next_token,
    "masked": _masked,
    "classification": _classification,
    "none": _none,
}


def _of_tokens(logits: Tensor, predicted: np.ndarray, ids: np.ndarray) -> Tensor:
    """Return the mean cross-entropy at the `predicted` positions, in the logits' own dtype."""
    rows, columns = np.nonzero(predicted)
    if not len(rows):
        raise ArgumentError(
            "no token of this batch is predicted: its texts are too short."
        )
    where = (
        torch.from_numpy(rows).to(logits.device),
        torch.from_numpy(columns).to(logits.device),
    )
    target = torch.from_numpy(np.ascontiguousarray(ids[rows, columns])).to(
        logits.device
    )
    return cross_entropy(logits[where], target)


def _of_every_token(output: Any, batch: Batch) -> Tensor:
    """Return logits (texts, tokens, vocabulary), without tokens that the model adds itself."""
    logits = without_added(_logits(output), batch.ids.shape)
    if tuple(logits.shape[:-1]) != batch.ids.shape:
        raise ArgumentError(
            f"a loss of tokens needs logits of shape (texts, tokens, vocabulary) = "
            f"({batch.ids.shape[0]}, {batch.ids.shape[1]}, v); got {tuple(logits.shape)}."
        )
    return logits


def _logits(output: Any) -> Tensor:
    logits = logits_of(output)
    if not isinstance(logits, Tensor) or logits.ndim not in (2, 3):
        got = (
            tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        )
        raise ArgumentError(
            "a loss needs logits of shape (texts, classes) or (texts, tokens, classes), as "
            f".logits or as the model's output; got {got}."
        )
    return logits
