"""How many concepts of untrained models `learned-concepts` names, in studies of one model each.

    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts_untrained.py TEXTS [TEXTS ...]
        [--seeds 2] [--tokens 20000]

Each kind of model is built anew for each file of texts (blank lines between them) and each seed, and
all its layers are asked. Printed are the names without and with the rule that a concept which the
study's own untrained model tells gets none.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

import ontogeny as og
from ontogeny.features.learned_concepts import found

VOCABULARY = 2048
LENGTH = 64
LAYERS = 4
CONCEPTS = 40
UNTAUGHT = found.UNTAUGHT


def _gpt2() -> nn.Module:
    shape = {"n_embd": 96, "n_layer": LAYERS, "n_head": 4, "n_positions": LENGTH}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0, **shape)
    )


def _shape(width: int) -> dict[str, int]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "max_position_embeddings": LENGTH,
    }


KINDS: dict[str, Callable[[], nn.Module]] = {
    "LLaMA, width 64": lambda: LlamaForCausalLM(LlamaConfig(**_shape(64))),
    "GPT-NeoX, width 128": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**_shape(128))),
    "LLaMA, width 128": lambda: LlamaForCausalLM(LlamaConfig(**_shape(128))),
    "GPT-2, width 96": _gpt2,
}


def inputs_of(path: Path, tokens: int) -> og.Inputs:
    """Return so many texts of a file that they hold these tokens, and a few more."""
    texts = [text for text in path.read_text().split("\n\n") if len(text) > 100]
    tokenizer = og.tasks.train_tokenizer(texts, VOCABULARY)
    inputs = og.Inputs.from_texts(texts, tokenizer, max_length=LENGTH)
    enough = int(np.cumsum(inputs.lengths).searchsorted(tokens)) + 1
    return inputs.subset(np.arange(min(enough, len(inputs))))


def named(model: nn.Module, inputs: og.Inputs, tokens: int) -> tuple[int, int, int]:
    """Return how many components a model has, names without the rule, and names with it."""
    concepts = og.observables.LearnedConcepts(
        "resid", n_concepts=CONCEPTS, max_tokens=tokens, keep_directions=False
    )
    run = og.Trajectory.from_models({1: model})
    with tempfile.TemporaryDirectory() as folder:
        study = og.Study(run, inputs, [concepts], device="cpu", noise=0)
        data = study.run(Path(folder) / "study", progress=False)["learned-concepts"]
        has_name = data.named_phi.values > 0
        is_taught = data.untrained_readability.values < UNTAUGHT
        again = int(data.again.notnull().sum())
    return again, int(has_name.sum()), int((has_name & is_taught).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=20_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found.UNTAUGHT = math.inf  # the rule is left out, and counted here
    for seed in range(given.seeds):
        for path in given.texts:
            inputs = inputs_of(path, given.tokens)
            for kind, build in KINDS.items():
                torch.manual_seed(1000 + seed)
                began = time.process_time()
                again, without, with_rule = named(build().eval(), inputs, given.tokens)
                print(
                    f"{kind}, {path.stem}, seed {seed}: {again} components, {without} named "
                    f"without the rule, {with_rule} with it "
                    f"({time.process_time() - began:.0f} s of processor time)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
