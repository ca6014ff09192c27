"""Whether broad classes are learned before fine ones, read off a model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import softmax

from ontogeny.arrays import matrix, numpy_matrix
from ontogeny.errors import ArgumentError, check_choice, check_texts, check_whole
from ontogeny.features.wordspace.class_costs import as_frequent, renamings
from ontogeny.features.wordspace.order import first_crossing

from .objectives import check_support


def support_confusion(
    logits: np.ndarray,
    S: np.ndarray,
    *,
    loss: str = "cross_entropy",
    words: Sequence[str] | None = None,
) -> xr.Dataset:
    """Return which support set a model predicts after each context, and how that confuses them.

    The predicted set is the one, among the distinct columns of S, whose ideal output is nearest:
    uniform probabilities on the set in the L1 norm for the cross-entropy, the centred column in
    the Euclidean norm for the square loss (there the logits stay at the size of S̃, and softmax of
    them never comes near uniform on a set).

    Parameters
    ----------
    logits
        (V, m), or (T, V, m) along training.
    S
        Support matrix (V, m) of zeros and ones.
    loss
        ``"cross_entropy"`` or ``"square"``: what the model was trained with.
    words
        The V words, for the labels of the sets.

    Returns
    -------
    xarray.Dataset
        ``confusion([step,] true, predicted)``: numbers of contexts; ``predicted_set([step,]
        context)``; ``exact``, ``superset`` ([step]): share of contexts whose set, or whose set or
        one that contains it, is predicted; ``true_set(context)``. Sets are ordered by size,
        largest first.

    Raises
    ------
    ArgumentError
        If shapes do not fit or S is no support.

    Notes
    -----
    After Zhao and Thrampoulidis 2025, Fig. 3. At the start, when all words are about equally
    likely, the nearest set is always the largest: a superset of its own subsets for free.

    Examples
    --------
    >>> S = np.array([[1.0, 1], [1, 0]])
    >>> confusion = support_confusion(np.zeros((2, 2)), S)
    >>> (
    ...     confusion.confusion.values.tolist(),
    ...     float(confusion.exact),
    ...     float(confusion.superset),
    ... )
    ([[1, 0], [1, 0]], 0.5, 1.0)
    """
    check_choice("loss", loss, ("cross_entropy", "square"))
    support = check_support(S)
    values = numpy_matrix("logits", logits, ndim=-1)
    if values.ndim > 3 or values.shape[-2:] != support.shape:
        raise ArgumentError(
            f"logits must be (V, m) or (T, V, m) with (V, m) = {support.shape}; "
            f"their shape is {values.shape}."
        )
    stack = values.reshape(-1, *support.shape)
    sets, true = _distinct(support)
    if loss == "square":
        ideal = sets - sets.mean(axis=0)
        outputs = stack
        power = 2
    else:
        ideal = sets / sets.sum(axis=0)
        outputs = softmax(stack, axis=-2)
        power = 1
    distance = np.stack(
        [
            np.sum(np.abs(outputs - column[:, None]) ** power, axis=1)
            for column in ideal.T
        ]
    )
    predicted = distance.argmin(axis=0)
    count = sets.shape[1]
    confusion = np.zeros((len(stack), count, count), dtype=np.int64)
    for matrix_, row in zip(confusion, predicted, strict=True):
        np.add.at(matrix_, (true, row), 1)
    contains = np.all(sets.T[:, None] >= sets.T[None], axis=2)
    lead = () if values.ndim == 2 else ("step",)
    labels = _labels(sets, words)
    shape = values.shape[:-2]
    return xr.Dataset(
        {
            "confusion": (
                (*lead, "true", "predicted"),
                confusion.reshape(*shape, count, count),
            ),
            "predicted_set": ((*lead, "context"), predicted.reshape(*shape, -1)),
            "exact": (lead, (predicted == true).mean(axis=1).reshape(shape)),
            "superset": (lead, contains[predicted, true].mean(axis=1).reshape(shape)),
            "true_set": ("context", true),
        },
        coords={"true": labels, "predicted": labels},
    )


@dataclass(frozen=True, eq=False)
class CoarseToFine:
    """What `coarse_before_fine` found.

    Parameters
    ----------
    advantage
        Mean over pairs of log2(step of the fine / step of the coarse distinction): 1 means that
        the coarse one came in half the time.
    null_interval
        2.5 % and 97.5 % of the same mean with random coarse sets of words as frequent.
    p_value
        Share of random draws that reach `advantage`, one-sided; NaN where no class can be
        exchanged for another of words as frequent, so that class and frequency are confounded.
    pairs
        ``coarse_step``, ``fine_step`` and ``null_median`` (of the draws' log ratios) along
        ``pair``, with ``context``, ``fine`` and ``coarse`` labels.
    null
        The same mean of every draw, (draws,). Draws with one `random_state` are of the same sets,
        so that runs on one table can be tested together: mean over runs, draw by draw.
    """

    advantage: float
    null_interval: tuple[float, float]
    p_value: float
    pairs: xr.Dataset
    null: np.ndarray


def coarse_before_fine(
    steps: np.ndarray,
    logits: np.ndarray,
    S: np.ndarray,
    *,
    n_draws: int = 999,
    random_state: int = 0,
    words: Sequence[str] | None = None,
    frequencies: np.ndarray | None = None,
) -> CoarseToFine:
    """Test whether a context's broad class is learned before its own set within that class.

    For every context j and every larger set Q of the table that contains its set S_j: the coarse
    distinction is the probability of Q, the fine one that of S_j given Q. Neither bounds the
    other. Each counts as learned from when on it stays half-way from chance (``|Q|/V`` and
    ``|S_j|/|Q|``) to 1.
    The null puts other words in the place of those that Q has besides S_j: the sets keep their
    sizes, and nothing of the hierarchy. Words change places only with words about as frequent (by a
    factor of at most 1.25 within a group): a model that has learned frequencies and no class gives
    probability to a class of frequent words early. Pairs share classes, and words may be learned
    alike in all contexts, so each draw renames the words once, and all pairs are measured with the
    new names.

    Parameters
    ----------
    steps
        Training steps (T,), increasing from 0.
    logits
        (T, V, m); probabilities are their softmax over words.
    S
        Support matrix (V, m).
    n_draws, random_state
        Random renamings of the words, and their seed.
    words
        The V words, for labels.
    frequencies
        How often each word comes next, (V,), above 0 and in any unit. By default the mean of the
        contexts' uniform distributions over their sets, which is right where contexts are equally
        frequent and so are the words of each.

    Raises
    ------
    ArgumentError
        If shapes do not fit, no set of the table contains another, or a frequency is not above 0.

    Notes
    -----
    The test of what Zhao and Thrampoulidis 2025 show in Fig. 3. Distinctions never learned count
    as learned at the last step. A renamed Q rarely contains S_j: S_j then takes the place of some
    of its words as frequent, those that come last in a random order, one for all pairs too. Where
    classes are themselves groups of equally frequent words, no draw differs from what is tested,
    and the p-value is NaN: class and frequency are confounded.

    Examples
    --------
    >>> S = np.array([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]])
    >>> time = np.arange(60)
    >>> coarse = np.where(S @ S.T @ S > 0, 1.0, 0.0)
    >>> logits = 0.3 * time[:, None, None] * (coarse + 0.1 * S)
    >>> order = coarse_before_fine(time, logits, S, n_draws=99)
    >>> order.advantage > 1
    True
    """
    support = check_support(S)
    steps = matrix("steps", steps, ndim=1)
    values = numpy_matrix("logits", logits, ndim=3)
    if values.shape[1:] != support.shape or len(values) != len(steps):
        raise ArgumentError(
            f"logits must be (T, V, m) = {(len(steps), *support.shape)}; got {values.shape}."
        )
    check_whole("n_draws", n_draws)
    check_whole("random_state", random_state, 0)
    sets, _ = _distinct(support)
    labels = _labels(sets, words)
    nested = _nested(support, sets)
    if not nested:
        raise ArgumentError(
            "no support set lies in a larger one, so nothing is coarse or fine."
        )
    probabilities = softmax(values, axis=-2)
    groups = _as_frequent(support, frequencies)
    rng = np.random.default_rng(random_state)
    renamed = renamings(groups, n_draws, rng)
    last = rng.random(renamed.shape)
    times = np.asarray(steps, dtype=float)
    rows = []
    null = np.empty((len(nested), n_draws))
    exchanged = False
    for i, (j, q) in enumerate(nested):
        contexts = support[:, j]
        of_context = probabilities[:, :, j]
        coarse, fine = _learned(times, of_context, contexts, sets[:, [q]])
        classes = _random_classes(contexts, sets[:, q], renamed, last, groups)
        exchanged = exchanged or bool((classes != sets[:, [q]]).any())
        chance = _learned(times, of_context, contexts, classes)
        null[i] = np.log2((chance[1] + 1) / (chance[0] + 1))
        rows.append((float(coarse[0]), float(fine[0])))
    pair_steps = np.array(rows)
    ratios = np.log2((pair_steps[:, 1] + 1) / (pair_steps[:, 0] + 1))
    means = null.mean(axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    advantage = float(ratios.mean())
    label_of = {
        column.tobytes(): name for column, name in zip(sets.T, labels, strict=True)
    }
    pairs = xr.Dataset(
        {
            "coarse_step": ("pair", pair_steps[:, 0]),
            "fine_step": ("pair", pair_steps[:, 1]),
            "null_median": ("pair", np.median(null, axis=1)),
            "context": ("pair", [j for j, _ in nested]),
            "fine": ("pair", [label_of[support[:, j].tobytes()] for j, _ in nested]),
            "coarse": ("pair", [labels[q] for _, q in nested]),
        }
    )
    reached = int((means >= advantage - 1e-9).sum())  # ties round apart
    p_value = (1 + reached) / (1 + n_draws) if exchanged else np.nan
    return CoarseToFine(advantage, (float(low), float(high)), p_value, pairs, means)


def _nested(support: np.ndarray, sets: np.ndarray) -> list[tuple[int, int]]:
    """Return each context with each set that is larger than its own, contains it and is not all."""
    pairs = []
    for j, own in enumerate(support.T):
        for q, larger in enumerate(sets.T):
            is_larger = own.sum() < larger.sum() < len(sets)
            if is_larger and (larger >= own).all():
                pairs.append((j, q))
    return pairs


def _learned(
    times: np.ndarray, probabilities: np.ndarray, fine: np.ndarray, coarse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return when each coarse set (V, n), and `fine` within it, is half learned: (n,) and (n,)."""
    of_own = (probabilities @ fine)[:, None]
    of_coarse = probabilities @ coarse
    share = of_own / of_coarse
    size = coarse.sum(axis=0)
    whole = len(fine)
    progress = np.stack(
        [
            (of_coarse - size / whole) / (1 - size / whole),
            (share - fine.sum() / size) / (1 - fine.sum() / size),
        ]
    )
    reached = first_crossing(times, progress.transpose(0, 2, 1), 0.5, lasting=True)
    coarse_step, fine_step = np.where(np.isnan(reached), times[-1], reached)
    return coarse_step, fine_step


