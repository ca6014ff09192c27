"""KL and the difference lens of a tuned model: plain loops, and a planted shift."""

import base64
import copy

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import ontogeny as og
from ontogeny.capture.objectives import ReadingSettings
from ontogeny.capture.predictor import Predictor
from ontogeny.errors import ArgumentError
from ontogeny.observables import TokenLosses, TunedDifference
from ontogeny.observables.own_texts import LayerReader
from ontogeny.report.texts.example import read_example
from ontogeny.words.content import read_content

VOCABULARY, STEPS = 30, (0, 10, 20)
WRITTEN = 7


def base():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).eval()


def models():
    """Tuning adds the row of one token to what the last layer's MLP writes, more and more."""
    found = {0: base()}
    for step in STEPS[1:]:
        model = copy.deepcopy(found[0])
        with torch.no_grad():
            row = model.lm_head.weight[WRITTEN]
            model.model.embed_tokens.weight += 0.3 * step / 10 * row
        found[step] = model
    return found


def inputs():
    rng = np.random.default_rng(0)
    return og.Inputs.from_tokens(
        rng.integers(0, VOCABULARY, (30, 12)), vocab_size=VOCABULARY
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    folder = tmp_path_factory.mktemp("difference") / "s"
    observable = TunedDifference("resid", n_texts=6, max_tokens=10, first=3)
    trajectory = og.Trajectory.from_models(models())
    result = og.Study(trajectory, inputs(), [observable], device="cpu").run(folder)
    assert not len(result.problems()), result.problems()
    og.open_study(folder).report(folder / "page.html")
    return result["tuned-difference"].to_dataset()


def test_the_divergence_is_that_of_a_plain_loop(node):
    ids = torch.from_numpy(node.token_id.values.astype(np.int64))
    with torch.no_grad():
        before, after = (models()[s](ids).logits.log_softmax(-1) for s in (0, 20))
    each = (after.exp() * (after - before)).sum(-1)[:, :-1].double().numpy()
    at = node.sel(step=20)
    assert float(at.divergence) == pytest.approx(each.mean(), rel=1e-4)
    assert at.token_divergence.values[:, 1:] == pytest.approx(each, rel=1e-3, abs=1e-6)
    assert np.isnan(at.token_divergence.values[:, 0]).all()
    assert float(node.divergence[0]) == pytest.approx(0, abs=1e-6)


def test_the_lens_names_the_token_that_tuning_writes(node):
    last = node.isel(step=-1)
    first_layer = last.isel(layer=0)
    for name in ("written_first", "written_all", "written_random"):
        assert first_layer[name].values[0] == str(WRITTEN)
    assert float(first_layer.alike.min()) > 0.9  # whatever the text
    assert (node.apart.isel(step=0) < 1e-5).all()
    assert node.alike.isel(step=0).isnull().all()  # nothing has an angle to nothing
    assert (last.apart > node.apart.sel(step=10)).all()


def test_mean_differences_are_those_of_a_plain_loop(node):
    ids = torch.from_numpy(node.token_id.values.astype(np.int64))
    with torch.no_grad():
        before, after = (
            models()[s](ids, output_hidden_states=True).hidden_states[1]
            for s in (0, 20)
        )
    for where, width in (("first tokens", 3), ("all tokens", 10)):
        apart = (after - before)[:, :width].mean(dim=(0, 1)).norm()
        size = before.pow(2).sum(-1).mean().sqrt()
        at = node.sel(step=20, place_of=where).isel(layer=0)
        assert float(at.apart) == pytest.approx(float(apart / size), rel=1e-4)


def test_the_page_tints_tokens_by_their_divergence(tmp_path):
    every = [TunedDifference("resid"), TokenLosses()]
    trajectory = og.Trajectory.from_models(models())
    result = og.Study(trajectory, inputs(), every, device="cpu").run(tmp_path / "s")
    found = read_example(read_content(result.tree))
    assert [measure.key for measure in found.measures] == ["loss", "divergence"]
    loss, divergence = found.measures
    assert (divergence.has_value == loss.has_value).all()
    one = found.payload["measures"][1]
    shape, raw = one["values"]["shape"], base64.b64decode(one["values"]["bdata"])
    told = np.frombuffer(raw, np.uint8).reshape(shape)[0] / one["parts"]
    node = result["tuned-difference"].to_dataset()
    numbers = result["token-losses"].to_dataset().text_number.values
    rows = [node.text_number.values.tolist().index(number) for number in numbers]
    values = node.token_divergence.transpose("step", "shown_text", "place").values
    where = loss.has_value[None].repeat(len(STEPS), axis=0)
    np.testing.assert_allclose(
        told[where], values[:, rows][where], atol=0.5 / one["parts"] + 1e-6
    )
    most = np.nanmax(values) + 1 / one["parts"]
    assert 0 < one["top"] <= most and one["bottom"] == 0


def test_activations_beside_predictions_are_those_of_a_pass_of_their_own():
    model, texts, settings = base(), inputs(), ReadingSettings()
    sample, labels = texts.sample("all", None, 0), ["model.layers.1", "model.norm"]
    layers = LayerReader(model, labels, settings)
    collector = layers.collector(texts, sample)
    alone = layers.activations(texts, sample)
    passes = []
    handle = model.register_forward_hook(lambda *_: passes.append(1))
    counts = []
    for beside in (
        [],
        [],
        [collector],
    ):  # the first pass of a model asks for its shape too
        passes.clear()
        Predictor(model, "causal", settings).reduced(
            texts, lambda text, column, token, log_p: {"p": log_p[:, 0]}, beside=beside
        )
        counts.append(len(passes))
    handle.remove()
    assert counts[1] == counts[2] > 0
    for label, values in collector.result().items():
        torch.testing.assert_close(values, alone[label])


def test_arguments_out_of_range_are_refused():
    for wrong in ({"first": 0}, {"top": 0}, {"n_texts": 1}, {"max_tokens": 1}):
        (name,) = wrong
        with pytest.raises(ArgumentError, match=name):
            TunedDifference(**wrong)
