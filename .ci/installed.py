"""Use an installed ontogeny: ``python installed.py [all]``, with "all" where its extras are.

Run outside the checkout, by the interpreter of the environment that the wheel was installed into.
"""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import ontogeny as og

EXTRAS = {"dask", "distributed", "dask_jobqueue", "datasets", "matplotlib", "skdim"}
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
    assert found == (EXTRAS if extras else set()), f"this environment has {sorted(found)}"
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
    if extras:
        check_extras()
    sys.stdout.write(f"ontogeny {og.__version__} {'with' if extras else 'without'} extras: works\n")
