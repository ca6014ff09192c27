"""Running a model on a batch: quietly, without side effects, no further than needed."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain
from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError, StudyWarning
from ..inputs import Inputs
from ..inputs.batches import Batch
from ..trajectory.weights.placement import is_placed
from ..trajectory.weights.streaming import device_of_parts
from .families import longest_text

_LONGEST_PREFIX = 256  # tokens
# Methods of transformers models that pad texts on the right: what is longer is no prefix.
_PADDING = ("_pad_to_window_size", "_pad_to_block_size", "_pad_to_mult_of_chunk_length")

# Where tokens stand that a model adds to every text: `BEFORE` it or `AFTER` it. Of models that pad
# to a multiple of their window nothing is cut, and of an `UNKNOWN` side nothing is guessed.
BEFORE = "before"
AFTER = "after"
WINDOW = "window"
UNKNOWN = "unknown"
_side: ContextVar[str] = ContextVar("side", default=BEFORE)
# Of models that were looked at.
_sides: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
# Whether maps must be asked for.
_asks: ContextVar[bool] = ContextVar("asks", default=False)
_without_targets: WeakSet[nn.Module] = WeakSet()


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
    # Of hundreds, one is asked for.
    for tensor in chain(model.parameters(), model.buffers()):
        # Hooks of accelerate, which keep the weights meanwhile, move the ids themselves.
        is_away = tensor.is_meta and is_placed(model)
        return torch.device("cpu") if is_away else tensor.device
    return torch.device("cpu")


def takes(model: nn.Module, name: str) -> bool:
    """Return whether the model's forward names the argument `name`."""
    return name in inspect.signature(model.forward).parameters


def _takes_any_keyword(model: nn.Module) -> bool:
    parameters = inspect.signature(model.forward).parameters.values()
    return any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
    )


