"""A recipe of the report on concept dynamics: small EuroBERTs, or recorded runs of any model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ontogeny.inputs import Inputs
from ontogeny.observables import Observable
from ontogeny.start.source import name_of, open_source
from ontogeny.training.run import RunSettings
from ontogeny.trajectory import Trajectory

from ..recipe import Findings, Materials
from ..trained_recipe import TrainedRecipe, folder_name
from .masked_run import MaskedRun, recorded_texts

GIVEN = "recorded runs"
"""Label of runs that were given and not trained."""


@dataclass(frozen=True)
class ConceptSize:
    """How large a recipe of the report is.

    Parameters
    ----------
    runs
        What is trained, by the label of the comparison; one without a comparison.
    seeds
        Seeds of each.
    observables
        What is observed.
    texts, max_length
        Held-out texts that are studied, and how many tokens of each.
    checkpoints
        How many of the recorded checkpoints are studied; None: all.
    control_steps
        At about how many steps each control run is read.
    """

    runs: Mapping[str, MaskedRun]
    seeds: tuple[int, ...]
    observables: tuple[Observable, ...]
    texts: int = 200
    max_length: int = 64
    checkpoints: int | None = None
    control_steps: int = 6


@dataclass(frozen=True)
class ConceptRecipe(TrainedRecipe):
    """The reproduction of a figure or table of the report on concept dynamics.

    Sizes are of `ConceptSize`. All recipes in one output folder share what is trained and, for the
    same observables, what is measured. Each study stands beside turned control runs, which move as
    far and learn nothing. Recorded runs can be given in place of trained ones, such as
    ``EuroBERT/EuroBERT-210m``, whose checkpoints the report studies.

    Examples
    --------
    >>> from ontogeny import reproduce
    >>> reproduce.recipe("concepts-figure-2").reads_runs
    True
    """

    controls: int = 3
    reads_text: bool = True
    reads_runs: bool = True

    def measured(self, size: ConceptSize, materials: Materials) -> Findings:
        """Train and study every seed of every run, or study the runs that were given."""
        return super().measured(
            of_sources(size) if materials.sources else size, materials
        )

    def runs_folder(
        self, label: str, run: MaskedRun, size: ConceptSize, materials: Materials
    ) -> Path:
        """Return where the seeds of a run on this text are recorded."""
        return (
            materials.folder.parent
            / "runs"
            / folder_name("eurobert", [asdict(run), self.digest(materials.text)])
        )

    def study_folder(
        self, label: str, seed: int, recorded: Path, materials: Materials
    ) -> Path:
        """Return where a seed is studied: once for all recipes, which read each other's cells."""
        if materials.sources:
            name = folder_name(name_of(str(recorded)), str(recorded))
        else:
            name = f"{recorded.parent.name}-{recorded.name}"
        return materials.folder.parent / "studies" / name

    def control_settings(self, size: ConceptSize) -> dict[str, Any]:
        """Return how many control runs each study has, and at how many steps they are read."""
        return {"controls": self.controls, "control_steps": size.control_steps}

    def record(
        self, run: MaskedRun, folder: Path, size: ConceptSize, materials: Materials
    ) -> list[Path]:
        """Train a run once for each seed; return the runs that were given instead, if any."""
        if materials.sources:
            return [Path(source) for source in materials.sources]
        return run.record(folder, size.seeds, materials.texts, materials.training)

    def opened(self, run: MaskedRun, folder: Path) -> Trajectory:
        """Return a recorded trajectory, or that of a repository on the Hub."""
        return open_source(str(folder))

    def inputs(
        self,
        run: MaskedRun,
        trajectory: Trajectory,
        size: ConceptSize,
        materials: Materials,
    ) -> dict[str, Inputs]:
        """Return some of the texts that are studied."""
        texts = studied_texts(trajectory, materials)
        places = np.linspace(0, len(texts) - 1, min(size.texts, len(texts))).astype(int)
        chosen_texts = [texts[i] for i in places]
        return {
            "texts": Inputs.from_texts(
                chosen_texts, trajectory.tokenizer(), size.max_length
            )
        }


def studied_texts(trajectory: Trajectory, materials: Materials) -> Sequence[str]:
    """Return the texts that are studied: those that the run itself held out.

    A recorded run that kept none is studied on the text that is given, or on Python's own
    documentation, of which nobody knows whether it was trained on it.
    """
    recorded = None if trajectory.path is None else recorded_texts(trajectory.path)
    has_text = materials.text is not None and materials.sources
    return materials.texts if has_text or recorded is None else recorded


def of_sources(size: ConceptSize) -> ConceptSize:
    """Return a size without a comparison: recorded runs have one label."""
    return dataclasses.replace(size, runs={GIVEN: next(iter(size.runs.values()))})


RUN = "EuroBERT"
"""Label of the run where nothing is compared."""
_FULL = MaskedRun(RunSettings(steps=960))
_QUICK = MaskedRun(RunSettings.quick(), checkpoints=25)


def sizes(
    observables: Callable[[int, int], tuple[Observable, ...]],
) -> tuple[ConceptSize, ConceptSize]:
    """Return the full and the quick size of a recipe.

    Parameters
    ----------
    observables
        From the number of concepts and of tokens to what is observed.
    """
    return (
        ConceptSize({RUN: _FULL}, (0, 1, 2, 3, 4), observables(20, 3000)),
        ConceptSize(
            {RUN: _QUICK}, (0, 1, 2), observables(8, 600), texts=60, control_steps=4
        ),
    )


def two_sizes(
    observables: Callable[[int, int], tuple[Observable, ...]],
) -> tuple[ConceptSize, ConceptSize]:
    """Return the full and the quick size of a recipe that compares a smaller with a larger model.

    One of the two is the model of the other recipes, which is trained once for all of them.
    """
    full, quick = sizes(observables)
    larger = replace(_FULL, settings=replace(_FULL.settings, layers=10, width=192))
    smaller = replace(_QUICK, settings=replace(_QUICK.settings, width=32))
    return (
        replace(full, runs={_shape(run): run for run in (_FULL, larger)}),
        replace(quick, runs={_shape(run): run for run in (smaller, _QUICK)}),
    )


def _shape(run: MaskedRun) -> str:
    return f"{run.settings.layers} layers of width {run.settings.width}"
