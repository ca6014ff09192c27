"""Rows of an embedding over the steps, as a joint dictionary reads them, and what chance gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.fft
import xarray as xr

from ...characters import shown
from ...claims import Beside, Certainty, Claim, Subject, measurement
from ...errors import ArgumentError
from ...observables.readings import BlockReading
from .joint_lives import SET_ASIDE, claims_of_lives

Transform: TypeAlias = Callable[[int, np.ndarray], np.ndarray]


def chosen_ids(
    counts: np.ndarray, special: np.ndarray, size: int, max_tokens: int | None
) -> np.ndarray:
    """Return the token ids whose rows are read, increasing.

    The most frequent tokens come first, then the others in the order of their ids: vocabularies
    list frequent tokens first. Special tokens are left out.

    Parameters
    ----------
    counts
        (V,) how often each id occurs in the texts.
    special
        (V,) True for special tokens.
    size
        Rows of the matrix.
    max_tokens
        How many are read; None takes all.

    Raises
    ------
    ArgumentError
        If texts hold ids that the matrix has no row for.

    Examples
    --------
    >>> chosen_ids(np.array([0, 1, 9, 2]), np.array([True, False, False, False]), 6, 4)
    array([1, 2, 3, 4])
    """
    highest = int(np.flatnonzero(counts).max(initial=-1))
    if highest >= size:
        raise ArgumentError(
            f"it has {size} rows and the texts hold the token id {highest}: it is no matrix with "
            "one row a token"
        )
    ids = np.flatnonzero(~_of_size(special, size))
    order = np.argsort(-_of_size(counts, size)[ids], kind="stable")
    return np.sort(ids[order[:max_tokens]])


def _of_size(values: np.ndarray, size: int) -> np.ndarray:
    """Return the first `size` values, with zeros for ids that are not known."""
    return np.pad(values[:size], (0, max(size - len(values), 0)))


@dataclass(frozen=True, eq=False)
class Rows(Sequence[np.ndarray]):
    """Rows of a matrix at every step, read when asked for: a sequence of (n, m) arrays.

    Parameters
    ----------
    reading
        The matrix.
    ids
        Its rows.
    start
        What is taken off at every step: the rows of the untrained model, or None.
    transform
        What else is done to the rows of each step, by its index.
    """

    reading: BlockReading
    ids: np.ndarray
    start: np.ndarray | None = None
    transform: Transform | None = None

    def __len__(self) -> int:
        return len(self.reading.steps)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the rows at one step; there are no slices."""
        rows = self.reading.rows(int(self.reading.steps[index]), self.ids)
        if self.start is not None:
            rows = rows - self.start
        return rows if self.transform is None else self.transform(index, rows)

    def permuted(self, seed: int) -> Rows:
        """Return the rows with their tokens in another random order at every step."""

        def transform(index: int, rows: np.ndarray) -> np.ndarray:
            return rows[np.random.default_rng((seed, index)).permutation(len(rows))]

        return replace(self, transform=transform)

    def mixed(self, seed: int) -> Rows:
        """Return random orthogonal mixtures of the rows, the same at all steps.

        All products of two features at any two steps are kept, so what persists does persist.
        But every row is a sum over all tokens, and so no code is sparse.
        """
        rng = np.random.default_rng(seed)
        n = len(self.ids)
        turns = [(rng.choice((-1.0, 1.0), n), rng.permutation(n)) for _ in range(2)]

        def transform(_: int, rows: np.ndarray) -> np.ndarray:
            mixture = rows - rows.mean(axis=0)
            for signs, order in turns:
                # One round alone would leave waves of single tokens.
                mixture = scipy.fft.dct(
                    signs[:, None] * mixture[order], axis=0, norm="ortho"
                )
            return np.asarray(mixture, dtype=np.float32)

        return replace(self, transform=transform)


NAMED = 4  # newborn concepts, of each matrix
TOKENS = 3  # of each of them


def claims_of_matrices(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give of each matrix its concepts, births with their tokens, nulls, and the frequency."""
    for other, one in json.loads(data.attrs.get("tied", "{}")).items():
        subject = Subject(name, "tied", other, one)
        yield measurement(subject, 1.0, evidence=())
    if "n_concepts" not in data:
        return
    for claim in claims_of_lives(name, data.rename(block="layer")):
        one = data.sel(block=claim.subject.layer)
        beside = (*claim.beside, *_beside(claim.subject.quantity, one))
        yield replace(claim, beside=beside, certainty=_certainty(claim, beside))
    for block in map(str, data.block.values):
        yield from _of_frequency(name, block, data.sel(block=block))


def _beside(quantity: str, one: xr.Dataset) -> Iterator[Beside]:
    """Give what chance alone makes of each null, and of what was born the strongest tokens."""
    nulls = {"n_concepts": "null_concepts", "n_born": "null_born"}
    if nulls.get(quantity) in one:
        counts = one[nulls[quantity]].values
        for null, count in zip(one["null"].values, counts, strict=True):
            yield Beside("null", str(null), float(count))
    if quantity == "n_born":
        born = np.flatnonzero(np.isfinite(one.concept_born.values))
        strongest = born[np.argsort(-one.strength.max("step").values[born])][:NAMED]
        for j in strongest[
            np.argsort(one.concept_born.values[strongest], kind="stable")
        ]:
            yield Beside("part", _tokens(one, j), float(one.concept_born.values[j]))


def _certainty(claim: Claim, beside: Sequence[Beside]) -> Certainty:
    """Return how sure a count is: as controls where chance gives as many."""
    nulls = [each.value for each in beside if each.role == "null"]
    is_few = any(claim.last <= null for null in nulls)
    return Certainty.AS_CONTROLS if is_few else claim.certainty


def _of_frequency(name: str, block: str, one: xr.Dataset) -> Iterator[Claim]:
    """Give how closely a concept follows the frequency of tokens, beside the median concept."""
    concepts = np.flatnonzero(~one.concept_kind.isin(SET_ASIDE).values)
    if len(concepts):
        follows = np.abs(one.frequency.values[concepts])
        j = concepts[follows.argmax()]
        median = Beside("reference", "median concept", float(np.median(follows)))
        subject = Subject(name, "frequency", block)
        yield measurement(subject, float(one.frequency.values[j]), beside=[median])


def _tokens(one: xr.Dataset, j: int) -> str:
    ids = one.token_id.values[j][:TOKENS].tolist()
    texts = dict(
        zip(
            one["piece"].values.tolist(), one["piece_text"].values.tolist(), strict=True
        )
    )
    return ", ".join(shown(str(texts.get(i, i))) for i in ids)
