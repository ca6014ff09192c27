"""Concepts over layers: planted from a layer on, one that moves earlier, one that moves later."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.said import said_of
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.layers.observed import FEWEST, first_layers, layer_moves

STEPS = tuple(range(0, 90, 10))
LAYERS, CLASSES, WORDS, WIDTH = 5, 6, 40, 24
# The layer from which on the first four classes are written, at every step.
FROM = [0, 1, 2, 4]


def layer_of(name, t):
    """Return the layer from which on a class of two words is written at step number t."""
    if name < len(FROM):
        return FROM[name]
    return (4 if t < 3 else 1) if name == 4 else (0 if t < 5 else 3)


class Layered(torch.nn.Module):
    """Layers that write word classes, each from a layer of its own on."""

    def __init__(self, rows):
        super().__init__()
        self.rows = torch.nn.ParameterList(
            torch.tensor(r, dtype=torch.float32) for r in rows
        )
        self.layers = torch.nn.ModuleList(torch.nn.Identity() for _ in rows)

    def forward(self, input_ids, attention_mask=None):
        before = (input_ids * torch.arange(1, 1 + input_ids.shape[1])).cumsum(1)[
            ..., None
        ]
        noise = torch.sin(before * torch.arange(1, 1 + WIDTH) * 7.3)
        for k, (rows, layer) in enumerate(zip(self.rows, self.layers, strict=True)):
            out = layer(rows[input_ids] + 0.3 * torch.roll(noise, k, -1))
        return out


def models_of(planted=True):
    rng = np.random.default_rng(0)
    found = {}
    directions = rng.normal(size=(LAYERS, CLASSES, WIDTH)) * 3
    for t, step in enumerate(STEPS):
        rows = np.zeros((LAYERS, WORDS, WIDTH))
        for name in range(CLASSES):
            start = layer_of(name, t) if planted else FROM[name % 4]
            rows[start:, [2 * name, 2 * name + 1]] += directions[start:, name][:, None]
        found[step] = Layered(rows)
    return found


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    share = np.where(np.arange(WORDS) < 2 * CLASSES, 1.0, 3.0)
    return og.Inputs.from_tokens(
        [rng.choice(WORDS, 25, p=share / share.sum()).tolist() for _ in range(60)]
    )


def studied(folder, models, texts):
    kind = og.observables.ConceptLayers("layers.*", n_concepts=12, n_active=1)
    study = og.Study(
        og.Trajectory.from_models(models), texts, [kind], device="cpu", noise=0
    )
    return study.run(folder, progress=False).tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory, texts):
    return studied(tmp_path_factory.mktemp("layers") / "run", models_of(), texts)


def classes_of(data):
    """Return by class its place among the lines; a label begins with the number of the latent."""
    found = {}
    for i, label in enumerate(data.readable_concept.values):
        names = {int(word) // 2 for word in str(label).split(" · ")[1].split()}
        if len(names) == 1 and (name := names.pop()) < CLASSES:
            found[name] = i
    return found


def test_each_concept_is_first_readable_in_the_layer_that_was_planted(tree):
    data = tree["concept-layers"].to_dataset()
    place = classes_of(data)
    assert set(place) == set(range(CLASSES))
    for name, i in place.items():
        wanted = [layer_of(name, t) for t in range(len(STEPS))]
        np.testing.assert_array_equal(data.line_first.values[i], wanted)


def test_what_moves_is_said_and_nothing_else(tree, tmp_path):
    data = tree["concept-layers"].to_dataset()
    moves = {
        name: int(data.line_moves.values[i]) for name, i in classes_of(data).items()
    }
    assert moves == {0: 0, 1: 0, 2: 0, 3: 0, 4: -1, 5: 1}
    assert (
        float(data.n_earlier) == float(data.n_later) == 1
        and float(data.n_by_chance) < 0.3
    )
    text = " ".join(said_of(og.observables.ConceptLayers("layers.*"), data))
    for name, way in ((4, "earlier"), (5, "later")):
        label = data.readable_concept.values[classes_of(data)[name]]
        came = f"1 of {data.sizes['readable_concept']} concepts came to be readable in {way} layers"
        assert f"{came} (both ways by chance {float(data.n_by_chance):.2g}" in text
        assert f": “{label}”." in text
    page = og.report.write(tree, tmp_path / "page.html").read_text()
    assert "Where concepts are first readable" in page


def test_concepts_that_no_layer_has_any_more_are_no_move_to_later_layers(tree):
    data = tree["concept-layers"].to_dataset()
    kind, lines = (
        og.observables.ConceptLayers("layers.*"),
        data.line_first.copy(deep=True),
    )
    assert "went from" not in " ".join(said_of(kind, data))
    lines[:2, -1] = np.nan
    text = " ".join(said_of(kind, data.assign(line_first=lines)))
    first, last = (int(lines.isel(step=at).notnull().sum()) for at in (0, -1))
    assert f"some layer shows went from {first} to {last}" in text


def test_nothing_moves_where_every_step_is_alike(tmp_path, texts):
    data = studied(tmp_path / "run", models_of(planted=False), texts)["concept-layers"]
    assert float(data.n_earlier) == float(data.n_later) == 0 and set(
        classes_of(data)
    ) == set(range(CLASSES))


def test_a_move_needs_order_size_and_enough_steps():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 3, size=(12, 200)).astype(float)
    moves = layer_moves(noise)
    assert (moves.direction != 0).mean() < 0.1
    assert abs((moves.direction != 0).sum() - moves.chance) < 12
    short = np.array([[3.0], [3], [1], [1], [1]])
    assert layer_moves(short).direction.tolist() == [0]
    assert first_layers(np.full((2, 3), 0.1), 0.6).tolist() == [2, 2, 2]


def test_arguments_out_of_range_are_refused():
    for arguments in ({"n_active": 200}, {"readable": 2}, {"fit_steps": 0}):
        with pytest.raises(ArgumentError):
            og.observables.ConceptLayers(**arguments)


@pytest.mark.parametrize(("steps", "direction"), [(FEWEST, -1), (FEWEST - 1, 0)])
def test_nothing_is_said_of_fewer_steps_than_decide(steps, direction):
    falling = np.arange(steps, 0, -1.0)[:, None]
    assert layer_moves(falling).direction.tolist() == [direction]
