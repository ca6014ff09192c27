"""What is claimed of the effects of directions: what needs them, and what they steer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ...multiple_tests import holm
from ...observables.readable import LEVEL
from .read_claims import RANDOM


@dataclass(frozen=True)
class Tested:
    """One effect beside those of random directions.

    Parameters
    ----------
    name
        The variable.
    labels
        Of what: the layer, the direction, and perhaps the examples.
    data
        What was measured of it, at the steps at which it was tested.
    p_value
        Of the last of them, corrected.
    tests
        Over how many it is corrected.
    """

    name: str
    labels: tuple[str, ...]
    data: xr.Dataset
    p_value: float
    tests: int

    @property
    def last(self) -> xr.Dataset:
        """What was measured at the last of the steps."""
        return self.data.isel(step=-1)

    def fields(self, node: str) -> dict[str, Any]:
        """Return how sure a claim of it is, since when it holds, and where its numbers stand."""
        sure: dict[str, Any] = {
            "certainty": Certainty.OPEN,
            "reason": Reason.WITHIN_CHANCE,
        }
        if self.p_value <= LEVEL:
            holds = self.data[f"{self.name}_p_single"].values * self.tests <= LEVEL
            sure = {
                "certainty": Certainty.SURE,
                **lasting(self.data.step.values, holds),
            }
        return {
            **sure,
            "p_value": self.p_value,
            "corrected_over": self.tests,
            "evidence": (f"{node}/{self.name}", f"{node}/{self.name}_random"),
            "figure": f"{node}/{self.name}",
        }


def tested(data: xr.Dataset, names: Mapping[str, Any], *dims: str) -> Iterator[Tested]:
    """Give the effects along some dimensions that were tested, corrected over all of them."""
    cases = []
    for name in names:
        if f"{name}_p_single" not in data:
            continue
        for labels in product(*(data[dim].values for dim in dims)):
            at = dict(zip(dims, labels, strict=True))
            one = data.sel(at).dropna("step", subset=[f"{name}_p_single"])
            if one.sizes["step"]:
                cases.append((name, labels, one))
    p_values = holm([one[f"{name}_p_single"][-1].item() for name, _, one in cases])
    for (name, labels, one), p_value in zip(cases, p_values.tolist(), strict=True):
        yield Tested(name, tuple(map(str, labels)), one, p_value, len(cases))


def lasting(steps: np.ndarray, holds: np.ndarray) -> dict[str, Any]:
    """Return from which judged step on something holds for good, and the one before it."""
    lasting = np.logical_and.accumulate(holds[::-1])[::-1]
    if not lasting.any():
        return {}
    first = int(lasting.argmax())
    at = float(steps[first])
    return {"since": at, "since_low": float(steps[max(first - 1, 0)]), "since_high": at}


def claims_of_effects(node: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give for each layer and direction whether the loss needs it, and whether adding it matters."""
    kinds = {"removed": Kind.NEEDED, "added": Kind.STEERS}
    for one in tested(data, kinds, "layer", "direction"):
        layer, direction = one.labels
        value = float(one.last[one.name])
        draws = one.last[f"{one.name}_random"].values
        farthest = draws.min() if value < 0 else draws.max()
        yield Claim(
            kinds[one.name],
            Subject(node, one.name, layer, direction),
            value=value,
            first=0.0,
            last=value,
            units="nats per {token}",
            beside=[Beside("null", RANDOM, float(farthest))],
            **one.fields(node),
        )


def claims_of_abilities(node: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give for each layer, direction and group of examples whether it needs it or is moved by it."""
    kinds = {"removed": Kind.NEEDED, "steered": Kind.STEERS}
    for one in tested(data, kinds, "layer", "direction", "group"):
        layer, direction, group = one.labels
        numbers = _removed(one.last) if one.name == "removed" else _steered(one.last)
        null = numbers.pop("null")
        fields = one.fields(node)
        if fields["certainty"] is Certainty.OPEN and one.last.contrasts < 2:
            fields["reason"] = Reason.FEW_CONTRASTS
        yield Claim(
            kinds[one.name],
            Subject(node, one.name, layer, f"{direction} · {group}"),
            beside=[
                Beside("part", direction),
                Beside("reference", group, numbers["first"]),
                Beside("null", RANDOM, null),
            ],
            **numbers,
            **fields,
        )


def _removed(last: xr.Dataset) -> dict[str, Any]:
    """Return accuracies in per cent, with the direction and without it."""
    first, end = (100 * float(last[n]) for n in ("accuracy", "removed_accuracy"))
    return {
        "first": first,
        "last": end,
        "value": end - first,
        "units": "%",
        "null": 100 * float(last.removed_accuracy_random.mean()),
    }


def _steered(last: xr.Dataset) -> dict[str, Any]:
    """Return log-odds without the direction and with the most of it."""
    first = float(last.log_odds)
    moved = float(last.steered.isel(strength=-1))
    return {
        "first": first,
        "last": first + moved,
        "value": moved,
        "units": "nats",
        "null": first + float(last.steered_random.isel(strength=-1).mean()),
    }
