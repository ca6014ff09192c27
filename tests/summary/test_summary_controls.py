"""What control runs say of rows: held-out controls are nothing special, learned runs are."""

import json

import numpy as np
import pytest
import xarray as xr

from helpers.claimed import certainties, claims, spoken
from helpers.concept_trees import tree
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.dynamics import holm
from ontogeny.figures import Section
from ontogeny.quantities import Quantity
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import _predicted, control_rows, with_controls
from ontogeny.summary.summarise import summarise
from ontogeny.summary.verdicts import _beside_controls, judged
from ontogeny.words.content import read_content
from ontogeny.words.formats import values_words
from ontogeny.words.row_reading import read_rows
from ontogeny.words.row_words import control_ends, facts, standing_of
from ontogeny.words.sections import mark

STEPS = np.array([0, 1, 2, 4, 8, 16, 32, 64, 128, 256])
RISE = np.log1p(STEPS) / np.log1p(STEPS[-1])
LOSS = Quantity("loss", "loss", "nats", rows="loss", better="lower")
NORM = Quantity("norm", "norm", rows="{layer} · norm")


def norms(change, rng, noise=0.01, layers=6):
    values = 1 + np.multiply.outer(change * np.arange(1, layers + 1), RISE)
    values += rng.normal(0, noise, values.shape)
    dims = {"layer": [f"h.{i}" for i in range(layers)], "step": STEPS}
    return xr.Dataset({"norm": (("layer", "step"), values), "norm_stderr": noise}, dims)


def losses(last, rng, noise=0.01):
    values = 8.3 + (last - 8.3) * RISE + rng.normal(0, noise, len(STEPS))
    return xr.Dataset({"loss": ("step", values), "loss_stderr": noise}, {"step": STEPS})


def page(run, controls, quantity):
    names = {f"turned {i}": control for i, control in enumerate(controls)}
    data = with_controls(run, names, [quantity])
    node = summarise(data, [quantity], Section("Node", "What it is."))
    return with_verdicts({"node": node})["node"]


def test_controls_read_at_two_usable_steps_have_no_half_change_step():
    """The half of any two values lies at one step: it was 10 of eight controls, and no measure."""
    # The last one is reference.
    steps, run = (np.array([0, 20, 40]), np.array([3.0, 2.0, np.nan]))
    rows = control_rows(steps, run, np.array([[3.0, 2.5, 2.0], [3.0, 1.0, 0.0]]))
    assert (
        np.isnan(rows["control_half_step"]).all()
        and np.isnan(rows["run_half_step"]).all()
    )
    np.testing.assert_allclose(rows["control_last"], [2.5, 1.0])
    whole = control_rows(steps, np.array([3.0, 2.0, 1.0]), np.array([[3.0, 2.5, 2.0]]))
    assert 0 < whole["control_half_step"][0] < 40

    rng = np.random.default_rng(3)
    twice = [one.where(one.step.isin(STEPS[[0, -1]])) for one in controls_of(rng, 8)]
    node = page(norms(-2.0, rng), twice, NORM)
    assert np.isnan(node.p_control_half).all() and node.beyond.all()
    assert (node.p_control >= 2 * node.p_control_change).all(), (
        "no less strict than with a half"
    )


def controls_of(rng, count=3):
    return [norms(rng.normal(1, 0.1), rng) for _ in range(count)]


def test_a_run_that_moves_as_its_controls_is_called_changed_and_not_beyond():
    rng = np.random.default_rng(0)
    node = page(norms(1.0, rng), controls_of(rng), NORM)
    assert node.changed.all() and not node.beyond.any() and not node.learned.any()
    assert Certainty.SURE not in certainties(node, Kind.BEYOND_MOTION)


def test_controls_that_begin_elsewhere_say_where():
    """Concepts are fitted anew to step 0: no first value stood beside the change."""
    rng = np.random.default_rng(1)
    run = norms(-2.0, rng)
    first = run.norm.isel(step=0)
    controls = [
        run.assign(norm=first + 3 + 0.1 * k * (run.norm - first)) for k in (1, 2)
    ]
    for row in read_rows(page(run, controls, NORM), "", "", ""):
        assert control_ends(row)[0] == pytest.approx(row.first_value + 3)
        assert values_words(*control_ends(row), " → ") in "; ".join(facts(row))


