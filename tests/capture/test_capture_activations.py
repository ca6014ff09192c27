"""Activations against the model's own hidden states, hand-written hooks and recomputation."""

import numpy as np
import pytest
import torch
from torch import nn

from helpers.capture_models import (
    BLOCKS,
    FAMILIES,
    MASK,
    MLPS,
    OwnModel,
    build,
    inputs_of,
)
from ontogeny import Inputs, capture
from ontogeny.errors import ArgumentError, NonFiniteError


def everything(model, inputs, layers, **options):
    return capture.activations(model, inputs, layers, max_tokens=None, **options)


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_equal_the_hidden_states_that_transformers_returns(family):
    model, inputs = build(family, head=False), inputs_of()
    found = everything(model, inputs, BLOCKS[family], batch_size=3)
    text = np.nonzero(inputs.mask)[0]
    with torch.no_grad():
        states = [
            model(
                input_ids=torch.tensor(inputs.ids[i : i + 1, :n]),
                output_hidden_states=True,
            ).hidden_states
            for i, n in enumerate(inputs.lengths)
        ]
    for index, values in enumerate(found.values()):
        if index == len(found) - 1 and family != "bert":
            continue  # of these, transformers gives the last state after the final norm
        for text_index in range(len(inputs)):
            expected = states[text_index][index + 1][0]
            torch.testing.assert_close(
                values[torch.tensor(text == text_index)], expected, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_a_hand_written_hook(family):
    model, inputs = build(family), inputs_of(lengths=(6, 6, 6))
    path = capture.match_layers(model, MLPS[family])[1]
    caught = []
    handle = model.get_submodule(path).register_forward_hook(
        lambda module, args, output: caught.append(output.detach().clone())
    )
    with torch.no_grad():
        model(
            input_ids=torch.tensor(inputs.ids),
            attention_mask=torch.tensor(inputs.mask.astype(np.int64)),
        )
    handle.remove()
    found = everything(model, inputs, path)[path]
    torch.testing.assert_close(found, caught[0].flatten(0, 1), rtol=0, atol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_the_module_applied_to_its_own_input(family):
    model, inputs = build(family), inputs_of()
    path = capture.match_layers(model, MLPS[family])[2]
    module, seen = model.get_submodule(path), []
    handle = module.register_forward_pre_hook(
        lambda m, args: seen.append(args[0].clone())
    )
    found = everything(model, inputs, path, batch_size=len(inputs))[path]
    handle.remove()
    with torch.no_grad():
        again = module(seen[0])
    batch = inputs.batches(len(inputs))[0]
    order = {row: index for index, row in enumerate(batch.rows.tolist())}
    text, position = np.nonzero(inputs.mask)
    rows = torch.tensor([order[t] for t in text.tolist()])
    torch.testing.assert_close(
        found, again[rows, torch.tensor(position)], rtol=0, atol=0
    )


def test_granularities_are_rows_of_all_and_their_means():
    rows = [[1, 5, 6, 7, 2], [1, 8, 2], [1, 2], [1, 9, 10, 11, 12, 13, 2]]
    inputs = Inputs.from_tokens(rows, special_ids=[1, 2], mask_token_id=MASK)
    plain = Inputs.from_tokens(rows)  # nothing special: every token
    model, layer = build("eurobert"), "model.layers.1"
    whole = everything(model, plain, layer)[layer]
    starts = np.cumsum([0, *plain.lengths[:-1]])
    ordinary = torch.tensor(inputs.ordinary[inputs.mask])

    def read(tokens):
        return everything(model, inputs, layer, tokens=tokens)[layer]

    torch.testing.assert_close(read("all"), whole[ordinary], rtol=0, atol=0)
    torch.testing.assert_close(read("cls"), whole[starts], rtol=0, atol=0)
    torch.testing.assert_close(
        read("last"), whole[starts + plain.lengths - 1], rtol=0, atol=0
    )
    means = [
        whole[start + 1 : start + length - 1].double().mean(dim=0).float()
        for start, length in zip(starts, plain.lengths, strict=True)
        if length > 2
    ]
    torch.testing.assert_close(read("mean"), torch.stack(means), rtol=1e-5, atol=1e-6)


def test_masked_positions_are_read_from_the_corrupted_text():
    model, inputs = build("eurobert"), inputs_of()
    ids, positions = inputs.corrupt(0.15, random_state=5)
    changed = Inputs.from_tokens(ids, inputs.mask)
    expected = everything(model, changed, "model.layers.1")["model.layers.1"]
    found = everything(model, inputs, "model.layers.1", tokens="masked", random_state=5)
    kept = torch.tensor(positions[inputs.mask])
    torch.testing.assert_close(found["model.layers.1"], expected[kept], rtol=0, atol=0)


@pytest.mark.parametrize("tokens", ["all", "mean", "last", "cls", "masked"])
@pytest.mark.parametrize("family", FAMILIES)
def test_padding_side_and_batch_size_change_nothing_beyond_rounding(family, tokens):
    model = build(family)
    reference = None
    for side in ("right", "left"):
        for batch_size in (1, 3, 8):
            found = capture.activations(
                model,
                inputs_of(side=side),
                MLPS[family],
                tokens,
                40,
                batch_size=batch_size,
            )
            reference = reference or found
            for path, values in found.items():
                error = (values - reference[path]).norm() / reference[path].norm()
                assert error < 1e-5, (side, batch_size, path)


def test_a_sample_is_rows_of_everything():
    model, inputs = build("llama"), inputs_of()
    whole = everything(model, inputs, "layers.*.mlp")
    part = capture.activations(
        model, inputs, "layers.*.mlp", max_tokens=20, random_state=7
    )
    sample = inputs.sample("all", 20, random_state=7)
    starts = np.cumsum([0, *inputs.lengths[:-1]])
    for path, values in part.items():
        torch.testing.assert_close(
            values, whole[path][starts[sample.text] + sample.position], rtol=0, atol=0
        )


@pytest.mark.parametrize("batch_size", [1, 4])
def test_later_layers_are_never_run(batch_size):
    model, inputs = OwnModel(layers=4), inputs_of()
    for _ in range(2):  # the first time, a model of one's own is looked at
        model.calls = [0] * 4
        capture.activations(
            model, inputs, ["blocks.0.mlp", "blocks.1"], batch_size=batch_size
        )
    batches = len(inputs.batches(batch_size))
    assert model.calls == [batches, batches, 0, 0]


def test_batches_without_a_sampled_token_are_not_run():
    model, inputs = OwnModel(), inputs_of(lengths=(4,) * 50)
    for _ in range(2):  # the first time, a model of one's own is looked at
        model.calls = [0] * len(model.calls)
        capture.activations(model, inputs, "blocks.0", max_tokens=2, batch_size=1)
    assert model.calls[0] <= 2


def test_one_token_texts_and_one_text():
    model = build("gpt2")
    for texts in (1, 3):
        found = everything(model, inputs_of(lengths=(1,) * texts), "h.0")
        assert found["transformer.h.0"].shape == (texts, 16)


def test_results_share_no_storage_with_the_model():
    model, inputs = build("bert"), inputs_of()
    before = {name: p.clone() for name, p in model.named_parameters()}
    for values in everything(model, inputs, ["embeddings", "layer.*"]).values():
        values.fill_(7.0)
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    memory = {p.untyped_storage().data_ptr() for p in model.parameters()}
    found = everything(model, inputs, "layer.*")
    assert not memory & {v.untyped_storage().data_ptr() for v in found.values()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_results_are_float32_whatever_the_model(dtype):
    inputs = inputs_of()
    reference = everything(build("llama"), inputs, "layers.1.mlp")["model.layers.1.mlp"]
    found = everything(build("llama").to(dtype), inputs, "layers.1.mlp")[
        "model.layers.1.mlp"
    ]
    assert found.dtype == torch.float32
    assert (found - reference).norm() / reference.norm() < 0.02


def test_means_of_half_precision_are_taken_in_float32():
    # The sum of two overflows.
    table = torch.full((9, 2), 60_000.0, dtype=torch.float16)
    model = nn.Sequential(nn.Embedding.from_pretrained(table))
    found = capture.activations(model, {"input_ids": [[1] * 500]}, "0", "mean")["0"]
    torch.testing.assert_close(found, torch.full((1, 2), 60_000.0))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_value_that_is_not_finite_is_named(bad):
    model = nn.Sequential(nn.Embedding(9, 4), nn.Identity())
    with torch.no_grad():
        model[0].weight[3, 1] = bad
    inputs = Inputs.from_tokens([[1], [1, 2, 3], [3]])
    with pytest.raises(
        NonFiniteError, match=r"layer '0' gives NaN.* 2 of 5 rows.*text 1, token 2"
    ):
        capture.activations(model, inputs, "*")


def test_nan_at_padding_does_not_reach_a_mean():
    class Poisoned(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, input_ids, attention_mask):
            x = input_ids[..., None].float()
            return self.inner(x.masked_fill(attention_mask[..., None] == 0, torch.nan))

    found = capture.activations(
        Poisoned(), Inputs.from_tokens([[1, 2, 3], [4]]), "inner", "mean"
    )
    assert found["inner"].flatten().tolist() == [2.0, 4.0]


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.shared = nn.Embedding(9, 4), nn.Linear(4, 4)
        self.last, self.idle = nn.Linear(4, 4), nn.Linear(4, 4)
        self.pool, self.words = nn.Flatten(), Words()

    def forward(self, ids):
        x = self.shared(self.shared(self.embed(ids)))
        self.pool(x)
        self.words(x)
        return self.last(x)


class Words(nn.Module):
    def forward(self, x):
        return "words"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["shared", "last"], "'shared' is called more than once"),
        (["last", "idle"], "never called idle"),
        (
            ["pool"],
            r"'pool' must give \(texts, tokens, features\) = \(1, 3, m\).*\(1, 12\)",
        ),
        (["words"], "'words' gives str, not a tensor"),
    ],
)
def test_modules_that_give_no_single_matrix_are_refused(layers, message):
    with pytest.raises(ArgumentError, match=message):
        capture.activations(Twice(), {"input_ids": [[1, 2, 3]]}, layers)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": "every"}, "tokens must be one of"),
        ({"max_tokens": 1}, "max_tokens must be at least 2"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"layers": 3}, "layers must be a list of patterns; got 3"),
        ({"inputs": [[1, 2]]}, "inputs must be Inputs or a dict"),
        (
            {"inputs": {"input_ids": [[99]]}},
            "token id 99, but LlamaForCausalLM has only 64",
        ),
        (
            {"inputs": {"input_ids": [[5] * 33]}},
            "a text of 33 tokens.*takes at most 32",
        ),
        ({"tokens": "masked", "inputs": {"input_ids": [[5]]}}, "no mask token"),
    ],
)
def test_bad_arguments_are_refused_at_the_door(arguments, message):
    given = {"inputs": inputs_of(), "layers": "layers.*"} | arguments
    with pytest.raises(ArgumentError, match=message):
        capture.activations(build("llama"), **given)
