"""The check that a text's result does not depend on what it is batched with."""

import pytest
import torch
from torch import nn

from helpers.capture_models import BLOCKS, FAMILIES, OwnModel, build, inputs_of
from ontogeny import capture
from ontogeny.errors import BatchInvarianceError, LayerMatchError
from ontogeny.needs import Activations


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_on_the_right_needs_no_help(family):
    found = capture.check_batch_invariance(build(family), inputs_of(), BLOCKS[family])
    assert found.positions == "model" and found.padding_side == "right"
    # Kernels of some processors give 0.
    assert found.difference < 1e-5 < found.tolerance


@pytest.mark.parametrize(
    ("family", "positions"),
    [
        ("gpt2", "mask"),  # learned positions, counted from the first column
        ("bert", "mask"),
        ("llama", "model"),  # rotary positions are relative
        ("gpt_neox", "model"),
        ("eurobert", "model"),
    ],
)
def test_padding_on_the_left_is_helped_by_positions_from_the_mask(family, positions):
    model, inputs = build(family), inputs_of(side="left")
    found = capture.check_batch_invariance(model, inputs, BLOCKS[family])
    assert found.positions == positions and found.padding_side == "left"
    need = Activations(BLOCKS[family], max_tokens=None)
    settings = capture.ReadingSettings(batch_size=3, positions=found.positions)
    left = capture.read(model, [need], {"text": inputs}, settings)[need]
    right = capture.read(model, [need], {"text": inputs_of()})[need]
    for path, values in left.items():
        assert (values - right[path]).norm() / right[path].norm() < 1e-5


def test_a_model_without_positions_of_its_own_is_padded_on_the_right():
    class Learned(OwnModel):
        """Learned positions, counted from the first column; takes no position ids."""

        def __init__(self):
            super().__init__()
            self.place = nn.Embedding(32, 16)

        def forward(self, idx, attention_mask=None):
            x = self.embed(idx) + self.place.weight[: idx.shape[1]]
            for block in self.blocks:
                x = block(x, attention_mask)
            return self.head(x)

    found = capture.check_batch_invariance(
        Learned(), inputs_of(side="left"), "blocks.*"
    )
    assert found.positions == "right" and found.padding_side == "right"
    assert found.difference < 1e-5


class Averaging(nn.Module):
    """Adds the mean over all positions, padding too, to every token."""

    def __init__(self, weight=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.mix, self.weight = nn.Embedding(64, 8), nn.Linear(8, 8), weight

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        x = self.embed(input_ids)
        return self.mix(x + self.weight * x.mean(dim=1, keepdim=True))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("layers", ["mix", None])
def test_a_model_that_averages_over_padding_is_refused(side, layers):
    with pytest.raises(
        BatchInvarianceError, match=r"they differ by 0\.\d+ in .*0.0001 is allowed"
    ):
        capture.check_batch_invariance(Averaging(), inputs_of(side=side), layers)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_bidirectional_model_that_ignores_its_mask_is_refused(side):
    model = OwnModel(causal=False, masked=False)
    with pytest.raises(BatchInvarianceError, match="Does it use its attention mask"):
        capture.check_batch_invariance(model, inputs_of(side=side), "blocks.*.mlp")


def test_the_measured_difference_is_the_relative_one():
    model, inputs = Averaging(weight=0.01), inputs_of(lengths=(2, 20))
    found = capture.check_batch_invariance(model, inputs, "embed", tolerance=1.0)
    assert found.difference == 0.0
    found = capture.check_batch_invariance(model, inputs, "mix", tolerance=1.0)
    ids = torch.tensor(inputs.ids)
    with torch.no_grad():
        alone, together = model(ids[:1, :2])[0], model(ids)[0, :2]
    expected = float((together - alone).norm() / alone.norm())
    assert found.difference == pytest.approx(expected, rel=1e-4)
    assert found.layer == "mix"


def test_a_layer_before_the_leak_passes():
    assert (
        capture.check_batch_invariance(Averaging(), inputs_of(), "embed").difference
        == 0.0
    )


def test_texts_of_one_length_have_no_padding_to_leak():
    model = Averaging()
    assert capture.check_batch_invariance(
        model, inputs_of(lengths=(5, 5, 5)), "mix"
    ).positions


def test_one_text_is_enough():
    found = capture.check_batch_invariance(
        build("llama"), inputs_of(lengths=(1,)), "layers.*"
    )
    assert found.difference == 0.0


def test_a_layer_of_zeros_agrees_with_itself():
    model = OwnModel()
    (
        nn.init.zeros_(model.blocks[0].mlp[2].weight),
        nn.init.zeros_(model.blocks[0].mlp[2].bias),
    )
    found = capture.check_batch_invariance(model, inputs_of(), "blocks.0.mlp")
    assert found.difference == 0.0


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float16, 1e-2), (torch.bfloat16, 5e-2)]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_has_a_wider_stated_tolerance(family, dtype, tolerance):
    model = build(family).to(dtype)
    found = capture.check_batch_invariance(model, inputs_of(), BLOCKS[family])
    assert found.tolerance == tolerance and found.difference < tolerance / 2


def test_an_unknown_layer_is_named():
    with pytest.raises(LayerMatchError):
        capture.check_batch_invariance(build("llama"), inputs_of(), "nowhere")
