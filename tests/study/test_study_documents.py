"""Documents and repeated texts in study files and results."""

import json

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import developing, record, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny.study.results.result import unit_counts


def repeated(times=3, texts=8):
    plain = tiny_inputs(texts)
    rows = [ids[mask] for ids, mask in zip(plain.ids, plain.mask, strict=True)]
    return og.Inputs.from_tokens(rows * times, mask_token_id=1)


def test_a_result_says_how_many_units_and_repeats_it_rests_on(tmp_path):
    observables = [
        og.observables.make("loss", objective="masked"),
        og.observables.make("activation-decay", layers="model.layers.*.mlp"),
        og.observables.make("weight-rank", blocks="model.layers.0.mlp.*.weight"),
    ]
    study = og.Study(
        record(developing((0, 10)), tmp_path / "run"), repeated(), observables
    )
    said = (
        "input set 'text': 16 of 24 texts repeat others; texts that repeat count as one"
    )
    assert said in str(study.plan())
    tree = study.run(tmp_path / "study")
    counts = json.loads(tree.attrs["inputs"])[0]
    assert (counts["texts"], counts["duplicates"], counts["units"]) == (24, 16, 8)
    assert tree["loss"].attrs["units"] == tree["activation-decay"].attrs["units"] == 8
    assert "units" not in tree["weight-rank"].attrs
    of_text = tree["loss"].loss_of_text
    assert of_text.sizes["text"] == 8 and np.isfinite(of_text.values).all()
    weighted = (of_text * tree["loss"].loss_weights).sum("text") / tree[
        "loss"
    ].loss_weights.sum("text")
    np.testing.assert_allclose(weighted, tree["loss"].loss, rtol=1e-6)


@pytest.mark.slow
def test_copies_of_all_texts_leave_the_noise_as_it_was(tmp_path):
    """Five copies of a text say what one says: without units the error would be 2.2 times less."""
    trajectory = record(developing((0, 10)), tmp_path / "run")
    observables = [
        og.observables.make("attention-entropy"),
        og.observables.make("readout-attention"),
        og.observables.make("activation-decay", layers="model.layers.*.mlp"),
    ]
    once, five = (
        og.Study(trajectory, repeated(times), observables).run(tmp_path / str(times))
        for times in (1, 5)
    )
    for node, name in (
        ("attention-entropy", "layer_entropy_stderr"),
        ("readout-attention", "layer_entropy_stderr"),
        ("activation-decay", "rotation_removed_stderr"),
    ):
        np.testing.assert_allclose(
            five[node][name].sel(step=0), once[node][name].sel(step=0), rtol=1e-4
        )


def test_the_smallest_of_several_input_sets_counts():
    inputs = {"a": repeated(1, 8), "b": repeated(3, 5)}
    both = og.observables.make("readout-attention", on=("a", "b"))
    alone = og.observables.make("loss", on="a")
    assert unit_counts([both, alone], inputs) == {"readout-attention": 5, "loss": 8}


@pytest.mark.parametrize(
    ("source", "documents", "message"),
    [
        ("files", 3, '"file" or "article"'),
        ("texts", "file", "a list with one document"),
        ("dataset", [1, 2], "the name or number of a column"),
    ],
)
def test_documents_of_the_wrong_kind_are_refused(source, documents, message):
    from ontogeny.study.input_tables import _check_documents

    with pytest.raises(ArgumentError, match=message):
        _check_documents("[inputs]", source, documents)
