"""The runs that are compared, opened from whatever holds their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError, OntogenyError
from ..study import Study, open_study
from ..trees import as_tree
from ..words.levels import Levels
from ..words.nodes import attribute
from ..words.voice import STEPS


@dataclass(frozen=True, eq=False)
class Run:
    """One studied run: its name in the comparison, and its merged result."""

    name: str
    tree: xr.DataTree

    @cached_property
    def nodes(self) -> dict[str, xr.Dataset]:
        """The nodes that hold something, by their paths."""
        return {
            child.path.strip("/"): child.to_dataset().drop_encoding()
            for child in self.tree.subtree
            if child is not self.tree
            and child.data_vars
            and "failed" not in child.attrs
        }

    @cached_property
    def steps(self) -> np.ndarray:
        """All steps of the run, increasing."""
        steps = set(map(int, self.attribute("steps", [])))
        for node in self.nodes.values():
            if "step" in node.coords:
                steps.update(map(int, np.atleast_1d(node["step"].values)))
        return np.array(sorted(steps))

    @property
    def clock(self) -> str:
        """What its steps count, in words."""
        return str(self.tree.attrs.get("clock") or STEPS)

    @cached_property
    def controlled(self) -> bool:
        """Whether control runs were studied beside it."""
        has_control = any("p_control" in node for node in self.nodes.values())
        return has_control or bool(self.attribute("controls", []))

    @cached_property
    def levels(self) -> Levels:
        """By which levels its rows were judged."""
        return Levels.of(self.tree)

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the result that holds JSON."""
        return attribute(self.tree.attrs, name, default, f"run {self.name!r}")


def levels_of(runs: Sequence[Run]) -> set[Levels]:
    """Return the levels by which runs were judged, of those that state them."""
    return {run.levels for run in runs if not math.isnan(run.levels.change)}


def open_runs(runs: Mapping[str, Any]) -> list[Run]:
    """Return the runs by their names, all with the same kind of result.

    Raises
    ------
    ArgumentError
        If there are fewer than two, a name is no text, or a value holds no result of a study.
    """
    if not isinstance(runs, Mapping):
        raise ArgumentError(
            "runs must be a mapping from names to results, such as "
            f'{{"seed 0": "studies/seed-0", "seed 1": "studies/seed-1"}}; got '
            f"{type(runs).__name__}."
        )
    if len(runs) < 2:
        raise ArgumentError(f"runs must hold at least two runs; got {len(runs)}.")
    for name in runs:
        if not isinstance(name, str) or not name.strip():
            raise ArgumentError(
                f"names of runs must be texts that are not empty; got {name!r}."
            )
    return [_opened(name, value) for name, value in runs.items()]


def _opened(name: str, value: Any) -> Run:
    tree = _tree(name, value)
    if "runs" in tree.attrs:
        raise ArgumentError(
            f"run {name!r} is itself a comparison; give its runs one by one."
        )
    run = Run(name, tree)
    if not run.nodes:
        raise ArgumentError(
            f"run {name!r} must hold at least one node with data; it holds none."
        )
    return run


def _tree(name: str, value: Any) -> xr.DataTree:
    if isinstance(value, Study):
        raise ArgumentError(
            f"run {name!r} is a Study, which holds no numbers; give what its run() returned, or "
            "the folder that it ran into."
        )
    if isinstance(value, str | Path):
        try:
            return open_study(value).tree
        except OntogenyError as error:
            raise type(error)(f"run {name!r}: {error}") from error
    try:
        return as_tree(value)
    except ArgumentError:
        raise ArgumentError(
            f"run {name!r} must be a result of Study.run, a folder of a study, or what open_study "
            f"returns; got {type(value).__name__}."
        ) from None
