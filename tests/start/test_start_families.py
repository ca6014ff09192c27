"""What is proposed for a model fits it, in every family, and so do the library's own defaults."""

import copy
import dataclasses
import warnings

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import NAMES, VOCABULARY, build, inputs_of
from helpers.model_facts import plain_facts
from ontogeny.errors import ArgumentError
from ontogeny.observables import ModelFacts, PresetEntry, make
from ontogeny.observables.registry import kinds
from ontogeny.start import PRESETS, look
from ontogeny.start.presets import entries_of, fitted

STEPS = (0, 1, 2, 4)
DEFAULTS = (
    "activation-decay",
    "activation-path",
    "effective-dimensions",
    "similarity",
    "attention-entropy",
    "weight-rank",
)

CAUSAL_ONLY = {kind for kind, cls in kinds().items() if "no_order" in cls.obstacles}
UNFIT = {"no_labels", "no_tokenizer", "no_english"}
"""None of the families' models is a classifier or reads English."""
NO_COPYING = ("bert", "roberta", "modernbert", "t5")


def moving(name):
    """A run of a tiny random model that moves a little at every step."""
    first, models = build(name), {}
    for i, step in enumerate(STEPS):
        models[step] = copy.deepcopy(first)
        generator = torch.Generator().manual_seed(i)
        with torch.no_grad():
            for p in models[step].parameters():
                p.add_(0.05 * i * torch.randn(p.shape, generator=generator))
    return og.Trajectory.from_models(models)


def planned(trajectory, inputs, observables):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = og.Study(trajectory, inputs, observables, noise=0, device="cpu")
        return study.plan()


def texts_of(name):
    pad = 1 if name == "roberta" else 0
    lengths = tuple(int(n) for n in np.random.default_rng(0).integers(12, 20, 40))
    return inputs_of(lengths, pad_token_id=pad)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_preset_and_every_default_fits_every_family(name):
    trajectory, inputs = moving(name), texts_of(name)
    shown = dataclasses.replace(
        look(trajectory[4], inputs), no_english="it reads ids alone"
    )
    assert shown.family and len(shown.layers) == 2 and shown.width == 32
    assert shown.blocks == ("attn", "mlp") and shown.embedded and not shown.no_maps
    masked = name in ("eurobert", "bert", "roberta", "modernbert")
    assert shown.objective == ("" if name == "t5" else "masked" if masked else "causal")
    tables = {}
    for preset in PRESETS.values():
        chosen, left_out = fitted(preset, shown, 4)
        circuits = preset in (PRESETS["circuits"], PRESETS["everything"])
        copied = circuits or preset == PRESETS["one-model"]
        unfit = {
            kind
            for kind, entry in entries_of(preset)
            if UNFIT & {*kinds()[kind].obstacles, *entry.obstacles}
        }
        unfit -= {"labels"}  # which nobody expects of these
        assert unfit == {kind for kind in unfit if left_out.pop(kind, "")}
        copying = left_out.pop("copying-heads", "")
        assert bool(copying) == (copied and name in NO_COPYING), copying
        chosen_kinds = {kind for kind, _ in entries_of(preset)}
        of_masked = [
            left_out.pop(kind, "") for kind in CAUSAL_ONLY & chosen_kinds if masked
        ]
        assert all("masked model" in why for why in of_masked)
        assert bool(of_masked) == (circuits and masked)
        assert bool(left_out) == (name == "t5")
        tables |= {str(table): table for table in chosen}
    observables = [
        make(table["kind"], **_without_kind(table)) for table in tables.values()
    ]
    by_name = {o.name: o for o in observables} | {kind: make(kind) for kind in DEFAULTS}
    joint = by_name["joint-concepts"]  # of the preset with the most tokens
    by_name["concept-change"] = make("concept-change", max_tokens=joint.max_tokens)
    for kind in ("concepts-ica", "concepts-svd"):  # with the default layers as well
        by_name[f"{kind}-d"] = og.observables.Concepts(
            kind[-3:], 8, max_tokens=200, label=f"{kind}-d"
        )
    plan = planned(trajectory, inputs, list(by_name.values()))
    assert plan.refused == ""
    assert [note for note in plan.notes if "fail" in note] == []


def _without_kind(table):
    return {key: value for key, value in table.items() if key != "kind"}


def test_an_observable_stands_in_a_preset_once_with_each_table():
    for preset in PRESETS.values():
        entries = [
            (kind, str(dict(entry.arguments))) for kind, entry in entries_of(preset)
        ]
        assert entries and len(set(entries)) == len(entries) and preset.title
        for kind, entry in entries_of(preset):
            fields = {field.name for field in dataclasses.fields(kinds()[kind])}
            assert set(entry.arguments) <= fields


