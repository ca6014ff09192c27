"""Whether a model gives the same for the same text, whatever it read before and however often."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ...inputs.batches import Batch
from ...trajectory.weights.streaming import device_of_parts
from ..forward import device_of, run
from ..outputs import apart, output_tensor, relative_change

_READS = 16  # of a model that draws random numbers: a layer that is dropped at 10 % shows in 16
_MANY = 16  # pairs of texts that are read in between
_COPIED = 1 << 27  # numbers of a model of which a copy is made


def why_random(model: nn.Module, batch: Batch) -> str:
    """Return that a model that draws random numbers uses them, empty where it does not.

    Twice is too few: a layer that is dropped at 10 %, or noise that seldom changes an expert.
    """
    first, _ = seeded(model, batch, 1)
    for seed in range(2, 2 + _READS):
        if change := apart(first, seeded(model, batch, seed)[0]):
            return _changing(model, change, drew=True)
    return ""


def why_remembering(
    model: nn.Module, batch: Batch, first: Any, unused: nn.Module | None, drew: bool
) -> str:
    """Return that what a model gives changes with what it read before, empty where it does not.

    Parameters
    ----------
    model
        The model, in evaluation mode.
    batch
        Some tokens.
    first
        What it gave for them.
    unused
        A copy that has read nothing. It is given another batch of the same shape, as the model is,
        and then many texts and the first batch: so it does not matter which of them is the larger.
    drew
        Whether random numbers are drawn.
    """
    if change := apart(first, run(model, batch)):
        return _changing(model, change, drew)
    if unused is None:
        return ""
    other = replace(batch, ids=other_ids(batch))
    if change := apart(run(model, other), run(unused, other)):
        return _changing(model, change, drew)
    run(unused, _many(batch))
    change = apart(first, run(unused, batch))
    return _changing(model, change, drew) if change else ""


def _many(batch: Batch) -> Batch:
    """Return many texts of the same vocabulary and length."""
    ids = np.concatenate([other_ids(batch, shift) for shift in range(1, 1 + _MANY)])
    return replace(
        batch, rows=np.arange(len(ids)), ids=ids, mask=np.ones(ids.shape, dtype=bool)
    )


def why_across(model: nn.Module, batch: Batch) -> str:
    """Return that a model reads a batch of texts as one of places, empty where it does not.

    Then a text alone has no context, and one of a batch depends on those before it.
    """
    other = other_ids(batch)
    beside = replace(batch, ids=np.concatenate([other[:1], batch.ids[1:]]))
    begun = replace(batch, ids=np.concatenate([other[:, :1], batch.ids[:, 1:]], axis=1))
    one, two = (output_tensor(run(model, b)) for b in (batch, beside))
    tokens = batch.ids.shape
    if (
        one is None
        or two is None
        or one.ndim < 3
        or one.shape[:2] != tokens
        or tokens[1] < 2
    ):
        return ""
    if one.shape != two.shape or not relative_change(one[1], two[1]):
        return ""
    rows = [
        replace(b, ids=b.ids[1:], mask=b.mask[1:], rows=b.rows[1:])
        for b in (batch, begun)
    ]
    one, two = (output_tensor(run(model, row)) for row in rows)
    if one is None or two is None or relative_change(one[:, 1:], two[:, 1:]):
        return ""
    return (
        f"{type(model).__name__} reads across texts: a token's output changes with the other texts "
        "of a batch and not with the tokens before it. It seems to want (tokens, texts): give its "
        "recurrent layers batch_first=True, or let its forward transpose."
    )


def other_ids(batch: Batch, shift: int = 1) -> np.ndarray:
    """Return ids (n, L) of the same vocabulary, most of which differ from those of a batch."""
    size = int(batch.ids.max()) + 1
    return np.asarray((batch.ids + shift * (1 + np.arange(batch.ids.shape[1]))) % size)


def unused_copy(model: nn.Module) -> nn.Module | None:
    """Return a copy of a model; None of a large one, and where there can be no copy."""
    if (
        device_of_parts(model) is not None
        or sum(p.numel() for p in model.parameters()) > _COPIED
    ):
        return None
    try:
        return copy.deepcopy(model)
    except Exception:  # what it keeps may have a graph
        return None


def seeded(model: nn.Module, batch: Batch, seed: int) -> tuple[Any, bool]:
    """Return what a model gives with seeded random numbers, and whether it drew any."""
    # The generators of other devices are restored on the model's device alone.
    torch.default_generator.manual_seed(seed)
    # Whole numbers as near as 1 to 17 draw nothing below .1.
    random.seed(f"look {seed}")
    np.random.seed(1000 * seed)  # noqa: NPY002  (what models draw from)
    device = device_of(model)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    before = [state() for state in _states(device)]
    output = run(model, batch)
    return output, [state() for state in _states(device)] != before


@contextmanager
def others_kept() -> Iterator[None]:
    """Give the random states of Python and NumPy back as they were."""
    of_python = random.getstate()
    of_numpy = np.random.get_state()  # noqa: NPY002  (what models draw from)
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002


def _states(device: torch.device) -> list[Callable[[], Any]]:
    states: list[Callable[[], Any]] = [
        random.getstate,
        lambda: str(np.random.get_state()),  # noqa: NPY002
        lambda: torch.default_generator.get_state().numpy().tobytes(),
    ]
    if device.type == "cuda":
        states.append(lambda: torch.cuda.get_rng_state(device).numpy().tobytes())
    return states


def _changing(model: nn.Module, change: float, drew: bool) -> str:
    name = type(model).__name__
    if drew:
        return (
            f"{name} is random in evaluation mode: the same text read twice gives outputs that "
            f"differ by {change:.2%}. Is dropout on, as functional.dropout is by default? Give it "
            "training=self.training."
        )
    return (
        f"{name} keeps something between its calls: the same text gives outputs that differ by "
        f"{change:.2%}, by what it read before. Let its forward begin anew with every call."
    )
