"""Labels distinguish two observables of one kind on the page."""

import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny import observables as of
from ontogeny.words.content import read_content


def model(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))


@pytest.mark.filterwarnings("ignore")
def test_sections_and_rows_of_one_kind_have_their_labels(tmp_path):
    texts = og.Inputs.from_tokens(torch.randint(1, 9, (6, 5)).tolist())
    run = og.Trajectory.from_models({step: model(step) for step in range(3)})
    losses = [of.Loss(objective="causal"), of.Loss(objective="causal", label="again")]
    decays = [of.ActivationDecay("0"), of.ActivationDecay("1", label="of-head")]
    study = og.Study(run, texts, [*losses, *decays], controls=0, noise=0)
    content = read_content(study.run(tmp_path, progress=False))
    assert sorted(node.title for node in content.nodes) == [
        "Activation decay",
        "Activation decay (of-head)",
        "Loss on fixed texts",
        "Loss on fixed texts (again)",
    ]
    assert sorted(row.name for row in content.rows) == [
        "0 · activations",
        "1 · activations (of-head)",
        "loss",
        "loss (again)",
    ]
    assert len(set(content.row_ids)) == len({row.quantity for row in content.rows}) == 4
    titles = [node.title for node in content.nodes if node.role == "development"]
    assert len({*titles}) == len(titles) == 2
