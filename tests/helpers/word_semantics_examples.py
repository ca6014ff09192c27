"""Bigram models whose logits are known, and a corpus with classes of words."""

import numpy as np
import torch
from torch import nn

import ontogeny as og
from ontogeny import semantics

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Bigram(nn.Module):
    """Logits of the next token are a row of a table: of the last token alone."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(
            torch.as_tensor(table, dtype=torch.float32)
        )

    def forward(self, input_ids):
        return self.table(input_ids)


class BigramForCausalLM(Bigram):
    pass


def corpus(words=30, texts=40, length=60, classes=5, seed=0):
    """Words belong to classes, and a class is followed by the next class, mostly."""
    rng = np.random.default_rng(seed)
    of_class = np.sort(rng.integers(0, classes, words))
    frequency = 1 / (1 + rng.permutation(words))
    rows = []
    for _ in range(texts):
        state, row = int(rng.integers(classes)), []
        for _ in range(length):
            p = frequency * np.where(of_class == state, 1.0, 0.02)
            row.append(int(rng.choice(words, p=p / p.sum())))
            state = (
                (state + 1) % classes
                if rng.random() < 0.9
                else int(rng.integers(classes))
            )
        rows.append(row)
    return og.Inputs.from_tokens(rows, vocab_size=words)


def next_words(inputs):
    """The support matrix of contexts of one word."""
    ids = np.where(inputs.ordinary, inputs.ids, -1)
    return semantics.support_matrix(ids, vocab_size=100, lengths=1, exclude=())


def table_of(logits, support, size):
    """A bigram table with given logits (V, m)."""
    table = np.zeros((size, size))
    last = support.word_ids[support.contexts.ids[:, 0]]
    table[np.ix_(last, support.word_ids)] = logits.T
    return table


def learning(inputs, delta=3.0, noise=0.0, matrix="S", rate=0.02):
    """Logits follow the closed form for the concepts of one matrix."""
    support = next_words(inputs)
    basis = semantics.svd_concepts(support, 12, of=matrix[0])
    size, models = inputs.vocab_size, {}
    rng = np.random.default_rng(0)
    for step in STEPS:
        share = semantics.closed_form(basis.sigma, delta, rate * step)
        L = (basis.U * basis.sigma * share) @ basis.V.T
        L = L + noise * rng.standard_normal(L.shape)
        models[step] = BigramForCausalLM(table_of(L, support, size))
    return models, basis, support


def drifting(inputs, scale=1.0):
    """Logits grow in random directions: something develops, but not the corpus's concepts."""
    support = next_words(inputs)
    rng = np.random.default_rng(1)
    end = rng.standard_normal(support.shape)
    return {
        step: BigramForCausalLM(
            table_of(scale * np.log1p(step) * end, support, inputs.vocab_size)
        )
        for step in STEPS
    }
