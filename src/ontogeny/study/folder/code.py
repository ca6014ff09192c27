"""Which code and which libraries a cell follows from, as its fingerprint names them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

from ...capture.objectives import GROUP as LOSSES
from ...code.kept import Kept
from ...code.modules import Modules, digest_of
from ...code.reach import Reach, digests
from ...code_files import LIBRARY
from ...errors import StoreError
from ...needs import Need
from ...observables import Observable
from ...observables.own import OfFunction
from ...trajectory.weights.transformers_models import GROUP as MODELS

_GRAPH = "ontogeny.study.cells.graph"
_BLOCKS = "ontogeny.study.cells.block_cells"
# What each kind of cell runs. Which format a checkpoint has is found out where it is opened, so
# all of them count.
READING = (
    "ontogeny.study.cells.models:read_once",
    "ontogeny.trajectory.weights.formats",
)
KINDS: Mapping[str, Sequence[str]] = {
    "ReferenceCell": (f"{_GRAPH}:ReferenceCell.compute", *READING),
    "StateCell": (f"{_GRAPH}:StateCell.compute", *READING),
    "StepCell": (f"{_GRAPH}:StepCell.compute", *READING),
    "BlockCell": (
        f"{_BLOCKS}:BlockCell.compute",
        "ontogeny.trajectory.weights.formats",
    ),
    "LayerCell": (f"{_GRAPH}:LayerCell.compute",),
    "SummaryCell": (f"{_GRAPH}:SummaryCell.compute",),
}
# Of these classes it is known which are in use: those of the study's own observables.
_KNOWN = (
    "ontogeny.observables.base:Observable",
    "ontogeny.needs.base:Need",
    f"{_GRAPH}:StudyCell",
    f"{_GRAPH}:ObservedCell",
)
# What fetches files changes none: a fingerprint has their digests.
_FETCHING = ("ontogeny.trajectory.hub.revision:HubRevision",)
# A summary is made of cells. It is given what holds the model, and reads nothing of it.
_OF_MODELS = (
    f"{_GRAPH}:Context",
    "ontogeny.study.cells.models:Job",
    "ontogeny.trajectory.trajectory:Trajectory",
    "ontogeny.trajectory.checkpoint:Checkpoint",
    "ontogeny.trajectory.weights.files:Weights",
)
# They carry bytes and compute no number; xarray, of which a version comes every month, joins what
# NumPy computes, and counts where it reshapes whole curves: in summaries.
_CARRIERS = frozenset(
    {"filelock", "huggingface_hub", "numcodecs", "safetensors", "threadpoolctl"}
)
_made: dict[Any, dict[str, Any]] = {}


def code_of_cell(
    kind: str, observable: Observable | None, needs: Sequence[Need], model: str = ""
) -> dict[str, Any]:
    """Return the part of a fingerprint that says which code and which libraries a cell runs.

    Parameters
    ----------
    kind
        The class of the cell, one of `KINDS`.
    observable
        What it is of; None for a reference.
    needs
        What it reads.
    model
        The name of the model's class, which an installed package may bring.

    Returns
    -------
    dict
        As `code_of` gives it.

    Examples
    --------
    >>> from ontogeny.observables import make
    >>> loss = make("loss")
    >>> sorted(code_of_cell("StepCell", loss, loss.needs()))
    ['code', 'libraries']
    """
    things: list[Any] = []
    for need in needs:
        things += [type(need), type(need.at_step)]
    if observable is not None:
        things.append(type(observable))
    if isinstance(observable, OfFunction):
        things.append(observable.function)
    if kind == "SummaryCell":
        return code_of(KINDS[kind], things, unused=_OF_MODELS)
    entries = _entries(needs, model) if kind != "LayerCell" else ()
    return code_of(KINDS[kind], things, entries, without=("xarray",))


def code_of(
    roots: Sequence[str],
    things: Sequence[Any] = (),
    entries: Sequence[EntryPoint] = (),
    *,
    unused: Sequence[str] = _FETCHING,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Return which code and which libraries are reached from somewhere.

    Parameters
    ----------
    roots
        Names as ``"module:name"``, and modules of which all counts.
    things
        Classes and functions.
    entries
        What installed packages bring.
    unused
        Names of classes of which no object is used.
    without
        Libraries that do not count.

    Returns
    -------
    dict
        ``code`` has a digest for each room of this library, and each package or file of others.
        ``libraries`` has the first two numbers of versions: a third changes no meaning.
    """
    things = [*dict.fromkeys(things)]
    key = (*roots, *things, *(entry.value for entry in entries))
    if key not in _made:
        found = _found(roots, things, [entry.value for entry in entries], unused)
        names = {*found["libraries"]} - _CARRIERS - {*without}
        versions = {name: _version(name) for name in map(_distribution, sorted(names))}
        libraries = {name: text for name, text in versions.items() if text}
        _made[key] = {"code": found["code"], "libraries": libraries}
    return _made[key]


