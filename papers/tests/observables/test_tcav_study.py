"""Labelled concepts along training: planted ones are found, labels without meaning are not."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import developing, record, tiny_inputs
from ontogeny.capture import ReadingSettings, read
from ontogeny.errors import ArgumentError
from ontogeny.figures import Table
from ontogeny.needs import Activations
from ontogeny.observables import TCAV, ConceptDirections
from ontogeny.words.voice import OF_STEPS
from ontogeny_papers.capture.random_concepts import random_draws
from ontogeny_papers.concepts.concept_directions import LabelledRows
from ontogeny_papers.observables.labelled.directions import _passing, _readable
from ontogeny_papers.observables.labelled.tcav_figures import significant
from ontogeny_papers.observables.labelled.tcav_regimes import regime_tables

STEPS = (0, 10, 40, 50)
LAYERS = "model.layers.*.mlp"


def labelled(kind, texts=90, seed=5):
    """Texts whose label is whether a certain token stands in them, or a coin."""
    plain = tiny_inputs(texts, seed)
    rng = np.random.default_rng(seed)
    labels = np.arange(texts) % 2
    rng.shuffle(labels)
    rows = [row[mask].copy() for row, mask in zip(plain.ids, plain.mask, strict=True)]
    if kind == "planted":
        for row, label in zip(rows, labels, strict=True):
            row[row == 7] = 8
            if label:
                row[: len(row) - 1] = 7
                while any(
                    other is not row and np.array_equal(other, row) for other in rows
                ):
                    # Texts that repeat would be one unit.
                    row[-1] = 4 + (row[-1] - 3) % 36
    return og.Inputs.from_tokens(rows, mask_token_id=1, labels=labels)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tcav")
    trajectory = record(developing(STEPS), folder / "run")
    inputs = {
        "planted": labelled("planted"),
        "coin": labelled("coin", texts=80, seed=1),
        "others": labelled("coin", texts=70, seed=2),
    }
    both = {"on": ("planted", "coin"), "n_random": 99, "n_refits": 5, "intercept": True}
    study = og.Study(
        trajectory,
        inputs,
        [
            ConceptDirections(LAYERS, **both),
            TCAV(
                LAYERS,
                **both,
                target="masked",
                early=(0, 20),
                late=(30, 50),
                random="others",
            ),
        ],
    )
    tree = study.run(folder / "study")
    assert json.loads(tree.attrs["problems"]) == []
    tree.attrs["folder"] = str(folder / "study")
    return tree


def test_a_planted_concept_is_readable_and_a_coin_is_not(result):
    data = result["cav"].to_dataset()
    assert data.accuracy.sel(concept="planted").min() > 0.8
    assert data.lasting_step.sel(concept="planted").values.tolist() == [0, 0]
    assert (data.p_corrected.sel(concept="coin") > 0.05).all()
    assert np.isnan(data.lasting_step.sel(concept="coin")).all()
    stable = data.bootstrap_cosine.mean(("layer", "step"))
    assert stable.sel(concept="planted") > stable.sel(concept="coin")
    words = json.loads(data.attrs["statements"])
    assert any(
        w.startswith("planted: readable above shuffled labels for good in 2")
        for w in words
    )
    assert "planted is readable for good before coin in 2 of 2 layers" in " ".join(
        words
    )
    assert any(w.startswith("coin: no layer reads it better") for w in words)


def test_directions_are_unit_and_meet_themselves_at_the_reference_step(result):
    data = result["cav"].to_dataset()
    np.testing.assert_allclose((data.direction**2).sum("feature"), 1, rtol=1e-5)
    np.testing.assert_allclose(data.reference_cosine.sel(step=50), 1, rtol=1e-5)
    assert (data.reference_cosine.sel(step=0) < 0.99).all()


def test_scores_are_those_of_one_model_alone(result):
    """The study's cell equals `capture.tcav` on the same checkpoint."""
    data = result["tcav"].to_dataset().sel(step=50, concept="planted")
    model = developing(STEPS)[50]
    target = og.capture.Target("masked")
    alone = og.capture.tcav(
        model,
        labelled("planted"),
        LAYERS,
        og.concepts.CAV(intercept=True),
        target=target,
        n_random=99,
        n_refits=5,
    )
    np.testing.assert_allclose(data.score, alone.score)
    np.testing.assert_allclose(data.random_score, alone.random_score)
    np.testing.assert_allclose(data.derivative, alone.derivative)
    np.testing.assert_allclose(data.accuracy, alone.accuracy)


