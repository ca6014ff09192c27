"""Marked modular arithmetic: sequences whose marked values are to be added or multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ontogeny.errors import ArgumentError, check_choice, check_whole
from ontogeny.inputs import Inputs

OPERATIONS = ("addition", "multiplication")
DISTRACTORS = ("others", "values")


class MarkerBatch(NamedTuple):
    """Examples of a `MarkerTask`.

    Parameters
    ----------
    ids
        Token ids, (n, length) int64.
    labels
        Sum or product of the marked values modulo C, (n,) int64.
    markers
        Number m of markers of each example, (n,) int64.
    positions
        Position of each marker, increasing, (n, largest m) int64; −1 beyond an example's m.
    """

    ids: Tensor
    labels: Tensor
    markers: Tensor
    positions: Tensor


@dataclass(frozen=True)
class MarkerTask:
    """Add or multiply the values that follow the markers, modulo C (Xu 2026, sec. 3.1).

    A sequence holds m markers, no two of them adjacent, each followed by a value from 0 to C − 1;
    everything else is i.i.d. distractors. The label is the sum or the product of the marked values
    modulo C. Positions, values, distractors and m are drawn for each example: of all ways to place
    m markers with their values, each is equally likely.

    Token ids: values 0 to C − 1, then the marker (or one marker for each slot), then the tokens
    that only distract.

    Parameters
    ----------
    length
        Tokens T of a sequence.
    modulus
        C.
    markers
        Numbers m that are drawn, each equally likely: an integer or several.
    vocab_size
        Number of token ids.
    operation
        ``"addition"`` or ``"multiplication"``.
    distractors
        ``"others"`` (as in the author's code: never a value, so that all values are marked and the
        markers are redundant) or ``"values"`` (any token but a marker, so that attention to the
        markers is necessary).
    distinct_markers
        Whether the first, second, ... marker of a sequence are different tokens, as in the
        author's code; one token by default.

    Raises
    ------
    ArgumentError
        If a number is out of range, the markers do not fit into the length, or no token is left
        for distractors.

    Examples
    --------
    >>> task = MarkerTask(length=8, modulus=5, markers=2, vocab_size=10)
    >>> batch = task.sample(3, torch.Generator().manual_seed(0))
    >>> tuple(batch.ids.shape), batch.markers.tolist()
    ((3, 8), [2, 2, 2])
    >>> place = batch.positions[0] + 1
    >>> int(batch.ids[0, place].sum() % 5) == int(batch.labels[0])
    True
    """

    length: int = 16
    modulus: int = 8
    markers: int | tuple[int, ...] = (1, 2, 3, 4)
    vocab_size: int = 24
    operation: str = "addition"
    distractors: str = "others"
    distinct_markers: bool = False

    def __post_init__(self) -> None:
        for name, minimum in (("length", 2), ("modulus", 2), ("vocab_size", 3)):
            check_whole(name, getattr(self, name), minimum)
        check_choice("operation", self.operation, OPERATIONS)
        check_choice("distractors", self.distractors, DISTRACTORS)
        self._check_markers(self.counts)
        self._check_vocabulary()

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers m that are drawn, increasing."""
        return _counts(self.markers)

    @property
    def marker_ids(self) -> tuple[int, ...]:
        """Token ids of the markers: of each slot, or one."""
        kinds = max(self.counts) if self.distinct_markers else 1
        return tuple(range(self.modulus, self.modulus + kinds))

    @property
    def distractor_ids(self) -> tuple[int, ...]:
        """Token ids that distractors are drawn from."""
        others = tuple(range(self.modulus + len(self.marker_ids), self.vocab_size))
        return (
            tuple(range(self.modulus)) if self.distractors == "values" else ()
        ) + others

    def placements(self, m: int) -> int:
        """Return in how many ways m markers with their values fit: C(T − m, m).

        Examples
        --------
        >>> MarkerTask(length=16).placements(4)
        495
        """
        self._check_markers((m,))
        return math.comb(self.length - m, m)

    def label_distribution(self, m: int) -> np.ndarray:
        """Return the exact probability of every label at m markers, (C,) float64.

        Uniform for addition; products of several values are often 0, so accuracy at multiplication
        means little without it.

        Examples
        --------
        >>> round(
        ...     float(
        ...         MarkerTask(operation="multiplication").label_distribution(4).max()
        ...     ),
        ...     3,
        ... )
        0.656
        """
        check_whole("m", m, 1)
        values = np.arange(self.modulus)
        combine = np.add.outer if self.operation == "addition" else np.multiply.outer
        table = combine(values, values) % self.modulus
        distribution = np.full(self.modulus, 1 / self.modulus)
        for _ in range(m - 1):
            joint = np.repeat(
                distribution[:, None] / self.modulus, self.modulus, axis=1
            )
            distribution = np.bincount(
                table.ravel(), joint.ravel(), minlength=self.modulus
            )
        return distribution

    def majority_baseline(self, m: int) -> float:
        """Return the accuracy of always naming the most frequent label at m markers.

        Examples
        --------
        >>> MarkerTask().majority_baseline(3)
        0.125
        """
        return float(self.label_distribution(m).max())

    def sample(
        self,
        n: int,
        generator: torch.Generator,
        markers: int | Sequence[int] | None = None,
    ) -> MarkerBatch:
        """Draw n examples on the generator's device.

        Parameters
        ----------
        n
            Number of examples.
        generator
            Its device is where everything is made; the CPU and a GPU draw other numbers.
        markers
            Numbers m to draw from instead of the task's own.

        Raises
        ------
        ArgumentError
            If `n` is not positive or the markers do not fit.
        """
        check_whole("n", n, 1)
        counts = self.counts if markers is None else _counts(markers)
        self._check_markers(counts)
        if self.distinct_markers and counts[-1] > len(self.marker_ids):
            raise ArgumentError(
                f"markers must be at most {len(self.marker_ids)}, the number of distinct marker "
                f"tokens of this task; got {counts[-1]}."
            )
        if 2 * counts[0] < self.length and not self.distractor_ids:
            raise ArgumentError(
                f"markers={counts[0]} leave places for distractors, but vocab_size="
                f"{self.vocab_size} leaves no token for them."
            )
        device = generator.device
        choice = torch.randint(len(counts), (n,), generator=generator, device=device)
        count = torch.tensor(counts, device=device)[choice]
        slots = torch.arange(counts[-1], device=device)
        used = slots < count[:, None]
        starts = self._starts(count, counts, used, generator)
        values = torch.randint(
            self.modulus, used.shape, generator=generator, device=device
        )
        ids = self._distract(n, generator)
        marker = torch.tensor(self.marker_ids, device=device)
        marker = marker[slots] if self.distinct_markers else marker.expand(counts[-1])
        # Slots that an example does not use write into one column more, which is cut off.
        place = torch.where(used, starts, self.length)
        ids.scatter_(1, place, marker.expand(n, -1))
        ids.scatter_(1, torch.where(used, starts + 1, self.length), values)
        return MarkerBatch(
            ids[:, : self.length].contiguous(),
            self._labels(values, used),
            count,
            torch.where(used, starts, -1),
        )

    def inputs(
        self, n: int, random_state: int = 0, markers: int | Sequence[int] | None = None
    ) -> Inputs:
        """Return n examples as an input set with labels, for a study.

        The seed is kept apart from those of training batches: the examples are fresh ones.

        Examples
        --------
        >>> MarkerTask().inputs(5).labels.shape
        (5,)
        """
        check_whole("random_state", random_state, 0)
        seed = int(
            np.random.SeedSequence([_EVALUATION, random_state]).generate_state(1)[0]
        )
        batch = self.sample(n, torch.Generator().manual_seed(seed), markers)
        return Inputs.from_tokens(
            batch.ids.numpy(), labels=batch.labels.numpy(), vocab_size=self.vocab_size
        )

    def _starts(
        self,
        count: Tensor,
        counts: tuple[int, ...],
        used: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Return marker positions (n, largest m): uniform over all placements, increasing.

        m pairs of two tokens among T are m of T − m places when every pair counts as one place.
        """
        places = self.length - counts[0]
        keys = torch.rand(
            (len(count), places), generator=generator, device=count.device
        )
        beyond = (
            torch.arange(places, device=count.device) >= (self.length - count)[:, None]
        )
        order = keys.masked_fill_(beyond, 2.0).argsort(dim=1)[:, : counts[-1]]
        free_places = torch.where(used, order, self.length).sort(dim=1).values
        return free_places + torch.arange(counts[-1], device=count.device)

    def _distract(self, n: int, generator: torch.Generator) -> Tensor:
        allowed = self.distractor_ids
        tokens = torch.randint(
            max(len(allowed), 1),
            (n, self.length + 1),
            generator=generator,
            device=generator.device,
        )
        if self.distractors == "others":
            return tokens.add_(allowed[0] if allowed else 0)
        return torch.tensor(allowed, device=generator.device)[tokens]

    def _labels(self, values: Tensor, used: Tensor) -> Tensor:
        if self.operation == "addition":
            return (values * used).sum(1) % self.modulus
        product = torch.ones_like(values[:, 0])
        # Reduced at every factor: products do not overflow.
        for slot in range(values.shape[1]):
            product = torch.where(
                used[:, slot], product * values[:, slot] % self.modulus, product
            )
        return product

    def _check_markers(self, counts: tuple[int, ...]) -> None:
        if 2 * counts[-1] > self.length:
            raise ArgumentError(
                f"markers={counts[-1]} with their values need {2 * counts[-1]} tokens, but length "
                f"is {self.length}; it takes at most {self.length // 2} markers."
            )

    def _check_vocabulary(self) -> None:
        kinds = len(self.marker_ids)
        tightest = 2 * min(self.counts) == self.length  # no place for a distractor
        needed = self.modulus + kinds + (not tightest and self.distractors == "others")
        if self.vocab_size < needed:
            raise ArgumentError(
                f"vocab_size must be at least {needed}: {self.modulus} values, {kinds} marker "
                f"tokens and a distractor; got {self.vocab_size}."
            )


_EVALUATION = 0x6D61726B


def _counts(markers: int | Sequence[int]) -> tuple[int, ...]:
    counts = (markers,) if isinstance(markers, int | np.integer) else tuple(markers)
    if not counts:
        raise ArgumentError(
            "markers must name at least one number of markers; got none."
        )
    for m in counts:
        check_whole("markers", m, 1)
    if len(set(counts)) < len(counts):
        raise ArgumentError(f"markers must differ from each other; got {counts}.")
    return tuple(sorted(int(m) for m in counts))
