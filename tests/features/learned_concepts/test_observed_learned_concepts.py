"""Studies of a run whose layer comes to write what stands before a token: planted lives, names."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.claims import Certainty
from ontogeny.errors import ArgumentError
from ontogeny.features.learned_concepts import births, lives

VOCABULARY, WIDTH, STEPS = 30, 12, (0, 10, 20, 30, 40, 50, 60, 70)
FROM_START, BORN, FADES = (3, 4), (7, 8), (11, 12)
"""After which ids the layer writes something: always, from step 30 on, until step 50."""


class ContextModel(nn.Module):
    """``out`` gives a row of the token, a direction after some ids, and noise of its own."""

    def __init__(self, strengths):
        super().__init__()
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(VOCABULARY, WIDTH))
        self.words = nn.Embedding.from_pretrained(
            torch.from_numpy(rows).float(), freeze=False
        )
        after = np.zeros((VOCABULARY, WIDTH))
        for ids, strength in zip((FROM_START, BORN, FADES), strengths, strict=True):
            after[list(ids)] = 3 * strength * rng.normal(size=WIDTH)
        self.after = nn.Embedding.from_pretrained(
            torch.from_numpy(after).float(), freeze=False
        )
        self.register_buffer(
            "noise", torch.from_numpy(0.4 * rng.normal(size=(4999, WIDTH))).float()
        )
        self.out = nn.Identity()

    def forward(self, input_ids, attention_mask=None):
        before = torch.cat([input_ids[:, :1], input_ids[:, :-1]], dim=1)
        places = torch.arange(1, input_ids.shape[1] + 1)
        history = (
            31 * input_ids
            + (input_ids * places**2).sum(dim=1, keepdim=True)
            + 997 * places
        )
        noise = self.noise[history % len(self.noise)]
        return self.out(self.words(input_ids) + self.after(before) + noise)


def run(planted=True, steps=STEPS):
    strengths = {s: (1.0, s >= 30, s < 50) if planted else (0, 0, 0) for s in steps}
    return og.Trajectory.from_models({s: ContextModel(strengths[s]) for s in steps})


def inputs():
    return og.Inputs.from_tokens(
        np.random.default_rng(1).integers(0, VOCABULARY, (150, 30))
    )


def observable(**options):
    return og.observables.LearnedConcepts("out", **{"n_concepts": 6, **options})


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    study = og.Study(
        run(),
        inputs(),
        [observable()],
        device="cpu",
        control_runs={"nothing": run(planted=False)},
    )
    return study.run(folder / "study")


@pytest.fixture(scope="module")
def layer(result):
    return result["learned-concepts"].to_dataset().sel(layer="out")


def of(layer, ids):
    """Return the component that answers to places after some ids."""
    label = " · ".join(map(str, sorted(ids)))
    rules = [
        sorted(rule.split("“")[-1].rstrip("”").split(" · "))
        for rule in layer.rule.values
    ]
    beyond = layer.found_in.values == "beyond the token"
    same = [
        i for i, rule in enumerate(rules) if rule == label.split(" · ") and beyond[i]
    ]
    return layer.isel(concept=same[0])  # the first was found at the latest step


def test_planted_lives_have_their_kinds_and_steps(layer):
    born, start, fades = (of(layer, ids) for ids in (BORN, FROM_START, FADES))
    assert born.concept_kind.item() == "born" and float(born.concept_born) == 30
    assert float(born.concept_born_after) < 30 <= float(born.concept_born_before)
    assert start.concept_kind.item() == "from the start" and np.isnan(
        start.concept_gone
    )
    assert float(fades.concept_gone) == 50
    assert float(layer.n_born) == 1 <= float(layer.n_born_high)
    assert layer.fit_step.values.tolist() == [70, 70, 70, 50, 40]
    # Read from whole activations, with the token in them, a code is about what it is.
    assert 0.3 < float(born.raw_agreement[-1]) <= 1


def test_the_token_and_the_learned_share_are_those_that_were_planted(layer):
    model = run()[70].model()
    words, after = model.words.weight.detach(), model.after.weight.detach()
    parts = [float(table.var(0, unbiased=False).sum()) for table in (words, after)]
    noise = float(model.noise.var(0, unbiased=False).sum())
    assert float(layer.token_share[-1]) == pytest.approx(
        parts[0] / (sum(parts) + noise), abs=0.05
    )
    assert np.isnan(layer.learned_share[0])  # nothing by construction
    # Noise and what is there from the start are predicted by the first checkpoint.
    assert float(layer.learned_share.sel(step=20)) < 0.02
    assert 0.1 < float(layer.learned_share[-1]) < parts[1] / (sum(parts) + noise)


def test_the_rule_of_a_component_is_what_was_planted(layer):
    born = of(layer, BORN)
    assert str(born.rule.item()).startswith("after “") and float(born.name_p) < 1e-6
    assert (
        0.9
        < float(born.name_auc_low)
        <= float(born.name_auc)
        <= float(born.name_auc_high)
    )
    assert born.context_text.sel(band="top").min() >= 0


def test_names_are_shown_beyond_chance_and_an_untrained_model_alone(layer):
    limit = np.maximum(layer.name_limit.values, 0.3)
    is_beyond = (layer.name_p.values <= 0.05) & (layer.name_phi.values > limit)
    is_beyond &= (layer.name_auc.values >= 0.6) & (layer.name_middle.values >= 1 / 3)
    is_beyond &= layer.untrained_readability.values < 0.5
    assert ((layer["name"].values != "") == is_beyond).all()
    assert float(layer.n_named) == is_beyond.sum()
    np.testing.assert_array_equal(
        layer.named_phi, np.where(is_beyond, layer.name_phi, 0)
    )


def test_directions_read_and_write_the_component(layer):
    born = of(layer, BORN).sel(step=70)
    model = run()[70].model()
    ids = torch.from_numpy(inputs().ids.copy())
    with torch.no_grad():
        A = model(ids).double().numpy().reshape(-1, WIDTH)
    before = np.concatenate([ids[:, :1], ids[:, :-1]], axis=1).ravel()
    planted = np.isin(before, BORN)
    token = np.stack([A[ids.ravel() == i].mean(axis=0) for i in range(VOCABULARY)])[
        ids.ravel()
    ]
    read = ((A - token) / born.scale.values) @ born.readout.values
    assert np.corrcoef(read, planted)[0, 1] > 0.9
    written = model.after.weight[BORN[0]].double().detach().numpy()
    cosine = (
        born.decoder.values
        @ written
        / np.linalg.norm(born.decoder)
        / np.linalg.norm(written)
    )
    assert cosine > 0.95


def test_controls_stand_beside_the_counts(layer):
    assert float(layer.n_learned) >= 1 and layer.n_learned_control.shape == (1,)
    assert float(layer.n_named_control[0]) <= float(layer.n_named)


@pytest.mark.slow
def test_a_concept_that_a_control_has_as_well_is_known_by_its_codes(tmp_path, layer):
    """A control that is the run itself has each concept; one that learned nothing has none."""
    study = og.Study(
        run(),
        inputs(),
        [observable()],
        device="cpu",
        noise=0,
        control_runs={"same": run(steps=(0, 20, 30, 40, 50, 70))},
    )
    result = study.run(tmp_path / "study", progress=False)
    one = result["learned-concepts"].sel(layer="out")
    born = of(one, BORN)
    assert float(born.control_match.item()) > 0.95
    assert float(born.control_match_born.item()) == 30
    there = one.code_sketch_control.isel(
        run=0, control_concept=int(born.control_match_concept.item())
    )
    assert abs(float(there.values @ born.code_sketch.values)) == pytest.approx(
        float(born.control_match.item()), abs=1e-5
    )
    claims = result.claims()
    (mine,) = claims[(claims["kind"] == "born") & (claims["since"] == 30)]["certainty"]
    assert mine == "as controls"
    page = result.report(tmp_path / "page.html").read_text()
    assert "Control run same has it (correlation" in page and "born at 30 there" in page
    nothing = of(layer, BORN)
    assert float(nothing.control_match.item()) < float(layer.least_match)
    assert np.isnan(nothing.control_match_born.item())


def test_births_follow_from_the_result_alone(layer):
    """Kinds and the interval of a birth are those of the stored curves of all fits."""
    concepts = layer.again.notnull().values
    fits = [
        np.concatenate(
            [
                layer[name].transpose("step", "concept").values[None],
                layer[f"refit_{name}"].transpose("refit", "step", "concept").values,
            ]
        )[..., concepts]
        for name in ("readability", "strength")
    ]
    fitted = np.searchsorted(STEPS, layer.fit_step.values, side="right") - 1
    life = births.lives(births.Curves(*map(np.nan_to_num, fits)), fitted)
    born = life.kind == "born"
    mine = layer.concept_kind.values[concepts] == "born"
    assert mine.any() and (mine <= born).all()
    for name, places in (("after", life.after), ("before", life.before)):
        steps = layer[f"concept_born_{name}"].values[concepts][mine]
        np.testing.assert_array_equal(steps, np.array(STEPS)[places[mine]])


def test_claims_name_kinds_with_certainties(result):
    claims = result.claims()
    mine = claims[claims["node"] == "learned-concepts"]
    born = mine[mine["kind"] == "born"].iloc[0]
    assert born["since"] == 30 and born["certainty"] in ("sure", "as controls")
    assert {"born", "faded", "kept"} <= set(mine["kind"])


def test_a_run_whose_weights_only_grow_has_no_births(tmp_path):
    """What it writes comes out of the noise, as the same weights give where they are larger."""

    def model(size):
        made = ContextModel((1, 1, 1))
        for parameter in made.parameters():
            parameter.data *= size
        return made

    sizes = zip(STEPS, (0.03, 0.03, 0.05, 0.1, 0.3, 0.6, 0.9, 1), strict=True)
    grows = og.Trajectory.from_models({step: model(size) for step, size in sizes})
    study = og.Study(grows, inputs(), [observable(examples=0)], device="cpu")
    result = study.run(tmp_path / "study")
    data = result["learned-concepts"].sel(layer="out")
    fits = [
        np.concatenate(
            [
                data[name].transpose("step", "concept").values[None],
                data[f"refit_{name}"].transpose("refit", "step", "concept").values,
            ]
        )[:3]
        for name in ("readability", "strength")
    ]
    by_curves = births.lives(births.Curves(*map(np.nan_to_num, fits))).kind == "born"
    assert by_curves.sum() >= 3  # by its curves alone
    assert data.grown_readability.isel(fit=0).values[by_curves].min() > 0.95
    assert float(data.n_born) == float(data.n_born_high) == 0
    assert "born" not in set(result.claims()["kind"])


def test_controls_that_end_trained_judge_no_concept(layer):
    data = layer.expand_dims("layer").assign_coords(run=["line 0"])
    found = list(lives.claims("learned-concepts", data))
    assert {claim.certainty for claim in found} == {Certainty.NOT_TESTED}


def test_a_control_whose_layer_failed_judges_no_concept(layer):
    data = layer
    failed = data.assign(n_learned_control=data.n_learned_control * np.nan)
    found = list(lives.claims("learned-concepts", failed.expand_dims("layer")))
    assert {claim.certainty for claim in found} == {Certainty.NOT_TESTED}


def test_the_page_and_the_named_figures_are_drawn(result, tmp_path):
    page = result.report(tmp_path / "page.html").read_text()
    assert "Concepts that training made" in page and "What concepts answer to" in page


def test_without_controls_nothing_is_sure(tmp_path):
    study = og.Study(run(), inputs(), [observable(examples=0)], device="cpu")
    result = study.run(tmp_path / "study")
    claims = result.claims()
    assert set(claims[claims["kind"] == "born"]["certainty"]) == {"not tested"}
    assert "name" not in result["learned-concepts"]


def test_one_model_has_components_and_no_births(tmp_path):
    study = og.Study(run(steps=(70,)), inputs(), [observable()], device="cpu")
    data = study.run(tmp_path / "study")["learned-concepts"]
    assert float(data.n_again[0]) >= 2 and "concept_born" not in data
    assert float(data.first_step) == -1


def test_a_layer_without_components_leaves_the_others(tmp_path):
    study = og.Study(run(planted=False), inputs(), [observable()], device="cpu")
    data = study.run(tmp_path / "study")["learned-concepts"]
    assert (data.status == "done").all() and float(data.n_born[0]) == 0


def test_masked_places_have_no_token():
    chosen = observable(tokens="masked")
    texts = og.Inputs.from_tokens([[5, 6, 7, 8], [8, 7, 6, 5]], mask_token_id=1)

    class Given:
        def __getitem__(self, need):
            return texts

        def units(self, need):
            return need.units(texts)

    assert not chosen._tokens(Given()).token.any()
    assert observable()._tokens(Given()).token.tolist() == [5, 6, 7, 8, 8, 7, 6, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": "mean"}, "tokens"),
        ({"n_concepts": 0}, "n_concepts"),
        ({"examples": -1}, "exam"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.LearnedConcepts(**{"layers": "out", **options})


def test_in_the_texts_shown_it_is_kept_where_a_planted_concept_is_strong(layer):
    ids, texts = layer.shown_token_id.values, inputs()
    shown = texts.ids[layer.shown_text_number.values]
    np.testing.assert_array_equal(ids, shown[:, : ids.shape[1]])
    fires = of(layer, BORN).shown_fires.values
    assert set(np.unique(fires)) == {0, 1}
    after = np.isin(ids[:, :-1], BORN)
    # A code has noise, and its strong places a threshold.
    assert np.corrcoef(after.ravel(), fires[:, 1:].ravel())[0, 1] > 0.9
