"""Commutators against closed forms, direct steps and explicit Hessians in float64."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ontogeny as og
from helpers.study_examples import tiny_model
from ontogeny.updates import GradientField, commutator, commutators

LR = 1e-2


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def data(seed, n=8):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=generator)
    return x, torch.randint(0, 3, (n,), generator=generator)


def cross_entropy(model, batch):
    x, y = batch
    return nn.functional.cross_entropy(model(x), y)


def flat(vector):
    return torch.cat([t.double().flatten() for t in vector.values()])


def stepped(model, loss, batches, lr):
    """Plain gradient descent, one batch after the other, as in the paper's code."""
    model = copy.deepcopy(model)
    parameters = [p for p in model.parameters() if p.requires_grad]
    for batch in batches:
        gradient = torch.autograd.grad(loss(model, batch), parameters)
        with torch.no_grad():
            for p, g in zip(parameters, gradient, strict=True):
                p.sub_(lr * g)
    return torch.cat([p.detach().double().flatten() for p in parameters])


def doubled(batch):
    return tuple(t.double() if t.is_floating_point() else t for t in batch)


def direct(model, loss, a, b, lr):
    model, a, b = copy.deepcopy(model).double(), doubled(a), doubled(b)
    return stepped(model, loss, [a, b], lr) - stepped(model, loss, [b, a], lr)


def test_it_equals_the_direct_difference_of_two_steps_with_its_sign():
    model, a, b = network(), data(1), data(2)
    found = commutator(model, cross_entropy, a, b, LR)
    expected = direct(model, cross_entropy, a, b, LR)
    torch.testing.assert_close(flat(found.delta), expected, rtol=1e-8, atol=1e-14)
    assert found.norm == pytest.approx(float(expected.norm()), rel=1e-8)


def test_a_quadratic_loss_has_the_closed_form():
    rng = np.random.default_rng(0)
    first, second = (torch.tensor(m @ m.T) for m in rng.normal(size=(2, 5, 5)))
    to_a, to_b = (torch.tensor(v) for v in rng.normal(size=(2, 5)))

    class Point(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = nn.Parameter(torch.arange(5.0))

    def loss(model, batch):
        H, target = batch
        return (model.x - target) @ H @ (model.x - target) / 2

    model = Point()
    x = model.x.detach().double()
    bracket = LR**2 * (second @ first @ (x - to_a) - first @ second @ (x - to_b))
    for method in ("difference", "bracket"):  # the Hessians are constant: no truncation
        found = commutator(
            model, loss, (first, to_a), (second, to_b), LR, method=method
        )
        torch.testing.assert_close(found.delta["x"], bracket, rtol=1e-9, atol=1e-14)
    same = commutator(model, loss, (first, to_a), (first @ first, to_a), LR)
    assert same.norm < 1e-12 * float(x.norm())  # commuting Hessians, one minimum


def test_the_bracket_is_that_of_explicit_hessians_and_the_limit_of_small_steps():
    model, a, b = network(), data(1), data(2)
    point = torch.cat([p.detach().double().flatten() for p in model.parameters()])
    shapes = [p.shape for p in model.parameters()]
    names = [name for name, _ in model.named_parameters()]
    wide = copy.deepcopy(model).double()

    def loss_at(batch):
        def value(vector):
            parts = vector.split([s.numel() for s in shapes])
            state = {
                n: p.reshape(s) for n, p, s in zip(names, parts, shapes, strict=True)
            }
            return nn.functional.cross_entropy(
                torch.func.functional_call(wide, state, (batch[0],)), batch[1]
            )

        return value

    losses = [loss_at(doubled(batch)) for batch in (a, b)]
    H_a, H_b = (torch.autograd.functional.hessian(loss, point) for loss in losses)
    g_a, g_b = (torch.func.grad(loss)(point) for loss in losses)
    bracket = commutator(model, cross_entropy, a, b, LR, method="bracket")
    expected = LR**2 * (H_b @ g_a - H_a @ g_b)
    torch.testing.assert_close(flat(bracket.delta), expected, rtol=1e-9, atol=1e-15)
    errors = []
    for lr in (1e-2, 1e-3):
        difference = flat(commutator(model, cross_entropy, a, b, lr).delta) / lr**2
        errors.append(float((difference - expected / LR**2).norm()))
    assert errors[1] / errors[0] == pytest.approx(0.1, rel=0.1)  # they differ by O(lr)


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([1e-4, 1e-2, 0.5]))
def test_it_changes_its_sign_with_the_order_and_vanishes_for_equal_batches(seed, lr):
    model, a, b = network(seed), data(seed + 1), data(seed + 2)
    forth = commutator(model, cross_entropy, a, b, lr)
    back = commutator(model, cross_entropy, b, a, lr)
    torch.testing.assert_close(
        flat(forth.delta), -flat(back.delta), rtol=1e-7, atol=1e-14
    )
    assert (forth.norm, forth.cosine) == pytest.approx(
        (back.norm, back.cosine), rel=1e-7
    )
    assert commutator(model, cross_entropy, a, a, lr).norm < 1e-15
    assert -1 <= forth.cosine <= 1 and forth.defect >= 0


