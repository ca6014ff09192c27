"""Life lines and contact sheet as files: their data whole, their bytes the same, nothing empty."""

import numpy as np
import pandas as pd
import pytest

from helpers import concept_trees as made
from helpers import report_examples as examples
from ontogeny.report.concepts.lives import line_names
from ontogeny.report.files.write import write_figures
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.paper import draw_life_figure, style
from ontogeny.words.content import read_content


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("figures")
    write_figures(made.learned(), target, ["svg"])
    return target


def test_every_concept_has_its_values_unrounded(folder):
    data = made.joint_concepts()
    table = pd.read_csv(folder / "concepts.csv", keep_default_na=False)
    kinds = data.concept_kind.values
    assert len(table) == (kinds != "no concept").sum() * len(made.STEPS)
    for row in table.iloc[::7].itertuples():
        one = data.sel(layer=row.layer, step=row.step).isel(concept=row.number)
        assert (row.name, row.kind) == (
            str(one["name"].item()),
            str(one.concept_kind.item()),
        )
        assert float(row.strength) == pytest.approx(float(one.strength), rel=1e-12)


def test_names_by_people_stand_in_a_column_of_their_own(tmp_path):
    tree = made.learned()
    data = tree["joint-concepts"].to_dataset()
    given = np.full(data.concept_kind.shape, "", dtype=object)
    given[0, 3] = "closing bracket"
    tree["joint-concepts"] = data.assign(name_given=(("layer", "concept"), given))
    write_figures(tree, tmp_path, [])
    table = pd.read_csv(tmp_path / "concepts.csv", keep_default_na=False)
    named = table[table.name_given != ""]
    assert set(named.name_given) == {"closing bracket"} and set(named.number) == {3}
    assert set(named.name) == {str(data["name"].values[0, 3])}
    assert len(named) == len(made.STEPS)


def test_captions_say_which_concepts_are_shown(folder):
    captions = (folder / "captions.txt").read_text()
    assert "10 of 18 named concepts, of 22 in all: " in captions
    assert "All 18 named concepts, of 22 in all." in captions


def test_pictures_are_written_with_captions_and_the_same_bytes(folder, tmp_path):
    captions = (folder / "captions.txt").read_text()
    assert (
        "life-lines\nIt learned word frequencies first" in captions
        and "concepts\n" in captions
    )
    write_figures(made.learned(), tmp_path, ["svg"])
    for name in ("life-lines.svg", "concepts.svg"):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()
        assert (folder / name).stat().st_size > 5_000


def test_births_are_drawn_where_the_result_has_them():
    content = read_content(made.learned())
    first = first_screen(content)
    with style():
        axes = draw_life_figure(content, first).axes[-1]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    places = [float(dot.get_xdata()[0]) for dot in dots]
    assert len(places) == sum(np.isfinite(each.born) for each in first.concepts.lines)
    assert places == sorted(places)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == line_names(first.concepts.lines)


def test_a_result_without_concepts_writes_neither(tmp_path):
    paths = write_figures(examples.developing_tree(), tmp_path, [])
    assert "concepts.csv" not in {path.name for path in paths}
