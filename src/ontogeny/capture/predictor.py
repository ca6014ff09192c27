"""What a model predicts at chosen tokens: probabilities, ranks and its likeliest answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from torch import nn

from ..errors import ArgumentError, check_whole
from ..inputs import Inputs
from ..needs.base import MASK_FRACTION
from .answers import AtTokens
from .collect import Collector, feed
from .families import longest_text
from .forward import beginning, check_fits, quiet, run
from .logits import LogitRows
from .loss import resolve_objective
from .objectives import ReadingSettings
from .predicted import PredictionCollector, Reduced, Reduction
from .trial.causality import check_causal, check_logits


class Predictor:
    """A model that can be asked what it predicts at chosen tokens of any texts.

    A masked model sees the text with the mask token at the chosen one, and each chosen token is
    masked in a pass of its own. A causal model sees what stands before the token. Logits are kept
    of the chosen tokens alone.

    Parameters
    ----------
    model
        A language model; it is left as it was.
    objective
        ``"causal"``, ``"masked"``, or ``"auto"``: by the name of the model's class.
    settings
        Batch size and positions.

    Raises
    ------
    ArgumentError
        If the class name does not show what the model predicts.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> answers = Predictor(model, "causal").at(
    ...     Inputs.from_tokens([[5, 6, 7]]), [0, 0], [1, 2], top=3
    ... )
    >>> answers.right_id.values.tolist(), answers.answer_id.shape
    ([6, 7], (2, 3))
    """

    def __init__(
        self,
        model: nn.Module,
        objective: str = "auto",
        settings: ReadingSettings | None = None,
    ) -> None:
        self._model = model
        self._settings = settings or ReadingSettings()
        self.masked = resolve_objective(model, objective) == "masked"

    @property
    def model(self) -> nn.Module:
        """The model that is asked."""
        return self._model

    @property
    def longest(self) -> int | None:
        """Tokens that a text may have; None if the model sets no limit."""
        return longest_text(getattr(self._model, "config", None))

    def vocabulary(self, inputs: Inputs) -> int:
        """Return the number of tokens that get a probability, whether or not weights are finite.

        The first text of `inputs` is read for the shape of its logits: a model may leave out rows
        of its map to the vocabulary, such as padding.
        """
        batch = beginning(inputs).batches(1)[0]
        rows = LogitRows.of(self._model)
        first = np.zeros(1, dtype=np.int64)
        rows.choose(batch, first, first)
        with quiet(self._model):
            output = run(
                self._model, batch, position_ids=self._settings.positions == "mask"
            )
        logits = rows.take(output)
        assert logits is not None
        return int(logits.shape[-1])

    def at(
        self,
        inputs: Inputs,
        text: ArrayLike,
        position: ArrayLike,
        *,
        width: ArrayLike = 1,
        top: int = 0,
    ) -> xr.Dataset:
        """Return what is predicted at e tokens.

        Parameters
        ----------
        inputs
            The texts.
        text, position
            (e,) the text of each token, and the token counted from the text's first one.
        width
            (e,) how many tokens are masked from the position on, 1 by default. The first of them
            is asked for.
        top
            How many of the likeliest answers are given.

        Returns
        -------
        xarray.Dataset
            Over ``target``, of length e: ``right_id``, the token of the text;
            ``right_log_probability`` in nats; ``right_rank``, 1 where it is the first answer.
            Over ``target`` and ``answer``, of length `top`, the likeliest first: ``answer_id`` and
            ``answer_log_probability``. Of equally likely tokens the one with the smaller id comes
            first. The attribute ``vocabulary`` is the number of tokens that have a probability.

        Raises
        ------
        ArgumentError
            If a token is none of its text's, a causal model is asked for a first token, or a
            masked one gets inputs without a mask token.
        NonFiniteError
            If the logits at a token are not finite.
        """
        text = np.atleast_1d(text)
        position = np.atleast_1d(position)
        width = np.broadcast_to(width, text.shape)
        check_whole("top", top, 0)
        self._check(inputs, text, position, width)
        texts, row = (text, np.arange(len(text))) if self.masked else _once(text)
        laid_out = self._settings.layout(inputs.subset(texts))
        column = position + laid_out.mask.argmax(axis=1)[row]
        right = laid_out.ids[row, column]
        ids = None
        if self.masked:
            ids = _masked(laid_out, column, width)
        collector = AtTokens(self._model, row, column - (not self.masked), right, top)
        check = check_logits if self.masked else check_causal
        check(self._model, laid_out)
        self._feed(laid_out, ids, collector)
        return collector.result()

    def reduced(
        self,
        inputs: Inputs,
        function: Reduction,
        random_state: int = 0,
        beside: Sequence[Collector] = (),
    ) -> dict[str, np.ndarray]:
        """Apply a function to what is predicted at every token that is, without keeping logits.

        Predicted are the ordinary tokens after a first one. Of a masked model, 15 % of the ordinary
        tokens are masked at once and predicted, the same as `ontogeny.needs.Losses` masks.

        Parameters
        ----------
        inputs
            The texts.
        function
            Is given some tokens at once: (e,) texts and columns, (e,) token ids, and (e, V)
            log-probabilities, the last two on the model's device. It returns numbers (e,) by name.
        random_state
            Seed of which tokens are masked.
        beside
            What else is taken out of the same passes. A masked model reads the masked text there.

        Returns
        -------
        dict
            All numbers by name, (predicted tokens,), and ``text`` and ``column`` of each.

        Raises
        ------
        NonFiniteError
            If a log-probability is NaN.

        Examples
        --------
        >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
        >>> inputs = Inputs.from_tokens([[5, 6, 7], [8, 5]])
        >>> largest = lambda text, column, token, log_p: {
        ...     "largest": log_p.max(dim=1).values
        ... }
        >>> values = Predictor(model, "causal").reduced(inputs, largest)
        >>> values["text"].tolist(), values["column"].tolist(), values["largest"].shape
        ([0, 0, 1], [1, 2, 1], (3,))
        """
        laid_out = self._settings.layout(inputs)
        ids = None
        positions = None
        if self.masked:
            check_mask_token(inputs)
            ids, positions = laid_out.corrupt(MASK_FRACTION, random_state)
        reduced = Reduced(type(self._model).__name__, function)
        collector = PredictionCollector(self._model, laid_out, positions, [reduced])
        self._feed(laid_out, ids, collector, *beside)
        return reduced.numbers()

    def _feed(
        self, laid_out: Inputs, ids: np.ndarray | None, *collectors: Collector
    ) -> None:
        """Run the model on texts."""
        check_fits(self._model, laid_out, ids)
        feed(
            self._model,
            laid_out.batches(self._settings.batch_size, ids),
            collectors,
            position_ids=self._settings.positions == "mask",
        )

    def _check(
        self, inputs: Inputs, text: np.ndarray, position: np.ndarray, width: np.ndarray
    ) -> None:
        if not len(text) or text.shape != position.shape or text.ndim != 1:
            raise ArgumentError(
                "text and position must name the same number of tokens, and at least one; got "
                f"shapes {text.shape} and {position.shape}."
            )
        if text.min() < 0 or text.max() >= len(inputs):
            raise ArgumentError(
                f"text must lie in 0 to {len(inputs) - 1}; got {text.tolist()}."
            )
        first = 0 if self.masked else 1
        wrong = (
            (position < first) | (width < 1) | (position + width > inputs.lengths[text])
        )
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ArgumentError(
                f"position must lie in {first} to {inputs.lengths[text[at]] - 1} for text "
                f"{text[at]}; got {position[at]} with a width of {width[at]}."
            )
        if self.masked:
            check_mask_token(inputs)


def check_mask_token(inputs: Inputs) -> None:
    """Refuse inputs without a mask token.

    Raises
    ------
    ArgumentError
        If they have none.
    """
    if inputs.mask_token_id is None:
        raise ArgumentError(
            "these inputs have no mask token, so a masked model cannot be asked what stands in a "
            "gap; use inputs whose mask_token_id is set, or objective='causal'."
        )


def _once(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each text once, and where each token's text is among them."""
    texts, row = np.unique(text, return_inverse=True)
    return texts, row


def _masked(inputs: Inputs, column: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return (e, L) ids with the mask token from each row's column on."""
    place = np.arange(inputs.ids.shape[1]) - column[:, None]
    gap = (place >= 0) & (place < width[:, None])
    assert inputs.mask_token_id is not None
    return np.where(gap, np.int64(inputs.mask_token_id), inputs.ids)
