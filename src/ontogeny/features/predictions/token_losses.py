"""The loss of every token of a few texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Heatmap, Section
from ...inputs import ShownTexts
from ...observables import PresetEntry, Run, dataset
from ...observables.crossing import leads_from
from ...observables.of_predictions import OfPredictions
from ...observables.pieces import PIECES, pieces_variable, whole_numbers, with_pieces
from ...observables.word_frequencies import bigram_costs, token_costs
from ...quantities import Measured, Quantity
from ...trees import Nodes


@dataclass(frozen=True)
class TokenLosses(OfPredictions):
    """The loss of every token of a few texts, in nats, and from when on each is the first answer.

    A causal model predicts each token from those before it. Of a masked model it is the
    pseudo-likelihood: each token is masked in a pass of its own, and predicted from all others.

    Parameters
    ----------
    n_texts, random_state
        How many texts are drawn, each of another unit (`ontogeny.Inputs.groups`), and the seed.
        They are drawn among those that have `max_tokens` tokens, or else among the longest.
    max_tokens
        How many tokens of each text are shown, special tokens included. The model sees the rest.
    on
        Input set; the first by default. Its texts should not be those of training.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.

    Notes
    -----
    Pseudo-likelihood: Salazar et al. 2020, "Masked language model scoring", eq. 1.

    Examples
    --------
    >>> TokenLosses(n_texts=2).max_tokens
    64
    """

    n_texts: int = 3
    max_tokens: int = 64
    random_state: int = 0

    kind = "token-losses"
    minima = {"n_texts": 1, "max_tokens": 2}
    question = "Which words of a text are learned, and when?"
    price = "a few texts"
    presets = (
        PresetEntry(
            ("standard", "circuits", "fine-tuning", "everything", "one-model"), place=28
        ),
    )
    compared = ("token_loss",)
    state_variables = (
        "token_id",
        "token_loss_frequencies",
        "token_loss_bigrams",
        "text_number",
        "masked",
        PIECES,
    )
    quantities = (
        Quantity(
            "shown_loss",
            "loss on the texts shown",
            units="nats per {token}",
            better="lower",
            nulls={"frequencies": "{word} frequencies"},
            caption="Mean over the predicted tokens of the texts shown. Grey: what word "
            "frequencies cost on the same tokens.",
        ),
    )
    section = Section(
        title="Loss of every token",
        definition="Negative log-probability of each token of a few texts, at every {checkpoint}. "
        "Causal models see what stands before the token, masked models all other tokens.",
        symbol="−log p(xᵢ | context; θₜ)",
        null="{Word} frequencies: what each token costs by its share among the tokens of the other "
        "texts.",
        care="A few examples: the loss over all texts is the measure. A masked model that sees all "
        "other tokens has a lower loss than where more of them are masked.",
        source="Salazar et al. 2020, eq. 1 (pseudo-likelihood)",
    )
    variables = {
        "token_loss": ("loss of each token", "nats"),
        "token_rank": ("rank of the right token among all answers", ""),
        "token_leads_from": (
            "{checkpoint} from which on the right token leads",
            "{step}s",
        ),
        "token_leads_after": (
            "last {checkpoint} before the right token leads",
            "{step}s",
        ),
        "token_loss_frequencies": ("loss of each token by {word} frequencies", "nats"),
        "token_loss_bigrams": ("loss of each token by bigrams", "nats"),
        "token_id": ("token", ""),
        "text_loss": ("mean loss of each text", "nats per {token}"),
        "text_number": ("number of the text in its input set", ""),
        "masked": ("1 where each token is masked in a pass of its own", ""),
        "piece_text": ("how a token is written", ""),
    }
    charts = (
        Heatmap(
            "token-losses",
            "Loss of every token",
            value="token_loss",
            y="place",
            facet="text",
            caption="Each row is a token of the text, the first at the bottom. Empty: a "
            "token that is not predicted.",
        ),
    )

    def prepare(self, run: Run) -> xr.Dataset:
        """Return which tokens are shown, and what they cost by word frequencies and bigrams."""
        asked, texts = self.needs()
        reading = run.reading(run.reference_step)
        model = reading[asked]
        inputs = reading[texts].padded("right")
        texts_shown = ShownTexts.of(
            inputs, self.n_texts, self.max_tokens, self.random_state
        )
        predicted = texts_shown.scored.copy()
        if not model.masked:
            predicted[:, 0] = False
        row, place = np.nonzero(predicted)
        at = (texts_shown.number[row], place)
        # Only what sees the token before alone is compared fairly with bigrams.
        guesses = {"frequencies": token_costs}
        if not model.masked:
            guesses["bigrams"] = bigram_costs
        costs = {name: np.full(predicted.shape, np.nan) for name in guesses}
        if inputs.has_several_units:
            vocabulary = model.vocabulary(inputs)
            for name, guess in guesses.items():
                costs[name][row, place] = guess(inputs, *at, vocabulary)
        tokens = ("text", "place")
        return xr.Dataset(
            {
                "text_number": ("text", texts_shown.number),
                "token_id": (tokens, texts_shown.ids),
                "predicted": (tokens, predicted.astype(np.int8)),
                "masked": ((), np.int8(model.masked)),
                **{f"token_loss_{name}": (tokens, costs[name]) for name in guesses},
                PIECES: pieces_variable(run.pieces(texts)),
            }
        )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the loss and rank of every token; NaN and -1 where nothing is predicted."""
        assert state is not None
        asked, texts = self.needs()
        inputs = reading[texts].padded("right")
        predicted = state.predicted.values.astype(bool)
        numbers = state.text_number.values
        row, place = np.nonzero(predicted)
        predictions = reading[asked].at(inputs, numbers[row], place)
        loss = np.full(predicted.shape, np.nan)
        rank = np.full(predicted.shape, -1)
        loss[row, place] = -predictions.right_log_probability.values
        rank[row, place] = predictions.right_rank.values
        number = predicted.sum(axis=1)
        of_text = np.bincount(row, loss[row, place], len(numbers)) / number
        mean = Measured.over_texts(
            float(loss[row, place].mean()), of_text, number, inputs.groups[numbers]
        )
        tokens = ("text", "place")
        data = dataset({"shown_loss": mean, "text_loss": ("text", of_text)})
        return data.assign(token_loss=(tokens, loss), token_rank=(tokens, rank))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the steps at which the right tokens lead."""
        if "token_rank" not in data:
            return data
        ranks = data.token_rank.transpose("step", "text", "place")
        begin, before = leads_from(
            data.step.values, (ranks == 1).where(ranks.notnull()).values
        )
        tokens = ("text", "place")
        costs = data.token_loss_frequencies
        data = with_pieces(
            whole_numbers(data, ["token_id", "token_rank"]), ["token_id"]
        )
        data = data.assign(
            token_leads_from=(tokens, begin), token_leads_after=(tokens, before)
        )
        if costs.notnull().any():
            return data.assign(shown_loss_frequencies=float(costs.mean()))
        return data
