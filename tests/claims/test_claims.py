"""Claims: what one may say, and that columns of a result hold all of it."""

import math

import numpy as np
import pytest
import xarray as xr

from ontogeny.claims import (
    RULES,
    Beside,
    Certainty,
    Claim,
    Kind,
    Reason,
    Subject,
    from_dataset,
    to_dataset,
)
from ontogeny.dynamics.reasons import OPEN
from ontogeny.dynamics.reasons import Reason as RowReason
from ontogeny.errors import ArgumentError
from ontogeny.words.page_claims import claims_of, claims_of_result
from ontogeny.words.row_claims import REASONS as _REASONS

LOSS = Subject("loss", "loss")


def sure(kind, **fields):
    needed = dict.fromkeys(RULES[kind].fields, 1.0)
    if RULES[kind].beside:
        needed["beside"] = (Beside("reference", "chance", 0.5),)
    return Claim(kind, LOSS, Certainty.SURE, **{**needed, **fields})


EVERY = [
    *(sure(kind) for kind in Kind),
    *(Claim(Kind.CHANGED, LOSS, Certainty.OPEN, reason) for reason in Reason),
    Claim(Kind.BEYOND_MOTION, LOSS, Certainty.AS_CONTROLS),
    Claim(
        Kind.LEARNED,
        Subject(
            "pairs", "accuracy", "h.0; mlp", "“is” · and\nare", "seed 1", step=40.0
        ),
        Certainty.NOT_TESTED,
        Reason.NO_CONTROLS,
        value=-0.5,
        low=-0.7,
        high=-0.3,
        first=1.0,
        last=0.5,
        units="nats per token",
        since=3.5,
        since_low=2.0,
        since_high=8.0,
        p_value=0.04,
        corrected_over=12,
        needed=6.0,
        beside=(
            Beside("control", "turned 0", -0.1, -0.4),
            Beside("null", "chance", 0.5),
        ),
        evidence=("pairs/accuracy", "pairs/right"),
        figure="pairs/accuracy",
    ),
]


def test_columns_hold_every_claim(tmp_path):
    data = to_dataset(EVERY)
    assert from_dataset(data) == EVERY
    assert {*data.sizes} == {"claim", "comparison"}
    xr.DataTree(data).to_zarr(tmp_path / "result.zarr")
    with xr.open_datatree(tmp_path / "result.zarr", engine="zarr") as opened:
        assert from_dataset(opened.to_dataset()) == EVERY
        assert claims_of_result(opened) == EVERY
        of_last = opened.beside_claim == len(EVERY) - 1
        assert [str(name) for name in opened.beside_name[of_last].values] == [
            "turned 0",
            "chance",
        ]


def test_no_claim_at_all_is_columns_too():
    assert from_dataset(to_dataset([])) == []


@pytest.mark.parametrize("certainty", [Certainty.OPEN, Certainty.NOT_TESTED])
def test_what_is_unsettled_says_why(certainty):
    with pytest.raises(
        ArgumentError, match=f"reason must be given.* {certainty.value}"
    ):
        Claim(Kind.CHANGED, LOSS, certainty)


@pytest.mark.parametrize("certainty", [Certainty.SURE, Certainty.AS_CONTROLS])
def test_what_is_settled_has_no_reason(certainty):
    with pytest.raises(ArgumentError, match="reason must be None"):
        Claim(Kind.FADED, LOSS, certainty, Reason.FEW_TEXTS)


@pytest.mark.parametrize("kind", [kind for kind in Kind if RULES[kind].fields])
def test_a_sure_claim_has_the_fields_of_its_kind(kind):
    missing = RULES[kind].fields[0]
    with pytest.raises(ArgumentError, match=f"{missing} must be a number"):
        sure(kind, **{missing: math.nan})


@pytest.mark.parametrize("kind", [kind for kind in Kind if RULES[kind].beside])
def test_a_sure_claim_names_what_it_was_judged_against(kind):
    with pytest.raises(
        ArgumentError, match="beside must hold what it was judged against"
    ):
        sure(kind, beside=())


