"""Names of concepts, given only where they are earned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ....arrays import Array
from ....characters import in_words, shown
from ....dynamics import holm
from ....errors import ArgumentError, check_texts
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from .chance import permutation_bound
from .row_words import RowWords, joined_pieces
from .rows import BEYOND, CHOSEN, Kinds, confirmations, described, squared
from .tokens import leading_tokens

ALPHA = 0.05
LOOKED_AT = 12  # tokens of a concept among which forms of one word are merged
LEAST_OF_FIRST = 0.2  # share of a name's later tokens, of the first one's


def names(
    codes: Array,
    inputs: Inputs,
    sample: TokenSample,
    *,
    untrained: ArrayLike,
    pieces: Sequence[str],
    random_state: int = 0,
) -> xr.Dataset:
    """Return a name for each concept that lies on few tokens, more than in an untrained model.

    A name is the one to three tokens that carry most of the squared code, in words: ``comma``,
    ``the``, ``open parenthesis``; a piece of one word is called by that word, one of several words
    is cut: ``Tim…``. Forms of a word that differ in case or in a leading space are
    one. Later tokens need a fifth of the first one's share. A name is given where both hold:

    - the concentration exceeds the limit, the 95th percentile of the untrained model's. Of q
      latents it is the k-th smallest with k = ⌈.95 (q + 1)⌉: a concept that is like them exceeds
      it in at most 5 % of cases. With fewer than 20 latents it is their maximum, and the rate is
      up to 1 / (q + 1).
    - the permutation p-value of the concentration, corrected over the concepts (Holm), is at most
      .05. Codes are permuted over tokens within the half that confirms. The p-value is not
      sampled: an upper bound is computed, which for p-values of .05 to .001 was 1 to 24 times
      as large. Of both directions twice the mean is taken, which is valid whatever their
      dependence (Rüschendorf 1982).

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    untrained
        (q,) concentrations of the untrained model's concepts in the same layer, by
        :func:`concentration` on the same sample, with codes that were found in the same way:
        sparse codes are more concentrated than dense ones whatever they are of.
    pieces
        How each token id is written, see `ontogeny.inputs.pieces_of`.
    random_state
        Seed of the halves.

    Returns
    -------
    xarray.Dataset
        ``name(concept)``, empty where none is given; ``concentration(concept)``;
        ``concentration_limit``, without dimension; ``name_p(concept)``. All NaN and no names for
        rows that are means of texts, which have no token; the limit NaN and no names where
        `untrained` is empty.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, all rows come from one unit of texts, `untrained` is no list
        of numbers from 0 to 1, or `pieces` no list of texts.
    NonFiniteError
        If a code is NaN or infinite.

    Notes
    -----
    Measured on untrained models of six layers and texts on Python, each concept judged by the
    limits of other seeds: a name is given in 4.1 % of 2,880 cases (720 ICA concepts), and in
    4.2 % of 1,536 (512 sparse ones, of one layer).

    L. Rüschendorf, *Random variables with maximum sums*, Adv. Appl. Probab. 14, 1982; V. Vovk and
    R. Wang, *Combining p-values via averaging*, Biometrika 107, 2020.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> inputs = Inputs.from_tokens(rng.integers(0, 50, (40, 30)))
    >>> codes = np.isin(inputs.ids.reshape(-1, 1), [3, 4])
    >>> pieces = [f" word{i}" for i in range(50)]
    >>> pieces[3], pieces[4] = ",", " The"
    >>> result = names(
    ...     codes, inputs, inputs.sample(), untrained=[0.1] * 20, pieces=pieces
    ... )
    >>> sorted(result.name.item().split(", ")), result.concentration.values
    (['The', 'comma'], array([1.]))
    """
    values, rows = described(codes, inputs, sample)
    pieces = check_texts("pieces", pieces, "texts, one for each token id")
    limit = untrained_limit(untrained)
    if rows.has_tokens:
        halves = confirmations(values, rows, random_state)
        share = np.mean([half.share for half in halves], axis=0)
        p = holm(np.minimum(sum(permutation_bound(half) for half in halves), 1.0))
        has_name = (share > limit) & (p <= ALPHA)  # False where there is no limit
    else:
        share = np.full(values.shape[1], np.nan)
        p = np.full(values.shape[1], np.nan)
        limit = np.nan
        has_name = np.zeros(values.shape[1], dtype=bool)
    kinds = Kinds.of(rows.ids())
    words = RowWords.of(inputs, sample, pieces)
    written = joined_pieces(words, rows.ids(), pieces) if has_name.any() else pieces
    ids, shares = leading_tokens(kinds, kinds.sums(squared(values)), LOOKED_AT)
    chosen_names = [
        name_of(ids[j].tolist(), shares[j].tolist(), written) if has_name[j] else ""
        for j in range(len(has_name))
    ]
    return xr.Dataset(
        {
            "name": ("concept", chosen_names),
            "concentration": ("concept", share),
            "concentration_limit": ((), limit),
            "name_p": ("concept", p),
        }
    )


def untrained_limit(untrained: ArrayLike) -> float:
    """Return what at most 5 % of concepts like the untrained model's exceed; NaN of none.

    Examples
    --------
    >>> untrained_limit(np.arange(1, 100) / 100), untrained_limit([0.1, 0.3])
    (0.95, 0.3)
    """
    values = np.sort(np.asarray(untrained, dtype=np.float64))
    if values.ndim != 1 or np.any((values < 0) | (values > 1)):
        raise ArgumentError(
            "untrained must be a list of concentrations from 0 to 1; "
            f"got shape {values.shape}, {values.min(initial=1):g} to {values.max(initial=0):g}."
        )
    return math.nan if np.isnan(values).any() else upper_limit(values)


def upper_limit(values: ArrayLike) -> float:
    """Return what at most 5 % of further values like these exceed; NaN of none.

    Raises
    ------
    ArgumentError
        If the values are no list of numbers.
    """
    limits = np.asarray(values, dtype=np.float64)
    if limits.ndim != 1:
        raise ArgumentError(
            f"untrained must be a list of numbers; got shape {limits.shape}."
        )
    limits = np.sort(limits[np.isfinite(limits)])
    if not len(limits):
        return math.nan
    k = math.ceil((1 - ALPHA) * (len(limits) + 1) - 1e-9)
    return float(limits[min(k, len(limits)) - 1])


def name_of(ids: Sequence[int], shares: Sequence[float], pieces: Sequence[str]) -> str:
    """Return the name that tokens with these shares give, strongest first.

    Examples
    --------
    >>> name_of([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.01], [" the", "The", ",", "a"])
    'the, comma'
    """
    merged: dict[str, tuple[str, float]] = {}
    for i, share in zip(ids, shares, strict=True):
        if i == BEYOND:
            continue
        words = in_words(pieces[i] if i < len(pieces) else str(i))
        form, before = merged.get(words.casefold(), (words, 0.0))
        merged[words.casefold()] = (form, before + share)
    ranked = sorted(merged.values(), key=lambda entry: -entry[1])
    return ", ".join(
        shown(form)
        for form, share in ranked[:CHOSEN]
        if share >= LEAST_OF_FIRST * ranked[0][1]
    )
