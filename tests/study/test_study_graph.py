"""The study as one graph: what is read, what depends on what, and what is computed again."""

import copy
import shutil
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import (
    LAYERS,
    ActivationNorm,
    Counting,
    developing,
    observables,
    tiny_inputs,
    tiny_model,
)
from ontogeny.capture import reading
from ontogeny.errors import ArgumentError
from ontogeny.observables import Observable

STEPS = (0, 1, 2, 4)


@dataclass(frozen=True)
class Summed(ActivationNorm):
    """Counts how often its cells and its summary are computed."""

    window: int = 3
    label: str | None = None
    kind: ClassVar[str] = "summed"
    summary_only: ClassVar[tuple[str, ...]] = ("window",)
    calls: ClassVar[Counter] = Counter()

    def observe(self, reading, state):
        self.calls["observe"] += 1
        return super().observe(reading, state)

    def summarise(self, data, nodes):
        self.calls["summarise"] += 1
        labels = xr.DataArray(
            ["first", "the rest"], dims="part", attrs={"note": "text"}
        )
        attrs = {
            "window": np.int64(self.window),
            "bounds": (1, 2.5),
            "odd": np.array([1, 2]),
        }
        return data.assign_coords(part=labels).assign_attrs(attrs)


@dataclass(frozen=True)
class Follows(Observable):
    """Follows from another node alone."""

    of: str = "summed"
    label: str | None = None
    kind: ClassVar[str] = "follows"
    calls: ClassVar[Counter] = Counter()

    @property
    def depends_on(self):
        return (self.of,)

    def needs(self):
        return []

    def observe(self, reading, state):
        raise AssertionError("it needs nothing")

    def summarise(self, data, nodes):
        self.calls["summarise"] += 1
        return xr.Dataset({"last": nodes[self.of].norm.isel(step=-1)})


def _run(folder, chosen, models=None, **options):
    trajectory = og.Trajectory.from_models(models or developing(STEPS))
    progress = Counting()
    study = og.Study(
        trajectory, tiny_inputs(), chosen, device="cpu", noise=0, **options
    )
    tree = study.run(folder, progress=progress)
    assert tree.attrs["problems"] == "[]"
    for cls in (Summed, Follows):
        progress.calls = {**getattr(progress, "calls", {}), cls.kind: dict(cls.calls)}
        cls.calls.clear()
    return tree, progress


@pytest.fixture(autouse=True)
def _calls():
    Summed.calls.clear()
    Follows.calls.clear()


def test_a_run_with_nothing_to_do_computes_no_summary(tmp_path):
    chosen, models = [Summed(), Follows()], developing(STEPS)
    first, progress = _run(tmp_path / "s", chosen, models)
    once = {"observe": 1 + len(STEPS), "summarise": 1}  # and a dry run
    assert progress.calls == {"summed": once, "follows": {"summarise": 1}}
    again, progress = _run(tmp_path / "s", chosen, models)
    assert progress.calls == {"summed": {}, "follows": {}} and progress.labels == []
    for name, node in first.children.items():
        xr.testing.assert_identical(node.to_dataset(), again[name].to_dataset())
    assert first["summed"].part.dtype.kind == again["summed"].part.dtype.kind == "U"
    assert again["summed"].attrs["bounds"] == [1, 2.5] and again["summed"].attrs[
        "odd"
    ] == [1, 2]


def test_a_new_step_computes_the_summaries_that_depend_on_it_again(tmp_path):
    chosen, models = [og.observables.Loss(), Summed(), Follows()], developing(STEPS)
    _run(
        tmp_path / "s",
        chosen,
        {step: models[step] for step in STEPS[:3]},
        reference="first",
    )
    tree, progress = _run(tmp_path / "s", chosen, models, reference="first")
    assert progress.calls == {
        "summed": {"observe": 1, "summarise": 1},
        "follows": {"summarise": 1},
    }
    fresh, _ = _run(tmp_path / "fresh", chosen, models, reference="first")
    for name, node in fresh.children.items():
        xr.testing.assert_identical(node.to_dataset(), tree[name].to_dataset())


