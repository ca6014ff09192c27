"""Effects of joint concepts: some that are read, some that nothing reads, rates of the null."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers import family_models
from ontogeny.capture.gradients import gradients as capture_gradients
from ontogeny.concepts.joint.presence import found_again
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.effect_controls import (
    chosen_concepts,
    first_order_bands,
    others_of,
    strengths,
)
from ontogeny.features.concepts.effect_verdicts import claims_of_effects
from ontogeny.observables import ConceptEffects, JointConcepts
from ontogeny.observables.random_directions import p_above, p_beyond, random_directions
from ontogeny.observables.removal import LossAtTokens
from ontogeny.store import read_cell
from ontogeny.study.folder.layout import state_path
from ontogeny.units import Units
from ontogeny.words.sentences import sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import OF_STEPS

N, M, R, USED, TEXT = 720, 16, 12, 2, 12


class Announced(nn.Module):
    """Each token writes its concepts; the head reads the first `USED` to tell the next token.

    Token v comes after token v - 1, and only there. The logit of v falls with the distance of what
    is read to the used concepts of v - 1. The others are written alike, and nothing reads them.
    """

    def __init__(self, activations, head, bias):
        super().__init__()
        self.layers = nn.ModuleList([nn.Embedding.from_pretrained(activations.float())])
        self.read, self.bias = nn.Parameter(head.float()), nn.Parameter(bias.float())

    def forward(self, input_ids):
        return self.layers[0](input_ids) @ self.read + self.bias


def planted(seed=0):
    """Codes (N, R), orthonormal directions (R, M), and the head: weights (M, N), biases (N,)."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((N, R)) < 0.08) * (0.5 + rng.exponential(0.5, (N, R)))
    directions = np.linalg.qr(rng.standard_normal((M, M)))[0][:R]
    head = np.zeros((M, N))
    head[:, 1:] = 4 * directions[:USED].T @ codes[:-1, :USED].T
    return codes, directions, (head, -(head**2).sum(axis=0) / 8)


def models(steps=(0, 1, 2, 3)):
    """The concepts are written from the second checkpoint on."""
    codes, directions, head = planted()
    rng = np.random.default_rng(1)
    found = {}
    for step in steps:
        A = (step > 0) * codes @ directions + 0.03 * rng.standard_normal((N, M))
        found[step] = Announced(torch.from_numpy(A), *map(torch.from_numpy, head))
    return found


def texts():
    return og.Inputs.from_tokens(np.arange(N).reshape(-1, TEXT).tolist(), vocab_size=N)


JOINT = {
    "n_concepts": R,
    "n_active": 1,
    "fit_steps": 4,
    "readable": 0.4,
    "max_tokens": None,
    "examples": 0,
}
OWN = {"max_tokens": None, "n_removed": R, "n_draws": 8, "objective": "causal"}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("effects") / "s"
    observables = [
        JointConcepts("layers.0", **JOINT),
        ConceptEffects("joint-concepts", "layers.0", **OWN),
    ]
    study = og.Study(
        og.Trajectory.from_models(models()), texts(), observables, device="cpu", noise=2
    )
    tree = study.run(folder)
    assert tree.attrs["problems"] == "[]"
    return folder, tree


@pytest.fixture(scope="module")
def node(result):
    return result[1]["concept-effects"].to_dataset().sel(layer="layers.0")


@pytest.fixture(scope="module")
def codes(result):
    """The codes of the study, (N, R)."""
    state = read_cell(state_path(result[0], "joint-concepts")).data
    return state.codes.sel(layer="layers.0").values


@pytest.fixture(scope="module")
def truth(codes):
    """Which planted concept each latent is."""
    cross = np.corrcoef(codes.T, planted()[0].T)[:R, R:]
    assert (cross.max(axis=1) > 0.9).all() and len(set(cross.argmax(axis=1))) == R
    return cross.argmax(axis=1)


def numpy_model(step):
    """Activations of the texts, gold losses (N,) by activations, and who predicts."""
    model = models()[step]
    A = model.layers[0].weight.detach().double().numpy()
    head, bias = (p.detach().double().numpy() for p in (model.read, model.bias))
    predicts = np.arange(N) % TEXT < TEXT - 1
    gold = np.minimum(np.arange(N) + 1, N - 1)

    def losses(values):
        logits = values @ head + bias
        peak = logits.max(axis=1)
        found = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1))
        return np.where(predicts, found - logits[np.arange(N), gold], 0.0)

    return A, losses, predicts.sum()


