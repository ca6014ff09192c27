"""How often a study reads the weights of each checkpoint, and that its plan on paper says so."""

from collections import Counter, defaultdict

import pytest

import ontogeny as og
from helpers import tiny_models
from helpers.control_runs import run_of
from helpers.study_examples import tiny_inputs
from helpers.task_at_work import TaskAtWork
from ontogeny.start.paper import Paper, Wanted
from ontogeny.trajectory.weights.files import _Shard

STEPS = (0, 1, 2, 5, 9)
CONTROLS = 12


def tensor_bytes(path):
    """Return the bytes of a safetensors file beside its header."""
    content = path.read_bytes()
    return len(content) - 8 - int.from_bytes(content[:8], "little")


@pytest.fixture
def readings(monkeypatch):
    """How often whole files were read by now, by task and checkpoint: each place once an opening.

    Tasks of control runs are one, "control", and what is read before the first is "before".
    """
    places = defaultdict(set)
    at_work = TaskAtWork(monkeypatch)
    opened = []  # so that no two have one number
    mapped = _Shard._mapped

    def counting(self, offset, size, dtype):
        opened.append(self)
        label = at_work.label
        of_task = "control" if ": " in label else label.partition(" ")[0]
        places[of_task or "before", self._path, id(self)].add((offset, size))
        return mapped(self, offset, size, dtype)

    monkeypatch.setattr(_Shard, "_mapped", counting)

    def counts():
        read = Counter()
        for (name, path, _), found in places.items():
            read[name, path.parent.name] += sum(size for _, size in found)
        sizes = {path.parent.name: tensor_bytes(path) for _, path, _ in places}
        return {key: n / sizes[key[1]] for key, n in read.items()}

    return counts


@pytest.mark.slow
def test_a_file_is_read_once_for_passes_once_for_matrices_and_once_for_each_control(
    tmp_path, readings
):
    for step, model in run_of(tiny_models.gpt2, STEPS).items():
        model.save_pretrained(tmp_path / "run" / f"checkpoint-{step}")
    run = og.Trajectory.from_folder(tmp_path / "run")
    kinds = [og.observables.Loss(), og.observables.WeightChange()]
    study = og.Study(
        run, tiny_inputs(16), kinds, controls=CONTROLS, control_steps=3, device="cpu"
    )
    assert not study.run(tmp_path / "s").problems()
    read = readings()
    names = [f"checkpoint-{step}" for step in STEPS]
    share = read["weights", names[0]]  # of matrices among all weights
    assert 0.7 < share < 1
    # With the first one the model is built, and compared with its file.
    assert read["step", names[0]] <= 2
    for name in names[1:]:
        assert read["step", name] == pytest.approx(1, abs=0.1)
    for name in names:
        assert read["weights", name] == pytest.approx(share)
    # Two steps of each control are made of that step and of the first, of which rows are looked at
    # to find tensors that are one.
    of_control = {name: n for (task, name), n in read.items() if task == "control"}
    made = {names[0]: 2 * CONTROLS, names[2]: CONTROLS, names[-1]: CONTROLS}
    assert of_control == pytest.approx(made, rel=0.06)
    # On paper there is no sample that the audit takes, which of a large model is a small one.
    wanted = Wanted.of(study)
    bill = Paper.of(study).bill(wanted)
    stored = Paper.of(study).model.stored
    assert bill.asked == stored * (3 * len(STEPS) + sum(made.values()))
