"""Concepts beyond the token over runs: which are the same, beside control runs and chance."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from ontogeny.claims import Certainty, Kind, from_dataset
from ontogeny.comparison.concepts.matches import SAME, same_concepts
from ontogeny.comparison.concepts.node import NODE
from ontogeny.observables.fit_identity import SKETCH

STEPS = np.array([0, 10, 20, 40, 80])
SHARED = 12
OWN = 5
CONTROLS = 2


def unit(rng, count):
    rows = rng.standard_normal((count, SKETCH))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def near(rng, rows, cosine):
    """Return rows at a cosine to others, of either sign."""
    other = rng.standard_normal(rows.shape)
    other -= rows * (other * rows).sum(axis=1, keepdims=True)
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    turned = cosine * rows + np.sqrt(1 - cosine**2) * other
    return turned * rng.choice([-1.0, 1.0], size=(len(rows), 1))


def study(
    seed,
    common,
    births,
    of_controls=None,
    layers=("h.0",),
    texts="texts",
    max_tokens=1000,
    named=0,
):
    """Return what a study holds that found `common` concepts and some of its own."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([near(rng, common, 0.9), unit(rng, OWN)])
    order = rng.permutation(len(rows))
    rows = rows[order]
    born = np.concatenate([births, np.full(OWN, np.nan)])[order]
    kinds = np.where(np.isnan(born), "grows", "born").astype(object)
    names = np.array([f"after {n}" for n in range(len(common))] + [""] * OWN, object)
    has_name = np.arange(len(rows)) < named
    phi = np.where(has_name, 0.5, 0.0)[order]
    names = np.where(has_name, names, "")[order].astype(object)
    first = np.isfinite(born)
    dims = ("layer", "concept")
    life = (np.nan_to_num(born, nan=1e9)[:, None] <= STEPS).astype(float)

    def over(values):
        return dims, np.stack([values] * len(layers))

    data = xr.Dataset(
        {
            "code_sketch": ((*dims, "sketch"), np.stack([rows] * len(layers))),
            "again": over(np.full(len(rows), 0.9)),
            "concept_kind": over(kinds),
            "concept_born": over(born),
            "concept_born_after": over(np.where(first, born / 2, np.nan)),
            "concept_born_before": over(born),
            "named_phi": over(phi),
            "name": over(names),
            "words": over(
                np.full(len(rows), "sea · ship · whale · boat", dtype=object)
            ),
            "life": ((*dims, "step"), np.stack([life] * len(layers))),
            "share": (("step", "layer"), np.ones((len(STEPS), len(layers)))),
        },
        {"step": STEPS, "layer": list(layers), "concept": np.arange(len(rows))},
    )
    if of_controls is not None:
        sketches = np.stack(
            [np.concatenate([near(rng, of_controls, 0.9), unit(rng, 3)])]
        )
        stacked = np.stack([np.concatenate([sketches] * len(layers))] * CONTROLS)
        many = ("run", "layer", "control_concept")
        data = data.assign(
            code_sketch_control=((*many, "sketch"), stacked),
            concept_born_control=(many, np.full(stacked.shape[:-1], np.nan)),
            named_phi_control=(many, np.zeros(stacked.shape[:-1])),
        ).assign_coords(run=[f"walk {i}" for i in range(CONTROLS)])
    tree = xr.DataTree.from_dict({"learned-concepts": data.assign_attrs(role="track")})
    arguments = {"kind": "learned-concepts", "tokens": "all", "max_tokens": max_tokens}
    tree.attrs = {
        "settings": json.dumps({"observables": {"learned-concepts": arguments}}),
        "inputs": json.dumps([{"name": "text", "fingerprint": texts}]),
        "steps": json.dumps(STEPS.tolist()),
    }
    return tree


def test_equal_codes_in_another_order_and_sign_are_the_same_concepts():
    rng = np.random.default_rng(0)
    common = unit(rng, 20)
    runs = []
    orders = []
    for _ in range(3):
        orders.append(rng.permutation(20))
        runs.append(near(rng, common, 0.93)[orders[-1]])
    members = same_concepts([*runs, unit(rng, 7)])
    everywhere = (members[:3] >= 0).all(axis=0)
    assert everywhere.sum() == 20
    for i in np.flatnonzero(everywhere):
        found = {int(order[m]) for order, m in zip(orders, members[:3, i], strict=True)}
        assert len(found) == 1
    assert (members[3] >= 0).sum() == 7
    assert (members[3, everywhere] == -1).all()


def test_codes_below_the_least_correlation_are_not_the_same():
    rows = np.eye(1, SKETCH)
    for cosine, shared in ((SAME + 0.01, 1), (SAME - 0.01, 0)):
        other = np.zeros((1, SKETCH))
        other[0, :2] = cosine, np.sqrt(1 - cosine**2)
        members = same_concepts([rows, other])
        assert (members >= 0).all(axis=0).sum() == shared


