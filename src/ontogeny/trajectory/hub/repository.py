"""Repositories on the Hub, and the commits that their branches and tags point to."""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import ArgumentError, CheckpointError
from ..weights.transformers_models import model_class
from .client import hub_errors, is_offline, patiently
from .listings import asking
from .revision import HubRevision

_AT_ONCE = 8  # listing calls under way together
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_NAMED = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def is_repository(source: str) -> bool:
    """Return whether there is no such folder and the name may be a repository's.

    Examples
    --------
    >>> (
    ...     is_repository("EleutherAI/pythia-70m"),
    ...     is_repository("runs"),
    ...     is_repository("../runs"),
    ... )
    (True, False, False)
    """
    return is_name(source) and not Path(source).expanduser().exists()


def is_name(text: str) -> bool:
    """Return whether a text may be the name of a repository.

    Examples
    --------
    >>> is_name("ada/tiny"), is_name("tiny")
    (True, False)
    """
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    if not isinstance(text, str) or not _NAMED.fullmatch(text):
        return False
    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return True


@dataclass(frozen=True)
class Repository:
    """A model repository and how it is reached."""

    repo: str
    cache: Path
    endpoint: str | None = None
    token: str | bool | None = field(default=None, repr=False)
    offline: bool = False

    def revision(self, name: str, commit: str, code: bool = False) -> HubRevision:
        """Return one revision of the repository."""
        return HubRevision(
            self.repo,
            name,
            commit,
            self.cache,
            self.endpoint,
            self.token,
            self.offline,
            code,
        )

    def commits(self) -> dict[str, str]:
        """Return ``{branch or tag: commit}`` in one call; offline, those that the cache holds.

        Raises
        ------
        ArgumentError
            If `repo` cannot be the name of a repository.
        CheckpointError
            If the Hub cannot be reached or has no such repository.
        """
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError

        try:
            if self.offline or is_offline():
                return self._cached_commits()
            api = HfApi(endpoint=self.endpoint, token=self.token)
            with hub_errors(self.repo):
                refs = patiently(lambda: api.list_repo_refs(self.repo))
        except HFValidationError as error:
            raise ArgumentError(
                f"repo must be 'owner/name'; got {self.repo!r} ({error})."
            ) from None
        # Where a tag and a branch share a name, the Hub serves the branch.
        commits = {ref.name: ref.target_commit for ref in (*refs.tags, *refs.branches)}
        for name, commit in commits.items():
            if not (_is_ref(name) and _COMMIT.fullmatch(commit)):
                raise CheckpointError(
                    f"the server lists {name!r} at {commit!r} as a revision of {self.repo}; a "
                    "branch has no such name, or a commit no such number. Nothing of it is read."
                )
        return commits

    def _cached_commits(self) -> dict[str, str]:
        folder = self.revision("", "").folder
        if not folder.is_dir():
            raise CheckpointError(
                f"{self.repo} is not in the cache {self.cache}, and the Hub is not to be asked "
                "(HF_HUB_OFFLINE or local_files_only)."
            )
        return {
            name: commit
            for name, commit in sorted(_refs(folder / "refs"))
            if _COMMIT.fullmatch(commit) and self.revision(name, commit).is_downloaded()
        }


def _is_ref(name: str) -> bool:
    """Return whether a branch may have this name: it becomes a path in the cache."""
    return (
        not set(name.split("/")) & {"", ".", ".."}
        and "\\" not in name
        and name.isprintable()
    )


