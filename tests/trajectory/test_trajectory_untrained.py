"""The model that a run without step 0 is held against: the same in every thread, each time."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from helpers.study_examples import tiny_model
from ontogeny.errors import ArgumentError
from ontogeny.trajectory.untrained import untrained_like


def same(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.fixture
def hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_threads_that_initialise_at_once_get_the_same_model(hasty_threads):
    """They share PyTorch's random state, which any forward pass of another thread sets back."""
    model = tiny_model()
    expected = untrained_like(model)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: untrained_like(model), range(12)))
    assert all(same(each, expected) for each in found)


def test_initial_values_are_those_of_the_seed_and_the_random_state_stays():
    model = tiny_model()
    torch.manual_seed(3)
    expected = type(model)(model.config).eval()
    state = torch.random.get_rng_state()
    assert same(untrained_like(model, 3), expected)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not same(untrained_like(model, 4), expected)


def test_parameters_and_buffers_have_the_dtypes_of_the_model():
    """Frequencies of rotary positions stay in float32 in a model that is read in bfloat16."""
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].to(torch.bfloat16)
    fresh = untrained_like(model)
    assert fresh[0].weight.dtype == torch.bfloat16
    assert fresh[1].weight.dtype == fresh[1].running_mean.dtype == torch.float32


class Drawn(nn.Module):
    """Draws its parameters in the ways that modules do."""

    def __init__(self):
        super().__init__()
        self.weight, self.recurrent = nn.Parameter(torch.zeros(3)), nn.GRU(2, 3)

    def reset_parameters(self):
        with torch.no_grad():
            self.weight.copy_(torch.randn(3) + torch.rand(3) + torch.randperm(3))


def test_modules_that_are_reset_draw_from_the_seed_alone():
    model = Drawn()
    assert same(untrained_like(model, 1), untrained_like(model, 1))
    assert not same(untrained_like(model, 1), untrained_like(model, 2))


def test_a_class_that_takes_more_than_a_configuration_is_refused():
    class Particular(PreTrainedModel):
        config_class, _supports_sdpa = type(tiny_model().config), True

        def __init__(self, config, width):
            super().__init__(config)
            self.linear = nn.Linear(width, width)

    with pytest.raises(
        ArgumentError, match="Particular cannot be built from its configuration"
    ):
        untrained_like(Particular(tiny_model().config, 3))
