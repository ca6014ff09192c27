"""A decorated function as an observable: the numbers, their noise, and what is refused."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import build
from ontogeny.errors import ArgumentError, StudyWarning
from ontogeny.observables import make_own
from ontogeny.own_code import load
from ontogeny.study.folder.code import code_of_cell

STEPS = (0, 1, 2)


@og.observable("activations", layers="mlp", units="share")
def active(A):
    """Share of activations above zero."""
    return (A > 0).double().mean(dim=1)


@og.observable("activations", layers="mlp")
def spread(A):
    return float(A.std())


@og.observable("attention")
def to_first(maps):
    """Attention to the first token."""
    return maps[:, :, 0].mean()


@og.observable("weights", layers="mlp")
def size(W):
    """Frobenius norm."""
    return W.norm()


@og.observable("losses", better="lower")
def worst(losses):
    """Loss of the hardest text."""
    return losses.max()


@og.observable("losses", better="lower")
def mean(losses):
    return losses


ALL = [active, spread, to_first, size, worst, mean]


@pytest.fixture(scope="module")
def models():
    return {step: build("gpt2", seed=step) for step in STEPS}


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    return og.Inputs.from_tokens([rng.integers(5, 60, 4 + i % 5) for i in range(12)])


@pytest.fixture(scope="module")
def result(models, inputs, tmp_path_factory):
    study = og.Study(
        og.Trajectory.from_models(models), inputs, ALL, device="cpu", noise=0
    )
    return study.run(tmp_path_factory.mktemp("own") / "study", progress=False)


def test_numbers_are_those_of_a_bare_computation(result, models, inputs):
    for step, model in models.items():
        A = og.capture.activations(
            model, inputs, layers="mlp", tokens="all", max_tokens=None
        )
        for layer, values in A.items():
            there = result["active"].value.sel(step=step, layer=layer)
            assert float(there) == pytest.approx(
                float((values > 0).double().mean()), rel=1e-6
            )
            there = result["spread"].value.sel(step=step, layer=layer)
            assert float(there) == pytest.approx(float(values.std()), rel=1e-6)
        for block in result["size"].layer.values:
            W = dict(model.named_parameters())[str(block)].detach()
            there = result["size"].value.sel(step=step, layer=block)
            assert float(there) == pytest.approx(float(W.norm()), rel=1e-6)
        losses = og.capture.losses(model, inputs).loss.values
        assert float(result["worst"].value.sel(step=step)) == pytest.approx(
            losses.max(), rel=1e-5
        )
        assert float(result["mean"].value.sel(step=step)) == pytest.approx(
            losses.mean(), rel=1e-5
        )


def test_each_text_has_its_own_attention_map_without_padding(result, models, inputs):
    for step, model in models.items():
        model.set_attn_implementation("eager")
        by_text = []
        for ids, mask in zip(inputs.ids, inputs.mask, strict=True):
            with torch.no_grad():
                output = model(torch.tensor(ids[mask])[None], output_attentions=True)
            by_text.append(
                [float(maps[0, :, :, 0].mean()) for maps in output.attentions]
            )
        for i, values in enumerate(np.array(by_text).T):
            there = result["to_first"].isel(layer=i).sel(step=step)
            assert float(there.value) == pytest.approx(values.mean(), rel=1e-5)
            stderr = values.std(ddof=1) / np.sqrt(len(values))
            assert float(there.value_stderr) == pytest.approx(stderr, rel=1e-3)


def test_title_units_rows_and_noise_follow_from_the_declaration(result):
    data = result["active"]
    assert data.value.attrs["long_name"] == "share of activations above zero"
    assert data.value.attrs["units"] == "share"
    assert all("active" in str(row) for row in data.row.values)
    assert "value_stderr" in data and "value_stderr" not in result["spread"]
    assert result["worst"].value.dims == ("step",)


def test_the_function_stays_a_function():
    assert active(torch.tensor([[1.0, -1.0]])).tolist() == [0.5]


def test_a_study_file_names_it_and_an_edit_makes_it_stale(tmp_path):
    source = (
        "import ontogeny as og\n\n\n@og.observable('weights')\n"
        "def top(W):\n    '''Largest weight.'''\n    return W.abs().max()\n"
    )
    (tmp_path / "mine.py").write_text(source)

    def made():
        return make_own("mine.py:top", load("mine.py:top", tmp_path), layers="mlp")

    assert (made().name, made().layers, made().quantities[0].title) == (
        "top",
        "mlp",
        "largest weight",
    )
    before = code_of_cell("StepCell", made(), made().needs())
    (tmp_path / "mine.py").write_text(source.replace("abs()", "square()"))
    assert code_of_cell("StepCell", made(), made().needs()) != before


def test_what_is_no_declaration_is_refused():
    with pytest.raises(ArgumentError, match="reads must be one of 'losses'"):
        og.observable("logits")
    with pytest.raises(
        ArgumentError, match="layers goes with other things than losses"
    ):
        og.observable("losses", layers="mlp")
    with pytest.raises(ArgumentError, match="better must be one of"):
        og.observable("losses", better="up")


@pytest.mark.parametrize("reads", ["activations", "attention", "weights", "losses"])
def test_what_is_no_number_is_said_by_the_name_of_the_function(
    models, inputs, tmp_path, reads
):
    @og.observable(reads)
    def many(values):
        return np.zeros((2, 2))

    run = og.Trajectory.from_models({0: models[0]})
    study = og.Study(run, inputs, many, device="cpu")
    with pytest.warns(StudyWarning, match="many must return one number"):
        study.run(tmp_path / "study", progress=False, keep_going=True)
