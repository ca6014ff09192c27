"""Every argument of every observable is legal, or refused when the observable is made."""

import dataclasses
import json
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import every_kind
from ontogeny import concepts, distances
from ontogeny.errors import ArgumentError
from ontogeny.observables import Loss, ReadoutAccuracy, make, registry
from ontogeny_papers.dynamics.averages import AVERAGES
from ontogeny_papers.dynamics.least_norm import ENCODER_NORMS

LONGEST = 2**63 - 1
HOSTILE = (
    *(
        None,
        True,
        False,
        np.True_,
        ...,
        object,
        object(),
        len,
        1j,
        b"ica",
        bytearray(b"a"),
    ),
    *("", "  ", "no such name", "a/b", "..", "ica", "8", "\n", "ä" * 80, "!", "nan"),
    *(
        -3,
        -1,
        0,
        1,
        2,
        3,
        4,
        5,
        18,
        19,
        128,
        129,
        2**31,
        2**63,
        10**400,
        np.int64(3),
        np.uint8(0),
    ),
    *(-2.5, -1e-300, 0.0, 1e-13, 0.5, 1.0, 1.5, 2.5, 1e300, np.float32(0.25)),
    *(math.nan, math.inf, -math.inf, np.float64("nan")),
    *(
        [],
        (),
        [[]],
        [""],
        [None],
        [0],
        [-1],
        [True],
        [1.5],
        [math.nan],
        [2**70],
        [3, 4],
        [4, 3],
    ),
    *(
        ["a", "a"],
        ["a", "b"],
        ["a", 1],
        [[0, 1], [2, 3]],
        [[1, 0], [2, 3]],
        [[0, math.inf]] * 2,
    ),
    *(
        {},
        {"a": 1},
        {"a": math.nan},
        {"a": None},
        {1: 2},
        {"": 1},
        {"a"},
        {"alpha": -3},
    ),
    *(range(3), iter("ab"), np.arange(3), np.zeros(0), np.ones((2, 2)), np.array("a")),
)


def whole(least=1, most=LONGEST):
    return lambda v: (
        isinstance(v, int | np.integer)
        and not isinstance(v, bool)
        and least <= v <= most
    )


def number(legal=lambda v: True, most=LONGEST):
    def judge(v):
        if isinstance(v, bool) or not isinstance(
            v, int | float | np.integer | np.floating
        ):
            return False
        return abs(v) <= most if isinstance(v, int) else True

    return lambda v: judge(v) and math.isfinite(v) and legal(v)


def among(*names):
    return lambda v: isinstance(v, str) and v in names


def optional(rule):
    return lambda v: v is None or rule(v)


def text(v):
    return isinstance(v, str | np.str_) and bool(v.strip())


def node(v):
    fine = text(v) and all(letter.isalnum() or letter in "_-." for letter in v)
    return fine and v[0] not in "-." and len(v.encode()) <= 100


def listed(v):
    v = v.tolist() if isinstance(v, np.ndarray) else v
    return list(v) if isinstance(v, list | tuple | range) else None


def several(rule, fewest=0):
    """A list of which none comes twice; one alone stands for a list of one."""

    def judge(v):
        items = listed(v)
        if items is None:
            items = [v] if isinstance(v, str | int | np.integer) else [None]
        return (
            len(items) >= fewest
            and all(map(rule, items))
            and len(set(items)) == len(items)
        )

    return judge


def one_or_several(rule):
    return lambda v: rule(v) or (listed(v) is not None and several(rule, 1)(v))


def patterns(v):
    items = [v] if isinstance(v, str) else listed(v)
    return bool(items) and all(text(each) and each.strip("!") for each in items)


def table(v):
    # None of the hostile ones is an option of ICA.
    return isinstance(v, Mapping) and not v


def labels(v):
    return isinstance(v, Mapping) and all(
        text(key) and (text(each) or number()(each)) for key, each in v.items()
    )


def span(v):
    items = listed(v)
    return items is not None and len(items) == 2 and all(map(number(), items))


def window(v):
    return v is None or (span(v) and 0 <= listed(v)[0] < listed(v)[1])


def windows(v):
    items = listed(v)
    pairs = items is not None and len(items) == 2 and all(map(span, items))
    return among("halves", "found", "table-2", "table-3")(v) or (
        pairs and all(low <= high for low, high in items)
    )


