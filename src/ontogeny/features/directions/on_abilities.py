"""What a direction does to abilities: groups of examples without it, and with it added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...arrays import to_numpy
from ...capture.sites import changed
from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...claims.claim import DIRECTION_OF
from ...errors import ArgumentError, check_choice
from ...figures import Section
from ...multiple_tests import holm
from ...needs import Activations, Need, Predictor
from ...observables import Observable, Reading, Run, by_layer, make
from ...observables.fits import OfWidth
from ...observables.random_directions import p_above, p_beyond, random_directions
from ...quantities import Measured, Quantity
from ...units import Units
from ...words.names import Names
from .brought import Brought, GivenDirections, brought
from .measured import apart, unit_rows
from .read_claims import RANDOM, lasting

ASKED = ("minimal-pairs",)
LEVEL = 0.05
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

    kind: ClassVar[str] = "direction-effects"
    question: ClassVar[str] = (
        "Which abilities need a direction of one's own, and which does it steer?"
    )
    requires: ClassVar[str] = "texts, directions, examples, a vocabulary head"
    price: ClassVar[str] = (
        "the examples once for each direction and strength, n_draws times that at some steps"
    )
    obstacles: ClassVar[tuple[str, ...]] = ("no_prediction", "no_tokenizer")
    uses_noise: ClassVar[bool] = True
    file_arguments: ClassVar[tuple[str, ...]] = ("directions",)
    minima: ClassVar[Mapping[str, int]] = {"n_draws": 3}
    quantities: ClassVar[tuple[Quantity, ...]] = (
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
    variables: ClassVar[Names] = {
        "log_odds": ("log-odds of the right text", "nats"),
        "accuracy": ("share of examples that are right", "share of examples"),
        "removed_p_single": ("p-value that random directions do as much", "1"),
        "steered_p_single": ("the same of the largest strength", "1"),
        "steered_accuracy": (
            "share of examples that are right with it",
            "share of examples",
        ),
        "strength": ("how much is added", "root mean squares"),
    }
    section: ClassVar[Section] = Section(
        title="Directions and abilities ({on})",
        definition="Examples are asked without what lies along a direction at every token, and "
        "with multiples of it added. The log-odds of an example are the log-probability of its "
        "right text less that of its wrong one.",
        symbol="log p(right) − log p(wrong), a − ⟨a − ā, u⟩ u",
        null="Random directions with the covariance of the layer, as strong at every token.",
        care="Removal shows what the rest of this model makes of a direction now. Large additions "
        "leave what the model was trained on.",
        source="Activation addition (Turner et al. 2023); directional ablation (Arditi et al. 2024)",
    )

    @cached_property
    def _brought(self) -> Brought:
        return brought(self.directions)

    @cached_property
    def _asked(self) -> Observable:
        return make(self.on, **self.options)

    def check(self) -> None:
        """Refuse directions that are none, other examples, and strengths of 0."""
        check_choice("on", self.on, ASKED)
        if not self.strengths or min(self.strengths) <= 0:
            raise ArgumentError(
                f"strengths must hold numbers above 0; got {self.strengths}."
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
        groups = _Groups(state["group_of_pair"].values.astype(str))

        def odds() -> np.ndarray:
            found = self._asked.observe(reading, state)
            return np.asarray(found.score_right.values - found.score_wrong.values)

        plain = odds()
        unit = unit_rows(self._brought.vectors)
        draws = self.n_draws if reading.noise else 0

        def one(path: str, A: Tensor) -> dict[str, Any]:
            change = _Change(model, path, to_numpy(A).astype(np.float64), odds)
            seeds = [self.random_state, 13]
            random = random_directions(change.centred, max(draws, 1), seeds)
            each = [
                self._of_direction(change, u, apart(random, u)[:draws], plain, groups)
                for u in unit
            ]
            stacked = xr.concat([xr.Dataset(values) for values in each], "direction")
            whole = groups.means(plain > 0), groups.means(plain)
            found = stacked.assign(
                accuracy=("group", whole[0]),
                log_odds=("group", whole[1]),
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
        change: _Change,
        unit: np.ndarray,
        random: np.ndarray,
        plain: np.ndarray,
        groups: _Groups,
    ) -> dict[str, Any]:
        """Return what the removal and the addition of one direction do to each group."""
        without = change.without(unit, unit)
        added = np.stack([change.added(unit, s) for s in self.strengths])
        moved = added - plain
        nulls: dict[str, Any] = {}
        p: dict[str, Any] = {}
        if len(random):
            others = np.stack([change.without(unit, r) for r in random])
            beside = np.stack(
                [[change.added(r, s) for r in random] for s in self.strengths]
            )
            nulls = {
                "removed": {
                    "random": (("group", "draw"), groups.means(others - plain).T)
                },
                "removed_accuracy": {
                    "random": (("group", "draw"), groups.means(others > 0).T)
                },
                "steered": {
                    "random": (
                        ("strength", "draw", "group"),
                        groups.means(beside - plain),
                    )
                },
            }
            largest = beside[-1] - plain
            p = {
                "removed_p_single": (
                    "group",
                    groups.tests(p_above, plain - without, plain - others),
                ),
                "steered_p_single": (
                    "group",
                    groups.tests(p_beyond, moved[-1], largest),
                ),
            }
        values = {
            "removed": Measured(
                ("group", groups.means(without - plain)),
                stderr=("group", groups.errors(without - plain)),
                nulls=nulls.get("removed", {}),
            ),
            "removed_accuracy": Measured(
                ("group", groups.means(without > 0)),
                stderr=("group", groups.errors((without > 0).astype(float))),
                nulls=nulls.get("removed_accuracy", {}),
            ),
            "steered": Measured(
                (("strength", "group"), groups.means(moved)),
                stderr=(("strength", "group"), groups.errors(moved)),
                nulls=nulls.get("steered", {}),
            ),
        }
        half = half_of_largest(np.array(self.strengths), groups.means(moved))
        found: dict[str, Any] = {"half_strength": ("group", half), **p}
        found["steered_accuracy"] = (("strength", "group"), groups.means(added > 0))
        for name, measured in values.items():
            found |= measured.variables(name)
        return found

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which groups need a direction, and which it moves, beside random directions."""
        return list(_claims(name, data))


