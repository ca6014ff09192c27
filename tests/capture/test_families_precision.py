"""Half precision: statistics in float32, close to the float32 twin; NaN and infinity counted."""

import numpy as np
import pytest
import torch

from helpers.family_models import build, inputs_of
from ontogeny import Trajectory
from ontogeny.capture import activations, attention_entropy, losses
from ontogeny.errors import NonFiniteError

SITES = ("resid_pre", "resid_mid", "resid", "attn", "mlp", "q", "k", "v")
# Eight bits of mantissa round by up to 1/256 at every step of two layers (fp16: eleven bits).
TOLERANCES = {torch.bfloat16: 3e-2, torch.float16: 4e-3}


@pytest.fixture(scope="module", params=["gpt2", "llama", "bert"])
def model(request):
    return build(request.param)


@pytest.mark.parametrize("dtype", list(TOLERANCES))
def test_half_precision_is_close_to_its_float32_twin(model, dtype):
    checkpoint = Trajectory.from_models({0: model})[0]
    half, inputs = checkpoint.model(dtype=dtype), inputs_of()
    assert {p.dtype for p in half.parameters()} == {dtype}
    tolerance = TOLERANCES[dtype]
    expected = activations(model, inputs, SITES, max_tokens=None)
    found = activations(half, inputs, SITES, max_tokens=None)
    for label, twin in expected.items():
        assert found[label].dtype == torch.float32
        error = (found[label] - twin).norm() / twin.norm()
        assert 0 < error < tolerance, label
    loss, twin = losses(half, inputs), losses(model, inputs)
    assert loss.loss.dtype == np.float64
    np.testing.assert_allclose(loss.loss, twin.loss, rtol=tolerance)
    entropy, twin = attention_entropy(half, inputs), attention_entropy(model, inputs)
    assert entropy.dtype == np.float64
    np.testing.assert_allclose(entropy, twin, rtol=tolerance)


def test_means_of_half_precision_tokens_are_taken_in_float32(model):
    half = Trajectory.from_models({0: model})[0].model(dtype=torch.bfloat16)
    inputs = inputs_of()
    rows = activations(half, inputs, "resid", tokens="all", max_tokens=None)
    means = activations(half, inputs, "resid", tokens="mean", max_tokens=None)
    for label, every in rows.items():
        expected = torch.stack(
            [text.mean(dim=0) for text in every.split(inputs.lengths.tolist())]
        )
        torch.testing.assert_close(means[label], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_with_nan_or_infinity_are_counted(model, value, dtype):
    broken = Trajectory.from_models({0: model})[0].model(dtype=dtype)
    inputs = inputs_of()
    token = int(inputs.ids[1, 3])
    with torch.no_grad():
        broken.get_input_embeddings().weight[token, 0] = value
    count, total = int((inputs.ids[inputs.mask] == token).sum()), int(inputs.mask.sum())
    with pytest.raises(
        NonFiniteError, match=rf"NaN or infinity in {count} of {total} rows"
    ):
        activations(broken, inputs, "embed", max_tokens=None)
    with pytest.raises(NonFiniteError, match="is not finite in"):
        losses(broken, inputs, mask_fraction=0.9)
