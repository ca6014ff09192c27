"""Code of a user that a type checker must pass: each public name has the type that it has."""

from pathlib import Path
from typing import assert_type

import torch

import ontogeny as og
from ontogeny.study import StudyResult


@og.observable("activations", layers="mlp")
def active(A: torch.Tensor) -> torch.Tensor:
    """Share of activations above zero."""
    return (A > 0).double().mean(dim=1)


def studied(folder: Path) -> StudyResult:
    run = og.Trajectory.from_folder(folder)
    assert_type(run, og.Trajectory)
    inputs = og.Inputs.from_tokens([[1, 2, 3]])
    assert_type(inputs, og.Inputs)
    chosen = [og.observables.Loss(), og.observables.AttentionEntropy(layers="*")]
    study = og.Study(run, inputs, chosen, device="cpu")
    assert_type(study, og.Study)
    result = study.run(folder / "study")
    assert_type(result, StudyResult)
    assert_type(active(torch.zeros(2, 3)), torch.Tensor)
    return og.compare({"a": result, "b": og.open_study(folder)})
