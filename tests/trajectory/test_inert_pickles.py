"""Pickles with anything beside the weights are read, and nothing that they name ever runs."""

import argparse
import collections
import dataclasses
import io
import os
import pickle
import sys
import types
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.order.inside import held_step
from ontogeny.trajectory.weights import inert
from ontogeny.trajectory.weights.pickled import unpickle

FORMS = pytest.mark.parametrize("is_zip", [True, False], ids=["zip", "legacy"])
WEIGHTS = {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.ones(2)}


@dataclasses.dataclass
class Settings:
    width: int = 3


class Attributes(dict):
    __getattr__ = dict.__getitem__


class Payload:
    """What a pickle calls when it is loaded, with these arguments."""

    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def save(value, path, is_zip):
    torch.save(value, path, _use_new_zipfile_serialization=is_zip)
    return path


BESIDE = {
    "numpy scalar": np.float64(1.5),
    "numpy step": np.int64(7),
    "numpy array": np.arange(4),
    "numpy dtype": np.dtype("f4"),
    "dataclass": Settings(),
    "namespace": argparse.Namespace(lr=1e-3, path="x"),
    "dict with attributes": Attributes(a=1),
    "default": collections.defaultdict(list, a=[1]),
    "counter": collections.Counter("aab"),
    "class": Settings,
    "function": os.getcwd,
    "dtype": torch.bfloat16,
    "device": torch.device("cpu"),
    "set": {1, 2},
    "objects in a set": {Payload(len, "abc")},
    "parameter": nn.Parameter(torch.ones(2)),
}


@FORMS
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_whatever_stands_beside_the_weights_the_tensors_are_the_same(
    tmp_path, is_zip, beside
):
    path = save(
        {"model": WEIGHTS, "beside": beside, "step": 40}, tmp_path / "a.pt", is_zip
    )
    tensors = unpickle(path)
    assert tensors.keys() == WEIGHTS.keys() and held_step(path).value == 40
    assert all(torch.equal(tensors[name], value) for name, value in WEIGHTS.items())


def test_omegaconf_is_not_even_imported(tmp_path, monkeypatch):
    module = types.ModuleType("omegaconf_of_the_lab")
    kind = type("DictConfig", (), {"__module__": module.__name__})
    module.DictConfig = kind
    monkeypatch.setitem(sys.modules, module.__name__, module)
    path = save(
        {"state_dict": WEIGHTS, "hyper_parameters": kind()}, tmp_path / "a.ckpt", True
    )
    monkeypatch.delitem(sys.modules, module.__name__)
    assert unpickle(path).keys() == WEIGHTS.keys()
    assert module.__name__ not in sys.modules


@FORMS
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, ">i4", "<i8"])
def test_a_step_that_is_a_number_of_numpy_is_that_step(tmp_path, is_zip, kind):
    step = (
        np.dtype(kind).type(200)
        if not isinstance(kind, str)
        else np.array(200, kind)[()]
    )
    path = save({"model": WEIGHTS, "step": step}, tmp_path / "a.pt", is_zip)
    assert held_step(path).value == 200


@FORMS
@pytest.mark.parametrize("key", [None, "model", "net"])
def test_a_whole_module_is_read_by_the_names_of_its_state_dict(tmp_path, is_zip, key):
    module = nn.Sequential(
        nn.Embedding(5, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 2))
    )
    module.register_buffer("mask", torch.ones(2), persistent=False)
    path = save(module if key is None else {key: module}, tmp_path / "a.pt", is_zip)
    tensors, state = unpickle(path), module.state_dict()
    assert tensors.keys() == state.keys()
    assert all(torch.equal(tensors[name], value) for name, value in state.items())


def test_state_dicts_in_subclasses_of_dict_and_tied_tensors_are_read(tmp_path):
    tied = Attributes(a=WEIGHTS["bias"], b=WEIGHTS["bias"])
    tensors = unpickle(
        save({"model": tied, "args": Settings()}, tmp_path / "a.pt", True)
    )
    assert tensors["a"].data_ptr() == tensors["b"].data_ptr()


def test_a_run_with_dataclasses_in_its_files_opens_as_a_run_without(tmp_path):
    for step in (10, 20):
        state = nn.Linear(3, 2).state_dict()
        torch.save({"model": state, "config": Settings()}, tmp_path / f"ckpt_{step}.pt")
    run = Trajectory.from_folder(tmp_path, nn.Linear(3, 2))
    assert list(run.steps) == [10, 20] and not list(run.audit())
    assert torch.equal(run[20].model().weight.detach(), state["weight"])


