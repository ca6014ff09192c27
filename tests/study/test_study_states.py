"""What `prepare` finds: kept in the result, read by others, held against an untrained model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, Counting, developing, tiny_inputs, tiny_model
from ontogeny import needs
from ontogeny.errors import ArgumentError
from ontogeny.observables import Observable, by_layer
from ontogeny.quantities import Quantity
from ontogeny.store import read_cell
from ontogeny.study.cells import readings

STEPS = (0, 1, 2, 4)
CONCEPTS = needs.Activations(LAYERS)


@dataclass(frozen=True)
class Centres(Observable):
    """The mean activations of the first and of an untrained checkpoint, kept as a state."""

    scale: float = 1.0
    kind: ClassVar[str] = "centres"
    state_variables: ClassVar = ("untrained", "missing")
    quantities: ClassVar = (Quantity("distance", "distance"),)

    def needs(self):
        return [CONCEPTS]

    def prepare(self, run):
        first, untrained = run.reading(run.reference_step), run.untrained()

        def one(path, values):
            fresh = untrained[CONCEPTS][path]
            mean, other = (v.mean(dim=0).numpy() * self.scale for v in (values, fresh))
            return {"mean": ("feature", mean), "untrained": ("feature", other)}

        return by_layer(first[CONCEPTS], one)

    def observe(self, reading, state):
        def one(path, values):
            mean = state["mean"].sel(layer=path).values
            return {"distance": np.linalg.norm(values.mean(dim=0).numpy() - mean)}

        return by_layer(reading[CONCEPTS], one)


@dataclass(frozen=True)
class Beside(Observable):
    """Reads the state of another node."""

    of: str = "centres"
    kind: ClassVar[str] = "beside"

    def needs(self):
        return [CONCEPTS]

    @property
    def state_of(self):
        return self.of

    def observe(self, reading, state):
        return xr.Dataset({"norm": float(np.linalg.norm(state["mean"].values))})


def study(models, observables, **options):
    trajectory = og.Trajectory.from_models(models)
    return og.Study(trajectory, tiny_inputs(), observables, device="cpu", **options)


def activations(model):
    values = og.capture.read(model, [CONCEPTS], {"text": tiny_inputs()})[CONCEPTS]
    return {path: v.mean(dim=0).numpy() for path, v in values.items()}


def test_a_kept_variable_of_the_state_stands_in_the_result(tmp_path):
    models = developing(STEPS)
    tree = study(models, [Centres()], reference="last").run(tmp_path)
    node = tree["centres"]
    assert node["untrained"].dims == ("layer", "feature") and "mean" not in node
    expected = activations(models[0])
    for path, mean in expected.items():
        np.testing.assert_allclose(node["untrained"].sel(layer=path), mean, atol=1e-6)


def test_a_changed_state_is_taken_over(tmp_path):
    models = developing(STEPS)
    first = study(models, [Centres()]).run(tmp_path)["centres"].untrained.load()
    second = study(models, [Centres(scale=2.0)]).run(tmp_path)["centres"].untrained
    np.testing.assert_allclose(second, 2 * first, rtol=1e-6)


def test_without_step_0_the_untrained_model_is_newly_initialised_and_the_same_each_time(
    tmp_path,
):
    models = {step: model for step, model in developing(STEPS).items() if step}
    once = study(models, [Centres()]).run(tmp_path / "a")["centres"]
    again = study(models, [Centres()]).run(tmp_path / "b")["centres"]
    assert (once.untrained == again.untrained).all()
    like = tiny_model()
    torch.manual_seed(0)
    expected = activations(type(like)(like.config).eval())
    for path, mean in expected.items():
        np.testing.assert_allclose(once.untrained.sel(layer=path), mean, atol=1e-6)


def test_controls_take_over_the_activations_of_the_newly_initialised_model(
    tmp_path, monkeypatch
):
    passes, read = [], readings.read_model

    def counting(job, model, needs, *along):
        passes.append(list(needs))
        return read(job, model, needs, *along)

    monkeypatch.setattr(readings, "read_model", counting)
    models = {step: model for step, model in developing(STEPS).items() if step}
    node = study(models, [Centres()], controls=2, control_steps=3).run(tmp_path)[
        "centres"
    ]
    assert [CONCEPTS] in passes and passes.count([CONCEPTS]) == 1
    of_control = xr.concat(
        [
            read_cell(path).data["untrained"]
            for path in tmp_path.glob("runs/*/states/centres.*")
        ],
        "run",
    )
    assert of_control.sizes["run"] == 2 and (of_control == node["untrained"]).all()


def test_another_node_reads_the_state_and_becomes_stale_with_it(tmp_path):
    models = developing(STEPS)
    tree = study(models, [Beside(), Centres()]).run(tmp_path)
    assert (tree["beside"].norm > 0).all()
    progress = Counting()
    doubled = study(models, [Beside(), Centres(scale=2.0)]).run(
        tmp_path, progress=progress
    )
    np.testing.assert_allclose(
        doubled["beside"].norm, 2 * tree["beside"].norm, rtol=1e-6
    )
    assert progress.planned == 2 * len(STEPS)


def test_control_runs_have_states_of_their_own(tmp_path):
    tree = study(developing((0, 1, 2, 4, 8)), [Centres(), Beside()], controls=1).run(
        tmp_path
    )
    assert tree["centres"].distance_control.notnull().any()
    assert (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("of", "why"),
    [("centre", "does not have. Did you mean 'centres'"), ("loss", "prepares nothing")],
)
def test_a_state_that_is_not_there_is_refused_when_the_study_is_made(of, why):
    chosen = [Centres(), og.observables.AttentionEntropy(label="loss"), Beside(of)]
    with pytest.raises(ArgumentError) as caught:
        study(developing(STEPS), chosen)
    assert f"beside reads the state of {of!r}, which" in str(
        caught.value
    ) and why in str(caught.value)


def test_a_suggestion_never_names_the_node_that_asks():
    effects = og.observables.ConceptEffects("concept-effect", layers=LAYERS)
    with pytest.raises(
        ArgumentError, match=r"depends on 'concept-effect', .* not have\.$"
    ):
        study(developing(STEPS), [effects, Centres()])
    near = Centres(label="concept-effec")
    with pytest.raises(ArgumentError, match=r"Did you mean 'concept-effec'\?$"):
        study(developing(STEPS), [effects, near])


def test_a_model_that_cannot_be_reset_says_which_module():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))

    from ontogeny.trajectory.untrained import untrained_like

    torch.manual_seed(1)  # not the seed of a new model, which would be the same
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), Own())
    with pytest.raises(ArgumentError, match=r"1 \(Own\) has parameters"):
        untrained_like(model)
    state = torch.random.get_rng_state()
    fresh = untrained_like(model[0])
    assert (
        not torch.equal(fresh.weight, model[0].weight)
        and not fresh.weight.requires_grad
    )
    assert torch.equal(state, torch.random.get_rng_state())


class Unresettable(torch.nn.Module):
    """A model whose parameter cannot be reset."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(40, 4))
        self.head = torch.nn.Linear(4, 40)

    def forward(self, input_ids):
        return self.head(self.table[input_ids])


@dataclass(frozen=True)
class Table(needs.Need):
    """Reads a weight of the model without running it."""

    runs_model: ClassVar[bool] = False

    def read(self, source):
        return source.model.table.detach().double().std().item()


class LooksAtWeights(Observable):
    """Notes what is said of the untrained model."""

    kind: ClassVar[str] = "looks"
    quantities: ClassVar = (Quantity("spread", "spread"),)
    notes: ClassVar[list] = []

    def needs(self):
        return [needs.InputSet(), Table()]

    def prepare(self, run):
        untrained = run.untrained()
        self.notes.append(untrained.stands_in_because)
        return xr.Dataset({"spread": untrained[Table()]})

    def observe(self, reading, state):
        return xr.Dataset({"spread": reading[Table()]})


def test_an_observable_of_weights_is_told_why_another_model_stands_in(tmp_path):
    torch.manual_seed(0)
    run = og.Trajectory.from_models({step: Unresettable() for step in (10, 20)})
    LooksAtWeights.notes.clear()
    assert (
        not og.Study(run, tiny_inputs(), [LooksAtWeights()])
        .run(tmp_path / "s")
        .problems()
    )
    assert "no reset_parameters()" in LooksAtWeights.notes[-1]
