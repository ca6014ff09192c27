"""What an observable is given: one checkpoint, a weight matrix or a series, and the whole run."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np
import xarray as xr

from ..needs import Need


class Reading(Protocol):
    """One checkpoint as an observable sees it: ``reading[need]`` for each declared need.

    Attributes
    ----------
    step
        Training step of the checkpoint.
    reference_step
        Step that references are taken from.
    """

    step: int
    reference_step: int

    @property
    def noise(self) -> bool:
        """Whether noise floors are to be measured at this step (about five steps of a study)."""

    def __getitem__(self, need: Need) -> Any:
        """Return the value of a declared need."""

    def units(self, need: Need) -> np.ndarray:
        """Return the index of the text that each row of a need's value belongs to.

        Rows of `Activations` are tokens or texts; `Losses` and `Attention` have one row a text.
        Tokens of one text are not independent, so noise is resampled over these texts.
        """

    def shared(self, need: Need, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return ``make()``, which other observables at this checkpoint may have computed before.

        It is kept for those that declare the same `need`, within 1 GiB for each worker. `key` must
        say which function of the need's value it is, and the value must have ``nbytes``.
        """


class BlockReading(Protocol):
    """One weight matrix over all steps, for observables that need `Weights`.

    Attributes
    ----------
    name
        Name of the parameter.
    shape
        Its shape, without masked rows.
    masked_rows
        Rows of an embedding beyond the tokenizer, which are left out.
    steps
        The steps, increasing.
    """

    name: str
    shape: tuple[int, ...]
    masked_rows: int
    steps: np.ndarray

    def rows(self, step: int, rows: np.ndarray) -> np.ndarray:
        """Return chosen rows of the matrix at one step, (len(rows), ...) float32."""

    def chunks(self) -> Any:
        """Iterate over ``(steps, coordinates)`` float arrays that together hold the matrix once."""


class SeriesReading(Protocol):
    """One layer of another observable over all steps, for observables that need a `Series`.

    Attributes
    ----------
    layer
        Module path.
    reference_step
        Step that references are taken from.
    data
        The variables asked for, along ``step``; steps whose cells failed are left out.
    """

    layer: str
    reference_step: int
    data: xr.Dataset


class Run(Protocol):
    """The study as `Observable.prepare` sees it."""

    reference_step: int

    @property
    def steps(self) -> np.ndarray:
        """All steps of the study."""

    @property
    def first_steps(self) -> np.ndarray:
        """Those of them that the study's folder was begun with: fits over steps keep to them."""

    @property
    def is_control(self) -> bool:
        """Whether it is a control run made of the studied one, at fewer steps than that."""

    @property
    def is_trial(self) -> bool:
        """Whether this is a dry run: a few examples show as well whether it works."""

    def reading(self, step: int) -> Reading:
        """Read one checkpoint for the observable's needs."""

    def untrained(self) -> Reading:
        """Read the run's model before training: at step 0, else newly initialised.

        In a fine-tuned run step 0 is the pretrained model.

        Raises
        ------
        ArgumentError
            If there is no step 0, and the model cannot be initialised anew.
        """

    def grown(self, step: int, like: int) -> Reading:
        """Read one checkpoint with the norm that each of its parameters has at another one.

        What a run gives that only grows, and learns nothing.
        """

    def tokenizer(self) -> Any:
        """Return the run's tokenizer, or None if there is none."""

    def pieces(self, need: Need) -> list[str]:
        """Return how each token id is shown, in the order of ids.

        The run's tokenizer tells, else the texts of the need's input set; ids that neither knows
        are shown as digits.
        """
