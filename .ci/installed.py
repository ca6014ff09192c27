"""Use an installed ontogeny: ``python installed.py [all]``, with "all" where its extras are.

Run outside the checkout, by the interpreter of the environment that the wheel was installed into.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

import ontogeny as og

EXTRAS = {
    "dask",
    "distributed",
    "dask_jobqueue",
    "datasets",
    "matplotlib",
    "peft",
    "skdim",
}
DEVELOPMENT = {"captum", "hypothesis", "mypy", "playwright", "pytest"}


class Tiny(torch.nn.Module):
    """The smallest model that a study can read."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = torch.nn.Embedding(20, 8)
        self.mlp = torch.nn.Linear(8, 8)

    def forward(self, input_ids, attention_mask=None):
        return self.mlp(self.embed(input_ids))


def check_package(extras):
    folder = Path(og.__file__).parent
    assert folder.is_relative_to(sys.prefix), f"{folder} is not the installed package"
    assert (folder / "py.typed").is_file()
    assert importlib.metadata.version("ontogeny") == og.__version__
    found = {name for name in EXTRAS | DEVELOPMENT if importlib.util.find_spec(name)}
    assert found == (EXTRAS if extras else set()), (
        f"this environment has {sorted(found)}"
    )
    for module in pkgutil.walk_packages(og.__path__, "ontogeny."):
        if extras or not module.name.startswith("ontogeny.report.paper"):
            importlib.import_module(module.name)


def check_study(executor=None):
    trajectory = og.Trajectory.from_models({step: Tiny(step) for step in (0, 1, 2)})
    inputs = og.Inputs.from_tokens(np.arange(1, 17).reshape(4, 4))
    observables = [
        og.observables.ActivationDecay("mlp"),
        og.observables.Concepts("svd", layers="mlp", n_concepts=3),
    ]
    study = og.Study(trajectory, inputs, observables, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        result = study.run(folder, executor)
        assert result["activation-decay"].sizes["step"] == 3
        assert len(result.problems()) == 0, result.problems()
        page = og.open_study(folder).report(Path(folder) / "report.html")
        assert Path(page).stat().st_size > 0
        check_figures(og.open_study(folder).tree, Path(folder) / "figures")


def check_figures(tree, folder):
    if importlib.util.find_spec("matplotlib"):
        assert og.report.write_figures(tree, folder)
        return
    message = ""
    try:
        og.report.write_figures(tree, folder)
    except og.errors.MissingExtraError as error:
        message = str(error)
    assert "ontogeny[figures]" in message


def check_adapters(extras):
    """Order and audit a run of adapters; open it, or be told how to install what opens it."""
    sizes = {
        "vocab_size": 20,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
    }
    weight = "model.layers.0.self_attn.q_proj.weight"
    with tempfile.TemporaryDirectory() as folder:
        base, adapter = Path(folder, "base"), Path(folder, "run", "checkpoint-5")
        LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2)).save_pretrained(
            base
        )
        adapter.mkdir(parents=True)
        parts = {part: weight.replace("weight", f"lora_{part}.weight") for part in "AB"}
        tensors = {
            f"base_model.model.{name}": torch.ones(8, 8) for name in parts.values()
        }
        save_file(tensors, adapter / "adapter_model.safetensors")
        settings = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"]}
        settings["base_model_name_or_path"] = str(base)
        (adapter / "adapter_config.json").write_text(json.dumps(settings))
        run = og.Trajectory.from_folder(adapter.parent)
        assert list(run.steps) == [0, 5]
        assert not list(run.audit())
        message = ""
        try:
            state, before = run[5].model().state_dict(), run[0].model().state_dict()
        except og.errors.MissingExtraError as error:
            message = str(error)
    assert ("ontogeny[adapters]" in message) is not extras
    if extras:
        moved = state[weight] - before[weight]
        assert torch.allclose(moved, torch.full((8, 8), 8.0), atol=1e-5)


def check_extras():
    import skdim
    from datasets import Dataset
    from distributed import Client

    assert Dataset.from_dict({"text": ["one", "two"]})[1] == {"text": "two"}
    points = np.random.default_rng(0).normal(size=(300, 2))
    assert 1.5 < skdim.id.TwoNN().fit(points).dimension_ < 2.5
    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        check_study(client.get_executor())


if __name__ == "__main__":
    extras = sys.argv[1:] == ["all"]
    check_package(extras)
    check_study()
    check_adapters(extras)
    if extras:
        check_extras()
    sys.stdout.write(
        f"ontogeny {og.__version__} {'with' if extras else 'without'} extras: works\n"
    )
