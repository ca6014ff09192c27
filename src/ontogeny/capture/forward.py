"""Running a model on a batch: quietly, without side effects, no further than needed."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError, StudyWarning
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..trajectory.weights.streaming import device_of_parts
from .families import longest_text

_LONGEST_PREFIX = 256  # tokens
# Methods of transformers models that pad texts on the right: what is longer is no prefix.
_PADDING = ("_pad_to_window_size", "_pad_to_block_size", "_pad_to_mult_of_chunk_length")

_pads: ContextVar[bool] = ContextVar("pads", default=False)


class Enough(BaseException):
    """Raised inside a forward pass when all that was asked for has been seen.

    Not an `Exception`, so that no handler in a model's own code swallows it.
    """


def forked_random(model: nn.Module) -> AbstractContextManager[None]:
    """Return the context after which the random states that a model draws from are as before."""
    device = device_of(model)
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


@contextmanager
def quiet(model: nn.Module) -> Iterator[None]:
    """Hold `model` in evaluation mode without gradients; modes and random state come back."""
    modes = {module: module.training for module in model.modules()}
    with forked_random(model), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, training in modes.items():
                module.training = training


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Let no parameter require a gradient meanwhile: a graph then starts at what is added."""
    before = {p: p.requires_grad for p in model.parameters()}
    try:
        for parameter in before:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter, required in before.items():
            parameter.requires_grad_(required)


def device_of(model: nn.Module) -> torch.device:
    """Return the device that token ids go to: that of the first parameter or buffer.

    The weights of a streamed model rest in its files; its parts run elsewhere.
    """
    if (streamed := device_of_parts(model)) is not None:
        return streamed
    for tensor in [*model.parameters(), *model.buffers()]:
        return tensor.device
    return torch.device("cpu")


def takes(model: nn.Module, name: str) -> bool:
    """Return whether the model's forward names the argument `name`."""
    return name in inspect.signature(model.forward).parameters


def _takes_any_keyword(model: nn.Module) -> bool:
    parameters = inspect.signature(model.forward).parameters.values()
    return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def run(model: nn.Module, batch: Batch, *, position_ids: bool = False) -> Any:
    """Return the model's output for `batch`; `position_ids` passes those counted from the mask.

    A model is given ``input_ids`` (else its first argument), and ``attention_mask`` where its
    forward takes it, by name or as any keyword.

    Raises
    ------
    ArgumentError
        If the model has a decoder that needs an input of its own.
    """
    device = device_of(model)
    _pads.set(any(hasattr(type(m), name) for m in model.modules() for name in _PADDING))

    def tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    ids = tensor(np.where(batch.mask, batch.ids, np.minimum(batch.ids, rows_of(model) - 1)))
    inputs: dict[str, Any] = {}
    if takes(model, "attention_mask") or _takes_any_keyword(model):
        inputs["attention_mask"] = tensor(batch.mask.astype(np.int64))
    if position_ids:
        inputs["position_ids"] = tensor(batch.position_ids)
    if takes(model, "targets"):  # nanoGPT computes logits of every token only where it has them
        inputs["targets"] = ids
    if takes(model, "use_cache"):
        inputs["use_cache"] = False  # keys and values of past tokens are never used
    with _no_decoder(model):
        try:
            return _called(model, ids, inputs)
        except TypeError as error:
            # One with **kwargs hands the mask on to what may not take it; nothing was computed.
            if "attention_mask" not in str(error) or takes(model, "attention_mask"):
                raise
        del inputs["attention_mask"]
        return _called(model, ids, inputs)


def _called(model: nn.Module, ids: Tensor, inputs: dict[str, Any]) -> Any:
    return model(input_ids=ids, **inputs) if takes(model, "input_ids") else model(ids, **inputs)


@contextmanager
def _no_decoder(model: nn.Module) -> Iterator[None]:
    """Refuse a decoder with an input of its own, as soon as a pass reaches it.

    Some make that input of the encoder's, shifted by one: a loss would then be shifted twice.
    """
    find = getattr(model, "get_decoder", None)
    if not takes(model, "decoder_input_ids") or not callable(find):
        yield
        return

    def refuse(*_: Any) -> None:
        raise ArgumentError(
            f"{type(model).__name__} has a decoder, which needs an input of its own; load its "
            "encoder alone: model.get_encoder(), or of T5 --model FILE:NAME, a function that "
            "returns T5EncoderModel(T5Config.from_pretrained(CHECKPOINT))."
        )

    handle = cast(Any, find()).register_forward_pre_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


def without_prefix(tensor: Any, shape: Sequence[int]) -> Any:
    """Return an output without the tokens that the model itself puts before every text.

    Such as meta tokens, registers and soft prompts. Of a model that pads every text to a multiple
    of its window, the output is given back as it is, too long.

    Examples
    --------
    >>> without_prefix(torch.ones(2, 5, 3), (2, 5)).shape
    torch.Size([2, 5, 3])
    """
    texts, tokens = shape
    whole = isinstance(tensor, Tensor) and tensor.ndim == 3 and tensor.shape[0] == texts
    if not whole or _pads.get() or not tokens < tensor.shape[1] <= tokens + _LONGEST_PREFIX:
        return tensor
    _say_prefix(tensor.shape[1] - tokens)
    return tensor[:, -tokens:]


@lru_cache(maxsize=256)
def _say_prefix(count: int) -> None:
    words = f"the model puts {count} tokens of its own before every text: they are left out"
    warnings.warn(words, StudyWarning, stacklevel=2)


def first_tensor(output: Any) -> Any:
    """Return a module's output, or its first element if it is a tuple, list or mapping."""
    if isinstance(output, Mapping):
        output = tuple(output.values())
    return output[0] if isinstance(output, Sequence) and len(output) else output


def rows_of(model: nn.Module) -> int:
    """Return how many token ids a model knows; a pad token may have been added without a row."""
    rows = getattr(getattr(model, "config", None), "vocab_size", None)
    return rows if isinstance(rows, int) else sys.maxsize


def check_fits(model: nn.Module, inputs: Inputs, ids: np.ndarray | None = None) -> None:
    """Check that token ids (`ids`, or those of `inputs`) and lengths are within the model's tables.

    Raises
    ------
    ArgumentError
        If an id or a text's length is beyond them.
    """
    config = getattr(model, "config", None)
    rows = getattr(config, "vocab_size", None)
    highest = int((inputs.ids if ids is None else ids).max(where=inputs.mask, initial=0))
    if isinstance(rows, int) and highest >= rows:
        raise ArgumentError(
            f"inputs hold token id {highest}, but {type(model).__name__} has only {rows}; "
            "were they tokenised for another model?"
        )
    longest = longest_text(config)
    if longest is not None and inputs.lengths.max() > longest:
        raise ArgumentError(
            f"inputs hold a text of {inputs.lengths.max()} tokens, but {type(model).__name__} "
            f"takes at most {longest}; use a smaller max_length."
        )