def test_a_folder_without_summaries_or_with_a_damaged_one_gets_them_and_keeps_its_cells(
    tmp_path,
):
    chosen, models = [Summed(), Follows()], developing(STEPS)
    first, _ = _run(tmp_path / "s", chosen, models)
    shutil.rmtree(tmp_path / "s" / "summaries")  # as released versions left it
    _, progress = _run(tmp_path / "s", chosen, models)
    assert progress.calls == {"summed": {"summarise": 1}, "follows": {"summarise": 1}}
    path = tmp_path / "s" / "summaries" / "summed.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again, progress = _run(tmp_path / "s", chosen, models)
    # The summary is the same as before, so nothing that depends on it is computed again.
    assert progress.calls == {"summed": {"summarise": 1}, "follows": {}}
    xr.testing.assert_identical(
        first["summed"].to_dataset(), again["summed"].to_dataset()
    )


def test_arguments_of_the_summary_alone_leave_the_cells_as_they_are(tmp_path):
    models = developing(STEPS)
    _run(tmp_path / "s", [Summed(window=3)], models)
    tree, progress = _run(tmp_path / "s", [Summed(window=5)], models)
    assert progress.planned == 0 and progress.notes == []
    assert progress.calls["summed"] == {"summarise": 1}
    assert tree["summed"].attrs["window"] == 5


def test_a_summary_that_fails_is_tried_again(tmp_path, monkeypatch):
    models = developing(STEPS)

    def fails(self, data, nodes):
        raise ValueError("not yet")

    with monkeypatch.context() as patched:
        patched.setattr(Summed, "summarise", fails)
        trajectory = og.Trajectory.from_models(models)
        study = og.Study(trajectory, tiny_inputs(), [Summed()], device="cpu", noise=0)
        tree = study.run(tmp_path / "s")
    assert "summed: ValueError: not yet" in tree.attrs["problems"]
    assert np.isfinite(tree["summed"].norm).all()
    tree, _ = _run(tmp_path / "s", [Summed()], models)
    assert tree["summed"].attrs["window"] == 3


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([Follows(of="follows")], "follows -> follows"),
        (
            [Follows(of="b", label="a"), Follows(of="a", label="b")],
            "a -> b -> a|b -> a -> b",
        ),
    ],
)
def test_observables_that_depend_on_themselves_are_refused(chosen, message):
    trajectory = og.Trajectory.from_models({0: tiny_model(0)})
    with pytest.raises(
        ArgumentError, match=rf"must not depend on themselves: ({message})\."
    ):
        og.Study(trajectory, tiny_inputs(), chosen, device="cpu")


def _causal(steps):
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=48,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    base, models = GPTNeoXForCausalLM(config).eval(), {}
    for i, step in enumerate(steps):
        models[step] = copy.deepcopy(base)
        with torch.no_grad():
            for p in models[step].parameters():
                p.add_(0.01 * i)
    return models


@pytest.mark.parametrize("prepared", [False, True])
def test_as_many_passes_are_planned_as_are_run(tmp_path, monkeypatch, prepared):
    steps = (0, 1, 2, 4, 8)
    decay = og.observables.ActivationDecay("mlp") if prepared else ActivationNorm("mlp")
    trajectory = og.Trajectory.from_models(_causal(steps))
    study = og.Study(
        trajectory, tiny_inputs(), [og.observables.Loss(), decay], device="cpu", noise=0
    )
    plan, feed, passes = study.plan(), reading.feed, []

    def counting(*arguments, **options):
        passes.append(1)
        return feed(*arguments, **options)

    monkeypatch.setattr(reading, "feed", counting)
    study.run(tmp_path / "s")
    assert plan.forwards == len(passes) == len(steps)
    assert study.plan(tmp_path / "s").forwards == 0


