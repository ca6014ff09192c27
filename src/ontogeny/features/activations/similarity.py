"""How similar each layer's activations are to those of the reference step: CKA and its kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ... import distances
from ...figures import Section
from ...needs import Need
from ...needs.derived import Reference
from ...observables import PresetEntry, Reading, by_layer
from ...observables.arguments import check_names
from ...observables.catalogued import SOME_LAYERS
from ...observables.of_activations import OfSampledActivations
from ...quantities import Measured, Quantity
from ...units import Units

MEASURES: dict[str, Callable[..., Any]] = {
    "cka": distances.cka,
    "svcca": distances.svcca,
    "pwcca": distances.pwcca,
    "mutual-neighbours": distances.mutual_neighbours,
}
LABELS = {name: name.upper() for name in ("cka", "svcca", "pwcca")} | {
    "mutual-neighbours": "shared nearest neighbours"
}
BLOCKS = 10  # of texts, for the jackknife
_DRAWS = 5  # of tokens out of order


@dataclass(frozen=True)
class OfMeasures(OfSampledActivations):
    """An observable that compares activations by some measures of similarity.

    Attributes
    ----------
    other
        What a layer is compared with.
    """

    measures: tuple[str, ...] = ("cka",)

    measured: ClassVar[str] = "similarity"
    other: ClassVar[str]
    row: ClassVar[str] = "similarity"
    relative_to: ClassVar[str] = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """The similarity by each measure, named `measured`; the first one makes the rows."""
        return (
            Quantity(
                self.measured,
                f"similarity to {self.other}",
                rows=f"{{layer}} · {self.row}",
                at={"measure": self.measures[0]},
                unit="blocks of texts",
                relative_to=self.relative_to,
                compares="similarity",
                nulls={"shuffled": "tokens out of order"},
                per="measure",
                labels=LABELS,
                heading=f"{{label}} with {self.other}",
            ),
        )

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_names("measures", self.measures, MEASURES)

    def similarities(
        self, pairs: Mapping[str, tuple[torch.Tensor, torch.Tensor]], units: np.ndarray
    ) -> xr.Dataset:
        """Return similarities of pairs by layer, with errors and null.

        `units` are the texts that rows of activations belong to.
        """
        blocks = Units(units).blocks(BLOCKS)

        def one(
            path: str, pair: tuple[torch.Tensor, torch.Tensor]
        ) -> dict[str, Measured]:
            return {
                self.measured: compared(*pair, self.measures, blocks, self.random_state)
            }

        return by_layer(pairs, one).assign_coords(measure=list(self.measures))


@dataclass(frozen=True)
class Similarity(OfMeasures):
    """Similarity of every layer's activations to the reference step's, on the same tokens.

    Centred kernel alignment (Kornblith et al. 2019), and mean canonical correlations of the
    leading components (SVCCA) or weighted by what they hold (PWCCA), and the share of the ten
    nearest neighbours of a token that both have (Huh et al. 2024; for few thousand tokens). A
    rotation of the features changes none of them. Errors: jackknife over ten blocks of texts. Null:
    tokens out of order.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    measures
        Some of ``"cka"``, ``"svcca"``, ``"pwcca"`` and ``"mutual-neighbours"``.
    on, tokens, max_tokens, random_state
        Which tokens; see `ontogeny.needs.Activations`.

    Examples
    --------
    >>> Similarity("model.layers.*.mlp").name
    'similarity'
    """

    other = "the reference {checkpoint}"
    relative_to = "reference"
    kind = "similarity"
    question = (
        "How similar is a layer to itself at the last checkpoint (CKA and others)?"
    )
    presets = (
        PresetEntry(("everything",), SOME_LAYERS, 150),
        PresetEntry(("circuits",), SOME_LAYERS, 290),
    )
    section = Section(
        title="Similarity to the reference {checkpoint}",
        definition="How far the activations of two checkpoints arrange the same tokens alike.",
        symbol="CKA = ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖)",
        null="The reference's activations with their tokens out of order.",
        care="It is 1 at the reference {checkpoint} by definition, which is left out of the "
        "verdict. SVCCA is near 1 for any data where tokens are hardly more than components. A few "
        "directions with a large variance can hold CKA up alone.",
        source="Kornblith et al. 2019; Raghu et al. 2017; Morcos et al. 2018; Huh et al. 2024",
    )

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        return [self.activations, Reference(self.activations)]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the similarities of every layer, their errors and the null."""
        activations, reference = self.needs()
        there = reading[reference]
        pairs = {
            path: (here, there[path]) for path, here in reading[activations].items()
        }
        return self.similarities(pairs, reading.units(activations))


def compared(
    here: torch.Tensor,
    there: torch.Tensor,
    measures: Sequence[str],
    blocks: Sequence[np.ndarray],
    random_state: int,
) -> Measured:
    """Return similarities of two layers or steps over ``measure``, with error and null.

    Parameters
    ----------
    here, there
        (n, p) and (n, q) activations of the same tokens.
    measures
        Names in `MEASURES`.
    blocks
        Rows that the jackknife leaves out together.
    random_state
        Seed of the orders of the null.
    """
    rng = np.random.default_rng([random_state, 6])
    X = here.double().cpu().numpy()
    Y = there.double().cpu().numpy()

    def similar(X: np.ndarray, Y: np.ndarray) -> list[float]:
        return [float(MEASURES[name](X, Y)) for name in measures]

    error = None
    if len(blocks) > 1:
        rows_left = [np.delete(np.arange(len(X)), block) for block in blocks]
        left_out = [similar(X[rows], Y[rows]) for rows in rows_left]
        error = ("measure", np.sqrt((len(blocks) - 1) * np.var(left_out, axis=0)))
    shuffled = [similar(X, Y[rng.permutation(len(Y))]) for _ in range(_DRAWS)]
    return Measured(
        ("measure", similar(X, Y)),
        stderr=error,
        nulls={"shuffled": (("draw", "measure"), shuffled)},
    )
