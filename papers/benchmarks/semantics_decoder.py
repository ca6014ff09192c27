"""Orthants of a small causal model's own embeddings while it learns.

    python benchmarks/semantics_decoder.py TRAIN.txt HELDOUT.txt

A GPT-2 of 2 layers and width 128 with its own vocabulary map is trained on the next of the 1,000
most frequent words (any other word is one more token). At chosen steps: orthants of its vocabulary
map beside word classes, and how much more often a held-out word follows a held-out context of its
own signature, both beside random groups and rotated axes. Contexts of 1 to 10 words come from one
pass.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from scipy import sparse

from ontogeny import capture, semantics

WORDS, CONTEXT, BATCH = 1000, 32, 32
SHOWN = (0, 200, 600, 1800)


def numbered(path: Path, words: tuple[str, ...]) -> np.ndarray:
    """Return the text as numbers of `words`; one more number stands for every other word."""
    stream = semantics.word_stream(path.read_text("utf-8"), split="spaces")
    index = {word: i for i, word in enumerate(words)}
    return np.array([index.get(word, len(words)) for word in stream.words])[stream.ids]


def windows(
    ids: np.ndarray, n: int, width: int, rng: np.random.Generator
) -> np.ndarray:
    return ids[rng.integers(0, len(ids) - width, n)[:, None] + np.arange(width)]


def show(model: torch.nn.Module, words: tuple[str, ...], heldout: np.ndarray) -> None:
    found = capture.context_embeddings(model, heldout, batch_size=256)
    known = (
        (found.next_ids >= 0) & (found.next_ids < WORDS) & (found.ids < WORDS).all(1)
    )
    following = found.next_ids[known]
    support = sparse.csr_array(
        (np.ones(len(following)), (following, np.arange(len(following)))),
        (WORDS, len(following)),
    )
    W = capture.word_embeddings(model).W[:WORDS]
    basis = semantics.embedding_concepts(W, found.H[:, known], words=words)
    labels = semantics.word_classes(words)
    for p in (4, 5, 6):
        draws = {"n_permutations": 30, "n_rotations": 30}
        score = semantics.orthant_coherence(basis, labels, p, **draws)
        lift = semantics.signature_lift(support, basis, p, **draws)
        print(
            f"  p={p} coherence {score.ami}; lift {lift.lift}, {len(following)} contexts"
        )


def main(train: Path, heldout: Path) -> None:
    stream = semantics.word_stream(train.read_text("utf-8"), split="spaces")
    words = semantics.support_matrix(stream, WORDS).words
    ids, rng = numbered(train, words), np.random.default_rng(0)
    read = windows(numbered(heldout, words), 3000, 11, rng)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=WORDS + 1, n_embd=128, n_layer=2, n_head=4, n_positions=CONTEXT,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    start = time.process_time()
    for step in range(max(SHOWN) + 1):
        batch = torch.from_numpy(windows(ids, BATCH, CONTEXT, rng))
        loss = model(batch, labels=batch).loss
        if step in SHOWN:
            print(
                f"step {step}, {time.process_time() - start:.0f} s cpu, loss {loss.item():.2f}"
            )
            show(model, words, read)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
