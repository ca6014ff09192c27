"""Directions that a result keeps, and what SAELens makes of them."""

import json

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.torch import load_file
from typer.testing import CliRunner

import ontogeny as og
from ontogeny.atlas import export_sae
from ontogeny.cli import commands
from ontogeny.cli.options import layer_of
from ontogeny.errors import ArgumentError
from ontogeny.features.directions.brought import brought
from ontogeny.features.directions.dictionary_files import read_dictionary

WIDTH, CONCEPTS, STEPS = 6, 4, (0, 40)


def node(seed=0, layers=("h.0", "h.1")):
    """Kept directions; a layer of another width ends in NaN, and one concept is not there."""
    rng = np.random.default_rng(seed)
    shape = (len(STEPS), len(layers), CONCEPTS, WIDTH)
    dims = ("step", "layer", "concept", "feature")
    arrays = {name: rng.normal(size=shape) for name in ("decoder", "readout")}
    means = {"mean": rng.normal(size=(*shape[:2], WIDTH))}
    means["scale"] = 0.5 + rng.random((*shape[:2], WIDTH))
    for values in (*arrays.values(), *means.values()):
        values[:, 1, ..., -1] = np.nan
    for values in arrays.values():
        values[:, 0, 2] = np.nan
    names = np.array([["comma", "", "", "past"]] * 2, dtype=object)
    data = {
        **{name: (dims, values) for name, values in arrays.items()},
        **{n: (("step", "layer", "feature"), values) for n, values in means.items()},
        "name": (("layer", "concept"), names),
        "raw_agreement": (dims[:3], rng.random(shape[:3])),
        "token_share": (dims[:2], rng.random(shape[:2])),
    }
    labels = {"step": list(STEPS), "layer": list(layers)}
    return xr.Dataset(data, labels)


def result(**options):
    tree = xr.DataTree.from_dict({"learned-concepts": node(**options)})
    tree.attrs["model"] = json.dumps({"name": "small"})
    return tree


def own_codes(A, step=-1, layer=0):
    one = node().isel(step=step, layer=layer)
    raw = ((A - one["mean"].values) / one.scale.values) @ one.readout.values.T
    return raw[:, np.isfinite(raw).all(axis=0)]


def test_a_concept_gives_its_direction_at_a_step():
    one = result().concept(layer="h.0", index=3)
    assert (one.name, one.node, one.layer) == ("past", "learned-concepts", "h.0")
    there = one.direction(0)
    data = node().isel(step=0, layer=0, concept=3)
    assert np.asarray(there) == pytest.approx(data.decoder.values)
    A = np.random.default_rng(1).normal(size=(5, WIDTH))
    assert there.codes(A) == pytest.approx(own_codes(A, 0)[:, 2])
    assert brought(there).vectors[0] == pytest.approx(data.decoder.values)
    narrow = result().concept(layer="h.1", index=0).direction(40)
    assert narrow.decoder.shape == narrow.mean.shape == (WIDTH - 1,)


def test_it_is_a_card_as_any_other_concept():
    one = result().concept(layer="h.0", index=3)
    assert str(one).startswith("past  learned-concepts · h.0 · 3 · step 40")
    assert "kept" not in one.to_dict() and json.dumps(one.to_dict())
    other = xr.DataTree.from_dict({"joint-concepts": node().drop_vars("readout")})
    other["joint-concepts"]["rule"] = other["joint-concepts"]["name"]
    with pytest.raises(ArgumentError, match="keeps no directions; 'learned-concepts'"):
        other.concept(layer="h.0", index=3).direction()


def test_what_is_not_kept_is_refused():
    with pytest.raises(ArgumentError, match=r"of concept 2 of h.0 at step 40"):
        result().concept(layer="h.0", index=2).direction()
    empty = xr.DataTree.from_dict(
        {"loss": xr.Dataset({"x": ("step", [1.0])}, {"step": [0]})}
    )
    with pytest.raises(ArgumentError, match="'learned-concepts' does"):
        export_sae(empty, "out")
    with pytest.raises(ArgumentError, match="layer must be one of"):
        export_sae(result(), "out", layer=layer_of("²"))
    with pytest.raises(ArgumentError, match="threshold"):
        export_sae(result(), "out", threshold=-1)


def test_exported_codes_are_those_of_the_read_out(tmp_path):
    written = export_sae(result(), tmp_path, step=40, threshold=0.5)
    assert {path: place.name for path, place in written.items()} == {
        "h.0": "h.0",
        "h.1": "h.1",
    }
    A = np.random.default_rng(2).normal(size=(50, WIDTH))
    raw = own_codes(A)
    expected = np.concatenate([raw, -raw], axis=1)
    expected = np.where(expected > 0.5, expected, 0)
    encoding = read_dictionary(str(written["h.0"]))
    codes, back = encoding.both(torch.from_numpy(A).float())
    assert codes.numpy() == pytest.approx(expected, abs=1e-5)
    assert encoding.hook == "h.0" and encoding.count == 6
    D = node().isel(step=1, layer=0)
    signed = expected[:, :3] - expected[:, 3:]
    rows = D.decoder.values[[0, 1, 3]]
    assert back.numpy() == pytest.approx(signed @ rows + D["mean"].values, abs=1e-4)
    lines = (written["h.0"] / "labels.csv").read_text().splitlines()
    assert lines[0] == "index,label,correlation"
    assert [line.split(",")[1] for line in lines[1:]] == [
        *("comma", "concept 1", "past"),
        *("less comma", "less concept 1", "less past"),
    ]


def test_sae_lens_loads_it_with_equal_codes(tmp_path):
    sae_lens = pytest.importorskip(
        "sae_lens", reason="sae-lens is in an environment of its own"
    )
    (place,) = export_sae(result(), tmp_path, layer="h.0").values()
    sae = sae_lens.SAE.load_from_disk(str(place))
    A = torch.randn(40, WIDTH, generator=torch.Generator().manual_seed(0))
    codes, back = read_dictionary(str(place)).both(A)
    torch.testing.assert_close(sae.encode(A), codes, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(sae(A), back, rtol=1e-5, atol=1e-5)
    raw = own_codes(A.double().numpy())
    expected = np.concatenate([raw, -raw], axis=1)
    expected = np.where(expected > 1.0, expected, 0)
    assert sae.encode(A).detach().numpy() == pytest.approx(expected, abs=1e-5)


def test_the_command_says_what_it_wrote(tmp_path, monkeypatch):
    monkeypatch.setattr(og.study, "open_study", lambda folder: SimpleResult())
    runner = CliRunner()
    folder = str(tmp_path / "sae")
    done = runner.invoke(
        commands.app, ["export", "s", "--sae-lens", folder, "--layer", "h.0"]
    )
    assert done.exit_code == 0, done.output
    assert "3 concepts of h.0 as 6 latents; correlation with their codes" in done.output
    assert load_file(tmp_path / "sae" / "sae_weights.safetensors")["W_enc"].shape == (
        6,
        6,
    )


class SimpleResult:
    """What a study gives, without a study."""

    tree = result()
