"""A study that cannot fit into memory is refused before anything is computed."""

import errno
import os
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.capture import activation, logits
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.scratch import let_go, scratch_array
from ontogeny.study import Plan
from ontogeny.study.planning import cost, plan, probe


class Elsewhere(Executor):
    """Stands for a cluster, whose machines may be larger."""

    def submit(self, function, /, *args, **kwargs):
        from concurrent.futures import Future

        future = Future()
        future.set_result(function(*args, **kwargs))
        return future


def _study(max_tokens):
    decay = og.observables.ActivationDecay(LAYERS, max_tokens=max_tokens)
    return og.Study(
        og.Trajectory.from_models(developing((0, 1))),
        tiny_inputs(),
        decay,
        device="cpu",
        noise=0,
    )


def test_more_activations_than_memory_are_noted_by_the_plan_and_refused_by_the_run(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(plan, "scratch_room", lambda: 0)  # else they would lie in files
    study, small = _study(None), _study(10)
    needed = study.plan().certain_bytes()
    assert 0 < small.plan().certain_bytes() < needed < study.plan().memory_bytes
    monkeypatch.setattr(cost, "memory_of_this_machine", lambda: needed - 1)
    assert "too large: a study takes" in str(study.plan())
    with pytest.raises(ArgumentError, match="give the observables max_tokens"):
        study.run(tmp_path / "s")
    assert not list(tmp_path.glob("s/cells/**/*.safetensors"))
    assert small.run(tmp_path / "small").attrs["problems"] == "[]"
    assert study.run(tmp_path / "s", Elsewhere()).attrs["problems"] == "[]"


def test_samples_that_memory_has_no_room_for_lie_in_files_and_change_no_number(
    tmp_path, monkeypatch
):
    expected = _study(None).run(tmp_path / "memory")
    made = []

    def counted(*arguments):
        made.append(scratch_array(*arguments))
        return made[-1]

    monkeypatch.setattr(activation, "scratch_array", counted)
    monkeypatch.setattr(activation, "free_memory", lambda: 0)
    study = _study(None)
    weights = study.plan().model_bytes
    monkeypatch.setattr(cost, "memory_of_this_machine", lambda: weights)
    assert study.plan().certain_bytes() == weights
    with pytest.warns(StudyWarning, match="may take about"):
        found = study.run(tmp_path / "files")
    assert made and all(isinstance(array.base, np.memmap) for array in made)
    name = "activation-decay"
    xr.testing.assert_identical(found[name].to_dataset(), expected[name].to_dataset())


def test_the_layers_that_come_first_stay_in_memory(monkeypatch):
    monkeypatch.setattr(activation, "free_memory", lambda: 2 * 4 * 30)
    made = []
    monkeypatch.setattr(
        activation, "scratch_array", lambda *a: made.append(a[0]) or scratch_array(*a)
    )
    shapes = {"a": (5, 4), "b": (5, 3), "c": (5, 2)}
    found = activation.sample_buffers(shapes, torch.device("cpu"))
    assert made == [(5, 3)] and {k: tuple(v.shape) for k, v in found.items()} == shapes


def test_a_disk_without_room_is_said_with_what_to_do(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(activation, "scratch_array", full)
    monkeypatch.setattr(activation, "free_memory", lambda: 0)
    with pytest.raises(ArgumentError, match=r"sample of 'mlp' .* TMPDIR"):
        activation.sample_buffers({"mlp": (10, 4)}, torch.device("cpu"))


def test_what_may_be_too_large_by_estimate_is_said_and_tried(tmp_path, monkeypatch):
    study = _study(None)
    foreseen = study.plan().memory_bytes
    monkeypatch.setattr(cost, "memory_of_this_machine", lambda: foreseen - 1)
    assert "perhaps too large: a study may take about" in str(study.plan())
    with pytest.warns(
        StudyWarning, match="may take about .* give the observables max_tokens"
    ):
        assert study.run(tmp_path / "s").attrs["problems"] == "[]"


def test_a_plan_prices_the_checkpoints_that_shared_codes_are_fitted_to():
    """Beside the values of both layers: one layer's kernel, or its stack where that is smaller."""
    steps, width = (0, 1, 2, 4), 16

    def held(**options):
        chosen = og.observables.JointConcepts(
            LAYERS, n_concepts=4, n_active=1, max_tokens=50, examples=0, **options
        )
        trajectory = og.Trajectory.from_models(developing(steps))
        return (
            og.Study(trajectory, tiny_inputs(), chosen, device="cpu")
            .plan()
            .activation_bytes
        )

    values = 2 * 50 * width * 4
    assert held(fit_steps=4) == held() == values + 4 * 50 * 50 + 2 * 4 * 50 * width
    # 2 * 16 features, 50 tokens.
    assert held(fit_steps=(0, 4)) == values + 8 * 2 * 50 * width
    assert held(method="batchtopk") == values + 8 * 4 * 50 * width


def test_the_estimate_is_the_sum_of_what_is_held_and_of_shared_rotations():
    steps, width = (0, 1), 16
    trajectory, inputs = og.Trajectory.from_models(developing(steps)), tiny_inputs()
    options = {"max_tokens": 50}
    decay = og.observables.ActivationDecay(LAYERS, **options)
    two = [
        og.observables.Concepts(x, 2, layers=LAYERS, **options) for x in ("pca", "svd")
    ]

    def plan(*observables):
        study = og.Study(
            trajectory, inputs, observables, device="cpu", noise=0, batch_size=1
        )
        # One text at a time: a pass takes less than the work on a layer.
        return study.plan()

    alone, together = plan(decay), plan(decay, *two)
    assert alone.shared_bytes == 0 and "rotations" not in str(alone)
    assert together.shared_bytes == 2 * 4 * width**2  # of two layers
    sample = 2 * 50 * width * 4
    assert (
        alone.activation_bytes
        == together.activation_bytes
        == sample
        == alone.reference_bytes
    )
    largest = cost.held_about(0, 0, 0, 0, (50, width))
    assert alone.memory_bytes == alone.model_bytes + largest + 2 * sample
    assert together.memory_bytes == alone.memory_bytes + together.shared_bytes
    # No reference.
    dimensions = plan(og.observables.EffectiveDimensions(LAYERS, **options))
    assert dimensions.memory_bytes == alone.memory_bytes - sample
    assert "2.05 kB of it shared rotations" in str(together)
    assert f"to store: {sample / 1000:.3g} kB of references" in str(alone)


def test_a_pass_counts_where_it_is_larger_than_the_work_on_a_layer():
    nothing = cost.held_about(0, 0, 0, 0, (0, 0))
    assert cost.held_about(1000, 10**6, 50, 40, (10, 2)) == nothing + 1000 + 10**6 + 90
    assert cost.held_about(0, 0, 0, 0, (20, 2)) > cost.held_about(0, 0, 0, 0, (10, 2))


@pytest.mark.parametrize("scaled", [False, True], ids=["untouched", "scaled"])
def test_logits_that_are_taken_in_parts_count_as_far_as_they_are_held(
    scaled, monkeypatch
):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=500, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    model = GPT2LMHeadModel(config).eval()
    if scaled:  # such a model is given all of its logits
        model.register_forward_hook(
            lambda _m, _a, out: setattr(out, "logits", out.logits * 0.5)
        )
    ids = np.random.default_rng(0).integers(5, model.config.vocab_size, (20, 10))
    texts = og.Inputs.from_tokens(ids.tolist())

    def pass_bytes(kind):
        run = og.Trajectory.from_models({0: model})
        return og.Study(run, texts, kind, device="cpu").examination.of(None).pass_bytes

    whole = pass_bytes(og.observables.Loss())
    most = 16 * 10 * 300  # logits of a batch: each of its tokens may hold 300 of them
    monkeypatch.setattr(logits, "AT_ONCE", most)
    monkeypatch.setattr(probe, "AT_ONCE", most)
    assert whole == 3 * 4 * model.config.vocab_size > 3 * 4 * 300
    assert pass_bytes(og.observables.Loss()) == (whole if scaled else 3 * 4 * 300)


def test_what_lies_on_the_device_is_said():
    on_device = Plan(
        steps=(0, 1), memory_bytes=9000, device="cuda:1", device_bytes=7000
    )
    assert "of it on cuda:1: about 7 kB" in str(on_device)
    assert "of it on" not in str(Plan(steps=(0, 1), memory_bytes=9000))


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_every_worker_of_this_machine_counts_as_far_as_there_are_checkpoints(
    tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(plan, "scratch_room", lambda: 0)
    study = _study(None)
    needed = study.plan().certain_bytes()
    monkeypatch.setattr(cost, "memory_of_this_machine", lambda: 2 * needed - 1)
    with (
        kind(3) as pool,
        pytest.raises(ArgumentError, match=r"2 workers.*take fewer workers"),
    ):
        study.run(tmp_path / "s", pool)
    if kind is ThreadPoolExecutor:
        with kind(1) as pool:
            assert study.run(tmp_path / "s", pool).attrs["problems"] == "[]"
        with kind(3) as pool:  # all is computed: nothing is held
            assert study.run(tmp_path / "s", pool).attrs["problems"] == "[]"


def test_exactly_the_memory_is_enough(monkeypatch):
    monkeypatch.setattr(cost, "memory_of_this_machine", lambda: 1000)
    assert cost.too_large(1000) is None and "1e-06 GB" in cost.too_large(1001)
    assert cost.too_large(500, 2) is None and "1e-06 GB together" in cost.too_large(
        501, 2
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
def test_an_array_in_a_file_leaves_memory_and_is_read_again():
    def resident():
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    array = scratch_array((4_000_000,), np.float32)
    array[:] = np.arange(len(array))
    held = resident()
    let_go(array[1000:])  # a view is of the same file
    assert held - resident() > 0.9 * array.nbytes
    np.testing.assert_array_equal(array, np.arange(len(array)))


@pytest.mark.parametrize(
    ("device", "gpus", "workers", "sharing"),
    [("cuda", 1, 1, 1), ("cuda", 2, 4, 2), ("cuda", 4, 4, 1), ("cuda:1", 4, 3, 3)],
)
def test_what_a_gpu_may_not_hold_is_said_with_both_numbers(
    monkeypatch, device, gpus, workers, sharing
):
    room = 24_000_000_000
    facts = SimpleNamespace(total_memory=room)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda of: facts)
    plan = Plan(device=device, device_bytes=room // sharing)
    assert plan.memory_warning(workers) is None
    plan = replace(plan, device_bytes=room // sharing + 1)
    assert plan.memory_warning(0) is None
    warning = plan.memory_warning(workers)
    assert f"on {device}, which has 24 GB" in warning
    assert (f"in each of {sharing} workers" in warning) == (sharing > 1)


def test_what_was_written_to_a_private_map_is_kept(tmp_path):
    np.zeros(4, np.float32).tofile(tmp_path / "file")
    mapped = np.memmap(tmp_path / "file", np.float32, "c", shape=(4,))
    array = np.asarray(mapped).reshape(2, 2)
    array[0] = 3
    let_go(array)
    assert array.ravel().tolist() == [3, 3, 0, 0]
