"""A streamed model runs on another device with one part's weights there at a time."""

import pytest
import torch

import ontogeny as og
from helpers.fake_device import NAME, DeviceTensor, FakeDevice
from helpers.tiny_models import bert, eurobert, gpt2, gpt_neox
from ontogeny.capture.forward import device_of, takes

IDS = torch.arange(4, 12)[None]


def _there(module):
    """Bytes of each parameter of `module` that lies on the device."""
    own = {id(p): p for p in module.parameters() if isinstance(p, DeviceTensor)}
    return [p.numel() * p.element_size() for p in own.values()]


def _count(part):
    return len(list(part.parameters(recurse=False)))


@pytest.mark.parametrize("build", [gpt2, gpt_neox, bert, eurobert])
def test_only_the_part_that_runs_has_its_weights_on_the_device(tmp_path, build):
    torch.manual_seed(0)
    og.Recorder(tmp_path, every=1)(0, build())
    trajectory = og.Trajectory.from_folder(tmp_path)
    with torch.no_grad():
        loaded = trajectory.skeleton().load(0)
        options = {"use_cache": False} if takes(loaded, "use_cache") else {}
        expected = loaded(
            input_ids=IDS, attention_mask=torch.ones_like(IDS), **options
        ).logits
    held = []
    with FakeDevice() as device, torch.no_grad():
        model = trajectory.skeleton(device=NAME).streamed(trajectory[0])
        assert device_of(model).type == NAME and not _there(model)
        parts = [part for part in model.modules() if _count(part)]
        for part in parts:
            part.register_forward_pre_hook(
                lambda part, _: held.append((part, _there(model)))
            )
        given = {
            "input_ids": IDS.to(NAME),
            "attention_mask": torch.ones_like(IDS).to(NAME),
        }
        device.waits.clear()
        logits = model(**given, **options).logits
        copies = {line: n for line, n in device.waits.items() if "streaming.py" in line}
    torch.testing.assert_close(logits.host, expected, rtol=1e-4, atol=1e-5)
    assert not _there(model)
    for part, there in held:  # its own, and those of parts that call it
        callers = [p for p in parts if part in p.modules()]
        own, most = _count(part), sum(map(_count, callers))
        assert own <= len(there) <= most
    # One copy for each weight that a part has, and no other wait in the library.
    assert sum(copies.values()) == sum(_count(part) for part, _ in held)
    assert [line for line in device.waits if not line.startswith("outside")] == list(
        copies
    )


def test_what_is_used_without_its_part_is_refused_and_never_another_number(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3, bias=False)

        def forward(self, x):
            return x @ self.inner.weight

    og.Recorder(tmp_path, every=1)(0, Tied())
    trajectory = og.Trajectory.from_folder(tmp_path, model=Tied)
    x = torch.ones(1, 3)
    with FakeDevice():
        model = trajectory.skeleton(device=NAME).streamed(trajectory[0])
        with pytest.raises(RuntimeError, match="tensors of the host and of the device"):
            model(x.to(NAME))
    plain = trajectory.skeleton().streamed(trajectory[0])
    assert torch.equal(plain(x), trajectory.skeleton().load(0)(x))
