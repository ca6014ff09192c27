"""Effects of concepts beyond the token: some that are read, some that nothing reads; by hand."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers import family_models
from ontogeny.concepts.beyond_token import THERE, Tokens, centred, strong
from ontogeny.observables import ConceptEffects, LearnedConcepts
from ontogeny.store import read_cell
from ontogeny.study.folder.layout import state_path

from .test_observables_concept_effects import USED, R, decoders, models, planted, texts

KEYS = {"max_tokens": None, "objective": "causal"}


def node_and_codes(folder, trajectory, inputs, layer, count, removed):
    """Return the effects of a layer, and the codes (n, r) where they are there."""
    observables = [
        LearnedConcepts(layer, n_concepts=count, max_tokens=None, examples=0),
        ConceptEffects("learned-concepts", layer, n_removed=removed, **KEYS),
    ]
    study = og.Study(trajectory, inputs, observables, device="cpu", noise=2)
    tree = study.run(folder)
    state = read_cell(state_path(folder, "learned-concepts")).data
    codes = np.nan_to_num(state.codes.sel(layer=layer).isel(fit=0).values)
    codes = codes.astype(np.float32)
    node = tree["concept-effects"].to_dataset().sel(layer=layer)
    return node, np.where(strong(codes, THERE), codes, 0)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    trajectory = og.Trajectory.from_models(models())
    folder = tmp_path_factory.mktemp("beyond")
    return node_and_codes(folder / "s", trajectory, texts(), "layers.0", R, R)


@pytest.mark.slow
def test_a_component_that_is_read_matters_and_one_that_is_not_costs_nothing(found):
    node, codes = found
    cross = np.corrcoef(codes.T, planted()[0].T)[: codes.shape[1], codes.shape[1] :]
    assert (cross.max(axis=1) > 0.9).all()
    verdict = node.verdict.values.astype(str)
    is_used = cross[node.removed_concept.values.astype(int)].argmax(axis=1) < USED
    assert is_used.sum() == USED
    assert (verdict[is_used] == "matters").all(), verdict
    assert not (verdict[~is_used] == "matters").any(), verdict


@pytest.mark.slow
def test_no_part_of_the_token_is_removed(tmp_path):
    """The loss without one component, beside the same removal by a hook that is written here."""
    model = family_models.build("gpt2").eval()
    other = family_models.build("gpt2").eval()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.05)
    vocabulary = model.config.vocab_size
    ids = np.minimum(rng.zipf(1.4, (80, 10)), vocabulary) - 1
    inputs = og.Inputs.from_tokens(ids.tolist(), vocab_size=vocabulary)
    trajectory = og.Trajectory.from_models(
        {0: model, 1: family_models.build("gpt2", 1), 2: other}
    )
    layer = "transformer.h.0"
    node, codes = node_and_codes(tmp_path / "s", trajectory, inputs, layer, 9, 1)
    kept = {}
    module = other.get_submodule(layer)

    def first(output):
        return output[0] if isinstance(output, tuple) else output

    handle = module.register_forward_hook(
        lambda *call: kept.update(A=first(call[2]).clone())
    )
    tokens = torch.from_numpy(ids)
    with torch.no_grad():
        before = other(tokens, labels=tokens).loss.item()
    handle.remove()
    A = kept["A"].reshape(ids.size, -1).numpy()
    unit = np.repeat(np.arange(len(ids)), ids.shape[1])
    left = Tokens(ids.ravel(), unit).left(centred(A))
    assert np.abs(left - centred(A)).max() > 0.1  # the token gives much of this layer
    j = int(node.removed_concept.item())
    part = codes[:, j, None] * decoders(codes.astype(float), left)[j]
    taken = torch.from_numpy(part.reshape(kept["A"].shape)).float()

    def remove(_, __, output):
        rest = first(output) - taken
        return (rest, *output[1:]) if isinstance(output, tuple) else rest

    handle = module.register_forward_hook(remove)
    with torch.no_grad():
        after = other(tokens, labels=tokens).loss.item()
    handle.remove()
    cost = float(node.removed.sel(step=2).squeeze())
    assert cost == pytest.approx(after - before, rel=2e-2, abs=1e-5)
