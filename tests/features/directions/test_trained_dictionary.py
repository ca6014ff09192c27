"""A dictionary that sae-lens trained on a small run's last checkpoint, followed back over the run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import ontogeny as og
from ontogeny.capture import activations
from ontogeny.features.directions.dictionary_files import read_dictionary
from ontogeny.observables import Dictionary

FOLDER = Path(__file__).parent / "trained"  # tests/helpers/train_sae.py writes it
EXPECTED = load_file(FOLDER / "expected.safetensors")
LAST = 800


def texts():
    return og.Inputs.from_tokens(EXPECTED["ids"].numpy().astype(int))


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    run = og.Trajectory.from_folder(FOLDER / "run")
    observable = Dictionary(str(FOLDER / "sae"))
    study = og.Study(run, texts(), [observable], device="cpu")
    result = study.run(tmp_path_factory.mktemp("trained") / "s")
    assert not len(result.problems()), result.problems()
    return result["dictionary"].to_dataset().isel(layer=0)


def test_codes_are_those_of_sae_lens():
    codes = read_dictionary(str(FOLDER / "sae")).codes(EXPECTED["x"])
    torch.testing.assert_close(codes, EXPECTED["codes"], rtol=1e-6, atol=1e-6)
    assert (codes > 0).sum(dim=1).max() == 4


def test_the_layer_of_the_hook_is_where_it_was_trained():
    model = og.Trajectory.from_folder(FOLDER / "run")[LAST].model()
    observable = Dictionary(str(FOLDER / "sae"))
    (A,) = activations(model, texts(), observable.layer, max_tokens=None).values()
    sample = texts().sample()
    length = texts().ids.shape[1]
    rows = torch.from_numpy(sample.text * length + sample.position)
    stored = rows < len(EXPECTED["x"])
    expected = EXPECTED["x"][rows[stored]]
    torch.testing.assert_close(A[stored], expected, rtol=1e-4, atol=1e-4)


def test_codes_are_those_of_sae_lens_where_it_is_installed():
    sae_lens = pytest.importorskip(
        "sae_lens", reason="sae-lens is in an environment of its own"
    )
    sae = sae_lens.SAE.load_from_disk(str(FOLDER / "sae"))
    x = EXPECTED["x"] + 0.1
    with torch.no_grad():
        expected = sae.encode(x)
    codes = read_dictionary(str(FOLDER / "sae")).codes(x)
    torch.testing.assert_close(codes, expected, rtol=1e-6, atol=1e-6)


def test_it_explains_the_last_checkpoint_as_sae_lens_says_and_earlier_ones_less(node):
    explained = node.explained.values
    assert explained[-1] == pytest.approx(float(EXPECTED["explained"]), rel=1e-4)
    assert explained[-1] > 0.85 > explained[1] and (np.diff(explained) > 0).all()
    gaussian = node.explained_gaussian.isel(step=-1).values
    assert explained[-1] > gaussian.max() + 0.1
    assert node.dead[0] > 0.5 > node.dead[-1]


def test_features_are_born_on_the_way_and_never_fire_before(node):
    born = node.shown_born.values
    there = np.isfinite(born)
    assert there.sum() > 10 and (born[there] > 0).all()
    assert len({*born[there].tolist()}) > 1  # not all at one step
    codes = node.shown_agreement.transpose("shown", "step").values
    steps = node.step.values
    for course, step in zip(codes[there], born[there], strict=True):
        assert course[0] < 0.4 and (course[steps >= step] > 0.5).all()
