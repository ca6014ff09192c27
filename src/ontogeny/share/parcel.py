"""What is pushed: a folder put together for it, and a list of what in it looks private."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import ArgumentError, StoreError
from ..study import open_study
from ..study.folder.layout import comparison_path, result_path, settings_path
from ..study.results.archive import ARCHIVE, pack
from ..study.results.checksums import check_files, write_checksums
from ..study.results.result_files import write_tree
from ..trajectory.hub.repository import is_name
from .card import card
from .listing import Listing, looks_private, texts_in
from .strings import in_strings
from .texts import (
    find_study_file,
    holds_sentences,
    own_code_in,
    shorten,
    shortened,
    without_paths,
    without_texts_of,
)

_WHAT = {
    "README.md": "the card: what was studied and learned, and how to open it",
    "report.html": "the page",
    ARCHIVE: "the result, as xarray and Zarr read it",
    "study.json": "the settings that the study was begun with",
    "comparison.json": "says that the result is a comparison of runs",
    "names.toml": "names that people gave to concepts",
    "study.toml": "the study file",
}


class Parcel:
    """A study that is ready to be pushed; ``print`` it to see what would leave this machine.

    `prepare` makes it. Its files lie in a temporary folder until it is deleted.
    """

    def __init__(self, repo: str, listing: Listing, folder: Path) -> None:
        self.repo = repo
        self.listing = listing
        self.folder = folder
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def push(self, *, private: bool = False, token: str | None = None) -> str:
        """Upload to the Hub, as one commit of a data set that is made if there is none.

        Parameters
        ----------
        private
            Whether only its owner may see it; a public data set is not pushed to then.
        token
            An access token; by default the one that `hf auth login` or ``HF_TOKEN`` gave.

        Returns
        -------
        str
            The address of the data set.

        Raises
        ------
        ArgumentError
            If the files hold what looks like a secret.
        StoreError
            If the Hub refuses or cannot be reached, or an existing data set is public and must
            not be.
        """
        from huggingface_hub import HfApi

        if self.listing.secrets:
            first = self.listing.secrets[0]
            raise ArgumentError(
                f"{first.where} holds what looks like an access token or key ({first.what}); "
                "take it out, and make a new one if others could have seen it."
            )
        stale = [name for name in _WHAT if name not in self.listing.files]
        api = HfApi(token=token)
        with _refusals(self.repo):
            api.create_repo(
                self.repo, repo_type="dataset", private=private or None, exist_ok=True
            )
            if private and not api.repo_info(self.repo, repo_type="dataset").private:
                raise StoreError(
                    f"{self.repo} is there already and public; nothing was pushed."
                )
            api.upload_folder(
                repo_id=self.repo,
                repo_type="dataset",
                folder_path=self.folder,
                commit_message="Push a study",
                delete_patterns=stale,  # files of an earlier push
            )
        return f"{api.endpoint}/datasets/{self.repo}"

    def __repr__(self) -> str:
        return "\n".join(
            [f"{self.repo}, a data set on the Hub:", *self.listing.lines()]
        )


def prepare(
    folder: str | Path,
    repo: str,
    *,
    study_file: str | Path | None = None,
    license_id: str | None = None,
    without_texts: bool = False,
) -> Parcel:
    """Put together what a push of a study would upload; nothing leaves this machine.

    Parameters
    ----------
    folder
        Folder of a study, or of a comparison.
    repo
        Name of the data set, ``"OWNER/NAME"``.
    study_file
        The study file; by default ``DIR.toml`` beside the folder, if it is there.
    license_id
        Licence for the card, such as ``"cc-by-4.0"``; yours to choose.
    without_texts
        Leave out texts and tokens, and observables that cannot be shown without them.

    Raises
    ------
    ArgumentError
        If `repo` or `study_file` is not what it must be.
    StoreError
        If `folder` is no study, its result is damaged, or it holds links or files of others.
    """
    if not is_name(repo):
        raise ArgumentError(f"a data set on the Hub is named OWNER/NAME; got {repo!r}.")
    source = Path(folder)
    open_study(source)  # refuses what is no study
    check_files(result_path(source))
    place = Path(tempfile.mkdtemp(prefix="ontogeny-push-"))
    try:
        listing = _put_together(
            source, place, repo, study_file, license_id, without_texts
        )
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Parcel(repo, listing, place)


def _put_together(
    source: Path,
    place: Path,
    repo: str,
    study_file: str | Path | None,
    license_id: str | None,
    without_texts: bool,
) -> Listing:
    """Write all files of a push into a folder, and list them."""
    replacements: dict[str, str] = {}
    texts, notes = _small_files(source, study_file, without_texts, replacements)
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    tree = without_paths(open_study(source).tree, replacements)
    left_out: list[str] = []
    if without_texts:
        tree, left_out = without_texts_of(tree)
    if not tree.children:
        raise ArgumentError(
            f"without texts nothing of {source} is left; push it with them."
        )
    store = result_path(place)
    write_tree(tree, store)
    write_checksums(store)
    open_study(place).report(place / "report.html")
    pack(store, place / ARCHIVE)
    names = [name for name in _WHAT if name == "README.md" or (place / name).is_file()]
    readme = card(
        tree, repo, {name: _WHAT[name] for name in names}, license_id, left_out
    )
    (place / "README.md").write_text(readme, encoding="utf-8")
    listing = Listing(
        files={name: ((place / name).stat().st_size, _WHAT[name]) for name in names},
        shortened=replacements,
        private=looks_private(tree, {**texts, "README.md": readme}),
        passages=texts_in(tree),
        own_code=tuple(own_code_in(texts.get("study.toml", ""))),
        left_out=tuple(left_out),
        notes=tuple(notes),
    )
    shutil.rmtree(store)
    return listing


def _small_files(
    source: Path,
    study_file: str | Path | None,
    without_texts: bool,
    replacements: dict[str, str],
) -> tuple[dict[str, str], list[str]]:
    """Return the text files beside a result by name, without paths, and what is to be said."""
    texts = {}
    notes = []
    beside = [settings_path(source), comparison_path(source), source / "names.toml"]
    toml = find_study_file(source, study_file)
    of_folder = [toml] if toml is not None and study_file is None else []
    for path in (
        *beside,
        *of_folder,
        result_path(source),
        *result_path(source).rglob("*"),
    ):
        # By which a stranger's study would publish files of yours.
        if path.is_symlink():
            raise StoreError(f"{path} is a link; what is pushed must be no link.")
        if path in beside and path.is_file():
            text = path.read_text(encoding="utf-8")
            texts[path.name] = in_strings(text, lambda t: shorten(t, replacements))
    if toml is None:
        notes.append("No study file lies beside the folder; --study-file names one.")
    else:
        text = toml.read_text(encoding="utf-8")
        if without_texts and holds_sentences(text):
            notes.append(f"{toml.name} holds sentences and is left out.")
        else:
            texts["study.toml"] = shortened(text, replacements)
    return texts, notes


@contextmanager
def _refusals(repo: str) -> Iterator[None]:
    """Turn any error of an upload into a StoreError with one line; a token is never in it."""
    from huggingface_hub import errors

    try:
        yield
    except errors.OfflineModeIsEnabled:
        raise StoreError(
            "huggingface_hub is set to stay offline; unset HF_HUB_OFFLINE to push."
        ) from None
    except errors.HfHubHTTPError as error:
        raise StoreError(_reason(error, repo)) from error
    except (errors.HTTPError, OSError, RuntimeError) as error:
        cause = error.__cause__
        if isinstance(cause, errors.HfHubHTTPError):
            raise StoreError(_reason(cause, repo)) from error
        raise StoreError(
            f"{repo} was not pushed, the Hub cannot be reached: {cause or error}"
        ) from error


def _reason(error: object, repo: str) -> str:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", 0)
    owner = repo.partition("/")[0]
    reason = str(getattr(error, "server_message", "") or "").strip()
    if status == 401:
        return (
            "the Hub knows no valid access token: log in with `hf auth login`, or set HF_TOKEN "
            "to a token that may write."
        )
    if status in (402, 403):
        return f"the token may not write to {owner}: {reason or 'the Hub refused'}."
    if status == 404:
        return f"the Hub has no {repo}, or not for this token."
    return f"{repo} was not pushed, the Hub answered {status}: {reason or error}"
