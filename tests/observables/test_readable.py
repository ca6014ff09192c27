"""What can be read from a layer: since when, by each step's own weights, and from others too."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.claims import Beside
from ontogeny.observables.readable import Case, Course, claims_of_readable

STEPS, TEXTS = np.arange(4), 20


def node(values, weights=None, **others):
    """A value over the steps that all texts say alike, or (steps, texts)."""
    of_text = np.broadcast_to(np.reshape(values, (4, -1)), (4, TEXTS))
    weights = np.ones((4, TEXTS)) if weights is None else weights
    mean = (of_text * weights).sum(1) / weights.sum(1)
    return xr.Dataset(
        {
            "x": (("step", "layer"), mean[:, None]),
            "x_of_text": (("step", "layer", "text"), of_text[:, None]),
            "x_weights": (("step", "layer", "text"), weights[:, None]),
            **others,
        },
        {"step": STEPS, "layer": ["h"]},
    )


def claim_of(data, p_value=1e-6):
    course = Course.of(data, "x", layer="h")
    since = course.since(np.full((4, 1), 0.5))
    case = Case("h", "mark", course, p_value, since, (Beside("null", "chance", 0.5),))
    (claim,) = claims_of_readable("node", [case], "chance")
    return claim


@pytest.mark.parametrize(
    ("values", "options", "certainty", "reason"),
    [
        ([0, 0, 1, 1], {}, "sure", None),
        ([0, 0, 1, 1], {"p_value": 0.2}, "open", "within chance"),
        ([0, 1, 1, 0], {}, "open", "reached and left"),
    ],
)
def test_what_is_read_is_beyond_chance_and_stays(values, options, certainty, reason):
    claim = claim_of(node(values), **options)
    assert (claim.certainty, claim.reason) == (certainty, reason)
    assert certainty != "sure" or (claim.since_low, claim.since) == (1, 2)


def test_what_an_untrained_model_or_a_control_gives_too_is_no_finding():
    for name, value in (("untrained", 1.0), ("control", [0.2, 1.0])):
        dims = ("run",) if name == "control" else ()
        array = xr.DataArray(value, dims=dims).expand_dims(step=STEPS, layer=["h"])
        if dims:
            array = array.assign_coords(run=["a", "b"])
        found = claim_of(node([0, 0, 1, 1], **{f"x_{name}": array}))
        assert found.certainty == "as controls" and np.isnan(found.since)
        low = claim_of(node([0, 0, 1, 1], **{f"x_{name}": array - 0.5}))
        assert low.certainty == "sure" and low.beside[1].value <= 0.5


def test_controls_of_fewer_steps_stand_beside_the_run_at_the_same_step():
    """The run goes on to 3, controls were read up to the step at which it has 1."""
    runs = ("step", "layer", "run")
    control = np.array([0.0, 0.0, 1.2, np.nan])[:, None, None]
    array = xr.DataArray(control, dims=runs, coords={"run": ["a"], "step": STEPS})
    found = claim_of(node([0, 0, 1, 3], x_control=array))
    assert found.certainty == "as controls" and found.beside[1].own == 1
    nothing = claim_of(node([0, 0, 1, 3], x_control=array * np.nan))
    assert nothing.certainty == "sure" and len(nothing.beside) == 1


def test_a_control_that_ends_trained_judges_nothing_and_each_is_read_at_its_own_end():
    runs = ("step", "layer", "run")
    control = np.array([[0, 0], [0, 0.1], [1, 0.2], [1, np.nan]])[:, None]
    labels = {"run": ["line", "walk 0"], "step": STEPS}
    array = xr.DataArray(control, dims=runs, coords=labels)
    found = claim_of(node([0, 0, 1, 1], x_control=array))
    assert found.certainty == "sure"
    assert [(b.name, b.value, b.own) for b in found.beside[1:]] == [("walk 0", 0.2, 1)]


def test_a_date_counts_texts_as_the_step_itself_does():
    half = np.arange(TEXTS) < TEXTS // 2
    values = np.stack([0 * half, 1 * half, 1 * half, 1 * half]).astype(float)
    light, heavy = np.where(half, 0.1, 1.0), np.where(half, 1.0, 0.1)
    data = node(values, np.stack([heavy, light, heavy, heavy]))
    claim = claim_of(data)
    above = data.x.values[:, 0] > 0.5
    assert above.tolist() == [False, False, True, True] and claim.since == 2
