"""What one loaded checkpoint shows of a model: all that a fitting study file depends on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from .. import capture
from ..capture.families import longest_text
from ..capture.forward import check_fits, quiet, run, without_added
from ..capture.logits import logits_of
from ..capture.loss import resolve_objective
from ..capture.ov_circuit import check_has_ov_circuit
from ..capture.own_tokens import ordinary_tokens
from ..capture.trial.causality import check_causal, check_logits
from ..capture.trial.first_look import look_at
from ..errors import ArgumentError, LayerMatchError, NonFiniteError, OntogenyError
from ..inputs import Inputs
from ..observables import ModelFacts
from ..tasks.tables import LABEL_NAMES
from ..trajectory import Checkpoint
from ..trajectory.adapters.reader import AdaptedReader
from ..trajectory.weights.transformers_models import is_pretrained
from .layers import proposed_layers

_REMEDY = (
    "let its attention module call torch's scaled_dot_product_attention, or compute softmax(QK) "
    "itself and return (output, weights)"
)


def look(checkpoint: Checkpoint, inputs: Inputs) -> ModelFacts:
    """Load one checkpoint and return what it shows; `inputs` are texts for it.

    Raises
    ------
    CheckpointError
        If it cannot be loaded.
    ArgumentError
        If the texts do not fit it.
    """
    model = checkpoint.model(dtype=torch.float32)
    longest = longest_in(model)
    check_fits(model, _few(inputs, longest, len(inputs)))
    few = _few(inputs, longest)
    family = capture.family_of(model)
    with _running(model, few):
        layers = proposed_layers(model, few)
    if layers.tokens_first and is_pretrained(model):  # XLNet, which sees both sides
        raise ArgumentError(
            f"{type(model).__name__} gives (tokens, texts, features) in its layers; only models "
            "that give texts first, as BERT and GPT-2 do, are studied."
        )
    objective, n_names = _objective(model, few)
    blocks = _blocks(checkpoint, layers.group)
    return ModelFacts(
        model_class=type(model).__name__,
        family="" if family is None else family.title,
        parameters=sum(p.numel() for p in model.parameters()),
        layers=layers.layers,
        every_layer=layers.every,
        width=layers.width,
        no_layers=layers.why_none,
        objective=objective,
        named=n_names,
        no_prediction=_no_prediction(model, few, objective),
        no_maps=_no_maps(model, few),
        blocks=blocks,
        adapted=_adapted(checkpoint, blocks),
        streams=layers.blocks,
        embedded=_matches(checkpoint, ("embed",)),
        longest=longest,
        no_labels=_no_labels(model, inputs),
        no_copying=_no_copying(model),
        tokens=len(ordinary_tokens(model, inputs)),
    )


def longest_in(model: nn.Module) -> int | None:
    """Return how many tokens a text may have, as a model's configuration says it."""
    return longest_text(getattr(model, "config", None))


def _few(inputs: Inputs, longest: int | None, count: int = 2) -> Inputs:
    """Return some of the texts, no longer than the model takes."""
    few = inputs.subset(np.arange(min(count, len(inputs)))).padded("right")
    return Inputs.from_tokens(
        few.ids[:, :longest],
        few.mask[:, :longest],
        few.special[:, :longest],
        mask_token_id=few.mask_token_id,
        vocab_size=few.vocab_size,
    )


@contextmanager
def _running(model: nn.Module, few: Inputs) -> Iterator[None]:
    """Say in one line how a model fails on texts: one of the user's may do so in its own ways."""
    try:
        yield
    except OntogenyError:
        raise
    except Exception as error:
        remedy = "Is --set inputs.max_length=N needed, or another forward?"
        if "padding token" in str(error):  # a classifier of GPT-2's kind
            remedy = "Set pad_token_id in its config.json, as in training."
        elif _runs_without_the_last(model, few):
            remedy = (
                f"It runs on {few.ids.shape[1] - 1} tokens. If a text's last token is only "
                "predicted, give a model whose forward reads ids[:, :-1] and repeats the last row "
                "of logits: torch.cat([logits, logits[:, -1:]], 1)."
            )
        raise ArgumentError(
            f"{type(model).__name__} does not run on a text of {few.ids.shape[1]} tokens with ids "
            f"up to {few.ids.max()}: {type(error).__name__}: {str(error).rstrip('.')}. {remedy}"
        ) from error


def _runs_without_the_last(model: nn.Module, few: Inputs) -> bool:
    """Return whether a model takes one token fewer, as one of sums that never reads the answer."""
    length = few.ids.shape[1] - 1
    if length < 1:
        return False
    shorter = _few(few, length, len(few))
    with suppress(Exception), quiet(model):
        run(model, shorter.batches(len(shorter))[0])
        return True
    return False


