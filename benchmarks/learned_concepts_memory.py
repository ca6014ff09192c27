"""Memory and processor time of `learned-concepts` on many tokens, through a study.

    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts_memory.py TEXTS [--tokens 100000]
        [--checkpoints 32] [--train 200]

A process of its own trains a LLaMA of four layers of width 128 for some steps on the file of texts
(blank lines between them) and writes checkpoints. This process then runs a study of all four layers.
Printed are the largest resident memory (``getrusage``, files that are mapped included) after the
imports and after the study, and processor time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import ontogeny as og

LAYERS = 4
WIDTH = 128
VOCABULARY = 4096
LENGTH = 64
BATCH = 32


def texts_of(path: Path) -> list[str]:
    """Return the texts of a file, by blank lines."""
    return [text for text in path.read_text().split("\n\n") if text.strip()]


def write_run(folder: Path, path: Path, checkpoints: int, steps: int) -> None:
    """Train a tokenizer and a model on a file, and write checkpoints at even distances."""
    torch.set_num_threads(1)
    texts = texts_of(path)
    tokenizer = og.tasks.train_tokenizer(texts, VOCABULARY)
    pieces = [i for text in texts for i in tokenizer(text)["input_ids"]]
    rows = torch.tensor(pieces[: len(pieces) // LENGTH * LENGTH]).view(-1, LENGTH)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    kept = set(np.linspace(0, steps, checkpoints).round().astype(int).tolist())
    for step in range(steps + 1):
        if step in kept:
            to = folder / f"checkpoint-{step}"
            model.save_pretrained(to)
            tokenizer.save_pretrained(to)
        batch = rows[torch.randint(len(rows), (BATCH,))]
        loss = model(batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"trained for {steps} steps to a loss of {loss.item():.2f}", flush=True)


def peak() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--checkpoints", type=int, default=32)
    parser.add_argument("--train", type=int, default=200, help="steps of training")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    imported = peak()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run").mkdir()
        of_run = (folder / "run", given.texts, given.checkpoints, given.train)
        apart = multiprocessing.get_context("spawn").Process(
            target=write_run, args=of_run
        )
        apart.start()
        apart.join()
        run = og.Trajectory.from_folder(folder / "run")
        texts = texts_of(given.texts)
        inputs = og.Inputs.from_texts(texts, run.tokenizer(), max_length=LENGTH)
        # No more texts than hold these tokens: others would be read for nothing.
        sampled = inputs.lengths - inputs.special.sum(axis=1)
        enough = int(np.cumsum(sampled).searchsorted(given.tokens)) + 1
        inputs = inputs.subset(np.arange(min(enough, len(inputs))))
        layers = tuple(f"layers[{i}]" for i in range(LAYERS))
        concepts = og.observables.LearnedConcepts(layers, max_tokens=given.tokens)
        study = og.Study(run, inputs, [concepts], device="cpu")
        before = peak()
        began = time.process_time()
        result = study.run(folder / "study", progress=False)
        spent = time.process_time() - began
        data = result["learned-concepts"]
        print(
            f"{given.tokens} tokens ({len(inputs)} texts), {len(run.steps)} checkpoints, "
            f"{data.sizes['layer']} layers: {data.n_again.values.tolist()} components found again, "
            f"{int(data.again.notnull().sum())} kept"
        )
    print(
        f"largest resident memory {peak():.0f} MiB ({imported:.0f} after imports, {before:.0f} "
        f"before the study); {spent:.0f} s of processor time"
    )


if __name__ == "__main__":
    main()
