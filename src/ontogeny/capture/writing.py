"""What a model writes after a prompt or in a row of gaps: its likeliest tokens, and one draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..errors import NonFiniteError, check_whole
from ..inputs import Inputs
from .forward import device_of, quiet
from .predictor import Predictor, check_mask_token

LIKELIEST = 40  # tokens that a draw is among
NOTHING = -1  # where the text has ended


def continued(
    predictor: Predictor, prompts: ArrayLike, count: int, random_state: int = 0
) -> np.ndarray:
    """Return what a causal model writes after prompts of one length.

    Parameters
    ----------
    predictor
        The model. Models of transformers write by their own ``generate``, which keeps what it has
        read; any other reads all again for each token.
    prompts
        (p, k) token ids.
    count
        Tokens that are written at most.
    random_state
        Seed of the draws, which are among the `LIKELIEST` tokens by their probabilities. Their
        noise follows from seed, prompt, place and token alone: checkpoints that predict the same
        write the same.

    Returns
    -------
    numpy.ndarray
        (p, 2, count) ids: the likeliest token at each place, and the draw. -1 after the end of the
        text, and where the model can read no further tokens.

    Raises
    ------
    NonFiniteError
        If the logits are not finite.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> continued(Predictor(model, "causal"), [[5, 6], [7, 8]], 3).shape
    (2, 2, 3)
    """
    ids = np.asarray(prompts, dtype=np.int64)
    longest = predictor.longest
    fits = check_whole("count", count, 1)
    if longest is not None:
        fits = min(fits, longest - ids.shape[1])
    written = np.full((len(ids), 2, count), NOTHING)
    if fits > 0:
        write = _generated if _can_generate(predictor.model) else _read_again
        tokens = write(predictor, np.repeat(ids, 2, axis=0), fits, random_state)
        written[:, :, : tokens.shape[1]] = tokens.reshape(len(ids), 2, -1)
    return written


def filled(
    predictor: Predictor, inputs: Inputs, at: int, count: int, random_state: int = 0
) -> np.ndarray:
    """Return (2, count) ids that a masked model fills a row of gaps with, from left to right.

    Parameters
    ----------
    predictor
        The model.
    inputs
        One text, whose `count` tokens from the place `at` on are hidden.
    at, count, random_state
        First gap, number of gaps, and the seed, as of `continued`.

    Raises
    ------
    ArgumentError
        If the inputs have no mask token.
    NonFiniteError
        If the logits are not finite.
    """
    check_mask_token(inputs)
    text = inputs.ids[0][inputs.mask[0]]
    ask = _Asked(predictor, random_state, inputs.mask_token_id)
    texts = np.stack([text, text])
    for place in range(count):
        texts[:, at + place] = ask(texts, at + place, place, width=count - place)
    return texts[:, at : at + count]


def _can_generate(model: Any) -> bool:
    can = getattr(model, "can_generate", None)
    return callable(can) and bool(can())


def _generated(
    predictor: Predictor, texts: np.ndarray, count: int, random_state: int
) -> np.ndarray:
    """Write after texts (2 p, k), of which each second one goes on with a draw."""
    from transformers import GenerationConfig, LogitsProcessorList

    model: Any = predictor.model
    ends = getattr(model.generation_config, "eos_token_id", None)
    stops = [] if ends is None else np.atleast_1d(ends).tolist()
    settings = GenerationConfig(
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=stops or None,
        pad_token_id=stops[0] if stops else 0,
    )
    ids = torch.from_numpy(texts).to(device_of(model))
    draw = _Drawn(type(model).__name__, texts.shape[1], random_state)
    with quiet(model), _alone(model, settings):
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([draw]),
        )
    return _ended(output[:, texts.shape[1] :].cpu().numpy(), stops)


@contextmanager
def _alone(model: Any, settings: Any) -> Iterator[None]:
    """Let no setting of the model's own count: `generate` takes what is left open from them."""
    own = model.generation_config
    model.generation_config = settings
    try:
        yield
    finally:
        model.generation_config = own


@dataclass(eq=False)
class _Drawn:
    """Makes the likeliest token of each second text a draw."""

    name: str
    start: int
    random_state: int

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Return logits (2 p, V); each second row holds noise, and its likeliest tokens alone."""
        if bool(torch.isnan(scores).any()):
            raise NonFiniteError(
                f"the logits of {self.name} are not finite where it writes."
            )
        vocabulary = scores.shape[1]
        place = ids.shape[1] - self.start
        chosen = scores.clone()
        for row in range(1, len(scores), 2):
            likeliest, tokens = scores[row].topk(min(LIKELIEST, vocabulary))
            noise = _noise(self.random_state, row, place, vocabulary)
            at_tokens = torch.from_numpy(noise[tokens.cpu().numpy()])
            chosen[row] = -torch.inf
            chosen[row, tokens] = likeliest + at_tokens.to(likeliest)
        return chosen


def _ended(tokens: np.ndarray, stops: list[int]) -> np.ndarray:
    """Return tokens with nothing after the end of each text."""
    is_end = np.isin(tokens, stops)
    is_after = np.cumsum(is_end, axis=1) - is_end > 0
    return np.where(is_after, NOTHING, tokens)


def _read_again(
    predictor: Predictor, texts: np.ndarray, count: int, random_state: int
) -> np.ndarray:
    ask = _Asked(predictor, random_state, None)
    start = texts.shape[1]
    for place in range(count):
        texts = np.pad(texts, ((0, 0), (0, 1)))  # with the token that is asked for
        texts[:, -1] = ask(texts, start + place, place)
    return texts[:, start:]


@dataclass(eq=False)
class _Asked:
    """A model that is asked for one token of texts, of which each second one gets a draw."""

    predictor: Predictor
    random_state: int
    mask_token: int | None

    def __post_init__(self) -> None:
        self._vocabulary = 0

    def __call__(
        self, texts: np.ndarray, at: int, place: int, width: int = 1
    ) -> list[int]:
        """Return the likeliest token of each text at `at`, and a draw for each second one."""
        inputs = Inputs.from_tokens(
            texts, mask=np.ones(texts.shape, dtype=bool), mask_token_id=self.mask_token
        )
        if not self._vocabulary:
            self._vocabulary = self.predictor.vocabulary(inputs)
        top = min(LIKELIEST, self._vocabulary)
        rows = np.arange(len(texts))
        answers = self.predictor.at(
            inputs, rows, np.full(len(texts), at), width=width, top=top
        )
        tokens = answers.answer_id.values
        best = tokens[:, 0].tolist()
        for row in range(1, len(texts), 2):
            noise = _noise(self.random_state, row, place, self._vocabulary)
            noisy = answers.answer_log_probability.values[row] + noise[tokens[row]]
            best[row] = int(tokens[row, noisy.argmax()])
        return best


def _noise(random_state: int, row: int, place: int, vocabulary: int) -> np.ndarray:
    """Return the noise (V,) that makes the largest logit a draw (Gumbel's)."""
    seed = [random_state, row, place]
    return np.random.default_rng(seed).gumbel(size=vocabulary)
