"""A study that cannot fit into memory is refused before anything is computed."""

import os
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.study import memory


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
        og.Trajectory.from_models(developing((0, 1))), tiny_inputs(), decay, device="cpu", noise=0
    )


def test_more_activations_than_memory_are_noted_by_the_plan_and_refused_by_the_run(
    tmp_path, monkeypatch
):
    study, small = _study(None), _study(10)
    needed = study.plan().certain_bytes
    assert 0 < small.plan().certain_bytes < needed < study.plan().memory_bytes
    monkeypatch.setattr(memory, "memory_of_this_machine", lambda: needed - 1)
    assert "too large: a study takes" in str(study.plan())
    with pytest.raises(ArgumentError, match="give the observables max_tokens"):
        study.run(tmp_path / "s")
    assert not list(tmp_path.glob("s/cells/**/*.safetensors"))
    assert small.run(tmp_path / "small").attrs["problems"] == "[]"
    assert study.run(tmp_path / "s", Elsewhere()).attrs["problems"] == "[]"


def test_what_may_be_too_large_by_estimate_is_said_and_tried(tmp_path, monkeypatch):
    study = _study(None)
    foreseen = study.plan().memory_bytes
    monkeypatch.setattr(memory, "memory_of_this_machine", lambda: foreseen - 1)
    assert "perhaps too large: a study may take about" in str(study.plan())
    with pytest.warns(StudyWarning, match="may take about .* give the observables max_tokens"):
        assert study.run(tmp_path / "s").attrs["problems"] == "[]"


def test_a_plan_prices_the_checkpoints_that_shared_codes_are_fitted_to():
    """Beside the values of both layers: one layer's kernel, or its stack where that is smaller."""
    steps, width = (0, 1, 2, 4), 16

    def held(**options):
        chosen = og.observables.JointConcepts(
            LAYERS, n_concepts=4, n_active=1, max_tokens=50, examples=0, **options
        )
        trajectory = og.Trajectory.from_models(developing(steps))
        return og.Study(trajectory, tiny_inputs(), chosen, device="cpu").plan().activation_bytes

    values = 2 * 50 * width * 4
    assert held(fit_steps=4) == held() == values + 4 * 50 * 50 + 2 * 4 * 50 * width
    assert held(fit_steps=(0, 4)) == values + 8 * 2 * 50 * width  # 2 * 16 features, 50 tokens
    assert held(method="batchtopk") == values + 8 * 4 * 50 * width


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_every_worker_of_this_machine_counts_as_far_as_there_are_checkpoints(
    tmp_path, monkeypatch, kind
):
    study = _study(None)
    needed = study.plan().certain_bytes
    monkeypatch.setattr(memory, "memory_of_this_machine", lambda: 2 * needed - 1)
    with kind(3) as pool, pytest.raises(ArgumentError, match=r"2 workers.*take fewer workers"):
        study.run(tmp_path / "s", pool)
    if kind is ThreadPoolExecutor:
        with kind(1) as pool:
            assert study.run(tmp_path / "s", pool).attrs["problems"] == "[]"
        with kind(3) as pool:  # all is computed: nothing is held
            assert study.run(tmp_path / "s", pool).attrs["problems"] == "[]"


def test_exactly_the_memory_is_enough(monkeypatch):
    monkeypatch.setattr(memory, "memory_of_this_machine", lambda: 1000)
    assert memory.too_large(1000) is None and "1e-06 GB" in memory.too_large(1001)
    assert memory.too_large(500, 2) is None and "1e-06 GB together" in memory.too_large(501, 2)


@pytest.mark.parametrize(
    ("line", "controller"), [("0::/jobs/job_8", ""), ("7:cpu,memory:/jobs/job_8", "memory")]
)
@pytest.mark.parametrize("limited", [".", "jobs", "jobs/job_8"])
def test_the_limit_of_a_container_or_of_a_batch_job_counts(
    tmp_path, monkeypatch, line, controller, limited
):
    here = memory.memory_of_this_machine()
    assert here is None or here > 1 << 20
    (tmp_path / "jobs" / "job_8").mkdir(parents=True)
    (tmp_path / "limit").write_text("max\n")
    (tmp_path / limited / "limit").write_text("4096\n")
    (tmp_path / "groups").write_text(f"1:name=systemd:/else\n\n{line}\n")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "_LIMITS", {controller: tmp_path / "limit"})
    assert memory.memory_of_this_machine() == 4096


def test_without_cgroups_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "none")
    monkeypatch.setattr(memory, "_LIMITS", {"": tmp_path / "limit"})
    known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})
    built_in = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else None
    assert memory.memory_of_this_machine() == built_in