def test_two_components_of_a_run_that_are_like_one_of_another_share_it_once():
    a = np.eye(1, SKETCH)
    both = np.zeros((2, SKETCH))
    both[0, :2] = 0.9, np.sqrt(1 - 0.81)
    both[1, :3] = 0.6, 0, 0.8
    members = same_concepts([a, both])
    assert (members >= 0).all(axis=0).sum() == 1
    assert members.shape == (2, 2)


@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (4, 0)])
def test_runs_without_components_share_none(sizes):
    rng = np.random.default_rng(0)
    members = same_concepts([unit(rng, size) for size in sizes])
    assert members.shape == (2, sum(sizes))
    assert not (members >= 0).all(axis=0).any()


@pytest.fixture(scope="module")
def seeds():
    common = unit(np.random.default_rng(7), SHARED)
    births = np.resize([10.0, 20.0, 40.0, 80.0], SHARED)
    of_controls = unit(np.random.default_rng(8), 2)
    return {
        f"seed {i}": study(i, common, births, of_controls, named=4) for i in range(3)
    }


def test_a_comparison_says_what_runs_share_beside_their_controls(seeds):
    node = og.compare(seeds)[NODE].to_dataset().isel(layer=0)
    assert int(node.in_all) == SHARED
    assert int(node.in_one) == 3 * OWN
    assert int(node.in_all_control) == 2
    assert int(node.born_in_all) == int(node.births_meet) == SHARED
    assert int(node.named_in_all) == 4
    assert float(node.by_chance) == 0
    assert float(node.order_correlation) == pytest.approx(1)
    birth = node.concept_birth.values
    assert (birth == birth[:, :1]).all()
    claims = from_dataset(og.compare(seeds).tree.to_dataset())
    (shared,) = [c for c in claims if c.kind is Kind.SHARED]
    assert shared.certainty is Certainty.SURE
    assert (shared.value, shared.beside[0].value) == (SHARED, 2)


def test_lives_and_names_of_shared_concepts_are_those_of_each_run(seeds):
    node = og.compare(seeds)[NODE].to_dataset()
    assert node.concept_life.sizes["step"] == len(STEPS)
    there = node.concept_life.transpose("concept", "run", "step").values >= 0.5
    first = STEPS[there.argmax(axis=-1)]
    assert (first == node.concept_birth.transpose("concept", "run").values).all()
    labels = " ".join(map(str, node.concept.values))
    assert all(f"after {n}" in labels for n in range(4))
    assert "sea · ship · whale · boat" in labels


def test_what_controls_share_as_well_is_not_sure():
    common = unit(np.random.default_rng(7), SHARED)
    births = np.full(SHARED, np.nan)
    runs = {f"seed {i}": study(i, common, births, common) for i in range(2)}
    claims = from_dataset(og.compare(runs).tree.to_dataset())
    (shared,) = [c for c in claims if c.kind is Kind.SHARED]
    assert shared.certainty is Certainty.AS_CONTROLS


def test_layers_of_other_names_are_compared_in_their_order():
    common = unit(np.random.default_rng(7), SHARED)
    births = np.full(SHARED, np.nan)
    runs = {
        name: study(i, common, births, layers=layers)
        for i, (name, layers) in enumerate(
            {"gpt": ("h.0", "h.1"), "llama": ("layers.0", "layers.1")}.items()
        )
    }
    node = og.compare(runs)[NODE].to_dataset()
    assert node.layer.values.tolist() == ["h.0", "h.1"]
    assert node.in_all.values.tolist() == [SHARED, SHARED]


@pytest.mark.parametrize(
    ("other", "allow"),
    [({"texts": "others"}, "inputs"), ({"max_tokens": 500}, "arguments")],
)
def test_concepts_of_other_tokens_are_not_matched(other, allow):
    common = unit(np.random.default_rng(7), SHARED)
    births = np.full(SHARED, np.nan)
    runs = {"a": study(0, common, births), "b": study(1, common, births, **other)}
    assert NODE not in og.compare(runs, allow=[allow]).tree.children


def test_models_without_a_history_share_concepts_without_births():
    common = unit(np.random.default_rng(7), SHARED)
    births = np.full(SHARED, np.nan)
    runs = {}
    for i in range(2):
        tree = study(i, common, births)
        node = tree["learned-concepts"].to_dataset()
        lives = [n for n in node if n.startswith("concept_") or n == "life"]
        alone = xr.DataTree.from_dict({"learned-concepts": node.drop_vars(lives)})
        alone.attrs = tree.attrs
        runs[f"model {i}"] = alone
    node = og.compare(runs)[NODE].to_dataset().isel(layer=0)
    assert int(node.in_all) == SHARED
    assert int(node.born_in_all) == int(node.from_start) == 0
    assert "concept_life" not in node


def test_results_of_an_earlier_version_are_not_matched_with_those_of_today():
    common = unit(np.random.default_rng(7), SHARED)
    births = np.full(SHARED, np.nan)
    runs = {f"seed {i}": study(i, common, births) for i in range(2)}
    node = runs["seed 0"]["learned-concepts"].to_dataset()
    earlier = node.isel(sketch=slice(64))
    runs["seed 0"]["learned-concepts"] = xr.DataTree(earlier)
    assert NODE not in og.compare(runs).tree.children
