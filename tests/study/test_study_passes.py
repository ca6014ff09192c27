"""A study runs its texts through each checkpoint once, and once more for attention maps."""

from collections import Counter

import pytest
import torch

import ontogeny as og
from helpers import tiny_models
from helpers.study_examples import tiny_inputs
from ontogeny.capture import forward
from ontogeny.observables import (
    AttentionEntropy,
    Concepts,
    JointConcepts,
    Loss,
    TextStatistics,
    TokenLosses,
)
from ontogeny.study.running import run as running

STEPS = (0, 1, 2)
TEXTS = 16
LAYERS = "*.mlp"


def observables():
    fits = {"layers": LAYERS, "max_tokens": 100}
    return [
        Loss(),
        TokenLosses(n_texts=2),
        TextStatistics(depth=2, n_draws=3, loss="loss"),
        AttentionEntropy(),
        Concepts(n_concepts=3, extractor="svd", **fits),
        JointConcepts(n_concepts=8, n_active=2, **fits),
    ]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The folder of a study, and how often each task ran all texts, with eager attention or not."""
    torch.manual_seed(0)
    trajectory = og.Trajectory.from_models({step: tiny_models.gpt2() for step in STEPS})
    counts, task, folder = Counter(), [""], tmp_path_factory.mktemp("passes")
    with pytest.MonkeyPatch.context() as patch:
        called, computed = forward._called, running.compute_task

        def calling(model, ids, inputs):
            if len(ids) == TEXTS:
                counts[task[0], model.config._attn_implementation] += 1
            return called(model, ids, inputs)

        def computing(job, of):
            task[0] = of.label
            return computed(job, of)

        patch.setattr(forward, "_called", calling)
        patch.setattr(running, "compute_task", computing)
        study = og.Study(
            trajectory, tiny_inputs(TEXTS), observables(), controls=1
        )
        study.run(folder)
    return folder, counts


def test_every_checkpoint_runs_its_texts_once_and_once_for_maps(counted):
    _, counts = counted
    plain = {label: n for (label, kind), n in counts.items() if kind != "eager"}
    assert sum(n for label, n in plain.items() if label and "turned" not in label) == len(STEPS)
    eager = {label: n for (label, kind), n in counts.items() if kind == "eager"}
    assert all(eager[f"step {step}"] == 1 for step in STEPS)
    # A control begins with the run's own checkpoint, of which maps are known.
    assert sum(n for label, n in plain.items() if "turned" in label) == len(STEPS)
    assert sum(n for label, n in eager.items() if "turned" in label) == len(STEPS) - 1
