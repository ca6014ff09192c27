"""One dictionary over all checkpoints: codes that they share, and a decoder at each of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ...errors import check_choice, check_number, check_whole
from ..checks import check_seed
from .codes import METHODS, TRAINED, Fits, fitted_codes
from .decoding import Decoded, Tokens, decoded
from .intervals import BirthIntervals, birth_intervals, found_again, widened
from .lives import Lives, lives
from .presence import Decoder, PartialDecoder, Presence
from .snapshots import SCALES, Permuted, Snapshots, fitted_steps, training_steps
from .sources import one_thread
from .whitening import Gathered

STALE = 0.9  # of what is explained at the worst fitted checkpoint


class StaleDictionaryWarning(UserWarning):
    """The shared codes explain much less of a new checkpoint than of those they were fitted on."""


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
        On how many checkpoints, evenly spread, the codes are fitted; or their indexes; None: all.
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
    half_ : numpy.ndarray of shape (r,)
        Correlation of each source with its best match by a fit to one half of the texts; the
        smaller one of both halves. NaN for other methods than ICA.
    found_again_ : numpy.ndarray of shape (r,)
        Correlation of each code with its best match in fits from other seeds (the smallest, of
        several); NaN without `reseeds`.
    replicates_ : numpy.ndarray of shape (r,)
        Whether both halves find a latent: `half_` is at least 0.7 (or, where it is NaN,
        `found_again_`).
    steps_ : numpy.ndarray of shape (S,)
        Training steps, or indexes if none were given.
    fit_steps_ : numpy.ndarray
        Indexes of the checkpoints that the codes were fitted on.
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
    >>> X = [(U * s) @ rng.normal(size=(4, 16)) + 0.02 * rng.normal(size=(1500, 16)) for s in there]
    >>> found = JointDictionary(n_concepts=4, n_active=1).fit(X, steps=[0, 10, 20, 40, 80, 160])
    >>> sorted(found.lives_.kind.tolist()), found.born_steps().tolist()
    (['born', 'from the start', 'from the start', 'from the start'], [40])
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

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, steps: Any = None) -> Self:
        """Fit to activations of the same tokens at several checkpoints.

        Parameters
        ----------
        X
            Array (S, n, m), sequence of S matrices (n, m) of which one is asked for at a time, or
            a function that returns a fresh iterator over the matrices. They are read twice, the
            checkpoints of `fit_steps` once more.
        y
            Ignored; it is here by scikit-learn's convention.
        groups
            (n,) the text that each token belongs to. Tokens of one text are not independent:
            readability is measured on other texts, and texts are what is resampled. Without it
            every token counts as a text of its own.
        steps
            (S,) increasing training steps.

        Raises
        ------
        ArgumentError
            If an argument is out of range, checkpoints differ in shape, or there is a single text.
        NonFiniteError
            If a checkpoint holds NaN or infinity.
        """
        self._check()
        rng = np.random.default_rng(check_seed(self.random_state).randint(2**31 - 1))
        snapshots = Snapshots(X)
        count = snapshots.count()
        self.steps_ = training_steps(steps, count)
        self.fit_steps_ = fitted_steps(self.fit_steps, count)
        _, first = next(snapshots.read(self.fit_steps_[:1].tolist()))
        self.n_tokens_in_, self.n_features_in_ = first.shape
        tokens = Tokens.chosen(first, groups, self.max_tokens, self.scale, rng)
        self.rows_, self._tokens = tokens.rows, tokens
        seeds = rng.integers(2**31 - 1, size=1 + self.reseeds).tolist()
        size, trained = len(self.fit_steps_), self.method in TRAINED
        gathered = Gathered(len(tokens.rows), first.shape[1], size, stacked=trained)
        for _, values in snapshots.read(self.fit_steps_.tolist()):
            gathered.add(tokens.standardised(values)[0])
        fits = fitted_codes(
            gathered, self.n_concepts, self.method, self.n_active, seeds, tokens.half
        )
        del gathered
        self._draw_seed = int(rng.integers(2**31))
        with one_thread():
            self._decode(fits, snapshots)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Fit to X and return the shared codes (n, r); see `fit`."""
        return self.fit(X, y, **options).codes_

    def transform_steps(self, X: Any) -> Presence:
        """Return what the fitted codes say of further checkpoints of the same tokens.

        Parameters
        ----------
        X
            As in `fit`; the rows must be those of the fit.

        Warns
        -----
        StaleDictionaryWarning
            If the codes explain less than 0.9 times as much of the variance of a new checkpoint as
            of the fitted checkpoint of which they explain least: it holds what they do not know.
        """
        check_is_fitted(self, "codes_")
        with one_thread():
            return self._read(Snapshots(X)).presence

    def extend(self, X: Any, steps: Any) -> Self:
        """Join further checkpoints of the same run, and read the lives off anew.

        The codes stay as they are, and births keep their intervals over seeds. Warns as
        `transform_steps` does.

        Parameters
        ----------
        X
            Later checkpoints of the same tokens, as in `fit`.
        steps
            Their training steps, larger than those that are known.
        """
        check_is_fitted(self, "codes_")
        with one_thread():
            later = self._read(Snapshots(X))
        added = training_steps(steps, len(later.offsets))
        self.steps_ = training_steps([*self.steps_.tolist(), *added.tolist()], None)
        before = self.components_, self.offsets_
        self._write(*(np.concatenate(pair) for pair in zip(before, later[1:3], strict=True)))
        self._keep(Presence.joined([self.presence_, later.presence]))
        return self

    def false_birth_rate(self, X: Any, *, groups: Any = None, n_draws: int = 1) -> float:
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
        rng = np.random.default_rng(check_seed(self.random_state).randint(2**31 - 1) + 1)
        called = []
        for _ in range(check_whole("n_draws", n_draws)):
            refit = clone(self).set_params(
                reseeds=0, n_draws=0, random_state=int(rng.integers(2**31))
            )
            refit.fit(Permuted(X, int(rng.integers(2**31))), groups=groups)
            called.append((refit.lives_.born >= 0).mean())
        return float(np.mean(called))

    def born_steps(self) -> np.ndarray:
        """Return the training steps of the confirmed births, in order of the latents."""
        check_is_fitted(self, "codes_")
        born = self.lives_.born
        return np.asarray(self.steps_[born[born >= 0]])

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

    def _decode(self, fits: Fits, snapshots: Snapshots) -> None:
        """Read all checkpoints once, with the codes and with those of other fits."""
        self.codes_, self.half_ = fits.codes, fits.half
        self._decoder = Decoder(self.codes_, self._tokens.block)
        found = [found_again(self.codes_, each) for each in fits.others]
        again = [correlation for correlation, _ in found]
        self.found_again_ = np.min(again, axis=0) if again else np.full(self.n_concepts, np.nan)
        self.replicates_ = fits.replicates(self.found_again_)
        matched = [codes[:, match] for codes, (_, match) in zip(fits.others, found, strict=True)]
        everywhere = np.ones(len(self.codes_), dtype=bool)
        others = [PartialDecoder(codes, everywhere) for codes in matched]
        if fits.halves is not None:
            others += [PartialDecoder(fits.halves, rows) for rows in self._tokens.halves]
            again += [self.half_, self.half_]
        there = decoded(snapshots, self._tokens, self._decoder, others)
        self._write(there.components, there.offsets)
        self._again = list(zip(there.others, again, strict=True))
        self._keep(there.presence)

    def _read(self, snapshots: Snapshots) -> Decoded:
        """Read further checkpoints; warn where the codes say little of them."""
        there = decoded(snapshots, self._tokens, self._decoder)
        self._warn_if_stale(there.presence.explained)
        return there

    def _write(self, components: np.ndarray, offsets: np.ndarray) -> None:
        self.components_ = components
        self.offsets_ = offsets

    def _warn_if_stale(self, explained: np.ndarray) -> None:
        least = float(self.explained_[self.fit_steps_].min())
        if (explained < STALE * least).any():
            warnings.warn(
                f"the shared codes explain {explained.min():.2f} of the variance of a new "
                f"checkpoint, and at least {least:.2f} of those they were fitted on: it holds what "
                "they do not know. Fit again with it.",
                StaleDictionaryWarning,
                stacklevel=4,
            )

    def _keep(self, presence: Presence) -> None:
        """Keep what all checkpoints say, and the lives that follow."""
        self.presence_ = presence
        self.strength_, self.floor_ = presence.strength, presence.floor
        self.readable_, self.explained_ = presence.readable, presence.explained
        self.lives_: Lives = lives(self.strength_, self.readable_, presence.whitened, self.readable)
        rng = np.random.default_rng(self._draw_seed)
        births: BirthIntervals = birth_intervals(presence, self.lives_, self.n_draws, rng)
        for strength, again in self._again:
            # After `extend` other seeds have no strengths at the added checkpoints.
            if len(strength) == len(self.strength_):
                births = widened(births, self.lives_.born, strength, again)
        self.births_ = births

    @property
    def is_concept_(self) -> np.ndarray:
        """(r,) whether a latent is readable enough to be a concept."""
        check_is_fitted(self, "codes_")
        return self.lives_.is_concept
