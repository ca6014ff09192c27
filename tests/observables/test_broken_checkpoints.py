"""A checkpoint with NaN, at either end, in the middle or as the reference: what else is lost."""

import warnings

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.every_kind import of_other_runs, others
from helpers.quick_fits import few_starts
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.needs.derived import Reference
from ontogeny.problems.problem import of_node
from ontogeny.store import read_cell
from ontogeny.study.folder.layout import cell_path

pytestmark = pytest.mark.slow

__all__ = ["few_starts"]

STEPS, MIDDLE, REFERENCE = (0, 1, 2, 4, 8), 1, 4
FEW = {"layers": LAYERS, "max_tokens": 40}
BLOCKS = "*.1.self_attn.q_proj.weight"
OBSERVABLES = {
    each.name: each
    for each in (
        og.observables.Loss(),
        og.observables.Predictions(),
        og.observables.TokenLosses(),
        og.observables.ActivationDecay(**FEW),
        og.observables.ActivationPath(**FEW),
        og.observables.EffectiveDimensions(**FEW),
        og.observables.Similarity(**FEW),
        og.observables.LayerSimilarity(**FEW),
        og.observables.StepSimilarity(**FEW),
        og.observables.WeightNorms(BLOCKS),
        og.observables.FeatureGeometry(BLOCKS, n_draws=3),
        og.observables.EmbeddingFrequencies(n_draws=3),
        og.observables.AttentionEntropy(),
        og.observables.AttentionHeads(n_sequences=4),
        og.observables.CopyingHeads(),
        og.observables.NgramAgreement(orders=(1,)),
        og.observables.LogitLens(),
        og.observables.Calibration(),
        og.observables.Concepts("pca", n_concepts=4, **FEW),
        og.observables.ConceptDistances("concepts-pca"),
        og.observables.ConceptPlane("concepts-pca"),
        og.observables.ConceptTracks("concepts-pca"),
        og.observables.TransformDynamics("concepts-pca"),
        og.observables.Lipschitz("concepts-pca", "pca", n_concepts=4, **FEW),
        og.observables.EncoderDynamics(n_concepts=4, **FEW),
        og.observables.JointConcepts(n_concepts=6, n_active=1, fit_steps=3, **FEW),
        og.observables.ConceptChange(**FEW),
        og.observables.ConceptLayers(n_concepts=6, n_active=1, fit_steps=3, **FEW),
        og.observables.ConceptEffects(n_removed=1, n_draws=3, **FEW),
        og.observables.WordSemantics(n_concepts=5, n_draws=3),
        og.observables.TextStatistics(depth=2, n_draws=3),
        og.observables.WeightRank(BLOCKS, n_draws=4),
        og.observables.Orientation(blocks=BLOCKS),
        og.observables.VocabularyConcepts(
            n_concepts=4, n_active=1, fit_steps=3, nulls=0
        ),
    )
}
# Kinds that need a task or are slow; others here read the same.
ELSEWHERE = {"commutators", "projection", "intrinsic-dimension", "readout-attention"}
ELSEWHERE |= of_other_runs()
OBSERVABLES |= {
    each.name: each
    for each in others(
        {each.kind for each in OBSERVABLES.values()} | ELSEWHERE,
        of="concepts-pca",
        layers=LAYERS,
    )
}
OF_BLOCKS = {name for name, each in OBSERVABLES.items() if each.over_blocks}
OF_SERIES = {name for name, each in OBSERVABLES.items() if each.source}
OF_REFERENCE = {"encoder-dynamics-ica"} | {
    name
    for name, each in OBSERVABLES.items()
    if any(isinstance(need, Reference) for need in each.needs())
}
OF_FIRST = {"tuned-difference"}  # beside the base, which is the first checkpoint
OF_OTHERS = {
    "joint-concepts",
    "concept-change",
    "concept-layers",
    "learned-concepts",
    "concept-effects",
    "word-semantics",
    "text-statistics",
}
"""Their cells follow from a fit to several checkpoints, so that numbers may differ."""


@pytest.fixture(scope="module")
def run(tmp_path_factory, few_starts):
    """Return a function that gives folder and result of the study with a broken step, or none."""
    made = {}

    def run(broken):
        if broken not in made:
            models = developing(STEPS)
            if broken is not None:
                with torch.no_grad():
                    for parameter in models[broken].parameters():
                        parameter.view(-1)[0] = torch.nan
            study = og.Study(
                og.Trajectory.from_models(models),
                tiny_inputs(12),
                list(OBSERVABLES.values()),
                device="cpu",
                reference=REFERENCE,
                noise=0,
            )
            folder = tmp_path_factory.mktemp("broken") / "s"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made[broken] = folder, study.run(folder, keep_going=True)
        return made[broken]

    return run


def lost_steps(data):
    """Return the steps at which a node holds nothing, by what it says."""
    rows = of_node("x", data)
    return {step for row in rows for step in (row.steps or STEPS)}


@pytest.mark.parametrize("name", OBSERVABLES)
def test_nothing_is_lost_of_a_healthy_run(run, name):
    assert of_node(name, run(None)[1][name].dataset) == []


@pytest.mark.parametrize("name", OBSERVABLES)
@pytest.mark.parametrize("broken", [0, MIDDLE, REFERENCE, 8])
def test_a_broken_checkpoint_costs_what_depends_on_it(run, broken, name):
    folder, tree = run(broken)
    data = tree[name].to_dataset()
    found = of_node(name, data)
    depends = name in (OF_REFERENCE if broken == REFERENCE else ())
    depends |= name in OF_BLOCKS and broken in (0, 8)
    depends |= name in OF_SERIES and broken == REFERENCE
    depends |= name in OF_FIRST and broken == 0
    assert len(found) == (0 if name in OF_SERIES and not depends else 1), (
        "it is said once"
    )
    if depends:
        assert lost_steps(data) == set(STEPS)
        return
    if name in OF_SERIES:
        assert found == [] and list(data.data_vars)
        return
    assert lost_steps(data) == {broken}
    if name == "orientation":  # one basis for all steps
        return
    if name not in OF_BLOCKS | OF_OTHERS:
        healthy, _ = run(None)
        for step in sorted({*STEPS} - {broken}):
            cells = [
                read_cell(cell_path(each, name, step)).data
                for each in (folder, healthy)
            ]
            assert cells[0].identical(cells[1]), step
    if name == "writing":  # token ids
        there = (data.written_id >= 0).any(["prompt", "choice", "written"])
        assert bool(there.sel(step=2)) and not bool(there.sel(step=broken))
        return
    values = [
        v for v in data.data_vars.values() if "step" in v.dims and v.dtype.kind == "f"
    ]
    assert any(np.isfinite(v.sel(step=2)).any() for v in values)
    assert not any(
        np.isfinite(v.sel(step=broken)).any() for v in values if "text" in v.dims
    )


def test_projections_leave_a_broken_checkpoint_out_of_their_directions(tmp_path):
    models = developing(STEPS)
    with torch.no_grad():
        models[MIDDLE].model.layers[1].self_attn.q_proj.weight[0, 0] = torch.nan
    chosen = og.observables.Projection(blocks=BLOCKS)
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(40),
        chosen,
        device="cpu",
        noise=0,
    )
    data = study.run(tmp_path)["projection"].to_dataset()
    assert lost_steps(data) == {MIDDLE}
    assert np.isfinite(data.rho.sel(step=[2, 4, 8])).any()
