"""A recipe of the token-semantics paper: measured, judged, drawn on one page."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ... import semantics, tasks
from ...errors import ArgumentError
from ...study import Progress
from ...study.merge import provenance
from ...study.progress import Silent
from ..pages import check_own, publish
from ..verdicts import Verdict, verdict_view
from .pieces import Pieces


@dataclass(frozen=True)
class Materials:
    """What a measurement works with: a text, and somebody to tell what it does.

    Parameters
    ----------
    text
        Path of a text file; None for Python's own documentation.
    progress
        Hears what is done.
    pieces
        What has been measured before.
    """

    text: Path | None = None
    progress: Progress = dataclasses.field(default_factory=Silent)
    pieces: Pieces = dataclasses.field(default_factory=Pieces)

    @property
    def title(self) -> str:
        """What the text is, for people."""
        return "Python's own documentation" if self.text is None else self.text.name

    @cached_property
    def words(self) -> semantics.WordStream:
        """The words of the text; those of a text file with its punctuation marks."""
        if self.text is None:
            return semantics.word_stream(tasks.python_documentation(), punctuation=False)
        return semantics.word_stream(self.text)

    def support(self, vocab_size: int, n_contexts: int) -> semantics.Support:
        """Return the support matrix of the text, of contexts of 2 to 6 words."""
        self.progress.note(f"counting the contexts of {self.title}")
        return semantics.support_matrix(self.words, vocab_size, n_contexts)

    def description(self) -> str:
        """Say how much text there is, and what its being in one piece means."""
        there = self.words.ids >= 0
        texts = int(there[0]) + int((there[1:] & ~there[:-1]).sum())
        parts = "one text" if texts == 1 else f"{texts:,} texts"
        said = f"The text: {self.title}, {parts} with {int(there.sum()):,} words"
        if self.text is not None and texts == 1:
            said += "; no blank line parts it, so contexts run across its lines"
        return f"{said}."


@dataclass(frozen=True)
class Findings:
    """What a measurement found: one verdict for each claim, and nodes to draw."""

    verdicts: Sequence[Verdict]
    nodes: Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class SemanticsRecipe:
    """The reproduction of one part of "On the Geometry of Semantics in Next-token Prediction".

    Parameters
    ----------
    name
        As the command knows it: ``"semantics-orthants"``.
    title
        Heading of the page.
    claim
        What the paper says, in one sentence.
    source
        Where it says so.
    measure
        From a size and materials to what is found.
    full, quick
        Sizes: a dataclass of numbers that `measure` takes.
    limits
        What the quick setting cannot show.
    reads_text
        Whether a text of the user's own can be given.
    version
        Raised where `measure` changes, so that what was measured before is not taken.

    Examples
    --------
    >>> from ontogeny import reproduce
    >>> reproduce.recipe("semantics-orthants").reads_text
    True
    """

    name: str
    title: str
    claim: str
    source: str
    measure: Callable[[Any, Materials], Findings]
    full: Any
    quick: Any
    limits: str
    reads_text: bool = True
    version: int = 1

    def run(
        self,
        folder: str | Path,
        *,
        quick: bool = False,
        text: str | Path | None = None,
        progress: Progress | None = None,
        training: Callable[[int, int, float], None] | None = None,
    ) -> Path:
        """Measure and draw in `folder`; return the path of the page.

        `text` is the path of a text file, parted at blank lines; without it the recipes that read
        text take Python's own documentation. `progress` hears what is done; `training` is not
        called, because no training here is long. ``folder/NAME`` (``NAME-quick``) holds
        ``result.zarr`` and ``report.html``, and in ``pieces`` what is measured on the way: called
        again with the same text, it goes on where it was.

        Raises
        ------
        ArgumentError
            If the folder holds something else, or the text cannot be read or used.
        """
        place = Path(folder) / (f"{self.name}-quick" if quick else self.name)
        check_own(place)
        path, progress = self._checked(text), progress or Silent()
        size = self.quick if quick else self.full
        settings = {"size": dataclasses.asdict(size), "text": _digest(path, self.reads_text)}
        fingerprint = {"recipe": self.name, "version": self.version, **settings}
        # As JSON gives it back: tuples are lists there.
        pieces = Pieces(place / "pieces", json.loads(json.dumps(fingerprint)), progress.note)
        materials = Materials(path, progress, pieces)
        found = self.measure(size, materials)
        verdict = verdict_view(
            found.verdicts,
            self.claim,
            self.source,
            self.limits if quick else "",
            materials.description() if self.reads_text else "",
        )
        attributes = {
            "title": self.title + (f": {materials.title}" if self.reads_text else ""),
            "steps": json.dumps(_steps(found.nodes.values())),
            "settings": json.dumps(settings),
            **provenance(),
        }
        return publish(place, self.name, {"verdict": verdict, **found.nodes}, attributes)

    def _checked(self, text: str | Path | None) -> Path | None:
        if text is None:
            return None
        if not self.reads_text:
            raise ArgumentError(f"{self.name} reads no text; leave it out. Got {str(text)!r}.")
        path = Path(text)
        if not path.is_file():
            raise ArgumentError(f"text must be the path of a text file; {path} is none.")
        return path


def _digest(text: Path | None, reads_text: bool) -> str:
    """Return what tells a text from others: a digest of it, or whose documentation it is."""
    if not reads_text:
        return "none"
    if text is None:
        return f"documentation of Python {platform.python_version()}"
    return hashlib.blake2b(text.read_bytes(), digest_size=16).hexdigest()


def _steps(nodes: Any) -> list[int]:
    """Return the training steps of all nodes; 0 where nothing is trained."""
    known = [node.step.values for node in nodes if "step" in node.coords]
    return sorted({int(s) for s in np.concatenate(known)}) if known else [0]
