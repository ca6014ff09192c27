"""The local learning coefficient, with a stand-in for devinterp, which is an extra."""

import random
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from ontogeny.errors import ArgumentError, MissingExtraError
from ontogeny.observables import LearningCoefficient
from ontogeny_papers.observables.learning_coefficient import windows
from ontogeny_papers.observables.sampled_losses import Chains

NOISE = np.random.default_rng(0).normal(size=(4, 40)) * 0.01


class NextToken(torch.nn.Module):
    """A causal model by its name's ending, whose logits depend on the token alone."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.eye(6))

    def forward(self, input_ids):
        return self.table[input_ids]


NextToken.__name__ = "NextTokenForCausalLM"


def standing_in(monkeypatch, trace, initial=3.0):
    """Put a module in devinterp's place that gives these losses; return what it was called with."""
    seen = {}

    def llc(
        model,
        dataset,
        observables,
        *,
        lr,
        n_beta,
        param_masks=None,
        loss_fn=None,
        **more,
    ):
        seen.update(
            more, lr=lr, n_beta=n_beta, texts=len(dataset), ids=dataset["input_ids"][0]
        )
        seen["loss"] = (
            None if loss_fn is None else loss_fn(model, dataset["input_ids"][:])
        )
        for seed in (random.seed, np.random.seed, torch.manual_seed):
            seed(more["init_seed"])
        sys.stderr.write("Chain 0: 100%")
        return xr.Dataset(
            {"loss_trace": (("chain", "step"), trace), "init_loss": initial}
        )

    for name in ("devinterp", "devinterp.slt", "devinterp.slt.llc"):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["devinterp.slt.llc"].llc = llc
    return seen


def inputs():
    rng = np.random.default_rng(1)
    return og.Inputs.from_tokens(
        [rng.integers(0, 6, n) for n in (7, 7, 8, 5, 9)], vocab_size=6
    )


def result(**options):
    observable = LearningCoefficient(n_draws=40, batch_size=2, **options)
    reading = dict(zip(observable.needs(), (NextToken(), inputs()), strict=True))
    return observable.observe(reading, None)


def test_the_coefficient_is_that_of_the_accepted_chains(monkeypatch):
    trace = 3.5 + NOISE
    trace[1] = 2.9  # below the checkpoint's own loss
    trace[2, 25:] = np.nan  # failed
    seen = standing_in(monkeypatch, trace)
    found = result(n_beta=10.0, random_state=7)
    expected = [10 * (trace[c, 20:].mean() - 3.0) for c in (0, 3)]
    assert found.coefficient.values == pytest.approx(np.mean(expected))
    assert found.coefficient_stderr.values == pytest.approx(
        np.std(expected, ddof=1) / 2**0.5
    )
    assert found.accepted == 0.5
    assert found.initial_loss == 3.0 and found.trace.shape == (4, 40)
    assert seen["num_chains"] == 4 and seen["init_seed"] == 7 and seen["texts"] == 4
    assert len(seen["ids"]) == 7


class Classifier(torch.nn.Module):
    """Three classes, whose logits are the counts of the tokens 0 to 2."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.eye(6)[:, :3])

    def forward(self, input_ids):
        return self.table[input_ids].sum(1)


def test_of_a_classifier_the_loss_is_that_of_the_labels(monkeypatch):
    seen = standing_in(monkeypatch, 3.5 + NOISE)
    texts = og.Inputs.from_tokens(
        [[0, 1], [2, 2], [1, 1, 1]], vocab_size=6, labels=[0, 2, 1]
    )
    observable = LearningCoefficient(n_draws=40, batch_size=2)
    reading = dict(zip(observable.needs(), (Classifier(), texts), strict=True))
    assert observable.observe(reading, None).accepted == 1.0
    expected = torch.tensor([np.log(2 + np.exp(-1.0)), np.log1p(2 * np.exp(-2.0))])
    assert seen["loss"].shape == (2, 2)  # devinterp asks for one loss less than columns
    torch.testing.assert_close(seen["loss"].mean(1), expected.float())


@pytest.mark.parametrize("labels", [None, ["a", "b"]])
def test_a_classifier_without_numbered_labels_is_refused(monkeypatch, labels):
    standing_in(monkeypatch, 3.5 + NOISE)
    texts = og.Inputs.from_tokens([[0, 1], [2, 2]], vocab_size=6, labels=labels)
    observable = LearningCoefficient(n_draws=40, batch_size=2)
    reading = dict(zip(observable.needs(), (Classifier(), texts), strict=True))
    with pytest.raises(
        ArgumentError, match=r"labels must be the numbers|have no labels"
    ):
        observable.observe(reading, None)


def test_in_a_study_every_variable_has_a_name_and_numbers_have_units(
    monkeypatch, tmp_path
):
    standing_in(monkeypatch, 3.5 + NOISE)
    run = og.Trajectory.from_models({0: NextToken(), 1: NextToken()})
    chosen = LearningCoefficient(n_draws=40, batch_size=2)
    node = og.Study(run, inputs(), chosen, device="cpu").run(tmp_path)[
        "learning-coefficient"
    ]
    assert "failed" not in node.attrs
    for name, variable in node.data_vars.items():
        assert variable.attrs.get("long_name"), name
        assert variable.dtype.kind != "f" or variable.attrs.get("units"), name


def test_no_chain_is_no_number(monkeypatch):
    standing_in(monkeypatch, np.full((4, 40), 2.5))
    with pytest.raises(ArgumentError, match="none of 4 chains settled"):
        result()


def test_global_random_states_and_output_stay_as_they_were(monkeypatch, capsys):
    standing_in(monkeypatch, 3.5 + NOISE)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    expected = random.random(), np.random.random(), float(torch.rand(()))  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    result()
    assert (random.random(), np.random.random(), float(torch.rand(()))) == expected  # noqa: NPY002
    assert "Chain 0" not in capsys.readouterr().err


def test_drifting_chains_are_not_accepted_and_unlike_ones_disagree():
    rising = 3.2 + np.linspace(0, 0.5, 40) + NOISE
    assert not Chains(rising, 3.0, 10.0, 10).accepted.any()
    apart = 3.5 + NOISE + np.arange(4)[:, None]
    assert (
        Chains(apart, 3.0, 10.0, 10).accepted.all()
        and Chains(apart, 3.0, 10.0, 10).rhat > 10
    )
    assert Chains(3.5 + NOISE, 3.0, 10.0, 10).rhat == pytest.approx(1, abs=0.1)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "devinterp.slt.llc", None)
    with pytest.raises(MissingExtraError, match=r"ontogeny-papers\[llc\]"):
        result()


def test_windows_are_as_long_as_half_of_the_texts():
    assert windows(inputs(), None, 2).shape == (4, 7)
    assert windows(inputs(), 9, 1).shape == (1, 9)
    with pytest.raises(ArgumentError, match="batch_size=2"):
        windows(inputs(), 9, 2)
