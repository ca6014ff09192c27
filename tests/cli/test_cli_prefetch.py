"""What a login node fetches is all that a node without a network needs."""

import shutil
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
import torch
import xarray as xr

from helpers.hub_models import REPO, model_files, neox, tokenizer_files
from helpers.hub_server import StandIn
from ontogeny import Trajectory
from ontogeny.cli import main
from ontogeny.errors import CheckpointError
from ontogeny.trajectory import download
from ontogeny.trajectory.downloading import missing_bytes

STEPS = (0, 1, 2, 16, 1000)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    files = {}
    for i, step in enumerate(STEPS):
        model = neox(0)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(
                    0.02
                    * i
                    * torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
                )
        made = model_files(model, tmp_path_factory.mktemp(f"step{step}"))
        files[f"step{step}"] = {**made, **tokenizer_files()}
    files["step2"] = dict(files["step1"])  # the same weights twice
    with StandIn({REPO: files}) as server:
        yield server


@pytest.fixture
def online(hub, monkeypatch):
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(
        huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)


def _study(folder, cache):
    path = folder / "study.toml"
    path.write_text(
        f'[trajectory]\nhub = "{REPO}"\ncache_dir = "{cache}"\nselect = {{ stop = 16 }}\n'
        '[inputs]\ntexts = ["a b a", "b a", "a a b b"]\n[options]\ndevice = "cpu"\n'
        '[[observables]]\nkind = "loss"\n[[observables]]\nkind = "weight-rank"\nn_draws = 4\n'
    )
    return path


def _call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code or 0


@pytest.mark.slow
def test_prefetched_on_one_machine_a_study_runs_on_another_without_a_network(
    hub, online, tmp_path, monkeypatch, capsys
):
    study = _study(tmp_path, tmp_path / "cache")
    assert _call("prefetch", study) == 0
    out, err = capsys.readouterr()
    assert "4 revisions" in out and "[4/4] step16" in err and "\r" not in err
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    calls = hub.calls.total()
    assert _call("run", study, "--output", tmp_path / "offline", "--strict") == 0
    assert hub.calls.total() == calls
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    (tmp_path / "other").mkdir()
    study = _study(tmp_path / "other", tmp_path / "other-cache")
    assert _call("run", study, "--output", tmp_path / "online", "--strict") == 0
    found, expected = (
        xr.open_datatree(tmp_path / name / "result.zarr", engine="zarr")
        for name in ("offline", "online")
    )
    assert (
        found.attrs["findings"] == expected.attrs["findings"]
        and len(expected.children) == 2
    )
    for name, node in expected.children.items():
        xr.testing.assert_identical(found[name].to_dataset(), node.to_dataset())


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("device =", "devise =", "Did you mean 'device'"),
        ("n_draws = 4", "n_draw = 4", "Did you mean 'n_draws'"),
        ('"loss"', '"los"', "Did you mean 'loss'"),
    ],
)
def test_nothing_is_fetched_for_a_study_file_that_could_not_run(
    hub, online, tmp_path, capsys, right, wrong, said
):
    study = _study(tmp_path, tmp_path / "cache")
    study.write_text(study.read_text().replace(right, wrong))
    calls = hub.calls.total()
    assert _call("prefetch", study) == 1
    assert said in capsys.readouterr().err
    assert hub.calls.total() == calls and not (tmp_path / "cache").exists()


def test_a_stopped_prefetch_goes_on_and_fetches_nothing_twice(hub, tmp_path):
    def opened():
        return Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)

    size = {step: opened()[step].source.size() for step in STEPS}
    files = download(opened())
    assert [next(files), next(files)] == [0, 1]
    files.close()
    left = missing_bytes(opened())
    beside = sum(
        opened()[step].source.listing()[name].size
        for step in (16, 1000)
        for name in ("config.json", "generation_config.json")
    )
    assert size[16] + size[1000] <= left <= size[16] + size[1000] + beside
    fetched = hub.calls["get"]
    assert list(download(opened())) == list(STEPS)
    assert hub.calls["get"] > fetched
    fetched = hub.calls["get"]
    assert list(download(opened())) == list(STEPS) and missing_bytes(opened()) == 0
    assert hub.calls["get"] == fetched


def test_what_the_disk_cannot_hold_is_not_begun(hub, tmp_path, monkeypatch):
    trajectory = Trajectory.from_hub(
        REPO, cache_dir=tmp_path / "cache", endpoint=hub.url
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(CheckpointError, match=r"has space for 1 kB"):
        next(download(trajectory))
    assert not list(tmp_path.glob("cache/models--*/snapshots/*/*"))
