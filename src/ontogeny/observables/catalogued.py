"""What people ask of an observable before they choose it, and in which presets it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .model_facts import ModelFacts

PASS = "one pass over the texts at each step"
DISTRIBUTIONS = f"{PASS}, with whole distributions"
FIT = "one fit for each layer and step, more where noise is measured"
SECONDS = "seconds for each layer, once"
LAST = 1000

# Arguments of entries that several observables have.
SOME_LAYERS = {"layers": "$layers", "max_tokens": "$tokens"}
INNER_LAYERS = {"layers": "$described", "max_tokens": "$tokens"}
PREDICTED = {"objective": "$objective"}


@dataclass(frozen=True)
class PresetEntry:
    """The table that an observable has in the study files of some presets.

    Parameters
    ----------
    presets
        Names of the presets.
    arguments
        Its arguments there. Texts that begin with ``$`` are filled in for a model: ``"$layers"``
        and ``"$tokens"`` (which activations are read), ``"$described"`` (the few layers whose
        concepts are described), ``"$concepts"`` and ``"$latents"`` (how many are fitted),
        ``"$blocks"`` (weight matrices), ``"$changed"`` (with what an adapter saved beside them),
        ``"$objective"`` and ``"$loss"`` (what is predicted). Arguments that the model leaves open
        are left out.
    place
        Where it stands among the others: by increasing numbers, and then by kind.
    obstacles
        Which further reasons in `ModelFacts` rule it out here, where nobody asked for it.

    Examples
    --------
    >>> PresetEntry(("standard",), {"layers": "$layers"}).place
    1000
    """

    presets: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    place: int = LAST
    obstacles: tuple[str, ...] = ()


Presets = tuple[PresetEntry, ...]


class Catalogued:
    """What `ontogeny list`, ``ontogeny help`` and the presets read of an observable.

    All of it may be left out by an observable of one's own.
    """

    question: ClassVar[str] = ""
    """What it answers, as a question."""
    requires: ClassVar[str] = ""
    """What it needs, in words, such as ``"texts"``."""
    price: ClassVar[str] = ""
    """What it costs, in words."""
    fewest_steps: ClassVar[int] = 1
    """Checkpoints that a study must have for it."""
    obstacles: ClassVar[tuple[str, ...]] = ()
    """Which of the reasons in `ModelFacts` rule it out, such as ``"no_prediction"``."""
    file_arguments: ClassVar[tuple[str, ...]] = ()
    """Arguments that name files of the user's: in a study file their paths are relative to it."""
    form: ClassVar[str] = ""
    """What the records of its files are, such as ``"minimal pairs"``."""
    fields_of_form: ClassVar[str] = ""
    """Which fields these have, in words."""
    presets: ClassVar[Presets] = ()
    """Its tables in the study files that presets write."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Forget what a class inherits that answers another question."""
        super().__init_subclass__(**options)
        cls.question = vars(cls).get("question", "")
        cls.presets = vars(cls).get("presets", ())

    @staticmethod
    def recognises(fields: Sequence[str]) -> bool:
        """Return whether files whose records have these fields are of its form."""
        return False

    @classmethod
    def place(cls) -> int:
        """Return its first place in presets."""
        return min((entry.place for entry in cls.presets), default=LAST)

    @classmethod
    def ruled_out(cls, model: ModelFacts, checkpoints: int) -> str:
        """Return why it cannot be used for a model and its checkpoints; empty if it can.

        Parameters
        ----------
        model
            What one checkpoint shows of the model.
        checkpoints
            How many are studied.
        """
        reasons = [getattr(model, name) for name in cls.obstacles]
        if checkpoints < cls.fewest_steps:
            reasons.append(f"it takes at least {cls.fewest_steps} checkpoints")
        return next(filter(None, reasons), "")