@pytest.mark.parametrize("column", ["kind", "certainty", "reason"])
def test_words_that_no_claim_may_have_are_refused(column):
    data = to_dataset([Claim(Kind.CHANGED, LOSS, Certainty.OPEN, Reason.FEW_TEXTS)])
    data[f"claim_{column}"] = ("claim", np.array(["perhaps"], dtype=object))
    with pytest.raises(ArgumentError, match=f"must not have the {column} 'perhaps'"):
        from_dataset(data)


def test_what_is_sure_comes_before_what_is_open():
    open_ = Claim(Kind.DAMAGED, LOSS, Certainty.OPEN, Reason.PROBABLE)
    assert all(sure(kind).weight > open_.weight for kind in Kind)
    assert all(0 < rule.weight <= 1 for rule in RULES.values()) and {*RULES} == {*Kind}


FLAGS = (
    "noise_known",
    "moved",
    "judgeable",
    "changed",
    "beyond",
    "learned",
    "can_learn",
)


def node(changes, controls=None, **rows):
    """A judged node: one quantity in as many layers as there are changes."""
    count = len(changes)
    first, last = np.zeros(count), np.asarray(changes, dtype=float)
    data = {
        "x": (("step", "layer"), np.stack([first, last]), {"units": "nats"}),
        "row": ("row", np.array([f"h.{i} · x" for i in range(count)], dtype=object)),
        "row_name": ("row", np.array(["x"] * count, dtype=object)),
        "row_layer": ("row", np.array([f"h.{i}" for i in range(count)], dtype=object)),
        "row_quantity": ("row", np.array(["x"] * count, dtype=object)),
        "progress": (("row", "step"), np.tile([0.0, 1.0], (count, 1))),
        "first_value": ("row", first),
        "last_value": ("row", last),
        "change_floor": ("row", np.full(count, 0.1)),
        "half_step": ("row", np.full(count, 4.0)),
        "half_step_low": ("row", np.full(count, 2.0)),
        "half_step_high": ("row", np.full(count, 8.0)),
        "p_uncorrected": ("row", np.full(count, 0.01)),
        "p_value": ("row", np.full(count, 0.02)),
    }
    defaults = {"noise_known": True, "moved": True, "judgeable": True}
    for name in FLAGS:
        value = rows.pop(name, defaults.get(name, False))
        data[name] = ("row", np.broadcast_to(np.asarray(value), count).copy())
    for name, value in rows.items():
        data[name] = (
            "row",
            np.broadcast_to(np.asarray(value, dtype=float), count).copy(),
        )
    if controls is not None:
        names = [f"turned {i}" for i in range(np.shape(controls)[1])]
        over = ("row", "run")
        data["control_first"] = (over, np.zeros(np.shape(controls)))
        data["control_last"] = (over, np.asarray(controls, dtype=float))
        data["control_half_step"] = (over, np.full(np.shape(controls), 4.0))
        data["run_change"] = (over, np.repeat(last[:, None], len(names), axis=1))
        data["run"] = ("run", names)
        data.setdefault("p_control", ("row", np.full(count, 0.5)))
    layers = [f"h.{i}" for i in range(count)]
    return xr.Dataset(data, {"step": [0, 8], "layer": layers})


def said(data, kind):
    return [claim for claim in claims_of({"x": data}, {}) if claim.kind is kind]


def test_a_row_that_changed_is_a_claim_with_its_numbers():
    [claim] = said(node([2.0], changed=True), Kind.CHANGED)
    assert claim.certainty is Certainty.SURE
    assert claim.subject == Subject("x", "x", "h.0")
    assert (claim.first, claim.last, claim.value) == (0.0, 2.0, 2.0)
    assert (claim.low, claim.high) == pytest.approx((1.9, 2.1))
    assert (claim.since_low, claim.since, claim.since_high) == (2.0, 4.0, 8.0)
    assert (
        claim.units == "nats"
        and claim.evidence == ("x/x",)
        and claim.corrected_over == 1
    )