def test_the_series_has_its_verdicts_tables_and_figures(result):
    data = result["tcav"].to_dataset()
    assert (data.p_corrected >= data.p_single - 1e-12).all()
    assert ((data.score >= data.score_low) & (data.score <= data.score_high)).all()
    early = data.score.sel(concept="coin", step=[0, 10]).mean("step")
    np.testing.assert_allclose(data.regime1_early_mean, early)
    kinds = [figure["kind"] for figure in json.loads(data.attrs["figures"])]
    assert kinds == [*["curves"] * 4, *["heatmap"] * 3, Table.kind]
    size = np.sqrt((data.random_derivative**2).mean("draw"))
    np.testing.assert_allclose(data.relative_derivative, data.derivative / size)
    assert data.sizes["row"] == 4 and {"model.layers.0.mlp"} < set(
        data.row_layer.values
    )


def test_random_concepts_are_drawn_from_the_pool_with_as_many_texts(result):
    """The study's cell equals directions fitted to the same draws, one by one."""
    data = (
        result["tcav"]
        .to_dataset()
        .sel(step=50, concept="planted", layer="model.layers.0.mlp")
    )
    model, texts, others = (
        developing(STEPS)[50],
        labelled("planted"),
        labelled("coin", 70, 2),
    )
    need = Activations(LAYERS, None, "mean", None)
    settings = ReadingSettings()
    A, pool = (
        read(model, [need], {"x": inputs}, settings)[need]["model.layers.0.mlp"]
        .double()
        .numpy()
        for inputs in (texts, others)
    )
    rows = LabelledRows.of(texts)
    own = A[rows.train[rows.positive[rows.train]]]
    draws = random_draws(len(pool), len(own), 99)
    pairs = [(own, draws[0][1]), *((pool[first], rest) for first, rest in draws[:3])]
    directions = [
        og.concepts.CAV(intercept=True)
        .fit(np.concatenate([first, pool[rest]]), np.repeat([1, 0], len(own)))
        .direction_
        for first, rest in pairs
    ]
    held = texts.subset(rows.text[rows.test[rows.positive[rows.test]]])
    found = og.capture.directional_derivatives(
        model,
        held,
        "model.layers.0.mlp",
        np.stack(directions).T,
        og.capture.Target("masked"),
    ).derivative.mean("example")[0]
    known = [data.against_derivative, *data.against_random_derivative[:3]]
    np.testing.assert_allclose(np.array(known), found, rtol=1e-4)
    assert float(data.against_texts) == len(own) == 30


def test_a_planted_concept_differs_from_random_concepts_and_a_coin_does_not(result):
    data = result["tcav"].to_dataset()
    assert (data.against_p_corrected.sel(concept="coin") > 0.05).all()
    assert (data.against_p_corrected.sel(concept="planted") <= 0.05).any()
    assert (data.against_p_corrected >= data.against_p_single - 1e-12).all()
    words = " ".join(json.loads(data.attrs["statements"]))
    assert (
        "coin against random texts: 0 of 8 mean derivatives differ from those of 99 "
        in words
    )
    bands = [f.get("bands") for f in json.loads(data.attrs["figures"])]
    labels = [b["label"] for each in bands if each for b in each]
    assert labels == ["shuffled labels"] * 2 + ["random concepts"] * 2


def test_each_concept_may_have_random_texts_of_its_own():
    made = og.observables.make("tcav", layers=LAYERS, on=["a", "b"], random=["c", "d"])
    assert made.pools == ("c", "d")
    assert [n.on for n in made.needs()] == ["a", "a", "b", "b", "c", "d"]
    assert TCAV(LAYERS, on="a").pools == ()
    assert TCAV(LAYERS, on=("a", "b"), random="c").pools == ("c", "c")


