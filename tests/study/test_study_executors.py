"""Any executor gives the same bits; what fails in one place costs nothing elsewhere."""

import multiprocessing
import os
import pickle
import warnings
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.deadly import Deadly, assert_lost
from helpers.study_examples import (
    LAYERS,
    ActivationNorm,
    developing,
    observables,
    record,
    tiny_inputs,
    tiny_model,
)
from helpers.warm_process import warm_context
from ontogeny import needs
from ontogeny.capture.blocks import WeightBlock
from ontogeny.errors import ArgumentError, LayerMatchError, StoreError
from ontogeny.observables import Observable, by_layer
from ontogeny.study.running.stages import _only

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 4, 8, 16)


def _nodes(tree):
    return {name: node.to_dataset().load() for name, node in tree.children.items()}


def _study(trajectory, chosen=None, **options):
    options = {"device": "cpu", "noise": 1, **options}
    return og.Study(trajectory, tiny_inputs(), chosen or observables(), **options)


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """A recorded run and its study computed one task after another."""
    folder = tmp_path_factory.mktemp("serial")
    trajectory = record(developing(STEPS), folder / "run")
    return trajectory, _nodes(_study(trajectory).run(folder / "study"))


def _executors():
    from distributed import Client, LocalCluster

    yield "threads", ThreadPoolExecutor(2)
    # Processes of their own that have imported once, in the one that they are forked from.
    yield "processes", ProcessPoolExecutor(2, warm_context())
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        yield "dask", client.get_executor()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_every_executor_gives_the_same_bits(serial, tmp_path):
    trajectory, expected = serial
    for name, executor in _executors():
        with executor:
            found = _nodes(_study(trajectory).run(tmp_path / name, executor))
        assert found.keys() == expected.keys()
        for node, data in expected.items():
            xr.testing.assert_identical(found[node], data)


def test_models_in_memory_and_on_disk_give_the_same_numbers(serial, tmp_path):
    _, expected = serial
    models = og.Trajectory.from_models(developing(STEPS))
    found = _nodes(_study(models).run(tmp_path / "s"))
    for node, data in expected.items():
        xr.testing.assert_identical(found[node], data)


def test_adding_an_observable_does_not_change_the_others_numbers(serial, tmp_path):
    trajectory, expected = serial
    alone = _study(trajectory, [og.observables.ActivationDecay(LAYERS)]).run(
        tmp_path / "s"
    )
    xr.testing.assert_identical(
        alone["activation-decay"].to_dataset(), expected["activation-decay"]
    )


def test_an_observable_of_ten_lines_works(serial, tmp_path):
    trajectory, _ = serial
    tree = _study(trajectory, [ActivationNorm()]).run(tmp_path / "s")
    inputs = tiny_inputs()
    acts = og.capture.activations(trajectory[4].model(), inputs, LAYERS)
    for layer, values in acts.items():
        expected = float(values.norm(dim=1).mean())
        found = float(tree["activation-norm"]["norm"].sel(step=4, layer=layer))
        assert found == pytest.approx(expected, rel=1e-6)


class _Pickling(Executor):
    """Runs at once what has been pickled and unpickled, and counts the bytes by kind of task."""

    def __init__(self):
        self.bytes = Counter()

    def submit(self, function, job, task):
        sent = pickle.dumps((job, task))
        self.bytes[task.label.partition(" ")[0]] += len(sent)
        future = Future()
        future.set_result(function(*pickle.loads(sent)))
        return future


def test_tasks_of_weight_blocks_carry_their_own_tensors_of_models_in_memory(
    serial, tmp_path
):
    models = {step: tiny_model(step, width=128, vocabulary=400) for step in STEPS}
    chosen = [
        og.observables.WeightRank(
            f"model.layers.{i}.*.*.weight", n_draws=20, label=f"of-{i}"
        )
        for i in range(2)
    ]
    trajectory, executor = og.Trajectory.from_models(models), _Pickling()
    found = _nodes(_study(trajectory, chosen).run(tmp_path / "a", executor))
    named = dict(models[0].named_parameters()).items()
    size = len(STEPS) * sum(p.nbytes for n, p in named if "layers" in n and p.ndim == 2)
    # Every matrix travels once, and nothing of the embedding; the rest is names and settings.
    assert size < executor.bytes["weights"] < 1.3 * size
    expected = _nodes(_study(trajectory, chosen).run(tmp_path / "b"))
    for node, data in expected.items():
        xr.testing.assert_identical(found[node], data)


