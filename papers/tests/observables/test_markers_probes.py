"""Accuracy, read-out attention and sparse latents against hand computation and planted truth."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny import needs
from ontogeny.capture.gradients import gradients
from ontogeny.concepts import SAE
from ontogeny.errors import ArgumentError
from ontogeny.observables import ReadoutAccuracy, ReadoutAttention, SaeProbe
from ontogeny_papers.observables.readout.accuracy import (
    answers,
    majority_share,
    wilson_interval,
)
from ontogeny_papers.observables.readout.attention import settling_step
from ontogeny_papers.observables.readout.correlations import (
    correlations,
    latent_correlations,
)
from ontogeny_papers.observables.readout.state import ReadoutState
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun, record_marker_runs

TASK = MarkerTask(length=8, modulus=4, markers=(1, 2), vocab_size=8)


class Counting(nn.Module):
    """Answers the number of markers (token 4) exactly, from a state of 6 numbers per token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 6)
        self.state = nn.Identity()
        self.head = nn.Linear(6, 4, bias=False)
        with torch.no_grad():
            self.embed.weight.copy_(torch.eye(8, 6) * 1.0)
            self.head.weight.zero_()
            for m in range(4):  # logits of m are largest where coordinate 4 is m
                self.head.weight[m, 4], self.head.weight[m, 5] = m, -0.5 * m * m

    def forward(self, input_ids, attention_mask=None):
        x = self.embed(input_ids)
        x = x * attention_mask[..., None] if attention_mask is not None else x
        states = x.cumsum(1)
        states = torch.cat([states[..., :5], torch.ones_like(states[..., :1])], -1)
        return self.head(self.state(states))


def value_of(model, inputs):
    return gradients(model, needs.Gradients("classification"), {"text": inputs})


def counted(n=400, seed=0):
    batch = TASK.sample(n, torch.Generator().manual_seed(seed))
    return og.Inputs.from_tokens(
        batch.ids.numpy(), labels=batch.markers.numpy(), vocab_size=8
    )


def test_answers_are_those_of_the_logits_at_the_last_token():
    inputs = og.Inputs.from_tokens(
        [[4, 0, 1], [4, 4], [1, 0, 0, 4], [5]], labels=[1, 2, 1, 1]
    )
    right, losses = answers(value_of(Counting(), inputs))
    assert right.tolist() == [True, True, True, False]
    logits = torch.tensor([m * 2.0 - 0.5 * m * m for m in range(4)])
    expected = torch.nn.functional.cross_entropy(logits[None], torch.tensor([2]))
    assert losses[1] == pytest.approx(float(expected), abs=1e-6)


def test_labels_beyond_the_classes_are_refused():
    inputs = og.Inputs.from_tokens([[1, 2]], labels=[4])
    with pytest.raises(
        ArgumentError, match="labels go up to 4, but the model has 4 classes"
    ):
        answers(value_of(Counting(), inputs))


def test_states_are_read_and_edited_at_the_last_token_only():
    inputs = og.Inputs.from_tokens([[4, 0, 1], [4, 4], [1, 0, 0, 4]], labels=[1, 2, 1])
    value = value_of(Counting(), inputs)
    state = ReadoutState(value, "state")
    expected = [[1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 2, 1], [2, 1, 0, 0, 1, 1]]
    np.testing.assert_allclose(state.states(), expected)

    class Planted(SAE):
        """Latent j is coordinate j."""

        components_ = np.eye(6)

        def transform(self, X):
            return np.asarray(X)

        def inverse_transform(self, U):
            return np.asarray(U)

    assert state.without(Planted(6), None).tolist() == [1, 1, 1]
    assert state.without(Planted(6), np.array([0, 1])).tolist() == [1, 1, 1]
    # Counts 0 everywhere.
    assert state.without(Planted(6), np.array([4])).tolist() == [0, 0, 0]
    assert answers(value)[0].all()  # no hook is left


def test_a_planted_count_is_found_and_its_removal_costs_what_it_must():
    inputs = counted()

    class Reading:
        def __getitem__(self, need):
            return value_of(Counting(), inputs)

    probe = SaeProbe(
        (4,),
        layer="state",
        variants=("topk",),
        n_latents=12,
        k=4,
        epochs=60,
        removed=3,
        n_draws=10,
    )
    data = probe.observe(Reading(), None)
    assert float(data.accuracy) == 1.0
    assert float(data.variance_explained.item()) > 0.9
    assert float(data.count_correlation.max()) > 0.5 > 2 * data.count_null.item()
    lost = {
        str(n): float(data.accuracy_lost.sel(ablation=n).item())
        for n in data.ablation.values
    }
    assert lost["count"] > 0.1
    assert lost["count"] > lost["random"]
    # the place of a marker cannot be read from a count
    assert float(data.position_correlation.max()) < 0.6
    again = probe.observe(Reading(), None)
    assert again.identical(data)


