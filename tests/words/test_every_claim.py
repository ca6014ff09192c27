"""Every claim that the library's observables make has words of its own."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import ability_nodes, compared_runs
from helpers import report_examples as examples
from helpers.claimed import flat
from helpers.paths import PAPERS, ROOT
from ontogeny.claims import (
    RULES,
    Beside,
    Certainty,
    Claim,
    Kind,
    Reason,
    Subject,
    measurement,
)
from ontogeny.comparison.claims import claims_of_runs
from ontogeny.features.directions.effect_claims import claims_of_effects
from ontogeny.features.directions.read_claims import claims_of_reading
from ontogeny.features.fine_tuning.change_claims import claims_of_changes
from ontogeny.features.predictions.loss_claims import claims_of_loss
from ontogeny.features.predictions.set_claims import claims_of_sets
from ontogeny.quantities import Quantity
from ontogeny.trees import as_tree
from ontogeny.words.catalogue.sentences import (
    AS_CONTROLS,
    OF_QUANTITIES,
    SENTENCES,
    SURE,
)
from ontogeny.words.one_model import claims_of_one_model
from ontogeny.words.page_claims import claims_of, claims_of_result
from ontogeny.words.sentences import said, sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

TEMPLATES = flat(SENTENCES)
FLAGS = ("changed", "beyond", "learned", "moved", "can_learn", "lost")


def of_rows():
    """Claims on a loss with every combination of verdicts, with and without control runs."""
    for controls in (True, False):
        node = compared_runs.run(20, 0, controls=controls)["loss"].to_dataset()
        for values in product((True, False), repeat=len(FLAGS)):
            flags = {
                name: ("row", [value])
                for name, value in zip(FLAGS, values, strict=True)
            }
            reason = "" if values[0] else "within noise"
            judged = node.assign(
                flags | {"reason": ("row", np.array([reason], dtype=object))}
            )
            yield from claims_of({"loss": judged}, {})


def of_losses():
    steps = np.array([0, 10, 20, 40, 80])
    for end in (5.0, 8.0, 9.0):
        data = xr.Dataset({"loss": ("step", np.linspace(8.4, end, 5))}, {"step": steps})
        data["loss"][-1] += 0.5
        data = data.assign(
            loss_uniform=8.3, loss_unigram=6.3, loss_half_frequencies=10.0
        )
        for ending, ends in product(("unigram",), ((20.0, 10.0, 20.0), (np.nan,) * 3)):
            names = [f"loss_below_{ending}{end}" for end in ("", "_low", "_high")]
            dated = data.assign(dict(zip(names, ends, strict=True)))
            yield from claims_of_loss("loss", dated)


def of_changes():
    dims = ("step", "change", "layer")
    counts = xr.DataArray(np.full((2, 4, 1), 12.0), dims=dims)
    counts = counts.assign_coords(step=[0, 1], change=["kept", "turned", "lost", "new"])
    yield from claims_of_changes("changes", xr.Dataset({"concepts_since": counts}))
    for more in (-12, -1, 1):
        beside = (counts + more).expand_dims(run=["a"])
        data = xr.Dataset({"concepts_since": counts, "concepts_since_control": beside})
        yield from claims_of_changes("changes", data)


def of_shared():
    names = ("in_all", "in_some", "in_one", "born_in_all")
    data = xr.Dataset(
        {name: ("layer", [8.0, 2, 1]) for name in names}, {"layer": [*"abc"]}
    )
    for controls in ([np.nan] * 3, [0.0, 0, 4]):
        of_controls = {f"{name}_control": ("layer", controls) for name in names}
        yield from claims_of_runs([], {}, data.assign(of_controls))


def of_directions():
    """Claims on directions that stand out, in the end alone, as in controls and never."""
    rng = np.random.default_rng(0)
    for low, high, of_control in ((0.5, 0.9, 0.5), (0.5, 0.9, 0.95), (0.5, 0.5, 0.5)):
        auc = np.where(np.arange(6) > 2, high, low)
        of_text = auc[:, None] + 0.02 * rng.normal(size=(6, 30))
        draws = 0.5 + 0.03 * rng.normal(size=(6, 1, 1, 50))
        dims = ("step", "layer", "direction")
        values = {
            "auc": (dims, auc[:, None, None]),
            "auc_of_text": ((*dims, "text"), of_text[:, None, None]),
            "auc_weights": (("text",), np.ones(30)),
            "auc_random": ((*dims, "draw"), draws),
            "auc_control": (("run", *dims), np.full((1, 6, 1, 1), of_control)),
        }
        labels = {"step": range(6), "layer": ["h"], "direction": ["mark"], "run": ["a"]}
        data = xr.Dataset(values, labels)
        yield from claims_of_reading("directions", data, "auc")
        p_values = np.where(high > 0.5, 1e-6, 0.5) * np.ones((6, 1, 1))
        for name in ("removed", "added"):
            data[name] = (dims, auc[:, None, None])
            data[f"{name}_random"] = ((*dims, "draw"), 0.1 * draws)
            data[f"{name}_p_single"] = (dims, p_values)
        yield from claims_of_effects("directions", data)


def of_one_model():
    data = xr.Dataset({"x": (("step", "layer"), [[2.0, 4.0]])}, {"layer": ["a", "b"]})
    data = data.assign(x_chance_low=("step", [1.0]), x_chance_high=("step", [2.5]))
    quantity = Quantity(
        "x", "norm", rows="{layer}", noise="exact", nulls={"chance": "chance"}
    )
    return claims_of_one_model("norms", data, [quantity])


def of_abilities():
    halves = {"rises": [0.5, 0.5, 1, 1], "falls": [1, 1, 0.5, 0.5], "chance": [0.5] * 4}
    return claims_of(
        {"pairs": ability_nodes.with_texts(ability_nodes.node(halves))}, {}
    )


def of_comparison():
    return claims_of_result(as_tree(og.compare({"a": runs(0), "b": runs(1)})))


def runs(seed):
    return compared_runs.run(20, seed, controls=True)


def of_sets():
    """Twenty texts that are all right show nothing of others: 63 would."""
    data: dict = {"gap": ("step", [0.0, 0.0]), "answers_scored": np.int8(1)}
    for name in ("training", "held"):
        over = ("step", f"{name}_text")
        data[f"{name}_cost"] = (over, np.repeat([[3.0], [0.1]], 20, axis=1))
        data[f"{name}_right"] = (over, np.repeat([[0.0], [1.0]], 20, axis=1))
        data[f"{name}_count"] = (over[1], np.ones(20))
        data[f"{name}_line"] = (over[1], np.full(20, 3.0))
    data["set_loss"] = (("step", "set"), [[3.0, 3.0], [0.1, 0.1]])
    data["set_accuracy"] = (("step", "set"), [[0.0, 0.0], [1.0, 1.0]])
    sets = {"step": [0, 10], "set": ["training", "held-out"]}
    return claims_of_sets("training-texts", xr.Dataset(data, sets))


def of_audit():
    found = [
        {"kind": "altered", "certainty": c, "steps": [4]}
        for c in ("certain", "probable")
    ]
    return claims_of({}, {}, [*found, {"kind": "altered", "certainty": "certain"}])


def of_measurements():
    subject = Subject("norms", "size")
    yield measurement(subject, math.nan)
    unsettled = {Certainty.OPEN: Reason.WITHIN_CHANCE, Certainty.AS_CONTROLS: None}
    for certainty, reason in {Certainty.SURE: None, **unsettled}.items():
        yield measurement(subject, 3.5, certainty=certainty, reason=reason)


SOURCES = {
    "measurements": of_measurements,
    "rows": of_rows,
    "losses": of_losses,
    "changes": of_changes,
    "shared": of_shared,
    "directions": of_directions,
    "one model": of_one_model,
    "abilities": of_abilities,
    "comparison": of_comparison,
    "sets": of_sets,
    "audit": of_audit,
    "example": lambda: claims_of_result(examples.controlled_tree()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_claim_has_a_template_and_becomes_a_sentence(source):
    claims = list(SOURCES[source]())
    assert claims
    assert {(claim.kind, claim.certainty) for claim in claims} <= {*TEMPLATES}
    for claim in claims:
        text = said([claim], Voice(), Names()).text
        assert not any(word in text for word in ("nan", "None", "{", "()")), text
        if math.isfinite(claim.needed):
            assert f"({claim.needed:,.0f} would do)" in text


def test_together_they_use_most_of_the_catalogue():
    used = {(c.kind, c.certainty) for source in SOURCES.values() for c in source()}
    of_sets = (Kind.MEMORISED, Kind.GENERALISES, Kind.OVERFITS)
    of_others = (*of_sets, Kind.IN_CONTEXT, Kind.REPRODUCES)
    left = {
        pair for pair in TEMPLATES if pair[0] not in (*of_others, Kind.CONTRADICTS)
    } - used
    assert len(left) <= 10, sorted(left)


def test_what_has_words_is_claimed_somewhere():
    """Two reasons and their sentences had outlived what gave them."""
    sources = [*ROOT.glob("src/**/*.py"), *PAPERS.glob("src/**/*.py")]
    lists = {"vocabulary.py", "sentences.py", "measured.py"}
    code = "".join(p.read_text("utf-8") for p in sources if p.name not in lists)
    for one in (*Reason, *Kind):
        assert f"{type(one).__name__}.{one.name}" in code
    for quantity in OF_QUANTITIES:
        assert f'"{quantity}"' in code


@pytest.mark.parametrize("kind", Kind)
def test_a_claim_of_a_third_party_on_one_checkpoint_has_no_date_unless_it_is_one(kind):
    once = xr.Dataset(coords={"step": [80]})
    given = Claim(
        kind,
        Subject("x", "agreement"),
        Certainty.SURE,
        value=0.2,
        first=0.1,
        last=0.3,
        since=80.0,
        beside=(Beside("null", "chance", 0.1),),
    )
    (claim,) = claims_of({"x": once}, {"x": [given]})
    must = "since" in RULES[kind].fields
    assert claim == (given if must else replace(given, since=math.nan))


def test_a_kind_of_a_third_party_has_words_however_sure_it_is():
    overfits = Subject("mine", "gap")
    claim = Claim(Kind.OVERFITS, overfits, Certainty.NOT_TESTED, Reason.FEW_TEXTS)
    text = said([claim], Voice(), Names()).text
    assert text == "Whether “overfits” holds of gap is not tested: too few texts."
    born = Claim(Kind.BORN, Subject("mine", "head"), Certainty.SURE, since=40.0)
    assert (
        said([born], Voice("training epoch"), Names()).text
        == "“born” holds of head by epoch 40."
    )


@pytest.mark.parametrize(
    ("quantity", "certainty"), [(key[0], key[2]) for key in flat(OF_QUANTITIES)]
)
@pytest.mark.parametrize("kind", [Kind.MEASURED, Kind.GAINED])
def test_a_variable_of_a_third_party_may_have_the_name_of_one_of_ours(
    kind, quantity, certainty
):
    """What the guide shows, outliers of a whole, ended the page: nothing else stood beside them."""
    reason = Reason.FEW_TEXTS if certainty not in (SURE, AS_CONTROLS) else None
    ends = {"first": 3.0, "last": 12.0}
    bare = Claim(kind, Subject("mine", quantity), certainty, reason, **ends)
    for beside in ((), (Beside("whole", "", 400.0),)):
        (one,) = sentences([replace(bare, beside=beside)], Voice(), Names())
        assert "{" not in one.text
    measured = measurement(Subject("mine", "outliers"), 12, whole=400)
    assert said([measured], Voice(), Names()).text == "Outliers is 12 of 400."


@pytest.mark.parametrize(
    "kind", [Kind.LEARNED, Kind.FORGOT, Kind.CHANGED, Kind.BEYOND_MOTION]
)
@pytest.mark.parametrize("certainty", list(Certainty))
def test_one_claim_of_a_row_alone_is_told(kind, certainty):
    """An observable that claims "learned" of what is no row ended the page."""
    unsettled = certainty in (Certainty.OPEN, Certainty.NOT_TESTED)
    reason = Reason.FEW_TEXTS if unsettled else None
    claim = Claim(kind, Subject("mine", "x"), certainty, reason, first=1.0, last=2.0)
    assert len(sentences([claim], Voice(), Names())) == 1


def test_concepts_are_told_together_and_their_cosine_is_no_count():
    """A concept named “ed” gave "0.43 of ed were born"."""
    lives = {
        "first": 0.0,
        "last": 1.0,
        "value": 0.43,
        "since_low": 8.0,
        "since_high": 32.0,
    }
    claims = [
        Claim(
            Kind.BORN,
            Subject("c", "strength", "h.0", label),
            Certainty.SURE,
            since=since,
            **lives,
        )
        for label, since in (("ed", 16.0), ("ing", 64.0), ("ly", 20.0), ("s", 30.0))
    ]
    [one] = sentences(claims, Voice("training epoch"), Names())
    assert (
        one.text == "4 concepts were born by epoch 16–64: “ed”, “ing”, “ly” and 1 more."
    )
    [one] = sentences(claims[:1], Voice(), Names())
    assert one.text == "1 concept was born by step 16: “ed”."
    unread = {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
    [one] = sentences([replace(claims[0], **unread)], Voice(), Names())
    assert (
        one.text == "1 concept was born by step 16: “ed”; not tested: no control run."
    )


def test_each_place_of_the_texts_is_told_with_its_own_ends():
    """Two places were one sentence that named the first of them."""
    claims = [
        Claim(
            kind,
            Subject("places", "place_loss", label=label),
            Certainty.SURE,
            first=3.0,
            last=last,
        )
        for kind, label, last in (
            (Kind.LEARNED, "place 3", 0.0),
            (Kind.LEARNED, "place 4", 1.0),
            (Kind.CHANGED, "place 2", 7.0),
        )
    ]
    assert [one.text for one in sentences(claims, Voice(), Names())] == [
        "The loss at place 3 improved by learning: from 3.00 to 0.",
        "The loss at place 4 improved by learning: from 3.00 to 1.00.",
        "The loss at place 2 rose: from 3.00 to 7.00.",
    ]


def test_values_beside_two_nulls_are_two_sentences_that_name_them():
    """One model: both nulls were joined to one, and it was called by an empty label."""
    data = xr.Dataset({"x": (("step", "layer"), [[3.0, 4.0]])}, {"layer": ["a", "b"]})
    ends = {
        "x_chance_low": 1.0,
        "x_chance_high": 2.0,
        "x_mean_low": 0.1,
        "x_mean_high": 0.2,
    }
    data = data.assign({name: ("step", [value]) for name, value in ends.items()})
    nulls = {"chance": "chance", "mean": "the mean of all"}
    quantity = Quantity("x", "norm", rows="{layer}", noise="exact", nulls=nulls)
    claims = claims_of_one_model("norms", data, [quantity])
    called = {("norms", "x", name): words for name, words in nulls.items()}
    titles = {("norms", "x"): "norm"}
    names = Names(titles, {}, {("norms", "x"): 2}, nulls=called)
    assert [one.text for one in sentences(claims, Voice(), names)] == [
        "Norm in both layers is 3–4, beside 1–2 for chance.",
        "Norm in both layers is 3–4, beside 0.1–0.2 for the mean of all.",
    ]


def test_each_of_several_items_that_changed_is_told():
    claims = [
        Claim(
            Kind.CHANGED_ON_ITEMS,
            Subject("pairs", "accuracy", label=label),
            Certainty.SURE,
            first=0.1,
            last=0.9,
            beside=(Beside("reference", "n-grams", 0.5),),
        )
        for label in ("is", "are")
    ]
    texts = [one.text for one in sentences(claims, Voice(), Names())]
    assert len(texts) == 2 and "“is”" in texts[0] and "“are”" in texts[1]
