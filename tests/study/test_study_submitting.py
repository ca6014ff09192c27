"""Executors whose jobs are no futures, as those of submitit, and workers that never begin."""

import threading
from concurrent.futures import Executor, Future

import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import ActivationNorm, Counting, tiny_inputs, tiny_model
from ontogeny.errors import StoreError
from ontogeny.study.running import mapping
from ontogeny.study.running.executors import submitted


class Job:
    """Has what submitit's jobs have: it is computed when somebody waits for it."""

    def __init__(self, call):
        self.call, self.cancelled = call, False

    def result(self):
        return self.call()

    def cancel(self):
        self.cancelled = True


class Cluster:
    def __init__(self):
        self.jobs = []

    def submit(self, function, *arguments):
        self.jobs.append(Job(lambda: function(*arguments)))
        return self.jobs[-1]


@pytest.fixture(scope="module")
def study():
    models = {step: tiny_model(step) for step in (0, 1, 2)}
    trajectory = og.Trajectory.from_models(models)
    return og.Study(
        trajectory, tiny_inputs(), [ActivationNorm()], device="cpu", noise=0
    )


def test_jobs_that_are_no_futures_give_the_same_bits(study, tmp_path):
    cluster = Cluster()
    found = study.run(tmp_path / "jobs", cluster, progress=False)
    assert len(cluster.jobs) == 3
    alone = study.run(tmp_path / "alone", progress=False)
    one, other = (run["activation-norm"].to_dataset() for run in (found, alone))
    xr.testing.assert_identical(one, other)


def test_what_a_job_raises_is_raised_and_what_has_not_begun_is_cancelled(
    study, tmp_path
):
    class Failing(Cluster):
        def submit(self, function, *arguments):
            job, held = super().submit(function, *arguments), threading.Event()
            job.call = self.fail if len(self.jobs) == 1 else held.wait
            return job

        def fail(self):
            raise StoreError("the job was lost")

    cluster = Failing()
    with pytest.raises(StoreError, match="the job was lost"):
        study.run(tmp_path / "s", cluster, progress=False)
    assert [job.cancelled for job in cluster.jobs] == [False, True, True]


def test_a_future_stays_as_it_is():
    class Own(Executor):
        def submit(self, function, /, *arguments):
            return future

    future = Future()
    assert submitted(Own(), abs, -1) is future


def test_workers_that_never_begin_are_said_and_not_waited_for_without_a_word(
    study, tmp_path, monkeypatch
):
    class Pending(Executor):
        def __init__(self):
            self.calls = []

        def submit(self, function, /, *arguments):
            self.calls.append((Future(), function, arguments))
            return self.calls[-1][0]

    class Beginning(Counting):
        def note(self, text):
            super().note(text)
            while executor.calls:
                future, function, arguments = executor.calls.pop()
                future.set_result(function(*arguments))

    monkeypatch.setattr(mapping, "_PATIENCE", 0.0)
    executor, progress = Pending(), Beginning()
    found = study.run(tmp_path / "s", executor, progress)
    assert found.problems() == [] or len(found.problems()) == 0
    (note,) = [note for note in progress.notes if "no task has begun" in note]
    assert "do the executor's workers start?" in note


def test_what_becomes_possible_is_submitted_in_its_turn_and_no_more_at_once_than_asked():
    works, submitted_labels = [mapping.Work(None, label) for label in ("a", "b")], []

    def submit(work):
        future = Future()
        future.set_result(None)
        submitted_labels.append(work.task)
        return future

    finished = mapping._finished(works, submit, at_once=1)
    work, _ = next(finished)
    assert submitted_labels == ["a"]
    works.remove(work)
    works.insert(0, mapping.Work(None, "of an earlier run"))
    assert [work.task for work, _ in finished] == ["of an earlier run", "b"]
