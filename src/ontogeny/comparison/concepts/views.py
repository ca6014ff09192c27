"""The checkpoints of several runs as views of one dictionary: read once, kept until it is fitted.

A view is a cell in the folder of its own run, so that what was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...inputs.sampling import TokenSample
from ...machine import size_text
from ...needs import Activations
from ...observables.registry import make
from ...store import read_cell
from ...study import Progress, Study, read_study
from ...study.cells.models import release_skeleton
from ...study.folder.code import code_of
from ...study.planning.parts import RunPart
from ...study.running.run import left_of
from ..layers import match_layers
from ..sources import open_runs
from .aligned import aligned_tokens, rows_of
from .same_tokens import comparable
from .view_cells import FOLDER, VIEWS, ViewCell, compute, task_of

MOST_TOKENS = 5000  # of a dictionary over all runs, where the study says nothing of one


def studies_of(runs: Mapping[str, Any], folders: Any) -> dict[str, tuple[Study, Path]]:
    """Return the study and the folder of each run that is compared.

    Raises
    ------
    ArgumentError
        If a run is no folder, or there is neither a study file beside it nor a given study.
    """
    studies = {}
    for name, value in runs.items():
        if not isinstance(value, str | Path) or not Path(value).is_dir():
            raise ArgumentError(
                f"concepts needs the folder of each study, as checkpoints are read again; run "
                f"{name!r} is {value if isinstance(value, str) else type(value).__name__}."
            )
        folder = Path(value)
        file = folder.with_name(f"{folder.name}.toml")
        if isinstance(folders, Mapping):
            if not isinstance(folders.get(name), Study):
                raise ArgumentError(
                    f"concepts must hold the Study of each run by its name; of {name!r} it holds "
                    f"{type(folders.get(name)).__name__}."
                )
            studies[name] = (folders[name], folder)
        elif not file.is_file():
            raise ArgumentError(
                f"concepts needs the study of run {name!r}: there is no study file {file}. Give "
                f"concepts={{{name!r}: study, ...}} with the studies themselves."
            )
        else:
            studies[name] = (read_study(file), folder)
    return studies


@dataclass(frozen=True, eq=False)
class RunViews:
    """The views of one run, the studied one or a control run of it.

    Parameters
    ----------
    name
        Of the run in the comparison.
    part
        The run in its study.
    observable
        The joint concepts that are fitted: which layers and tokens are read.
    asked
        The observable of the study that reads these layers.
    sample
        Tokens that are the same places as in runs with another tokenizer; else those of the study.
    note
        How they were aligned, in words.
    """

    name: str
    part: RunPart
    observable: Any
    asked: Any
    sample: TokenSample | None = None
    note: str = ""

    @property
    def need(self) -> Activations:
        """What is read of each checkpoint."""
        return self.observable.activations

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """The paths of the layers."""
        return self.part.graph.probe.layers[self.asked.activations]

    @cached_property
    def digests(self) -> dict[int, str]:
        """By step, what identifies the weights."""
        whole = self.part.graph.digests.whole
        return {int(c.step): whole(c) for c in self.part.trajectory}

    @cached_property
    def units(self) -> np.ndarray:
        """(n,) the text of each token."""
        inputs = self.part.job.inputs_of(self.need)
        if self.sample is None:
            return self.need.units(inputs)
        return replace(self.need, max_tokens=None).units(inputs)[
            rows_of(inputs, self.sample)
        ]

    @cached_property
    def _read(self) -> tuple[Activations, np.ndarray | None]:
        """What is read, and which rows of it are the places that are compared."""
        if self.sample is None:
            return self.need, None
        need = replace(self.need, max_tokens=None)
        return need, rows_of(self.part.job.inputs_of(need), self.sample)

    def components(self) -> dict[str, Any]:
        """Return all that the views depend on, but the weights."""
        settings = self.part.job.settings
        return {
            "need": repr(self.need),
            "inputs": self.part.job.inputs_of(self.need).fingerprint,
            "settings": [settings.dtype, settings.positions, settings.device],
            **code_of(VIEWS, [type(self.need)]),
        } | ({} if self.sample is None else {"rows": _digest(self.sample)})

    @cached_property
    def cells(self) -> list[ViewCell]:
        """A cell for each checkpoint."""
        need, rows = self._read
        shared = self.components()
        return [
            ViewCell(
                FOLDER,
                step,
                Path(FOLDER) / "views" / f"{step}.safetensors",
                f"step {step} for the concepts of {self.name}",
                {**shared, "weights": digest},
                need=need,
                rows=rows,
            )
            for step, digest in self.digests.items()
        ]

    def read(self, progress: Progress) -> dict[int, Path]:
        """Return the files of all views by step, and read those that are missing.

        Checkpoints that cannot be read are left out, and said.
        """
        compute(self.part, self.cells, progress)
        release_skeleton()
        job = self.part.job
        return {
            int(cell.key): job.folder / cell.place
            for cell in self.cells
            if not left_of(job, task_of(self.part, cell))
        }

    def forget(self) -> None:
        """Remove the views."""
        shutil.rmtree(self.part.job.folder / FOLDER / "views", ignore_errors=True)


def _digest(sample: TokenSample) -> str:
    places = np.stack([sample.text, sample.position]).astype(np.int64)
    return hashlib.sha256(places.tobytes()).hexdigest()


class LayerViews(Sequence[np.ndarray]):
    """The views of one layer, from their files when they are asked for."""

    def __init__(self, files: Sequence[Path], layer: str) -> None:
        self._files = files
        self._layer = layer

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: Any) -> Any:
        data = read_cell(self._files[index], verify=False).data
        return np.asarray(data[self._layer].values, dtype=np.float32)


def views_of(
    studies: Mapping[str, tuple[Study, Path]],
) -> tuple[dict[str, RunViews], dict[str, RunViews]]:
    """Return the views of each run, and of the first control run of each where all have one.

    Raises
    ------
    ArgumentError
        If a study has no joint concepts, or they are of other texts or tokens.
    """
    runs = {}
    controls = {}
    for name, (study, folder) in studies.items():
        asked = _asked(name, study)
        joint = _joint(asked)
        parts = study.parts(folder)
        runs[name] = RunViews(name, parts[0], joint, asked)
        of_control = [p for p in parts[1:] if asked.name in p.job.by_name]
        if of_control:
            controls[name] = RunViews(name, of_control[0], joint, asked)
    _align(runs, controls)
    return runs, controls if len(controls) == len(runs) else {}


def _asked(name: str, study: Study) -> Any:
    """Return the observable whose layers and tokens are taken."""
    for kind in ("joint-concepts", "learned-concepts"):
        for observable in study.observables:
            if observable.kind == kind:
                return observable
    raise ArgumentError(
        f"run {name!r} has neither learned-concepts nor joint-concepts, whose layers and tokens "
        'are taken; study it with [[observables]] kind = "learned-concepts", or the preset '
        "standard."
    )


def _joint(asked: Any) -> Any:
    """Return the joint concepts to fit: a dictionary's memory grows with the square of its tokens."""
    if asked.kind == "joint-concepts":
        return asked
    most = (
        MOST_TOKENS if asked.max_tokens is None else min(asked.max_tokens, MOST_TOKENS)
    )
    names = ("layers", "on", "tokens", "random_state")
    options = {name: getattr(asked, name) for name in names}
    return make("joint-concepts", max_tokens=most, **options)


