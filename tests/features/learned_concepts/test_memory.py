"""What the search for concepts holds for each token, however many layers it has."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ontogeny.features.learned_concepts import found
from ontogeny.features.learned_concepts.checkpoint import let_go_unchanged, presence
from ontogeny.features.learned_concepts.components import Components
from ontogeny.features.learned_concepts.parts import Predictor
from ontogeny.inputs.sampling import TokenSample
from ontogeny.observables import by_layer

WIDTHS = (6, 12, 18, 24)
STEPS = (3, 2, 1)


@pytest.fixture(autouse=True)
def _every_feature_is_a_component(monkeypatch):
    """A fit's own memory is that of one layer, and is left out."""

    def of_features(X, half, count, seed, latents):
        codes = X[:, :count]
        halves = np.stack([codes, codes])
        return Components(codes, halves, np.ones(codes.shape[1]))

    monkeypatch.setattr(found, "components", of_features)


def held(tokens):
    """Return the peak of memory and the bytes of the codes that a state stores."""
    rng = np.random.default_rng(0)
    rows = {
        str(width): {
            step: rng.normal(size=(tokens, width)).astype(np.float16)
            for step in (*STEPS, 0)
        }
        for width in WIDTHS
    }
    finder = found.Finder(None, None, None, np.arange(tokens) % 2 == 0, 24, 0, 0)

    def one(path, each):
        return finder.layer(each[0], each[0], {step: each[step] for step in STEPS})

    tracemalloc.start()
    state = by_layer(rows, one)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, state.codes.nbytes


def test_the_codes_of_all_layers_are_held_once():
    held(200)  # what is loaded at first
    small = held(4000)
    large = held(12_000)
    grown, stored = (after - before for before, after in zip(small, large, strict=True))
    assert (
        stored / 8000 == 4 * 5 * 3 * 24 * 2
    )  # layers, fits, components of three steps
    # Joined by xarray.concat, and with codes of idle steps in memory, it was 2.5 times as much.
    assert grown < 1.3 * stored


def peak_of(function, *arguments):
    """Return the bytes that a function takes at its peak."""
    function(*arguments)  # what is loaded at first
    tracemalloc.start()
    function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_reading_out_and_knowing_again_take_few_codes_in_double_precision():
    """All of them, and both halves of the texts at once, took 5 times the memory of a fit."""
    rng = np.random.default_rng(0)
    fits = rng.normal(size=(3, 10_000, 256)).astype(np.float16)
    codes = fits[0].astype(np.float32)
    X = rng.normal(size=(10_000, 8)).astype(np.float32)
    text = np.arange(10_000) // 50
    read = Predictor(X, text % 2 == 0)
    assert peak_of(presence, read, fits) < 3 * codes.nbytes
    sample = TokenSample(text, np.arange(10_000) % 50)
    assert peak_of(found._sketch, codes, sample) < 3 * codes.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_read_of_a_states_file_does_not_stay_in_memory(tmp_path):
    def of_files():
        lines = Path("/proc/self/status").read_text().splitlines()
        return sum(
            1024 * int(line.split()[1])
            for line in lines
            if line.startswith(("RssFile", "RssShmem"))
        )

    np.save(tmp_path / "codes.npy", np.ones(8_000_000))
    codes = np.load(tmp_path / "codes.npy", mmap_mode="c")
    before = of_files()
    assert codes.sum() == 8_000_000 and of_files() > before + 48e6
    let_go_unchanged(codes[:5][1:])  # a view of it stands for all
    assert of_files() < before + 16e6
    assert codes.sum() == 8_000_000