def flag(v):
    return isinstance(v, bool | np.bool_)


def between(low, high):
    return number(lambda v: low < v < high)


positive, at_least_zero = number(lambda v: v > 0), number(lambda v: v >= 0)
MEASURES = (*distances.names(), "columnwise", "optimal", "internal", "weighted")
SIMILARITIES = ("cka", "svcca", "pwcca", "mutual-neighbours")
RULES = {
    "label": optional(node),
    "of": node,
    "on": optional(text),
    "layers": patterns,
    "shown_texts": whole(0),
    "blocks": patterns,
    "tokens": among("all", "later", "mean", "last", "cls", "masked"),
    "max_tokens": optional(whole(2)),
    "random_state": whole(0, 2**31 - 1),
    "extractor": among(*concepts.names()),
    "n_concepts": whole(),
    "options": table,
    "mask_fraction": between(0, 1),
    "variable": text,
    "select": labels,
    "first": optional(whole(0)),
    "last": optional(whole(0)),
    "loss": optional(among("next-token", "masked", "classification")),
    "lr": positive,
    "pairs": whole(),
    "batch_size": whole(),
    "method": among("difference", "bracket"),
    "dtype": optional(among("float32", "float64")),
    "k": whole(),
    "intercept": flag,
}
RULES_OF = {
    "loss": {
        "objective": among("auto", "causal", "masked"),
        "floor": optional(at_least_zero),
    },
    "place-losses": {"every": flag, "objective": among("auto", "causal")},
    "training-texts": {
        "training": text,
        "objective": among("auto", "causal", "masked"),
    },
    "predictions": {
        "sentences": lambda v: listed(v) == [],  # none of the hostile ones has a gap
        "n_gaps": whole(),
        "top": whole(),
        "objective": among("auto", "causal", "masked"),
    },
    "tuned-difference": {"max_tokens": whole(2), "first": whole()},
    "token-losses": {
        "n_texts": whole(),
        "max_tokens": whole(2),
        "objective": among("auto", "causal", "masked"),
    },
    "activation-path": {"coordinates": whole()},
    "effective-dimensions": {"outliers": among("keep", "drop")},
    "concepts": {
        "distances": several(among(*distances.names()), 1),
        "correlations": several(among("columnwise", "optimal", "internal", "weighted")),
        "init": among("seeded", "reference", "chain"),
        "keep_codes": flag,
        "keep_dictionaries": among("float32", "float16", "none"),
        "examples": whole(0),
    },
    "similarity": {"measures": several(among(*SIMILARITIES), 1)},
    "layer-similarity": {"measures": several(among(*SIMILARITIES), 1)},
    "step-similarity": {"max_tokens": whole(8)},
    "attention-heads": {"n_sequences": whole(4), "period": whole(3)},
    "copying-heads": {"n_draws": whole()},
    "in-context-learning": {
        "early": optional(whole(2)),
        "late": optional(whole(2)),
        "window": optional(whole()),
        "objective": among("auto", "causal"),
    },
    "ngram-agreement": {
        "counted": optional(text),
        "orders": several(whole(1, 4), 1),
        "objective": among("auto", "causal", "masked"),
    },
    "learning-coefficient": {
        "lr": positive,
        "n_beta": positive,
        "localization": at_least_zero,
        "chains": whole(2),
        "n_draws": whole(8),
        "burn_in": number(lambda v: 0 <= v <= 0.75),
        "length": optional(whole(2)),
    },
    "embedding-frequencies": {"tokens": optional(whole(4)), "n_draws": whole()},
    "feature-geometry": {"least": positive, "n_draws": whole()},
    "text-statistics": {
        "depth": whole(1, 8),
        "loss": optional(node),
        "n_draws": whole(3),
        "vocab_size": whole(4),
        "n_contexts": whole(),
        "objective": among("auto", "causal", "masked"),
    },
    "logit-lens": {"objective": among("auto", "causal", "masked")},
    "calibration": {"bins": whole(2), "objective": among("auto", "causal", "masked")},
    "concept-distances": {"measures": several(among(*MEASURES), 1)},
    "concept-tracks": {
        "threshold": optional(number(lambda v: 0 <= v <= 1)),
        "level": number(lambda v: 0 <= v <= 1),
    },
    "weight-rank": {
        "variance": number(lambda v: 0 < v <= 1),
        "n_draws": whole(4),
        "max_snapshots": whole(3),
    },
    "encoder-dynamics": {
        "norm": among(*ENCODER_NORMS),
        "ridge": at_least_zero,
        "temperature": number(lambda v: v >= 1e-12),
        "test_fraction": between(0, 1),
        "test_on": optional(text),
    },
    "lipschitz": {
        "distance": among(*distances.names()),
        "relative_radius": between(0, 1),
    },
    "transform-dynamics": {"max_condition": number(lambda v: v >= 1)},
    "orientation": {"n_draws": whole()},
    "readout-accuracy": {"on": several(text), "cut": several(whole())},
    "readout-attention": {"on": several(text), "top": several(whole(), 1)},
    "sae-probe": {
        "marker_ids": several(whole(0), 1),
        "layer": lambda v: text(v) and bool(v.strip("!")),
        "variants": several(among("vanilla", "topk"), 1),
        "n_latents": whole(10),  # five are removed, at most half of them
        "removed": whole(1, 128),
        "alpha": positive,
        "epochs": whole(),
        "n_draws": whole(),
    },
    "intrinsic-dimension": {
        "windows": windows,
        "averages": several(among(*AVERAGES), 1),
        "methods": several(among("regression", "origin", "facco", "likelihood"), 1),
        "discard": number(lambda v: 0 <= v < 0.5),
        "n_draws": whole(2),
    },
    "word-semantics": {
        "support": lambda v: v is None,  # a file that is there; see below
        "objective": among("auto", "causal", "masked"),
        "vocab_size": whole(4),
        "n_contexts": whole(),
        "lengths": lambda v: (
            v is None
            or (
                span(v)
                and all(map(whole(), listed(v)))
                and listed(v)[0] <= listed(v)[1]
            )
        ),
        "n_concepts": whole(5),
        "n_draws": whole(3),
    },
    "regimes": {
        "jointly": lambda v: isinstance(v, str),
        "alpha": between(0, 1),
        "n_draws": whole(19),
    },
    "fits": {"offset": flag, "criterion": among("aicc", "bic")},
    "signals": {
        "against": node,
        "against_variable": text,
        "against_select": labels,
        "half_window": whole(0),
        "n_draws": whole(19),
    },
    "minimal-pairs": {
        "examples": lambda v: listed(v) == []
    },  # files that are there; see its tests
    "learning-dynamics": {"noise": optional(at_least_zero)},
    "joint-concepts": {
        "n_concepts": whole(8),
        "method": among("ica", "svd", "batchtopk", "l1"),
        "n_active": whole(1, 200),
        "fit_steps": lambda v: (
            whole()(v) or (listed(v) and all(map(whole(0), listed(v))))
        ),
        "readable": number(lambda v: 0 <= v <= 1),
        "examples": whole(0),
    },
    "learned-concepts": {
        "n_concepts": whole(),
        "examples": whole(0),
        "keep_directions": flag,
        "tokens": among("all", "later", "last", "cls", "masked"),
    },
    "concept-layers": {
        "n_concepts": whole(8),
        "n_active": whole(1, 100),
        "fit_steps": whole(),
        "readable": number(lambda v: 0 <= v <= 1),
    },
    "vocabulary-concepts": {
        "n_concepts": whole(4),
        "method": among("ica", "svd", "batchtopk", "l1"),
        "n_active": whole(1, 100),
        "fit_steps": whole(),
        "readable": number(lambda v: 0 <= v <= 1),
        "start": among("auto", "subtracted", "kept"),
        "max_tokens": optional(whole(4)),
        "nulls": whole(0),
        "keep_codes": flag,
    },
}
RULES_OF["concept-change"] = {"of": node, "readable": number(lambda v: 0 <= v <= 1)}
RULES_OF["concept-effects"] = {
    "of": node,
    "objective": among("auto", "causal", "masked"),
    "n_removed": whole(),
    "n_draws": whole(3),
    "tokens": among("all", "last", "cls"),  # "masked" needs that share of masked tokens
}
LABELLED = {
    "on": optional(one_or_several(text)),
    "l2": at_least_zero,
    "solver": among("lbfgs", "adam", "mean-difference"),
    "train_fraction": between(0, 1),
    "n_random": whole(),
    "n_refits": whole(),
}
RULES_OF["cav"] = LABELLED
RULES_OF["tcav"] = LABELLED | {
    "target": among("auto", "masked", "causal", "class"),
    "quantity": among("logit", "log-probability"),
    "evaluate": among("positive", "all"),
    "random": lambda v: (
        v is None or (one_or_several(text)(v) and len(listed(v) or [v]) == 1)
    ),
    "early": window,
    "late": window,
}
ARGUMENTS = [
    (kind, field.name)
    for kind in every_kind.tryable()
    for field in dataclasses.fields(registry.kinds()[kind])
]


