"""Norms and stable ranks of weight matrices: closed forms, fused parts, and what fails."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import LayerMatchError
from ontogeny.features.weights.norms import _measures
from ontogeny.observables import WeightNorms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.up = nn.Linear(4, 8)

    def forward(self, ids):
        return self.up(self.embed(ids))


def run_of(change):
    models = {}
    for step in (0, 1, 2):
        torch.manual_seed(0)
        models[step] = Net()
        with torch.no_grad():
            change(models[step], step)
    return og.Trajectory.from_models(models)


def study(run, observable, folder):
    return og.Study(
        run, og.Inputs.from_tokens([[1, 2]]), [observable], device="cpu"
    ).run(folder)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (1, 6)])
def test_they_are_what_the_singular_values_give(shape):
    W = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = np.linalg.svd(W.double().numpy(), compute_uv=False)
    found = _measures(W)
    assert found["norm"] == pytest.approx(np.linalg.norm(W.double()), rel=1e-12)
    assert found["stable_rank"] == pytest.approx(
        np.sum(values**2) / np.max(values) ** 2, rel=1e-10
    )
    assert _measures(torch.eye(4))["stable_rank"] == pytest.approx(4)
    assert _measures(torch.zeros(shape)) == {"norm": 0.0, "stable_rank": 0.0}


def test_scaling_changes_the_norm_and_not_the_rank(tmp_path):
    tree = study(
        run_of(lambda m, step: m.up.weight.mul_(2.0**step)), WeightNorms(), tmp_path
    )
    node = tree["weight-norms"].to_dataset()
    assert node.layer.values.tolist() == ["embed.weight", "up.weight"]
    up, embed = node.sel(layer="up.weight"), node.sel(layer="embed.weight")
    np.testing.assert_allclose(up.norm / up.norm[0], [1, 2, 4])
    np.testing.assert_allclose(up.stable_rank, up.stable_rank[0])
    np.testing.assert_allclose(embed.norm, embed.norm[0])


def test_a_matrix_with_nan_fails_and_the_others_do_not(tmp_path):
    def spoil(model, step):
        if step == 2:
            model.up.weight[0, 0] = np.nan

    node = study(run_of(spoil), WeightNorms(), tmp_path)["weight-norms"].to_dataset()
    status = node.status.sel(step=2)
    assert str(status.sel(layer="up.weight").values).startswith("failed")
    assert status.sel(layer="embed.weight") == "done"


def test_parts_of_fused_projections_are_matrices_of_their_own():
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=1))
    (need,) = WeightNorms("q").needs()
    found = og.capture.read(model, [need], {"text": og.Inputs.from_tokens([[1, 2]])})[
        need
    ]
    assert {name: tuple(W.shape) for name, W in found.items()} == {
        "h.0.attn.c_attn.weight#q": (4, 4)
    }
    before = copy.deepcopy(model.state_dict())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_what_matches_nothing_is_refused(tmp_path):
    with pytest.raises(LayerMatchError, match="nothing"):
        study(run_of(lambda *_: None), WeightNorms("nothing"), tmp_path)
