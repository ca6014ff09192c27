"""What people ask of an observable before they choose it, and which facts of a model decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..words.formats import plural

PASS = "one pass over the texts at each step"
DISTRIBUTIONS = f"{PASS}, with whole distributions"
FIT = "one fit for each layer and step, more where noise is measured"
SECONDS = "seconds for each layer, once"
LAST = 1000

# Arguments of entries that several observables have.
SOME_LAYERS = {"layers": "$layers", "max_tokens": "$tokens"}
INNER_LAYERS = {"layers": "$described", "max_tokens": "$tokens"}


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
        concepts are described), ``"$streams"`` (after which blocks the residual stream is read),
        ``"$concepts"`` and ``"$latents"`` (how many are fitted),
        ``"$blocks"`` (weight matrices), ``"$changed"`` (with what an adapter saved beside them),
        ``"$loss"`` (what is predicted), ``"$answers"`` (how many of the likeliest tokens are kept,
        where the model knows few). Arguments that the model leaves open are left out.
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

    Attributes
    ----------
    question
        What it answers, as a question.
    requires
        What it needs, in words, such as ``"texts"``.
    price
        What it costs, in words.
    fewest_steps
        Checkpoints that a study must have for it.
    obstacles
        Which of the reasons in `ModelFacts` rule it out, such as ``"no_prediction"``.
    file_arguments
        Arguments that name files of the user's: in a study file their paths are relative to it.
    form
        What the records of its files are, such as ``"minimal pairs"``.
    fields_of_form
        Which fields these have, in words.
    presets
        Its tables in the study files that presets write.
    """

    question: ClassVar[str] = ""
    requires: ClassVar[str] = ""
    price: ClassVar[str] = ""
    fewest_steps: ClassVar[int] = 1
    obstacles: ClassVar[tuple[str, ...]] = ()
    file_arguments: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[str] = ""
    fields_of_form: ClassVar[str] = ""
    presets: ClassVar[Presets] = ()

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


@dataclass(frozen=True)
class ModelFacts:
    """What one checkpoint shows of a model, and why some measurements cannot be made of it.

    The reasons, ``no_...``, are empty where nothing stands in the way.

    Attributes
    ----------
    family
        The family's name; empty for a model that has no short names.
    layers
        A pattern for what each block's MLP gives, in order; of the blocks where no MLP is found.
    every_layer
        One pattern for all of them, or each of them where other modules match it too.
    width
        Columns of the narrowest of these layers.
    objective
        ``"causal"`` or ``"masked"``; empty if nothing is predicted.
    named
        Whether the class's name shows what is predicted.
    no_prediction
        Why a loss cannot be computed; empty if it can.
    no_maps
        Why there is no attention entropy; empty if there is.
    blocks
        Patterns of the weight matrices in blocks, without those of the vocabulary.
    embedded
        Whether the rows of a token embedding are found.
    longest
        Tokens that a text may have; None if there is no limit.
    adapted
        Names of the matrices that an adapter changes outside the blocks, such as a saved head.
    streams
        A pattern for what the residual stream holds after each block, in order; empty where no
        family says it.
    no_layers
        Why there are no layers; empty if there are any.
    no_labels
        Why labels cannot be compared with its answers; empty if they can.
    no_copying
        Why its weights do not say which heads copy; empty if they do.
    tokens
        How many different tokens it can be shown, special ones left out; None if that is unknown.
    no_tokenizer
        Why texts of a measurement's own cannot be read; empty if they can.
    no_english
        Why English sentences would show nothing of it; empty if nothing speaks against them.
    """

    model_class: str
    family: str
    parameters: int
    layers: tuple[str, ...]
    every_layer: str | tuple[str, ...]
    width: int
    objective: str
    named: bool
    no_prediction: str
    no_maps: str
    blocks: tuple[str, ...]
    embedded: bool
    longest: int | None
    adapted: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    no_layers: str = ""
    no_labels: str = ""
    no_copying: str = ""
    tokens: int | None = None
    no_tokenizer: str = ""
    no_english: str = ""

    @property
    def line(self) -> str:
        """One line for people."""
        predicts = (
            f"{self.objective} predictions" if self.objective else "no predictions"
        )
        family = f" ({self.family})" if self.family else ""
        layers = f"{plural(len(self.layers), 'layer')} of width {self.width}"
        if not self.layers:
            layers = "no layers"
        return (
            f"{self.model_class}{family}: {layers}, "
            f"{self.parameters / 1e6:.3g} million parameters, {predicts}"
        )

    @property
    def no_order(self) -> str:
        """Why tokens cannot be compared by what stands before them."""
        if self.objective != "masked":
            return ""
        return "it compares tokens by what stands before them, and a masked model sees both sides"

    @property
    def many_passes(self) -> str:
        """Why the probability of a text is dear; empty if one pass over it gives it."""
        if self.objective != "masked":
            return ""
        return "a masked model takes a pass for each token of them; preset everything has them"

    @property
    def no_way_to_logits(self) -> str:
        """Why layers cannot be read with the vocabulary head."""
        if self.family:
            return ""
        return (
            f"the way from the layers of {self.model_class} to its logits is not known"
        )

    @property
    def no_matrices(self) -> str:
        """Why weight matrices cannot be followed."""
        return "" if self.blocks else "no weight matrices were found"

    @property
    def no_embedding(self) -> str:
        """Why the rows of the token embedding cannot be followed."""
        if self.embedded:
            return ""
        return "the rows of its token embedding were not found; name them with blocks = ..."
