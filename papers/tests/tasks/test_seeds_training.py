"""Training of many seeds: against a plain loop, stopped and resumed, vectorised or not."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import ontogeny as og
from ontogeny import capture
from ontogeny.errors import ArgumentError, NonFiniteError, StoreError
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import (
    MarkerRun,
    OptimizerSettings,
    record_marker_runs,
    train_seeds,
)
from ontogeny_papers.reproduce.training import seeds as seeds_module


def tiny(**changes):
    run = MarkerRun(
        task=MarkerTask(length=8, modulus=4, markers=(1, 2), vocab_size=8),
        layers=2,
        width=16,
        heads=2,
        steps=9,
        batch_size=8,
    )
    return replace(run, **changes)


def weights(folder, step):
    return og.Trajectory.from_folder(folder)[step].model().state_dict()


def plain(run, seed):
    """The same training written out: one model, one optimizer, one loop."""
    torch.manual_seed(seed)
    model = run.model()
    how = run.optimizer
    if how.kind == "adamw":
        optimizer = torch.optim.AdamW(
            model.parameters(),
            how.learning_rate,
            betas=how.betas,
            weight_decay=how.weight_decay,
        )
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), how.learning_rate, momentum=how.momentum
        )
    losses = []
    for step in range(run.steps):
        share = (
            (1 + math.cos(math.pi * step / run.steps)) / 2
            if how.schedule == "cosine"
            else 1
        )
        optimizer.param_groups[0]["lr"] = how.learning_rate * share
        batch = run.batches(seed)(step)
        loss = cross_entropy(model(batch.ids).logits, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return model.state_dict(), losses


@pytest.mark.parametrize("vectorise", [False, True])
@pytest.mark.parametrize(
    "optimizer",
    [
        OptimizerSettings(learning_rate=3e-3),
        OptimizerSettings("sgd", 0.3, "constant", momentum=0.5),
    ],
)
def test_each_seed_is_trained_as_a_plain_loop_would(
    tmp_path, monkeypatch, vectorise, optimizer
):
    # In float64: AdamW divides by the size of a gradient, so that in float32 the rounding of
    # gradients near its eps of 1e-8 moves a weight by much of a step.
    single = MarkerRun.model
    monkeypatch.setattr(MarkerRun, "model", lambda run: single(run).double())
    run = tiny(optimizer=optimizer, mlp=vectorise)
    folders = record_marker_runs(
        tmp_path, run, seeds=[3, 0], every=4, vectorise=vectorise
    )
    assert [f.name for f in folders] == ["seed-3", "seed-0"]
    for folder, seed in zip(folders, (3, 0), strict=True):
        expected, losses = plain(run, seed)
        assert og.Trajectory.from_folder(folder).steps.tolist() == [0, 4, 8, 9]
        found = weights(folder, 9)
        assert found.keys() == expected.keys()
        for name, tensor in found.items():
            torch.testing.assert_close(tensor, expected[name], rtol=1e-9, atol=1e-10)
        log = json.loads((folder / "training_log.json").read_text())
        np.testing.assert_allclose(log["loss"], losses, rtol=1e-10)


class Stop(Exception):
    """What a test throws into a training."""


@pytest.mark.parametrize("vectorise", [False, True])
def test_a_stopped_training_ends_with_the_same_bits(tmp_path, monkeypatch, vectorise):
    monkeypatch.setattr(seeds_module, "_SAVE_EVERY", 3)
    run, options = tiny(), {"seeds": [0, 1], "every": 2, "vectorise": vectorise}
    whole = record_marker_runs(tmp_path / "whole", run, **options)

    def stop(step, steps, loss):
        # In the second seed where they come in turn.
        if step == (7 if vectorise else 9 + 7):
            raise Stop

    with pytest.raises(Stop):
        record_marker_runs(tmp_path / "parts", run, progress=stop, **options)
    seen = []
    parts = record_marker_runs(
        tmp_path / "parts",
        run,
        progress=lambda step, steps, loss: seen.append(step),
        **options,
    )
    assert len(seen) == 3  # only what came after the state of step 6
    for one, other in zip(whole, parts, strict=True):
        steps = og.Trajectory.from_folder(one).steps.tolist()
        assert (
            steps
            == og.Trajectory.from_folder(other).steps.tolist()
            == [0, 2, 4, 6, 8, 9]
        )
        for step in steps:
            a, b = weights(one, step), weights(other, step)
            assert all(torch.equal(a[name], b[name]) for name in a)
        logs = [json.loads((f / "training_log.json").read_text()) for f in (one, other)]
        assert logs[0] == logs[1]
    again = []
    record_marker_runs(
        tmp_path / "parts", run, progress=lambda *a: again.append(a), **options
    )
    assert not again and not list((tmp_path / "parts").glob(".state*"))


def test_more_seeds_join_a_folder_without_touching_those_that_are_there(tmp_path):
    run = tiny(steps=3)
    first = record_marker_runs(tmp_path, run, seeds=[0])[0]
    before = {p: p.stat().st_mtime_ns for p in first.rglob("*") if p.is_file()}
    assert [p.name for p in record_marker_runs(tmp_path, run, seeds=[0, 1])] == [
        "seed-0",
        "seed-1",
    ]
    assert before == {p: p.stat().st_mtime_ns for p in first.rglob("*") if p.is_file()}


def test_another_training_in_the_folder_is_refused_by_name(tmp_path):
    record_marker_runs(tmp_path, tiny(steps=2), seeds=[0])
    with pytest.raises(
        ArgumentError,
        match=r"holds another training \(run\.steps: 2 -> 3; steps: 2 -> 3\)",
    ):
        record_marker_runs(tmp_path, tiny(steps=3), seeds=[0])
    other = tmp_path / "other"
    other.mkdir()
    (other / "note.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="holds other files"):
        record_marker_runs(other, tiny(steps=2), seeds=[0])


def test_other_checkpoints_in_the_folder_are_refused_rather_than_left_as_they_are(
    tmp_path,
):
    record_marker_runs(tmp_path, tiny(steps=2), seeds=[0], every=2)
    with pytest.raises(ArgumentError, match="every: 2 -> 1"):
        record_marker_runs(tmp_path, tiny(steps=2), seeds=[0], every=1)


def test_a_damaged_state_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(seeds_module, "_SAVE_EVERY", 2)

    def stop(step, steps, loss):
        if step == 3:
            raise Stop

    with pytest.raises(Stop):
        record_marker_runs(tmp_path, tiny(), seeds=[0], progress=stop)
    (state,) = tmp_path.glob(".state*")
    state.write_bytes(b"not a tensor file")
    with pytest.raises(StoreError, match="damaged"):
        record_marker_runs(tmp_path, tiny(), seeds=[0])


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [1.5], ["a"], 3.0])
def test_seeds_that_are_none_or_repeat_are_refused(tmp_path, seeds):
    with pytest.raises(ArgumentError, match="seeds must be different"):
        record_marker_runs(tmp_path / "x", tiny(), seeds=seeds)


def test_divergence_is_said_and_leaves_no_log(tmp_path):
    run = tiny(optimizer=OptimizerSettings("sgd", 1e30, "constant"))
    with pytest.raises(NonFiniteError, match="training stopped at step"):
        record_marker_runs(tmp_path, run, seeds=[0])
    assert not (tmp_path / "seed-0" / "training_log.json").exists()


def test_any_module_and_loss_can_be_trained(tmp_path):
    def batches(seed):
        x = torch.randn(32, 3, generator=torch.Generator().manual_seed(seed))
        return lambda step: {"x": x, "y": x.sum(1, keepdim=True)}

    folders = train_seeds(
        tmp_path,
        lambda seed: nn.Linear(3, 1),
        batches,
        lambda model, batch: (model(batch["x"]) - batch["y"]).square().mean(),
        200,
        seeds=[0, 1],
        every=[50, 150],
        optimizer=OptimizerSettings(learning_rate=0.1, weight_decay=0.0),
        vectorise=True,
    )
    for folder in folders:
        trajectory = og.Trajectory.from_folder(folder, model=nn.Linear(3, 1))
        assert trajectory.steps.tolist() == [0, 50, 150, 200]
        torch.testing.assert_close(
            trajectory[200].model().weight, torch.ones(1, 3), rtol=0, atol=0.01
        )


def test_the_read_out_is_that_of_the_last_token_however_it_is_computed():
    run = tiny(mlp=True, layers=3)
    torch.manual_seed(0)
    model = run.model().eval()
    ids = run.task.sample(6, torch.Generator().manual_seed(0)).ids
    whole = model(ids).logits
    torch.testing.assert_close(model(ids, readout_only=True).logits, whole)
    model.set_attn_implementation("sdpa")
    torch.testing.assert_close(model(ids).logits, whole, rtol=1e-4, atol=1e-5)
    mask = torch.ones_like(ids)
    torch.testing.assert_close(
        model(ids, attention_mask=mask).logits, whole, rtol=1e-4, atol=1e-5
    )
    short = model(ids[:, :5]).logits
    mask[:, 5:] = 0
    torch.testing.assert_close(
        model(ids, attention_mask=mask).logits, short, rtol=1e-4, atol=1e-5
    )
    changed = ids.clone()
    changed[:, 6:] = 0
    torch.testing.assert_close(
        model(changed, attention_mask=mask).logits, short, rtol=1e-4, atol=1e-5
    )


def test_recorded_runs_are_read_like_any_trajectory(tmp_path):
    run = tiny(steps=4, mlp=True)
    folder = record_marker_runs(tmp_path, run, seeds=[0], every=2)[0]
    trajectory = og.Trajectory.from_folder(folder)
    model = trajectory[4].model()
    inputs = run.task.inputs(10)
    assert type(model).__name__ == "ReadoutTransformer"
    assert not trajectory.audit()
    found = capture.activations(
        model, inputs, ["q", "layers[1].resid", "mlp"], tokens="last"
    )
    assert list(found) == [
        "layers.0.self_attn.q_proj",
        "layers.0.mlp",
        "layers.1",
        "layers.1.self_attn.q_proj",
        "layers.1.mlp",
    ]
    entropy = capture.attention_entropy(model, inputs)
    assert entropy.layer.values.tolist() == ["layers.0.self_attn", "layers.1.self_attn"]
    assert float(entropy.max()) < math.log(8)
    checked = capture.check_batch_invariance(
        model, og.Inputs.from_tokens([[1, 2, 3], [4]])
    )
    assert checked.difference < 1e-4


def test_the_untrained_model_is_that_of_its_seed():
    run = tiny(steps=1)
    torch.manual_seed(4)
    one = run.model().state_dict()
    torch.manual_seed(4)
    again = run.model().state_dict()
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert set(MarkerRun.paper().model().state_dict()) >= {
        f"layers.1.self_attn.{part}_proj.weight" for part in "qkvo"
    }
