"""What a commutator leaves alone, holds fixed and refuses."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.updates import commutator, commutators, pair_statistics

LR = 1e-2


class Everything(nn.Module):
    """Tied weights, a frozen layer, batch norm, dropout and a parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, 5)
        self.hidden = nn.Linear(5, 5)
        self.frozen = nn.Linear(5, 5).requires_grad_(False)
        self.norm = nn.BatchNorm1d(5)
        self.dropout = nn.Dropout(0.5)
        self.unused = nn.Linear(3, 3)
        self.head = nn.Linear(5, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        hidden = self.dropout(self.norm(torch.tanh(self.hidden(self.table(ids)))))
        return self.head(self.frozen(hidden))


def loss(model, ids):
    return nn.functional.cross_entropy(model(ids), ids.roll(1))


def ids(seed):
    return torch.randint(0, 7, (12,), generator=torch.Generator().manual_seed(seed))


def state(model):
    return {
        name: (
            id(t),
            t.dtype,
            t.requires_grad,
            t.grad is None,
            t.detach().numpy().tobytes(),
        )
        for name, t in [*model.named_parameters(), *model.named_buffers()]
    }


@pytest.mark.parametrize("method", ["difference", "bracket"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_model_is_the_same_to_the_last_bit_afterwards(method, training, dtype):
    model = Everything().train(training)
    before, random = state(model), torch.get_rng_state()
    commutator(model, loss, ids(1), ids(2), LR, method=method, dtype=dtype)
    assert state(model) == before and model.training is training
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("method", ["difference", "bracket"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_also_after_a_loss_that_raises_or_spoils_what_it_was_given(
    method, dtype, fails_at
):
    model, calls = Everything().train(), []
    before, random = state(model), torch.get_rng_state()

    def raises(m, batch):
        calls.append(1)
        value = loss(m, batch)
        if len(calls) == fails_at:
            with torch.no_grad():
                for tensor in [*m.parameters(), *m.buffers()] * (
                    method == "difference"
                ):
                    tensor.zero_()
            raise KeyError("on purpose")
        return value

    with pytest.raises(KeyError, match="on purpose"):
        commutator(model, raises, ids(1), ids(2), LR, method=method, dtype=dtype)
    assert state(model) == before
    assert torch.equal(torch.get_rng_state(), random)


def test_dropout_masks_and_running_means_are_held_fixed():
    model = Everything().train()
    forth = commutator(model, loss, ids(1), ids(2), LR)
    again = commutator(model, loss, ids(1), ids(2), LR)
    other = commutator(model, loss, ids(1), ids(2), LR, random_state=7)
    for name, tensor in forth.delta.items():
        assert torch.equal(tensor, again.delta[name])
    assert forth.norm != other.norm
    # smooth in the learning rate: another mask in any of the four gradients would stay finite
    smaller = commutator(model, loss, ids(1), ids(2), LR / 10)
    assert forth.norm / smaller.norm == pytest.approx(100, rel=0.3)


def test_frozen_and_unused_parameters_do_not_move_and_tied_ones_move_once():
    found = commutator(Everything(), loss, ids(1), ids(2), LR)
    assert not any(name.startswith("frozen") for name in found.delta)
    assert (
        "head.weight" not in found.delta
        and float(found.delta["table.weight"].norm()) > 0
    )
    assert float(found.delta["unused.weight"].abs().max()) == 0


def test_tied_weights_move_as_in_direct_steps():
    model = Everything().eval()
    found = commutator(model, loss, ids(1), ids(2), LR)

    def after(order):
        wide = copy.deepcopy(model).double()
        parameters = [p for p in wide.parameters() if p.requires_grad]
        for batch in order:
            gradient = torch.autograd.grad(
                loss(wide, batch), parameters, allow_unused=True
            )
            with torch.no_grad():
                for p, g in zip(parameters, gradient, strict=True):
                    p.sub_(0 if g is None else LR * g)
        return wide.table.weight.detach()

    expected = after([ids(1), ids(2)]) - after([ids(2), ids(1)])
    torch.testing.assert_close(
        found.delta["table.weight"], expected, rtol=1e-7, atol=1e-14
    )


def test_the_dtype_is_what_was_asked_for():
    model = Everything().eval()
    narrow = commutator(model, loss, ids(1), ids(2), LR, dtype="float32")
    wide = commutator(model, loss, ids(1), ids(2), LR)
    assert {t.dtype for t in narrow.delta.values()} == {torch.float32}
    assert {t.dtype for t in wide.delta.values()} == {torch.float64}
    assert narrow.norm == pytest.approx(wide.norm, rel=1e-2)
    half = commutator(model.bfloat16(), loss, ids(1), ids(2), LR, dtype=torch.float32)
    assert {t.dtype for t in half.delta.values()} == {torch.float32}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lr": 0}, "lr must be a positive"),
        ({"lr": float("nan")}, "lr must be a positive"),
        ({"lr": True}, "lr must be a positive"),
        ({"method": "lie"}, "method must be one of"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"loss": lambda model, batch: model(batch)}, "must return a scalar"),
        ({"loss": lambda model, batch: torch.zeros(())}, "does not depend"),
        ({"loss": 3}, "loss a function"),
        (
            {"model": nn.Linear(2, 2).requires_grad_(False)},
            "no parameter with requires_grad",
        ),
    ],
)
def test_wrong_arguments_are_named(change, says):
    given = {"model": Everything(), "loss": loss, "lr": LR, **change}
    model, own, lr = given.pop("model"), given.pop("loss"), given.pop("lr")
    with pytest.raises(ArgumentError, match=says):
        commutator(model, own, ids(1), ids(2), lr, **given)


@pytest.mark.parametrize("pairs", [[], [(0, 0)], [(0, 5)], [(-1, 0)]])
def test_pairs_that_are_none_are_refused_at_once(pairs):
    with pytest.raises(ArgumentError, match="two different batches out of 2"):
        commutators(Everything(), loss, [ids(1), ids(2)], LR, pairs)


def test_a_loss_that_is_not_finite_is_an_error():
    with pytest.raises(NonFiniteError, match="not finite"):
        commutator(Everything(), lambda m, x: loss(m, x) / 0, ids(1), ids(2), LR)


def test_a_zero_gradient_has_no_defect():
    model = nn.Linear(2, 1, bias=False)
    zero, one = torch.zeros(1, 2), torch.ones(1, 2)
    found = commutator(model, lambda m, x: m(x).square().sum(), zero, one, LR)
    assert found.norm == 0
    with pytest.raises(NonFiniteError, match="gradient of a batch is zero"):
        _ = found.defect


def test_the_interval_of_the_median_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(200):
        low, high = pair_statistics(
            rng.exponential(size=25), n_draws=200, random_state=seed
        ).median_interval
        covered.append(low <= np.log(2) <= high)
    assert 0.88 <= np.mean(covered) <= 1.0


def test_pair_statistics_refuse_what_is_not_finite():
    with pytest.raises(NonFiniteError):
        pair_statistics([1.0, float("nan")])
    with pytest.raises(ArgumentError, match="n_draws"):
        pair_statistics([1.0, 2.0], n_draws=0)


def test_an_odd_batch_is_not_dropped_without_a_word():
    model = nn.Linear(3, 1)
    batches = torch.eye(3)[:, None]
    with pytest.raises(ArgumentError, match="3 batches do not make whole pairs"):
        commutators(model, lambda m, x: m(x).square().mean(), batches, 0.1)
