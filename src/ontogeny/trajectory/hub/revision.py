"""One revision of a repository on the Hub, pinned to its commit; files come when they are needed.

Everything goes through huggingface_hub: its cache, its retries, its offline mode. The listing of a
commit gives the digests of all its files without a download.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import uuid
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import CheckpointError
from ..weights.files import Reader, WeightFiles
from ..weights.folders import PICKLED, SAFE, find_weights
from .client import hub_errors, is_offline, silent_bar
from .slots import Slots

_SHARDS = (
    re.compile(r"model-\d+-of-(\d+)\.safetensors"),
    re.compile(r"pytorch_model-\d+-of-(\d+)\.bin"),
)
_BESIDE_WEIGHTS = ("config.json", "generation_config.json")


class NotDownloadedError(CheckpointError):
    """What was asked for needs weights that are not on this machine yet."""


@dataclass(frozen=True)
class HubFile:
    """Size in bytes and digest of one file: SHA-256 of large files, git's blob id of small ones."""

    size: int
    digest: str


@dataclass(frozen=True)
class HubRevision:
    """One revision of a model repository, pinned to a commit.

    Attributes
    ----------
    repo
        Such as ``"EleutherAI/pythia-70m"``.
    name
        The branch or tag, such as ``"step1000"``.
    commit
        The commit that it pointed to when the trajectory was made: weights, configuration,
        tokenizer and code all come from it.
    cache
        Folder of the Hub cache.
    endpoint, token
        As for huggingface_hub; None takes its settings.
    offline
        Never ask the Hub: what the cache holds is what exists.
    code
        Whether Python files are fetched with the weights (never run unless asked).
    slots
        Where weights are downloaded to while disk is bounded, instead of the cache.
    """

    repo: str
    name: str
    commit: str
    cache: Path
    endpoint: str | None = None
    token: str | bool | None = field(default=None, repr=False)
    offline: bool = False
    code: bool = False
    slots: Slots | None = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        """The cache folder of the repository."""
        from huggingface_hub.file_download import repo_folder_name

        return self.cache / repo_folder_name(repo_id=self.repo, repo_type="model")

    @property
    def path(self) -> Path:
        """The snapshot folder of the commit; files appear in it as they are fetched."""
        return self.folder / "snapshots" / self.commit

    @property
    def is_offline(self) -> bool:
        """Whether the Hub is not to be asked."""
        return self.offline or is_offline()

    def listing(self) -> dict[str, HubFile]:
        """Return ``{file name: HubFile}`` of the commit's top folder, in one call in a process.

        Offline it is what the cache holds of it.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached or does not have the commit.
        """
        if self.is_offline:
            return _cached_files(self.path)
        with hub_errors(f"the file list of {self.repo} at {self.name}"):
            return dict(_listing(self.repo, self.commit, self.endpoint, self.token))

    def digests(self) -> dict[str, str]:
        """Return ``{weight file: digest}`` from the listing, without a download.

        Raises
        ------
        CheckpointError
            If the commit holds no weights, or not all shards.
        """
        listing = self.listing()
        return {name: listing[name].digest for name in _weight_names(self, listing)}

    def size(self) -> int:
        """Return the bytes of the weight files, from the listing."""
        listing = self.listing()
        return sum(listing[name].size for name in _weight_names(self, listing))

    def fetch(self, name: str) -> Path | None:
        """Return the path of a file in the cache, fetched if need be; None if the commit lacks it.

        Raises
        ------
        CheckpointError
            If it cannot be fetched whole.
        """
        path = self.path / name
        if path.exists():
            return path
        listing = self.listing()
        if name not in listing:
            return None
        self._download(name)
        self._check_content(path, listing[name])
        self._write_ref()
        return path

    @contextmanager
    def present(self) -> Iterator[HubRevision]:
        """Yield a revision whose weights are in its cache: this one, or a copy of it in a slot.

        All reads of weights pass here, so that bounded disk stays bounded whoever reads.

        Raises
        ------
        CheckpointError
            If the files cannot be fetched whole.
        """
        if self.slots is None or self.is_offline or self.is_downloaded():
            self.download()
            yield self
        else:
            with self.slots.hold(self.commit, self._fetched_into) as copy:
                yield copy

    def fetch_ahead(self, keep: Set[str]) -> bool:
        """Download into a free slot without a commit of `keep`; return False if there is none.

        Raises
        ------
        CheckpointError
            If the files cannot be fetched whole.
        """
        if self.slots is None or self.is_offline or self.is_downloaded():
            return True
        return self.slots.fill(self.commit, self._fetched_into, keep)

    def _fetched_into(self, cache: Path) -> HubRevision:
        """Return this revision in another cache, downloaded."""
        copy = replace(self, cache=cache, slots=None)
        copy.download()
        return copy

    def download(self) -> None:
        """Fetch weights and configuration into the cache, and code where it was asked for."""
        for name in self.missing():
            self.fetch(name)
        self._write_ref()  # also where another name stands for the same commit

    def missing(self) -> list[str]:
        """Return the names of the files that loading needs and that are not in the cache yet."""
        if self.is_downloaded() and (self.path / "config.json").exists() and not self.code:
            return []
        listing = self.listing()
        wanted = [name for name in _BESIDE_WEIGHTS if name in listing]
        wanted += [name for name in listing if self.code and name.endswith(".py")]
        if not self.is_downloaded():
            wanted += [n for n in (f"{SAFE}.index.json", f"{PICKLED}.index.json") if n in listing]
            wanted += _weight_names(self, listing)
        return [name for name in wanted if not (self.path / name).exists()]

    def is_downloaded(self) -> bool:
        """Return whether the cache holds all weight files."""
        try:
            find_weights(self.path)
        except CheckpointError:
            return False
        return True

    def _download(self, name: str) -> None:
        from huggingface_hub import hf_hub_download

        with hub_errors(f"{name} of {self.repo} at {self.name}"):
            hf_hub_download(
                self.repo,
                name,
                revision=self.commit,
                cache_dir=self.cache,
                endpoint=self.endpoint,
                token=self.token,
                tqdm_class=silent_bar(),
            )

    def _check_content(self, path: Path, listed: HubFile) -> None:
        """Compare SHA-256 with the listing: the Hub client itself compares sizes only."""
        if len(listed.digest) != 64:
            return
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise CheckpointError(
                f"{path.name} of {self.repo} at {self.name} was deleted from the cache while it "
                "was fetched; try again."
            ) from None
        if digest != listed.digest:
            path.resolve().unlink()
            path.unlink(missing_ok=True)
            raise CheckpointError(
                f"{path.name} of {self.repo} at {self.name} arrived damaged: its SHA-256 is "
                f"{digest[:12]}..., the Hub lists {listed.digest[:12]}...; try again."
            )

    def _write_ref(self) -> None:
        """Note which commit the name stands for, as huggingface_hub does, for offline use."""
        ref = self.folder / "refs" / self.name
        if ".." not in ref.parts and not ref.exists():
            # Whole or not there: huggingface_hub cannot scan a cache with an empty ref.
            temporary = self.folder / f".ref-{uuid.uuid4().hex}"
            ref.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(self.commit)
            temporary.replace(ref)


