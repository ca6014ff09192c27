"""Every argument of every function of semantics takes any value, or says what is wrong with it."""

import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from ontogeny import semantics
from ontogeny._exports import homes
from ontogeny.errors import ArgumentError, OntogenyError
from ontogeny.features.wordspace.concepts import signatures
from ontogeny_papers.observables.words import views as semantics_views

TEXT = "to go to see a cat to run a dog to go by a cat . " * 4
SUPPORT = semantics.support_matrix(TEXT, lengths=(1, 2))
BASIS = semantics.svd_concepts(SUPPORT, 4)
RNG = np.random.default_rng(0)
NESTED = np.array(
    [[1, 1, 1, 0, 1], [1, 1, 1, 0, 1], [0, 1, 0, 1, 0], [0, 0, 1, 1, 1.0]]
)
CENTRED = semantics.step_imbalance(4, 3).S_centred
LOGITS = RNG.normal(size=(3, *NESTED.shape))
LABELS = {"cat": "n", "dog": "n", "go": "v", "see": "v", "run": "v"}
GROUPS = [["cat", "dog"], ["go", "see", "run"]]
NEIGHBOURS = semantics.neighbour_vectors(TEXT, SUPPORT.words)
FEW = {"vocab_size": 20, "n_contexts": 20, "resamples": 4, "n_draws": 2}
ORDER = semantics.predicted_order([TEXT, TEXT[30:], TEXT[60:]], 3, **FEW)

CALLS = {
    "cloze_support": {"tokens": TEXT, "vocab_size": 20, "n_contexts": 20},
    "closed_form": {"sigma": [3.0, 2.0], "delta": 2.0, "t": [0.0, 1.0]},
    "coarse_before_fine": {
        "steps": [0, 1, 2],
        "logits": LOGITS,
        "S": NESTED,
        "n_draws": 5,
    },
    "coherence": {
        "groups": GROUPS,
        "labels": LABELS,
        "neighbours": NEIGHBOURS,
        "n_permutations": 2,
    },
    "compare_order": {
        "order": ORDER,
        "steps": [0, 1, 2],
        "shares": np.ones((3, 3, 3)).cumsum(axis=0) / 3,
    },
    "context_weights": {"order": ORDER, "concept": 1, "factor": 1.1},
    "embedding_concepts": {"W": RNG.normal(size=(6, 4)), "k": 3},
    "factor_limits": {"order": ORDER, "concept": 1},
    "first_crossing": {"steps": [0, 1, 2], "values": [0.0, 1.0, 2.0], "level": 0.5},
    "half_times": {"sigma": [3.0, 2.0], "delta": 2.0},
    "leading_directions": {"M": np.eye(3), "k": 2},
    "learning_order": {"sigma": [3, 2, 1], "learned_at": [1, 2, 3], "n_draws": 5},
    "load_support": {"path": "support.npz"},
    "loss_growth_rates": {"S_centred": CENTRED, "omega": np.ones(CENTRED.shape[1])},
    "max_margin_logits": {"S": np.eye(2), "tolerance": 0.5, "max_iterations": 50},
    "most_clusters": {"basis": BASIS, "dims": 2},
    "neighbour_vectors": {"heldout": TEXT, "words": SUPPORT.words},
    "orthant_coherence": {
        "basis": BASIS,
        "labels": LABELS,
        "dims": 2,
        "neighbours": NEIGHBOURS,
        "n_permutations": 2,
        "n_rotations": 2,
    },
    "orthants": {"basis": BASIS, "dims": 2},
    "predicted_order": {"texts": [TEXT, TEXT[30:], TEXT[60:]], "k": 3, **FEW},
    "refinement_tree": {"basis": BASIS, "depth": 2},
    "ridge_path": {"S_centred": CENTRED, "d": 4, "ridges": [0.1], "max_iterations": 5},
    "save_support": {"support": SUPPORT, "path": "written"},
    "shuffled_next_words": {"support": SUPPORT},
    "signature_lift": {
        "support": SUPPORT,
        "basis": BASIS,
        "dims": 2,
        "n_permutations": 2,
        "n_rotations": 2,
    },
    "spectral_clusters": {"basis": BASIS, "k": 2, "dims": 2},
    "step_imbalance": {"V": 4, "R": 3},
    "subspace_overlap": {"U": np.eye(3), "Q": np.eye(3), "ks": [1, 2]},
    "support_confusion": {"logits": LOGITS, "S": NESTED},
    "support_from_pairs": {
        "pairs": [("grows", "oak"), ("grows", "rose"), ("barks", "dog")]
    },
    "support_matrix": {
        "tokens": TEXT,
        "vocab_size": 20,
        "n_contexts": 20,
        "lengths": (1, 2),
    },
    "svd_concepts": {"support": SUPPORT, "k": 3},
    "token_stream": {"tokens": TEXT},
    "train_ufm": {"S_centred": CENTRED, "d": 4, "duration": 0.1, "records": 2},
    "word_classes": {"words": ["monday", "one"]},
    "word_stream": {"texts": [TEXT]},
}
VIEWS = {
    "coherence_view": {
        "scores": {
            2: semantics.orthant_coherence(
                BASIS, LABELS, 2, n_permutations=2, n_rotations=2
            )
        }
    },
    "concepts_view": {"basis": BASIS},
    "confusion_view": {
        "confusion": semantics.support_confusion(LOGITS, NESTED).assign_coords(
            step=[0, 1, 2]
        )
    },
    "lift_view": {
        "lift": semantics.signature_lift(
            SUPPORT, BASIS, 2, n_permutations=2, n_rotations=2
        )
    },
    "orthants_view": {"groups": semantics.orthants(BASIS, 2)},
    "semantics_page": {"basis": BASIS, "support": SUPPORT, "dims": 2, "n_draws": 2},
    "space_view": {"basis": BASIS},
    "tree_view": {"tree": semantics.refinement_tree(BASIS, 2)},
    "ufm_view": {"run": semantics.train_ufm(CENTRED, 2, duration=0.1, records=2)},
}
ARGUMENTS = [
    (name, argument)
    for name in CALLS
    for argument, parameter in inspect.signature(
        getattr(semantics, name)
    ).parameters.items()
    if parameter.kind is not parameter.VAR_KEYWORD
]


