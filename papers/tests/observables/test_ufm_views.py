"""Free embeddings and confusion matrices as nodes of a report."""

import json

import numpy as np
import pytest
import xarray as xr

from helpers.ufm_examples import centred, support
from ontogeny import report, semantics
from ontogeny.errors import ArgumentError
from ontogeny_papers.observables.words.views.training import confusion_view, ufm_view


def page(nodes, tmp_path):
    attrs = {"title": "Training", "steps": "[0]", "nodes": json.dumps(list(nodes))}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **nodes})
    return report.write(tree, tmp_path / "page.html").read_text(encoding="utf-8")


def test_training_is_drawn_with_its_theory_and_its_numbers_said(tmp_path):
    run = semantics.train_ufm(centred(support()), 5)
    view = ufm_view(run)
    kinds = {f["id"]: f for f in json.loads(view.attrs["figures"])}
    assert kinds["projection"]["reference"] == "theory"
    said = json.loads(view.attrs["statements"])
    assert "within 0.0" in said[0] and "1.00 over 5 concepts" in said[1]
    text = page({"ufm": view}, tmp_path)
    assert "Free embeddings" in text and "closed form" in text


def test_without_theory_none_is_drawn_or_claimed(tmp_path):
    run = semantics.train_ufm(
        centred(support()), 12, "cross_entropy", "random", duration=2.0, step_size=0.3
    )
    view = ufm_view(run)
    assert all(not f.get("reference") for f in json.loads(view.attrs["figures"]))
    assert not any("closed form" in s for s in json.loads(view.attrs["statements"]))
    assert "Free embeddings" in page({"ufm": view}, tmp_path)


def test_confusion_along_training_is_a_square_heatmap_for_each_step(tmp_path):
    S = support(5, 8)
    logits = np.random.default_rng(0).standard_normal((12, 5, 8))
    words = ("<script>alert(1)</script>", "b", "c", "d", "e")
    found = semantics.support_confusion(logits, S, words=words)
    view = confusion_view(found.assign_coords(step=np.arange(12)))
    figure = json.loads(view.attrs["figures"])[0]
    assert figure["facet"] == "step" and figure["square"]
    assert int(view.confusion.sum()) == 12 * 8
    assert "<script>alert(1)" not in page({"confusion": view}, tmp_path)


def test_views_refuse_what_they_cannot_draw():
    with pytest.raises(ArgumentError, match="train_ufm"):
        ufm_view(xr.Dataset())
    with pytest.raises(ArgumentError, match="confusion"):
        confusion_view(xr.Dataset({"confusion": ("step", [1])}))
