"""What a study returns holds a DataTree, and stands for it wherever a result is asked for."""

import copy
import json
import pickle

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import report_examples as examples
from ontogeny.errors import ArgumentError
from ontogeny.problems.table import problems_of
from ontogeny.study import StudyResult
from ontogeny.study.results.result_files import write_result


@pytest.fixture(scope="module")
def result():
    return StudyResult(examples.controlled_tree())


def test_it_maps_names_to_nodes(result):
    assert list(result) == list(result.tree.children) and len(result) == len(
        result.tree.children
    )
    assert "loss" in result and "los" not in result and result.get("los") is None
    assert result["loss"] is result.tree["loss"]
    assert float(result["loss/loss"][0]) == float(result["loss"].loss[0])
    assert {name: node.path for name, node in result.items()} == {
        n: f"/{n}" for n in result
    }
    with pytest.raises(
        KeyError, match=r"there is no node 'los'; there are 'loss', .* 'loss'\?"
    ):
        result["los"]


def test_it_is_equal_to_itself_alone(result):
    assert result == result and result != StudyResult(result.tree) and hash(result)


def test_it_can_be_copied_and_pickled(result):
    for again in (copy.copy(result), pickle.loads(pickle.dumps(result))):
        np.testing.assert_array_equal(again["loss"].loss, result["loss"].loss)


def test_what_only_the_tree_has_is_not_the_results_own(result):
    for name in ("to_dict", "to_dataframes", "_ipython_display_", "_repr_mimebundle_"):
        assert not hasattr(result, name)


def test_functions_of_a_result_take_it_or_its_tree(result, tmp_path):
    assert og.report.chart_svg(result) == og.report.chart_svg(result.tree)
    pages = [
        og.report.write(each, tmp_path / "page.html") for each in (result, result.tree)
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert problems_of(result) == problems_of(result.tree)
    assert og.atlas.with_labels(result) is result.tree
    both = og.compare({"one": result, "other": result.tree}, allow=["checkpoints"])
    assert isinstance(both, StudyResult) and og.comparison.summary_lines(both)


@pytest.mark.parametrize("bad", [None, "studies/mine", xr.Dataset(), {"loss": 1}])
def test_what_is_no_result_is_refused(bad):
    with pytest.raises(ArgumentError, match=f"got {type(bad).__name__}"):
        og.report.chart_svg(bad)


def test_a_folder_is_opened_as_the_same_class(result, tmp_path):
    assert result.folder is None
    write_result(tmp_path, result.tree)
    (tmp_path / "study.json").write_text(json.dumps({}))
    opened = og.open_study(tmp_path)
    assert isinstance(opened, StudyResult) and opened.folder == tmp_path
    assert opened.result is opened.tree and set(opened) == set(result)
    assert opened.concept.folder == tmp_path and opened.attrs == result.attrs
    lazily = opened["loss"]["loss"].variable
    assert not lazily._in_memory
