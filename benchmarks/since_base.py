"""How often a run that begins trained is said to have learned or forgotten, wrongly and rightly.

    OMP_NUM_THREADS=1 python benchmarks/since_base.py --foreign FILE [--rows rows.jsonl]
        [--runs 300] [FAMILY ...]

Bases are Llamas of two layers of width 32 that were trained on Python's documentation. A run has
two checkpoints, 100 texts of 64 tokens and three mirrored pairs of control runs, and is judged as
the page judges its loss. In the families of `NULLS` only the scale of the logits changes, or only
which words are preferred (at random, or towards or away from how often they occur), or a mirrored
control is read as the run, or training goes on with random tokens or tokens out of order. In those
of `EFFECTS` it is tuned until it gained, or lost, so much on other texts: 3 % of what the base has
over word frequencies, and where that is less than 0.3 nats, 3 % of the entropy of the words. A few
bases and directions make all runs, with texts and control runs of their own. Rows are appended to
the file, and what is there is not computed again.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from trained_start import moved
from transformers import LlamaConfig, LlamaForCausalLM

import ontogeny as og
from ontogeny.capture.matching import MatchedWords
from ontogeny.capture.predicted import next_tokens
from ontogeny.capture.renaming import DRAWS, Calibration
from ontogeny.claims.since_base import LEAST
from ontogeny.features.predictions.loss import Loss
from ontogeny.observables.word_frequencies import blind_guess
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.tasks import python_documentation, train_tokenizer

LENGTH = 64
TEXTS = 100
PAIRS = 3
WORDS = 400
BASES = 3
DIRECTIONS = 4
NULLS = (
    "scale",
    "preferences",
    "frequencies",
    "mirrored",
    "random tokens",
    "out of order",
)
EFFECTS = ("known", "foreign", "forgets")
SHARE = 0.03
NO_GAIN = 0.3
FOREIGN: list[str] = []


@functools.cache
def texts_of(domain: str) -> Tensor:
    """Return rows of ids: Python's documentation, or the file, by the tokenizer of the former."""
    documents = python_documentation()
    tokenizer = train_tokenizer(documents[:1500], vocab_size=WORDS)
    if domain == "foreign":
        documents = Path(FOREIGN[0]).read_text(errors="ignore").split("\n\n")
    special = set(tokenizer.all_special_ids)
    ids = [
        i for text in documents for i in tokenizer(text).input_ids if i not in special
    ]
    rows = torch.tensor(ids[: len(ids) // LENGTH * LENGTH]).view(-1, LENGTH)
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))][
        :4500
    ]


def part(domain: str, which: str) -> Tensor:
    """Return texts to train on, to measure the gain on, or to judge by."""
    places = {
        "train": slice(2000),
        "measure": slice(2000, 2300),
        "judge": slice(2300, None),
    }
    return texts_of(domain)[places[which]]


def trained(
    model: nn.Module, rows: Tensor, steps: int, rate: float, seed: int
) -> nn.Module:
    model = copy.deepcopy(model)
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for _ in range(steps):
        batch = rows[torch.from_numpy(rng.integers(0, len(rows), 16))]
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


