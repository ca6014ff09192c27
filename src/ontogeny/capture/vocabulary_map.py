"""The linear map from directions of the residual stream to the vocabulary, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ..arrays import check_finite, to_numpy
from ..errors import ArgumentError, check_whole
from .norms import DensePart, NormPart

QUANTILE = 0.95  # of random directions
_ROWS = 64  # directions at a time: their logits over a whole vocabulary are large

# A linear map on directions, one a row.
Part: TypeAlias = NormPart | DensePart


@dataclass(frozen=True, eq=False)
class Readout:
    """The linear map from directions of the residual stream to logits.

    Parameters
    ----------
    unembedding
        The vocabulary map of shape (V, m), float32: one row a token.
    parts
        What a direction passes before it: norms with their scale held fixed, and the dense layer
        of a masked model's head.
    measured
        Whether the scales of the norms are means over tokens. If not they are 1, and logits are
        known up to one common factor: which tokens are written most does not depend on it.
    """

    unembedding: Tensor
    parts: tuple[Part, ...]
    measured: bool

    @property
    def width(self) -> int:
        """Features of the stream, and so of a direction."""
        return int(self.unembedding.shape[1])

    def written(self, directions: Any) -> np.ndarray:
        """Return the logits that directions of shape (r, m) add, (r, V) float32.

        Raises
        ------
        ArgumentError
            If the directions have another shape.
        NonFiniteError
            If a direction holds NaN or infinity.
        """
        rows = to_numpy(directions)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ArgumentError(
                f"directions must have the shape (r, {self.width}), the width of the stream; got "
                f"{rows.shape}."
            )
        check_finite("directions", rows)
        with torch.no_grad():
            vectors = torch.as_tensor(
                rows, dtype=torch.float32, device=self.unembedding.device
            )
            for part in self.parts:
                vectors = part(vectors)
            return to_numpy(vectors @ self.unembedding.T)


def readouts_as_dataset(made: Mapping[str, Readout]) -> xr.Dataset:
    """Return the maps of layers, which share the vocabulary map, as arrays.

    Examples
    --------
    >>> made = {
    ...     "h.0": Readout(
    ...         torch.eye(4), (NormPart(torch.ones(4), torch.zeros(4), True),), True
    ...     )
    ... }
    >>> same = readouts_of_dataset(readouts_as_dataset(made), "cpu")["h.0"]
    >>> np.array_equal(same.written(np.eye(4)), made["h.0"].written(np.eye(4)))
    True
    """
    first = next(iter(made.values()))
    values: dict[str, Any] = {"unembedding": first.unembedding}
    for i, one in enumerate(made.values()):
        for j, part in enumerate(one.parts):
            values |= {f"{i}.{j}.{name}": value for name, value in vars(part).items()}
    parts = [[type(part).__name__ for part in one.parts] for one in made.values()]
    attrs = {"layers": list(made), "parts": parts, "measured": first.measured}
    arrays = {name: to_numpy(value) for name, value in values.items()}
    dims = {name: [f"{name}.{k}" for k in range(a.ndim)] for name, a in arrays.items()}
    return xr.Dataset(
        {name: (dims[name], a) for name, a in arrays.items()}, attrs=attrs
    )


def readouts_of_dataset(data: xr.Dataset, device: str) -> dict[str, Readout]:
    """Return the maps of layers that `readouts_as_dataset` has turned into arrays."""
    kinds = {kind.__name__: kind for kind in (NormPart, DensePart)}

    def value(name: str) -> Any:
        array = data[name].values
        return torch.from_numpy(array).to(device) if array.ndim else array.item()

    def part(place: str, kind: type) -> Any:
        return kind(
            **{field.name: value(f"{place}.{field.name}") for field in fields(kind)}
        )

    unembedding = value("unembedding")
    layers = zip(data.layers, data.parts, strict=True)
    return {
        path: Readout(
            unembedding,
            tuple(part(f"{i}.{j}", kinds[name]) for j, name in enumerate(names)),
            bool(data.measured),
        )
        for i, (path, names) in enumerate(layers)
    }


def written(
    directions: Any,
    readout: Readout,
    n_tokens: int = 5,
    n_random: int = 100,
    random_state: int = 0,
) -> xr.Dataset:
    """Return the tokens whose logits directions raise and lower most, beside random directions.

    Parameters
    ----------
    directions
        Directions of the stream, (r, m).
    readout
        The map of their layer.
    n_tokens
        Tokens on either side.
    n_random
        Random directions: isotropic, each given the norm of the direction that it is compared to.
    random_state
        Seed of the random directions.

    Returns
    -------
    xarray.Dataset
        ``written_up_id(concept, rank)`` and ``written_up``, token ids and their logits, largest
        first; ``written_down_id`` and ``written_down``, smallest first;
        ``written_random(concept)``, the 95th percentile over random directions of their largest
        logit. A direction whose largest logit stays below it writes no token more than a random
        one would.

    Raises
    ------
    ArgumentError
        If a shape or a number is out of range.
    NonFiniteError
        If a direction holds NaN or infinity.

    Examples
    --------
    >>> words = Readout(torch.eye(4), (), True)
    >>> tokens = written([[0.0, 3.0, 0.0, -1.0]], words, n_tokens=1)
    >>> (
    ...     tokens.written_up_id.item(),
    ...     tokens.written_up.item(),
    ...     tokens.written_down_id.item(),
    ... )
    (1, 3.0, 3)
    """
    check_whole("n_tokens", n_tokens, 1, len(readout.unembedding))
    check_whole("n_random", n_random)
    rows = to_numpy(directions)
    rng = np.random.default_rng(random_state)
    noise = rng.standard_normal((n_random, readout.width))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    largest = np.concatenate(
        [readout.written(batch).max(axis=1) for batch in _batches(noise)]
    )
    pieces = [_strongest(readout.written(batch), n_tokens) for batch in _batches(rows)]
    variables = {
        name: (("concept", "rank"), np.concatenate([piece[name] for piece in pieces]))
        for name in pieces[0]
    }
    limit = np.linalg.norm(rows, axis=1) * np.quantile(largest, QUANTILE)
    return xr.Dataset(
        {**variables, "written_random": ("concept", limit.astype(np.float32))}
    )


def _batches(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[start : start + _ROWS] for start in range(0, max(len(rows), 1), _ROWS)]


def _strongest(logits: np.ndarray, n_tokens: int) -> dict[str, np.ndarray]:
    """Return ids and values of the largest and the smallest logits of each row; ties by id."""
    strongest = {}
    for name, signed in {"written_up": -logits, "written_down": logits}.items():
        ids = np.array([_smallest(row, n_tokens) for row in signed], dtype=np.int64)
        ids = ids.reshape(-1, n_tokens)  # also of no direction
        strongest[f"{name}_id"] = ids
        strongest[name] = np.take_along_axis(logits, ids, axis=1)
    return strongest


def _smallest(row: np.ndarray, n: int) -> np.ndarray:
    """Return where the n smallest numbers stand, without putting a whole vocabulary in order."""
    row = np.where(np.isnan(row), np.inf, row)
    candidates = np.flatnonzero(row <= np.partition(row, n - 1)[n - 1])
    return candidates[np.argsort(row[candidates], kind="stable")[:n]]
