"""Maps of fused attention: those of the same weights with softmax(QK) written out."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import ontogeny as og
from helpers.own_model import CODE
from ontogeny import capture
from ontogeny.capture.fused import attention_weights
from ontogeny.errors import LayerMatchError
from ontogeny.needs import Attention

TOKENS = 50


def texts(lengths=(9, 6, 9)):
    rng = np.random.default_rng(0)
    return og.Inputs.from_tokens(
        [rng.integers(1, TOKENS, n).tolist() for n in lengths], vocab_size=TOKENS
    )


def both():
    """Return a model whose attention is fused, and one with the same weights that returns maps."""
    there = {}
    exec(CODE, there)
    torch.manual_seed(0)
    fused, written = there["build"](), there["attending"]()
    written.load_state_dict(fused.state_dict())
    return fused.eval(), written.eval()


def test_entropies_of_a_fused_model_are_those_of_the_written_one():
    fused, written = both()
    one, other = (
        capture.attention_entropy(model, texts()) for model in (fused, written)
    )
    assert list(one.layer.values) == ["h.0.attn", "h.1.attn", "h.2.attn"]
    assert list(one.layer.values) == list(other.layer.values)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_pass_itself_stays_as_it_is_bit_for_bit():
    model, _ = both()
    ids = torch.arange(1, 9)[None]
    with torch.no_grad():
        before = model(ids)
        capture.attention_entropy(model, texts())
        assert torch.equal(model(ids), before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_the_weights_that_maps_depend_on_end_with_the_last_attention():
    model, _ = both()
    need = Attention("h.1.attn")
    names = capture.modules_read(model, [need], {"text": texts()})[need]
    assert "h.1.attn.c_attn.weight" in names and "h.0.mlp.0.weight" in names
    assert "h.2.attn.c_attn.weight" not in names and "h.1.mlp.0.weight" not in names


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.3}, "bool", "float"]
)
def test_weights_give_what_the_kernel_gives(options):
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 7, 8, generator=generator)
    seen = torch.ones(7, 7).tril().bool()
    masks = {"bool": seen, "float": torch.randn(7, 7, generator=generator)}
    options = {"attn_mask": masks[options]} if isinstance(options, str) else options
    weights = attention_weights(query, key, value, **options)
    given = functional.scaled_dot_product_attention(query, key, value, **options)
    torch.testing.assert_close(weights @ value, given)


def test_queries_that_share_keys_have_a_map_each():
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 7, 8, generator=generator)
    key, value = torch.randn(2, 2, 2, 7, 8, generator=generator)
    weights = attention_weights(query, key, value, enable_gqa=True)
    given = functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(weights @ value.repeat_interleave(2, dim=1), given)


class Encoder(nn.Module):
    """Torch's own layers, which ask their attention for no maps."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, TOKENS)

    def forward(self, ids):
        width = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(width)
        return self.head(self.layers(self.embed(ids), mask, is_causal=True))


def test_torch_s_own_encoder_gives_maps():
    torch.manual_seed(0)
    model = Encoder().eval()
    same = texts((9, 9, 9))
    data = capture.attention_entropy(model, same)
    assert list(data.layer.values) == [f"layers.layers.{n}.self_attn" for n in range(2)]
    first = model.layers.layers[0]
    x = first.norm1(model.embed(torch.tensor(same.ids)))
    mask = nn.Transformer.generate_square_subsequent_mask(9)
    with torch.no_grad():
        maps = first.self_attn(x, x, x, attn_mask=mask, average_attn_weights=False)[1]
    entropy = torch.special.entr(maps).sum(dim=-1).mean(dim=-1)
    np.testing.assert_allclose(
        data[0], entropy.T.mean(axis=-1) if data.ndim == 2 else entropy.T, atol=1e-6
    )


class Returning(nn.Module):
    """One block whose attention calls a kernel and returns its map as well, as does the block."""

    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, 16)
        self.block = nn.Module()
        self.block.attn = kind()
        self.block.forward = lambda x, mask: self.block.attn(x, mask)
        self.head = nn.Linear(16, TOKENS)

    def forward(self, ids):
        x = self.embed(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.block(x, mask)[0])


class OfTorch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x, mask):
        return self.inner(x, x, x, attn_mask=mask, average_attn_weights=False)


class Beside(nn.Module):
    def forward(self, x, mask):
        heads = x.unflatten(-1, (2, 8)).transpose(1, 2)
        given = functional.scaled_dot_product_attention(
            heads, heads, heads, attn_mask=mask
        )
        weights = (heads @ heads.mT / 8**0.5 + mask).softmax(dim=-1)
        return given.transpose(1, 2).flatten(2), weights


@pytest.mark.parametrize(
    ("kind", "path"), [(OfTorch, "block.attn.inner"), (Beside, "block.attn")]
)
def test_a_map_that_is_returned_beside_its_kernel_counts_once(kind, path):
    torch.manual_seed(0)
    model = Returning(kind).eval()
    data = capture.attention_entropy(model, texts())
    assert list(data.layer.values) == [path]
    assert np.isfinite(data).all()


class Nested(nn.Module):
    def forward(self, x, mask):
        heads = torch.nested.nested_tensor([*x.unflatten(-1, (2, 8)).transpose(1, 2)])
        given = functional.scaled_dot_product_attention(heads, heads, heads)
        return (given.to_padded_tensor(0.0).transpose(1, 2).flatten(2),)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_pass_with_nested_tensors_runs_and_gives_no_map():
    with pytest.raises(LayerMatchError, match="none of the 4 matching"):
        capture.attention_entropy(Returning(Nested).eval(), texts((9, 9)))


def test_heads_of_a_nanogpt_are_scored_on_sequences_that_fit_its_block(tmp_path):
    """Its block holds 24 tokens, which only its own configuration says."""
    model, _ = both()
    observable = og.observables.AttentionHeads(n_sequences=4)
    run = og.Trajectory.from_models({0: model, 1: both()[0]})
    study = og.Study(run, texts(), [observable], device="cpu")
    result = study.run(tmp_path / "s", progress=False)
    assert not len(result.problems())
    assert list(result["attention-heads"].layer.values) == [
        f"h.{n}.attn" for n in range(3)
    ]
