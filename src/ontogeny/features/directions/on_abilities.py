"""What a direction does to abilities: groups of examples without it, and with it added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from ...arrays import to_numpy
from ...claims import Claim
from ...errors import ArgumentError, check_choice
from ...figures import Section
from ...needs import Activations, Need, Predictor
from ...observables import Observable, Reading, Run, by_layer, make
from ...observables.fits import OfWidth
from ...observables.random_directions import p_above, p_beyond, random_directions
from ...quantities import Measured, Quantity
from .brought import Brought, GivenDirections, brought
from .changed_layer import ChangedLayer, Groups, half_of_largest
from .effect_claims import claims_of_abilities
from .measured import apart, unit_rows
from .read_claims import RANDOM

ASKED = ("minimal-pairs",)
_LINES: dict[str, Any] = {"series": "group", "facet": "direction"}
_NULLS = {"random": RANDOM}


@dataclass(frozen=True)
class DirectionEffects(Observable):
    """How groups of examples fare without a direction of a layer, and with it added.

    The same examples as a node of that kind are asked: as the model is; with what lies along the
    direction taken off at every token; and with multiples of it added. The log-odds of an example
    are the log-probability of its right text less that of its wrong one.

    Parameters
    ----------
    directions, layer
        As of `Directions`: also a concept's, by ``result.concept(...).direction(step)``.
    on
        Kind of the examples.
    options
        Arguments of that kind, such as ``{"examples": ["pairs.jsonl"]}``.
    strengths
        Multiples that are added, in root mean squares of centred activations.
    n_draws
        Random directions that are as strong, at the steps where noise is measured.
    max_tokens, random_state
        Tokens of the study's texts that say what mean and size of the layer are; and the seed.

    Examples
    --------
    >>> import numpy as np
    >>> DirectionEffects({"plural": np.ones(4)}, layer="resid").on
    'minimal-pairs'
    """

    directions: GivenDirections
    layer: str | tuple[str, ...]
    on: str = "minimal-pairs"
    options: Mapping[str, Any] = field(default_factory=dict)
    strengths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    n_draws: int = 4
    max_tokens: int | None = 2000
    random_state: int = 0

    kind = "direction-effects"
    question = "Which abilities need a direction of one's own, and which does it steer?"
    requires = "texts, directions, examples, a vocabulary head"
    price = "the examples once for each direction and strength, n_draws times that at some steps"
    obstacles = ("no_prediction", "no_tokenizer")
    uses_noise = True
    file_arguments = ("directions",)
    minima = {"n_draws": 3}
    quantities = (
        Quantity(
            "removed",
            "change of the log-odds without a direction",
            "nats",
            nulls=_NULLS,
            **_LINES,
        ),
        Quantity(
            "removed_accuracy",
            "share of examples that are right without a direction",
            "share of examples",
            minimum=0.0,
            nulls={**_NULLS, "whole": "with it"},
            **_LINES,
        ),
        Quantity(
            "steered",
            "change of the log-odds where a direction is added",
            "nats",
            nulls=_NULLS,
            per="strength",
            heading="change of the log-odds where {label} of a direction is added",
            **_LINES,
        ),
        Quantity(
            "half_strength",
            "strength of which the effect is half of the largest",
            "root mean squares of the layer",
            minimum=0.0,
            **_LINES,
        ),
    )
    variables = {
        "log_odds": ("log-odds of the right text", "nats"),
        "accuracy": ("share of examples that are right", "share of examples"),
        "contrasts": ("contrasts that share no word", "contrasts"),
        "removed_p_single": ("p-value that random directions do as much", "1"),
        "steered_p_single": ("the same of the largest strength", "1"),
        "steered_accuracy": (
            "share of examples that are right with it",
            "share of examples",
        ),
        "strength": ("how much is added", "root mean squares"),
    }
    section = Section(
        title="Directions and abilities ({on})",
        definition="Examples are asked without what lies along a direction at every token, and "
        "with multiples of it added. The log-odds of an example are the log-probability of its "
        "right text less that of its wrong one.",
        symbol="log p(right) − log p(wrong), a − ⟨a − ā, u⟩ u",
        null="Random directions with the covariance of the layer, scaled to be as strong.",
        care="Removal shows what the rest of this model makes of a direction now. Large additions "
        "leave what the model was trained on.",
        source="Activation addition (Turner et al. 2023); directional ablation (Arditi et al. 2024)",
    )

    @cached_property
    def _brought(self) -> Brought:
        return brought(self.directions)

    @cached_property
    def _asked(self) -> Any:
        return make(self.on, **self.options)

    def check(self) -> None:
        """Refuse directions that are none, other examples, and strengths of 0."""
        check_choice("on", self.on, ASKED)
        rises = np.diff([0.0, *self.strengths])
        if not len(rises) or not (np.isfinite(rises) & (rises > 0)).all():
            raise ArgumentError(
                f"strengths must hold numbers above 0, from small to large; got {self.strengths}."
            )
        assert len(self._brought.names) and self._asked

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of directions their names and a digest."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        names = list(self._brought.names)
        content = {"content": self._brought.digest, "asked": self._asked.arguments()}
        return {**given, "directions": names, "options": {}, **content}

    def files_read(self) -> Sequence[Any]:
        """Return what the examples read."""
        return self._asked.files_read()

    @property
    def stem(self) -> str:
        """The first direction's name."""
        return self._brought.names[0]

    @property
    def _activations(self) -> Activations:
        sample = (None, "all", self.max_tokens, self.random_state)
        return Activations(self.layer, *sample)

    def needs(self) -> Sequence[Need]:
        """Return what the examples need, and the layer's activations on the study's texts."""
        width = self._brought.vectors.shape[1]
        fits = OfWidth(self.layer, width, f"the direction {self._brought.names[0]!r}")
        return [*self._asked.needs(), self._activations, fits]

    def prepare(self, run: Run) -> xr.Dataset | None:
        """Return the examples as tokens."""
        return self._asked.prepare(run)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return how the examples fare at one checkpoint, without directions and with them."""
        assert state is not None
        needs = self._asked.needs()
        model = next(
            reading[need] for need in needs if isinstance(need, Predictor)
        ).model
        groups = Groups(
            state["group_of_pair"].values.astype(str),
            lambda members: self._asked.units_of(state, members),
        )

        def odds() -> np.ndarray:
            found = self._asked.observe(reading, state)
            return np.asarray(found.score_right.values - found.score_wrong.values)

        plain = odds()
        unit = unit_rows(self._brought.vectors)
        draws = self.n_draws if reading.noise else 0

        def one(path: str, A: Tensor) -> dict[str, Any]:
            change = ChangedLayer(model, path, to_numpy(A).astype(np.float64), odds)
            seeds = [self.random_state, 13]
            random = random_directions(change.centred, draws, seeds)
            each = [self._of_direction(change, u, random, plain, groups) for u in unit]
            stacked = xr.concat([xr.Dataset(values) for values in each], "direction")
            whole = groups.means(right(plain)), groups.means(plain)
            found = stacked.assign(
                accuracy=("group", whole[0]),
                log_odds=("group", whole[1]),
                contrasts=("group", groups.counts),
                removed_accuracy_whole=("group", whole[0]),
            )
            return dict[Any, Any](found)

        found = by_layer(reading[self._activations], one)
        labels = {
            "direction": list(self._brought.names),
            "group": groups.names,
            "strength": [f"{strength:g}" for strength in self.strengths],
        }
        return found.assign_coords({k: v for k, v in labels.items() if k in found.dims})

    def _of_direction(
        self,
        change: ChangedLayer,
        unit: np.ndarray,
        random: np.ndarray,
        plain: np.ndarray,
        groups: Groups,
    ) -> dict[str, Any]:
        """Return what the removal and the addition of one direction do to each group."""
        without = change.without(unit)
        added = np.stack([change.added(unit, s) for s in self.strengths])
        moved = added - plain
        nulls: dict[str, Mapping[str, Any]] = {}
        found: dict[str, Any] = {}
        if len(random):
            others = np.stack(
                [change.without(r, change.strength_beside(unit, r)) for r in random]
            )
            aside = apart(random, unit)
            beside = np.stack(
                [[change.added(r, s) for r in aside] for s in self.strengths]
            )
            of_group = ("group", "draw")
            nulls = {
                "removed": {"random": (of_group, groups.means(others - plain).T)},
                "removed_accuracy": {
                    "random": (of_group, groups.means(right(others)).T)
                },
                "steered": {
                    "random": (
                        ("strength", "draw", "group"),
                        groups.means(beside - plain),
                    )
                },
            }
            # What a claim prints is the accuracy, so that must fall as well.
            p_values = [
                groups.tests(p_above, of(plain) - of(without), of(plain) - of(others))
                for of in (np.asarray, right)
            ]
            found["removed_p_single"] = ("group", np.maximum(*p_values))
            found["steered_p_single"] = (
                "group",
                groups.tests(p_beyond, moved[-1], beside[-1] - plain),
            )
        values = {
            "removed": ("group", without - plain),
            "removed_accuracy": ("group", right(without)),
            "steered": (("strength", "group"), moved),
        }
        for name, (dims, of_example) in values.items():
            found |= Measured(
                (dims, groups.means(of_example)),
                stderr=(dims, groups.errors(of_example)),
                nulls=nulls.get(name, {}),
            ).variables(name)
        half = half_of_largest(np.array(self.strengths), groups.means(moved))
        found["half_strength"] = ("group", half)
        found["steered_accuracy"] = (("strength", "group"), groups.means(right(added)))
        return found

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which groups need a direction, and which it moves, beside random directions."""
        return list(claims_of_abilities(name, data))


def right(odds: np.ndarray) -> np.ndarray:
    """Return 1 where the right text is likelier, 0 where the wrong one is, 0.5 of a tie."""
    return np.heaviside(odds, 0.5)
