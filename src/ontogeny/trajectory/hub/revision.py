"""One revision of a repository on the Hub, pinned to its commit; files come when they are needed.

Everything goes through huggingface_hub: its cache, its retries, its offline mode. The listing of a
commit gives the digests of all its files without a download.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import CheckpointError
from ..weights.files import Reader, WeightFiles
from ..weights.folders import PICKLED, SAFE, find_weights, weight_map
from .client import hub_errors, is_offline, silent_bar
from .listings import HubFile, listed, listing_path
from .shards import FetchedReader
from .slots import Slots

_SHARDS = (
    re.compile(r"model-\d+-of-(\d+)\.safetensors"),
    re.compile(r"pytorch_model-\d+-of-(\d+)\.bin"),
)
_BESIDE_WEIGHTS = ("config.json", "generation_config.json")


class NotDownloadedError(CheckpointError):
    """What was asked for needs weights that are not on this machine yet."""


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
    listings
        The cache in which file listings are kept; None means `cache`.
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
    listings: Path | None = field(default=None, repr=False, compare=False)

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

    @property
    def listing_path(self) -> Path:
        """Where the listing is kept once it was asked for."""
        cache = self.listings or self.cache
        return listing_path(cache, self.folder.name, self.commit, self.endpoint)

    def listing(self) -> dict[str, HubFile]:
        """Return ``{file name: HubFile}`` of the commit's top folder, in one call altogether.

        Offline it is what the cache holds of it.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached or does not have the commit.
        """
        if self.is_offline:
            return _cached_files(self.path)
        with hub_errors(f"the file list of {self.repo} at {self.name}"):
            key = (self.repo, self.commit, self.endpoint, self.token)
            return dict(listed(self.listing_path, *key))

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
        if not self._linked(path, listing[name].digest):
            self._download(name)
        self._check_content(path, listing[name])
        self._write_ref()
        return path

    def _linked(self, path: Path, digest: str) -> bool:
        """Link to a file of the same content that another revision has brought into the cache."""
        for cache in dict.fromkeys([self.cache, self.listings or self.cache]):
            blob = replace(self, cache=cache).folder / "blobs" / digest
            if blob.is_file():
                with suppress(OSError):  # a file system without links
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.symlink_to(os.path.relpath(blob, path.parent))
                return path.exists()
        return False

    @contextmanager
    def present(self, tensors: Collection[str] | None = None) -> Iterator[HubRevision]:
        """Yield a revision whose weights are in its cache: this one, or a copy of it in a slot.

        All reads of weights pass here, so that bounded disk stays bounded whoever reads. Of
        weights in shards, those with `tensors` are there for certain; None means all.

        Raises
        ------
        CheckpointError
            If the files cannot be fetched whole.
        """
        if self.slots is None or self.is_offline or self.is_downloaded():
            self.download(tensors)
            yield self
        else:
            fill = functools.partial(self._fetched_into, tensors=tensors)
            with self.slots.hold(self.commit, fill) as copy:
                yield copy

    def has_room(self, keep: Set[str]) -> bool:
        """Return whether it could be fetched ahead now, but for what others do meanwhile."""
        return self.slots is None or self.slots.has_room(keep)

    def fetch_ahead(
        self, keep: Set[str], tensors: Collection[str] | None = None
    ) -> bool:
        """Download into a free slot without a commit of `keep`; return False if there is none.

        Raises
        ------
        CheckpointError
            If the files cannot be fetched whole.
        """
        if self.slots is None or self.is_offline or self.is_downloaded():
            return True
        fill = functools.partial(self._fetched_into, tensors=tensors)
        return self.slots.fill(self.commit, fill, keep)

    def _fetched_into(
        self, cache: Path, tensors: Collection[str] | None
    ) -> HubRevision:
        """Return this revision in another cache, downloaded."""
        for name in _BESIDE_WEIGHTS:  # which other revisions have too, and link to
            self.fetch(name)
        copy = replace(
            self, cache=cache, slots=None, listings=self.listings or self.cache
        )
        copy.download(tensors)
        return copy

    def download(self, tensors: Collection[str] | None = None) -> None:
        """Fetch weights and configuration into the cache, and code where it was asked for.

        Of weights in shards only those with `tensors`, if any are named.
        """
        some = None if tensors is None or self.is_downloaded() else self.shards()
        names = (
            self.missing() if some is None else self._missing_of(some, tensors or ())
        )
        for name in names:
            self.fetch(name)
        self._write_ref()  # also where another name stands for the same commit

    def shards(self) -> dict[str, str] | None:
        """Return ``{tensor: its shard}`` by the index, which is fetched; None for other weights."""
        path = self.path / f"{SAFE}.index.json"
        if not path.exists() and SAFE in self.listing():
            return None
        return None if self.fetch(path.name) is None else weight_map(path)

    def _missing_of(
        self, shards: Mapping[str, str], tensors: Collection[str]
    ) -> list[str]:
        """Return configuration and the shards with `tensors`, as far as they are missing."""
        names = [name for name in _BESIDE_WEIGHTS if name in self.listing()]
        names += sorted({shards[name] for name in tensors if name in shards})
        return [name for name in names if not (self.path / name).exists()]

    def missing(self) -> list[str]:
        """Return the names of the files that loading needs and that are not in the cache yet."""
        if (
            self.is_downloaded()
            and (self.path / "config.json").exists()
            and not self.code
        ):
            return []
        listing = self.listing()
        names = [name for name in _BESIDE_WEIGHTS if name in listing]
        names += [name for name in listing if self.code and name.endswith(".py")]
        if not self.is_downloaded():
            names += [
                n
                for n in (f"{SAFE}.index.json", f"{PICKLED}.index.json")
                if n in listing
            ]
            names += _weight_names(self, listing)
        return [name for name in names if not (self.path / name).exists()]

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
            self._delete(path)
            with suppress(OSError):  # it may be the listing in the cache that is wrong
                self.listing_path.unlink()
            raise CheckpointError(
                f"{path.name} of {self.repo} at {self.name} arrived damaged: its SHA-256 is "
                f"{digest[:12]}..., the Hub lists {listed.digest[:12]}...; try again."
            )

    def _delete(self, path: Path) -> None:
        """Delete a file of a snapshot with its blob; never what lies outside of the caches."""
        target = (
            Path(os.path.normpath(path.parent / path.readlink()))
            if path.is_symlink()
            else path
        )
        caches = [self.cache, self.listings or self.cache]
        if target.parent in [
            replace(self, cache=cache).folder / "blobs" for cache in caches
        ]:
            target.unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    def _write_ref(self) -> None:
        """Note which commit the name stands for, as huggingface_hub does, for offline use."""
        refs = self.folder / "refs"
        ref = Path(os.path.normpath(refs / self.name))
        if ref.is_relative_to(refs) and not ref.exists():
            # Whole or not there: huggingface_hub cannot scan a cache with an empty ref.
            temporary = self.folder / f".ref-{uuid.uuid4().hex}"
            with suppress(OSError):  # of a cache that cannot be written to
                ref.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_text(self.commit)
                temporary.replace(ref)


@dataclass(frozen=True)
class HubWeights:
    """The weights of a Hub revision, fetched when they are first read, shard by shard."""

    source: HubRevision

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader; of weights in shards, those are fetched that are read."""
        with self.source.present(()) as there, ExitStack() as stack:
            shards = None if there.is_downloaded() else there.shards()
            if shards is None:
                yield stack.enter_context(find_weights(there.path).open())
            else:
                yield FetchedReader(there.fetch, shards, stack)

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
        matches = [
            match for name in sorted(listing) if (match := shard.fullmatch(name))
        ]
        if matches:
            count = int(matches[0][1])
            if len(matches) != count:
                raise CheckpointError(
                    f"{where} lacks {count - len(matches)} of {count} shards."
                )
            return [match[0] for match in matches]
    raise CheckpointError(
        f"{where} holds no weights; looked for {SAFE} and {PICKLED}, whole or in shards."
    )