def _as_frequent(
    support: np.ndarray, frequencies: np.ndarray | None
) -> list[np.ndarray]:
    """Return the words in groups of about the same frequency: the most frequent, and down."""
    if frequencies is None:
        often = (support / support.sum(axis=0)).mean(axis=1)
    else:
        often = numpy_matrix("frequencies", frequencies, ndim=1)
        if often.shape != (len(support),) or (often <= 0).any():
            raise ArgumentError(
                f"frequencies must be {len(support)} numbers above 0, one a word; got shape "
                f"{often.shape}, smallest {often.min():g}."
            )
    return as_frequent(often)


def _random_classes(
    fine: np.ndarray,
    coarse: np.ndarray,
    renamed: np.ndarray,
    last: np.ndarray,
    groups: Sequence[np.ndarray],
) -> np.ndarray:
    """Return `coarse` under new names (draws, V), with `fine` in it: sets of its size (V, draws).

    Words of each group leave for those of `fine` in the order of `last` (draws, V), numbers from 0
    to 1, largest first. So a set has as many words of each group as `coarse`.
    """
    rank = np.where(fine > 0, -1.0, last + (coarse[renamed] == 0))
    sets = np.zeros(renamed.shape)
    for group in groups:
        members = group[
            np.argsort(rank[:, group], axis=1)[:, : int(coarse[group].sum())]
        ]
        np.put_along_axis(sets, members, 1.0, axis=1)
    return sets.T


def _distinct(support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct columns, largest sets first, and each column's place among them."""
    sets, place = np.unique(support, axis=1, return_inverse=True)
    order = np.lexsort((np.arange(sets.shape[1])[::-1], -sets.sum(axis=0)))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return np.ascontiguousarray(sets[:, order]), back[place.ravel()]


def _labels(sets: np.ndarray, words: Sequence[str] | None) -> list[str]:
    if words is None:
        words = [str(i) for i in range(len(sets))]
    words = check_texts("words", words, "words")
    if len(words) != len(sets):
        raise ArgumentError(f"words must hold {len(sets)} words; got {len(words)}.")
    return [
        " ".join(w for w, there in zip(words, s, strict=True) if there) for s in sets.T
    ]