def run(
    model: nn.Module,
    batch: Batch,
    *,
    position_ids: bool = False,
    mask: bool = True,
    targets: np.ndarray | None = None,
) -> Any:
    """Return the model's output for `batch`; `position_ids` passes those counted from the mask.

    A model is given ``input_ids`` (else its first argument), and ``attention_mask`` where its
    forward takes it, by name or as any keyword. That is left out without `mask`. Where it needs
    ``targets``, they are its ids, unless others are given.

    Raises
    ------
    ArgumentError
        If the model has a decoder that needs an input of its own.
    """
    device = device_of(model)
    pads = any(map(_pads, model.modules()))
    _side.set(WINDOW if pads else _sides.get(model, BEFORE))

    def tensor(array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    ids = tensor(
        np.where(batch.mask, batch.ids, np.minimum(batch.ids, rows_of(model) - 1))
    )
    inputs: dict[str, Any] = {}
    if mask and (takes(model, "attention_mask") or _takes_any_keyword(model)):
        inputs["attention_mask"] = tensor(batch.mask.astype(np.int64))
    if position_ids:
        inputs["position_ids"] = tensor(batch.position_ids)
    # nanoGPT computes logits of every token only where it has targets.
    if takes(model, "targets") and model not in _without_targets:
        inputs["targets"] = ids.clone() if targets is None else tensor(targets)
    if takes(model, "use_cache"):
        inputs["use_cache"] = False  # keys and values of past tokens are never used
    if _asks.get() and (takes(model, "output_attentions") or _takes_any_keyword(model)):
        inputs["output_attentions"] = True
    with _no_decoder(model):
        try:
            return _called(model, ids, inputs)
        except TypeError as error:
            # One with **kwargs hands the mask on to what may not take it; nothing was computed.
            given = "attention_mask" in inputs and not takes(model, "attention_mask")
            if "attention_mask" not in str(error) or not given:
                raise
        del inputs["attention_mask"]
        return _called(model, ids, inputs)


@contextmanager
def asked_for_maps() -> Iterator[None]:
    """Ask transformers models for their attention maps, which some compute only then."""
    token = _asks.set(True)
    try:
        yield
    finally:
        _asks.reset(token)


def _called(model: nn.Module, ids: Tensor, inputs: dict[str, Any]) -> Any:
    return (
        model(input_ids=ids, **inputs)
        if takes(model, "input_ids")
        else model(ids, **inputs)
    )


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


def _pads(module: nn.Module) -> bool:
    return any(hasattr(type(module), name) for name in _PADDING)


def note_side(model: nn.Module, side: str) -> None:
    """Note where a model adds tokens of its own to every text, for `without_added`."""
    _sides[model] = side


def without_targets(model: nn.Module, without: bool) -> None:
    """Note whether a model gives the logits of every token only where it is given no targets."""
    if without:
        _without_targets.add(model)
    else:
        _without_targets.discard(model)


def is_without_targets(model: nn.Module) -> bool:
    """Return whether a model that takes targets is given none."""
    return model in _without_targets


def is_added_to(tensor: Any, shape: Sequence[int]) -> bool:
    """Return whether a tensor (texts, tokens, features) holds more tokens than the texts have."""
    texts, tokens = shape
    whole = isinstance(tensor, Tensor) and tensor.ndim == 3 and tensor.shape[0] == texts
    return whole and tokens < tensor.shape[1] <= tokens + _LONGEST_PREFIX


def without_added(tensor: Any, shape: Sequence[int]) -> Any:
    """Return an output without the tokens that the model itself adds to every text.

    Before it such as meta tokens, registers and soft prompts, after it padding to a length that
    the model likes. Of a transformers model that pads to a multiple of its window, the output is
    given back as it is, too long.

    Raises
    ------
    ArgumentError
        If it is not known on which side they are.

    Examples
    --------
    >>> without_added(torch.ones(2, 5, 3), (2, 5)).shape
    torch.Size([2, 5, 3])
    """
    side = _side.get()
    tokens = shape[1]
    if side == WINDOW or not is_added_to(tensor, shape):
        return tensor
    if side == UNKNOWN:
        raise ArgumentError(
            f"the model gives {tensor.shape[1]} rows for texts of {tokens} tokens, and what "
            "changes with a text's last tokens does not show which rows are the text's; let it "
            "return one row for each token."
        )
    if side == AFTER:
        _say_added(
            "the model pads every text at its end: what it gives for padding is left out"
        )
        return tensor[:, :tokens]
    count = tensor.shape[1] - tokens
    _say_added(
        f"the model puts {count} tokens of its own before every text: they are left out"
    )
    return tensor[:, -tokens:]


@lru_cache(maxsize=256)
def _say_added(words: str) -> None:
    warnings.warn(words, StudyWarning, stacklevel=3)


def first_tensor(output: Any) -> Any:
    """Return a module's output, or its first element if it is a tuple, list or mapping."""
    if isinstance(output, Mapping):
        output = tuple(output.values())
    return output[0] if isinstance(output, Sequence) and len(output) else output


def rows_of(model: nn.Module) -> int:
    """Return how many token ids a model knows; a pad token may have been added without a row."""
    rows = getattr(getattr(model, "config", None), "vocab_size", None)
    return rows if isinstance(rows, int) else sys.maxsize


def beginning(inputs: Inputs, tokens: int = 8) -> Inputs:
    """Return the first tokens of the first text, which show what modules do at little cost.

    Examples
    --------
    >>> beginning(Inputs.from_tokens([[5, 6, 7], [8, 9]]), 2).ids
    array([[5, 6]])
    """
    ids = inputs.ids[0][inputs.mask[0]][None, :tokens]
    return Inputs.from_tokens(ids, mask=np.ones(ids.shape, dtype=bool))


def check_fits(model: nn.Module, inputs: Inputs, ids: np.ndarray | None = None) -> None:
    """Check that token ids (`ids`, or those of `inputs`) and lengths are within the model's tables.

    Raises
    ------
    ArgumentError
        If an id or a text's length is beyond them.
    """
    config = getattr(model, "config", None)
    rows = getattr(config, "vocab_size", None)
    highest = int(
        (inputs.ids if ids is None else ids).max(where=inputs.mask, initial=0)
    )
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


def check_weights_there(model: nn.Module) -> None:
    """Check that a model holds its weights also while it does not run.

    Raises
    ------
    ArgumentError
        If accelerate has offloaded one.
    """
    for name, tensor in model.named_parameters():
        if tensor.is_meta:
            raise ArgumentError(
                f"{type(model).__name__} has {name} only while it runs, as accelerate has "
                "offloaded it; give Trajectory.from_models({0: model})[0].model(), which has it."
            )
