"""How often a model calls its modules: the calls of one that several layers share are layers."""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from torch import nn

from ..errors import ArgumentError
from ..inputs import Inputs
from .forward import quiet, run
from .sites import call_of, split_label, watched

_counts: WeakKeyDictionary[nn.Module, Counter[str]] = WeakKeyDictionary()


def calls_of(model: nn.Module, inputs: Any = None) -> Counter[str]:
    """Return how often each module is called in a forward pass, by path; counted once for a model.

    Parameters
    ----------
    model
        Any module.
    inputs
        The first text of these is run; None runs a text of four tokens.

    Examples
    --------
    >>> shared = nn.Linear(4, 4)
    >>> calls_of(nn.Sequential(nn.Embedding(9, 4), shared, shared))["1"]
    2
    """
    if model not in _counts:
        text = (
            Inputs.from_tokens(np.arange(4)[None])
            if inputs is None
            else Inputs.coerce(inputs)
        )
        counts: Counter[str] = Counter()
        paths = [path for path, _ in model.named_modules() if path]
        with quiet(model), watched(model, paths, lambda path, _: counts.update([path])):
            run(model, text.padded("right").subset([0]).batches(1)[0])
        _counts[model] = counts
    return _counts[model]


def check_call(label: str, count: int) -> None:
    """Refuse a site whose module is called `count` times where that leaves open what is meant.

    Raises
    ------
    ArgumentError
        If it names no call of several, or one that there is not.

    Examples
    --------
    >>> check_call("layer@1", 2)
    """
    path = split_label(label)[0]
    call = call_of(label)
    if call is None and count > 1:
        raise ArgumentError(
            f"{label!r} is called more than once in one forward pass, {count} times, so its "
            f"activations are not one matrix; choose a call, from '{path}@0' to "
            f"'{path}@{count - 1}', or all of them: '{path}@*'."
        )
    if call is not None and call >= count > 0:
        raise ArgumentError(
            f"{label!r} is no call of this model: the last of {path!r} is '{path}@{count - 1}'."
        )