def test_float32_differences_of_gradients_hold_where_steps_in_float32_do_not():
    torch.manual_seed(0)
    model, a, b = network(), data(1, 64), data(2, 64)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-2)
    both = tuple(torch.cat(parts) for parts in zip(a, b, strict=True))
    for _ in range(400):  # small gradients near the end of training
        optimiser.zero_grad()
        cross_entropy(model, both).backward()
        optimiser.step()
    lr = 1e-3
    truth = direct(model, cross_entropy, a, b, lr)
    ours = flat(commutator(model, cross_entropy, a, b, lr, dtype="float32").delta)
    in_float32 = stepped(model, cross_entropy, [a, b], lr) - stepped(
        model, cross_entropy, [b, a], lr
    )
    wide = flat(commutator(model, cross_entropy, a, b, lr).delta)
    errors = [
        float((v - truth).norm() / truth.norm()) for v in (wide, ours, in_float32)
    ]
    assert errors[0] < 1e-6 and errors[1] < 0.05 and errors[2] > 10 * errors[1]


def test_defect_and_cosine_are_those_of_the_two_gradients():
    model, a, b = network(), data(1), data(2)
    found = commutator(model, cross_entropy, a, b, LR)
    wide = copy.deepcopy(model).double()
    g = []
    for batch in (a, b):
        gradient = torch.autograd.grad(
            cross_entropy(wide, doubled(batch)), list(wide.parameters())
        )
        g.append(torch.cat([x.flatten() for x in gradient]))
    norms = [float(x.norm()) for x in g]
    assert found.cosine == pytest.approx(
        float(g[0] @ g[1]) / (norms[0] * norms[1]), rel=1e-9
    )
    assert found.defect == pytest.approx(
        found.norm / (LR * norms[0] * LR * norms[1]), rel=1e-9
    )
    assert found.loss_a == pytest.approx(cross_entropy(wide, doubled(a)).item())


def test_defect_of_the_bracket_does_not_depend_on_the_learning_rate():
    model, a, b = network(), data(1), data(2)
    found = [
        commutator(model, cross_entropy, a, b, lr, method="bracket").defect
        for lr in (1e-1, 1e-4)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_pairs_that_share_a_batch_give_what_single_pairs_give():
    model, batches = network(), [data(seed) for seed in range(3)]
    pairs = [(0, 1), (2, 0), (1, 2)]
    calls = []

    def counted(m, batch):
        calls.append(1)
        return cross_entropy(m, batch)

    for (i, j), found in zip(
        pairs, commutators(model, counted, batches, LR, pairs), strict=True
    ):
        alone = commutator(model, cross_entropy, batches[i], batches[j], LR)
        torch.testing.assert_close(flat(found.delta), flat(alone.delta), rtol=0, atol=0)
    assert len(calls) == 3 + 2 * len(pairs)  # a batch's own gradient is computed once


@pytest.mark.parametrize("method", ["difference", "bracket"])
def test_float64_goes_through_a_model_that_rounds_to_float32_on_its_way(method):
    model = tiny_model()  # RMSNorm, rotary positions and softmax ask for float32
    ids = [
        torch.randint(4, 40, (4, 9), generator=torch.Generator().manual_seed(i))
        for i in (1, 2)
    ]

    def loss(m, batch):
        logits = m(input_ids=batch, attention_mask=torch.ones_like(batch)).logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), batch.flatten())

    found = commutator(model, loss, *ids, 1e-4, method=method)
    field = GradientField(model, loss)
    gradient = field.gradient(ids[0])[1]
    step = 1e-5
    ahead, behind = (
        field.gradient(ids[0], field.moved(gradient, s * step))[0] for s in (1, -1)
    )
    slope = (ahead - behind) / (2 * step)
    squared = float(flat(gradient) @ flat(gradient))
    assert slope == pytest.approx(squared, rel=1e-5)
    # at a learning rate where float32 holds no digit of it, float64 keeps the bracket's
    other = commutator(model, loss, *ids, 1e-7, method="difference")
    bracket = flat(found.delta) / 1e-8
    error = float((flat(other.delta) / 1e-14 - bracket).norm() / bracket.norm())
    assert error < (1e-3 if method == "bracket" else 0.2)


def test_it_is_reachable_from_the_top():
    assert og.updates.commutator is commutator
