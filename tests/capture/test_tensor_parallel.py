"""Two processes share a model: what each of them sees in part is refused, all else is whole."""

import os
import socket

import numpy as np
import pytest
import torch
from torch import distributed
from torch import multiprocessing as mp

import ontogeny as og
from helpers import family_models as families
from ontogeny import needs
from ontogeny.capture import read
from ontogeny.errors import ArgumentError

PARTS = ("up_proj", "gate_proj")


def _parallel(model):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    plan = {}
    for block in range(families.LAYERS):
        place = f"model.layers.{block}.mlp"
        plan |= {f"{place}.{name}": ColwiseParallel() for name in PARTS}
        plan[f"{place}.down_proj"] = RowwiseParallel()
    return _shared(model, plan)


def _shared(model, plan):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    return parallelize_module(model, init_device_mesh("cpu", (2,)), plan)


def _value(model, need):
    return read(model, [need], {"text": families.inputs_of()})[need]


def _refused(model, need):
    with pytest.raises(ArgumentError, match="tp_plan"):
        _value(model, need)


def _check_embeddings(plain):
    """Rows of an embedding may be shared, as its output is whole; its features may not."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    path = "model.embed_tokens"
    need = needs.Activations(path)
    expected = _value(plain, need)[path]
    whole = Replicate()
    for way in (
        RowwiseParallel(input_layouts=whole),
        ColwiseParallel(output_layouts=whole),
    ):
        model = _shared(families.build("llama"), {path: way})
        torch.testing.assert_close(_value(model, need)[path], expected)
    _refused(_shared(families.build("llama"), {path: ColwiseParallel()}), need)


def _of_one_process(rank, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    try:
        plain, model = families.build("llama"), _parallel(families.build("llama"))
        for whole in ("mlp", "**.down_proj", "**.down_proj#in", "layers[1]"):
            need = needs.Activations(whole)
            expected = _value(plain, need)
            for path, values in _value(model, need).items():
                torch.testing.assert_close(values, expected[path], atol=1e-5, rtol=1e-4)
        _check_embeddings(plain)
        need = needs.Losses()
        one, two = (_value(m, need).loss.values for m in (plain, model))
        np.testing.assert_allclose(one, two, rtol=1e-5)
        for part in ("**.up_proj", "**.act_fn"):
            _refused(model, needs.Activations(part))
        with pytest.raises(ArgumentError, match="full_tensor"):
            og.Trajectory.from_models({0: model})
        advised = {
            name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            for name, tensor in model.state_dict().items()
        }
        there = og.Trajectory.from_models({0: advised}, model=plain)[0].model()
        for name, tensor in plain.state_dict().items():
            assert torch.equal(there.state_dict()[name], tensor)
    finally:
        distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.skipif(not distributed.is_available(), reason="no torch.distributed")
def test_two_processes_never_pass_a_part_as_the_whole():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Each process asserts that every whole is whole; what fails in one is raised here.
    started = mp.spawn(_of_one_process, args=(port,), nprocs=2, join=False)
    while not started.join():
        pass
    assert [process.exitcode for process in started.processes] == [0, 0]


def test_a_model_of_one_process_is_never_in_parts():
    model = families.build("llama")
    values = _value(model, needs.Activations("**.act_fn"))
    assert list(values) == [
        f"model.layers.{block}.mlp.act_fn" for block in range(families.LAYERS)
    ]
    inner = model.config.intermediate_size
    assert all(value.shape[1] == inner for value in values.values())
