"""Losses that a run recorded beside the measured one: a dashed line, and a claim where far off."""

import json

import numpy as np
import pytest
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.features.predictions.loss import Loss
from ontogeny.features.predictions.recorded import far_from_record, with_recorded


def node_of(measured, recorded, of="validation"):
    steps = np.arange(len(measured))
    data = xr.Dataset({"loss": ("step", measured)}, {"step": steps})
    return with_recorded(data, tuple(zip(steps.tolist(), recorded, strict=True)), of)


@pytest.mark.parametrize(
    ("measured", "recorded", "is_far"),
    [
        ([4.9, 4.0, 3.38], [4.8, 3.2, 2.67], True),  # heads cut in another way
        ([4.9, 4.8, 4.77], [4.9, 2.5, 1.5], True),  # other texts
        ([4.9, 2.09, 1.56], [4.9, 2.0, 1.5], False),  # dropout, other batches
        ([4.9, 2.16, 1.62], [4.9, 2.0, 1.5], True),  # one head where there are four
        ([4.9, 0.06, 0.05], [4.9, 0.02, 0.01], False),  # by less than .05 nats
        ([4.9, 2.0, 3.0], [4.9, 2.0, 1.5], False),  # at one checkpoint of three
        ([4.9, 3.4, 1.5], [4.9, 1.5, 1.5], False),  # no longer at the end
    ],
)
def test_far_is_more_than_a_twentieth_at_most_checkpoints_and_the_last(
    measured, recorded, is_far
):
    claims = list(far_from_record("loss", node_of(measured, recorded)))
    assert len(claims) == is_far
    if is_far:
        (claim,) = claims
        assert (claim.last, claim.beside[0].value) == (measured[-1], recorded[-1])
        assert claim.subject.step == 2


def test_what_few_texts_explain_and_a_gap_to_seen_texts_are_not_far():
    """A training loss is of texts that the run has seen; few texts of many kinds vary by themselves."""
    losses = ([4.9, 2.2, 1.7], [4.9, 2.0, 1.5])
    assert list(far_from_record("loss", node_of(*losses)))
    assert not list(far_from_record("loss", node_of(*losses, of="training")))
    few = node_of(*losses).assign(loss_stderr=("step", [0.1, 0.1, 0.1]))
    assert not list(far_from_record("loss", few))


def test_recorded_losses_become_a_dashed_line_at_their_steps_alone():
    steps = [0, 10, 20]
    data = xr.Dataset(
        {"loss": ("step", [3.0, 2.0, 1.0]), "loss_stderr": ("step", [0.1] * 3)},
        {"step": steps},
    )
    loss = Loss(objective="causal", recorded=[[10, 2.1], [20, 1.1]])
    summary = loss.summarise(data, {})
    assert np.isnan(summary.loss_recorded[0]) and summary.loss_recorded[2] == 1.1
    (figure,) = [f for f in json.loads(summary.attrs["figures"]) if f["id"] == "loss"]
    assert figure["reference"] == "loss_recorded"
    assert figure["reference_label"] == "recorded by the run"
    assert not any("recorded" in band["label"] for band in figure["bands"])
    plain = Loss(objective="causal").summarise(data, {})
    assert "recorded" not in plain.attrs["figures"]


@pytest.mark.parametrize("recorded", [[[0, -1.0]], [[0, 1.0], [0, 2.0]]])
def test_impossible_records_are_refused(recorded):
    with pytest.raises(ArgumentError, match="recorded must hold pairs"):
        Loss(recorded=recorded)
