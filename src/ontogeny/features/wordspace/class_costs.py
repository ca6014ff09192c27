"""What a model's predictions say of the class of each token, over groupings of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...inputs import Inputs
from .cloze import corpus_support
from .concepts import signatures, svd_concepts

_SMALLEST = 1e-30  # a probability that float32 rounds to 0


@dataclass(eq=False)
class ClassCosts:
    """Log-probability of every token's class, and the mean prediction, over several groupings.

    Parameters
    ----------
    words
        Token ids of the words (W,).
    codes
        (groupings, W): the class of each word, bit i its sign in concept i.
    depth
        Bits of a code.
    inputs
        The texts whose tokens are predicted.
    """

    words: np.ndarray
    codes: np.ndarray
    depth: int
    inputs: Inputs
    _sums: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        # The last class holds all tokens that are none of the words.
        self._sums = np.zeros((len(self.codes), 2**self.depth + 1))

    def __call__(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> dict[str, np.ndarray]:
        """Return the log-probability of each token's class by grouping and depth, (e,) each."""
        p = log_p[:, torch.from_numpy(self.words).to(log_p.device)].exp().double()
        rest = (1 - p.sum(dim=1, keepdim=True)).clamp(min=_SMALLEST)
        mine = self._classes(text, column)
        costs = {}
        for g, codes in enumerate(self.codes):
            table = torch.zeros(
                p.shape[1], 2**self.depth, dtype=p.dtype, device=p.device
            )
            table[torch.arange(p.shape[1]), torch.from_numpy(codes)] = 1
            shares = torch.cat([p @ table, rest], dim=1).cpu().numpy()
            self._sums[g] += shares.sum(axis=0)
            for q in range(1, self.depth + 1):
                share = np.take_along_axis(
                    _coarser(shares, q), _at(mine[g], q)[:, None], axis=1
                )
                costs[f"{g}_{q}"] = np.log(np.maximum(share[:, 0], _SMALLEST))
        return costs

    def result(self, numbers: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return ``information(grouping, depth, token)`` and the ``text`` of each token."""
        information = (("grouping", "depth", "token"), self.information(numbers))
        return xr.Dataset(
            {"information": information, "text": ("token", numbers["text"])}
        )

    def information(self, sums: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return log p(class | context) − log p̄(class) of tokens, (groupings, depth, tokens)."""
        mine = self._classes(sums["text"], sums["column"])
        mean = self._sums / self._sums.sum(axis=1, keepdims=True)
        groupings = range(len(self.codes))
        depths = range(1, self.depth + 1)

        def of_depth(g: int, q: int) -> np.ndarray:
            log_mean = np.log(np.maximum(_coarser(mean[[g]], q)[0], _SMALLEST))
            return sums[f"{g}_{q}"] - log_mean[_at(mine[g], q)]

        return np.array([[of_depth(g, q) for q in depths] for g in groupings])

    def _classes(self, text: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the class of tokens in every grouping (groupings, e), -1 for other tokens."""
        highest = max(int(self.inputs.ids.max()), int(self.words.max()))
        table = np.full((len(self.codes), highest + 1), -1, dtype=np.int64)
        table[:, self.words] = self.codes
        return table[:, self.inputs.ids[text, column]]


def _coarser(shares: np.ndarray, depth: int) -> np.ndarray:
    """Return the shares of the classes of the first `depth` signs, and of other tokens (e, 2^q+1).

    Examples
    --------
    >>> _coarser(np.array([[0.1, 0.2, 0.3, 0.3, 0.1]]), 1).round(1)
    array([[0.4, 0.5, 0.1]])
    """
    inner = shares[:, :-1].reshape(len(shares), -1, 2**depth).sum(axis=1)
    return np.concatenate([inner, shares[:, -1:]], axis=1)


def _at(codes: np.ndarray, depth: int) -> np.ndarray:
    """Return the place of each token's class among the classes of the first `depth` signs."""
    return np.where(codes < 0, 2**depth, codes & (2**depth - 1))


AS_FREQUENT = 1.25  # largest ratio of the frequencies of words that change places


def as_frequent(often: np.ndarray) -> list[np.ndarray]:
    """Return the words in groups of about the same frequency: the most frequent, and down.

    Parameters
    ----------
    often
        How often each word occurs (V,), in any unit. Within a group the largest is at most 1.25
        times the smallest.

    Examples
    --------
    >>> [group.tolist() for group in as_frequent(np.array([10.0, 1.0, 9.0, 1.1]))]
    [[0, 2], [3, 1]]
    """
    order = np.argsort(-often, kind="stable")
    groups = [[int(order[0])]]
    for word in order[1:]:
        if often[word] * AS_FREQUENT < often[groups[-1][0]] * (1 - 1e-9):
            groups.append([])
        groups[-1].append(int(word))
    return [np.array(group) for group in groups]


def renamings(
    groups: Sequence[np.ndarray], n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return new names of the words, drawn within their groups: (draws, V).

    Examples
    --------
    >>> renamings([np.array([0]), np.array([1, 2])], 2, np.random.default_rng(5))
    array([[0, 2, 1],
           [0, 2, 1]])
    """
    renamed = np.empty((n_draws, sum(map(len, groups))), dtype=np.int64)
    for group in groups:
        renamed[:, group] = rng.permuted(np.tile(group, (n_draws, 1)), axis=1)
    return renamed


_AT_HAND = 4  # tables that a process keeps: one is asked for at every checkpoint
_tables: dict[tuple[ClassInformation, str, bool], xr.Dataset] = {}


@dataclass(frozen=True)
class ClassInformation:
    """The function of a `Reduced` need: information about classes that follow from the texts alone.

    Parameters are those of `ontogeny.observables.TextStatistics`.
    """

    depth: int
    vocab_size: int
    n_contexts: int
    n_draws: int
    random_state: int

    def classes(self, inputs: Inputs, masked: bool) -> xr.Dataset:
        """Return the class of every word, in the texts and in the null.

        Raises
        ------
        ArgumentError
            If the texts have no context.
        """
        key = (self, inputs.fingerprint, masked)
        if key not in _tables:
            if len(_tables) >= _AT_HAND:
                _tables.clear()
            _tables[key] = self._classes(inputs, masked)
        return _tables[key].copy()

    def _classes(self, inputs: Inputs, masked: bool) -> xr.Dataset:
        lengths = (2, 4) if masked else (1, 3)
        corpus = corpus_support(
            inputs, masked, self.vocab_size, self.n_contexts, lengths
        )
        basis = svd_concepts(corpus.support, self.depth)
        often = np.maximum(np.asarray(corpus.support.counts.sum(axis=1)).ravel(), 0.5)
        groups = as_frequent(often)
        renamed = renamings(
            groups, self.n_draws, np.random.default_rng([self.random_state, 21])
        )
        codes = signatures(basis.U)
        alone = np.concatenate(
            [group for group in groups if len(group) == 1] or [np.zeros(0, int)]
        )
        return xr.Dataset(
            {
                "word_id": (
                    "word",
                    np.asarray(corpus.support.word_ids, dtype=np.int64),
                ),
                "code": (("grouping", "word"), np.vstack([codes, codes[renamed]])),
                "exchanged": 1 - often[alone].sum() / often.sum(),
                "depths": basis.k,
            }
        )

    def reduction(self, inputs: Inputs, masked: bool) -> ClassCosts:
        """Return what takes the cost of every token's class out of a pass."""
        table = self.classes(inputs, masked)
        return ClassCosts(
            table.word_id.values, table.code.values, int(table.depths), inputs
        )