def test_a_run_that_goes_where_controls_do_not_is_beyond():
    rng = np.random.default_rng(1)
    node = page(norms(-2.0, rng), controls_of(rng), NORM)
    assert node.beyond.all() and not node.learned.any()  # a norm is no performance
    assert certainties(node, Kind.BEYOND_MOTION) == {Certainty.SURE: 6}
    assert not claims(node, Kind.LEARNED)


def test_layers_that_go_beyond_motion_are_named_with_their_own_changes():
    rng = np.random.default_rng(4)
    run, apart = norms(1.0, rng), norms(-2.0, rng)
    run = run.where(~run.layer.isin(["h.0", "h.1", "h.4"]), apart)
    node = page(run, controls_of(rng, 6), NORM)
    found = {c.subject.layer: c for c in claims(node, Kind.BEYOND_MOTION)}
    beyond = [
        layer for layer, claim in found.items() if claim.certainty is Certainty.SURE
    ]
    assert sorted(beyond) == ["h.0", "h.1", "h.4"]
    assert all(
        found[layer].value < 0 < found[layer].beside[0].value for layer in beyond
    )
    assert all(claim.reason for layer, claim in found.items() if layer not in beyond)


def planted(*changes):
    """Changes of a run in each layer, beside three controls that change by 0.8 to 1.2 in all."""
    rng, factor = np.random.default_rng(5), np.array(changes)[:, None]
    run, *controls = (
        (still := norms(0.0, rng, 0.001, len(changes))).assign(
            norm=still.norm + part * RISE
        )
        for part in (factor, 0.8, 1.0, 1.2)
    )
    return page(run, controls, NORM)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (1.7, Reason.FEW_CONTROLS),
        (0.3, Reason.FEW_CONTROLS),
        (1.4, Reason.CONTROLS_SPREAD),
        (0.6, Reason.CONTROLS_SPREAD),
        (1.1, Reason.CONTROLS_SPREAD),
    ],
)
def test_a_row_says_whether_more_controls_would_decide(change, reason):
    node = planted(change)
    [claim] = claims(node, Kind.BEYOND_MOTION)
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, reason)
    assert np.isfinite(claim.needed) == (reason is Reason.FEW_CONTROLS)
    [row] = read_rows(node, "", "", "")
    assert standing_of(row).reason is reason and not row.beyond and not row.firm


def test_the_mark_of_a_section_counts_rows_that_are_open():
    node = planted(1.4, 0.6, 1.1)
    content = read_content(tree({"norm": node}, steps=STEPS.tolist()))
    words = "3 of 3 measures changed; beyond controls is open"
    assert mark(content, content.nodes[0]) == ("none", words)


def test_births_are_no_part_of_what_a_badge_counts():
    node = planted(1.1, 0.9).assign(concept_born=("concept", [3.0, 9.0]))
    content = read_content(tree({"norm": node}, steps=STEPS.tolist()))
    words = "2 of 2 measures changed; beyond controls is open"
    assert mark(content, content.nodes[0]) == ("none", words)


def test_the_figure_of_what_rows_follow_comes_first():
    kinds = Quantity(
        "d", "d", per="kind", heading="{label} d", rows="d", at={"kind": "right"}
    )
    values = np.stack([RISE, 1 - RISE])
    data = xr.Dataset(
        {"d": (("kind", "step"), values)}, {"kind": ["left", "right"], "step": STEPS}
    )
    node = summarise(data, [kinds], Section("Node", "What it is."))
    titles = [figure["title"] for figure in json.loads(node.attrs["figures"])]
    assert titles == ["Right d", "Left d"]


def test_a_smaller_change_than_that_of_controls_is_beyond_motion_too():
    rng = np.random.default_rng(6)
    run, small = norms(1.0, rng), norms(0.1, rng)
    run = run.where(~run.layer.isin(["h.5"]), small)
    node = page(run, controls_of(rng, 6), NORM)
    [claim] = [
        c for c in claims(node, Kind.BEYOND_MOTION) if c.certainty is Certainty.SURE
    ]
    assert claim.subject.layer == "h.5"
    assert all(0 < claim.value < beside.value for beside in claim.beside)


