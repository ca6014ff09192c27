"""Which type a file of token ids is of where several fit: the one whose order the model knows.

Text is predicted better in its own order than shuffled, and bytes that are read as other ids are
not. Nothing is decided where a model has learned too little to tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from .. import capture
from ..capture.loss import resolve_objective
from ..errors import ArgumentError, OntogenyError
from ..inputs import Inputs
from ..inputs.id_formats import DTYPES, SeveralReadingsError
from ..study.file import make_sources
from ..trajectory import Trajectory
from .shown import longest_in

_TEXTS = 16
_LENGTH = 64
_ERRORS = 3.0  # standard errors by which the order must help
_NATS = 0.05  # nats a token, at least
# Nats a byte, as a share of those of another reading whose order helps as well.
_LESS = 0.8


@dataclass(frozen=True)
class _Scored:
    """What a reading of a file costs the model: nats a token in order and shuffled."""

    dtype: str
    plain: float
    shuffled: float
    helps: bool

    @property
    def per_byte(self) -> float:
        return self.plain / np.dtype(DTYPES[self.dtype]).itemsize

    def __str__(self) -> str:
        return (
            f"{self.dtype} {self.plain:.2f} nats a token, shuffled {self.shuffled:.2f}"
        )


def sources_by_model(
    content: Mapping[str, Any], folder: Path
) -> tuple[Trajectory, dict[str, Inputs], dict[str, str], list[str]]:
    """Return checkpoints, texts, and the type of ids that was found, with what is said of it.

    Raises
    ------
    OntogenyError
        As `make_sources`; if no type of several is clearly the right one, the error names them.
    """
    try:
        return (*make_sources(content, folder), {}, [])
    except SeveralReadingsError as error:
        several = error
    scored = []
    model: nn.Module | None = None
    for dtype in several.dtypes:
        table = {**content["inputs"], "dtype": dtype}
        try:
            trajectory, inputs = make_sources({**content, "inputs": table}, folder)
            last = trajectory[int(trajectory.steps[-1])]
            if not last.is_downloaded:  # nothing is fetched before that is asked
                raise several
            model = model or last.model()
            scored.append(_score(dtype, model, next(iter(inputs.values()))))
        except SeveralReadingsError:
            raise
        except (OntogenyError, IndexError, RuntimeError):
            # Ids that the model lacks, or no logits.
            continue
    chosen = _clearest(scored)
    if chosen is None:
        found = f" The last checkpoint does not distinguish them ({'; '.join(map(str, scored))})."
        raise ArgumentError(f"{several}{found if scored else ''}") from several
    said = {"dtype": chosen.dtype}
    line = f"ids are read as {chosen.dtype}, which the last checkpoint predicts best"
    table = {**content["inputs"], **said}
    sources = make_sources({**content, "inputs": table}, folder)
    return (*sources, said, [f"{line}: {'; '.join(map(str, scored))}"])


def _clearest(scored: list[_Scored]) -> _Scored | None:
    """Return the reading whose order helps; of several the one that costs clearly fewer nats."""
    helped = sorted((one for one in scored if one.helps), key=lambda one: one.per_byte)
    if not helped:
        return None
    if len(helped) > 1 and helped[0].per_byte > _LESS * helped[1].per_byte:
        return None
    return helped[0]


def _score(dtype: str, model: nn.Module, inputs: Inputs) -> _Scored:
    few = inputs.subset(np.arange(min(_TEXTS, len(inputs))))
    ids = few.ids[:, : min(_LENGTH, longest_in(model) or _LENGTH)]
    shuffled = np.random.default_rng(0).permutation(ids.ravel()).reshape(ids.shape)
    try:
        objective = resolve_objective(model)
    except ArgumentError:  # the class's name does not say it
        objective = "causal"
    plain, other = (
        capture.losses(model, _alike(few, rows), objective=objective).loss.values
        for rows in (ids, shuffled)
    )
    gain = other - plain
    error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else np.inf
    helps = float(gain.mean()) > max(_ERRORS * error, _NATS)
    return _Scored(dtype, float(plain.mean()), float(other.mean()), helps)


def _alike(inputs: Inputs, ids: np.ndarray) -> Inputs:
    mask = np.ones(ids.shape, dtype=bool)
    return Inputs.from_tokens(
        ids, mask, mask_token_id=inputs.mask_token_id, vocab_size=inputs.vocab_size
    )
