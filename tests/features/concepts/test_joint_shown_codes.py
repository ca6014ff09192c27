"""Codes of every token of a few texts against a plain loop over the checkpoints' activations."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.capture_models import MASK, build
from helpers.described_examples import zipf_texts
from helpers.lookup_model import lookup_run, lookup_texts
from ontogeny.concepts.joint.snapshots import fixed_half
from ontogeny.errors import ArgumentError
from ontogeny.inputs import ShownTexts
from ontogeny.observables import JointConcepts, TokenLosses
from ontogeny.store import read_cell
from ontogeny.study.folder.layout import state_path

RIDGE = 1e-2
STEPS = (0, 1, 2)
PATHS = {"gpt2": "transformer.h.1.mlp", "bert": "bert.encoder.layer.1.output"}


def plain_readouts(activations, codes, half, others, of_first):
    """The sparse readouts of one checkpoint at other tokens, each by the texts it is not fitted on.

    Ridge regression on centred activations in float64; the limit leaves as many tokens of the half
    that it is read on as have a code in the half that it is fitted on.
    """
    mean, scale = activations.mean(0), np.sqrt(activations.var(0).sum())
    X, Y = (activations - mean) / scale, (others - mean) / scale
    found = np.zeros((len(others), codes.shape[1]))
    for fitted, rows in ((half, ~of_first), (~half, of_first)):
        A, U = X[fitted] - X[fitted].mean(0), codes[fitted] - codes[fitted].mean(0)
        moment = A.T @ A
        moment += RIDGE * np.trace(moment) / len(moment) * np.eye(len(moment))
        weights = np.linalg.solve(moment, A.T @ U)
        said, n = X[~fitted] @ weights, int((~fitted).sum())
        for j in range(codes.shape[1]):
            kept = int(np.clip(np.ceil((codes[fitted, j] > 0).mean() * n), 1, n - 1))
            limit = np.sort(said[:, j])[n - 1 - kept]
            own = Y[rows] @ weights[:, j]
            found[rows, j] = np.where(own > limit, own, 0)
    return found


def activations_of(model, path, inputs):
    """Activations of every token of each text alone, a list of (tokens, features)."""
    kept = []
    handle = model.get_submodule(path).register_forward_hook(
        lambda *a: kept.append(a[2])
    )
    with torch.no_grad():
        for ids, mask in zip(inputs.ids, inputs.mask, strict=True):
            model(input_ids=torch.tensor(ids[mask][None]))
    handle.remove()
    first = (each[0] if isinstance(each, tuple) else each for each in kept)
    return [each[0].double().numpy() for each in first]


@pytest.fixture(scope="module", params=["gpt2", "bert"])
def result(request, tmp_path_factory):
    """A study that samples a fifth of the tokens: most tokens that are shown are not among them."""
    family = request.param
    inputs = zipf_texts(texts=40, special_ids=[0], mask_token_id=MASK).padded("left")
    joint = JointConcepts(
        PATHS[family],
        n_concepts=12,
        n_active=1,
        fit_steps=3,
        readable=0.2,
        max_tokens=150,
        random_state=4,
        shown_texts=3,
    )
    models = {step: build(family, seed=7) for step in STEPS}
    for step, model in models.items():
        with torch.no_grad():
            for weight in model.get_submodule(PATHS[family]).parameters():
                weight.add_(0.02 * step * torch.randn(weight.shape))
    folder = tmp_path_factory.mktemp(family) / "study"
    study = og.Study(
        og.Trajectory.from_models(models),
        inputs,
        [TokenLosses(), joint],
        device="cpu",
        noise=0,
    )
    tree = study.run(folder)
    state = read_cell(state_path(folder, "joint-concepts")).data
    return tree, state, joint, models, inputs.padded("right"), PATHS[family]


def test_codes_equal_a_plain_loop_over_the_texts(result):
    tree, state, joint, models, inputs, path = result
    data = tree["joint-concepts"].to_dataset()
    sample = inputs.sample("all", joint.max_tokens, joint.random_state)
    codes = state["codes"].values[0].astype(float)
    largest = np.maximum(codes.max(axis=0), 1e-12)  # 0 of latents that the fit left out
    groups = inputs.groups[sample.text]
    half = fixed_half(groups)
    shown = ShownTexts.of(inputs, 3)
    of_first = np.isin(inputs.groups[shown.sample.text], groups[half])
    concept = data.concept_kind.values[0] != "no concept"
    assert concept.sum() > 3
    for step, model in models.items():
        every = activations_of(model, path, inputs)
        sampled, wanted = (
            np.array([every[t][p] for t, p in zip(s.text, s.position, strict=True)])
            for s in (sample, shown.sample)
        )
        plain = plain_readouts(sampled, codes, half, wanted, of_first) / largest
        plain = np.clip(100 * shown.grid(plain.T), 0, 250)[concept]
        found = data.shown_code.sel(step=step).values[0][concept]
        np.testing.assert_array_equal(found == 255, np.isnan(plain))
        there = found != 255
        off = np.abs(found[there].astype(float) - plain[there])
        # Rounded to a hundredth; the one token at the limit of a readout may fall on either side.
        assert np.mean(off <= 0.51) > 0.99
        assert (plain[there] > 0).any()


def test_shared_codes_stand_at_the_tokens_that_were_sampled(result):
    tree, state, joint, _, inputs, _ = result
    data = tree["joint-concepts"].to_dataset()
    sample = inputs.sample("all", joint.max_tokens, joint.random_state)
    codes = state["codes"].values[0]
    largest = np.maximum(codes.max(axis=0), 1e-12)
    rows = {
        token: i
        for i, token in enumerate(zip(sample.text, sample.position, strict=True))
    }
    concept = data.concept_kind.values[0] != "no concept"
    for text, place in np.ndindex(*data.shown_token_id.shape):
        row = rows.get((int(data.shown_text_number[text]), place))
        found = data.shown_shared_code.values[0][:, text, place]
        if row is None:
            assert (found == 255).all()
        else:
            wanted = np.round(100 * codes[row] / largest)
            np.testing.assert_array_equal(found[concept], wanted[concept])
            assert (found[~concept] == 255).all()


def test_they_are_of_the_tokens_that_have_losses_whatever_the_seed_of_the_fit(result):
    tree = result[0]
    losses, codes = (
        tree[name].to_dataset() for name in ("token-losses", "joint-concepts")
    )
    np.testing.assert_array_equal(losses.text_number, codes.shown_text_number)
    np.testing.assert_array_equal(losses.token_id, codes.shown_token_id)
    assert codes.shown_code.dtype == np.uint8 == codes.shown_shared_code.dtype


def test_a_readout_finds_the_planted_words_where_they_stand(tmp_path):
    joint = JointConcepts(
        "out",
        n_concepts=8,
        n_active=1,
        fit_steps=6,
        readable=0.5,
        max_tokens=None,
        shown_texts=3,
    )
    study = og.Study(lookup_run(), lookup_texts(), [joint], device="cpu", noise=0)
    data = study.run(tmp_path / "study")["joint-concepts"].to_dataset()
    codes = data.shown_code.values[:, 0]
    named = [i for i, name in enumerate(data["name"].values[0]) if name]
    assert named
    for concept in named:
        word = int(data.token_id.values[0, concept, 0])
        at = data.shown_token_id.values == word
        there = data.shown_token_id.values >= 0
        if at.any():
            assert (
                codes[-1, concept][at].min()
                > 30
                > codes[-1, concept][there & ~at].max()
            )


@pytest.mark.parametrize(
    "options", [{"examples": 0}, {"tokens": "mean"}, {"tokens": "masked"}]
)
def test_codes_of_tokens_need_described_concepts_of_all_tokens(options):
    with pytest.raises(ArgumentError, match="shown_texts=2"):
        JointConcepts(shown_texts=2, **options)


def test_nothing_is_kept_unless_asked_for(tmp_path):
    joint = JointConcepts("out", n_concepts=8, n_active=1, fit_steps=3, max_tokens=None)
    study = og.Study(lookup_run(), lookup_texts(), [joint], device="cpu", noise=0)
    data = study.run(tmp_path / "study")["joint-concepts"].to_dataset()
    assert not [name for name in data if str(name).startswith("shown_")]