def views_here(runs: Mapping[str, Any], progress: Progress) -> bool:
    """Return whether runs need one dictionary, and can be read again without a download; say why not.

    They need none where the concepts that each of them found are compared, but to say what a second
    run, trained from the first, made of its concepts.
    """
    try:
        views, _ = views_of(studies_of(runs, True))
        matched_layers(list(views.values()))
    except ArgumentError as error:
        progress.note(f"no dictionary over all runs: {error}")
        return False
    if comparable(open_runs(runs)) is not None and not _is_tuned(list(views.values())):
        return False  # what each run found beyond the token is compared
    checkpoints = chain.from_iterable(run.part.trajectory for run in views.values())
    here = all(checkpoint.is_downloaded for checkpoint in checkpoints)
    if not here:
        progress.note(
            "no dictionary over all runs: their checkpoints would be downloaded again; "
            "ontogeny compare --concepts does so."
        )
    return here


def _align(runs: dict[str, RunViews], controls: dict[str, RunViews]) -> None:
    """Let all runs read the same places of their texts, where their tokenizers differ."""
    inputs = [run.part.job.inputs_of(run.need) for run in runs.values()]
    if len({texts.fingerprint for texts in inputs}) == 1 or any(
        i.texts is None for i in inputs
    ):
        _check_same(runs)
        return
    needs = [run.need for run in runs.values()]
    if any(need.tokens != "all" for need in needs):
        raise ArgumentError(
            "runs with other tokens are aligned by characters with tokens='all'."
        )
    samples, note = aligned_tokens(
        inputs, list(runs), needs[0].max_tokens, needs[0].random_state
    )
    for name, sample in zip(list(runs), samples, strict=True):
        for part in (runs, controls):
            if name in part:
                part[name] = replace(part[name], sample=sample, note=note)