def test_a_probe_of_few_texts_or_of_no_single_site_is_refused():
    class Reading:
        def __init__(self, inputs):
            self.inputs = inputs

        def __getitem__(self, need):
            return value_of(Counting(), self.inputs)

    with pytest.raises(ArgumentError, match="at least 100 texts"):
        SaeProbe((4,), layer="state").check_inputs({"text": counted(50)})
    with pytest.raises(ArgumentError, match="exactly one module"):
        SaeProbe((4,), layer="*").observe(Reading(counted(120)), None)
    with pytest.raises(ArgumentError, match="variants must be one of"):
        SaeProbe((4,), variants=("gated",))
    with pytest.raises(ArgumentError, match="removed must be at most half"):
        SaeProbe((4,), n_latents=8, removed=5)


def test_correlations_are_pearsons_and_constants_correlate_with_nothing():
    rng = np.random.default_rng(0)
    codes, factors = rng.random((50, 4)), rng.integers(0, 3, (50, 2))
    expected = np.corrcoef(codes.T, factors.T)[:4, 4:]
    np.testing.assert_allclose(
        latent_correlations(codes, factors), expected, atol=1e-10
    )
    codes[:, 1] = 7.0
    assert (latent_correlations(codes, factors)[1] == 0).all()


def test_the_null_of_the_largest_correlation_keeps_its_level():
    rng = np.random.default_rng(1)
    above = 0
    for _ in range(200):
        codes, factors = rng.random((60, 30)), rng.random((60, 1))
        found = correlations(codes, factors, 100, rng)
        above += bool(found.of_latent.max() > found.limit)
    assert 2 <= above <= 22  # 5 % of 200 with 3.5 standard deviations


def test_intervals_are_wilsons():
    low, high = wilson_interval(np.array([0, 5, 10]), np.array([10, 10, 10]))
    np.testing.assert_allclose(low, [0, 0.2366, 0.7225], atol=1e-4)
    np.testing.assert_allclose(high, [0.2775, 0.7634, 1], atol=1e-4)
    assert majority_share(np.array([3, 3, 1, 0])) == 0.5


def test_a_series_that_does_not_fall_never_settles():
    steps = np.array([0, 10, 20, 30])
    assert settling_step(steps, np.array([2.0, 1.2, 1.0, 1.5])) == 20
    assert np.isnan(settling_step(steps, np.array([1.0, 1.2, 1.1, 1.5])))


def test_a_study_of_a_recorded_run_holds_all_of_it(tmp_path):
    run = MarkerRun(task=TASK, layers=2, width=16, heads=2, steps=6, batch_size=8)
    folder = record_marker_runs(tmp_path / "run", run, seeds=[0], every=1)[0]
    sets = {"m=1": TASK.inputs(60, 1, markers=1), "m=2": TASK.inputs(60, 2, markers=2)}
    mixed = {"mixed": TASK.inputs(120, 3)}
    study = og.Study(
        og.Trajectory.from_folder(folder),
        {**sets, **mixed},
        [
            ReadoutAccuracy(tuple(sets), cut=(1, 8)),
            ReadoutAttention(tuple(sets), top=(1, 8)),
            SaeProbe(TASK.marker_ids, on="mixed", n_latents=16, epochs=2, n_draws=3),
        ],
    )
    result = study.run(tmp_path / "study")
    assert result.attrs["problems"] == "[]"
    accuracy = result["readout-accuracy"]
    np.testing.assert_allclose(accuracy.cut_accuracy.sel(kept=8), accuracy.accuracy)
    for name, inputs in sets.items():
        model = og.Trajectory.from_folder(folder)[6].model()
        with torch.no_grad():
            guess = model(torch.from_numpy(inputs.ids.copy())).logits.argmax(1).numpy()
        found = float(accuracy.accuracy.sel(set=name, step=6))
        assert found == pytest.approx((guess == inputs.labels).mean())
    attention = result["readout-attention"]
    np.testing.assert_allclose(attention.top_mass.sel(k=8), 1, atol=1e-5)
    assert (attention.entropy <= np.log(8) + 1e-5).all()
    page = og.open_study(tmp_path / "study").report(tmp_path / "page.html")
    assert "Accuracy lost by removing latents" in page.read_text()
