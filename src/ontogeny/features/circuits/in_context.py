"""How much better a model predicts late in a text than early: learning from the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...figures import Section
from ...inputs import Inputs
from ...observables.catalogued import PresetEntry
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...quantities import Measured, Quantity
from .sequences import frame, framed

PLACES = ("early", "late", "late, short context")


@dataclass(frozen=True)
class InContextLearning(OfPredictions):
    """Loss late in a text minus loss early in it; below 0 where the context helps.

    Early and late are windows of tokens: `window` tokens from the `early`-th on, and as many up to
    the `late`-th. The null asks for the same late tokens with no more context than the early ones
    have. Late tokens may be easier in themselves, and the null shows by how much.

    Parameters
    ----------
    early, late
        Positions in a text, counted from 1, special tokens included. Texts shorter than `late` are
        left out. By default `late` is the median length, at most 500, and `early` a tenth of it:
        the 50th and 500th token of the paper where texts are long enough.
    window
        Tokens that are averaged; by default a twentieth of `late`. The paper takes 1.
    on
        Input set; the first by default.
    objective
        ``"auto"`` or ``"causal"``: a masked model sees what follows as well, and is refused.

    Notes
    -----
    C. Olsson et al. 2022, "In-context learning and induction heads" (in-context learning score).

    Examples
    --------
    >>> InContextLearning(early=50, late=500).name
    'in-context-learning'
    """

    early: int | None = None
    late: int | None = None
    window: int | None = None

    kind = "in-context-learning"
    minima = {"early": 2, "late": 2, "window": 1}
    choices = {"objective": ("auto", "causal")}
    question = "Does the model predict better late in a text than early?"
    price = "three passes a step"
    obstacles = ("no_prediction", "no_order")
    presets = (PresetEntry(("circuits", "everything"), place=250),)
    quantities = (
        Quantity(
            "score",
            "in-context-learning score",
            units="nats per {token}",
            rows="in-context learning",
            nulls={"short": "late tokens with as little context"},
            caption="Loss at late minus loss at early positions. Below the grey line: the longer "
            "context helps.",
        ),
        Quantity(
            "place_loss",
            "loss early and late in a text",
            units="nats per {token}",
            series="place",
        ),
    )
    section = Section(
        title="In-context learning",
        definition="Mean loss in a window of late positions minus that in a window of early ones, "
        "over the same texts.",
        symbol="L(late) − L(early)",
        null="The same late tokens, read with no more context than the early ones.",
        care="The score mixes what context gives with how hard tokens are in each place; its "
        "distance from the null is context alone. A score may also fall because early tokens got "
        "worse: see the losses.",
        source="Olsson et al. 2022",
    )

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Refuse texts that are too short, or of which no token is scored early and late."""
        name = self.on or next(iter(inputs))
        if name in inputs:
            Windows.of(inputs[name], self.early, self.late, self.window)

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the score, its null, and the losses that they are made of."""
        model, inputs = (reading[need] for need in self.needs())
        if model.masked:
            raise ArgumentError(
                "in-context-learning compares tokens with little and with much context before "
                "them; a masked model sees what follows as well, so every token has all of it."
            )
        windows = Windows.of(inputs, self.early, self.late, self.window)
        early = windows.losses(model, windows.texts, windows.early)
        late = windows.losses(model, windows.texts, windows.late)
        short = windows.losses(model, windows.shortened(), windows.early)
        units = windows.texts.groups
        even = np.ones(len(windows.texts))
        score = Measured.over_texts(
            float((late - early).mean()),
            late - early,
            even,
            units,
            nulls={"short": float((short - early).mean())},
        )
        table = np.stack([early, late, short])
        places = Measured.over_texts(
            ("place", table.mean(axis=1)), table, even, units, ("place", "text")
        )
        return dataset({"score": score, "place_loss": places}).assign_coords(
            place=list(PLACES)
        )


@dataclass(frozen=True, eq=False)
class Windows:
    """The texts that are long enough, and where their early and late tokens stand.

    Parameters
    ----------
    texts
        Texts of at least the late position, padded on the right.
    early, late
        First token of each window, from 0.
    size
        Tokens of a window.
    """

    texts: Inputs
    early: int
    late: int
    size: int

    @classmethod
    def of(
        cls, inputs: Inputs, early: int | None, late: int | None, window: int | None
    ) -> Windows:
        """Return the windows, with defaults that fit the texts.

        Raises
        ------
        ArgumentError
            If the windows overlap, or no text is long enough.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([range(1, 61), range(2, 62), range(3, 10)])
        >>> windows = Windows.of(inputs, None, None, None)
        >>> len(windows.texts), windows.early, windows.late, windows.size
        (2, 5, 57, 3)
        """
        late = min(500, int(np.median(inputs.lengths))) if late is None else late
        size = max(1, late // 20) if window is None else window
        early = max(2, late // 10) if early is None else early
        if early + size > late - size + 1:
            raise ArgumentError(
                f"early={early} and late={late} with a window of {size} tokens overlap: the early "
                "window must end before the late one begins. Use longer texts or a smaller window."
            )
        texts = inputs.padded("right")
        spans = cls(texts, early - 1, late - size, size)
        begin, end = (
            texts.scored[:, spans._window(at)] for at in (spans.early, spans.late)
        )
        long = texts.lengths >= late
        rows = np.flatnonzero(long & begin.any(axis=1) & end.any(axis=1))
        if not len(rows):
            raise ArgumentError(
                f"early and late must be places at which some text has scored tokens; got {early} "
                f"and {late}, and the longest text has {inputs.lengths.max()} tokens."
            )
        return replace(spans, texts=texts.subset(rows))

    def _window(self, first: int) -> slice:
        return slice(first, first + self.size)

    def shortened(self) -> Inputs:
        """Return texts that end with the late tokens and stand where the early ones stood."""
        begin, _ = frame(self.texts)
        begin = begin[: self.early]
        columns = slice(self.late - self.early + len(begin), self.late + self.size)
        short = framed(
            begin, self.texts.ids[:, columns], special=self.texts.special[:, columns]
        )
        if self.texts.answers is None:
            return short
        answers = np.zeros_like(short.mask)
        answers[:, len(begin) :] = self.texts.answers[:, columns]
        return replace(short, answers=answers)

    def losses(self, model: Any, texts: Inputs, first: int) -> np.ndarray:
        """Return the mean loss (n,) of scored tokens in the window that begins at `first`."""
        row, place = np.nonzero(texts.scored[:, self._window(first)])
        right = model.at(texts, row, first + place).right_log_probability.values
        total = np.bincount(row, weights=-right, minlength=len(texts))
        return np.asarray(total / np.bincount(row, minlength=len(texts)))