def longest_of(checkpoint: Checkpoint) -> int | None:
    """Return how many tokens a text may have by a checkpoint's configuration, None if unknown."""
    return longest_text(SimpleNamespace(**(checkpoint.configuration() or {})))


def _objective(model: nn.Module, inputs: Inputs) -> tuple[str, bool]:
    """Return what the model predicts, and whether its class's name says so."""
    try:
        return resolve_objective(model), True
    except ArgumentError:
        pass
    if _logits(model, inputs) is None:
        return "", False
    try:
        check_logits(model, inputs)
    except ArgumentError:  # of its losses it is said what is wrong
        return "causal", False
    try:
        check_causal(model, inputs)
    except ArgumentError:
        return "masked", False
    return "causal", False


def _logits(model: nn.Module, inputs: Inputs) -> torch.Tensor | None:
    """Return what may be logits: one row of at least as many numbers as there are ids, a token."""
    with suppress(ArgumentError):  # of its losses it is said what is wrong
        look_at(model, inputs)
    with quiet(model), _running(model, inputs):
        logits = logits_of(run(model, inputs.padded("right").batches(len(inputs))[0]))
    logits = without_added(logits, inputs.ids.shape)
    fits = (
        isinstance(logits, torch.Tensor)
        and logits.ndim == 3
        and tuple(logits.shape[:2]) == inputs.ids.shape
        and logits.shape[2] > int(inputs.ids.max())
    )
    return logits if fits else None


def _no_prediction(model: nn.Module, inputs: Inputs, objective: str) -> str:
    if not objective and is_pretrained(model):
        return f"{type(model).__name__} predicts no tokens"
    if not objective:
        return (
            f"{type(model).__name__} returns no logits of shape (texts, tokens, vocabulary); a "
            "model that computes them for the last token alone must be given a forward that "
            "returns all"
        )
    if objective == "masked" and inputs.mask_token_id is None:
        return "the tokenizer has no mask token"
    try:
        capture.losses(model, inputs, objective=objective)
    except NonFiniteError:  # the last checkpoint diverged: others may have a loss
        return ""
    except (OntogenyError, RuntimeError) as error:
        return str(error).split("\n")[0].rstrip(".")
    return ""


def _no_labels(model: nn.Module, inputs: Inputs) -> str:
    if not any("SequenceClassification" in cls.__name__ for cls in type(model).__mro__):
        return f"{type(model).__name__} is no classifier of texts"
    if inputs.labels is None:
        names = ", ".join(LABEL_NAMES)
        return (
            f"the texts have no labels: give a table as --texts, with one of the columns {names}, "
            "or with --set inputs.label=COLUMN"
        )
    return ""


def _no_maps(model: nn.Module, inputs: Inputs) -> str:
    try:
        capture.attention_entropy(model, inputs)
    except NonFiniteError:
        return ""
    except LayerMatchError:
        remedy = "" if is_pretrained(model) else f": {_REMEDY}"
        return f"no module of {type(model).__name__} gives attention maps{remedy}"
    except RuntimeError as error:
        return str(error).split("\n")[0].rstrip(".")
    return ""


def _no_copying(model: nn.Module) -> str:
    try:
        check_has_ov_circuit(model)
    except ArgumentError as error:
        return str(error).rstrip(".")
    return ""


def _blocks(checkpoint: Checkpoint, group: str) -> tuple[str, ...]:
    block = re.sub(r"(\*|^\w+)\.[a-z_]+$", r"\1", group) or "*"
    # torch's own attention has an in_proj_weight; experts are parameters themselves, and so are
    # the rates of state-space blocks.
    names = ("weight", "*_weight", "experts.*", "A_log")
    patterns = (f"{block}.**.{name}" for name in names)
    inside = tuple(p for p in patterns if _matches(checkpoint, (p,)))
    choices = ("attn", "mlp"), inside, ("**.weight",)
    return next((c for c in choices if c and _matches(checkpoint, c)), ())


def _adapted(checkpoint: Checkpoint, blocks: tuple[str, ...]) -> tuple[str, ...]:
    """Return the matrices that an adapter changes outside the blocks, such as a saved head."""
    with checkpoint.open() as reader:
        if not isinstance(reader, AdaptedReader):
            return ()
        changed = set(reader.changed)
        changed -= set(capture.match_blocks(reader, blocks)) if blocks else set()
        return tuple(n for n in capture.match_blocks(reader, "**") if n in changed)


def _matches(checkpoint: Checkpoint, patterns: tuple[str, ...]) -> bool:
    with checkpoint.open() as reader:
        try:
            return bool(capture.match_blocks(reader, patterns))
        except LayerMatchError:
            return False
