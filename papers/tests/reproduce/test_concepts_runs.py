"""Recipes of the report on runs: judges on planted nodes, and tiny runs end to end."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.observables import (
    TCAV,
    ConceptDirections,
    ConceptPlane,
    Concepts,
    EncoderDynamics,
    JointConcepts,
    TransformDynamics,
)
from ontogeny.training.run import RunSettings
from ontogeny_papers import reproduce
from ontogeny_papers.reproduce.concepts import (
    ConceptSize,
    MaskedRun,
    correlations,
    dimension,
    encoders,
    labelled,
    labelled_texts,
    plane,
    printed,
    transforms,
)
from ontogeny_papers.reproduce.semantics.births import BirthSize

STEPS = np.arange(0, 110, 10)
RUN = MaskedRun(
    RunSettings(
        steps=8,
        tokens_per_step=64,
        length=16,
        vocab_size=280,
        layers=1,
        width=16,
        heldout=0.3,
    ),
    checkpoints=5,
)


def answers(verdicts):
    return [v.holds for v in verdicts]


# ---- figure 9 -----------------------------------------------------------------------------------


def encoder_node(fall, control=None, test_fitted=0.01):
    """Return a node whose KL falls along `fall` and whose correlation rises as it does."""
    fall = np.asarray(fall, dtype=float)
    control = (
        np.ones((1, len(STEPS)))
        if control is None
        else np.asarray(control, float)[None]
    )
    metrics = list(encoders._METRICS)

    def table(kl):
        every = np.stack(
            [1 - kl if m == "correlation" else kl for m in metrics], axis=-1
        )
        both = np.stack([every, every + test_fitted], axis=-1)
        return np.moveaxis(both[..., None, :, :], 0, 0)

    dims = ("step", "layer", "metric", "codes")
    return xr.Dataset(
        {
            "comparison": (dims, table(fall)),
            "comparison_control": (
                ("run", *dims),
                np.stack([table(c) for c in control]),
            ),
            "comparison_shuffled": (("draw", *dims), np.ones((1, len(STEPS), 1, 4, 2))),
            "half_step": ("row", [50.0]),
        },
        coords={
            "step": STEPS,
            "metric": metrics,
            "codes": ["train-fitted", "test-fitted"],
        },
        attrs={"reference_step": 100},
    )


def concept_node(frobenius, procrustes):
    both = np.stack([frobenius, procrustes], axis=-1)[:, None, :, None].astype(float)
    return xr.Dataset(
        {"relative_distance": (("step", "layer", "distance", "alignment"), both)},
        coords={
            "step": STEPS,
            "distance": ["frobenius", "procrustes"],
            "alignment": ["as returned"],
        },
    )


def judged_9(fall, control=None, frobenius=None, procrustes=None, **how):
    line = np.linspace(1, 0, len(STEPS))
    zigzag = line + 0.3 * (np.arange(len(STEPS)) % 2)
    concepts = concept_node(
        zigzag if frobenius is None else frobenius,
        zigzag if procrustes is None else procrustes,
    )
    found = {
        "encoder-dynamics-ica": {"a": [encoder_node(fall, control, **how)] * 2},
        "concepts-ica": {"a": [concepts] * 2},
    }
    return answers(encoders.judge(found))


@pytest.mark.parametrize(
    ("exponential", "ruled_out", "holds"), [(1.0, 0.0, True), (0.0, 1.0, False)]
)
def test_encoders_decay_exponentially_where_other_shapes_do_not_fit(
    exponential, ruled_out, holds
):
    node = xr.Dataset(
        {
            "exponential": ("layer", [exponential]),
            "ruled_out": ("layer", [ruled_out]),
            "r2": ("layer", [0.9]),
            "r2_of": (("layer", "model"), [[0.9, 0.8]]),
        },
        {"model": ["exponential", "power"]},
    )
    found = {"encoder-dynamics-ica-fits": {"a": [node] * 2}}
    assert encoders._decays(found).holds is holds
    assert encoders._decays({}).certainty.value == "not tested"


def test_encoders_converge_early_and_smoothly_only_where_controls_do_not():
    line, early = np.linspace(1, 0, 11), np.r_[1, 0.1, np.linspace(0.05, 0, 9)]
    assert judged_9(early) == [True] * 6 + [None]
    assert judged_9(line)[1] is False
    assert judged_9(early, control=early)[:2] == [None] * 2
    # As smooth without encoders.
    assert judged_9(line, procrustes=line)[2:5] == [None] * 3
    assert judged_9(line, frobenius=line)[2:5] == [False] * 3
    assert judged_9(line, test_fitted=0.5)[5] is False
    assert True not in judged_9(np.full(11, np.nan))
    unknown = np.full(11, np.nan)
    # No number beside the claim.
    assert judged_9(early, control=unknown)[:2] == [None] * 2
    assert judged_9(line, procrustes=unknown)[2:4] == [None] * 2


# ---- figure 12 ----------------------------------------------------------------------------------


def transform_node(linear=0.1, plain=1.0, late=0.5, refit=1.0, condition=None):
    steps = len(STEPS)
    error = np.stack([np.full(steps, v) for v in (linear, plain, plain, plain)])[None]
    error = error * np.linspace(2, 1, steps)  # falls as training goes on
    velocity = np.r_[np.full(8, 2.0), np.full(3, late)]
    dims = ("layer", "matching", "step")
    condition = np.linspace(2, 1, steps) if condition is None else condition
    return xr.Dataset(
        {
            "codes_error": (("layer", "mapping", "step"), error),
            "condition": (("layer", "step"), condition[None]),
            "velocity": (dims, velocity[None, None]),
            "velocity_refit_high": (dims, np.full((1, 1, steps), refit)),
            "normalised": (dims, np.linspace(0, 1, steps)[None, None]),
            "normalised_refit_high": (dims, np.linspace(0, 1, steps)[None, None]),
        },
        coords={
            "step": STEPS,
            "layer": ["a"],
            "matching": ["matched"],
            "mapping": ["linear map", "rotation", "matched only", "as returned"],
        },
    )


def judged_12(**how):
    runs = {"concepts-ica-transforms": {"a": [transform_node(**how)] * 2}}
    return answers(transforms.judge(transforms.with_planted(runs)))


def test_transforms_carry_codes_and_stand_still_late_where_that_is_planted():
    assert judged_12() == [
        True,
        None,  # any matrix of random numbers has an inverse
        False,  # T⁻¹, on planted pairs
        None,  # the error without a map follows the condition number as well
        None,  # a sum of lengths
        None,  # a falling learning rate stills a run that learns nothing as well
    ]
    assert judged_12(linear=3.0)[0] is False
    assert judged_12(condition=np.full(11, 1e15))[1] is False
    assert judged_12(late=2.0)[5] is False
    assert judged_12(refit=np.nan)[5] is None
    assert judged_12(condition=np.linspace(1, 2, 11))[3] is False


# ---- figure 11 ----------------------------------------------------------------------------------


def path_node(kind, noise=1e-3):
    """Return concepts (step, layer, feature, concept) on a line, an arc or a random walk."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 21)[:, None, None]
    a, b, c = rng.standard_normal((3, 1, 40, 3))
    W = {
        "line": c + t * a,
        "arc": c + np.cos(2 * np.pi * t) * a + np.sin(2 * np.pi * t) * b,
        "walk": c + 0.2 * rng.standard_normal((21, 40, 3)).cumsum(axis=0),
    }[kind]
    refit = W + np.sqrt(2) * noise * rng.standard_normal(W.shape)
    dims = ("step", "layer", "feature", "concept")
    return xr.Dataset(
        {"dictionary": (dims, W[:, None]), "refit_dictionary": (dims, refit[:, None])},
        coords={"step": np.arange(21), "layer": ["a"], "feature": np.arange(40)},
    )


