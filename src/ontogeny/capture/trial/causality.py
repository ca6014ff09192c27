"""Whether what a model predicts can be believed: logits, of what stands before the token alone."""

from __future__ import annotations

import warnings
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ArgumentError, StudyWarning
from ...inputs import Inputs
from ..forward import quiet, run, without_added
from ..logits import logits_of, several_outputs
from ..outputs import HALF_ROUNDING, ROUNDING, relative_change
from .first_look import batch_of, is_own, look_at, pair_of

_TOKENS_TRIED = 8  # in the place of one, to see whether a model looks at it
_SUM_TOLERANCE = 0.02  # a row of 50,000 bfloat16 probabilities misses 1 by less
# Other equal sums are logits as well: those of scaled one-hot rows are equal.
_PERCENT = 100.0
# Scores of so few are all above 0 by chance.
_FEW_SCORES = 8
# Of what a model's rows may be logarithms, and what they are called.
_BASES = {2.0: "in bits", 10.0: "to the base 10"}
# Whether it holds is the class's matter, not the weights'.
_causal: WeakSet[nn.Module] = WeakSet()
_logits: WeakSet[nn.Module] = WeakSet()


def check_causal(model: nn.Module, inputs: Inputs) -> None:
    """Check that a model predicts the next token from those before it alone.

    The first tokens of the longest text are read beside the same with another second half.
    What is predicted in the first half must be the same. A module is checked once.

    Raises
    ------
    ArgumentError
        If a prediction changes with the tokens that follow, or as `check_logits`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> check_causal(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    """
    look_at(model, inputs)
    if model in _causal or inputs.lengths.max(initial=0) < 2:
        return
    logits, half = _of_pair(model, inputs)
    if logits is None:
        return  # whoever reads them says what is wrong with them
    _judge_scores(model, logits)
    # What is added to all logits of a row changes no prediction.
    log_p = logits.float().log_softmax(-1)
    apart = relative_change(*log_p[:, :half])
    if not np.isfinite(apart):
        return  # the same: such weights say nothing of the module
    allowed = ROUNDING if logits.element_size() >= 4 else HALF_ROUNDING
    if apart > allowed:
        raise ArgumentError(
            f"{type(model).__name__} is not causal: what it predicts in the first {half} tokens of "
            f"a text changes by {apart:.1%} with the tokens that follow, so it sees what it "
            "predicts. Load it as a decoder (is_decoder=True in its configuration), or give "
            "objective='masked'."
        )
    is_shifted = is_own(model) and _is_shifted(log_p[:, half:], allowed)
    if is_shifted and _looks_away(model, inputs):
        raise ArgumentError(
            f"{type(model).__name__} does not look at a token to predict the next one: it shifts "
            "its input itself, so that the row of a token predicts that token. Let it return the "
            "row that predicts the next token at each token: logits[:, 1:], with one for the last."
        )
    _causal.add(model)


def _is_shifted(log_p: Tensor, allowed: float) -> bool:
    """Return whether the first row (of 2, L, V) is the same and what follows is not.

    The first of the tokens that differ stands there.
    """
    first, *rest = (
        relative_change(*log_p[:, place]) for place in range(min(2, log_p.shape[1]))
    )
    return bool(first == 0 and rest and rest[0] > allowed)


def _looks_away(model: nn.Module, inputs: Inputs) -> bool:
    """Return whether the row of a token is the same for many other tokens in its place.

    A model of which tokens have occurred looks away from those that have, and from no others.
    """
    pair, half = pair_of(inputs)
    text = pair.ids[0]
    unseen = np.setdiff1d(np.arange(text.max() + 1), text[:half])
    ids = np.repeat(text[None], 1 + min(len(unseen), _TOKENS_TRIED), axis=0)
    ids[1:, half] = unseen[:_TOKENS_TRIED]
    with quiet(model):
        logits = logits_of(run(model, batch_of(ids)))
    if logits is None:
        return True
    return bool((logits[1:, half] == logits[:1, half]).all())


def check_logits(model: nn.Module, inputs: Inputs) -> None:
    """Check that a model returns logits, not probabilities. A module is checked once.

    Raises
    ------
    ArgumentError
        If its rows hold nothing negative and sum to 1, or are such numbers' negative logarithms;
        or as `look_at`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9), nn.Softmax(-1))
    >>> check_logits(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: Sequential returns probabilities: ...
    """
    look_at(model, inputs)
    if model in _logits or not len(inputs):
        return
    logits, _ = _of_pair(model, inputs)
    if logits is not None:
        _judge_scores(model, logits)
        _logits.add(model)


def _judge_scores(model: nn.Module, logits: Tensor) -> None:
    """Refuse what is no logits for sure, and say of what may be none how it is read."""
    rows = logits.detach().flatten(0, -2).float()
    if rows.shape[-1] >= 2 and (what := _what_they_are(rows)):
        raise ArgumentError(
            f"{type(model).__name__} returns {what}. Let it return logits, or the natural "
            "logarithms of the probabilities."
        )
    if is_own(model) and rows.shape[-1] > _FEW_SCORES and bool((rows > 0).all()):
        warnings.warn(
            StudyWarning(
                f"all {rows.shape[-1]:,} scores that {type(model).__name__} returns of each token "
                "are above 0. They are read as logits; if they are odds, as exp(logits) is, let it "
                "return their logarithms"
            ),
            stacklevel=2,
        )


def _what_they_are(rows: Tensor) -> str:
    """Return what rows are where they are no logits, nor natural logarithms of probabilities."""
    if bool((rows <= 0).all()):
        bases = (base for base in _BASES if _sum_to_one(torch.pow(base, rows)))
        return next((f"log-probabilities {_BASES[base]}" for base in bases), "")
    if bool((rows < 0).any()):
        return ""
    if _sum_to_one(rows):
        return "probabilities: its rows hold nothing negative and sum to 1"
    if _sum_to_one((-rows).exp()):
        return "negative log-probabilities"
    if _sum_to_one(rows / _PERCENT):
        return "percentages: its rows hold nothing negative and sum to 100"
    return ""


def _sum_to_one(rows: Tensor) -> bool:
    return bool(((rows.sum(-1) - 1).abs() < _SUM_TOLERANCE).all())


def _of_pair(model: nn.Module, inputs: Inputs) -> tuple[Tensor | None, int]:
    """Return the logits of a text and of the same with another second half, which begins there.

    In a model of one's own the whole text counts, as it may do more from some length on, and each
    is read alone: one that mixes a batch, as statistics of it do, would change both alike.
    """
    own = is_own(model)
    batch, half = pair_of(inputs, int(inputs.lengths.max())) if own else pair_of(inputs)
    batches = [batch_of(row[None]) for row in batch.ids] if own else [batch]
    read = []
    with quiet(model):
        for one in batches:
            output = run(model, one)
            if own and (wrong := several_outputs(model, output, one.ids.shape)):
                raise ArgumentError(wrong)
            logits = without_added(logits_of(output), one.ids.shape)
            if (
                not isinstance(logits, Tensor)
                or tuple(logits.shape[:-1]) != one.ids.shape
            ):
                return None, half
            read.append(logits)
    return torch.cat(read), half
