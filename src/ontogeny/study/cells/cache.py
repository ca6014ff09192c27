"""Whether a stored cell is what would be computed today, and the digests that tell it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from ... import activity
from ...errors import CheckpointError, StoreError
from ...store import DROPPED, Cell, difference, plain, read_cell
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.weights.digests import Seen, remember, seen_of
from ...trajectory.weights.digests import combine as combined
from ...trajectory.weights.files import Stamp, WeightFiles, stamp_of
from ...whole_files import write_json
from ..folder.claims import held
from ..folder.layout import digests_path
from .environment import Environment, environment_of

EXTENDED = "extended"  # of a cell over all steps of which only new ones are to be read


class Checked(NamedTuple):
    """What is stored of a cell, and why it is not done; if it is, where it was computed."""

    outcome: str
    why: tuple[str, ...] = ()
    environment: Environment = MappingProxyType({})


def check_cache(path: Path | None, fingerprint: Mapping[str, Any]) -> Checked:
    """Return the outcome of what is stored at `path`, and why.

    ``"done"``, ``"new"``, ``"stale"`` (it is of something else, or damaged), ``"retry"`` (it was
    missing or had failed) or ``"dropped"`` (it stands without its numbers).

    Raises
    ------
    StoreError
        If a folder is in its place, which no cell could replace.
    """
    if path is None or not path.exists():
        return Checked("new")
    if path.is_dir():
        raise StoreError(
            f"{path} is a folder where a cell belongs. Move it away and run again."
        )
    try:
        cell = read_verified(path)
    except StoreError as error:
        return Checked("stale", (str(error),))
    if changed := difference(cell.fingerprint, plain(fingerprint)):
        return Checked("stale", tuple(changed))
    if cell.status == DROPPED:
        return Checked(DROPPED, (), environment_of(cell.provenance))
    # A cell can be done although some of its layers or steps failed: these are tried again.
    if cell.status != "done" or _failed_layers(cell.data):
        return Checked("retry", (cell.status,))
    return Checked("done", (), environment_of(cell.provenance))


def _failed_layers(data: Any) -> bool:
    status = data.get("status")
    return status is not None and bool((status != "done").any())


_verified: dict[Path, Stamp] = {}  # the files that this process has found whole


def read_verified(path: Path) -> Cell:
    """Read a cell, and compute its checksum once in a process, as long as its file stays.

    A file that has been replaced or written to since is checked again.

    Raises
    ------
    StoreError
        If there is none, or it is damaged.

    Examples
    --------
    >>> import tempfile, xarray
    >>> from ontogeny.store import write_cell
    >>> path = Path(tempfile.mkdtemp()) / "8.safetensors"
    >>> _ = write_cell(path, Cell(xarray.Dataset({"loss": 4.25})))
    >>> read_verified(path).status, read_verified(path).status
    ('done', 'done')
    """
    try:
        stamp = stamp_of(path.stat())
    except OSError as error:
        raise StoreError(f"{path} is not a readable cell: {error}") from error
    cell = read_cell(path, verify=_verified.get(path) != stamp)
    _verified[path] = stamp
    return cell


def combine(digests: Mapping[str, str], names: Iterable[str] | None = None) -> str:
    """Return one digest for the tensors `names` (all by default).

    Examples
    --------
    >>> combine({"a": "1", "b": "2"}, ["a"]) == combine({"a": "1", "b": "3"}, ["a"])
    True
    """
    selection = (
        digests if names is None else {n: digests[n] for n in names if n in digests}
    )
    return combined(selection)


class DigestCache:
    """Tensor digests of checkpoints, remembered in a study folder by the files' stamps.

    Where nothing is `compared` with them, as where no cell is there yet, nothing is hashed. What a
    worker will have `in_hand` is hashed there (see `DigestLater`).
    """

    def __init__(
        self, path: Path | None, compared: bool = True, in_hand: bool = False
    ) -> None:
        self._path = path
        self._compared = compared
        self._in_hand = in_hand
        self._entries = {} if path is None else _stored(path)
        self._new: dict[str, Any] = {}
        self._noted = dict(self._entries)

    def __call__(
        self, checkpoint: Checkpoint, names: Iterable[str] | None = None
    ) -> str:
        """Return one digest of the tensors `names` of a checkpoint, or of all its weights.

        A Hub revision is known by its files' digests, without a download: of all its weights.

        Raises
        ------
        CheckpointError
            If the checkpoint cannot be read.
        """
        return str(settled(self.by_tensor(checkpoint)(names)))

    def by_tensor(
        self, checkpoint: Checkpoint
    ) -> Callable[[Iterable[str] | None], Digest]:
        """Return the function that gives one digest of named tensors, for many questions.

        Raises
        ------
        CheckpointError
            If the checkpoint cannot be read.
        """
        # The Hub lists digests of whole files: so nothing is downloaded to find that all is done.
        if checkpoint.file_digests() is not None:
            whole = checkpoint.fingerprint
            return lambda names: whole
        if self._in_hand and not all(map(self._is_known, checkpoint.sources)):
            return partial(DigestLater, checkpoint)
        return partial(combine, self._tensors(checkpoint))

    def whole(self, checkpoint: Checkpoint) -> str:
        """Return one digest of all weights of a checkpoint, or ``"unreadable"``.

        What was tried and could not be read is part of what a state depends on, too.
        """
        try:
            return self(checkpoint)
        except CheckpointError:
            return "unreadable"

    def _tensors(self, checkpoint: Checkpoint) -> Mapping[str, str]:
        # Hashing six checkpoints of SmolLM2 took a third of planning.
        if not self._compared:
            return {}
        if checkpoint.derived is not None:
            return checkpoint.derived.digests(self._tensors)
        files = checkpoint.weights.on_disk()
        if files is None:
            return checkpoint.digests()
        if not self._is_known(checkpoint):
            entry = _entry(files)
            self._entries[_place(checkpoint)] = entry
            self._new[_place(checkpoint)] = entry
        return _tensors_of(self._entries[_place(checkpoint)])

    def _is_known(self, checkpoint: Checkpoint) -> bool:
        """Return whether the digests of the files as they are now are noted."""
        files = checkpoint.weights.on_disk()
        if checkpoint.source is not None or files is None:
            return True
        entry = self._entries.get(_place(checkpoint))
        return _fits(entry, files) and entry["files"] == _stamp(checkpoint)

    def has_changed(self, checkpoint: Checkpoint) -> bool:
        """Return whether files hold other weights than were noted before this was made."""
        for weights in checkpoint.sources:
            entry = self._noted.get(_place(weights))
            if weights.source is None and _fits(entry, weights.weights.on_disk()):
                try:
                    if self._tensors(weights) != _tensors_of(entry):
                        return True
                except CheckpointError:  # it is gone, which is said where it is read
                    continue
        return False

    def note(self, checkpoint: Checkpoint) -> None:
        """Hash the files of a checkpoint that lie in a folder, unless they are known or damaged.

        What is noted is not read again in this process: neither hashed nor looked through for NaN.
        """
        for source in checkpoint.sources:
            if source.source is not None or source.derived is not None:
                continue  # known by listed files, or by what it is made of
            with suppress(CheckpointError):  # said where it is read
                if (files := source.weights.on_disk()) is not None:
                    self._tensors(source)
                    entry = self._entries[_place(source)]
                    if not _fits(self._noted.get(_place(source)), files):
                        self._noted[_place(source)] = entry
                    remember(files, _seen_in(entry))

    def read_again(self) -> None:
        """Take what others have noted in the file meanwhile."""
        if self._path is not None:
            self._entries |= _stored(self._path)

    def save(self) -> None:
        """Write the digests that are new, beside those that others have written meanwhile."""
        if self._path is not None and self._new:
            write_json(self._path, _stored(self._path) | self._new)
            self._new = {}


@dataclass(frozen=True, eq=False)
class DigestLater:
    """One digest of tensors that nobody has hashed yet: who reads the checkpoint hashes it.

    Of a run that is larger than the memory, the files would be read for it alone.

    Parameters
    ----------
    checkpoint, names
        Of which tensors; None stands for all of them.
    """

    checkpoint: Checkpoint
    names: Iterable[str] | None

    def now(self) -> str:
        """Return the digest, or that the checkpoint cannot be read."""
        try:
            return combine(self.checkpoint.digests(), self.names)
        except CheckpointError as error:
            return f"unreadable: {error}"


Digest: TypeAlias = str | DigestLater


def settled(value: Any) -> Any:
    """Return what a fingerprint holds with the digests that were to come.

    Examples
    --------
    >>> settled({"weights": {"0": "a"}, "threads": 1})
    {'weights': {'0': 'a'}, 'threads': 1}
    """
    if isinstance(value, DigestLater):
        return value.now()
    if isinstance(value, Mapping) and any(
        isinstance(item, DigestLater | Mapping) for item in value.values()
    ):
        return {name: settled(item) for name, item in value.items()}
    return value


def _stored(path: Path) -> dict[str, Any]:
    """Return what is noted in a file. Whatever its damage is, it costs time and never a result."""
    with suppress(Exception):
        entries = json.loads(path.read_text())
        return {
            str(place): entry
            for place, entry in entries.items()
            if entry["tensors"]
            and {type(d) for part in entry["tensors"] for d in part.values()} == {str}
            and isinstance(entry["not_finite"], list)
        }
    return {}


def _entry(files: WeightFiles) -> dict[str, Any]:
    """Return what is noted of files: their stamp, and what is seen of their tensors by file."""
    stamp = _listed(files.stamp())
    seen = seen_of(files)
    return {
        "files": stamp,
        "tensors": [{name: digest for name, digest, _ in part} for part in seen],
        "not_finite": [n for part in seen for n, _, is_finite in part if not is_finite],
    }


def _fits(
    entry: Mapping[str, Any] | None, files: WeightFiles | None
) -> TypeGuard[Mapping[str, Any]]:
    """Return whether an entry has a part for each file; a damaged one is made anew."""
    if entry is None or files is None:
        return False
    return len(entry["tensors"]) == len(files.apart())


def _seen_in(entry: Mapping[str, Any]) -> list[list[Seen]]:
    broken = set(entry["not_finite"])
    return [
        [(name, digest, name not in broken) for name, digest in part.items()]
        for part in entry["tensors"]
    ]


def _tensors_of(entry: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest for part in entry["tensors"] for name, digest in part.items()}


def _stamp(checkpoint: Checkpoint) -> list[Any]:
    files = checkpoint.weights.on_disk()
    return [] if files is None else _listed(files.stamp())


def _listed(stamp: Iterable[Iterable[Any]]) -> list[Any]:
    """Return a stamp as JSON gives it back."""
    return [list(file) for file in stamp]


def hash_once(folder: Path, trajectory: Trajectory) -> None:
    """Hash the weight files of a run, and note the digests in the folder of a study.

    Of several processes that begin at the same time, one hashes and the others wait for it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> hash_once(
    ...     folder, Trajectory.from_models({0: __import__("torch").nn.Linear(2, 2)})
    ... )
    >>> digests_path(folder).exists()  # of models in memory there is nothing to note
    False
    """
    with held(folder, "digests"):
        digests = DigestCache(digests_path(folder))
        for checkpoint in trajectory:
            activity.now(f"hashing the weights of {checkpoint.label}")
            digests.note(checkpoint)
            digests.save()  # each, as hashing a large run takes long


def _place(checkpoint: Checkpoint) -> str:
    """Return where a checkpoint lies: its path, unless that is the folder of its run."""
    files = checkpoint.weights.on_disk() if checkpoint.source is None else None
    path = checkpoint.path
    if files is None or path is None or path.name == checkpoint.label:
        return str(path)
    return str(files.files[0])
