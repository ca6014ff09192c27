"""A recipe: measured, judged claim by claim, drawn on one page."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from ontogeny import report, semantics, tasks
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.features.wordspace.support import Support, WordStream
from ontogeny.start.source import check_source, names_of
from ontogeny.store import plain
from ontogeny.study import Progress
from ontogeny.study.cells.merge import provenance
from ontogeny.study.folder.layout import settings_path
from ontogeny.study.progress import Silent
from ontogeny.study.results.result_files import write_result
from ontogeny.trees import Nodes
from ontogeny.whole_files import write_json
from ontogeny.words.formats import plural

from .pieces import Pieces
from .verdicts import Verdict, verdict_view

_OWN = ("studies", "pieces")  # what a recipe that was stopped leaves
_Updates: TypeAlias = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Materials:
    """What a measurement works with: a text, a folder, and who is informed of progress.

    Parameters
    ----------
    text
        Path of a text file; None for Python's own documentation.
    progress
        Receives what is done.
    pieces
        What has been measured before.
    folder
        Folder of the recipe; trained runs lie beside it.
    training
        Called after each update as ``training(step, steps, loss)``.
    sources
        Recorded runs that are studied in place of trained ones.
    """

    text: Path | None = None
    progress: Progress = dataclasses.field(default_factory=Silent)
    pieces: Pieces = dataclasses.field(default_factory=Pieces)
    folder: Path = Path()
    training: _Updates | None = None
    sources: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is measured, for people: recorded runs, or the text."""
        if self.sources:
            return ", ".join(names_of(self.sources))
        return self.text_name

    @property
    def text_name(self) -> str:
        """The text, for people."""
        return "Python's own documentation" if self.text is None else self.text.name

    @cached_property
    def words(self) -> WordStream:
        """The words of the text; those of a text file with its punctuation marks."""
        if self.text is None:
            return semantics.word_stream(
                tasks.python_documentation(), punctuation=False
            )
        return semantics.word_stream(self.text)

    @property
    def texts(self) -> list[str]:
        """The texts that are given, or Python's own documentation."""
        return (
            tasks.python_documentation()
            if self.text is None
            else tasks.text_files(self.text)
        )

    def support(self, vocab_size: int, n_contexts: int) -> Support:
        """Return the support matrix of the text, of contexts of 2 to 6 words."""
        self.progress.note(f"counting the contexts of {self.title}")
        return semantics.support_matrix(self.words, vocab_size, n_contexts)

    def of_seeds(
        self,
        name: str,
        label: str,
        seeds: Sequence[int],
        measure: Callable[[int], xr.Dataset],
    ) -> list[xr.Dataset]:
        """Return what ``measure(seed)`` gives of every seed, each a piece of its own."""
        self.progress.note(f"{label}: {len(seeds)} seeds")
        return [
            self.pieces.piece(f"{name}-{seed}", partial(measure, seed))
            for seed in seeds
        ]

    def description(self) -> str:
        """Return a sentence on the recorded runs, or on the length and the parts of the text."""
        if self.sources:
            more = "" if self.text is None else f", read on {self.text.name}"
            return f"Recorded runs, not trained here: {', '.join(self.sources)}{more}."
        there = self.words.ids >= 0
        texts = int(there[0]) + int((there[1:] & ~there[:-1]).sum())
        parts = "one text" if texts == 1 else f"{texts:,} texts"
        sentence = f"The text: {self.title}, {parts} with {int(there.sum()):,} words"
        if self.text is not None and texts == 1:
            sentence += "; no blank line splits it, so contexts run across its lines"
        return f"{sentence}."


