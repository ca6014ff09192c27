"""What several runs can do beside one another, claimed of planted courses."""

import numpy as np
import xarray as xr

import ontogeny as og
from helpers import ability_nodes, compared_runs
from ontogeny.claims import Certainty, Kind
from ontogeny.features.abilities.between_runs import claims_of_runs
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences
from ontogeny.words.sentences import sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import OF_STEPS

NEVER = [0.5] * 4
EARLY = [0.5, 1.0, 1.0, 1.0]
LATE = [0.1, 0.1, 0.1, 1.0]


def tree(courses, seed=0):
    pairs = ability_nodes.with_texts(ability_nodes.node(courses, pairs=60, seed=seed))
    return xr.DataTree.from_dict({"minimal-pairs": pairs})


def told(claims):
    return [one.text for one in sentences(claims, OF_STEPS, Names())]


def test_of_two_runs_the_second_gains_and_loses_against_the_first():
    base = tree({"tense": NEVER, "number": EARLY, "case": NEVER})
    tuned = tree({"tense": LATE, "number": NEVER, "case": NEVER}, seed=1)
    claims = claims_of_runs({"base": base, "tuned": tuned})
    assert {(c.kind, c.subject.label, c.certainty) for c in claims} == {
        (Kind.GAINED, "tense", Certainty.SURE),
        (Kind.LOST, "number", Certainty.SURE),
    }
    gained = next(claim for claim in claims if claim.kind is Kind.GAINED)
    assert (gained.first, gained.last) == (0.5, 1.0) and gained.corrected_over == 3
    assert gained.since == 40 and gained.p_value < 0.05
    assert sorted(told(claims)) == [
        "Against base, “number” is lost: 100 % to 50 %.",
        "Against base, “tense” is gained from step 40: 50 % to 100 %.",
    ]


def test_of_two_runs_that_are_alike_nothing_is_said_to_be_so():
    both = {name: tree({"tense": EARLY}) for name in ("base", "tuned")}
    claims = claims_of_runs(both)
    assert [claim.certainty for claim in claims] == [Certainty.OPEN]
    assert told(claims) == ["No ability is shown to be gained or lost against base."]


def test_of_three_runs_it_is_said_what_all_can_and_in_which_order():
    courses = {"early": EARLY, "late": LATE, "never": NEVER}
    runs = {f"seed {i}": tree(courses, i) for i in range(2)}
    runs["seed 2"] = tree({**courses, "never": LATE}, 2)
    assert told(claims_of_runs(runs)) == [
        "2 of 3 abilities are above chance in every run.",
        "1 of 3 abilities is above chance in some runs only: “never”.",
        "“early” left chance in every run before others: “late”.",
    ]


def test_a_comparison_says_it_in_the_section_of_the_abilities():
    runs = {}
    for seed, course in enumerate((NEVER, LATE)):
        run = compared_runs.run(20, seed)
        steps = run["loss"].step.values
        node = tree({"tense": course}, seed)["minimal-pairs"].to_dataset()
        at = np.linspace(0, len(steps) - 1, 4).round().astype(int)
        run["minimal-pairs"] = xr.DataTree(node.assign_coords(step=steps[at]))
        runs[f"seed {seed}"] = run
    content = read_content(og.compare(runs, allow=["checkpoints"]))
    (node,) = (each for each in content.nodes if each.path == "minimal-pairs")
    said = [one.text for one in section_sentences(content, node)]
    assert any(text.startswith("Against seed 0, “tense” is gained") for text in said)