def test_only_better_performance_than_every_control_is_learned():
    rng = np.random.default_rng(2)
    nothing = [losses(8.3 + x, rng) for x in (0.2, 0.1, 0.3)]
    assert page(losses(5.0, rng), nothing, LOSS).learned.all()
    worse = page(losses(11.0, rng), nothing, LOSS)
    assert not worse.learned.any() and worse.beyond.all()
    as_good = [losses(5.0 + x, rng) for x in (0.02, -0.1, 0.1)]
    node = page(losses(5.0, rng), as_good, LOSS)
    assert node.changed.all() and not node.beyond.any() and not node.learned.any()


def test_of_several_kinds_of_controls_the_best_counts():
    rng = np.random.default_rng(3)
    runs = {f"turned {i}": losses(8.3 + x, rng) for i, x in enumerate((0.2, 0.1, 0.3))}
    # A control that was trained on word frequencies did as well.
    frequencies = losses(5.05, rng)
    data = with_controls(losses(5.0, rng), {**runs, "frequencies": frequencies}, [LOSS])
    node = summarise(data, [LOSS], Section("Loss", "Loss."))
    assert node.changed.all() and not node.learned.any()


@pytest.mark.parametrize("count", [0, 1])
def test_without_two_controls_nothing_is_learned_and_that_is_with_verdicts(count):
    rng = np.random.default_rng(4)
    nothing = [losses(8.5, rng) for _ in range(count)]
    node = page(losses(5.0, rng), nothing, LOSS)
    assert node.changed.all() and not node.learned.any() and not node.beyond.any()
    few = (Certainty.OPEN, Reason.FEW_CONTROLS)
    expected = few if count else (Certainty.NOT_TESTED, Reason.NO_CONTROLS)
    for claim in claims(node, Kind.BEYOND_MOTION, Kind.LEARNED):
        assert (claim.certainty, claim.reason) == expected


@pytest.mark.slow
def test_one_more_control_is_rarely_called_beyond():
    """20 pages of 24 rows, as many as the level allows to be wrong; fixed seeds."""
    rng, pages = np.random.default_rng(5), 0
    for _ in range(20):
        nodes, quantities = {}, {}
        for name in "abcd":
            common = rng.normal(1, 0.1, 4)
            runs = [norms(x, rng, layers=6) for x in common]
            data = with_controls(
                runs[0], dict(zip("xyz", runs[1:], strict=True)), [NORM]
            )
            nodes[name] = summarise(data, [NORM], Section("Node", "."))
            quantities[name] = [NORM]
        found = with_verdicts(nodes)
        pages += any(bool(node.beyond.any()) for node in found.values())
        assert not any(bool(node.learned.any()) for node in found.values())
    assert pages <= 3  # 5 % expected at most: P(more than 3 of 20) = 1.6 %


def test_controls_read_at_fewer_steps_are_compared_at_those():
    rng = np.random.default_rng(6)
    run, thin = losses(5.0, rng), losses(8.5, rng).isel(step=[0, 4, 9])
    node = page(run, [thin, thin], LOSS)
    assert np.isfinite(node.loss_control.sel(run="turned 0")).sum() == 3
    chosen = run.loss.isel(step=[0, 4, 9]).values
    np.testing.assert_allclose(node.run_change.values[0], chosen[-1] - chosen[0])
    # Between them the band is drawn through.
    assert node.loss_control_low.notnull().all()


def test_p_values_are_corrected_over_all_rows_of_the_page():
    rng = np.random.default_rng(7)
    nodes = {n: summarise(norms(1.0, rng), [NORM], Section("N", ".")) for n in "ab"}
    given = np.concatenate([node.p_uncorrected.values for node in nodes.values()])
    together = np.concatenate([node.p_value.values for node in judged(nodes).values()])
    np.testing.assert_allclose(together, holm(given))
    assert (together[:6] > nodes["a"].p_value.values).any()


def test_too_few_checkpoints_are_no_evidence_of_no_change():
    rng = np.random.default_rng(8)
    short = norms(1.0, rng).isel(step=slice(None, None, 3))  # 4 checkpoints
    found = claims(page(short, [], NORM), Kind.CHANGED)
    assert [claim.reason for claim in found] == [Reason.FEW_CHECKPOINTS] * 6


