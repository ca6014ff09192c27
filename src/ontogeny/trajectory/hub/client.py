"""Calls of huggingface_hub: retries for busy servers, plain errors, no progress bars."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ...errors import CheckpointError, OntogenyError

T = TypeVar("T")

_BUSY = (429, 500, 502, 503, 504)
_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds
_LONGEST = 300.0
_here = threading.local()  # .stop: the event that ends the downloads of this thread


class InterruptedDownloadError(CheckpointError):
    """A download was stopped on purpose; nothing of the file is kept."""


def is_offline() -> bool:
    """Return whether huggingface_hub is set to stay offline (``HF_HUB_OFFLINE=1``)."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def resolve_cache(cache_dir: str | Path | None) -> Path:
    """Return the folder of the Hub cache, by default huggingface_hub's own."""
    from huggingface_hub import constants

    return (
        Path(constants.HF_HUB_CACHE if cache_dir is None else cache_dir)
        .expanduser()
        .resolve()
    )


def patiently(call: Callable[[], T]) -> T:
    """Return the result of `call`, repeated with growing pauses while the server is busy.

    For the few calls of huggingface_hub that do not retry themselves; a ``Retry-After`` header
    sets the pause, up to five minutes.
    """
    from huggingface_hub.errors import HfHubHTTPError

    for wait in _WAITS:
        try:
            return call()
        except HfHubHTTPError as error:
            if error.response.status_code not in _BUSY:
                raise
            after = error.response.headers.get("Retry-After", "")
            time.sleep(min(float(after), _LONGEST) if after.isdigit() else wait)
    return call()


@contextmanager
def hub_errors(
    what: str, error_class: type[OntogenyError] = CheckpointError
) -> Iterator[None]:
    """Turn any error of a download into an error of ours with one line of text.

    Raises
    ------
    CheckpointError
        Or `error_class`, with what could not be downloaded, and why.
    """
    from huggingface_hub import errors

    _check_etags()
    try:
        yield
    except errors.RepositoryNotFoundError:
        raise error_class(
            f"the Hub has no such repository, or not for this token: {what}."
        ) from None
    except errors.RevisionNotFoundError:
        raise error_class(f"the Hub no longer has that revision: {what}.") from None
    except errors.LocalEntryNotFoundError as error:
        why = "the Hub cannot be reached or is not to be asked (HF_HUB_OFFLINE)"
        raise error_class(f"{what} is not in the cache, and {why}.") from error
    except (errors.HTTPError, OSError) as error:
        line = next((part for part in str(error).splitlines() if part.strip()), "")
        why = line or type(error).__name__
        raise error_class(
            f"{what} could not be downloaded from the Hub: {why}"
        ) from error


def _check_etags() -> None:
    """Let huggingface_hub refuse entity tags that are paths: it names files of its cache by them.

    It may have made a new client since the last call, which has no such check yet.
    """
    from huggingface_hub.utils import get_session

    hooks = get_session().event_hooks["response"]
    if _refuse_paths not in hooks:
        hooks.append(_refuse_paths)


def _refuse_paths(response: Any) -> None:
    for name in ("X-Linked-Etag", "ETag"):
        tag = response.headers.get(name, "").removeprefix("W/").strip('"')
        is_path = bool({"/", "\\"} & set(tag)) or tag in (".", "..")
        if response.request.method == "HEAD" and is_path:
            raise OSError(f"the server gives a path as the tag of a file: {tag!r}")


def silent_bar() -> type:
    """Return a progress bar class that shows nothing and ends a download that was stopped."""
    from huggingface_hub.utils import tqdm

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs["disable"] = True
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> bool | None:
            stop = getattr(_here, "stop", None)
            if stop is not None and stop.is_set():
                raise InterruptedDownloadError("the download was stopped.")
            return super().update(n)

    return SilentBar


def stop_downloads_on(event: threading.Event) -> None:
    """End the downloads of the calling thread at their next chunk once `event` is set."""
    _here.stop = event