def hostile():
    """Return values that an argument may be given by mistake; iterators are new each time."""
    return [
        *(
            None,
            True,
            "",
            "a b c",
            b"ab",
            0,
            -1,
            2,
            10**30,
            2.5,
            np.nan,
            np.inf,
            1j,
            object(),
            len,
        ),
        *(
            [],
            (),
            {},
            {"a": 1},
            set(),
            [[]],
            [None],
            [-1],
            [1.5],
            [np.nan],
            ["a"],
            ["a b"],
        ),
        *(
            [["a", "b"]],
            [[["a"]]],
            ["a", 1],
            [[1], [2, 3]],
            [b"a"],
            [{}],
            [("a", None)],
            [(1, 2)],
        ),
        *(
            iter(()),
            iter(["a", "b"]),
            (letter for letter in "ab"),
            range(3),
            Path("nowhere"),
        ),
        *(
            np.zeros((0, 3)),
            np.ones((2, 2)),
            np.full((3, 3), np.nan),
            np.array("a"),
            np.array(1),
        ),
        *(
            np.array(["a", "b"]),
            np.array([None]),
            torch.ones(2, 2),
            torch.ones(2) * 1j,
            BASIS,
        ),
    ]


def test_every_function_is_tried():
    names = [*semantics.__all__, *homes("semantics")]
    public = {name for name in names if inspect.isfunction(getattr(semantics, name))}
    assert public == set(CALLS)


@pytest.fixture(autouse=True)
def _in_a_folder_with_a_support_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    semantics.save_support(SUPPORT, "support.npz")


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_nothing_but_an_error_of_our_own_comes_of_a_wrong_value(name, argument):
    assert _raw_errors(getattr(semantics, name), CALLS[name], argument) == []


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_but_an_error_of_our_own_comes_of_a_wrong_value_in_a_view(name):
    function = getattr(semantics_views, name)
    for argument in inspect.signature(function).parameters:
        assert _raw_errors(function, VIEWS[name], argument) == []


