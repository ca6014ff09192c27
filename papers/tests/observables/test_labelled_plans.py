"""Labelled input sets that no direction can be found on are refused when the study is planned."""

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import LAYERS, developing, record, tiny_inputs, tiny_model
from ontogeny.errors import ArgumentError
from ontogeny.study import read_study
from ontogeny.tasks import train_tokenizer

CHOSEN = [
    og.observables.ConceptDirections(LAYERS, on="film"),
    og.observables.TCAV(LAYERS, on="film", target="masked"),
]


def _labelled(labels):
    inputs = tiny_inputs(len(labels))
    return og.Inputs.from_tokens(
        inputs.ids,
        mask=inputs.mask,
        special=inputs.special,
        mask_token_id=1,
        labels=labels,
    )


@pytest.mark.parametrize("observable", CHOSEN, ids=lambda o: o.kind)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1] * 12, r"'film': labels must hold two classes; .* \{1: 12\}"),
        ([1], r"'film': labels must hold two classes; .* \{1: 1\}"),
        ([0, 1], "'film': every class needs two texts"),
        (
            [0] * 11 + [1],
            r"'film': every class needs two texts .* have one: \[1\] \(of 12 texts",
        ),
        (
            [0, 1, 2] * 4,
            r"'film': labels must hold two classes; .* \{0: 4, 1: 4, 2: 4\}",
        ),
        (None, "'film': concept directions need inputs with labels"),
    ],
)
def test_labels_that_cannot_be_split_are_refused_in_the_plan(
    observable, labels, message
):
    film = tiny_inputs(12) if labels is None else _labelled(labels)
    study = og.Study(
        og.Trajectory.from_models({0: tiny_model()}),
        {"text": tiny_inputs(), "film": film},
        [og.observables.Loss(), observable],
        device="cpu",
    )
    with pytest.raises(ArgumentError, match=message):
        study.plan()


def test_two_texts_a_class_are_enough(tmp_path):
    study = og.Study(
        og.Trajectory.from_models(developing((0, 1))),
        {"film": _labelled([0, 1, 0, 1])},
        CHOSEN[:1],
        device="cpu",
    )
    assert np.isfinite(study.run(tmp_path / "s")["cav"].accuracy).all()


def test_the_file_of_a_set_with_one_class_is_named(tmp_path):
    texts = ["a good film", "a fine film", "a great film"]
    tokenizer = train_tokenizer(texts * 4, 300)
    model = tiny_model()
    model.resize_token_embeddings(len(tokenizer))
    record({0: model}, tmp_path / "run")
    tokenizer.save_pretrained(tmp_path / "run" / "checkpoint-0")
    (tmp_path / "film.tsv").write_text(
        "text\tlabel\n" + "".join(f"{t}\t1\n" for t in texts)
    )
    path = tmp_path / "study.toml"
    path.write_text(
        '[trajectory]\nfolder = "run"\n[inputs.film]\ndataset = "film.tsv"\n'
        f'[[observables]]\nkind = "cav"\nlayers = "{LAYERS}"\n'
    )
    with pytest.raises(ArgumentError, match=r"'film' \(.*film\.tsv\): .* \{1: 3\}"):
        read_study(path).plan()
