"""The module that was adapted, with the weights of its base."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..weights.building import Template
from ..weights.inert import plain
from ..weights.precision import widest
from ..weights.transformers_models import (
    checked_configuration,
    load_pretrained,
    model_class,
    named_class,
)
from .settings import AdapterSettings

_HEADS = (
    "score.weight",
    "classifier.weight",
    "classifier.out_proj.weight",
    "qa_outputs.weight",
)


@dataclass(frozen=True)
class AdaptedModel:
    """Builds the module that was adapted, where its base's configuration says another.

    Attributes
    ----------
    folder
        Of the base.
    class_name
        Of the module.
    labels, vocabulary
        How many the adapter has, where it holds them all; None as in the base.
    """

    folder: Path
    class_name: str
    labels: int | None = None
    vocabulary: int | None = None

    def __call__(self) -> nn.Module:
        """Return the module, with untrained weights.

        Raises
        ------
        CheckpointError
            If transformers has no such class.
        """
        cls = named_class(self.class_name)
        config = checked_configuration(self.folder, cls)
        if self.labels is not None:
            config.num_labels = self.labels
        if self.vocabulary is not None:
            config.get_text_config().vocab_size = self.vocabulary
        module: nn.Module = cls(config)
        return module


def template_of(base: Checkpoint, settings: AdapterSettings) -> Template | None:
    """Return what builds the adapted module; None where it is the base's own.

    Raises
    ------
    CheckpointError
        If the configuration of the base or the adapter's tensors cannot be read.
    """
    configuration = base.configuration()
    if configuration is None or base.path is None:
        return base.template  # of a GGUF file, which has no config.json
    config = checked_configuration(base.path)
    shapes = settings.shapes()
    name = settings.class_name(config)
    cls = model_class(base.path) if name is None else named_class(plain(name))
    labels = head_size(shapes)
    vocabulary = _vocabulary(cls, config, shapes)
    is_own = name is None or [name] == configuration.get("architectures")
    if is_own and vocabulary is None and labels in (None, config.num_labels):
        return None
    return AdaptedModel(base.path, cls.__name__, labels, vocabulary)


def _vocabulary(
    cls: Any, config: Any, shapes: Mapping[str, tuple[int, ...]]
) -> int | None:
    """Return how many tokens there are where the embedding was enlarged before the tuning."""
    known = getattr(config.get_text_config(), "vocab_size", None)
    if known is None:
        return None
    larger = {
        n: shape[0]
        for n, shape in shapes.items()
        if len(shape) == 2 and shape[0] > known
    }
    if not larger:
        return None
    with torch.device("meta"):
        module = cls(config)
    ends = (module.get_input_embeddings(), module.get_output_embeddings())
    names = [
        f"{n}.weight"
        for n, m in module.named_modules()
        if any(m is end for end in ends)
    ]
    return next((larger[name] for name in names if name in larger), None)


def base_module(
    base: Checkpoint, template: Template | None, stored: Collection[str]
) -> nn.Module:
    """Return the module that an adapter is put into, with mapped weights of the base.

    `stored` are names of tensors that the adapter holds whole, so that the base may lack them.

    Raises
    ------
    CheckpointError
        If the base lacks other weights.
    """
    if template is None or isinstance(template, AdaptedModel):
        assert base.path is not None
        like = None if template is None else template()
        with base.open() as reader, torch.random.fork_rng(devices=[]):
            try:
                return load_pretrained(
                    base.path, reader, widest(reader), like, stored
                ).eval()
            except CheckpointError as error:
                if template is None or template.vocabulary is None:
                    raise
                raise CheckpointError(
                    f"{error} The vocabulary was enlarged to {template.vocabulary:,} before the "
                    "tuning, and the adapter does not hold all of it: save the enlarged base, and "
                    "name it with --base (base= in Python)."
                ) from None
    return base.mapped()


def head_size(shapes: Mapping[str, tuple[int, ...]]) -> int | None:
    """Return how many labels the head has that an adapter holds, or None without one.

    Examples
    --------
    >>> head_size({"score.weight": (3, 8)}), head_size({"lm_head.weight": (50, 8)})
    (3, None)
    """
    return next((shape[0] for n, shape in shapes.items() if n.endswith(_HEADS)), None)
