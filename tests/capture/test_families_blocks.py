"""Weight blocks by short names: parts of fused matrices, rows that are no tokens."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from helpers.family_models import (
    FUSED,
    HEADS,
    LAYERS,
    NAMES,
    VOCABULARY,
    WIDTH,
    build,
    inputs_of,
)
from ontogeny import Trajectory
from ontogeny.capture import activations, match_blocks, weight_block
from ontogeny.capture.sites import part_index
from ontogeny.errors import ArgumentError, LayerMatchError
from ontogeny.observables.matrices import parameter_blocks
from ontogeny_papers.geometry.snapshots import SnapshotGram


@pytest.fixture(scope="module", params=NAMES)
def family(request):
    model = build(request.param)
    return request.param, model, Trajectory.from_models({0: model})[0]


def whole(checkpoint, reader, name, **options):
    block = weight_block(reader, name, checkpoint.configuration(), **options)
    values = block.rows(reader, 0, block.shape[0])
    assert tuple(values.shape) == block.shape
    return values


def test_projections_by_their_weights_are_the_captured_ones(family):
    name, model, checkpoint = family
    inputs = inputs_of()
    source = {
        "gpt2": "h.*.attn.c_attn",
        "modernbert": "layers.*.attn.Wqkv",
        "t5": "*.q",
    }
    source = source.get(
        name, "*.query_key_value" if name.startswith("gpt_neox") else "q"
    )
    fed = list(activations(model, inputs, f"{source}#in", max_tokens=None).values())
    for alias in "qkv":
        given = list(activations(model, inputs, alias, max_tokens=None).values())
        with checkpoint.open() as reader:
            names = match_blocks(reader, alias)
            assert len(names) == LAYERS
            for x, y, block in zip(fed, given, names, strict=True):
                W = whole(checkpoint, reader, block)
                product = x @ (W if name == "gpt2" else W.T)
                constant = y - product  # a bias at most
                torch.testing.assert_close(
                    constant, constant[:1].expand_as(constant), rtol=0, atol=2e-5
                )


def test_short_names_of_blocks(family):
    name, _, checkpoint = family
    with checkpoint.open() as reader:
        attention, mlp = match_blocks(reader, "attn"), match_blocks(reader, "mlp")
        everything = match_blocks(reader, "**.weight")
        block = match_blocks(reader, "layers[1]")
        assert not set(attention) & set(mlp) and set(attention) | set(mlp) <= set(
            everything
        )
        assert {n for n in attention + mlp if ".1." in n} == set(block) or name in (
            "t5",
        )
        parts = [n.partition("#")[0] for p in "qkvo" for n in match_blocks(reader, p)]
        assert set(parts) <= set(attention) and match_blocks(reader, parts) == sorted(
            set(parts)
        )
        assert len(match_blocks(reader, "embed")) == 1
        assert match_blocks(reader, match_blocks(reader, "q")) == match_blocks(
            reader, "q"
        )
        with pytest.raises(
            LayerMatchError, match="Short names known for tensors named as in"
        ):
            match_blocks(reader, "resid")


@pytest.mark.parametrize("name", FUSED)
def test_parts_cover_a_fused_matrix_once(name):
    checkpoint = Trajectory.from_models({0: build(name)})[0]
    with checkpoint.open() as reader:
        fused = match_blocks(reader, "q")[0].partition("#")[0]
        pieces = [whole(checkpoint, reader, f"{fused}#{part}") for part in "qkv"]
        joined = torch.cat([piece.flatten() for piece in pieces]).sort().values
        assert torch.equal(joined, reader.get(fused).flatten().sort().values)


@given(st.data(), st.sampled_from(FUSED), st.sampled_from("qkv"))
def test_rows_of_a_part_are_those_of_the_whole_part(data, name, part):
    checkpoint, block, expected = CACHE(name, part)
    start = data.draw(st.integers(0, block.shape[0] - 1))
    stop = data.draw(st.integers(start + 1, block.shape[0]))
    with checkpoint.open() as reader:
        assert torch.equal(block.rows(reader, start, stop), expected[start:stop])


def _cache():
    made = {}

    def get(name, part):
        if (name, part) not in made:
            checkpoint = Trajectory.from_models({0: build(name)})[0]
            with checkpoint.open() as reader:
                label = match_blocks(reader, f"layers[0].{part}")[0]
                block = weight_block(reader, label, checkpoint.configuration())
                made[name, part] = (
                    checkpoint,
                    block,
                    block.rows(reader, 0, block.shape[0]),
                )
        return made[name, part]

    return get


CACHE = _cache()


@given(st.integers(1, 8), st.integers(1, 8), st.booleans())
def test_parts_share_out_every_output_of_a_fused_projection(heads, size, interleaved):
    width = 3 * heads * size
    parts = [part_index(part, width, heads if interleaved else None) for part in "qkv"]
    assert torch.cat(parts).sort().values.tolist() == list(range(width))
    assert {len(part) for part in parts} == {heads * size}
    if interleaved:  # each head's outputs hold its own query, key and value
        for part in parts:
            assert torch.equal(
                part // (3 * size), torch.arange(heads).repeat_interleave(size)
            )


def padded(model, rows=27):
    """Return a copy of the model's tensors whose vocabulary has `rows` more random rows."""
    torch.manual_seed(5)
    state = {}
    for name, tensor in model.state_dict().items():
        vocabulary = tensor.ndim == 2 and tensor.shape[0] == VOCABULARY
        noise = 100 * torch.randn(rows, *tensor.shape[1:])
        state[name] = torch.cat([tensor, noise]) if vocabulary else tensor.clone()
    return state


