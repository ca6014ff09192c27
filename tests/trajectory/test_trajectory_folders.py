"""Opening folders of checkpoints: layouts, pickled weights, and what is refused."""

import json
import os
import pickle

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn

from ontogeny import Recorder, Trajectory
from ontogeny.cli.sources import open_model
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory import UnknownStepError
from ontogeny.trajectory.weights import announced


def gpt2(seed=0):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        n_embd=16,
        n_layer=2,
        n_head=2,
        vocab_size=40,
        n_positions=16,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def linear(seed):
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def load_model(folder, model=None):
    """Return the model of the last checkpoint of a folder."""
    return Trajectory.from_folder(folder, model).checkpoints[-1].model()


def write_linear(folder, step, name="checkpoint-{}"):
    path = folder / name.format(step)
    path.mkdir(parents=True)
    save_file(linear(step).state_dict(), path / "model.safetensors")
    return path


def to_bin(folder, **options):
    """Rewrite a safetensors checkpoint as a pickled one."""
    from safetensors.torch import load_file

    torch.save(
        load_file(folder / "model.safetensors"), folder / "pytorch_model.bin", **options
    )
    (folder / "model.safetensors").unlink()


def same(model, other):
    state, expected = model.state_dict(), other.state_dict()
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


@pytest.mark.parametrize("name", ["checkpoint-{}", "step{}", "step-{}", "step_{}"])
def test_steps_are_read_from_folder_names_and_sorted_as_numbers(tmp_path, name):
    for step in (1000, 20, 0, 300):
        write_linear(tmp_path, step, name)
    trajectory = Trajectory.from_folder(tmp_path, model=nn.Linear(3, 2))
    np.testing.assert_array_equal(trajectory.steps, [0, 20, 300, 1000])
    assert trajectory.steps.dtype == np.int64
    assert [c.step for c in trajectory] == [0, 20, 300, 1000] and len(trajectory) == 4
    assert trajectory[300].label == name.format(300)
    assert trajectory[300].path == tmp_path / name.format(300)
    assert 300 in trajectory and 301 not in trajectory
    assert same(trajectory[300].model(), linear(300))


def test_trainer_layout_with_shards_and_pickles_loads_the_same_weights(tmp_path):
    models = {step: gpt2(step) for step in (0, 100, 200, 300)}
    for step, model in models.items():
        size = "20KB" if step == 100 else "5GB"
        model.save_pretrained(tmp_path / f"checkpoint-{step}", max_shard_size=size)
    assert (tmp_path / "checkpoint-100" / "model.safetensors.index.json").is_file()
    to_bin(tmp_path / "checkpoint-200")
    to_bin(tmp_path / "checkpoint-300", _use_new_zipfile_serialization=False)
    trajectory = Trajectory.from_folder(tmp_path)
    skeleton = trajectory.skeleton()
    for checkpoint in trajectory:
        assert same(checkpoint.model(), models[checkpoint.step])
        assert same(skeleton.load(checkpoint), models[checkpoint.step])


def test_sharded_pickles_load(tmp_path):
    path = tmp_path / "checkpoint-5"
    path.mkdir()
    state = linear(5).state_dict()
    files = {
        "weight": "pytorch_model-00001-of-00002.bin",
        "bias": "pytorch_model-00002-of-00002.bin",
    }
    for name, file in files.items():
        torch.save({name: state[name]}, path / file)
    (path / "pytorch_model.bin.index.json").write_text(
        json.dumps({"weight_map": files})
    )
    assert same(load_model(tmp_path, model=nn.Linear(3, 2)), linear(5))


def test_safetensors_win_over_pickles_in_the_same_folder(tmp_path):
    path = write_linear(tmp_path, 1)
    torch.save(linear(99).state_dict(), path / "pytorch_model.bin")
    assert same(load_model(tmp_path, model=nn.Linear(3, 2)), linear(1))