def test_a_verdict_says_direction_and_size_and_when():
    rng = np.random.default_rng(9)
    node = page(losses(5.0, rng, 0.001), [], LOSS)
    [changed] = claims(node, Kind.CHANGED)
    assert changed.since_low <= changed.since <= changed.since_high
    [loss] = spoken(node)
    assert (
        loss.startswith("Loss fell, from 8.3") and ". Half was there by step " in loss
    )
    mixed = norms(1.0, rng)
    mixed["norm"] = mixed.norm.where(mixed.layer != "h.0", 2 - mixed.norm)
    node = page(mixed, [], NORM)
    assert [np.sign(c.value) for c in claims(node, Kind.CHANGED)].count(-1) == 1
    assert "norm changed in all 6 layers, from " in " ".join(spoken(node)).lower()


def test_the_order_of_distances_to_a_reference_is_not_told():
    rng = np.random.default_rng(10)
    halves = np.geomspace(2, 100, 6)
    values = 1 / (1 + (STEPS / halves[:, None]) ** 3)
    data = norms(1.0, rng)
    data["norm"] = (("layer", "step"), values)
    [order] = claims(page(data, [], NORM), Kind.BEFORE)
    assert order.subject.layer == "h.0" and order.since < order.last
    distance = Quantity("norm", "distance", rows="{layer}", relative_to="reference")
    assert not claims(page(data, [], distance), Kind.BEFORE)


def test_what_jitter_with_memory_explains_is_not_beyond_motion():
    rng = np.random.default_rng(6)
    node = page(norms(-2.0, rng), controls_of(rng), NORM)
    assert node.beyond.all()
    explained = node.assign(
        p_uncorrected=("row", np.full(node.sizes["row"], 0.2)),
        only_memory=("row", np.ones(node.sizes["row"], dtype=bool)),
    )
    again = judged({"node": explained})["node"]
    assert (again.p_control <= 0.05).all()
    assert (
        not again.beyond.any() and not again.changed.any() and not again.judgeable.any()
    )


@pytest.mark.parametrize("kind", ["line", "shuffled"])
def test_nothing_is_judged_by_controls_that_end_trained(kind):
    rng = np.random.default_rng(11)
    runs = {f"{kind} {i}": losses(8.4 + 0.1 * i, rng) for i in range(3)}
    data = with_controls(losses(5.0, rng), runs, [LOSS])
    node = summarise(data, [LOSS], Section("Loss", "Loss."))
    assert node.changed.all() and not node.beyond.any() and not node.learned.any()
    [claim] = claims(node, Kind.BEYOND_MOTION)
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, Reason.FEW_CONTROLS)


def test_a_quantity_that_is_drawn_as_a_share_has_the_band_of_the_controls_shares():
    run, *rest = (
        xr.Dataset(
            {"x": ("step", a * RISE), "part": ("step", b * RISE)}, {"step": STEPS}
        )
        for a, b in ((10, 0.9), (50, 0.2), (70, 0.3))
    )
    quantity = Quantity("x", "distance", "units", share="part", share_of="norms")
    node = page(run, rest, quantity)
    np.testing.assert_allclose(node.x_control_high, 70 * RISE)
    np.testing.assert_allclose(node.x_control_high_relative, 0.3 * RISE)
    np.testing.assert_allclose(node.x_control_low_relative, 0.2 * RISE)


def beside(kind, **of_loss):
    """The page of a loss and of norms that go where no control does."""
    rng = np.random.default_rng(6)
    pages, quantities = {}, {"loss": [LOSS], "norms": [NORM]}
    runs = {"loss": [losses(x, rng) for x in (5.0, 8.5, 8.4)], "norms": []}
    runs["norms"] = [norms(-2.0, rng), *controls_of(rng, 6)]
    for name, (run, *controls) in runs.items():
        named = {f"{kind} {i}": control for i, control in enumerate(controls)}
        data = with_controls(run, named, quantities[name])
        pages[name] = summarise(data, quantities[name], Section("Node", "."))
    pages["loss"] = pages["loss"].assign(of_loss)
    return with_verdicts(pages)


@pytest.mark.parametrize("kind", ["turned", "mirrored", "walk"])
def test_motion_is_no_null_for_what_a_trained_start_changes(kind):
    norm = beside(kind, loss_trained_start=1.0, loss_p_learned=0.001)["norms"]
    assert (
        norm.changed.all() and not norm.beyond.any() and norm.p_control.isnull().all()
    )
    assert {c.reason for c in claims(norm, Kind.BEYOND_MOTION)} == {
        Reason.NOT_COMPARABLE
    }
    assert beside(kind, loss_trained_start=0.0)["norms"].beyond.all()


