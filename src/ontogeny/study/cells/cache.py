"""Whether a stored cell is what would be computed today, and the digests that tell it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ... import activity
from ...errors import CheckpointError, StoreError
from ...store import DROPPED, Cell, difference, plain, read_cell
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.weights.digests import combine as combined
from ...trajectory.weights.files import Stamp, stamp_of
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

    Where nothing is `compared` with them, as where no cell is there yet, nothing is hashed.
    """

    def __init__(self, path: Path | None, compared: bool = True) -> None:
        self._path = path
        self._compared = compared
        self._entries: dict[str, Any] = {}
        self._changed = False
        if path is not None and path.exists():
            # Whatever the damage is, it costs time and never a result.
            with suppress(Exception):
                self._entries = {
                    str(place): entry
                    for place, entry in json.loads(path.read_text()).items()
                    if entry["tensors"]
                    and set(map(type, entry["tensors"].values())) == {str}
                }
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
        return self.by_tensor(checkpoint)(names)

    def by_tensor(
        self, checkpoint: Checkpoint
    ) -> Callable[[Iterable[str] | None], str]:
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
        stamp = [list(file) for file in files.stamp()]  # as JSON gives it back
        entry = self._entries.get(_place(checkpoint))
        if entry is None or entry.get("files") != stamp:
            entry = {"files": stamp, "tensors": checkpoint.digests()}
            self._entries[_place(checkpoint)] = entry
            self._changed = True
        return entry["tensors"]

    def has_changed(self, checkpoint: Checkpoint) -> bool:
        """Return whether files hold other weights than were noted before this was made."""
        for weights in checkpoint.sources:
            entry = self._noted.get(_place(weights))
            if weights.source is None and entry is not None:
                try:
                    if self._tensors(weights) != entry["tensors"]:
                        return True
                except CheckpointError:  # it is gone, which is said where it is read
                    continue
        return False

    def note(self, checkpoint: Checkpoint) -> None:
        """Hash the files of a checkpoint that lie in a folder, unless they are known or damaged."""
        if checkpoint.source is not None or checkpoint.derived is not None:
            return  # known by listed files, or by what it is made of
        try:
            if checkpoint.weights.on_disk() is not None:
                self._tensors(checkpoint)
        except CheckpointError:  # said where it is read
            return

    def save(self) -> None:
        """Write the digests that are new."""
        if self._path is not None and self._changed:
            write_json(self._path, self._entries)
            self._changed = False


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
