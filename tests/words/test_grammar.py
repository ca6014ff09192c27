"""Whatever is filled into the catalogue: whole sentences, whose verbs agree with their nouns."""

import re
from dataclasses import replace
from itertools import product

import pytest
import xarray as xr

from helpers import ability_nodes, compared_runs
from helpers import report_examples as examples
from helpers.claimed import flat
from helpers.concept_trees import learned
from helpers.learned_tree import learned_concepts
from ontogeny.claims import Beside, Certainty, Claim, Kind, Reason, Subject
from ontogeny.report.concepts.learned import found_words
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.catalogue.sentences import OF_CONCEPTS, OF_LABELS, OF_QUANTITIES
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences
from ontogeny.words.sentences import said, sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

CLOCKS = ("training step", "training epoch", "training tokens", "training checkpoint")
SETTLED = (Certainty.SURE, Certainty.AS_CONTROLS)
ONE, SEVERAL = "agreement with “a”", "pairs of all groups"
OF_ONE = ("is", "was", "has", "keeps", "matters", "scores", "shares", "its")
OF_MANY = ("are", "were", "have", "keep", "matter", "score", "share", "their")
# One of these is in every sentence of the catalogue.
VERBS = re.compile(
    r"\b("
    r"are|came|can|changed|correlate|correlates|costs|could|did|differs|"
    r"does|ends|explain|explains|faded|fell|follows|reached|gain|gained|"
    r"generalises|get|give|go|got|had|has|have|holds|improved|is|keep|"
    r"keeps|know|knows|lacks|leads|learned|left|lies|lost|matter|matters|"
    r"may|memorised|move|moved|moves|overfits|reads|recorded|relies|repeat|"
    r"reproduce|reproduces|rose|score|scores|share|shares|starts|take|"
    r"turned|uses|was|went|were|would"
    r")\b"
)


def faults(text):
    """Return what no sentence may have: how it is called, and where it is."""
    bare = re.sub("“[^”]*”", "“x”", text)
    searched = {
        "two spaces, or one before a point": r"  | [.,;:]",
        "empty brackets": r"\(\W*\)",
        "two brackets beside each other": r"\) ?\(|\(\(|\)\)",
        "a doubled word": r"(?i)\b([a-z]+)\b[ (]+\1\b",
        "several of one": r"(?<!of )(?<![\d.,–])\b1 (more )?(?!nats|is|was|has|class)[a-z]+s\b",
        "one of several": r"(?<![\d.,–])\b([2-9]|\d\d+) (step|layer|concept|measure|latent)\b",
        "two points": r"\.\.|[:;,]\.",
    }
    found = {name: re.search(one, bare) for name, one in searched.items()}
    named = [f"{name}: {match[0]!r}" for name, match in found.items() if match]
    for sentence in re.split(r"\. (?=[A-Z“\d])", bare.rstrip(".")):
        if not VERBS.search(sentence.lower()):
            named.append(f"no verb: {sentence!r}")
    return [f"{fault} in {text!r}" for fault in named]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Loss fell,  from 3 to 1.", "two spaces"),
        ("Loss fell (): a little.", "empty brackets"),
        ("None was born (refits 0–1) (controls 0).", "two brackets"),
        ("It got a name, no more than controls (controls 1).", "a doubled word"),
        ("It was born by 1 steps.", "several of one"),
        ("From 3 to 1 nats.", "no verb"),
        ("Loss fell. Half by step 3.", "no verb"),
        ("It is open: .", "one before a point"),
    ],
)
def test_each_fault_would_be_seen(text, fault):
    assert any(fault in one for one in faults(text))


def test_a_whole_sentence_has_no_fault():
    text = "Loss fell beyond controls, from 8 to 1 nats (controls 0). Half was there by step 1."
    assert faults(text) == []


def filled(kind, certainty, number=3.0, quantity="agreement", label="step"):
    """Return a claim with all that any template asks for; `number` is what it counts."""
    beside = (
        *(Beside("reference", "step", 6.3, 4.0), Beside("null", "chance", 6.6)),
        *(Beside("control", f"turned {i}", 0.1 * i, 1.0) for i in (1, 2)),
        *(Beside("whole", "", 24.0), Beside("part", "x"), Beside("part", "y")),
    )
    return Claim(
        kind,
        Subject("node", quantity, "h.0", label, step=40.0),
        certainty,
        None if certainty in SETTLED else Reason.FEW_TEXTS,
        value=number,
        first=5.0,
        last=number,
        since=127.0,
        since_low=108.0,
        since_high=135.0,
        needed=7.0,
        beside=beside,
    )


def named(quantity, title=ONE):
    several = {("node", quantity)} if title == SEVERAL else ()
    return Names({("node", quantity): title}, {}, {}, several=several)


def disagrees(text, noun, wrong):
    """Return a verb of the wrong number behind a noun, within its clause; None of none."""
    verbs = "|".join(wrong)
    return re.search(rf"(?i){re.escape(noun)}[^,;:.]*? ({verbs})\b", text)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("title", [ONE, SEVERAL])