@dataclass(frozen=True)
class Findings:
    """What was measured: nodes to draw, the arguments of the recipe's judge, result attributes.

    `numbers` are datasets, lists and dicts of them, and plain numbers.
    """

    nodes: Nodes
    numbers: tuple[Any, ...]
    attributes: Mapping[Any, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Recipe(abc.ABC):
    """The reproduction of one figure or claim of a paper; a subclass measures it.

    Parameters
    ----------
    name
        As the command knows it: ``"execution-figure-1"``.
    title
        Heading of the page.
    claim
        What the paper says, in one sentence.
    source
        Where it says so.
    full, quick
        Sizes.
    limits
        What the quick setting cannot show.
    reads_text
        Whether a text of the user's own can be given.
    reads_runs
        Whether recorded runs can be given in place of those that it trains.
    version
        Raised where the measurement changes, so that what was measured before is not used.
    judge
        From the numbers of what is found to the verdicts that stand first on the page; None: none.

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
    full: Any
    quick: Any
    limits: str = ""
    reads_text: bool = False
    reads_runs: bool = False
    version: int = 1
    judge: Callable[..., Sequence[Verdict]] | None = None

    @abc.abstractmethod
    def measured(self, size: Any, materials: Materials) -> Findings:
        """Return what is found at a size."""

    def installed_sources(self) -> Sequence[str]:
        """Return what is studied where no source is given; nothing where the recipe trains."""
        return ()

    def run(
        self,
        folder: str | Path,
        *,
        quick: bool = False,
        seeds: int | None = None,
        text: str | Path | None = None,
        sources: Sequence[str] = (),
        progress: Progress | None = None,
        training: _Updates | None = None,
    ) -> Path:
        """Measure, judge and draw in `folder`; return the path of the page.

        `seeds` is how many seeds to train, 0 and up; without it as many as the setting has. `text`
        is the path of a text file, split at blank lines; without it the recipes that read text use
        Python's own documentation. `sources` names recorded runs (folders, or OWNER/NAME on the
        Hub) to study in place of trained seeds. `progress` receives what is done, and
        ``training(step, steps, loss)`` the updates of long trainings.

        ``folder/NAME`` (``NAME-quick``) holds ``result.zarr``, ``report.html`` and what is
        measured on the way: the studies of single seeds, or ``pieces``. ``folder/runs`` holds
        trajectories, which other recipes in the same folder share. Called again, it goes on where
        it was.

        Raises
        ------
        ArgumentError
            If the folder holds something else, `seeds` is below 1 or the recipe has none, the text
            cannot be read or used, or a source is none or not for this recipe.
        """
        size, materials, settings = self.prepared(
            folder, quick, seeds, text, sources, progress, training
        )
        findings = self.measured(size, materials)
        place = materials.folder
        attributes = {
            "steps": json.dumps(_steps(findings.nodes.values())),
            **provenance(),
            **findings.attributes,
            "title": f"{self.title}{f': {materials.title}' if self.reads_text else ''}"
            + (f" ({_quick_words(size)})" if quick else ""),
            "settings": json.dumps(settings),
        }
        nodes = dict(findings.nodes)
        verdicts = () if self.judge is None else self.judge(*findings.numbers)
        if verdicts:
            limits = self.limits if quick else ""
            about = materials.description() if self.reads_text else ""
            verdict = verdict_view(verdicts, self.claim, self.source, limits, about)
            if quick:
                verdict.attrs["setting"] = f"in a {_quick_words(size)}"
            nodes = {"verdict": verdict, **nodes}
        return _publish(place, self.name, nodes, attributes)

    def prepared(
        self,
        folder: str | Path,
        quick: bool = False,
        seeds: int | None = None,
        text: str | Path | None = None,
        sources: Sequence[str] = (),
        progress: Progress | None = None,
        training: _Updates | None = None,
    ) -> tuple[Any, Materials, dict[str, Any]]:
        """Return size and materials of `measured`, and their settings; arguments as of `run`.

        Raises
        ------
        ArgumentError
            As `run`.
        """
        place = Path(folder) / (f"{self.name}-quick" if quick else self.name)
        _check_own(place)
        path = self._checked(text)
        progress = progress or Silent()
        sources = sources or self.installed_sources()
        size = self._sized(self.quick if quick else self.full, seeds, sources)
        settings = plain({"size": dataclasses.asdict(size), "text": self.digest(path)})
        if sources:
            settings["sources"] = list(sources)
        fingerprint = {"recipe": self.name, "version": self.version, **settings}
        pieces = Pieces(place / "pieces", fingerprint, progress.note)
        materials = Materials(path, progress, pieces, place, training, tuple(sources))
        return size, materials, settings

    def _sized(self, size: Any, seeds: int | None, sources: Sequence[str]) -> Any:
        if sources:
            if not self.reads_runs:
                raise ArgumentError(
                    f"{self.name} trains its own runs; leave sources out."
                )
            if seeds is not None:
                raise ArgumentError(
                    "leave seeds out: recorded runs are not trained again."
                )
            names_of(sources)
            for source in sources:
                check_source(source)
            seeds = len(sources)
        if seeds is None:
            return size
        if not hasattr(size, "seeds"):
            raise ArgumentError(
                f"{self.name} has no seeds; leave seeds out. Got {seeds}."
            )
        return dataclasses.replace(
            size, seeds=tuple(range(check_whole("seeds", seeds)))
        )

    def _checked(self, text: str | Path | None) -> Path | None:
        if text is None:
            return None
        if not self.reads_text:
            raise ArgumentError(
                f"{self.name} reads no text; leave it out. Got {str(text)!r}."
            )
        path = Path(text)
        if not path.is_file():
            raise ArgumentError(
                f"text must be the path of a text file; {path} is none."
            )
        return path

    def digest(self, text: Path | None) -> str:
        """Return what a text differs in from others: a digest, or whose documentation it is."""
        if not self.reads_text:
            return "none"
        if text is None:
            return f"documentation of Python {platform.python_version()}"
        return hashlib.blake2b(text.read_bytes(), digest_size=16).hexdigest()


def _quick_words(size: Any) -> str:
    """Say that a run is a quick one, and of how many seeds."""
    seeds = len(getattr(size, "seeds", ()))
    if not seeds:
        return "quick run"
    return f"quick run, {plural(seeds, 'seed')}"


def _steps(nodes: Iterable[xr.Dataset]) -> list[int]:
    """Return the training steps of all nodes; 0 where nothing is trained."""
    steps = [node.step.values for node in nodes if "step" in node.coords]
    return sorted({int(s) for s in np.concatenate(steps)}) if steps else [0]


def _check_own(place: Path) -> None:
    """Refuse a folder that no recipe has written: its page would be overwritten."""
    if place.is_dir() and not settings_path(place).is_file():
        others = [
            p.name for p in place.iterdir() if p.name not in _OWN and p.name[0] != "."
        ]
        if others:
            raise ArgumentError(
                f"{place} holds other files ({others[0]}); give another folder."
            )


def _publish(
    place: Path, name: str, nodes: Nodes, attributes: Mapping[Any, Any]
) -> Path:
    """Write nodes and attributes as a study folder; return its page.

    Means over seeds have no checkpoints of their own, so that nothing is said of an audit.
    """
    root_attributes = {
        key: value for key, value in attributes.items() if key != "findings"
    }
    root_attributes |= {"nodes": json.dumps(list(nodes)), "problems": json.dumps([])}
    whole = xr.DataTree.from_dict({"/": xr.Dataset(attrs=root_attributes), **nodes})
    settings = {
        "format": "ontogeny-study-1",
        "title": attributes["title"],
        "recipe": name,
    }
    write_json(settings_path(place), settings)
    write_result(place, whole)
    return report.write(whole, place / "report.html")


@dataclass(frozen=True, kw_only=True)
class MeasuredRecipe(Recipe):
    """A reproduction whose numbers come from one function.

    Parameters
    ----------
    measure
        From a size, a dataclass of numbers, and materials to what is found.
    """

    measure: Callable[[Any, Materials], Findings]

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Call `measure`."""
        return self.measure(size, materials)
