"""A model whose context is shorter than four tokens is studied like any other."""

import torch
from torch import nn

import ontogeny as og
from ontogeny.observables import EffectiveDimensions


class Two(nn.Module):
    """A model of texts of two tokens, which has no third position."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(9, 8), nn.Embedding(2, 8)
        self.mlp, self.head = nn.Linear(8, 8), nn.Linear(8, 9)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        return self.head(x + self.mlp(x))


def test_activations_are_priced_by_the_studys_own_texts(tmp_path):
    torch.manual_seed(0)
    run = og.Trajectory.from_models({0: Two(), 1: Two(), 2: Two()})
    inputs = og.Inputs.from_tokens(
        [[a, b] for a in range(6) for b in range(6)], vocab_size=9
    )
    study = og.Study(run, inputs, [EffectiveDimensions("mlp")], device="cpu", noise=0)
    assert study.plan().activation_bytes == 4 * 8 * 72
    assert not study.run(tmp_path / "s").problems()
