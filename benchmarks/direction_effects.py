"""How often a planted direction is called needed or said to move something, and how often others are.

    env OMP_NUM_THREADS=1 python benchmarks/direction_effects.py OUT.jsonl [--draws 300]

It resumes: a line is written for each draw, and those that are in the file are not made again.

Each draw has a language of its own: words of two factors, of which each follows a Markov chain. Its
model is the exact one, by construction: one unit direction of the layer carries the first factor,
and the logarithms of the other chain, decomposed, the rest of the layer. So the loss needs that
direction from the checkpoint on at which it is written, and adding it moves the loss. So it is with
examples whose ends differ in the first factor: the group ``first`` needs it, and ``one way``, of
which the right end always has the second value, is moved. Examples whose ends differ in the other
factor (``second``) neither need it nor are moved. The same is asked about directions that have
nothing to do with it, at one checkpoint:

- ``arbitrary``: a mixture of the layer's rows,
- ``isotropic``: any direction, of a model without the first factor, of which each has a part,
- ``unread``: one that has much variance and is not read by the head,
- ``untrained``: the planted one, in a model with random embedding and head,
- ``trained``: mixtures of rows of a transformer's last layer that was trained on such a language,
- ``trained isotropic``: any direction of that layer.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from directions import drawn
from torch import Tensor, nn

from ontogeny import Inputs
from ontogeny.arrays import to_numpy
from ontogeny.capture import activations
from ontogeny.capture.gradients import gradients
from ontogeny.capture.objectives import ReadingSettings
from ontogeny.claims import Certainty, Claim, Kind
from ontogeny.features.directions.changed_layer import ChangedLayer, Groups
from ontogeny.features.directions.effect_claims import (
    claims_of_abilities,
    claims_of_effects,
)
from ontogeny.features.directions.measured import unit_rows
from ontogeny.features.directions.on_abilities import DirectionEffects, right
from ontogeny.features.directions.removed import Effects, loss_at
from ontogeny.needs import Gradients
from ontogeny.observables import by_layer
from ontogeny.observables.random_directions import random_directions

STEPS, TEXTS, LENGTH, WIDTH = 3, 100, 12, 24
OTHERS = 15  # values of the second factor
EXAMPLES = 30  # of each group, of different contexts and ends
CASES = ("planted", "arbitrary", "isotropic", "unread", "untrained")
TRAINED = ("trained", "trained isotropic")
EVERY = (*CASES, *TRAINED)
READ = 2.5  # the planted direction is read so much more strongly than it is written
MODELS = 10  # that are trained
LAYER = "layer"
KINDS = {Kind.NEEDED: "needs", Kind.STEERS: "steers"}


class Language(NamedTuple):
    """Two Markov chains, whose pairs are the words.

    Attributes
    ----------
    first
        (2, 2) log-probabilities of the factor that the planted direction carries.
    second
        (v, v) those of the other.
    """

    first: np.ndarray
    second: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Language:
        """Return a first factor that stays in nine of ten, and a second one by a random table."""
        table = rng.normal(size=(OTHERS, OTHERS))
        return cls(np.log([[0.9, 0.1], [0.1, 0.9]]), np.log(_shares(table)))

    def texts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return words (count, LENGTH): twice the second factor and the first."""
        factors = [
            _walks(rng, np.exp(table), count) for table in (self.second, self.first)
        ]
        return 2 * factors[0] + factors[1]