def needed(kind):
    return {name: every_kind.NEEDED[name] for name in every_kind.required(kind)}


def is_legal(kind, name, value):
    """Whether a value is legal by the rules above; without a rule, what the observable takes."""
    rule = RULES_OF.get(kind, {}).get(name) or RULES.get(name)
    if rule:
        return rule(value)
    try:
        make(kind, **{**needed(kind), name: value})
    except ArgumentError:
        return False
    return True


def parts(value):
    """Return a value and what it holds, as an error message may show it."""
    inner = (
        [*value, *value.values()] if isinstance(value, Mapping) else listed(value) or []
    )
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return [
        value,
        plain,
        astuple(plain),
        *(each for item in inner for each in parts(item)),
    ]


def astuple(value):
    return (
        tuple(map(astuple, value)) if isinstance(value, list | range | tuple) else value
    )


def check(kind, name, value):
    arguments = {**needed(kind), name: value}
    if is_legal(kind, name, value):
        usable(make(kind, **arguments))
        return
    with pytest.raises(ArgumentError) as found:
        make(kind, **arguments)
    message = str(found.value)
    if name == "options":  # named by the option itself: see below
        named = isinstance(value, Mapping) and all(
            isinstance(key, str) for key in value
        )
        name = next(iter(value)) if named else name
    assert kind in message and name in message, message
    assert "must" in message or " has no option " in message, message
    assert any(repr(each) in message for each in parts(value)), message
    with pytest.raises(ArgumentError):
        registry.kinds()[kind](**arguments)


