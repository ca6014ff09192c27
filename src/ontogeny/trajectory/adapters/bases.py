"""The base of a fine-tuning: a folder, or a repository on the Hub."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..hub.client import resolve_cache
from ..hub.repository import Repository, is_name
from ..hub.revision import HubWeights
from ..weights.building import Template
from ..weights.folders import find_weights
from ..weights.formats import own_template
from ..weights.inert import plain
from ..weights.transformers_models import checked_configuration, named_class

logger = logging.getLogger("ontogeny.trajectory")

_HEADS = ("score.weight", "classifier.weight", "classifier.out_proj.weight", "qa_outputs.weight")


def find_base(
    base_name: str | Path, model: Template | None, beside: tuple[Path, ...] = ()
) -> Checkpoint:
    """Return a base as a checkpoint of step 0; of the Hub, nothing but its commit is asked for.

    Parameters
    ----------
    base_name
        A folder or file of weights, or OWNER/NAME.
    model
        Builds the module, for one that is not of transformers.
    beside
        Folders that a relative path may be counted from.

    Raises
    ------
    CheckpointError
        If there is neither, or the folder holds no weights.
    """
    base_path = Path(base_name).expanduser()
    for path in (base_path, *(folder / base_path for folder in beside)):
        if path.exists():
            path = path.resolve()
            weights = find_weights(path)
            template = own_template(weights) if model is None else model
            return Checkpoint(0, path.name, path, weights, template)
    name = str(base_name)
    if not is_name(name) and not (name and name == base_path.name and name.isascii()):
        raise CheckpointError(
            f"the base {plain(name) or '(none is named)'} is no folder here and no OWNER/NAME of "
            "the Hub; say where it is with --base MODEL (base= in Python)."
        )
    repository = Repository(name, resolve_cache(None))
    try:
        commit = repository.commits()["main"]
    except (CheckpointError, KeyError) as error:
        raise CheckpointError(
            f"the base {plain(name)} is not in this folder and cannot be asked for ({error}); say "
            "where it is with --base MODEL (base= in Python)."
        ) from None
    logger.warning("the base of this run is %s on the Hub; it is fetched when it is read.", name)
    source = repository.revision("main", commit)
    return Checkpoint(0, name, source.path, HubWeights(source), model, None, source)


@dataclass(frozen=True)
class AdaptedModel:
    """Builds the class that was adapted, where the base's own class is another."""

    folder: Path
    class_name: str
    labels: int | None

    def __call__(self) -> nn.Module:
        """Return the module, with untrained weights.

        Raises
        ------
        CheckpointError
            If transformers has no such class.
        """
        cls: Any = named_class(self.class_name)
        config = checked_configuration(self.folder, cls)
        if self.labels is not None:
            config.num_labels = self.labels
        return cls(config)


def head_size(shapes: dict[str, tuple[int, ...]]) -> int | None:
    """Return how many labels the head has that an adapter holds, or None without one.

    Examples
    --------
    >>> head_size({"score.weight": (3, 8)}), head_size({"lm_head.weight": (50, 8)})
    (3, None)
    """
    return next((shape[0] for n, shape in shapes.items() if n.endswith(_HEADS)), None)
