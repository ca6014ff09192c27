"""Which statistics of its texts a model has reached: frequencies, classes of words, context."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Reason, Subject, measurement
from ...errors import ArgumentError, check_whole
from ...figures import Band, Figure, NullComparison, Section
from ...needs import Need
from ...needs.predictions import Reduced
from ...observables.arguments import check_node
from ...observables.base import Observable
from ...observables.catalogued import DISTRIBUTIONS, ModelFacts, PresetEntry
from ...observables.crossing import crossing
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...words.one_model import is_one_model
from ...words.voice import LABELS
from .class_costs import ClassInformation
from .order import first_crossing

_DEEPEST = 8
# Ends of the loss's ``loss_half_`` variables, and what they are called here.
_GAINS = {
    "frequencies": "word frequencies",
    "before": "the token before",
    "context": "context beyond the token before",
}
# What is shown for them, where a token may be a character or a move.
_SHOWN = json.dumps(
    {
        _GAINS["frequencies"]: "{word} frequencies",
        _GAINS["before"]: "the {token} before",
        _GAINS["context"]: "context beyond the {token} before",
    }
)

# Fewer follow one another in every text, and no context tells them apart.
FEWEST_TOKENS = 10


@dataclass(frozen=True)
class TextStatistics(OfPredictions):
    """What a model knows of the class of each token, for classes from coarse to fine.

    Classes are orthants of the texts' own support matrix: words whose entries have the same signs
    in the first 1, 2, ... `depth` concepts. ``class_information`` is how much less the class of
    a token costs under the model's prediction than under the mean of its predictions, in nats. It
    is 0 where predictions do not depend on the context. ``reached_step`` is the step from
    which on half of the last value is there, with its interval over texts; beside it stand the
    same steps of the loss's statistics, where `loss` names its node.

    Parameters
    ----------
    depth
        Concepts of the finest classes, 1 to 8.
    loss
        Name of the node of the loss on the same texts, whose steps are shown too; none by default.
    vocab_size, n_contexts
        Words and contexts of the support matrix; all other tokens are one further class.
    n_draws
        Random groupings for the null, at least 3.
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    random_state
        Seed of the null, and of which tokens are masked.

    Notes
    -----
    Orthants: Zhao and Thrampoulidis 2025, Def. 1. That broad statistics come first: Belrose et al.
    2024. In the null each word takes the class of another that is about as frequent (by a factor
    of at most 1.25), so that classes keep their sizes and frequencies.

    Examples
    --------
    >>> TextStatistics(depth=3).name
    'text-statistics'
    """

    depth: int = 4
    loss: str | None = None
    vocab_size: int = 500
    n_contexts: int = 2000
    n_draws: int = 10
    random_state: int = 0

    kind = "text-statistics"
    minima = {"n_draws": 3, "vocab_size": 4, "n_contexts": 1}
    question = "Which statistics of its texts has the model reached, from coarse to fine, and when?"
    price = DISTRIBUTIONS
    presets = (
        PresetEntry(
            ("standard", "circuits", "everything", "one-model"), {"loss": "loss"}, 40
        ),
    )
    summary_only = ("loss",)
    quantities = (
        Quantity(
            "class_information",
            "information about a {token}’s class",
            units="nats per {token}",
            symbol="mean log p(class | context) − log p̄(class)",
            rows="classes of {depth}",
            better="higher",
            series="",
            facet="depth",
            nulls={"random": "random classes of {word}s as frequent"},
            caption="Classes are orthants: words with the same signs in the first concepts.",
        ),
    )
    variables = {
        "reached_step": (
            "{checkpoint} from which on half of the gain is there",
            "{step}s",
        ),
        "reached_step_low": (
            "{checkpoint} from which on half of the gain is there, lower end",
            "{step}s",
        ),
        "reached_step_high": (
            "{checkpoint} from which on half of the gain is there, upper end",
            "{step}s",
        ),
        "reached_random_low": (
            "the same {checkpoint} for random classes, 2.5 %",
            "{step}s",
        ),
        "reached_random_high": (
            "the same {checkpoint} for random classes, 97.5 %",
            "{step}s",
        ),
        "random_draws": ("information about each random grouping", "nats per {token}"),
        "exchanged": ("share of tokens whose word can take another class", "1"),
    }
    section = Section(
        title="From coarse to fine",
        definition="How much a model knows of the class of each predicted token from what stands "
        "around it, for classes from coarse to fine; and from when on it has half of what it gains "
        "in the end.",
        null="The same classes with words in the place of others about as frequent.",
        care="The halves are of each statistic's own last value, so the {checkpoint}s say nothing "
        "of how much was learned. A model that learns nothing of a class has no {checkpoint}. "
        "Singular axes hardly matter: other directions in the same few concepts give classes as "
        "good.",
        source="Zhao and Thrampoulidis 2025, Def. 1; Belrose et al. 2024",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_whole("depth", self.depth, 1, _DEEPEST)
        if self.loss is not None:
            check_node("loss", self.loss)

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the node of the loss."""
        return () if self.loss is None else (self.loss,)

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse another node than one of the loss."""
        if self.loss is None:
            return
        if getattr(observables.get(self.loss), "kind", None) != "loss":
            raise ArgumentError(
                f"loss must name a node of kind 'loss'; {self.loss!r} is none."
            )

    @classmethod
    def ruled_out(cls, model: ModelFacts, checkpoints: int) -> str:
        """Return why it cannot be used: also where so few tokens all follow one another."""
        if model.tokens is not None and model.tokens < FEWEST_TOKENS:
            few = f"{model.model_class} has {model.tokens} ordinary tokens"
            return f"{few}, and it takes {FEWEST_TOKENS}"
        return super().ruled_out(model, checkpoints)

    def needs(self) -> Sequence[Need]:
        """Return the model to be asked, the texts, and the costs of classes."""
        return [*super().needs(), self._information]

    @property
    def _information(self) -> Reduced:
        function = ClassInformation(
            self.depth,
            self.vocab_size,
            self.n_contexts,
            self.n_draws,
            self.random_state,
        )
        return Reduced(function, self.on, self.objective, self.random_state)

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the information about classes of every depth, of the texts and of the null."""
        model, inputs, costs = (reading[need] for need in self.needs())
        classes = self._information.function.classes(inputs, model.masked)
        information = costs.information.values  # (grouping, depth, token)
        random = (("depth", "draw"), information[1:].mean(axis=2).T)
        measured = Measured.over_tokens(
            "depth",
            information[0],
            costs.text.values,
            inputs.groups,
            {"random": random},
        )
        data = dataset({"class_information": measured})
        labels = [f"depth {q}" for q in range(1, information.shape[1] + 1)]
        return data.assign(
            exchanged=classes.exchanged, random_draws=random
        ).assign_coords(depth=labels)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the step at which each statistic is reached, with those of the loss."""
        if "class_information_of_text" not in data:
            return data
        if is_one_model(data):  # what is known has no step from which on it is
            return data.assign(exchanged=data.exchanged.isel(step=0, drop=True))
        rows = self._of_classes(data)
        if self.loss is not None and self.loss in nodes:
            rows = _with_loss(rows, nodes[self.loss])
        names = list(rows)
        columns = np.array(list(rows.values()), dtype=np.float64).T
        ends = ("step", "step_low", "step_high", "random_low", "random_high")
        steps = {
            f"reached_{e}": ("statistic", c) for e, c in zip(ends, columns, strict=True)
        }
        exchanged = data.exchanged.dropna("step").isel(step=0, drop=True)
        return (
            data.assign(steps)
            .assign(exchanged=exchanged)
            .assign_coords(statistic=("statistic", names, {LABELS: _SHOWN}))
        )

    def _of_classes(self, data: xr.Dataset) -> dict[str, tuple[float, ...]]:
        """Return step, its interval, and the band of the null, for the classes of every depth."""
        of_text = data.class_information_of_text.transpose("depth", "step", "text")
        weights = (
            data.class_information_weights.transpose("step", "text")
            .max("step")
            .fillna(0.0)
        )
        rows = {}
        for label, gain in zip(data.depth.values, of_text.values, strict=True):
            is_finite = np.isfinite(gain).any(axis=1)
            last = gain[is_finite][-1]
            cross = crossing(data.step.values, -gain, -last / 2, weights.values)
            draws = data.random_draws.sel(depth=label).transpose("draw", "step").values
            ends = draws[:, is_finite][:, -1]
            # A grouping that gains nothing has no half.
            half = np.where(ends > 0, ends / 2, np.inf)
            steps = first_crossing(data.step.values, draws, half, lasting=True)
            band = (
                np.nanquantile(steps, [0.025, 0.975])
                if np.isfinite(steps).any()
                else (np.nan, np.nan)
            )
            values = (cross.step, cross.low, cross.high, *band)
            rows[f"classes of {label}"] = tuple(
                v if np.isfinite(v) else np.nan for v in values
            )
        return rows

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the panel: which statistic is reached when."""
        if "reached_step" not in data or not data.reached_step.notnull().any():
            return []
        return [
            NullComparison(
                "reached",
                "Which statistics of the texts are reached when?",
                value="reached_step",
                rows="statistic",
                interval=("reached_step_low", "reached_step_high"),
                bands=[
                    Band(
                        "reached_random_low",
                        "reached_random_high",
                        "random classes as frequent",
                    )
                ],
                caption="{Checkpoint} from which on half of the last gain is there; whiskers: 95 % "
                "over texts, and at least the {checkpoint}s on both sides. Rows without a dot are "
                "not reached.",
            )
        ]

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return what is known of the classes in the end, and in which order it came."""
        if "exchanged" not in data or "run" in data.class_information.dims:
            return []
        share = float(data.exchanged)
        exchanged = measurement(Subject(name, "exchanged"), share, units="1")
        if "reached_step" not in data:
            return [exchanged]
        return [*_known(name, data), exchanged, *_order(name, data)]


def _known(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give what the last checkpoint knows of classes of each depth, beside random classes."""
    ends = data.class_information.dropna("step", how="all").isel(step=-1)
    draws = data.random_draws.dropna("step", how="all").isel(step=-1)
    band = draws.quantile([0.025, 0.975], "draw")
    for label in data.depth.values:
        yield measurement(
            Subject(name, "class_information", label=str(label)),
            float(ends.sel(depth=label)),
            units="nats",
            beside=[Beside("null", "random", float(v)) for v in band.sel(depth=label)],
            figure=f"{name}/class_information",
        )