CALLS = {
    "mkdir": lambda target: Payload(os.mkdir, target),
    "system": lambda target: Payload(os.system, f"mkdir {target}"),
    "exec": lambda target: Payload(exec, f"import os; os.mkdir({target!r})"),
    "eval": lambda target: Payload(eval, f"__import__('os').mkdir({target!r})"),
    "getattr": lambda target: Payload(getattr, Payload(__import__, "os"), "mkdir"),
    "open": lambda target: Payload(open, target, "w"),
    "load": lambda target: Payload(
        pickle.loads, pickle.dumps(Payload(os.mkdir, target))
    ),
    "storage": lambda target: Payload(
        torch.storage._load_from_bytes, pickle.dumps(Payload(os.mkdir, target))
    ),
    "torch.load": lambda target: Payload(torch.load, target),
    "by torch": lambda target: Payload(
        torch._tensor._rebuild_from_type_v2, os.mkdir, dict, (target,), {}
    ),
}


@FORMS
@pytest.mark.parametrize("place", ["beside", "as a tensor", "alone", "as a key"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_call_of_a_hostile_pickle_happens(tmp_path, call, place, is_zip):
    target = tmp_path / "it-ran"
    payload = call(str(target))
    value = {
        "beside": {"model": WEIGHTS, "x": payload, "step": 3},
        "as a tensor": {"model": {**WEIGHTS, "x": payload}},
        "alone": payload,
        "as a key": {"model": WEIGHTS, payload: 1},
    }[place]
    path = save(value, tmp_path / "a.pt", is_zip)
    if place == "alone":
        with pytest.raises(CheckpointError):
            unpickle(path)
    else:
        assert unpickle(path).keys() == WEIGHTS.keys()
        assert getattr(held_step(path), "value", None) == (
            3 if place == "beside" else None
        )
    assert not target.exists()


def _zip_with(path, program):
    """A file of torch's zip form whose pickle is `program`."""
    torch.save({}, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, program if name.endswith("data.pkl") else content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "torch\nTensor",
        "torch.storage\nUntypedStorage",
        "torch._utils\n_rebuild_tensor_v2",
    ],
)
@pytest.mark.parametrize(
    "state", [b"}U\x06hacked\x4b\x01s", b"N}U\x06hacked\x4b\x01s\x86"]
)
def test_no_class_or_function_of_torch_is_changed(tmp_path, name, state):
    # BUILD on a class: {"hacked": 1} as its state, or (None, {"hacked": 1}), which sets attributes.
    program = b"\x80\x02c" + name.encode() + b"\n" + state + b"b."
    with pytest.raises(CheckpointError):
        unpickle(_zip_with(tmp_path / "a.pt", program))
    things = (
        torch.Tensor,
        torch.UntypedStorage,
        torch._utils._rebuild_tensor_v2,
        inert.Inert,
    )
    assert not any(hasattr(thing, "hacked") for thing in things)
    assert not any(hasattr(call, "hacked") for call in inert._KNOWN.values())


def test_a_program_of_torchscript_is_refused(tmp_path):
    scripted = io.BytesIO()
    with zipfile.ZipFile(scripted, "w") as archive:
        for name in (
            "a/data.pkl",
            "a/constants.pkl",
            "a/code/__torch__.py",
            "a/version",
        ):
            archive.writestr(name, "")
    (tmp_path / "a.pt").write_bytes(scripted.getvalue())
    with pytest.raises(CheckpointError, match="TorchScript"):
        unpickle(tmp_path / "a.pt")


def test_names_in_messages_hold_nothing_that_a_terminal_obeys(tmp_path):
    hostile = "\x1b[31mred\x1b]0;title\x07\n"
    keys = {f"{hostile}{i}": i for i in range(9)}
    with pytest.raises(CheckpointError, match=r"5 of 9") as caught:
        unpickle(save(keys, tmp_path / "a.pt", True))
    assert str(caught.value).isprintable() and "\\x1b[31mred" in str(caught.value)
    path = _zip_with(tmp_path / "b.pt", b"\x80\x02cevil\x1b[31m\nName\n)R.")
    with pytest.raises(CheckpointError, match=r"evil\\x1b\[31m\.Name") as caught:
        unpickle(path)
    assert str(caught.value).isprintable()


def test_an_object_alone_is_named_with_the_lines_that_convert(tmp_path):
    path = save(Settings(), tmp_path / "a.pt", True)
    with pytest.raises(CheckpointError, match=r"the class .*\.Settings.*torch\.save"):
        unpickle(path)