def _shares(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _walks(rng: np.random.Generator, table: np.ndarray, count: int) -> np.ndarray:
    edges = table.cumsum(axis=1)
    walks = rng.integers(0, len(table), (count, LENGTH))
    for place in range(1, LENGTH):
        luck = rng.random((count, 1))
        steps = (edges[walks[:, place - 1]] < luck).sum(axis=1)
        walks[:, place] = np.minimum(steps, len(table) - 1)
    return walks


class Exact(nn.Module):
    """A layer of word vectors, and a head that reads them."""

    def __init__(self, words: np.ndarray, head: np.ndarray) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(torch.from_numpy(words).float())
        self.layer = nn.Identity()
        self.head = nn.Linear(WIDTH, len(head), bias=False)
        self.head.weight = nn.Parameter(torch.from_numpy(head).float())

    def forward(self, input_ids: Tensor, attention_mask: Any = None) -> Tensor:
        """Return logits."""
        logits: Tensor = self.head(self.layer(self.words(input_ids)))
        return logits


class Planted(NamedTuple):
    """Vectors of words, and what the head reads of them.

    Attributes
    ----------
    unit, unread
        (m,) the direction of the first factor, and one that the head does not read.
    words, head
        (words, m) of everything but the first factor.
    signs
        (words,) the first factor, as strong as head and words together make it.
    """

    unit: np.ndarray
    unread: np.ndarray
    words: np.ndarray
    head: np.ndarray
    signs: np.ndarray

    @classmethod
    def of(cls, language: Language, rng: np.random.Generator) -> Planted:
        """Return the exact model of a language in directions that are drawn."""
        turned = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
        U, sizes, V = np.linalg.svd(
            language.second - language.second.mean(axis=1, keepdims=True)
        )
        word = np.arange(2 * OTHERS)
        axes = turned[2 : 2 + OTHERS]
        vectors, heads = (part * np.sqrt(sizes) @ axes for part in (U, V.T))
        noise = rng.normal(size=len(word))
        return cls(
            turned[0],
            turned[1],
            vectors[word // 2] + 2 * np.outer(noise, turned[1]),
            heads[word // 2],
            np.sqrt(np.ptp(language.first) / 2) * (2.0 * (word % 2) - 1),
        )

    def model(self, written: bool) -> Exact:
        """Return the model, with its first factor or without."""
        first = written * np.outer(self.signs, self.unit)
        return Exact(self.words + first / READ, self.head + first * READ)


class Transformer(nn.Module):
    """Two blocks, whose last output is the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(2 * OTHERS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                WIDTH, 2, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.layer = nn.Identity()
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 2 * OTHERS, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Any = None) -> Tensor:
        """Return logits."""
        length = input_ids.shape[1]
        later = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.words(input_ids) + self.places.weight[:length]
        for block in self.blocks:
            x = block(x, src_mask=later, is_causal=True)
        logits: Tensor = self.head(self.norm(self.layer(x)))
        return logits


@functools.cache
def trained(seed: int) -> tuple[Language, Transformer]:
    """Return a language and a transformer that was trained on it."""
    rng = np.random.default_rng([seed, 77])
    language = Language.drawn(rng)
    torch.manual_seed(seed)
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(400):
        ids = torch.from_numpy(language.texts(rng, 64))
        logits = model(ids)[:, :-1].flatten(0, 1)
        loss = nn.functional.cross_entropy(logits, ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return language, model.eval()


@dataclass(frozen=True)
class Examples:
    """Pairs of texts of two words, which begin with one word and end with another.

    Parameters
    ----------
    words
        (n, 3) the first word, and the right and the wrong second one.
    group
        (n,) ``"first"`` and ``"one way"``: they differ in the first factor; ``"second"``: in the
        other.
    """

    words: np.ndarray
    group: np.ndarray

    @classmethod
    def drawn(cls, language: Language, rng: np.random.Generator) -> Examples:
        """Return pairs of which the right end is the likelier one."""
        rows = []
        for i in range(2 * EXAMPLES):
            context, end = rng.integers(0, OTHERS, 2)
            factor = i % 2 if i < EXAMPLES else 1
            ends = 2 * end + factor, 2 * end + 1 - factor
            rows.append((2 * context + factor, *ends))
        for i in range(EXAMPLES):
            context = rng.integers(0, OTHERS)
            ends = rng.choice(OTHERS, 2, replace=False)
            better, worse = sorted(ends, key=lambda end: -language.second[context, end])
            factor = i % 2
            rows.append((2 * context + factor, 2 * better + factor, 2 * worse + factor))
        group = np.repeat(["first", "one way", "second"], EXAMPLES)
        return cls(np.array(rows), group)

    def odds(self, model: nn.Module) -> np.ndarray:
        """Return (n,) by how much the right end is likelier, in nats."""
        with torch.no_grad():
            logits = model(torch.from_numpy(self.words[:, :1]))[:, -1]
        both = logits.gather(1, torch.from_numpy(self.words[:, 1:])).double()
        return np.asarray((both[:, 0] - both[:, 1]).numpy())


def effects_on_loss(
    model: nn.Module, inputs: Inputs, direction: Any, seed: int
) -> xr.Dataset:
    """Return one cell of what `Directions` measures of effects, beside eight random directions."""
    reading = gradients(
        model, Gradients("next-token"), {"text": inputs}, ReadingSettings(TEXTS)
    )
    at, rows = loss_at(reading, inputs.sample("all", None, 0), "causal", 0)
    A = layer_of(model, inputs)[rows]
    unit = unit_rows(direction(A)[None])
    return by_layer(
        {LAYER: A}, lambda path, _: Effects(path, at, A, 0.5).of(unit, 8, seed)
    )


def effects_on_examples(
    model: nn.Module, inputs: Inputs, examples: Examples, direction: Any, seed: int
) -> xr.Dataset:
    """Return one cell of `DirectionEffects`, beside four random directions."""
    asked = DirectionEffects({"asked": np.ones(WIDTH)}, layer=LAYER)
    groups = Groups(examples.group, lambda members: members)
    plain = examples.odds(model)

    def one(path: str, A: np.ndarray) -> dict[str, Any]:
        change = ChangedLayer(model, path, A, lambda: examples.odds(model))
        (unit,) = unit_rows(direction(A)[None])
        random = random_directions(change.centred, asked.n_draws, [seed, 13])
        found = asked._of_direction(change, unit, random, plain, groups)
        cell = xr.concat([xr.Dataset(found)], "direction").assign(
            accuracy=("group", groups.means(right(plain))),
            log_odds=("group", groups.means(plain)),
            contrasts=("group", groups.counts),
        )
        return dict[Any, Any](cell)

    return by_layer({LAYER: layer_of(model, inputs)}, one).assign_coords(
        group=groups.names
    )


def layer_of(model: nn.Module, inputs: Inputs) -> np.ndarray:
    """Return activations (n, m) of every token."""
    found = activations(model, inputs, LAYER, max_tokens=None)
    return to_numpy(found[LAYER]).astype(np.float64)


def result_of(case: str, seed: int) -> dict[str, Any]:
    """Return what is claimed of one drawn run, by what is claimed and of what."""
    rng = np.random.default_rng([seed, EVERY.index(case)])
    born = int(rng.integers(1, STEPS))
    if case in TRAINED:
        language, model = trained(seed % MODELS)
        models = [model]
    else:
        language = Language.drawn(rng)
        planted = Planted.of(language, rng)
        steps = range(STEPS) if case == "planted" else [STEPS]
        models = [planted.model(case != "isotropic" and step >= born) for step in steps]
        if case == "untrained":
            models = [_untrained(rng)]
    mixed, any_one = rng.normal(size=TEXTS * LENGTH), rng.normal(size=WIDTH)

    def direction(A: np.ndarray) -> np.ndarray:
        if case.endswith("isotropic"):
            return any_one
        if case in ("arbitrary", "trained"):
            return np.asarray(mixed[: len(A)] @ (A - A.mean(axis=0)))
        return planted.unread if case == "unread" else planted.unit

    inputs = Inputs.from_tokens(language.texts(rng, TEXTS))
    examples = Examples.drawn(language, rng)
    loss = [effects_on_loss(model, inputs, direction, seed) for model in models]
    asked = [
        effects_on_examples(model, inputs, examples, direction, seed)
        for model in models
    ]
    found = {"case": case, "seed": seed, "born": born}
    claims = (
        *claims_of_effects("directions", _over_steps(loss)),
        *claims_of_abilities("direction-effects", _over_steps(asked)),
    )
    return found | dict(_said(claims))


def _untrained(rng: np.random.Generator) -> Exact:
    return Exact(*rng.normal(size=(2, 2 * OTHERS, WIDTH)) / np.sqrt(WIDTH))


def _over_steps(cells: list[xr.Dataset]) -> xr.Dataset:
    steps = xr.DataArray(np.arange(len(cells)), dims="step", name="step")
    return xr.concat(cells, dim=steps).assign_coords(direction=["asked"])


def _said(claims: tuple[Claim, ...]) -> Iterator[tuple[str, Any]]:
    """Give for each claim since when it surely holds, None where it is open."""
    for claim in claims:
        of = claim.subject.label.removeprefix("asked · ")
        group = "loss" if claim.subject.node == "directions" else of
        sure = claim.certainty is Certainty.SURE
        yield f"{group} {KINDS[claim.kind]}", float(claim.since) if sure else None


def main() -> None:
    """Draw what is missing, and print the rates of every case."""
    for case, some in drawn(__doc__, 300, EVERY, result_of):
        rates: Counter[str] = Counter()
        for one in some:
            said = {k: v for k, v in one.items() if k not in ("case", "seed", "born")}
            rates.update({name: since is not None for name, since in said.items()})
            rates.update(
                {f"{name}, exact": v == one["born"] for name, v in said.items()}
            )
        print(case, len(some), dict(rates))


if __name__ == "__main__":
    main()
