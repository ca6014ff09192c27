"""Which attention heads look at the token before, at a copy, or at what followed a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Reason, Subject, measurement
from ...figures import Heatmap, Section
from ...needs import Need
from ...observables.base import Observable
from ...observables.catalogued import ModelFacts, PresetEntry
from ...observables.variables import by_layer
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...words.one_model import is_one_model
from .initial import at_first_step
from .reading import SCORES, HeadReading, HeadScores
from .sequences import SHORTEST

_SCORED = ("head_score", "strongest_score")
_NULLS = {
    "unrepeated": "no repetition",
    "equal": "equal attention",
    "first": "all heads at the first checkpoint",
}


@dataclass(frozen=True)
class AttentionHeads(Observable):
    """Previous-token, duplicate-token and induction scores of every attention head.

    The model reads random tokens that are repeated once. The scores are mean attention, from 0 to
    1: of a token to the one before it; of a token of the second half to its copy in the first; and
    to the token after that copy, which is what an induction head does (the score is also called
    prefix-matching score).

    A row of the chart is the strongest head of a layer: of each step, the head with the highest
    score on one half of the sequences, measured on the other half, so that choosing it does not
    raise its score.

    Parameters
    ----------
    layers
        Glob over attention modules; by default all that return attention weights.
    on
        Input set whose special tokens frame the sequences; the first by default.
    n_sequences
        How many sequences are repeated, and how many of the same length hold no token twice.
    period
        Tokens that are repeated; fewer where the model takes shorter texts or has few tokens.
    random_state
        Seed of the sequences, which are the same at every step.

    Notes
    -----
    C. Olsson et al. 2022, "In-context learning and induction heads".

    Examples
    --------
    >>> AttentionHeads().name
    'attention-heads'
    """

    layers: str | tuple[str, ...] = "*"
    on: str | None = None
    n_sequences: int = 32
    period: int = 25
    random_state: int = 0

    kind = "attention-heads"
    minima = {"n_sequences": 4, "period": 3}
    question = (
        "Which heads look at the token before, at a copy, or at what followed it, "
        "and since when?"
    )
    requires = "a tokenizer or texts, attention maps"
    price = "one pass over 64 random sequences at each step"
    obstacles = ("no_maps",)
    presets = (PresetEntry(("circuits", "everything", "one-model"), {}, 230),)
    quantities = (
        Quantity(
            "strongest_score",
            "score of the strongest head",
            units="share of attention",
            rows="{layer} · {score} head",
            unit="sequences",
            nulls=_NULLS,
            per="score",
            heading="{label} score of the strongest head",
            caption="The head is chosen on one half of the sequences and measured on the other.",
        ),
        Quantity(
            "head_score",
            "score of each head",
            units="share of attention",
            unit="sequences",
            nulls=_NULLS,
            figure=False,
        ),
    )
    variables = {"strongest_head": ("head with the highest score", "")}
    section = Section(
        title="Attention heads on repeated sequences",
        definition="Mean attention on random tokens that are repeated once: of each token to the "
        "token before it (previous-token), of each repeated token to its copy (duplicate-token) "
        "and to the token after its copy (induction).",
        symbol="mean A[i, i−1], A[i, i−p], A[i, i−p+1], p the period",
        null="The same places in sequences of the same length without repetition, which is no "
        "null of previous-token heads; equal attention to all visible tokens; and all heads at the "
        "first checkpoint.",
        care="A score says where a head looks, not what it does with it: an induction head also "
        "copies (see copying-heads). A change counts beyond 1.96 standard errors over sequences.",
        source="Olsson et al. 2022",
    )
    charts = tuple(
        Heatmap(
            f"heads-{score}",
            f"{score.capitalize()} score of every head",
            value="head_score",
            y="head",
            facet="layer",
            select={"score": score},
        )
        for score in SCORES
    )

    @classmethod
    def ruled_out(cls, model: ModelFacts, checkpoints: int) -> str:
        """Return why it cannot be used: also a model of too few tokens to repeat different ones."""
        if model.tokens is not None and model.tokens < 2 * SHORTEST:
            return (
                f"{model.model_class} has {model.tokens} ordinary tokens, and sequences of "
                f"{2 * SHORTEST} different ones are needed"
            )
        return super().ruled_out(model, checkpoints)

    def needs(self) -> Sequence[Need]:
        """Return the scores of the heads."""
        arguments = (
            self.layers,
            self.on,
            self.n_sequences,
            self.period,
            self.random_state,
        )
        return [HeadScores(*arguments)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the scores of every head, and of the strongest one of each layer."""
        scores: HeadReading = reading[self.needs()[0]]
        equal = ("score", scores.equal)

        def one(path: str, values: np.ndarray) -> dict[str, Any]:
            plain = scores.unrepeated[path].mean(axis=-1)
            heads = Measured(
                _of_heads(values.mean(axis=-1)),
                of_text=_of_heads(values, "text"),
                nulls={"unrepeated": _of_heads(plain), "equal": equal},
            )
            head, of_text = strongest(values)
            best = Measured(
                ("score", of_text[..., 1::2].mean(axis=-1)),
                of_text=(("score", "text"), of_text),
                weights=("text", np.arange(of_text.shape[-1]) % 2),
                nulls={
                    "unrepeated": (
                        "score",
                        np.take_along_axis(plain, head[:, None], 1)[:, 0],
                    ),
                    "equal": equal,
                },
            )
            return {
                "head_score": heads,
                "strongest_score": best,
                "strongest_head": ("score", head),
            }

        return by_layer(scores.repeated, one).assign_coords(score=list(SCORES))

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which heads stand out, where there is one checkpoint."""
        if not is_one_model(data) or "head_score" not in data:
            return []
        return list(_of_one_model(name, data))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the scores of all heads at the first checkpoint.

        Sequences without repetition are no null of a previous-token head, which needs none.
        """
        plain = [
            f"{name}_unrepeated" for name in _SCORED if f"{name}_unrepeated" in data
        ]
        repeats = {
            name: data[name].where(data.score != "previous-token") for name in plain
        }
        first = at_first_step(data, "head_score", ("layer", "head"))
        firsts = {} if first is None else {f"{name}_first": first for name in _SCORED}
        return data.assign(repeats | firsts)