def _found(
    roots: Sequence[str],
    things: Sequence[Any],
    entries: Sequence[str],
    unused: Sequence[str],
) -> dict[str, Any]:
    """Return the digests of what is reached, and the libraries that it names.

    It is kept for other processes. A user's files are read to tell whether it is still so.

    Raises
    ------
    StoreError
        If a file of it was edited while this process was running, as by an update meanwhile.
    """
    tops = {
        place.partition(".")[0] for place in [*(t.__module__ for t in things), *entries]
    }
    modules = _modules(tuple(sorted(tops - {*LIBRARY, "__main__", "__mp_main__"})))
    named = [
        *roots,
        *(f"{thing.__module__}:{thing.__qualname__}" for thing in things),
        *entries,
    ]
    key = f"{named} {modules.content}"
    kept = None if _is_edited(modules) else _kept.get(key)
    if kept and all(digest_of(path) == digest for path, digest in kept["own"].items()):
        return dict(kept)
    # A user's file may be another one than when it was read before.
    read = cache(_kept.source)
    reach = _begun(tuple(roots), tuple(unused)).copy(
        modules, lambda path: _read(path) if modules.package(path) else read(path)
    )
    reach.visit(*things, *entries)
    if edited := modules.edited(reach.files):
        raise StoreError(
            f"{edited[0]} was edited after this process had imported ontogeny: what would run is "
            "not what the file says. Start Python again."
        )
    outside = {
        name.partition(".")[0] for name in reach.outside
    } - sys.stdlib_module_names
    own = {path: digest_of(path) for path in reach.files if not modules.package(path)}
    found = {
        "code": digests(reach, _room_of(modules)),
        "libraries": sorted(outside),
        "own": own,
    }
    if "" not in own.values():  # a line of a notebook has no file
        _kept.put(key, found)
    return found


@cache
def _is_edited(modules: Modules) -> bool:
    """Return whether files were edited before their digest was first asked for."""
    return bool(modules.edited())


def library_code() -> str:
    """Return a digest of all files of this library, and of the papers' where they are installed."""
    return _modules(()).content


def is_edited() -> bool:
    """Return whether any file of this library was written after this process had begun."""
    return bool(_modules(()).edited(_modules(())._files))


_kept = Kept()
_read = cache(_kept.source)  # packages stay as they were when they were imported


@cache
def _modules(packages: tuple[str, ...]) -> Modules:
    return Modules(packages)


@cache
def _begun(roots: Sequence[str], unused: Sequence[str]) -> Reach:
    """Return what is reached whatever the observable is: it takes most of the time."""
    reach = Reach(_modules(()), _read, _KNOWN, unused)
    reach.visit(*roots)
    return reach


def _entries(needs: Sequence[Need], model: str) -> list[EntryPoint]:
    """Return what installed packages bring to a cell: a loss that a need names, a model's class."""
    losses = {getattr(need.at_step, "loss", None) for need in needs}
    entries: list[EntryPoint] = []
    for name in sorted(filter(None, losses)):
        entries += _installed(LOSSES, name)
    if model:
        entries += _installed(MODELS, model)
    return entries


@cache
def _installed(group: str, name: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group, name=name))


def _room_of(modules: Modules) -> Callable[[str], str]:
    """Return the function that names the part of the code a file is in.

    Of this library it is the folder, or the feature's; of others the package.
    """

    @cache
    def room(path: str) -> str:
        top, *inner = modules.name(path).split(".")
        if top not in LIBRARY:
            return top
        depth = 2 if inner[:1] == ["features"] else 1
        return (
            ".".join(inner[:depth])
            if top == LIBRARY[0]
            else ".".join([top, *inner[:1]])
        )

    return room


def _distribution(name: str) -> str:
    """Return under which name a package is installed that is imported as `name`."""
    return {"sklearn": "scikit-learn"}.get(name, name)


@cache
def _version(name: str) -> str:
    """Return the first two numbers of a library's version; empty if none is installed."""
    with suppress(PackageNotFoundError):
        return ".".join(version(name).split(".")[:2])
    return str(getattr(sys.modules.get(name), "__version__", ""))