def _check_same(runs: Mapping[str, RunViews]) -> None:
    """Refuse views of other tokens: one token must be the same in all runs."""
    first = next(iter(runs.values()))
    for run in runs.values():
        inputs = run.components()["inputs"]
        theirs = first.components()["inputs"]
        reads = [
            (n.tokens, n.max_tokens, n.random_state) for n in (run.need, first.need)
        ]
        if inputs != theirs or reads[0] != reads[1]:
            what = "texts" if inputs != theirs else "tokens of them"
            raise ArgumentError(
                f"concepts needs the same tokens in all runs; {run.name!r} reads other {what} "
                f"than {first.name!r}."
            )


def matched_layers(runs: Sequence[RunViews]) -> tuple[dict[str, list[str]], str]:
    """Return by common label the path of each layer in every run, and in words how they match.

    Raises
    ------
    ArgumentError
        If they cannot be matched.
    """
    match = match_layers([run.layers for run in runs])
    if match is None:
        raise ArgumentError(
            "the layers of the runs could not be matched for shared concepts."
        )
    paths = (
        [run.layers[places[i]] for run, places in zip(runs, match.places, strict=True)]
        for i in range(len(match.labels))
    )
    return dict(zip(match.labels, paths, strict=True)), match.words


def began_at(
    runs: Sequence[RunViews], files: Mapping[str, Mapping[int, Path]]
) -> int | None:
    """Return the step of the first of two runs at whose weights the second begins, if it does."""
    if len(runs) != 2:
        return None
    base, tuned = runs
    begun = _begun(tuned)
    return max(
        (step for step in files[base.name] if base.digests[step] in begun), default=None
    )


def _begun(run: RunViews) -> set[str]:
    """Return by which weights it is known where a run begins.

    The weights of a base that is given, or adapted, are part of what its step 0 is made of.
    """
    whole = run.part.graph.digests.whole
    first = next(iter(run.part.trajectory))
    return {whole(first), whole(first.sources[0])}


def _is_tuned(runs: Sequence[RunViews]) -> bool:
    """Return whether one of two runs begins at weights of the other."""
    if len(runs) != 2:
        return False
    pairs = (runs, runs[::-1])
    return any(_begun(tuned) & set(base.digests.values()) for base, tuned in pairs)


def price(runs: Sequence[RunViews]) -> str:
    """Return in words what a fit reads and keeps until it is done."""
    bytes_ = sum(r.part.graph.probe.bytes[r.need] // 2 * len(r.digests) for r in runs)
    count = sum(len(run.digests) for run in runs)
    return (
        f"concepts over all runs: {count} checkpoints are read once more, and "
        f"{size_text(bytes_)} of activations are kept until the dictionary is fitted"
    )