def _with_loss(
    rows: dict[str, tuple[float, ...]], loss: xr.Dataset
) -> dict[str, tuple[float, ...]]:
    """Return the rows with those of the loss: frequencies before, the rest after the classes."""
    rows_of_loss = {}
    for name, label in _GAINS.items():
        ends = [f"loss_half_{name}{end}" for end in ("", "_low", "_high")]
        if all(end in loss for end in ends):
            rows_of_loss[label] = (*(float(loss[end]) for end in ends), np.nan, np.nan)
    first = {
        label: row
        for label, row in rows_of_loss.items()
        if label == _GAINS["frequencies"]
    }
    return {
        **first,
        **rows,
        **{k: v for k, v in rows_of_loss.items() if k not in first},
    }


def _order(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give which statistic was surely there before which other; open where intervals overlap."""
    there = data[["reached_step", "reached_step_low", "reached_step_high"]]
    order = there.dropna("statistic").sortby("reached_step")
    if order.sizes["statistic"] < 2:
        return
    first = order.isel(statistic=0)
    last = order.isel(statistic=-1)
    apart = float(first.reached_step_high) < float(last.reached_step_low)
    later = float(last.reached_step)
    yield measurement(
        Subject(name, "reached_step", label=str(first.statistic.item())),
        float(first.reached_step),
        since=float(first.reached_step),
        since_low=float(first.reached_step_low),
        since_high=float(first.reached_step_high),
        beside=[Beside("reference", str(last.statistic.item()), later)],
        certainty=Certainty.SURE if apart else Certainty.OPEN,
        reason=None if apart else Reason.WITHIN_NOISE,
        figure=f"{name}/reached",
    )