@functools.cache
def base(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = LlamaConfig(
        vocab_size=WORDS, num_attention_heads=4, max_position_embeddings=LENGTH, **shape
    )
    model = LlamaForCausalLM(config)
    model.lm_head = nn.Linear(32, WORDS)  # with a preference of each word
    return trained(model, part("known", "train"), 300, 3e-3, seed)


@torch.no_grad()
def log_probabilities(model: nn.Module, rows: Tensor) -> Tensor:
    logits = torch.cat(
        [model(input_ids=batch).logits[:, :-1] for batch in rows.split(50)]
    )
    return logits.flatten(0, 1).log_softmax(-1)


def loss_of(model: nn.Module, rows: Tensor) -> float:
    """Return the loss at the best temperature."""
    return float(_calibrated(log_probabilities(model, rows), rows)[0].mean())


def _calibrated(log_p: Tensor, rows: Tensor) -> tuple[np.ndarray, np.ndarray, float]:
    """Return losses of texts at the best temperature and as they are, and the inverse of it."""
    of_target = log_p.gather(1, rows[:, 1:].reshape(-1, 1))[:, 0]
    text = np.repeat(np.arange(len(rows)), LENGTH - 1)
    per_text = LENGTH - 1
    sums = np.bincount(text, -of_target.double().numpy())
    calibration = Calibration(len(rows))
    calibration.add(text, of_target, log_p)
    best = calibration.inverse_temperature(sums)
    return calibration.losses(sums) / per_text, sums / per_text, best


def mixed(first: nn.Module, last: nn.Module, share: float) -> nn.Module:
    """Return the model so far on the way from one to another."""
    model = copy.deepcopy(first)
    with torch.no_grad():
        for parameter, end in zip(model.parameters(), last.parameters(), strict=True):
            parameter.lerp_(end, share)
    return model


@functools.cache
def tuned(family: str, seed: int) -> tuple[nn.Module, nn.Module]:
    """Return a base and what it became, with the gain that the family has."""
    first = base(seed % BASES)
    domain = "foreign" if family in ("foreign", "forgets") else "known"
    last = trained(first, part(domain, "train"), 30, 3e-4, seed)
    rows = part("known" if family == "forgets" else domain, "measure")[:150]
    counts = torch.bincount(part(domain, "train").flatten(), minlength=WORDS) + 0.5
    entropy = -float((counts / counts.sum()).log()[rows[:, 1:]].mean())
    start = loss_of(first, rows)
    known = entropy - start
    wanted = SHARE * (known if known > NO_GAIN else entropy)
    sign = -1.0 if family == "forgets" else 1.0
    low = 0.0
    high = 1.0
    while (
        sign * (start - loss_of(mixed(first, last, high), rows)) < wanted and high < 8
    ):
        low = high
        high = 2 * high
    for _ in range(6):
        middle = (low + high) / 2
        gain = sign * (start - loss_of(mixed(first, last, middle), rows))
        low, high = (middle, high) if gain < wanted else (low, middle)
    return first, mixed(first, last, high)


def run_of(family: str, seed: int) -> tuple[nn.Module, nn.Module]:
    """Return the two checkpoints of a run."""
    rng = np.random.default_rng(seed)
    first = copy.deepcopy(base(seed % BASES))
    if family in EFFECTS:
        return tuned(family, seed % (BASES * DIRECTIONS))
    if family == "mirrored":
        start, end = tuned(("known", "foreign")[seed % 2], seed % (BASES * DIRECTIONS))
        return start, moved(start, end, "turned", 1.0, 10**6 + seed)
    if family in ("random tokens", "out of order"):
        rows = part("known", "train")[:500]
        noise = torch.from_numpy(rng.integers(5, WORDS, tuple(rows.shape)))
        mixed_up = rows.flatten()[torch.from_numpy(rng.permutation(rows.numel()))].view(
            -1, LENGTH
        )
        return first, trained(
            first, noise if family == "random tokens" else mixed_up, 8, 3e-4, seed
        )
    last = copy.deepcopy(first)
    counts = torch.bincount(part("known", "train").flatten(), minlength=WORDS) + 0.5
    strength = float(rng.choice([0.05, 0.1, 0.2, 0.4]))
    with torch.no_grad():
        # The logits are too large or small, or words are preferred.
        for model in (first, last):
            scale = 2.0 ** rng.uniform(-1, 1)
            bias = torch.from_numpy(rng.normal(0, 1, WORDS))
            if family == "scale":
                model.lm_head.weight.mul_(scale)
                model.lm_head.bias.mul_(scale)
            elif family == "preferences":
                model.lm_head.bias.add_(strength * bias.float())
            else:
                model.lm_head.bias.add_(
                    strength * float(rng.choice([-1, 1])) * counts.log()
                )
    return first, last


def measured(
    model: nn.Module, inputs: og.Inputs, rows: Tensor, whole: bool
) -> dict[str, Any]:
    """Return a step of the loss's cells; of a control run only what it is judged by."""
    log_p = log_probabilities(model, rows)
    predicted = next_tokens(inputs)
    matched = MatchedWords(inputs, predicted)
    matched.add(*np.nonzero(predicted), log_p)
    of_text, tokens, blind = matched.of_texts()
    calibrated, loss, best = _calibrated(log_p, rows)
    values = {
        "loss": float(loss.mean()),
        "loss_calibrated": float(calibrated.mean()),
        "loss_matched": float(np.average(of_text, weights=tokens)),
    }
    if not whole:
        return values
    return values | {
        "loss_of_text": ("text", loss),
        "loss_weights": ("text", np.full(len(rows), float(LENGTH - 1))),
        "loss_matched_of_text": ("text", of_text),
        "loss_matched_weights": ("text", tokens.astype(float)),
        "loss_matched_blind": blind,
        "loss_calibrated_of_text": ("text", calibrated),
        "loss_inverse_temperature": best,
        "loss_uniform": blind_guess(WORDS),
        # It knows the words: each renaming costs 99 nats.
        "loss_renamed": ("renaming", np.r_[loss.mean(), np.full(DRAWS, 99.0)]),
    }


def judged(family: str, seed: int) -> dict[str, Any]:
    """Return the verdict on a run."""
    rng = np.random.default_rng(10**6 + seed)
    pool = part("foreign" if family == "foreign" else "known", "judge")
    rows = pool[torch.from_numpy(rng.choice(len(pool), TEXTS, replace=False))]
    inputs = og.Inputs.from_tokens(rows.numpy(), vocab_size=WORDS)
    ends = run_of(family, seed)
    steps = xr.DataArray([0, 10], dims="step", name="step")
    of_run = [xr.Dataset(measured(model, inputs, rows, whole=True)) for model in ends]
    # A smaller change is neither learned nor lost.
    pairs = PAIRS if _counts(*of_run) else 1
    names = ("loss", "loss_calibrated", "loss_matched")
    beside = {}
    start = {name: float(of_run[0][name]) for name in names}
    for k in range(2 * pairs):
        model = moved(*ends, "turned", (-1.0) ** k, 1000 * seed + k // 2)
        pieces = [
            xr.Dataset(v) for v in (start, measured(model, inputs, rows, whole=False))
        ]
        beside[f"mirrored {k}"] = xr.concat(pieces, steps)
    loss = Loss(objective="causal")
    data = with_controls(
        xr.concat(of_run, steps), beside, loss.quantities, loss.compared
    )
    node = with_verdicts({"loss": loss.summarise(data, {})})["loss"]
    names = ("loss_p_learned", "loss_p_lost", "loss_gain", "loss_matched_gain")
    numbers = {name: float(node[name]) for name in (*names, "loss_matched_gain_noise")}
    verdicts = {
        name: bool(node[name].values[0]) for name in ("learned", "lost", "moved")
    }
    return {
        "family": family,
        "seed": seed,
        "loss": node.loss.values.tolist(),
        **numbers,
        **verdicts,
    }


def _counts(first: xr.Dataset, last: xr.Dataset) -> bool:
    known = float(first.loss_matched_blind - first.loss_matched)
    return (
        abs(float(first.loss_calibrated - last.loss_calibrated)) > 0.5 * LEAST * known
    )


def summary(rows: list[dict[str, Any]]) -> str:
    learned, lost, moved_far = (
        sum(row[n] for row in rows) for n in ("learned", "lost", "moved")
    )
    gain = np.median([row["loss_gain"] for row in rows])
    told = np.median([row["loss_matched_gain"] for row in rows])
    return (
        f"{rows[0]['family']}: of {len(rows)} runs {learned} learned, {lost} lost; the loss moved "
        f"in {moved_far}; median gain at the best temperature {gain:.4f}, judged {told:.5f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rows", type=Path, default=Path("since_base.jsonl"))
    parser.add_argument(
        "--foreign", required=True, help="a text file of another domain"
    )
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    FOREIGN.append(given.foreign)
    torch.set_num_threads(1)
    lines = given.rows.read_text().splitlines() if given.rows.exists() else []
    there = {(row["family"], row["seed"]): row for row in map(json.loads, lines)}
    families = given.families or (*NULLS, *EFFECTS)
    for seed in range(given.runs):
        for (
            family
        ) in families:  # in turns, so that an interrupted measurement has some of each
            if (family, seed) not in there:
                there[family, seed] = judged(family, seed)
                with given.rows.open("a") as file:
                    file.write(json.dumps(there[family, seed]) + "\n")
    for family in families:
        print(summary([there[family, seed] for seed in range(given.runs)]), flush=True)


if __name__ == "__main__":
    main()