def test_presets_give_learned_concepts_the_tokens_that_they_take():
    """Every preset once gave them the 3,000 tokens of other observables of activations."""
    enough = kinds()["learned-concepts"]().max_tokens
    having = [
        (preset, entry)
        for preset in PRESETS.values()
        for kind, entry in entries_of(preset)
        if kind == "learned-concepts"
    ]
    assert len(having) >= 3
    for preset, entry in having:
        assert entry.arguments.get("max_tokens", enough) == enough
        assert preset.texts * preset.length >= enough


def test_concepts_of_a_small_model_are_looked_for_after_every_block():
    facts = plain_facts(streams=("layers[0]", "layers[1]"))
    assert _learned(facts)["layers"] == "resid"


def test_concepts_of_a_large_model_are_looked_for_after_blocks_between_its_ends():
    streams = tuple(f"layers[{n}]" for n in range(30))
    assert _learned(plain_facts(streams=streams))["layers"] == [
        "layers[10]",
        "layers[19]",
    ]


def test_concepts_of_a_model_without_known_blocks_are_looked_for_in_its_layers():
    layers = tuple(f"h.{n}.mlp" for n in range(5))
    facts = plain_facts(layers=layers, every_layer="h.*.mlp")
    assert _learned(facts)["layers"] == ["h.1.mlp", "h.3.mlp"]


def _learned(facts):
    tables, _ = fitted(PRESETS["standard"], facts, 24)
    return next(table for table in tables if table["kind"] == "learned-concepts")


def test_presets_list_their_observables_in_the_order_of_the_page():
    order = {
        preset.name: [kind for kind, _ in entries_of(preset)]
        for preset in PRESETS.values()
    }
    moved = ["activation-decay", "effective-dimensions"]
    assert order["quick"] == ["loss", "labels", "minimal-pairs", "predictions", *moved]
    assert order["weights"] == [
        "loss",
        "weight-rank",
        "orientation",
        "vocabulary-concepts",
    ]
    assert order["standard"] == [
        "loss",
        "minimal-pairs",
        "predictions",
        "writing",
        "token-losses",
        "text-statistics",
        "learned-concepts",
        "concepts",
        "concepts",
        "activation-decay",
        "attention-entropy",
        "weight-rank",
    ]
    assert order["circuits"][-2:] == ["calibration", "similarity"]
    assert order["fine-tuning"] == [
        "loss",
        "labels",
        "minimal-pairs",
        "predictions",
        "writing",
        "token-losses",
        "weight-change",
        "concept-change",
        "learned-concepts",
        "joint-concepts",
        "activation-decay",
        "attention-entropy",
    ]
    assert order["everything"][-2:] == ["logit-lens", "calibration"]


def test_an_entry_for_a_preset_that_there_is_not_is_refused(monkeypatch):
    wrong = (PresetEntry(("standrad",)),)
    monkeypatch.setattr(og.observables.WeightNorms, "presets", wrong)
    with pytest.raises(
        ArgumentError, match=r"preset of the observable 'weight-norms' .*'standard'"
    ):
        entries_of(PRESETS["quick"])


@pytest.mark.parametrize("kind", kinds())
def test_every_observable_says_what_it_answers_needs_and_costs(kind):
    cls = kinds()[kind]
    assert cls.question.endswith("?") and cls.requires and cls.price
    assert set(cls.obstacles) <= {
        name for name in dir(ModelFacts) if name.startswith("no_")
    } | {field.name for field in dataclasses.fields(ModelFacts)}


def test_a_question_and_presets_are_not_inherited():
    class Louder(og.observables.Loss):
        pass

    assert (Louder.question, Louder.presets) == ("", ())
    assert Louder.obstacles == og.observables.Loss.obstacles


def test_sizes_follow_the_model():
    trajectory, inputs = moving("gpt2"), texts_of("gpt2")
    shown = look(trajectory[4], inputs)
    tables, _ = fitted(PRESETS["everything"], shown, 4)
    concepts = [table for table in tables if table["kind"] == "concepts"]
    # Half of the width of 32.
    assert {table["n_concepts"] for table in concepts} == {16}
    assert shown.longest == 40 and VOCABULARY == 64


def test_a_run_whose_last_checkpoint_diverged_keeps_its_loss_and_maps():
    broken = build("gpt2")
    with torch.no_grad():
        next(broken.parameters()).fill_(torch.nan)
    shown = look(
        og.Trajectory.from_models({0: build("gpt2"), 4: broken})[4], texts_of("gpt2")
    )
    assert (shown.no_prediction, shown.no_maps) == ("", "")
