"""What one loaded checkpoint shows of a model: all that a fitting study file depends on."""

from __future__ import annotations

from dataclasses import dataclass

from ..words.formats import plural


@dataclass(frozen=True)
class ModelFacts:
    """What one checkpoint shows of a model, and why some measurements cannot be made of it.

    The reasons, ``no_...``, are empty where nothing stands in the way.
    """

    model_class: str
    family: str
    """The family's name; empty for a model that has no short names."""
    parameters: int
    layers: tuple[str, ...]
    """A pattern for what each block's MLP gives, in order; of the blocks where no MLP is found."""
    every_layer: str
    """One pattern for all of them."""
    width: int
    """Columns of the narrowest of these layers."""
    objective: str
    """``"causal"`` or ``"masked"``; empty if nothing is predicted."""
    named: bool
    """Whether the class's name shows what is predicted."""
    no_prediction: str
    """Why a loss cannot be computed; empty if it can."""
    no_maps: str
    """Why there is no attention entropy; empty if there is."""
    blocks: tuple[str, ...]
    """Patterns of the weight matrices in blocks, without those of the vocabulary."""
    embedded: bool
    """Whether the rows of a token embedding are found."""
    longest: int | None
    """Tokens that a text may have; None if there is no limit."""
    adapted: tuple[str, ...] = ()
    """Names of the matrices that an adapter changes outside the blocks, such as a saved head."""
    no_labels: str = ""
    """Why labels cannot be compared with its answers; empty if they can."""
    no_copying: str = ""
    """Why its weights do not say which heads copy; empty if they do."""
    no_tokenizer: str = ""
    """Why texts of a measurement's own cannot be read; empty if they can."""
    no_english: str = ""
    """Why English sentences would show nothing of it; empty if nothing speaks against them."""

    @property
    def line(self) -> str:
        """One line for people."""
        predicts = f"{self.objective} predictions" if self.objective else "no predictions"
        family = f" ({self.family})" if self.family else ""
        layers = plural(len(self.layers), "layer")
        return (
            f"{self.model_class}{family}: {layers} of width {self.width}, "
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
        return f"the way from the layers of {self.model_class} to its logits is not known"

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
