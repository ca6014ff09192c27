"""The pattern language over module paths and tensor names."""

import pytest
import torch
from torch import nn

from helpers.capture_models import MLPS, build
from ontogeny import capture
from ontogeny.capture.layers import match_paths
from ontogeny.errors import ArgumentError, LayerMatchError

PATHS = [
    "embed",
    "model.layers.0",
    "model.layers.0.mlp",
    "model.layers.0.mlp.up",
    "model.layers.0.attn.out",
    "model.layers.1",
    "model.layers.1.mlp",
    "model.layers.1.mlp.up",
    "model.layers.1.attn.out",
    "model.layers.2",
    "model.layers.2.mlp",
    "model.layers.2.mlp.up",
    "model.layers.2.attn.out",
    "model.norm",
    "extra.layers.0",
    "head",
]


def matched(*patterns):
    return match_paths(PATHS, patterns, "layers", "module")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["model.layers.1.mlp"], ["model.layers.1.mlp"]),
        (["model.layers.*"], ["model.layers.0", "model.layers.1", "model.layers.2"]),
        (["model.layers.*.mlp"], [f"model.layers.{i}.mlp" for i in range(3)]),
        (["layers.*.mlp"], [f"model.layers.{i}.mlp" for i in range(3)]),
        (["mlp"], [f"model.layers.{i}.mlp" for i in range(3)]),
        (["model.**.out"], [f"model.layers.{i}.attn.out" for i in range(3)]),
        (["model.**"], [path for path in PATHS if path.startswith("model.")]),
        (["*"], PATHS),
        (["**"], PATHS),
        (["model.*"], ["model.norm"]),
        (["layers.-1.mlp"], ["model.layers.2.mlp"]),
        (["layers.-3"], ["model.layers.0"]),
        (["model.layers[0:3:2].mlp"], ["model.layers.0.mlp", "model.layers.2.mlp"]),
        (["model.layers[:2]"], ["model.layers.0", "model.layers.1"]),
        (["model.layers[-1:]"], ["model.layers.2"]),
        (["model.layers.[02]"], ["model.layers.0", "model.layers.2"]),
        (["h?ad"], ["head"]),
        (
            ["layers.*.mlp", "!layers.1.mlp"],
            ["model.layers.0.mlp", "model.layers.2.mlp"],
        ),
        (["!model.**", "!extra.**"], ["embed", "head"]),
        (["head", "embed"], ["embed", "head"]),
    ],
)
def test_patterns_match(patterns, expected):
    assert matched(*patterns) == expected


def test_a_full_path_means_that_module_only():
    paths = ["layers.0", "encoder.layers.0"]
    assert match_paths(paths, "layers.0", "layers", "module") == ["layers.0"]
    assert match_paths(paths, "layers.*", "layers", "module") == paths


@pytest.mark.parametrize("family", MLPS)
def test_every_block_of_every_family_matches_in_order(family):
    found = capture.match_layers(build(family), MLPS[family])
    assert len(found) == 3
    assert [int(next(p for p in path.split(".") if p.isdigit())) for path in found] == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        (
            "gpt_neox.layer.*.mlp",
            [
                "'gpt_neox.layer.*.mlp' matches no module of GPTNeoX",
                "3 match 'gpt_neox.layers.*.mlp'",
            ],
        ),
        ("gpt_neox.layers.7.mlp", ["3 match 'gpt_neox.layers.*.mlp'"]),
        ("model.layers.*.mlp", ["3 match 'gpt_neox.layers.*.mlp'"]),
        ("lm_haed", ["1 matches 'lm_head'"]),
        ("????????????????????", ["Of those there are, 3 match"]),
        ("!nothing", ["'!nothing' matches no module"]),
    ],
)
def test_no_match_names_patterns_that_do(pattern, parts):
    with pytest.raises(LayerMatchError) as error:
        capture.match_layers(build("gpt_neox"), [pattern])
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_one_bad_pattern_among_good_ones_is_an_error():
    with pytest.raises(LayerMatchError, match="'nowhere' matches no module"):
        matched("head", "nowhere")


def test_excluding_everything_is_an_error():
    with pytest.raises(LayerMatchError, match="leaves no module"):
        matched("head", "!head")


@pytest.mark.parametrize("patterns", [[], "", [3], ["!"]])
def test_patterns_that_are_none_are_refused(patterns):
    with pytest.raises(
        ArgumentError, match="layers must be a pattern or a list of patterns"
    ):
        match_paths(PATHS, patterns, "layers", "module")


def test_listing_shows_classes_and_shapes():
    listed = {
        info.path: info for info in capture.list_layers(build("llama"), "layers.0.**")
    }
    assert listed["model.layers.0.mlp"].kind == "LlamaMLP"
    assert listed["model.layers.0.mlp"].shape == (1, 4, 16)
    assert listed["model.layers.0.mlp.up_proj"].shape == (1, 4, 32)
    assert listed["model.layers.0.self_attn"].shape == (1, 4, 16)


def test_listing_gives_no_shape_to_what_is_not_called():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4))
    model[0].unused = nn.Linear(2, 2)
    shapes = {info.path: info.shape for info in capture.list_layers(model)}
    assert shapes == {"0": (1, 4, 4), "0.unused": None, "1": (1, 4, 4)}


class Reader:
    """An opened checkpoint."""

    def __init__(self, tensors):
        self.tensors = tensors

    def names(self):
        return list(self.tensors)

    def shape(self, name):
        return tuple(self.tensors[name].shape)

    def dtype(self, name):
        return self.tensors[name].dtype


def test_blocks_are_floating_matrices_only():
    tensors = {
        "layers.0.weight": torch.ones(2, 2),
        "layers.0.bias": torch.ones(2),
        "layers.0.index": torch.ones(2, 2, dtype=torch.int64),
        "norm.weight": torch.ones(2),
        "conv.weight": torch.ones(2, 2, 2, dtype=torch.bfloat16),
        "head.weight": torch.ones(2, 2),
    }
    assert capture.match_blocks(Reader(tensors), "*.weight") == [
        "layers.0.weight",
        "conv.weight",
        "head.weight",
    ]
    assert capture.match_blocks(Reader(tensors), ("*.weight", "!head.weight")) == [
        "layers.0.weight",
        "conv.weight",
    ]
    with pytest.raises(
        LayerMatchError, match=r"blocks pattern 'norm.weight' matches no weight"
    ):
        capture.match_blocks(Reader(tensors), "norm.weight")


def test_a_model_without_modules_inside_is_said_to_have_none():
    class Alone(nn.Module):
        def forward(self, input_ids):
            return input_ids.float()

    with pytest.raises(
        LayerMatchError, match=r"'\*\*' matches no module of Alone. It has none"
    ):
        capture.list_layers(Alone(), "**")