def _of_one_model(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give which heads stand out of one checkpoint, beside what the same places get by chance.

    An induction or duplicate-token head stands out where its interval over sequences lies above
    every head on sequences without repetition. A previous-token head needs no repetition, so that
    only equal attention is told.
    """
    for score in data.score.values[::-1]:  # induction first
        one = data.sel(score=score).isel(step=0)
        values = one.head_score.transpose("layer", "head")
        is_repeated = score != "previous-token"
        null = one.head_score_unrepeated if is_repeated else one.head_score_equal
        chance = float(null.max())
        if is_repeated:
            low = one.get("head_score_low", one.head_score)
            standing = int((low > chance).sum())
            yield measurement(
                Subject(name, "head_score", label=str(score)),
                standing,
                whole=float(values.notnull().sum()),
                beside=[Beside("null", "no repetition", chance)],
                certainty=Certainty.SURE if standing else Certainty.OPEN,
                reason=None if standing else Reason.WITHIN_CHANCE,
            )
        layer, head = np.unravel_index(np.nanargmax(values.values), values.shape)
        yield measurement(
            Subject(
                name, "strongest_head", str(values.layer.values[layer]), str(score)
            ),
            float(values[layer, head]),
            beside=[Beside("null", f"head {int(values['head'][head])}", chance)],
        )


def strongest(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the heads that are highest on the even sequences, and their values on all of them.

    Parameters
    ----------
    values
        (scores, heads, sequences).

    Returns
    -------
    head, of_sequence
        (scores,) and (scores, sequences). Only the odd sequences measure the head without bias.

    Examples
    --------
    >>> strongest(np.array([[[0.9, 0.1], [0.5, 0.6]]]))
    (array([0]), array([[0.9, 0.1]]))
    """
    head = values[..., ::2].mean(axis=-1).argmax(axis=1)
    return head, np.take_along_axis(values, head[:, None, None], axis=1)[:, 0]


def _of_heads(values: np.ndarray, *more: str) -> xr.DataArray:
    """Return values over (score, head, ...) with labels of the heads, of which layers differ."""
    heads = np.arange(values.shape[1])
    return xr.DataArray(values, dims=("score", "head", *more), coords={"head": heads})
