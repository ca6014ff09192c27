"""Train a small masked language model and save token states of a middle layer, (5000, 384).

    python benchmarks/extractors_data.py OUT.npy [--steps 1200]

The text is Python's own documentation (``pydoc_data.topics``), so nothing is downloaded. About
25 minutes on one core; the loss falls from 8.4 to 2.7.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import EuroBertConfig, EuroBertForMaskedLM

LENGTH = 64
VOCABULARY = 4096
WIDTH = 384
MASK = 2


def token_rows() -> torch.Tensor:
    """Token ids, (texts, LENGTH)."""
    paragraphs = [
        part.strip()
        for topic in pydoc_data.topics.topics.values()
        for part in topic.split("\n\n")
        if len(part) > 100
    ]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[MASK]"]
    tokenizer.train_from_iterator(
        paragraphs,
        trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special),
    )
    ids = torch.tensor([i for e in tokenizer.encode_batch(paragraphs) for i in e.ids])
    return ids[: len(ids) // LENGTH * LENGTH].view(-1, LENGTH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--steps", type=int, default=1200)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = token_rows()
    config = EuroBertConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=3,
        max_position_embeddings=128,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = EuroBertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, options.steps)
    generator = torch.Generator().manual_seed(1)
    for step in range(options.steps):
        batch = rows[torch.randint(len(rows), (16,), generator=generator)]
        masked = torch.rand(batch.shape, generator=generator) < 0.3
        states = model.model(torch.where(masked, MASK, batch)).last_hidden_state[masked]
        loss = torch.nn.functional.cross_entropy(model.lm_head(states), batch[masked])
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(step, round(float(loss), 3), flush=True)
    model.eval()
    with torch.no_grad():
        hidden = model.model(rows[:79], output_hidden_states=True).hidden_states[2]
    np.save(options.output, hidden.reshape(-1, WIDTH)[:5000].numpy())


if __name__ == "__main__":
    main()