def path_runs(*nodes):
    return plane.with_paths({"x": {"a": nodes}})["x"]["a"]


def test_a_path_is_curved_only_beyond_noise_and_random_walks():
    two = {kind: path_runs(*[path_node(kind)] * 2) for kind in ("line", "walk")}
    assert plane._curved(two["line"], "x").holds is False
    assert plane._curved(two["walk"], "x").holds is None
    share = plane._straightness(path_node("arc"), 0)
    assert share[0] == pytest.approx(0.5, abs=0.1) and share[1] > 0.9
    bare = path_node("line").drop_vars("refit_dictionary")
    assert plane._beyond_refits(path_runs(bare), "x").holds is None
    noisy = path_runs(path_node("line", noise=3.0))
    assert plane._beyond_refits(noisy, "x").holds is None
    assert plane._beyond_refits(path_runs(path_node("line")), "x").holds is True


# ---- figure 14 ----------------------------------------------------------------------------------


def correlated_node(seed):
    """Return curves of two distances and two correlations, with one thing that is not judged."""
    rng = np.random.default_rng(seed)
    fall = np.linspace(1, 0, 12)[:, None, None, None] + 0.1 * rng.standard_normal(
        (12, 2, 2, 2)
    )
    dims = ("step", "layer")
    return xr.Dataset(
        {
            "relative_distance": ((*dims, "distance", "alignment"), fall),
            "correlation_to_reference": ((*dims, "correlation", "alignment"), 1 - fall),
            "internal_correlation": (dims, 1 - fall[..., 0, 0]),
            "dictionary": ("step", np.arange(12)),
        },
        coords={
            "step": np.arange(12),
            "layer": ["a", "b"],
            "distance": ["frobenius", "cka"],
            "correlation": ["columnwise", "optimal"],
            "alignment": ["as returned", "matched"],
        },
        attrs={"reference_step": 11},
    )


