"""Short names and fused blocks through a whole study, on a GPT-NeoX trajectory."""

import copy

import numpy as np
import torch

import ontogeny as og
from helpers.study_examples import tiny_inputs

STEPS = (0, 1, 2, 4, 8, 16)


def _models():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=48,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        bos_token_id=2,
        eos_token_id=3,
    )
    base, models = GPTNeoXForCausalLM(config).eval(), {}
    for i, step in enumerate(STEPS):
        models[step] = copy.deepcopy(base)
        with torch.no_grad():
            for j, p in enumerate(models[step].parameters()):
                p.add_(
                    0.01
                    * i
                    * torch.randn(p.shape, generator=torch.Generator().manual_seed(j))
                )
    return models


class _Tokenizer:
    """Knows 40 of the 48 rows of the embedding."""

    def __len__(self):
        return 40


def test_short_names_fused_parts_and_padded_vocabulary(tmp_path):
    study = og.Study(
        og.Trajectory.from_models(_models(), tokenizer=_Tokenizer()),
        tiny_inputs(),
        [
            og.observables.Loss(),
            og.observables.ActivationDecay(("mlp", "layers[-1].resid")),
            og.observables.AttentionEntropy(),
            og.observables.WeightRank(("q", "layers[0].k", "embed"), n_draws=20),
        ],
        device="cpu",
    )
    tree = study.run(tmp_path / "s")
    assert tree.attrs["problems"] == "[]"
    assert tree["activation-decay"].sizes["layer"] == 3
    rank = tree["weight-rank"]
    assert rank.masked_rows.sel(block="gpt_neox.embed_in.weight") == 8
    assert rank.dimension.sel(block="gpt_neox.embed_in.weight") == 40 * 16
    fused = [str(b) for b in rank.block.values if "#" in str(b)]
    assert len(fused) == 3 and (rank.dimension.sel(block=fused) == 16 * 16).all()
    assert (rank.variance_rank == 1).all()  # every matrix moves along a straight line
    assert np.isfinite(tree["loss"].loss).all()
    assert study.plan(tmp_path / "s").to_do == 0
