"""What is written is what is read: TOML, ``--set``, costs in words, the bundled texts."""

import math
import os
import time
import tomllib
from dataclasses import replace

import pytest

from ontogeny.errors import ArgumentError
from ontogeny.start import names_of, toml
from ontogeny.start.cost import Cost, total
from ontogeny.start.sets import with_sets
from ontogeny.start.watch import SeenError, Watch
from ontogeny.tasks import bundled_texts

AWKWARD = {
    "a": 'quotes " and \\ and\nline',
    "b-c": [1, 2.5, True, "x # no comment"],
    "with space": {"inner": {"deep": ["é", ""]}},
    "empty": {},
    "tiny": 1e-08,
}


def test_a_note_stands_apart_from_a_line_of_any_length():
    for width in range(1, 60):
        (line,) = toml.lines({"a": "x" * width}, {"a": "a note"})
        assert line.index(" # a note") and tomllib.loads(line) == {"a": "x" * width}


def test_toml_comes_back_as_it_was_written():
    text = toml.joined([toml.lines(AWKWARD, {"a": "a note", "tiny": "small"})])
    assert tomllib.loads(text) == AWKWARD


def test_sets_reach_every_table_and_leave_the_rest():
    content = {
        "inputs": {"max_texts": 9},
        "observables": [{"kind": "concepts", "extractor": "ica"}, {"kind": "loss"}],
    }
    sets = (
        "inputs.max_texts=5",
        "trajectory.select.count=3",
        "observables.concepts-ica.n_concepts=4",
        'observables.loss.on="b"',
        'observables.concepts.layers=["mlp"]',
        "title=A b",
    )
    changed = with_sets(content, sets)
    assert (
        changed["trajectory"] == {"select": {"count": 3}} and changed["title"] == "A b"
    )
    concepts = {
        "kind": "concepts",
        "extractor": "ica",
        "n_concepts": 4,
        "layers": ["mlp"],
    }
    assert changed["observables"] == [concepts, {"kind": "loss", "on": "b"}]
    assert (
        content["inputs"] == {"max_texts": 9}
        and "n_concepts" not in content["observables"][0]
    )


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["lab/seed0", "lab/seed1"], ["seed0", "seed1"]),
        (["runs/a/out", "runs/b/out"], ["a-out", "b-out"]),
        (["one/tiny", "two/tiny"], ["one-tiny", "two-tiny"]),
        (["a/out", "b/out", "c/last"], ["a-out", "b-out", "c-last"]),
    ],
)
def test_runs_get_names_that_differ(tmp_path, monkeypatch, sources, names):
    monkeypatch.chdir(tmp_path)
    if "tiny" not in sources[0] and "lab" not in sources[0]:
        for source in sources:
            (tmp_path / source).mkdir(parents=True)
    assert names_of(sources) == names
    with pytest.raises(ArgumentError, match="every run must be given once"):
        names_of([*sources, sources[0]])


def test_a_set_below_a_value_is_refused():
    with pytest.raises(ArgumentError, match="is a value and no table"):
        with_sets({"inputs": {"max_texts": 9}}, ["inputs.max_texts.more=1"])


def test_costs_are_said_and_limits_are_in_words():
    small = Cost(8, 0, 5_000_000, 90.0, 1.5, "cpu")
    assert small.limits() == [] and "to download: nothing" in small.lines()
    large = Cost(154, 60 * 10**9, 10**9, 7200.0, 40.0, "cuda")
    assert large.limits() == ["download 60 GB", "take 2.0 to 3.2 hours"]
    assert large.limits(workers=8) == ["download 60 GB"]
    assert "60 GB in the Hub's cache" in large.lines()[1]
    assert (
        small.lines()[-1]
        == "time: 2 to 3 minutes, about 2 minutes of processor time, by 1.5 s for one of 8 "
        "checkpoints on cpu"
    )
    # On a full machine the clock says more than the study takes.
    full = replace(small, seconds=6000.0, busy=0.25).lines()[-1]
    assert full.startswith("time: 1.7 to 2.7 hours, about 25 minutes of processor time")
    assert "processor" not in large.lines()[-1]
    assert "without weight-rank" in replace(small, untimed=("weight-rank",)).lines()[-1]
    assert (
        total([small] * 3)
        .lines(workers=3)[-1]
        .startswith("time: 2 to 4 minutes with 3 workers")
    )
    failed = Cost(8, 0, 0, 0.0, 0.0, "cpu", "no room")
    assert failed.lines()[-1] == "no checkpoint was timed: no room"


def test_the_time_of_a_checkpoint_is_that_of_all_its_tasks_and_states_are_apart():
    watch = Watch("step 20", False)
    for label, cells, seconds in (
        ("references", 0, 5.0),
        ("reading step 10", 3, 9.0),
        ("reading step 20", 3, 40.0),
        ("states", 0, 7.0),
    ):
        watch.advance(label, cells, seconds)
    with pytest.raises(SeenError):
        watch.advance("step 20", 1, 2.0)
    assert (watch.before, watch.step, watch.late) == (12.0, 42.0, 2.0)


def test_what_controls_do_not_have_is_taken_apart_by_when_cells_were_written():
    watch = Watch("step 20", False, ["writing", "motion"])
    now = time.time()

    def written(name, step, ago):
        cell = watch.folder / "cells" / name / f"{step}.safetensors"
        cell.parent.mkdir(parents=True, exist_ok=True)
        cell.touch()
        os.utime(cell, (now - ago, now - ago))

    # What was before it begins at 100 s; the first cell waits for the reading, whatever it is of.
    for name, step, ago in (
        ("writing", 0, 900),
        ("motion", 20, 60),
        ("loss", 20, 58),
        ("writing", 20, 47),
        ("pairs", 20, 20),
    ):
        written(name, step, ago)
    watch.advance("reading step 20", 4, 100.0)
    assert watch.of_run == pytest.approx(11, abs=1e-3)
    written("entropy", 20, 1)
    with pytest.raises(SeenError):
        watch.advance("step 20", 1, 2.0)
    assert watch.of_run == pytest.approx(11, abs=1e-3)


def test_the_bundled_texts_are_varied_and_none_is_repeated():
    texts = bundled_texts()
    words = [word for text in texts for word in text.lower().split()]
    assert len(set(texts)) == len(texts) == 81 and len(words) > 2000
    assert all(text[-1] in '."' and text.isascii() for text in texts)
    assert len(set(words)) / math.sqrt(len(words)) > 15  # a vocabulary as rich as prose
    with pytest.raises(ArgumentError, match="'english'"):
        bundled_texts("french")