def usable(observable):
    """What a plan does with an observable: it is named, compared, sent to workers, written."""
    observable.needs()
    assert hash(pickle.loads(pickle.dumps(observable))) == hash(observable)
    assert observable.name
    json.dumps(observable.arguments(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), ARGUMENTS)
def test_an_argument_is_legal_or_refused_when_the_observable_is_made(kind, name):
    for value in HOSTILE:
        check(kind, name, value)


@settings(max_examples=25, derandomize=True)
@given(
    data=st.data(),
    value=st.one_of(
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.lists(st.integers(-2, 50) | st.text(max_size=3) | st.floats(), max_size=3),
        st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=2),
    ),
)
@pytest.mark.parametrize("kind", every_kind.tryable())
def test_drawn_values_are_legal_or_refused(kind, data, value):
    name = data.draw(st.sampled_from([name for own, name in ARGUMENTS if own == kind]))
    check(kind, name, value)


MANY, SIZE = whole(), number(lambda v: v > 0, most=1e308)
TOLERANCE = number(lambda v: v >= 0, most=1e308)
OPTIONS = {
    **dict.fromkeys(("max_iter", "k", "epochs", "batch_size", "n_init"), MANY),
    **dict.fromkeys(("alpha", "learning_rate"), SIZE),
    "tol": TOLERANCE,
    "landmarks": optional(MANY),
    "strict_convex": flag,
    "fun": among("logcosh", "exp", "cube"),
    "sparse": among("dictionary", "codes"),
}
OPTIONS_OF = {
    ("nmf", "nonnegative"): optional(among("relu", "split", "shift")),
    ("semi-nmf", "nonnegative"): among("codes", "dictionary"),
    ("convex-nmf", "variant"): among("accelerated", "multiplicative", "report"),
    ("convex-nmf", "tol"): optional(TOLERANCE),
    ("sae", "variant"): among("vanilla", "topk", "batchtopk", "jumprelu"),
}


