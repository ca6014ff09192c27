"""The revisions of a repository on the Hub as checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ArgumentError, CheckpointError
from .building import Template
from .checkpoint import Checkpoint
from .hub import HubRevision, HubWeights
from .hub_client import hub_errors, is_offline, patiently
from .layout import Catalogue
from .remote_code import RemoteModel
from .revisions import Revisions, choose

__all__ = ["Repository", "list_files", "open_hub"]

_AT_ONCE = 8  # listing calls under way together


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
            self.repo, name, commit, self.cache, self.endpoint, self.token, self.offline, code
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
        return {ref.name: ref.target_commit for ref in (*refs.tags, *refs.branches)}

    def _cached_commits(self) -> dict[str, str]:
        folder = self.revision("", "").folder
        if not folder.is_dir():
            raise CheckpointError(
                f"{self.repo} is not in the cache {self.cache}, and the Hub is not to be asked "
                "(HF_HUB_OFFLINE or local_files_only)."
            )
        refs = folder / "refs"
        found = {
            path.relative_to(refs).as_posix(): path.read_text().strip()
            for path in sorted(refs.rglob("*"))
            if path.is_file()
        }
        return {
            name: commit
            for name, commit in found.items()
            if self.revision(name, commit).is_downloaded()
        }


def open_hub(
    repository: Repository,
    revisions: Revisions,
    pattern: str | re.Pattern[str] | None,
    strict: bool,
    model: Template | None,
    trust_remote_code: bool,
) -> tuple[tuple[Checkpoint, ...], Catalogue]:
    """Return the checkpoints by increasing step, and what else is known of them.

    Raises
    ------
    ArgumentError, CheckpointError
        As described in `Trajectory.from_hub`.
    """
    commits = repository.commits()
    chosen = choose(commits, revisions, pattern, strict, repository.repo)
    checkpoints = []
    for step, (name, tokens) in chosen.names.items():
        source = repository.revision(name, commits[name], trust_remote_code)
        template = RemoteModel(source) if trust_remote_code and model is None else model
        checkpoints.append(
            Checkpoint(step, name, source.path, HubWeights(source), template, tokens, source)
        )
    catalogue = Catalogue(tuple(chosen.names), gaps=tuple(chosen.gaps.items()), noted=chosen.noted)
    return tuple(checkpoints), catalogue


def list_files(sources: Iterable[HubRevision]) -> None:
    """Ask for the listings of all `sources`, several at a time; later uses find them there.

    Raises
    ------
    CheckpointError
        If one of them cannot be had.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(HubRevision.listing, sources):
            pass
