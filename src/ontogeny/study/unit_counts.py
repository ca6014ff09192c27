"""How many units of noise each observable of a study rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import ArgumentError
from ..inputs import Inputs
from ..needs import Need
from ..observables import Observable


def unit_counts(observables: Sequence[Observable], inputs: Mapping[str, Inputs]) -> dict[str, int]:
    """Return the number of units behind each observable by its name: texts, or documents.

    Of several input sets it is the smallest number. An observable of another one's series has that
    one's number; one that reads no texts has none.

    Examples
    --------
    >>> from ontogeny.observables import make
    >>> texts = Inputs.from_tokens([[1, 2], [3, 4], [1, 2]])
    >>> unit_counts([make("loss"), make("weight-rank")], {"text": texts})
    {'loss': 2}
    """
    found: dict[str, int] = {}
    for observable in observables:
        needs = [need.at_step for need in observable.needs() if need.at_step.reads_inputs]
        counts = [_count(need, inputs) for need in needs]
        if counts:
            found[observable.name] = min(counts)
    for observable in observables:
        source = observable.source
        if source is not None and source.node in found:
            found[observable.name] = found[source.node]
    return found


def repeated_texts(inputs: Mapping[str, Inputs]) -> list[str]:
    """Return one line for each input set in which texts repeat."""
    return [f"input set {name!r}: {i.repeats}" for name, i in inputs.items() if i.repeats]


def _count(need: Need, inputs: Mapping[str, Inputs]) -> int:
    read = inputs[need.on or next(iter(inputs))]
    try:
        return len(np.unique(need.units(read)))
    except ArgumentError:  # the model, or the set itself: all of its texts
        return read.counts["units"]