def test_every_kind_agrees_with_a_name_of_one_and_of_several(clock, title):
    wrong = ("are", "were", "have") if title == ONE else ("is", "was", "has")
    found = []
    for kind, certainty, label in product(Kind, Certainty, ("", "step")):
        claim = filled(kind, certainty, label=label)
        text = said([claim], Voice(clock), named("agreement", title)).text
        found += faults(text)
        if not text.startswith("Whether"):
            found += [text] * bool(disagrees(text, title, wrong))
    assert found == []


@pytest.mark.parametrize("number", [1.0, 3.0])
@pytest.mark.parametrize("clock", CLOCKS)
def test_every_number_agrees_with_its_verb(clock, number):
    wrong = OF_MANY if number == 1 else OF_ONE
    found = []
    for quantity, kind, certainty in flat(OF_QUANTITIES):
        claim = filled(kind, certainty, number, quantity)
        text = said([claim], Voice(clock), named(quantity)).text
        found += faults(text)
        if kind is Kind.MEASURED:
            found += [text] * bool(disagrees(text, f"{number:.0f} of 24", wrong))
    assert found == []


@pytest.mark.parametrize("clock", CLOCKS)
def test_labels_and_counts_make_whole_sentences(clock):
    for label, kind, certainty in flat(OF_LABELS):
        text = said([filled(kind, certainty, label=label)], Voice(clock), Names()).text
        assert faults(text) == []
    for kind, certainty in product(OF_CONCEPTS, Certainty):
        claims = [
            replace(filled(kind, certainty), subject=Subject("n", "x", label=label))
            for label in "abcde"
        ]
        for some in (claims, claims[:1]):
            (one,) = sentences(some, Voice(clock), Names())
            assert faults(one.text) == []


@pytest.mark.parametrize(
    ("kind", "certainty"),
    [
        (Kind.LEARNED, Certainty.SURE),
        (Kind.LEARNED, Certainty.OPEN),
        (Kind.CHANGED, Certainty.OPEN),
    ],
)
def test_rows_of_several_names_are_called_by_them(kind, certainty):
    """ "Loss on fixed texts in 1 of 2 series" said nothing of which."""
    claims = [
        replace(filled(kind, certainty), subject=Subject("n", "x", label=label))
        for label in ("bigrams", "trigrams")
    ]
    some = "for “bigrams” and “trigrams” (2 of 5 measures)"
    for total, where in ((2, "in both measures"), (5, some)):
        names = Names({("n", "x"): "divergence"}, {}, {("n", "x"): total})
        text = sentences(claims, Voice(), names)[0].text
        assert where in text
        assert faults(text) == [] and "series" not in text


def pairs():
    halves = {"rises": [0.5, 0.5, 1, 1], "falls": [1, 1, 0.5, 0.5], "chance": [0.5] * 4}
    node = ability_nodes.with_texts(ability_nodes.node(halves))
    return xr.DataTree.from_dict({"pairs": node})


TREES = {
    "controlled": examples.controlled_tree,
    "not learned": lambda: examples.controlled_tree(learned=False),
    "still": examples.still_tree,
    "developing": examples.developing_tree,
    "concepts": learned,
    "run": lambda: compared_runs.run(20, 0, controls=True),
    "few": lambda: compared_runs.run(20, 0, steps=(0, 16, 256)),
    "no controls": lambda: compared_runs.run(20, 0),
    "seeds": lambda: compared_runs.seeds(3),
    "pairs": pairs,
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", TREES)
def test_sections_and_first_screens_are_whole_sentences(name, clock):
    tree = TREES[name]()
    if isinstance(tree, dict):
        tree = compared(tree)
    tree.attrs["clock"] = clock
    content = read_content(tree)
    told = [
        one.text for node in content.nodes for one in section_sentences(content, node)
    ]
    screen = first_screen(content)
    told += [screen.heading]
    told += [f"{line.lead} {line.text}".strip() for line in screen.sentences]
    assert [fault for text in told for fault in faults(text)] == []


def compared(runs):
    from ontogeny import compare

    return compare(runs)


@pytest.mark.parametrize("refits", [(0.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("born", [0.0, 2.0])
def test_refits_and_controls_share_one_bracket(born, refits):
    data = learned_concepts()
    low, high = (born + extra for extra in refits)
    counts = {"n_born": born, "n_born_low": low, "n_born_high": high, "n_named": 3.0}
    data = data.drop_vars([name for name in counts if name in data]).assign(counts)
    text = "; ".join(map(Voice().fill, found_words(data)))
    assert ("refits" in text) == (low < high)
    assert not re.search(r"\) ?\(", text), text


@pytest.mark.parametrize(
    ("change", "in_controls", "words"),
    [
        (3.0, 0.1, "rose beyond controls"),
        (3.0, -5.0, "rose beyond controls"),
        (3.0, 4.0, "rose unlike in controls"),
        (-3.0, -4.0, "fell unlike in controls"),
        (-3.0, 4.0, "fell beyond controls"),
    ],
)
def test_what_goes_less_far_than_controls_is_not_said_to_go_beyond_them(
    change, in_controls, words
):
    claim = Claim(
        Kind.BEYOND_MOTION,
        Subject("node", "share"),
        Certainty.SURE,
        first=5.0,
        last=5.0 + change,
        beside=(Beside("control", "turned 0", in_controls, 1.0),),
    )
    assert words in said([claim], Voice(), named("share")).text