def decoders(codes, A):
    centred = codes - codes.mean(axis=0)
    return np.linalg.lstsq(centred, A - A.mean(axis=0), rcond=None)[0]


def test_a_concept_that_is_read_matters_and_one_that_is_not_costs_nothing(node, truth):
    used = truth < USED
    verdict = node.verdict.values.astype(str)
    assert node.removed_concept.values.tolist() == list(range(R))
    assert (verdict[used] == "matters").all(), verdict
    assert (verdict[~used] == "costs no more than chance").all(), verdict
    cost = node.judged_removed.values
    assert cost[used].min() > 20 * abs(cost[~used]).max()
    assert (node.matters_from.values[used] > 0).all()  # nothing is written at step 0
    assert np.isnan(node.matters_from.values[~used]).all()
    assert int(node.n_matter) == USED and int(node.n_judged) == R


def test_effects_are_those_of_the_formula(node, codes):
    for step in (1, 3):
        A, losses, count = numpy_model(step)
        D = decoders(codes.astype(float), A)
        whole = losses(A).sum()
        exact = [
            (losses(A - np.outer(codes[:, j], D[j])).sum() - whole) / count
            for j in range(R)
        ]
        found = node.sel(step=step)
        np.testing.assert_allclose(found.removed.values, exact, rtol=1e-3, atol=2e-6)
        size = 1e-4
        ends = [
            [
                losses(A - sign * size * np.outer(codes[:, j], D[j])).sum()
                for j in range(R)
            ]
            for sign in (-1, 1)
        ]
        slope = (np.array(ends[1]) - np.array(ends[0])) / (2 * size) / count
        np.testing.assert_allclose(found.effect.values, slope, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(found.first_order.values, found.effect.values)


def test_noise_is_over_texts_and_shares_add_up_to_one(node, codes):
    A, losses, _ = numpy_model(3)
    D, j = decoders(codes.astype(float), A), 0
    of_text = (
        (losses(A - np.outer(codes[:, j], D[j])) - losses(A))
        .reshape(-1, TEXT)
        .sum(axis=1)
    )
    expected = of_text.std(ddof=1) / np.sqrt(len(of_text)) / (TEXT - 1)
    assert float(node.removed_stderr.sel(step=3)[j]) == pytest.approx(
        expected, rel=1e-3
    )
    np.testing.assert_allclose(abs(node.relative_effect).sum("step"), 1.0)
    assert float(node.share) == 1.0


def test_what_the_page_draws_and_says(result, node):
    data = result[1]["concept-effects"].to_dataset()
    figures = {figure["id"] for figure in json.loads(data.attrs["figures"])}
    assert {"relative-effects", "removed", "first-order", "verdicts"} <= figures
    [sentence] = [
        one.text
        for one in sentences(claims_of_effects("effects", data), OF_STEPS, Names())
    ]
    assert sentence.startswith(f"{USED} of {R} concepts removed from layers.0 matter: ")
    assert "by chance (concept " in sentence
    assert node.relative_line.sizes == {"line": node.sizes["line"], "step": 4}
    og.open_study(result[0]).report(result[0] / "page.html")


def toy(step=3, seed=0):
    """A loss of the toy model at all of its tokens, with its activations."""
    model = models()[step]
    reading = capture_gradients(model, og.needs.Gradients("next-token"), {"t": texts()})
    at = LossAtTokens(reading, texts().sample(), "causal")
    return at, model.layers[0].weight.detach().numpy()


@pytest.mark.slow
def test_permuted_codes_exceed_the_controls_at_most_at_the_stated_rate():
    at, A = toy()
    codes, directions, _ = planted()
    rng, weights, units = (
        np.random.default_rng(5),
        at.tokens.astype(float),
        Units(np.arange(N // TEXT)),
    )
    per_token = 1 / np.maximum(weights, 1)
    below = {"random": 0, "other": 0}
    trials, draws = 40, 6
    others = others_of(codes, draws)
    size = strengths(codes)
    for trial in range(trials):
        j = trial % R
        order = rng.permutation(N)

        def cost(u, d):
            return at.removed("layers.0", u, d) * per_token

        own = cost(codes[order, j], directions[j])
        random = [
            cost(codes[order, j], d) for d in random_directions(A, draws, [trial])
        ]
        other = [
            cost(codes[:, k] * size[j] / size[k], directions[j]) for k in others[j]
        ]
        for name, drawn in (("random", random), ("other", other)):
            below[name] += p_above(own, np.stack(drawn), weights, units) <= 0.05
    # Binomial(40, .05) exceeds 6 with probability .003.
    assert below["random"] <= 6 and below["other"] <= 6, below


@pytest.mark.parametrize("p_value", [p_above, p_beyond])
def test_the_test_keeps_its_level_on_exchangeable_draws(p_value):
    rng, texts_, k = np.random.default_rng(0), 60, 6
    units, weights = Units(np.arange(texts_)), np.ones(texts_)
    hits = 0
    for _ in range(2000):
        level = rng.normal(size=(k + 1, 1))
        values = level + rng.normal(size=(k + 1, texts_))
        hits += p_value(values[0], values[1:], weights, units) <= 0.05
    assert hits / 2000 <= 0.06


def test_what_costs_nothing_costs_no_more_than_what_helps():
    rng, units = np.random.default_rng(0), Units(np.arange(30))
    texts = 0.1 * rng.normal(size=(5, 30))
    others = np.array([-3.0, -3.1, -2.9, -3.0])[:, None] + texts[1:]
    assert p_above(texts[0] - 1.0, others, np.ones(30), units) > 0.5
    assert p_above(texts[0], others, np.ones(30), units) > 0.2
    assert p_above(texts[0] + 1.0, others, np.ones(30), units) < 1e-3


def test_a_single_text_gives_no_verdict():
    values = np.ones((4, 1))
    assert p_above(np.array([99.0]), values, np.ones(1), Units(np.arange(1))) == 1.0


def test_bands_are_what_single_removals_give_to_first_order():
    rng = np.random.default_rng(0)
    codes = (rng.random((300, 4)) < 0.2) * rng.exponential(size=(300, 4))
    gradients, D, A = (
        rng.normal(size=(300, 5)),
        rng.normal(size=(4, 5)),
        rng.normal(size=(300, 5)),
    )
    directions, others = random_directions(A, 40, [0]), others_of(codes, 3)
    bands = first_order_bands(codes, gradients, D, directions, others)
    size = strengths(codes)
    random = [-codes[:, 1] @ gradients @ (np.linalg.norm(D[1]) * d) for d in directions]
    other = [-codes[:, k] @ gradients @ D[1] * size[1] / size[k] for k in others[1]]
    np.testing.assert_allclose(bands.random[:, 1], np.quantile(random, [0.025, 0.975]))
    np.testing.assert_allclose(bands.other[:, 1], np.quantile(other, [0.025, 0.975]))


def test_random_directions_have_the_covariance_of_the_activations():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 3)) * [5.0, 1.0, 0.0] + 7
    drawn = random_directions(A, 4000, [3])
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0)
    assert abs(drawn[:, 2]).max() < 1e-10 and abs(drawn.mean(axis=0)).max() < 0.05
    assert (drawn[:, 0] ** 2).mean() > 0.7


