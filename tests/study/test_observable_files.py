"""What an observable reads from files is part of its cells' fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch

import ontogeny as og


@dataclass(frozen=True)
class Scored(og.Observable):
    """The number that a file holds."""

    path: str
    beside: str = ""
    kind: ClassVar[str] = "scored"

    def needs(self):
        return [og.needs.Model()]

    def observe(self, reading, state):
        return og.observables.dataset({"score": float(Path(self.path).read_text())})


@dataclass(frozen=True)
class ScoredElsewhere(Scored):
    """The same, of a file that no argument names."""

    kind: ClassVar[str] = "scored-elsewhere"

    def files_read(self):
        return [Path(self.beside) / "further.txt"]


def _study(observable: og.Observable) -> og.Study:
    run = og.Trajectory.from_models({step: torch.nn.Linear(2, 2) for step in (0, 5)})
    return og.Study(run, og.Inputs.from_tokens([[0, 1]]), [observable], noise=0)


def test_an_edited_file_makes_the_cells_stale(tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("1")
    study = _study(Scored(str(pairs)))
    assert study.run(tmp_path / "s", progress=False)[
        "scored"
    ].score.values.tolist() == [1, 1]
    assert study.plan(tmp_path / "s").to_do == 0
    pairs.write_text("2")
    plan = study.plan(tmp_path / "s")
    assert plan.to_do == 2 and "files" in "".join(plan.changes())
    assert study.run(tmp_path / "s", progress=False)[
        "scored"
    ].score.values.tolist() == [2, 2]


@pytest.mark.parametrize(("content", "to_do"), [("1", 0), ("2", 2), (None, 2)])
def test_a_file_that_it_returns_counts_as_well(tmp_path, content, to_do):
    further = tmp_path / "further.txt"
    further.write_text("1")
    (tmp_path / "score.txt").write_text("3")
    study = _study(ScoredElsewhere(str(tmp_path / "score.txt"), beside=str(tmp_path)))
    study.run(tmp_path / "s", progress=False)
    further.unlink() if content is None else further.write_text(content)
    assert study.plan(tmp_path / "s").to_do == to_do


def test_patterns_are_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mlp", "ica"):
        Path(name).write_text("a file of that name")
    assert (
        og.observables.Concepts(
            layers="mlp", extractor="ica", n_concepts=2
        ).files_read()
        == []
    )
