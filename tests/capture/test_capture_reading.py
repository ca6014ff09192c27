"""Reading for several needs at once: shared passes, equal bits, no traces, bounded memory."""

import gc
import subprocess
import sys

import pytest
import torch
import xarray as xr

from helpers.capture_models import FAMILIES, MLPS, OwnModel, build, inputs_of
from helpers.paths import environment
from ontogeny import capture
from ontogeny.capture.trial.causality import check_causal
from ontogeny.errors import ArgumentError, LayerMatchError, NonFiniteError
from ontogeny.needs import Activations, Attention, Losses, Need, Series, Weights

SETTINGS = capture.ReadingSettings(batch_size=3)


EMBEDDINGS = {
    "gpt2": "wte",
    "gpt_neox": "embed_in",
    "llama": "embed_tokens",
    "bert": "word_embeddings",
    "eurobert": "embed_tokens",
}


def sets():
    return {"first": inputs_of(), "second": inputs_of(lengths=(4, 9, 2), seed=1)}


def needs_of(family):
    return [
        Activations(MLPS[family], max_tokens=20),
        Activations(MLPS[family].replace("*", "0"), tokens="mean"),
        Activations(MLPS[family], tokens="last", on="second"),
        Activations(MLPS[family], tokens="masked"),
        Activations(EMBEDDINGS[family], max_tokens=None),
        Losses(),
        Losses(objective="masked", mask_fraction=0.2),
        Losses(on="second", objective="masked", mask_fraction=0.3),
        Attention(),
        Attention(on="second"),
    ]


def same(one, other):
    if isinstance(one, xr.Dataset):
        return one.identical(other)
    return list(one) == list(other) and all(torch.equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_need_reads_the_same_bits_alone_and_among_others(family):
    model, inputs, needs = build(family), sets(), needs_of(family)
    together = capture.read(model, needs, inputs, SETTINGS)
    backwards = capture.read(model, needs[::-1], inputs, SETTINGS)
    for need in needs:
        alone = capture.read(model, [need], inputs, SETTINGS)[need]
        assert same(alone, together[need]) and same(alone, backwards[need]), need


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_watching_the_head_does_not_change_the_loss(family):
    model, inputs = build(family), sets()
    head = capture.match_layers(
        model, {"llama": "lm_head", "bert": "cls.predictions"}[family]
    )[0]
    watch, loss = Activations(head, max_tokens=None), Losses()
    together = capture.read(model, [watch, loss], inputs, SETTINGS)
    assert same(together[loss], capture.read(model, [loss], inputs, SETTINGS)[loss])
    assert together[watch][head].shape == (inputs["first"].counts["ordinary"], 64)


def test_needs_with_one_key_share_their_passes():
    model, inputs = OwnModel(), sets()
    check_causal(model, inputs["first"])
    model.calls = [0] * len(model.calls)
    batches = len(inputs["first"].batches(3))
    needs = [
        Activations("blocks.*.mlp"),
        Activations("blocks.*.mlp", max_tokens=9),
        Activations("blocks.0", tokens="mean"),
        Losses(objective="causal"),
        Losses(on="first", objective="causal"),
    ]
    capture.read(model, needs, inputs, SETTINGS)
    assert model.calls == [batches + 1] * 3  # and one text alone, for its loss
    capture.read(model, [*needs, Attention()], inputs, SETTINGS)
    assert model.calls[0] == 2 * (batches + 1)  # its maps come out of every pass


def test_equal_losses_under_other_names_share_their_passes():
    model, inputs = build("llama"), sets()
    needs = [Losses(), Losses(on="first"), Losses(objective="causal", random_state=3)]
    found = capture.read(model, needs, inputs, SETTINGS)
    assert all(same(found[needs[0]], found[need]) for need in needs)


def test_the_first_input_set_is_the_default():
    need, named = Activations("blocks.0"), Activations("blocks.0", on="first")
    found = capture.read(OwnModel(), [need, named], sets())
    assert same(found[need], found[named])


def test_model_is_left_as_it_was():
    model, inputs = build("gpt2").train(), sets()
    model.transformer.h[1].eval()
    modes = [module.training for module in model.modules()]
    model(input_ids=torch.tensor([[5, 6, 7]])).logits.sum().backward()
    grads = {name: p.grad.clone() for name, p in model.named_parameters()}
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    hooks = count_hooks(model)
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    capture.read(model, [Activations("h.*"), Losses(), Attention()], inputs, SETTINGS)
    assert torch.equal(torch.rand(3), expected)
    assert modes == [module.training for module in model.modules()]
    assert count_hooks(model) == hooks
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, grads[name])
        assert torch.equal(parameter, weights[name]) and parameter.requires_grad


