"""What directions write to the vocabulary, against the model's own forward pass."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch

from helpers.family_models import LAYERS, NAMES, VOCABULARY, WIDTH, build, inputs_of
from ontogeny import Inputs
from ontogeny.capture import match_layers, modules_read, read
from ontogeny.capture.layer_readout import readout, readouts, why_no_readout
from ontogeny.capture.reading import sources
from ontogeny.capture.sites import split_label
from ontogeny.capture.vocabulary_map import Readout, _strongest, written
from ontogeny.errors import ArgumentError, LayerMatchError, NonFiniteError
from ontogeny.needs import Readouts

FAMILIES = [name for name in NAMES if name != "t5"]  # its encoder has no vocabulary map
NONLINEAR_HEADS = ("bert", "roberta", "modernbert")
TEXT = [[7]]  # one token: means over tokens are values at a token


@pytest.fixture(scope="module", params=FAMILIES)
def model(request):
    model = build(request.param)
    model.config.final_logit_softcapping = None
    return model


class Pushed:
    """The model with a vector added at a site, and all later attention and MLPs held still."""

    def __init__(self, model, label):
        self.model = model.double()
        self.label = label
        self.norms = [m for m in model.modules() if "Norm" in type(m).__name__]
        self.held, self.passed = {}, False
        self.writers = [
            label for name in ("attn", "mlp") for label in match_layers(model, name)
        ]
        self.run(torch.zeros(WIDTH, dtype=torch.float64), hold=False)

    def run(self, push, hold=True, sizes=None):
        """Return the logits; `sizes` gathers what each norm's scale depends on."""
        self.passed = False
        path, part = split_label(self.label)
        module = self.model.get_submodule(path)
        with ExitStack() as stack:
            for label in self.writers:
                if path.startswith(f"{label}."):
                    continue  # the push is made inside of it
                hook = self._holder(label, hold)
                stack.callback(
                    self.model.get_submodule(label).register_forward_hook(hook).remove
                )
            if part == "in":
                hook = module.register_forward_pre_hook(
                    lambda _m, a, k: self._before(push, a, k), with_kwargs=True
                )
            else:
                hook = module.register_forward_hook(
                    lambda _m, _a, out: self._after(push, out)
                )
            stack.callback(hook.remove)
            if sizes is not None:
                for norm in self.norms:
                    kept = norm.register_forward_pre_hook(
                        lambda _m, a: sizes.extend([a[0].square().mean(), a[0].mean()])
                    )
                    stack.callback(kept.remove)
            return self.model(torch.tensor(TEXT)).logits[0, -1]

    def _holder(self, label, hold):
        def hook(_module, _args, output):
            first = output[0] if isinstance(output, tuple) else output
            if not hold:
                self.held[label] = first.detach().clone()
            elif self.passed:
                first = self.held[label]
            return (first, *output[1:]) if isinstance(output, tuple) else first

        return hook

    def _before(self, push, args, kwargs):
        self.passed = True
        if args:
            return (args[0] + push, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": kwargs["hidden_states"] + push}

    def _after(self, push, output):
        self.passed = True
        if isinstance(output, tuple):
            return (output[0] + push, *output[1:])
        return output + push

    def direction_that_keeps_scales(self, seed=0):
        """Return a random direction along which no norm's scale changes, to first order."""
        push = torch.zeros(WIDTH, dtype=torch.float64, requires_grad=True)
        sizes = []
        self.run(push, sizes=sizes)
        slopes = [
            torch.autograd.grad(size, push, retain_graph=True, allow_unused=True)[0]
            for size in sizes
            if size.requires_grad
        ]
        slopes = torch.stack([s for s in slopes if s is not None])
        draw = torch.from_numpy(np.random.default_rng(seed).standard_normal(WIDTH))
        _, sizes, axes = torch.linalg.svd(slopes)
        axes = axes[: int((sizes > 1e-12 * sizes[0]).sum())]
        return draw - axes.T @ (axes @ draw)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(LAYERS))
@pytest.mark.parametrize("name", ["attn", "mlp", "o", "resid_pre", "resid"])
def test_logits_change_as_the_readout_says(model, name, index):
    (label,) = match_layers(model, f"layers[{index}].{name}")
    check_against_the_model(model, label)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_the_stream_between_attention_and_mlp(name):
    check_against_the_model(
        build(name), match_layers(build(name), "layers[0].resid_mid")[0]
    )


def check_against_the_model(model, label):
    model.float()
    found = readout(model, label, inputs=Inputs.from_tokens(TEXT))
    pushed = Pushed(model, label)
    direction = pushed.direction_that_keeps_scales()
    zero = torch.zeros_like(direction)
    change = torch.autograd.functional.jvp(pushed.run, zero, direction)[1].numpy()
    model.float()
    assert np.linalg.norm(change) > 1e-3
    np.testing.assert_allclose(
        found.written(direction[None].numpy())[0],
        change,
        atol=2e-4 * np.abs(change).max(),
    )


