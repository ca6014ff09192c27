"""All figures of a result by their names."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ArgumentError, StudyWarning
from ...trees import MergedResult
from ...words.content import Content, read_content
from ...words.nodes import LAYER_DIMENSIONS
from ..choosing import chosen_steps, layer_paths, listed
from ..figures.axes import is_step
from ..figures.drawable import Drawable
from ..kinds import list_drawables
from .figure import ResultFigure, read_figure
from .table import table_html

_NEAREST = 3


class FigureIndex(Mapping[str, ResultFigure]):
    """The figures of a result by their names, as ``result.figures()`` returns them.

    ``values()`` and ``items()`` leave out figures that cannot be drawn, and warn with the reasons.
    The name of a figure is that of its node and its own, such as ``"concepts-ica/procrustes"``. The
    page has the same names in its links.

    Parameters
    ----------
    result
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.

    Raises
    ------
    ArgumentError
        If `result` is not a merged result.

    Examples
    --------
    >>> import xarray as xr
    >>> from ontogeny.figures import Curves, Section, attach
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]})
    >>> curves = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> data = attach(data, Section("Loss", "Mean loss."), [curves])
    >>> figures = FigureIndex(xr.DataTree.from_dict({"loss": data}))
    >>> figures
         figure              title    kind
    0 loss/loss Loss on fixed text  curves
    >>> figures["loss/lose"]
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: there is no figure 'loss/lose'. Nearest: 'loss/loss'.
    """

    def __init__(self, result: MergedResult) -> None:
        self._content = read_content(result)
        self._drawables = {
            drawable.id: drawable for drawable in list_drawables(self._content)
        }

    @property
    def table(self) -> pd.DataFrame:
        """One row for each figure: its name, its title and its kind."""
        rows = [
            (d.id, str(d.figure.title), str(d.figure.kind))
            for d in self._drawables.values()
        ]
        return pd.DataFrame(rows, columns=["figure", "title", "kind"])

    def figure(self, name: str, layers: Any = None, steps: Any = None) -> ResultFigure:
        """Return one figure, of some layers and steps alone if they are given.

        Parameters
        ----------
        name
            As in `table`.
        layers, steps
            As in `ontogeny.study.StudyResult.figure`.

        Raises
        ------
        ArgumentError
            If there is no such figure, it has no such layers or steps, or it cannot be drawn.
        """
        if name not in self:
            raise ArgumentError(self._unknown(name))
        drawable = self._drawables[name]
        content = self._content
        if layers is not None:
            drawable = _of_layers(drawable, layers)
        if steps is not None:
            drawable, content = _of_steps(drawable, content, steps)
        return read_figure(drawable, content)

    def _unknown(self, name: object) -> str:
        """Say which names are near, or which there are."""
        names = list(self._drawables)
        if not names:
            return f"there is no figure {name!r}: the result has none."
        node_name = str(name).split("/")[0]
        bare = [
            node
            for node in self._content.nodes
            if node.path == node_name and not node.figures
        ]
        if bare:
            failed = str(bare[0].dataset.attrs.get("failed", "")).rstrip(".")
            why = (
                f", because it failed: {failed}; problems() says more" if failed else ""
            )
            return f"there is no figure {name!r}: {node_name!r} has none{why}."
        near = difflib.get_close_matches(str(name), names, _NEAREST, 0.4)
        near = near or [
            candidate for candidate in names if candidate.split("/")[0] == node_name
        ]
        if near:
            return f"there is no figure {name!r}. Nearest: {listed(near)}."
        return f"there is no figure {name!r}; there are {listed(names)}."

    def __getitem__(self, name: str) -> ResultFigure:
        return self.figure(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return one figure, or `default` where there is none of this name."""
        return self.figure(name) if name in self else default

    def values(self) -> ValuesView[ResultFigure]:
        """Return the figures that can be drawn; warn of the others."""
        return self._drawn().values()

    def items(self) -> ItemsView[str, ResultFigure]:
        """Return names and figures of those that can be drawn; warn of the others."""
        return self._drawn().items()

    def _drawn(self) -> dict[str, ResultFigure]:
        figures = {}
        failed = {}
        for name in self:
            try:
                figures[name] = self.figure(name)
            except ArgumentError as error:
                failed[name] = str(error)
        if failed:
            why = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
            warnings.warn(
                f"{len(failed)} of {len(self)} figures cannot be drawn: {why}",
                StudyWarning,
                stacklevel=3,
            )
        return figures

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._drawables

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawables)

    def __len__(self) -> int:
        return len(self._drawables)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.table.to_string() if self._drawables else "no figures"

    def _repr_html_(self) -> str:
        return (
            table_html(self.table, len(self))
            if self._drawables
            else "<p>no figures</p>"
        )


def _of_layers(drawable: Drawable, layers: Any) -> Drawable:
    """Return a figure, not yet read, of some layers or weight blocks.

    Raises
    ------
    ArgumentError
        If it has no layers, or not these.
    """
    dims = _dimensions(drawable, lambda name: name in LAYER_DIMENSIONS, "layers")
    labels = {dim: drawable.node.dataset[dim].values.tolist() for dim in dims}
    return _with(
        drawable, {dim: layer_paths(names, layers) for dim, names in labels.items()}
    )


def _of_steps(
    drawable: Drawable, content: Content, steps: Any
) -> tuple[Drawable, Content]:
    """Return a figure, not yet read, of some steps, and the result with its axis of steps cut.

    Raises
    ------
    ArgumentError
        If it has no steps, or not these.
    """
    dims = _dimensions(drawable, is_step, "steps")
    labels = {dim: drawable.node.dataset[dim].values.tolist() for dim in dims}
    steps_of = {dim: chosen_steps(values, steps) for dim, values in labels.items()}
    steps_chosen = set(chain(*steps_of.values()))
    cut = replace(
        content, steps=tuple(step for step in content.steps if step in steps_chosen)
    )
    return _with(drawable, steps_of), cut


def _dimensions(
    drawable: Drawable, is_dimension: Callable[[str], bool], what: str
) -> list[str]:
    """Return the dimensions of what a figure draws that are `is_dimension`."""
    data = drawable.node.dataset
    names = [name for name in drawable.figure.names() if name in data.variables]
    all_dims = dict.fromkeys(chain(*(data[name].dims for name in names)))
    dims = [str(dim) for dim in all_dims if dim in data.coords]
    if matches := [dim for dim in dims if is_dimension(dim)]:
        return matches
    dim_names = ", ".join(dims) or "none"
    raise ArgumentError(
        f"{drawable.id!r} has no {what}; its dimensions are {dim_names}."
    )


def _with(drawable: Drawable, selection: Mapping[str, Sequence[Any]]) -> Drawable:
    data = drawable.node.dataset
    for dim, labels in selection.items():
        data = data.isel({dim: np.flatnonzero(np.isin(data[dim].values, labels))})
    return replace(drawable, node=replace(drawable.node, dataset=data))
