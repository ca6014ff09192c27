"""By which levels the rows of a result were judged, as the result itself states them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr

from ..dynamics.order import FEWEST_STEPS

# What can be shown of a row, the strongest first; each implies those after it.
VERDICTS = ("learned", "beyond", "changed")


@dataclass(frozen=True)
class Levels:
    """What a verdict takes; a result carries them as its attribute ``levels``.

    Parameters
    ----------
    change
        Level of "changed", over a page; NaN where a result does not state it.
    control
        Level of "beyond its motion" and of "learned", each over a page. What is learned must also
        be better than at first and than in every control there is.
    least_steps
        Fewer steps cannot tell a trend from chance: no order of them is rare enough.
    """

    change: float = math.nan
    control: float = math.nan
    least_steps: int = FEWEST_STEPS

    @classmethod
    def of(cls, tree: xr.DataTree) -> Levels:
        """Return the levels that a result states at its root, or else at the first node that does.

        Examples
        --------
        >>> Levels.of(
        ...     xr.DataTree(xr.Dataset(attrs={"levels": '{"change": 0.05}'}))
        ... ).change
        0.05
        """
        stated = (
            node.attrs["levels"] for node in tree.subtree if "levels" in node.attrs
        )
        return cls(**json.loads(next(stated, "{}")))

    def attributes(self) -> Mapping[str, Any]:
        """Return what a result carries: the levels that are known, as JSON.

        Examples
        --------
        >>> Levels(0.01, 0.05, 6).attributes()
        {'levels': '{"change": 0.01, "control": 0.05, "least_steps": 6}'}
        """
        stated = {
            name: value for name, value in asdict(self).items() if not math.isnan(value)
        }
        return {"levels": json.dumps(stated)}
