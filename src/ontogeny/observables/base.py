"""What an observable is; `readings` has what it is given.

An observable is a frozen dataclass: its fields are its arguments, and they enter the fingerprint of
every cell. So does all code that its cells run.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..arrays import is_torch_array, to_numpy
from ..claims import Claim
from ..errors import NonFiniteError, check_choice, check_whole
from ..figures import Figure, Section
from ..needs import Need, Series, Weights
from ..own_code import reason
from ..quantities import Quantity, expanded, of_names
from ..scratch import let_go
from ..summary import NumberTable
from ..summary.summarise import summarise
from ..trees import Nodes
from ..words.names import Names
from .arguments import as_fields
from .catalogued import Catalogued
from .layer_stack import layer_stack
from .readings import Run


@dataclass(frozen=True)
class Observable(Catalogued, abc.ABC):
    """A function of one checkpoint, sometimes relative to a reference checkpoint.

    Subclass it as a frozen dataclass, set ``kind``, and give ``needs`` and ``observe``. When one
    is made, its fields are checked against their annotations, and lists become tuples; then
    ``check`` refuses what is out of range.

    Parameters
    ----------
    label
        Name of the node, where a study holds this kind twice.

    Attributes
    ----------
    uses_noise
        Whether it measures noise floors, and so asks for ``reading.noise``.
    from_first
        Whether what it observes of a weight block at a step follows from that step and the first
        one alone. Then new checkpoints are read alone, and what stands at the others stays.
    depends_on
        Names of nodes that `summarise` also reads.
    minima
        Smallest value of each argument that is a whole number; None passes as well.
    choices
        What each argument that is a name may be; None passes as well.
    quantities
        What it measures: intervals, floors, bands, rows, words and figures follow from these.
        A property where they depend on the arguments.
    state_variables
        Variables of the state that stand in the result; `summarise` finds them beside the cells.
    compared
        Further variables, of cells or from `derive`: ``x_control`` holds them in control runs.
    charts
        Figures that no argument changes; each stands where the data hold the first of its variables.
    tables
        Tables of numbers that do not depend on the step; they stand after the other figures.
    section
        Heading and margin notes of its node; made of the quantities by default.
    role
        What the rows of its node mean, see `ontogeny.figures.base`.
    summary_only
        Arguments that only the summary uses: changing one makes no cell stale.
    variables
        What its other variables are, and their units: ``{name: (long_name, units)}``.
        A name that is given no words here, or by `summarise`, stands in the result without them;
        ``x_low``, ``x_high``, ``x_stderr`` and the rows of the chart need none.

    Examples
    --------
    >>> from ontogeny import needs
    >>> @dataclass(frozen=True)
    ... class ActivationNorm(Observable):
    ...     layers: str = "mlp"
    ...     kind = "activation-norm"
    ...     variables = {"norm": ("mean norm of the activations", "activation units")}
    ...
    ...     def needs(self):
    ...         return [needs.Activations(self.layers)]
    ...
    ...     def observe(self, reading, state):
    ...         values = reading[self.needs()[0]]
    ...         return by_layer(values, lambda path, a: {"norm": a.norm(dim=1).mean()})
    >>> ActivationNorm().arguments()
    {'label': None, 'layers': 'mlp'}
    """

    label: str | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = ""
    uses_noise: ClassVar[bool] = False
    from_first: ClassVar[bool] = False
    depends_on: ClassVar[tuple[str, ...]] = ()
    minima: ClassVar[Mapping[str, int]] = {}
    choices: ClassVar[Mapping[str, Iterable[str]]] = {}
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    state_variables: ClassVar[tuple[str, ...]] = ()
    compared: ClassVar[tuple[str, ...]] = ()
    charts: ClassVar[Sequence[Figure]] = ()
    tables: ClassVar[Sequence[NumberTable]] = ()
    section: ClassVar[Section | None] = None
    role: ClassVar[str] = "development"
    summary_only: ClassVar[tuple[str, ...]] = ()
    variables: ClassVar[Names] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep `label` a keyword where a class declares it again: it would come first otherwise."""
        super().__init_subclass__(**options)
        if inspect.get_annotations(cls).get("label"):
            del cls.__annotations__["label"]
            if "label" in cls.__dict__:
                del cls.label

    def __post_init__(self) -> None:
        values = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init
        }
        for name, value in as_fields(type(self), values).items():
            object.__setattr__(self, name, value)
        for name, minimum in self.minima.items():
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), minimum)
        for name, allowed in self.choices.items():
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), allowed)
        self.check()
        self.needs()  # refuses patterns, tokens and the like that no need can have

    def check(self) -> None:
        """Refuse arguments out of range, with an `ArgumentError`; their kinds are right by then."""

    @property
    def name(self) -> str:
        """Name of the node in the result; two observables of a study must differ in it."""
        return self.label or self.kind

    def arguments(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return dataclasses.asdict(self)

    def files_read(self) -> Sequence[str | Path]:
        """Return the files that it reads: its cells are computed again when one of them changes.

        By default those that its arguments name, with a folder or an ending.
        """
        return [value for value in _leaves(self.arguments()) if is_file(value)]

    @abc.abstractmethod
    def needs(self) -> Sequence[Need]:
        """Return what is read of each checkpoint."""

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Refuse a study's input sets that it cannot use; called when the study is planned.

        Raise `ArgumentError`: what is found here costs no forward pass.
        """

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse other observables of a study that it cannot be computed from.

        Called with all observables by name when the study is made; raise `ArgumentError`.
        """

    @property
    def prepares_over_steps(self) -> bool:
        """Whether `prepare` reads every step and not the reference alone; a plan prices it."""
        return False

    def bytes_to_prepare(self, rows: int, features: int, steps: int) -> int:
        """Return the bytes that `prepare` holds beside one checkpoint's values; a plan prices it.

        Of `rows` rows, `features` features in each layer on average, and a study of `steps` steps.
        """
        return 0

    @property
    def state_of(self) -> str:
        """Name of another node whose state `observe` is given, as its own; empty: none."""
        return ""

    @property
    def prepares(self) -> bool:
        """Whether it has a state: those that `prepare` one, unless an argument says otherwise."""
        return type(self).prepare is not Observable.prepare

    def prepare(self, run: Run) -> xr.Dataset | None:
        """Return a state computed once, from any checkpoints, before the others are observed."""
        return None

    @abc.abstractmethod
    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return what is observed at one `Reading`, `BlockReading` or `SeriesReading`."""

    def summarise(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the stacked series with what follows from all steps, and its figures.

        What follows from the declared quantities is done here; `derive`, `figures` and `words` add
        what is special about an observable.
        """
        data = self.derive(data, nodes)
        return summarise(
            data,
            self.quantities,
            (self.section or _section(self)).filled(self.arguments()),
            figures=lambda derived: [
                *self.figures(derived, nodes),
                *(table.figure(derived) for table in self.tables),
            ],
            words=lambda derived: self.words(derived, nodes),
            role=self.role,
            names=self.names(),
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the stacked cells with variables that take several steps or nodes."""
        return data

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the figures that stand after those of the quantities: by default the `charts`."""
        return [chart for chart in self.charts if next(chart.variables()) in data]

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return sentences on what no claim can say (`claims`); the library has none of its own."""
        return ()

    @staticmethod
    def claims_of_runs(runs: Mapping[str, xr.DataTree]) -> Sequence[Claim]:
        """Return what a comparison says of the results of several runs together.

        It is asked for once, where several kinds inherit it.
        """
        return ()

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return what it says beside what is claimed of its rows (`ontogeny.claims`).

        `name` is that of the node, `data` the judged node.
        """
        return ()

    def names(self) -> Names:
        """Return title and units of all variables that it declares."""
        names = dict(self.variables)
        for table in self.tables:
            names |= table.names()
        return names | of_names(self.quantities)

    @property
    def stem(self) -> str:
        """What tells it from another of its kind in a study, such as the name of its one file."""
        return ""

    @property
    def over_blocks(self) -> bool:
        """Whether it is mapped over weight blocks rather than over steps."""
        return any(isinstance(need, Weights) for need in self.needs())

    @property
    def source(self) -> Series | None:
        """The series that it is mapped over, layer by layer, where it needs one."""
        return next((need for need in self.needs() if isinstance(need, Series)), None)

    @property
    def nodes_read(self) -> tuple[str, ...]:
        """Names of the nodes of its study whose summaries or series it reads."""
        return (*self.depends_on, *([] if self.source is None else [self.source.node]))


def by_layer(
    values: Mapping[str, Any], function: Callable[[str, Any], Mapping[str, Any]]
) -> xr.Dataset:
    """Apply `function(path, value)` to every layer and stack the results along ``layer``.

    `function` returns `Measured`, numbers, ``(dims, array)`` pairs or DataArrays by name. A layer
    in which it raises a numerical or argument error gets NaN and the reason in ``status(layer)``;
    the others are kept. NaN or infinity in a result counts as such an error.

    Examples
    --------
    >>> result = by_layer({"a": 2.0, "b": 0.0}, lambda path, v: {"inverse": 1 / v})
    >>> result.inverse.values.tolist(), str(result.status.values[1])
    ([0.5, nan], 'failed: ZeroDivisionError: float division by zero')
    """
    pieces: list[xr.Dataset] = []
    status: list[str] = []
    for path, value in values.items():
        try:
            pieces.append(_idle(dataset(function(path, value), f" in {path}")))
            status.append("done")
        except (
            ValueError,
            ArithmeticError,
            np.linalg.LinAlgError,
            RuntimeError,
        ) as error:
            pieces.append(xr.Dataset())
            status.append(f"failed: {reason(error)}")
    stacked = layer_stack([*values], pieces)
    return stacked.assign(status=("layer", np.array(status, dtype=object)))


def _idle(piece: xr.Dataset) -> xr.Dataset:
    """Take the numbers of a layer that lie in files out of memory, until they are stacked."""
    for variable in piece.variables.values():
        let_go(variable.values)
    return piece


def dataset(values: Mapping[str, Any], where: str = "") -> xr.Dataset:
    """Return measurements and plain values by name as the variables of a cell.

    Raises
    ------
    NonFiniteError
        If one is NaN or infinite.

    Examples
    --------
    >>> from ontogeny.quantities import Measured
    >>> sorted(dataset({"norm": Measured(2.0, stderr=0.1)}).data_vars)
    ['norm', 'norm_stderr']
    """
    variables = {}
    for name, value in expanded(values):
        if isinstance(value, xr.DataArray):
            array = value
        else:
            dims, numbers = value if isinstance(value, tuple) else ((), value)
            array = xr.DataArray(_numbers(numbers), dims=dims)
        if array.dtype.kind == "f" and not np.isfinite(array.values).all():
            raise NonFiniteError(f"{name} is not finite{where}")
        variables[name] = array
    return xr.Dataset(variables)


def _numbers(value: Any) -> np.ndarray:
    """Return numbers of the host, also of lists of tensors of a device."""
    several = isinstance(value, list | tuple) and any(map(is_torch_array, value))
    return np.array([*map(to_numpy, value)]) if several else to_numpy(value)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values within tables and lists."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def is_file(value: Any) -> bool:
    """Return whether a value names a file that is there, with a folder or an ending."""
    # A pattern such as "mlp" is no file, whatever lies in the folder that a study is run in.
    if not isinstance(value, str | Path) or not (
        Path(value).suffix or os.sep in str(value)
    ):
        return False
    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False


def _section(observable: Observable) -> Section:
    """Return the section of an observable that declares quantities and no words of its own."""
    first = next(iter(observable.quantities), None)
    title = observable.name.replace("-", " ").capitalize()
    if first is None:
        return Section(title, "")
    labels = chain.from_iterable(q.nulls.values() for q in observable.quantities)
    return Section(
        title,
        "; ".join(q.heading_of() for q in observable.quantities) + ".",
        symbol=first.symbol,
        null=", ".join(dict.fromkeys(labels)),
        source=first.source,
    )
