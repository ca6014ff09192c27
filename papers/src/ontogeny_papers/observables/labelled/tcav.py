"""TCAV at every step: how often a concept's direction raises what the model predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError, check_whole
from ontogeny.figures import Figure, Section
from ontogeny.figures.base import extend
from ontogeny.needs import Gradients, Need
from ontogeny.observables import Reading, by_layer
from ontogeny.quantities import Quantity
from ontogeny.trees import Nodes
from ontogeny.units import Units

from ...capture.random_concepts import RandomConcepts
from ...capture.targets import OBJECTIVES, QUANTITIES, Target
from ...capture.tcav import (
    ALONG_OF,
    EVALUATED,
    check_influence,
    concept_scores,
    evaluated,
)
from ...concepts.concept_directions import ConceptDirection, LabelledRows
from .base import JUDGED, LabelledConcepts, chance_band, judged, text_units, texts_of
from .tcav_figures import section, significance_maps, significant
from .tcav_regimes import regime_tables

_UNITS = {"logit": "logits", "log-probability": "nats"}
_LOSSES = {
    "auto": None,
    "masked": "masked",
    "causal": "next-token",
    "class": "classification",
}


@dataclass(frozen=True)
class TCAV(LabelledConcepts):
    """TCAV scores of labelled concepts at every layer (sec. 6.2 of the report).

    The score is the fraction of held-out texts whose directional derivative along the concept's
    direction is positive. Beside it: the scores of directions for shuffled labels, and of
    bootstrap refits. See `ontogeny.capture.tcav` for one model; the parameters that are not listed
    are those of `LabelledConcepts`.

    With `random`, also what TCAV's authors compare with: the direction of the concept's texts
    against random texts, beside `n_random` random concepts of as many texts, each separated from
    equally many others. It is tested by the mean derivative (see
    `ontogeny.capture.tcav_against_random`, also on the authors' t-tests, which do not keep their
    level).

    Parameters
    ----------
    target
        ``"masked"``: the gold token at masked positions; ``"causal"``: the next token; ``"class"``:
        each text's own class; ``"auto"``: by the name of the model's class. A text's value is the
        mean over its targets.
    quantity
        ``"logit"`` or ``"log-probability"``.
    evaluate
        ``"positive"``: held-out texts with the concept; ``"all"``.
    mask_fraction
        For ``"masked"``.
    random
        Input set of random texts, the same for all concepts, or one for each: texts without regard
        to the concept, none of them the concept's. Labels are not read.
    early, late
        Windows of the regime table, first and last step; None takes the report's shares of the
        run (20 to 100 and 380 to 460 of 480 thousand steps).

    Examples
    --------
    >>> TCAV("model.layers.*", on="sst2", target="masked").name
    'tcav'
    """

    target: str = "auto"
    quantity: str = "logit"
    evaluate: str = "positive"
    mask_fraction: float = 0.15
    random: str | tuple[str, ...] | None = None
    early: tuple[float, float] | None = None
    late: tuple[float, float] | None = None

    kind = "tcav"
    choices = {
        **LabelledConcepts.choices,
        "target": OBJECTIVES,
        "quantity": QUANTITIES,
        "evaluate": EVALUATED,
    }
    question = "Do predictions follow a labelled concept?"
    requires = "texts with labels"
    price = "gradients and refits a step"
    summary_only = ("early", "late")
    variables = {
        **{
            f"{prefix}{name}": words
            for prefix in ("", "derivative_", "against_")
            for name, words in JUDGED.items()
        },
        "derivative": ("mean directional derivative", ""),
        "against_derivative": ("mean directional derivative", ""),
        "accuracy": ("balanced accuracy on held-out texts", "1"),
        "examples": ("texts evaluated", "texts"),
        "zeros": ("share of zero derivatives", "1"),
        "positive": ("texts with a positive derivative (-1: no text)", ""),
        "text_unit": ("unit of each text (-1: no text)", ""),
        "random_score": ("score of shuffled labels", "share of texts"),
        "refit_score": ("score of bootstrap refits", "share of texts"),
        "random_derivative": ("mean derivative of shuffled labels", "as derivative"),
        "against_random_score": ("score of random concepts", "share of texts"),
        "against_random_derivative": (
            "mean derivative of random concepts",
            "as against_derivative",
        ),
        "against_texts": ("texts of each direction against random texts", "texts"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        for name in ("early", "late"):
            window = getattr(self, name)
            if window is not None and not 0 <= window[0] < window[1] < np.inf:
                raise ArgumentError(
                    f"{name} must be a first and a later last step, both at least 0; got {window}."
                )
        if self.random is not None:
            self._check_random()

    def _check_random(self) -> None:
        if len(self.pools) != len(self.sets):
            raise ArgumentError(
                f"random must be one input set, or one for each of {self.concepts}; "
                f"got {self.random!r}."
            )
        same = [name for name in self.pools if name in self.sets]
        if same:
            raise ArgumentError(
                f"random must name other texts than the concept's; got {same[0]!r}."
            )
        check_whole("n_random", self.n_random, minimum=2)

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the random texts' input sets, one for each concept; empty without."""
        if isinstance(self.random, str):
            return (self.random,) * len(self.sets)
        return tuple(self.random or ())

    def needs(self) -> Sequence[Need]:
        """Return the activations of each input set, and the model with the set."""
        read = [
            n for on in self.sets for n in (self._activations(on), self._gradients(on))
        ]
        return [*read, *(self._activations(pool) for pool in dict.fromkeys(self.pools))]

    def _drawn(
        self, reading: Reading, rows: LabelledRows, pool: str
    ) -> tuple[np.ndarray, RandomConcepts]:
        """Return the rows with the concept that find its direction, and draws of all layers."""
        mine = rows.train[rows.positive[rows.train]]
        others = self._activations(pool)
        return mine, RandomConcepts.of_units(
            rows.units(mine),
            Units(reading.units(others)),
            self.n_random,
            random_state=self.random_state,
        )

    def _gradients(self, on: str | None) -> Gradients:
        return Gradients(
            _LOSSES[self.target], on, self.mask_fraction, self.random_state
        )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return scores of every layer and concept, with those of shuffled labels and refits.

        Over (layer, concept): ``score``, ``score_low``, ``score_high``, ``examples``, ``zeros``,
        ``random_score(draw)``, ``refit_score(refit)``, ``positive(text)``, the mean ``derivative``
        with ``random_derivative(draw)``, and ``accuracy``. With random texts also
        ``against_score`` and ``against_derivative`` of the concept against random texts,
        ``against_random_score(draw)`` and ``against_random_derivative(draw)`` of random concepts,
        and ``against_texts``, how many texts each of them has.
        """
        values = [reading[self._activations(on)] for on in self.sets]
        pools = [reading[self._activations(pool)] for pool in self.pools]
        borrowed = [reading[self._gradients(on)] for on in self.sets]
        rows = [self._rows(labelled.inputs) for labelled in borrowed]
        pairs = [
            self._drawn(reading, *of_pool)
            for of_pool in zip(rows, self.pools, strict=False)
        ]
        fits: dict[str, list[ConceptDirection]] = {}
        failed: dict[str, Exception] = {}
        for path in values[0]:
            try:
                concepts = [
                    self._fit(v[path], r) for v, r in zip(values, rows, strict=True)
                ]
                for i, pool in enumerate(pools):
                    concepts[i] = self._against(
                        concepts[i], values[i][path], pool[path], *pairs[i]
                    )
                fits[path] = concepts
            except (ValueError, ArithmeticError) as error:
                failed[path] = error
        target = Target(
            self.target,
            self.quantity,
            "text",
            None,
            self.mask_fraction,
            self.random_state,
        )
        scores = [
            concept_scores(
                source.model,
                source.inputs,
                labelled,
                {path: fit[i] for path, fit in fits.items()},
                target=target,
                along=ALONG_OF[self.tokens],
                evaluate=self.evaluate,
                settings=source.settings,
            )
            for i, (source, labelled) in enumerate(zip(borrowed, rows, strict=True))
            if fits
        ]

        def one(path: str, _: Any) -> Mapping[str, Any]:
            if path in failed:
                raise failed[path]
            for of_concept in scores:
                check_influence(path, of_concept[path])
            pieces = [_plain(of_concept[path]) for of_concept in scores]
            for piece, fit in zip(pieces, fits[path], strict=True):
                piece["accuracy"] = fit.accuracy
                if fit.against is not None:
                    piece["against_texts"] = fit.against_texts
            return self._stacked(pieces)

        data = by_layer(values[0], one).assign_coords(concept=self.concepts)
        units = [split.units(evaluated(split, self.evaluate)) for split in rows]
        return data.assign(text_units(units))

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """Scores and mean derivatives, against shuffled labels and against random texts."""
        shuffled = {"chance": "shuffled labels"}
        random = {"chance": "random concepts"}
        return (
            self._of_concepts(
                "score",
                "TCAV score",
                "TCAV",
                units="share of texts",
                symbol="TCAV",
                nulls=shuffled,
                caption="One half: the direction raises and lowers equally often. Grey: 95 % of "
                "the directions for shuffled labels, over all layers.",
            ),
            Quantity(
                "relative_derivative",
                "mean directional derivative",
                nulls=shuffled,
                caption="Mean over held-out texts along the unit direction, over the root mean "
                "square of the same for shuffled labels. Grey: 95 % of the latter, over all "
                "layers.",
            ),
            Quantity(
                "against_score",
                "TCAV scores against random texts",
                units="share of texts",
                optional=True,
                nulls=random,
                caption="The direction separates the concept's texts from random ones. Grey: 95 % "
                "of the same number of random concepts of as many texts, over all layers.",
            ),
            Quantity(
                "relative_against_derivative",
                "mean directional derivative against random texts",
                optional=True,
                nulls=random,
                caption="Over the root mean square of random concepts. Grey: 95 % of these, over "
                "all layers. Whatever else separates the concept's texts from the random ones, "
                "such as their source, is in the direction too.",
            ),
        )

    @property
    def section(self) -> Section:  # type: ignore[override]
        """Heading and margin notes, which say what the scores are compared with."""
        return section(bool(self.pools))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add corrected p-values, the bands of chance and the regime table."""
        data = judged(data, "score", "random_score", centre=0.5)
        data = data.assign(
            chance_band(data, "random_score", "score_chance")
            | texts_of(data, "score", "positive")
        )
        against = "against_derivative" in data
        if against:
            data = data.assign(
                chance_band(data, "against_random_score", "against_score_chance")
            )
        units = f"{_UNITS[self.quantity]} per activation unit"
        for prefix in ("", "against_") if against else ("",):
            value = f"{prefix}derivative"
            random = f"{prefix}random_derivative"
            data = _judged_derivative(data, value, random, prefix or "derivative_")
            data[value].attrs.update(units=units)
        return data

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the maps of p-values."""
        return significance_maps(data)

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what differs from shuffled labels and from random concepts."""
        return significant(data)

    def summarise(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what follows from the quantities, and the table of two windows."""
        data, tables, left_out = regime_tables(
            super().summarise(data, nodes), self.early, self.late
        )
        return extend(data, tables, left_out)

    def _against(
        self,
        concept: ConceptDirection,
        A: Any,
        pool: Any,
        rows: np.ndarray,
        pairs: RandomConcepts,
    ) -> ConceptDirection:
        """Add the directions of the concept, and of random concepts, against random texts."""
        examples = np.asarray(A, dtype=float)[rows]
        others = np.asarray(pool, dtype=float)
        directions = pairs.directions(examples, others, self._cav())
        return replace(concept, against=directions, against_texts=len(pairs.own))


def _judged_derivative(
    data: xr.Dataset, value: str, random: str, prefix: str
) -> xr.Dataset:
    """Add p-values of a mean derivative, ``relative_`` it, and the band of the random ones.

    Layers and steps have their own scales: both are divided by the size of the random ones.
    """
    data = judged(data, value, random, prefix, centre=0.0)
    squares = (data[random] ** 2).mean("draw")
    size = squares.where(squares > 0) ** 0.5
    relative = f"relative_{value}"
    data = data.assign({relative: data[value] / size})
    scaled = xr.Dataset({"random": data[random] / size})
    return data.assign(chance_band(scaled, "random", f"{relative}_chance"))


def _plain(scores: xr.Dataset) -> dict[str, Any]:
    """Return a layer's scores as numbers and ``(dims, array)`` pairs; texts are ``text``."""
    return {
        str(name): (
            (tuple("text" if d == "example" else str(d) for d in v.dims), v.values)
            if v.ndim
            else float(v)
        )
        for name, v in scores.data_vars.items()
    }
