"""TCAV as its authors test it: a concept against random texts, and random texts against others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import ttest_1samp, ttest_ind
from sklearn.base import clone
from torch import nn

from ontogeny.capture.objectives import ReadingSettings
from ontogeny.capture.reading import read
from ontogeny.errors import ArgumentError, check_choice, check_whole
from ontogeny.inputs import Inputs, stratified_split
from ontogeny.multiple_tests import holm
from ontogeny.needs import Activations
from ontogeny.units import Units

from ..concepts.cav import CAV
from ..concepts.concept_directions import GRANULARITIES
from ..dynamics.permutation import permutation_test
from .directional import directional_derivatives
from .random_documents import document_draws
from .targets import Target
from .tcav import ALONG_OF, check_influence


def tcav_against_random(
    model: nn.Module,
    concept: Inputs,
    random: Inputs,
    layers: str | Sequence[str],
    cav: CAV | None = None,
    *,
    examples: Inputs | None = None,
    train_fraction: float = 2 / 3,
    target: Target | str = "auto",
    tokens: str = "mean",
    size: int | None = None,
    n_runs: int = 50,
    random_state: int = 0,
    settings: ReadingSettings | None = None,
) -> xr.Dataset:
    """Return TCAV scores of a concept and of random concepts, over many runs, with their tests.

    In each run the concept's direction separates its texts from a random draw of other texts. A
    random concept, another draw disjoint from it, is separated from the same one (B. Kim et al.,
    *TCAV*, ICML 2018, sec. 3.4). Unlike shuffled labels (`tcav`), random concepts of other texts
    hold nothing of the concept's own axis. Directions are found on `train_fraction` of the
    concept's texts, and the others are scored: what a text's activations share with its gradient
    would otherwise pass for an effect of the concept (numbers in the guide).

    Three two-sided tests are given. The authors' t-tests take runs for independent draws; all runs
    share the concept's texts, so that both find far too much (numbers in the guide). The
    permutation test ranks the concept's mean derivative in the first run among those of the
    random concepts, and keeps its level.

    Where texts come from documents (`Inputs.groups`), the concept's texts are split by document,
    and every draw has as many documents as the concept with as many texts of each: random concepts
    that mixed all documents would vary less than the concept does.

    Parameters
    ----------
    model
        A masked or causal language model, or a sequence classifier.
    concept, random
        Texts with the concept, and a pool of texts without regard to it. Labels are not read.
    layers, cav, target, tokens, settings
        As in `tcav`.
    examples
        Other texts to score, of one class, say; all the concept's texts then find the directions.
        ``examples=concept`` scores the texts that the directions were found on.
    train_fraction
        Share of the concept's texts that find the directions where no `examples` are given.
    size
        Texts of each draw, at most half the pool; by default as many as find the concept's
        directions, or half the pool where that is less. The concept gives as many, since classes
        of unequal size by themselves turn a direction that has no intercept.
    n_runs
        Runs; the permutation test's p-value cannot be smaller than 1 / (n_runs + 1).
    random_state
        Seed of the split and the draws.

    Returns
    -------
    xarray.Dataset
        Over ``layer``: ``score`` and ``derivative`` (its mean over texts) with ``run``,
        ``random_score`` and ``random_derivative`` with ``run``; ``t_half`` (p-values of a t-test
        of the scores against 1/2), ``t_random`` (Welch's t-test against the random scores), both
        NaN where scores do not vary, with ``t_random_corrected`` (Holm, over layers);
        ``p_value`` and ``p_corrected`` of the permutation test.

    Raises
    ------
    ArgumentError
        If `size` is more than the concept or half the pool has, there are fewer than two runs, or
        the concept has too few texts to split.
    LayerMatchError
        If a pattern matches no module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> ids = np.random.default_rng(0).integers(1, 9, (60, 5))
    >>> with_concept = Inputs.from_tokens(np.where(ids == 1, 2, ids)[:20])
    >>> data = tcav_against_random(
    ...     model,
    ...     with_concept,
    ...     Inputs.from_tokens(ids[20:]),
    ...     "1",
    ...     target="causal",
    ...     n_runs=9,
    ... )
    >>> dict(data.random_score.sizes)
    {'layer': 1, 'run': 9}
    """
    check_choice("tokens", tokens, GRANULARITIES)
    concept = Inputs.coerce(concept)
    random = Inputs.coerce(random)
    if examples is None:
        concept, examples = _halves(concept, train_fraction, random_state)
    settings = settings or ReadingSettings()
    need = Activations(
        layers if isinstance(layers, str) else tuple(layers), None, tokens, None
    )
    with_concept, pool = (
        read(model, [need], {"x": i}, settings)[need] for i in (concept, random)
    )
    mine, others = (Units(i.groups[i.sample(tokens).text]) for i in (concept, random))
    draws = RandomConcepts.of_units(mine, others, n_runs, size, random_state)
    cav = CAV() if cav is None else cav
    directions = {
        path: draws.directions(np.asarray(A), np.asarray(pool[path]), cav, n_runs).T
        for path, A in with_concept.items()
    }
    data = directional_derivatives(
        model,
        examples,
        list(directions),
        directions,
        target,
        along=ALONG_OF[tokens],
        settings=settings,
    )
    for path in directions:
        zeros = (data.derivative.sel(layer=path) == 0).mean()
        check_influence(path, xr.Dataset({"zeros": zeros}))
    return _tested(data.derivative.values, list(directions))


def _halves(
    concept: Inputs, train_fraction: float, random_state: int
) -> tuple[Inputs, Inputs]:
    """Return the texts that find directions, and those that are scored."""
    if len(concept) < 2:
        raise ArgumentError(
            "concept must hold at least two texts, to find a direction and to be scored; got "
            f"{len(concept)}. Give other texts to score as examples."
        )
    same = np.zeros(len(concept), int)
    found_on, held_out = stratified_split(
        same, train_fraction, random_state, concept.groups
    )
    return concept.subset(found_on), concept.subset(held_out)


@dataclass(frozen=True, eq=False)
class RandomConcepts:
    """Which texts make the random concepts, and which of the concept's own stand against them.

    Drawn once and used at every layer and step, so that tests over both can share the draws.

    Parameters
    ----------
    own
        (size,) rows of the concept.
    draws
        (n_runs, 2, size) rows of the pool: the random concept, and what it is separated from.

    Examples
    --------
    >>> draws = RandomConcepts.of(6, 50, n_runs=9)
    >>> rng = np.random.default_rng(0)
    >>> draws.directions(rng.normal(size=(6, 3)), rng.normal(size=(50, 3)), CAV()).shape
    (10, 3)
    """

    own: np.ndarray
    draws: np.ndarray

    @classmethod
    def of(
        cls,
        texts: int,
        pool: int,
        n_runs: int,
        size: int | None = None,
        random_state: int = 0,
    ) -> RandomConcepts:
        """Draw for a concept of `texts` rows from a pool of `pool` rows.

        Raises
        ------
        ArgumentError
            If `size` is more than the concept or half the pool has, or there are fewer than two
            runs.
        """
        size = min(texts, pool // 2) if size is None else size
        draws = random_draws(pool, size, n_runs, random_state)
        if size > texts:
            raise ArgumentError(
                f"size must be at most {texts}, the concept's texts; got {size}."
            )
        rng = np.random.default_rng([random_state, 1])
        return cls(np.sort(rng.permutation(texts)[:size]), draws)

    @classmethod
    def of_units(
        cls,
        concept: Units,
        pool: Units,
        n_runs: int,
        size: int | None = None,
        random_state: int = 0,
    ) -> RandomConcepts:
        """Draw for texts of documents: each draw has as many documents as the concept.

        Where every text is a unit of its own, this is `of`.

        Raises
        ------
        ArgumentError
            As `of`, and if the pool's texts are all of one document.
        """
        if concept.distinct and pool.distinct:
            return cls.of(
                len(concept.of_row), len(pool.of_row), n_runs, size, random_state
            )
        n_runs = check_whole("n_runs", n_runs, minimum=2)
        return cls(*document_draws(concept, pool, n_runs, size, random_state))

    def directions(
        self, A: np.ndarray, pool: np.ndarray, cav: CAV, concept_runs: int = 1
    ) -> np.ndarray:
        """Return (concept_runs + n_runs, m) unit directions: of the concept, then the random ones.

        Run i separates the rows of the concept `A` (texts, m), and a random concept, from the
        same rows of `pool`.
        """
        concept = [
            _fit(cav, A[self.own], pool[rest]) for _, rest in self.draws[:concept_runs]
        ]
        return np.stack(
            [*concept, *(_fit(cav, pool[ids], pool[rest]) for ids, rest in self.draws)]
        )


def random_draws(
    count: int, size: int, n_runs: int, random_state: int = 0
) -> np.ndarray:
    """Return (n_runs, 2, size): two disjoint draws of `count` texts for each run.

    Examples
    --------
    >>> random_draws(10, 3, 4).shape
    (4, 2, 3)
    """
    n_runs = check_whole("n_runs", n_runs, minimum=2)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ArgumentError(
            f"size must be a positive whole number, and random hold two texts; got {size!r}."
        )
    if 2 * size > count:
        raise ArgumentError(
            f"random must hold two disjoint draws of size={size} texts; it has {count}."
        )
    rng = np.random.default_rng(random_state)
    draws = [rng.permutation(count)[: 2 * size].reshape(2, size) for _ in range(n_runs)]
    return np.stack(draws)


def _fit(cav: CAV, positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    labels = np.repeat([1, 0], [len(positive), len(negative)])
    fit = clone(cav).fit(np.concatenate([positive, negative]).astype(float), labels)
    return np.asarray(fit.direction_)


def _tested(derivative: np.ndarray, layers: list[str]) -> xr.Dataset:
    """Return scores and tests from derivatives (layer, 2 * runs, example)."""
    score, random_score = np.split((derivative > 0).mean(-1), 2, axis=1)
    slope, random_slope = np.split(derivative.mean(-1), 2, axis=1)
    varied = np.ptp(score, axis=1) > 0
    compared = varied | (np.ptp(random_score, axis=1) > 0)
    t_half, t_random = np.full((2, len(layers)), np.nan)
    # SciPy warns where one of the two kinds does not vary.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        t_half[varied] = ttest_1samp(score[varied], 0.5, axis=1).pvalue
        t_random[compared] = ttest_ind(
            score[compared], random_score[compared], axis=1, equal_var=False
        ).pvalue
    corrected = np.full(len(layers), np.nan)
    if compared.any():
        corrected[compared] = holm(t_random[compared])
    test = permutation_test(slope[:, 0], random_slope, centre=0.0)
    by_run = ("layer", "run")
    return xr.Dataset(
        {
            "score": (by_run, score),
            "random_score": (by_run, random_score),
            "derivative": (by_run, slope),
            "random_derivative": (by_run, random_slope),
            "t_half": ("layer", t_half),
            "t_random": ("layer", t_random),
            "t_random_corrected": ("layer", corrected),
            "p_value": ("layer", test.p_value),
            "p_corrected": ("layer", test.p_corrected),
        },
        coords={"layer": layers},
    )