def test_a_matrix_that_shares_its_memory_travels_alone(tmp_path):
    models, size = {}, 0
    for step in STEPS:
        flat = torch.randn(100_000, generator=torch.Generator().manual_seed(step))
        models[step] = {
            "a.weight": flat[:400].view(20, 20),
            "b.weight": flat[400:800].view(20, 20),
        }
        size += flat.nbytes
    trajectory = og.Trajectory.from_models(models)
    blocks = [WeightBlock("a.weight", "a.weight", (20, 20), 0, ((0, 20),))]
    sent = _only(trajectory, blocks)
    assert len(pickle.dumps(sent)) < size / 20
    with sent[4].open() as reader:
        torch.testing.assert_close(
            reader.get("a.weight"), models[4]["a.weight"], rtol=0, atol=0
        )


@dataclass(frozen=True)
class Picky(Observable):
    """Fails in one layer at one step, and altogether at another."""

    kind: ClassVar[str] = "picky"

    def needs(self):
        return [needs.Activations(LAYERS)]

    def observe(self, reading, state):
        if reading.step == 8:
            raise RuntimeError("no eighth step, please")

        def one(path, a):
            if reading.step == 2 and "1" in path:
                raise ValueError("this layer\nis out")
            return {"mean": a.mean()}

        return by_layer(reading[self.needs()[0]], one)


def test_a_failing_layer_and_a_failing_step_leave_the_rest(serial, tmp_path):
    trajectory, _ = serial
    tree = _study(trajectory, [og.observables.Loss(), Picky()]).run(tmp_path / "s")
    status = tree["picky"].status
    done, failed = status.sel(step=2).values.tolist()
    assert done == "done" and failed.startswith(
        "failed: ValueError: this layer (test_study_"
    )
    assert all(
        "failed: RuntimeError: no eighth step" in s for s in status.sel(step=8).values
    )
    good = tree["picky"]["mean"].sel(layer="model.layers.0.mlp")
    assert np.isnan(good.sel(step=8)) and np.isfinite(good.drop_sel(step=8)).all()
    assert np.isfinite(tree["loss"].loss).all()
    # what failed is tried again, what is done is not
    assert [
        e.key
        for e in _study(trajectory, [Picky()]).plan(tmp_path / "s").entries
        if e.to_do
    ] == [2, 8]


@dataclass(frozen=True)
class Unprepared(ActivationNorm):
    """Cannot prepare its state."""

    kind: ClassVar[str] = "unprepared"

    def prepare(self, run):
        raise ValueError("nothing to start from")


def test_a_state_that_cannot_be_prepared_costs_only_its_own_observable(
    serial, tmp_path
):
    tree = _study(serial[0], [Unprepared(), og.observables.Loss()]).run(tmp_path / "s")
    assert all(
        "nothing to start from" in str(s) for s in tree["unprepared"].status.values
    )
    assert np.isfinite(tree["loss"].loss).all()


@pytest.mark.parametrize("times", [9, 1])
def test_a_step_that_kills_its_worker_twice_fails_alone(serial, tmp_path, times):
    trajectory, tried = serial[0], tmp_path / "tried"
    study = _study(trajectory, [Deadly(str(tried), times)], noise=0)
    study.plan()  # the model is examined here, and not in workers
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("fork"))
    with pool, warnings.catch_warnings():
        # Of forks beside threads, and that a cell has failed.
        warnings.simplefilter("ignore")
        tree = study.run(tmp_path / "s", pool)
    assert tried.read_text() == ".."
    assert_lost(tree, [4] if times > 1 else [])
    assert not list((tmp_path / "s" / ".claims").glob("*"))


def test_workers_that_die_before_they_begin_are_an_error(serial, tmp_path):
    pool = ProcessPoolExecutor(
        1, multiprocessing.get_context("fork"), initializer=os._exit, initargs=(9,)
    )
    study = _study(serial[0], [Deadly(str(tmp_path / "tried"), 0)], noise=0)
    with pool, pytest.raises(StoreError, match=r"died .* before it began with a task"):
        study.run(tmp_path / "s", pool)


