"""What a study returns: its merged result, and what can be asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from ...atlas import with_labels
from ...claims.table import claims_frame
from ...errors import suggestion
from ...markup import html_block, html_table, text_table
from ...problems.table import Problems, problems_of
from ...report.choosing import listed
from ...trees import as_tree
from ...words.page_claims import claims_of_result

if TYPE_CHECKING:
    import pandas as pd

    from ...report.notebook.figure import ResultChart, ResultFigure
    from ...report.notebook.index import FigureIndex
    from ...report.notebook.summary import ResultSummary
    from ...report.notebook.texts import ResultTexts

_HEADS = ("node", "what", "sizes", "figures")
_SIZES = ("step", "layer", "block")
_ASK = (
    "summary(), claims(), texts(), chart(), figures(), figure(name), problems(), report(path); "
    ".tree is the DataTree"
)


class StudyResult(Mapping[str, Any]):
    """The merged result of a study.

    It maps the name of each observable to its node: ``result["loss"]`` is the node of the loss, and
    ``result["loss/loss"]`` a variable of it. Everything else that xarray can do is done on `tree`.

    Parameters
    ----------
    source
        The merged result, or the folder of a study whose result is opened when it is first used.
    is_whole
        Whether it is known already that nothing is missing, and nothing failed.

    Examples
    --------
    >>> loss = xr.Dataset({"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]})
    >>> result = StudyResult(xr.DataTree.from_dict({"loss": loss}))
    >>> list(result), float(result["loss/loss"].sel(step=100))
    (['loss'], 4.2)
    """

    def __init__(self, source: xr.DataTree | Path, *, is_whole: bool = False) -> None:
        self._source = source
        self._is_whole = is_whole

    @cached_property
    def tree(self) -> xr.DataTree:
        """The result as an `xarray.DataTree` with one node for each observable.

        What `open_study` opened is read lazily, as by ``xarray.open_datatree``. xarray alone reads
        a missing or damaged chunk as NaN or as data; here it is a StoreError, when the result is
        opened or when the chunk is read. A run that merges something else into the folder replaces
        the files: what is read after that raises a StoreError. Open the result again then, or
        ``load()`` it beforehand.

        Raises
        ------
        StoreError
            If a file of the result is missing, truncated or changed.
        """
        if not isinstance(self._source, Path):
            return as_tree(self._source)
        from .opened import open_tree  # which imports Zarr

        return open_tree(self._source)

    @property
    def result(self) -> xr.DataTree:
        """The same as `tree`."""
        return self.tree

    @property
    def folder(self) -> Path | None:
        """The folder of the study or comparison; None where the result lies in none."""
        if isinstance(self._source, Path):
            return self._source
        source = self.tree.encoding.get("source")
        return None if source is None else Path(str(source)).parent

    @property
    def attrs(self) -> dict[Any, Any]:
        """What the result says of the whole study, most of it as JSON."""
        return self.tree.attrs

    @property
    def children(self) -> Mapping[str, xr.DataTree]:
        """The nodes by name."""
        return self.tree.children

    @property
    def concept(self) -> Any:
        """The concepts of the result, see `ontogeny.atlas`: ``result.concept(index=3)``."""
        return self.tree.concept

    def problems(self) -> Problems:
        """Return a table of what failed: node, steps, layers and the reason."""
        return problems_of(self.tree)

    @property
    def lost(self) -> list[str]:
        """Observables of which nothing was computed."""
        return [] if self._is_whole else self.problems().lost

    def claims(self) -> pd.DataFrame:
        """Return all that the study says, a line each, what matters most first.

        Columns are the fields of `ontogeny.claims.Claim`; `result.tree` holds them as variables
        over ``claim``, and over ``comparison`` what each was judged against.

        Examples
        --------
        >>> loss = xr.Dataset({"loss": ("step", [8.3, 4.2])}, {"step": [0, 100]})
        >>> list(StudyResult(xr.DataTree.from_dict({"loss": loss})).claims()["kind"])
        []
        """
        return claims_frame(claims_of_result(self.tree))

    def summary(self) -> ResultSummary:
        """Return what the page says first, in sentences; ``.data`` has a line for each row."""
        from ...report.notebook.summary import ResultSummary

        return ResultSummary(self._by_name)

    def texts(self, step: int | None = None) -> ResultTexts:
        """Return two texts with the step from which each token is predicted, and what it writes.

        Parameters
        ----------
        step
            At which it writes: the last one that was read until then. None means the last.

        Raises
        ------
        ArgumentError
            If the result has neither, or is not read that early.
        """
        from ...report.notebook.texts import ResultTexts

        return ResultTexts(self._by_name, step)

    def chart(self, view: str | None = None) -> ResultChart:
        """Return the developmental chart: what changed when, for the whole run.

        Parameters
        ----------
        view
            ``"cells"``: how far each row has gone at every step. ``"intervals"``: when each was
            half-way, with its interval. None means the first that the result has.

        Raises
        ------
        ArgumentError
            If the result has no such view.
        """
        from ...report.notebook.figure import ResultChart

        return ResultChart(self._by_name, view)

    def figures(self) -> FigureIndex:
        """Return all figures by their names, such as ``"concepts-ica/procrustes"``."""
        from ...report.notebook.index import FigureIndex

        return FigureIndex(self._by_name)

    def figure(self, name: str, layers: Any = None, steps: Any = None) -> ResultFigure:
        """Return one figure: shown by a notebook, ``.matplotlib()``, ``.data`` and ``.save(path)``.

        Parameters
        ----------
        name
            As in `figures`.
        layers
            Numbers, paths or short names of layers, one or several; a number means every module of
            that depth, a negative one a single path, counted from the end. None means all.
        steps
            Training steps, one or several, or a ``slice`` from one to another with both ends;
            negative numbers count from the end. None means all.

        Raises
        ------
        ArgumentError
            If there is no such figure, it has no such layers or steps, or it cannot be drawn.
        """
        return self.figures().figure(name, layers, steps)

    def report(self, path: str | Path, expect: str | Path | None = None) -> Path:
        """Write the page, one HTML file that opens without a network, and return its path.

        Concepts bear the names that people gave them (``result.concept.label``). The first screen
        says which lines of the file `expect` are not met.
        """
        from ...claims.expectations import read
        from ...report import write

        expected = () if expect is None else read(Path(expect))
        return write(self._by_name, Path(path), expected=expected)

    @property
    def _by_name(self) -> xr.DataTree:
        """The result with the names that people gave to concepts."""
        return with_labels(self.tree)

    def __getitem__(self, name: str) -> Any:
        try:
            return self.tree[name]
        except KeyError:
            names = f"there are {listed(list(self))}.{suggestion(str(name), self)}"
            raise KeyError(f"there is no node {name!r}; {names}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.tree.children)

    def __len__(self) -> int:
        return len(self.tree.children)

    def __repr__(self) -> str:
        lines = text_table(_HEADS, *self._described())
        return "\n".join(
            [f"StudyResult {self._title!r}, {self._standing}", *lines, _ASK]
        )

    def _repr_html_(self) -> str:
        table = html_table(_HEADS, self._described(), _ASK)
        return html_block(self._title, self._standing, table)

    @property
    def _title(self) -> str:
        return str(self.attrs.get("title") or "Untitled study")

    @property
    def _standing(self) -> str:
        """How much was computed, in one line."""
        return self.problems().standing

    def _described(self) -> list[tuple[str, ...]]:
        """Return a line for each node, from what is known without reading its numbers."""
        order = [str(name) for name in _attribute(self.attrs, "nodes", list)]
        names = dict.fromkeys(
            [*(name for name in order if name in self.children), *self]
        )
        return [_line(name, self.children[name]) for name in names]

    # That of mappings would compare arrays, which has no single answer.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _line(name: str, node: xr.DataTree) -> tuple[str, ...]:
    title = _attribute(node.attrs, "section", dict).get("title", "")
    sizes = ", ".join(f"{dim} {node.sizes[dim]}" for dim in _SIZES if dim in node.sizes)
    figures = len(_attribute(node.attrs, "figures", list))
    return name, str(title), "failed" if "failed" in node.attrs else sizes, str(figures)


def _attribute(attrs: Mapping[Any, Any], name: str, kind: type) -> Any:
    """Return what an attribute holds as JSON, empty if nothing of this kind: it may be anyone's."""
    try:
        value = json.loads(attrs.get(name) or "null")
    except (TypeError, ValueError):
        value = None
    return value if isinstance(value, kind) else kind()