def scored(scores):
    """Scores (layer, step) of one concept at steps 0, 10, 20, ..."""
    scores = np.asarray(scores, dtype=float)
    return xr.Dataset(
        {"score": (("concept", "layer", "step"), scores[None])},
        coords={
            "concept": ["c"],
            "layer": [f"l{i}" for i in range(len(scores))],
            "step": 10 * np.arange(scores.shape[1]),
        },
    )


def test_a_layer_without_two_steps_in_a_window_is_left_out_of_the_table_alone():
    scores = np.random.default_rng(0).uniform(size=(3, 6))
    scores[1, :2] = np.nan
    data, tables, words = regime_tables(scored(scores), (0, 20), (30, 50))
    whole = og.dynamics.regime_table(
        scores[[0, 2]], data.step.values, (0, 20), (30, 50)
    )
    np.testing.assert_allclose(data.regime0_early_mean[[0, 2]], whole.early_mean)
    assert np.isnan(data.regime0_early_mean[1]) and np.isnan(
        data.regime0_overall_mean[1]
    )
    assert float(data.regime0_sum_difference) == pytest.approx(
        float(whole.sum_difference)
    )
    assert len(tables) == 1
    assert len(words) == 1
    assert words[0].startswith(
        "c: the two windows do not compare l1: early=(0, 20) holds 1 steps"
    )


def test_a_layer_whose_change_has_no_scale_is_left_out_alone():
    scores = np.random.default_rng(0).uniform(size=(2, 6))
    scores[0] = [0, 0, 0, 1, 1, 1]
    data, tables, words = regime_tables(scored(scores), (0, 20), (30, 50))
    assert np.isnan(data.regime0_early_mean[0]) and np.isfinite(
        data.regime0_early_mean[1]
    )
    assert (
        len(tables) == 1
        and "do not compare l0: the change of l0 has no scale" in words[0]
    )


def test_windows_that_compare_no_layer_give_no_table():
    data, tables, words = regime_tables(scored(np.ones((2, 3))), (0, 10), (15, 30))
    assert tables == [] and "regime0_early_mean" not in data
    assert (
        len(words) == 1
        and "c: the two windows do not compare any layer: late=" in words[0]
    )


def test_the_page_and_the_papers_figures_draw_them(result, tmp_path):
    og.open_study(result.attrs["folder"]).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Labelled concepts: influence (TCAV)" in page and "sigma-aware sum" in page
    assert "cannot be drawn" not in page and "TCAV scores against random texts" in page
    written = og.report.write_figures(result, tmp_path / "figures", formats=())
    names = {path.name for path in written}
    assert {
        "tcav-against-score.csv",
        "tcav-regimes.csv",
        "tcav-regimes.tex",
        "cav-accuracy.csv",
    } <= names


