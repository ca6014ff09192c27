"""How many rows a quantity has, and what they are called where they are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..claims import Claim, Kind
from .labels import layer_groups
from .rows import Row

LAYERS = "layers"
SOME_LAYERS = "layers that were read"
MEASURES = "measures"


def layers_of_rows(
    rows: Iterable[tuple[str, Row]], claims: Iterable[Claim]
) -> dict[tuple[str, str], list[str]]:
    """Return the layer of each row of a quantity, by node and variable.

    Parameters
    ----------
    rows
        Rows of the chart, each with the path of its node.
    claims
        Of the page. Values that are held against chance are rows as well, where they are more.
    """
    drawn: dict[tuple[str, str], list[str]] = {}
    for path, row in rows:
        drawn.setdefault((path, row.variable), []).append(row.layer)
    held: dict[tuple[str, str], list[str]] = {}
    for key in dict.fromkeys(c.subject.key for c in claims if c.kind is Kind.DIFFERS):
        node, quantity, layer, *_ = key
        held.setdefault((node, quantity), []).append(layer)
    both = {*drawn, *held}
    return {key: max(drawn.get(key, []), held.get(key, []), key=len) for key in both}


def rows_called(layers: Sequence[str], blocks: int) -> str:
    """Return what rows are called that lie in these layers of a model of so many blocks.

    Examples
    --------
    >>> rows_called(["layers.0.mlp", "layers.1.mlp"], 2)
    'layers'
    >>> rows_called(["layers.0.mlp", "layers.1.mlp"], 30)
    'layers that were read'
    >>> rows_called(["layers.0.mlp", "layers.0.mlp"], 2)
    'measures'
    """
    if not all(layers) or len({*layers}) < len(layers):
        return MEASURES
    depths = [label for label in layer_groups(layers).labels if label.isdigit()]
    return SOME_LAYERS if 0 < len(depths) < blocks else LAYERS
