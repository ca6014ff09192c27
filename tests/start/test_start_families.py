"""What is proposed for a model fits it, in every family, and so do the library's own defaults."""

import copy
import warnings

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import NAMES, VOCABULARY, build, inputs_of
from ontogeny.observables import make
from ontogeny.start import CATALOGUE, PRESETS, look
from ontogeny.start.presets import ENTRIES, fitted

STEPS = (0, 1, 2, 4)
DEFAULTS = ("activation-decay", "activation-path", "effective-dimensions", "similarity",
            "attention-entropy", "weight-rank")  # fmt: skip

CAUSAL_ONLY = ("in-context-learning", "ngram-agreement")
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


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_and_every_default_fits_every_family(name):
    trajectory, inputs = moving(name), texts_of(name)
    shown = look(trajectory[4], inputs)
    assert shown.family and len(shown.layers) == 2 and shown.width == 32
    assert shown.blocks == ("attn", "mlp") and shown.embedded and not shown.no_maps
    masked = name in ("eurobert", "bert", "roberta", "modernbert")
    assert shown.objective == ("" if name == "t5" else "masked" if masked else "causal")
    tables = {}
    for preset in PRESETS.values():
        chosen, left_out = fitted(preset, shown, 4)
        circuits = preset in (PRESETS["circuits"], PRESETS["everything"])
        copying = left_out.pop("copying-heads", "")
        assert bool(copying) == (circuits and name in NO_COPYING), copying
        of_masked = [left_out.pop(kind, "") for kind in CAUSAL_ONLY if masked]
        assert all("masked model" in why for why in of_masked) == (circuits or not masked)
        assert bool(left_out) == (name == "t5")
        tables |= {str(table): table for table in chosen}
    observables = [make(table["kind"], **_without_kind(table)) for table in tables.values()]
    by_name = {o.name: o for o in observables} | {kind: make(kind) for kind in DEFAULTS}
    for kind in ("concepts-ica", "concepts-svd"):  # with the default layers as well
        by_name[f"{kind}-d"] = og.observables.Concepts(
            kind[-3:], 8, max_tokens=200, label=f"{kind}-d"
        )
    plan = planned(trajectory, inputs, list(by_name.values()))
    assert plan.refused == ""
    assert [note for note in plan.notes if "fail" in note] == []


def _without_kind(table):
    return {key: value for key, value in table.items() if key != "kind"}


def test_presets_know_only_what_is_there():
    kinds = set(og.observables.names())
    assert {entry["kind"] for entry in ENTRIES.values()} <= kinds
    for preset in PRESETS.values():
        assert set(preset.observables) <= set(ENTRIES) and preset.title
        assert len(set(preset.observables)) == len(preset.observables)


def test_every_observable_says_what_it_answers_needs_and_costs():
    assert set(CATALOGUE) == set(og.observables.names())
    for line in CATALOGUE.values():
        assert line.answers.endswith("?") and line.needs and line.costs


def test_sizes_follow_the_model():
    trajectory, inputs = moving("gpt2"), texts_of("gpt2")
    shown = look(trajectory[4], inputs)
    tables, _ = fitted(PRESETS["everything"], shown, 4)
    concepts = [table for table in tables if table["kind"] == "concepts"]
    assert {table["n_concepts"] for table in concepts} == {16}  # half of the width of 32
    assert shown.longest == 40 and VOCABULARY == 64
