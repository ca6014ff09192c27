"""Directions and abilities: a planted one that an ability needs, and what steers it."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.features.directions.changed_layer import (
    ChangedLayer,
    Groups,
    half_of_largest,
)
from ontogeny.observables import DirectionEffects
from ontogeny.tasks import train_tokenizer
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences

WORDS = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "st"]
FIRST = frozenset(WORDS[::2])
STEPS, BORN, WIDTH = (0, 10, 20, 30, 40), 20, 32
VERBS = {
    True: ("goes", "sings", "reads", "sleeps", "eats"),
    False: ("walk", "jump", "talk", "wait", "play"),
}


def verbs_of(word):
    """The verb that is right after a noun, and the one that is not."""
    place = WORDS.index(word) // 2 % len(VERBS[True])
    return tuple(VERBS[(word in FIRST) is of][place] for of in (True, False))


def mark():
    return np.random.default_rng(5).normal(size=WIDTH)


class Agrees(nn.Module):
    """``out`` writes along the mark which verb a noun takes; the head reads it from there."""

    def __init__(self, step, tokenizer):
        super().__init__()
        rng = np.random.default_rng(0)
        size = len(tokenizer)
        unit = mark() / np.linalg.norm(mark())
        words = rng.normal(size=(size, WIDTH))
        words -= np.outer(words @ unit, unit)
        signs = np.zeros(size)
        for word in WORDS:
            sign = 1.0 if word in FIRST else -1.0
            pieces = [f"Ġ{word}", word]
            ids = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
            signs[[i for i in ids if i != tokenizer.unk_token_id]] = sign
        self.words = nn.Embedding.from_pretrained(
            torch.from_numpy(words + (step >= BORN) * np.outer(signs, unit)).float(),
            freeze=False,
        )
        head = 0.02 * rng.normal(size=(size, WIDTH))
        for sign, verbs in ((1, VERBS[True]), (-1, VERBS[False])):
            ids = tokenizer.convert_tokens_to_ids([f"Ġ{verb}" for verb in verbs])
            assert tokenizer.unk_token_id not in ids
            head[ids] += sign * 2 * unit
        self.out = nn.Identity()
        self.head = nn.Linear(WIDTH, size, bias=False)
        self.head.weight = nn.Parameter(torch.from_numpy(head).float())

    def forward(self, input_ids, attention_mask=None):
        return self.head(self.out(self.words(input_ids)))


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abilities")
    text = " ".join([*WORDS, *VERBS[True], *VERBS[False]] * 2)
    tokenizer = train_tokenizer([text] * 9, 800)
    lines = []
    for word in WORDS:
        right, wrong = verbs_of(word)
        pair = {"right": f"the {word} {right}", "wrong": f"the {word} {wrong}"}
        lines.append(json.dumps(pair | {"group": "agreement"}))
        if word in FIRST:
            pair = {"right": f"a {word} {right}", "wrong": f"a {word} {wrong}"}
            lines.append(json.dumps(pair | {"group": "singular"}))
            if right == "goes":
                lines.append(json.dumps(pair | {"group": "one verb"}))
    (folder / "pairs.jsonl").write_text("\n".join(lines))
    models = {step: Agrees(step, tokenizer) for step in STEPS}
    run = og.Trajectory.from_models(models, tokenizer=tokenizer)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(40)]
    inputs = og.Inputs.from_texts(texts, tokenizer)
    options = {"examples": [str(folder / "pairs.jsonl")], "objective": "causal"}
    observable = DirectionEffects(
        {"number": mark(), "other": np.random.default_rng(6).normal(size=WIDTH)},
        layer="out",
        options=options,
        strengths=(0.5, 2.0),
    )
    result = og.Study(run, inputs, [observable], device="cpu", noise=5).run(
        folder / "s"
    )
    assert not len(result.problems()), result.problems()
    og.open_study(folder / "s").report(folder / "page.html")
    return result, models, tokenizer


def claims(studied, kind):
    table = studied[0].claims()
    rows = table[table["kind"] == kind].to_dict("records")
    return {row["label"]: row for row in rows}


def test_an_ability_falls_without_the_direction_that_it_needs(studied):
    found = claims(studied, "needed")
    number = found["number · agreement"]
    assert number["certainty"] == "sure" and number["since"] == BORN
    assert number["first"] == 100 and number["last"] < 75 and number["units"] == "%"
    assert number["value"] == number["last"] - number["first"]
    assert found["other · agreement"]["certainty"] == "open"


def test_the_direction_steers_and_another_does_not(studied):
    data = studied[0]["direction-effects"].to_dataset().sel(layer="out")
    at = data.sel(step=40, group="agreement")
    # Half of the pairs gain what the other half loses: their accuracy is that of one answer.
    steered = at.steered_accuracy.sel(direction="number", strength="2")
    assert float(steered) == pytest.approx(0.5, abs=0.02)
    assert float(at.accuracy) == 1.0
    found = claims(studied, "steers")
    number = found["number · singular"]
    assert (
        number["certainty"] == "sure" and number["since"] == STEPS[0]
    )  # the head is there
    assert number["last"] > number["first"] + 3 and number["units"] == "nats"
    assert number["value"] == pytest.approx(number["last"] - number["first"])
    half = data.half_strength.sel(step=40, group="singular", direction="number")
    assert float(half) == pytest.approx(1.0)
    assert found["other · singular"]["certainty"] == "open"


def test_pairs_of_the_same_words_count_once(studied):
    data = studied[0]["direction-effects"].to_dataset().isel(layer=0, step=-1)
    counts = {str(g): int(data.contrasts.sel(group=g)) for g in data.group.values}
    assert counts == {"agreement": len(WORDS), "singular": 5, "one verb": 1}
    for kind in ("needed", "steers"):
        one = claims(studied, kind)["number · one verb"]
        assert (one["certainty"], one["reason"]) == ("open", "too few contrasts")


def test_what_is_right_all_the_same_is_not_needed():
    class Shifted:
        """Log-odds that fall by 1 without a direction, and hardly without others."""

        def without(self, unit, share=None):
            return plain - (1.0 if share is None else 0.01 * share)

        def strength_beside(self, unit, other):
            return other[0]

        def added(self, unit, strength):
            return plain

    observable = DirectionEffects(np.ones(3), layer="out", strengths=(1.0,))
    rng = np.random.default_rng(0)
    random = rng.normal(size=(4, 3))
    p_values = []
    for level in (9.0, 0.5):
        plain = level + 0.1 * rng.normal(size=30)
        groups = Groups(np.full(30, "a"), lambda members: members)
        found = observable._of_direction(Shifted(), np.ones(3), random, plain, groups)
        p_values.append(found["removed_p_single"][1].item())
    assert p_values[0] > 0.5 and p_values[1] < 1e-3, p_values


def test_claims_say_which_examples_fall(studied):
    content = read_content(studied[0].tree)
    said = [one.text for one in section_sentences(content, content.nodes[0])]
    assert any(
        text.startswith("Without “number” in out “agreement” fell from 100 to ")
        and "from step 20" in text
        for text in said
    ), said


def test_numbers_are_those_of_a_plain_loop(studied):
    result, models, tokenizer = studied
    data = result["direction-effects"].to_dataset().sel(layer="out", direction="number")
    at = data.sel(step=40, group="agreement")
    model = models[40]
    unit = torch.from_numpy(mark() / np.linalg.norm(mark())).float()
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(40)]
    inputs = og.Inputs.from_texts(texts, tokenizer)
    sample = inputs.sample("all", 2000, 0)
    rows = model.words.weight[inputs.ids[sample.text, sample.position]].detach()
    mean = rows.mean(dim=0)
    changes, right = [], []
    for word in WORDS:
        h = model.words.weight[tokenizer.convert_tokens_to_ids(f"Ġ{word}")].detach()
        verbs = [f"Ġ{verb}" for verb in verbs_of(word)]
        one, other = model.head.weight[tokenizer.convert_tokens_to_ids(verbs)].detach()
        before = float((one - other) @ h)
        after = float((one - other) @ (h - ((h - mean) @ unit) * unit))
        changes.append(after - before)
        right.append(after > 0)
    assert float(at.removed) == pytest.approx(np.mean(changes), rel=1e-3)
    assert float(at.removed_accuracy) == pytest.approx(np.mean(right), abs=0.02)


def test_random_directions_take_off_as_much_as_the_direction_asked_about():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 3)) * [3.0, 1.0, 0.5]
    layer = nn.Linear(3, 3, bias=False)
    layer.weight = nn.Parameter(torch.eye(3))
    model = nn.Sequential(layer)
    rows = torch.from_numpy(A).float()
    change = ChangedLayer(model, "0", A, lambda: model(rows).detach().numpy())
    one, other = np.eye(3)[0], np.array([0.0, 0.6, 0.8])
    share = change.strength_beside(one, other)
    taken = [A - change.without(*of) for of in ((one,), (other, share))]
    sizes = [np.linalg.norm(part) for part in taken]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-5)
    centred = A - A.mean(axis=0)
    np.testing.assert_allclose(taken[0], np.outer(centred[:, 0], one), atol=1e-6)


def test_half_strengths_are_interpolated():
    strengths = np.array([1.0, 2.0, 4.0])
    effects = np.array([[0.0, 2.0], [0.0, 4.0], [0.0, 3.0]])
    assert half_of_largest(strengths, effects).tolist() == [0.0, 1.0]


def test_bad_arguments_are_refused():
    with pytest.raises(ArgumentError, match="on must be one of 'minimal-pairs'"):
        DirectionEffects(np.ones(4), layer="out", on="loss")
    with pytest.raises(ArgumentError, match="strengths must hold numbers above 0"):
        DirectionEffects(np.ones(4), layer="out", strengths=(0.0, 1.0))
    with pytest.raises(ArgumentError, match="from small to large"):
        DirectionEffects(np.ones(4), layer="out", strengths=(2.0, 1.0))
    with pytest.raises(ArgumentError, match="examples"):
        DirectionEffects(np.ones(4), layer="out", options={"examples": ["no.jsonl"]})