def test_controls_that_were_trained_judge_a_trained_start():
    assert beside("out of order", loss_trained_start=1.0)["norms"].beyond.all()


def test_mirrored_controls_of_a_run_without_a_loss_mean_a_trained_start():
    rng = np.random.default_rng(6)
    data = with_controls(
        norms(-2.0, rng),
        {f"mirrored {i}": control for i, control in enumerate(controls_of(rng))},
        [NORM],
    )
    node = summarise(data, [NORM], Section("Node", "."))
    found = with_verdicts({"norms": node})["norms"]
    assert found.changed.all() and not found.beyond.any()


@pytest.mark.parametrize(("count", "shared"), [(3, 0.5), (3, 1.0), (2, 1.0)])
def test_one_more_control_is_beyond_on_few_pages(count, shared):
    """Layers differ in spread and share some of their variance; as one, they count as one row."""
    rng, pages, rows = np.random.default_rng(0), 200, 24
    sizes, kinds = np.geomspace(1, 6, 6)[:, None], np.array(["turned"] * count)
    false = 0
    for _ in range(pages):
        p_values = []
        for _ in range(8):  # the change and the half-change step of four quantities
            common, own = (
                rng.normal(size=(1, count + 1)),
                rng.normal(size=(6, count + 1)),
            )
            draws = (shared**0.5 * common + (1 - shared) ** 0.5 * own) * sizes
            run = np.repeat(draws[:, :1], count, axis=1)
            p, share = _predicted(run, draws[:, 1:], kinds)
            p_values.append(p * share)
        false += 2 * rows * np.min(p_values) <= 0.05
    assert false <= 0.08 * pages  # 5 % expected at most: P(more than 16 of 200) = 2 %


def test_layers_that_move_as_one_pool_nothing_and_count_as_one():
    sizes, kinds = np.geomspace(1, 6, 6)[:, None], np.array(["turned"] * 3)
    as_one = np.array([1.0, 0.5, -1.5]) * sizes
    apart = np.random.default_rng(0).normal(size=(6, 3)) * sizes
    run = np.full((6, 3), 20.0) * sizes
    alone, share = _predicted(run[:1], as_one[:1], kinds)
    assert share == 1
    together, of_one = _predicted(run, as_one, kinds)
    np.testing.assert_allclose([together[-1], of_one], [alone[0], 1 / 6], rtol=1e-6)
    pooled, of_several = _predicted(run, apart, kinds)
    assert (pooled < alone[0] / 2).sum() >= 4 and of_several == 1


def test_the_last_row_of_a_quantity_is_a_whole_test():
    """A twelfth of a test for the last true null beside eleven rejections broke 5 % fourfold."""
    rows, quantities = 12, 6
    names = [("node", f"q{k}") for k in range(quantities) for _ in range(rows)]
    p_values, shares = np.full(len(names), 1e-9), np.full(len(names), 1 / rows)
    p_values[rows - 1 :: rows] = np.linspace(0.03, 0.04, quantities)
    corrected = _beside_controls(p_values, shares, names)
    np.testing.assert_allclose(corrected[rows - 1], 0.03 * quantities)
    assert (corrected[rows - 1 :: rows] >= 0.1799).all() and corrected[0] < 1e-8
    drawn = np.random.default_rng(0).uniform(0, 0.1, len(names))
    drawn[5] = np.nan
    whole = _beside_controls(drawn, np.ones(len(names)), names)
    np.testing.assert_allclose(whole, holm(drawn))


def test_rows_of_a_quantity_that_moves_as_one_are_corrected_as_one():
    rng = np.random.default_rng(1)
    node = page(norms(-2.0, rng), controls_of(rng, 4), NORM)
    assert (node.p_control_share < 0.5).all() and node.beyond.all()
    whole = judged({"node": node.drop_vars("p_control_share")})["node"].p_control
    assert (node.p_control <= whole * (1 + 1e-9)).all() and (
        node.p_control < whole
    ).sum() >= 4
    assert (
        node.p_control >= 2 * np.fmin(node.p_control_change, node.p_control_half)
    ).all()
