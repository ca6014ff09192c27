"""One loss of a pass beside the same text read alone, of models whose code is no library's.

What is read in a look at some tokens need not hold of whole batches: experts that are full from
some number of tokens on, or what is kept of the largest text so far.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ...errors import ArgumentError, BatchInvarianceError
from ...inputs import Inputs
from ..forward import quiet, run, without_added
from ..logits import logits_of
from ..predicted import next_tokens
from .first_look import is_own

_FEW = 3  # texts that a look has read together
# Nats per token, and of large losses the share, that kernels of another shape make of a text.
_NATS = 1e-4
_HALF_NATS = 3e-2


def check_read(
    model: nn.Module,
    inputs: Inputs,
    loss: np.ndarray,
    batch_size: int,
    position_ids: bool = False,
) -> None:
    """Compare the loss of the text with most padding in the first batch with that of it alone.

    Parameters
    ----------
    model, inputs
        What was read, to predict the next token. Nothing is done with few texts or a model of a
        library.
    loss
        (n,) of each text, in nats per token.
    batch_size, position_ids
        How it was read.

    Raises
    ------
    BatchInvarianceError
        If the text has another loss alone than in its batch.
    ArgumentError
        If it has, and texts were read one by one.
    """
    if len(inputs) <= _FEW or not is_own(model):
        return
    first = inputs.batches(batch_size)[0].rows
    predicted = next_tokens(inputs)[first].any(axis=1)
    if not predicted.any():
        return
    text = int(first[predicted][-1])
    alone, allowed = _alone(model, inputs.subset([text]), position_ids)
    read = float(loss[text])
    if not abs(read - alone) > allowed * max(1.0, abs(alone)):
        return
    name = type(model).__name__
    both = f"{alone:.6g} nats per token alone and {read:.6g}"
    if len(first) > 1:
        raise BatchInvarianceError(
            f"{name} gives a text another loss alone than in a batch: text {text} has {both} "
            f"among {len(first)}. Read texts one by one, with batch_size=1."
        )
    raise ArgumentError(
        f"{name} keeps something between its calls: text {text} has a loss of {both} when it is "
        "read again. Let its forward begin anew with every call."
    )


def _alone(model: nn.Module, text: Inputs, position_ids: bool) -> tuple[float, float]:
    """Return the loss of one text, and how far kernels may be apart."""
    (batch,) = text.batches(1)
    with quiet(model):
        logits = logits_of(run(model, batch, position_ids=position_ids))
        logits = without_added(logits, batch.ids.shape)[0].detach()
    column = np.flatnonzero(next_tokens(text)[0])
    target = torch.from_numpy(text.ids[0, column]).to(logits.device)
    log_p = (
        logits[torch.from_numpy(column - 1).to(logits.device)].float().log_softmax(-1)
    )
    allowed = _NATS if logits.element_size() >= 4 else _HALF_NATS
    return -float(log_p.gather(1, target[:, None]).double().mean()), allowed
