"""One commit on the Hub, and what the Hub refuses in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreError


def upload(
    folder: Path, repo: str, private: bool, token: str | None, stale: Sequence[str] = ()
) -> str:
    """Push the files of a folder as one commit of a data set; return its address.

    Parameters
    ----------
    folder
        What is pushed; whatever else the data set holds stays.
    repo
        ``"OWNER/NAME"``; the data set is made if there is none.
    private
        Whether it must be private.
    token
        An access token, None for the one that is stored.
    stale
        Files of an earlier push that are deleted.

    Raises
    ------
    StoreError
        If the Hub refuses or cannot be reached, or an existing data set is public and must not be.
    """
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    with _refusals(repo):
        api.create_repo(repo, repo_type="dataset", private=private or None, exist_ok=True)
        if private and not api.repo_info(repo, repo_type="dataset").private:
            raise StoreError(f"{repo} is there already and public; nothing was pushed.")
        api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            commit_message="Push a study",
            delete_patterns=list(stale),
        )
    return f"{api.endpoint}/datasets/{repo}"


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
    said = str(getattr(error, "server_message", "") or "").strip()
    if status == 401:
        return (
            "the Hub knows no valid access token: log in with `hf auth login`, or set HF_TOKEN "
            "to a token that may write."
        )
    if status in (402, 403):
        return f"the token may not write to {owner}: {said or 'the Hub refused'}."
    if status == 404:
        return f"the Hub has no {repo}, or not for this token."
    return f"{repo} was not pushed, the Hub answered {status}: {said or error}"
