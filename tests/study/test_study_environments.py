"""Where cells were computed is kept with them, and a study of several environments says so."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import ActivationNorm, Counting, developing, tiny_inputs
from ontogeny.errors import StoreError
from ontogeny.problems.table import problems_of
from ontogeny.store import read_cell
from ontogeny.study import study as study_module
from ontogeny.study.cells.environment import RECOMPUTE, differences, environment
from ontogeny.study.folder import code
from ontogeny.study.folder.layout import cell_path
from ontogeny.study.running import run as run_module

MODELS = developing((0, 1, 2))
OLDER = environment() | {"torch": "2.0.1", "instructions": "another"}
CHANGED = f"torch: {environment()['torch']} -> 2.0.1"


def _run(folder, stop, *, older, monkeypatch):
    """Study the first steps, as if in an older environment or in this one."""
    for module in (run_module, study_module):
        monkeypatch.setattr(
            module, "environment", lambda _: OLDER if older else environment()
        )
    models = {step: model for step, model in MODELS.items() if step <= stop}
    trajectory, progress = og.Trajectory.from_models(models), Counting()
    study = og.Study(
        trajectory,
        tiny_inputs(),
        [ActivationNorm()],
        device="cpu",
        noise=0,
        reference="first",
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = study.run(folder, progress=progress)
    return result, progress.notes, [str(w.message) for w in caught], study


def test_a_cell_says_where_it_was_computed(tmp_path, monkeypatch):
    _run(tmp_path, 1, older=False, monkeypatch=monkeypatch)
    kept = read_cell(cell_path(tmp_path, "activation-norm", 0)).provenance[
        "environment"
    ]
    assert kept == environment()
    # Of PyTorch the name of the build ("+cu130") can be missing in what is installed.
    assert kept["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert kept["numpy"] == np.__version__
    assert kept["instructions"].endswith(torch.backends.cpu.get_cpu_capability())
    assert kept["ontogeny"] == og.__version__ and kept["BLAS"]


def test_a_resume_elsewhere_is_said_and_stands_in_result_and_page(
    tmp_path, monkeypatch
):
    _, notes, said, _ = _run(tmp_path / "s", 1, older=True, monkeypatch=monkeypatch)
    assert notes == said == []
    result, notes, said, study = _run(
        tmp_path / "s", 2, older=False, monkeypatch=monkeypatch
    )
    (note,) = notes
    assert note.startswith(
        "2 of 2 cells (activation-norm) were computed in another environment: "
    )
    assert CHANGED in note and "instructions: " in note
    (line,) = result.problems().notes
    assert line.startswith(
        "1 of 3 cells (activation-norm) was computed in another environment: "
    )
    assert f"torch: 2.0.1 -> {environment()['torch']}" in line
    assert said == [f"{line}. {RECOMPUTE}"]
    assert line in repr(result.problems()) and not result.problems()
    assert "in another environment" in result.problems()._repr_html_()
    assert json.loads(result.attrs["provenance"])["environments"] == [line]
    page = og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    assert "in another environment: " in page and "2.0.1" in page
    assert any(CHANGED in each for each in study.plan(tmp_path / "s").notes)


def test_it_is_no_reason_to_compute_again_and_one_environment_says_nothing(
    tmp_path, monkeypatch
):
    _run(tmp_path, 2, older=True, monkeypatch=monkeypatch)
    result, notes, said, study = _run(tmp_path, 2, older=False, monkeypatch=monkeypatch)
    assert len(notes) == 1 and said == [] and result.problems().notes == ()
    assert study.plan(tmp_path).to_do == 0


@pytest.mark.parametrize("provenance", ["[1]", "no JSON", None])
def test_what_a_stranger_writes_there_does_no_harm(provenance):
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"provenance": provenance})})
    assert problems_of(tree).notes == ()


def test_a_gpu_and_how_it_multiplies_are_part_of_it(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "get_device_name", lambda device: f"GPU of {device}"
    )
    usual = environment("cuda:1")
    assert usual["GPU"] == "GPU of cuda:1" and usual["matrix products"] == "float32"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        (line,) = differences(
            [("loss", usual), ("loss", usual), ("loss", environment("cuda:1"))]
        )
    finally:
        torch.set_float32_matmul_precision(before)
    assert (
        line.endswith("matrix products: float32 -> tf32")
        and "1 of 3 cells (loss) was" in line
    )


def test_cells_of_earlier_versions_say_that_it_was_not_recorded():
    (line,) = differences([("loss", {})], environment())
    assert line.endswith("in another environment: it was not recorded")


def _installed(monkeypatch, version):
    """Let another version of PyTorch be installed, as far as fingerprints know."""
    installed = code.version
    monkeypatch.setattr(
        code, "version", lambda n: version if n == "torch" else installed(n)
    )
    monkeypatch.setattr(code, "_made", {})
    code._version.cache_clear()


def test_a_minor_version_computes_again_and_a_patch_does_not(tmp_path, monkeypatch):
    *_, study = _run(tmp_path, 2, older=False, monkeypatch=monkeypatch)
    minor = ".".join(torch.__version__.split(".")[:2])
    try:
        _installed(monkeypatch, f"{minor}.999")
        assert study.plan(tmp_path).to_do == 0
        _installed(monkeypatch, "99.9.0")
        plan = study.plan(tmp_path)
    finally:
        monkeypatch.undo()
        code._version.cache_clear()
    assert (
        plan.to_do == 3
        and f"libraries.torch: {minor} -> 99.9 (3 cells)" in plan.changes()
    )


def test_a_worker_with_other_code_computes_nothing_and_says_so(tmp_path, monkeypatch):
    *_, study = _run(tmp_path, 1, older=False, monkeypatch=monkeypatch)
    (part,) = study.parts(tmp_path)
    cell = part.graph.cells()[-1]
    planned = replace(part.job, library="digest of other files")
    run_module._check_code(planned, cell)  # which differ in words alone
    changed = replace(
        cell, components=cell.components | {"code": {"capture": "another"}}
    )
    # Files are those of the plan: no digest is made.
    run_module._check_code(part.job, changed)
    with pytest.raises(StoreError, match=r"this worker runs other code .*code\.\w+: "):
        run_module._check_code(planned, changed)