def _raw_errors(function, given, argument):
    """Return the wrong values that are met by another error than one of ours, with it."""
    function(**given)
    raw = []
    for i in range(len(hostile())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of degenerate input that is let in
            try:
                function(**{**given, argument: hostile()[i]})
            except OntogenyError:
                continue
            except Exception as error:  # every kind of it counts
                raw.append((hostile()[i], error))
    return raw


NAMES = ("words", "names", "pairs", "ks", "groups", "exclude", "dims", "lengths")


@pytest.mark.parametrize(("name", "argument"), [a for a in ARGUMENTS if a[1] in NAMES])
@pytest.mark.parametrize("value", [b"ab", {"a": 1}, 2.5, len], ids=str)
def test_what_is_no_list_is_refused_by_name(name, argument, value):
    with pytest.raises(ArgumentError, match=rf"{argument}\b.* must "):
        getattr(semantics, name)(**{**CALLS[name], argument: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: semantics.word_classes("monday"),
            "words must be a list of words; got 'monday'",
        ),
        (
            lambda: semantics.word_classes(["a", 1]),
            "words must be a list of words; entry 1 is 1",
        ),
        (
            lambda: semantics.word_stream(None),
            "texts must be a list of texts, one text or a path",
        ),
        (
            lambda: semantics.word_stream({"train": TEXT}),
            r"texts must .* got \{'train'|a dict",
        ),
        (
            lambda: semantics.word_stream([]),
            "texts must hold a text; they are empty, or were all",
        ),
        (
            lambda: semantics.word_stream(TEXT, split=len),
            "split: what it returns must be a list",
        ),
        (
            lambda: semantics.word_stream(TEXT, split=str.upper),
            "split: .*must be a list of words",
        ),
        (
            lambda: semantics.word_stream(TEXT, lowercase=None),
            "lowercase must be True or False",
        ),
        (
            lambda: semantics.coherence(["cat dog"], LABELS),
            "groups: entry 0 must be a list of wor",
        ),
        (
            lambda: semantics.coherence(GROUPS, LABELS, neighbours=1),
            "neighbours must be of type",
        ),
        (
            lambda: semantics.support_matrix(TEXT, lengths=10**30),
            "longest <= 1000; got 1000",
        ),
        (
            lambda: semantics.support_matrix(TEXT, exclude=[["a"]]),
            r"exclude must hold words or id",
        ),
        (
            lambda: semantics.orthants(BASIS, 10**30),
            "dims must be concepts 0 to 3 of this basis",
        ),
        (lambda: signatures([[np.nan]]), "vectors must be an array of shape"),
        (lambda: signatures(np.array([[np.nan]])), "vectors hold NaN"),
        (
            lambda: semantics.train_ufm(CENTRED, 2, P=torch.eye(2)),
            "P must be of the kind of S_cen",
        ),
        (
            lambda: semantics.save_support(TEXT, "x"),
            "support must be of type Support; got",
        ),
        (
            lambda: semantics.load_support(None),
            "path must be the path of a file; got None",
        ),
        (
            lambda: semantics.svd_concepts(SUPPORT, weights="pj"),
            "weights must be one of 'pi'",
        ),
        (
            lambda: semantics.svd_concepts(SUPPORT, weights=b"pi"),
            "weights must be an array of numbers",
        ),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(OntogenyError, match=message):
        call()


def test_a_generator_serves_where_a_list_does_and_is_told_when_used_up():
    texts = (text for text in ["a cat sat", "a dog ran"])
    assert semantics.word_stream(texts).words == ("a", "cat", "sat", "dog", "ran")
    with pytest.raises(ArgumentError, match="or were all read before"):
        semantics.word_stream(texts)
    assert semantics.word_classes(word for word in ["june"]) == {"june": "month"}
    pairs = (pair for pair in [("grows roots", "oak"), (iter(["barks"]), "dog")])
    assert list(semantics.support_from_pairs(pairs).contexts) == [
        ("grows", "roots"),
        ("barks",),
    ]
    found = semantics.neighbour_vectors(TEXT, (word for word in ["cat", "dog"]))
    assert found.words == ("cat", "dog")