def count_hooks(model):
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()
    )


@pytest.mark.parametrize(
    ("need", "error"),
    [
        (Activations("embed"), NonFiniteError),
        (Losses(objective="causal"), RuntimeError),
        (Activations("**"), RuntimeError),
        (Attention("head"), LayerMatchError),
    ],
)
def test_an_error_leaves_no_hook_and_no_mode(need, error):
    class Breaking(OwnModel):
        def forward(self, idx, attention_mask=None):
            out = super().forward(idx, attention_mask)
            if error is RuntimeError:
                raise RuntimeError("a model of one's own broke")
            return out

        def get_output_embeddings(self):
            return self.head

    model = Breaking().train()
    with torch.no_grad():
        model.embed.weight[5] = torch.nan if error is NonFiniteError else 0.0
    with pytest.raises(error):
        capture.read(model, [need], {"text": inputs_of(lengths=(64,) * 3)}, SETTINGS)
    assert count_hooks(model) == 0
    assert all(module.training for module in model.modules())
    assert torch.is_grad_enabled()


def test_a_model_that_catches_its_own_errors_is_stopped_all_the_same():
    class Stubborn(OwnModel):
        def forward(self, idx, attention_mask=None):
            try:
                return super().forward(idx, attention_mask)
            except Exception:
                return super().forward(idx, attention_mask)

    model = Stubborn()
    for _ in range(2):  # the first time, a model of one's own is looked at
        model.calls = [0] * 3
        capture.activations(model, inputs_of(), "blocks.0", batch_size=8)
    assert model.calls == [1, 0, 0]


def test_what_was_read_can_be_trained_on():
    model = build("llama")
    found = capture.activations(model, inputs_of(), "layers.1")["model.layers.1"]
    probe = torch.nn.Linear(16, 1)
    probe(found).sum().backward()
    assert probe.weight.grad.abs().sum() > 0
    model(input_ids=torch.tensor([[5, 6]])).logits.sum().backward()


@pytest.mark.parametrize(
    ("needs", "inputs", "message"),
    [
        (
            [Activations("h.0", on="third")],
            sets(),
            "on must be one of 'first', 'second'",
        ),
        ([Activations("h.0")], {}, "inputs must hold at least one input set"),
        ([Weights()], sets(), "Weights is not read of one checkpoint"),
        ([Series("loss", ("loss",))], sets(), "Series is not read of one checkpoint"),
    ],
)
def test_needs_that_cannot_be_read_are_refused(needs, inputs, message):
    with pytest.raises(ArgumentError, match=message):
        capture.read(build("gpt2"), needs, inputs)


@pytest.mark.parametrize("batch_size", [0, 1.5, "8"])
def test_batch_size_is_checked(batch_size):
    with pytest.raises(
        ArgumentError, match="batch_size must be a whole number of at least 1"
    ):
        capture.ReadingSettings(batch_size=batch_size)


def test_positions_is_checked():
    with pytest.raises(ArgumentError, match="positions must be one of 'auto', 'model'"):
        capture.ReadingSettings(positions="left")