def test_curves_that_are_not_judged_change_no_sentence_on_correlations():
    runs = [correlated_node(seed) for seed in range(3)]
    found = {
        f"concepts-{key}": {"a": runs} for key in ("ica", "convex-nmf", "dictionary")
    }
    less = correlations.with_curves(found)
    (one, *_) = less["concepts-ica"]["a"]
    assert one.distance.values.tolist() == ["frobenius"] and "dictionary" not in one
    assert correlations.three_kinds(less) == correlations.three_kinds(found)


# ---- table 3 ------------------------------------------------------------------------------------


def dimension_node(early, late, p=0.5):
    return xr.Dataset(
        {
            "checkpoint_early": ("layer", [early]),
            "checkpoint_late": ("layer", [late]),
            "checkpoint_change": ("layer", [late - early]),
            "p_change": ("layer", [p]),
            "step_dimension": (("step", "layer"), [[early], [late]]),
            "step_dimension_null": (("layer", "draw"), [[30.0, 31.0]]),
        }
    )


def test_a_dimension_that_rises_does_not_fall_and_a_fall_needs_a_control():
    nan = np.nan
    for early, late, p, said in (
        (10.0, 12.0, 0.5, False),
        (12.0, 10.0, 0.5, None),
        (12.0, 10.0, 0.01, None),
        (nan, nan, nan, None),
    ):
        assert (
            dimension._falls([dimension_node(early, late, p)] * 2, "ica").holds == said
        )


@pytest.mark.parametrize(
    ("averaged", "holds"),
    [((5.0, 4.0), True), ((13.0, 12.0), False), ((5.0, 12.0), False)],
)
def test_an_average_lowers_a_dimension_in_both_halves_of_every_seed(averaged, holds):
    dims, names = ("average", "estimator"), (["unaligned"], ["regression"])
    means = {
        f"{when}_mean": (dims, [[value]])
        for when, value in zip(("early", "late"), averaged, strict=True)
    }
    node = dimension_node(12.0, 10.0).assign(means)
    node = node.assign_coords(dict(zip(dims, names, strict=True)))
    found = {"concepts-ica-table-3-dimension": {"a": [node] * 2}}
    assert dimension._lowers(found, ["ica"]).holds is holds
    unknown = node.assign(checkpoint_early=node.checkpoint_early * np.nan)
    found = {"concepts-ica-table-3-dimension": {"a": [unknown] * 2}}
    assert dimension._lowers(found, ["ica"]).certainty.value == "not tested"


def test_the_dimension_of_an_svd_dictionary_is_that_of_its_spectrum():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((30, 12)))[0] * np.linspace(3, 1, 12)
    dims = ("step", "layer", "feature", "concept")
    node = xr.Dataset({"dictionary": (dims, U[None, None])}, coords={"layer": ["a"]})
    node = dimension._with_spectrum(node, np.random.default_rng(0))
    assert dimension._of_spectrum([node]).holds is False


# ---- figure 10 ----------------------------------------------------------------------------------


def test_printed_sums_are_those_of_the_cells_up_to_rounding():
    scores = printed.measure(printed.Cells(), None).numbers[0]
    tables = {name: printed._table(scores, name) for name in ("syntactic", "semantic")}
    assert float(tables["syntactic"].sum_difference) == pytest.approx(0.140)
    assert float(tables["semantic"].sum_difference) == pytest.approx(-0.126)
    assert float(tables["syntactic"].sigma_aware_sum) == pytest.approx(0.118, abs=5e-4)
    assert float(tables["semantic"].sigma_aware_sum) == pytest.approx(-0.289, abs=5e-4)
    assert [int(t.improving) for t in tables.values()] == [6, 7]
    assert printed._printed_sums(scores).holds is True
    assert printed._printed_caption(scores).holds is False
    exchanged = scores.assign_coords(concept=scores.concept[::-1].values)
    assert printed._printed_sums(exchanged).holds is False
    assert printed._printed_caption(exchanged).holds is True