class _Groups:
    """Examples by groups."""

    def __init__(self, of_example: np.ndarray) -> None:
        self.names = list(dict.fromkeys(of_example.tolist()))
        self._members = [np.flatnonzero(of_example == name) for name in self.names]

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the means (..., groups) of values (..., n)."""
        return np.stack([values[..., m].mean(axis=-1) for m in self._members], axis=-1)

    def errors(self, values: np.ndarray) -> np.ndarray:
        """Return their standard errors over examples; of one example its own size."""
        parts = [values[..., m] for m in self._members]
        return np.stack(
            [
                part.std(axis=-1, ddof=1) / np.sqrt(part.shape[-1])
                if part.shape[-1] > 1
                else np.abs(part[..., 0])
                for part in parts
            ],
            axis=-1,
        )

    def tests(
        self, p_value: Callable[..., float], values: np.ndarray, draws: np.ndarray
    ) -> np.ndarray:
        """Return for each group the p-value (groups,) of values (n,) beside draws (k, n)."""
        return np.array(
            [
                p_value(
                    values[m], draws[:, m], np.ones(len(m)), Units(np.arange(len(m)))
                )
                for m in self._members
            ]
        )


class _Change:
    """One layer of a model, whose values are changed at every token while examples are asked."""

    def __init__(
        self, model: Any, path: str, A: np.ndarray, odds: Callable[[], np.ndarray]
    ) -> None:
        self._model = model
        self._path = path
        self._odds = odds
        self._mean = A.mean(axis=0)
        self.centred = A - self._mean
        self._size = float(np.sqrt((self.centred**2).sum(axis=1).mean()))

    def without(self, unit: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """Return the log-odds with ``⟨a - mean, unit⟩ taken`` off every token."""
        mean, along, off = (
            torch.from_numpy(v).float() for v in (self._mean, unit, taken)
        )

        def change(_: str, value: Any) -> Tensor:
            u, t, m = (v.to(value.device, value.dtype) for v in (along, off, mean))
            changed_value: Tensor = value - ((value - m) @ u)[..., None] * t
            return changed_value

        return self._asked(change)

    def added(self, unit: np.ndarray, strength: float) -> np.ndarray:
        """Return the log-odds with a multiple of a direction at every token."""
        part = torch.from_numpy(strength * self._size * unit).float()

        def change(_: str, value: Any) -> Tensor:
            changed_value: Tensor = value + part.to(value.device, value.dtype)
            return changed_value

        return self._asked(change)

    def _asked(self, change: Callable[[str, Any], Tensor]) -> np.ndarray:
        with changed(self._model, [self._path], change):
            return self._odds()


def half_of_largest(strengths: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Return the strength (g,) at which effects (s, g) reach half of the largest one.

    Between strengths, and between the least of them and 0, an effect goes straight.

    Examples
    --------
    >>> half_of_largest(
    ...     np.array([1.0, 2.0]), np.array([[1.0, -3.0], [4.0, -4.0]])
    ... ).round(3)
    array([1.333, 0.667])
    """
    sizes = np.abs(np.concatenate([np.zeros((1, effects.shape[1])), effects]))
    at = np.concatenate([[0.0], strengths])
    halves = []
    for of_group in sizes.T:
        aim = of_group.max() / 2
        after = int((of_group >= aim).argmax())
        if after == 0:
            halves.append(0.0)
            continue
        low, high = of_group[after - 1], of_group[after]
        step = at[after] - at[after - 1]
        halves.append(float(at[after - 1] + step * (aim - low) / (high - low)))
    return np.array(halves)


