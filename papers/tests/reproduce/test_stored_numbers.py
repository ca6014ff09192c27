"""Stored numbers give the stored sentences, and other numbers would give others."""

import contextlib
import functools
import importlib
import json

import numpy as np
import pytest
import xarray as xr

from helpers.paths import PAPERS
from ontogeny_papers import reproduce

EVIDENCE = PAPERS / "docs" / "evidence"
FILES = {path.stem for path in EVIDENCE.glob("*-*.json")}
NUMBERS = sorted((EVIDENCE / "numbers").glob("*.json"))
DRAWS = 20  # shorter lists hold runs or settings
ROUNDED = 17  # may only fall
AS_PRINTED = ("concepts-printed-tables",)
WITHOUT_NUMBERS = 10  # may only fall


def collector():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EVIDENCE)
        return importlib.import_module("collect")


def judged(path):
    """Return the judge of a stored file, what it is given, and what it says of that."""
    one = json.loads((EVIDENCE / path.name).read_text("utf-8"))
    numbers = collector().packing.unpacked(json.loads(path.read_text("utf-8")))
    judge = reproduce.recipe(one["recipe"]).judge
    return judge, numbers, [verdict.stored() for verdict in judge(*numbers)]


def floats(value):
    """Give the numbers of packed ones that are not whole."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from floats(inner)
    elif isinstance(value, float) and value % 1:
        yield value


def digits(value):
    return len(f"{value!r}".partition("e")[0].replace(".", "").strip("-0"))


def others(value, rng, missing):
    """Return other numbers than these, with flags drawn and a number for missing ones."""
    if isinstance(value, xr.Dataset):
        data = {
            name: (one.dims, others(one.values, rng, missing), one.attrs)
            for name, one in value.data_vars.items()
        }
        return value.assign(data)
    if isinstance(value, dict):
        return {key: others(inner, rng, missing) for key, inner in value.items()}
    if isinstance(value, list) and len(value) < DRAWS:
        return [others(inner, rng, missing) for inner in value]
    if isinstance(value, list):
        return others(np.array(value), rng, missing).tolist()
    if isinstance(value, float):
        return value * rng.uniform(0.1, 1)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return value
    if value.dtype.kind == "b":
        return rng.random(value.shape) < 0.5
    if value.dtype.kind in "iu":
        return value + rng.integers(0, 3, value.shape)
    known = np.where(np.isnan(value), missing, value)
    known = np.where(known == 0, rng.random(value.shape), known)
    along = [rng.uniform(0.1, 1, size) for size in value.shape]
    # Alone, a number may have another sign; a series keeps it, and each of its axes a trend.
    alone = rng.uniform(-1, 1)
    return known * (functools.reduce(np.multiply.outer, along) if along else alone)


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: path.stem)
def test_every_verdict_rests_on_stored_numbers(path):
    """What other numbers do not change is said of no stored number."""
    judge, numbers, before = judged(path)
    fixed = {verdict["claim"] for verdict in before}
    rng = np.random.default_rng(0)
    for missing in (np.nan, np.nan, np.nan, 1.0):
        after = []
        # What is read where a seed has some number is not stored where none has it.
        with contextlib.suppress(KeyError):
            after = judge(*[others(value, rng, missing) for value in numbers])
        said = [verdict.stored() for verdict in after]
        fixed -= {verdict["claim"] for verdict in said if verdict not in before}
    assert not fixed


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: path.stem)
def test_stored_numbers_give_the_stored_sentences(path):
    one = json.loads((EVIDENCE / path.name).read_text("utf-8"))
    assert judged(path)[2] == one["verdicts"]


def test_recipes_whose_numbers_are_not_stored_become_fewer():
    without = FILES - {path.stem for path in NUMBERS}
    assert len(without) <= WITHOUT_NUMBERS, sorted(without)
    assert not {path.stem for path in NUMBERS} - FILES


def test_recipes_whose_numbers_are_rounded_become_fewer():
    """Numbers of five digits at most were cut to those that give the same sentences."""
    arguments = {
        path.stem: [sorted(floats(one)) for one in json.loads(path.read_text("utf-8"))]
        for path in NUMBERS
        if path.stem not in AS_PRINTED
    }
    rounded = {
        name
        for name, found in arguments.items()
        if any(len(x) >= DRAWS and max(map(digits, x)) <= 5 for x in found)
    }
    assert len(rounded) <= ROUNDED, sorted(rounded)


@pytest.mark.parametrize("texts", ["<U6", np.dtypes.StringDType()], ids=["U", "T"])
def test_numbers_are_stored_whole_without_what_no_verdict_reads(texts):
    """Variables and labels that nothing rests on go; NaN, draws and single precision stay.

    So do the labels of a dimension that is read by place. Labels that were read from Zarr are
    texts of any length.
    """
    found = collector().packing
    data = xr.Dataset(
        {
            "x": ("seed", [0.12345678901, np.nan, 3.0]),
            "unread": ("seed", [1.0, 2.0, 3.0]),
            "draws": ("draw", [3, 5, 4]),
        },
        {
            "seed": np.array(["a", "b", "unread"], dtype=texts),
            "draw": [1, 2, 3],
            "place": ("seed", [0, 1, 2]),
        },
    )

    def judge(runs, least):
        one = runs["one"][0]
        said = f"{one.x.values[0]:.2f} {one.x.values[1]} {one.seed.values[0]}"
        more = f"{int(one.draws.max())} at most"
        return [reproduce.Verdict("c", bool(one.x.values[0] > least), said, more)]

    numbers = [{"one": [data], "other": [data]}, 0.1]
    kept = json.loads(json.dumps(found.smallest(judge, numbers)))
    (one,) = kept[0]["one"]
    assert set(kept[0]) == {"one"}
    assert set(one["variables"]) == {"x", "seed", "draws", "draw"}
    assert one["variables"]["x"][2] == [0.12345679, "nan"]
    assert one["variables"]["draws"][2] == [3, 5, 4] and kept[1] == 0.1
    (again,), (before,) = judge(*found.unpacked(kept)), judge({"one": [data]}, 0.1)
    assert again == before


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    found, ran, kept = collector(), [], []

    class Recorded:
        def __init__(self, name):
            self.name = name

        def run(self, folder, quick):
            if self.name == "b" and ran == ["a"]:
                ran.append("stopped")
                raise KeyboardInterrupt
            ran.append(self.name)
            place = folder / f"{self.name}-quick"
            place.mkdir(parents=True)
            (place / "report.html").touch()

    class Reproduce:
        recipe = Recorded

    monkeypatch.setattr(found, "reproduce", Reproduce)
    monkeypatch.setattr(found, "store", lambda place: kept.append(place.name))
    monkeypatch.setattr(found, "judge_again", list)
    monkeypatch.setattr(found, "stored", dict)
    for constant in ("PAGE", "CLAIMS"):
        (tmp_path / constant).touch()
        monkeypatch.setattr(found, constant, tmp_path / constant)
    monkeypatch.setattr(
        "sys.argv", ["collect", str(tmp_path / "out"), "a", "b", "--quick"]
    )
    with pytest.raises(KeyboardInterrupt):
        found.main()
    assert kept == ["a-quick"], "stored before the next one begins"
    found.main()
    assert ran == ["a", "stopped", "b"] and kept[-1] == "b-quick"


def test_shares_of_one_whole_are_stored_as_counts_and_come_back_bit_by_bit():
    rng = np.random.default_rng(0)
    shares = rng.integers(0, 99, (30, 40)) / 98.0
    others = rng.normal(size=(30, 40))
    data = xr.Dataset({"share": (("a", "b"), shares), "other": (("a", "b"), others)})
    packing = collector().packing
    stored = json.loads(json.dumps(packing.packed(data)))
    assert stored["variables"]["share"][2]["of"] == 98
    back = packing.unpacked(stored)
    assert (back.share.values == shares).all()
    np.testing.assert_allclose(back.other.values, others, rtol=1e-6)
