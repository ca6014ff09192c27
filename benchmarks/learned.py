"""How often "learned" is said of runs that learn nothing, and of runs that learn.

    OMP_NUM_THREADS=1 python benchmarks/learned.py [--runs 200] [--first 0] [--controls 3]
        [--text FILE]
        [FAMILY ...]

Runs are models of pairs of words (an embedding and a map to the vocabulary, 200 words, 12
dimensions) on texts of a Markov chain, with a loss on held-out texts that is judged as the page
judges it; classifiers are judged by their accuracy. Families that learn nothing: what motion alone
gives ("turned", "walk"), training on uniform random tokens, learning rate 0, a run that learns and
then diverges, and labels that are shuffled. With a text file (blank lines between texts), runs are
GPT-2 models of two layers of width 32 that are trained on it.
"""

from __future__ import annotations

import argparse
import copy
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

import ontogeny as og
from ontogeny.capture.logits import logits_of
from ontogeny.capture.reading import read
from ontogeny.features.labelled.permuted_labels import exchanged, with_exchanged_labels
from ontogeny.figures import Section
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured as OneMeasured
from ontogeny.quantities import Quantity
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.summarise import summarise

WORDS = 200
WIDTH = 12
TEXTS = 40
LENGTH = 32
LOSS = og.observables.Loss(objective="causal")
ACCURACY = Quantity(
    "accuracy",
    "accuracy",
    rows="accuracy",
    better="higher",
    beats="majority",
    nulls={"majority": "most frequent label"},
)