def test_printed_rises_are_counted_in_the_cells():
    scores = printed.measure(printed.Cells(), None).numbers[0]
    assert printed._printed_rises(scores).holds is True
    assert printed._printed_rises(cells()).holds is False


def cells(**numbers):
    """Return cells of two concepts and 11 layers: 0.5 with deviations of 0.1, but for these."""
    names = ("first", "first_sd", "second", "second_sd")
    usual = dict(zip(names, (0.5, 0.1, 0.5, 0.1), strict=True)) | numbers
    data = {
        name: (("concept", "layer"), np.broadcast_to(np.asarray(x, float), (2, 11)))
        for name, x in usual.items()
    }
    return xr.Dataset(data, {"concept": ["syntactic", "semantic"]})


def test_printed_cells_are_noisier_and_gain_beyond_what_a_coin_gives():
    most = np.where(np.arange(11) < 9, 0.2, 0.05)
    assert printed._noisier(cells(second_sd=most)).holds is True
    assert printed._noisier(cells(second_sd=0.25 - most)).holds is False
    half = np.where(np.arange(11) % 2, 0.2, 0.05)
    assert printed._noisier(cells(second_sd=half)).holds is None
    syntax = np.array([[0.6], [0.4]])
    assert printed._gain_of_syntax(cells(second=syntax)).holds is True
    assert printed._gain_of_syntax(cells(second=1 - syntax)).holds is False
    both = np.where(np.arange(11) % 2, 0.6, 0.4)
    assert printed._gain_of_syntax(cells(second=both)).holds is None


def test_printed_means_are_those_of_the_cells_up_to_rounding():
    pairs = np.moveaxis(np.array(list(printed._DIMENSIONS.values())), -1, 0)
    first, second = ((("extractor", "layer"), pair) for pair in pairs)
    table = xr.Dataset({"first": first, "second": second})
    assert printed._printed_means(table).holds is True
    assert printed._printed_means(table + 0.02).holds is False


def texts(count):
    return [
        f"The {'river' if i % 2 else 'mountain'} number {i} is long and wide. "
        f"People walk by the {'river' if i % 2 else 'stone'} on warm day {i} of the year."
        for i in range(count)
    ]


TEXTS = texts(30)


def test_labels_leave_out_the_topic_and_swap_two_words():
    topic, found = labelled_texts.of_topic(TEXTS, 20, 0)
    assert topic == "mountain" and len(found.texts) == 20 and sum(found.labels) == 10
    assert not any("mountain" in text for text in found.texts)
    assert all(
        (i % 2 == 0) == bool(y)
        for i, y in zip(found.documents, found.labels, strict=True)
    )
    order = labelled_texts.of_word_order(TEXTS, 20, 0)
    whole = {" ".join(words) for _, words in labelled_texts.sentences(TEXTS)}
    for text, label in zip(order.texts, order.labels, strict=True):
        assert (text in whole) == bool(label)
        assert any(sorted(text.split()) == sorted(s.split()) for s in whole)
    assert labelled_texts.of_word_order(TEXTS, 20, 0) == order
    with pytest.raises(ArgumentError, match="share a word of at least 5 letters"):
        labelled_texts.topic_word(["a b", "c d"])
    with pytest.raises(ArgumentError, match="two sentences of 6 to 18 words"):
        labelled_texts.of_word_order(["one two"], 4, 0)


def score_node(shift):
    """Return scores that rise by `shift` of the syntactic concept, and none for shuffles."""
    steps = np.arange(0, 481, 20)
    rng = np.random.default_rng(0)
    base = 0.5 + 0.01 * rng.standard_normal((2, 3, len(steps)))
    base[1, :, steps > 240] += shift
    dims = ("concept", "layer", "step")
    noise = 0.5 + 0.01 * rng.standard_normal((20, 2, 3, len(steps)))
    return xr.Dataset(
        {"score": (dims, base), "random_score": (("draw", *dims), noise)},
        coords={
            "concept": ["semantic", "syntactic"],
            "layer": list("abc"),
            "step": steps,
        },
    )