def _claims(node: str, data: xr.Dataset) -> Iterator[Claim]:
    kinds = {"removed": Kind.NEEDED, "steered": Kind.STEERS}
    tests = [
        (name, str(layer), str(direction), str(group))
        for name in kinds
        if f"{name}_p_single" in data
        for layer in data.layer.values
        for direction in data.direction.values
        for group in data.group.values
    ]
    judged = []
    for name, layer, direction, group in tests:
        one = data.sel(layer=layer, direction=direction, group=group)
        judged.append((one, one[f"{name}_p_single"].dropna("step")))
    p_values = holm([p[-1].item() if p.size else np.nan for _, p in judged])
    for test, (one, p), p_value in zip(tests, judged, p_values, strict=True):
        if not p.size:
            continue
        name, layer, direction, group = test
        last = one.sel(step=p.step[-1])
        is_sure = p_value <= LEVEL
        numbers = _removed(last) if name == "removed" else _steered(last)
        null = numbers.pop("null")
        holds = p.values * len(tests) <= LEVEL
        yield Claim(
            kinds[name],
            Subject(node, name, layer, f"{direction}{DIRECTION_OF}{group}"),
            Certainty.SURE if is_sure else Certainty.OPEN,
            None if is_sure else Reason.WITHIN_CHANCE,
            **numbers,
            **(lasting(p.step.values, holds) if is_sure else {}),
            p_value=float(p_value),
            corrected_over=len(tests),
            beside=[
                Beside("reference", group, numbers["first"]),
                Beside("null", RANDOM, null),
            ],
            evidence=(f"{node}/{name}", f"{node}/{name}_random"),
            figure=f"{node}/{name}",
        )


def _removed(last: xr.Dataset) -> dict[str, Any]:
    """Return accuracies in per cent, with the direction and without it."""
    return {
        "first": 100 * float(last.accuracy),
        "last": 100 * float(last.removed_accuracy),
        "value": float(last.removed),
        "units": "%",
        "null": 100 * float(last.removed_accuracy_random.mean()),
    }


def _steered(last: xr.Dataset) -> dict[str, Any]:
    """Return log-odds without the direction and with the most of it."""
    first = float(last.log_odds)
    return {
        "first": first,
        "last": first + float(last.steered.isel(strength=-1)),
        "value": float(last.half_strength),
        "units": "nats",
        "null": first + float(last.steered_random.isel(strength=-1).mean()),
    }
