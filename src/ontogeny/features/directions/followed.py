"""Directions that people bring, followed over the checkpoints of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...claims import Claim
from ...errors import ArgumentError, CheckpointError, NonFiniteError, check_number
from ...figures import Section
from ...needs import Activations, Gradients, InputSet, Need
from ...needs.derived import Reference
from ...observables import Observable, Reading, Run, by_layer
from ...observables.fits import OfWidth
from ...observables.random_directions import random_directions
from ...observables.readable import UNTRAINED
from ...quantities import Measured, Quantity
from .brought import Brought, GivenDirections, brought
from .effect_claims import claims_of_effects
from .measured import FITTED, Rows, agreements, aucs, cosines, shares, unit_rows
from .read_claims import RANDOM, claims_of_reading
from .removed import UNIT, Effects, loss_at

N_RANDOM = 200  # random directions beside a reading, which costs no pass
_NULLS = {"random": RANDOM, "untrained": UNTRAINED}
_LINES: dict[str, Any] = {"series": "direction", "facet": "layer"}


@dataclass(frozen=True)
class Directions(Observable):
    """Directions of one's own: how much of them a layer holds, how well they read, what they do.

    A probe's coefficients, a steering or refusal vector, a feature of a dictionary. At every step:
    the share of the variance along each, the AUC of its own read-out where the texts have labels,
    and else its correlation with its read-out at the reference step; the cosine with the direction
    that is fitted to the same at that step; and what the loss costs without it and with it added.

    Parameters
    ----------
    directions
        ``.npy``, ``.npz`` or ``.safetensors``, an array (m,) or (r, m), a mapping of arrays, or a
        fitted linear classifier. Names are those of arrays, or of the file.
    layer
        Where they live: a pattern of layers with m features.
    on, tokens, max_tokens, random_state
        Which tokens are read. Of two labels of texts the one that sorts last is meant, or the one
        that a direction is called.
    effects
        Whether the loss is measured without them and with them added.
    strength
        How much is added to every token, in root mean squares of centred activations.
    n_draws
        Random directions whose effects stand beside, at the steps where noise is measured.
    objective
        ``"causal"``, ``"masked"``, or ``"auto"`` (by the model's class).

    Examples
    --------
    >>> import numpy as np
    >>> Directions({"refusal": np.array([1.0, 0.0, 2.0])}, layer="resid").names_brought
    ('refusal',)
    """

    directions: GivenDirections
    layer: str | tuple[str, ...]
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    effects: bool = True
    strength: float = 0.5
    n_draws: int = 8
    objective: str = "auto"

    kind = "directions"
    question = "Since when does a model have a direction of one's own?"
    requires = "texts, directions; a vocabulary head for effects"
    price = "two passes for each direction and layer, at some steps 2 n_draws more"
    uses_noise = True
    file_arguments = ("directions",)
    minima = {"n_draws": 3}
    quantities = (
        Quantity(
            "share",
            "share of the variance along a direction",
            symbol="uᵀ C u / tr C",
            rows="{layer} · {direction} · share of the variance",
            minimum=0.0,
            nulls=_NULLS,
            caption="Grey: random directions with the covariance of the layer.",
            **_LINES,
        ),
        Quantity(
            "auc",
            "how well a direction separates labels",
            units="AUC",
            rows="{layer} · {direction} · AUC",
            optional=True,
            nulls=_NULLS,
            caption="0.5: not at all. Grey: random directions with the covariance of the layer.",
            **_LINES,
        ),
        Quantity(
            "agreement",
            "correlation of its read-out with that at the reference",
            rows="{layer} · {direction} · read-out",
            relative_to="reference",
            compares="similarity",
            optional=True,
            nulls={"random": RANDOM},
            **_LINES,
        ),
        Quantity(
            "removed",
            "what the removal of a direction costs",
            UNIT,
            optional=True,
            nulls={"random": RANDOM},
            **_LINES,
        ),
        Quantity(
            "added",
            "what the loss rises by where a direction is added",
            UNIT,
            optional=True,
            nulls={"random": RANDOM},
            **_LINES,
        ),
        Quantity(
            "cosine",
            "cosine with the direction that is fitted at the {checkpoint}",
            nulls={"halves": "fits to two halves of the texts"},
            series="direction",
            facet="layer",
            per="fitted",
            heading="cosine with the {label} of the {checkpoint}",
            labels={"means": "difference of means", "regression": "regression"},
        ),
    )
    section = Section(
        title="Directions of one’s own",
        definition="The share of a layer’s variance along a direction that was brought, and how "
        "well what lies along it separates labels. It can be read since the {checkpoint} from "
        "which on it stays beyond random directions on these texts.",
        symbol="uᵀ C u / tr C",
        null="Random directions with the covariance of the layer; the untrained model; control "
        "runs. Effects stand beside random directions that are as strong.",
        care="A direction that was fitted at the end is best there by construction. One that "
        "cannot be read may have turned: the direction fitted at the {checkpoint} tells.",
    )

    @cached_property
    def _brought(self) -> Brought:
        return brought(self.directions)

    @property
    def names_brought(self) -> tuple[str, ...]:
        """The names of the directions."""
        return self._brought.names

    @property
    def stem(self) -> str:
        """The name of the file without its ending, else the first direction's."""
        one = self.directions
        one = one[0] if isinstance(one, list | tuple) and len(one) == 1 else one
        return Path(one).stem if isinstance(one, str) else self.names_brought[0]

    def check(self) -> None:
        """Refuse directions that are none, and a strength of 0."""
        check_number("strength", self.strength, 0, above=True)
        if self.effects and self.tokens == "masked":
            raise ArgumentError("effects must be False with tokens='masked'; got True.")
        assert len(self._brought.names)

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of directions their names and a digest."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "directions"
        }
        names = list(self.names_brought)
        return {**given, "directions": names, "content": self._brought.digest}

    def files_read(self) -> Sequence[str | Path]:
        """Return none: `arguments` tells what they hold, wherever they lie."""
        return ()

    @property
    def activations(self) -> Activations:
        """The activations that are read."""
        sample = (self.on, self.tokens, self.max_tokens, self.random_state)
        return Activations(self.layer, *sample)

    @property
    def _everywhere(self) -> Activations:
        """The activations at the tokens that effects change."""
        return Activations(
            self.layer, self.on, "all", self.max_tokens, self.random_state
        )

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference, texts, and the model with its loss."""
        width = self._brought.vectors.shape[1]
        losses = {"auto": None, "causal": "next-token", "masked": "masked"}
        needs: list[Need] = [
            self.activations,
            Reference(self.activations),
            InputSet(self.on),
            OfWidth(self.layer, width, f"the direction {self.names_brought[0]!r}"),
        ]
        if self.effects:
            borrowed = Gradients(
                losses[self.objective], self.on, random_state=self.random_state
            )
            needs += [self._everywhere, borrowed]
        return list(dict.fromkeys(needs))

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Refuse labels of several kinds that no direction is named by."""
        name = self.on or next(iter(inputs))
        if name in inputs:
            self._labels(inputs[name])

    def _labels(self, texts: Any) -> np.ndarray | None:
        """Return whether each text has the label of each direction (r, texts); None without."""
        if texts.labels is None or len(np.unique(texts.labels)) < 2:
            return None
        of_text = np.array([str(label) for label in texts.labels])
        kinds = np.unique(of_text).tolist()
        names = [name if name in kinds else kinds[-1] for name in self.names_brought]
        if len(kinds) > 2 and not set(self.names_brought) <= set(kinds):
            raise ArgumentError(
                f"labels must be of two kinds, or directions be called as they are; got "
                f"{len(kinds)} kinds ({', '.join(map(repr, kinds[:3]))}) and the directions "
                f"{', '.join(map(repr, self.names_brought[:3]))}."
            )
        return np.stack([of_text == name for name in names])

    def prepare(self, run: Run) -> xr.Dataset | None:
        """Return what an untrained model gives; None where none can be made."""
        try:
            return self._read(run.untrained(), None)
        except (ArgumentError, CheckpointError, NonFiniteError):
            return None

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return what one checkpoint holds of the directions, and what they do there."""
        found = self._read(reading, reading[Reference(self.activations)])
        untrained = (
            {}
            if state is None
            else {
                f"{name}_untrained": state[name]
                for name in ("share", "auc")
                if name in state
            }
        )
        return found.assign(untrained)

    def _read(self, reading: Reading, there: Mapping[str, Any] | None) -> xr.Dataset:
        texts = reading[InputSet(self.on)]
        sample = texts.sample(self.tokens, self.max_tokens, self.random_state)
        of_text = self._labels(texts)
        labels = None if of_text is None else of_text[:, sample.text]
        units = reading.units(self.activations)
        unit = unit_rows(self._brought.vectors).astype(np.float32)
        effects = self._effects(reading) if there is not None and self.effects else None

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            rows = Rows.of(to_numpy(A), units)
            before = None if there is None else Rows.of(to_numpy(there[path]), units).A
            read = self._of_layer(rows, unit, labels, before)
            return {**read, **(effects(path) if effects else {})}

        labelled = {"direction": list(self.names_brought), "fitted": list(FITTED)}
        found = by_layer(reading[self.activations], one)
        return found.assign_coords(
            {k: v for k, v in labelled.items() if k in found.dims}
        )

    def _of_layer(
        self,
        rows: Rows,
        unit: np.ndarray,
        labels: np.ndarray | None,
        before: np.ndarray | None,
    ) -> dict[str, Measured]:
        random = random_directions(rows.A, N_RANDOM, [self.random_state, 7])
        random = random.astype(np.float32)
        values: dict[str, Any] = {"share": shares(rows, unit, random)}
        codes = (rows.A @ unit.T).T.astype(np.float64)
        if labels is not None:
            values["auc"] = aucs(rows, unit, random, labels)
        if before is None:
            return values
        aims = (before @ unit.T).T.astype(np.float64)
        if labels is None:
            other = random_directions(before, N_RANDOM, [self.random_state, 7])
            beside = np.stack([(rows.A @ other.T).T, (before @ other.T).T])
            values["agreement"] = agreements(rows, codes, aims, beside)
        else:
            aims = labels.astype(np.float64)
        return values | cosines(rows, unit, aims)

    def _effects(self, reading: Reading) -> Any:
        values = reading[self._everywhere]
        model = next(reading[n] for n in self.needs() if isinstance(n, Gradients))
        sample = model.inputs.sample("all", self.max_tokens, self.random_state)
        at, rows = loss_at(model, sample, self.objective, self.random_state)
        unit = unit_rows(self._brought.vectors)
        draws = self.n_draws if reading.noise else 0

        def of(path: str) -> dict[str, Any]:
            A = to_numpy(values[path])[rows].astype(np.float64)
            return Effects(path, at, A, self.strength).of(
                unit, draws, self.random_state
            )

        return of

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return since when each direction can be read, and since when the loss needs it."""
        quantity = "auc" if "auc" in data else "share"
        return list(self._claims(name, data, quantity))

    def _claims(self, name: str, data: xr.Dataset, quantity: str) -> Iterator[Claim]:
        if quantity not in data or "step" not in data[quantity].dims:
            return
        yield from chain(
            claims_of_reading(name, data, quantity), claims_of_effects(name, data)
        )