def test_a_gain_counts_beyond_that_of_shuffled_labels():
    assert labelled._syntactic_gains([score_node(0.3)] * 2).holds is True
    assert labelled._syntactic_gains([score_node(-0.3)] * 2).holds is False
    short = [score_node(0.3).isel(step=slice(0, 2))]
    assert labelled._syntactic_gains(short).holds is None


def test_what_shuffled_labels_do_as_well_is_no_finding():
    """The schedule of a training makes all directions noisier, or their scores rise, alike."""
    same = score_node(0.3)
    same.score[0] += 0.3 * (same.step > 240)
    assert labelled._improving([same] * 2).holds is True
    alike = same.assign(
        random_score=same.random_score + (same.score - same.score.mean("step"))
    )
    rises = labelled._improving([alike] * 2)
    assert (
        rises.holds is None and "give 12 of them (12 to 12 in 20 draws)" in rises.beside
    )
    assert labelled._noisier([score_node(0.0)] * 2).holds is None


# ---- end to end ---------------------------------------------------------------------------------

OBSERVED = {
    "concepts-figure-9": (
        Concepts("ica", 2),
        EncoderDynamics("ica", 2),
        encoders._SHAPES,
    ),
    "concepts-figure-11": tuple(
        observable
        for name in plane._EXTRACTORS
        for observable in (Concepts(name, 2), ConceptPlane(f"concepts-{name}"))
    ),
    "concepts-figure-12": (Concepts("ica", 2), TransformDynamics("concepts-ica")),
    "concepts-algorithm-5": (),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a text; recipes put their runs there."""
    place = tmp_path_factory.mktemp("concepts")
    (place / "text.txt").write_text("\n\n".join(texts(90)))
    return place


def sized(name):
    recipe = reproduce.recipe(name)
    size = ConceptSize({"EuroBERT": RUN}, (0,), OBSERVED[name], texts=12, max_length=24)
    return dataclasses.replace(recipe, quick=size, controls=1)


@pytest.mark.parametrize("name", OBSERVED)
def test_a_tiny_run_is_trained_studied_and_judged(name, folder):
    page = sized(name).run(folder / "out", quick=True, text=folder / "text.txt")
    verdict = og.open_study(page.parent).result["verdict"]
    assert verdict.sizes["claim"] >= 3 and "Bernas" in page.read_text(encoding="utf-8")


def test_labelled_concepts_are_judged_on_a_tiny_run(folder):
    how = {"on": ("semantic", "syntactic"), "n_random": 3, "n_refits": 1}
    size = labelled.LabelledSize(
        {"EuroBERT": RUN},
        (0,),
        (ConceptDirections("mlp", **how), TCAV("mlp", target="masked", **how)),
        max_length=24,
        sentences=16,
    )
    recipe = dataclasses.replace(
        reproduce.recipe("concepts-figure-10"), quick=size, controls=1
    )
    page = recipe.run(folder / "out", quick=True, text=folder / "text.txt")
    assert og.open_study(page.parent).result["verdict"].sizes["claim"] == 6


def test_births_are_set_beside_the_corpus_of_a_tiny_run(folder):
    """What so small a run learns is no order, and the page says so."""
    concepts = JointConcepts(n_concepts=6, n_active=2, max_tokens=300, examples=2)
    size = BirthSize({"EuroBERT": RUN}, (0,), (concepts,), 40, 24, None, 6, 60, 200, 19)
    recipe = dataclasses.replace(reproduce.recipe("semantics-births"), quick=size)
    page = recipe.run(folder / "out", quick=True, text=folder / "text.txt")
    result = og.open_study(page.parent).result
    assert result["verdict"].certainty.values.tolist() == ["not tested"] * 2
    assert "births" in result.children and "corpus" in page.read_text(encoding="utf-8")


def test_a_recorded_run_stands_in_for_trained_ones(folder):
    sized("concepts-figure-12").run(
        folder / "out", quick=True, text=folder / "text.txt"
    )
    recorded = next((folder / "out" / "runs").iterdir()) / "seed-0"
    for name in ("concepts-figure-12", "concepts-algorithm-5"):
        page = sized(name).run(folder / "given", quick=True, sources=[str(recorded)])
        assert page.is_file() and not (folder / "given" / "runs").exists()
    with pytest.raises(ArgumentError, match="trains its own runs"):
        reproduce.recipe("concepts-table-1").run(
            folder / "given", sources=[str(recorded)]
        )
