"""What the model writes after a few prompts, at every step: the text beside the slider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...words.content import Content
from ...words.formats import step_text
from ...words.nodes import Node
from ..concepts.tokens import Pieces


@dataclass(frozen=True)
class Prompt:
    """A prompt with what stands behind its gaps, and what is written at the last step."""

    before: str
    after: str
    likeliest: str
    drawn: str
    follows: str


@dataclass(frozen=True)
class Written:
    """All that the template shows; `payload` holds what is written at each step.

    ``dated`` says whether the last step is one of a training: a published model that has no
    history is read as step 0, and has learned.
    """

    node: Node
    step: str
    dated: bool
    prompts: tuple[Prompt, ...]
    payload: dict[str, Any]


def read_written(content: Content) -> Written | None:
    """Return what the first node of written texts holds, if there is one of a single run."""
    names = ("written_id", "prompt_id", "prompt_at")
    node = next((n for n in content.nodes if all(w in n.dataset for w in names)), None)
    if node is None or content.runs or "step" not in node.dataset["written_id"].dims:
        return None
    data = node.dataset
    ids = data["written_id"].transpose("step", "prompt", "choice", "written").values
    is_read = (ids >= 0).any(axis=(1, 2, 3))
    if not is_read.any():
        return None
    steps = data["step"].values[is_read].astype(int)
    pieces = Pieces.of(data)
    texts = [
        [[_joined(pieces, choice) for choice in prompt] for prompt in step]
        for step in ids[is_read]
    ]
    prompts = tuple(
        _prompt(pieces, node, number, texts[-1][number])
        for number in range(data.sizes["prompt"])
    )
    payload = {"steps": steps.tolist(), "texts": texts}
    is_dated = not content.one_model or bool(steps[-1])
    return Written(node, step_text(steps[-1]), is_dated, prompts, payload)


def _prompt(pieces: Pieces, node: Node, number: int, last: list[str]) -> Prompt:
    data = node.dataset
    ids = data["prompt_id"].values[number].astype(int)
    ids = ids[ids >= 0]
    start = int(data["prompt_start"].values[number])
    at = int(data["prompt_at"].values[number])
    count = int(data["prompt_count"].values[number])
    likeliest, drawn = last
    return Prompt(
        before=_joined(pieces, ids[start:at]),
        after=_joined(pieces, ids[at + count :]),
        likeliest=likeliest,
        drawn=drawn,
        follows=_joined(pieces, data["follows_id"].values[number].astype(int)),
    )


def _joined(pieces: Pieces, ids: np.ndarray) -> str:
    """Return tokens as one text; of numbers alone a space apart."""
    texts = [pieces.text(int(i)) for i in ids if i >= 0]
    return (" " if pieces.numbers_only else "").join(texts)