def test_a_small_push_of_the_last_stream_changes_the_logits_by_it():
    """Finite differences in the whole model, with no hook but the push."""
    model = build("gpt2").double()
    pushed = Pushed(model, "transformer.h.1")
    direction = pushed.direction_that_keeps_scales(seed=3)
    with torch.no_grad():
        up, down = (pushed.run(sign * 1e-4 * direction) for sign in (1, -1))
    found = readout(model.float(), inputs=Inputs.from_tokens(TEXT)).written(
        direction[None]
    )[0]
    np.testing.assert_allclose(found, (up - down).numpy() / 2e-4, atol=1e-5)


@pytest.mark.parametrize("max_texts", [3, 8])
def test_scales_are_means_over_tokens(max_texts):
    model = build("llama")
    inputs = inputs_of()
    unit = readout(model).written(np.eye(WIDTH))
    found = readout(model, inputs=inputs, max_texts=max_texts).written(np.eye(WIDTH))
    inputs = inputs.subset(np.linspace(0, 7, max_texts).astype(int))
    with torch.no_grad():
        hooked = []
        handle = model.model.norm.register_forward_pre_hook(
            lambda _m, a: hooked.append(a[0][0])
        )
        for row, keep in zip(inputs.ids, inputs.ordinary, strict=True):
            model(torch.as_tensor(row[keep])[None])
        handle.remove()
    scale = (
        torch.cat(hooked)
        .square()
        .mean(dim=1)
        .add(model.config.rms_norm_eps)
        .rsqrt()
        .mean()
    )
    np.testing.assert_allclose(found, unit * float(scale), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NONLINEAR_HEADS)
def test_a_nonlinear_head_needs_texts(name):
    model = build(name)
    assert readout(model) is None
    assert "nonlinear" in why_no_readout(model, measured=False)
    assert readout(model, inputs=inputs_of()) is not None


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("gpt2", "transformer.h.0.mlp.c_fc"),
        (
            "gpt2",
            "transformer.h.0.attn.c_attn#q",
        ),  # as wide as the stream, and none of it
        ("llama", "model.layers.0.self_attn.q_proj"),
        ("llama", "model.layers.1.input_layernorm"),
        ("bert", "bert.encoder.layer.0.intermediate"),
    ],
)
def test_sites_that_do_not_write_into_the_stream_have_none(name, layer):
    model = build(name)
    assert readout(model, layer, inputs=inputs_of()) is None
    assert "does not write into the residual stream" in why_no_readout(model, layer)
    with pytest.raises(ArgumentError, match="does not write into the residual stream"):
        readouts(model, [layer], inputs=inputs_of())


def test_models_without_a_map_or_of_no_known_family_say_so():
    assert "no linear map to a vocabulary" in why_no_readout(build("t5"))
    model = build("llama")
    model.config.model_type = "not-known"
    assert "no family" in why_no_readout(model)
    assert readout(model) is None


def test_a_last_norm_that_is_none_is_refused():
    model = build("llama")
    model.model.norm = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()
    )
    assert why_no_readout(model) == "model.norm is neither a LayerNorm nor an RMSNorm"


def test_tied_and_untied_maps_and_rows_of_no_token():
    model = build("gpt2")
    tied = readout(model)
    assert torch.equal(tied.unembedding, model.transformer.wte.weight)
    model.lm_head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
    assert torch.equal(readout(model).unembedding, model.lm_head.weight)
    padded = readout(model, vocabulary=VOCABULARY - 5)
    logits = padded.written(np.eye(WIDTH))
    assert logits.shape == (WIDTH, VOCABULARY - 5) and logits.dtype == np.float32
    # Sums of products in float32: a matrix of another width may be added up in another order.
    whole = readout(model).written(np.eye(WIDTH))[:, :-5]
    np.testing.assert_allclose(logits, whole, rtol=1e-5, atol=1e-6)


def test_biases_do_not_count():
    model = build("roberta")
    before = readout(model, inputs=inputs_of()).written(np.eye(WIDTH))
    with torch.no_grad():
        model.lm_head.decoder.bias.add_(torch.randn(VOCABULARY))
        model.lm_head.layer_norm.bias.add_(torch.randn(WIDTH))
    after = readout(model, inputs=inputs_of()).written(np.eye(WIDTH))
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_half_precision():
    model = build("llama")
    whole = readout(model, inputs=inputs_of()).written(np.eye(WIDTH))
    half = readout(model.bfloat16(), inputs=inputs_of()).written(np.eye(WIDTH))
    assert np.corrcoef(whole.ravel(), half.ravel())[0, 1] > 0.999


