"""What the model writes, at every checkpoint: it goes on with a few fixed prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from ...capture.writing import NOTHING, continued, filled
from ...figures import Column, Figure, Section, Table
from ...inputs import Inputs
from ...observables import PresetEntry, Run
from ...observables.of_predictions import OfPredictions
from ...observables.pieces import (
    PIECES,
    object_array,
    pieces_variable,
    whole_numbers,
    with_pieces,
    written,
)
from ...trees import Nodes
from ...words.one_model import is_one_model
from .prompts import Prompt, beginnings, given_prompts, of_dataset, to_dataset

CHOICES = ("likeliest", "drawn")


@dataclass(frozen=True)
class Writing(OfPredictions):
    """What the model writes after fixed prompts: its likeliest tokens, and one draw.

    Prompts are the beginnings of texts of the input set; where answers are scored, what stands
    before them. A masked model fills a row of gaps, of which it sees both sides. The draw is among
    the 40 likeliest tokens, with the same random numbers at every checkpoint. Nothing is tested
    here: it shows what numbers are about.

    Parameters
    ----------
    prompts
        Texts to go on with, by the run's tokenizer, each shorter than what the model is known to
        read: as far as its positions reach, or of a module without them the longest text. For a
        masked model each holds a row of gaps ``____``.
    n_texts
        Texts whose beginnings are taken, without `prompts`.
    n_tokens
        Tokens that are written at most; gaps that a masked model fills are at most 12.
    prompt_tokens
        Tokens of a beginning, at most half of its text.
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    random_state
        Seed of the texts and of the draw.

    Examples
    --------
    >>> Writing(prompts=["Once upon a time"]).n_tokens
    60
    """

    prompts: tuple[str, ...] = ()
    n_texts: int = 2
    n_tokens: int = 60
    prompt_tokens: int = 24
    random_state: int = 0

    kind = "writing"
    minima = {"n_texts": 1, "n_tokens": 1, "prompt_tokens": 1}
    question = "What does the model write?"
    price = "tens of tokens, one after the other, at each step"
    presets = (
        PresetEntry(
            ("standard", "circuits", "fine-tuning", "everything", "one-model"), place=25
        ),
    )
    state_variables = (
        *("prompt_id", "follows_id", "prompt_at", "prompt_count", "prompt_start"),
        PIECES,
    )
    section = Section(
        title="What it writes",
        definition="A few prompts, and what the model goes on with at each {checkpoint}: the "
        "likeliest token each time, and one draw among the 40 likeliest by their probabilities, "
        "with the same random numbers at each {checkpoint}.",
        symbol="argmax p(x | prompt; θₜ)",
        care="An example, and no measure: likeliest tokens repeat themselves also where a model "
        "predicts well, and another draw writes another text.",
    )
    variables = {
        "written_id": ("token that is written; -1 after the end", ""),
        "prompt_id": ("token of the prompt; -1 beyond it", ""),
        "prompt_at": ("first place that is written", ""),
        "prompt_count": ("tokens that are written at most", ""),
        "follows_id": ("token that follows in the text; -1 beyond it", ""),
        "prompt_start": ("first token of the prompt that is not special", ""),
        "prompt_text": ("prompt", ""),
        "written_at_first": ("written at the first {checkpoint}", ""),
        "written_at_last": ("written at the last {checkpoint}", ""),
        "piece_text": ("how a token is written", ""),
    }

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the prompts, with what follows them in their texts."""
        asked, texts = self.needs()
        reading = run.reading(run.reference_step)
        pieces = run.pieces(texts)
        masked = bool(reading[asked].masked)
        # Of a module of one's own it is not known what it reads beyond the texts.
        room = reading[asked].longest or int(reading[texts].lengths.max())
        if self.prompts:
            prompts = given_prompts(
                self.prompts, run.tokenizer(), masked, self.n_tokens, room
            )
        else:
            prompts = beginnings(
                reading[texts],
                pieces,
                masked,
                self.n_texts,
                self.prompt_tokens,
                self.n_tokens,
                self.random_state,
            )
        if not masked:
            prompts = [replace(p, count=min(p.count, room - p.at)) for p in prompts]
        return to_dataset(prompts).assign({PIECES: pieces_variable(pieces)})

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return what one checkpoint writes."""
        assert state is not None
        asked, texts = self.needs()
        prompts = of_dataset(state)
        shape = (len(prompts), len(CHOICES), max(prompt.count for prompt in prompts))
        ids = np.full(shape, NOTHING)
        write = self._filled if reading[asked].masked else self._continued
        mask_token = reading[texts].mask_token_id
        for rows, tokens in write(reading[asked], prompts, mask_token):
            ids[rows, :, : tokens.shape[-1]] = tokens
        written = (("prompt", "choice", "written"), ids)
        return xr.Dataset({"written_id": written}, {"choice": list(CHOICES)})

    def _continued(
        self, predictor: Any, prompts: Sequence[Prompt], mask_token: int | None
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Give some prompts at once, those of one length, and what is written after them."""
        alike: dict[tuple[int, int], list[int]] = {}
        for number, prompt in enumerate(prompts):
            alike.setdefault((len(prompt.ids), prompt.count), []).append(number)
        for (_, count), rows in alike.items():
            ids = np.stack([prompts[row].ids for row in rows])
            yield rows, continued(predictor, ids, count, self.random_state)

    def _filled(
        self, predictor: Any, prompts: Sequence[Prompt], mask_token: int | None
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        for number, prompt in enumerate(prompts):
            text = Inputs.from_tokens([prompt.ids], mask_token_id=mask_token)
            tokens = filled(
                predictor, text, prompt.at, prompt.count, self.random_state + number
            )
            yield [number], tokens[None]

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with tokens as texts, and what is written at both ends of the run."""
        ids = ["written_id", "prompt_id", "follows_id"]
        data = with_pieces(whole_numbers(data, ids), ids)
        shown = written(data)
        there = data.written_id.transpose("step", "prompt", "choice", "written")
        is_read = (there.isel(choice=0) >= 0).any(["prompt", "written"])
        ends = there.isel(choice=0)[is_read.values].isel(step=[0, -1]).values
        starts = data.prompt_start.values
        ats = data.prompt_at.values
        prompts = [
            joined(shown, row[start:at])
            for row, start, at in zip(data.prompt_id.values, starts, ats, strict=True)
        ]
        first, last = ([joined(shown, row) for row in end] for end in ends)
        return data.assign(
            prompt_text=("prompt", object_array(prompts)),
            written_at_first=("prompt", object_array(first)),
            written_at_last=("prompt", object_array(last)),
        )

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return a table of what is written at the first and the last checkpoint."""
        if "prompt_text" not in data:
            return []
        columns = [Column("prompt_text", "prompt")]
        if not is_one_model(data):
            columns.append(Column("written_at_first", "first {checkpoint}"))
        last = "it writes" if is_one_model(data) else "last {checkpoint}"
        columns.append(Column("written_at_last", last))
        caption = "The likeliest token at each place."
        return [
            Table(
                "written",
                "What it writes",
                columns=columns,
                rows="prompt",
                caption=caption,
            )
        ]


def joined(shown: Mapping[int, str], ids: np.ndarray) -> str:
    """Return ids as one text; of numbers alone a space apart."""
    texts = [shown.get(int(i), str(i)) for i in ids if i >= 0]
    by_number = all(
        text == str(i) for i, text in zip(ids[ids >= 0], texts, strict=True)
    )
    return (" " if by_number else "").join(texts)