def _refs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield ``(branch or tag, commit)``, without those that another process deletes meanwhile."""
    # Path.rglob raises if a folder has just been deleted.
    for parent, _, files in os.walk(folder):
        for path in (Path(parent, file) for file in files):
            try:
                yield path.relative_to(folder).as_posix(), path.read_text().strip()
            except FileNotFoundError:
                continue


@dataclass(frozen=True)
class Repositories:
    """Checkpoints that lie in one repository each, as those of MultiBERTs do."""

    repos: tuple[Repository, ...]

    @classmethod
    def of(cls, names: object, *where: Any) -> Repositories:
        """Return the repositories of these names.

        Raises
        ------
        ArgumentError
            If `names` is no list of names.
        """
        if not isinstance(names, Sequence) or not names:
            raise ArgumentError(
                f"repo must be 'owner/name', or a list of such names; got {names!r}."
            )
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(
                f"repo must list names of repositories; got {list(names)!r}."
            )
        return cls(tuple(Repository(name, *where) for name in dict.fromkeys(names)))

    @property
    def repo(self) -> str:
        """A name for all of them: the beginning that their names share."""
        letters = zip(*(repository.repo for repository in self.repos), strict=False)
        same = itertools.takewhile(lambda column: len(set(column)) == 1, letters)
        return "".join(column[0] for column in same).rstrip("-_/") or self.repos[0].repo

    def revision(self, name: str, commit: str, code: bool = False) -> HubRevision:
        """Return the main revision of the repository `name`."""
        (owner,) = (r for r in self.repos if r.repo == name)
        return owner.revision("main", commit, code)

    def commits(self) -> dict[str, str]:
        """Return ``{repository: commit of its main branch}``, one call for each.

        Raises
        ------
        ArgumentError, CheckpointError
            As for one repository, or if one of them has no main branch.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            commits = pool.map(_main, self.repos)
            return {
                r.repo: commit for r, commit in zip(self.repos, commits, strict=True)
            }


def _main(repository: Repository) -> str:
    commits = repository.commits()
    if "main" not in commits:
        raise CheckpointError(f"{repository.repo} is empty: it has no main branch.")
    return commits["main"]


def list_files(sources: Iterable[HubRevision]) -> None:
    """Ask for the file listings of all `sources`, several at a time; they are kept for later use.

    Processes that share a cache ask one after another, so that the first one asks for all.

    Raises
    ------
    CheckpointError
        If one of them cannot be downloaded.
    """
    unknown = [s for s in sources if not s.is_offline and not s.listing_path.exists()]
    with ExitStack() as stack:
        for folder in sorted({source.listing_path.parent for source in unknown}):
            stack.enter_context(asking(folder))
        pool = stack.enter_context(ThreadPoolExecutor(_AT_ONCE))
        for _ in pool.map(HubRevision.listing, unknown):
            pass


logger = logging.getLogger("ontogeny.trajectory")


@dataclass(frozen=True)
class RemoteModel:
    """Builds an untrained model from the code of a Hub revision, pinned to its commit.

    Architectures that transformers has itself are taken from there.
    """

    source: HubRevision

    def __call__(self) -> nn.Module:
        """Return the module.

        Raises
        ------
        CheckpointError
            If the configuration names no class, or its code fails.
        """
        from transformers import AutoConfig
        from transformers.dynamic_module_utils import get_class_from_dynamic_module

        self.source.download()
        folder = self.source.path
        try:
            config = AutoConfig.from_pretrained(
                folder, trust_remote_code=True, local_files_only=True
            )
            reference = self._class_reference(config)
            if reference is None:
                return model_class(folder)(config)
            logger.warning(
                "running model code of %s at %s", self.source.repo, self.source.name
            )
            cls: Any = get_class_from_dynamic_module(
                reference, folder, local_files_only=True
            )
            return cls(config)
        except CheckpointError:
            raise
        except Exception as error:
            # Whatever foreign code raises, it is this revision that failed.
            raise CheckpointError(
                f"the code of {self.source.repo} at {self.source.name} does not build a model: "
                f"{error}"
            ) from error

    def _class_reference(self, config: Any) -> str | None:
        """Return ``"file.Class"`` of the architecture that config.json names; None without code."""
        architectures = list(getattr(config, "architectures", None) or ())
        references = [
            value
            for key, value in (getattr(config, "auto_map", None) or {}).items()
            if key.startswith("AutoModel") and isinstance(value, str)
        ]
        for reference in references:
            if reference.rpartition(".")[2] in architectures:
                return reference
        return None
