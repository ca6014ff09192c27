"""When the features of a dictionary came to fire as they do at the reference, and claims of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Claim, Kind, Subject
from ...claims.counts import sureness_of_counts
from ...claims.values import of_controls
from ...errors import ArgumentError
from ...observables.pieces import object_array
from ...observables.readable import Case, Course, claims_of_readable
from ...summary.noise import mean_stderr, reference_index
from ...tails import normal_above
from ...tasks.records import read_records, some_of
from ...words.names import Names

AGREES = 0.5  # correlation from which on a feature is there
APART = 0.4  # correlation below which it is not
RARE = 1e-3  # share of tokens, below which no life is told
_INDEX = ("index", "feature", "feature_index")
_LABEL = ("label", "description", "explanation")
LIVES: Names = {
    "firing": ("share of the tokens at which a feature fires", "1"),
    "written": ("root mean square of what a feature writes", "activation units"),
    "agreement": ("correlation of its codes with those at the reference", "1"),
    "feature": ("number of the feature", ""),
    "part": ("texts that it is measured on", ""),
    "n_born": ("features born during the run", "features"),
    "n_alive": ("features that fire at the reference", "features"),
    "shown": ("place among the features shown", ""),
    "shown_label": ("feature and its label", ""),
    "shown_number": ("number of the feature", ""),
    "shown_agreement": ("correlation of its codes with those at the reference", "1"),
    "shown_born": (
        "{checkpoint} from which on it fires as at the reference",
        "{step}s",
    ),
    "shown_born_after": (
        "last {checkpoint} before it, in all texts or in a half",
        "{step}s",
    ),
    "shown_born_before": (
        "the same from which on all texts and both halves agree",
        "{step}s",
    ),
    "shown_firing": (
        "share of the tokens at which it fires at the last {checkpoint}",
        "1",
    ),
}


def labels_of(path: str | None, count: int) -> Mapping[int, str]:
    """Return the labels of features by number; none without a file.

    Raises
    ------
    ArgumentError
        If a record has no index or label, or one is no number from 0 to `count` - 1.
    """
    if path is None:
        return {}
    file = Path(path).expanduser()
    return _read_labels(file, file.stat().st_mtime_ns if file.exists() else 0, count)


@lru_cache(maxsize=4)  # an observable is made, checked and asked for its arguments
def _read_labels(path: Path, stamp: int, count: int) -> Mapping[int, str]:
    labels: dict[int, str] = {}
    wrong: list[str] = []
    for line, record in read_records(path):
        record = record if isinstance(record, Mapping) else {}
        index = next((record[name] for name in _INDEX if name in record), None)
        label = next((record[name] for name in _LABEL if name in record), None)
        if label is None or not str(index).isdecimal() or int(str(index)) >= count:
            wrong.append(f"line {line}: index {index!r}, label {label!r}")
        else:
            labels[int(str(index))] = str(label)
    if wrong:
        raise ArgumentError(
            f"labels must hold index (0 to {count - 1}) and label; in {path.name} "
            f"{len(wrong):,} do not: {some_of(wrong)}."
        )
    return labels


def with_features(
    data: xr.Dataset, labels: Mapping[int, str], named: Sequence[int], count: int
) -> xr.Dataset:
    """Return stacked cells with the births of all features and the lives of those shown.

    Parameters
    ----------
    labels
        By number.
    named
        Numbers of features that are shown; where there are none, the `count` that write most at
        the reference and agreed least before.
    """
    there = data.agreement.dropna("step", how="all")
    if there.sizes["step"] < 3:
        return data.drop_vars("agreement")
    pieces = [
        _of_layer(data.sel(layer=layer, step=there.step), labels, named, count)
        for layer in data.layer.values
    ]
    lives = xr.concat(pieces, dim=data.layer, join="outer")
    # Agreements of all features and parts are large, and nothing else reads them.
    return data.drop_vars("agreement").assign(lives.reindex(step=data.step))


def _of_layer(
    one: xr.Dataset, labels: Mapping[int, str], named: Sequence[int], count: int
) -> xr.Dataset:
    steps = one.step.values.astype(np.float64)
    agreement = one.agreement.transpose("part", "step", "feature").values
    reference = reference_index(one)
    firing = one.firing.transpose("step", "feature").values
    written = one.written.transpose("step", "feature").values
    at = -1 if reference is None else reference
    alive = firing[at] > RARE
    # At the reference itself a feature agrees by construction.
    by_construction = [] if reference is None else [reference]
    others = np.delete(agreement, by_construction, axis=1)
    others_at = np.delete(steps, by_construction)
    start, after, before = _births(others)
    born = alive & (start > 0) & (start < len(others_at))
    born &= (others[:, :1] < APART).all(axis=(0, 1))
    score = written[at] * (1 - agreement[0].min(axis=0)) * alive
    shown = np.array(named, dtype=int)
    if not len(shown):
        shown = np.argsort(-score, kind="stable")[: min(count, int(alive.sum()))]
    texts = [f"{i} {labels[i]}" if i in labels else f"{i}" for i in shown.tolist()]

    def dated(index: np.ndarray) -> np.ndarray:
        most = len(others_at) - 1
        known = (index[shown] <= most) & born[shown]
        return np.where(known, others_at[np.minimum(index[shown], most)], np.nan)

    variables: dict[str, Any] = {
        "n_born": float(born.sum()),
        "n_alive": float(alive.sum()),
        "shown_number": ("shown", shown.astype(float)),
        "shown_label": ("shown", object_array(texts)),
        "shown_agreement": (("shown", "step"), agreement[0][:, shown].T),
        "shown_born": ("shown", dated(start)),
        "shown_born_after": ("shown", dated(after)),
        "shown_born_before": ("shown", dated(before)),
        "shown_firing": ("shown", firing[-1, shown]),
    }
    return xr.Dataset(variables, {"step": one.step, "shown": np.arange(len(shown))})


def _births(agreement: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return from which step on features agree for good, in all texts, and the ends of three parts.

    Examples
    --------
    >>> part = np.array([[0.0], [0.1], [0.9], [1.0]])
    >>> [index.tolist() for index in _births(np.stack([part, part, 0 * part + 1]))]
    [[2], [0], [2]]
    """
    apart = agreement < AGREES
    count = agreement.shape[1]
    begin = np.where(apart.any(axis=1), count - apart[:, ::-1].argmax(axis=1), 0)
    after = np.maximum(begin - 1, 0).min(axis=0)
    return begin[0], after, begin.max(axis=0)