def test_others_fire_as_often_and_elsewhere():
    rng = np.random.default_rng(0)
    codes = np.zeros((1000, 5))
    for j, share in enumerate((0.1, 0.11, 0.1, 0.4, 0.0)):
        codes[rng.permutation(1000)[: int(1000 * share)], j] = 1.0
    codes[:, 2] = codes[:, 0]  # the same tokens
    assert others_of(codes, 2)[0].tolist() == [1, 3]
    assert others_of(codes, 3)[0].tolist() == [1, 3, 2]
    with pytest.raises(ArgumentError, match=r"n_draws=4 other concepts.* 4 do"):
        others_of(codes, 4)


def test_the_strongest_that_are_found_again_are_removed():
    rng = np.random.default_rng(0)
    codes = rng.exponential(size=(200, 4))
    other = np.stack([rng.exponential(size=200), codes[:, 3], codes[:, 1]], axis=1)
    again = found_again(codes, other)[0]
    D = np.diag([9.0, 1.0, 5.0, 2.0])
    assert chosen_concepts(codes, again, D, 1).tolist() == [3]
    assert chosen_concepts(codes, again, D, 2).tolist() == [1, 3]
    assert chosen_concepts(codes, again, D, 3).tolist() == [0, 1, 3]


FIRST = {
    "gpt2": "h.0.mlp",
    "llama": "layers.0.mlp",
    "bert": "layer.0.output",
    "eurobert": "layers.0.mlp",
}