def test_the_strongest_tokens_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    words = Readout(torch.from_numpy(rng.standard_normal((50, 8))).float(), (), True)
    directions = rng.standard_normal((130, 8)).astype(np.float32)
    found = written(directions, words, n_tokens=3, n_random=400)
    assert dict(found.sizes) == {"concept": 130, "rank": 3}
    for i, direction in enumerate(directions):
        logits = words.unembedding.numpy() @ direction
        order = np.argsort(logits)
        assert found.written_up_id[i].values.tolist() == order[::-1][:3].tolist()
        assert found.written_down_id[i].values.tolist() == order[:3].tolist()
        np.testing.assert_allclose(
            found.written_up[i], logits[order[::-1][:3]], rtol=1e-5
        )
        np.testing.assert_allclose(found.written_down[i], logits[order[:3]], rtol=1e-5)


def test_random_directions_stay_below_the_limit_at_the_stated_rate():
    rng = np.random.default_rng(1)
    words = Readout(torch.from_numpy(rng.standard_normal((300, 16))).float(), (), True)
    directions = rng.standard_normal((2000, 16)) * rng.uniform(0.1, 10, (2000, 1))
    found = written(directions, words, n_random=1000)
    beyond = (found.written_up.isel(rank=0) > found.written_random).mean().item()
    assert 0.03 < beyond < 0.07
    again = written(directions[:3], words, n_random=1000)
    np.testing.assert_array_equal(again.written_random, found.written_random[:3])


def test_bad_directions_and_numbers_are_refused():
    words = Readout(torch.eye(4), (), True)
    with pytest.raises(ArgumentError, match=r"directions must have the shape \(r, 4\)"):
        words.written(np.ones((2, 3)))
    with pytest.raises(NonFiniteError, match="directions"):
        words.written(np.full((1, 4), np.nan))
    with pytest.raises(ArgumentError, match="n_tokens"):
        written(np.ones((1, 4)), words, n_tokens=5)
    with pytest.raises(ArgumentError, match="vocabulary"):
        readout(build("gpt2"), vocabulary=0)
    with pytest.raises(ArgumentError, match="layer must be one site"):
        readout(build("gpt2"), "mlp")
    with pytest.raises(LayerMatchError):
        readout(build("gpt2"), "transformer.h.7")
    assert written(np.zeros((0, 4)), words, n_tokens=2).sizes["concept"] == 0


def test_the_need_gives_every_layer_its_readout_and_outlives_the_weights():
    model = build("bert")
    inputs = inputs_of()
    need = Readouts(("mlp", "bert.encoder.layer.0.intermediate"))
    found = read(model, [need], {"text": inputs})[need]
    assert list(found) == match_layers(model, "mlp")
    label = next(iter(found))
    expected = readout(model, label, inputs=inputs).written(np.eye(WIDTH))
    # Shared by the layers.
    assert len({id(each.unembedding) for each in found.values()}) == 1
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    np.testing.assert_allclose(
        found[label].written(np.eye(WIDTH)), expected, rtol=1e-5, atol=1e-6
    )


def test_the_need_depends_on_the_vocabulary_map_and_the_last_norm():
    model = build("gpt2")
    need = Readouts("mlp")
    depends = modules_read(model, [need], {"text": inputs_of()})[need]
    assert (
        need.size(sources(model, [need], {"text": inputs_of()})[need])
        == 4 * VOCABULARY * WIDTH
    )
    assert {
        "transformer.ln_f.weight",
        "lm_head.weight",
        "transformer.wte.weight",
    } <= depends


def test_the_model_is_left_as_it_was():
    model = build("bert")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    readout(model, "bert.encoder.layer.0.output.dense", inputs=inputs_of())
    assert all(
        torch.equal(before[name], tensor) for name, tensor in model.state_dict().items()
    )
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_the_strongest_tokens_are_those_of_a_stable_sort_also_of_ties_and_nan():
    rng = np.random.default_rng(0)
    for logits in (
        rng.integers(0, 6, (5, 30)).astype(np.float32),
        np.where(rng.random((5, 30)) < 0.9, np.nan, 1.0).astype(np.float32),
        np.full((5, 30), np.inf, np.float32),
    ):
        strongest = _strongest(logits, 4)
        for name, signed in {
            "written_up_id": -logits,
            "written_down_id": logits,
        }.items():
            filled = np.where(np.isnan(signed), np.inf, signed)
            expected = np.argsort(filled, axis=1, kind="stable")[:, :4]
            np.testing.assert_array_equal(strongest[name], expected)