# ---- which weights a reading depends on ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_weights_named_can_change_a_reading(family):
    inputs = {"text": inputs_of(lengths=(9, 4))}
    second = MLPS[family].replace("*", "1")
    needs = [Activations(second, tokens="mean"), Attention("0.**"), Losses()]
    model = build(family)
    before = capture.read(model, needs, inputs)
    named = capture.modules_read(model, needs, inputs)
    tensors = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if tensor.is_floating_point():
            tensors.setdefault(tensor, set()).add(name)
    for tensor, names in tensors.items():
        saved = tensor.detach().clone()
        with torch.no_grad():
            tensor.add_(torch.rand_like(tensor))
        after = capture.read(model, needs, inputs)
        with torch.no_grad():
            tensor.copy_(saved)
        for need in needs:
            assert names <= named[need] or same(before[need], after[need]), (
                need,
                names,
            )
    activations, attention, losses = (named[need] for need in needs)
    assert attention < activations < losses == set(model.state_dict())
    assert not any(".2." in name for name in activations)
    assert not any(".1." in name or "mlp" in name for name in attention)


def test_tied_weights_are_named_twice_and_buffers_that_are_not_stored_never():
    model = build("gpt2")
    need = Activations("h.0", tokens="mean")
    names = capture.modules_read(model, [need], sets())[need]
    assert {"transformer.wte.weight", "lm_head.weight"} <= names
    assert not any("h.1" in name for name in names)
    llama = build("llama")
    everything = capture.modules_read(llama, [Losses()], sets())[Losses()]
    assert everything == set(llama.state_dict())


def test_weights_used_without_calling_their_module_count_as_read():
    class Sharing(torch.nn.Module):
        """Multi-head attention reads out_proj.weight without calling out_proj."""

        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(64, 8)
            self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
            self.later = torch.nn.Linear(8, 64)

        def forward(self, ids):
            x = self.embed(ids)
            return self.later(self.attention(x, x, x)[0])

    need = Activations("attention")
    names = capture.modules_read(Sharing(), [need], {"text": inputs_of()})[need]
    assert "attention.out_proj.weight" in names and "later.weight" not in names


def test_attention_without_maps_has_no_weights_to_name():
    with pytest.raises(LayerMatchError, match="returned attention weights"):
        capture.modules_read(build("llama"), [Attention("embed_tokens")], sets())


# ---- memory --------------------------------------------------------------------------------------

PEAK = """
import resource
import numpy as np, torch
from helpers.capture_models import OwnModel
from ontogeny import Inputs, capture
from ontogeny.needs import Activations, Attention, Losses

model = OwnModel(layers=4, width=64, heads=4)
ids = np.random.default_rng(0).integers(5, 64, (20 * 16, 96))
needs = [Activations("blocks.*", max_tokens=200), Activations("mlp.*", tokens="mean")]
needs += [Attention(), Losses(objective="causal")]
for batches in (5, 20):
    capture.read(model, needs, {"text": Inputs.from_tokens(ids[: 16 * batches])})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="ru_maxrss has other units elsewhere"
)
def test_memory_does_not_grow_with_the_number_of_batches():
    command = [sys.executable, "-c", PEAK]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment()
    )
    few, many = map(int, done.stdout.split())
    assert many < 1.05 * few


def test_what_a_reading_keeps_is_its_sample_only():
    """All tensors alive after a reading, minus those before, are the result's own."""
    model, inputs = build("llama"), inputs_of()
    before = live_bytes()
    found = capture.activations(model, inputs, "layers.*.mlp", max_tokens=10)
    kept = sum(v.untyped_storage().nbytes() for v in found.values())
    assert kept == 3 * 10 * 16 * 4
    assert live_bytes() - before <= kept


def live_bytes():
    gc.collect()
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors
    }
    return sum(storages.values())


def test_a_pass_key_of_its_own_is_refused():
    class Odd(Need):
        def pass_key(self, source):
            return ("mine", 1)

    message = r"pass_key of Odd must give what source.pass_key\(...\) makes, or None; got \('mine'"
    with pytest.raises(ArgumentError, match=message):
        capture.read(OwnModel(), [Odd()], sets())