@dataclass(frozen=True)
class HubWeights:
    """The weights of a Hub revision, fetched when they are first opened."""

    source: HubRevision

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader, after fetching what is not there."""
        with self.source.present() as there, find_weights(there.path).open() as reader:
            yield reader

    def on_disk(self) -> WeightFiles:
        """Return the weight files without fetching any.

        Raises
        ------
        NotDownloadedError
            If they are not there.
        """
        if not self.source.is_downloaded():
            raise NotDownloadedError(
                f"the weights of {self.source.repo} at {self.source.name} are not downloaded yet; "
                "file_digests() gives digests of whole files without a download."
            )
        return find_weights(self.source.path)


_locks: dict[tuple[object, ...], threading.Lock] = {}
_guard = threading.Lock()


def _listing(*key: Any) -> dict[str, HubFile]:
    """Return the listing of a commit; threads that ask for the same one wait for one call."""
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        return _ask_listing(*key)


@functools.lru_cache(maxsize=4096)
def _ask_listing(
    repo: str, commit: str, endpoint: str | None, token: str | bool | None
) -> dict[str, HubFile]:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    entries: Any = HfApi(endpoint=endpoint, token=token).list_repo_tree(repo, revision=commit)
    return {
        f.path: HubFile(f.size, f.lfs.sha256 if f.lfs is not None else f.blob_id)
        for f in entries
        if isinstance(f, RepoFile)
    }


def _cached_files(folder: Path) -> dict[str, HubFile]:
    """Return what a snapshot folder holds; the cache names its blobs by the Hub's digests.

    What another process deletes meanwhile is not there.
    """
    files: dict[str, HubFile] = {}
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return files
    for path in paths:
        try:
            if path.is_file():
                name = path.readlink().name if path.is_symlink() else _file_digest(path)
                files[path.name] = HubFile(path.stat().st_size, name)
        except FileNotFoundError:
            continue
    return files


def _file_digest(path: Path) -> str:
    """Return the digest that the Hub lists, where the file system has no symbolic links."""
    if path.suffix in (".safetensors", ".bin"):
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _weight_names(revision: HubRevision, listing: dict[str, HubFile]) -> list[str]:
    """Return the weight files in the order of preference that `find_weights` has."""
    where = f"{revision.repo} at {revision.name} ({revision.commit[:8]})"
    for single, shard in zip((SAFE, PICKLED), _SHARDS, strict=True):
        if single in listing:
            return [single]
        matches = [match for name in sorted(listing) if (match := shard.fullmatch(name))]
        if matches:
            count = int(matches[0][1])
            if len(matches) != count:
                raise CheckpointError(f"{where} lacks {count - len(matches)} of {count} shards.")
            return [match[0] for match in matches]
    raise CheckpointError(
        f"{where} holds no weights; looked for {SAFE} and {PICKLED}, whole or in shards."
    )