@pytest.mark.parametrize("extractor", concepts.names())
def test_an_option_of_an_extractor_is_legal_or_refused_when_the_observable_is_made(
    extractor,
):
    known = concepts.make(extractor).get_params()
    for option in set(known) - {"n_concepts", "random_state"}:
        legal = OPTIONS_OF.get((extractor, option)) or OPTIONS[option]
        for value in HOSTILE:
            arguments = {"extractor": extractor, "options": {option: value}}
            if legal(value):
                usable(make("concepts", **arguments))
                continue
            with pytest.raises(ArgumentError, match=f"'concepts': {option} must be "):
                make("concepts", **arguments)
    for own in ("n_concepts", "random_state", "name"):
        with pytest.raises(ArgumentError, match=f"options must not hold '{own}'"):
            make("concepts", extractor=extractor, options={own: 3})


TWO = {"layers": "*", "on": ["a", "b"]}
INTERNAL = {"correlations": ["internal"]}


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (
            "fits",
            {"of": "a", "first": 5, "last": 5},
            "first must be before last; got 5 and 5",
        ),
        (
            "fits",
            {"of": "a", "first": 2**63},
            "first must be .* of at most 64 bits; got 9223",
        ),
        (
            "sae-probe",
            {"marker_ids": 1, "n_latents": 8},
            "removed must be at most half .* got 5",
        ),
        (
            "learned-concepts",
            {"n_concepts": 60, "n_latents": 60},
            "n_latents must be more than n_concepts .60., .* or 0 to fit none; got 60",
        ),
        (
            "word-semantics",
            {"on": "a", "support": "b"},
            "an input set .on. or as a file .support.",
        ),
        ("word-semantics", {"support": "no.npz"}, "support must be a file.*'no.npz'"),
        (
            "tcav",
            {**TWO, "random": ["c", "d", "e"]},
            "random must be one input set, or one for",
        ),
        ("tcav", {**TWO, "random": "a"}, "random must name other texts.*'a'"),
        (
            "tcav",
            {**TWO, "random": "c", "n_random": 1},
            "n_random must be .* at least 2; got 1",
        ),
        (
            "concepts",
            {"extractor": "ica", "n_concepts": 1, **INTERNAL},
            "at least two concepts",
        ),
        (
            "loss",
            {"label": "ä" * 51},
            "label must be a name .* of at most 100 bytes; got 'ää",
        ),
        (
            "loss",
            {"random_state": 2**31},
            "random_state must be .* at most 2147483647; got 2147",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused_when_made(
    kind, arguments, message
):
    with pytest.raises(ArgumentError, match=f"the observable '{kind}': .*{message}"):
        make(kind, **arguments)


def test_lists_and_numpy_values_make_equal_observables():
    plain = make("readout-accuracy", on=("a", "b"), cut=(1, 2))
    assert make("readout-accuracy", on=["a", "b"], cut=np.array([1, 2])) == plain
    assert ReadoutAccuracy(["a", "b"], range(1, 3)) == plain
    assert hash(ReadoutAccuracy(["a", "b"], [1, 2])) == hash(plain)
    same = make("weight-rank", n_draws=np.int64(8), variance=np.float64(0.5))
    assert (
        same == make("weight-rank", n_draws=8, variance=0.5)
        and type(same.n_draws) is int
    )


def test_the_fields_of_an_observable_of_ones_own_are_checked():
    @dataclasses.dataclass(frozen=True)
    class Own(Loss):
        share: float = 0.5
        note: str = ""

    assert Own(share=1).share == 1
    with pytest.raises(ArgumentError, match=r"^share must be a number; got 'half'"):
        Own(share="half")


@pytest.mark.parametrize("name", ["layers", "blocks"])
@pytest.mark.parametrize(
    "hint",
    [
        str,
        str | None,
        str | list[str],
        tuple[str, ...],
        Sequence[str],
        Annotated[str, "a"],
        Any,
    ],
)
def test_patterns_are_checked_whatever_their_annotation(name, hint):
    fields = [(name, hint, dataclasses.field(default="mlp"))]
    own = dataclasses.make_dataclass("Own", fields, bases=(Loss,), frozen=True)
    assert getattr(own(**{name: "attn"}), name) in ("attn", ("attn",))
    with pytest.raises(
        ArgumentError, match=rf"^{name} must be a pattern or a list of patterns"
    ):
        own(**{name: "!"})


def test_numbers_of_layers_are_no_patterns():
    fields = [("layers", tuple[int, ...], dataclasses.field(default=()))]
    own = dataclasses.make_dataclass("Own", fields, bases=(Loss,), frozen=True)
    assert own().layers == () and own(layers=[1, 2]).layers == (1, 2)