@pytest.mark.parametrize("failed", [reason for reason in RowReason if reason])
def test_a_row_that_is_not_shown_to_change_is_open_for_the_test_that_it_failed(failed):
    known = failed is not RowReason.UNMEASURED
    data = node([2.0], judgeable=failed not in OPEN, noise_known=known)
    data["reason"] = ("row", np.array([str(failed)], dtype=object))
    [claim] = said(data, Kind.CHANGED)
    assert claim.certainty is Certainty.OPEN
    assert claim.reason is _REASONS[failed]


def test_a_p_value_is_corrected_over_the_rows_that_have_one_of_its_kind():
    data = node([2.0, 3.0, 4.0], can_learn=True, changed=True)
    data["p_learned"] = ("row", [0.01, np.nan, np.nan])
    for kind, tests in ((Kind.CHANGED, 3), (Kind.LEARNED, 1), (Kind.BEYOND_MOTION, 0)):
        assert {claim.corrected_over for claim in said(data, kind)} == {tests}


def test_what_was_forgotten_is_a_claim_of_its_own():
    data = node([2.0], changed=True, beyond=True, can_learn=True)
    data = data.assign(lost=("row", [True]), p_lost=("row", [0.003]))
    [claim] = said(data, Kind.FORGOT)
    assert claim.certainty is Certainty.SURE and claim.last == 2.0
    assert claim.p_value == said(data, Kind.CHANGED)[0].p_value == 0.003
    assert not said(node([2.0], changed=True, can_learn=True), Kind.FORGOT)


def test_without_controls_motion_was_not_tested():
    [claim] = said(node([2.0], changed=True), Kind.BEYOND_MOTION)
    assert (claim.certainty, claim.reason) == (Certainty.NOT_TESTED, Reason.NO_CONTROLS)


def test_controls_that_agree_and_would_show_a_difference_make_a_row_like_them():
    data = node([2.0, 2.0], controls=[[2.0, 2.01, 1.99], [1.0, 3.0, 2.0]], changed=True)
    like, spread = sorted(
        said(data, Kind.BEYOND_MOTION), key=lambda claim: claim.subject.layer
    )
    assert like.certainty is Certainty.AS_CONTROLS
    assert (spread.certainty, spread.reason) == (Certainty.OPEN, Reason.CONTROLS_SPREAD)
    assert [beside.value for beside in spread.beside] == [1.0, 3.0, 2.0]
    assert {beside.own for beside in spread.beside} == {2.0}


def test_how_many_controls_would_decide_stands_in_the_claim():
    data = node([2.0], controls=[[1.0, 3.0, 2.0]], changed=True, controls_needed=7.0)
    [claim] = said(data, Kind.BEYOND_MOTION)
    assert (claim.reason, claim.needed) == (Reason.FEW_CONTROLS, 7.0)


def test_rows_of_weights_are_no_claims():
    assert not claims_of(
        {"x": node([2.0], changed=True).assign_attrs(role="motion")}, {}
    )


def test_rows_of_one_variable_and_layer_have_labels():
    data = node([2.0, 1.0], changed=True)
    for name in ("row", "row_name"):
        data[name] = ("row", np.array(["verbs", "nouns"], dtype=object))
    data["row_layer"] = ("row", np.array(["", ""], dtype=object))
    assert {claim.subject.label for claim in said(data, Kind.CHANGED)} == {
        "verbs",
        "nouns",
    }


def test_checkpoints_that_are_no_such_step_are_damaged():
    findings = [
        {"kind": "identical", "certainty": "certain", "steps": [20, 30]},
        {"kind": "altered", "certainty": "probable", "steps": [40]},
        {"kind": "missing", "certainty": "certain", "steps": [50]},
    ]
    claims = claims_of({}, {}, findings)
    assert [(c.subject.step, c.certainty.value) for c in claims] == [
        (20.0, "sure"),
        (30.0, "sure"),
        (40.0, "open"),
    ]


def test_an_observable_claims_more_of_its_node():
    more = {"x": [sure(Kind.BORN)]}
    assert Kind.BORN in {claim.kind for claim in claims_of({"x": node([1.0])}, more)}
