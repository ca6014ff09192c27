"""One dictionary over all checkpoints: codes that they share, and a decoder at each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ...errors import ArgumentError, check_choice, check_number, check_whole
from ...machine import one_thread
from ..tensors import check_seed
from .codes import METHODS, TRAINED, Fits, fitted_codes
from .presence import Decoder, PartialDecoder, found_again
from .runs import ONLY, Decoded, FittedRun, Tokens, by_name, of_each
from .snapshots import SCALES, Permuted, Snapshots
from .whitening import Gathered


@dataclass(eq=False, repr=False)
class JointDictionary(BaseEstimator):
    """Concepts that are followed over checkpoints: ``X_t ~ U D_t`` with the same codes U at all t.

    A dictionary fitted to each checkpoint alone cannot follow a concept: its basis drifts, and
    refits differ. Here every token has one sparse code for the whole run, and what changes is the
    decoder: a concept is absent from a checkpoint where its decoder is zero.

    Activations are centred and divided by their standard deviation at each checkpoint, laid side
    by side, and split into independent components; the largest ``n_active`` codes a token, on
    average, are kept (in proportion, where there are fewer latents than ``n_concepts``). Decoders
    are least squares, at every checkpoint.

    Checkpoints may also be those of several runs, whose models differ in their seed, their width or
    their architecture: nothing needs to be the same but the tokens. Then every run has its own
    decoders, lives and births of the same concepts, and `present_` says which run has which.

    Components are climbed to from the tokens that stand out most, without a seed: another
    processor finds the same. Not all of them are properties of the language: `replicates_` says
    which ones two fits find, each to one half of the texts.

    Parameters
    ----------
    n_concepts
        Number r of latents at most; codes of those that are not found are 0. Only some of them
        turn out to be concepts.
    method
        ``"ica"``: independent components of the stack; ``"svd"``: its singular vectors;
        ``"batchtopk"``, ``"l1"``: crosscoders, trained, with the sparsity of that name.
    n_active
        Codes that are not zero, per token on average.
    fit_steps
        On how many checkpoints of each run, evenly spread, the codes are fitted; or their indexes;
        None: all.
    scale
        ``"step"``: every checkpoint has the same weight; ``"none"``: by its variance.
    max_tokens
        Tokens used, drawn at random where there are more; None: all.
    readable
        How well a code must be readable from one checkpoint alone, on texts that the readout has
        not seen: the correlation at its best checkpoint. At a second one 0.1 less is enough. A
        latent that is not readable is no concept.
    reseeds
        Further fits of the codes, which begin at random tokens; births that move widen their
        intervals, as those of fits to halves of the texts do.
    n_draws
        Resamples of the texts for the intervals of births.
    random_state
        Seed of all random choices.

    Attributes
    ----------
    runs_ : tuple of str
        Names of the runs, of which there is one, ``""``, where they have no names. Where they have,
        all attributes over checkpoints or features, from `components_` to `fit_steps_`, are dicts
        by run.
    present_ : numpy.ndarray of shape (runs, r)
        Whether a latent is a concept of a run: readable from two of its checkpoints.
    codes_ : numpy.ndarray of shape (n, r)
        Shared codes, not negative, of the tokens in `rows_`; in standard deviations.
    components_ : numpy.ndarray of shape (S, r, m)
        Decoders in the units of the activations.
    offsets_ : numpy.ndarray of shape (S, m)
        Means: ``codes_ @ components_[t] + offsets_[t]`` reconstructs checkpoint t.
    strength_, readable_, floor_ : numpy.ndarray of shape (S, r)
        How much of a checkpoint a concept writes, how well it can be read, and the strength that
        noise alone would give; see `Presence`.
    explained_ : numpy.ndarray of shape (S,)
        Share of the variance that the codes explain.
    lives_ : Lives
        When each concept is born, settled and gone; indexes of checkpoints.
    births_ : BirthIntervals
    steps_ : numpy.ndarray of shape (S,)
        Training steps, or indexes if none were given.
    fit_steps_ : numpy.ndarray
        Indexes of the checkpoints that the codes were fitted on.
    half_ : numpy.ndarray of shape (r,)
        Correlation of each source with its best match by a fit to one half of the texts; the
        smaller one of both halves. NaN for other methods than ICA.
    found_again_ : numpy.ndarray of shape (r,)
        Correlation of each code with its best match in fits from other seeds (the smallest, of
        several); NaN without `reseeds`.
    replicates_ : numpy.ndarray of shape (r,)
        Whether both halves find a latent: `half_` is at least 0.7 (or, where it is NaN,
        `found_again_`).
    rows_ : numpy.ndarray of shape (n,)
        Rows of X that are used.

    Notes
    -----
    A shared code costs reconstruction: it explains less of a checkpoint than a dictionary of its
    own would. Of the methods that were compared on planted lives, the best at reconstruction were
    the worst at finding the planted concepts.

    References
    ----------
    Crosscoders: Lindsey et al., Sparse crosscoders for cross-layer features and model diffing
    (2024); artefacts of their norms: Minder et al. (2025), arXiv:2504.02922. BatchTopK: Bussmann et
    al., arXiv:2412.06410.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> U = rng.exponential(size=(1500, 4)) * (rng.uniform(size=(1500, 4)) < 0.1)
    >>> there = np.ones((6, 4))
    >>> there[:3, 3] = 0  # the last one is born at index 3
    >>> X = [
    ...     (U * s) @ rng.normal(size=(4, 16)) + 0.02 * rng.normal(size=(1500, 16))
    ...     for s in there
    ... ]
    >>> joint = JointDictionary(n_concepts=4, n_active=1).fit(
    ...     X, steps=[0, 10, 20, 40, 80, 160]
    ... )
    >>> sorted(joint.lives_.kind.tolist()), joint.born_steps().tolist()
    (['born', 'from the start', 'from the start', 'from the start'], [40])

    Another run of another width, which never has the first concept:

    >>> Y = [
    ...     (U * [0, 1, 1, 1]) @ rng.normal(size=(4, 9))
    ...     + 0.02 * rng.normal(size=(1500, 9))
    ... ] * 6
    >>> both = JointDictionary(n_concepts=4, n_active=1).fit({"wide": X, "narrow": Y})
    >>> both.present_.sum(axis=1).tolist(), int(both.present_.all(axis=0).sum())
    ([4, 3], 3)
    >>> both.born_steps()
    {'wide': array([3]), 'narrow': array([], dtype=int64)}
    """

    n_concepts: int = 200
    method: str = "ica"
    n_active: int = 8
    _: KW_ONLY
    fit_steps: int | Sequence[int] | None = 12
    scale: str = "step"
    max_tokens: int | None = 10_000
    readable: float = 0.6
    reseeds: int = 1
    n_draws: int = 100
    random_state: Any = 0

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, steps: Any = None
    ) -> Self:
        """Fit to activations of the same tokens at several checkpoints.

        Parameters
        ----------
        X
            Array (S, n, m), sequence of S matrices (n, m) of which one is asked for at a time, or
            a function that returns a fresh iterator over the matrices. They are read twice, the
            checkpoints of `fit_steps` once more. Or several runs of the same tokens, each so, by
            name: ``{"seed 0": [...], "seed 1": [...]}``; each may have another number m of features
            and of checkpoints.
        y
            Ignored; it is here by scikit-learn's convention.
        groups
            (n,) the text that each token belongs to. Tokens of one text are not independent:
            readability is measured on other texts, and texts are what is resampled. Without it
            every token counts as a text of its own.
        steps
            (S,) increasing training steps; of several runs by name.

        Raises
        ------
        ArgumentError
            If an argument is out of range, checkpoints of a run differ in shape or runs in tokens,
            or there is a single text.
        NonFiniteError
            If a checkpoint holds NaN or infinity.
        """
        self._check()
        rng = np.random.default_rng(check_seed(self.random_state).randint(2**31 - 1))
        data = by_name(X)
        self._runs = self._opened(
            data, of_each("steps", steps, list(data)), groups, rng
        )
        self._tokens = next(iter(self._runs.values())).tokens
        self.runs_ = tuple(self._runs)
        self.rows_ = self._tokens.rows
        self.n_tokens_in_ = self._tokens.shape[0]
        self.n_features_in_ = self._by_run(lambda run: run.tokens.shape[1])
        seeds = rng.integers(2**31 - 1, size=1 + self.reseeds).tolist()
        fits = fitted_codes(
            self._gathered(data),
            self.n_concepts,
            self.method,
            self.n_active,
            seeds,
            self._tokens.half,
        )
        self._draw_seed = int(rng.integers(2**31))
        with one_thread(blas=True):
            self._decode(fits, data)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Fit to X and return the shared codes (n, r); see `fit`."""
        return self.fit(X, y, **options).codes_

    def transform_steps(self, X: Any) -> Any:
        """Return what the fitted codes say of further checkpoints of the same tokens.

        Parameters
        ----------
        X
            As in `fit`; the rows must be those of the fit. Of named runs, some by name.

        Returns
        -------
        Presence
            Of named runs a dict of them.

        Warns
        -----
        StaleDictionaryWarning
            If the codes explain less than 0.9 times as much of the variance of a new checkpoint as
            of the fitted checkpoint of which they explain least: it holds what they do not know.
        """
        check_is_fitted(self, "codes_")
        with one_thread(blas=True):
            there = {name: life.presence for name, life in self._later(X).items()}
        return there.get(ONLY, there)

    def extend(self, X: Any, steps: Any) -> Self:
        """Join further checkpoints of the same run, and read the lives off anew.

        The codes stay as they are, and births keep their intervals over seeds. Warns as
        `transform_steps` does.

        Parameters
        ----------
        X
            Later checkpoints of the same tokens, as in `fit`.
        steps
            Their training steps, larger than those that are known; of named runs by name.
        """
        check_is_fitted(self, "codes_")
        with one_thread(blas=True):
            later = self._later(X)
        for name, added in of_each("steps", steps, list(later)).items():
            self._runs[name].join(later[name], added)
        self._judge()
        return self

    def false_birth_rate(
        self, X: Any, *, groups: Any = None, n_draws: int = 1
    ) -> float:
        """Return the share of latents that are called born where nothing is: a refit to chance.

        At each checkpoint the tokens are put in another random order. Each checkpoint is what it
        was, but no code is shared, so whatever is called born is a false birth.

        Parameters
        ----------
        X, groups
            As in `fit`.
        n_draws
            How many refits the share is averaged over.
        """
        called = [
            np.mean([(run.lives.born >= 0).mean() for run in refit._runs.values()])
            for refit in self._refits(X, groups, n_draws, together=False)
        ]
        return float(np.mean(called))

    def false_shared_rate(
        self, X: Any, *, groups: Any = None, n_draws: int = 1
    ) -> float:
        """Return how many latents are called present in several runs where the runs share nothing.

        The tokens of every run are put in another random order, the same at all of its checkpoints:
        each run develops as it did, but no token is the same as in another one.

        Parameters
        ----------
        X
            Named runs, as in `fit`.
        groups
            As in `fit`.
        n_draws
            How many refits the number is averaged over.
        """
        if len(by_name(X)) < 2:
            raise ArgumentError(
                f"X must hold at least two named runs; got {type(X).__name__}."
            )
        refits = self._refits(X, groups, n_draws, together=True)
        return float(
            np.mean([(refit.present_.sum(axis=0) > 1).sum() for refit in refits])
        )

    def born_steps(self) -> Any:
        """Return the training steps of the confirmed births, in order of the latents.

        Of named runs a dict of arrays.
        """
        check_is_fitted(self, "codes_")
        return self._by_run(lambda run: run.steps[run.lives.born[run.lives.born >= 0]])

    # -- how it is done ------------------------------------------------------------------------

    def _check(self) -> None:
        check_whole("n_concepts", self.n_concepts)
        check_choice("method", self.method, METHODS)
        check_whole("n_active", self.n_active, 1, self.n_concepts)
        check_choice("scale", self.scale, SCALES)
        check_number("readable", self.readable, 0, 1)
        check_whole("reseeds", self.reseeds, 0)
        check_whole("n_draws", self.n_draws, 0)
        check_seed(self.random_state)

    def _opened(
        self,
        data: Mapping[str, Snapshots],
        steps: Mapping[str, Any],
        groups: Any,
        rng: np.random.Generator,
    ) -> dict[str, FittedRun]:
        """Return the runs, all with the tokens that the first of them draws."""
        runs: dict[str, FittedRun] = {}

        def tokens(first: np.ndarray) -> Tokens:
            if not runs:
                return Tokens.chosen(first, groups, self.max_tokens, self.scale, rng)
            name, other = next(iter(runs.items()))
            return other.tokens.of_run(first, name)

        for name, snapshots in data.items():
            runs[name] = FittedRun.opened(
                name, snapshots, steps[name], self.fit_steps, tokens
            )
        return runs

    def _gathered(self, data: Mapping[str, Snapshots]) -> Gathered:
        """Read the checkpoints that codes are fitted on, one at a time."""
        width = sum(
            len(run.fitted) * run.tokens.shape[1] for run in self._runs.values()
        )
        gathered = Gathered(len(self.rows_), width, 1, stacked=self.method in TRAINED)
        for name, run in self._runs.items():
            for _, values in data[name].read(run.fitted.tolist()):
                gathered.add(run.tokens.standardised(values)[0])
        return gathered

    def _decode(self, fits: Fits, data: Mapping[str, Snapshots]) -> None:
        """Read all checkpoints once, with the codes and with those of other fits."""
        self.codes_ = fits.codes
        self.half_ = fits.half
        self._decoder = Decoder(self.codes_, self._tokens.block)
        matches = [found_again(self.codes_, fit) for fit in fits.others]
        again = [correlation for correlation, _ in matches]
        self.found_again_ = (
            np.min(again, axis=0) if again else np.full(self.n_concepts, np.nan)
        )
        self.replicates_ = fits.replicates(self.found_again_)
        matched = [
            codes[:, match]
            for codes, (_, match) in zip(fits.others, matches, strict=True)
        ]
        everywhere = np.ones(len(self.codes_), dtype=bool)
        others = [PartialDecoder(codes, everywhere) for codes in matched]
        if fits.halves is not None:
            others += [
                PartialDecoder(fits.halves, rows) for rows in self._tokens.halves
            ]
            again += [self.half_, self.half_]
        for name, run in self._runs.items():
            run.read(data[name], self._decoder, others, again)
        self._judge()

    def _later(self, X: Any) -> dict[str, Decoded]:
        """Read further checkpoints; warn where the codes say little of them."""
        data = by_name(X)
        if unknown := [name for name in data if name not in self._runs]:
            raise ArgumentError(
                f"X must hold runs of the fit, {list(self.runs_)}; got {unknown}."
            )
        return {
            name: self._runs[name].later(x, self._decoder) for name, x in data.items()
        }

    def _judge(self) -> None:
        """Keep what all checkpoints say, and the lives that follow."""
        for run in self._runs.values():
            run.judge(self.readable, self.n_draws, self._draw_seed)
        self.steps_ = self._by_run(lambda run: run.steps)
        self.fit_steps_ = self._by_run(lambda run: run.fitted)
        self.components_ = self._by_run(lambda run: run.components)
        self.offsets_ = self._by_run(lambda run: run.offsets)
        self.presence_ = self._by_run(lambda run: run.presence)
        self.strength_ = self._by_run(lambda run: run.presence.strength)
        self.floor_ = self._by_run(lambda run: run.presence.floor)
        self.readable_ = self._by_run(lambda run: run.presence.readable)
        self.explained_ = self._by_run(lambda run: run.presence.explained)
        self.lives_ = self._by_run(lambda run: run.lives)
        self.births_ = self._by_run(lambda run: run.births)
        self.present_ = np.stack([run.lives.is_concept for run in self._runs.values()])

    def _by_run(self, value: Callable[[FittedRun], Any]) -> Any:
        values = {name: value(run) for name, run in self._runs.items()}
        return values.get(ONLY, values)

    def _refits(
        self, X: Any, groups: Any, n_draws: int, *, together: bool
    ) -> Iterator[JointDictionary]:
        """Give fits to tokens in random orders, one `together` for all checkpoints of a run."""
        rng = np.random.default_rng(
            check_seed(self.random_state).randint(2**31 - 1) + 1
        )
        for _ in range(check_whole("n_draws", n_draws)):
            refit = clone(self).set_params(
                reseeds=0, n_draws=0, random_state=int(rng.integers(2**31))
            )
            orders = {
                name: Permuted(source.source, int(rng.integers(2**31)), together)
                for name, source in by_name(X).items()
            }
            yield refit.fit(orders.get(ONLY, orders), groups=groups)

    @property
    def is_concept_(self) -> np.ndarray:
        """(r,) whether a latent is readable enough to be a concept, in one run at least."""
        check_is_fitted(self, "codes_")
        return np.asarray(self.present_.any(axis=0))