def test_labels_are_asked_for():
    with pytest.raises(ArgumentError, match="need inputs with labels"):
        og.capture.tcav(developing((0, 1))[0], tiny_inputs(), LAYERS)
    texts = og.Inputs.from_tokens([[4, 5]] * 6, mask_token_id=1, labels=[1] * 6)
    with pytest.raises(
        ArgumentError, match=r"two classes; the texts of each class are {1: 6}"
    ):
        og.capture.tcav(developing((0, 1))[0], texts, LAYERS)
    one = og.Inputs.from_tokens([[4, 5], [6, 7]], mask_token_id=1, labels=[0, 1])
    with pytest.raises(ArgumentError, match="every class needs two texts"):
        og.capture.tcav(developing((0, 1))[0], one, LAYERS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tokens": "all"}, "tokens must be one of 'mean', 'last', 'cls'"),
        ({"n_random": 0}, "n_random must be a whole number of at least 1"),
        ({"n_refits": 5.0}, "n_refits must be a whole number"),
        (
            {"train_fraction": 1.0},
            "train_fraction must be a finite number above 0 and below 1",
        ),
        ({"solver": "newton"}, "solver must be one of"),
        ({"target": "next"}, "target must be one of"),
        ({"evaluate": "some"}, "evaluate must be one of"),
        ({"early": (5, 5)}, "early must be a first and a later last step"),
        (
            {"on": "a", "random": "a"},
            "random must name other texts than the concept's; got 'a'",
        ),
        (
            {"on": ("a", "b"), "random": ("c", "d", "e")},
            "random must be one input set, or one for",
        ),
        (
            {"random": "c", "n_random": 1},
            "n_random must be a whole number of at least 2",
        ),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        TCAV(LAYERS, **options)


def test_study_files_name_both():
    made = og.observables.make("tcav", layers=LAYERS, on=["a", "b"], early=[0, 10])
    assert made.concepts == ["a", "b"] and made.early == (0, 10)
    assert og.observables.make("cav", layers=LAYERS).concepts == ["inputs"]


def with_first_token(texts=30):
    """The same with a special first token, which no masked position can be."""
    plain = labelled("coin", texts=texts)
    rows = [
        np.append(2, row[mask]) for row, mask in zip(plain.ids, plain.mask, strict=True)
    ]
    return og.Inputs.from_tokens(
        rows, special_ids=[2], mask_token_id=1, labels=plain.labels
    )


def test_layers_that_reach_no_target_fail_alone(tmp_path):
    """The last block's first token reaches no masked position; other layers keep their scores."""
    trajectory = record(developing((0, 50)), tmp_path / "run")
    watched = TCAV(
        ["model.layers.*"],
        tokens="cls",
        target="masked",
        n_random=9,
        n_refits=2,
        intercept=True,
    )
    tree = og.Study(trajectory, {"coin": with_first_token()}, [watched]).run(
        tmp_path / "s"
    )
    data = tree["tcav"].to_dataset()
    assert (
        np.isfinite(data.score.isel(layer=0)).all()
        and np.isnan(data.score.isel(layer=-1)).all()
    )
    assert "does not depend on the tokens" in str(
        data.status.isel(layer=-1, step=0).values
    )
    og.open_study(tmp_path / "s").report(tmp_path / "page.html")


def test_one_model_says_which_layer_reaches_no_target():
    with pytest.raises(ArgumentError, match=r"moved in model\.layers\.1"):
        og.capture.tcav(
            developing((0, 1))[0],
            with_first_token(),
            "model.layers.1",
            target="masked",
            tokens="cls",
            n_random=3,
            n_refits=2,
            cav=og.concepts.CAV(intercept=True),
        )


def test_the_best_accuracy_is_named_with_its_own_layer_and_step():
    """Two equal maxima in different layers and steps must not be mixed."""
    accuracy = np.array([[0.6, 0.9], [0.9, 0.6]])
    data = xr.Dataset(
        {
            "accuracy": (("concept", "layer", "step"), accuracy[None]),
            "p_corrected": (("concept", "layer", "step"), np.full((1, 2, 2), 0.01)),
            "lasting_step": (("concept", "layer"), np.zeros((1, 2))),
        },
        coords={"concept": ["c"], "layer": ["a", "b"], "step": [0, 5]},
    )
    assert OF_STEPS.fill(_readable(data)[0]).endswith("0.90 in a at step 5.")


def test_nothing_that_could_be_measured_is_said_so():
    nothing = np.full((1, 1, 2), np.nan)
    axes = ("concept", "layer", "step")
    data = xr.Dataset(
        {
            "p_corrected": (axes, nothing),
            "random_score": ((*axes, "draw"), nothing[..., None]),
        },
        coords={"concept": ["c"], "layer": ["a"], "step": [0, 5]},
    )
    assert [*map(OF_STEPS.fill, significant(data))] == [
        "c: no layer has a score at any step."
    ]
    assert (
        OF_STEPS.fill(_passing(data.sel(concept="c")))
        == "no layer has an accuracy at any step."
    )


def test_each_count_of_significant_values_is_of_those_that_are_known():
    axes = ("concept", "layer", "step")
    known, gap = np.array([[[0.01, 0.5]]]), np.array([[[0.01, np.nan]]])
    data = xr.Dataset(
        {
            "p_corrected": (axes, known),
            "derivative_p_corrected": (axes, gap),
            "against_p_corrected": (axes, np.full((1, 1, 2), np.nan)),
            "random_score": ((*axes, "draw"), np.full((1, 1, 2, 3), 0.5)),
        },
        coords={"concept": ["c"], "layer": ["a"], "step": [0, 5]},
    )
    (words,) = significant(data)
    assert words.startswith("c: 1 of 2 scores and 1 of 1 mean derivatives ")
