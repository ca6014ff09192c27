"""Time of asking 1,000 minimal pairs over one forward pass of their tokens, in one run.

Pairs are the first 1,000 of the package's templates, repeated; the model is a random GPT-2 of 6
layers, width 256. The bare pass reads the same texts, longest first, in the same batches, under
``no_grad``. Repeats are interleaved; medians of the process's CPU time are compared. Bar: 3.

    python benchmarks/abilities_cost.py
"""

import argparse
import statistics
import time

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ontogeny.capture import ReadingSettings
from ontogeny.capture.predictor import Predictor
from ontogeny.features.abilities.token_texts import tokenised
from ontogeny.observables import MinimalPairs
from ontogeny.tasks import train_tokenizer

BAR = 3.0


def timed(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    pairs = MinimalPairs().read()[0]
    texts = [text for pair in (pairs * 2)[: given.pairs] for text in pair.texts]
    tokenizer = train_tokenizer(texts, 4096)
    tokens, _ = tokenised([""] * len(texts), texts, tokenizer, masked=False)
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=6, n_embd=256, n_head=4, vocab_size=4096, n_positions=64
    )
    model = GPT2LMHeadModel(config).eval()
    predictor = Predictor(model, "causal")
    order = np.argsort(-np.diff(tokens.start), kind="stable")
    inputs = tokens.inputs(order)
    batches = list(inputs.batches(ReadingSettings().batch_size))

    def bare():
        with torch.no_grad():
            for batch in batches:
                mask = torch.from_numpy(batch.mask.copy()).long()
                model(torch.from_numpy(batch.ids.copy()).long(), attention_mask=mask)

    bare()
    tokens.scores(predictor)
    both = [
        (timed(lambda: tokens.scores(predictor)), timed(bare))
        for _ in range(given.repeats)
    ]
    asked, passed = (statistics.median(times) for times in zip(*both, strict=True))
    print(
        f"{given.pairs:,} pairs, {tokens.start[-1]:,} tokens: asked {asked:.2f} s, bare pass "
        f"{passed:.2f} s, ratio {asked / passed:.2f} (bar {BAR:g})"
    )


if __name__ == "__main__":
    main()