class Clustered(Executor):
    """Answers as Dask does where a task has killed some workers."""

    def submit(self, call, /, *arguments, **options):
        class KilledWorker(Exception):
            pass

        future = Future()
        if arguments[1].label == "step 4":
            future.set_exception(
                KilledWorker("Attempted to run task on 4 different workers")
            )
        else:
            future.set_result(call(*arguments, **options))
        return future


def test_a_step_that_kills_workers_of_a_cluster_fails_alone(serial, tmp_path):
    study = _study(serial[0], [Deadly(str(tmp_path / "tried"))], noise=0)
    with pytest.warns(og.errors.StudyWarning):
        tree = study.run(tmp_path / "s", Clustered())
    assert [row.steps for row in tree.problems()] == [(4,)]
    assert (tree["deadly"].x.drop_sel(step=4) == 1).all()


def test_need_that_was_not_declared_is_refused(serial, tmp_path):
    @dataclass(frozen=True)
    class Undeclared(ActivationNorm):
        def observe(self, reading, state):
            return reading[needs.Losses()]

    study = _study(serial[0], [Undeclared()])
    with pytest.raises(ArgumentError, match=r"needs\(\) does not declare"):
        study.run(tmp_path / "s")
    tree = study.run(tmp_path / "s", keep_going=True)
    assert "needs() does not declare" in tree["activation-norm"].status.values[0]


def test_a_model_with_nan_activations_is_named(tmp_path):
    models = developing(STEPS)
    with torch.no_grad():
        models[4].model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(),
        [og.observables.ActivationDecay(LAYERS)],
        device="cpu",
    )
    tree = study.run(tmp_path / "s")
    assert "model.layers.1.mlp" in str(
        tree["activation-decay"].status.sel(step=4).values
    )
    assert np.isfinite(tree["activation-decay"].distance.drop_sel(step=4)).all()


class _Deaf(torch.nn.Module):
    """Ignores the mask: every position sees the mean over all, padding too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(40, 8)
        self.mix = torch.nn.Linear(8, 8)

    def forward(self, input_ids, attention_mask=None):
        x = self.embedding(input_ids)
        return self.mix(x + x.mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"observables": []}, ArgumentError, "at least one observable"),
        (
            {"observables": [ActivationNorm()] * 2},
            ArgumentError,
            "two observables are called",
        ),
        ({"observables": ["loss"]}, ArgumentError, "got str"),
        ({"inputs": {}}, ArgumentError, "at least one named input set"),
        ({"trajectory": "runs/tiny"}, ArgumentError, "trajectory must be"),
        ({"reference": "middle"}, ArgumentError, "reference must be one of"),
        ({"reference": 3}, ArgumentError, "nearest 2"),
        ({"batch_size": 0}, ArgumentError, "batch_size"),
        ({"dtype": "float8"}, ArgumentError, "dtype must be one of"),
        ({"device": "tpu"}, ArgumentError, "got 'tpu'"),
        (
            {"observables": [ActivationNorm(layers="model.layer.*.mlp")]},
            LayerMatchError,
            "layers",
        ),
        ({"observables": [og.observables.Loss(on="sst3")]}, ArgumentError, "sst3"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(
    serial, arguments, error, message
):
    given = {
        "trajectory": serial[0],
        "inputs": tiny_inputs(),
        "observables": observables(),
        "device": "cpu",
        **arguments,
    }
    with pytest.raises(error, match=message):
        og.Study(**given).plan()


def test_a_model_that_ignores_its_mask_reads_texts_one_by_one():
    models = {step: _Deaf() for step in (0, 1)}
    study = og.Study(
        og.Trajectory.from_models(models), tiny_inputs(), [ActivationNorm(layers="mix")]
    )
    assert any(
        "texts are read one by one, without padding" in n for n in study.plan().notes
    )
    assert study.examination.of(None).fallback.batch_size == 1


def test_memory_does_not_grow_with_the_checkpoints(tmp_path):
    """One skeleton serves all: the module of every task in one thread is the same object."""
    seen = set()

    @dataclass(frozen=True)
    class Watch(Observable):
        kind: ClassVar[str] = "watch"

        def needs(self):
            return [needs.Model()]

        def observe(self, reading, state):
            seen.add(id(reading[needs.Model()]))
            return xr.Dataset({"x": 0.0})

    models = {step: tiny_model(step) for step in STEPS}
    _study(og.Trajectory.from_models(models), [Watch()]).run(tmp_path / "s")
    # One of all tasks, and one on which it was tried before.
    assert len(seen) <= 2 < len(STEPS)
