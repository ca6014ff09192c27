"""Samples of examples that observables ask beside a study's texts, for a trial of its time.

They do not become fewer with the texts, as minimal pairs do not. So a few of each group are asked,
then twice as many, and a line through both gives what all of them take.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ..observables import Observable
from ..tasks.records import read_records

# Of each group, from its beginning: neighbours often begin alike, and what texts begin with is read
# once. By 1 and 2 of 30, weighed by their characters, the bundled pairs have 1 % fewer tokens than
# they have, as by 2 and 4, which took twice as long.
FEW = 1
MORE = 2
_WORTH = 0.5  # of the examples, that both samples have at most


@dataclass(frozen=True)
class Sample:
    """Two samples of an observable's examples; that of more has its name.

    Attributes
    ----------
    sizes
        Characters of few examples, of more, and of all.
    """

    few: Observable
    more: Observable
    sizes: tuple[int, int, int]

    def seconds(self, few: float, more: float) -> float:
        """Return what all examples take where the samples took `few` and `more` seconds.

        Clocks jitter: it is no less than what more of them took, and no more than in proportion.

        Examples
        --------
        >>> sample = Sample(None, None, (20, 40, 300))
        >>> sample.seconds(2.0, 3.0), sample.seconds(3.0, 3.0), sample.seconds(0.0, 3.0)
        (16.0, 3.0, 22.5)
        """
        at_few, at_more, whole = self.sizes
        slope = (more - few) / (at_more - at_few)
        line = more + slope * (whole - at_more)
        return min(max(line, more), more * whole / at_more)


def samples_of(observables: Sequence[Observable], folder: Path) -> list[Sample]:
    """Return samples of those that ask files of many examples, which go into a folder."""
    samples = [_sample(observable, folder) for observable in observables]
    return [sample for sample in samples if sample is not None]


def with_samples(
    observables: Sequence[Observable], samples: Sequence[Sample]
) -> list[Observable]:
    """Return observables with samples in the place of their wholes, at the end, few of each first."""
    names = {sample.more.name for sample in samples}
    others = [observable for observable in observables if observable.name not in names]
    return [*others, *(o for sample in samples for o in (sample.few, sample.more))]


def _sample(observable: Observable, folder: Path) -> Sample | None:
    """Return the sample of an observable, None where it asks no files, or few examples."""
    asked: Any = observable
    if not observable.form or not hasattr(asked, "paths"):
        return None
    (argument,) = observable.file_arguments
    groups = {path: list(_groups(asked, path)) for path in dict.fromkeys(asked.paths)}
    every = [group for of_file in groups.values() for group in of_file]
    few, more = (sum(len(group[:n]) for group in every) for n in (FEW, MORE))
    whole = sum(map(len, every))
    if few == more or few + more > _WORTH * whole:
        return None
    at_few, at_more, at_whole = (_characters(every, n) for n in (FEW, MORE, None))

    def first(count: int) -> tuple[str, ...]:
        return tuple(
            str(_written(folder / f"{observable.name}-{count}-{i}", path, of, count))
            for i, (path, of) in enumerate(groups.items())
        )

    of_few: dict[str, Any] = {"label": f"{observable.name}-few", argument: first(FEW)}
    of_more: dict[str, Any] = {argument: first(MORE)}
    return Sample(
        replace(observable, **of_few),
        replace(observable, **of_more),
        (at_few, at_more, at_whole),
    )


def _characters(groups: Sequence[Sequence[Any]], count: int | None) -> int:
    """Return how long the first records of each group are, as they are written."""
    records = chain.from_iterable(group[:count] for group in groups)
    return sum(len(json.dumps(record)) for record in records)


def _groups(asked: Any, path: str) -> Iterator[list[dict[str, Any]]]:
    """Give the records of each group of a file, in their order."""
    field = getattr(asked, "group_field", lambda _: None)(path)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for _, record in read_records(path):
        if isinstance(record, dict):
            name = str(record.get(field)) if field else ""
            groups.setdefault(name, []).append(record)
    yield from groups.values()


def _written(
    folder: Path, path: str, groups: Sequence[Sequence[Any]], count: int
) -> Path:
    """Write the first records of each group under the name of their file, which may be a group's."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{Path(path).stem}.jsonl"
    records = [record for group in groups for record in group[:count]]
    place.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return place