class Pairs(nn.Module):
    """Predicts each word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        logits: Tensor = self.head(self.embedding(input_ids))
        return logits


class Measured:
    """What one model gives for the needs of the loss."""

    def __init__(self, model: nn.Module, inputs: og.Inputs) -> None:
        self.values = read(model, LOSS.needs(), {"text": inputs})
        self.inputs = inputs

    def __getitem__(self, need: Any) -> Any:
        return self.values[need]

    def units(self, need: Any) -> np.ndarray:
        return np.asarray(self.inputs.groups)


def cells(run: Mapping[int, nn.Module], inputs: og.Inputs) -> xr.Dataset:
    """Return the cells of the loss of every checkpoint."""
    found = [LOSS.observe(Measured(model, inputs), None) for model in run.values()]  # type: ignore[arg-type]
    return xr.concat(found, xr.DataArray(list(run), dims="step", name="step"))


def controls_of(
    run: Mapping[int, nn.Module], count: int, kind: str, seed: int
) -> list[dict[int, nn.Module]]:
    """Return control runs of a run."""
    trajectory = og.Trajectory.from_models(dict(run))
    made = [
        trajectory.control(kind, random_state=1000 * seed + k) for k in range(count)
    ]
    return [{int(step): each[int(step)].model() for step in run} for each in made]


def judged(
    run: Mapping[int, nn.Module],
    inputs: og.Inputs,
    controls: int,
    seed: int,
    kind: str = "turned",
) -> xr.Dataset:
    """Return the node of the loss of a run as its page has it."""
    beside = {
        f"{kind} {k}": cells(each, inputs)
        for k, each in enumerate(controls_of(run, controls, kind, seed))
    }
    data = with_controls(cells(run, inputs), beside, LOSS.quantities, LOSS.compared)
    node = LOSS.summarise(data, {})
    return with_verdicts({"loss": node})["loss"]


def chain(rng: np.random.Generator, texts: int, after: np.ndarray) -> np.ndarray:
    """Return texts (texts, LENGTH) of a Markov chain over all words."""
    ids = np.empty((texts, LENGTH), dtype=np.int64)
    ids[:, 0] = rng.integers(0, WORDS, texts)
    for place in range(1, LENGTH):
        ids[:, place] = (
            (after[ids[:, place - 1]].cumsum(1) < rng.random((texts, 1)))
            .sum(1)
            .clip(max=WORDS - 1)
        )
    return ids


def trained(
    model: nn.Module, texts: np.ndarray, steps: int, rate: float, seed: int
) -> nn.Module:
    """Return the model after so many steps."""
    model = copy.deepcopy(model)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for _ in range(steps):
        batch = torch.from_numpy(texts[rng.integers(0, len(texts), 32)])
        logits = logits_of(model(batch[:, :-1])).flatten(0, 1)
        nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def world(seed: int) -> tuple[nn.Module, np.ndarray, og.Inputs, np.ndarray]:
    """Return an untrained model, texts to train on, texts held out, and random texts."""
    rng = np.random.default_rng(seed)
    frequency = rng.dirichlet(np.full(WORDS, 0.5))
    after = np.stack([rng.dirichlet(50 * frequency + 1e-3) for _ in range(WORDS)])
    torch.manual_seed(seed)
    held = og.Inputs.from_tokens(chain(rng, TEXTS, after), vocab_size=WORDS)
    return (
        Pairs().eval(),
        chain(rng, 400, after),
        held,
        rng.integers(0, WORDS, (400, LENGTH)),
    )


@functools.cache
def stories(path: str) -> tuple[np.ndarray, int]:
    """Return the ids of a text file in rows, and the size of the vocabulary."""
    parts = [text for text in Path(path).read_text().split("\n\n") if len(text) > 100]
    tokenizer = og.tasks.train_tokenizer(parts, 1000)
    special = set(tokenizer.all_special_ids)
    ids = [
        i for text in parts for i in tokenizer(text)["input_ids"] if i not in special
    ]
    return np.array(ids[: len(ids) // LENGTH * LENGTH]).reshape(-1, LENGTH), len(
        tokenizer
    )


def real_world(seed: int) -> tuple[nn.Module, np.ndarray, og.Inputs, np.ndarray]:
    """Return the same as `world` for a GPT-2 of two layers of width 32 on real text."""
    from transformers import GPT2Config, GPT2LMHeadModel

    rows, size = stories(TEXT_FILE[0])
    torch.manual_seed(seed)
    special = {"bos_token_id": 0, "eos_token_id": 0}
    shape = {"n_positions": LENGTH, "n_embd": 32, "n_layer": 2, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=size, **shape, **special)).eval()
    noise = np.random.default_rng(seed).integers(5, size, (1000, LENGTH))
    held = og.Inputs.from_tokens(rows[seed::100][:60], vocab_size=size)
    kept = np.ones(len(rows), dtype=bool)
    kept[seed::100] = False
    return model, rows[kept], held, noise


TEXT_FILE: list[str] = []


def run_of(family: str, seed: int) -> tuple[dict[int, nn.Module], og.Inputs]:
    """Return the checkpoints of one run of a family, and the texts that it is judged on."""
    first, texts, held, noise = (real_world if TEXT_FILE else world)(seed)
    rng = np.random.default_rng(10_000 + seed)
    steps = int(rng.choice([20, 60, 150]))
    rate = float(rng.choice([3e-3, 1e-2]))
    if family.startswith("further"):
        first = trained(first, texts, 150, 1e-2, seed)
        data = family.removeprefix("further ")
        shuffled = rng.permutation(texts.ravel()).reshape(texts.shape)
        other = {"random tokens": noise, "out of order": shuffled}.get(data, texts)
        last = trained(first, other, 10, 0.0 if data == "rate 0" else 1e-3, seed + 1)
        if data == "turned":
            return controls_of({0: first, 10: last}, 1, "turned", 77 + seed)[0], held
        return {0: first, 10: last}, held
    if family.startswith("learns"):
        steps = int(family.split()[1])
        return {0: first, steps: trained(first, texts, steps, 1e-2, seed)}, held
    if family in ("turned", "walk"):
        true = {0: first, steps: trained(first, texts, steps, rate, seed)}
        return controls_of(true, 1, family, 77 + seed)[0], held
    if family == "random tokens":
        return {0: first, steps: trained(first, noise, steps, rate, seed)}, held
    if family == "rate 0":
        return {0: first, steps: trained(first, texts, steps, 0.0, seed)}, held
    end = trained(first, texts, steps, rate, seed)
    with torch.no_grad():
        for parameter in end.parameters():
            parameter.mul_(20).add_(torch.randn_like(parameter))
    return {
        0: first,
        steps: trained(first, texts, steps, rate, seed),
        2 * steps: end,
    }, held


def answered(
    answers: Mapping[str, tuple[np.ndarray, np.ndarray]], labels: np.ndarray
) -> xr.Dataset:
    """Return the node of accuracy; answers (texts,) of "" and of controls, at first and last."""

    def run(ends: tuple[np.ndarray, np.ndarray]) -> xr.Dataset:
        texts = np.arange(len(labels))
        pieces = []
        for of_step in ends:
            cell = {
                "accuracy": OneMeasured.mean(
                    (of_step == labels).astype(float),
                    texts,
                    {"majority": np.bincount(labels).max() / len(labels)},
                ),
                **exchanged(of_step, labels, texts),
            }
            pieces.append(dataset(cell))
        return xr.concat(pieces, xr.DataArray([0, 100], dims="step", name="step"))

    beside = {name: run(ends) for name, ends in answers.items() if name}
    labels_of = og.observables.LabelAccuracy()
    data = with_controls(run(answers[""]), beside, [ACCURACY], labels_of.compared)
    data = with_exchanged_labels(data)
    node = summarise(data, [ACCURACY], Section("Accuracy", "."))
    return with_verdicts({"accuracy": node})["accuracy"]


def classifier(family: str, seed: int, count: int, controls: int) -> xr.Dataset:
    """Return the node of the accuracy of a regression on random features of texts."""
    rng = np.random.default_rng(seed)
    classes = int(rng.choice([2, 2, 3]))
    width = int(rng.choice([16, 64]))
    even = rng.random() < 0.5
    prior = (
        np.full(classes, 1 / classes) if even else rng.dirichlet(np.full(classes, 20.0))
    )
    signal = 0.35 if family == "weak labels" else 0.8
    data = rng.normal(size=(400 + count, width))
    truth = data @ rng.normal(size=(width, classes)) / np.sqrt(width) * signal
    truth += rng.gumbel(size=truth.shape) * (1 - signal) + np.log(prior) / 2
    labels = truth.argmax(1)
    features = np.c_[data, np.ones(400 + count)]
    start = rng.normal(size=(width + 1, classes)) * rng.choice([0.1, 1.0])
    start[-1] += rng.normal(size=classes) * rng.choice([0.0, 1.0])

    def fit(targets: np.ndarray) -> np.ndarray:
        of_class = np.eye(classes)[targets]
        return np.asarray(np.linalg.lstsq(features[:400], of_class, rcond=None)[0])

    own = labels[:400]
    further = family.startswith("further")
    shuffled = rng.permutation(own)
    trained = {"shuffled labels": shuffled, "one label": np.zeros_like(own)}.get(
        family, own
    )
    start = 3 * fit(own) if further else start
    move = 3 * fit(shuffled) if further else 5 * fit(trained) - start
    size = np.linalg.norm(move)

    def turn() -> np.ndarray:
        other = rng.normal(size=move.shape)
        return other * size / np.linalg.norm(other)

    if "turned" in family:
        move = turn()
    elif "walk" in family:
        move = sum(turn() * 0.3 for _ in range(8))
    elif "rate 0" in family:
        move = 0 * move
    turns = [turn() for _ in range(controls)]
    kind = "mirrored" if further else "turned"
    turns = [sign * each for each in turns for sign in (1, -1)] if further else turns
    held = features[400:]
    first = (held @ start).argmax(1)
    moves = {"": move, **{f"{kind} {k}": each for k, each in enumerate(turns)}}
    answers = {
        name: (first, (held @ (start + each)).argmax(1)) for name, each in moves.items()
    }
    return answered(answers, labels[400:])


def of_loss(family: str) -> Callable[[int, int], xr.Dataset]:
    if family.startswith("further"):  # pairs of mirrored control runs
        return lambda seed, n: judged(*run_of(family, seed), 2 * n, seed, "mirrored")
    return lambda seed, controls: judged(*run_of(family, seed), controls, seed)


FURTHER = ("text", "random tokens", "out of order", "rate 0", "turned")
"""What runs that begin trained go on with for ten steps."""


def of_labels(family: str, count: int) -> Callable[[int, int], xr.Dataset]:
    return lambda seed, controls: classifier(family, seed, count, controls)


LABELS = (
    *("shuffled labels", "one label", "turned", "walk", "rate 0"),
    *("further, turned", "further, shuffled labels", "further, rate 0"),
    *("weak labels", "strong labels"),
)


FAMILIES: dict[str, Callable[[int, int], xr.Dataset]] = {
    **{
        f: of_loss(f)
        for f in ("turned", "walk", "random tokens", "rate 0", "diverging end")
    },
    **{f: of_loss(f) for f in ("learns 5", "learns 20", "learns 100")},
    **{f"further {f}": of_loss(f"further {f}") for f in FURTHER},
    **{f"{f}, {n} texts": of_labels(f, n) for f in LABELS for n in (250, 1000)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--controls", type=int, default=3)
    parser.add_argument("families", nargs="*")
    parser.add_argument(
        "--text", default="", help="a text file: GPT-2 models are trained on it"
    )
    given = parser.parse_args()
    TEXT_FILE.extend([given.text] if given.text else [])
    torch.set_num_threads(1)
    seeds = range(given.first, given.first + given.runs)
    for family in given.families or FAMILIES:
        nodes = [FAMILIES[family](seed, given.controls) for seed in seeds]
        learned = sum(bool(node["learned"].any()) for node in nodes)
        p = np.array([float(node["p_learned"][0]) for node in nodes])
        lead = np.array([float(node["lead"][0]) >= 3 for node in nodes])
        if lead.any():
            sure = [bool(nodes[i]["learned"].any()) for i in np.flatnonzero(lead)]
            print(
                f"  of {len(sure)} with 3 standard errors above the majority: {sum(sure)}"
            )
        small = np.nanmean(p <= 0.05)
        gone = np.nanmean([float(n["not_improved"][0]) for n in nodes])
        print(
            f"{family}: learned {learned} of {len(nodes)}, p <= .05 in {small:.3f}, "
            f"surely not {gone:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
