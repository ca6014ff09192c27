import copy
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.training import adamw_one_cycle, train


class Point(nn.Module):
    def __init__(self, start=1.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([start], dtype=torch.float64))


def half_square(model, batch):
    return model.w.square().sum() / 2


def noise(generator):
    return torch.randn(4, 3, generator=generator)


def regression(model, x):
    return (model(x) - x.sum(1, keepdim=True)).square().mean()


def sgd(model, lr):
    return torch.optim.SGD(model.parameters(), lr=lr)


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def network(dropout=0.5):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(dropout), nn.Linear(8, 1))


def test_gradient_descent_on_a_parabola_follows_its_closed_form():
    model = Point()
    log = train(
        model,
        [None] * 6,
        half_square,
        6,
        optimizer=sgd(model, 0.1),
        clip=math.inf,
        random_state=0,
    )
    assert model.w.item() == pytest.approx(0.9**6, rel=1e-12)
    np.testing.assert_allclose(log.loss, 0.9 ** (2 * np.arange(6)) / 2, rtol=1e-12)
    np.testing.assert_array_equal(log.step, [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(log.learning_rate, [0.1] * 6)


def test_the_gradient_is_clipped_to_the_norm_given():
    model = Point(100.0)
    train(model, [None], half_square, 1, optimizer=sgd(model, 1.0), clip=2.0)
    assert model.w.item() == pytest.approx(98.0, abs=1e-4)


def test_one_cycle_rises_to_its_peak_and_falls_to_nothing():
    model = network()
    optimizer, schedule = adamw_one_cycle(model, 100, peak=0.5, warmup=0.2)
    rates = train(
        model, noise, regression, 100, optimizer=optimizer, schedule=schedule
    ).learning_rate
    top = int(rates.argmax())
    assert rates[top] == pytest.approx(0.5, rel=0.01) and 18 <= top <= 22
    assert (np.diff(rates[: top + 1]) > 0).all() and (np.diff(rates[top:]) < 0).all()
    assert rates[-1] < 0.001


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_shortest_cycles_work(steps):
    assert len(train(network(), noise, regression, steps).step) == steps


def test_only_matrices_decay():
    model = nn.Linear(2, 2)
    before = copy.deepcopy(model.state_dict())
    optimizer, _ = adamw_one_cycle(model, 10, peak=0.1, decay=0.5)

    def flat(model, batch):
        return 0.0 * (model.weight.sum() + model.bias.sum())

    train(model, [None], flat, 1, optimizer=optimizer)
    rate = optimizer.param_groups[0]["lr"]
    torch.testing.assert_close(
        model.weight.detach(), before["weight"] * (1 - 0.5 * rate)
    )
    torch.testing.assert_close(model.bias.detach(), before["bias"])


def test_callbacks_see_every_step_from_zero_in_order():
    model, seen = Point(), []

    def watch(step, model):
        seen.append((step, model.w.item()))

    train(
        model,
        [None] * 3,
        half_square,
        3,
        optimizer=sgd(model, 0.5),
        on_step=[watch],
        clip=9.0,
    )
    assert seen == [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.125)]


def test_progress_is_told_the_loss():
    model, told = Point(), []
    train(
        model,
        [None] * 2,
        half_square,
        2,
        optimizer=sgd(model, 0.5),
        clip=9.0,
        progress=lambda *args: told.append(args),
    )
    assert told == [(1, 2, 0.5), (2, 2, 0.125)]


def test_the_seed_decides_batches_and_dropout():
    def run(seed, callbacks=()):
        model = network()
        train(model, noise, regression, 20, random_state=seed, on_step=callbacks)
        return weights(model)

    first = run(0)
    torch.manual_seed(99)  # the state outside does not matter
    assert torch.equal(first, run(0))
    assert torch.equal(first, run(0, [lambda step, model: None]))
    assert not torch.equal(first, run(1))


def test_the_random_state_outside_is_left_alone():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    train(model := Point(), noise, half_square, 3, optimizer=sgd(model, 0.1))
    assert torch.equal(torch.rand(3), wanted)


def test_the_mode_comes_back_also_after_an_error():
    model = network().eval()
    modes = []

    def fails(model, batch):
        modes.append(model.training)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        train(model, noise, fails, 1)
    assert modes == [True] and not model.training


def test_a_loss_that_is_not_finite_stops_before_the_update():
    model = Point()

    def breaks(model, batch):
        return half_square(model, batch) * (math.nan if batch == 2 else 1.0)

    with pytest.raises(NonFiniteError, match="step 3: the loss is nan"):
        train(model, range(9), breaks, 9, optimizer=sgd(model, 0.5), clip=9.0)
    assert model.w.item() == 0.25


def test_a_gradient_that_is_not_finite_stops_before_the_update():
    model = Point(0.0)

    def root(model, batch):
        return model.w.sqrt().sum()

    with pytest.raises(NonFiniteError, match="step 1: the norm of the gradient is inf"):
        train(model, [None], root, 1, optimizer=sgd(model, 0.5))
    assert model.w.item() == 0.0


class Pair(NamedTuple):
    x: torch.Tensor
    name: str


def test_batches_of_any_shape_reach_the_device():
    received = []

    def look(model, batch):
        received.append(batch)
        return half_square(model, batch)

    x = torch.ones(2)
    given = [x, [x, 3], (x,), {"a": {"b": x}}, Pair(x, "n"), None]
    train(Point(), given, look, len(given))
    assert [type(batch) for batch in received] == [type(batch) for batch in given]
    assert received[4].name == "n" and received[3]["a"]["b"].device.type == "cpu"


def test_too_few_batches_are_an_error():
    with pytest.raises(ArgumentError, match="ended after 2 batches; 3 steps"):
        train(Point(), [None] * 2, half_square, 3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps": 0}, "steps must be"),
        ({"steps": True}, "steps must be"),
        ({"steps": 1.5}, "steps must be"),
        ({"clip": 0.0}, "clip must be positive"),
        ({"clip": math.nan}, "clip must be positive"),
        ({"batches": 3}, "batches must be"),
        ({"loss": lambda model, batch: model.w}, r"returned \(1,\)"),
        ({"loss": lambda model, batch: 1.0}, "returned float"),
        ({"model": nn.Identity()}, "no parameter"),
    ],
)
def test_bad_arguments_are_named(changed, said):
    arguments = {"model": Point(), "batches": [None], "loss": half_square, "steps": 1}
    with pytest.raises(ArgumentError, match=said):
        train(**{**arguments, **changed})


def test_a_schedule_without_its_optimizer_is_refused():
    model = Point()
    _, schedule = adamw_one_cycle(model, 3)
    with pytest.raises(ArgumentError, match="schedule needs the optimizer"):
        train(model, [None], half_square, 1, schedule=schedule)
    with pytest.raises(ArgumentError, match="warmup"):
        adamw_one_cycle(model, 3, warmup=1.0)