def study_of(family, **shared):
    trajectory = og.Trajectory.from_models(
        {s: family_models.build(family, s) for s in range(3)}
    )
    inputs = family_models.inputs_of((12, 19, 8, 17, 9, 14), "left")
    observables = [
        JointConcepts(n_concepts=8, n_active=2, fit_steps=2, examples=0, **shared),
        ConceptEffects(n_removed=2, n_draws=3, **shared),
    ]
    return og.Study(trajectory, inputs, observables, device="cpu", noise=1), inputs


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FIRST))
def test_families_of_models(family, tmp_path):
    study, inputs = study_of(family, layers=FIRST[family], max_tokens=60)
    tree = study.run(tmp_path / "s")
    assert tree.attrs["problems"] == "[]"
    data = tree["concept-effects"].to_dataset()
    assert data.removed.notnull().all() and data.effect.notnull().all()
    assert data.removed.sizes == {"step": 3, "layer": 1, "removal": 2}
    share = 60 / inputs.ordinary.sum()
    assert (data.share <= share).all()
    # Not behind masks.
    assert (data.share < share).all() == (family in ("bert", "eurobert"))


@pytest.mark.slow
def test_the_last_layer_of_a_masked_model_takes_codes_of_masked_tokens(tmp_path):
    study, _ = study_of("eurobert", layers="layers.1.mlp", max_tokens=60)
    tree = study.run(tmp_path / "all")
    assert tree.attrs["problems"] == "[]"
    node = tree["concept-effects"].to_dataset()
    assert (node.depends == 0).all() and "removed" not in node and "verdict" not in node
    [claim] = claims_of_effects("effects", node)
    assert (claim.subject.quantity, claim.subject.layer) == (
        "depends",
        "model.layers.1.mlp",
    )
    study, _ = study_of(
        "eurobert", layers="layers.1.mlp", max_tokens=None, tokens="masked"
    )
    node = study.run(tmp_path / "masked")["concept-effects"].to_dataset()
    assert (abs(node.removed) > 0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_removed": 0}, "n_removed must be a whole number of at least 1"),
        ({"n_draws": 2}, "n_draws must be a whole number of at least 3"),
        ({"tokens": "mean"}, "tokens must be one of"),
        ({"objective": "class"}, "objective must be one of"),
        (
            {"tokens": "masked", "objective": "causal"},
            "tokens='masked' needs a loss of masked",
        ),
        ({"tokens": "masked", "mask_fraction": 0.3}, "mask_fraction must be 0.15 with"),
    ],
)
def test_arguments_out_of_range_are_named(given, message):
    with pytest.raises(ArgumentError, match=message):
        ConceptEffects(**given)


@pytest.mark.parametrize(
    ("other", "own", "message"),
    [
        (
            JointConcepts(max_tokens=99),
            {},
            "max_tokens of concept-effects must be that of joint-c",
        ),
        (
            JointConcepts(layers="x"),
            {},
            "layers of concept-effects must be that of joint-concepts",
        ),
        (
            JointConcepts(n_concepts=8),
            {"n_removed": 9},
            "n_removed must be at most the 8 concepts",
        ),
        (
            JointConcepts(n_concepts=8),
            {"n_draws": 8},
            "n_draws must be less than the 8 concepts",
        ),
        (
            og.observables.Loss(label="joint-concepts"),
            {},
            "needs a node of kind joint-concepts or learned-concepts",
        ),
    ],
)
def test_a_study_without_fitting_codes_is_refused(other, own, message):
    with pytest.raises(ArgumentError, match=message):
        ConceptEffects(**own).check_nodes({"joint-concepts": other})


def test_a_study_without_joint_concepts_is_refused():
    with pytest.raises(ArgumentError, match="joint-concepts"):
        og.Study(
            og.Trajectory.from_models(models()),
            texts(),
            [ConceptEffects()],
            device="cpu",
        )


@pytest.mark.slow
def test_a_layer_that_the_loss_does_not_depend_on_leaves_the_others_alone(tmp_path):
    study, _ = study_of("bert", layers="layer.*.output", max_tokens=60)
    tree = study.run(tmp_path / "s")
    node = tree["concept-effects"].to_dataset()
    assert tree.attrs["problems"] == "[]"
    assert node.depends.isel(step=-1).values.tolist() == [1.0, 0.0]
    assert (
        node.effect.isel(layer=0).notnull().all()
        and node.effect.isel(layer=1).isnull().all()
    )
    assert set(node.verdict.isel(layer=1).values.astype(str)) == {""}
