"""Pages of a run that was still training: what they say of themselves, and when they refresh."""

from __future__ import annotations

from dataclasses import dataclass

from ...words.catalogue.captions import CAPTIONS
from ...words.formats import step_text

LEFT_OUT = (
    "Until the training has ended, distances are measured to the first {checkpoint}, and noise "
    "floors and control runs are left out, so only the loss can be called learned."
)


@dataclass(frozen=True)
class Live:
    """Says that a page is provisional.

    Parameters
    ----------
    step
        The last step that it shows.
    every
        Seconds after which it refreshes itself; None if it is not written again.

    Examples
    --------
    >>> Live(400, 60).note[:92]
    'Training was still running when this page was written, at {step} 400. It refreshes itself ev'
    """

    step: int
    every: float | None = None

    @property
    def note(self) -> str:
        """What the page says, with the mark of a step."""
        at = "Training was still running when this page was written, at {step} "
        at += f"{step_text(self.step)}."
        if self.every is None:
            return CAPTIONS["stopped"].format(at=at)
        return CAPTIONS["refreshes"].format(at=at, seconds=f"{self.every:g}")
