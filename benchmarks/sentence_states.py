"""Save states of a sentence encoder on lines of text: pooled sentences, and tokens of a layer.

    HF_HUB_OFFLINE=1 python benchmarks/sentence_states.py MODEL OUT TEXT [TEXT ...]

MODEL is a folder or Hub name that transformers opens, such as all-MiniLM-L6-v2. From each file in
turn a line is taken, 5,000 in all. OUT/pooled.npy gets the normalised mean of each line's last
states, OUT/tokens.npy 5,000 states of the middle layer that are drawn from all tokens.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import transformers

COUNT = 5000
BATCH = 50
LENGTH = 128


def lines(files: list[Path]) -> list[str]:
    """Return non-empty lines, one of each file in turn."""
    texts = (
        path.read_text(encoding="utf-8", errors="replace").splitlines()
        for path in files
    )
    kept = [[line.strip() for line in each if line.strip()] for each in texts]
    return list(chain.from_iterable(zip(*kept, strict=False)))[:COUNT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("output", type=Path)
    parser.add_argument("texts", nargs="+", type=Path)
    chosen = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(chosen.model)
    model = transformers.AutoModel.from_pretrained(chosen.model).eval()
    middle = model.config.num_hidden_layers // 2
    found = lines(chosen.texts)
    pooled = []
    tokens = []
    for low in range(0, len(found), BATCH):
        batch = tokenizer(
            found[low : low + BATCH],
            padding=True,
            truncation=True,
            max_length=LENGTH,
            return_tensors="pt",
        )
        with torch.no_grad():
            states = model(**batch, output_hidden_states=True).hidden_states
        mask = batch["attention_mask"][..., None]
        mean = (states[-1] * mask).sum(1) / mask.sum(1)
        pooled.append(torch.nn.functional.normalize(mean, dim=1))
        tokens.append(states[middle][mask[..., 0].bool()])
    every = torch.cat(tokens).numpy()
    drawn = np.random.default_rng(0).choice(len(every), COUNT, replace=False)
    chosen.output.mkdir(parents=True, exist_ok=True)
    np.save(chosen.output / "pooled.npy", torch.cat(pooled).numpy())
    np.save(chosen.output / "tokens.npy", every[np.sort(drawn)])


if __name__ == "__main__":
    main()