def test_a_preparation_that_reads_all_steps_is_priced(tmp_path, monkeypatch):
    concepts = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS, init="chain")
    trajectory, feed, passes = (
        og.Trajectory.from_models(developing(STEPS)),
        reading.feed,
        [],
    )
    study = og.Study(trajectory, tiny_inputs(), [concepts], device="cpu", noise=0)
    plan = study.plan()

    def counting(*arguments, **options):
        passes.append(1)
        return feed(*arguments, **options)

    monkeypatch.setattr(reading, "feed", counting)
    study.run(tmp_path / "s")
    assert plan.forwards == len(passes) == len(STEPS)  # the cells take what it has read
    projection = og.observables.Projection(pairs=2, batch_size=4)
    study = og.Study(trajectory, tiny_inputs(), [projection], device="cpu", noise=0)
    parameters = sum(p.numel() for p in tiny_model().parameters())
    assert study.plan().weight_bytes == 4 * parameters * 2 * len(STEPS)


@pytest.mark.slow
def test_as_many_cells_are_counted_as_are_announced(tmp_path):
    chosen = [*observables(("pca",)), og.observables.ConceptDistances("concepts-pca")]
    _, progress = _run(tmp_path / "s", chosen)
    assert progress.cells == progress.planned > 0
    assert progress.tasks == len(progress.labels)


def test_what_reads_a_state_that_turns_out_the_same_is_kept(tmp_path):
    models = developing(STEPS)
    chosen = [og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)]
    _run(tmp_path / "s", chosen, models)
    cells = {
        p: p.stat().st_mtime_ns
        for p in (tmp_path / "s" / "cells").rglob("*.safetensors")
    }
    (tmp_path / "s" / "states" / "concepts-pca.safetensors").unlink()
    _, progress = _run(tmp_path / "s", chosen, models)
    assert progress.planned == progress.cells == len(STEPS)  # before it is known
    assert cells == {p: p.stat().st_mtime_ns for p in cells}


@dataclass(frozen=True)
class Odd(ActivationNorm):
    """Gives what cannot be stacked or stored."""

    what: str = ""
    kind: ClassVar[str] = "odd"

    def observe(self, reading, state):
        values = {
            "sizes": ("a", np.arange(1.0 + reading.step)),
            "dates": np.datetime64("2020-01-01"),
            "swapped": ("a", np.arange(3).astype(">f8")),
            "complex summary": 1.0,
            "noted": 1.0,
        }
        return {} if self.what == "mapping" else xr.Dataset({"x": values[self.what]})

    def derive(self, data, nodes):
        if self.what == "complex summary":
            return data.assign(x=data.x * 1j)
        data.x.attrs["edges"] = np.array([1, 2])
        return data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("sizes", "conflicting dimension sizes"),
        ("dates", "x is of type datetime64"),
        ("complex summary", "x is of type complex128"),
        ("swapped", ""),
        ("noted", ""),
    ],
)
def test_what_cannot_be_stacked_or_stored_costs_the_others_nothing(
    tmp_path, what, reason
):
    chosen = [Odd(what=what), og.observables.Loss()]
    trajectory = og.Trajectory.from_models(developing((0, 1, 2)))
    study = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=0)
    tree = study.run(tmp_path / "s")
    assert np.isfinite(tree["loss"].loss).all()
    assert reason in tree.attrs["problems"] and bool(reason) == (
        "failed" in tree["odd"].attrs
    )
    og.open_study(tmp_path / "s").report(tmp_path / "page.html")
    if not reason:
        assert (
            tree["odd"].x.attrs["edges"] == [1, 2]
            and study.plan(tmp_path / "s").to_do == 0
        )


def test_an_observable_that_returns_no_dataset_costs_the_others_nothing(tmp_path):
    trajectory = og.Trajectory.from_models(developing((0, 1, 2)))
    chosen = [Odd(what="mapping"), og.observables.Loss()]
    study = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=0)
    with pytest.raises(
        ArgumentError, match=r"must return an xarray\.Dataset; got dict"
    ):
        study.run(tmp_path / "s")
    tree = study.run(tmp_path / "s", keep_going=True)
    assert np.isfinite(tree["loss"].loss).all() and "got dict" in tree.attrs["problems"]
