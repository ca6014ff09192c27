"""Reading what attention heads do on repeated sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...capture.attention.collected import MapCollector, by_call
from ...capture.collect import feed
from ...capture.implementations import attention_maps
from ...capture.layers import match_attention
from ...errors import ArgumentError, NonFiniteError, check_whole
from ...needs import Need, Source
from .sequences import RandomSequences, sequences_for

# What `head_scores` returns, in this order.
SCORES = ("previous-token", "duplicate-token", "induction")


def head_scores(maps: Any, period: int) -> tuple[Any, Any, Any]:
    """Return the three scores of attention maps on sequences whose second half repeats the first.

    Parameters
    ----------
    maps
        (..., 2 p, 2 p) attention of each query (rows) to each key (columns). Tokens around the
        sequence, such as a start token, are cut off; what they are given counts as given elsewhere.
    period
        p, the length of one half.

    Returns
    -------
    tuple of arrays of shape (...)
        Mean attention of a token to the token before it (previous-token score); of a token of the
        second half to its copy in the first (duplicate-token score); and to the token after that
        copy (induction score, also called prefix-matching score).

    Raises
    ------
    ArgumentError
        If the maps are not of that shape, or the period is below 3, where scores coincide.

    Notes
    -----
    C. Olsson et al., *In-context learning and induction heads*, 2022, "Head activation evaluators".

    Examples
    --------
    >>> import numpy as np
    >>> maps = np.zeros((6, 6))
    >>> maps[np.arange(3, 6), np.arange(1, 4)] = (
    ...     1.0  # each looks at what followed its copy
    ... )
    >>> [float(score) for score in head_scores(maps, 3)]
    [0.0, 0.0, 1.0]
    """
    check_whole("period", period, 3)
    if tuple(maps.shape[-2:]) != (2 * period, 2 * period):
        raise ArgumentError(
            f"maps must have the shape (..., {2 * period}, {2 * period}) for a period of {period}; "
            f"got {tuple(maps.shape)}."
        )
    before, copy, after = (
        maps.diagonal(-back, -2, -1) for back in (1, period, period - 1)
    )
    # The first query of the last diagonal belongs to the first half.
    return before.mean(-1), copy.mean(-1), after[..., 1:].mean(-1)


@dataclass(frozen=True, eq=False)
class HeadReading:
    """What the heads of a model do on random sequences.

    Parameters
    ----------
    repeated, unrepeated
        By attention module, (scores, heads, sequences): on sequences with repetition and without.
    equal
        (scores,) what equal attention to all keys that any head reaches would give.
    """

    repeated: dict[str, np.ndarray]
    unrepeated: dict[str, np.ndarray]
    equal: np.ndarray


@dataclass(frozen=True)
class HeadScores(Need):
    """Scores of every attention head on repeated sequences: a `HeadReading`.

    Parameters
    ----------
    layers
        Glob over attention modules; ``"*"`` takes all that return attention weights.
    on
        Name of the input set, whose special tokens frame the sequences; None means the first.
    n_sequences, period, random_state
        How many sequences, the length of the part that is repeated, and the seed.
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    n_sequences: int = 32
    period: int = 25
    random_state: int = 0

    def check(self, source: Source) -> None:
        """Refuse a model that no sequence could be repeated for."""
        self._sequences(source)

    def read(self, source: Source) -> HeadReading:
        """Return the scores."""
        sequences = self._sequences(source)
        collector = _HeadCollector(
            match_attention(source.model, self.layers), sequences
        )
        with attention_maps(source.model):
            feed(
                source.model,
                sequences.inputs.batches(source.settings.batch_size),
                [collector],
                position_ids=source.settings.positions == "mask",
            )
        return collector.result()

    def tensors(self, source: Source) -> set[str]:
        """Return the tensors of the modules up to the last map."""
        return source.tensors_read_for_attention(self.layers)

    def _sequences(self, source: Source) -> RandomSequences:
        return sequences_for(
            source.model,
            source.inputs,
            self.n_sequences,
            self.period,
            self.random_state,
        )


class _HeadCollector(MapCollector):
    """Reduces every attention map to the scores of its heads."""

    def __init__(self, paths: Sequence[str], sequences: RandomSequences) -> None:
        super().__init__(paths)
        self._sequences = sequences
        self._scores: dict[str, np.ndarray] = {}
        width = sequences.inputs.ids.shape[1]
        self._reached = torch.zeros(width, width, dtype=torch.bool)

    def reduce(self, path: str, weights: Tensor) -> None:
        """Note the scores of the map's heads."""
        self._reached |= (weights.amax(dim=(0, 1)) > 0).cpu()
        place = self._sequences.place
        period = self._sequences.period
        scores = torch.stack(head_scores(weights[..., place, place].float(), period))
        shape = (len(SCORES), weights.shape[1], len(self._sequences.inputs))
        store = self._scores.setdefault(path, np.full(shape, np.nan))
        store[..., self._batch.rows] = scores.transpose(1, 2).double().cpu().numpy()

    def result(self) -> HeadReading:
        """Return the scores of all modules.

        Raises
        ------
        NonFiniteError
            If a map holds NaN.
        """
        by_layer = by_call(self._scores)
        for path, values in by_layer.items():
            if not np.isfinite(values).all():
                raise NonFiniteError(f"attention weights of {path!r} are not finite.")
        count = self._sequences.count
        place = self._sequences.place
        share = self._reached.numpy() / self._reached.numpy().sum(axis=1, keepdims=True)
        equal = np.array(head_scores(share[place, place], self._sequences.period))
        repeated = {path: values[..., :count] for path, values in by_layer.items()}
        unrepeated = {path: values[..., count:] for path, values in by_layer.items()}
        return HeadReading(repeated, unrepeated, equal)