def test_rows_that_are_no_tokens_change_nothing(family):
    """Demand D9: 27 random rows appended; ranks of the trajectory stay as they are."""
    name, _, _ = family
    model_at = {step: build(name, seed=step) for step in range(4)}
    grams = []
    for rows in (0, 27):
        states = [_Reader(padded(m, rows)) for m in model_at.values()]
        for block_name in match_blocks(states[0], "embed"):
            block = weight_block(states[0], block_name, tokens=VOCABULARY)
            assert block.masked_rows == rows and block.shape == (VOCABULARY, WIDTH)
            gram = SnapshotGram(len(states))
            chunks = [(0, 20), (20, block.shape[0])]
            for start, stop in chunks:
                gram.add(
                    np.stack(
                        [block.rows(r, start, stop).double().ravel() for r in states]
                    )
                )
            grams.append(gram.gram)
    np.testing.assert_array_equal(grams[0], grams[1])


class _Reader:
    def __init__(self, tensors):
        self.tensors = tensors

    def names(self):
        return sorted(self.tensors)

    def shape(self, name):
        return tuple(self.tensors[name].shape)

    def dtype(self, name):
        return self.tensors[name].dtype

    def rows(self, name, start, stop):
        return self.tensors[name][start:stop]


def test_vocabulary_maps_are_masked_and_other_matrices_are_not(family):
    name, _, checkpoint = family
    with checkpoint.open() as reader:
        masked = {
            block: weight_block(
                reader, block, checkpoint.configuration(), tokens=30
            ).masked_rows
            for block in match_blocks(reader, "**.weight")
        }
        vocabulary = set(match_blocks(reader, "embed"))
        vocabulary |= (
            set(match_blocks(reader, "unembed")) if name != "t5" else {"shared.weight"}
        )
        expected = {b: VOCABULARY - 30 if b in vocabulary else 0 for b in masked}
        if name == "t5":
            expected["encoder.embed_tokens.weight"] = VOCABULARY - 30
        assert masked == expected
        block = weight_block(reader, next(iter(vocabulary)), tokens=VOCABULARY + 5)
        assert block.masked_rows == 0 and block.shape[0] == VOCABULARY


def test_what_a_block_cannot_be_is_said():
    neox = Trajectory.from_models({0: build("gpt_neox")})[0]
    with neox.open() as reader:
        label = match_blocks(reader, "q")[0]
        with pytest.raises(ArgumentError, match="num_attention_heads, got None"):
            weight_block(reader, label)
        with pytest.raises(
            ArgumentError, match=r"width 96 does not split .* of 5 heads"
        ):
            weight_block(reader, label, {"num_attention_heads": 5})
        with pytest.raises(LayerMatchError, match="has no part 'in'"):
            weight_block(reader, label.replace("#q", "#in"), neox.configuration())
        with pytest.raises(LayerMatchError, match="has no part 'q'"):
            weight_block(reader, "gpt_neox.embed_in.weight#q", neox.configuration())
        with pytest.raises(ArgumentError, match="tokens must be a positive number"):
            weight_block(reader, label, tokens=0)
        heads = weight_block(reader, label, {"num_attention_heads": HEADS})
        assert heads.shape == (WIDTH, WIDTH) and len(heads.runs) == HEADS


def test_a_tied_vocabulary_map_is_said_to_be_the_embedding(tmp_path):
    build("gpt2").save_pretrained(tmp_path / "checkpoint-1")
    with Trajectory.from_folder(tmp_path)[1].open() as reader:
        with pytest.raises(
            LayerMatchError, match="a tied one is stored as 'embed' only"
        ):
            match_blocks(reader, "unembed")
        assert match_blocks(reader, "embed") == ["transformer.wte.weight"]


def test_blocks_of_a_model_come_in_its_own_order():
    """Sorted by name, layer 10 would come before layer 2, and the output before the query."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2, bias=False) for _ in range(12)))
    expected = [f"{i}.weight" for i in range(12)]
    assert list(parameter_blocks(model, "*.weight")) == expected
    fused = build("gpt_neox")
    parts = [name.rpartition(".")[0] for name in parameter_blocks(fused, ("q", "o"))]
    assert parts[:2] == [
        "gpt_neox.layers.0.attention.query_key_value",
        "gpt_neox.layers.0.attention.dense",
    ]


def test_layers_are_in_numeric_order_also_where_a_file_sorts_their_names(tmp_path):
    names = [f"h.{i}.w" for i in range(12)]
    save_file(
        {name: torch.ones(2, 2) for name in names}, tmp_path / "step_1.safetensors"
    )
    with Trajectory.from_folder(tmp_path, nn.Module)[1].open() as reader:
        assert list(reader.names()) != names
        assert match_blocks(reader, "**.w") == names
