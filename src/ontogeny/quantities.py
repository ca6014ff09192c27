"""What an observable measures, declared as data; `ontogeny.summary` derives the rest.

A quantity ``x`` is stored under a fixed schema of variables. The cells hold what was measured:

=================  =============================================================================
``x``              the value
``x_of_text``      its value on each text alone, with ``x_weights`` if texts do not count equally;
                   texts that repeat or share a document are one, in the place of the first
``x_stderr``       its standard error, where it follows in closed form or from a resampling
``x_replicates``   the same measurement on resampled texts or with other seeds, along ``refit``
``x_<null>``       what a null gives, usually several draws
``x_control``      what the study's control runs give, along ``run``
=================  =============================================================================

The summary adds ``x_low`` and ``x_high``, the 95 % interval; ``x_floor``, the noise of a change
since the first step; ``x_<null>_low`` and ``x_<null>_high``, the band of a null; and the rows of
the developmental chart. What `Observable.derive` gives of these itself stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import to_numpy
from .errors import ArgumentError, check_choice
from .units import Units

__all__ = ["Measured", "Quantity"]

# The null that every quantity of a study with control runs has, along ``run``; not declared.
CONTROL = "control"
# Between the parts of a row's label.
_APART = " · "


@dataclass(frozen=True)
class Quantity:
    """One number that an observable gives at every step, and all that is said of it.

    Parameters
    ----------
    name
        Variable of the result.
    title
        What it is, in lower case, as axes and headings write it: ``"participation ratio"``.
    units
        Units of the value; ``"1"`` of ratios.
    symbol
        The paper's formula, as plain Unicode text.
    source
        Paper, equation or definition, where it differs from the section's.
    rows
        Label of its rows in the developmental chart, with the dimensions of the value in braces:
        ``"{layer} · dimensions"``. Empty: it makes no rows.
    several
        Whether the title is a plural, so that sentences say "are".
    at
        Labels of further dimensions at which rows are judged:
        ``{"distance": "procrustes"}``.
    noise
        ``"measured"``: the cells say what the noise is, by one of the ways above; where they do
        not, it is unknown and no verdict is given. ``"exact"``: nothing is sampled, and only
        rounding is noise.
    unit
        What the noise is resampled over, in the plural: ``"texts"``.
    relative_to
        ``"reference"``: a distance to the reference step, which is 0 there by construction; that
        step is left out of the verdict. ``"last"``: a distance to the last step. Empty: a value of
        its own.
    compares
        What a value relative to another step is: ``"distance"`` or ``"similarity"``.
    settled_by
        Name of the null below whose upper end a distance to the reference has settled.
    minimum
        Smallest possible value, at which intervals are cut.
    better
        ``"lower"`` or ``"higher"`` of what measures performance on held-out texts or labels: a
        loss, an accuracy. Only rows of such a quantity can be called learned.
    beats
        Name of the null that performance must surely be better than to be called learned, such as
        the share of the most frequent label.
    nulls
        Names of the nulls, and what a legend calls them: ``{"null": "isotropic activations"}``.
        A null without draws of its own is a line.
    dashed
        A line that is no null and is drawn dashed beside the value, where it was measured: the end
        of its variable's name, and what the legend calls it.
    figure
        Whether it is drawn as curves over the steps.
    heading, caption
        Of the figure; the heading is the title by default.
    shade
        What the shade of its figure is, where not 1.96 standard errors: ``"bootstrap over pairs"``.
    series, facet
        Dimensions of its lines and panels; by default ``layer``, and what is left beside it. An
        empty text means a single line.
    select
        Labels at which a figure shows further dimensions.
    per
        A dimension of which every label gets a figure of its own; ``{label}`` in the heading
        stands for it.
    labels
        What the labels of `per` are called in headings, where not as they are:
        ``{"kl": "KL divergence"}``.
    y_scale
        ``"linear"`` or ``"log"``.
    optional
        Whether some cells may do without it, as where an argument asks for it. Of a quantity that
        is not optional and that no cell holds, the node says so.
    share, share_of
        A variable with the value as a share, drawn by default, and of what it is a share.

    Examples
    --------
    >>> Quantity("norm", "norm of the activations", "activation units").heading_of()
    'Norm of the activations'
    """

    name: str
    title: str
    units: str = "1"
    symbol: str = ""
    source: str = ""
    rows: str = ""
    several: bool = False
    at: Mapping[str, Any] = field(default_factory=dict)
    noise: str = "measured"
    unit: str = "texts"
    relative_to: str = ""
    compares: str = "distance"
    settled_by: str = ""
    minimum: float | None = None
    better: str = ""
    beats: str = ""
    nulls: Mapping[str, str] = field(default_factory=dict)
    dashed: Mapping[str, str] = field(default_factory=dict)
    figure: bool = True
    heading: str = ""
    caption: str = ""
    shade: str = ""
    series: str | None = None
    facet: str | None = None
    select: Mapping[str, Any] = field(default_factory=dict)
    per: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    y_scale: str = "linear"
    optional: bool = False
    share: str | None = None
    share_of: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ArgumentError(
                f"name must be the name of a variable; got {self.name!r}."
            )
        check_choice("noise", self.noise, ("measured", "exact"))
        check_choice("relative_to", self.relative_to, ("", "reference", "last"))
        check_choice("compares", self.compares, ("distance", "similarity"))
        check_choice("better", self.better, ("", "lower", "higher"))
        check_choice("y_scale", self.y_scale, ("linear", "log"))
        if self.settled_by and self.settled_by not in self.nulls:
            raise ArgumentError(
                f"settled_by of {self.name!r} must name one of its nulls; got {self.settled_by!r}."
            )

    def row_words(self, at: Mapping[str, Any]) -> tuple[str, str, str]:
        """Return the label of a row, the same without its layer, and what of it all rows share.

        Examples
        --------
        >>> rows = "{layer} · {kind} · distance moved"
        >>> Quantity("x", "x", rows=rows).row_words({"layer": "h.0", "kind": "q"})
        ('h.0 · q · distance moved', 'q · distance moved', 'distance moved')
        """
        parts = self.rows.split(_APART)
        names = [part.format(**at) for part in parts if part != "{layer}"]
        label = _APART.join(part.format(**at) for part in parts)
        return label, _APART.join(names), names[-1] if names else ""

    def heading_of(self, label: str = "") -> str:
        """Return the heading of its figure, of one label where it has one for each."""
        name = self.labels.get(label, label.replace("-", " "))
        text = (self.heading or self.title).replace("{label}", name)
        return text[:1].upper() + text[1:]

    def names(self) -> dict[str, tuple[str, str]]:
        """Return titles and units of the value and its nulls; of what belongs to them they follow.

        Examples
        --------
        >>> Quantity("norm", "mean norm", nulls={"null": "noise"}).names()["norm_null"]
        ('mean norm: noise', '1')
        """
        nulls = {f"_{null}": f": {label}" for null, label in self.nulls.items()}
        return {
            f"{self.name}{end}": (f"{self.title}{words}", self.units)
            for end, words in {"": "", **nulls}.items()
        }

    def stored(self) -> list[str]:
        """Return the names of the variables that cells may hold of it."""
        parts = ("", "_of_text", "_weights", "_stderr", "_replicates")
        return [
            f"{self.name}{end}"
            for end in (*parts, *(f"_{null}" for null in self.nulls))
        ]


@dataclass(frozen=True, eq=False)
class Measured:
    """One quantity at one step: its value, its noise and the draws of its nulls.

    Each part is a number, a ``(dims, array)`` pair or a DataArray. What is left out was not
    measured, which the summary reads as unknown, never as zero.

    Parameters
    ----------
    value
        The value.
    stderr
        Its standard error; over the dimensions of the value.
    of_text, weights
        Its value on each text, along a further dimension ``text``, and the weights (text,) with
        which the texts make up the value; of texts that are one unit, see `over_texts`.
    replicates
        The same measurement repeated, along a further dimension ``refit`` whose labels say how:
        ``"tokens 1"``, ``"seed 2"``. Replicates of one kind share the word before the number.
    nulls
        Draws by the name of the null, as the quantity declares them.

    Examples
    --------
    >>> sorted(
    ...     Measured(2.0, stderr=0.1, nulls={"null": ("draw", [1.0, 1.1])}).variables(
    ...         "norm"
    ...     )
    ... )
    ['norm', 'norm_null', 'norm_stderr']
    """

    value: Any
    stderr: Any = None
    of_text: Any = None
    weights: Any = None
    replicates: Any = None
    nulls: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def mean(
        cls, values: ArrayLike, texts: ArrayLike, nulls: Mapping[str, Any] | None = None
    ) -> Measured:
        """Return the mean of values (n,), with what each text says, so that noise is over texts.

        Parameters
        ----------
        values
            (n,), one for each token or other row.
        texts
            (n,): the text that each row belongs to, as `Reading.units` gives it.
        nulls
            As above.

        Raises
        ------
        ArgumentError
            If the shapes differ, or there is no row.

        Examples
        --------
        >>> Measured.mean([1.0, 3.0, 5.0], texts=[0, 0, 7]).of_text
        ('text', array([2., 5.]))
        """
        rows = np.asarray(to_numpy(values), dtype=np.float64)
        of_row = to_numpy(texts)
        if rows.ndim != 1 or not len(rows) or rows.shape != of_row.shape:
            raise ArgumentError(
                "values and texts must hold one number for each row, and at least one; got shapes "
                f"{rows.shape} and {of_row.shape}."
            )
        _, text = np.unique(of_row, return_inverse=True)
        counts = np.bincount(text)
        return cls(
            float(rows.mean()),
            of_text=("text", np.bincount(text, weights=rows) / counts),
            weights=("text", counts),
            nulls=nulls or {},
        )

    @classmethod
    def over_texts(
        cls,
        value: Any,
        of_text: ArrayLike,
        weights: ArrayLike,
        units: ArrayLike,
        dims: Sequence[str] = ("text",),
        nulls: Mapping[str, Any] | None = None,
    ) -> Measured:
        """Return a mean over texts; texts of one unit say one thing together, their mean.

        Parameters
        ----------
        value
            The weighted mean.
        of_text
            Its value on each text, over `dims`, of which ``text`` is the last.
        weights
            (texts,) the weight of each text.
        units
            (texts,) the unit of each text, as `Reading.units` gives it.
        nulls
            As above.

        Examples
        --------
        >>> loss = Measured.over_texts(3.0, [1.0, 3.0, 5.0], [1, 1, 1], units=[0, 0, 2])
        >>> loss.of_text[1], loss.weights[1]
        (array([2., 5.]), array([2., 1.]))
        """
        of_row = Units(np.asarray(units))
        if not of_row.distinct:
            of_text, weights = of_row.means(of_text, weights)
        return cls(
            value, None, (tuple(dims), of_text), ("text", weights), nulls=nulls or {}
        )

    @classmethod
    def over_tokens(
        cls,
        dim: str,
        table: np.ndarray,
        text: np.ndarray,
        units: np.ndarray,
        nulls: Mapping[str, Any] | None = None,
    ) -> Measured:
        """Return means over tokens along `dim`; what each text says makes the noise.

        Parameters
        ----------
        dim
            Name of the first dimension of `table`.
        table
            (rows, tokens) values.
        text
            (tokens,) the text of each token.
        units, nulls
            As of `over_texts`.

        Examples
        --------
        >>> table, text = np.array([[1.0, 3.0, 5.0]]), np.array([0, 0, 1])
        >>> losses = Measured.over_tokens("depth", table, text, np.array([0, 1]))
        >>> losses.value, losses.of_text[1], losses.weights[1]
        (('depth', array([3.])), array([[2., 5.]]), array([2, 1]))
        """
        number = np.bincount(text, minlength=len(units))
        sums = np.stack([np.bincount(text, row, len(units)) for row in table])
        value = (dim, table.mean(axis=1))
        of_text = sums / np.maximum(number, 1)
        return cls.over_texts(value, of_text, number, units, (dim, "text"), nulls)

    def variables(self, name: str) -> dict[str, Any]:
        """Return the variables of the cell by their names."""
        parts = {
            "": self.value,
            "_stderr": self.stderr,
            "_of_text": self.of_text,
            "_weights": self.weights,
            "_replicates": self.replicates,
            **{f"_{null}": draws for null, draws in self.nulls.items()},
        }
        return {f"{name}{end}": part for end, part in parts.items() if part is not None}


def expanded(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give each variable that a mapping of measurements and plain values holds."""
    for name, value in variables.items():
        if isinstance(value, Measured):
            yield from value.variables(name).items()
        else:
            yield name, value


def of_names(quantities: Sequence[Quantity]) -> dict[str, tuple[str, str]]:
    """Return title and units of every variable of some quantities."""
    names: dict[str, tuple[str, str]] = {}
    for quantity in quantities:
        names |= quantity.names()
    return names