def test_reading_pickled_weights_is_said_in_the_log(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(announced, "topics", set())  # said once in a process
    to_bin(write_linear(tmp_path, 1))
    load_model(tmp_path, model=nn.Linear(3, 2))
    assert "no code in them runs" in caplog.text and str(tmp_path) in caplog.text


class Malicious:
    """A pickle that makes a folder when it is loaded."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (str(self.target),))


def write_malicious(file, payload, kind):
    if kind == "plain pickle":
        file.write_bytes(pickle.dumps({"weight": payload}, protocol=2))
    else:
        torch.save(
            {"weight": payload}, file, _use_new_zipfile_serialization=kind == "zip"
        )


@pytest.mark.parametrize("kind", ["zip", "legacy", "plain pickle"])
@pytest.mark.parametrize("with_config", [True, False])
def test_a_malicious_pickle_does_not_run(tmp_path, kind, with_config):
    path, target = tmp_path / "checkpoint-1", tmp_path / "it-ran"
    path.mkdir()
    if with_config:
        gpt2().config.save_pretrained(path)
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(
            json.dumps({**config, "architectures": ["GPT2LMHeadModel"]})
        )
    write_malicious(path / "pytorch_model.bin", Malicious(target), kind)
    trajectory = Trajectory.from_folder(
        tmp_path, model=None if with_config else nn.Linear(3, 2)
    )
    uses = (
        trajectory[1].model,
        trajectory[1].digests,
        lambda: trajectory.skeleton().load(1),
    )
    for use in uses:
        with pytest.raises(
            CheckpointError, match=r"no tensors by name|cannot be read as tensors"
        ):
            use()
    (finding,) = trajectory.audit()
    assert finding.kind == "unreadable" and "tensors" in finding.message
    assert not target.exists()
    # The payload does work where pickles are run.
    pickle.loads(pickle.dumps(Malicious(target)))
    assert target.exists()


def test_unknown_step_names_the_nearest_and_is_a_key_error(tmp_path):
    for step in (0, 100, 200, 400):
        write_linear(tmp_path, step)
    trajectory = Trajectory.from_folder(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"no checkpoint at step 230; .* 100, 200, 400\.$"
    ):
        trajectory[230]
    with pytest.raises(KeyError):
        trajectory[1]
    with pytest.raises(UnknownStepError):
        trajectory.select(steps=[0, 1])
    with pytest.raises(ArgumentError, match="step must be an integer"):
        trajectory["last"]


def test_incomplete_and_temporary_folders_are_left_out_and_reported(tmp_path):
    for step in (0, 100, 200, 400):
        write_linear(tmp_path, step)
    (tmp_path / "checkpoint-300").mkdir()
    (tmp_path / "checkpoint-300" / "config.json").write_text("{}")
    (tmp_path / ".checkpoint-500.0.01234567.tmp").mkdir()
    whole = (tmp_path / "checkpoint-400" / "model.safetensors").read_bytes()
    (tmp_path / "checkpoint-400" / "model.safetensors").write_bytes(whole[:-4])
    trajectory = Trajectory.from_folder(tmp_path, model=nn.Linear(3, 2))
    assert list(trajectory.steps) == [0, 100, 200]
    findings = {(f.kind, f.steps): f for f in trajectory.audit()}
    assert findings.keys() == {
        ("incomplete", (300,)),
        ("incomplete", (400,)),
        ("temporary", ()),
    }
    assert ".checkpoint-500.0.01234567.tmp" in str(findings["temporary", ()])


def test_an_index_with_a_missing_shard_is_incomplete(tmp_path):
    gpt2().save_pretrained(tmp_path / "checkpoint-1", max_shard_size="20KB")
    gpt2().save_pretrained(tmp_path / "checkpoint-2")
    next((tmp_path / "checkpoint-1").glob("model-00002-*")).unlink()
    trajectory = Trajectory.from_folder(tmp_path)
    assert list(trajectory.steps) == [2]
    assert "model-00002" in str(trajectory.audit()[0])


def test_an_index_that_points_outside_its_folder_is_refused(tmp_path):
    write_linear(tmp_path, 0)
    path = tmp_path / "checkpoint-1"
    path.mkdir()
    index = {"weight_map": {"weight": "../checkpoint-0/model.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "outside its folder" in str(Trajectory.from_folder(tmp_path).audit())


def test_a_folder_that_is_one_model_is_one_checkpoint(tmp_path):
    gpt2().save_pretrained(tmp_path)
    assert Trajectory.from_folder(tmp_path).steps.tolist() == [0]
    assert same(load_model(tmp_path), gpt2())


def test_a_folder_without_checkpoints_says_what_was_looked_for(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"checkpoint-500, step500.*model\.safetensors"
    ):
        Trajectory.from_folder(tmp_path)
    with pytest.raises(ArgumentError, match="is neither a folder nor a file"):
        Trajectory.from_folder(tmp_path / "nowhere")
    (tmp_path / "checkpoint-7").mkdir()
    with pytest.raises(CheckpointError, match="none is whole; step 7"):
        Trajectory.from_folder(tmp_path)


def test_two_folders_for_one_step_are_refused(tmp_path):
    write_linear(tmp_path, 5)
    write_linear(tmp_path, 5, "step{}")
    with pytest.raises(
        CheckpointError, match=r"2 ways: .*--only 'checkpoint-\*/'.*step\*/"
    ):
        Trajectory.from_folder(tmp_path)


def test_own_modules_need_a_model_and_it_must_fit(tmp_path):
    write_linear(tmp_path, 5)
    with pytest.raises(
        CheckpointError, match=r"no config\.json.*--model model\.py:build"
    ):
        Trajectory.from_folder(tmp_path)[5].model()
    with pytest.raises(ArgumentError, match="model must be an nn"):
        Trajectory.from_folder(tmp_path, model="GPT2")
    with pytest.raises(
        ArgumentError, match=r"model\(\) must return an nn.Module; got dict"
    ):
        Trajectory.from_folder(tmp_path, model=dict)[5].model()
    with pytest.raises(CheckpointError, match="also holds bias"):
        Trajectory.from_folder(tmp_path, model=nn.Linear(3, 2, bias=False))[5].model()
    with pytest.raises(
        CheckpointError, match=r"lacks 0\.weight, 0\.bias and also holds bias, weight"
    ):
        Trajectory.from_folder(tmp_path, model=nn.Sequential(nn.Linear(3, 2)))[
            5
        ].model()


@pytest.fixture
def declared(tmp_path, monkeypatch):
    """Return a function that installs a package that declares a model class."""

    def install(value):
        place = tmp_path / "installed"
        (place / "theirs-1.dist-info").mkdir(parents=True, exist_ok=True)
        (place / "theirs_of_models.py").write_text(
            "import transformers\nclass TheirModel(transformers.GPT2LMHeadModel): ...\n"
        )
        (place / "theirs-1.dist-info" / "METADATA").write_text(
            "Name: theirs\nVersion: 1\n"
        )
        (place / "theirs-1.dist-info" / "entry_points.txt").write_text(
            f"[ontogeny.models]\nTheirModel = {value}\n"
        )
        monkeypatch.syspath_prepend(place)

    return install


def test_a_class_that_an_installed_package_declares_is_used(tmp_path, declared):
    gpt2().save_pretrained(tmp_path / "run" / "checkpoint-1")
    path = tmp_path / "run" / "checkpoint-1" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "architectures": ["TheirModel"]}))
    message = (
        r"no model class 'TheirModel', no installed package declares it \(entry points "
        r"ontogeny.models\).*; install the package that has the class, or say how it is built"
    )
    with pytest.raises(CheckpointError, match=message):
        Trajectory.from_folder(tmp_path / "run")[1].model()
    declared("theirs_of_models:Missing")
    with pytest.raises(
        CheckpointError, match="theirs_of_models:Missing cannot be loaded"
    ):
        Trajectory.from_folder(tmp_path / "run")[1].model()
    declared("theirs_of_models:TheirModel")
    model = Trajectory.from_folder(tmp_path / "run")[1].model()
    assert type(model).__module__ == "theirs_of_models"


def test_code_and_classes_from_outside_are_never_used(tmp_path):
    gpt2().save_pretrained(tmp_path / "checkpoint-1")
    path = tmp_path / "checkpoint-1" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "architectures": ["TheirModel"]}))
    with pytest.raises(CheckpointError, match="no model class 'TheirModel'"):
        Trajectory.from_folder(tmp_path)[1].model()
    path.write_text(
        json.dumps({**config, "auto_map": {"AutoModelForCausalLM": "theirs.Model"}})
    )
    (tmp_path / "checkpoint-1" / "theirs.py").write_text("raise SystemExit('it ran')")
    assert (
        type(Trajectory.from_folder(tmp_path)[1].model())
        is transformers.GPT2LMHeadModel
    )


def test_reader_gives_shapes_dtypes_and_rows_without_the_rest(tmp_path):
    write_linear(tmp_path, 3)
    weight = linear(3).weight.detach()
    with Trajectory.from_folder(tmp_path)[3].open() as tensors:
        assert tensors.names() == ["bias", "weight"]
        assert (
            tensors.shape("weight") == (2, 3)
            and tensors.dtype("weight") == torch.float32
        )
        assert torch.equal(tensors.get("weight"), weight)
        assert torch.equal(tensors.rows("weight", 1, 2), weight[1:2])
        with pytest.raises(CheckpointError, match="no tensor 'wieght'"):
            tensors.get("wieght")


def test_digests_follow_content_not_files(tmp_path):
    path = write_linear(tmp_path, 1)
    trajectory = Trajectory.from_folder(tmp_path)
    before, fingerprint = trajectory[1].digests(), trajectory.fingerprint
    state = linear(1).state_dict()
    save_file(
        {"bias": state["bias"], "weight": state["weight"]},
        path / "model.safetensors",
        {"a": "b"},
    )
    assert trajectory[1].digests() == before and trajectory.fingerprint == fingerprint
    state["bias"][0] = torch.nextafter(state["bias"][0], torch.tensor(torch.inf))
    save_file(state, path / "model.safetensors")
    assert trajectory[1].digests()["weight"] == before["weight"]
    assert trajectory[1].digests()["bias"] != before["bias"]
    assert trajectory.fingerprint != fingerprint


def test_digest_tells_apart_dtype_and_shape_of_the_same_bytes():
    from ontogeny.trajectory.weights.digests import digest

    zeros = [
        torch.zeros(4),
        torch.zeros(2, 2),
        torch.zeros(4, dtype=torch.int32),
        torch.zeros(0),
    ]
    zeros.append(torch.zeros(8, dtype=torch.bfloat16))
    assert len({digest(z) for z in zeros}) == len(zeros)
    grid = torch.arange(6.0).reshape(2, 3)
    assert digest(grid.T) == digest(grid.T.contiguous()) and digest(torch.tensor(1.0))


def test_model_stays_as_it_was_when_its_file_changes(tmp_path):
    gpt2(1).save_pretrained(tmp_path / "checkpoint-1")
    model = Trajectory.from_folder(tmp_path)[1].model()
    file = tmp_path / "checkpoint-1" / "model.safetensors"
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(b"\xff" * (file.stat().st_size // 2))
    assert same(model, gpt2(1))


def test_a_command_takes_the_model_of_the_last_step(tmp_path):
    for step in (0, 9, 10):
        Recorder(tmp_path / "run", every=1)(step, linear(step))
    code = tmp_path / "model.py"
    code.write_text("import torch\n\ndef build():\n    return torch.nn.Linear(3, 2)\n")
    assert same(open_model(str(tmp_path / "run"), f"{code}:build"), linear(10))
    with pytest.raises(ArgumentError, match="nowhere"):
        open_model(str(tmp_path / "nowhere"))