def claims_of_dictionary(node: str, data: xr.Dataset, null: str) -> Iterator[Claim]:
    """Give since when the dictionary explains each layer, and which features were born."""
    if "n_born" not in data or "step" not in data.explained.dims:
        return
    layers = [str(layer) for layer in data.layer.values]
    courses = [Course.of(data, "explained", layer=layer) for layer in layers]
    cases = [
        _explained(layer, node, course, null)
        for layer, course in zip(layers, courses, strict=True)
        if course is not None
    ]
    yield from claims_of_readable(node, cases, "gaussian")
    yield from _born(node, data, layers)


def _explained(layer: str, node: str, course: Course, null: str) -> Case:
    draws = course.data.explained_gaussian.transpose("step", "draw").values
    line = np.maximum(draws.max(axis=1), 0.0)  # a mean explains nothing
    error = float(mean_stderr(course.of_text[-1], course.weights[-1]))
    error = math.hypot(error, float(draws[-1].std(ddof=1)))
    above = float(course.values[-1] - line[-1])
    return Case(
        layer,
        node,
        course,
        float(normal_above(above / error)) if error > 0 else 1.0,
        course.since(line[:, None]),
        (Beside("null", null, float(line[-1])),),
    )


def _born(node: str, data: xr.Dataset, layers: Sequence[str]) -> Iterator[Claim]:
    """Give how many features were born in each layer, and which of those shown."""
    besides = [_of_controls(data.sel(layer=layer)) for layer in layers]
    counts = [float(data.n_born.sel(layer=layer)) for layer in layers]
    most = [max((b.value for b in beside), default=math.nan) for beside in besides]
    sureness = sureness_of_counts(counts, most)
    for layer, count, beside, sure in zip(
        layers, counts, besides, sureness, strict=True
    ):
        one = data.sel(layer=layer)
        total = f"{float(one.n_alive):,.0f} features of the dictionary"
        evidence: dict[str, Any] = {
            "evidence": (f"{node}/n_born",),
            "figure": f"{node}/lives",
        }
        subject = Subject(node, "n_born", layer, total)
        yield Claim(Kind.BORN, subject, value=count, beside=beside, **sure, **evidence)
        for i in np.flatnonzero(one.shown_born.notnull().values).tolist():
            feature = one.isel(shown=i)
            yield Claim(
                Kind.BORN,
                Subject(
                    node, "shown_agreement", layer, str(feature.shown_label.item())
                ),
                first=float(feature.shown_agreement[0]),
                last=float(feature.shown_agreement[-1]),
                since=float(feature.shown_born),
                since_low=float(feature.shown_born_after),
                since_high=float(feature.shown_born_before),
                beside=beside,
                **sure,
                **evidence,
            )


def _of_controls(one: xr.Dataset) -> list[Beside]:
    if "n_born_control" not in one:
        return []
    return of_controls(one.n_born_control, float(one.n_born))
